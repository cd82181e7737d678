//! An agent that replays prepared texts, to try a flow and to test misbehaving agents.
//!
//! Its folder holds the outputs under their paths. `PATH.again` is used when the work is requested
//! a second time in one attempt, `PATH.round1` when an objection sent it back, and `PATH.2` when
//! the project begins the job for the second time for any reason, so that a recording of a whole
//! run can be replayed. A file `PATH.acts` lists further actions, one per line: `nothing`,
//! `message` (answer with the text instead of writing it), `stray PATH`, `fail`, `hang`, `half`
//! (insert a line before the existing text and write no more). Each applies to every attempt, or
//! only to the first one if followed by `first`.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

use super::agent::{Agent, Ended, Ending, Task, Watch};
use super::job::Output;

/// Replays prepared texts.
pub struct Scripted {
    folder: PathBuf,
    /// Actions that were already used and must not be repeated.
    played: Mutex<BTreeSet<String>>,
    /// The duration of each job.
    pub pause: Duration,
}

impl Scripted {
    pub fn of(folder: &Path) -> Scripted {
        Scripted {
            folder: folder.to_owned(),
            played: Mutex::default(),
            pause: Duration::ZERO,
        }
    }

    fn text(&self, output: &Output, endings: &[&str]) -> Option<String> {
        endings.iter().find_map(|ending| {
            std::fs::read_to_string(self.folder.join(format!("{}{ending}", output.path))).ok()
        })
    }

    fn play(&self, task: &Task, endings: &[&str]) -> Ended {
        let mut ended = Ended::done();
        let until = Instant::now() + self.pause;
        while Instant::now() < until && !task.stop.is_asked() {
            std::thread::sleep(Duration::from_millis(2).min(self.pause));
        }
        for output in &task.outputs {
            let acts = std::fs::read_to_string(self.folder.join(format!("{}.acts", output.path)))
                .unwrap_or_default();
            let (mut writes, mut says) = (true, false);
            for line in acts.lines().filter(|l| !l.trim().is_empty()) {
                let (act, first) = match line.strip_suffix(" first") {
                    Some(act) => (act, true),
                    None => (line, false),
                };
                let fresh = self
                    .played
                    .lock()
                    .unwrap_or_else(PoisonError::into_inner)
                    .insert(format!("{} {line}", output.path));
                if first && !fresh {
                    continue;
                }
                match act.split_once(' ').unwrap_or((act, "")) {
                    ("nothing", _) => writes = false,
                    ("message", _) => says = true,
                    ("fail", _) => ended.ending = Ending::Failed("the script says so".into()),
                    ("stray", path) => write(&task.out.join(path), "stray\n"),
                    ("half", _) => {
                        let path = task.out.join(output.path.as_str());
                        write(
                            &path,
                            &format!(
                                "Half a fix.\n\n{}",
                                std::fs::read_to_string(&path).unwrap_or_default()
                            ),
                        );
                        writes = false;
                    }
                    ("hang", _) => return hang(task),
                    (other, _) => {
                        ended.ending = Ending::Failed(format!("the script does not know `{other}`"))
                    }
                }
            }
            match self.text(output, endings) {
                Some(text) if says => ended.message = Some(text),
                Some(text) if writes => write(&task.out.join(output.path.as_str()), &text),
                _ => {}
            }
        }
        if task.stop.is_asked() {
            ended.ending = Ending::Stopped;
        }
        ended
    }
}

fn write(path: &Path, text: &str) {
    if let Some(parent) = path.parent() {
        let _ = std::fs::create_dir_all(parent);
    }
    let _ = std::fs::write(path, text);
}

/// Does nothing until it is stopped or its time is over.
fn hang(task: &Task) -> Ended {
    let begun = Instant::now();
    while begun.elapsed() < task.deadline {
        if task.stop.is_asked() {
            return Ended {
                ending: Ending::Stopped,
                ..Ended::done()
            };
        }
        std::thread::sleep(Duration::from_millis(5));
    }
    Ended {
        ending: Ending::Overdue,
        ..Ended::done()
    }
}

/// How often the project has begun this job, counted by attempt folders:
/// `20260102T030405678-write-ch01`.
fn times_begun(task: &Task) -> usize {
    let job = |run: &str| run.split_once('-').map(|(_, job)| job.to_owned());
    let runs = task
        .record
        .parent()
        .and_then(|runs| std::fs::read_dir(runs).ok());
    let names = runs
        .into_iter()
        .flatten()
        .flatten()
        .map(|entry| entry.file_name().to_string_lossy().into_owned());
    names.filter(|name| job(name) == job(&task.attempt)).count()
}

impl Agent for Scripted {
    fn name(&self) -> &str {
        "script"
    }

    fn perform(&self, task: &Task, watch: Watch<'_>) -> Ended {
        let sent_back = task
            .outputs
            .iter()
            .any(|o| task.out.join(o.path.as_str()).exists());
        let time = format!(".{}", times_begun(task));
        let mut ended = if sent_back {
            self.play(task, &[&time, ".round1", ""])
        } else {
            self.play(task, &[&time, ""])
        };
        while (watch.look)(&ended).is_some() {
            ended = self.play(task, &[".again", ""]);
        }
        ended
    }
}
