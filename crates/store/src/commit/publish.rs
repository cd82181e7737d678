//! Publishes a validated change as a durable, visible commit.
//!
//! A commit has these steps; each one says what a crash leaves:
//! 1. Under the append lock, the records are written after the tail of the journal. After a crash,
//!    the next writer completes the whole records and erases the rest.
//! 2. The tail moves past them. After a crash of the process, the next command completes the
//!    records. A crash of the machine may lose them; they have not been acknowledged yet.
//! 3. Outside the lock, one sync covers all waiting writers. From here on nothing is lost.
//! 4. The files are written. After a crash, the next command writes the missing ones.

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::sync::Arc;

use quipu_contract::{Actor, Class, Contract, ProjectPath};
use serde::Serialize;

use crate::change::Change;
use crate::clock::{next_time, render_time};
use crate::commit::permit::reads_whole;
use crate::error::{Result, StoreError};
use crate::files::tree::FileStat;
use crate::index::file_index::FileHead;
use crate::journal::durable::AppendedRecords;
use crate::journal::lease::Lease;
use crate::journal::record::{ChainHash, FORMAT, Kind, OpKind, Record, RecordOp, Who};
use crate::journal::record_cache::LoadedRecord;
use crate::journal::segments::Position;
use crate::journal::watermarks::Tail;
use crate::lock::Held;
use crate::replica::commit_log::WaitPolicy;
use crate::replica::link::Submitted;
use crate::store::Store;
use crate::version::Version;
use crate::worktree::external_edit::Adopted;

/// The result of a commit: proof that it is durable, and the new versions.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Receipt {
    pub seq: u64,
    pub id: String,
    pub at: String,
    /// The new version of each file; `none` if it was deleted.
    pub versions: BTreeMap<String, Version>,
    /// External edits that were adopted with the commit.
    pub adopted: Vec<Adopted>,
    /// Files that had changed since they were read, and were merged by key.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub merged: Vec<String>,
    /// The change had already been committed, under the same key.
    pub repeated: bool,
    /// Nothing had to be written: the files already hold these bytes.
    pub unchanged: bool,
}

impl Receipt {
    pub(crate) fn of(record: &Record, adopted: Vec<Adopted>, repeated: bool) -> Receipt {
        let version = |op: &RecordOp| {
            if op.op == OpKind::Remove {
                Version::none()
            } else {
                op.version.clone()
            }
        };
        Receipt {
            seq: record.seq,
            id: record.id.clone(),
            at: record.at.clone(),
            versions: record
                .changes()
                .map(|o| (o.path.clone(), version(o)))
                .collect(),
            adopted,
            merged: Vec::new(),
            repeated,
            unchanged: false,
        }
    }

    /// Removes the versions of files that an actor may not read. The index file is omitted if the
    /// actor may not read it: whether it changed reveals something about the previous text.
    fn shown_to(mut self, contract: &Contract, actor: &Actor) -> Receipt {
        let path_of = |path: &str| ProjectPath::parse(path).ok();
        let reads =
            |path: &str| path_of(path).is_some_and(|path| reads_whole(contract, actor, &path));
        self.versions.retain(|path, version| {
            let is_read = reads(path);
            if !is_read && version.if_any().is_some() {
                *version = Version::withheld();
            }
            is_read || path_of(path).is_none_or(|path| contract.class(&path) != Class::Derived)
        });
        for adopted in self
            .adopted
            .iter_mut()
            .filter(|adopted| !reads(&adopted.path))
        {
            adopted.version = Version::withheld();
        }
        self
    }
}

/// The result of validation.
#[derive(Default)]
pub(crate) struct Outcome {
    pub records: Vec<Record>,
    pub adopted: Vec<Adopted>,
    pub merged: Vec<String>,
    /// Unchanged files with a new file stat.
    pub touched: Vec<(ProjectPath, Version, Option<FileStat>)>,
}

/// A change that the contract allows, not yet visible. It holds the append lock until it is
/// published or dropped.
#[must_use = "publish or drop"]
pub struct Validated<'s> {
    store: &'s Store,
    work: Work,
    /// The change, for a shared log: it may have to be validated again.
    change: Option<Box<Change>>,
    /// The actor with a role that gets the receipt; other actors may read everything.
    reader: Option<Box<Actor>>,
}

impl Outcome {
    /// The receipt, if `last` is the last record as it was written.
    pub fn receipt(self, last: &Record) -> Receipt {
        let mut receipt = Receipt::of(last, self.adopted, false);
        receipt.merged = self.merged;
        let changes =
            last.changes().next().is_some() || last.lease.is_some() || last.note.is_some();
        receipt.unchanged = !changes
            || !matches!(
                last.kind,
                Kind::Commit | Kind::Amend | Kind::Restore | Kind::Note
            );
        receipt
    }
}

/// The work that remains for a validated change.
pub(crate) enum Work {
    /// Records to publish, under this lock and on this snapshot.
    Publish(Held, Box<Snapshot>, Outcome),
    /// Nothing: it had already been committed, or changes nothing.
    Done(Receipt),
}

impl<'s> Validated<'s> {
    pub(crate) fn new(store: &'s Store, work: Work) -> Validated<'s> {
        Validated {
            store,
            work,
            change: None,
            reader: None,
        }
    }

    pub(crate) fn remembering(mut self, change: Change) -> Validated<'s> {
        self.change = Some(Box::new(change));
        self
    }

    pub(crate) fn shown_to(mut self, actor: &Actor) -> Validated<'s> {
        self.reader = actor.role().map(|_| Box::new(actor.clone()));
        self
    }

    /// The records that would be written, for a dry run.
    pub fn records(&self) -> &[Record] {
        match &self.work {
            Work::Publish(.., outcome) => &outcome.records,
            Work::Done(_) => &[],
        }
    }

    /// Makes the change durable and applies its files.
    pub fn publish(mut self) -> Result<Receipt> {
        let (store, reader) = (self.store, self.reader.take());
        let (receipt, end) = self.publish_durably()?;
        if let Some(end) = end {
            store.after_sync(&end, || store.apply_to(end.at))?;
        }
        Ok(match reader {
            Some(reader) => receipt.shown_to(store.contract(), &reader),
            None => receipt,
        })
    }

    fn publish_durably(mut self) -> Result<(Receipt, Option<Tail>)> {
        let store = self.store;
        if let (Some(commit_log), Some(change)) = (store.commit_log(), self.change.take()) {
            return store.publish_shared(commit_log, self, &change);
        }
        let (held, snapshot, mut outcome) = match self.into_work()? {
            Work::Publish(held, snapshot, outcome) => (held, snapshot, outcome),
            Work::Done(receipt) => return Ok((receipt, None)),
        };
        let records = std::mem::take(&mut outcome.records);
        let AppendedRecords { end, last } = store.write_records(held, *snapshot, records)?;
        // The append lock is released, so no other writer waits while the receipt is built.
        let receipt = outcome.receipt(&last.expect("not empty"));
        store.sync_own(&end)?;
        Ok((receipt, Some(end)))
    }

    /// The records to publish; if there are none, waits until the commit that makes this one
    /// unnecessary is synced.
    pub(crate) fn into_work(self) -> Result<Work> {
        let store = self.store;
        let receipt = match self.work {
            Work::Publish(held, snapshot, outcome) => {
                for (path, version, file_stat) in &outcome.touched {
                    let file_index = store.index.open()?;
                    file_index.set_stat(path.as_str(), version, *file_stat)?;
                }
                if !outcome.records.is_empty() {
                    return Ok(Work::Publish(held, snapshot, outcome));
                }
                drop(held);
                Receipt {
                    seq: snapshot.tail.seq,
                    id: String::new(),
                    at: render_time(snapshot.tail.wall_us),
                    versions: BTreeMap::new(),
                    adopted: outcome.adopted,
                    merged: outcome.merged,
                    repeated: false,
                    unchanged: true,
                }
            }
            Work::Done(receipt) => receipt,
        };
        store.settle()?;
        Ok(Work::Done(receipt))
    }
}

/// The result of publishing records that Quipu itself made.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[must_use = "what was overtaken is not published"]
pub(crate) enum Published {
    Done,
    /// Other commits came first in the shared log. They are in the journal now.
    Overtaken,
}

/// A snapshot of the end of the journal, taken under the append lock.
pub(crate) struct Snapshot {
    pub tail: Tail,
    /// Records that are journalled but not yet applied.
    pending: PendingFile,
    synced: Option<Position>,
    /// The pending line that was decoded last: a change often touches several files of one record.
    read: RefCell<Option<(usize, Box<Record>)>>,
    /// The first record begins a new segment.
    in_new_segment: bool,
}

/// Raw lines of the journal, and the position of the first.
struct PendingFile {
    lines: Vec<u8>,
    from: Position,
}

impl Snapshot {
    /// Writes the records to a new segment, so that older segments no longer grow.
    pub fn in_new_segment(self) -> Snapshot {
        Snapshot {
            in_new_segment: true,
            ..self
        }
    }

    /// The newest index entry of a path, and whether it comes from a pending record.
    pub fn head(&self, store: &Store, path: &ProjectPath) -> Result<(Option<FileHead>, bool)> {
        let pending = &self.pending;
        // A quote inside a JSON string is escaped, so this text can only be the field itself.
        let needle = format!("\"path\":{}", serde_json::Value::from(path.as_str()));
        let mut end = pending.lines.len();
        while let Some(hit) = memchr::memmem::rfind(&pending.lines[..end], needle.as_bytes()) {
            end = memchr::memrchr(b'\n', &pending.lines[..hit]).map_or(0, |newline| newline + 1);
            if let Some(head) = self.head_in_line(pending, end, path) {
                return Ok((Some(head), true));
            }
        }
        Ok((store.index.open()?.head(path.as_str())?, false))
    }

    /// The index entry of a path after the pending line at an offset, if the line is about it.
    fn head_in_line(
        &self,
        pending: &PendingFile,
        offset: usize,
        path: &ProjectPath,
    ) -> Option<FileHead> {
        let PendingFile { lines, from } = pending;
        let mut read = self.read.borrow_mut();
        if read.as_ref().is_none_or(|(known, _)| *known != offset) {
            let length = memchr::memchr(b'\n', &lines[offset..]).unwrap_or(lines.len() - offset);
            *read = Record::decode(&lines[offset..offset + length])
                .ok()
                .map(|record| (offset, Box::new(record)));
        }
        let (_, record) = read.as_ref()?;
        let at = from.at(from.offset + offset as u64);
        record
            .ops
            .iter()
            .rfind(|o| o.path == path.as_str() && o.op != OpKind::Keep)
            .map(|op| FileHead::after(op, at, record.seq))
    }

    pub fn find_key(&self, store: &Store, key: &str) -> Result<Option<Arc<LoadedRecord>>> {
        if let Some(at) = store.index.open()?.key(key)? {
            return Ok(Some(store.journal.read_record(at)?));
        }
        let needle = format!("\"key\":{}", serde_json::Value::from(key));
        let found = self
            .pending
            .records(needle.as_bytes())
            .into_iter()
            .find(|r| r.key.as_deref() == Some(key));
        Ok(found.map(|record| Arc::new(LoadedRecord::new(record))))
    }

    /// All leases, including ended ones, and the highest fence.
    pub fn leases(&self, store: &Store) -> Result<(Vec<Lease>, u64)> {
        let (mut leases, mut fence) = {
            let file_index = store.index.open()?;
            (file_index.leases()?, file_index.progress()?.fence)
        };
        for record in self.pending.records(b"\"lease\":{") {
            let Some(event) = &record.lease else { continue };
            fence = fence.max(event.fence);
            leases.retain(|l| l.id != event.id);
            if event.act != "release" {
                leases.push(Lease::apply(&record, event));
            }
        }
        Ok((leases, fence))
    }

    pub fn next_record(&self, store: &Store, kind: Kind, who: Who) -> Record {
        let wall_us = next_time(store.settings.now().wall_us, self.tail.wall_us);
        let via = store
            .settings
            .door
            .filter(|_| who.kind == "person")
            .map(str::to_owned);
        let who = Who { via, ..who };
        Record {
            v: FORMAT,
            seq: 0,
            id: crate::ident::commit_id(wall_us),
            at: render_time(wall_us),
            kind,
            who,
            why: None,
            key: None,
            request: None,
            note: None,
            ops: Vec::new(),
            lease: None,
            synced: None,
            elsewhere: false,
            prev: ChainHash::new(),
            hash: ChainHash::new(),
        }
    }
}

impl PendingFile {
    /// The records of the lines that contain `needle`.
    fn records(&self, needle: &[u8]) -> Vec<Record> {
        let finder = memchr::memmem::Finder::new(needle);
        let lines = self.lines.split(|byte| *byte == b'\n');
        lines
            .filter(|line| finder.find(line).is_some())
            .filter_map(|line| Record::decode(line).ok())
            .collect()
    }
}

impl Store {
    /// The journalled lines between the applied position and the tail. Requires the append lock.
    fn read_pending(&self, applied: Position, tail: &Tail) -> Result<PendingFile> {
        if applied >= tail.at {
            return Ok(PendingFile {
                lines: Vec::new(),
                from: tail.at,
            });
        }
        // Lines from several segments have no simple position, so apply everything first.
        if applied.segment != tail.at.segment {
            self.journal.sync_to(tail.at)?;
            self.applier.apply_files(tail.at)?;
            return Ok(PendingFile {
                lines: Vec::new(),
                from: tail.at,
            });
        }
        Ok(PendingFile {
            lines: self.journal.read_between(applied, tail.at)?,
            from: applied,
        })
    }

    /// A command that waits for its input has the project open meanwhile. If the folder is
    /// exchanged then, some of its files are in the old one and some in the new one.
    fn refuse_if_exchanged(&self) -> Result<()> {
        if self.tree.is_at_its_path() && self.folders.are_in_place() {
            return Ok(());
        }
        Err(StoreError::refused(
            "the project was moved or replaced while this command ran; nothing was saved",
            "run the same command again",
        ))
    }

    /// Whether a recorded tail is the end of the journal. A journal that was restored from an older
    /// copy has only fill there.
    pub(crate) fn is_tail(&self, tail: &Tail) -> Result<bool> {
        Ok(self.journal.is_end(tail.at)? && self.journal.line_ends_at(tail.at))
    }

    /// A project that was restored from a copy may keep a newer file index, or SQLite's log of one.
    /// For such an index new records were applied long ago, and it would write none of their files.
    /// Requires the append lock.
    fn replace_index_ahead_of(&self, tail: &Tail) -> Result<()> {
        if self.index.open()?.applied()?.at <= tail.at {
            return Ok(());
        }
        let _held = self.applier.lock()?;
        self.index.replace()
    }

    /// Takes a snapshot of the end of the journal. Requires the append lock.
    pub(crate) fn snapshot(&self) -> Result<Snapshot> {
        self.refuse_if_exchanged()?;
        let known = self.journal.watermarks_now()?.known();
        self.index.forget_deleted();
        let tail = match known.tail {
            // A dead writer left bytes there, or this process has an old tail.
            Some(tail) if !self.is_tail(&tail)? => self.find_end(Some(tail))?,
            Some(tail) => tail,
            None => self.find_end(None)?,
        };
        self.replace_index_ahead_of(&tail)?;
        self.applier.redo_after_rebuild()?;
        let applied = self.index.open()?.applied()?.at;
        let pending = self.read_pending(applied, &tail)?;
        let synced = if pending.from == applied {
            known.synced
        } else {
            Some(tail.at)
        };
        Ok(Snapshot {
            tail,
            pending,
            synced,
            read: RefCell::new(None),
            in_new_segment: false,
        })
    }

    /// Appends records, syncs and applies them. In a working copy the result can be `Overtaken`;
    /// the caller then needs a new snapshot.
    pub(crate) fn publish_records(
        &self,
        held: Held,
        snapshot: Snapshot,
        records: Vec<Record>,
    ) -> Result<Published> {
        let end = match self.commit_log() {
            None => {
                let end = self.write_records(held, snapshot, records)?.end;
                self.sync_own(&end)?;
                end.at
            }
            Some(commit_log) => match self.submit(
                commit_log,
                held,
                snapshot,
                records,
                None,
                WaitPolicy::OneTry,
            )? {
                Submitted::Accepted(_, end) => end.at,
                Submitted::Moved(_) => return Ok(Published::Overtaken),
            },
        };
        self.apply_to(end)?;
        Ok(Published::Done)
    }

    /// Runs the work after a sync. If it fails, the commit still holds.
    fn after_sync(&self, end: &Tail, work: impl Fn() -> Result<()>) -> Result<()> {
        self.index.sound(work).map_err(|error| match error {
            unfinished @ StoreError::Unfinished { .. } => unfinished,
            other => StoreError::Unfinished {
                seq: end.seq,
                path: ".quipu".into(),
                source: std::io::Error::other(other),
            },
        })
    }

    /// Steps 1 and 2: appends the records and releases the lock.
    fn write_records(
        &self,
        held: Held,
        snapshot: Snapshot,
        records: Vec<Record>,
    ) -> Result<AppendedRecords> {
        let appended = self.append_records(&snapshot, records);
        drop(held);
        appended
    }

    /// Requires the append lock.
    pub(crate) fn append_records(
        &self,
        snapshot: &Snapshot,
        records: Vec<Record>,
    ) -> Result<AppendedRecords> {
        let Snapshot {
            tail,
            synced,
            in_new_segment,
            ..
        } = snapshot;
        let appended = self
            .journal
            .append_records(tail, *synced, *in_new_segment, records)?;
        self.applier.note_own(tail.at, appended.end.at);
        Ok(appended)
    }

    /// Step 3 for the writer of the records. They are written, so the next command may complete
    /// them even if the disk fails now.
    fn sync_own(&self, end: &Tail) -> Result<()> {
        self.journal.sync_to(end.at).map_err(|error| match error {
            lost @ StoreError::Damaged { .. } => lost,
            other => StoreError::Unsure {
                seq: end.seq,
                source: Box::new(other),
            },
        })
    }
}
