//! The `commit` command: changes several files atomically.

use std::collections::BTreeSet;
use std::path::PathBuf;

use clap::Args;
use quipu_contract::ProjectPath;
use quipu_protocol::{Project, may_expect, may_read_whole, parse_change};
use quipu_store::{OpKind, RecordOp, Validated};
use serde_json::json;

use super::{memory_check, receipt};
use crate::answer::{Answer, Failure};
use crate::session::Session;
use crate::table::Operate;

#[derive(Debug, Args)]
pub struct Commit {
    /// Read the change from a JSON file: {"why": …, "key": …, "ops": [{"op": "append", "path": …,
    /// "text": …}, …]}; `-` reads stdin
    #[arg(long, value_name = "CHANGE.json", default_value = "-")]
    file: PathBuf,
    /// Write even if most of the text disappears, it looks like a placeholder, or a new name is
    /// close to one in the contract
    #[arg(long)]
    force: bool,
    /// Check the change and show what would be recorded; write nothing
    #[arg(long)]
    dry_run: bool,
}

impl Operate for Commit {
    const NAME: &'static str = "commit";
    const ABOUT: &'static str = "Change several files at once: all of them or none";

    fn operate(self, session: &Session) -> Result<Answer, Failure> {
        let (name, bytes) = if self.file.as_os_str() == "-" {
            ("stdin".to_owned(), session.load_stdin()?)
        } else {
            (
                self.file.display().to_string(),
                session.load_file(&self.file)?,
            )
        };
        let text = String::from_utf8(bytes)
            .map_err(|_| Failure::usage(format!("`{name}` is not text"), ""))?;
        let mut change = parse_change(&name, &text, &session.actor)?;
        (change.force, change.new_name, change.lease) =
            (self.force, self.force, session.lease.clone());
        let project = session.project()?;
        may_expect(&project, &change)?;
        let named: BTreeSet<String> = change.ops.iter().map(|op| op.path().to_string()).collect();
        let judged = project.validate(change)?;
        if self.dry_run {
            return Ok(preview(session, &project, &judged, named));
        }
        let receipt = judged.publish()?;
        Ok(memory_check::with_notes(
            receipt::answer(project.contract.language, &receipt),
            &project,
            &session.actor,
            &receipt,
        ))
    }
}

/// Shows the records of a dry run. A version, a length or the kind of operation would confirm
/// guesses about a file that the actor does not read, so for such a file only the request itself is
/// repeated.
fn preview(
    session: &Session,
    project: &Project,
    judged: &Validated<'_>,
    mut named: BTreeSet<String>,
) -> Answer {
    let reads = |op: &RecordOp| {
        ProjectPath::parse(&op.path)
            .is_ok_and(|path| may_read_whole(project, &session.actor, &path).is_ok())
    };
    let (mut would, mut text) = (Vec::new(), String::new());
    for op in judged.records().iter().flat_map(|record| &record.ops) {
        if reads(op) {
            text.push_str(&format!(
                "would {} {} → {}\n",
                verb(op.op),
                op.path,
                op.version
            ));
            would.push(json!(op));
        } else if named.remove(&op.path) {
            let act = if op.op == OpKind::Remove {
                "remove"
            } else {
                "write"
            };
            text.push_str(&format!("would {act} {}\n", op.path));
            would.push(json!({"op": act, "path": op.path}));
        }
    }
    Answer::new(json!({"would": would}), text)
}

fn verb(op: OpKind) -> &'static str {
    match op {
        OpKind::Write => "write",
        OpKind::Append => "append to",
        OpKind::Remove => "remove",
        OpKind::Keep => "keep a conflict copy of",
    }
}
