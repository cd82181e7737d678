//! Applies journalled records: files first, then the file index.
//!
//! One pass applies all pending records, including those of other processes. It writes each file
//! once, with its last text, and one transaction of the file index stores how far it went. Applying
//! a record twice changes nothing more; recovery relies on this.

use std::collections::BTreeMap;
use std::ops::Range;
use std::sync::{Arc, Mutex};

use quipu_contract::ProjectPath;

use crate::apply::append::AppendState;
use crate::apply::conflict_copies::ConflictCopies;
use crate::apply::gather::{Journalled, PendingFile, gather};
use crate::error::{Result, StoreError};
use crate::files::disk::Step;
use crate::files::tree::{Appended, FileStat, Tree, Unexpected};
use crate::history::texts::Texts;
use crate::index::file_index::FileHead;
use crate::index::shared_index::Index;
use crate::journal::durable::Journal;
use crate::journal::record::{Record, Unread};
use crate::journal::segments::Position;
use crate::journal::watermarks::{Known, Tail};
use crate::lock::{Held, KernelLock, locked};
use crate::rules::flag::Flag;
use crate::settings::Settings;
use crate::version::Version;
use crate::worktree::external_edit::WorkTree;

/// Whether this process has just written the pending text, perhaps after text of another program.
#[derive(Clone, Copy)]
enum Started {
    Yes,
    No,
}

/// The result of appending a pending text.
enum AppliedTail {
    Applied(Option<FileStat>),
    /// It cannot be appended: the file has to get this text.
    Replace(Vec<u8>),
}

fn is_whole(pending: &PendingFile<'_>, bytes: &[u8]) -> bool {
    match &pending.whole {
        Some(whole) => bytes.strip_prefix(&**whole) == Some(&pending.tail),
        None => bytes.ends_with(&pending.tail),
    }
}

pub(crate) struct Applier {
    pub(super) settings: Arc<Settings>,
    pub(super) journal: Arc<Journal>,
    pub(super) index: Arc<Index>,
    pub(super) tree: Arc<Tree>,
    pub(super) texts: Arc<Texts>,
    pub(super) worktree: Arc<WorkTree>,
    pub(super) copies: Arc<ConflictCopies>,
    lock: KernelLock,
    /// The last range of records that this process journalled and has not begun to apply.
    own: Mutex<Option<Range<Position>>>,
}

/// Whether `found` is the beginning of a text, followed only by zero bytes.
fn is_zeros_behind(found: &[u8], text: &[u8]) -> bool {
    let used = found
        .iter()
        .rposition(|b| *b != 0)
        .map_or(0, |last| last + 1);
    used < found.len() && text.starts_with(&found[..used])
}

impl Applier {
    pub fn new(
        settings: Arc<Settings>,
        journal: Arc<Journal>,
        index: Arc<Index>,
        tree: Arc<Tree>,
        texts: Arc<Texts>,
        worktree: Arc<WorkTree>,
        copies: Arc<ConflictCopies>,
    ) -> Applier {
        Applier {
            lock: settings.lock("apply.lock"),
            settings,
            journal,
            index,
            tree,
            texts,
            worktree,
            copies,
            own: Mutex::new(None),
        }
    }

    /// Acquires the apply lock.
    pub fn lock(&self) -> Result<Held> {
        self.lock.acquire()
    }

    /// Like `apply_to`, for a caller that may hold the append lock: it does not journal conflict
    /// copies. True if some were made and have to be journalled.
    pub(crate) fn apply_files(&self, end: Position) -> Result<bool> {
        let _held = self.lock()?;
        let applied = self.index.open()?.applied()?;
        if applied.at >= end {
            return Ok(false);
        }
        let known = self.journal.watermarks()?.known();
        let target = known.synced.unwrap_or(end).max(end);
        let lines = self.journal.read_between(applied.at, target)?;
        let mut conflict_copies = false;
        self.apply_lines(applied, target, &lines, &known, &mut conflict_copies)?;
        Ok(conflict_copies)
    }

    fn apply_lines(
        &self,
        applied: Tail,
        target: Position,
        lines: &[u8],
        known: &Known,
        conflict_copies: &mut bool,
    ) -> Result<()> {
        let records = self.decode_lines(&applied, target, lines)?;
        // A killed process wrote these files but did not update the index. Their file stats are
        // unknown until they are compared.
        let written = known.applied.filter(|written| *written <= target);
        let (written, fresh) = records
            .split_at(records.partition_point(|j| written.is_some_and(|written| j.at < written)));
        let mut written_heads = BTreeMap::new();
        for Journalled { at, record, .. } in written {
            for op in record.changes() {
                written_heads.insert(op.path.as_str(), FileHead::after(op, *at, record.seq));
            }
        }
        let own = self.begin(fresh, target, known)?;
        let mut pending = gather(
            fresh,
            own.as_ref(),
            &|path| match written_heads.get(path) {
                Some(head) => Ok(Some(head.clone())),
                None => self.index.open()?.head(path),
            },
            &|path, head| self.base_text(path, head),
        )?;
        let last = records.last().map_or(&applied, |j| &j.end);
        let last = Tail {
            at: target,
            ..*last
        };
        let obstructed = self.apply_all(last.seq, &mut pending, conflict_copies)?;
        let heads = written_heads
            .iter()
            .map(|(path, head)| (*path, head))
            .chain(pending.iter().map(|(path, p)| (path.as_str(), &p.head)));
        self.note_applied(heads, &records, &last)?;
        if target.segment > applied.at.segment {
            // A segment is full. Sync all files, so that a power cut affects at most one segment.
            self.sync_everything()?;
            self.index.open()?.set_kept(target, &self.settings.boot)?;
        }
        obstructed.map_or(Ok(()), Err)
    }

    /// Stores how far the files are written: the watermark first, then the index.
    fn note_applied<'h>(
        &self,
        heads: impl Iterator<Item = (&'h str, &'h FileHead)>,
        records: &[Journalled],
        last: &Tail,
    ) -> Result<()> {
        self.journal.watermarks()?.set_applied(last.at)?;
        self.settings
            .disk
            .step(Step::HeadsCommit)
            .map_err(StoreError::io("cannot write the file index"))?;
        self.index.open()?.transaction(|file_index| {
            for (path, head) in heads {
                file_index.put(path, head)?;
            }
            for Journalled { at, record, .. } in records {
                file_index.note(*at, record)?;
            }
            file_index.set_applied(last)
        })
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
                at = Position::start_of(at.segment + 1);
            }
            let body = line.strip_suffix(b"\n").unwrap_or(line);
            match Record::decode(body) {
                Ok(record) => {
                    let end = at.at(at.offset + line.len() as u64);
                    let end = Tail::after(&record, end, applied.wall_us);
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
        let applied = self.index.open()?.applied()?;
        if applied.at >= target {
            return Ok(());
        }
        let lines = self.journal.read_between(applied.at, target)?;
        let records = self.decode_lines(&applied, target, &lines)?;
        let last = Tail {
            at: target,
            ..*records.last().map_or(&applied, |j| &j.end)
        };
        self.settings
            .disk
            .step(Step::HeadsCommit)
            .map_err(StoreError::io("cannot write the index"))?;
        self.index.open()?.transaction(|file_index| {
            for Journalled { at, record, .. } in &records {
                for op in record.changes() {
                    file_index.put(&op.path, &FileHead::after(op, *at, record.seq))?;
                }
                file_index.note(*at, record)?;
            }
            file_index.set_applied(&last)
        })
    }

    /// Records the range that this process has just journalled. Requires the append lock.
    pub(crate) fn note_own(&self, start: Position, end: Position) {
        let mut own = locked(&self.own);
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
            let mut own = locked(&self.own);
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
            self.journal.watermarks()?.set_begun(end)?;
        }
        Ok(taken)
    }

    /// Brings files to their newest state. If a single file blocks its own write, its error is
    /// returned after the others are written.
    fn apply_all(
        &self,
        seq: u64,
        pending: &mut BTreeMap<ProjectPath, PendingFile<'_>>,
        conflict_copies: &mut bool,
    ) -> Result<Option<StoreError>> {
        let mut obstructed = None;
        for (path, pending) in pending {
            let source = match self.apply_file(path, pending, conflict_copies) {
                Ok(file_stat) => {
                    pending.head.file_stat = file_stat;
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
                    self.tree.file_stat(path).ok().flatten(),
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
    fn base_text(&self, path: &str, head: &FileHead) -> Option<Vec<u8>> {
        let path = ProjectPath::parse(path).ok()?;
        let on_disk = self.tree.read(&path).ok().flatten().map(|(bytes, _)| bytes);
        on_disk
            .filter(|bytes| Version::of(bytes) == head.version)
            .or_else(|| self.texts.content_from_journal(&path, head).ok())
    }

    fn ends_at(&self, at: Position) -> Result<bool> {
        let path = crate::journal::segment::Segment::path(self.journal.folder(), at.segment);
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
    fn apply_file(
        &self,
        path: &ProjectPath,
        pending: &PendingFile<'_>,
        conflict_copies: &mut bool,
    ) -> std::io::Result<Option<FileStat>> {
        if pending.unknown {
            return Ok(None);
        }
        if pending.gone {
            self.apply_removal(path, pending, conflict_copies)?;
            return Ok(None);
        }
        if pending.adopted {
            // The bytes came from the disk. If they have changed again, the next comparison finds
            // out.
            let found = self.tree.read(path)?;
            return Ok(found.and_then(|(bytes, file_stat)| {
                (bytes.len() as u64 == pending.head.len && is_whole(pending, &bytes))
                    .then_some(file_stat)
            }));
        }
        let before = pending.before.as_ref().filter(|h| !h.gone);
        let mut replace = |whole: &[u8], before| {
            self.replace(path, whole, &pending.versions, before, conflict_copies)
        };
        match (&pending.whole, before) {
            (Some(whole), _) if pending.whole_on_disk => {
                let base = whole.to_vec();
                match self.apply_tail(path, pending, base, Started::No)? {
                    AppliedTail::Applied(file_stat) => Ok(file_stat),
                    AppliedTail::Replace(text) => replace(&text, before),
                }
            }
            (Some(whole), before) if pending.tail.is_empty() => replace(whole, before),
            (Some(whole), before) => replace(&[&**whole, &pending.tail].concat(), before),
            (None, None) => replace(&pending.tail, None),
            (None, Some(head)) => {
                let appended = self
                    .tree
                    .append(path, &pending.tail, head.file_stat, head.len)?;
                let started = match appended {
                    Appended::Done(Some(file_stat)) => return Ok(Some(file_stat)),
                    Appended::Done(None) => Started::Yes,
                    Appended::Other | Appended::Linked => Started::No,
                };
                let Some(base) = self.text_before(path, head)? else {
                    return self.append_to_unknown(path, pending);
                };
                match self.apply_tail(path, pending, base, started)? {
                    AppliedTail::Applied(file_stat) => Ok(file_stat),
                    AppliedTail::Replace(text) => replace(&text, before),
                }
            }
        }
    }

    fn apply_removal(
        &self,
        path: &ProjectPath,
        pending: &PendingFile<'_>,
        conflict_copies: &mut bool,
    ) -> std::io::Result<()> {
        let before = pending.before.as_ref().filter(|h| !h.gone);
        if !pending.adopted
            && let Some(taken) = self.tree.remove(path, before.and_then(|h| h.file_stat))?
        {
            let versions = &pending.versions;
            self.keep_unless_known(path, taken, b"", versions, before, conflict_copies)?;
        }
        Ok(())
    }

    /// Appends the pending text to a file that holds `base`, beside what other programs append.
    fn apply_tail(
        &self,
        path: &ProjectPath,
        pending: &PendingFile<'_>,
        mut base: Vec<u8>,
        started: Started,
    ) -> std::io::Result<AppliedTail> {
        let (on_disk, text) = pending.tail.split_at(pending.tail_on_disk);
        base.extend_from_slice(on_disk);
        let append_state = match (started, pending.fresh) {
            (Started::Yes, _) => AppendState::Begun,
            (Started::No, true) => AppendState::Nowhere,
            (Started::No, false) => AppendState::Perhaps,
        };
        // A process that has ended may have written the text of some records, after text that was
        // appended by hand.
        let pieces =
            if append_state == AppendState::Perhaps && self.is_mingled(path, &base, text)? {
                pending.pieces()
            } else {
                vec![text]
            };
        let (mut file_stat, mut done) = (None, true);
        for piece in pieces {
            if done {
                match self.append_beside(path, &base, piece, append_state)? {
                    Appended::Done(found) => file_stat = found,
                    Appended::Other | Appended::Linked => done = false,
                }
            }
            base.extend_from_slice(piece);
        }
        Ok(if done {
            AppliedTail::Applied(file_stat)
        } else {
            AppliedTail::Replace(base)
        })
    }

    /// The text of a file before the pending records; none if the journal is damaged there. The
    /// damage concerns only this file and must not block the others.
    fn text_before(&self, path: &ProjectPath, head: &FileHead) -> std::io::Result<Option<Vec<u8>>> {
        match self.texts.content_from_journal(path, head) {
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
        pending: &PendingFile<'_>,
    ) -> std::io::Result<Option<FileStat>> {
        for piece in pending.pieces() {
            let Some((found, _)) = self.tree.read(path)? else {
                break;
            };
            if pending.fresh || memchr::memmem::find(&found, piece).is_none() {
                self.append_beside(path, &found, piece, AppendState::Nowhere)?;
            }
        }
        Ok(None)
    }

    pub(crate) fn replace(
        &self,
        path: &ProjectPath,
        whole: &[u8],
        versions: &[&Version],
        before: Option<&FileHead>,
        conflict_copies: &mut bool,
    ) -> std::io::Result<Option<FileStat>> {
        let replaced = self
            .tree
            .replace(path, whole, before.and_then(|h| h.file_stat))?;
        if let Some(taken) = replaced.unexpected {
            self.keep_unless_known(path, taken, whole, versions, before, conflict_copies)?;
        }
        Ok(Some(replaced.file_stat))
    }

    /// Discards the replaced file if Quipu wrote it, whole or as a crash leaves it. Otherwise it is
    /// an external edit and is kept.
    fn keep_unless_known(
        &self,
        path: &ProjectPath,
        taken: Unexpected,
        whole: &[u8],
        versions: &[&Version],
        before: Option<&FileHead>,
        conflict_copies: &mut bool,
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
            self.copies.keep_conflict_copy(path, found)?;
            *conflict_copies = true;
        }
        taken.discard()
    }
}
