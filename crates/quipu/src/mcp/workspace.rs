//! The MCP server of an attempt: serves one view folder and one out folder.
//!
//! An agent's host starts it inside the sandbox, where no project can be opened. It reads and
//! writes the same files as the agent's own file tools, so `quipu run` checks everything it writes
//! afterwards.

use std::path::PathBuf;

use quipu_agents::{Bounds, Workspace, call_workspace_tool, workspace_tools};
use serde_json::{Map, Value, json};

use super::serve::Answers;
use super::wire::{Fault, Request, greet};

const INSTRUCTIONS: &str = "The files of this task. `list_files` lists them, `read_file` returns \
    a whole file, `write_file` writes a whole output file. Quipu checks the outputs when you \
    end: the form, the length and the last line that the task requires.";

/// The folders of an attempt.
#[derive(Debug, Clone)]
pub struct WorkspaceServer {
    pub view: PathBuf,
    pub out: PathBuf,
    /// The files that may be written, below `out`.
    pub outputs: Vec<String>,
    /// The questions that `quipu run` answers: `ask`, `check`.
    pub questions: Vec<String>,
}

impl Answers for WorkspaceServer {
    fn result(&mut self, request: &Request) -> Result<Value, Fault> {
        let capabilities = json!({"tools": {"listChanged": false}});
        if let Some(greeting) = greet(request, capabilities, INSTRUCTIONS) {
            return Ok(greeting);
        }
        match request.method.as_str() {
            "tools/list" => Ok(json!({"tools": workspace_tools(&self.questions)})),
            "tools/call" => self.call(&request.params),
            other => Err(Fault::unknown_method(other)),
        }
    }
}

impl WorkspaceServer {
    fn call(&self, params: &Map<String, Value>) -> Result<Value, Fault> {
        let name = params
            .get("name")
            .and_then(Value::as_str)
            .unwrap_or_default();
        let arguments = params
            .get("arguments")
            .cloned()
            .unwrap_or_else(|| json!({}));
        if !workspace_tools(&self.questions)
            .as_array()
            .is_some_and(|tools| tools.iter().any(|tool| tool["name"] == name))
        {
            return Err(Fault::new(
                Fault::PARAMS,
                format!("unknown tool `{name}`: tools/list names all tools"),
            ));
        }
        let workspace = Workspace {
            view: &self.view,
            out: &self.out,
            outputs: &self.outputs,
            questions: &self.questions,
            file_bound: Bounds::default().file,
        };
        let (text, failed) = match call_workspace_tool(&workspace, name, &arguments) {
            Ok(text) => (text, false),
            Err(why) => (why, true),
        };
        // Some hosts show their model the text, others the structure.
        Ok(
            json!({"content": [{"type": "text", "text": text}], "structuredContent": {"text": text}, "isError": failed}),
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_run_s_folders_are_served_and_nothing_else() {
        let folder = tempfile::tempdir().unwrap();
        let (view, out) = (folder.path().join("view"), folder.path().join("out"));
        std::fs::create_dir_all(&view).unwrap();
        std::fs::create_dir_all(&out).unwrap();
        std::fs::write(view.join("outline.md"), "# 大纲\n").unwrap();
        std::fs::write(folder.path().join("secret.md"), "no\n").unwrap();
        let mut server = WorkspaceServer {
            view,
            out: out.clone(),
            outputs: vec!["drafts/ch01.md".into()],
            questions: Vec::new(),
        };
        let mut call = |name: &str, arguments: Value| {
            let line = json!({"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": {"name": name, "arguments": arguments}});
            server.result(&Request::parse(&line.to_string()).unwrap())
        };
        assert_eq!(
            call("read_file", json!({"path": "outline.md"})).unwrap()["structuredContent"]["text"],
            "# 大纲\n"
        );
        assert_eq!(
            call("read_file", json!({"path": "outline.md#ch01"})).unwrap()["structuredContent"]["text"],
            "# 大纲\n"
        );
        assert_eq!(
            call("list_files", json!({})).unwrap()["content"][0]["text"],
            "outline.md"
        );
        assert_eq!(
            call(
                "write_file",
                json!({"path": "drafts/ch01.md", "content": "text\n"})
            )
            .unwrap()["isError"],
            false
        );
        assert_eq!(
            std::fs::read_to_string(out.join("drafts/ch01.md")).unwrap(),
            "text\n"
        );
        for path in ["../secret.md", "/etc/passwd", "outline.md"] {
            assert_eq!(
                call("write_file", json!({"path": path, "content": "x"})).unwrap()["isError"],
                true,
                "{path}"
            );
        }
        assert_eq!(
            call("read_file", json!({"path": "../secret.md"})).unwrap()["isError"],
            true
        );
        assert_eq!(call("start", json!({})).unwrap_err().code, Fault::PARAMS);
    }
}
