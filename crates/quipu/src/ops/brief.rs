//! The `brief` command: prints the prompt for a role.

use clap::Args;
use quipu_protocol::{BriefOptions, Lexical, make_brief};
use serde_json::json;

use crate::answer::{Answer, Failure};
use crate::ops::view_arguments::ViewArguments;
use crate::session::Session;
use crate::table::Operate;

#[derive(Debug, Args)]
pub struct Brief {
    #[command(flatten)]
    arguments: ViewArguments,
    /// Include the contents of the files, for agents without file tools
    #[arg(long)]
    inline: bool,
    /// The language of the brief: en or zh; by default the project's language
    #[arg(long, value_name = "LANG")]
    lang: Option<String>,
    /// The stage to print, if the budget splits the task into stages
    #[arg(long, value_name = "N", default_value_t = 1)]
    stage: usize,
}

impl Operate for Brief {
    const NAME: &'static str = "brief";
    const ABOUT: &'static str =
        "Print the prompt for a role: task, files to read, standards, marker";

    fn operate(self, session: &Session) -> Result<Answer, Failure> {
        let project = session.project()?;
        let request = self.arguments.request(session, self.lang.as_deref())?;
        let brief = make_brief(
            &project,
            &request,
            BriefOptions {
                inline: self.inline,
                stage: self.stage,
                again: false,
            },
            &Lexical,
        )?;
        let view = &brief.view;
        let shares = view.stages.get(self.stage - 1).map(|s| json!(s.shares));
        let json = json!({
            "role": view.role,
            "unit": view.unit,
            "language": view.language,
            "stage": brief.stage,
            "stages": view.stages.len(),
            "tokens": brief.tokens,
            "pointers": view.pointers,
            "shares": shares,
            "absent": view.absent,
            "text": brief.text,
        });
        let mut answer = Answer::new(json, brief.text.clone());
        if view.stages.len() > 1 {
            answer = answer.say(format!(
                "stage {} of {}; --stage N prints the others",
                brief.stage,
                view.stages.len()
            ));
        }
        if let Some(window) = view
            .window
            .filter(|w| !self.inline && brief.tokens > w.system)
        {
            answer = answer.say(format!(
                "the brief has {} tokens, more than the {} reserved for the system prompt: \
                 [budget] system in quipu.toml",
                brief.tokens, window.system
            ));
        }
        for absent in &view.absent {
            answer = answer.say(format!("`{}` {}", absent.name, absent.what));
        }
        Ok(answer)
    }
}
