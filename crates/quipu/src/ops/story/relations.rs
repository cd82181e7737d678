//! The `story relations` command: how people stand to each other, over time.

use clap::{Args, ValueEnum};
use quipu_claims::{read_relations, render_relations_dot, render_relations_mermaid};
use quipu_contract::Language;
use serde_json::json;

use super::Book;
use super::wording::{from, number, until};
use crate::answer::{Answer, Failure};
use crate::session::Session;
use crate::table::Operate;

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Format {
    Text,
    Mermaid,
    Dot,
}

#[derive(Debug, Args)]
pub struct StoryRelations {
    /// Show the relations at the end of this chapter (9, ch09); by default all, with their periods
    #[arg(long, value_name = "CHAPTER")]
    at: Option<String>,
    /// The format of the graph
    #[arg(long, value_enum, default_value_t = Format::Text)]
    format: Format,
}

impl Operate for StoryRelations {
    const NAME: &'static str = "story relations";
    const ABOUT: &'static str = "Show the relations between people, at a chapter or over time";

    fn operate(self, session: &Session) -> Result<Answer, Failure> {
        let book = Book::open(session)?;
        let at = self.at.as_deref().map(|at| book.point(at)).transpose()?;
        let relations = read_relations(&book.memory, at);
        let json = json!({"at": at, "relations": relations});
        match self.format {
            Format::Mermaid => {
                return Ok(Answer::data(json, render_relations_mermaid(&relations)));
            }
            Format::Dot => return Ok(Answer::data(json, render_relations_dot(&relations))),
            Format::Text => {}
        }
        let mut text = String::new();
        for one in &relations {
            let since = one.period.since.map(|at| match book.language {
                Language::En => format!("  since {at}"),
                Language::Zh => format!("  {}", from(book.language, at)),
            });
            let until = one
                .period
                .until
                .map(|at| format!("  {}", until(book.language, at)));
            text.push_str(&format!(
                "{} → {}  {}{}{}  ({})\n",
                one.from,
                one.to,
                one.label,
                since.unwrap_or_default(),
                until.unwrap_or_default(),
                one.at
            ));
        }
        Ok(Answer::new(json, text).say(number(book.language, relations.len(), "relation")))
    }
}
