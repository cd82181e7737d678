//! The MCP tools: few, with plain names, each backed by one or several rows of the table of
//! operations.

use std::ffi::OsString;
use std::sync::OnceLock;

use quipu_contract::Form;
use serde_json::{Map, Value, json};

use super::schema::{arguments_of, parse_call, properties};
use super::wire::Fault;
use crate::answer::{Answer, Failure, exit};
use crate::session::Session;
use crate::table::{Operation, TABLE};

struct Tool {
    name: &'static str,
    title: &'static str,
    about: &'static str,
    /// Rows of the table, each with the `action` that selects it if there are several.
    rows: &'static [(&'static str, &'static str)],
    /// Arguments that only make sense on a command line, because stdin belongs to the protocol.
    left_out: &'static [&'static str],
    /// Arguments that a call may have and the schema does not show: a model needs few.
    hidden: &'static [&'static str],
    /// The form of file that the tool is for. A project without one does not offer it.
    form: Option<Form>,
    /// Arguments that become required because their alternative is left out.
    must: &'static [&'static str],
    /// Keys of the data that the text already contains.
    told: &'static [&'static str],
    reads: bool,
    destroys: bool,
    repeats: bool,
}

const READS: Tool = Tool {
    name: "",
    title: "",
    about: "",
    rows: &[],
    left_out: &[],
    hidden: &[],
    form: None,
    must: &[],
    told: &[],
    reads: true,
    destroys: false,
    repeats: true,
};
const WRITES: Tool = Tool {
    reads: false,
    repeats: false,
    ..READS
};

/// All tools, always in this order, because clients cache the list as part of their prompt prefix.
const TOOLS: &[Tool] = &[
    Tool {
        name: "start",
        title: "Start the session",
        about: "Call this first. Shows the current state: identity, state, open todos, decisions, \
            unfinished work and what to do next.",
        rows: &[("", "start")],
        hidden: &["budget", "scene", "peek"],
        told: &["blocks", "next"],
        ..WRITES
    },
    Tool {
        name: "finish",
        title: "Finish the session",
        about: "Call this before you stop. Pass one Markdown `text` with the headings Done, \
            Decisions, Todos, Next, Notes, Facts. Everything is saved in one commit, or the \
            answer lists the lines to add.",
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
        must: &[],
        told: &["difference", "missing"],
        ..WRITES
    },
    Tool {
        name: "recall",
        title: "Recall",
        about: "Finds the sections of the project's files that answer a question, in English or Chinese, with file and line. Says if nothing matches well.",
        rows: &[("", "recall")],
        left_out: &["no_model", "complete"],
        hidden: &["most", "tokens", "tier"],
        told: &["hits"],
        ..READS
    },
    Tool {
        name: "read",
        title: "Read",
        about: "Reads a file, or one section as PATH#SECTION or PATH:LINE, now or at an older version. Returns the version that `write` expects.",
        rows: &[("", "read")],
        ..READS
    },
    Tool {
        name: "append",
        title: "Append",
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
        title: "Write",
        about: "Creates a file or replaces its whole text. A state file needs `expect`: the \
            version that `read` returned. Older versions are kept.",
        rows: &[("", "write")],
        hidden: &["key", "why"],
        left_out: &["file"],
        must: &["text"],
        destroys: true,
        repeats: true,
        ..WRITES
    },
    Tool {
        name: "check",
        title: "Check",
        about: "Checks a draft (`file`: PATH or PATH#SECTION) or one sentence (`claim`) against \
            what is already written. Returns the conflicts with both places, and the evidence \
            for claims that no rule decides: judge these yourself.",
        rows: &[("", "check")],
        // A judge is a program of the caller, which a model must not start.
        left_out: &["judge"],
        hidden: &["memory", "prompt", "scene", "answers", "k", "tokens"],
        told: &["claims", "conflicts"],
        ..READS
    },
    Tool {
        name: "status",
        title: "Status",
        about: "Lists the files, external edits and violations of the contract.",
        rows: &[("", "status")],
        told: &["files", "free"],
        ..READS
    },
    Tool {
        name: "todo",
        title: "Todos",
        about: "Manages todos, which last across sessions: add, edit, start, block, unblock, \
            done, cancel, list, show, review.",
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
        form: Some(Form::Todos),
        hidden: &["category", "tag", "assignee", "after", "notes", "by"],
        told: &["todos"],
        ..WRITES
    },
    Tool {
        name: "decide",
        title: "Decide",
        about: "Records a decision with its context, so that it need not be made again.",
        rows: &[("", "decide")],
        form: Some(Form::Decisions),
        hidden: &["status", "id"],
        ..WRITES
    },
    Tool {
        name: "report",
        title: "Report",
        about: "Reports on a task that was delegated to you.",
        rows: &[("", "report")],
        form: Some(Form::Delegation),
        hidden: &["evidence"],
        ..WRITES
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

/// Lists the tools for which the project has files; all of them where there is no project.
pub fn list(session: &Session) -> Value {
    let project = session.project().ok();
    let is_of_project = |tool: &&Tool| match (&project, tool.form) {
        (Some(project), Some(form)) => project.contract.of_form(form).next().is_some(),
        _ => true,
    };
    let tools: Vec<Value> = offered().filter(is_of_project).map(described).collect();
    json!({"tools": tools})
}

fn described(tool: &Tool) -> Value {
    let (mut all, mut needed) = (Map::new(), Vec::new());
    if tool.rows.len() > 1 {
        let about =
            |(action, name): &(&str, &str)| row(name).map(|o| format!("{action}: {}", o.about));
        let about: Vec<String> = tool.rows.iter().filter_map(about).collect();
        let actions: Vec<&str> = tool.rows.iter().map(|(action, _)| *action).collect();
        all.insert(
            "action".into(),
            json!({"type": "string", "enum": actions, "description": about.join("; ")}),
        );
        needed.push("action".to_owned());
    }
    for (_, name) in tool.rows {
        let Some(operation) = row(name) else { continue };
        let (properties, required) = properties(operation, tool.left_out);
        for (name, property) in properties {
            if tool.hidden.contains(&name.as_str()) {
                continue;
            }
            all.entry(name).or_insert(property);
        }
        // An argument that one action requires may be unknown to another.
        if tool.rows.len() == 1 {
            needed.extend(required);
        }
    }
    needed.extend(tool.must.iter().map(|m| (*m).to_owned()));
    json!({
        "name": tool.name,
        "title": tool.title,
        "description": tool.about,
        "inputSchema": {"type": "object", "properties": all, "required": needed, "additionalProperties": false},
        "annotations": {
            "readOnlyHint": tool.reads,
            "destructiveHint": tool.destroys,
            "idempotentHint": tool.repeats,
            "openWorldHint": false,
        },
    })
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
    let usage = |what: String| {
        Failure::usage(
            what,
            format!("call the tool `{}` as its schema says", tool.name),
        )
    };
    let action = match tool.rows {
        [_] => "",
        _ => &given
            .shift_remove("action")
            .and_then(|a| a.as_str().map(str::to_owned))
            .unwrap_or_default(),
    };
    let Some(operation) = tool
        .rows
        .iter()
        .find(|(a, _)| *a == action)
        .and_then(|(_, name)| row(name))
    else {
        let known: Vec<&str> = tool.rows.iter().map(|(action, _)| *action).collect();
        return Err(usage(format!(
            "`action` must be one of {}",
            known.join(", ")
        )));
    };
    if let Some(missing) = tool
        .must
        .iter()
        .find(|m| !given.get(**m).is_some_and(Value::is_string))
    {
        return Err(usage(format!("`{missing}` is missing")));
    }
    // A command would read its text from stdin here, which belongs to the protocol; a call without
    // text means an empty text.
    if tool.name == "finish" && !given.get("text").is_some_and(Value::is_string) {
        given.insert("text".into(), json!(""));
    }
    let (words, matches) = parse_call(operation, given, tool.left_out).map_err(usage)?;
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
    warned.map(|answer| conflict_notice.into_iter().fold(answer, Answer::say))
}

/// Returns the result in both forms, because some hosts show a model only the text, others only the
/// structure.
fn answered(tool: &Tool, result: Result<Answer, Failure>) -> Value {
    let (text, data, notes, code) = match result {
        Ok(answer) => {
            let text = answer.raw.map_or(answer.text, |raw| {
                String::from_utf8_lossy(&raw).into_owned()
            });
            (text, answer.json, answer.talk, answer.exit)
        }
        Err(mut failure) => {
            failure.remedy = failure
                .remedy
                .map(|remedy| as_tool_call(&remedy).unwrap_or(remedy));
            (failure.render(), failure.json(), Vec::new(), failure.exit)
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
    if !notes.is_empty() {
        facts.insert("notes".into(), json!(notes));
    }
    let mut content = vec![json!({"type": "text", "text": text})];
    if !facts.is_empty() {
        content.push(json!({"type": "text", "text": Value::Object(facts.clone()).to_string()}));
    }
    let mut structured = Map::from_iter([("text".to_owned(), json!(text))]);
    structured.extend(facts);
    json!({"content": content, "structuredContent": structured, "isError": code != exit::FINE && code != exit::NO})
}

/// Converts a command line that a refusal recommends to the tool call that does the same. None if
/// no tool does.
fn as_tool_call(remedy: &str) -> Option<String> {
    let (command, comment) = remedy
        .split_once("     (")
        .map_or((remedy, None), |(command, comment)| {
            (command, Some(comment))
        });
    let words = split_words(command.trim().strip_prefix("quipu ")?)?;
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
    )?);
    let comment = comment
        .map(|comment| format!("     ({comment}"))
        .unwrap_or_default();
    Some(format!(
        "call `{}` with {}{comment}",
        tool.name,
        Value::Object(given)
    ))
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
        assert!((9..=12).contains(&tools.len()));
        for tool in tools {
            assert_eq!(tool["annotations"].as_object().unwrap().len(), 4, "{tool}");
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
    }
}
