//! The transcript of a run: JSON lines, bounded, so that an agent that never stops talking cannot
//! fill the disk.

use serde_json::json;
use std::fs::{File, OpenOptions};
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::time::Instant;

/// Bytes of one text that are kept in one line.
const LONGEST_TEXT: usize = 256 * 1024;

/// Writes what was said, until its bound is reached; from then on it counts.
pub struct Transcript {
    file: Option<File>,
    path: PathBuf,
    began: Instant,
    left: u64,
    dropped: u64,
}

impl Transcript {
    /// Opens `transcript.jsonl` in the record folder for appending.
    pub fn open(record: &Path, bound: u64) -> io::Result<Self> {
        std::fs::create_dir_all(record)?;
        let path = record.join("transcript.jsonl");
        let file = OpenOptions::new().create(true).append(true).open(&path)?;
        let used = file.metadata()?.len();
        Ok(Transcript {
            file: Some(file),
            path,
            began: Instant::now(),
            left: bound.saturating_sub(used),
            dropped: 0,
        })
    }

    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Adds one line: who spoke (`brief`, `out`, `err`, `sent`, `got`, `note`) and what.
    pub fn say(&mut self, who: &str, text: &str) {
        let kept = cut(text, LONGEST_TEXT);
        let mut line =
            json!({ "ms": self.began.elapsed().as_millis() as u64, "who": who, "text": kept });
        if kept.len() < text.len() {
            line["cut"] = json!(text.len() - kept.len());
        }
        let line = format!("{line}\n");
        let long = line.len() as u64;
        if long > self.left {
            self.dropped += long;
            return;
        }
        if let Some(file) = &mut self.file {
            match file.write_all(line.as_bytes()) {
                Ok(()) => self.left -= long,
                Err(_) => self.file = None,
            }
        }
    }

    /// Bytes that did not fit.
    pub fn dropped(&self) -> u64 {
        self.dropped
    }
}

impl Drop for Transcript {
    fn drop(&mut self) {
        if let (Some(file), true) = (&mut self.file, self.dropped > 0) {
            let text = format!("{} more bytes were said and not kept", self.dropped);
            // The transcript is a witness, not a result: a full disk must not fail the run.
            let _ = writeln!(file, "{}", json!({ "who": "note", "text": text }));
        }
    }
}

/// The longest beginning of a text that has at most so many bytes.
pub(crate) fn cut(text: &str, bytes: usize) -> &str {
    if text.len() <= bytes {
        return text;
    }
    let mut end = bytes;
    while !text.is_char_boundary(end) {
        end -= 1;
    }
    &text[..end]
}
