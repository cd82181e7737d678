//! The `tension` command: shows the tension on each high-level fact, chapter by chapter.

use std::path::PathBuf;

use clap::Args;
use quipu_claims::{read_tension, render_bars, render_tension_svg};
use quipu_protocol::{gather, last_chapter};
use serde_json::json;

use crate::answer::{Answer, Failure, count, in_language};
use crate::session::Session;
use crate::table::Operate;

#[derive(Debug, Args)]
pub struct Tension {
    /// Show up to this chapter (9, ch09); by default up to the last chapter with any tension
    #[arg(long, value_name = "CHAPTER")]
    chapter: Option<String>,
    /// Draw the curves into this file; `-` writes to stdout
    #[arg(long, value_name = "FILE")]
    svg: Option<PathBuf>,
}

impl Operate for Tension {
    const NAME: &'static str = "tension";
    const ABOUT: &'static str = "Show the tension on each high-level fact, chapter by chapter";

    fn operate(self, session: &Session) -> Result<Answer, Failure> {
        let chapter = self
            .chapter
            .as_deref()
            .map(super::threads::chapter)
            .transpose()?;
        let project = session.project()?;
        let pages = gather(&project, &session.actor)?.pages;
        let mut tension = read_tension(&pages);
        let pressed = tension
            .iter()
            .flat_map(|one| &one.presses)
            .map(|press| press.chapter)
            .max()
            .unwrap_or(1);
        let last = chapter.unwrap_or_else(|| pressed.max(last_chapter(&pages).unwrap_or(1)));
        tension
            .iter_mut()
            .for_each(|one| one.presses.retain(|press| press.chapter <= last));
        tension.retain(|one| !one.presses.is_empty());
        if let Some(file) = &self.svg {
            return super::picture::deliver(
                session,
                &project,
                file,
                &render_tension_svg(&tension, last),
            );
        }
        let mut text = render_bars(&tension, last);
        for one in &tension {
            text.push_str(&format!("\n{} [{}]\n", one.target, one.level.name()));
            for press in &one.presses {
                text.push_str(&format!(
                    "  ch{:02} +{}  {}  ({})\n",
                    press.chapter, press.weight, press.text, press.at
                ));
            }
        }
        let told: Vec<_> = tension
            .iter()
            .map(|one| {
                let curve: Vec<u64> = (1..=last).map(|chapter| one.at(chapter)).collect();
                json!({"target": one.target, "level": one.level.name(), "threshold": one.threshold, "curve": curve, "gives_way": one.breaks(), "presses": one.presses})
            })
            .collect();
        Ok(
            Answer::new(json!({"last": last, "tension": told}), text).say(in_language(
                project.contract.language,
                format!("{} under pressure", count(tension.len(), "fact")),
                format!("受压的事实 {} 条", tension.len()),
            )),
        )
    }
}
