//! The `start` command: gives an agent the context for a new session.

use clap::Args;
use quipu_contract::Tokens;
use quipu_protocol::{Library, StartRequest, Surroundings, find_delegation, look_around, start};
use serde_json::json;

use super::view_arguments::parse_tokens;
use crate::answer::{Answer, Failure, in_language};
use crate::integrate::notices;
use crate::session::Session;
use crate::table::Operate;

#[derive(Debug, Args)]
pub struct Start {
    /// The token budget of the text
    #[arg(long, value_name = "N", value_parser = parse_tokens, default_value = "1200")]
    budget: u64,
    /// Start as the subagent of this delegation
    #[arg(long, value_name = "ID")]
    delegation: Option<String>,
    /// The scene of the contract; by default the role's scene
    #[arg(long, value_name = "NAME")]
    scene: Option<String>,
    /// The task, which starts; matching patterns and past sessions are shown
    #[arg(long, value_name = "TEXT", allow_hyphen_values = true)]
    task: Option<String>,
    /// The cause that you suspect; it is compared with the causes that earlier tasks found
    #[arg(
        long,
        value_name = "TEXT",
        requires = "task",
        allow_hyphen_values = true
    )]
    suspect: Option<String>,
    /// Show the text without opening a session
    #[arg(long)]
    peek: bool,
    /// Show everything again, even if this session has already seen it
    #[arg(long)]
    full: bool,
}

impl Operate for Start {
    const NAME: &'static str = "start";
    const ABOUT: &'static str = "Show the state of the project, open work and what to do next";

    fn operate(self, session: &Session) -> Result<Answer, Failure> {
        let root = match look_around(&session.folder) {
            Ok(root) => root,
            Err(around) => return Ok(offer(&around)),
        };
        let (project, behind) = session.newest_project(&root)?;
        let delegation = self
            .delegation
            .map(|id| find_delegation(&project, &session.actor, &id));
        let request = StartRequest {
            budget: Tokens(self.budget),
            scene: self.scene,
            delegation,
            task: self.task,
            suspect: self.suspect,
            peek: self.peek,
            full: self.full,
            notices: notices(&project),
            caller: session.caller(),
        };
        let awake = start(&project, &session.actor, &request)?;
        let language = project.contract.language;
        let mut answer = Answer::new(json!(awake), awake.text.clone());
        if let Some(least) = awake.least {
            answer = answer.say(format!(
                "--budget {} is too small: the minimum is {least} tokens",
                self.budget
            ));
        }
        if !awake.created.is_empty() {
            let created = awake.created.join(" ");
            answer = answer.say(in_language(
                language,
                format!("created: {created}"),
                format!("已建立：{created}"),
            ));
        }
        if let Some(behind) = behind {
            answer = answer.say(behind);
        }
        if let Some(begun) = awake.session.as_ref().filter(|_| !awake.continues) {
            let (id, who) = (&begun.id, &begun.who);
            answer = answer.say(in_language(
                language,
                format!("session {id} of {who}"),
                format!("{who} 的会话 {id}"),
            ));
        }
        Ok(answer)
    }
}

/// Explains what to do in a folder without a project.
fn offer(around: &Surroundings) -> Answer {
    let mut text = String::new();
    if !around.below.is_empty() {
        text.push_str("There is no project in this folder, but there are projects below it:\n");
        for (path, title) in &around.below {
            text.push_str(&format!(
                "  quipu start -C {}     {title}\n",
                path.display()
            ));
        }
    } else if let Some(folder) = &around.joinable {
        text.push_str(&format!(
            "There are project files in {} but no contract yet. To adopt them:\n",
            folder.display()
        ));
        text.push_str(&format!(
            "  quipu init {} --profile NAME     (existing files are not changed; quipu profile \
             list)\n",
            folder.display()
        ));
    } else {
        text.push_str("There is no project here. To create one:\n");
        for profile in Library::summaries(quipu_contract::Language::En) {
            text.push_str(&format!(
                "  quipu init --profile {:<10} {}\n",
                profile.name, profile.about
            ));
        }
    }
    let joinable = around
        .joinable
        .as_ref()
        .map(|folder| folder.display().to_string());
    let below: Vec<_> = around
        .below
        .iter()
        .map(|(path, title)| json!({"path": path.display().to_string(), "title": title}))
        .collect();
    Answer::new(
        json!({"scene": "fresh", "joinable": joinable, "below": below}),
        text,
    )
}
