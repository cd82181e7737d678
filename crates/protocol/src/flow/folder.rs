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
    #[serde(default)]
    step: String,
    #[serde(default)]
    unit: Option<String>,
    #[serde(default)]
    agent: Option<String>,
    #[serde(default)]
    at: String,
}

/// A run whose process lives.
#[derive(Debug, Clone, Serialize)]
pub struct Underway {
    pub run: String,
    pub step: String,
    pub unit: Option<String>,
    pub agent: Option<String>,
    /// When it began.
    pub at: String,
    /// How much its agent has said, in bytes of the transcript.
    pub said: u64,
}

/// Runs are named by their time, so those under way are among the last. No one has more of them at once.
const NEWEST_RUNS: usize = 256;

/// The runs that are going on now, in any process.
pub fn runs_under_way(root: &Path) -> Vec<Underway> {
    let folders = std::fs::read_dir(root.join(".quipu/runs")).into_iter().flatten().flatten();
    let mut names: Vec<String> = folders.filter_map(|entry| entry.file_name().into_string().ok()).collect();
    names.sort_unstable();
    names.iter().rev().take(NEWEST_RUNS).filter_map(|name| under_way(root, name)).collect()
}

fn under_way(root: &Path, name: &str) -> Option<Underway> {
    let folder = folder_of(root, name);
    if folder.join("verdict.json").exists() {
        return None;
    }
    // Whoever can share the lock knows that no one holds it.
    let live = File::open(folder.join("live")).ok()?;
    if live.try_lock_shared().is_ok() {
        return None;
    }
    let begun: Begun = serde_json::from_str(&std::fs::read_to_string(folder.join("begun.json")).ok()?).ok()?;
    let said = std::fs::metadata(folder.join("transcript.jsonl")).map_or(0, |file| file.len());
    Some(Underway { run: name.to_owned(), step: begun.step, unit: begun.unit, agent: begun.agent, at: begun.at, said })
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
    pub fn create(root: &Path, turn: &Turn, agent: &str, paths: &[String]) -> std::io::Result<RunFolder> {
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
        let begun = Begun {
            paths: paths.to_vec(),
            step: turn.step.clone(),
            unit: turn.unit.as_ref().map(ToString::to_string),
            agent: Some(agent.to_owned()),
            at: jiff::Timestamp::now().to_string(),
        };
        std::fs::write(path.join("begun.json"), json!(begun).to_string())?;
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
