//! What is journalled and whose files are not yet in place: records that were made or read here, and
//! lines of other processes as they stand in the journal.
//!
//! Of a line that another process wrote this one needs to know only that it follows the line before
//! it, and which files it touches. So its sum is checked and its paths are noted; it is read in full
//! when someone asks about one of these files, or when they are put in place. Otherwise every process
//! would read every record of all others, and the work would grow with the square of their number.

use std::collections::{HashMap, VecDeque};
use std::ops::Range;
use std::sync::{Arc, LazyLock};

use memchr::memmem::Finder;

use crate::clock::parse_time;
use crate::error::{Result, StoreError};
use crate::heads::Head;
use crate::journal::Position;
use crate::live::Tail;
use crate::record::{FORMAT, OpKind, Record, Unread, sum_if_sound};

/// A record of the journal and where it stands.
#[derive(Clone)]
pub(crate) struct Journalled {
    pub at: Position,
    /// The end of the journal behind it.
    pub end: Tail,
    pub record: Arc<Record>,
}

/// A whole line of the journal, without its newline, that has not been read.
#[derive(Clone)]
struct Line {
    at: Position,
    lines: Arc<Vec<u8>>,
    range: Range<usize>,
}

#[derive(Clone)]
enum Entry {
    Record(Journalled),
    Line(Line),
}

impl Entry {
    fn at(&self) -> Position {
        match self {
            Entry::Record(journalled) => journalled.at,
            Entry::Line(line) => line.at,
        }
    }

    fn end(&self) -> Position {
        match self {
            Entry::Record(journalled) => journalled.end.at,
            Entry::Line(line) => line.end(),
        }
    }
}

enum Newest {
    Head(Head),
    In(Line),
}

/// The records behind the files, oldest first, and the newest head that they make of each file.
#[derive(Default)]
pub(crate) struct Unplaced {
    entries: VecDeque<Entry>,
    newest: HashMap<String, Newest>,
}

impl Unplaced {
    /// What this process has written itself.
    pub fn push(&mut self, journalled: Journalled) {
        for op in journalled.record.ops.iter().filter(|o| o.op != OpKind::Keep) {
            let head = Newest::Head(Head::after(op, journalled.at, journalled.record.seq));
            match self.newest.get_mut(&op.path) {
                Some(newest) => *newest = head,
                None => drop(self.newest.insert(op.path.clone(), head)),
            }
        }
        self.entries.push_back(Entry::Record(journalled));
    }

    /// What others have written between two places. False, and nothing is changed, unless every line follows the one
    /// before it up to the very end, and only the index need know more of any of them.
    pub fn follow(&mut self, lines: &Arc<Vec<u8>>, from: &Tail, to: &Tail) -> bool {
        let mut fresh: Vec<(Entry, Vec<Range<usize>>)> = Vec::new();
        let (mut start, mut sum) = (0, from.sum.as_str());
        while start < lines.len() {
            let Some(length) = memchr::memchr(b'\n', &lines[start..]) else { return false };
            let line = Line {
                at: Position { segment: from.at.segment, offset: from.at.offset + start as u64 },
                range: start..start + length,
                lines: Arc::clone(lines),
            };
            let Some(next) = sum_if_sound(&lines[line.range.clone()], sum) else { return false };
            fresh.push(match paths_in(lines, &line.range) {
                Some(paths) => (Entry::Line(line), paths),
                None => match line.read() {
                    Ok(journalled) if journalled.record.lease.is_none() => (Entry::Record(journalled), Vec::new()),
                    _ => return false,
                },
            });
            sum = next;
            start += length + 1;
        }
        let end = Position { segment: from.at.segment, offset: from.at.offset + lines.len() as u64 };
        if end != to.at || sum != to.sum {
            return false;
        }
        for (entry, paths) in fresh {
            match entry {
                Entry::Record(journalled) => self.push(journalled),
                Entry::Line(line) => {
                    for range in paths {
                        // Checked where the paths were found.
                        let path = std::str::from_utf8(&lines[range]).unwrap_or_default();
                        match self.newest.get_mut(path) {
                            Some(newest) => *newest = Newest::In(line.clone()),
                            None => drop(self.newest.insert(path.to_owned(), Newest::In(line.clone()))),
                        }
                    }
                    self.entries.push_back(Entry::Line(line));
                }
            }
        }
        true
    }

    /// The newest head of a file, if any of these records touches it.
    pub fn head(&mut self, path: &str) -> Result<Option<Head>> {
        let line = match self.newest.get(path) {
            None => return Ok(None),
            Some(Newest::Head(head)) => return Ok(Some(head.clone())),
            Some(Newest::In(line)) => line.clone(),
        };
        let head = match line.read()?.head(path) {
            Some(head) => head,
            // The words were there and meant something else: then all lines are read.
            None => return self.head_by_reading(path),
        };
        self.newest.insert(path.to_owned(), Newest::Head(head.clone()));
        Ok(Some(head))
    }

    fn head_by_reading(&mut self, path: &str) -> Result<Option<Head>> {
        let entries = std::mem::take(&mut self.entries);
        self.newest.clear();
        for entry in entries {
            self.push(match entry {
                Entry::Record(journalled) => journalled,
                Entry::Line(line) => line.read()?,
            });
        }
        match self.newest.get(path) {
            Some(Newest::Head(head)) => Ok(Some(head.clone())),
            _ => Ok(None),
        }
    }

    /// Where the commit with a key stands, if it is one of these.
    pub fn key(&self, key: &str) -> Option<Position> {
        let needle = format!("\"key\":{}", serde_json::Value::from(key));
        let finder = Finder::new(&needle);
        let has = |record: &Record| record.key.as_deref() == Some(key);
        let found = self.entries.iter().find(|entry| match entry {
            Entry::Record(journalled) => has(&journalled.record),
            Entry::Line(line) => finder.find(line.bytes()).is_some() && line.read().is_ok_and(|read| has(&read.record)),
        });
        found.map(Entry::at)
    }

    /// The oldest of these that end before or at a place; none if one of them cannot be read.
    pub fn records_to(&mut self, end: Position) -> Option<Vec<Journalled>> {
        let mut records = Vec::new();
        for entry in self.entries.iter_mut().take_while(|entry| entry.end() <= end) {
            if let Entry::Line(line) = entry {
                *entry = Entry::Record(line.read().ok()?);
            }
            if let Entry::Record(journalled) = entry {
                records.push(journalled.clone());
            }
        }
        Some(records)
    }

    pub fn begins_at(&self, at: Position) -> bool {
        self.entries.front().is_some_and(|first| first.at() == at)
    }

    /// The files of the oldest records are in place, with these heads.
    pub fn forget(&mut self, records: usize, heads: &[(String, Head)]) {
        for (path, head) in heads {
            let at = match self.newest.get(path) {
                Some(Newest::Head(newest)) => newest.at,
                Some(Newest::In(line)) => line.at,
                None => continue,
            };
            if at == head.at {
                self.newest.remove(path);
            }
        }
        self.entries.drain(..records);
    }
}

impl Line {
    fn bytes(&self) -> &[u8] {
        &self.lines[self.range.clone()]
    }

    fn end(&self) -> Position {
        Position { segment: self.at.segment, offset: self.at.offset + self.range.len() as u64 + 1 }
    }

    fn read(&self) -> Result<Journalled> {
        let damaged = |unread: Unread| StoreError::Damaged { segment: self.at.segment, line: 0, what: unread.to_string() };
        let record = Record::decode(self.bytes()).map_err(damaged)?;
        let end = Tail { at: self.end(), seq: record.seq, wall_us: parse_time(&record.at).unwrap_or_default(), sum: record.sum.clone() };
        Ok(Journalled { at: self.at, end, record: Arc::new(record) })
    }
}

impl Journalled {
    fn head(&self, path: &str) -> Option<Head> {
        let op = self.record.ops.iter().rfind(|o| o.path == path && o.op != OpKind::Keep)?;
        Some(Head::after(op, self.at, self.record.seq))
    }
}

/// Where a line names the files that it touches; none if it has to be read to know that. A quote inside a JSON string is
/// escaped, so what is found with its quotes is a field and no text.
fn paths_in(lines: &[u8], range: &Range<usize>) -> Option<Vec<Range<usize>>> {
    static PATH: LazyLock<Finder<'static>> = LazyLock::new(|| Finder::new("\"path\":\""));
    static NOTE: LazyLock<Finder<'static>> = LazyLock::new(|| Finder::new("\"note\":"));
    static LEASE: LazyLock<Finder<'static>> = LazyLock::new(|| Finder::new("\"lease\":"));
    static BEGIN: LazyLock<String> = LazyLock::new(|| format!("{{\"v\":{FORMAT},"));
    let line = &lines[range.clone()];
    if !line.starts_with(BEGIN.as_bytes()) || NOTE.find(line).is_some() || LEASE.find(line).is_some() {
        return None;
    }
    let mut paths = Vec::new();
    for hit in PATH.find_iter(line) {
        let before = &line[..hit];
        if before.ends_with(b"{\"op\":\"keep\",") {
            continue;
        }
        if ![&b"{\"op\":\"write\","[..], b"{\"op\":\"append\",", b"{\"op\":\"remove\","].iter().any(|op| before.ends_with(op)) {
            return None;
        }
        let start = hit + PATH.needle().len();
        let length = memchr::memchr2(b'"', b'\\', &line[start..])?;
        if line[start + length] == b'\\' || std::str::from_utf8(&line[start..start + length]).is_err() {
            return None;
        }
        paths.push(range.start + start..range.start + start + length);
    }
    Some(paths)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::record::{Kind, LeaseEvent, ROOT_SUM, RecordOp, Who};
    use crate::version::Version;

    fn op(op: OpKind, path: &str) -> RecordOp {
        let version = Version::of(path.as_bytes());
        let op =
            RecordOp { op, path: path.into(), class: "append".into(), base: None, version, len: 1, last: None, text: None, base64: None };
        op.with_bytes(b"said: {\"op\":\"write\",\"path\":\"no.md\"} \"note\":1 \"lease\":{}\n".to_vec())
    }

    fn record(ops: Vec<RecordOp>) -> Record {
        Record {
            v: FORMAT,
            seq: 0,
            id: "i".into(),
            at: "2026-11-15T14:00:00.000000Z".into(),
            kind: Kind::Commit,
            who: Who::outside(),
            why: Some("\"path\":\"no.md\"".into()),
            key: Some("a \"key\"".into()),
            note: None,
            ops,
            lease: None,
            synced: None,
            elsewhere: false,
            prev: String::new(),
            sum: String::new(),
        }
    }

    /// The lines of some records, and the place behind them.
    fn lines(records: Vec<Record>) -> (Vec<u8>, Tail) {
        let (mut lines, mut tail) =
            (Vec::new(), Tail { at: Position { segment: 3, offset: 70 }, seq: 9, wall_us: 0, sum: ROOT_SUM.into() });
        for mut record in records {
            (record.seq, record.prev) = (tail.seq + 1, tail.sum);
            let (line, sum) = record.encode();
            lines.extend(&line);
            tail = Tail { at: Position { segment: 3, offset: tail.at.offset + line.len() as u64 }, seq: record.seq, wall_us: 0, sum };
        }
        (lines, tail)
    }

    fn start() -> Tail {
        lines(Vec::new()).1
    }

    fn followed(records: Vec<Record>) -> Option<Unplaced> {
        let (lines, end) = lines(records);
        let mut unplaced = Unplaced::default();
        unplaced.follow(&Arc::new(lines), &start(), &end).then_some(unplaced)
    }

    #[test]
    fn heads_are_found_in_lines_that_were_not_read() {
        let first = record(vec![op(OpKind::Write, "a.md"), op(OpKind::Append, "术语.md"), op(OpKind::Remove, "b.md")]);
        let second = record(vec![op(OpKind::Keep, "a.md"), op(OpKind::Append, "b.md")]);
        let mut unplaced = followed(vec![first, second]).unwrap();
        assert!(unplaced.entries.iter().all(|entry| matches!(entry, Entry::Line(_))));
        assert_eq!(unplaced.head("no.md").unwrap(), None);
        for (path, seq, gone) in [("a.md", 10, false), ("术语.md", 10, false), ("b.md", 11, false)] {
            let head = unplaced.head(path).unwrap().unwrap();
            assert_eq!((head.seq, head.gone), (seq, gone), "{path}");
            assert_eq!(unplaced.head(path).unwrap().unwrap(), head);
        }
        assert_eq!(unplaced.key("a \"key\""), Some(start().at));
        assert_eq!(unplaced.key("key"), None);
        let all = unplaced.records_to(Position { segment: 4, offset: 0 }).unwrap();
        assert_eq!(all.iter().map(|j| j.record.seq).collect::<Vec<_>>(), [10, 11]);
        assert_eq!(unplaced.records_to(all[0].end.at).unwrap().len(), 1);
        assert!(unplaced.begins_at(all[0].at));
        unplaced.forget(1, &[("a.md".into(), all[0].head("a.md").unwrap()), ("b.md".into(), all[0].head("b.md").unwrap())]);
        assert_eq!(unplaced.head("a.md").unwrap(), None);
        assert_eq!(unplaced.head("b.md").unwrap().unwrap().seq, 11);
    }

    #[test]
    fn what_a_note_says_touches_nothing() {
        let mut noted = record(vec![op(OpKind::Write, "a.md")]);
        noted.note = Some(serde_json::json!({"ops": [{"op": "write", "path": "b.md"}]}));
        let mut unplaced = followed(vec![record(vec![op(OpKind::Write, "b.md")]), noted]).unwrap();
        assert_eq!(unplaced.head("b.md").unwrap().unwrap().seq, 10);
        assert_eq!(unplaced.head("a.md").unwrap().unwrap().seq, 11);
    }

    #[test]
    fn a_path_that_is_escaped_is_read() {
        let mut unplaced = followed(vec![record(vec![op(OpKind::Write, "a \"b\".md")])]).unwrap();
        assert_eq!(unplaced.head("a \"b\".md").unwrap().unwrap().seq, 10);
    }

    #[test]
    fn leases_and_whatever_does_not_follow_are_not_kept_in_mind() {
        let mut leased = record(Vec::new());
        leased.lease = Some(LeaseEvent {
            act: "take".into(),
            id: "l".into(),
            paths: Vec::new(),
            fence: 1,
            until: String::new(),
            boot: String::new(),
            boot_until_us: 0,
            length_us: 0,
        });
        assert!(followed(vec![leased]).is_none());
        let two = || vec![record(vec![op(OpKind::Write, "a.md")]), record(vec![op(OpKind::Append, "a.md")])];
        let (whole, end) = lines(two());
        let follows = |bytes: Vec<u8>, from: &Tail, to: &Tail| {
            let mut unplaced = Unplaced::default();
            let follows = unplaced.follow(&Arc::new(bytes), from, to);
            assert!(follows || unplaced.entries.is_empty() && unplaced.newest.is_empty());
            follows
        };
        assert!(follows(whole.clone(), &start(), &end));
        assert!(!follows(whole.clone(), &Tail { sum: end.sum.clone(), ..start() }, &end));
        assert!(!follows(whole.clone(), &start(), &Tail { sum: ROOT_SUM.into(), ..end.clone() }));
        assert!(!follows(whole[..whole.len() - 1].to_vec(), &start(), &end));
        for index in 0..whole.len() {
            let mut flipped = whole.clone();
            flipped[index] ^= 1;
            assert!(!follows(flipped, &start(), &end), "byte {index}");
        }
    }
}
