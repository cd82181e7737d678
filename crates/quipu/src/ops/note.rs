//! The commands `note` and `fact`: texts that every start shows until they are removed.

use clap::Args;
use quipu_contract::in_one_line;
use quipu_protocol::{List, change_list};
use serde_json::json;

use super::receipt;
use crate::answer::{Answer, Failure};
use crate::session::Session;
use crate::table::Operate;

#[derive(Debug, Args)]
pub struct Note {
    #[command(flatten)]
    entries: Entries,
}

#[derive(Debug, Args)]
pub struct Fact {
    #[command(flatten)]
    entries: Entries,
}

#[derive(Debug, Args)]
struct Entries {
    /// The text to keep
    #[arg(required_unless_present = "remove")]
    text: Option<String>,
    /// Remove an entry, by its number or by words from it; repeatable
    #[arg(long, value_name = "N", allow_hyphen_values = true)]
    remove: Vec<String>,
}

impl Entries {
    fn change(self, session: &Session, list: List) -> Result<Answer, Failure> {
        let project = session.project()?;
        let added: Vec<String> = self.text.into_iter().collect();
        if added.iter().any(|text| text.trim().is_empty()) {
            return Err(Failure::usage(
                "the text is empty",
                format!("quipu {} \"…\"", list.word()),
            ));
        }
        let (entries, receipt) = change_list(
            &project,
            &session.actor,
            session.lease.as_ref(),
            list,
            &self.remove,
            &added,
        )?;
        // Shows the added entries with the numbers that remove them; after a removal, the new
        // numbers.
        let is_shown = |entry: &String| !self.remove.is_empty() || added.contains(entry);
        let shown = (1..).zip(&entries).filter(|(_, entry)| is_shown(entry));
        let text = shown
            .map(|(number, entry)| format!("{number}. {}\n", in_one_line(entry)))
            .collect::<String>();
        Ok(receipt::with(
            project.contract.language,
            &receipt,
            json!({list.key(): entries}),
            text,
        ))
    }
}

impl Operate for Note {
    const NAME: &'static str = "note";
    const ABOUT: &'static str = "Keep a note for later sessions, or remove one";

    fn operate(self, session: &Session) -> Result<Answer, Failure> {
        self.entries.change(session, List::Notes)
    }
}

impl Operate for Fact {
    const NAME: &'static str = "fact";
    const ABOUT: &'static str = "Keep a fact about people, outside systems or dates, or remove one";

    fn operate(self, session: &Session) -> Result<Answer, Failure> {
        self.entries.change(session, List::Facts)
    }
}
