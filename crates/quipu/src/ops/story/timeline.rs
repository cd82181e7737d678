//! The `story timeline` command: events and changes of state, chapter by chapter.

use clap::Args;
use quipu_claims::read_timeline;
use serde_json::json;

use super::Book;
use super::wording::number;
use crate::answer::{Answer, Failure};
use crate::session::Session;
use crate::table::Operate;

#[derive(Debug, Args)]
pub struct StoryTimeline {
    /// Only changes of this person or thing
    #[arg(long, value_name = "NAME")]
    of: Option<String>,
}

impl Operate for StoryTimeline {
    const NAME: &'static str = "story timeline";
    const ABOUT: &'static str = "Show what happens and what changes, chapter by chapter";

    fn operate(self, session: &Session) -> Result<Answer, Failure> {
        let book = Book::open(session)?;
        let mut moments = read_timeline(&book.memory);
        if let Some(name) = &self.of {
            let owner = book.owner(name)?;
            let is_named = |text: &str| {
                let mut mentions = book.memory.mentions(text).into_iter();
                mentions.any(|mention| book.memory.first_of(mention.entity) == owner)
            };
            for moment in &mut moments {
                moment
                    .changes
                    .retain(|change| change.owner == book.name(owner));
                moment.events.retain(|(text, _)| is_named(text));
            }
            moments.retain(|moment| !moment.changes.is_empty() || !moment.events.is_empty());
        }
        let mut text = String::new();
        for moment in &moments {
            let when = moment
                .when
                .as_ref()
                .map(|when| format!("  {when}"))
                .unwrap_or_default();
            text.push_str(&format!("{}{when}\n", moment.point));
            for (event, at) in &moment.events {
                text.push_str(&format!("    {event}  ({at})\n"));
            }
            for change in &moment.changes {
                let sign = if change.begins { '+' } else { '−' };
                text.push_str(&format!(
                    "  {sign} {}  {}  ({})\n",
                    change.owner, change.text, change.at
                ));
            }
        }
        let told: Vec<_> = moments
            .iter()
            .map(|moment| {
                let events: Vec<_> = moment.events.iter().map(|(text, at)| json!({"text": text, "at": at})).collect();
                json!({"point": moment.point, "when": moment.when, "events": events, "changes": moment.changes})
            })
            .collect();
        let found = number(book.language, moments.len(), "moment");
        Ok(Answer::new(json!({"moments": told}), text).say(found))
    }
}
