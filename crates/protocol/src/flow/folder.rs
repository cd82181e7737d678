//! The folder of a run, `.quipu/runs/ID/`: what it saw, what it said, how it ended. Deletable: nothing is derived from it
//! but which leases belong to runs that died.
//!
//! While a run lives, its process holds a kernel lock on `live`; the kernel lets go when the process dies, however it
//! dies. The folder and the paths it will lease are there before the lease, so no lease of a dead run is ever nameless.

use std::fs::File;
use std::path::{Path, PathBuf};

use quipu_contract::Actor;
use quipu_store::Store;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use super::turn::Turn;

/// The folder of a run that is going on.
pub struct RunFolder {
    pub id: String,
    pub path: PathBuf,
    /// Held, not read: the kernel releases it with the process.
    _live: File,
}

#[derive(Serialize, Deserialize)]
struct Begun {
    paths: Vec<String>,
}

pub fn folder_of(root: &Path, id: &str) -> PathBuf {
    root.join(".quipu/runs").join(id)
}

/// `20261115T140000123-write-ch05`: sorts by time, says what it is.
pub fn run_id(turn: &Turn, now: jiff::Timestamp) -> String {
    let at = now.to_zoned(jiff::tz::TimeZone::UTC).strftime("%Y%m%dT%H%M%S%3f").to_string();
    match &turn.unit {
        Some(unit) => format!("{at}-{}-{unit}", turn.step),
        None => format!("{at}-{}", turn.step),
    }
}

impl RunFolder {
    pub fn create(root: &Path, turn: &Turn, paths: &[String]) -> std::io::Result<RunFolder> {
        std::fs::create_dir_all(root.join(".quipu/runs"))?;
        let mut id = run_id(turn, jiff::Timestamp::now());
        let mut path = folder_of(root, &id);
        while let Err(error) = std::fs::create_dir(&path) {
            if error.kind() != std::io::ErrorKind::AlreadyExists {
                return Err(error);
            }
            id.push('x');
            path = folder_of(root, &id);
        }
        let live = File::create(path.join("live"))?;
        live.lock()?;
        std::fs::write(path.join("begun.json"), json!(Begun { paths: paths.to_vec() }).to_string())?;
        Ok(RunFolder { id, path, _live: live })
    }

    pub fn write(&self, name: &str, text: &str) -> std::io::Result<()> {
        std::fs::write(self.path.join(name), text)
    }

    /// The end of the run: nothing is looked for here any more.
    pub fn close(&self, verdict: &Value) -> std::io::Result<()> {
        self.write("verdict.json", &format!("{verdict:#}\n"))
    }
}

/// Gives back the leases of runs that died with their process. Returns their paths.
pub fn release_dead(store: &Store) -> Result<Vec<String>, quipu_store::StoreError> {
    let mut leases = store.leases()?;
    if leases.is_empty() {
        return Ok(Vec::new());
    }
    let mut released = Vec::new();
    for entry in std::fs::read_dir(store.root().join(".quipu/runs")).into_iter().flatten().flatten() {
        let folder = entry.path();
        if folder.join("verdict.json").exists() {
            continue;
        }
        let Ok(live) = File::open(folder.join("live")) else { continue };
        if live.try_lock().is_err() {
            continue; // it lives
        }
        let begun = std::fs::read_to_string(folder.join("begun.json")).ok().and_then(|t| serde_json::from_str::<Begun>(&t).ok());
        if let Some(begun) = begun {
            for lease in leases.extract_if(.., |l| l.paths == begun.paths) {
                store.release_lease(&Actor::Runtime, &lease.id, Some(lease.fence))?;
                released.extend(lease.paths);
            }
        }
        let _ = std::fs::write(folder.join("verdict.json"), format!("{:#}\n", json!({"ruling": "lost", "why": "its process died"})));
    }
    Ok(released)
}
