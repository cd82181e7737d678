//! The `history prune` command: deletes old versions from the journal.

use clap::Args;
use quipu_contract::{Keep, Privilege};
use quipu_store::Pruned;
use serde_json::json;

use crate::answer::{Answer, Failure, count};
use crate::session::Session;
use crate::table::Operate;

#[derive(Debug, Args)]
pub struct HistoryPrune {
    /// Show what would be deleted; delete nothing
    #[arg(long)]
    dry_run: bool,
    /// Keep this number of versions of each file (50), or all versions of this period ("180 days"),
    /// instead of the value in quipu.toml
    #[arg(long, value_name = "KEEP")]
    keep: Option<String>,
}

impl Operate for HistoryPrune {
    const NAME: &'static str = "history prune";
    const ABOUT: &'static str =
        "Delete old versions from the journal, as `[history] keep` says; people only";

    fn operate(self, session: &Session) -> Result<Answer, Failure> {
        session.actor.may(Privilege::DropHistory)?;
        let project = session.project()?;
        let keep = match &self.keep {
            Some(text) => Some(text.parse::<Keep>().map_err(|error| {
                Failure::usage(
                    format!("`--keep {text}`: {error}"),
                    "quipu history prune --dry-run --keep 50",
                )
            })?),
            None => project.contract.history_keep,
        };
        let Some(keep) = keep else {
            let what = "no retention is set: the journal keeps every version";
            return Err(Failure::usage(
                what,
                "quipu history prune --dry-run --keep 50     (or `[history] keep = 50` in quipu.toml)",
            ));
        };
        let store = &project.store;
        let pruned = if self.dry_run {
            store.prunable(&session.actor, keep)?
        } else {
            store.prune(&session.actor, keep)?
        };
        let json = json!({"keep": keep, "dry_run": self.dry_run, "pruned": &pruned});
        Ok(Answer::new(json, told(&pruned, keep, self.dry_run)))
    }
}

fn told(pruned: &Pruned, keep: Keep, dry_run: bool) -> String {
    let number = |n: u64, of| count(usize::try_from(n).unwrap_or(usize::MAX), of);
    if pruned.texts == 0 {
        return format!("nothing to delete (keep {keep})\n");
    }
    let mut text = String::new();
    for (path, file) in &pruned.files {
        text.push_str(&format!(
            "{path}: {}, {}, up to @{}\n",
            number(file.texts, "text"),
            number(file.bytes, "byte"),
            file.up_to
        ));
    }
    let verb = if dry_run { "would delete" } else { "dropped" };
    let (texts, bytes) = (number(pruned.texts, "text"), number(pruned.bytes, "byte"));
    text.push_str(&format!(
        "{verb} {texts} of {}, {bytes} (keep {keep})\n",
        number(pruned.files.len() as u64, "file")
    ));
    text
}
