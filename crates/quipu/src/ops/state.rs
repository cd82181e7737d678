//! The `state` commands: get, set and merge values of the state file.

use clap::Args;
use quipu_contract::Form;
use quipu_protocol::{get_state, merge_state, set_state};
use serde_json::{Value, json};

use super::flagged::with_flag_of;
use super::input::Input;
use super::receipt;
use crate::answer::{Answer, Failure};
use crate::session::Session;
use crate::table::Operate;

#[derive(Debug, Args)]
pub struct StateGet {
    /// A JSON pointer such as /progress/next_steps; by default the whole state
    #[arg(default_value = "")]
    pointer: String,
}

impl Operate for StateGet {
    const NAME: &'static str = "state get";
    const ABOUT: &'static str = "Print a value of the state";

    fn operate(self, session: &Session) -> Result<Answer, Failure> {
        let project = session.project()?;
        let value = get_state(&project, &session.actor, &self.pointer)?;
        let text = match &value {
            Value::String(text) => text.clone(),
            other => format!("{other:#}"),
        };
        with_flag_of(
            Answer::new(value, text),
            &project,
            &session.actor,
            Form::State,
        )
    }
}

#[derive(Debug, Args)]
pub struct StateSet {
    /// A JSON pointer such as /phase; `-` as the last part appends to a list
    pointer: String,
    /// The value: JSON, or plain text
    #[arg(allow_hyphen_values = true)]
    value: String,
}

impl Operate for StateSet {
    const NAME: &'static str = "state set";
    const ABOUT: &'static str = "Set a value of the state; nothing else in the file changes";

    fn operate(self, session: &Session) -> Result<Answer, Failure> {
        let project = session.project()?;
        let value = parse_value(&self.value);
        Ok(receipt::answer(
            project.contract.language,
            &set_state(
                &project,
                &session.actor,
                session.lease.as_ref(),
                &self.pointer,
                &value,
            )?,
        ))
    }
}

/// Parses JSON, and treats any other text as a string.
pub fn parse_value(text: &str) -> Value {
    serde_json::from_str(text).unwrap_or_else(|_| json!(text))
}

#[derive(Debug, Args)]
pub struct StateMerge {
    #[command(flatten)]
    input: Input,
}

impl Operate for StateMerge {
    const NAME: &'static str = "state merge";
    const ABOUT: &'static str = "Merge an object into the state, key by key; null removes";

    fn operate(self, session: &Session) -> Result<Answer, Failure> {
        let project = session.project()?;
        let bytes = self.input.bytes(session)?;
        let patch: Value = serde_json::from_slice(&bytes).map_err(|e| {
            Failure::usage(
                format!("line {}: {e}", e.line()),
                "quipu state merge --text '{\"phase\": \"testing\"}'",
            )
        })?;
        Ok(receipt::answer(
            project.contract.language,
            &merge_state(&project, &session.actor, session.lease.as_ref(), &patch)?,
        ))
    }
}
