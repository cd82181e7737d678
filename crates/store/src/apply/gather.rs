//! The combined effect of a range of records on each file.
//!
//! One pass writes each file once, with its last text.

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::ops::Range;

use quipu_contract::ProjectPath;

use crate::error::Result;
use crate::index::file_index::FileHead;
use crate::journal::record::{Kind, OpKind, Record, RecordOp};
use crate::journal::segments::Position;
use crate::journal::watermarks::Tail;
use crate::version::Version;

/// A record of the journal and its position.
pub(super) struct Journalled {
    pub at: Position,
    /// The end of the journal after it.
    pub end: Tail,
    pub record: Record,
}

/// The pending work for one file.
pub(super) struct PendingFile<'r> {
    /// The file index entry before any pending record.
    pub before: Option<FileHead>,
    /// The whole text, if a record wrote one.
    pub whole: Option<Cow<'r, [u8]>>,
    /// The whole text is an external edit: it is already on disk, perhaps with more text after it.
    pub whole_on_disk: bool,
    /// The text to append, to the whole text or to the text before the pending records.
    pub tail: Vec<u8>,
    /// This many bytes of `tail` are an external edit: already on disk, perhaps with more text
    /// after them.
    pub tail_on_disk: usize,
    /// For each record, the end of its text in `tail`.
    pub ends: Vec<usize>,
    pub gone: bool,
    /// The text is stored as a difference to one that cannot be read. The file stays as it is, and
    /// the next comparison reports it.
    pub unknown: bool,
    /// Only external edits: the file is already on disk.
    pub adopted: bool,
    /// No process has begun to apply this, so nothing in the file comes from it.
    pub fresh: bool,
    /// Every version that the journal holds from here on. Replacing one of them loses nothing.
    pub versions: Vec<&'r Version>,
    pub head: FileHead,
}

impl<'r> PendingFile<'r> {
    fn new(before: Option<FileHead>, head: FileHead) -> PendingFile<'r> {
        PendingFile {
            before,
            whole: None,
            whole_on_disk: false,
            tail: Vec::new(),
            tail_on_disk: 0,
            ends: Vec::new(),
            gone: false,
            unknown: false,
            adopted: true,
            fresh: true,
            versions: Vec::new(),
            head,
        }
    }

    /// Adds the effect of the next operation. An adopted one is already on disk.
    fn add(
        &mut self,
        op: &'r RecordOp,
        adopted: bool,
        base: &dyn Fn(&str, &FileHead) -> Option<Vec<u8>>,
    ) {
        match op.op {
            OpKind::Write => {
                self.whole = text_after(op, self, base);
                self.unknown = self.whole.is_none();
                self.whole_on_disk = adopted;
                self.forget_tail();
                self.gone = false;
            }
            OpKind::Append => {
                let seen_on_disk = adopted && self.tail.len() == self.tail_on_disk;
                self.tail.extend_from_slice(op.content());
                self.ends.push(self.tail.len());
                if seen_on_disk {
                    self.tail_on_disk = self.tail.len();
                }
                self.gone = false;
            }
            OpKind::Remove => {
                self.whole = None;
                self.unknown = false;
                self.forget_tail();
                self.gone = true;
            }
            OpKind::Keep => {}
        }
    }

    fn forget_tail(&mut self) {
        self.tail.clear();
        self.tail_on_disk = 0;
        self.ends.clear();
    }

    /// The text that each record appends, except for the part that is already on disk.
    pub fn pieces(&self) -> Vec<&[u8]> {
        let mut start = self.tail_on_disk;
        let ends = self.ends.iter().filter(|end| **end > self.tail_on_disk);
        ends.map(|end| &self.tail[std::mem::replace(&mut start, *end)..*end])
            .collect()
    }
}

/// The text after a write: the stored whole text, or the difference applied to the pending or
/// current text. None if that text cannot be read.
fn text_after<'r>(
    op: &'r RecordOp,
    entry: &PendingFile<'_>,
    base: &dyn Fn(&str, &FileHead) -> Option<Vec<u8>>,
) -> Option<Cow<'r, [u8]>> {
    if op.edit().is_start() {
        return Some(Cow::Borrowed(op.content()));
    }
    let mut text = match (&entry.whole, &entry.before) {
        _ if entry.unknown || entry.gone => return None,
        (Some(whole), _) => whole.to_vec(),
        (None, Some(before)) if !before.gone => base(&op.path, before)?,
        (None, _) => Vec::new(),
    };
    text.extend_from_slice(&entry.tail);
    op.edit().apply(&mut text).ok()?;
    Some(Cow::Owned(text))
}

/// The combined effect of a range of records on each file.
pub(super) fn gather<'r>(
    records: &'r [Journalled],
    own: Option<&Range<Position>>,
    before: &dyn Fn(&str) -> Result<Option<FileHead>>,
    base: &dyn Fn(&str, &FileHead) -> Option<Vec<u8>>,
) -> Result<BTreeMap<ProjectPath, PendingFile<'r>>> {
    // For each file, also its newest operation, which gives the index entry, and the record of that
    // operation.
    let mut gathered: BTreeMap<&str, (PendingFile<'r>, &RecordOp, &Journalled)> = BTreeMap::new();
    for journalled in records {
        let record = &journalled.record;
        for op in record.changes() {
            let adopted = record.kind == Kind::Adopt && !record.elsewhere;
            let (entry, newest, place) = match gathered.entry(&op.path) {
                std::collections::btree_map::Entry::Occupied(entry) => entry.into_mut(),
                std::collections::btree_map::Entry::Vacant(entry) => {
                    let head = FileHead::after(op, journalled.at, record.seq);
                    let pending = PendingFile::new(before(&op.path)?, head);
                    entry.insert((pending, op, journalled))
                }
            };
            (*newest, *place) = (op, journalled);
            entry.add(op, adopted, base);
            entry.adopted &= adopted;
            entry.fresh &= own.as_ref().is_some_and(|own| own.contains(&journalled.at));
            entry.versions.push(&op.version);
        }
    }
    // A text that the journal already holds as kept need not be kept again.
    for op in records
        .iter()
        .flat_map(|j| &j.record.ops)
        .filter(|o| o.op == OpKind::Keep)
    {
        if let Some((entry, ..)) = gathered.get_mut(op.path.as_str()) {
            entry.versions.push(&op.version);
        }
    }
    let finished = gathered
        .into_iter()
        .filter_map(|(path, (mut pending, newest, place))| {
            pending.head = FileHead::after(newest, place.at, place.record.seq);
            Some((ProjectPath::parse(path).ok()?, pending))
        });
    Ok(finished.collect())
}
