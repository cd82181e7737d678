//! The `person` adapter: shows the brief, and waits until the files are there.
//!
//! A file counts as written when it has stood unchanged for a moment: editors write in steps.

use crate::agent::{Agent, Limit, Turns, Watch};
use crate::assignment::{Assignment, Language};
use crate::outcome::{Confinement, Ending, Outcome, Usage};
use crate::transcript::Transcript;
use std::path::PathBuf;
use std::time::{Duration, Instant, SystemTime};

/// How often the out folder is looked at.
const LOOK: Duration = Duration::from_millis(100);
/// How long a file must stand unchanged.
const SETTLED: Duration = Duration::from_millis(500);

/// A person at a desk.
pub struct PersonAgent {
    pub name: String,
}

impl Agent for PersonAgent {
    fn name(&self) -> &str {
        &self.name
    }

    fn open<'a>(&'a self, assignment: &'a Assignment, watch: Watch<'a>) -> Box<dyn Turns + 'a> {
        Box::new(PersonTurns { assignment, watch, limit: Limit::after(assignment.deadline) })
    }
}

struct PersonTurns<'a> {
    assignment: &'a Assignment,
    watch: Watch<'a>,
    limit: Limit,
}

/// Length and time of change of each output; `None` while one is missing.
type Look = Option<Vec<(u64, Option<SystemTime>)>>;

impl Turns for PersonTurns<'_> {
    fn first(&mut self) -> Outcome {
        self.ask(&self.assignment.placed_brief(), None)
    }

    fn again(&mut self, fault: &str) -> Outcome {
        // What was refused still lies there: only a file that differs from it is an answer.
        let refused = self.look();
        self.ask(&self.assignment.returned(fault), refused)
    }
}

impl PersonTurns<'_> {
    fn ask(&self, text: &str, refused: Look) -> Outcome {
        let record = &self.assignment.record;
        let transcript = match Transcript::open(record, self.assignment.bounds.transcript) {
            Ok(mut transcript) => {
                transcript.say("brief", text);
                transcript.path().to_path_buf()
            }
            Err(_) => record.join("transcript.jsonl"),
        };
        self.watch.progress(text);
        if self.assignment.outputs.is_empty() {
            let why = match self.assignment.language {
                Language::English => "a person answers with files, and this step names none",
                Language::Chinese => "人以文件作答，而这一步没有要求任何文件",
            };
            return outcome(Ending::NotStarted { why: why.to_string() }, transcript);
        }
        outcome(self.wait(refused), transcript)
    }

    fn wait(&self, refused: Look) -> Ending {
        let mut last: Look = None;
        let mut since = Instant::now();
        loop {
            if self.watch.stop.is_stopped() {
                return Ending::Stopped;
            }
            if self.limit.is_over() {
                return Ending::Deadline;
            }
            let now = self.look();
            if now != last {
                last = now;
                since = Instant::now();
            } else if last.is_some() && last != refused && since.elapsed() >= SETTLED {
                return Ending::Finished { exit: None };
            }
            std::thread::sleep(LOOK.min(self.limit.left()));
        }
    }

    fn look(&self) -> Look {
        self.assignment
            .outputs
            .iter()
            .map(|output| {
                let meta = std::fs::symlink_metadata(self.assignment.out.join(output)).ok()?;
                Some((meta.len(), meta.modified().ok()))
            })
            .collect()
    }
}

fn outcome(ending: Ending, transcript: PathBuf) -> Outcome {
    Outcome {
        ending,
        final_message: None,
        usage: Usage::default(),
        denied: Vec::new(),
        confinement: Confinement::Person,
        left_behind: Vec::new(),
        transcript,
    }
}
