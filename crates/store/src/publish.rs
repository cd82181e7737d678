//! Publishing: from a judged change to a durable, visible commit.
//!
//! Order of a commit, and what a crash leaves at each point:
//! 1. under the append lock, the records go behind the end of the journal: a crash leaves bytes of
//!    which the next writer completes the whole records and erases the rest;
//! 2. the end moves behind them: a crash of the process leaves records that the next command
//!    completes, a crash of the machine may lose them, and no one was told of them yet;
//! 3. outside the lock one sync, shared by all who wait for it: from here on nothing is lost;
//! 4. the files are written: a crash leaves some undone, and the next command redoes them.

use std::cell::{OnceCell, RefCell};
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
use crate::live::{Known, Tail, Traced};
use crate::loaded::Loaded;
use crate::lock::Held;
use crate::order::Patience;
use crate::prepare::reads_whole;
use crate::record::{FORMAT, Kind, OpKind, Record, RecordOp, Sum, Who};
use crate::replica::{Submitted, Terms};
use crate::store::Store;
use crate::trace::Trace;
use crate::tree::Stamp;
use crate::unplaced::Journalled;
use crate::version::Version;

/// What a commit returns: proof that it is durable, and the new versions.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Receipt {
    pub seq: u64,
    pub id: String,
    pub at: String,
    /// What each file has now; `none` if it was removed.
    pub versions: BTreeMap<String, Version>,
    /// External edits that were taken over on the way.
    pub adopted: Vec<Adopted>,
    /// Files that had moved on since they were read, and were merged by key.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub merged: Vec<String>,
    /// The change had been committed before, under the same key.
    pub repeated: bool,
    /// Nothing had to be written: the files hold these bytes already.
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

    /// Without the versions of files that an actor does not read. The index is left out, if the
    /// actor does not read it: whether it changed says something of the text that was there.
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

/// A change that the contract allows, not yet visible. The append lock is held until it is
/// published or dropped.
#[must_use = "publish or drop"]
pub struct Judged<'s> {
    store: &'s Store,
    state: State<'s>,
    adopted: Vec<Adopted>,
    merged: Vec<String>,
    touched: Vec<(ProjectPath, Version, Option<Stamp>)>,
    /// For a shared order: it may have to be judged again.
    change: Option<Box<Change>>,
    /// The actor in a role that gets the receipt; others read everything.
    reader: Option<Box<Actor>>,
}

/// What a receipt tells besides the record.
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

/// What is to be published: the lock, the look it was judged at, the records, and what to tell.
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

    /// What would be recorded, for a dry run.
    pub fn records(&self) -> &[Record] {
        match &self.state {
            State::Fresh { records, .. } => records,
            State::Repeated(_) => &[],
        }
    }

    /// Makes the change durable and puts its files in place.
    pub fn publish(mut self) -> Result<Receipt> {
        let (store, reader) = (self.store, self.reader.take());
        let (receipt, end) = self.publish_durably()?;
        if let Some(end) = end {
            store.put_in_place_to(&end)?;
        }
        Ok(match reader {
            Some(reader) => receipt.shown_to(&store.contract, &reader),
            None => receipt,
        })
    }

    /// Makes the change durable and returns; its files follow with [`Store::settle`] or any later
    /// command. For writers that commit faster than anyone looks at the files.
    pub fn publish_behind(mut self) -> Result<Receipt> {
        let (store, reader) = (self.store, self.reader.take());
        let untold = matches!(&self.state, State::Fresh { look, .. } if look.untold);
        let (receipt, end) = self.publish_durably()?;
        if let Some(end) = end {
            store.put_in_place_if_far(&end, untold)?;
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
        // The disk has begun, and nobody waits for this.
        let receipt = told.receipt(&last.expect("not empty"));
        store.sync_own(&end)?;
        Ok((receipt, Some(end)))
    }

    /// What there is to publish, or the receipt where there is nothing.
    pub(crate) fn into_parts(self) -> Result<std::result::Result<Parts<'s>, Receipt>> {
        let store = self.store;
        if !self.touched.is_empty() {
            let heads = store.heads()?;
            for (path, version, stamp) in &self.touched {
                heads.set_stamp(path.as_str(), version, *stamp)?;
            }
            drop(heads);
            self.touched
                .iter()
                .for_each(|(path, _, stamp)| store.note_touched(path.as_str(), *stamp));
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
            // What makes this unnecessary may still be on its way to the disk.
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

/// How records fared that Quipu itself made.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[must_use = "what was overtaken is not published"]
pub(crate) enum Published {
    Done,
    /// Others were quicker in the shared order. What they did is here now.
    Overtaken,
}

/// How much of the journal waits for its files to be put in place, before someone does it: whoever
/// else looks reads it all.
const BEHIND_BYTES: u64 = 512 << 10;
/// How much waits while someone is doing it, before others wait for that.
const FAR_BEHIND_BYTES: u64 = 4 * BEHIND_BYTES;

/// One look at the end of the journal, under the append lock.
pub(crate) struct Look {
    pub tail: Tail,
    /// From where on all before that has left traces (see `Known::traced`), if anyone knows.
    traced: Option<Traced>,
    /// What is journalled but not yet applied. While this process knows everything by heart (see
    /// `warm`) it is not read; another thread may forget it all at any moment, and then it is.
    pending: OnceCell<Pending>,
    synced: Option<Position>,
    /// The pending line that was read last: one change often touches several files of one record.
    read: RefCell<Option<(usize, Box<Record>)>>,
    /// The index was not told of all files that others had put in place.
    untold: bool,
    /// The first record begins a new segment.
    in_new_segment: bool,
}

/// What came of records that were appended.
pub(crate) struct Grown {
    /// The new end of the journal.
    pub end: Tail,
    /// The last of them as it was written, if there were any.
    last: Option<Arc<Record>>,
}

/// Raw lines of the journal, and where they begin.
struct Pending {
    lines: Arc<Vec<u8>>,
    from: Position,
}

impl Look {
    fn by_heart(tail: Tail, known: &Known) -> Look {
        let traced = known.traced.filter(|_| known.tail == Some(tail));
        Look {
            tail,
            traced,
            pending: OnceCell::new(),
            synced: known.synced,
            read: RefCell::new(None),
            untold: false,
            in_new_segment: false,
        }
    }

    fn at(tail: Tail, pending: Pending, known: &Known) -> Look {
        Look {
            pending: OnceCell::from(pending),
            ..Look::by_heart(tail, known)
        }
    }

    /// The records go to a new segment, so that no older one grows any more.
    pub fn in_new_segment(self) -> Look {
        Look {
            in_new_segment: true,
            ..self
        }
    }

    /// Whether to ask by heart first.
    fn is_by_heart(&self) -> bool {
        self.pending.get().is_none()
    }

    fn pending(&self, store: &Store) -> Result<&Pending> {
        if let Some(pending) = self.pending.get() {
            return Ok(pending);
        }
        let applied = store.heads()?.applied()?.at;
        let pending = store.read_pending(applied, &self.tail)?;
        Ok(self.pending.get_or_init(|| pending))
    }

    /// The newest head of a path, and whether it is still on its way to the disk.
    pub fn head(&self, store: &Store, path: &ProjectPath) -> Result<(Option<Head>, bool)> {
        // A line of another process that is not what it seemed: from here on it is looked at the
        // long way.
        let by_heart = || {
            store
                .head_by_heart(path.as_str())
                .inspect_err(|_| store.forget_by_heart())
        };
        if self.is_by_heart()
            && let Some(known) = by_heart()?
        {
            return Ok(known);
        }
        let pending = self.pending(store)?;
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

    /// What the pending line at an offset says of a path, if it says anything.
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
        if self.is_by_heart()
            && let Some(known) = store
                .key_by_heart(key)
                .inspect_err(|_| store.forget_by_heart())?
        {
            return known.map(|at| store.journal.read_record(at)).transpose();
        }
        let pending = self.pending(store)?;
        if let Some(at) = store.heads()?.key(key)? {
            return Ok(Some(store.journal.read_record(at)?));
        }
        let needle = format!("\"key\":{}", serde_json::Value::from(key));
        let found = pending
            .records(needle.as_bytes())
            .into_iter()
            .find(|r| r.key.as_deref() == Some(key));
        Ok(found.map(|record| Arc::new(Loaded::new(record))))
    }

    /// All leases, ended ones included, and the highest fencing number.
    pub fn leases(&mut self, store: &Store) -> Result<(Vec<Lease>, u64)> {
        if self.is_by_heart()
            && let Some(known) = store.leases_by_heart()?
        {
            return Ok(known);
        }
        let pending = self.pending(store)?;
        let (mut leases, mut fence) = {
            let heads = store.heads()?;
            (heads.leases()?, heads.fence()?)
        };
        for record in pending.records(b"\"lease\":{") {
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
    /// The records of the lines in which something stands.
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
    /// What is journalled between the place to which files are known to be applied and the end.
    /// Only under the append lock.
    fn read_pending(&self, applied: Position, tail: &Tail) -> Result<Pending> {
        if applied >= tail.at {
            return Ok(Pending {
                lines: Arc::default(),
                from: tail.at,
            });
        }
        // Lines that span segments lose their exact place; then everything is applied first.
        if applied.segment != tail.at.segment {
            self.sync_to(tail.at)?;
            self.apply_files(tail.at)?;
            return Ok(Pending {
                lines: Arc::default(),
                from: tail.at,
            });
        }
        Ok(Pending {
            lines: Arc::new(self.journal.read_between(applied, tail.at)?),
            from: applied,
        })
    }

    /// Looks at the end of the journal. Only under the append lock.
    pub(crate) fn look(&self) -> Result<Look> {
        let known = self.live_now()?.known();
        if self.catch_up(&known)?
            && let Some(tail) = known.tail
        {
            return Ok(Look::by_heart(tail, &known));
        }
        self.forget_deleted_heads();
        self.cool()?;
        let tail = match known.tail {
            // A writer that died left something there; or this process knows less than others do.
            Some(tail) if !self.journal.is_end(tail.at)? => self.find_end(Some(tail))?,
            Some(tail) => tail,
            None => self.find_end(None)?,
        };
        self.redo_after_rebuild()?;
        let told = self.heads()?.applied()?;
        let pending = self.read_pending(told.at, &tail)?;
        if pending.from != told.at {
            return Ok(Look {
                synced: Some(tail.at),
                ..Look::at(tail, pending, &known)
            });
        }
        // Only where the index knows exactly what the files show; otherwise it has to be told
        // first.
        let untold = known.applied.is_some_and(|placed| placed > told.at);
        if !known.doubt
            && known.applied == Some(told.at)
            && self.learn(
                told,
                &tail,
                &pending.lines,
                known.traced.filter(|_| known.tail == Some(tail)),
            )
        {
            return Ok(Look::by_heart(tail, &known));
        }
        Ok(Look {
            untold,
            ..Look::at(tail, pending, &known)
        })
    }

    /// Appends records, makes them durable and applies them. Whoever shares an order and was
    /// overtaken has to look again.
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

    /// Step 4, for whoever made the records.
    fn put_in_place_to(&self, end: &Tail) -> Result<()> {
        self.after_sync(end, || self.place_to(end))
    }

    fn place_to(&self, end: &Tail) -> Result<()> {
        if self.place_by_heart(end.at)? {
            Ok(())
        } else {
            self.apply_to(end.at)
        }
    }

    /// What is done when a commit is on the disk: whatever fails now, the commit is made.
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

    /// Step 4, if much waits for it and nobody else is at it. `untold`: when it was looked, others
    /// had put files in place and not told the index.
    fn put_in_place_if_far(&self, end: &Tail, untold: bool) -> Result<()> {
        self.after_sync(end, || match self.behind() {
            Some(bytes) if bytes <= BEHIND_BYTES => Ok(()),
            Some(bytes) if bytes <= FAR_BEHIND_BYTES && self.apply_lock.is_taken()? => Ok(()),
            // Someone has just done it.
            Some(_) if self.is_told_near(end)? => Ok(()),
            None if untold && self.is_told_near(end)? => Ok(()),
            None if untold => {
                // Whoever is putting files in place may be about to tell the index.
                drop(self.apply_lock.acquire()?);
                if self.is_told_near(end)? {
                    Ok(())
                } else {
                    self.place_to(end)
                }
            }
            // Nobody knows this by heart, and no one will before it is in place: a lease is in it,
            // or a new segment begins.
            Some(_) | None => self.place_to(end),
        })
    }

    /// Whether the index knows of all files that are in place, and they are not far behind a place:
    /// then the next look knows everything by heart again.
    fn is_told_near(&self, end: &Tail) -> Result<bool> {
        let applied = self
            .live()?
            .known()
            .applied
            .filter(|applied| applied.segment == end.at.segment);
        let Some(applied) =
            applied.filter(|applied| end.at.offset.saturating_sub(applied.offset) <= BEHIND_BYTES)
        else {
            return Ok(false);
        };
        Ok(self.heads()?.applied()?.at == applied)
    }

    /// Steps 1 and 2: the journal grows, the lock is given up.
    fn write_records(&self, held: Held<'_>, look: Look, records: Vec<Record>) -> Result<Grown> {
        let before = look.tail.at;
        let grown = self.grow(look, records);
        if grown.is_err() {
            // The caller will hear that it failed: then it should not be completed by someone else.
            let _ = self.journal.cut(before);
            // If it was a sync that failed, the next one is not to be believed.
            let _ = self
                .live()
                .and_then(|live| live.set_doubt(&self.disk, true));
        }
        drop(held);
        grown
    }

    pub(crate) fn grow(&self, look: Look, records: Vec<Record>) -> Result<Grown> {
        let before = look.tail;
        let mut written = Vec::with_capacity(records.len());
        let mut tail = look.tail;
        let mut places: BTreeMap<String, Position> = BTreeMap::new();
        let several = records.len() > 1;
        let is_plain = records.iter().all(|record| record.lease.is_none());
        let live = self.live()?;
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
                look.in_new_segment && written.is_empty(),
            )?;
            // Where many write, one sync takes the records of all to the disk, and none should
            // begin before it.
            if self.writes_alone(before.at) {
                self.journal.begin_writing(start, end);
            }
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
            live.leave_trace(&self.disk, &Trace::of(&record, start))?;
            written.push(Journalled {
                at: start,
                end: tail,
                record: Arc::new(record),
            });
        }
        let traced = look.traced.unwrap_or(Traced {
            from: before.at,
            since: tail.sum,
        });
        let traced = if is_plain {
            traced
        } else {
            Traced {
                from: tail.at,
                since: tail.sum,
            }
        };
        live.set_tail(&self.disk, &tail, Some(traced))?;
        self.note_own(before.at, tail.at);
        let last = written
            .last()
            .map(|journalled| Arc::clone(&journalled.record));
        // They are written: that the index could not be told is no reason to fail.
        if self.keep_in_mind(&before, written, traced).is_err() {
            self.forget_by_heart();
        }
        Ok(Grown { end: tail, last })
    }

    /// Step 3 for whoever made the records. They are written: if the disk fails now, the next
    /// command may complete them all the same.
    fn sync_own(&self, end: &Tail) -> Result<()> {
        self.sync_to(end.at).map_err(|error| match error {
            lost @ StoreError::Damaged { .. } => lost,
            other => StoreError::Unsure {
                seq: end.seq,
                source: Box::new(other),
            },
        })
    }

    /// Step 3: returns when everything up to a place is on the disk.
    pub(crate) fn sync_to(&self, end: Position) -> Result<()> {
        // Nothing stands there yet; what stands before was synced when its segment was left.
        if end.offset == 0 && (end == Position::START || !self.journal.has(end.segment)) {
            return Ok(());
        }
        // Whose place is synced meanwhile waits no longer: the lock may be with the next sync by
        // then.
        let live = self.live()?;
        let Some(_held) = self.sync_lock.acquire_unless(&|| live.is_synced_to(end))? else {
            return Ok(());
        };
        let live = self.live_now()?;
        let known = live.known();
        if !known.doubt && known.synced.is_some_and(|synced| synced >= end) {
            return Ok(());
        }
        // Whoever appended meanwhile is served by the same sync.
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
            // No later sync may be believed on its own: see `Journal::rewrite`.
            live.set_doubt(&self.disk, true)?;
            return Err(error);
        }
        if known.doubt {
            live.set_doubt(&self.disk, false)?;
        }
        live.set_synced(&self.disk, target)
    }
}
