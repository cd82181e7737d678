//! Progress of a running flow: a line per running job on a terminal, plain lines in a pipe, or JSON
//! events.
//!
//! Messages go to stderr; events are data and go to stdout.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

use quipu_contract::{in_one_line, is_line_break, printable};
use quipu_protocol::flow::{Event, Job, Usage};

use crate::answer::count;
use crate::flow_text::{render_usage, width};
use crate::terminal;

/// Interval at which the lines of running jobs are redrawn.
const TICK: Duration = Duration::from_millis(500);

pub struct Progress {
    json: bool,
    terminal: bool,
    /// Maximum width of a line; a line that wraps could not be overwritten.
    columns: usize,
    running: Mutex<Shown>,
}

#[derive(Default)]
struct Shown {
    jobs: Vec<(Job, Instant, String)>,
    /// Number of lines of running jobs on the screen.
    lines: usize,
}

impl Progress {
    pub fn new(json: bool) -> Progress {
        let columns = std::env::var("COLUMNS")
            .ok()
            .and_then(|columns| columns.parse().ok())
            .unwrap_or(80);
        Progress {
            json,
            terminal: !json && terminal::stderr_is_terminal(),
            columns,
            running: Mutex::default(),
        }
    }

    /// Runs `work` while the lines are refreshed.
    pub fn during<T>(&self, work: impl FnOnce() -> T) -> T {
        if !self.terminal {
            return work();
        }
        let over = AtomicBool::new(false);
        std::thread::scope(|scope| {
            scope.spawn(|| {
                while !over.load(Ordering::Relaxed) {
                    std::thread::sleep(TICK);
                    self.draw(None);
                }
            });
            let result = work();
            over.store(true, Ordering::Relaxed);
            result
        })
    }

    pub fn tell(&self, event: &Event) {
        if self.json {
            let line = serde_json::to_string(event).unwrap_or_default();
            let _ = terminal::show_json(&line);
            return;
        }
        let line = self.note(event);
        if self.terminal {
            self.draw(line.as_deref());
        } else if let Some(line) = line {
            terminal::say(&line);
        }
    }

    /// Updates the list of running jobs, and returns the event in words.
    fn note(&self, event: &Event) -> Option<String> {
        let mut shown = self.running.lock().unwrap_or_else(PoisonError::into_inner);
        let mut end = |job: &Job| shown.jobs.retain(|(t, _, _)| t != job);
        Some(match event {
            Event::Released { paths } => format!(
                "released   {} (its worker had died)",
                in_one_line(&paths.join(", "))
            ),
            Event::Pruned { attempts } => format!(
                "pruned     the folders of {} ([attempts] in quipu.toml)",
                count(*attempts, "old attempt")
            ),
            Event::Started { job, agent, round } => {
                let round = if *round > 0 {
                    format!(", round {round}")
                } else {
                    String::new()
                };
                shown
                    .jobs
                    .push((job.clone(), Instant::now(), format!("{agent}{round}")));
                if self.terminal {
                    return None;
                }
                format!("started    {job} by {agent}{round}")
            }
            Event::SentBack { job, fault, .. } => {
                if let Some((_, _, note)) = shown.jobs.iter_mut().find(|(t, _, _)| t == job) {
                    note.push_str(", sent back");
                }
                format!("sent back  {job}: {}", indented(fault))
            }
            Event::Progress { job, line } => {
                let first = line.lines().next().unwrap_or_default().trim().to_owned();
                if let Some((_, _, note)) = shown.jobs.iter_mut().find(|(t, _, _)| t == job) {
                    let who = note.split(": ").next().unwrap_or_default().to_owned();
                    *note = format!("{who}: {first}").chars().take(100).collect();
                }
                // Text of several lines is meant to be read, such as a brief for a person.
                if line.trim().lines().count() < 2 {
                    return None;
                }
                format!(
                    "asked      {job}:\n           {}",
                    indented(line.trim_end())
                )
            }
            Event::Retry { job, why } => format!("retrying   {job}: {}", indented(why)),
            Event::Denied { job, attempt } => format!("denied     {job}: {}", indented(attempt)),
            Event::VerificationOnly { job, why } => {
                format!(
                    "verification only for {job}: {}; its output is checked, but its reads are \
                     not restricted",
                    indented(why)
                )
            }
            Event::KeptAside { path, kept } => {
                format!(
                    "kept       {} as {}: it had no marker",
                    in_one_line(path),
                    in_one_line(kept)
                )
            }
            Event::Accepted {
                job,
                files,
                dropped,
                sealed,
                usage,
                ended,
                warnings,
            } => {
                end(job);
                let mut line = format!(
                    "accepted   {job}: {}{}",
                    in_one_line(&files.join(", ")),
                    used(*usage)
                );
                if !dropped.is_empty() {
                    line.push_str(&format!(
                        "\n           dropped, because the step does not ask for them: {}",
                        in_one_line(&dropped.join(", "))
                    ));
                }
                if let Some(ended) = ended {
                    line.push_str(&format!(
                        "\n           its output is complete, although {}",
                        indented(ended)
                    ));
                }
                for warning in warnings {
                    line.push_str(&format!("\n           warning: {}", indented(warning)));
                }
                for path in sealed {
                    line.push_str(&format!(
                        "\n           {} is sealed and was not changed",
                        in_one_line(path)
                    ));
                }
                line
            }
            Event::Failed {
                job,
                why,
                count,
                retries,
                usage,
            } => {
                end(job);
                format!(
                    "failed     {job} ({count} of {retries}): {}{}",
                    indented(why),
                    used(*usage)
                )
            }
            Event::Did { job, what } => format!(
                "did        {job}{}{}",
                if what.is_empty() { "" } else { ": " },
                indented(what)
            ),
            Event::Lost { job, why } => {
                end(job);
                format!("lost       {job}: {}", indented(why))
            }
            Event::Waiting { why } => format!("waits      {}", indented(why)),
            Event::Stuck { job, why } => {
                end(job);
                format!("stuck      {job}: {}", indented(why))
            }
            Event::Stopped { job } => {
                end(job);
                format!("stopped    {job}")
            }
        })
    }

    /// Redraws the lines of running jobs, after a new line if there is one.
    fn draw(&self, line: Option<&str>) {
        let mut shown = self.running.lock().unwrap_or_else(PoisonError::into_inner);
        let mut text = String::new();
        if shown.lines > 0 {
            text.push_str(&format!("\x1b[{}A\x1b[J", shown.lines));
        }
        if let Some(line) = line {
            text.push_str(&format!("{}\n", printable(line)));
        }
        for (job, since, note) in &shown.jobs {
            let seconds = since.elapsed().as_secs();
            let line = format!("  … {job}  {}:{:02}  {note}", seconds / 60, seconds % 60);
            text.push_str(&format!("{}\n", clipped(&in_one_line(&line), self.columns)));
        }
        shown.lines = shown.jobs.len();
        terminal::write_stderr(&text);
    }
}

/// Indents the further lines of a text, so that none of them looks like an event.
fn indented(text: &str) -> String {
    let lines = text
        .split(is_line_break)
        .map(|line| line.strip_suffix('\r').unwrap_or(line));
    lines.collect::<Vec<_>>().join("\n           ")
}

/// Cuts a line to the width.
fn clipped(line: &str, columns: usize) -> String {
    let mut room = columns.saturating_sub(1);
    let fits = line.chars().take_while(|c| {
        let left = room.checked_sub(width(c.encode_utf8(&mut [0; 4])));
        room = left.unwrap_or(0);
        left.is_some()
    });
    fits.collect()
}

/// Formats the usage of a job, to append to its line.
fn used(usage: Option<Usage>) -> String {
    usage
        .map(|used| format!("  ({})", render_usage(used)))
        .unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_running_line_never_wraps() {
        assert_eq!(
            clipped("  … write/ch01  0:02  claude", 20),
            "  … write/ch01  0:0"
        );
        assert_eq!(clipped("写作写作写作", 8), "写作写");
        assert_eq!(clipped("short", 80), "short");
    }
}
