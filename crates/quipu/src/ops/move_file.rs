//! The `move` command: renames a file and updates every link to it, in one commit.

use clap::Args;
use quipu_protocol::{MoveError, move_file};
use serde_json::json;

use super::receipt;
use crate::answer::{Answer, Failure, count, exit, in_language};
use crate::session::Session;
use crate::table::Operate;

#[derive(Debug, Args)]
pub struct Move {
    /// The file
    old: String,
    /// Its new path
    new: String,
    /// Continue even if files that must not be edited keep a link to the old path
    #[arg(long)]
    leave: bool,
}

impl Operate for Move {
    const NAME: &'static str = "move";
    const ABOUT: &'static str = "Rename a file and update every link to it, in one commit";

    fn operate(self, session: &Session) -> Result<Answer, Failure> {
        let (old, new) = (Session::path(&self.old)?, Session::path(&self.new)?);
        let project = session.project()?;
        let moved = move_file(
            &project,
            &session.actor,
            &old,
            &new,
            self.leave,
            session.lease.clone(),
        )?;
        let told = receipt::answer(project.contract.language, &moved.receipt);
        let language = project.contract.language;
        let mut text = format!("{old} → {new}\n");
        let fixed = in_language(language, "fixed ", "已改");
        let left = in_language(language, "left   ", "未改");
        moved
            .fixed
            .iter()
            .for_each(|place| text.push_str(&format!("  {fixed} {place}\n")));
        moved.left.iter().for_each(|(path, class)| {
            text.push_str(&format!("  {left} {path} ({})\n", class.as_str()))
        });
        let left: Vec<&String> = moved.left.iter().map(|(path, _)| path).collect();
        let mut answer = Answer::new(
            json!({"receipt": told.json, "fixed": moved.fixed, "left": left}),
            text,
        );
        answer.talk = told.talk;
        let fixed = moved.fixed.len();
        Ok(answer.say(in_language(
            language,
            format!("{} fixed", count(fixed, "link")),
            format!("改正了 {fixed} 个链接"),
        )))
    }
}

impl From<MoveError> for Failure {
    fn from(error: MoveError) -> Failure {
        let what = error.to_string();
        match error {
            MoveError::NotFound(_) => Failure::new(exit::NOT_FOUND, what, "quipu status --files"),
            MoveError::Exists(path) => Failure::new(
                exit::REFUSED,
                what,
                format!("use another name; or, if its class allows it: quipu remove {path}"),
            ),
            MoveError::Fixed { .. } => Failure::new(
                exit::REFUSED,
                what,
                "quipu move OLD NEW --leave     (those links will then be broken)",
            ),
            MoveError::Unseen(_) => Failure::new(
                exit::REFUSED,
                what,
                "ask a person to run: quipu move OLD NEW",
            ),
            MoveError::Read(error) => error.into(),
            MoveError::Store(error) => error.into(),
        }
    }
}
