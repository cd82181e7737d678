//! Questions that an agent puts to the runtime while it works: `ask` and `check`.
//!
//! The agent's tools run inside its sandbox, where no project can be opened. A question is a file in
//! the out folder; the runtime, outside the sandbox, answers it with a second file. Both are
//! deleted when the answer is read, so that no question becomes an output. The runtime decides what
//! the agent's role may learn: a file that the agent forges asks no more than its tool could.

use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use rustix::fs::{FileType, Mode, OFlags};
use serde_json::{Value, json};

use crate::assignment::{Assignment, Language};
use crate::beneath;
use crate::http::Tool;

/// The start of the names of both files.
const QUESTION: &str = ".question-";
const ANSWER: &str = ".answer-";
/// Polling interval of both sides.
const LOOK: Duration = Duration::from_millis(40);
/// How long a tool waits for its answer: a first search of long manuscripts builds an index.
const PATIENCE: Duration = Duration::from_secs(120);
/// Largest question: a draft to check is part of it.
const LARGEST: u64 = 4 << 20;

/// The names of the questions that exist, for `Assignment::questions`.
pub const ASK: &str = "ask";
pub const CHECK: &str = "check";

/// The tools for these questions.
pub(crate) fn tools(questions: &[String]) -> Vec<Tool> {
    let path = |about: &str| json!({ "type": "string", "description": about });
    let all = [
        Tool {
            name: ASK,
            about: "Asks one question of a text that is not in the view, such as an earlier \
                    chapter. Returns the sentence that answers it, with its line.",
            parameters: json!({
                "type": "object",
                "properties": {
                    "path": path("the text, or one section of it: PATH#SECTION"),
                    "question": path("one question"),
                },
                "required": ["path", "question"],
            }),
        },
        Tool {
            name: CHECK,
            about: "Checks a text of this task against everything already written. Returns the \
                    conflicts, and the evidence about the other claims.",
            parameters: json!({
                "type": "object",
                "properties": { "path": path("an output that you wrote, or a file of the view") },
                "required": ["path"],
            }),
        },
    ];
    let is_known = |tool: &Tool| questions.iter().any(|name| name == tool.name);
    all.into_iter().filter(is_known).collect()
}

/// Puts a question from inside the sandbox and waits for the answer.
pub(crate) fn put(out: &Path, name: &str, arguments: &Value) -> Result<String, String> {
    static NUMBER: AtomicUsize = AtomicUsize::new(0);
    let number = NUMBER.fetch_add(1, Ordering::Relaxed);
    let id = format!("{}-{number}", std::process::id());
    let text = json!({ "question": name, "arguments": arguments }).to_string();
    let failed = |why: std::io::Error| format!("the question could not be put: {why}");
    publish(out, &format!("{QUESTION}{id}"), text.as_bytes()).map_err(failed)?;
    let place = PathBuf::from(format!("{ANSWER}{id}"));
    let until = Instant::now() + PATIENCE;
    while Instant::now() < until {
        if let Some(bytes) = take(out, &place) {
            let answer: Value = serde_json::from_slice(&bytes).unwrap_or_default();
            let said = |key: &str| answer[key].as_str().map(str::to_owned);
            return said("answer")
                .ok_or_else(|| said("failed").unwrap_or_else(|| "the answer is empty".to_owned()));
        }
        std::thread::sleep(LOOK);
    }
    remove(out, Path::new(&format!("{QUESTION}{id}")));
    Err("no answer came: go on without it".to_owned())
}

/// Answers the questions of an agent until `is_over`. Runs outside the sandbox, on its own thread.
pub fn answer_questions(
    out: &Path,
    answer: &dyn Fn(&str, &Value) -> Result<String, String>,
    is_over: &dyn Fn() -> bool,
) {
    while !is_over() {
        for place in waiting(out, QUESTION) {
            let Some(bytes) = take(out, &place) else {
                continue;
            };
            let asked: Value = serde_json::from_slice(&bytes).unwrap_or_default();
            let told = match asked["question"].as_str() {
                Some(name) => answer(name, &asked["arguments"]),
                None => Err("the question cannot be read".to_owned()),
            };
            let text = match told {
                Ok(text) => json!({ "answer": text }),
                Err(why) => json!({ "failed": why }),
            };
            let id = place.to_string_lossy().replacen(QUESTION, "", 1);
            // If the out folder cannot be written, the tool reports that no answer came.
            let _ = publish(out, &format!("{ANSWER}{id}"), text.to_string().as_bytes());
        }
        std::thread::sleep(LOOK);
    }
    for place in waiting(out, QUESTION)
        .into_iter()
        .chain(waiting(out, ANSWER))
    {
        remove(out, &place);
    }
}

/// Whether a file in the out folder belongs to a question.
pub(crate) fn is_question(name: &str) -> bool {
    name.starts_with(QUESTION) || name.starts_with(ANSWER)
}

fn waiting(out: &Path, start: &str) -> Vec<PathBuf> {
    let mut found = Vec::new();
    let Ok(entries) = std::fs::read_dir(out) else {
        return found;
    };
    for entry in entries.flatten() {
        let name = entry.file_name().to_string_lossy().into_owned();
        let is_file = entry.file_type().is_ok_and(|kind| kind.is_file());
        if is_file && name.starts_with(start) && !name.ends_with(".part") {
            found.push(PathBuf::from(name));
        }
    }
    found.sort();
    found
}

/// Writes a file under a temporary name first, so that no reader sees half of it.
fn publish(out: &Path, name: &str, bytes: &[u8]) -> std::io::Result<()> {
    let part = format!("{name}.part");
    beneath::replace(out, Path::new(&part), bytes, Mode::from_raw_mode(0o644))?;
    std::fs::rename(out.join(part), out.join(name))
}

/// Reads a file and deletes it. None if there is none yet.
fn take(out: &Path, place: &Path) -> Option<Vec<u8>> {
    let file = beneath::open(out, place, OFlags::RDONLY, Mode::empty()).ok()?;
    let bytes = beneath::read(file, LARGEST).ok();
    remove(out, place);
    bytes
}

fn remove(out: &Path, place: &Path) {
    let is_file = std::fs::symlink_metadata(out.join(place))
        .is_ok_and(|meta| FileType::from_raw_mode(mode(&meta)) != FileType::Directory);
    if is_file {
        let _ = std::fs::remove_file(out.join(place));
    }
}

fn mode(meta: &std::fs::Metadata) -> u32 {
    use std::os::unix::fs::MetadataExt;
    meta.mode()
}

/// The lines of a brief about the tools of an agent. Empty if it has none.
pub(crate) fn told(assignment: &Assignment) -> String {
    let has = |name: &str| assignment.questions.iter().any(|known| known == name);
    let mut text = String::new();
    let english = assignment.language == Language::English;
    if has(ASK) {
        text.push_str(if english {
            "The tool `ask` (path, question) returns one sentence of a text that you may not read.\n"
        } else {
            "工具 `ask`（path, question）从你不能读的文本里取回一句话。\n"
        });
    }
    if has(CHECK) {
        text.push_str(if english {
            "The tool `check` (path) checks a text that you wrote against everything already written.\n"
        } else {
            "工具 `check`（path）拿你写好的文本对照已写下的一切。\n"
        });
    }
    text
}

/// The same for a person, who has a command line.
pub(crate) fn told_person(assignment: &Assignment) -> String {
    if !assignment.questions.iter().any(|known| known == ASK) {
        return String::new();
    }
    let unit = assignment.names.unit.as_ref();
    let unit = unit
        .map(|unit| format!(" --unit {unit}"))
        .unwrap_or_default();
    let role = &assignment.names.role;
    match assignment.language {
        Language::English => format!(
            "To ask a text that you may not read: quipu ask PATH \"QUESTION\" --as {role}{unit}\n"
        ),
        Language::Chinese => {
            format!("向不能读的文本提问：quipu ask 路径 \"问题\" --as {role}{unit}\n")
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::atomic::AtomicBool;

    #[test]
    fn a_question_is_answered_and_leaves_no_file() {
        let folder = tempfile::tempdir().unwrap();
        let over = AtomicBool::new(false);
        let answered = |name: &str, arguments: &Value| match name {
            ASK => Ok(format!("yes: {}", arguments["question"].as_str().unwrap())),
            _ => Err("unknown".to_owned()),
        };
        std::thread::scope(|scope| {
            let serving = scope.spawn(|| {
                answer_questions(folder.path(), &answered, &|| over.load(Ordering::Relaxed));
            });
            let asked = json!({ "path": "m.md", "question": "who?" });
            assert_eq!(put(folder.path(), ASK, &asked), Ok("yes: who?".to_owned()));
            assert_eq!(
                put(folder.path(), "other", &asked),
                Err("unknown".to_owned())
            );
            over.store(true, Ordering::Relaxed);
            serving.join().unwrap();
        });
        assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 0);
    }
}
