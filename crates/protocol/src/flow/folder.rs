//! The folder of an attempt, `.quipu/attempts/ID/`: its view, its transcript and its result.
//!
//! Nothing is derived from the folder, so it can be deleted. While an attempt runs, its process
//! holds a kernel lock on `live`. The kernel releases the lock when the process dies, in every
//! case.

use std::collections::BTreeSet;
use std::fs::File;
use std::path::{Path, PathBuf};

use quipu_contract::AttemptsKept;
use quipu_store::{open_regular, read_regular_text};
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use super::job::Job;
use crate::project::open::Project;

/// The folder of a running attempt.
pub struct AttemptFolder {
    pub id: String,
    pub path: PathBuf,
    /// Only held, never read: the kernel releases the lock when the process dies.
    _live: File,
}

#[derive(Serialize, Deserialize)]
struct Begun {
    #[serde(default)]
    step: String,
    #[serde(default)]
    unit: Option<String>,
    #[serde(default)]
    agent: Option<String>,
    #[serde(default)]
    at: String,
}

/// An attempt with a running process.
#[derive(Debug, Clone, Serialize)]
pub struct RunningAttempt {
    pub attempt: String,
    pub step: String,
    pub unit: Option<String>,
    pub agent: Option<String>,
    /// The start time.
    pub at: String,
    /// The size of the agent's transcript in bytes.
    pub said: u64,
}

/// Attempts are named by their time, so running ones are among the last. This is more than anyone
/// runs at once.
const NEWEST_RUNS: usize = 256;

/// The attempts that run now, in any process.
pub fn attempts_under_way(root: &Path) -> Vec<RunningAttempt> {
    let folders = std::fs::read_dir(root.join(".quipu/attempts"))
        .into_iter()
        .flatten()
        .flatten();
    let mut names: Vec<String> = folders
        .filter_map(|entry| entry.file_name().into_string().ok())
        .collect();
    names.sort_unstable();
    names
        .iter()
        .rev()
        .take(NEWEST_RUNS)
        .filter_map(|name| under_way(root, name))
        .collect()
}

fn under_way(root: &Path, name: &str) -> Option<RunningAttempt> {
    let folder = folder_of(root, name);
    if folder.join("verdict.json").exists() {
        return None;
    }
    // A shared lock succeeds only if no process holds the exclusive lock.
    let live = open_regular(&folder.join("live")).ok()?;
    if live.try_lock_shared().is_ok() {
        return None;
    }
    let begun: Begun =
        serde_json::from_str(&read_regular_text(&folder.join("begun.json")).ok()?).ok()?;
    let said = std::fs::metadata(folder.join("transcript.jsonl")).map_or(0, |file| file.len());
    Some(RunningAttempt {
        attempt: name.to_owned(),
        step: begun.step,
        unit: begun.unit,
        agent: begun.agent,
        at: begun.at,
        said,
    })
}

pub fn folder_of(root: &Path, id: &str) -> PathBuf {
    root.join(".quipu/attempts").join(id)
}

/// `20261115T140000123-write-ch05`: sorts by time and names the job.
pub fn run_id(job: &Job, now: jiff::Timestamp) -> String {
    let at = now
        .to_zoned(jiff::tz::TimeZone::UTC)
        .strftime("%Y%m%dT%H%M%S%3f")
        .to_string();
    match &job.unit {
        Some(unit) => format!("{at}-{}-{unit}", job.step),
        None => format!("{at}-{}", job.step),
    }
}

impl AttemptFolder {
    pub fn create(root: &Path, job: &Job, agent: &str) -> std::io::Result<AttemptFolder> {
        std::fs::create_dir_all(root.join(".quipu/attempts"))?;
        let mut id = run_id(job, jiff::Timestamp::now());
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
            step: job.step.clone(),
            unit: job.unit.as_ref().map(ToString::to_string),
            agent: Some(agent.to_owned()),
            at: jiff::Timestamp::now().to_string(),
        };
        std::fs::write(path.join("begun.json"), json!(begun).to_string())?;
        Ok(AttemptFolder {
            id,
            path,
            _live: live,
        })
    }

    pub fn write(&self, name: &str, text: &str) -> std::io::Result<()> {
        std::fs::write(self.path.join(name), text)
    }

    /// Writes the verdict, which ends the attempt.
    pub fn close(&self, verdict: &Value) -> std::io::Result<()> {
        self.write("verdict.json", &format!("{verdict:#}\n"))
    }
}

/// Deletes the folders of attempts that the contract does not keep: finished, old, not among the
/// newest, and not the newest of their job. Returns their names. A folder that cannot be deleted
/// stays; nothing depends on the deletion.
pub fn prune_runs(project: &Project) -> Vec<String> {
    prune(
        project.store.root(),
        project.contract.attempts,
        jiff::Timestamp::now(),
    )
}

fn prune(root: &Path, kept: AttemptsKept, now: jiff::Timestamp) -> Vec<String> {
    let entries = std::fs::read_dir(root.join(".quipu/attempts"))
        .into_iter()
        .flatten()
        .flatten();
    let mut attempts: Vec<String> = entries
        .filter_map(|entry| entry.file_name().into_string().ok())
        .collect();
    attempts.sort_unstable_by(|a, b| b.cmp(a));
    let mut jobs: BTreeSet<String> = BTreeSet::new();
    let mut pruned = Vec::new();
    for (number, id) in attempts.into_iter().enumerate() {
        let Some((at, job)) = begun_at(&id) else {
            continue;
        };
        let newest_of_job = jobs.insert(job.to_owned());
        let old = now.duration_since(at).as_secs() >= i64::from(kept.days) * 24 * 3600;
        if newest_of_job || number < kept.keep || !old {
            continue;
        }
        let folder = folder_of(root, &id);
        let over = open_regular(&folder.join("live")).is_ok_and(|live| live.try_lock().is_ok());
        if over && std::fs::remove_dir_all(&folder).is_ok() {
            pruned.push(id);
        }
    }
    pruned
}

/// Parses the start time and the job from the name of an attempt. Folders with other names are
/// never deleted.
fn begun_at(id: &str) -> Option<(jiff::Timestamp, &str)> {
    let (at, job) = id.split_once('-')?;
    // `20261115T140000123`
    let (seconds, _) = at.split_at_checked(15)?;
    let at = jiff::civil::DateTime::strptime("%Y%m%dT%H%M%S", seconds)
        .ok()?
        .to_zoned(jiff::tz::TimeZone::UTC)
        .ok()?;
    Some((at.timestamp(), job.trim_end_matches('x')))
}

/// Marks the folders of attempts that died with their process as lost.
pub fn mark_lost(root: &Path) {
    for entry in std::fs::read_dir(root.join(".quipu/attempts"))
        .into_iter()
        .flatten()
        .flatten()
    {
        let folder = entry.path();
        if folder.join("verdict.json").exists() {
            continue;
        }
        let Ok(live) = open_regular(&folder.join("live")) else {
            continue;
        };
        if live.try_lock_shared().is_ok() {
            let verdict = json!({"ruling": "lost", "why": "its process died"});
            let _ = std::fs::write(folder.join("verdict.json"), format!("{verdict:#}\n"));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn old_runs_go_and_the_newest_of_each_job_stay() {
        let root = tempfile::tempdir().unwrap();
        let put = |id: &str| {
            let folder = folder_of(root.path(), id);
            std::fs::create_dir_all(folder.join("view")).unwrap();
            std::fs::write(folder.join("live"), "").unwrap();
            File::open(folder.join("live")).unwrap()
        };
        for day in 1..=9 {
            put(&format!("2026010{day}T120000000-write-ch01"));
        }
        put("20260101T130000000-outline");
        put("20260109T120000000-write-ch02x");
        let living = put("20260102T120000001-write-ch02");
        living.lock().unwrap();
        std::fs::create_dir_all(folder_of(root.path(), "mine")).unwrap();
        let now: jiff::Timestamp = "2026-01-10T12:00:00Z".parse().unwrap();
        let pruned = prune(root.path(), AttemptsKept { keep: 3, days: 5 }, now);
        let days: Vec<&str> = pruned.iter().map(|id| &id[6..8]).collect();
        assert_eq!(days, ["05", "04", "03", "02", "01"], "{pruned:?}");
        assert!(
            folder_of(root.path(), "20260101T130000000-outline").exists(),
            "the only attempt at its job"
        );
        assert!(
            folder_of(root.path(), "20260102T120000001-write-ch02").exists(),
            "it lives"
        );
        assert!(folder_of(root.path(), "mine").exists());
        assert!(
            prune(root.path(), AttemptsKept { keep: 100, days: 0 }, now).is_empty(),
            "so many stay, however old"
        );
    }
}
