//! The table of tools: few, with plain names, each backed by one or several rows of the table of
//! operations.

use quipu_contract::Form;

/// A tool, and how it is derived from rows of the table.
pub struct Tool {
    pub name: &'static str,
    pub about: &'static str,
    /// Rows of the table, each with the `action` that selects it if there are several.
    pub rows: &'static [(&'static str, &'static str)],
    /// The effect and the arguments of each action, if there are several.
    pub actions: &'static str,
    /// Arguments that only make sense on a command line, because stdin belongs to the protocol.
    pub left_out: &'static [&'static str],
    /// Arguments that a call may have and the schema does not show: a model needs few.
    pub hidden: &'static [&'static str],
    /// Descriptions for a model, where that of the command line is not enough.
    pub described: &'static [(&'static str, &'static str)],
    /// Arguments for files of a form. A project without one is not shown them.
    pub only: &'static [(&'static str, Form)],
    /// The form of file that the tool is for. A project without one does not offer it.
    pub form: Option<Form>,
    /// Arguments that the schema requires because their alternative is left out.
    pub must: &'static [&'static str],
    /// A project with such files requires nothing of `must`.
    pub eased: Option<Form>,
    /// Keys of the data that the text already contains.
    pub told: &'static [&'static str],
    /// If there are any, the only keys of the data that are kept.
    pub kept: &'static [&'static str],
    /// The output schema of the data beside the text, as JSON properties.
    pub gives: &'static str,
    pub reads: bool,
    pub destroys: bool,
}

const READS: Tool = Tool {
    name: "",
    about: "",
    rows: &[],
    actions: "",
    left_out: &[],
    hidden: &[],
    described: &[],
    only: &[],
    form: None,
    must: &[],
    eased: None,
    told: &[],
    kept: &[],
    gives: "",
    reads: true,
    destroys: false,
};
const WRITES: Tool = Tool {
    reads: false,
    ..READS
};

/// All tools, always in this order, because clients cache the list as part of their prompt prefix.
pub const TOOLS: &[Tool] = &[
    Tool {
        name: "start",
        about: "Call this first. Shows the current state: identity, state, open todos, decisions, \
            unfinished work and what to do next.",
        rows: &[("", "start")],
        hidden: &["budget", "scene", "peek"],
        only: &[
            ("task", Form::Task),
            ("suspect", Form::Task),
            ("delegation", Form::Delegation),
        ],
        told: &["blocks", "next"],
        ..WRITES
    },
    Tool {
        name: "finish",
        about: "Call this before you stop. Saves everything in one commit, or lists the lines to \
            add.",
        rows: &[("", "finish")],
        left_out: &["file", "git", "session"],
        hidden: &[
            "did",
            "next",
            "task",
            "phase",
            "in_progress",
            "notes",
            "fact",
            "replaces",
            "takes_over",
            "blocked",
            "unblocked",
            "state",
            "decision",
            "done",
            "cancel",
            "block",
            "leave",
            "add",
            "reviewed",
            "problem",
            "rounds",
            "pattern",
            "learnt",
            "improvement",
            "outcome",
            "abandon",
            "why",
        ],
        described: &[
            (
                "text",
                "Markdown with the headings that `start` lists, such as ## Done, ## Decisions, \
                 ## Todos, ## Next; list items below, or `- none`",
            ),
            ("solution", "What solved the task"),
            ("cause", "What caused the problem, in one line"),
            ("cure", "What cures such a problem, in one line"),
            ("lesson", "A lesson instead of cause and cure, or `none`"),
            (
                "world",
                "Changed facts, each as SECTION/KEY=VALUE, such as Environment/port=8080",
            ),
            ("none", "`world` if nothing changed"),
        ],
        only: &[
            ("solution", Form::Task),
            ("cause", Form::Task),
            ("cure", Form::Task),
            ("lesson", Form::Task),
            ("world", Form::World),
            ("none", Form::Task),
        ],
        must: &["text"],
        eased: Some(Form::Task),
        told: &["difference", "missing"],
        ..WRITES
    },
    Tool {
        name: "recall",
        about: "Finds the sections of the project's files that answer a question, in English or \
            Chinese, with file and line. Says if nothing matches well.",
        rows: &[("", "recall")],
        left_out: &["no_model", "complete"],
        hidden: &["most", "tokens", "tier", "as_of"],
        described: &[("in", "Only files that match this glob")],
        told: &["covers"],
        gives: r#""hits": {"type": "array"}"#,
        ..READS
    },
    Tool {
        name: "read",
        about: "Reads a file or one section, now or at an older version. Returns the version that \
            `write` expects, and `closed` if you may not change the file.",
        rows: &[("", "read")],
        described: &[("path", "PATH, PATH#SECTION, PATH:LINE or FILE.json#KEY/KEY")],
        gives: r#""version": {"type": "string"}"#,
        ..READS
    },
    Tool {
        name: "append",
        about: "Adds text at the end of a file. This is the only way to change an append-only \
            file; a correction is a new entry. Not for decisions and todos.",
        rows: &[("", "append")],
        hidden: &["key", "why"],
        left_out: &["file"],
        must: &["text"],
        ..WRITES
    },
    Tool {
        name: "write",
        about: "Creates a file, replaces its whole text, or with `old` one passage of it. To \
            replace the whole of a state file, pass `expect`. Older versions are kept.",
        rows: &[("", "write")],
        hidden: &["key", "why"],
        left_out: &["file"],
        described: &[
            ("old", "Replace only this text, which must occur once"),
            ("expect", "The version that `read` returned"),
            (
                "force",
                "Write although most of the text disappears or it looks like a placeholder",
            ),
        ],
        must: &["text"],
        destroys: true,
        ..WRITES
    },
    Tool {
        name: "check",
        about: "Checks a draft (`path`) or one sentence (`claim`) against what is already \
            written. Returns the conflicts with both places, and the evidence for claims that no \
            rule decides: judge these yourself.",
        rows: &[("", "check")],
        // A judge is a program of the caller, which a model must not start; an answer is kept, and
        // the tool only reads.
        left_out: &["judge", "answers"],
        hidden: &["memory", "prompt", "scene", "k", "tokens"],
        described: &[("path", "PATH or PATH#SECTION")],
        told: &["claims"],
        gives: r#""conflicts": {"type": "array"}"#,
        ..READS
    },
    Tool {
        name: "status",
        about: "Lists the files, external edits and violations of the contract.",
        rows: &[("", "status")],
        told: &["files", "free"],
        ..READS
    },
    Tool {
        name: "todo",
        about: "Manages todos, which last across sessions.",
        rows: &[
            ("add", "todo add"),
            ("edit", "todo edit"),
            ("start", "todo start"),
            ("block", "todo block"),
            ("unblock", "todo unblock"),
            ("done", "todo done"),
            ("cancel", "todo cancel"),
            ("list", "todo list"),
            ("show", "todo show"),
            ("review", "todo review"),
        ],
        actions: "add needs title; block and cancel need id and reason; list and review need \
            nothing; the others need id. review records that all todos were looked at",
        form: Some(Form::Todos),
        hidden: &[
            "category", "tag", "assignee", "after", "notes", "by", "status",
        ],
        described: &[
            ("priority", "Medium by default"),
            ("id", "The id that `list` shows"),
            ("note", "A note about progress, for edit"),
            ("all", "List completed and cancelled todos too"),
        ],
        gives: r#""todos": {"type": "array"}"#,
        ..WRITES
    },
    Tool {
        name: "decide",
        about: "Records a decision, so that it need not be made again. For every choice with a \
            reason; `append` is for other text.",
        rows: &[("", "decide")],
        form: Some(Form::Decisions),
        hidden: &["status", "id"],
        described: &[("supersedes", "The ids of decisions that this one replaces")],
        ..WRITES
    },
    Tool {
        name: "report",
        about: "Reports on a task that was delegated to you.",
        rows: &[("", "report")],
        form: Some(Form::Delegation),
        hidden: &["evidence"],
        described: &[("result", "How it ended")],
        ..WRITES
    },
    Tool {
        name: "repair",
        about: "Repairs what `status` flags.",
        rows: &[("restore", "restore"), ("doctor", "doctor")],
        actions: "restore brings back a version of the file `path`, by default the newest commit; \
            doctor rebuilds Quipu's caches",
        hidden: &["more", "why"],
        described: &[("at", "The version, for restore: a1b2c3…, @12, ~1 or a time")],
        destroys: true,
        ..WRITES
    },
    Tool {
        name: "inspect",
        about: "Shows the rules of this project and the files that only people change, its commits or \
            its decisions.",
        rows: &[
            ("contract", "contract show"),
            ("log", "log"),
            ("decisions", "decisions"),
        ],
        actions: "log: the commits, newest first",
        hidden: &["most", "current"],
        described: &[
            ("role", "Only this role, for contract"),
            ("path", "Only this file, for log"),
        ],
        kept: &["decisions"],
        gives: r#""decisions": {"type": "array"}"#,
        ..READS
    },
];
