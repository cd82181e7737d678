//! The history of one file: every state, newest first.
//!
//! Each record points to the previous record about the same file. If one cannot be read, the store
//! searches for the next older one, so that damage hides only itself. Each state also names the
//! version it is based on, so a missing state in between is detected.

use quipu_contract::ProjectPath;
use serde::Serialize;

use crate::clock::parse_time;
use crate::error::{Result, StoreError};
use crate::history::log::At;
use crate::history::texts::Texts;
use crate::index::file_index::FileHead;
use crate::journal::body::{Edit, Gap, compose};
use crate::journal::record::{Kind, OpKind, Record, RecordOp, Who};
use crate::journal::segments::Position;
use crate::store::Store;
use crate::version::Version;

#[derive(Debug, Clone, Serialize)]
pub struct PathEvent {
    pub seq: u64,
    pub at: String,
    pub kind: Kind,
    pub who: Who,
    pub why: Option<String>,
    pub op: OpKind,
    pub version: Version,
    pub len: u64,
    /// The state right before this one is unknown, because a record about it is damaged.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub after_gap: bool,
    /// The record itself is damaged: only the file index knows of it.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub damaged: bool,
    #[serde(skip)]
    change: RecordOp,
    #[serde(skip)]
    place: Position,
}

impl PathEvent {
    fn of(record: &Record, op: &RecordOp, place: Position) -> PathEvent {
        PathEvent {
            seq: record.seq,
            at: record.at.clone(),
            kind: record.kind,
            who: record.who.clone(),
            why: record.why.clone(),
            op: op.op,
            version: op.version.clone(),
            len: op.len,
            after_gap: false,
            damaged: false,
            change: op.clone(),
            place,
        }
    }

    pub(crate) fn edit(&self) -> Edit<'_> {
        self.change.edit()
    }

    /// The newest state of a file if its record cannot be read, from the file index.
    fn unread(path: &ProjectPath, head: &FileHead) -> PathEvent {
        let op = if head.gone {
            OpKind::Remove
        } else {
            OpKind::Write
        };
        let class = head.class.as_str();
        PathEvent {
            seq: head.seq,
            at: String::new(),
            kind: Kind::Unknown,
            who: Who::unknown(),
            why: None,
            op,
            version: head.version.clone(),
            len: head.len,
            after_gap: true,
            damaged: true,
            change: RecordOp::new(op, path.as_str(), class, head.version.clone(), head.len),
            place: head.at,
        }
    }

    /// Whether this state is based on `older`; without an older state, whether it has no base.
    fn rests_on(&self, older: Option<&PathEvent>) -> bool {
        self.change.base.as_ref()
            == older
                .filter(|older| older.op != OpKind::Remove)
                .map(|older| &older.version)
    }
}

impl Store {
    /// Every readable state of a file, newest first.
    pub fn events(&self, path: &ProjectPath) -> Result<Vec<PathEvent>> {
        self.events_since(path, 0)
    }

    /// The states of a file after a record, newest first. The cost depends on these states, not on
    /// the file's whole history.
    pub fn events_since(&self, path: &ProjectPath, seq: u64) -> Result<Vec<PathEvent>> {
        self.events_among(path, seq, usize::MAX)
    }

    /// The newest states of a file, newest first. Reads no older record than necessary.
    pub fn newest_events(&self, path: &ProjectPath, most: usize) -> Result<Vec<PathEvent>> {
        // One more state shows whether something is missing in between.
        let mut events = self.events_among(path, 0, most.saturating_add(1))?;
        events.truncate(most);
        Ok(events)
    }

    fn events_among(&self, path: &ProjectPath, after: u64, most: usize) -> Result<Vec<PathEvent>> {
        self.index.sound(|| {
            self.adopt_edits(std::slice::from_ref(path))?;
            // Do not hold the index here: reading the states uses it as well.
            let head = self.index.open()?.head(path.as_str())?;
            match head {
                Some(head) => self.texts.events_from(path, &head, after, most),
                None => Ok(Vec::new()),
            }
        })
    }

    /// The text of a file at a state, and that state.
    pub fn text_at(&self, path: &ProjectPath, at: &At) -> Result<(Vec<u8>, PathEvent)> {
        let events = self.events_until(path, at)?;
        let text = self.texts.text_of(path, &events)?;
        Ok((
            text,
            events.into_iter().next().expect("the state asked for"),
        ))
    }

    /// The states of a file up to one, newest first. At least the one asked for.
    pub(crate) fn events_until(&self, path: &ProjectPath, at: &At) -> Result<Vec<PathEvent>> {
        let mut events = self.events(path)?;
        if let At::Seq(seq) = at {
            let newest = self.newest_seq()?;
            if *seq > newest {
                let what = format!("unknown commit @{seq}: the newest is @{newest}");
                return Err(StoreError::not_found(what, format!("quipu log {path}")));
            }
        }
        let found = match at {
            At::Version(prefix) => events
                .iter()
                .position(|e| e.version.as_str().starts_with(prefix.as_str())),
            At::Seq(seq) => events.iter().position(|e| e.seq <= *seq),
            At::Time(time) => events
                .iter()
                .position(|e| parse_time(&e.at).is_some_and(|t| t <= *time)),
            At::Back(count) => (*count < events.len()).then_some(*count),
        };
        // A state beyond damage may not be the requested one, because an unreadable state lies in
        // between.
        let looked_at = &events[..found.unwrap_or(events.len())];
        let exact = found.is_some_and(|index| match at {
            At::Version(_) => true,
            At::Seq(seq) => events[index].seq == *seq,
            At::Time(_) | At::Back(_) => false,
        });
        let gap = match at {
            At::Back(_) | At::Version(_) => looked_at.iter().find(|e| e.after_gap),
            At::Seq(_) | At::Time(_) => looked_at.last().filter(|e| e.after_gap),
        };
        if let Some(gap) = gap.filter(|_| !exact) {
            return Err(self.texts.not_compared(path, gap));
        }
        let Some(index) = found else {
            return Err(StoreError::not_found(
                format!("`{path}` has no such version"),
                format!("quipu log {path}"),
            ));
        };
        if events[index].op == OpKind::Remove {
            let what = format!(
                "`{path}` was removed by commit @{}: it has no text there",
                events[index].seq
            );
            return Err(StoreError::not_found(
                what,
                format!("quipu log {path}     (then name an earlier version)"),
            ));
        }
        events.drain(..index);
        Ok(events)
    }
}

/// Rebuilds the text from events, newest first. Returns a gap if there is damage among them.
fn join(newest_first: &[PathEvent]) -> std::result::Result<Vec<u8>, Gap> {
    let start = newest_first
        .iter()
        .position(|event| event.edit().is_start())
        .unwrap_or(newest_first.len());
    let is_damaged = newest_first
        .iter()
        .take(start + 1)
        .any(|event| event.damaged);
    if is_damaged || newest_first[..start].iter().any(|event| event.after_gap) {
        return Err(Gap::Mismatch);
    }
    compose(newest_first.iter().map(PathEvent::edit))
}

impl Texts {
    fn events_from(
        &self,
        path: &ProjectPath,
        head: &FileHead,
        after: u64,
        most: usize,
    ) -> Result<Vec<PathEvent>> {
        let mut events: Vec<PathEvent> = Vec::new();
        let mut next = Some(head.at);
        while let Some(at) = next.take().filter(|_| events.len() < most) {
            match self.journal.read_record(at) {
                Ok(record) if record.seq <= after => break,
                Ok(record) => {
                    for op in record.about(path.as_str()) {
                        events.push(PathEvent::of(&record, op, at));
                        next = op
                            .last
                            .as_deref()
                            .and_then(Position::parse)
                            .filter(|last| *last < at);
                    }
                }
                Err(StoreError::Damaged { .. }) => {
                    if at == head.at && head.seq > after {
                        events.push(PathEvent::unread(path, head));
                    }
                    next = self.newest_before(path, at)?;
                }
                Err(error) => return Err(error),
            }
        }
        let hidden = self.index.open()?.progress()?.hidden;
        for index in 0..events.len() {
            let (event, older) = (&events[index], events.get(index + 1));
            // Without an older state, either the search ended on purpose or no older record is
            // readable.
            let gap = !event.rests_on(older) && (older.is_some() || after == 0);
            let hides = hidden
                .iter()
                .any(|at| *at < event.place && older.is_some_and(|older| older.place < *at));
            // An apparent external edit may be the text of a damaged record.
            events[index].after_gap = event.damaged || gap || hides && event.kind != Kind::Commit;
        }
        Ok(events)
    }

    /// The newest readable record about a file before a position.
    fn newest_before(&self, path: &ProjectPath, before: Position) -> Result<Option<Position>> {
        let needle = format!("\"path\":{}", serde_json::Value::from(path.as_str()));
        let finder = memchr::memmem::Finder::new(needle.as_bytes());
        let mut found = None;
        self.journal
            .each_line_newest_first(u64::MAX, &mut |at, line| {
                if at < before && finder.find(line).is_some() {
                    let is_about = |record: Record| {
                        record
                            .ops
                            .iter()
                            .any(|o| o.path == path.as_str() && o.op != OpKind::Keep)
                    };
                    found = Record::decode(line).is_ok_and(is_about).then_some(at);
                }
                found.is_none()
            })?;
        Ok(found)
    }

    /// Rebuilds the text from events, newest first. Across damage it succeeds only if the file on
    /// disk proves the text.
    pub(crate) fn text_of(&self, path: &ProjectPath, events: &[PathEvent]) -> Result<Vec<u8>> {
        match join(events) {
            Ok(text) => return Ok(text),
            Err(Gap::Dropped) => return Err(Gap::Dropped.of(path)),
            Err(Gap::Mismatch) => {}
        }
        let event = &events[0];
        let head = FileHead::after(&event.change, event.place, event.seq);
        let gap = events.iter().find(|e| e.after_gap).unwrap_or(event);
        self.content_from_journal(path, &head)
            .map_err(|_| self.not_compared(path, gap))
    }

    /// The error for an unknown state before `after`.
    pub(crate) fn not_compared(&self, path: &ProjectPath, after: &PathEvent) -> StoreError {
        let what = if after.damaged {
            format!(
                "the record of commit @{} about `{path}` is damaged, so the answer is unknown",
                after.seq
            )
        } else {
            format!(
                "a record about `{path}` before commit @{} is damaged, so the answer is unknown",
                after.seq
            )
        };
        StoreError::damaged(what)
    }

    /// Whether some bytes are an earlier version of a file.
    pub(crate) fn was_version(
        &self,
        path: &ProjectPath,
        head: &FileHead,
        bytes: &[u8],
    ) -> Result<bool> {
        let events = self.events_from(path, head, 0, usize::MAX)?;
        let version = Version::of(bytes);
        let is = |index: usize| match events[index].op {
            OpKind::Append => join(&events[index..]).is_ok_and(|text| text == bytes),
            // A restored text may have the version that it had when it grew.
            OpKind::Write => {
                let may_be = events[index].version == version || events[index].edit().is_start();
                may_be && join(&events[index..]).is_ok_and(|text| text == bytes)
            }
            OpKind::Remove | OpKind::Keep => false,
        };
        Ok((0..events.len()).any(|index| events[index].len == bytes.len() as u64 && is(index)))
    }

    /// The newest earlier version of a file that satisfies `is`, if the journal holds it.
    pub(crate) fn newest_version_that(
        &self,
        path: &ProjectPath,
        head: &FileHead,
        is: &dyn Fn(&[u8]) -> bool,
    ) -> Result<Option<Vec<u8>>> {
        let events = self.events_from(path, head, 0, usize::MAX)?;
        let texts = (1..events.len())
            .filter(|index| matches!(events[*index].op, OpKind::Write | OpKind::Append));
        Ok(texts
            .filter_map(|index| join(&events[index..]).ok())
            .find(|text| is(text)))
    }

    /// The bytes of an earlier version of a file, if the journal holds it.
    pub(crate) fn version_bytes(
        &self,
        path: &ProjectPath,
        head: &FileHead,
        version: &Version,
    ) -> Result<Option<Vec<u8>>> {
        let events = self.events_from(path, head, 0, usize::MAX)?;
        let found = events
            .iter()
            .position(|e| e.version == *version && e.op != OpKind::Remove);
        Ok(found.and_then(|index| join(&events[index..]).ok()))
    }
}
