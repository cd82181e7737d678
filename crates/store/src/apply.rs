//! Applies journalled records: files first, then the file index.
//!
//! One pass applies all pending records, including those of other processes. It writes each file
//! once, with its last text, and one transaction of the file index stores how far it went. Applying
//! a record twice changes nothing more; recovery relies on this.

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::ops::Range;
use std::sync::PoisonError;
use std::sync::atomic::Ordering;

use quipu_contract::{Class, ProjectPath};

use crate::adopt::Flag;
use crate::append::Standing;
use crate::clock::parse_time;
use crate::disk::Step;
use crate::error::{Result, StoreError};
use crate::heads::Head;
use crate::journal::Position;
use crate::lease::Lease;
use crate::live::{Known, Tail};
use crate::record::{Kind, OpKind, Record, RecordOp, Unread};
use crate::store::Store;
use crate::tree::{Appended, Stamp, Unexpected};
use crate::version::Version;

impl Head {
    pub(crate) fn after(op: &RecordOp, at: Position, seq: u64) -> Head {
        Head {
            class: Class::parse(&op.class).unwrap_or(Class::Free),
            version: op.version.clone(),
            len: op.len,
            at,
            seq,
            gone: op.op == OpKind::Remove,
            stamp: None,
            flag: None,
        }
    }
}

/// A record of the journal and its position.
struct Journalled {
    at: Position,
    /// The end of the journal after it.
    end: Tail,
    record: Record,
}

/// The pending work for one file.
struct Pending<'r> {
    /// The file index entry before any pending record.
    before: Option<Head>,
    /// The whole text, if a record wrote one.
    whole: Option<Cow<'r, [u8]>>,
    /// The whole text is an external edit: it is already on disk, perhaps with more text after it.
    whole_on_disk: bool,
    /// The text to append, to the whole text or to the text before the pending records.
    tail: Vec<u8>,
    /// This many bytes of `tail` are an external edit: already on disk, perhaps with more text
    /// after them.
    tail_on_disk: usize,
    /// For each record, the end of its text in `tail`.
    ends: Vec<usize>,
    gone: bool,
    /// The text is stored as a difference to one that cannot be read. The file stays as it is, and
    /// the next comparison reports it.
    unknown: bool,
    /// Only external edits: the file is already on disk.
    adopted: bool,
    /// No process has begun to apply this, so nothing in the file comes from it.
    fresh: bool,
    /// Every version that the journal holds from here on. Replacing one of them loses nothing.
    versions: Vec<&'r Version>,
    head: Head,
}

impl Pending<'_> {
    fn forget_tail(&mut self) {
        self.tail.clear();
        self.tail_on_disk = 0;
        self.ends.clear();
    }

    /// The text that each record appends, except for the part that is already on disk.
    fn pieces(&self) -> Vec<&[u8]> {
        let mut start = self.tail_on_disk;
        let ends = self.ends.iter().filter(|end| **end > self.tail_on_disk);
        ends.map(|end| &self.tail[std::mem::replace(&mut start, *end)..*end])
            .collect()
    }
}

impl Store {
    /// Syncs and applies all journalled records. Cheap if nothing is pending.
    pub fn settle(&self) -> Result<()> {
        if self.is_read_only() {
            return Ok(());
        }
        self.with_sound_heads(|| self.settle_once())
    }

    fn settle_once(&self) -> Result<()> {
        let tail = match self.live_now()?.tail() {
            // A dead writer may have left records after the tail. Complete them before reporting
            // that they do not exist.
            Some(tail) if self.journal.is_end(tail.at)? => tail,
            _ => {
                let _held = self.append_lock.acquire()?;
                self.look()?.tail
            }
        };
        if self.order.is_some() && !self.sent_sought.swap(true, Ordering::SeqCst) {
            self.heal_sent()?;
        }
        self.forget_deleted_heads();
        self.redo_after_rebuild()?;
        if !self.asides_sought.swap(true, Ordering::SeqCst) {
            self.journal_asides()?;
        }
        if self.heads()?.applied()?.at >= tail.at {
            return Ok(());
        }
        self.sync_to(tail.at)?;
        match self.apply_to(tail.at) {
            // If another process's file could not be written, that process gets the error, and so
            // does every reader of the file. This caller does not.
            Err(error) if error.is_of_one_file() && self.heads()?.applied()?.at >= tail.at => {
                Ok(())
            }
            other => other,
        }
    }

    /// Applies all synced records, at least up to `end`.
    pub(crate) fn apply_to(&self, end: Position) -> Result<()> {
        if self.apply_files(end)? {
            self.journal_asides()?;
        }
        Ok(())
    }

    /// Like `apply_to`, for a caller that may hold the append lock: it does not journal conflict
    /// copies. True if some were made and have to be journalled.
    pub(crate) fn apply_files(&self, end: Position) -> Result<bool> {
        let _held = self.apply_lock.acquire()?;
        let applied = self.heads()?.applied()?;
        if applied.at >= end {
            return Ok(false);
        }
        let known = self.live()?.known();
        let target = known.synced.unwrap_or(end).max(end);
        let lines = self.journal.read_between(applied.at, target)?;
        let mut asides = false;
        self.apply_lines(applied, target, &lines, &known, &mut asides)?;
        Ok(asides)
    }

    fn apply_lines(
        &self,
        applied: Tail,
        target: Position,
        lines: &[u8],
        known: &Known,
        asides: &mut bool,
    ) -> Result<()> {
        let records = self.decode_lines(&applied, target, lines)?;
        // A killed process wrote these files but did not update the index. Their file stats are
        // unknown until they are compared.
        let written = known.applied.filter(|written| *written <= target);
        let (written, fresh) = records
            .split_at(records.partition_point(|j| written.is_some_and(|written| j.at < written)));
        let mut written_heads = BTreeMap::new();
        for Journalled { at, record, .. } in written {
            for op in record.ops.iter().filter(|o| o.op != OpKind::Keep) {
                written_heads.insert(op.path.as_str(), Head::after(op, *at, record.seq));
            }
        }
        let own = self.begin(fresh, target, known)?;
        let mut pending = gather(
            fresh,
            own.as_ref(),
            &|path| match written_heads.get(path) {
                Some(head) => Ok(Some(head.clone())),
                None => self.heads()?.head(path),
            },
            &|path, head| self.base_text(path, head),
        )?;
        let last = records.last().map_or(&applied, |j| &j.end);
        let last = Tail {
            at: target,
            ..*last
        };
        let obstructed = self.put_all_in_place(last.seq, &mut pending, asides)?;
        self.live()?.set_applied(&self.disk, target)?;
        self.disk
            .step(Step::HeadsCommit)
            .map_err(StoreError::io("cannot write the heads"))?;
        let heads = self.heads()?;
        heads.transaction(|heads| {
            for (path, head) in &written_heads {
                heads.put(path, head)?;
            }
            for (path, pending) in &pending {
                heads.put(path.as_str(), &pending.head)?;
            }
            for Journalled { at, record, .. } in &records {
                note(heads, *at, record)?;
            }
            heads.set_applied(&last)
        })?;
        drop(heads);
        if target.segment > applied.at.segment {
            // A segment is full. Sync all files, so that a power cut affects at most one segment.
            self.tree
                .sync_everything()
                .map_err(StoreError::io("cannot sync the files"))?;
            self.heads()?.set_kept(target, &self.boot)?;
        }
        obstructed.map_or(Ok(()), Err)
    }

    /// The records in the lines between two positions. A damaged line is skipped: `verify` reports
    /// it, and its text may still be on disk, where the next comparison finds it.
    fn decode_lines(
        &self,
        applied: &Tail,
        target: Position,
        lines: &[u8],
    ) -> Result<Vec<Journalled>> {
        let mut records: Vec<Journalled> = Vec::new();
        let mut at = applied.at;
        for line in lines.split_inclusive(|b| *b == b'\n') {
            // The end of a closed segment: the next line is in the next segment.
            while at.segment < target.segment && self.ends_at(at)? {
                at = Position {
                    segment: at.segment + 1,
                    offset: 0,
                };
            }
            let body = line.strip_suffix(b"\n").unwrap_or(line);
            match Record::decode(body) {
                Ok(record) => {
                    let end = Position {
                        segment: at.segment,
                        offset: at.offset + line.len() as u64,
                    };
                    let end = Tail {
                        at: end,
                        seq: record.seq,
                        wall_us: parse_time(&record.at).unwrap_or(applied.wall_us),
                        sum: record.sum,
                    };
                    records.push(Journalled { at, end, record });
                }
                Err(Unread::OtherFormat(other)) => return Err(other.refusal()),
                // `verify` reports it. Its text may still be on disk, where the next comparison
                // finds it.
                Err(Unread::Damaged(_)) => {}
            }
            at.offset += line.len() as u64;
        }
        Ok(records)
    }

    /// Advances the file index to the end of the journal without changing any file. The stat of
    /// each such file is unknown until the file is compared. Requires the apply lock.
    pub(crate) fn advance_index(&self, target: Position) -> Result<()> {
        let applied = self.heads()?.applied()?;
        if applied.at >= target {
            return Ok(());
        }
        let lines = self.journal.read_between(applied.at, target)?;
        let records = self.decode_lines(&applied, target, &lines)?;
        let last = Tail {
            at: target,
            ..*records.last().map_or(&applied, |j| &j.end)
        };
        self.disk
            .step(Step::HeadsCommit)
            .map_err(StoreError::io("cannot write the index"))?;
        self.heads()?.transaction(|heads| {
            for Journalled { at, record, .. } in &records {
                for op in record.ops.iter().filter(|o| o.op != OpKind::Keep) {
                    heads.put(&op.path, &Head::after(op, *at, record.seq))?;
                }
                note(heads, *at, record)?;
            }
            heads.set_applied(&last)
        })
    }

    /// Records the range that this process has just journalled. Requires the append lock.
    pub(crate) fn note_own(&self, start: Position, end: Position) {
        let mut own = self.own.lock().unwrap_or_else(PoisonError::into_inner);
        *own = Some(match own.take() {
            Some(before) if before.end == start => before.start..end,
            _ => start..end,
        });
    }

    /// Returns the range of records that this process journalled itself and that no process has
    /// begun to apply. If `records` include others, marks them as begun up to `end`: a later
    /// process then has to check whether the files already contain them. Requires the apply lock.
    fn begin(
        &self,
        records: &[Journalled],
        end: Position,
        known: &Known,
    ) -> Result<Option<Range<Position>>> {
        let taken = {
            let mut own = self.own.lock().unwrap_or_else(PoisonError::into_inner);
            let taken = own.take();
            *own = taken
                .clone()
                .map(|taken| end.clamp(taken.start, taken.end)..taken.end);
            taken
        };
        // If the applied watermark is unknown, other processes may have written these files.
        let taken = taken.filter(|_| known.applied.is_some()).map(|taken| {
            known
                .begun
                .map_or(taken.start, |begun| begun.max(taken.start))..taken.end
        });
        if !records
            .iter()
            .all(|j| taken.as_ref().is_some_and(|own| own.contains(&j.at)))
        {
            self.live()?.set_begun(&self.disk, end)?;
        }
        Ok(taken)
    }

    /// Brings files to their newest state. If a single file blocks its own write, its error is
    /// returned after the others are written.
    fn put_all_in_place(
        &self,
        seq: u64,
        pending: &mut BTreeMap<ProjectPath, Pending<'_>>,
        asides: &mut bool,
    ) -> Result<Option<StoreError>> {
        let mut obstructed = None;
        let _near = self.tree.stay_near();
        for (path, pending) in pending {
            let source = match self.put_in_place(path, pending, asides) {
                Ok(stamp) => {
                    pending.head.stamp = stamp;
                    continue;
                }
                Err(source) => source,
            };
            // A folder or a link in the way, or missing permissions, concern only this file. Other
            // files need not wait.
            let only_this = source.kind() == std::io::ErrorKind::PermissionDenied
                || self.tree.obstacle(path).is_some();
            if only_this {
                // Until the file reaches its newest state, its current content, or its absence,
                // must not count as an edit.
                pending.head.flag = Some((
                    Flag::unwritten(&source),
                    self.tree.stamp(path).ok().flatten(),
                ));
            }
            let unfinished = StoreError::Unfinished {
                seq,
                path: path.to_string(),
                source,
            };
            if !only_this {
                return Err(unfinished);
            }
            obstructed = Some(unfinished);
        }
        Ok(obstructed)
    }

    /// The text that a difference is applied to. The file on disk counts only if its version
    /// matches.
    fn base_text(&self, path: &str, head: &Head) -> Option<Vec<u8>> {
        let path = ProjectPath::parse(path).ok()?;
        let on_disk = self.tree.read(&path).ok().flatten().map(|(bytes, _)| bytes);
        on_disk
            .filter(|bytes| Version::of(bytes) == head.version)
            .or_else(|| self.content_from_journal(&path, head).ok())
    }

    fn ends_at(&self, at: Position) -> Result<bool> {
        let path = crate::segment::Segment::path(self.journal.folder(), at.segment);
        match std::fs::metadata(&path) {
            Ok(metadata) => Ok(metadata.len() <= at.offset),
            Err(_) => Ok(self
                .journal
                .read_segment(at.segment)
                .map_or(0, |bytes| bytes.len() as u64)
                <= at.offset),
        }
    }

    /// Brings one file to its newest state and returns its file stat. An external edit in the way
    /// is kept.
    fn put_in_place(
        &self,
        path: &ProjectPath,
        pending: &Pending<'_>,
        asides: &mut bool,
    ) -> std::io::Result<Option<Stamp>> {
        let before = pending.before.as_ref().filter(|h| !h.gone);
        if pending.unknown {
            return Ok(None);
        }
        if pending.gone {
            if !pending.adopted
                && let Some(taken) = self.tree.remove(path, before.and_then(|h| h.stamp))?
            {
                self.keep_unless_known(path, taken, b"", &pending.versions, before, asides)?;
            }
            return Ok(None);
        }
        if pending.adopted {
            // The bytes came from the disk. If they have changed again, the next comparison finds
            // out.
            let found = self.tree.read(path)?;
            return Ok(found.and_then(|(bytes, stamp)| {
                (bytes.len() as u64 == pending.head.len && self.is_whole(pending, &bytes))
                    .then_some(stamp)
            }));
        }
        let mut begun = false;
        let mut base = match (&pending.whole, before) {
            (Some(whole), _) if pending.whole_on_disk => whole.to_vec(),
            (Some(whole), before) if pending.tail.is_empty() => {
                return self.replace(path, whole, &pending.versions, before, asides);
            }
            (Some(whole), before) => {
                return self.replace(
                    path,
                    &[&**whole, &pending.tail].concat(),
                    &pending.versions,
                    before,
                    asides,
                );
            }
            (None, None) => {
                return self.replace(path, &pending.tail, &pending.versions, None, asides);
            }
            (None, Some(before)) => {
                match self
                    .tree
                    .append(path, &pending.tail, before.stamp, before.len)?
                {
                    Appended::Done(Some(stamp)) => return Ok(Some(stamp)),
                    Appended::Done(None) => begun = true,
                    Appended::Other | Appended::Linked => {}
                }
                match self.text_before(path, before)? {
                    Some(text) => text,
                    None => return self.append_to_unknown(path, pending),
                }
            }
        };
        let (on_disk, text) = pending.tail.split_at(pending.tail_on_disk);
        base.extend_from_slice(on_disk);
        let standing = match (begun, pending.fresh) {
            (true, _) => Standing::Begun,
            (false, true) => Standing::Nowhere,
            (false, false) => Standing::Perhaps,
        };
        // A process that has ended may have written the text of some records, after text that was
        // appended by hand.
        let pieces = if standing == Standing::Perhaps && self.is_mingled(path, &base, text)? {
            pending.pieces()
        } else {
            vec![text]
        };
        let (mut stamp, mut done) = (None, true);
        for piece in pieces {
            if done {
                match self.append_beside(path, &base, piece, standing)? {
                    Appended::Done(found) => stamp = found,
                    Appended::Other | Appended::Linked => done = false,
                }
            }
            base.extend_from_slice(piece);
        }
        if done {
            Ok(stamp)
        } else {
            self.replace(path, &base, &pending.versions, before, asides)
        }
    }

    /// The text of a file before the pending records; none if the journal is damaged there. The
    /// damage concerns only this file and must not block the others.
    fn text_before(&self, path: &ProjectPath, head: &Head) -> std::io::Result<Option<Vec<u8>>> {
        match self.content_from_journal(path, head) {
            Err(StoreError::Damaged { .. }) => Ok(None),
            other => other.map(Some).map_err(std::io::Error::other),
        }
    }

    /// Appends to a file if its previous text cannot be read from the journal. The content of the
    /// file stays, and each entry that it does not contain yet is added at the end. Without a file
    /// stat, the next status scan compares the file and reports the damage.
    fn append_to_unknown(
        &self,
        path: &ProjectPath,
        pending: &Pending<'_>,
    ) -> std::io::Result<Option<Stamp>> {
        for piece in pending.pieces() {
            let Some((found, _)) = self.tree.read(path)? else {
                break;
            };
            if pending.fresh || memchr::memmem::find(&found, piece).is_none() {
                self.append_beside(path, &found, piece, Standing::Nowhere)?;
            }
        }
        Ok(None)
    }

    fn is_whole(&self, pending: &Pending<'_>, bytes: &[u8]) -> bool {
        match &pending.whole {
            Some(whole) => bytes.strip_prefix(&**whole) == Some(&pending.tail),
            None => bytes.ends_with(&pending.tail),
        }
    }

    pub(crate) fn replace(
        &self,
        path: &ProjectPath,
        whole: &[u8],
        versions: &[&Version],
        before: Option<&Head>,
        asides: &mut bool,
    ) -> std::io::Result<Option<Stamp>> {
        let replaced = self
            .tree
            .replace(path, whole, before.and_then(|h| h.stamp))?;
        if let Some(taken) = replaced.unexpected {
            self.keep_unless_known(path, taken, whole, versions, before, asides)?;
        }
        Ok(Some(replaced.stamp))
    }

    /// Discards the replaced file if Quipu wrote it, whole or as a crash leaves it. Otherwise it is
    /// an external edit and is kept.
    fn keep_unless_known(
        &self,
        path: &ProjectPath,
        taken: Unexpected,
        whole: &[u8],
        versions: &[&Version],
        before: Option<&Head>,
        asides: &mut bool,
    ) -> std::io::Result<()> {
        let found = &taken.bytes;
        let known = whole.starts_with(found)
            || is_zeros_behind(found, whole)
            || versions.contains(&&Version::of(found))
            || {
                match before {
                    // No part of an unreadable text is known to be Quipu's own.
                    Some(head) => self
                        .text_before(path, head)?
                        .is_some_and(|old| old.starts_with(found) || is_zeros_behind(found, &old)),
                    None => false,
                }
            };
        if !known {
            self.keep_aside(path, found)?;
            *asides = true;
        }
        taken.discard()
    }
}

/// Whether `found` is the beginning of a text, followed only by zero bytes.
fn is_zeros_behind(found: &[u8], text: &[u8]) -> bool {
    let used = found
        .iter()
        .rposition(|b| *b != 0)
        .map_or(0, |last| last + 1);
    used < found.len() && text.starts_with(&found[..used])
}

/// The text after a write: the stored whole text, or the difference applied to the pending or
/// current text. None if that text cannot be read.
fn text_after<'r>(
    op: &'r RecordOp,
    entry: &Pending<'_>,
    base: &dyn Fn(&str, &Head) -> Option<Vec<u8>>,
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
fn gather<'r>(
    records: &'r [Journalled],
    own: Option<&Range<Position>>,
    before: &dyn Fn(&str) -> Result<Option<Head>>,
    base: &dyn Fn(&str, &Head) -> Option<Vec<u8>>,
) -> Result<BTreeMap<ProjectPath, Pending<'r>>> {
    // For each file, also its newest operation, which gives the index entry, and the record of that
    // operation.
    let mut gathered: BTreeMap<&str, (Pending<'r>, &RecordOp, &Journalled)> = BTreeMap::new();
    for journalled in records {
        let record = &journalled.record;
        for op in record.ops.iter().filter(|o| o.op != OpKind::Keep) {
            let adopted = record.kind == Kind::Adopt && !record.elsewhere;
            let (entry, newest, place) = match gathered.entry(&op.path) {
                std::collections::btree_map::Entry::Occupied(entry) => entry.into_mut(),
                std::collections::btree_map::Entry::Vacant(entry) => {
                    let before = before(&op.path)?;
                    let pending = Pending {
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
                        head: Head::after(op, journalled.at, record.seq),
                    };
                    entry.insert((pending, op, journalled))
                }
            };
            (*newest, *place) = (op, journalled);
            match op.op {
                OpKind::Write => {
                    entry.whole = text_after(op, entry, base);
                    entry.unknown = entry.whole.is_none();
                    entry.whole_on_disk = adopted;
                    entry.forget_tail();
                    entry.gone = false;
                }
                OpKind::Append => {
                    let seen_on_disk = adopted && entry.tail.len() == entry.tail_on_disk;
                    entry.tail.extend_from_slice(op.content());
                    entry.ends.push(entry.tail.len());
                    if seen_on_disk {
                        entry.tail_on_disk = entry.tail.len();
                    }
                    entry.gone = false;
                }
                OpKind::Remove => {
                    entry.whole = None;
                    entry.unknown = false;
                    entry.forget_tail();
                    entry.gone = true;
                }
                OpKind::Keep => {}
            }
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
            pending.head = Head::after(newest, place.at, place.record.seq);
            Some((ProjectPath::parse(path).ok()?, pending))
        });
    Ok(finished.collect())
}

/// Stores the idempotency key and the leases of a record in the file index.
pub(crate) fn note(heads: &crate::heads::Heads, at: Position, record: &Record) -> Result<()> {
    if let Some(key) = &record.key {
        heads.put_key(key, at)?;
    }
    if let Some(event) = &record.lease {
        heads.put_lease(&Lease::apply(record, event))?;
        if event.act == "release" {
            heads.drop_lease(&event.id)?;
        }
    }
    Ok(())
}
