//! Real agent programs, driven against a scripted model on the loopback address.
//!
//! `scripts/test-hosts install` installs them. A program that is not there is skipped with a
//! message: nothing else of it can be tested. Each is handed an MCP server, and told by its model
//! to read a file it was not given, then to write its output, then to end.

use crate::desk::{Desk, STAGE, toml_string};
use crate::server::{Reply, Request, Server};
use quipu_agents::{Confinement, Ending, Outcome, collect};
use serde_json::{Value, json};
use std::io::Write;
use std::path::PathBuf;

/// The call that the model makes in one step.
enum Want {
    Shell(String),
    Write(String, String),
    Say(&'static str),
}

/// The path of an installed program, or none with a word on how to get it.
fn installed(name: &str) -> Option<PathBuf> {
    let cache = std::env::var_os("XDG_CACHE_HOME").map(PathBuf::from);
    let cache = cache.or_else(|| Some(std::env::home_dir()?.join(".cache")))?;
    let folder = std::env::var_os("QUIPU_HOSTS")
        .map(PathBuf::from)
        .unwrap_or(cache.join("quipu/hosts"));
    let program = folder.join("node_modules/.bin").join(name);
    if program.exists() {
        return Some(program);
    }
    // Past the capture of the test harness: a test that did not run must be seen.
    let _ = writeln!(
        std::io::stderr(),
        "SKIPPED: `{name}` is not in {}; scripts/test-hosts install gets it from the npm registry",
        folder.display()
    );
    None
}

/// A desk with the host `test` like a built-in one, and a model that follows the script.
fn desk_with(
    like: &str,
    program: &str,
    fields: impl Fn(&Server, &Desk) -> String,
) -> Option<(Desk, Server)> {
    let desk = Desk::new();
    let denied = desk.path("denied.md");
    let output = desk
        .assignment
        .out
        .join("drafts/ch01.md")
        .display()
        .to_string();
    let server = Server::start(move |_, request| {
        let want = match results_in(request) {
            0 => Want::Shell(format!("cat {denied}")),
            1 => Want::Write(output.clone(), "# Chapter one\n".to_string()),
            _ => Want::Say("The draft is written."),
        };
        answer(request, want)
    });
    let desk = desk_at(&server, desk, like, program, fields)?;
    Some((desk, server))
}

/// A desk with the host `test` like a built-in one, at a server.
fn desk_at(
    server: &Server,
    mut desk: Desk,
    like: &str,
    program: &str,
    fields: impl Fn(&Server, &Desk) -> String,
) -> Option<Desk> {
    let program = installed(program)?;
    // Some of them take a minute to start on a busy machine.
    desk.assignment.deadline = std::time::Duration::from_secs(600);
    desk.assignment.mcp = Some(vec![STAGE.to_string(), "mcp".to_string()]);
    let more = fields(server, &desk);
    let program = toml_string(&program.display().to_string());
    desk.host(&format!(
        "like = \"{like}\"\nprogram = {program}\ncredentials = []\n{more}"
    ));
    Some(desk)
}

/// Runs a host for two turns: its work, and a fault that goes back to it.
fn drive(desk: &Desk, server: &Server) {
    let again = desk.turns(|turns| {
        check(desk, server, &turns.first());
        turns.again("drafts/ch01.md:1: the marker is missing")
    });
    assert_eq!(
        again.ending,
        ending_of(&again),
        "{}\n{}",
        desk.said("out"),
        desk.said("err")
    );
    let heard = |request: &Request| {
        let sent = request.body.to_string();
        sent.contains("the marker is missing") && sent.contains("Write the draft of ch01.")
    };
    assert!(
        server.requests().iter().any(heard),
        "the model hears the fault and knows its task"
    );
}

/// Checks what must hold after a run of any program.
fn check(desk: &Desk, server: &Server, outcome: &Outcome) {
    let said = || {
        let asked: Vec<String> = server
            .requests()
            .iter()
            .map(|one| one.path.clone())
            .collect();
        let heard = ["out", "err", "sent", "got"]
            .map(|who| desk.said(who))
            .join("\n");
        format!("{outcome:#?}\n{asked:?}\n{heard}")
    };
    assert_eq!(outcome.ending, ending_of(outcome), "{}", said());
    let files = collect(&desk.assignment).files;
    assert_eq!(
        files,
        [("drafts/ch01.md".to_string(), b"# Chapter one\n".to_vec())],
        "{}",
        said()
    );
    assert_eq!(
        outcome.final_message.as_deref(),
        Some("The draft is written."),
        "{}",
        said()
    );
    assert!(
        matches!(
            outcome.confinement,
            Confinement::Kernel { observed: true, .. }
        ),
        "{}",
        said()
    );
    let denied = desk.path("denied.md");
    assert!(
        outcome
            .denied
            .iter()
            .any(|one| one.path == denied && one.by == "kernel"),
        "{}",
        said()
    );
    let sent: String = server
        .requests()
        .iter()
        .map(|one| one.body.to_string())
        .collect();
    assert!(
        !sent.contains("not for this role"),
        "the model saw the denied file"
    );
    assert!(
        sent.contains("stage_door"),
        "the MCP server's tool was not offered: {}",
        said()
    );
    desk.assert_untouched();
}

/// Programs end with 0; hosts over ACP do not end at all.
fn ending_of(outcome: &Outcome) -> Ending {
    match outcome.ending {
        Ending::Finished { exit: None } => Ending::Finished { exit: None },
        _ => Ending::Finished { exit: Some(0) },
    }
}

#[test]
fn opencode_works_in_the_sandbox() {
    let Some((desk, server)) = desk_with("opencode", "opencode", opencode) else {
        return;
    };
    drive(&desk, &server);
}

#[test]
fn opencode_works_over_acp() {
    let Some((desk, server)) = desk_with("opencode-acp", "opencode", opencode) else {
        return;
    };
    drive(&desk, &server);
}

fn opencode(server: &Server, desk: &Desk) -> String {
    let config = desk.project.parent().unwrap().join("opencode.json");
    let provider = json!({
        "npm": "@ai-sdk/openai-compatible",
        "options": { "baseURL": format!("{}/v1", server.base), "apiKey": "dummy" },
        "models": { "mock-model": { "name": "mock", "tool_call": true } },
    });
    let text = json!({ "provider": { "mock": provider }, "model": "mock/mock-model", "small_model": "mock/mock-model" });
    std::fs::write(&config, text.to_string()).unwrap();
    let path = toml_string(&config.display().to_string());
    format!("reads = [{path}]\nmodel_args = []\nset = {{ OPENCODE_CONFIG = {path} }}")
}

#[test]
fn qwen_works_in_the_sandbox() {
    let Some((desk, server)) = desk_with("qwen", "qwen", qwen) else {
        return;
    };
    drive(&desk, &server);
}

#[test]
fn qwen_works_over_acp() {
    let Some((desk, server)) = desk_with("qwen-acp", "qwen", qwen) else {
        return;
    };
    drive(&desk, &server);
}

fn qwen(server: &Server, _: &Desk) -> String {
    format!(
        "set = {{ OPENAI_API_KEY = \"dummy\", OPENAI_BASE_URL = \"{}/v1\", OPENAI_MODEL = \"mock-model\" }}",
        server.base
    )
}

#[test]
fn gemini_works_in_the_sandbox() {
    let Some((desk, server)) = desk_with("gemini", "gemini", gemini) else {
        return;
    };
    drive(&desk, &server);
}

#[test]
fn gemini_works_over_acp() {
    let Some((desk, server)) = desk_with("gemini-acp", "gemini", gemini) else {
        return;
    };
    drive(&desk, &server);
}

fn gemini(server: &Server, _: &Desk) -> String {
    format!(
        // With an address of its own it would not believe its key.
        "files = {{ \".gemini/settings.json\" = '{{\"general\":{{\"enableAutoUpdate\":false}},\"security\":{{\"auth\":{{\"selectedType\":\"gemini-api-key\"}}}}}}' }}\nmodel_args = [\"-m\", \"gemini-2.5-flash\"]\nset = {{ GEMINI_API_KEY = \"dummy\", GOOGLE_GEMINI_BASE_URL = \"{}\" }}",
        server.base
    )
}

#[test]
fn claude_works_in_the_sandbox() {
    let Some((desk, server)) = desk_with("claude", "claude", claude) else {
        return;
    };
    drive(&desk, &server);
}

fn claude(server: &Server, _: &Desk) -> String {
    format!(
        "set = {{ ANTHROPIC_API_KEY = \"dummy\", ANTHROPIC_BASE_URL = \"{}\" }}",
        server.base
    )
}

#[test]
fn codex_works_in_the_sandbox() {
    let Some((desk, server)) = desk_with("codex", "codex", codex) else {
        return;
    };
    drive(&desk, &server);
}

fn codex(server: &Server, _: &Desk) -> String {
    let provider = format!(
        "model_providers.mock={{name=\"mock\",base_url=\"{}/v1\",wire_api=\"responses\",env_key=\"OPENAI_API_KEY\"}}",
        server.base
    );
    let args: Vec<String> = [
        "-c",
        "model_provider=\"mock\"",
        "-c",
        &provider,
        "-m",
        "{{model}}",
    ]
    .iter()
    .map(|arg| toml_string(arg))
    .collect();
    format!(
        "model_args = [{}]\nset = {{ OPENAI_API_KEY = \"dummy\" }}",
        args.join(", ")
    )
}

#[test]
fn a_401_is_never_taken_for_success() {
    type Fields = fn(&Server, &Desk) -> String;
    let hosts: [(&str, &str, Fields); 8] = [
        ("opencode", "opencode", opencode),
        ("opencode-acp", "opencode", opencode),
        ("qwen", "qwen", qwen),
        ("qwen-acp", "qwen", qwen),
        ("gemini", "gemini", gemini),
        ("gemini-acp", "gemini", gemini),
        ("claude", "claude", claude),
        ("codex", "codex", codex),
    ];
    for (like, program, fields) in hosts {
        let body = json!({ "error": { "type": "authentication_error", "code": 401, "message": "invalid key" } });
        let server = Server::scripted(vec![Reply::Status(401, "", body.to_string())]);
        let Some(desk) = desk_at(&server, Desk::new(), like, program, fields) else {
            continue;
        };
        let outcome = desk.run();
        assert!(
            !outcome.ending.is_finished(),
            "{like}: {outcome:#?} {} {}",
            desk.said("out"),
            desk.said("got")
        );
    }
}

/// How many results of tools a request tells of, in whichever form.
fn results_in(request: &Request) -> usize {
    fn count(value: &Value) -> usize {
        match value {
            Value::Array(all) => all.iter().map(count).sum(),
            Value::Object(fields) => {
                let kind = fields
                    .get("type")
                    .and_then(Value::as_str)
                    .unwrap_or_default();
                let is_result = fields.get("role").and_then(Value::as_str) == Some("tool")
                    || [
                        "tool_result",
                        "function_call_output",
                        "custom_tool_call_output",
                    ]
                    .contains(&kind)
                    || fields.contains_key("functionResponse");
                if is_result {
                    1
                } else {
                    fields.values().map(count).sum()
                }
            }
            _ => 0,
        }
    }
    ["messages", "contents", "input"]
        .iter()
        .filter_map(|name| request.body.get(name))
        .map(count)
        .sum()
}

/// The tools that a request offers: name and schema.
fn tools_of(request: &Request) -> Vec<(String, Value)> {
    let mut found = Vec::new();
    for tool in request.body["tools"].as_array().into_iter().flatten() {
        let declared = tool["functionDeclarations"]
            .as_array()
            .cloned()
            .unwrap_or_else(|| vec![tool.clone()]);
        for one in declared {
            let one = if one["function"].is_object() {
                one["function"].clone()
            } else {
                one
            };
            let schema = ["parameters", "input_schema", "parametersJsonSchema"]
                .iter()
                .find_map(|name| one.get(name));
            if let (Some(name), Some(schema)) = (one["name"].as_str(), schema) {
                found.push((name.to_string(), schema.clone()));
            }
        }
    }
    found
}

/// The call of an offered tool that does what is wanted.
fn plan_call(tools: &[(String, Value)], want: &Want) -> Option<(String, Value)> {
    let named = |names: &[&str]| {
        tools
            .iter()
            .find(|(name, _)| names.contains(&name.as_str()))
    };
    let first = |schema: &Value, names: &[&str]| {
        names
            .iter()
            .find(|name| schema["properties"].get(**name).is_some())
            .map(|name| name.to_string())
    };
    let shell = || {
        named(&[
            "Bash",
            "bash",
            "run_shell_command",
            "exec_command",
            "shell_command",
            "shell",
        ])
    };
    let (name, schema, filled) = match want {
        Want::Say(_) => return None,
        Want::Shell(line) => {
            let (name, schema) = shell()?;
            (
                name,
                schema,
                vec![(first(schema, &["command", "cmd"])?, line.clone())],
            )
        }
        Want::Write(path, text) => match named(&["Write", "write", "write_file"]) {
            Some((name, schema)) => {
                let place = first(schema, &["file_path", "filePath", "path", "absolute_path"])?;
                (
                    name,
                    schema,
                    vec![(place, path.clone()), ("content".to_string(), text.clone())],
                )
            }
            // No tool but the shell.
            None => {
                let (name, schema) = shell()?;
                let line = format!(
                    "mkdir -p $(dirname {path}) && printf '%s\\n' '{}' > {path}",
                    text.trim_end()
                );
                (
                    name,
                    schema,
                    vec![(first(schema, &["command", "cmd"])?, line)],
                )
            }
        },
    };
    let mut args = json!({});
    for (key, value) in filled {
        let listed = schema["properties"][&key]["type"] == "array";
        args[key] = if listed {
            json!(["/bin/sh", "-c", value])
        } else {
            json!(value)
        };
    }
    for required in schema["required"]
        .as_array()
        .into_iter()
        .flatten()
        .filter_map(Value::as_str)
    {
        if args.get(required).is_none() {
            args[required] = if schema["properties"][required]["type"] == "boolean" {
                json!(false)
            } else {
                json!("x")
            };
        }
    }
    Some((name.clone(), args))
}

/// The model's answer in the form of the request.
fn answer(request: &Request, want: Want) -> Reply {
    let call = plan_call(&tools_of(request), &want);
    // A request without tools is small talk: titles, summaries, probes.
    let text = match (&want, &call) {
        (Want::Say(text), _) => text,
        (_, None) => "ok",
        _ => "",
    };
    let path = request.path.as_str();
    if path.contains("/messages") && !path.contains("count_tokens") {
        anthropic(text, call)
    } else if path.contains("/chat/completions") {
        openai(text, call)
    } else if path.contains("/responses") {
        responses(text, call)
    } else if path.contains("enerateContent") {
        google(path, text, call)
    } else {
        Reply::Json(json!({ "data": [], "input_tokens": 1, "totalTokens": 1 }).to_string())
    }
}

fn anthropic(text: &str, call: Option<(String, Value)>) -> Reply {
    let usage = json!({ "input_tokens": 50, "output_tokens": 5 });
    let message = json!({
        "id": "m1", "type": "message", "role": "assistant", "model": "mock-model", "content": [],
        "stop_reason": null, "stop_sequence": null, "usage": usage,
    });
    let (block, delta, reason) = match &call {
        Some((name, args)) => (
            json!({ "type": "tool_use", "id": format!("toolu_{name}"), "name": name, "input": {} }),
            json!({ "type": "input_json_delta", "partial_json": args.to_string() }),
            "tool_use",
        ),
        None => (
            json!({ "type": "text", "text": "" }),
            json!({ "type": "text_delta", "text": text }),
            "end_turn",
        ),
    };
    let events = [
        json!({ "type": "message_start", "message": message }),
        json!({ "type": "content_block_start", "index": 0, "content_block": block }),
        json!({ "type": "content_block_delta", "index": 0, "delta": delta }),
        json!({ "type": "content_block_stop", "index": 0 }),
        json!({ "type": "message_delta", "delta": { "stop_reason": reason, "stop_sequence": null }, "usage": usage }),
        json!({ "type": "message_stop" }),
    ];
    // Some clients want the name of each event too.
    let named = |event: &Value| format!("{event}\nevent: {}", event["type"].as_str().unwrap());
    Reply::Events(events.iter().map(named).collect())
}

fn openai(text: &str, call: Option<(String, Value)>) -> Reply {
    let chunk = |delta: Value, reason: Value| {
        let choice = json!({ "index": 0, "delta": delta, "finish_reason": reason });
        json!({ "id": "c1", "object": "chat.completion.chunk", "created": 1, "model": "mock-model", "choices": [choice] })
    };
    let (delta, reason) = match call {
        Some((name, args)) => {
            let function = json!({ "name": name, "arguments": args.to_string() });
            let call = json!({ "index": 0, "id": format!("call_{name}"), "type": "function", "function": function });
            (
                json!({ "role": "assistant", "tool_calls": [call] }),
                "tool_calls",
            )
        }
        None => (json!({ "role": "assistant", "content": text }), "stop"),
    };
    let mut last = chunk(json!({}), json!(reason));
    last["usage"] = json!({ "prompt_tokens": 50, "completion_tokens": 5, "total_tokens": 55 });
    Reply::Events(vec![
        chunk(delta, Value::Null).to_string(),
        last.to_string(),
        "[DONE]".to_string(),
    ])
}

fn responses(text: &str, call: Option<(String, Value)>) -> Reply {
    let item = match call {
        Some((name, args)) => {
            json!({ "type": "function_call", "id": "fc1", "call_id": format!("call_{name}"), "name": name, "arguments": args.to_string() })
        }
        None => {
            let content = json!([{ "type": "output_text", "text": text, "annotations": [] }]);
            json!({ "type": "message", "id": "m1", "role": "assistant", "status": "completed", "content": content })
        }
    };
    let usage = json!({
        "input_tokens": 50, "output_tokens": 5, "total_tokens": 55,
        "input_tokens_details": { "cached_tokens": 0 }, "output_tokens_details": { "reasoning_tokens": 0 },
    });
    let events = [
        json!({ "type": "response.created", "response": { "id": "r1" } }),
        json!({ "type": "response.output_item.done", "output_index": 0, "item": item }),
        json!({ "type": "response.completed", "response": { "id": "r1", "usage": usage } }),
    ];
    let named = |event: &Value| format!("{event}\nevent: {}", event["type"].as_str().unwrap());
    Reply::Events(events.iter().map(named).collect())
}

fn google(path: &str, text: &str, call: Option<(String, Value)>) -> Reply {
    let part = match call {
        Some((name, args)) => json!({ "functionCall": { "name": name, "args": args } }),
        None => json!({ "text": text }),
    };
    let answer = json!({
        "candidates": [{ "content": { "role": "model", "parts": [part] }, "finishReason": "STOP", "index": 0 }],
        "usageMetadata": { "promptTokenCount": 50, "candidatesTokenCount": 5, "totalTokenCount": 55 },
    });
    if path.contains("stream") {
        Reply::Events(vec![answer.to_string()])
    } else {
        Reply::Json(answer.to_string())
    }
}
