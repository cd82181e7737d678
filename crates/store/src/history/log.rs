//! Reads the history: versions of a file, the log of commits, and records with notes.
//!
//! Every record points to the previous record about the same file, so the history of a file costs
//! as much as that file has records, not as much as the journal has.

use quipu_contract::ProjectPath;
use serde::Serialize;

use crate::clock::parse_time;
use crate::error::Result;
use crate::history::capture::captured_text;
use crate::journal::backwards::RECENT_BYTES;
use crate::journal::record::{Kind, OpKind, Record, Who, seq_of};
use crate::store::Store;
use crate::version::Version;

/// How many commits one search reads before it returns a page.
const LOG_SCAN: usize = 20_000;

/// Selects a state of a file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum At {
    Version(String),
    Seq(u64),
    /// The newest at or before this moment, in microseconds.
    Time(i64),
    /// This many versions back.
    Back(usize),
}

impl At {
    /// `a1b2c3…`, `@12`, `~2`, `2026-11-15T14:00:00Z`.
    pub fn parse(text: &str) -> Option<At> {
        if let Some(seq) = text.strip_prefix('@') {
            return seq.parse().ok().map(At::Seq);
        }
        if let Some(count) = text.strip_prefix('~') {
            return if count.is_empty() {
                Some(At::Back(1))
            } else {
                count.parse().ok().map(At::Back)
            };
        }
        if let Some(time) = parse_time(text) {
            return Some(At::Time(time));
        }
        (text.len() >= 4 && text.len() <= 16 && text.bytes().all(|b| b.is_ascii_hexdigit()))
            .then(|| At::Version(text.to_lowercase()))
    }
}

/// One commit, as `log` shows it.
#[derive(Debug, Clone, Serialize)]
pub struct LogEntry {
    pub seq: u64,
    pub id: String,
    pub at: String,
    pub kind: Kind,
    pub who: Who,
    pub why: Option<String>,
    pub paths: Vec<String>,
    /// The files of `paths` that this commit removed.
    #[serde(skip)]
    pub removed: Vec<String>,
    /// The record cannot be read. Its neighbours give its number, and nothing else is known.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub damaged: bool,
}

impl LogEntry {
    fn damaged(seq: u64) -> LogEntry {
        let (id, at) = (String::new(), String::new());
        LogEntry {
            seq,
            id,
            at,
            kind: Kind::Unknown,
            who: Who::unknown(),
            why: None,
            paths: Vec::new(),
            removed: Vec::new(),
            damaged: true,
        }
    }
}

/// A page of commits, and where the next page begins.
#[derive(Debug, Clone, Serialize)]
pub struct LogPage {
    pub entries: Vec<LogEntry>,
    /// The next page begins before this commit; none at the beginning of the journal.
    pub next: Option<u64>,
}

/// A record with a note, and the files that it changed.
#[derive(Debug, Clone, Serialize)]
pub struct Noted {
    pub seq: u64,
    pub at: String,
    pub kind: Kind,
    pub who: Who,
    pub why: Option<String>,
    pub note: serde_json::Value,
    /// The text of a conversation, if the record captured one and it was not purged.
    #[serde(skip)]
    pub text: Option<String>,
    pub files: Vec<NotedFile>,
}

#[derive(Debug, Clone, Serialize)]
pub struct NotedFile {
    pub path: String,
    pub base: Option<Version>,
    pub version: Version,
}

impl From<&Record> for LogEntry {
    fn from(record: &Record) -> LogEntry {
        let mut paths: Vec<String> = record
            .ops
            .iter()
            .filter(|o| o.path != crate::history::capture::PLACE)
            .map(|o| o.path.clone())
            .collect();
        if let Some(event) = &record.lease {
            if event.paths.is_empty() {
                paths.push(format!(
                    "session {} {}",
                    event.id,
                    if event.act == "release" {
                        "ends"
                    } else {
                        "begins"
                    }
                ));
            }
            paths.extend(event.paths.iter().map(|p| format!("{} {p}", event.act)));
        }
        let removed = record.ops.iter().filter(|o| o.op == OpKind::Remove);
        LogEntry {
            removed: removed.map(|o| o.path.clone()).collect(),
            seq: record.seq,
            id: record.id.clone(),
            at: record.at.clone(),
            kind: record.kind,
            who: record.who.clone(),
            why: record.why.clone(),
            paths,
            damaged: false,
        }
    }
}

impl Store {
    /// The newest records, newest first, from the last bytes of the journal only. The cost does not
    /// grow with the journal.
    pub fn recent(&self, most: usize) -> Result<Vec<LogEntry>> {
        self.recent_until(most, &mut |_| false)
    }

    /// The newest records up to and including one for which `is_last` is true.
    pub fn recent_until(
        &self,
        most: usize,
        is_last: &mut dyn FnMut(&LogEntry) -> bool,
    ) -> Result<Vec<LogEntry>> {
        self.settle()?;
        let mut entries = Vec::new();
        if most == 0 {
            return Ok(entries);
        }
        self.journal
            .each_line_newest_first(RECENT_BYTES, &mut |_, line| {
                if let Ok(record) = Record::decode(line) {
                    entries.push(LogEntry::from(&record));
                    return entries.len() < most && !entries.last().is_some_and(&mut *is_last);
                }
                true
            })?;
        Ok(entries)
    }

    /// The number of the newest commit.
    pub fn newest_seq(&self) -> Result<u64> {
        let mut newest = 0;
        self.journal
            .each_newest_first(1, &mut |_, record| newest = newest.max(record.seq))?;
        Ok(newest)
    }

    /// The newest commit of each file; zero if no commit changed it.
    pub fn newest_of(&self, paths: &[ProjectPath]) -> Result<Vec<u64>> {
        let file_index = self.index.sound(|| {
            self.index
                .open()?
                .heads_of(paths.iter().map(ProjectPath::as_str))
        })?;
        Ok(file_index
            .into_iter()
            .map(|head| head.map_or(0, |head| head.seq))
            .collect())
    }

    /// The records with a note after a commit, oldest first.
    pub fn noted(&self, after: u64) -> Result<Vec<Noted>> {
        self.noted_among(after, usize::MAX)
    }

    /// Like `noted`, but only among the newest `most` records: for a scan that must not cost more
    /// the longer ago the commit was.
    pub fn noted_among(&self, after: u64, most: usize) -> Result<Vec<Noted>> {
        self.settle()?;
        let (mut left, mut found) = (most, Vec::new());
        // A quote inside a JSON string is escaped, so this text can only be the field itself.
        self.journal
            .each_line_newest_first(u64::MAX, &mut |_, line| {
                if left == 0 || seq_of(line).is_some_and(|seq| seq <= after) {
                    return false;
                }
                left -= 1;
                if memchr::memmem::find(line, b",\"note\":{").is_some()
                    && let Ok(mut record) = Record::decode(line)
                    && let Some(note) = record.note.take()
                {
                    let text = captured_text(&record);
                    let files = record.ops.into_iter().filter(|o| o.op != OpKind::Keep);
                    let files = files
                        .map(|o| NotedFile {
                            path: o.path,
                            base: o.base,
                            version: o.version,
                        })
                        .collect();
                    found.push(Noted {
                        seq: record.seq,
                        at: record.at,
                        kind: record.kind,
                        who: record.who,
                        why: record.why,
                        note,
                        text,
                        files,
                    });
                }
                true
            })?;
        found.reverse();
        Ok(found)
    }

    /// The newest commits, newest first, damaged ones included.
    pub fn log(&self, most: usize) -> Result<Vec<LogEntry>> {
        self.settle()?;
        let mut entries: Vec<LogEntry> = Vec::new();
        if most == 0 {
            return Ok(entries);
        }
        self.journal
            .each_line_newest_first(u64::MAX, &mut |_, line| {
                entries.push(match Record::decode(line) {
                    Ok(record) => LogEntry::from(&record),
                    // The newer record gives the number; the damaged line may have the wrong one.
                    Err(_) => LogEntry::damaged(entries.last().map_or_else(
                        || seq_of(line).unwrap_or(0),
                        |newer| newer.seq.saturating_sub(1),
                    )),
                });
                entries.len() < most
            })?;
        Ok(entries)
    }

    /// The newest commits before a commit that satisfy `wanted`, newest first. Reads a bounded
    /// number of commits.
    pub fn log_before(
        &self,
        before: Option<u64>,
        most: usize,
        wanted: &dyn Fn(&LogEntry) -> bool,
    ) -> Result<LogPage> {
        self.settle()?;
        let mut page = LogPage {
            entries: Vec::new(),
            next: None,
        };
        let mut looked = 0;
        self.journal
            .each_line_newest_first(u64::MAX, &mut |_, line| {
                if before.is_some_and(|before| seq_of(line).is_some_and(|seq| seq >= before)) {
                    return true;
                }
                let Ok(record) = Record::decode(line) else {
                    return true;
                };
                if page.entries.len() == most || looked == LOG_SCAN {
                    page.next = Some(record.seq + 1);
                    return false;
                }
                looked += 1;
                let entry = LogEntry::from(&record);
                if wanted(&entry) {
                    page.entries.push(entry);
                }
                true
            })?;
        Ok(page)
    }

    /// The number of the newest commit, at the lowest cost, for polling.
    pub fn pulse(&self) -> Result<u64> {
        let known = if self.is_read_only() {
            None
        } else {
            self.journal.watermarks_now()?.tail()
        };
        known.map_or_else(|| self.newest_seq(), |tail| Ok(tail.seq))
    }
}
