//! Carrying out what is journalled: files first, then the heads.
//!
//! Everything pending is applied in one go, whoever committed it: the last text of each file is
//! written once, and one transaction of the heads says how far it went. Doing it twice does nothing
//! more, which is what makes recovery simple.

use std::collections::BTreeMap;

use quipu_contract::{Class, ProjectPath};

use crate::clock::parse_time;
use crate::disk::Step;
use crate::error::{Result, StoreError};
use crate::heads::Head;
use crate::journal::Position;
use crate::lease::Lease;
use crate::live::Tail;
use crate::record::{Kind, OpKind, Record, RecordOp};
use crate::store::Store;
use crate::tree::Stamp;

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

/// What has to happen to one file.
struct Pending {
    /// The newest head before anything pending.
    before: Option<Head>,
    /// A whole text, if one was written; otherwise only what is to be appended.
    whole: Option<Vec<u8>>,
    tail: Vec<u8>,
    gone: bool,
    /// Only outside edits: the file is on disk already.
    adopted: bool,
    head: Head,
}

impl Store {
    /// Makes everything that is journalled durable and visible. Cheap if nothing is pending.
    pub fn settle(&self) -> Result<()> {
        if self.is_read_only() {
            return Ok(());
        }
        let tail = match self.live()?.tail() {
            Some(tail) => tail,
            None => {
                let _held = self.append_lock.acquire()?;
                match self.live()?.tail() {
                    Some(tail) => tail,
                    None => self.find_end()?,
                }
            }
        };
        self.redo_after_rebuild()?;
        if self.heads()?.applied()?.at >= tail.at {
            return Ok(());
        }
        self.sync_to(tail.at)?;
        self.apply_to(tail.at)
    }

    /// Applies everything that is synced, which reaches at least to `end`.
    pub(crate) fn apply_to(&self, end: Position) -> Result<()> {
        if self.apply_files(end)? {
            self.journal_asides()?;
        }
        Ok(())
    }

    /// The same under the append lock. True if outside edits were set aside and are to be journalled.
    pub(crate) fn apply_files(&self, end: Position) -> Result<bool> {
        let _held = self.apply_lock.acquire()?;
        let applied = self.heads()?.applied()?;
        if applied.at >= end {
            return Ok(false);
        }
        let target = self.live()?.synced().unwrap_or(end).max(end);
        let lines = self.journal.read_between(applied.at, target)?;
        let mut asides = false;
        self.apply_lines(applied, target, &lines, &mut asides)?;
        Ok(asides)
    }

    fn apply_lines(&self, applied: Tail, target: Position, lines: &[u8], asides: &mut bool) -> Result<()> {
        let mut records: Vec<(Position, Record)> = Vec::new();
        let mut at = applied.at;
        for line in lines.split_inclusive(|b| *b == b'\n') {
            // The end of a segment that was left: the next line begins the next one.
            while at.segment < target.segment && self.ends_at(at)? {
                at = Position { segment: at.segment + 1, offset: 0 };
            }
            let body = line.strip_suffix(b"\n").unwrap_or(line);
            // A damaged line is reported by `verify`; what it said is still on disk and is noticed there.
            if let Ok(record) = Record::decode(body) {
                records.push((at, record));
            }
            at.offset += line.len() as u64;
        }
        let mut pending: BTreeMap<ProjectPath, Pending> = BTreeMap::new();
        for (at, record) in &records {
            for op in record.ops.iter().filter(|o| o.op != OpKind::Keep) {
                let Ok(path) = ProjectPath::parse(&op.path) else { continue };
                let head = Head::after(op, *at, record.seq);
                let adopted = record.kind == Kind::Adopt;
                let entry = match pending.entry(path) {
                    std::collections::btree_map::Entry::Occupied(entry) => entry.into_mut(),
                    std::collections::btree_map::Entry::Vacant(entry) => {
                        let before = self.heads()?.head(&op.path)?;
                        entry.insert(Pending { before, whole: None, tail: Vec::new(), gone: false, adopted: true, head: head.clone() })
                    }
                };
                match op.op {
                    OpKind::Write => {
                        entry.whole = Some(op.bytes());
                        entry.tail.clear();
                        entry.gone = false;
                    }
                    OpKind::Append => {
                        match &mut entry.whole {
                            Some(whole) => whole.extend(op.bytes()),
                            None => entry.tail.extend(op.bytes()),
                        }
                        entry.gone = false;
                    }
                    OpKind::Remove => {
                        entry.whole = None;
                        entry.tail.clear();
                        entry.gone = true;
                    }
                    OpKind::Keep => {}
                }
                entry.adopted &= adopted;
                entry.head = head;
            }
        }
        let seq = records.last().map_or(applied.seq, |(_, r)| r.seq);
        for (path, pending) in &mut pending {
            let stamp = self.put_in_place(path, pending, asides).map_err(|source| StoreError::Unfinished {
                seq,
                path: path.to_string(),
                source,
            })?;
            pending.head.stamp = stamp;
        }
        let last = match records.last() {
            Some((_, record)) => {
                Tail { at: target, seq, wall_us: parse_time(&record.at).unwrap_or(applied.wall_us), sum: record.sum.clone() }
            }
            None => Tail { at: target, ..applied.clone() },
        };
        self.disk.step(Step::HeadsCommit).map_err(StoreError::io("cannot write the heads"))?;
        let heads = self.heads()?;
        heads.transaction(|heads| {
            for (path, pending) in &pending {
                heads.put(path.as_str(), &pending.head)?;
            }
            for (at, record) in &records {
                note(heads, *at, record)?;
            }
            heads.set_applied(&last)
        })?;
        drop(heads);
        if target.segment > applied.at.segment {
            // A segment is full: let everything reach the disk, so that a power cut never asks for more than one.
            self.tree.sync_everything().map_err(StoreError::io("cannot sync the files"))?;
            self.heads()?.set_kept(target, &self.boot)?;
        }
        Ok(())
    }

    fn ends_at(&self, at: Position) -> Result<bool> {
        let path = crate::segment::Segment::path(self.journal.folder(), at.segment);
        match std::fs::metadata(&path) {
            Ok(metadata) => Ok(metadata.len() <= at.offset),
            Err(_) => {
                let whole = crate::segment::read_whole(self.journal.folder(), at.segment).map_err(StoreError::io("journal"))?;
                Ok(whole.len() as u64 <= at.offset)
            }
        }
    }

    /// Brings one file to its newest state and returns what it looks like then. What an outside
    /// edit put in the way is kept.
    fn put_in_place(&self, path: &ProjectPath, pending: &Pending, asides: &mut bool) -> std::io::Result<Option<Stamp>> {
        let before = pending.before.as_ref().filter(|h| !h.gone);
        if pending.gone {
            if !pending.adopted {
                self.tree.remove(path)?;
            }
            return Ok(None);
        }
        if pending.adopted {
            // The bytes came from the disk. If they have changed again, the next look notices.
            let found = self.tree.read(path)?;
            return Ok(found
                .and_then(|(bytes, stamp)| (bytes.len() as u64 == pending.head.len && self.is_whole(pending, &bytes)).then_some(stamp)));
        }
        match &pending.whole {
            Some(whole) => self.replace(path, whole, before, asides),
            None => {
                let length = before.map_or(0, |h| h.len);
                let stamp = before.and_then(|h| h.stamp);
                if before.is_some()
                    && let Some(stamp) = self.tree.append(path, &pending.tail, stamp, length)?
                {
                    return Ok(Some(stamp));
                }
                let mut whole = match before {
                    Some(head) => self.content_from_journal(path, head).map_err(std::io::Error::other)?,
                    None => Vec::new(),
                };
                let found = self.tree.read(path)?.map(|(bytes, _)| bytes);
                let old = whole.clone();
                whole.extend_from_slice(&pending.tail);
                if let Some(found) = found {
                    let ours = whole.starts_with(&found) && found.len() >= old.len();
                    if !ours && found.starts_with(&old) {
                        // Someone else appended meanwhile: their lines follow ours and are adopted next.
                        whole.extend_from_slice(&found[old.len()..]);
                        if let Some(taken) = self.tree.replace(path, &whole, None)?.unexpected {
                            taken.discard()?;
                        }
                        return Ok(None);
                    }
                }
                self.replace(path, &whole, before, asides)
            }
        }
    }

    fn is_whole(&self, pending: &Pending, bytes: &[u8]) -> bool {
        match &pending.whole {
            Some(whole) => whole == bytes,
            None => bytes.ends_with(&pending.tail),
        }
    }

    fn replace(&self, path: &ProjectPath, whole: &[u8], before: Option<&Head>, asides: &mut bool) -> std::io::Result<Option<Stamp>> {
        let replaced = self.tree.replace(path, whole, before.and_then(|h| h.stamp))?;
        if let Some(taken) = replaced.unexpected {
            let found = &taken.bytes;
            let old = match before {
                Some(head) => Some(self.content_from_journal(path, head).map_err(std::io::Error::other)?),
                None => None,
            };
            // Our own bytes, whole or torn by a crash, and the journalled ones are no one's edit.
            let known = whole.starts_with(found) || old.is_some_and(|old| old.starts_with(found));
            if !known && found.iter().any(|b| *b != 0) {
                self.keep_aside(path, found)?;
                *asides = true;
            }
            taken.discard()?;
        }
        Ok(Some(replaced.stamp))
    }
}

/// Takes keys and leases of a record into the heads.
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
