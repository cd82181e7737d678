//! Lists the MCP tools and calls them. `tool_table.rs` says which there are.

use std::ffi::OsString;
use std::sync::OnceLock;

use quipu_contract::Contract;
use serde_json::{Map, Value, json};

use super::remedy::{call_of, with_finish_call, with_next_calls, with_tool_calls};
use super::schema::{parse_call, properties};
use super::tool_table::{TOOLS, Tool};
use super::wire::Fault;
use crate::answer::{Answer, Failure, exit, in_language};
use crate::help::is_used;
use crate::session::Session;
use crate::table::{Operation, TABLE};

/// Whether a tool with this name exists.
pub fn is_tool(name: &str) -> bool {
    TOOLS.iter().any(|tool| tool.name == name)
}

pub fn row(name: &str) -> Option<&'static Operation> {
    TABLE.iter().find(|o| o.name == name)
}

/// Returns the tools that the table of operations can carry out.
pub fn offered() -> impl Iterator<Item = &'static Tool> {
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
    let has = |contract: &Contract, form| contract.of_form(form).next().is_some();
    let is_eased = tool
        .eased
        .is_some_and(|form| contract.is_some_and(|contract| has(contract, form)));
    if !is_eased {
        needed.extend(tool.must.iter().map(|m| (*m).to_owned()));
    }
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
    let result = perform(tool, &mut given, session);
    Ok(answered(tool, session.in_language(result), session))
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
        let first = row(tool.rows[0].1).map(|first| example(tool, first, known[0], given, &[]));
        return Err(Failure::usage(
            what,
            call_of(tool, &first.unwrap_or_default(), session.language()),
        ));
    };
    // A call without text asks what a finish would miss. It must not read stdin.
    if tool.name == "finish" && !given.get("text").is_some_and(Value::is_string) {
        given.insert("text".into(), json!(""));
    }
    let usage = |what: String, wrong: &[String]| {
        let example = example(tool, operation, &action, given, wrong);
        Failure::usage(what, call_of(tool, &example, session.language()))
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
        .map_err(|slip| usage(slip.what, &slip.wrong))?;
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
            "read" => cut_at_bound(answer, given, &session),
            _ => answer,
        })
}

/// A call that fits the schema: what was given and is known, and an ellipsis for the rest.
fn example(
    tool: &Tool,
    operation: &Operation,
    action: &str,
    given: &Map<String, Value>,
    wrong: &[String],
) -> Map<String, Value> {
    let (known, mut needed) = properties(operation, tool.left_out);
    needed.extend(tool.must.iter().map(|name| (*name).to_owned()));
    needed.extend(wrong.iter().cloned());
    let mut example = Map::new();
    if !action.is_empty() {
        example.insert("action".into(), json!(action));
    }
    let kept = given.iter().filter(|(name, _)| known.contains_key(*name));
    example.extend(kept.map(|(name, value)| (name.clone(), value.clone())));
    for name in needed {
        if wrong.contains(&name) {
            example.insert(name, json!("…"));
        } else {
            example.entry(name).or_insert(json!("…"));
        }
    }
    example
}

/// The most bytes of a file in one answer: some 6,000 tokens. Hosts cut longer answers themselves.
const MOST_BYTES: usize = 24_000;

/// Cuts a text at a line, and names the call that goes on.
fn cut_at_bound(mut answer: Answer, given: &Map<String, Value>, session: &Session) -> Answer {
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
    let language = session.language();
    let mut call = given.clone();
    call.insert("from".into(), json!(next));
    let more = match whole {
        Some(_) => {
            let call = Value::Object(call);
            in_language(
                language,
                format!("call `read` with {call}"),
                format!("调用 `read`，参数 {call}"),
            )
        }
        None => in_language(
            language,
            "the line is too long to be shown whole".to_owned(),
            "这一行太长，无法全部显示".to_owned(),
        ),
    };
    answer.json["more"] = json!({"bytes": rest, "from": next});
    let note = in_language(
        language,
        format!("… {rest} more bytes: {more}"),
        format!("……还有 {rest} 字节：{more}"),
    );
    answer.raw = Some(format!("{}\n{note}\n", &text[..end]).into_bytes());
    answer
}

/// Returns the result in both forms, because some hosts show a model only the text, others only the
/// structure.
fn answered(tool: &Tool, result: Result<Answer, Failure>, session: &Session) -> Value {
    let (text, data, code) = match result {
        Ok(answer) => {
            let is_file = answer.raw.is_some();
            let text = answer.raw.map_or(answer.text, |raw| {
                String::from_utf8_lossy(&raw).into_owned()
            });
            let mut data = answer.json;
            let text = match (tool.name, data["saved"].as_str()) {
                ("start", _) => with_finish_call(&with_next_calls(&text)),
                ("finish", _) if answer.exit != exit::FINE => {
                    with_tool_calls(&text, session.language())
                }
                // A command prints the id of a new entry; a model sees what was saved.
                (_, Some(saved)) => saved.to_owned(),
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
            let calls = |remedy: String| with_tool_calls(&remedy, session.language());
            failure.remedy = failure.remedy.map(calls);
            (failure.render(), failure.json(), failure.exit)
        }
    };
    let mut facts = match data {
        Value::Object(facts) => facts,
        Value::Null => Map::new(),
        other => Map::from_iter([("items".to_owned(), other)]),
    };
    facts.retain(|key, value| {
        let is_kept = tool.kept.is_empty() || tool.kept.contains(&key.as_str());
        !matches!(key.as_str(), "text" | "saved")
            && is_kept
            && !tool.told.contains(&key.as_str())
            && !value.is_null()
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
    const NAMES: [&str; 9] = [
        "path", "line", "place", "weak", "id", "title", "status", "priority", "due",
    ];
    if let Value::Object(fields) = item {
        fields.retain(|key, value| {
            NAMES.contains(&key.as_str()) && !value.is_null() && *value != json!(false)
        });
    }
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
        assert!(tokens <= 1_800, "{tokens} tokens: {list}");
    }

    #[test]
    fn a_long_file_is_read_in_parts() {
        let lines: String = (1..=4_000).map(|n| format!("line {n}\n")).collect();
        let (mut from, mut all) = (1, String::new());
        loop {
            let rest: String = lines.split_inclusive('\n').skip(from - 1).collect();
            let mut answer = Answer::data(json!({"line": from, "version": "x"}), rest);
            answer = cut_at_bound(
                answer,
                json!({"path": "a.md"}).as_object().unwrap(),
                &session(),
            );
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
        let unknown = json!({"name": "read", "arguments": {"file": "a.md"}});
        let answer = call(&session(), unknown.as_object().unwrap()).unwrap();
        let text = answer["structuredContent"]["text"].as_str().unwrap();
        assert!(text.contains(r#"call `read` with {"path":"…"}"#), "{text}");
        let missing = json!({"name": "todo", "arguments": {"action": "add"}});
        let answer = call(&session(), missing.as_object().unwrap()).unwrap();
        let text = answer["structuredContent"]["text"].as_str().unwrap();
        assert!(text.contains("`title` is missing"), "{text}");
        assert!(text.contains(r#"{"action":"add","title":"…"}"#), "{text}");
    }
}
