//! The `story met` command: the last scene with two people, and its passage.

use clap::Args;
use quipu_claims::{Place, cut_scenes, last_met};
use quipu_contract::Language;
use serde_json::json;

use super::Book;
use crate::answer::{Answer, Failure, exit};
use crate::session::Session;
use crate::table::Operate;

#[derive(Debug, Args)]
pub struct StoryMet {
    /// A name or an alias
    #[arg(value_name = "NAME")]
    one: String,
    /// Another one
    #[arg(value_name = "OTHER")]
    other: String,
    /// Only scenes before this chapter (9, ch09)
    #[arg(long, value_name = "CHAPTER")]
    before: Option<String>,
}

impl Operate for StoryMet {
    const NAME: &'static str = "story met";
    const ABOUT: &'static str = "Show the last scene with two people, and the passage";

    fn operate(self, session: &Session) -> Result<Answer, Failure> {
        let book = Book::open(session)?;
        let (one, other) = (book.owner(&self.one)?, book.owner(&self.other)?);
        let before = self
            .before
            .as_deref()
            .map(|at| book.point(at))
            .transpose()?;
        let mut scenes = cut_scenes(&book.pages, &book.memory);
        scenes.retain(|scene| before.is_none_or(|before| scene.point.is_before(before)));
        let names = (book.name(one), book.name(other));
        let Some((scene, first, second)) = last_met(&book.memory, &scenes, one, other) else {
            let mut answer = Answer::new(json!({"met": null}), "");
            answer.exit = exit::NO;
            return Ok(answer.say(match book.language {
                Language::En => {
                    format!(
                        "no scene of a final chapter shows both {} and {}",
                        names.0, names.1
                    )
                }
                Language::Zh => {
                    format!("定稿中没有 {} 与 {} 同在的场景", names.0, names.1)
                }
            }));
        };
        let place = |line| Place::new(&scene.at.path, line);
        let mut text = format!("{}  {}  ({})\n", scene.point, scene.title, scene.at);
        let mut passages = vec![first];
        if second != first {
            passages.push(second);
            passages.sort_by_key(|claim| claim.line);
        }
        for claim in &passages {
            text.push_str(&format!("  {}  {}\n", place(claim.line), claim.text));
        }
        let told: Vec<_> = passages
            .iter()
            .map(|claim| json!({"at": place(claim.line), "text": claim.text}))
            .collect();
        Ok(Answer::new(
            json!({"met": {"point": scene.point, "scene": scene.title, "at": scene.at, "passages": told}}),
            text,
        ))
    }
}
