//! The `commit` command: changes several files atomically.

use std::path::PathBuf;

use clap::Args;
use quipu_protocol::parse_change;

use super::receipt;
use crate::answer::{Answer, Failure};
use crate::session::Session;
use crate::table::Operate;

#[derive(Debug, Args)]
pub struct Commit {
    /// A JSON file: {"why": …, "key": …, "ops": [{"op": "append", "path": …, "text": …}, …]}; `-`:
    /// stdin
    #[arg(long, value_name = "CHANGE.json", default_value = "-")]
    file: PathBuf,
    /// Write even if most of the text disappears, it looks like a placeholder, or a new name is
    /// close to one of the contract
    #[arg(long)]
    force: bool,
    /// Judge it, show what would be recorded, write nothing
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
        let judged = project.judge(change)?;
        if self.dry_run {
            let ops: Vec<_> = judged.records().iter().flat_map(|r| &r.ops).collect();
            let text = ops
                .iter()
                .map(|o| format!("would {} {} → {}\n", verb(o.op), o.path, o.version))
                .collect::<String>();
            return Ok(Answer::new(serde_json::json!({"would": ops}), text));
        }
        Ok(receipt::answer(&judged.publish()?))
    }
}

fn verb(op: quipu_store::OpKind) -> &'static str {
    match op {
        quipu_store::OpKind::Write => "write",
        quipu_store::OpKind::Append => "append to",
        quipu_store::OpKind::Remove => "remove",
        quipu_store::OpKind::Keep => "keep aside",
    }
}
