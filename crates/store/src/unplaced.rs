//! What is journalled and whose files are not yet in place: records that were made or read here,
//! and lines of other processes as they stand in the journal.
//!
//! Of lines that another process wrote this one needs to know only that they follow what it knows,
//! and what they say of the files it is asked about. Their traces say so: a line is read when its
//! trace is missing or has no room for what it says, and all are when their files are put in place.
//! Otherwise every process would read every record of all others, and the work would grow with the
//! square of their number.

use std::collections::{HashMap, VecDeque};
use std::ops::Range;
use std::sync::{Arc, LazyLock};

use memchr::memmem::Finder;

use crate::clock::parse_time;
use crate::error::{Result, StoreError};
use crate::heads::Head;
use crate::journal::Position;
use crate::live::Tail;
use crate::record::{FORMAT, Glance, OpKind, Record, Sum, Unread, sum_if_linked, sum_if_sound};
use crate::trace::{Mark, Told, Trace, mark_of};

/// A record of the journal and where it stands.
#[derive(Clone)]
pub(crate) struct Journalled {
    pub at: Position,
    /// The end of the journal behind it.
    pub end: Tail,
    pub record: Arc<Record>,
}

/// How closely lines are looked at before they are kept in mind.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Care {
    /// Each line names the sum of the one before it, up to the end that is known. What a line says
    /// is checked against its own sum when it is read.
    Links,
    /// Each line is checked against its sum at once.
    Sums,
}

/// Whole lines of the journal that are at hand and have not been read.
#[derive(Clone)]
struct Lines {
    at: Position,
    bytes: Arc<Vec<u8>>,
    range: Range<usize>,
}

/// Whole lines of one segment that others wrote, that left traces and that nobody here has looked
/// at.
struct Stretch {
    at: Position,
    /// The sum of the record before them.
    before: Sum,
    /// The number of the first of them, and the end behind the last.
    first: u64,
    end: Tail,
    /// Traces of the last of them, newest first, as far as someone has asked.
    traces: Vec<Trace>,
}

/// Where to look for what is not at hand.
pub(crate) trait Source {
    /// The bytes of the journal between two places of one segment.
    fn lines(&self, from: Position, to: Position) -> Result<Vec<u8>>;
    /// The traces of the records from one to another, oldest first; none if one of them is not
    /// there. Only under the append lock.
    fn traces(&self, first: u64, last: u64) -> Option<Vec<Trace>>;
}

/// The last trace is read alone: the file that one asks about was often written by the last of the
/// others.
const NEWEST: u64 = 1;
const SEVERAL: u64 = 16;

impl Stretch {
    /// What its last record that touches a file makes of it; `Told::Ask` if its lines have to be
    /// searched.
    fn newest_head(&mut self, mark: &Mark, path: &str, source: &dyn Source) -> Result<Told> {
        let mut behind = self.end.at;
        for seq in (self.first..=self.end.seq).rev() {
            let index = usize::try_from(self.end.seq - seq).unwrap_or(usize::MAX);
            if index == self.traces.len() {
                let several = if index == 0 { NEWEST } else { SEVERAL };
                let Some(traces) =
                    source.traces(self.first.max((seq + 1).saturating_sub(several)), seq)
                else {
                    return Ok(Told::Ask);
                };
                self.traces.extend(traces.into_iter().rev());
            }
            let trace = &self.traces[index];
            let at = Position {
                offset: trace.at(),
                ..self.at
            };
            match trace.tell(mark, at.segment) {
                Told::Nothing => {}
                Told::Head(head) => return Ok(Told::Head(head)),
                Told::Ask => {
                    let bytes = source.lines(at, behind)?;
                    let line = Lines {
                        at,
                        range: 0..bytes.len(),
                        bytes: Arc::new(bytes),
                    };
                    if let Some(head) = line.head(path)? {
                        return Ok(Told::Head(head));
                    }
                }
            }
            behind = at;
        }
        Ok(Told::Nothing)
    }

    /// All of it, which has to follow what stands before it link by link.
    fn lines(&self, source: &dyn Source) -> Result<Lines> {
        let bytes = source.lines(self.at, self.end.at)?;
        let lines = Lines {
            at: self.at,
            range: 0..bytes.len(),
            bytes: Arc::new(bytes),
        };
        if are_linked(lines.bytes(), &self.before, &self.end.sum, Care::Links) {
            return Ok(lines);
        }
        let what = "what another process has written does not follow what was there".to_owned();
        Err(StoreError::Damaged {
            segment: self.at.segment,
            line: 0,
            what,
        })
    }
}

enum Entry {
    Record(Journalled),
    Lines(Lines),
    Stretch(Stretch),
}

impl Entry {
    fn at(&self) -> Position {
        match self {
            Entry::Record(journalled) => journalled.at,
            Entry::Lines(lines) => lines.at,
            Entry::Stretch(stretch) => stretch.at,
        }
    }

    fn end(&self) -> Position {
        match self {
            Entry::Record(journalled) => journalled.end.at,
            Entry::Lines(lines) => lines.end(),
            Entry::Stretch(stretch) => stretch.end.at,
        }
    }
}

/// What is known of one file. Records of this process are taken into it as they come (`note`),
/// lines of others when someone asks: so what is not searched is always of others and behind the
/// head.
struct Newest {
    head: Option<Head>,
    /// Lines before this place need not be searched for it.
    searched: Position,
    /// How traces tell of it; made when they are first asked.
    mark: Option<Mark>,
    /// Finds its path as a field; made when lines are first searched for it.
    finder: Option<Finder<'static>>,
}

impl Newest {
    fn of(head: Option<Head>, searched: Position) -> Newest {
        Newest {
            head,
            searched,
            mark: None,
            finder: None,
        }
    }
}

/// The records behind the files, oldest first, and the newest head that they make of each file
/// asked about.
#[derive(Default)]
pub(crate) struct Unplaced {
    entries: VecDeque<Entry>,
    newest: HashMap<String, Newest>,
}

impl Unplaced {
    /// What this process has written itself.
    pub fn push(&mut self, journalled: Journalled) {
        self.note(&journalled);
        self.entries.push_back(Entry::Record(journalled));
    }

    /// Takes the heads that a record makes into the newest, unless newer ones are known.
    fn note(&mut self, journalled: &Journalled) {
        let searched = journalled.end.at;
        for op in journalled
            .record
            .ops
            .iter()
            .filter(|o| o.op != OpKind::Keep)
        {
            let head = Head::after(op, journalled.at, journalled.record.seq);
            match self.newest.get_mut(&op.path) {
                Some(known)
                    if known.searched >= searched
                        && known.head.as_ref().is_some_and(|h| h.at > journalled.at) => {}
                Some(known) => (known.head, known.searched) = (Some(head), searched),
                None => drop(
                    self.newest
                        .insert(op.path.clone(), Newest::of(Some(head), searched)),
                ),
            }
        }
    }

    /// What others have written between two places and left traces of. It is looked at when someone
    /// asks.
    pub fn pass(&mut self, from: &Tail, to: &Tail) {
        let Tail {
            at,
            seq,
            sum: before,
            ..
        } = *from;
        self.entries.push_back(Entry::Stretch(Stretch {
            at,
            before,
            first: seq + 1,
            end: *to,
            traces: Vec::new(),
        }));
    }

    /// The same without traces: it is looked at now. False, and nothing is changed, unless every
    /// line follows the one before it up to the very end, and only the index need know more of any
    /// of them.
    pub fn follow(&mut self, bytes: &Arc<Vec<u8>>, from: &Tail, to: &Tail, care: Care) -> bool {
        let lines = Lines {
            at: from.at,
            range: 0..bytes.len(),
            bytes: Arc::clone(bytes),
        };
        let follows = lines.end() == to.at && are_linked(bytes, &from.sum, &to.sum, care);
        if follows {
            self.entries.push_back(Entry::Lines(lines));
        }
        follows
    }

    /// The newest head of a file, if any of these records touches it.
    pub fn head(&mut self, path: &str, source: &dyn Source) -> Result<Option<Head>> {
        let Unplaced { entries, newest } = self;
        let Some(end) = entries.back().map(Entry::end) else {
            return Ok(None);
        };
        if !newest.contains_key(path) {
            newest.insert(path.to_owned(), Newest::of(None, Position::START));
        }
        let Some(newest) = newest.get_mut(path) else {
            return Ok(None);
        };
        for entry in entries
            .iter_mut()
            .rev()
            .take_while(|entry| entry.end() > newest.searched)
        {
            if let Entry::Stretch(stretch) = entry {
                match stretch.newest_head(
                    newest.mark.get_or_insert_with(|| mark_of(path)),
                    path,
                    source,
                )? {
                    Told::Nothing => continue,
                    Told::Head(head) => {
                        newest.head = Some(head);
                        break;
                    }
                    Told::Ask => *entry = Entry::Lines(stretch.lines(source)?),
                }
            }
            // Records are in the head already.
            let Entry::Lines(lines) = entry else { continue };
            let finder = newest.finder.get_or_insert_with(|| finder_of(path));
            if let Some(head) = lines
                .split(newest.searched)
                .1
                .map(|lines| lines.newest_head(finder, path))
                .transpose()?
                .flatten()
            {
                newest.head = Some(head);
                break;
            }
        }
        newest.searched = end;
        Ok(newest.head.clone())
    }

    /// Has all lines at hand that begin before a place.
    fn fetch_to(&mut self, end: Position, source: &dyn Source) -> Result<()> {
        for entry in self.entries.iter_mut().take_while(|entry| entry.at() < end) {
            if let Entry::Stretch(stretch) = entry {
                *entry = Entry::Lines(stretch.lines(source)?);
            }
        }
        Ok(())
    }

    /// Where the commit with a key stands, if it is one of these.
    pub fn key(&mut self, key: &str, source: &dyn Source) -> Result<Option<Position>> {
        let Some(end) = self.entries.back().map(Entry::end) else {
            return Ok(None);
        };
        self.fetch_to(end, source)?;
        let needle = format!("\"key\":{}", serde_json::Value::from(key));
        let finder = Finder::new(&needle);
        let has = |record: &Record| record.key.as_deref() == Some(key);
        Ok(self.entries.iter().find_map(|entry| match entry {
            Entry::Record(journalled) => has(&journalled.record).then_some(journalled.at),
            Entry::Lines(lines) => {
                let mut hits = finder
                    .find_iter(lines.bytes())
                    .map(|hit| lines.line_around(hit));
                hits.find_map(|line| {
                    line.read()
                        .ok()
                        .filter(|read| has(&read.record))
                        .map(|read| read.at)
                })
            }
            Entry::Stretch(_) => None, // all are at hand
        }))
    }

    /// The oldest of these that end before or at a place; none if one of them cannot be read.
    pub fn records_to(&mut self, end: Position, source: &dyn Source) -> Option<Vec<Journalled>> {
        self.fetch_to(end, source).ok()?;
        let mut records = Vec::new();
        let (mut taken, mut read, mut rest) = (0, false, None);
        for entry in self.entries.iter().take_while(|entry| entry.at() < end) {
            match entry {
                Entry::Record(journalled) if journalled.end.at > end => break,
                Entry::Record(journalled) => records.push(journalled.clone()),
                Entry::Lines(lines) => {
                    let (before, behind) = lines.split(end);
                    for line in before.each() {
                        records.push(line.read().ok()?);
                    }
                    read = true;
                    rest = behind;
                }
                Entry::Stretch(_) => return None,
            }
            taken += 1;
        }
        if read {
            records.iter().for_each(|journalled| self.note(journalled));
            self.entries.drain(..taken);
            rest.into_iter()
                .for_each(|lines| self.entries.push_front(Entry::Lines(lines)));
            for journalled in records.iter().rev() {
                self.entries.push_front(Entry::Record(journalled.clone()));
            }
        }
        Some(records)
    }

    /// How many stretches nobody has read.
    #[cfg(test)]
    pub fn unread(&self) -> usize {
        self.entries
            .iter()
            .filter(|entry| matches!(entry, Entry::Stretch(_)))
            .count()
    }

    pub fn begins_at(&self, at: Position) -> bool {
        self.entries.front().is_some_and(|first| first.at() == at)
    }

    /// The files of the records up to one are in place.
    pub fn forget(&mut self, placed: &Tail) {
        let end = placed.at;
        self.newest.retain(|_, newest| {
            newest.head = newest.head.take().filter(|head| head.at >= end);
            newest.head.is_some()
        });
        while self.entries.front().is_some_and(|entry| entry.at() < end) {
            let rest = match self.entries.pop_front() {
                Some(Entry::Lines(lines)) => lines.split(end).1.map(Entry::Lines),
                Some(Entry::Stretch(mut stretch)) if stretch.end.at > end => {
                    let left = usize::try_from(stretch.end.seq.saturating_sub(placed.seq))
                        .unwrap_or(usize::MAX);
                    stretch.traces.truncate(left);
                    Some(Entry::Stretch(Stretch {
                        at: end,
                        before: placed.sum,
                        first: placed.seq + 1,
                        ..stretch
                    }))
                }
                _ => None,
            };
            if let Some(rest) = rest {
                self.entries.push_front(rest);
                break;
            }
        }
    }
}

/// Whether every line follows the one before it, from what stands before the first up to the last,
/// and none has a lease, of which only the index knows.
fn are_linked(lines: &[u8], before: &str, last: &str, care: Care) -> bool {
    static LEASE: LazyLock<Finder<'static>> = LazyLock::new(|| Finder::new("\"lease\":"));
    static BEGIN: LazyLock<String> = LazyLock::new(|| format!("{{\"v\":{FORMAT},"));
    let (mut start, mut sum) = (0, before);
    while start < lines.len() {
        let Some(length) = memchr::memchr(b'\n', &lines[start..]) else {
            return false;
        };
        let line = &lines[start..start + length];
        let next = match care {
            Care::Links => sum_if_linked(line, sum),
            Care::Sums => sum_if_sound(line, sum),
        };
        let Some(next) = next.filter(|_| line.starts_with(BEGIN.as_bytes())) else {
            return false;
        };
        sum = next;
        start += length + 1;
    }
    // A quote inside a JSON string is escaped: what is found with its quotes is a field and no
    // text.
    sum == last && LEASE.find(lines).is_none()
}

/// A quote inside a JSON string is escaped: what is found with its quotes is a field and no text.
fn finder_of(path: &str) -> Finder<'static> {
    Finder::new(&format!("\"path\":{}", serde_json::Value::from(path))).into_owned()
}

impl Lines {
    fn bytes(&self) -> &[u8] {
        &self.bytes[self.range.clone()]
    }

    fn end(&self) -> Position {
        Position {
            segment: self.at.segment,
            offset: self.at.offset + self.range.len() as u64,
        }
    }

    /// A part of these, by its place within them.
    fn part(&self, part: Range<usize>) -> Lines {
        Lines {
            at: Position {
                segment: self.at.segment,
                offset: self.at.offset + part.start as u64,
            },
            bytes: Arc::clone(&self.bytes),
            range: self.range.start + part.start..self.range.start + part.end,
        }
    }

    /// The lines that end before or at a place, and those behind them.
    fn split(&self, end: Position) -> (Lines, Option<Lines>) {
        if self.end() <= end {
            return (self.clone(), None);
        }
        if end <= self.at {
            return (self.part(0..0), Some(self.clone()));
        }
        let before = usize::try_from(end.offset.saturating_sub(self.at.offset))
            .unwrap_or(usize::MAX)
            .min(self.range.len());
        let before =
            memchr::memrchr(b'\n', &self.bytes()[..before]).map_or(0, |newline| newline + 1);
        (
            self.part(0..before),
            Some(self.part(before..self.range.len())),
        )
    }

    fn each(&self) -> impl Iterator<Item = Lines> {
        let mut start = 0;
        memchr::memchr_iter(b'\n', self.bytes()).map(move |newline| {
            let line = self.part(start..newline + 1);
            start = newline + 1;
            line
        })
    }

    fn line_around(&self, hit: usize) -> Lines {
        let start = memchr::memrchr(b'\n', &self.bytes()[..hit]).map_or(0, |newline| newline + 1);
        let end = memchr::memchr(b'\n', &self.bytes()[hit..])
            .map_or(self.range.len(), |newline| hit + newline + 1);
        self.part(start..end)
    }

    /// The head that the last of these lines makes of a path which names it.
    fn newest_head(&self, finder: &Finder<'_>, path: &str) -> Result<Option<Head>> {
        let hits: Vec<usize> = finder.find_iter(self.bytes()).collect();
        let mut passed = self.range.len();
        for hit in hits.into_iter().rev() {
            if hit >= passed {
                continue; // in a line that was read
            }
            let line = self.line_around(hit);
            passed = line.range.start - self.range.start;
            // The words may stand in a note or tell of bytes that are not current.
            if let Some(head) = line.head(path)? {
                return Ok(Some(head));
            }
        }
        Ok(None)
    }

    fn single(&self) -> &[u8] {
        let line = self.bytes();
        line.strip_suffix(b"\n").unwrap_or(line)
    }

    fn damaged(&self, unread: &Unread) -> StoreError {
        StoreError::Damaged {
            segment: self.at.segment,
            line: 0,
            what: unread.to_string(),
        }
    }

    /// What a single line makes of a file.
    fn head(&self, path: &str) -> Result<Option<Head>> {
        let glance = Glance::at(self.single()).map_err(|unread| self.damaged(&unread))?;
        let op = glance
            .ops
            .iter()
            .rfind(|op| op.path == path && op.op != OpKind::Keep);
        Ok(op.map(|op| Head::at_a_glance(op, self.at, glance.seq)))
    }

    /// Reads a single line.
    fn read(&self) -> Result<Journalled> {
        let record = Record::decode(self.single()).map_err(|unread| self.damaged(&unread))?;
        let end = Tail {
            at: self.end(),
            seq: record.seq,
            wall_us: parse_time(&record.at).unwrap_or_default(),
            sum: record.sum,
        };
        Ok(Journalled {
            at: self.at,
            end,
            record: Arc::new(record),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::body::Body;
    use crate::record::{Kind, LeaseEvent, ROOT_SUM, RecordOp, Sum, Who, parse_sum};
    use crate::version::Version;

    fn op(op: OpKind, path: &str) -> RecordOp {
        let version = Version::of(path.as_bytes());
        let op = RecordOp {
            op,
            path: path.into(),
            class: "append".into(),
            base: None,
            version,
            len: 1,
            last: None,
            deltas: 0,
            hash: None,
            body: Body::None,
        };
        op.with_bytes(
            b"said: {\"op\":\"write\",\"path\":\"no.md\"} \"note\":1 \"lease\":{}\n".to_vec(),
        )
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
            asked: None,
            key: Some("a \"key\"".into()),
            note: None,
            ops,
            lease: None,
            synced: None,
            elsewhere: false,
            prev: Sum::new(),
            sum: Sum::new(),
        }
    }

    /// The lines of some records, and the place behind them.
    fn lines(records: Vec<Record>) -> (Vec<u8>, Tail) {
        let (mut lines, mut tail) = (
            Vec::new(),
            Tail {
                at: Position {
                    segment: 3,
                    offset: 70,
                },
                seq: 9,
                wall_us: 0,
                sum: parse_sum(ROOT_SUM),
            },
        );
        for mut record in records {
            (record.seq, record.prev) = (tail.seq + 1, tail.sum);
            let encoded = record.encode();
            lines.extend(encoded.line());
            let at = Position {
                segment: 3,
                offset: tail.at.offset + encoded.line().len() as u64,
            };
            tail = Tail {
                at,
                seq: record.seq,
                wall_us: 0,
                sum: record.sum,
            };
        }
        (lines, tail)
    }

    /// A journal of which all is at hand.
    const NOWHERE: Journal = Journal {
        lines: Vec::new(),
        traces: Vec::new(),
    };

    /// The lines behind the start, and the traces that are left.
    struct Journal {
        lines: Vec<u8>,
        traces: Vec<Trace>,
    }

    impl Source for Journal {
        fn lines(&self, from: Position, to: Position) -> Result<Vec<u8>> {
            let within =
                |place: Position| usize::try_from(place.offset - start().at.offset).unwrap();
            Ok(self.lines[within(from)..within(to)].to_vec())
        }

        fn traces(&self, first: u64, last: u64) -> Option<Vec<Trace>> {
            (first..=last)
                .map(|seq| self.traces.iter().find(|trace| trace.seq() == seq).copied())
                .collect()
        }
    }

    /// A journal that others wrote, and the end behind each of its records.
    fn journal(records: Vec<Record>) -> (Journal, Vec<Tail>) {
        let (bytes, end) = lines(records);
        let mut unplaced = Unplaced::default();
        assert!(unplaced.follow(&Arc::new(bytes.clone()), &start(), &end, Care::Sums));
        let read = unplaced.records_to(end.at, &NOWHERE).unwrap();
        let traces = read.iter().map(|j| Trace::of(&j.record, j.at)).collect();
        (
            Journal {
                lines: bytes,
                traces,
            },
            read.iter().map(|j| j.end).collect(),
        )
    }

    fn start() -> Tail {
        lines(Vec::new()).1
    }

    fn followed(records: Vec<Record>) -> Option<Unplaced> {
        let (lines, end) = lines(records);
        let mut unplaced = Unplaced::default();
        unplaced
            .follow(&Arc::new(lines), &start(), &end, Care::Links)
            .then_some(unplaced)
    }

    #[test]
    fn heads_are_found_in_lines_that_were_not_read() {
        let first = record(vec![
            op(OpKind::Write, "a.md"),
            op(OpKind::Append, "术语.md"),
            op(OpKind::Remove, "b.md"),
        ]);
        let second = record(vec![op(OpKind::Keep, "a.md"), op(OpKind::Append, "b.md")]);
        let mut unplaced = followed(vec![first, second]).unwrap();
        assert!(
            unplaced
                .entries
                .iter()
                .all(|entry| matches!(entry, Entry::Lines(_)))
        );
        assert_eq!(unplaced.head("no.md", &NOWHERE).unwrap(), None);
        for (path, seq, gone) in [
            ("a.md", 10, false),
            ("术语.md", 10, false),
            ("b.md", 11, false),
        ] {
            let head = unplaced.head(path, &NOWHERE).unwrap().unwrap();
            assert_eq!((head.seq, head.gone), (seq, gone), "{path}");
            assert_eq!(unplaced.head(path, &NOWHERE).unwrap().unwrap(), head);
        }
        assert_eq!(
            unplaced.key("a \"key\"", &NOWHERE).unwrap(),
            Some(start().at)
        );
        assert_eq!(unplaced.key("key", &NOWHERE).unwrap(), None);
        let all = unplaced
            .records_to(
                Position {
                    segment: 4,
                    offset: 0,
                },
                &NOWHERE,
            )
            .unwrap();
        assert_eq!(
            all.iter().map(|j| j.record.seq).collect::<Vec<_>>(),
            [10, 11]
        );
        assert_eq!(
            unplaced.records_to(all[0].end.at, &NOWHERE).unwrap().len(),
            1
        );
        assert!(unplaced.begins_at(all[0].at));
        unplaced.forget(&all[0].end);
        assert_eq!(unplaced.head("a.md", &NOWHERE).unwrap(), None);
        assert_eq!(unplaced.head("b.md", &NOWHERE).unwrap().unwrap().seq, 11);
    }

    #[test]
    fn what_a_note_says_touches_nothing() {
        let mut noted = record(vec![op(OpKind::Write, "a.md")]);
        noted.note = Some(serde_json::json!({"ops": [{"op": "write", "path": "b.md"}]}));
        let mut unplaced = followed(vec![record(vec![op(OpKind::Write, "b.md")]), noted]).unwrap();
        assert_eq!(unplaced.head("b.md", &NOWHERE).unwrap().unwrap().seq, 10);
        assert_eq!(unplaced.head("a.md", &NOWHERE).unwrap().unwrap().seq, 11);
    }

    #[test]
    fn a_path_that_is_escaped_is_read() {
        let mut unplaced = followed(vec![record(vec![op(OpKind::Write, "a \"b\".md")])]).unwrap();
        assert_eq!(
            unplaced.head("a \"b\".md", &NOWHERE).unwrap().unwrap().seq,
            10
        );
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
        let two = || {
            vec![
                record(vec![op(OpKind::Write, "a.md")]),
                record(vec![op(OpKind::Append, "a.md")]),
            ]
        };
        let (whole, end) = lines(two());
        let follows = |bytes: Vec<u8>, from: &Tail, to: &Tail, care: Care| {
            let mut unplaced = Unplaced::default();
            let follows = unplaced.follow(&Arc::new(bytes), from, to, care);
            assert!(follows || unplaced.entries.is_empty() && unplaced.newest.is_empty());
            follows.then_some(unplaced)
        };
        for care in [Care::Links, Care::Sums] {
            assert!(follows(whole.clone(), &start(), &end, care).is_some());
            assert!(
                follows(
                    whole.clone(),
                    &Tail {
                        sum: end.sum,
                        ..start()
                    },
                    &end,
                    care
                )
                .is_none()
            );
            assert!(
                follows(
                    whole.clone(),
                    &start(),
                    &Tail {
                        sum: parse_sum(ROOT_SUM),
                        ..end
                    },
                    care
                )
                .is_none()
            );
            assert!(follows(whole[..whole.len() - 1].to_vec(), &start(), &end, care).is_none());
        }
        for index in 0..whole.len() {
            let mut flipped = whole.clone();
            flipped[index] ^= 1;
            assert!(
                follows(flipped.clone(), &start(), &end, Care::Sums).is_none(),
                "byte {index}"
            );
            // Kept in mind by its links, it is not believed when it is read.
            if let Some(mut unplaced) = follows(flipped, &start(), &end, Care::Links) {
                assert!(
                    unplaced.records_to(end.at, &NOWHERE).is_none(),
                    "byte {index}"
                );
            }
        }
    }

    #[test]
    fn lines_are_put_in_place_one_part_after_another() {
        let each = |number: usize| {
            record(vec![
                op(OpKind::Append, "a.md"),
                op(OpKind::Write, &format!("{number}.md")),
            ])
        };
        let (whole, end) = lines((0..4).map(each).collect());
        let mut unplaced = Unplaced::default();
        assert!(unplaced.follow(&Arc::new(whole.clone()), &start(), &end, Care::Links));
        assert_eq!(unplaced.head("a.md", &NOWHERE).unwrap().unwrap().seq, 13);
        let ends: Vec<u64> = memchr::memchr_iter(b'\n', &whole)
            .map(|newline| start().at.offset + newline as u64 + 1)
            .collect();
        let place = |offset: u64| Position { segment: 3, offset };
        // A place within a line counts up to the line before it.
        let first = unplaced.records_to(place(ends[2] - 1), &NOWHERE).unwrap();
        assert_eq!(
            first.iter().map(|j| j.record.seq).collect::<Vec<_>>(),
            [10, 11]
        );
        assert_eq!(unplaced.entries.len(), 3);
        for (path, seq) in [
            ("a.md", 13),
            ("0.md", 10),
            ("1.md", 11),
            ("2.md", 12),
            ("3.md", 13),
        ] {
            assert_eq!(
                unplaced.head(path, &NOWHERE).unwrap().unwrap().seq,
                seq,
                "{path}"
            );
        }
        unplaced.forget(&first[1].end);
        assert!(unplaced.begins_at(place(ends[1])));
        assert_eq!(unplaced.head("0.md", &NOWHERE).unwrap(), None);
        assert_eq!(unplaced.head("a.md", &NOWHERE).unwrap().unwrap().seq, 13);
        // Begun anew meanwhile: then what is forgotten is a part of lines that were never read.
        let mut anew = Unplaced::default();
        assert!(anew.follow(&Arc::new(whole), &start(), &end, Care::Sums));
        anew.forget(&first[1].end);
        assert!(anew.begins_at(place(ends[1])));
        assert_eq!(anew.head("1.md", &NOWHERE).unwrap(), None);
        assert_eq!(anew.records_to(end.at, &NOWHERE).unwrap().len(), 2);
    }

    #[test]
    fn own_records_between_lines_of_others_are_the_newest_where_they_are() {
        let (whole, end) = lines(vec![
            record(vec![op(OpKind::Append, "a.md")]),
            record(vec![op(OpKind::Append, "a.md")]),
        ]);
        let middle = memchr::memchr(b'\n', &whole).unwrap() + 1;
        let first = Record::decode(&whole[..middle - 1]).unwrap();
        let own = Tail {
            at: Position {
                segment: 3,
                offset: 70 + middle as u64,
            },
            seq: 10,
            wall_us: 0,
            sum: first.sum,
        };
        let mut unplaced = Unplaced::default();
        unplaced.push(Journalled {
            at: start().at,
            end: own,
            record: Arc::new(first),
        });
        assert_eq!(unplaced.head("a.md", &NOWHERE).unwrap().unwrap().seq, 10);
        assert!(unplaced.follow(&Arc::new(whole[middle..].to_vec()), &own, &end, Care::Links));
        assert_eq!(unplaced.head("a.md", &NOWHERE).unwrap().unwrap().seq, 11);
        assert_eq!(unplaced.head("b.md", &NOWHERE).unwrap(), None);
        assert_eq!(unplaced.records_to(end.at, &NOWHERE).unwrap().len(), 2);
        assert_eq!(unplaced.head("a.md", &NOWHERE).unwrap().unwrap().seq, 11);
    }

    #[test]
    fn what_others_wrote_is_told_by_its_traces_and_by_its_lines_alike() {
        let each = |number: usize| {
            record(vec![
                op(OpKind::Append, "a.md"),
                op(OpKind::Write, &format!("{number}.md")),
            ])
        };
        let many = record(
            (0..7)
                .map(|number| op(OpKind::Write, &format!("many/{number}.md")))
                .collect(),
        );
        let (traced, ends) = journal((0..40).map(each).chain([many, each(40)]).collect());
        let bare = Journal {
            lines: traced.lines.clone(),
            traces: Vec::new(),
        };
        let last = *ends.last().unwrap();
        for (path, seq) in [
            ("a.md", Some(51)),
            ("0.md", Some(10)),
            ("39.md", Some(49)),
            ("many/6.md", Some(50)),
            ("no.md", None),
        ] {
            for source in [&traced, &bare] {
                let mut unplaced = Unplaced::default();
                unplaced.pass(&start(), &ends[20]);
                unplaced.pass(&ends[20], &last);
                let head = unplaced.head(path, source).unwrap();
                assert_eq!(head.as_ref().map(|head| head.seq), seq, "{path}");
                // Asked again, nothing is looked up.
                assert_eq!(unplaced.head(path, &NOWHERE).unwrap(), head);
                assert_eq!(unplaced.key("a \"key\"", source).unwrap(), Some(start().at));
                assert_eq!(unplaced.records_to(last.at, source).unwrap().len(), 42);
            }
        }
        // What was written and traced is not what is there: then nobody is told of it.
        let (other, _) = journal(
            (0..42)
                .map(|number| record(vec![op(OpKind::Append, &format!("b{number}.md"))]))
                .collect(),
        );
        let mut unplaced = Unplaced::default();
        unplaced.pass(&start(), &last);
        assert!(
            unplaced
                .key(
                    "k",
                    &Journal {
                        lines: [&other.lines[..], &traced.lines].concat(),
                        traces: Vec::new()
                    }
                )
                .is_err()
        );
    }

    #[test]
    fn a_part_of_what_others_wrote_is_put_in_place() {
        let each = |number: usize| {
            record(vec![
                op(OpKind::Append, "a.md"),
                op(OpKind::Write, &format!("{number}.md")),
            ])
        };
        let (traced, ends) = journal((0..9).map(each).collect());
        for asked in [false, true] {
            let mut unplaced = Unplaced::default();
            unplaced.pass(&start(), &ends[8]);
            if asked {
                assert_eq!(unplaced.head("3.md", &traced).unwrap().unwrap().seq, 13);
            }
            unplaced.forget(&ends[4]);
            assert!(unplaced.begins_at(ends[4].at));
            assert_eq!(unplaced.head("3.md", &traced).unwrap(), None);
            assert_eq!(unplaced.head("5.md", &traced).unwrap().unwrap().seq, 15);
            assert_eq!(unplaced.head("a.md", &traced).unwrap().unwrap().seq, 18);
            let left = unplaced.records_to(ends[8].at, &traced).unwrap();
            assert_eq!(
                left.iter().map(|j| j.record.seq).collect::<Vec<_>>(),
                [15, 16, 17, 18]
            );
        }
    }
}
