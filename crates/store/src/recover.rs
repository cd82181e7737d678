//! After a crash: making the heads anew, redoing lost files, and what `doctor` mends.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::atomic::Ordering;

use quipu_contract::ProjectPath;
use serde::Serialize;

use crate::apply::{is_zeros_behind, note};
use crate::clock::parse_time;
use crate::error::{Result, StoreError};
use crate::heads::{Head, Heads};
use crate::journal::{Line, Position};
use crate::live::Tail;
use crate::record::OpKind;
use crate::store::Store;
use crate::tree::Stamp;
use crate::version::Version;

/// How many segments back files are compared when the heads had to be made anew: all files reach the
/// disk when a segment is left, and one commit can leave no more than this many.
const REDO_SEGMENTS: u32 = 4;

/// What `doctor` did.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Mended {
    pub what: String,
}

impl Store {
    /// Fills empty heads from the journal. No file is written: what a file looks like is unknown
    /// until it is next looked at.
    pub(crate) fn fill_heads(&self, heads: &Heads) -> Result<()> {
        let bound = self.bound()?;
        heads.transaction(|heads| {
            heads.clear()?;
            let mut tail = Tail::start();
            let mut result = Ok(());
            let mut newest: BTreeMap<String, Head> = BTreeMap::new();
            self.journal.scan(Position::START, Some(bound), &mut |seen| {
                let record = match seen.line {
                    Line::Record(record) => record,
                    Line::Damaged(_) => return,
                    Line::Later(what) => {
                        result = Err(StoreError::refused(
                            format!("a later Quipu wrote this journal: {what}"),
                            "use that version, or a newer one",
                        ));
                        return;
                    }
                };
                for op in record.ops.iter().filter(|o| o.op != OpKind::Keep) {
                    newest.insert(op.path.clone(), Head::after(op, seen.at, record.seq));
                }
                if result.is_ok() {
                    result = note(heads, seen.at, &record);
                }
                tail = Tail::after(&record, seen.end, tail.wall_us);
            })?;
            result?;
            for (path, head) in &newest {
                heads.put(path, head)?;
            }
            tail.at = tail.at.max(bound);
            heads.set_applied(&tail)?;
            // Which files have reached the disk is not known any more.
            heads.set_kept(Position { segment: bound.segment.saturating_sub(REDO_SEGMENTS).max(1), offset: 0 }, "")?;
            heads.set_made()
        })
    }

    /// Once the heads were made anew, the newest files are compared with the journal: a crash may
    /// have left them behind, and only the lost heads knew.
    pub(crate) fn redo_after_rebuild(&self) -> Result<()> {
        if self.is_read_only() || self.redone.load(Ordering::SeqCst) {
            return Ok(());
        }
        if !self.heads()?.is_redone()? {
            let end = self.heads()?.applied()?.at;
            self.sync_to(end)?;
            let _held = self.apply_lock.acquire()?;
            let (kept, _) = self.heads()?.kept()?;
            // Where a running process knows how far files are in place, only what lies behind can be lost.
            let placed = self.live()?.known().applied;
            self.redo_lost(self.paths_since(kept)?, placed)?;
            self.tree.sync_everything().map_err(StoreError::io("cannot sync the files"))?;
            let heads = self.heads()?;
            heads.set_kept(end, &self.boot)?;
            heads.set_redone()?;
        }
        self.redone.store(true, Ordering::SeqCst);
        Ok(())
    }

    /// Files are not synced one by one. After a reboot those written since the last full sync are
    /// compared with the journal, which was.
    pub(crate) fn redo_after_power_cut(&self) -> Result<()> {
        let (kept, boot) = self.heads()?.kept()?;
        if boot == self.boot {
            return Ok(());
        }
        let paths = self.paths_since(kept)?;
        let _held = self.apply_lock.acquire()?;
        self.redo_lost(paths, None)?;
        self.heads()?.set_boot(&self.boot)
    }

    fn paths_since(&self, kept: Position) -> Result<BTreeSet<String>> {
        let mut paths = BTreeSet::new();
        self.journal.scan(kept, None, &mut |seen| {
            if let Line::Record(record) = seen.line {
                paths.extend(record.ops.iter().filter(|o| o.op != OpKind::Keep).map(|o| o.path.clone()));
            }
        })?;
        Ok(paths)
    }

    /// Writes a file anew if what stands there is what a crash leaves: nothing, a beginning of the
    /// newest text, or an earlier version of it. Anything else is someone's edit and stays.
    fn redo_lost(&self, paths: BTreeSet<String>, placed: Option<Position>) -> Result<()> {
        for text in paths {
            let Ok(path) = ProjectPath::parse(&text) else { continue };
            let Some(head) = self.heads()?.head(&text)? else { continue };
            // Something that is no file stands there: not what a crash leaves.
            let Ok(found) = self.tree.read(&path) else { continue };
            if found.as_ref().is_some_and(|(_, stamp)| head.stamp == Some(*stamp)) {
                continue;
            }
            // A file that was written after Quipu last wrote it was edited, not lost.
            let edited = found.as_ref().zip(head.stamp).is_some_and(|((_, stamp), ours)| stamp.mtime_ns > ours.mtime_ns)
                || placed.is_some_and(|placed| head.at < placed);
            let io = || format!("cannot redo `{path}`");
            if head.gone {
                // Written after the removal was journalled: someone has made it again.
                let made_again = |stamp: &Stamp| {
                    let removed = self.journal.read_record(head.at).ok().and_then(|record| parse_time(&record.at));
                    removed.is_some_and(|removed_us| stamp.mtime_ns / 1000 > removed_us)
                };
                if let Some((bytes, stamp)) = found
                    && !edited
                    && !made_again(&stamp)
                    && self.was_version(&path, &head, &bytes)?
                {
                    self.tree.remove(&path, Some(stamp)).map_err(StoreError::io(io()))?;
                }
                continue;
            }
            let Ok(newest) = self.content_from_journal(&path, &head) else { continue };
            let stamp = match found {
                Some((bytes, stamp)) if bytes == newest => Some(stamp),
                found => {
                    let bytes = found.map(|(bytes, _)| bytes).unwrap_or_default();
                    let lost = newest.starts_with(&bytes) || is_zeros_behind(&bytes, &newest) || self.was_version(&path, &head, &bytes)?;
                    if edited || !lost {
                        continue;
                    }
                    let mut asides = false;
                    self.replace(&path, &newest, &[&Version::of(&bytes)], None, &mut asides).map_err(StoreError::io(io()))?
                }
            };
            self.heads()?.set_stamp(&text, &head.version, stamp)?;
        }
        Ok(())
    }

    /// Mends what can be mended and says what it did.
    pub fn doctor(&self) -> Result<Vec<Mended>> {
        let mut mended = Vec::new();
        let mut did = |what: String| mended.push(Mended { what });
        let tail = {
            let _held = self.append_lock.acquire()?;
            let end = self.live()?.tail().map_or_else(|| self.heads().and_then(|heads| heads.applied()).map(|t| t.at), |t| Ok(t.at));
            let lost = end.is_ok_and(|end| end > Position::START && self.journal.is_end(end).is_err());
            if lost {
                self.live()?.forget(&self.disk)?;
                did("the journal is gone or cut short: what is on disk becomes the new beginning".into());
            }
            self.rebuild_heads()?;
            match self.live()?.tail() {
                Some(tail) => tail,
                None => self.find_end(None)?,
            }
        };
        self.settle()?;
        did(format!("made the heads anew from {} records", tail.seq));
        for entry in std::fs::read_dir(self.quipu().join("tmp")).map_err(StoreError::io("cannot list `.quipu/tmp`"))?.flatten() {
            let old = entry.metadata().and_then(|m| m.modified()).ok().and_then(|t| t.elapsed().ok());
            // A running commit's file is younger than this.
            if old.is_some_and(|age| age.as_secs() > 60) && std::fs::remove_file(entry.path()).is_ok() {
                did(format!("removed the left-over `.quipu/tmp/{}`", entry.file_name().to_string_lossy()));
            }
        }
        for path in self.heal()? {
            did(format!("journalled `{path}` anew: a record about it is damaged, and the file proved what it said"));
        }
        let asides = self.journal_asides()?;
        if asides > 0 {
            did(format!("journalled {asides} outside edit(s) that a commit had replaced"));
        }
        let compressed = self.journal.compress_older(tail.at.segment)?;
        if compressed > 0 {
            did(format!("compressed {compressed} old journal segment(s)"));
        }
        Ok(mended)
    }
}
