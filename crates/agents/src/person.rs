//! The `person` adapter: shows the brief, and waits until the files are written.
//!
//! A file counts as written when it ends with its marker, differs from the file found at the start,
//! and has not changed for a moment. Editors write in steps, people save unfinished work, and
//! returned work is in the out folder from the start.

use crate::adapter::{Adapter, Limit, Turns, Watch};
use crate::assignment::{Assignment, Language};
use crate::beneath::walk;
use crate::outcome::{Confinement, Ending, Outcome, Usage};
use crate::questions::told_person;
use crate::transcript::Transcript;
use rustix::fs::FileType;
use std::collections::BTreeSet;
use std::path::PathBuf;
use std::time::{Duration, Instant, SystemTime};

/// Polling interval of the out folder.
const LOOK: Duration = Duration::from_millis(100);
/// Time for which a file must stay unchanged.
const SETTLED: Duration = Duration::from_millis(500);

/// A person who does the work by hand.
pub struct PersonAgent {
    pub name: String,
}

impl Adapter for PersonAgent {
    fn name(&self) -> &str {
        &self.name
    }

    fn open<'a>(&'a self, assignment: &'a Assignment, watch: Watch<'a>) -> Box<dyn Turns + 'a> {
        Box::new(PersonTurns {
            assignment,
            watch,
            limit: Limit::after(assignment.deadline),
        })
    }
}

struct PersonTurns<'a> {
    assignment: &'a Assignment,
    watch: Watch<'a>,
    limit: Limit,
}

/// Length and modification time of an output; `None` if it does not exist.
type Look = Option<(u64, Option<SystemTime>)>;

impl Turns for PersonTurns<'_> {
    fn first(&mut self) -> Outcome {
        // Returned work lies in the out folder without its marker. Each of these files must change.
        let before = self.look();
        let sent_back: Vec<usize> = (0..before.len())
            .filter(|at| before[*at].is_some())
            .collect();
        self.ask(
            &self.assignment.placed_brief(&told_person(self.assignment)),
            &before,
            &sent_back,
        )
    }

    fn again(&mut self, fault: &str) -> Outcome {
        // The refused files are still in the out folder, so only a changed file is an answer. The
        // fault names the files that must change.
        let refused = self.look();
        let named: Vec<usize> = (0..refused.len())
            .filter(|at| fault.contains(&format!("`{}`", self.assignment.outputs[*at])))
            .collect();
        self.ask(&self.assignment.returned(fault), &refused, &named)
    }
}

impl PersonTurns<'_> {
    /// Shows a text and waits until all outputs are whole, at least one differs from `before`, and
    /// each of `due` differs.
    fn ask(&self, text: &str, before: &[Look], due: &[usize]) -> Outcome {
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
                Language::English => "a person answers with files, but this step names none",
                Language::Chinese => "人以文件作答，但这一步没有指定任何文件",
            };
            return outcome(
                Ending::NotStarted {
                    why: why.to_string(),
                },
                transcript,
            );
        }
        outcome(self.wait(before, due), transcript)
    }

    fn wait(&self, before: &[Look], due: &[usize]) -> Ending {
        let mut last = before.to_vec();
        let mut since = Instant::now();
        let mut told = Vec::new();
        let (mut strangers, mut strangers_since) = (self.strangers(), Instant::now());
        // A file that was there before is no answer.
        let mut named = strangers.clone();
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
            } else if since.elapsed() >= SETTLED && last != before {
                let open: Vec<usize> = (0..last.len()).filter(|at| !self.is_whole(*at)).collect();
                if open.is_empty() && due.iter().all(|at| last[*at] != before[*at]) {
                    return Ending::Finished { exit: None };
                }
                // Without this hint, a person who forgot the last line would wait until the
                // deadline.
                for at in open
                    .into_iter()
                    .filter(|at| last[*at].is_some() && last[*at] != before[*at])
                {
                    if !told.contains(&at) {
                        told.push(at);
                        self.watch.progress(self.unfinished(at));
                    }
                }
            }
            // A file under another name would be waited for until the deadline.
            let found = self.strangers();
            if found != strangers {
                (strangers, strangers_since) = (found, Instant::now());
            } else if strangers_since.elapsed() >= SETTLED {
                for stranger in strangers.difference(&named.clone()) {
                    self.watch.progress(self.unexpected(stranger));
                    named.insert(stranger.clone());
                }
            }
            std::thread::sleep(LOOK.min(self.limit.left()));
        }
    }

    fn look(&self) -> Vec<Look> {
        let outputs = self.assignment.outputs.iter();
        outputs
            .map(|output| {
                let meta = std::fs::symlink_metadata(self.assignment.out.join(output)).ok()?;
                Some((meta.len(), meta.modified().ok()))
            })
            .collect()
    }

    /// The files in the out folder that are no outputs, without those that editors leave for a moment.
    fn strangers(&self) -> BTreeSet<String> {
        let mut found = BTreeSet::new();
        walk(&self.assignment.out, &mut |path, kind| {
            let name = path.file_name().unwrap_or_default().to_string_lossy();
            let is_of_editor = name.starts_with(['.', '#'])
                || name.ends_with('~')
                || name.ends_with(".tmp")
                || name.ends_with(".swp");
            let path = path.to_string_lossy().into_owned();
            let is_output = self.assignment.outputs.contains(&path);
            if kind == FileType::RegularFile && !is_of_editor && !is_output {
                found.insert(path);
            }
        });
        found
    }

    fn unexpected(&self, stranger: &str) -> String {
        let missing: Vec<String> = (0..self.assignment.outputs.len())
            .filter(|at| !self.is_whole(*at))
            .map(|at| format!("`{}`", self.assignment.outputs[at]))
            .collect();
        let missing = missing.join(", ");
        match self.assignment.language {
            Language::English => format!(
                "`{stranger}` was saved, but this step does not take a file of that name. Still \
                 missing: {missing}"
            ),
            Language::Chinese => {
                format!("`{stranger}` 已保存，但这一步不收这个名字的文件。还缺：{missing}")
            }
        }
    }

    /// Whether an output exists and ends with its marker.
    fn is_whole(&self, at: usize) -> bool {
        let output = &self.assignment.outputs[at];
        let path = self.assignment.out.join(output);
        let Some(wanted) = self.assignment.last_lines.get(output) else {
            return std::fs::symlink_metadata(path).is_ok();
        };
        let text = std::fs::read(path).unwrap_or_default();
        let text = String::from_utf8_lossy(&text);
        text.lines()
            .map(str::trim)
            .rfind(|line| !line.is_empty())
            .is_some_and(|last| wanted.iter().any(|line| line == last))
    }

    fn unfinished(&self, at: usize) -> String {
        let output = &self.assignment.outputs[at];
        let wanted = self
            .assignment
            .last_lines
            .get(output)
            .map(|lines| lines.join(" | "))
            .unwrap_or_default();
        match self.assignment.language {
            Language::English => {
                format!("`{output}` was saved. It is accepted as soon as its last line is {wanted}")
            }
            Language::Chinese => format!("`{output}` 已保存。最后一行是 {wanted} 时才会被接受"),
        }
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
