//! The `story progression` command: the values of one key over the chapters.

use clap::Args;
use quipu_claims::{Fact, is_same_key};
use quipu_contract::Language;
use serde_json::json;

use super::Book;
use super::sheet::{as_json, line};
use super::wording::number;
use crate::answer::{Answer, Failure, exit};
use crate::session::Session;
use crate::table::Operate;

#[derive(Debug, Args)]
pub struct StoryProgression {
    /// A name or an alias
    #[arg(value_name = "NAME")]
    name: String,
    /// The key of the facts: where, age, 所在
    #[arg(value_name = "KEY")]
    key: String,
}

impl Operate for StoryProgression {
    const NAME: &'static str = "story progression";
    const ABOUT: &'static str = "Show how one fact changes over the chapters";

    fn operate(self, session: &Session) -> Result<Answer, Failure> {
        let book = Book::open(session)?;
        let owner = book.owner(&self.name)?;
        let of_owner = |fact: &&Fact| {
            !fact.is_event
                && !fact.key.is_empty()
                && fact
                    .entity
                    .is_some_and(|of| book.memory.first_of(of) == owner)
        };
        let all: Vec<&Fact> = book.memory.facts.iter().filter(of_owner).collect();
        let mut facts = all.clone();
        facts.retain(|fact| is_same_key(&fact.key, &self.key));
        if facts.is_empty() {
            let mut keys: Vec<&str> = all.iter().map(|fact| fact.key.as_str()).collect();
            keys.dedup();
            return Err(Failure::new(
                exit::NOT_FOUND,
                match book.language {
                    Language::En => format!("{} has no fact `{}`", book.name(owner), self.key),
                    Language::Zh => format!("{} 没有事实 `{}`", book.name(owner), self.key),
                },
                match book.language {
                    Language::En => format!("its keys: {}", keys.join(", ")),
                    Language::Zh => format!("它的键：{}", keys.join("、")),
                },
            ));
        }
        facts.sort_by(|a, b| (a.period.from, &a.at).cmp(&(b.period.from, &b.at)));
        let text: String = facts
            .iter()
            .map(|fact| line(book.language, fact) + "\n")
            .collect();
        let told: Vec<_> = facts.iter().map(|fact| as_json(fact)).collect();
        let json = json!({"name": book.name(owner), "key": self.key, "values": told});
        Ok(Answer::new(json, text).say(number(book.language, facts.len(), "value")))
    }
}
