//! The three tools of a workspace: list, read, write. A model over HTTP uses them, and so does an
//! MCP client connected to the workspace server.

use super::talk::{Tool, ToolCall, ToolResult};
use crate::assignment::{Assignment, Language};
use crate::outcome::Attempt;
use crate::questions;
use crate::workspace::{Workspace, WorkspaceError};
use serde_json::{Value, json};

pub fn all(questions: &[String]) -> Vec<Tool> {
    let mut all = files();
    all.extend(questions::tools(questions));
    all
}

fn files() -> Vec<Tool> {
    let path = json!({ "type": "string", "description": "path relative to the task's folder" });
    vec![
        Tool {
            name: "list_files",
            about: "Lists the paths of all files that can be read.",
            parameters: json!({ "type": "object", "properties": {} }),
        },
        Tool {
            name: "read_file",
            about: "Reads a whole file.",
            parameters: json!({ "type": "object", "properties": { "path": path }, "required": ["path"] }),
        },
        Tool {
            name: "write_file",
            about: "Writes a whole output file of the task. Replaces its earlier content.",
            parameters: json!({
                "type": "object",
                "properties": { "path": path, "content": { "type": "string", "description": "the whole text" } },
                "required": ["path", "content"],
            }),
        },
    ]
}

/// Returns the brief with the tools named.
pub fn brief(assignment: &Assignment) -> String {
    let told = questions::told(assignment);
    let text = format!("{}\n\n{told}", assignment.brief.trim_end());
    let text = text.trim_end();
    let outputs = assignment
        .outputs
        .iter()
        .map(|path| format!("`{path}`"))
        .collect::<Vec<_>>()
        .join(", ");
    match (assignment.language, assignment.outputs.is_empty()) {
        (Language::English, false) => {
            format!(
                "{text}\n\nRead with `list_files` and `read_file`. Write with `write_file`, to exactly these paths: {outputs}\n"
            )
        }
        (Language::English, true) => {
            format!(
                "{text}\n\nRead with `list_files` and `read_file`. Write no file. Your final message is the result.\n"
            )
        }
        (Language::Chinese, false) => {
            format!(
                "{text}\n\n用 `list_files` 和 `read_file` 阅读，用 `write_file` 写入，路径只能是：{outputs}\n"
            )
        }
        (Language::Chinese, true) => {
            format!(
                "{text}\n\n用 `list_files` 和 `read_file` 阅读。不要写文件。你的最后一条消息就是结果。\n"
            )
        }
    }
}

/// Returns the tools in the format of an MCP tool list.
pub fn workspace_tools(questions: &[String]) -> Value {
    let described = all(questions).into_iter().map(|tool| {
        let writes = tool.name == "write_file";
        let hints = json!({ "readOnlyHint": !writes, "destructiveHint": false, "idempotentHint": true, "openWorldHint": false });
        json!({ "name": tool.name, "description": tool.about, "inputSchema": tool.parameters, "annotations": hints })
    });
    described.collect()
}

/// Calls a workspace tool by name. Returns its text, or the reason for the failure.
pub fn call_workspace_tool(
    workspace: &Workspace,
    name: &str,
    arguments: &Value,
) -> Result<String, String> {
    let call = ToolCall {
        id: String::new(),
        name: name.to_string(),
        arguments: arguments.to_string(),
    };
    let served = serve(workspace, &call).result;
    if served.failed {
        Err(served.text)
    } else {
        Ok(served.text)
    }
}

/// An answered tool call.
pub struct Served {
    pub result: ToolResult,
    /// A short description for progress output.
    pub summary: String,
    pub denied: Option<Attempt>,
}

/// Serves one call. Every failure becomes a tool result that the model can act on.
pub fn serve(workspace: &Workspace, call: &ToolCall) -> Served {
    let arguments: Value = match call.arguments.trim() {
        "" => json!({}),
        text => serde_json::from_str(text).unwrap_or(Value::Null),
    };
    let text = |name: &str| arguments.get(name).and_then(Value::as_str);
    let answer = |text: String, summary: String| Served {
        result: ToolResult {
            id: call.id.clone(),
            text,
            failed: false,
        },
        summary,
        denied: None,
    };
    let path = text("path").unwrap_or_default();
    match (call.name.as_str(), text("path"), text("content")) {
        ("list_files", _, _) => {
            let files = workspace.list();
            answer(files.join("\n"), format!("{} files", files.len()))
        }
        ("read_file", Some(path), _) => match workspace.read(path) {
            Ok(content) => {
                let summary = format!("{path}: {} bytes", content.len());
                answer(content, summary)
            }
            Err(why) => refused(call, "read", path, why),
        },
        ("write_file", Some(path), Some(content)) => match workspace.write(path, content) {
            Ok(()) => answer(
                "written".to_string(),
                format!("{path}: {} bytes", content.len()),
            ),
            Err(why) => refused(call, "write", path, why),
        },
        ("read_file" | "write_file", _, _) => failed(
            call,
            format!(
                "{} does not take the arguments {}",
                call.name, call.arguments
            ),
            path,
        ),
        (name, Some(path), _) if workspace.questions.iter().any(|known| known == name) => {
            match put_question(workspace, name, path, &arguments) {
                Ok(told) => {
                    let summary = format!("{path}: {} bytes", told.len());
                    answer(told, summary)
                }
                Err(why) => failed(call, why, path),
            }
        }
        (other, _, _) => {
            let known: Vec<&str> = all(workspace.questions)
                .iter()
                .map(|tool| tool.name)
                .collect();
            let known = known.join(", ");
            failed(call, format!("unknown tool `{other}`: use {known}"), path)
        }
    }
}

/// Puts a question to the runtime. A text to check travels with its question.
fn put_question(
    workspace: &Workspace,
    name: &str,
    path: &str,
    arguments: &Value,
) -> Result<String, String> {
    let mut arguments = arguments.clone();
    if name == questions::CHECK {
        let text = workspace.read(path).map_err(|why| why.to_string())?;
        arguments["text"] = text.into();
    }
    questions::put(workspace.out, name, &arguments)
}

fn refused(call: &ToolCall, act: &str, path: &str, why: WorkspaceError) -> Served {
    let denied = why.is_denial().then(|| Attempt {
        act: act.to_string(),
        path: path.to_string(),
        leads_to: None,
        program: call.name.clone(),
        by: "adapter".to_string(),
        times: 1,
    });
    Served {
        denied,
        ..failed(call, why.to_string(), path)
    }
}

fn failed(call: &ToolCall, why: String, path: &str) -> Served {
    Served {
        result: ToolResult {
            id: call.id.clone(),
            text: why.clone(),
            failed: true,
        },
        summary: format!("{path}: {why}"),
        denied: None,
    }
}
