//! The transcript of an agent: JSON lines with a size bound, so that an agent with endless output
//! cannot fill the disk.

use serde_json::json;
use std::fs::{File, OpenOptions};
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::time::Instant;

/// Maximum bytes stored of one text.
const LONGEST_TEXT: usize = 256 * 1024;

/// Writes lines until the bound is reached, then only counts bytes.
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

    /// Appends one line: the source (`brief`, `out`, `err`, `sent`, `got`, `note`) and the text.
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

    /// Returns the number of bytes that did not fit.
    pub fn dropped(&self) -> u64 {
        self.dropped
    }
}

impl Drop for Transcript {
    fn drop(&mut self) {
        if let (Some(file), true) = (&mut self.file, self.dropped > 0) {
            let text = format!("{} more bytes of output were not kept", self.dropped);
            // The transcript is only a log: a full disk must not fail the agent's work.
            let _ = writeln!(file, "{}", json!({ "who": "note", "text": text }));
        }
    }
}

/// Returns the longest prefix of a text with at most this many bytes.
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
