//! The `story sheet` command: one person or thing, with its state by chapter and its appearances.

use clap::Args;
use quipu_claims::{Fact, appearances, cut_scenes, is_alias};
use serde_json::json;

use super::{Book, period};
use crate::answer::{Answer, Failure, count};
use crate::session::Session;
use crate::table::Operate;

#[derive(Debug, Args)]
pub struct StorySheet {
    /// A name or an alias
    #[arg(value_name = "NAME")]
    name: String,
    /// Show the state at the end of this chapter or scene (9, ch09, ch09.2)
    #[arg(long, value_name = "CHAPTER")]
    at: Option<String>,
}

impl Operate for StorySheet {
    const NAME: &'static str = "story sheet";
    const ABOUT: &'static str =
        "Show one person or thing: state by chapter, names used, first and last appearance";

    fn operate(self, session: &Session) -> Result<Answer, Failure> {
        let book = Book::open(session)?;
        let owner = book.owner(&self.name)?;
        let entity = &book.memory.entities[owner];
        let at = self.at.as_deref().map(|at| book.point(at)).transpose()?;
        let facts: Vec<&Fact> = book
            .memory
            .facts
            .iter()
            .filter(|fact| {
                fact.entity
                    .is_some_and(|of| book.memory.first_of(of) == owner)
            })
            .filter(|fact| !is_alias(fact) && !fact.is_event && !fact.value.is_empty())
            .filter(|fact| at.is_none_or(|at| fact.period.stands_after(at)))
            .collect();
        let seen = appearances(&book.memory, &cut_scenes(&book.pages, &book.memory), owner);
        let mut text = format!("{}  ({})\n", entity.name, entity.at);
        if let [_, aliases @ ..] = entity.names.as_slice()
            && !aliases.is_empty()
        {
            text.push_str(&format!("also called {}\n", aliases.join(", ")));
        }
        if let (Some(first), Some(last)) = (&seen.first, &seen.last) {
            let names = seen
                .by_name
                .iter()
                .map(|(name, times)| format!("{name} {times}"));
            let chapters = seen
                .by_chapter
                .iter()
                .map(|(chapter, times)| format!("ch{chapter:02} {times}"));
            text.push_str(&format!(
                "first appears {first}, last {last}\nnamed {}; {}\n",
                names.collect::<Vec<_>>().join(", "),
                chapters.collect::<Vec<_>>().join(", ")
            ));
        } else {
            text.push_str("does not appear in a final chapter\n");
        }
        text.push_str(&render_state(&facts));
        let told: Vec<_> = facts.iter().map(|fact| as_json(fact)).collect();
        let json = json!({
            "name": entity.name, "names": entity.names, "at": entity.at, "point": at,
            "appearances": seen, "facts": told
        });
        let when = at
            .map(|at| format!(" at the end of {at}"))
            .unwrap_or_default();
        Ok(Answer::new(json, text).say(format!("{}{when}", count(facts.len(), "fact"))))
    }
}

/// Formats facts: those without a start first, then by the chapter in which they begin.
fn render_state(facts: &[&Fact]) -> String {
    let mut sorted = facts.to_vec();
    sorted.sort_by_key(|fact| fact.period.from);
    let (mut text, mut heading) = (String::new(), None);
    for fact in sorted {
        let from = fact.period.from;
        if heading != Some(from) {
            text.push_str(&match from {
                Some(point) => format!("\nfrom {point}\n"),
                None => "\nfrom the beginning\n".to_owned(),
            });
            heading = Some(from);
        }
        let until = fact
            .period
            .until
            .map(|until| format!("  until {until}"))
            .unwrap_or_default();
        text.push_str(&format!("  {}{until}  ({})\n", fact.said(), fact.at));
    }
    text
}

pub(super) fn as_json(fact: &Fact) -> serde_json::Value {
    json!({
        "key": fact.key, "value": fact.value, "period": fact.period, "kind": fact.kind(),
        "level": fact.level.map(|level| level.name()), "source": fact.source, "at": fact.at
    })
}

/// One line of a fact: `key: value  (from ch03)  (file:line)`.
pub(super) fn line(fact: &Fact) -> String {
    format!("{}{}  ({})", fact.said(), period(fact), fact.at)
}
