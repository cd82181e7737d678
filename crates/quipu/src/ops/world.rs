//! The `world` commands: read and set shared facts by key.

use clap::Args;
use quipu_contract::{Fact, Form, Was, add_note, facts, set_fact};
use quipu_protocol::worldlog::{FACTS, refuse_before_finish};
use quipu_protocol::{change_formed, load_formed, now, render_moment};
use serde_json::json;

use super::receipt;
use crate::answer::{Answer, Failure, exit};
use crate::session::Session;
use crate::table::Operate;

#[derive(Debug, Args)]
pub struct WorldGet {
    /// Show only this key
    key: Option<String>,
    /// Show only this section
    #[arg(long, value_name = "SECTION")]
    section: Option<String>,
    /// Show older values too
    #[arg(long)]
    history: bool,
}

impl Operate for WorldGet {
    const NAME: &'static str = "world get";
    const ABOUT: &'static str = "Print the facts of the world, or one of them";

    fn operate(self, session: &Session) -> Result<Answer, Failure> {
        let project = session.project()?;
        let formed = load_formed(&project, &session.actor, Form::World)?;
        let same = |a: &str, b: &str| a.to_lowercase() == b.to_lowercase();
        let wanted = |fact: &Fact| {
            (self.history || !fact.older)
                && self
                    .key
                    .as_ref()
                    .is_none_or(|key| same(key.trim(), &fact.key))
                && self
                    .section
                    .as_ref()
                    .is_none_or(|section| same(section.trim(), &fact.section))
        };
        let found: Vec<Fact> = facts(&formed.text).into_iter().filter(wanted).collect();
        let text = match (&self.key, found.as_slice()) {
            (Some(_), [one]) => format!("{}\n", one.value),
            _ => found.iter().map(render).collect(),
        };
        let mut answer = Answer::new(
            json!({"path": formed.path, "version": formed.version, "facts": found}),
            text,
        );
        if let (Some(key), true) = (&self.key, found.is_empty()) {
            answer.exit = exit::NO;
            answer = answer.say(format!("unknown key `{key}`"));
        }
        Ok(answer)
    }
}

fn render(fact: &Fact) -> String {
    let older = if fact.older { "  (older)" } else { "" };
    match fact.section.as_str() {
        "" => format!("{}: {}{older}\n", fact.key, fact.value),
        section => format!("{section} / {}: {}{older}\n", fact.key, fact.value),
    }
}

#[derive(Debug, Args)]
pub struct WorldSet {
    /// The key of the fact; case is ignored
    key: String,
    /// The new value; ` | ` separates the cells of a table row
    #[arg(allow_hyphen_values = true)]
    value: String,
    /// The section of a new key, or of a key that exists in several sections
    #[arg(long, value_name = "SECTION")]
    section: Option<String>,
}

impl Operate for WorldSet {
    const NAME: &'static str = "world set";
    const ABOUT: &'static str = "Set a fact; the old value moves to the section's history";

    fn operate(self, session: &Session) -> Result<Answer, Failure> {
        let project = session.project()?;
        let section = self.section.as_ref().map(|section| format!("{section}/"));
        let fact = format!("{}{}={}", section.unwrap_or_default(), self.key, self.value);
        refuse_before_finish(&project, &session.actor, Some(&fact))?;
        let moment = render_moment(now(&project.store));
        let set = |text: &str| {
            set_fact(
                text,
                self.section.as_deref(),
                &FACTS,
                &self.key,
                &self.value,
                &moment,
            )
        };
        let was = std::cell::RefCell::new(Was::New);
        let terms = session.terms(format!("world set: {}", self.key));
        let (committed, formed) =
            change_formed(&project, &session.actor, &terms, Form::World, |text| {
                let (text, old) = set(text)?;
                was.replace(old);
                Ok(text)
            })?;
        let older = match was.into_inner() {
            Was::Older(old) => Some(old),
            Was::New | Was::Same => None,
        };
        let told =
            json!({"path": formed.path, "key": self.key, "value": self.value, "older": older});
        let text = older.map_or_else(
            || format!("{}: {}\n", self.key, self.value),
            |old| format!("{}: {} (was {old})\n", self.key, self.value),
        );
        Ok(receipt::beside(
            project.contract.language,
            &committed,
            told,
            text,
        ))
    }
}

#[derive(Debug, Args)]
pub struct WorldNote {
    /// The section to add the line to
    section: String,
    /// The text, one line
    text: String,
}

impl Operate for WorldNote {
    const NAME: &'static str = "world note";
    const ABOUT: &'static str = "Add a line without a key to a section of the world";

    fn operate(self, session: &Session) -> Result<Answer, Failure> {
        let project = session.project()?;
        refuse_before_finish(&project, &session.actor, None)?;
        let terms = session.terms(format!("world note: {}", self.section));
        let (committed, formed) =
            change_formed(&project, &session.actor, &terms, Form::World, |text| {
                Ok(add_note(text, &self.section, &self.text)?)
            })?;
        Ok(receipt::beside(
            project.contract.language,
            &committed,
            json!({"path": formed.path, "section": self.section}),
            "",
        ))
    }
}
