//! The `story sheet` command: a person, an object or a place, with its state by chapter and its
//! appearances. An object also has its holders, a place the people in it.

use clap::Args;
use quipu_claims::{About, Fact, Point, appearances, cut_scenes, facts_about, is_alias};
use quipu_contract::Language;
use serde_json::json;

use super::Book;
use super::wording::{self, at_the_end_of, number, period, relation};
use crate::answer::{Answer, Failure};
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
        "Show a person, an object or a place: state by chapter, holders, names, appearances";

    fn operate(self, session: &Session) -> Result<Answer, Failure> {
        let mut book = Book::open(session)?;
        let owner = book.owner_or_thing(&self.name)?;
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
            .filter(|fact| at.is_none_or(|at| holds_at(&book, fact, at)))
            .collect();
        let mut about = facts_about(&book.memory, entity);
        about.retain(|one| at.is_none_or(|at| holds_at(&book, one.fact, at)));
        let mut scenes = cut_scenes(&book.pages, &book.memory);
        scenes.retain(|scene| at.is_none_or(|at| !at.is_before(scene.point)));
        let seen = appearances(&book.memory, &scenes, owner);
        let language = book.language;
        let mut text = match (entity.at.line, language) {
            (0, Language::En) => format!("{}  (no section of its own in memory)\n", entity.name),
            (0, Language::Zh) => format!("{}  （记忆里没有它的一节）\n", entity.name),
            _ => format!("{}  ({})\n", entity.name, entity.at),
        };
        if let [_, aliases @ ..] = entity.names.as_slice()
            && !aliases.is_empty()
        {
            text.push_str(&match language {
                Language::En => format!("also called {}\n", aliases.join(", ")),
                Language::Zh => format!("又名 {}\n", aliases.join("、")),
            });
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
            let names = names.collect::<Vec<_>>().join(", ");
            let chapters = chapters.collect::<Vec<_>>().join(", ");
            text.push_str(&match language {
                Language::En => {
                    format!("first appears {first}, last {last}\nnamed {names}; {chapters}\n")
                }
                Language::Zh => {
                    format!("首见 {first}，末见 {last}\n提及 {names}；{chapters}\n")
                }
            });
        } else {
            text.push_str(match language {
                Language::En => "does not appear in a final chapter\n",
                Language::Zh => "定稿中没有出现\n",
            });
        }
        let mut lines: Vec<(&Fact, String)> =
            facts.iter().map(|fact| (*fact, fact.said())).collect();
        let said = |one: &About<'_>| format!("{}: {}", relation(language, one.what), one.who);
        lines.extend(about.iter().map(|one| (one.fact, said(one))));
        text.push_str(&render_state(language, lines));
        let told: Vec<_> = facts.iter().map(|fact| as_json(fact)).collect();
        let others: Vec<_> = about
            .iter()
            .map(|one| json!({"what": one.what, "who": one.who, "fact": as_json(one.fact)}))
            .collect();
        let place = (entity.at.line > 0).then_some(&entity.at);
        let json = json!({
            "name": entity.name, "names": entity.names, "at": place, "point": at,
            "appearances": seen, "facts": told, "about": others
        });
        let found = number(language, facts.len() + about.len(), "fact");
        Ok(Answer::new(json, text).say(found + &at_the_end_of(language, at)))
    }
}

/// Returns true if a fact holds at the end of a point, and no later chapter is its source.
fn holds_at(book: &Book, fact: &Fact, at: Point) -> bool {
    let link = fact.source.as_deref();
    let source = link.and_then(|link| book.memory.scenes.point_of(link));
    fact.period.stands_after(at) && source.is_none_or(|source| !at.is_before(source))
}

/// Formats facts: those without a start first, then by the chapter in which they begin.
fn render_state(language: Language, mut lines: Vec<(&Fact, String)>) -> String {
    lines.sort_by_key(|(fact, _)| fact.period.from);
    let (mut text, mut heading) = (String::new(), None);
    for (fact, said) in lines {
        let from = fact.period.from;
        if heading != Some(from) {
            text.push_str(&match (from, language) {
                (Some(point), _) => format!("\n{}\n", wording::from(language, point)),
                (None, Language::En) => "\nfrom the beginning\n".to_owned(),
                (None, Language::Zh) => "\n起初\n".to_owned(),
            });
            heading = Some(from);
        }
        let until = fact
            .period
            .until
            .map(|at| format!("  {}", wording::until(language, at)));
        text.push_str(&format!(
            "  {said}{}  ({})\n",
            until.unwrap_or_default(),
            fact.at
        ));
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
pub(super) fn line(language: Language, fact: &Fact) -> String {
    format!(
        "{}{}  ({})",
        fact.said(),
        period(language, &fact.period),
        fact.at
    )
}
