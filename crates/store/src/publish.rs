//! Publishes a judged change as a durable, visible commit.
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

use crate::adopt::Adopted;
use crate::change::Change;
use crate::clock::{next_time, parse_time, render_time};
use crate::error::{Result, StoreError};
use crate::heads::Head;
use crate::journal::Position;
use crate::lease::Lease;
use crate::live::Tail;
use crate::loaded::Loaded;
use crate::lock::Held;
use crate::order::Patience;
use crate::prepare::reads_whole;
use crate::record::{FORMAT, Kind, OpKind, Record, RecordOp, Sum, Who};
use crate::replica::{Submitted, Terms};
use crate::store::Store;
use crate::tree::Stamp;
use crate::version::Version;

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
                .ops
                .iter()
                .filter(|o| o.op != OpKind::Keep)
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

/// A change that the contract allows, not yet visible. It holds the append lock until it is
/// published or dropped.
#[must_use = "publish or drop"]
pub struct Judged<'s> {
    store: &'s Store,
    state: State<'s>,
    adopted: Vec<Adopted>,
    merged: Vec<String>,
    touched: Vec<(ProjectPath, Version, Option<Stamp>)>,
    /// The change, for a shared log: it may have to be judged again.
    change: Option<Box<Change>>,
    /// The actor with a role that gets the receipt; other actors may read everything.
    reader: Option<Box<Actor>>,
}

/// The parts of a receipt that are not in the record.
pub(crate) struct Told {
    adopted: Vec<Adopted>,
    merged: Vec<String>,
}

impl Told {
    pub fn receipt(self, last: &Record) -> Receipt {
        let mut receipt = Receipt::of(last, self.adopted, false);
        receipt.merged = self.merged;
        let changes = last.ops.iter().any(|o| o.op != OpKind::Keep)
            || last.lease.is_some()
            || last.note.is_some();
        receipt.unchanged = !changes
            || !matches!(
                last.kind,
                Kind::Commit | Kind::Amend | Kind::Restore | Kind::Note
            );
        receipt
    }
}

/// The parts to publish: the lock, the snapshot, the records, and the rest of the receipt.
type Parts<'s> = (Held<'s>, Look, Vec<Record>, Told);

enum State<'s> {
    Fresh {
        held: Held<'s>,
        look: Look,
        records: Vec<Record>,
    },
    Repeated(Receipt),
}

impl<'s> Judged<'s> {
    pub(crate) fn new(
        store: &'s Store,
        held: Held<'s>,
        look: Look,
        records: Vec<Record>,
        adopted: Vec<Adopted>,
        merged: Vec<String>,
        touched: Vec<(ProjectPath, Version, Option<Stamp>)>,
    ) -> Judged<'s> {
        Judged {
            store,
            state: State::Fresh {
                held,
                look,
                records,
            },
            adopted,
            merged,
            touched,
            change: None,
            reader: None,
        }
    }

    pub(crate) fn repeated(store: &'s Store, receipt: Receipt) -> Judged<'s> {
        Judged {
            store,
            state: State::Repeated(receipt),
            adopted: Vec::new(),
            merged: Vec::new(),
            touched: Vec::new(),
            change: None,
            reader: None,
        }
    }

    pub(crate) fn remembering(mut self, change: Change) -> Judged<'s> {
        self.change = Some(Box::new(change));
        self
    }

    pub(crate) fn shown_to(mut self, actor: &Actor) -> Judged<'s> {
        self.reader = actor.role().map(|_| Box::new(actor.clone()));
        self
    }

    /// The records that would be written, for a dry run.
    pub fn records(&self) -> &[Record] {
        match &self.state {
            State::Fresh { records, .. } => records,
            State::Repeated(_) => &[],
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
            Some(reader) => receipt.shown_to(&store.contract, &reader),
            None => receipt,
        })
    }

    fn publish_durably(mut self) -> Result<(Receipt, Option<Tail>)> {
        let store = self.store;
        if let (Some(order), Some(change)) = (&store.order, self.change.take()) {
            return store.publish_shared(&**order, self, &change);
        }
        let (held, look, records, told) = match self.into_parts()? {
            Ok(parts) => parts,
            Err(done) => return Ok((done, None)),
        };
        let Grown { end, last } = store.write_records(held, look, records)?;
        // The append lock is released, so no other writer waits while the receipt is built.
        let receipt = told.receipt(&last.expect("not empty"));
        store.sync_own(&end)?;
        Ok((receipt, Some(end)))
    }

    /// The parts to publish, or the receipt if there is nothing to publish.
    pub(crate) fn into_parts(self) -> Result<std::result::Result<Parts<'s>, Receipt>> {
        let store = self.store;
        if !self.touched.is_empty() {
            let heads = store.heads()?;
            for (path, version, stamp) in &self.touched {
                heads.set_stamp(path.as_str(), version, *stamp)?;
            }
        }
        let (held, look, records) = match self.state {
            State::Repeated(receipt) => {
                store.settle()?;
                return Ok(Err(receipt));
            }
            State::Fresh {
                held,
                look,
                records,
            } => (held, look, records),
        };
        if records.is_empty() {
            let tail = look.tail;
            drop(held);
            // The commit that makes this one unnecessary may not be synced yet.
            store.settle()?;
            return Ok(Err(Receipt {
                seq: tail.seq,
                id: String::new(),
                at: render_time(tail.wall_us),
                versions: BTreeMap::new(),
                adopted: self.adopted,
                merged: self.merged,
                repeated: false,
                unchanged: true,
            }));
        }
        Ok(Ok((
            held,
            look,
            records,
            Told {
                adopted: self.adopted,
                merged: self.merged,
            },
        )))
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
pub(crate) struct Look {
    pub tail: Tail,
    /// Records that are journalled but not yet applied.
    pending: Pending,
    synced: Option<Position>,
    /// The pending line that was decoded last: a change often touches several files of one record.
    read: RefCell<Option<(usize, Box<Record>)>>,
    /// The first record begins a new segment.
    in_new_segment: bool,
}

/// The result of appending records.
pub(crate) struct Grown {
    /// The new tail of the journal.
    pub end: Tail,
    /// The last record as it was written, if there were any.
    last: Option<Record>,
}

/// Raw lines of the journal, and the position of the first.
struct Pending {
    lines: Vec<u8>,
    from: Position,
}

impl Look {
    /// Writes the records to a new segment, so that older segments no longer grow.
    pub fn in_new_segment(self) -> Look {
        Look {
            in_new_segment: true,
            ..self
        }
    }

    /// The newest index entry of a path, and whether it comes from a pending record.
    pub fn head(&self, store: &Store, path: &ProjectPath) -> Result<(Option<Head>, bool)> {
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
        Ok((store.heads()?.head(path.as_str())?, false))
    }

    /// The index entry of a path after the pending line at an offset, if the line is about it.
    fn head_in_line(&self, pending: &Pending, offset: usize, path: &ProjectPath) -> Option<Head> {
        let Pending { lines, from } = pending;
        let mut read = self.read.borrow_mut();
        if read.as_ref().is_none_or(|(known, _)| *known != offset) {
            let length = memchr::memchr(b'\n', &lines[offset..]).unwrap_or(lines.len() - offset);
            *read = Record::decode(&lines[offset..offset + length])
                .ok()
                .map(|record| (offset, Box::new(record)));
        }
        let (_, record) = read.as_ref()?;
        let at = Position {
            segment: from.segment,
            offset: from.offset + offset as u64,
        };
        record
            .ops
            .iter()
            .rfind(|o| o.path == path.as_str() && o.op != OpKind::Keep)
            .map(|op| Head::after(op, at, record.seq))
    }

    pub fn find_key(&self, store: &Store, key: &str) -> Result<Option<Arc<Loaded>>> {
        if let Some(at) = store.heads()?.key(key)? {
            return Ok(Some(store.journal.read_record(at)?));
        }
        let needle = format!("\"key\":{}", serde_json::Value::from(key));
        let found = self
            .pending
            .records(needle.as_bytes())
            .into_iter()
            .find(|r| r.key.as_deref() == Some(key));
        Ok(found.map(|record| Arc::new(Loaded::new(record))))
    }

    /// All leases, including ended ones, and the highest fence.
    pub fn leases(&self, store: &Store) -> Result<(Vec<Lease>, u64)> {
        let (mut leases, mut fence) = {
            let heads = store.heads()?;
            (heads.leases()?, heads.fence()?)
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
        let wall_us = next_time(store.clock.now().wall_us, self.tail.wall_us);
        let via = store
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
            asked: None,
            note: None,
            ops: Vec::new(),
            lease: None,
            synced: None,
            elsewhere: false,
            prev: Sum::new(),
            sum: Sum::new(),
        }
    }
}

impl Pending {
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
    fn read_pending(&self, applied: Position, tail: &Tail) -> Result<Pending> {
        if applied >= tail.at {
            return Ok(Pending {
                lines: Vec::new(),
                from: tail.at,
            });
        }
        // Lines from several segments have no simple position, so apply everything first.
        if applied.segment != tail.at.segment {
            self.sync_to(tail.at)?;
            self.apply_files(tail.at)?;
            return Ok(Pending {
                lines: Vec::new(),
                from: tail.at,
            });
        }
        Ok(Pending {
            lines: self.journal.read_between(applied, tail.at)?,
            from: applied,
        })
    }

    /// Takes a snapshot of the end of the journal. Requires the append lock.
    pub(crate) fn look(&self) -> Result<Look> {
        let known = self.live_now()?.known();
        self.forget_deleted_heads();
        let tail = match known.tail {
            // A dead writer left bytes there, or this process has an old tail.
            Some(tail) if !self.journal.is_end(tail.at)? => self.find_end(Some(tail))?,
            Some(tail) => tail,
            None => self.find_end(None)?,
        };
        self.redo_after_rebuild()?;
        let applied = self.heads()?.applied()?.at;
        let pending = self.read_pending(applied, &tail)?;
        let synced = if pending.from == applied {
            known.synced
        } else {
            Some(tail.at)
        };
        Ok(Look {
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
        held: Held<'_>,
        look: Look,
        records: Vec<Record>,
    ) -> Result<Published> {
        let end = match &self.order {
            None => {
                let end = self.write_records(held, look, records)?.end;
                self.sync_own(&end)?;
                end.at
            }
            Some(order) => match self.submit(
                &**order,
                held,
                look,
                records,
                Terms::plain(Patience::Little),
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
        self.with_sound_heads(work).map_err(|error| match error {
            unfinished @ StoreError::Unfinished { .. } => unfinished,
            other => StoreError::Unfinished {
                seq: end.seq,
                path: ".quipu".into(),
                source: std::io::Error::other(other),
            },
        })
    }

    /// Steps 1 and 2: appends the records and releases the lock.
    fn write_records(&self, held: Held<'_>, look: Look, records: Vec<Record>) -> Result<Grown> {
        let before = look.tail.at;
        let grown = self.grow(look, records);
        if grown.is_err() {
            // The caller gets an error, so another process should not complete these records.
            let _ = self.journal.cut(before);
            // If a sync failed, the next sync cannot be trusted.
            let _ = self
                .live()
                .and_then(|live| live.set_doubt(&self.disk, true));
        }
        drop(held);
        grown
    }

    pub(crate) fn grow(&self, look: Look, records: Vec<Record>) -> Result<Grown> {
        let before = look.tail;
        let mut last = None;
        let mut tail = look.tail;
        let mut places: BTreeMap<String, Position> = BTreeMap::new();
        let several = records.len() > 1;
        for mut record in records {
            record.seq = tail.seq + 1;
            record.prev = tail.sum;
            record.synced = look.synced.map(Position::text);
            for op in &mut record.ops {
                if let Some(at) = places.get(&op.path) {
                    op.last = Some(at.text());
                }
            }
            let encoded = record.encode();
            let (start, end) = self.journal.append(
                tail.at,
                encoded.line(),
                look.in_new_segment && last.is_none(),
            )?;
            for op in record
                .ops
                .iter()
                .filter(|o| several && o.op != OpKind::Keep)
            {
                places.insert(op.path.clone(), start);
            }
            tail = Tail {
                at: end,
                seq: record.seq,
                wall_us: parse_time(&record.at).unwrap_or(tail.wall_us),
                sum: record.sum,
            };
            last = Some(record);
        }
        self.live()?.set_tail(&self.disk, &tail)?;
        self.note_own(before.at, tail.at);
        Ok(Grown { end: tail, last })
    }

    /// Step 3 for the writer of the records. They are written, so the next command may complete
    /// them even if the disk fails now.
    fn sync_own(&self, end: &Tail) -> Result<()> {
        self.sync_to(end.at).map_err(|error| match error {
            lost @ StoreError::Damaged { .. } => lost,
            other => StoreError::Unsure {
                seq: end.seq,
                source: Box::new(other),
            },
        })
    }

    /// Step 3: returns when everything up to a position is synced.
    pub(crate) fn sync_to(&self, end: Position) -> Result<()> {
        // The segment has no bytes yet, and the previous one was synced when it was closed.
        if end.offset == 0 && (end == Position::START || !self.journal.has(end.segment)) {
            return Ok(());
        }
        // A waiter stops as soon as its position is synced: by then the lock may be held for the
        // next sync.
        let live = self.live()?;
        let Some(_held) = self.sync_lock.acquire_unless(&|| live.is_synced_to(end))? else {
            return Ok(());
        };
        let live = self.live_now()?;
        let known = live.known();
        if !known.doubt && known.synced.is_some_and(|synced| synced >= end) {
            return Ok(());
        }
        // The same sync covers records that were appended since.
        let target = known.tail.map_or(end, |tail| tail.at.max(end));
        let synced = if known.doubt {
            let from = known.synced.unwrap_or(Position {
                segment: target.segment,
                offset: 0,
            });
            self.journal.rewrite(from, target)
        } else {
            self.journal.sync(target.segment)
        };
        if let Err(error) = synced {
            // A later sync alone cannot be trusted: see `Journal::rewrite`.
            live.set_doubt(&self.disk, true)?;
            return Err(error);
        }
        if known.doubt {
            live.set_doubt(&self.disk, false)?;
        }
        live.set_synced(&self.disk, target)
    }
}
