//! The `view` command: shows the texts that a role is given for a unit, within its budget.

use std::path::{Path, PathBuf};

use clap::Args;
use quipu_protocol::{
    Lexical, View as Shown, lay_view, make_view, render_explanation, verify_view,
};
use serde_json::json;

use crate::answer::{Answer, Failure, exit};
use crate::ops::view_arguments::ViewArguments;
use crate::session::Session;
use crate::table::Operate;

/// Maximum number of omitted files listed; the rest is counted.
const NAMED_FILES: usize = 20;

#[derive(Debug, Args)]
pub struct View {
    #[command(flatten)]
    arguments: ViewArguments,
    /// Print what is included, what was cut and by which strategy, and what it costs
    #[arg(long)]
    explain: bool,
    /// Write the view into this folder, with a manifest
    #[arg(long, value_name = "DIR")]
    out: Option<PathBuf>,
    /// Check whether the files shown in this folder have changed since; exit 1 if they have
    #[arg(long, value_name = "DIR", conflicts_with_all = ["out", "explain", "role"])]
    verify: Option<PathBuf>,
}

impl Operate for View {
    const NAME: &'static str = "view";
    const ABOUT: &'static str = "Show what a role is given to read for a unit, within its budget";

    fn operate(self, session: &Session) -> Result<Answer, Failure> {
        if let Some(folder) = &self.verify {
            return verify(session, &session.folder.join(folder));
        }
        let project = session.project()?;
        let view = make_view(&project, &self.arguments.request(session, None)?, &Lexical)?;
        let mut answer = Answer::new(json!(view), "");
        if let Some(folder) = &self.out {
            let folder = session.folder.join(folder);
            let written = lay_view(&project, &session.actor, &view, &folder)?;
            answer.json["written"] = json!(written);
            for path in &written {
                answer.text.push_str(&format!(
                    "{}\n",
                    path.strip_prefix(&folder).unwrap_or(path).display()
                ));
            }
            answer = answer.say(told(&view));
        }
        if self.explain {
            answer.text.push_str(&render_explanation(&view));
        } else if self.out.is_none() {
            answer.text = render_contents(&view);
            answer = answer.say(told(&view));
        }
        for seen in view.pointers.iter().filter(|_| !self.explain) {
            for name in seen.left_out.iter().take(NAMED_FILES) {
                answer = answer.say(format!(
                    "`{name}` does not fit into the budget; to read it: quipu read '{name}'"
                ));
            }
            if let Some(more) = seen
                .left_out
                .len()
                .checked_sub(NAMED_FILES)
                .filter(|more| *more > 0)
            {
                answer = answer.say(format!(
                    "and {more} more of `{}`; --explain lists them",
                    seen.name
                ));
            }
        }
        for absent in view.absent.iter().filter(|_| !self.explain) {
            answer = answer.say(format!("`{}` {}", absent.name, absent.what));
        }
        Ok(answer)
    }
}

fn told(view: &Shown) -> String {
    let cut = view
        .stages
        .iter()
        .flat_map(|s| &s.shares)
        .filter(|s| s.strategy.cuts())
        .count();
    let most = view
        .stages
        .iter()
        .map(|s| s.tokens)
        .max()
        .unwrap_or_default();
    let stages = if view.stages.len() > 1 {
        format!(", {} stages", view.stages.len())
    } else {
        String::new()
    };
    let cuts = if cut > 0 {
        format!("; {cut} cut to size; --explain shows how")
    } else {
        String::new()
    };
    format!("{most} of {} tokens{stages}{cuts}", view.budget)
}

/// Concatenates the texts, each under its name.
fn render_contents(view: &Shown) -> String {
    let mut text = String::new();
    for (index, stage) in view.stages.iter().enumerate() {
        if view.stages.len() > 1 {
            text.push_str(&format!(
                "══ stage {} of {}\n",
                index + 1,
                view.stages.len()
            ));
        }
        for file in &stage.files {
            let section = file
                .section
                .as_ref()
                .map(|s| format!("#{s}"))
                .unwrap_or_default();
            text.push_str(&format!(
                "── {}{section}  {} tokens  {}\n",
                file.path, file.tokens, stage.shares[file.pointer].strategy
            ));
            text.push_str(&file.text);
            if !text.ends_with('\n') {
                text.push('\n');
            }
        }
    }
    text
}

fn verify(session: &Session, folder: &Path) -> Result<Answer, Failure> {
    let project = session.project()?;
    let verdict = verify_view(&project, &session.actor, folder)?;
    let mut text = String::new();
    for (name, drift) in &verdict.drifted {
        text.push_str(&format!("{name} {}\n", drift.as_str()));
    }
    let unit = verdict
        .unit
        .as_ref()
        .map(|u| format!(" for {u}"))
        .unwrap_or_default();
    text.push_str(&format!(
        "{}{unit}: {} files, ",
        verdict.role, verdict.files
    ));
    text.push_str(&match verdict.drifted.len() {
        0 => "all unchanged\n".to_owned(),
        many => format!("{many} changed\n"),
    });
    let mut answer = Answer::new(json!(verdict), text);
    answer.exit = if verdict.drifted.is_empty() {
        exit::FINE
    } else {
        exit::NO
    };
    Ok(answer)
}
