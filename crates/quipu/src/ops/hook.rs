//! The `hook` command, which agent hosts call at their hook points. The verdicts are in
//! `crate::hook`.

use std::io::Read;

use clap::Args;

use super::view_arguments::parse_tokens;
use crate::answer::{Answer, Failure};
use crate::hook::{Event, HookArguments, hear};
use crate::session::Session;
use crate::table::Operate;

/// More than any host sends. A tool that writes more is judged by the file afterwards.
const MOST_BYTES: u64 = 64 << 20;

#[derive(Debug, Args)]
pub struct Hook {
    /// The event; the host's JSON is read from stdin
    event: Event,
    /// The token budget of the start text
    #[arg(long, value_name = "N", value_parser = parse_tokens, default_value = "1200")]
    budget: u64,
    /// Answer every event with one JSON object, also denials, as Cursor expects
    #[arg(long)]
    fields: bool,
    /// Print nothing when a session starts: this host does not pass it to its model
    #[arg(long)]
    unheard: bool,
}

impl Operate for Hook {
    const NAME: &'static str = "hook";
    const ABOUT: &'static str = "Answer a hook of an agent host; hosts call this";

    fn operate(self, session: &Session) -> Result<Answer, Failure> {
        let mut bytes = Vec::new();
        let read = std::io::stdin()
            .lock()
            .take(MOST_BYTES)
            .read_to_end(&mut bytes);
        let said = read.map_err(|e| format!("cannot read stdin: {e}"));
        let said = said.map(|_| String::from_utf8_lossy(&bytes).into_owned());
        Ok(hear(
            self.event,
            said,
            HookArguments {
                budget: self.budget,
                in_fields: self.fields,
                is_unheard: self.unheard,
            },
            session,
        ))
    }
}
