//! Plans the changes to a host's files, and applies them.

use std::path::Path;

use quipu_contract::{Contract, ProjectPath};
use quipu_store::OpenFolder;
use serde_json::Value;

use super::hosts::{Fillings, Host, HostFile, Kind};
use super::{block, keys};
use crate::answer::{Failure, exit};

/// Marks a file that Quipu wrote completely.
const OURS: &str = "Written by `quipu integrate`";

/// One file, before and after; `None` if the file does not exist.
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

/// Computes the new state of a host's files.
pub fn plan(
    root: &Path,
    contract: &Contract,
    host: &Host,
    remove: bool,
) -> Result<Vec<Planned>, Failure> {
    host.files
        .iter()
        .map(|file| plan_file(root, contract, host, file, remove))
        .collect()
}

fn plan_file(
    root: &Path,
    contract: &Contract,
    host: &Host,
    file: &HostFile,
    remove: bool,
) -> Result<Planned, Failure> {
    let path = ProjectPath::parse(&file.path)?;
    if let Some(rule) = contract.rule(&path) {
        let what = format!(
            "`{path}` is under the contract; `quipu integrate` does not write such \
            files"
        );
        let rule = Some((rule.place.clone(), format!("path = \"{}\"", rule.path)));
        return Err(Failure {
            rule,
            ..Failure::new(exit::REFUSED, what, "quipu contract show")
        });
    }
    let before = read_text(&open(root)?, &file.path)?;
    let content = file.content(&host.name, &Fillings::of(contract));
    let text = before.clone().unwrap_or_default();
    let bad = |what: String| {
        Failure::new(
            exit::REFUSED,
            format!("`{path}`: {what}"),
            "fix the file in an editor; nothing was written",
        )
    };
    let after = match (file.kind, remove) {
        (Kind::Whole, _) if before.as_ref().is_some_and(|text| !text.contains(OURS)) => {
            return Err(bad("it already exists and was not written by Quipu".into()));
        }
        (Kind::Whole, false) => Some(content),
        (_, true) if before.is_none() => None,
        (Kind::Whole, true) => None,
        (Kind::Block, false) => Some(block::put(&text, file.mark, &content).map_err(bad)?),
        (Kind::Block, true) => Some(block::take(&text, file.mark).map_err(bad)?),
        (Kind::Json, _) => {
            let ours: Value =
                serde_json::from_str(&content).expect("the table is checked by a test");
            let edited = if remove {
                keys::part(&text, &ours)
            } else {
                keys::join(&text, &ours)
            };
            Some(edited.map_err(|e| bad(format!("line {}: {}", e.line, e.what)))?)
        }
    };
    // A file that is empty after the removal was created by Quipu.
    let after = after.filter(|text| !remove || !["", "{}"].contains(&text.trim()));
    Ok(Planned {
        path: file.path.clone(),
        before,
        after,
    })
}

/// Opens the project's folder. No path below it is resolved through a link.
pub fn open(root: &Path) -> Result<OpenFolder, Failure> {
    let failed = |error: std::io::Error| {
        Failure::new(
            exit::IO,
            format!("cannot open `{}`: {error}", root.display()),
            "",
        )
    };
    let opened = OpenFolder::locate(root)
        .and_then(|real| OpenFolder::open(&real))
        .map_err(failed)?;
    opened.ok_or_else(|| {
        Failure::new(
            exit::NOT_FOUND,
            format!("`{}` does not exist", root.display()),
            "",
        )
    })
}

/// Returns the text of a file; `None` if it does not exist.
pub fn read_text(folder: &OpenFolder, path: &str) -> Result<Option<String>, Failure> {
    let unread = |error| unreached("read", path, error);
    let Some(bytes) = folder.read(path).map_err(unread)? else {
        return Ok(None);
    };
    let text = String::from_utf8(bytes).map_err(|_| {
        Failure::new(
            exit::IO,
            format!("cannot read `{path}`: it is not valid UTF-8"),
            "convert it to UTF-8, or move it away",
        )
    })?;
    Ok(Some(text))
}

/// Explains why a file was not read or written. Links are not followed, because a foreign project
/// may contain some.
pub fn unreached(act: &str, path: &str, error: std::io::Error) -> Failure {
    use std::io::ErrorKind::{InvalidInput, NotADirectory};
    let (code, remedy) = match error.kind() {
        InvalidInput | NotADirectory => (
            exit::REFUSED,
            "replace it with a regular file in regular folders: links are not followed",
        ),
        _ => (exit::IO, ""),
    };
    Failure::new(code, format!("cannot {act} `{path}`: {error}"), remedy)
}

/// Writes the planned files. Folders that become empty are removed.
pub fn apply(root: &Path, planned: &[Planned]) -> Result<(), Failure> {
    let folder = open(root)?;
    for file in planned.iter().filter(|f| f.before != f.after) {
        match &file.after {
            Some(text) => folder
                .replace(&file.path, text.as_bytes())
                .map_err(|error| unreached("write", &file.path, error))?,
            None => {
                folder
                    .remove(&file.path)
                    .map_err(|error| unreached("remove", &file.path, error))?;
                let mut above = file.path.as_str();
                while let Some((parent, _)) = above.rsplit_once('/') {
                    if folder.remove_folder(parent).is_err() {
                        break;
                    }
                    above = parent;
                }
            }
        }
    }
    Ok(())
}
