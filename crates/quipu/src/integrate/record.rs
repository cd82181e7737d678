//! The user's record of a project's integrated hosts, outside the project: which hosts, the files
//! that a removal alone would not give back, and the journal that the project had.
//!
//! An agent may delete settings of its host, or the journal; the record shows that they were there.

use std::collections::{BTreeMap, BTreeSet};
use std::io;
use std::path::Path;

use quipu_contract::{Contract, Language, ProjectPath};
use quipu_protocol::{Project, make_state_folder, state_file, write_state};
use quipu_store::Options;
use serde::{Deserialize, Serialize};

use super::hosts::{Host, hosts};
use super::plan::{Planned, plan};

const FORMAT: u32 = 1;
const FOLDER: &str = "hosts";

#[derive(Debug, Default, Serialize, Deserialize)]
pub struct Record {
    v: u32,
    root: String,
    hosts: BTreeSet<String>,
    pub(super) originals: BTreeMap<String, Original>,
    /// The name of the journal.
    journal: Option<String>,
}

/// A file before the integration, which a removal restores while the file is as it was written.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Original {
    pub before: Option<String>,
    pub written: String,
}

/// A part of the enforcement that is missing.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Loss {
    pub what: String,
    pub help: String,
}

impl Record {
    /// Loads the record; empty if there is none.
    pub fn load(root: &Path) -> Record {
        let load = || -> Option<Record> {
            let (root, file) = state_file(FOLDER, root).ok()?;
            let record: Record = serde_json::from_slice(&std::fs::read(file).ok()?).ok()?;
            (record.v == FORMAT && record.root == root.to_string_lossy()).then_some(record)
        };
        load().unwrap_or_default()
    }

    /// Notes that a host's files were written or removed.
    pub fn note(root: &Path, host: &Host, files: &[Planned], is_removed: bool) -> io::Result<()> {
        let mut record = Record::load(root);
        match is_removed {
            true => record.hosts.remove(&host.name),
            false => record.hosts.insert(host.name.clone()),
        };
        for file in files {
            match &file.original {
                Some(original) => record.originals.insert(file.path.clone(), original.clone()),
                None => record.originals.remove(&file.path),
            };
        }
        record.journal = open_offline(root).and_then(|project| journal_of(&project));
        record.save(root)
    }

    fn save(mut self, root: &Path) -> io::Result<()> {
        let (real, file) = state_file(FOLDER, root)?;
        if file.starts_with(&real) {
            return Err(io::Error::other("the record would be inside the project"));
        }
        if self.hosts.is_empty() && self.originals.is_empty() {
            return Record::forget(root);
        }
        (self.v, self.root) = (FORMAT, real.to_string_lossy().into_owned());
        make_state_folder(FOLDER)?;
        write_state(&file, &self)
    }

    /// Deletes the record.
    pub fn forget(root: &Path) -> io::Result<()> {
        match std::fs::remove_file(state_file(FOLDER, root)?.1) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => Err(error),
            _ => Ok(()),
        }
    }
}

fn open_offline(root: &Path) -> Option<Project> {
    let options = Options {
        offline: true,
        ..Options::default()
    };
    Project::open(root, options).ok()
}

/// The name of the journal. A working copy of a shared store has none that would be missed.
fn journal_of(project: &Project) -> Option<String> {
    let store = &project.store;
    if store.is_read_only() || store.commit_log().is_some() {
        return None;
    }
    Some(store.journal_head().ok()??.journal)
}

/// The parts of the enforcement that were there when the project was integrated, and are not now.
pub fn losses(project: &Project) -> Vec<Loss> {
    let (root, contract) = (project.store.root(), &*project.contract);
    let record = Record::load(root);
    if record.hosts.is_empty() {
        return Vec::new();
    }
    let known = hosts();
    let integrated = || {
        known
            .iter()
            .filter(|host| record.hosts.contains(&host.name))
    };
    let mut losses: Vec<Loss> = Vec::new();
    for loss in integrated().flat_map(|host| losses_of(root, contract, host)) {
        if !losses.iter().any(|there| there.what == loss.what) {
            losses.push(loss);
        }
    }
    let now = journal_of(project);
    let is_other = record.journal.is_some() && now.is_some() && now != record.journal;
    if let Some(host) = integrated().next().filter(|_| is_other) {
        losses.push(journal_loss(contract.language, host));
    }
    losses
}

fn journal_loss(language: Language, host: &Host) -> Loss {
    let name = &host.name;
    match language {
        Language::En => Loss {
            what: "the journal in `.quipu` was deleted and begins anew: the history before it is \
                   lost"
                .into(),
            help: format!("put `.quipu` back from a backup; or accept it: quipu integrate {name}"),
        },
        Language::Zh => Loss {
            what: "`.quipu` 中的日志被删除，已重新开始：此前的历史已丢失".into(),
            help: format!("从备份放回 `.quipu`；或接受现状：quipu integrate {name}"),
        },
    }
}

fn losses_of(root: &Path, contract: &Contract, host: &Host) -> Vec<Loss> {
    let zh = contract.language == Language::Zh;
    let help = match zh {
        false => format!(
            "quipu integrate {0}     (for people; or without Quipu: quipu integrate {0} --remove)",
            host.name
        ),
        true => format!(
            "quipu integrate {0}     （由人执行；不再使用 Quipu：quipu integrate {0} --remove）",
            host.name
        ),
    };
    let files = match plan(root, contract, host, false) {
        Ok(files) => files,
        Err(failure) => {
            let what = failure.what;
            return vec![Loss { what, help }];
        }
    };
    let is_settings =
        |file: &&Planned| ProjectPath::parse(&file.path).is_ok_and(|path| path.sets_up_hosts());
    let lost = files.iter().filter(|file| match is_settings(file) {
        true => file.act() != "same",
        // The words may be of an older version.
        false => !file.has_ours,
    });
    lost.map(|file| {
        let (path, about) = (&file.path, &host.about);
        let what = match (file.before.is_some(), zh) {
            (false, false) => format!("`{path}` was deleted: {about} works without it"),
            (true, false) => format!("`{path}` is not as `quipu integrate` wrote it for {about}"),
            (false, true) => format!("`{path}` 已被删除：{about} 不再经过它"),
            (true, true) => format!("`{path}` 与 `quipu integrate` 为 {about} 写入的不同"),
        };
        Loss {
            what,
            help: help.clone(),
        }
    })
    .collect()
}

/// The lines about the losses that a start text begins with.
pub fn notices(project: &Project) -> Vec<String> {
    let losses = losses(project);
    losses
        .into_iter()
        .map(|loss| match project.contract.language {
            Language::En => format!("flagged: {} -> {}", loss.what, loss.help),
            Language::Zh => format!("标记：{} -> {}", loss.what, loss.help),
        })
        .collect()
}
