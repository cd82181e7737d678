//! The `story knows` command: who knows, believes or does not know what, and since when.

use clap::Args;
use quipu_claims::{Fact, Kind};
use serde_json::json;

use super::Book;
use super::sheet::as_json;
use super::wording::{at_the_end_of, number, period, verb};
use crate::answer::{Answer, Failure};
use crate::session::Session;
use crate::table::Operate;

#[derive(Debug, Args)]
pub struct StoryKnows {
    /// Only this person
    #[arg(value_name = "NAME")]
    name: Option<String>,
    /// Show the state at the end of this chapter or scene (9, ch09, ch09.2); by default all of it
    #[arg(long, value_name = "CHAPTER")]
    at: Option<String>,
}

impl Operate for StoryKnows {
    const NAME: &'static str = "story knows";
    const ABOUT: &'static str = "Show who knows, believes or does not know what, and since when";

    fn operate(self, session: &Session) -> Result<Answer, Failure> {
        let book = Book::open(session)?;
        let owner = self
            .name
            .as_deref()
            .map(|name| book.owner(name))
            .transpose()?;
        let at = self.at.as_deref().map(|at| book.point(at)).transpose()?;
        let is_asked = |fact: &&Fact| {
            let of = fact.entity.map(|of| book.memory.first_of(of));
            !fact.is_event
                && fact.kind().is_some_and(Kind::is_mind)
                && (owner.is_none() || of == owner)
                && at.is_none_or(|at| fact.period.stands_after(at))
        };
        let mut facts: Vec<&Fact> = book.memory.facts.iter().filter(is_asked).collect();
        let order = |fact: &Fact| {
            (
                book.owner_of(fact).to_owned(),
                fact.period.from,
                fact.at.clone(),
            )
        };
        facts.sort_by_cached_key(|fact| order(fact));
        let (mut text, mut last) = (String::new(), None);
        for fact in &facts {
            let name = book.owner_of(fact);
            if last != Some(name) {
                text.push_str(&format!("{name}\n"));
                last = Some(name);
            }
            text.push_str(&format!(
                "  {}  {}{}  ({})\n",
                verb(book.language, fact.kind()),
                fact.value,
                period(book.language, &fact.period),
                fact.at
            ));
        }
        let told: Vec<_> = facts
            .iter()
            .map(|fact| json!({"name": book.owner_of(fact), "fact": as_json(fact)}))
            .collect();
        let found = number(book.language, facts.len(), "fact");
        let when = at_the_end_of(book.language, at);
        Ok(Answer::new(json!({"at": at, "knowledge": told}), text).say(found + &when))
    }
}
