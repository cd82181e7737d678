//! The `memory-tool` command: Anthropic's memory tool under the contract. The work is done by
//! `crate::memory`.

use clap::Args;
use quipu_contract::{Actor, ActorName};
use serde_json::json;

use crate::answer::{Answer, Failure, exit};
use crate::memory::{Command, ToolError, perform};
use crate::session::Session;
use crate::table::Operate;

#[derive(Debug, Args)]
pub struct MemoryTool {
    /// The folder of the project to use as `/memories`
    #[arg(long, value_name = "DIR", default_value = "memories")]
    under: String,
}

impl Operate for MemoryTool {
    const NAME: &'static str = "memory-tool";
    const ABOUT: &'static str =
        "Execute a command of Anthropic's memory tool: JSON on stdin, text on stdout";

    fn operate(self, session: &Session) -> Result<Answer, Failure> {
        let text = session.load_stdin()?;
        let remedy = r#"{"command": "view", "path": "/memories"}; or create, str_replace, insert, delete, rename"#;
        let command: Command = serde_json::from_slice(&text).map_err(|e| {
            Failure::usage(format!("invalid command of the memory tool: {e}"), remedy)
        })?;
        let project = session.project()?;
        let folder = Session::path(self.under.trim_end_matches('/'))?;
        // The caller of this tool is always a model, so actions reserved to people are refused even
        // without an agent name.
        let actor = match &session.actor {
            Actor::Person => Actor::Agent {
                role: None,
                unit: None,
                agent: ActorName::parse(Self::NAME).ok(),
            },
            named => named.clone(),
        };
        match perform(&project, &actor, session.lease.as_ref(), &folder, &command) {
            Ok(told) => Ok(Answer::data(
                json!({"content": told, "is_error": false}),
                told,
            )),
            Err(ToolError(told)) => {
                let mut answer = Answer::data(json!({"content": told, "is_error": true}), told);
                answer.exit = exit::NO;
                Ok(answer)
            }
        }
    }
}
