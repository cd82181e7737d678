//! Reads the history: versions of a file, the log of commits, and records with notes.
//!
//! Every record points to the previous record about the same file, so the history of a file costs
//! as much as that file has records, not as much as the journal has.

use quipu_contract::ProjectPath;
use serde::Serialize;

use crate::body::{Gap, compose};
use crate::clock::parse_time;
use crate::error::{Result, StoreError};
use crate::heads::Head;
use crate::journal::Position;
use crate::record::{Kind, OpKind, Record, RecordOp, Who};
use crate::store::Store;
use crate::version::Version;

/// How much of the journal a scan of recent records reads.
pub(crate) const RECENT_BYTES: u64 = 512 << 10;

/// How many commits one search reads before it returns a page.
const LOOKED: usize = 20_000;

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
    /// The record cannot be read. Its neighbours give its number, and nothing else is known.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub damaged: bool,
}

impl LogEntry {
    fn damaged(seq: u64) -> LogEntry {
        let who = Who {
            kind: "unknown".into(),
            ..Who::default()
        };
        let (id, at) = (String::new(), String::new());
        LogEntry {
            seq,
            id,
            at,
            kind: Kind::Unknown,
            who,
            why: None,
            paths: Vec::new(),
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
            .filter(|o| o.path != crate::capture::PLACE)
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
        LogEntry {
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
    /// The text of a file: from the file itself if its stat is unchanged, otherwise from the
    /// journal.
    pub(crate) fn content(&self, path: &ProjectPath, head: &Head) -> Result<Vec<u8>> {
        if let Some(stamp) = head.stamp
            && let Ok(Some((bytes, found))) = self.tree.read(path)
            && found == stamp
        {
            return Ok(bytes);
        }
        self.content_from_journal(path, head)
    }

    pub(crate) fn content_from_journal(&self, path: &ProjectPath, head: &Head) -> Result<Vec<u8>> {
        match self.plain_content(path, head) {
            Err(damage @ StoreError::Damaged { .. }) => self.proven_content(path, head, damage),
            other => other,
        }
    }

    /// The text of a file from the journal alone.
    pub(crate) fn plain_content(&self, path: &ProjectPath, head: &Head) -> Result<Vec<u8>> {
        let mut ops: Vec<RecordOp> = Vec::new();
        self.walk(path, head.at, &mut |_, op| {
            ops.push(op.clone());
            !op.edit().is_start()
        })?;
        // If lines were moved, another record is at that position.
        if ops
            .first()
            .is_none_or(|newest| (&newest.version, newest.len) != (&head.version, head.len))
        {
            return Err(Gap::Mismatch.of_newest(path));
        }
        compose(ops.iter().map(RecordOp::edit)).map_err(|gap| gap.of_newest(path))
    }

    /// Visits the operations on a file, newest first, until `visit` returns false.
    pub(crate) fn walk(
        &self,
        path: &ProjectPath,
        from: Position,
        visit: &mut dyn FnMut(&Record, &RecordOp) -> bool,
    ) -> Result<()> {
        let mut next = Some(from);
        while let Some(at) = next {
            let record = self.journal.read_record(at)?;
            next = None;
            for op in record.about(path.as_str()) {
                if !visit(&record, op) {
                    return Ok(());
                }
                next = op
                    .last
                    .as_deref()
                    .and_then(Position::parse)
                    .filter(|last| *last < at);
            }
        }
        Ok(())
    }

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
        let bound = self.bound()?;
        let mut entries = Vec::new();
        let mut until = bound;
        // Try a small window first: it is usually enough.
        for window in [RECENT_BYTES / 16, RECENT_BYTES] {
            let from = Position {
                segment: bound.segment,
                offset: bound.offset.saturating_sub(window),
            };
            let bytes = self.journal.read_between(from, until)?;
            match take_lines(&bytes, from.offset == 0, most, is_last, &mut entries) {
                None => return Ok(entries),
                Some(end) => until.offset = from.offset + end as u64,
            }
            if from.offset == 0 {
                break;
            }
        }
        // The newest segment may have only just begun.
        let mut left = RECENT_BYTES.saturating_sub(bound.offset) as usize;
        let older = if left > 0 {
            self.journal.segments()?
        } else {
            Vec::new()
        };
        for segment in older
            .into_iter()
            .rev()
            .filter(|number| *number < bound.segment)
        {
            let bytes = self.journal.read_segment(segment)?;
            let bytes = crate::segment::trim_fill(&bytes);
            let from = bytes.len().saturating_sub(left);
            if take_lines(&bytes[from..], from == 0, most, is_last, &mut entries).is_none()
                || from > 0
            {
                break;
            }
            left -= bytes.len();
        }
        Ok(entries)
    }

    /// Visits the last lines of the journal, newest first, within a window of bytes. Returns
    /// whether `visit` ended the scan.
    pub(crate) fn each_last_line(
        &self,
        window: u64,
        visit: &mut dyn FnMut(&[u8]) -> bool,
    ) -> Result<bool> {
        let bound = self.bound()?;
        let from = Position {
            segment: bound.segment,
            offset: bound.offset.saturating_sub(window),
        };
        let bytes = self.journal.read_between(from, bound)?;
        let mut end = bytes.len();
        while end > 0 {
            let start = memchr::memrchr(b'\n', &bytes[..end]).map_or(0, |newline| newline + 1);
            // A line that begins before the window is incomplete.
            if start == 0 && from.offset > 0 {
                break;
            }
            if start < end && !visit(&bytes[start..end]) {
                return Ok(true);
            }
            end = start.saturating_sub(1);
        }
        Ok(false)
    }

    /// The number of the newest commit.
    pub fn newest_seq(&self) -> Result<u64> {
        let mut newest = 0;
        self.each_newest_first(1, &mut |_, record| newest = newest.max(record.seq))?;
        Ok(newest)
    }

    /// The newest commit of each file; zero if no commit changed it.
    pub fn newest_of(&self, paths: &[ProjectPath]) -> Result<Vec<u64>> {
        let heads = self.with_sound_heads(|| {
            self.heads()?
                .heads_of(paths.iter().map(ProjectPath::as_str))
        })?;
        Ok(heads
            .into_iter()
            .map(|head| head.map_or(0, |head| head.seq))
            .collect())
    }

    /// Visits the newest records of the journal, newest first.
    pub(crate) fn each_newest_first(
        &self,
        most: usize,
        visit: &mut dyn FnMut(Position, &Record),
    ) -> Result<()> {
        let mut left = most;
        if left == 0 {
            return Ok(());
        }
        self.each_place_newest_first(&mut |at, line| {
            if let Ok(record) = Record::decode(line) {
                visit(at, &record);
                left -= 1;
            }
            left > 0
        })
    }

    fn each_line_newest_first(&self, visit: &mut dyn FnMut(&[u8]) -> bool) -> Result<()> {
        self.each_place_newest_first(&mut |_, line| visit(line))
    }

    /// Visits the lines of the journal, newest first, until `visit` returns false.
    pub(crate) fn each_place_newest_first(
        &self,
        visit: &mut dyn FnMut(Position, &[u8]) -> bool,
    ) -> Result<()> {
        let bound = self.bound()?;
        for segment in self
            .journal
            .segments()?
            .into_iter()
            .rev()
            .filter(|n| *n <= bound.segment)
        {
            let bytes = self.journal.read_segment(segment)?;
            let mut end = if segment == bound.segment {
                bytes
                    .len()
                    .min(usize::try_from(bound.offset).unwrap_or(usize::MAX))
            } else {
                bytes.len()
            };
            end = crate::segment::trim_fill(&bytes[..end]).len();
            while end > 0 {
                if bytes[end - 1] == b'\n' {
                    end -= 1;
                    continue;
                }
                let start = memchr::memrchr(b'\n', &bytes[..end]).map_or(0, |newline| newline + 1);
                if !visit(
                    Position {
                        segment,
                        offset: start as u64,
                    },
                    &bytes[start..end],
                ) {
                    return Ok(());
                }
                end = start;
            }
        }
        Ok(())
    }

    /// The records with a note after a commit, oldest first.
    pub fn noted(&self, after: u64) -> Result<Vec<Noted>> {
        self.settle()?;
        let mut found = Vec::new();
        // A quote inside a JSON string is escaped, so this text can only be the field itself.
        self.each_line_newest_first(&mut |line| {
            if seq_of(line).is_some_and(|seq| seq <= after) {
                return false;
            }
            if memchr::memmem::find(line, b",\"note\":{").is_some()
                && let Ok(record) = Record::decode(line)
                && let Some(note) = record.note
            {
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
        self.each_line_newest_first(&mut |line| {
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
        self.each_line_newest_first(&mut |line| {
            if before.is_some_and(|before| seq_of(line).is_some_and(|seq| seq >= before)) {
                return true;
            }
            let Ok(record) = Record::decode(line) else {
                return true;
            };
            if page.entries.len() == most || looked == LOOKED {
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
            self.live_now()?.tail()
        };
        known.map_or_else(|| self.newest_seq(), |tail| Ok(tail.seq))
    }
}

/// The number of a record, from its first bytes: cheaper than decoding it.
pub(crate) fn seq_of(line: &[u8]) -> Option<u64> {
    let rest = line.strip_prefix(b"{\"v\":2,\"seq\":")?;
    let digits = rest.iter().position(|b| !b.is_ascii_digit())?;
    std::str::from_utf8(&rest[..digits]).ok()?.parse().ok()
}

/// Adds the records in the last bytes of a segment, newest first. Returns the end of the first line
/// that was not read, or none if there are enough entries.
fn take_lines(
    bytes: &[u8],
    is_whole: bool,
    most: usize,
    is_last: &mut dyn FnMut(&LogEntry) -> bool,
    entries: &mut Vec<LogEntry>,
) -> Option<usize> {
    let mut end = bytes.len();
    while end > 0 {
        if entries.len() == most {
            return None;
        }
        let start = memchr::memrchr(b'\n', &bytes[..end]).map_or(0, |newline| newline + 1);
        // A line that begins before these bytes is incomplete.
        if start == 0 && !is_whole {
            break;
        }
        if start < end
            && let Ok(record) = Record::decode(&bytes[start..end])
        {
            entries.push(LogEntry::from(&record));
            if entries.last().is_some_and(&mut *is_last) {
                return None;
            }
        }
        end = start.saturating_sub(1);
    }
    Some(end)
}
