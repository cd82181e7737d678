//! The `status` command: shows files, external edits and violations of the contract.

use std::collections::BTreeMap;

use clap::Args;
use quipu_contract::{Actor, Language, in_one_line};
use quipu_protocol::flow::{FlowCache, flow_now};
use quipu_protocol::{Project, ReadScope, conflicts_in_progress, refresh_index};
use quipu_store::{
    Conflict, FileStatus, Flag, Lease, StatusScan, Store, WaitPolicy, held_notice, repair_losses,
};
use serde_json::{Value, json};

use crate::answer::{Answer, Failure, count, exit, in_language};
use crate::conflict_notice::{kept_at, render_in_status};
use crate::flow_text::{render_flow, render_plans};
use crate::integrate::{Loss, losses};
use crate::ops::receipt::{how_in, remedy};
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
/// Maximum number of other files listed per kind; the rest is counted. `--files` lists all.
const SHOWN: usize = 20;

impl Operate for Status {
    const NAME: &'static str = "status";
    const ABOUT: &'static str = "Show files, external edits and what breaks the contract";

    fn operate(self, session: &Session) -> Result<Answer, Failure> {
        let project = session.project()?;
        let mut report = Report::collect(&project, &session.actor)?;
        let mut text = report.render_head(&project);
        for loss in &report.losses {
            let Loss { what, help } = loss;
            text.push_str(&format!("  flagged  {what}\n           help  {help}\n"));
        }
        let language = project.contract.language;
        report.render_scan(&mut text, self.files, language);
        report.render_shared(&mut text);
        report.render_rest(&mut text, self.files, language);
        if !self.files {
            report.scan.files.retain(|file| file.flag.is_some());
        }
        let mut flow_json = Value::Null;
        if !project.contract.steps.is_empty() && report.is_everything {
            let (flow, _) = flow_now(&project, &FlowCache::default())?;
            for conflict in conflicts_in_progress(&project, &session.actor)? {
                let label = in_language(language, "contradiction", "矛盾");
                text.push_str(&format!(
                    "  {label}  {}\n           help  {}\n",
                    conflict.fault,
                    remedy(&conflict, language)
                ));
            }
            text.push_str(&render_plans(&project, &flow)?);
            text.push_str(&render_flow(&project, &flow));
            flow_json = json!(flow.statuses);
        }
        let mut answer = Answer::new(report.json(&project, flow_json), text);
        if let Some(notice) = project.store.clock_notice()? {
            answer = answer.say(notice);
        }
        if project.began_anew {
            answer = answer.say(in_language(
                language,
                "there was no journal: a new one starts with the files on disk",
                "原先没有日志：新日志从磁盘上的文件开始",
            ));
        }
        if report.scan.flagged().next().is_some() || !report.losses.is_empty() {
            answer.exit = exit::NO;
        }
        Ok(answer)
    }
}

/// The content of the report, narrowed to what the caller may read.
struct Report {
    scan: StatusScan,
    classes: BTreeMap<&'static str, usize>,
    leases: Vec<Lease>,
    /// The position of a working copy, as a line and as JSON.
    shared: Option<(String, Value)>,
    conflicts: Vec<Conflict>,
    /// Commits that the shared store has, and that this copy cannot apply.
    held: Vec<(u64, String)>,
    /// Settings of agent hosts, and the journal, that are missing.
    losses: Vec<Loss>,
    is_everything: bool,
}

impl Report {
    fn collect(project: &Project, actor: &Actor) -> Result<Report, Failure> {
        let store = &project.store;
        let scope = ReadScope::of(project, actor);
        let is_shared = store.commit_log().is_some();
        let mut scan = store.scan_status()?;
        store.flag_invalid(&mut scan)?;
        // The scan has reported external edits, so that none is repaired without a word.
        if scan.flagged().next().is_none() {
            refresh_index(project)?;
        }
        // A command of another process may have replaced an edit and stored its text in the
        // journal. In a working copy the conflict copies show it, and can be deleted.
        if !is_shared && !store.is_read_only() {
            let mut listed = store.edited_since_written()?;
            listed.retain(|kept| !scan.kept.contains(kept));
            scan.kept.extend(listed);
        }
        scope.narrow(&mut scan);
        let (mut leases, mut conflicts, mut held) = (Vec::new(), Vec::new(), Vec::new());
        if !store.is_read_only() {
            leases = store.leases()?;
        }
        leases.retain(|lease| scope.names_all(&lease.paths));
        let shared = shared_state(store)?;
        if is_shared {
            conflicts = store.conflicts()?;
        }
        conflicts.retain(|conflict| scope.names_all(conflict.path.as_slice()));
        if is_shared && scope.is_everything() {
            held = store.held_back()?;
        }
        let mut classes: BTreeMap<&'static str, usize> = BTreeMap::new();
        for file in &scan.files {
            *classes.entry(file.class.as_str()).or_default() += 1;
        }
        Ok(Report {
            scan,
            classes,
            leases,
            shared,
            conflicts,
            held,
            losses: losses(project),
            is_everything: scope.is_everything(),
        })
    }

    fn render_head(&self, project: &Project) -> String {
        let names: Vec<&str> = project
            .contract
            .profiles
            .iter()
            .map(|p| p.name.as_str())
            .collect();
        let about = [&names.join(", "), project.contract.language.as_str()];
        let about: Vec<&str> = about.into_iter().filter(|n| !n.is_empty()).collect();
        let root = project.store.root().display();
        let mut text = format!("{root}  ({})\n", about.join(", "));
        if let Some((line, _)) = &self.shared {
            text.push_str(line);
        }
        let classes = self.classes.iter();
        let counted: Vec<String> = classes
            .map(|(class, count)| format!("{count} {class}"))
            .collect();
        let (files, counted) = (self.scan.files.len(), counted.join(", "));
        text.push_str(&match project.contract.language {
            Language::En => format!("{} under the contract: {counted}\n", count(files, "file")),
            Language::Zh => format!("契约之内有 {files} 个文件：{counted}\n"),
        });
        text
    }

    /// Adopted and flagged edits, and edits that conflicted with a commit.
    fn render_scan(&self, text: &mut String, with_files: bool, language: Language) {
        let scan = &self.scan;
        let zh = language == Language::Zh;
        let most = if with_files { usize::MAX } else { SHOWN };
        for adopted in scan.adopted.iter().take(most) {
            let label = in_language(language, "adopted", "已收入");
            let how = how_in(language, adopted.how);
            text.push_str(&format!("  {label}  {} ({how})\n", adopted.path));
        }
        text.push_str(&render_more(scan.adopted.len(), most));
        let flagged: Vec<&FileStatus> = scan.flagged().collect();
        for file in flagged.iter().take(most) {
            let flag = file.flag.as_ref().expect("flagged files have a flag");
            let line = flag.line.map(|l| match zh {
                true => format!("，第 {l} 行"),
                false => format!(", line {l}"),
            });
            let label = in_language(language, "flagged", "违约");
            text.push_str(&format!(
                "  {label}  {} {}{}\n           help  {}\n",
                file.path,
                flag.what,
                line.unwrap_or_default(),
                file.remedy()
            ));
        }
        text.push_str(&render_more(flagged.len(), most));
        let losses = flagged
            .iter()
            .filter(|f| f.flag.as_ref().is_some_and(Flag::is_loss));
        let losses: Vec<&str> = losses.map(|f| f.path.as_str()).collect();
        if losses.len() > 1 {
            text.push_str(&format!(
                "  all {} state files at once\n           help  {}\n",
                losses.len(),
                repair_losses(&losses)
            ));
        }
        for path in scan.waiting.iter().take(most) {
            text.push_str(&format!(
                "  waiting  {path}: edited here, and not yet accepted by the shared store\n"
            ));
        }
        text.push_str(&render_more(scan.waiting.len(), most));
        for kept in scan.kept.iter().take(most) {
            let (path, seq) = (&kept.path, kept.seq);
            text.push_str(&format!(
                "  conflict {path}: an external edit conflicted with commit @{seq}, which keeps a \
                 copy of it\n           help  quipu show {}\n",
                kept_at(kept)
            ));
        }
        text.push_str(&render_more(scan.kept.len(), most));
    }

    fn render_shared(&self, text: &mut String) {
        for conflict in &self.conflicts {
            text.push_str(&render_in_status(conflict));
        }
        for (seq, why) in &self.held {
            text.push_str(&format!("  held     {}\n", held_notice(*seq, why)));
        }
    }

    /// Files that cannot be read, leases, and the lists of files.
    fn render_rest(&self, text: &mut String, with_files: bool, language: Language) {
        let most = if with_files { usize::MAX } else { SHOWN };
        for (path, why) in self.scan.strange.iter().take(most) {
            let (path, why) = (in_one_line(path), in_one_line(why));
            text.push_str(&format!("  strange  {path}: {why}\n"));
        }
        text.push_str(&render_more(self.scan.strange.len(), most));
        for lease in &self.leases {
            let paths = lease.paths.join(", ");
            let (holder, until) = (&lease.holder, &lease.until);
            text.push_str(&in_language(
                language,
                format!("  leased   {paths} by {holder} until {until}\n"),
                format!("  租用     {paths}，由 {holder}，至 {until}\n"),
            ));
        }
        for file in self.scan.files.iter().filter(|_| with_files) {
            let version = file.version.as_ref().map(ToString::to_string);
            text.push_str(&format!(
                "  {:<9} {:<16} @{:<5} {}\n",
                file.class.as_str(),
                version.unwrap_or_default(),
                file.seq,
                file.path
            ));
        }
        let free = &self.scan.free;
        if !free.is_empty() {
            text.push_str(&in_language(
                language,
                format!("{} outside the contract:", free.len()),
                format!("契约之外有 {} 个：", free.len()),
            ));
            for path in free.iter().take(FREE_SHOWN) {
                text.push_str(&format!(" {}", in_one_line(path)));
            }
            if free.len() > FREE_SHOWN {
                let more = free.len() - FREE_SHOWN;
                text.push_str(&in_language(
                    language,
                    format!(" … and {more} more"),
                    format!(" ……另有 {more} 个"),
                ));
            }
            text.push('\n');
        }
    }

    fn json(&self, project: &Project, flow: Value) -> Value {
        let leases: Vec<_> = self.leases.iter().map(super::lease::described).collect();
        let mut json = json!({
            "root": project.store.root().display().to_string(),
            "classes": self.classes,
            "scan": self.scan,
            "leases": leases,
            "flow": flow,
        });
        if !self.losses.is_empty() {
            json["losses"] = json!(self.losses);
        }
        if let Some((_, state)) = &self.shared {
            json["shared"] = state.clone();
            if !self.conflicts.is_empty() {
                json["conflicts"] = json!(self.conflicts);
            }
            if !self.held.is_empty() {
                let held = self.held.iter();
                let held: Vec<Value> = held
                    .map(|(seq, why)| json!({"seq": seq, "why": why}))
                    .collect();
                json["held_back"] = json!(held);
            }
        }
        json
    }
}

/// Counts the files that a list leaves out, and names the command that lists them.
fn render_more(all: usize, most: usize) -> String {
    match all.saturating_sub(most) {
        0 => String::new(),
        more => format!("           … and {more} more: quipu status --files\n"),
    }
}

/// Reports the position of a working copy and of its shared store. A store that does not answer at
/// once is skipped, because all other data is local.
fn shared_state(store: &Store) -> Result<Option<(String, Value)>, Failure> {
    let Some(order) = store.commit_log() else {
        return Ok(None);
    };
    let (about, here) = (order.describe(), store.pulse()?);
    let newest = order.newest(WaitPolicy::NoWait).ok();
    let state = match newest {
        Some(newest) if newest <= here => ", the newest".to_owned(),
        Some(newest) => format!(", {} behind: quipu sync", newest - here),
        None if order.offline().is_some() => {
            "; the shared store was not contacted, so there may be newer ones".to_owned()
        }
        None => "; the shared store did not respond, so there may be newer ones".to_owned(),
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
