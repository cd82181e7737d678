//! What would change, and changing it.

use std::path::Path;

use quipu_contract::{Contract, ProjectPath};
use serde_json::Value;

use super::hosts::{Fillings, Host, HostFile, Kind};
use super::{block, keys};
use crate::answer::{Failure, exit};

/// A file of ours says so.
const OURS: &str = "Written by `quipu integrate`";

/// One file, before and after; none where there is no file.
#[derive(Debug)]
pub struct Planned {
    pub path: String,
    pub before: Option<String>,
    pub after: Option<String>,
}

impl Planned {
    pub fn act(&self) -> &'static str {
        match (&self.before, &self.after) {
            (before, after) if before == after => "same",
            (None, _) => "created",
            (_, None) => "removed",
            _ => "changed",
        }
    }
}

/// What a host's files would become.
pub fn plan(root: &Path, contract: &Contract, host: &Host, remove: bool) -> Result<Vec<Planned>, Failure> {
    host.files.iter().map(|file| plan_file(root, contract, host, file, remove)).collect()
}

fn plan_file(root: &Path, contract: &Contract, host: &Host, file: &HostFile, remove: bool) -> Result<Planned, Failure> {
    let path = ProjectPath::parse(&file.path)?;
    if let Some(rule) = contract.rule(&path) {
        let what = format!("`{path}` is under the contract, so it is not for integrate to write");
        let rule = Some((rule.place.clone(), format!("path = \"{}\"", rule.path)));
        return Err(Failure { rule, ..Failure::new(exit::REFUSED, what, "quipu contract show") });
    }
    let before = match std::fs::read_to_string(root.join(&file.path)) {
        Ok(text) => Some(text),
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => None,
        Err(error) => return Err(Failure::new(exit::IO, format!("cannot read `{path}`: {error}"), "")),
    };
    let content = file.content(&host.name, &Fillings::of(contract));
    let text = before.clone().unwrap_or_default();
    let bad = |what: String| Failure::new(exit::REFUSED, format!("`{path}`: {what}"), "mend the file by hand; nothing was written");
    let after = match (file.kind, remove) {
        (Kind::Whole, _) if before.as_ref().is_some_and(|text| !text.contains(OURS)) => {
            return Err(bad("it is there already and not ours".into()));
        }
        (Kind::Whole, false) => Some(content),
        (_, true) if before.is_none() => None,
        (Kind::Whole, true) => None,
        (Kind::Block, false) => Some(block::put(&text, file.mark, &content).map_err(bad)?),
        (Kind::Block, true) => Some(block::take(&text, file.mark).map_err(bad)?),
        (Kind::Json, _) => {
            let ours: Value = serde_json::from_str(&content).expect("the table is checked by a test");
            let edited = if remove { keys::part(&text, &ours) } else { keys::join(&text, &ours) };
            Some(edited.map_err(|e| bad(format!("line {}: {}", e.line, e.what)))?)
        }
    };
    // What held nothing but ours was ours.
    let after = after.filter(|text| !remove || !["", "{}"].contains(&text.trim()));
    Ok(Planned { path: file.path.clone(), before, after })
}

/// Makes it so. A folder that is left empty goes as well.
pub fn apply(root: &Path, planned: &[Planned]) -> Result<(), Failure> {
    for file in planned.iter().filter(|f| f.before != f.after) {
        let path = root.join(&file.path);
        let failed = |error: std::io::Error| Failure::new(exit::IO, format!("cannot write `{}`: {error}", file.path), "");
        match &file.after {
            Some(text) => {
                path.parent().map_or(Ok(()), std::fs::create_dir_all).map_err(failed)?;
                std::fs::write(&path, text).map_err(failed)?;
            }
            None => {
                std::fs::remove_file(&path).map_err(failed)?;
                for folder in path.ancestors().skip(1).take_while(|folder| *folder != root) {
                    if std::fs::remove_dir(folder).is_err() {
                        break;
                    }
                }
            }
        }
    }
    Ok(())
}
