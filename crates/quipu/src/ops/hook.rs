//! The `hook` command, which agent hosts call at their hook points. The verdicts are in
//! `crate::hook`.

use std::io::Read;

use clap::Args;

use super::asked::parse_tokens;
use crate::answer::{Answer, Failure};
use crate::hook::{Asked, Event, hear};
use crate::session::Session;
use crate::table::Operate;

/// More than any host sends. A tool that writes more is judged by the file afterwards.
const MOST_BYTES: u64 = 64 << 20;

#[derive(Debug, Args)]
pub struct Hook {
    /// What is about to happen; the host's JSON comes on stdin
    event: Event,
    /// Tokens that the text of a session start may take
    #[arg(long, value_name = "N", value_parser = parse_tokens, default_value = "1200")]
    budget: u64,
    /// Answer in fields of one JSON object, denials too, as Cursor reads them
    #[arg(long)]
    fields: bool,
    /// Print nothing at a session's start: this host does not show it to its model
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
            Asked {
                budget: self.budget,
                in_fields: self.fields,
                is_unheard: self.unheard,
            },
            session,
        ))
    }
}
