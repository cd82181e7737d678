//! Removes Quipu from a project: the settings of agent hosts, the merge driver, `.quipu` and
//! `quipu.toml`. Memory files are ordinary files and stay as they are.
//!
//! `quipu.toml` is removed last, so that an interrupted removal can be run again.

mod tar;

use std::path::{Path, PathBuf};

use quipu_contract::Contract;
use quipu_protocol::{Project, UntrustedRepository, revoke_trust};
use quipu_store::Options;
use serde::Serialize;

use crate::answer::{Failure, count, exit};
use crate::integrate::{Planned, Record, apply, hosts, open, plan};
use crate::ops::git::{DRIVER, plan_without_attributes};

const CONTRACT: &str = "quipu.toml";
const OWN: &str = ".quipu";
/// Files below `.quipu` that are rebuilt or empty.
const CACHES: [&str; 4] = ["index.db", "index.db-shm", "index.db-wal", "watermarks"];

/// The files that a removal deletes and changes.
#[derive(Debug, Serialize)]
pub struct Removal {
    /// Files of hosts and git that change, with what happens to each.
    pub settings: Vec<(String, &'static str)>,
    /// Hosts whose files are left, with the reason.
    pub left: Vec<String>,
    /// The number of records in the journal. Nothing else has them.
    pub records: u64,
    /// Files below `.quipu`, and `quipu.toml`, that cannot be rebuilt.
    pub unique: Vec<String>,
    /// The bytes of these files.
    pub bytes: u64,
    /// Whether the history is also in a shared store.
    pub is_shared: bool,
}

/// Plans the removal, and brings all files up to date with the journal. Refuses while a lease is
/// held, because its holder works in this project.
pub fn plan_removal(root: &Path) -> Result<Removal, Failure> {
    let options = Options {
        offline: true,
        ..Options::default()
    };
    let project = Project::open(root, options)?;
    if let Some(lease) = project.store.leases()?.first() {
        let what = format!("{} holds a lease until {}", lease.holder, lease.until);
        let help = "quipu lease list; then wait, or: quipu lease release ID:FENCE";
        return Err(Failure::new(exit::REFUSED, what, help));
    }
    let (planned, left) = plan_settings(root, &project.contract)?;
    let mut unique = vec![CONTRACT.to_owned()];
    list_unique(root, OWN, &mut unique).map_err(|error| unread(&OWN, error))?;
    let length = |path: &String| root.join(path).metadata().map_or(0, |found| found.len());
    let mut settings: Vec<(String, &'static str)> = planned
        .iter()
        .filter(|file| file.act() != "same")
        .map(|file| (file.path.clone(), file.act()))
        .collect();
    if repository_with_driver(root).is_some() {
        let section = format!("the section {DRIVER} of git's configuration");
        settings.push((section, "removed"));
    }
    Ok(Removal {
        settings,
        left,
        records: project.store.journal_head()?.map_or(0, |head| head.seq),
        bytes: unique.iter().map(length).sum(),
        unique,
        is_shared: project.store.commit_log().is_some(),
    })
}

/// Plans the files of all hosts and of git. A file that several hosts share is planned once.
fn plan_settings(root: &Path, contract: &Contract) -> Result<(Vec<Planned>, Vec<String>), Failure> {
    let mut planned: Vec<Planned> = Vec::new();
    let mut left = Vec::new();
    for host in hosts() {
        match plan(root, contract, &host, true) {
            Ok(files) => {
                for file in files {
                    if !planned.iter().any(|known| known.path == file.path) {
                        planned.push(file);
                    }
                }
            }
            Err(failure) => left.push(format!("{}: {}", host.name, failure.what)),
        }
    }
    planned.push(plan_without_attributes(root)?);
    Ok((planned, left))
}

/// Packs what cannot be rebuilt into a new archive outside `.quipu`.
pub fn keep(archive: &Path, root: &Path, removal: &Removal) -> Result<(), Failure> {
    let failed = |error: std::io::Error| {
        let place = archive.display();
        let what = format!("cannot write `{place}`: {error}; nothing was removed");
        Failure::new(exit::IO, what, "quipu eject --keep-journal NEW-FILE")
    };
    let folder = archive
        .parent()
        .filter(|folder| !folder.as_os_str().is_empty());
    let real = std::fs::canonicalize(folder.unwrap_or(Path::new("."))).map_err(failed)?;
    if real.starts_with(root.join(OWN)) {
        let what = format!("`{}` is in the folder that is deleted", archive.display());
        let help = "quipu eject --keep-journal ../journal.tar";
        return Err(Failure::new(exit::REFUSED, what, help));
    }
    tar::pack(archive, root, &removal.unique).map_err(failed)
}

/// Returns the git repository, if its configuration has the merge driver.
fn repository_with_driver(root: &Path) -> Option<UntrustedRepository> {
    UntrustedRepository::find(root).filter(|repository| repository.has_section(DRIVER))
}

/// Removes everything.
pub fn remove(root: &Path) -> Result<(), Failure> {
    let contract = Project::load_contract(root)?;
    for host in hosts() {
        // The caller has been told of the hosts that cannot be planned.
        if let Ok(files) = plan(root, &contract, &host, true) {
            apply(root, &files)?;
        }
    }
    apply(root, &[plan_without_attributes(root)?])?;
    if let Some(repository) = repository_with_driver(root) {
        repository
            .remove_section(DRIVER)
            .map_err(|what| Failure::new(exit::IO, format!("git kept `{DRIVER}`: {what}"), ""))?;
    }
    revoke_trust(root)?;
    if let Err(error) = Record::forget(root) {
        return Err(unread(&"the record of integrated hosts", error));
    }
    let own = root.join(OWN);
    std::fs::remove_dir_all(&own).map_err(|error| unread(&own.display(), error))?;
    open(root)?
        .remove(CONTRACT)
        .map_err(|error| unread(&CONTRACT, error))
}

/// Lists regular files that cannot be rebuilt, sorted. Links are not followed.
fn list_unique(root: &Path, folder: &str, found: &mut Vec<String>) -> std::io::Result<()> {
    let mut entries: Vec<_> = std::fs::read_dir(root.join(folder))?.collect::<Result<_, _>>()?;
    entries.sort_by_key(std::fs::DirEntry::file_name);
    for entry in entries {
        let Ok(name) = entry.file_name().into_string() else {
            continue;
        };
        let path = format!("{folder}/{name}");
        let is_cache = CACHES.contains(&name.as_str()) || name.ends_with(".lock");
        match entry.file_type()? {
            kind if kind.is_dir() && name != "tmp" => list_unique(root, &path, found)?,
            kind if kind.is_file() && !is_cache => found.push(path),
            _ => {}
        }
    }
    Ok(())
}

fn unread(what: &dyn std::fmt::Display, error: std::io::Error) -> Failure {
    Failure::new(exit::IO, format!("`{what}`: {error}"), "")
}

impl Removal {
    /// Renders what is removed, what is lost with it, and what stays.
    pub fn render(&self, kept: Option<&PathBuf>) -> String {
        let mut text = String::new();
        for (path, act) in &self.settings {
            let act = match *act {
                "removed" => "delete",
                _ => "edit  ",
            };
            text.push_str(&format!("{act}  {path}\n"));
        }
        text.push_str("delete  .quipu/\ndelete  quipu.toml\n");
        let copies = self
            .unique
            .iter()
            .filter(|path| path.contains("conflict-copies/"))
            .count();
        let mut history = format!("{} of history", count(self.records as usize, "record"));
        if copies > 0 {
            history.push_str(&format!(" and {}", count(copies, "file")));
            history.push_str(" of conflict copies");
        }
        text.push_str(&match (kept, self.is_shared) {
            (Some(archive), _) => format!("kept    {history}: {}\n", archive.display()),
            (None, true) => format!("        the shared store keeps its history ({history})\n"),
            (None, false) => format!(
                "lost    {history}: who changed what and when, and every older version. Nothing \
                 else has it; to keep it: --keep-journal FILE\n"
            ),
        });
        text.push_str("stays   every other file, as it is\n");
        text
    }
}
