//! The texts of files: from the file itself if it is unchanged, otherwise from the journal.
//!
//! Every record points to the previous record about the same file, so reading a text costs as much
//! as the file has records since its last whole text, not as much as the journal has. Across one
//! damaged record, the file on disk proves the text: a version is a hash over the previous version
//! and the added bytes.

use std::sync::Arc;

use quipu_contract::ProjectPath;

use crate::error::{Result, StoreError};
use crate::files::tree::Tree;
use crate::index::file_index::FileHead;
use crate::index::shared_index::Index;
use crate::journal::body::{Gap, compose, splice, splice_size};
use crate::journal::delta::{Delta, MOST, SMALL, difference};
use crate::journal::durable::Journal;
use crate::journal::record::{OpKind, Record, RecordOp};
use crate::journal::segments::Position;
use crate::version::Version;

pub(crate) struct Texts {
    pub journal: Arc<Journal>,
    pub tree: Arc<Tree>,
    pub index: Arc<Index>,
}

impl Texts {
    /// The text of a file: from the file itself if its stat is unchanged, otherwise from the
    /// journal.
    pub(crate) fn content(&self, path: &ProjectPath, head: &FileHead) -> Result<Vec<u8>> {
        if let Some(file_stat) = head.file_stat
            && let Ok(Some((bytes, found))) = self.tree.read(path)
            && found == file_stat
        {
            return Ok(bytes);
        }
        self.content_from_journal(path, head)
    }

    pub(crate) fn content_from_journal(
        &self,
        path: &ProjectPath,
        head: &FileHead,
    ) -> Result<Vec<u8>> {
        match self.plain_content(path, head) {
            Err(damage @ StoreError::Damaged { .. }) => self.proven_content(path, head, damage),
            other => other,
        }
    }

    /// The text of a file from the journal alone.
    pub(crate) fn plain_content(&self, path: &ProjectPath, head: &FileHead) -> Result<Vec<u8>> {
        let mut ops: Vec<RecordOp> = Vec::new();
        self.walk(path, head.at, &mut |_, op| {
            ops.push(op.clone());
            !op.edit().is_start()
        })?;
        // If lines were moved, another record is at that position.
        if ops
            .first()
            .is_none_or(|newest| (&newest.version, newest.len) != (&head.version, head.len))
        {
            return Err(Gap::Mismatch.of_newest(path));
        }
        compose(ops.iter().map(RecordOp::edit)).map_err(|gap| gap.of_newest(path))
    }

    /// Visits the operations on a file, newest first, until `visit` returns false.
    pub(crate) fn walk(
        &self,
        path: &ProjectPath,
        from: Position,
        visit: &mut dyn FnMut(&Record, &RecordOp) -> bool,
    ) -> Result<()> {
        let mut next = Some(from);
        while let Some(at) = next {
            let record = self.journal.read_record(at)?;
            next = None;
            for op in record.about(path.as_str()) {
                if !visit(&record, op) {
                    return Ok(());
                }
                next = op
                    .last
                    .as_deref()
                    .and_then(Position::parse)
                    .filter(|last| *last < at);
            }
        }
        Ok(())
    }

    /// The difference between a text and the newest journalled version; none if the text is to be
    /// stored whole. `known` is the presumed text of that version.
    pub(crate) fn delta(
        &self,
        path: &ProjectPath,
        head: Option<&FileHead>,
        known: Option<Vec<u8>>,
        after: &[u8],
    ) -> Option<Delta> {
        let head = head.filter(|head| !head.gone && head.seq > 0 && after.len() >= SMALL)?;
        let load = self.load_of(path, head).ok().filter(|load| *load < MOST)?;
        // An external edit can keep the file stat. The text counts only if the version matches.
        let before = match known.filter(|known| Version::of(known) == head.version) {
            Some(known) => known,
            None => self.plain_content(path, head).ok()?,
        };
        let cuts = difference(&before, after)?;
        let size = splice_size(&cuts);
        if size > after.len() / 2 {
            return None;
        }
        let share = u32::try_from(size.saturating_mul(MOST as usize) / after.len()).ok()?;
        let load = load.saturating_add(1).saturating_add(share);
        // Never store a difference that does not reproduce the text.
        (load <= MOST && splice(&before, &cuts)? == after).then_some(Delta { cuts, load })
    }

    /// The load of the differences since the last whole text of a file.
    fn load_of(&self, path: &ProjectPath, head: &FileHead) -> Result<u32> {
        let mut found = None;
        self.walk(path, head.at, &mut |_, op| {
            found = Some(op.deltas).filter(|_| op.op != OpKind::Append);
            found.is_none()
        })?;
        found.ok_or_else(|| StoreError::damaged(format!("no text of `{path}`")))
    }

    /// The text of a file across one unreadable record.
    pub(crate) fn proven_content(
        &self,
        path: &ProjectPath,
        head: &FileHead,
        damage: StoreError,
    ) -> Result<Vec<u8>> {
        // The version alone proves a text that was written whole, even if it was stored as a
        // difference.
        if let Ok(Some((found, _))) = self.tree.read(path)
            && Version::of(&found) == head.version
        {
            return Ok(found);
        }
        let mut tails: Vec<Vec<u8>> = Vec::new();
        let mut edge = None;
        let walked = self.walk(path, head.at, &mut |record, op| {
            tails.push(op.content().to_vec());
            edge = Some((record.seq, op.clone()));
            op.op == OpKind::Append
        });
        let (Err(_), Some((seq, edge))) = (walked, edge) else {
            return self.proven_by_file(path, head, damage);
        };
        let length = edge.len.saturating_sub(edge.content().len() as u64);
        let (Some(version), Ok(Some((found, _)))) = (edge.base, self.tree.read(path)) else {
            return Err(damage);
        };
        let Some(found) = usize::try_from(length)
            .ok()
            .and_then(|length| found.get(..length))
        else {
            return Err(damage);
        };
        if Version::of(found) != version && !self.extends_older(path, seq, found, &version)? {
            return Err(damage);
        }
        let mut whole = found.to_vec();
        tails
            .iter()
            .rev()
            .for_each(|tail| whole.extend_from_slice(tail));
        Ok(whole)
    }

    /// The text of a file if its newest record cannot be read: the content of the file, if its
    /// version matches.
    fn proven_by_file(
        &self,
        path: &ProjectPath,
        head: &FileHead,
        damage: StoreError,
    ) -> Result<Vec<u8>> {
        match self.tree.read(path) {
            Ok(Some((found, _)))
                if Version::of(&found) == head.version
                    || self.extends_older(path, head.seq, &found, &head.version)? =>
            {
                Ok(found)
            }
            _ => Err(damage),
        }
    }

    /// Whether some bytes consist of an older, readable version and an addition that results in the
    /// wanted version.
    fn extends_older(
        &self,
        path: &ProjectPath,
        before: u64,
        bytes: &[u8],
        wanted: &Version,
    ) -> Result<bool> {
        let mut older = None;
        self.journal
            .each_newest_first(usize::MAX, &mut |at, record| {
                if older.is_none() && record.seq < before {
                    let op = record
                        .ops
                        .iter()
                        .rev()
                        .find(|o| o.path == path.as_str() && o.op != OpKind::Keep);
                    older = op.map(|op| FileHead::after(op, at, record.seq));
                }
            })?;
        let Some(older) = older.filter(|h| !h.gone) else {
            return Ok(false);
        };
        let Ok(start) = self.plain_content(path, &older) else {
            return Ok(false);
        };
        Ok(bytes
            .strip_prefix(start.as_slice())
            .is_some_and(|added| older.version.extended(added) == *wanted))
    }
}
