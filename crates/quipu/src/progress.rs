//! Progress of a running flow: a line per running job on a terminal, plain lines in a pipe, or JSON
//! events.
//!
//! Messages go to stderr; events are data and go to stdout.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

use quipu_contract::{Language, in_one_line, is_line_break, printable};
use quipu_protocol::chinese;
use quipu_protocol::flow::{Event, Job, Usage};

use crate::answer::{count, in_language};
use crate::flow_text::{render_usage, width};
use crate::terminal;

/// Interval at which the lines of running jobs are redrawn.
const TICK: Duration = Duration::from_millis(500);

pub struct Progress {
    json: bool,
    language: Language,
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
    pub fn new(json: bool, language: Language) -> Progress {
        let columns = std::env::var("COLUMNS")
            .ok()
            .and_then(|columns| columns.parse().ok())
            .unwrap_or(80);
        Progress {
            json,
            language,
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
        let say = |en: String, zh: String| in_language(self.language, en, zh);
        // The label of an event is eleven columns wide.
        let label = |en: &str, zh: &str| {
            let word = in_language(self.language, en, zh);
            format!("{word}{}", " ".repeat(11 - width(word)))
        };
        let told = |text: &str| {
            indented(&in_language(
                self.language,
                text.to_owned(),
                chinese::remedy(text),
            ))
        };
        Some(match event {
            Event::Released { paths } => {
                let label = label("released", "已归还");
                let paths = paths.join(", ");
                let paths = in_one_line(&paths);
                say(
                    format!("{label}{paths} (its worker had died)"),
                    format!("{label}{paths}（占用它的进程已经不在）"),
                )
            }
            Event::Pruned { attempts } => {
                let label = label("pruned", "已清理");
                say(
                    format!(
                        "{label}the folders of {} ([attempts] in quipu.toml)",
                        count(*attempts, "old attempt")
                    ),
                    format!("{label}{attempts} 次旧运行的文件夹（quipu.toml 的 [attempts]）"),
                )
            }
            Event::Started { job, agent, round } => {
                let round = match round {
                    0 => String::new(),
                    round => say(format!(", round {round}"), format!("，第 {round} 轮")),
                };
                shown
                    .jobs
                    .push((job.clone(), Instant::now(), format!("{agent}{round}")));
                if self.terminal {
                    return None;
                }
                let label = label("started", "开始");
                say(
                    format!("{label}{job} by {agent}{round}"),
                    format!("{label}{job}，由 {agent}{round}"),
                )
            }
            Event::SentBack { job, fault, .. } => {
                if let Some((_, _, note)) = shown.jobs.iter_mut().find(|(t, _, _)| t == job) {
                    note.push_str(in_language(self.language, ", sent back", "，已退回"));
                }
                format!("{}{job}: {}", label("sent back", "退回"), told(fault))
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
                    "{}{job}:\n           {}",
                    label("asked", "请求"),
                    indented(line.trim_end())
                )
            }
            Event::Retry { job, why } => {
                format!("{}{job}: {}", label("retrying", "重试"), told(why))
            }
            Event::Denied { job, attempt } => {
                format!("{}{job}: {}", label("denied", "已拒绝"), indented(attempt))
            }
            Event::VerificationOnly { job, why } => {
                let why = told(why);
                say(
                    format!(
                        "verification only for {job}: {why}; its output is checked, but its reads \
                         are not restricted"
                    ),
                    format!("{job} 只核对成果：{why}；检查它写出的文件，但不限制它读什么"),
                )
            }
            Event::KeptAside { path, kept } => {
                let (label, path, kept) =
                    (label("kept", "另存"), in_one_line(path), in_one_line(kept));
                say(
                    format!("{label}{path} as {kept}: it had no marker"),
                    format!("{label}{path} 为 {kept}：它没有标记"),
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
                    "{}{job}: {}{}",
                    label("accepted", "接受"),
                    in_one_line(&files.join(", ")),
                    self.used(*usage)
                );
                let mut add = |text: String| line.push_str(&format!("\n           {text}"));
                if !dropped.is_empty() {
                    let dropped = dropped.join(", ");
                    let dropped = in_one_line(&dropped);
                    add(say(
                        format!("dropped, because the step does not ask for them: {dropped}"),
                        format!("未收，因为步骤没有要求：{dropped}"),
                    ));
                }
                if let Some(ended) = ended {
                    let ended = told(ended);
                    add(say(
                        format!("its output is complete, although {ended}"),
                        format!("成果完整，尽管 {ended}"),
                    ));
                }
                for warning in warnings {
                    let warning = told(warning);
                    add(say(
                        format!("warning: {warning}"),
                        format!("警告：{warning}"),
                    ));
                }
                for path in sealed {
                    let path = in_one_line(path);
                    add(say(
                        format!("{path} is sealed and was not changed"),
                        format!("{path} 已封存，没有改动"),
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
                let (label, why) = (label("failed", "失败"), told(why));
                let times = say(
                    format!("({count} of {retries})"),
                    format!("（{count}/{retries}）"),
                );
                format!("{label}{job} {times}: {why}{}", self.used(*usage))
            }
            Event::Did { job, what } => format!(
                "{}{job}{}{}",
                label("did", "完成"),
                if what.is_empty() { "" } else { ": " },
                told(what)
            ),
            Event::Lost { job, why } => {
                end(job);
                format!("{}{job}: {}", label("lost", "失去"), told(why))
            }
            Event::Waiting { why } => format!("{}{}", label("waits", "等待"), told(why)),
            Event::Stuck { job, why } => {
                end(job);
                format!("{}{job}: {}", label("stuck", "卡住"), told(why))
            }
            Event::Stopped { job } => {
                end(job);
                format!("{}{job}", label("stopped", "停止"))
            }
        })
    }

    /// Formats the usage of a job, to append to its line.
    fn used(&self, usage: Option<Usage>) -> String {
        let used = usage.map(|used| format!("  ({})", render_usage(self.language, used)));
        used.unwrap_or_default()
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
