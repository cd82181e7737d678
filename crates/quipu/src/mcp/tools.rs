//! The MCP tools: few, with plain names, each backed by one or several rows of the table of
//! operations.

use std::ffi::OsString;
use std::sync::OnceLock;

use quipu_contract::{Contract, Form};
use serde_json::{Map, Value, json};

use super::schema::{arguments_of, parse_call, properties};
use super::wire::Fault;
use crate::answer::{Answer, Failure, exit};
use crate::help::is_used;
use crate::session::Session;
use crate::table::{Operation, TABLE};

struct Tool {
    name: &'static str,
    about: &'static str,
    /// Rows of the table, each with the `action` that selects it if there are several.
    rows: &'static [(&'static str, &'static str)],
    /// What the actions do and need, if there are several.
    actions: &'static str,
    /// Arguments that only make sense on a command line, because stdin belongs to the protocol.
    left_out: &'static [&'static str],
    /// Arguments that a call may have and the schema does not show: a model needs few.
    hidden: &'static [&'static str],
    /// Descriptions for a model, where that of the command line is not enough.
    described: &'static [(&'static str, &'static str)],
    /// Arguments for files of a form. A project without one is not shown them.
    only: &'static [(&'static str, Form)],
    /// The form of file that the tool is for. A project without one does not offer it.
    form: Option<Form>,
    /// Arguments that the schema requires because their alternative is left out.
    must: &'static [&'static str],
    /// Keys of the data that the text already contains.
    told: &'static [&'static str],
    /// The output schema of the data beside the text, as JSON properties.
    gives: &'static str,
    reads: bool,
    destroys: bool,
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
    told: &[],
    gives: "",
    reads: true,
    destroys: false,
};
const WRITES: Tool = Tool {
    reads: false,
    ..READS
};

/// All tools, always in this order, because clients cache the list as part of their prompt prefix.
const TOOLS: &[Tool] = &[
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
            "solution",
            "rounds",
            "pattern",
            "learnt",
            "lesson",
            "cause",
            "cure",
            "improvement",
            "outcome",
            "world",
            "none",
            "abandon",
            "why",
        ],
        described: &[(
            "text",
            "Markdown with the headings that `start` lists, such as ## Done, ## Decisions, \
             ## Todos, ## Next; list items below, or `- none`",
        )],
        must: &["text"],
        told: &["difference", "missing"],
        ..WRITES
    },
    Tool {
        name: "recall",
        about: "Finds the sections of the project's files that answer a question, in English or \
            Chinese, with file and line. Says if nothing matches well.",
        rows: &[("", "recall")],
        left_out: &["no_model", "complete"],
        hidden: &["most", "tokens", "tier"],
        described: &[("in", "Only files that match this glob")],
        told: &["covers"],
        gives: r#""hits": {"type": "array"}"#,
        ..READS
    },
    Tool {
        name: "read",
        about: "Reads a file or one section, now or at an older version. Returns the version that \
            `write` expects.",
        rows: &[("", "read")],
        described: &[("path", "PATH, PATH#SECTION or PATH:LINE")],
        gives: r#""version": {"type": "string"}"#,
        ..READS
    },
    Tool {
        name: "append",
        about: "Adds text at the end of a file. This is the only way to change an append-only \
            file; a correction is a new entry.",
        rows: &[("", "append")],
        hidden: &["key", "why"],
        left_out: &["file"],
        must: &["text"],
        ..WRITES
    },
    Tool {
        name: "write",
        about: "Creates a file or replaces its whole text. A state file needs `expect`. Older \
            versions are kept.",
        rows: &[("", "write")],
        hidden: &["key", "why"],
        left_out: &["file"],
        described: &[
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
        // A judge is a program of the caller, which a model must not start.
        left_out: &["judge"],
        hidden: &["memory", "prompt", "scene", "answers", "k", "tokens"],
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
        about: "Records a decision with its context, so that it need not be made again.",
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
        about: "Shows the rules of this project, its commits or its decisions.",
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
        gives: r#""decisions": {"type": "array"}"#,
        ..READS
    },
];

/// Whether a tool with this name exists.
pub fn is_tool(name: &str) -> bool {
    TOOLS.iter().any(|tool| tool.name == name)
}

fn row(name: &str) -> Option<&'static Operation> {
    TABLE.iter().find(|o| o.name == name)
}

/// Returns the tools that the table of operations can carry out.
fn offered() -> impl Iterator<Item = &'static Tool> {
    TOOLS
        .iter()
        .filter(|t| t.rows.iter().all(|(_, name)| row(name).is_some()))
}

/// Lists the tools that the project uses; all of them where there is no project.
pub fn list(session: &Session) -> Value {
    let project = session.project().ok();
    let contract = project.as_ref().map(|project| &*project.contract);
    let tools: Vec<Value> = offered()
        .filter(|tool| is_of(contract, tool))
        .map(|tool| described(tool, contract))
        .collect();
    json!({"tools": tools})
}

fn is_of(contract: Option<&Contract>, tool: &Tool) -> bool {
    contract.is_none_or(|contract| {
        let has = |form| contract.of_form(form).next().is_some();
        tool.form.is_none_or(has) && is_used(tool.name, contract)
    })
}

fn described(tool: &Tool, contract: Option<&Contract>) -> Value {
    let (mut all, mut needed) = (Map::new(), Vec::new());
    if tool.rows.len() > 1 {
        let is_here = |name: &&str| contract.is_none_or(|contract| is_used(name, contract));
        let rows = tool.rows.iter().filter(|(_, name)| is_here(name));
        let actions: Vec<&str> = rows.map(|(action, _)| *action).collect();
        let mut action = json!({"type": "string", "enum": actions});
        if !tool.actions.is_empty() {
            action["description"] = json!(tool.actions);
        }
        all.insert("action".into(), action);
        needed.push("action".to_owned());
    }
    let is_for_others = |name: &str| {
        let form = tool.only.iter().find(|(only, _)| *only == name);
        let is_there = |contract: &Contract, form| contract.of_form(form).next().is_some();
        form.zip(contract)
            .is_some_and(|((_, form), contract)| !is_there(contract, *form))
    };
    for (_, name) in tool.rows {
        let Some(operation) = row(name) else { continue };
        let (properties, required) = properties(operation, tool.left_out);
        for (name, mut property) in properties {
            if tool.hidden.contains(&name.as_str()) || is_for_others(&name) {
                continue;
            }
            if let Some((_, about)) = tool.described.iter().find(|(of, _)| *of == name) {
                property["description"] = json!(about);
            }
            all.entry(name).or_insert(property);
        }
        // An argument that one action requires may be unknown to another.
        if tool.rows.len() == 1 {
            needed.extend(required);
        }
    }
    needed.extend(tool.must.iter().map(|m| (*m).to_owned()));
    let mut described = json!({
        "name": tool.name,
        "description": tool.about,
        "inputSchema": {"type": "object", "properties": all, "required": needed, "additionalProperties": false},
        "annotations": annotations(tool),
    });
    if !tool.gives.is_empty() {
        let gives = format!(r#"{{"text": {{"type": "string"}}, {}}}"#, tool.gives);
        let properties: Value = serde_json::from_str(&gives).expect("checked by a test");
        described["outputSchema"] =
            json!({"type": "object", "properties": properties, "required": ["text"]});
    }
    described
}

/// The hints that differ from what a client assumes.
fn annotations(tool: &Tool) -> Value {
    let mut hints = json!({"openWorldHint": false});
    if tool.reads {
        hints["readOnlyHint"] = json!(true);
    } else if !tool.destroys {
        hints["destructiveHint"] = json!(false);
    }
    hints
}

/// Calls a tool. A refusal by the contract is a result; only an unknown tool is a protocol error.
pub fn call(session: &Session, params: &Map<String, Value>) -> Result<Value, Fault> {
    let name = params
        .get("name")
        .and_then(Value::as_str)
        .unwrap_or_default();
    let Some(tool) = offered().find(|t| t.name == name) else {
        let known: Vec<&str> = offered().map(|t| t.name).collect();
        return Err(Fault::new(
            Fault::PARAMS,
            format!("unknown tool `{name}`; the tools are {}", known.join(", ")),
        ));
    };
    let mut given = match params.get("arguments") {
        None | Some(Value::Null) => Map::new(),
        Some(Value::Object(given)) => given.clone(),
        Some(_) => return Err(Fault::new(Fault::PARAMS, "the arguments are not an object")),
    };
    Ok(answered(tool, perform(tool, &mut given, session)))
}

fn perform(
    tool: &Tool,
    given: &mut Map<String, Value>,
    session: &Session,
) -> Result<Answer, Failure> {
    let action = match tool.rows {
        [_] => String::new(),
        _ => given
            .shift_remove("action")
            .and_then(|a| a.as_str().map(str::to_owned))
            .unwrap_or_default(),
    };
    let Some(operation) = tool
        .rows
        .iter()
        .find(|(a, _)| **a == action)
        .and_then(|(_, name)| row(name))
    else {
        let known: Vec<&str> = tool.rows.iter().map(|(action, _)| *action).collect();
        let what = format!("`action` must be one of {}", known.join(", "));
        given.insert("action".into(), json!(known[0]));
        return Err(Failure::usage(what, call_of(tool, given)));
    };
    // A call without text asks what a finish would miss. It must not read stdin.
    if tool.name == "finish" && !given.get("text").is_some_and(Value::is_string) {
        given.insert("text".into(), json!(""));
    }
    let usage = |what: String, missing: &[String]| {
        let mut example = Map::new();
        if !action.is_empty() {
            example.insert("action".into(), json!(action));
        }
        example.extend(given.clone());
        for name in missing {
            example.insert(name.clone(), json!("…"));
        }
        Failure::usage(what, call_of(tool, &example))
    };
    if let Some(missing) = tool
        .must
        .iter()
        .find(|m| !given.get(**m).is_some_and(Value::is_string))
    {
        let missing = (*missing).to_owned();
        return Err(usage(format!("`{missing}` is missing"), &[missing]));
    }
    let (words, matches) = parse_call(operation, given, tool.left_out)
        .map_err(|slip| usage(slip.what, &slip.missing))?;
    // Each call is a separate caller. Only the open project is kept, and checked again.
    let session = Session {
        watched: OnceLock::new(),
        panel: OnceLock::new(),
        conflict_notice: OnceLock::new(),
        ..session.clone()
    };
    let result = (operation.call)(&matches, &session);
    let words: Vec<OsString> = std::iter::once(operation.name.to_owned())
        .chain(words)
        .map(OsString::from)
        .collect();
    let warnings = session
        .watched
        .get()
        .map(|watched| watched.take(operation.name, &words, &result))
        .unwrap_or_default();
    let conflict_notice = session
        .conflict_notice
        .get()
        .and_then(|conflict_notice| conflict_notice.render(&result, false));
    let warned = result.map(|answer| {
        warnings.iter().fold(answer, |answer, warning| {
            answer.say(format!("warning: {warning}"))
        })
    });
    warned
        .map(|answer| conflict_notice.into_iter().fold(answer, Answer::say))
        .map(|answer| match tool.name {
            "read" => cut_at_bound(answer, given),
            _ => answer,
        })
}

/// The most bytes of a file in one answer: some 6,000 tokens. Hosts cut longer answers themselves.
const MOST_BYTES: usize = 24_000;

/// Cuts a text at a line, and names the call that goes on.
fn cut_at_bound(mut answer: Answer, given: &Map<String, Value>) -> Answer {
    let Some(raw) = answer.raw.take() else {
        return answer;
    };
    let text = String::from_utf8_lossy(&raw);
    if text.len() <= MOST_BYTES {
        answer.raw = Some(raw);
        return answer;
    }
    let mut end = text.floor_char_boundary(MOST_BYTES);
    let whole = text[..end].rfind('\n').map(|at| at + 1);
    end = whole.unwrap_or(end);
    let first = answer.json["line"].as_u64().unwrap_or(1);
    let next = first + text[..end].matches('\n').count() as u64;
    let rest = text.len() - end;
    let mut call = given.clone();
    call.insert("from".into(), json!(next));
    let more = match whole {
        Some(_) => format!("call `read` with {}", Value::Object(call)),
        None => "the line is too long to be shown whole".to_owned(),
    };
    answer.json["more"] = json!({"bytes": rest, "from": next});
    answer.raw = Some(format!("{}\n… {rest} more bytes: {more}\n", &text[..end]).into_bytes());
    answer
}

/// Returns the result in both forms, because some hosts show a model only the text, others only the
/// structure.
fn answered(tool: &Tool, result: Result<Answer, Failure>) -> Value {
    let (text, data, code) = match result {
        Ok(answer) => {
            let is_file = answer.raw.is_some();
            let text = answer.raw.map_or(answer.text, |raw| {
                String::from_utf8_lossy(&raw).into_owned()
            });
            let mut data = answer.json;
            let text = match tool.name {
                "start" => with_finish_call(&text),
                _ => text,
            };
            // A note is part of the answer, but not of a file's text.
            let text = match is_file || answer.talk.is_empty() {
                true => text,
                false => format!("{}\n{text}", answer.talk.join("\n")),
            };
            if is_file && !answer.talk.is_empty() && data.is_object() {
                data["notes"] = json!(answer.talk);
            }
            (text, data, answer.exit)
        }
        Err(mut failure) => {
            failure.remedy = failure.remedy.map(|remedy| with_tool_calls(&remedy));
            (failure.render(), failure.json(), failure.exit)
        }
    };
    let mut facts = match data {
        Value::Object(facts) => facts,
        Value::Null => Map::new(),
        other => Map::from_iter([("items".to_owned(), other)]),
    };
    facts.retain(|key, value| {
        key != "text" && !tool.told.contains(&key.as_str()) && !value.is_null()
    });
    for list in ["hits", "todos", "decisions"] {
        if let Some(Value::Array(items)) = facts.get_mut(list) {
            items.iter_mut().for_each(keep_names);
        }
    }
    let mut content = vec![json!({"type": "text", "text": text})];
    // The version of a file is not in its text.
    if tool.name == "read" && facts.contains_key("version") {
        content.push(json!({"type": "text", "text": Value::Object(facts.clone()).to_string()}));
    }
    let mut structured = Map::from_iter([("text".to_owned(), json!(text))]);
    structured.extend(facts);
    json!({"content": content, "structuredContent": structured, "isError": code != exit::FINE && code != exit::NO})
}

/// Keeps what names an item: the text has the rest, and a model would read it twice.
fn keep_names(item: &mut Value) {
    const NAMES: [&str; 8] = [
        "path", "line", "weak", "id", "title", "status", "priority", "due",
    ];
    if let Value::Object(fields) = item {
        fields.retain(|key, value| {
            NAMES.contains(&key.as_str()) && !value.is_null() && *value != json!(false)
        });
    }
}

/// Replaces the command line of the finish at the end of a start text by the call of the tool.
fn with_finish_call(text: &str) -> String {
    let Some((before, command)) = text.rsplit_once("\nquipu finish") else {
        return text.to_owned();
    };
    match command.split_once("<<'EOF'\n") {
        Some((flags, template)) if !flags.contains('\n') => {
            let (template, after) = template.split_once("\nEOF").unwrap_or((template, ""));
            format!("{before}\nthe tool `finish`, with this `text`:\n{template}{after}")
        }
        _ => text.to_owned(),
    }
}

/// Replaces each command line in a remedy by the tool call that does the same, if there is one.
fn with_tool_calls(remedy: &str) -> String {
    let (mut text, mut rest) = (String::new(), remedy);
    while let Some(at) = rest.find("quipu ") {
        let (before, from) = rest.split_at(at);
        let (command, after) = from.split_at(command_length(from));
        let is_quoted = before.ends_with('`') && after.starts_with('`');
        match as_tool_call(command) {
            Some(call) if is_quoted => {
                text.push_str(&before[..before.len() - 1]);
                text.push_str(&call);
                rest = &after[1..];
            }
            call => {
                text.push_str(before);
                text.push_str(&call.unwrap_or_else(|| command.to_owned()));
                rest = after;
            }
        }
    }
    text.push_str(rest);
    text
}

/// The length of the command line at the beginning of a text, without blanks at its end.
fn command_length(text: &str) -> usize {
    let mut quote = None;
    let mut ends = |(at, c): (usize, char)| {
        match (quote, c) {
            (Some(open), c) if c == open => quote = None,
            (None, '\'' | '"') => quote = Some(c),
            (None, ';' | ')' | '`' | '\n' | '（' | '）' | '；' | '。' | '，') => {
                return Some(at);
            }
            (None, ' ') if text[at..].starts_with("     ") => return Some(at),
            (None, ',') if text[at..].starts_with(", ") => return Some(at),
            _ => {}
        }
        None
    };
    let end = text
        .char_indices()
        .find_map(&mut ends)
        .unwrap_or(text.len());
    text[..end].trim_end().len()
}

/// Converts a command line that a refusal recommends to the tool call that does the same. None if
/// no tool does.
fn as_tool_call(command: &str) -> Option<String> {
    let mut words = split_words(command.strip_prefix("quipu ")?)?;
    words.retain(|word| word != "--json");
    // An ellipsis stands for arguments that the reader knows.
    let is_open = words.last().is_some_and(|word| word == "…");
    if is_open {
        words.pop();
    }
    if let Some(at) = words.iter().position(|word| word == "--file") {
        words.drain(at..words.len().min(at + 2));
    }
    let rows = offered().flat_map(|tool| tool.rows.iter().map(move |row| (tool, row)));
    let (tool, (action, row_name)) = rows
        .filter(|(_, (_, name))| {
            let name: Vec<&str> = name.split(' ').collect();
            words.len() >= name.len() && name.iter().zip(&words).all(|(part, word)| part == word)
        })
        .max_by_key(|(_, (_, name))| name.len())?;
    let count = row_name.split(' ').count();
    let mut given = Map::new();
    if tool.rows.len() > 1 {
        given.insert("action".into(), json!(action));
    }
    given.extend(arguments_of(
        row(row_name)?,
        &words[count..],
        tool.left_out,
        is_open,
    )?);
    for name in tool.must {
        given.entry(*name).or_insert(json!("…"));
    }
    Some(call_of(tool, &given))
}

fn call_of(tool: &Tool, given: &Map<String, Value>) -> String {
    format!("call `{}` with {}", tool.name, Value::Object(given.clone()))
}

/// Splits a command line into words. None if a quote is left open or a shell would do more.
fn split_words(command: &str) -> Option<Vec<String>> {
    let (mut words, mut word, mut quote) = (Vec::new(), None::<String>, None);
    for c in command.chars() {
        match (quote, c) {
            (Some(open), c) if c == open => quote = None,
            (None, '\'' | '"') => {
                quote = Some(c);
                word.get_or_insert_default();
            }
            (None, '|' | ';' | '<' | '>' | '&') => return None,
            (None, c) if c.is_whitespace() => words.extend(word.take()),
            (_, c) => word.get_or_insert_default().push(c),
        }
    }
    words.extend(word);
    quote.is_none().then_some(words)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::session::Names;

    fn session() -> Session {
        Session::new(
            ".".into(),
            Names {
                agent: Some("ada".into()),
                ..Names::default()
            },
            Names::default(),
        )
        .unwrap()
    }

    #[test]
    fn every_tool_is_complete() {
        let tools = list(&session());
        let tools = tools["tools"].as_array().unwrap();
        assert!((11..=13).contains(&tools.len()));
        for tool in tools {
            assert_eq!(tool["annotations"]["openWorldHint"], false, "{tool}");
            for (name, property) in tool["inputSchema"]["properties"].as_object().unwrap() {
                assert!(
                    property["description"]
                        .as_str()
                        .is_some_and(|d| !d.contains("stdin")),
                    "{}: {name}",
                    tool["name"]
                );
            }
        }
    }

    #[test]
    fn the_tools_of_a_relay_project_take_at_most_1800_tokens() {
        let folder = quipu_testkit::temp_folder();
        let layout = quipu_protocol::Layout {
            profiles: vec!["relay".into()],
            ..quipu_protocol::Layout::default()
        };
        quipu_protocol::lay_out(folder.path(), &layout, quipu_store::Options::default()).unwrap();
        let session = Session {
            folder: folder.path().to_owned(),
            ..session()
        };
        let list = list(&session)["tools"].to_string();
        let tokens = quipu_text::Counter::O200k.count(&list).0;
        println!("{tokens} tokens, {} bytes", list.len());
        assert!(tokens <= 1_800, "{tokens} tokens: {list}");
    }

    #[test]
    fn remedies_become_tool_calls() {
        for (remedy, wanted) in [
            ("quipu status", "call `status` with {}"),
            (
                "quipu read a.json --json     (prints its version; then: quipu write a.json --expect VERSION --file FILE)",
                r#"call `read` with {"path":"a.json"}     (prints its version; then: call `write` with {"path":"a.json","expect":"VERSION","text":"…"})"#,
            ),
            (
                "quipu restore a.md b.md     (or accept the edit: quipu amend a.md --why \"…\")",
                r#"call `repair` with {"action":"restore","path":"a.md","more":["b.md"]}     (or accept the edit: quipu amend a.md --why "…")"#,
            ),
            (
                "quipu contract show --role main",
                r#"call `inspect` with {"action":"contract","role":"main"}"#,
            ),
            (
                "quipu report --delegation ID …",
                r#"call `report` with {"delegation":"ID"}"#,
            ),
            (
                "move it away, then run: quipu doctor",
                r#"move it away, then run: call `repair` with {"action":"doctor"}"#,
            ),
            (
                "run `quipu status` first",
                "run call `status` with {} first",
            ),
            (
                "ask a person to run: quipu approve x",
                "ask a person to run: quipu approve x",
            ),
        ] {
            assert_eq!(with_tool_calls(remedy), wanted);
        }
    }

    #[test]
    fn a_start_ends_with_the_call_of_a_finish() {
        let text =
            "Fill in this command and run it:\nquipu finish --agent a <<'EOF'\n## Done\n- x\nEOF\n";
        assert_eq!(
            with_finish_call(text),
            "Fill in this command and run it:\nthe tool `finish`, with this `text`:\n## Done\n- x\n"
        );
        assert_eq!(
            with_finish_call("nothing\nquipu finish --did x"),
            "nothing\nquipu finish --did x"
        );
    }

    #[test]
    fn a_long_file_is_read_in_parts() {
        let lines: String = (1..=4_000).map(|n| format!("line {n}\n")).collect();
        let (mut from, mut all) = (1, String::new());
        loop {
            let rest: String = lines.split_inclusive('\n').skip(from - 1).collect();
            let mut answer = Answer::data(json!({"line": from, "version": "x"}), rest);
            answer = cut_at_bound(answer, json!({"path": "a.md"}).as_object().unwrap());
            let text = String::from_utf8(answer.raw.unwrap()).unwrap();
            assert!(text.len() < MOST_BYTES + 200);
            let Some(next) = answer.json["more"]["from"].as_u64() else {
                all.push_str(&text);
                break;
            };
            let (part, call) = text.rsplit_once("\n… ").unwrap();
            assert!(call.contains(&format!("\"from\":{next}")), "{call}");
            all.push_str(part);
            from = usize::try_from(next).unwrap();
        }
        assert_eq!(all, lines);
    }

    #[test]
    fn a_finish_without_text_does_not_read_stdin() {
        let folder = quipu_testkit::temp_folder();
        let session = Session {
            folder: folder.path().to_owned(),
            ..session()
        };
        let (tool, mut given) = (
            TOOLS.iter().find(|tool| tool.name == "finish").unwrap(),
            Map::new(),
        );
        // There is no project; the test only checks the arguments that the operation receives.
        assert!(perform(tool, &mut given, &session).is_err());
        assert_eq!(given.get("text"), Some(&json!("")));
    }

    #[test]
    fn a_write_without_text_does_not_wait_for_stdin() {
        let params = json!({"name": "append", "arguments": {"path": "a.md"}});
        let answer = call(&session(), params.as_object().unwrap()).unwrap();
        assert_eq!(answer["isError"], true);
        assert!(
            answer["structuredContent"]["text"]
                .as_str()
                .unwrap()
                .contains("`text` is missing"),
            "{answer}"
        );
        let wrong = json!({"name": "todo", "arguments": {"action": "add", "priority": "urgent"}});
        let answer = call(&session(), wrong.as_object().unwrap()).unwrap();
        let text = answer["structuredContent"]["text"].as_str().unwrap();
        assert!(
            text.contains("`priority` must be one of critical, high"),
            "{text}"
        );
        let missing = json!({"name": "todo", "arguments": {"action": "add"}});
        let answer = call(&session(), missing.as_object().unwrap()).unwrap();
        let text = answer["structuredContent"]["text"].as_str().unwrap();
        assert!(text.contains("`title` is missing"), "{text}");
        assert!(text.contains(r#"{"action":"add","title":"…"}"#), "{text}");
    }
}
