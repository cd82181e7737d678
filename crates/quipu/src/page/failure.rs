//! The newest failed attempt of a job: its agent, and the last lines that its program printed.

use std::path::Path;

use quipu_protocol::flow::{AttemptFact, AttemptResult, JobStatus, State as Stand, folder_of};
use serde_json::{Value, json};

use super::now::read_tail;

/// Bytes searched at the end of a transcript.
const TAIL: u64 = 32 << 10;
/// Maximum number of lines shown, and of characters in a line.
const LINES: usize = 6;
const LINE: usize = 240;

/// Returns the failure of a failed job; null for a job that did not fail, or that only objections
/// stop. `printed` is null if nothing is known about the output.
pub fn failure_json(root: &Path, facts: &[AttemptFact], status: &JobStatus) -> Value {
    if status.state != Stand::Failed || status.failures == 0 {
        return Value::Null;
    }
    let failed = facts
        .iter()
        .rev()
        .find(|fact| fact.note.ruling == AttemptResult::Failed && fact.note.job() == status.job);
    let Some(note) = failed.map(|fact| &fact.note) else {
        return Value::Null;
    };
    let transcript = folder_of(root, &note.attempt).join("transcript.jsonl");
    let printed = read_tail(&transcript, TAIL).and_then(|tail| last_printed(&tail));
    json!({"agent": note.agent, "printed": printed})
}

/// Returns the last lines of plain text that a program printed after its last brief. None if it
/// printed only records for programs, which no person reads.
fn last_printed(transcript: &str) -> Option<Vec<String>> {
    let lines = transcript
        .lines()
        .filter_map(|line| serde_json::from_str::<Value>(line).ok());
    let (mut printed, mut records) = (Vec::new(), false);
    for line in lines {
        let text = line["text"].as_str().unwrap_or_default().trim_end();
        match line["who"].as_str() {
            Some("brief") => (printed, records) = (Vec::new(), false),
            Some("out" | "err") if text.trim_start().starts_with('{') => records = true,
            Some("out" | "err") if !text.is_empty() => {
                printed.push(text.chars().take(LINE).collect());
            }
            Some("got") => records = true,
            _ => {}
        }
    }
    printed.drain(..printed.len().saturating_sub(LINES));
    (!printed.is_empty() || !records).then_some(printed)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn transcript(lines: &[(&str, &str)]) -> String {
        let line = |(who, text): &(&str, &str)| format!("{}\n", json!({"who": who, "text": text}));
        lines.iter().map(line).collect()
    }

    #[test]
    fn the_last_lines_of_text_are_kept_and_records_are_not_shown() {
        let many: Vec<(&str, String)> = (0..9).map(|nth| ("out", format!("line {nth}"))).collect();
        let many: Vec<(&str, &str)> = many.iter().map(|(who, text)| (*who, &**text)).collect();
        let kept = last_printed(&transcript(&many)).unwrap();
        assert_eq!((kept.len(), &*kept[0]), (LINES, "line 3"));
        let last = [
            ("err", "the first try"),
            ("brief", "again"),
            ("out", "{\"type\":\"result\"}"),
            ("err", "no key"),
            ("out", ""),
            ("note", "ended with exit code 1"),
        ];
        assert_eq!(last_printed(&transcript(&last)).unwrap(), ["no key"]);
        assert_eq!(last_printed(&transcript(&last[1..3])), None);
        assert_eq!(last_printed(&transcript(&last[1..2])).unwrap().len(), 0);
        let long = "x".repeat(2 * LINE);
        let kept = last_printed(&transcript(&[("err", &long)])).unwrap();
        assert_eq!(kept[0].len(), LINE);
    }
}
