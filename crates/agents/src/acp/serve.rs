//! Serves the requests of an ACP host: files of the workspace, and permissions.
//!
//! Policy: a tool call is allowed once if all its paths lie in the workspace. A call that names a
//! path outside is rejected and recorded. A call without paths is allowed, because the kernel
//! sandbox confines it.

use super::Heard;
use crate::adapter::Watch;
use crate::assignment::Assignment;
use crate::outcome::{Attempt, Event, Usage};
use crate::transcript::cut;
use crate::workspace::{Workspace, WorkspaceError};
use serde_json::{Value, json};
use std::path::Path;

const INVALID_PARAMS: i64 = -32602;
const UNKNOWN_METHOD: i64 = -32601;
const NOT_FOUND: i64 = -32002;

/// Number of distinct denied attempts that are listed. Further ones are only counted.
const MOST_DENIED: usize = 100;
/// PATH_MAX on Linux. A longer path cannot name a file.
const LONGEST_PATH: usize = 4096;

/// The state needed to answer one host's requests.
pub struct Desk<'d> {
    assignment: &'d Assignment,
    watch: Watch<'d>,
    heard: &'d mut Heard,
}

type Served = Result<Value, (i64, String)>;

impl<'d> Desk<'d> {
    pub fn new(assignment: &'d Assignment, watch: Watch<'d>, heard: &'d mut Heard) -> Self {
        Desk {
            assignment,
            watch,
            heard,
        }
    }

    pub fn serve(&mut self, method: &str, params: &Value) -> Served {
        match method {
            "fs/read_text_file" => self.read(params),
            "fs/write_text_file" => self.write(params),
            "session/request_permission" => Ok(self.permit(params)),
            other => Err((UNKNOWN_METHOD, format!("{other} is not supported"))),
        }
    }

    /// Records a notification of the host.
    pub fn note(&mut self, method: &str, params: &Value) {
        if method != "session/update" {
            return;
        }
        let update = params.get("update").unwrap_or(&Value::Null);
        if let Some(used) = read_usage(update.pointer("/_meta/usage")) {
            self.heard.usage.add(used);
            (self.watch.events)(Event::Usage(self.heard.usage));
        }
        let text = |pointer: &str| {
            update
                .pointer(pointer)
                .and_then(Value::as_str)
                .unwrap_or_default()
        };
        match text("/sessionUpdate") {
            "agent_message_chunk" => {
                let piece = text("/content/text");
                if self.heard.message.len() + piece.len() > self.assignment.bounds.message {
                    self.heard.too_long = true;
                } else {
                    self.heard.message.push_str(piece);
                }
            }
            "tool_call" => {
                // Text sent before a tool call does not belong to the final message.
                self.heard.message.clear();
                self.watch.progress(cut(text("/title"), 300));
            }
            _ => {}
        }
    }

    fn workspace(&self) -> Workspace<'d> {
        let assignment = self.assignment;
        Workspace {
            view: &assignment.view,
            out: &assignment.out,
            outputs: &assignment.outputs,
            questions: &assignment.questions,
            file_bound: assignment.bounds.file,
        }
    }

    fn read(&mut self, params: &Value) -> Served {
        let path = path_of(params)?;
        let text = self
            .workspace()
            .read(path)
            .map_err(|why| self.refuse("read", path, why))?;
        let count = |name: &str| {
            params
                .get(name)
                .and_then(Value::as_u64)
                .map(|number| number as usize)
        };
        let (line, limit) = (count("line"), count("limit"));
        if line.is_none() && limit.is_none() {
            return Ok(json!({ "content": text }));
        }
        let skipped = line.unwrap_or(1).saturating_sub(1);
        let part: String = text
            .split_inclusive('\n')
            .skip(skipped)
            .take(limit.unwrap_or(usize::MAX))
            .collect();
        Ok(json!({ "content": part }))
    }

    fn write(&mut self, params: &Value) -> Served {
        let path = path_of(params)?;
        let text = params
            .get("content")
            .and_then(Value::as_str)
            .ok_or((INVALID_PARAMS, "no content".to_string()))?;
        self.workspace()
            .write(path, text)
            .map_err(|why| self.refuse("write", path, why))?;
        self.watch.progress(format!("wrote {path}"));
        Ok(json!({}))
    }

    fn refuse(&mut self, act: &str, path: &str, why: WorkspaceError) -> (i64, String) {
        if why.is_denial() {
            self.deny(act, path);
        }
        // Hosts detect a missing file by this wording, which the protocol defines.
        (NOT_FOUND, format!("Resource not found: {why}"))
    }

    fn deny(&mut self, act: &str, path: &str) {
        if let Some(more) = self.heard.denied.get_mut(MOST_DENIED) {
            more.times += 1;
            return;
        }
        let is_listed = self.heard.denied.len() < MOST_DENIED;
        let (act, path) = if is_listed {
            (cut(act, 100), cut(path, LONGEST_PATH))
        } else {
            ("more", "further attempts, not listed")
        };
        let attempt = Attempt {
            act: act.to_string(),
            path: path.to_string(),
            leads_to: None,
            program: "acp".to_string(),
            by: "adapter".to_string(),
            times: 1,
        };
        (self.watch.events)(Event::Denied(attempt.clone()));
        self.heard.denied.push(attempt);
    }

    fn permit(&mut self, params: &Value) -> Value {
        let call = params.get("toolCall").unwrap_or(&Value::Null);
        let places = call
            .get("locations")
            .and_then(Value::as_array)
            .cloned()
            .unwrap_or_default();
        let outside = places
            .iter()
            .filter_map(|place| place.get("path")?.as_str())
            .find(|path| !self.holds(path));
        let outside = outside.map(str::to_string);
        let kinds: &[&str] = match &outside {
            Some(path) => {
                let act = call.get("kind").and_then(Value::as_str).unwrap_or("tool");
                self.deny(act, path);
                &["reject_once", "reject_always"]
            }
            None => &["allow_once", "allow_always"],
        };
        let options = params
            .get("options")
            .and_then(Value::as_array)
            .cloned()
            .unwrap_or_default();
        let of_kind = |kind: &&str| {
            let option = options
                .iter()
                .find(|option| option.get("kind").and_then(Value::as_str) == Some(kind))?;
            option.get("optionId").cloned()
        };
        match kinds.iter().find_map(of_kind) {
            Some(option) => json!({ "outcome": { "outcome": "selected", "optionId": option } }),
            None => json!({ "outcome": { "outcome": "cancelled" } }),
        }
    }

    fn holds(&self, path: &str) -> bool {
        let path = Path::new(path);
        let climbs = path
            .components()
            .any(|part| part == std::path::Component::ParentDir);
        !climbs
            && (path.is_relative()
                || path.starts_with(&self.assignment.view)
                || path.starts_with(&self.assignment.out))
    }
}

/// Reads token counts under the names that different hosts use.
pub fn read_usage(usage: Option<&Value>) -> Option<Usage> {
    let count = |names: [&str; 2]| names.iter().find_map(|name| usage?.get(name)?.as_u64());
    let used = Usage {
        input: count(["inputTokens", "input_tokens"]),
        output: count(["outputTokens", "output_tokens"]),
    };
    (used != Usage::default()).then_some(used)
}

fn path_of(params: &Value) -> Result<&str, (i64, String)> {
    params
        .get("path")
        .and_then(Value::as_str)
        .ok_or((INVALID_PARAMS, "no path".to_string()))
}
