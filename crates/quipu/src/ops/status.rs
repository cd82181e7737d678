//! The `status` command: shows files, external edits and violations of the contract.

use std::collections::BTreeMap;

use clap::Args;
use quipu_contract::in_one_line;
use quipu_protocol::ReadScope;
use quipu_protocol::flow::{Memory, flow_now};
use quipu_store::{Flag, Patience, Store, held_notice, mend_losses};
use serde_json::{Value, json};

use crate::answer::{Answer, Failure, count, exit};
use crate::conflict_notice::{kept_at, told_in_status};
use crate::flow_text::{render_flow, render_plans};
use crate::session::Session;
use crate::table::Operate;

#[derive(Debug, Args)]
pub struct Status {
    /// List every file with its class and version
    #[arg(long)]
    files: bool,
}

/// Maximum number of free files listed; the rest is counted.
const FREE_SHOWN: usize = 10;

impl Operate for Status {
    const NAME: &'static str = "status";
    const ABOUT: &'static str = "Show files, external edits and what breaks the contract";

    fn operate(self, session: &Session) -> Result<Answer, Failure> {
        let project = session.project()?;
        let scope = ReadScope::of(&project, &session.actor);
        let mut survey = project.store.survey()?;
        project.store.flag_invalid(&mut survey)?;
        // A command of another process may have replaced an edit and stored its text in the
        // journal. In a working copy the conflict copies show it, and can be deleted.
        if project.store.order().is_none() && !project.store.is_read_only() {
            let listed = project.store.set_aside_since_written()?;
            survey.kept.extend(
                listed
                    .into_iter()
                    .filter(|kept| !survey.kept.contains(kept))
                    .collect::<Vec<_>>(),
            );
        }
        scope.narrow(&mut survey);
        let mut leases = if project.store.is_read_only() {
            Vec::new()
        } else {
            project.store.leases()?
        };
        leases.retain(|lease| scope.names_all(&lease.paths));
        let names = project
            .contract
            .profiles
            .iter()
            .map(|p| p.name.as_str())
            .collect::<Vec<_>>()
            .join(", ");
        let about: Vec<&str> = [names.as_str(), project.contract.language.as_str()]
            .into_iter()
            .filter(|n| !n.is_empty())
            .collect();
        let mut text = format!(
            "{}  ({})\n",
            project.store.root().display(),
            about.join(", ")
        );

        let shared = shared_state(&project.store)?;
        if let Some((line, _)) = &shared {
            text.push_str(line);
        }

        let mut classes: BTreeMap<&'static str, usize> = BTreeMap::new();
        for file in &survey.files {
            *classes.entry(file.class.as_str()).or_default() += 1;
        }
        let counted = classes
            .iter()
            .map(|(class, count)| format!("{count} {class}"))
            .collect::<Vec<_>>()
            .join(", ");
        text.push_str(&format!(
            "{} under the contract: {counted}\n",
            count(survey.files.len(), "file")
        ));
        for adopted in &survey.adopted {
            text.push_str(&format!("  adopted  {} ({})\n", adopted.path, adopted.how));
        }
        for file in survey.flagged() {
            let flag = file.flag.as_ref().expect("flagged files have a flag");
            let line = flag.line.map(|l| format!(", line {l}")).unwrap_or_default();
            text.push_str(&format!(
                "  flagged  {} {}{line}\n           help  {}\n",
                file.path,
                flag.what,
                file.remedy()
            ));
        }
        let losses: Vec<&str> = survey
            .flagged()
            .filter(|f| f.flag.as_ref().is_some_and(Flag::is_loss))
            .map(|f| f.path.as_str())
            .collect();
        if losses.len() > 1 {
            text.push_str(&format!(
                "  all {} state files at once\n           help  {}\n",
                losses.len(),
                mend_losses(&losses)
            ));
        }
        for path in &survey.waiting {
            text.push_str(&format!(
                "  waiting  {path}: edited here, and not yet accepted by the shared store\n"
            ));
        }
        for kept in &survey.kept {
            let (path, seq) = (&kept.path, kept.seq);
            text.push_str(&format!(
                "  aside    {path}: an edit by hand had to give way, and is kept in @{seq}\n"
            ));
            text.push_str(&format!("           help  quipu show {}\n", kept_at(kept)));
        }
        let mut conflicts = if project.store.order().is_some() {
            project.store.conflicts()?
        } else {
            Vec::new()
        };
        conflicts.retain(|conflict| scope.names_all(conflict.path.as_slice()));
        conflicts
            .iter()
            .for_each(|conflict| text.push_str(&told_in_status(conflict)));
        let held = if project.store.order().is_some() && scope.is_everything() {
            project.store.held_back()?
        } else {
            Vec::new()
        };
        held.iter().for_each(|(seq, why)| {
            text.push_str(&format!("  held     {}\n", held_notice(*seq, why)))
        });
        for (path, why) in &survey.strange {
            text.push_str(&format!(
                "  strange  {}: {}\n",
                in_one_line(path),
                in_one_line(why)
            ));
        }
        for lease in &leases {
            text.push_str(&format!(
                "  leased   {} by {} until {}\n",
                lease.paths.join(", "),
                lease.holder,
                lease.until
            ));
        }
        if self.files {
            for file in &survey.files {
                let version = file
                    .version
                    .as_ref()
                    .map(ToString::to_string)
                    .unwrap_or_default();
                text.push_str(&format!(
                    "  {:<9} {:<16} @{:<5} {}\n",
                    file.class.as_str(),
                    version,
                    file.seq,
                    file.path
                ));
            }
        }
        if !survey.free.is_empty() {
            text.push_str(&format!("{} outside the contract:", survey.free.len()));
            for path in survey.free.iter().take(FREE_SHOWN) {
                text.push_str(&format!(" {}", in_one_line(path)));
            }
            if survey.free.len() > FREE_SHOWN {
                text.push_str(&format!(" … and {} more", survey.free.len() - FREE_SHOWN));
            }
            text.push('\n');
        }
        if !self.files {
            survey.files.retain(|file| file.flag.is_some());
        }
        let mut flow_json = serde_json::Value::Null;
        if !project.contract.steps.is_empty() && scope.is_everything() {
            let (flow, _) = flow_now(&project, &Memory::default())?;
            text.push_str(&render_plans(&project, &flow)?);
            text.push_str(&render_flow(&project, &flow));
            flow_json = json!(flow.statuses);
        }
        let mut answer = Answer::new(
            json!({"root": project.store.root().display().to_string(), "classes": classes, "survey": survey, "leases": leases.iter().map(super::lease::described).collect::<Vec<_>>(), "flow": flow_json}),
            text,
        );
        if let Some((_, state)) = shared {
            answer.json["shared"] = state;
            if !conflicts.is_empty() {
                answer.json["conflicts"] = json!(conflicts);
            }
            if !held.is_empty() {
                answer.json["held_back"] = json!(
                    held.iter()
                        .map(|(seq, why)| json!({"seq": seq, "why": why}))
                        .collect::<Vec<_>>()
                );
            }
        }
        if let Some(notice) = project.store.clock_notice()? {
            answer = answer.say(notice);
        }
        if project.began_anew {
            answer = answer.say("there was no journal: what is on disk is its beginning");
        }
        if survey.flagged().next().is_some() {
            answer.exit = exit::NO;
        }
        Ok(answer)
    }
}

/// Reports the position of a working copy and of its shared store. A store that does not answer at
/// once is skipped, because all other data is local.
fn shared_state(store: &Store) -> Result<Option<(String, Value)>, Failure> {
    let Some(order) = store.order() else {
        return Ok(None);
    };
    let (about, here) = (order.describe(), store.pulse()?);
    let newest = order.newest(Patience::Glance).ok();
    let state = match newest {
        Some(newest) if newest <= here => ", the newest".to_owned(),
        Some(newest) => format!(", {} behind: quipu sync", newest - here),
        None if order.offline().is_some() => {
            "; the shared store is not contacted, so there may be newer ones".to_owned()
        }
        None => "; the shared store does not answer, so there may be newer ones".to_owned(),
    };
    let line = format!(
        "revision {here} of `{}` at {}{state}\n",
        about.project, about.address
    );
    Ok(Some((
        line,
        json!({"address": about.address, "project": about.project, "here": here, "newest": newest}),
    )))
}
