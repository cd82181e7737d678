//! After a power cut: what did not reach the disk is written anew from the journal.
//!
//! Files are not synced one by one, so after a reboot those written since the last full sync are compared with the journal,
//! which was. A difference may as well be someone's doing, before the reboot or after it, and that is never undone. What
//! tells them apart is time: a power cut leaves a file and its folder as they were at some moment before it, so whatever
//! changed after Quipu wrote the file was changed by someone else.

use std::collections::BTreeSet;
use std::sync::atomic::Ordering;

use quipu_contract::ProjectPath;

use crate::adopt::Flag;
use crate::apply::is_zeros_behind;
use crate::clock::parse_time;
use crate::error::{Result, StoreError};
use crate::heads::Head;
use crate::journal::{Line, Position};
use crate::record::{OpKind, RecordOp};
use crate::store::Store;
use crate::tree::Stamp;
use crate::version::Version;

/// A file is in place so long after the time of its record at the latest, where nothing tells it better.
const PLACING_NS: i64 = 2_000_000_000;
/// File systems may be so far behind the clock.
const TICK_NS: i64 = 10_000_000;

impl Store {
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
            drop(heads);
            self.tell_in_place()?;
        }
        self.redone.store(true, Ordering::SeqCst);
        Ok(())
    }

    /// The same once after each reboot. From then on only what this boot writes can be lost.
    pub(crate) fn redo_after_power_cut(&self) -> Result<()> {
        // Heads that were made anew are not through with it anyway.
        if !self.heads()?.is_redone()? {
            return Ok(());
        }
        let _held = self.apply_lock.acquire()?;
        let (kept, boot) = self.heads()?.kept()?;
        if boot != self.boot {
            let paths = self.paths_since(kept)?;
            if !paths.is_empty() {
                self.redo_lost(paths, None)?;
                self.tree.sync_everything().map_err(StoreError::io("cannot sync the files"))?;
            }
            let heads = self.heads()?;
            heads.set_kept(heads.applied()?.at, &self.boot)?;
        }
        self.tell_in_place()
    }

    /// Lets running processes know how far files are in place: what differs from now on is someone's edit. Only under the apply lock.
    fn tell_in_place(&self) -> Result<()> {
        let applied = self.heads()?.applied()?.at;
        let live = self.live()?;
        if live.known().applied.is_none_or(|known| known < applied) {
            live.set_applied(&self.disk, applied)?;
        }
        Ok(())
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

    fn redo_lost(&self, paths: BTreeSet<String>, placed: Option<Position>) -> Result<()> {
        for text in paths {
            let Ok(path) = ProjectPath::parse(&text) else { continue };
            let Some(head) = self.heads()?.head(&text)? else { continue };
            // Something else stands there, or above it: not what a crash leaves. It may have been in the way of the newest text.
            if let Err(error) = self.tree.stamp(&path)
                && error.kind() == std::io::ErrorKind::InvalidInput
            {
                if !head.gone {
                    self.heads()?.set_flag(&text, &head.version, &Flag::unwritten(&error), None)?;
                }
                continue;
            }
            let Ok(found) = self.tree.read(&path) else { continue };
            if found.as_ref().is_some_and(|(_, stamp)| head.stamp == Some(*stamp)) {
                continue;
            }
            let was_in_place = placed.is_some_and(|placed| head.at < placed);
            let redone = if head.gone {
                if was_in_place { Ok(()) } else { self.remove_again(&path, &head, found) }
            } else {
                self.write_again(&path, &head, found, was_in_place)
            };
            redone.map_err(|error| match error {
                StoreError::Io { source, .. } => StoreError::io(format!("cannot redo `{path}`"))(source),
                other => other,
            })?;
        }
        Ok(())
    }

    /// Writes a file anew if it was lost; notes what it looks like if it was not.
    fn write_again(&self, path: &ProjectPath, head: &Head, found: Option<(Vec<u8>, Stamp)>, was_in_place: bool) -> Result<()> {
        let Ok(newest) = self.content_from_journal(path, head) else { return Ok(()) };
        let stamp = match found {
            Some((bytes, stamp)) if bytes == newest => Some(stamp),
            Some(_) if was_in_place && !self.is_untouched_since(path, head)? => return Ok(()),
            None if was_in_place => return Ok(()),
            found => {
                if !self.is_lost(path, head, &newest, found.as_ref())? {
                    return Ok(());
                }
                let bytes = found.map(|(bytes, _)| bytes).unwrap_or_default();
                if self.may_be_cut_by_hand(path, head, &bytes) {
                    self.keep_aside(path, &bytes).map_err(StoreError::io("cannot set aside"))?;
                }
                let mut asides = false;
                match self.replace(path, &newest, &[&Version::of(&bytes)], None, &mut asides) {
                    // A matter of this one file: it stays as it was flagged when it was first tried.
                    Err(error) if error.kind() == std::io::ErrorKind::PermissionDenied => {
                        let seen = self.tree.stamp(path).ok().flatten();
                        return self.heads()?.set_flag(path.as_str(), &head.version, &Flag::unwritten(&error), seen);
                    }
                    other => other.map_err(StoreError::io("cannot write"))?,
                }
            }
        };
        self.heads()?.set_stamp(path.as_str(), &head.version, stamp)
    }

    /// Writes what could not be written when it was committed, for want of permission, and can be now. Returns the paths.
    pub(crate) fn write_unwritten(&self) -> Result<Vec<String>> {
        let mut written = Vec::new();
        let unwritten: Vec<(String, Head)> =
            self.heads()?.all()?.into_iter().filter(|(_, head)| head.flag.as_ref().is_some_and(|(flag, _)| flag.is_unwritten())).collect();
        if unwritten.is_empty() {
            return Ok(written);
        }
        let _held = self.apply_lock.acquire()?;
        for (text, _) in unwritten {
            let Ok(path) = ProjectPath::parse(&text) else { continue };
            // Others may have gone on meanwhile.
            let Some(head) = self.heads()?.head(&text)?.filter(|head| !head.gone) else { continue };
            if !head.flag.as_ref().is_some_and(|(flag, _)| flag.is_unwritten()) {
                continue;
            }
            let Ok(found) = self.tree.read(&path) else { continue };
            let Ok(newest) = self.content_from_journal(&path, &head) else { continue };
            let bytes = found.map(|(bytes, _)| bytes);
            let is_as_it_was = self.still_unwritten(&path, &head, &newest, bytes.as_deref()).is_some();
            if !is_as_it_was {
                continue;
            }
            let mut asides = false;
            if let Ok(stamp) = self.replace(&path, &newest, &[&Version::of(&bytes.unwrap_or_default())], None, &mut asides) {
                self.heads()?.set_stamp(&text, &head.version, stamp)?;
                written.push(text);
            }
        }
        Ok(written)
    }

    /// Without a look to compare with, a text that was cut off by hand looks like one that was not written to its end. Only
    /// what is appended can be found half written when a mere program dies.
    fn may_be_cut_by_hand(&self, path: &ProjectPath, head: &Head, bytes: &[u8]) -> bool {
        let is_whole = |op: &RecordOp| op.op == OpKind::Write;
        head.stamp.is_none()
            && bytes.iter().any(|byte| *byte != 0)
            && self.journal.read_record(head.at).is_ok_and(|record| record.about(path.as_str()).into_iter().any(is_whole))
            && !self.was_version(path, head, bytes).unwrap_or(false)
    }

    /// Whether what stands where a file should be is what a power cut leaves: an earlier state of the disk.
    fn is_lost(&self, path: &ProjectPath, head: &Head, newest: &[u8], found: Option<&(Vec<u8>, Stamp)>) -> Result<bool> {
        let written_ns = self.written_ns(head);
        let look = |source| StoreError::Io { what: format!("cannot look at `{path}`"), source };
        let Some((bytes, stamp)) = found else {
            // The disk keeps the order in which the names of a folder change: one that changed later has had this file.
            return Ok(self.tree.folder_changed_ns(path).map_err(look)? <= written_ns);
        };
        if stamp.mtime_ns > written_ns {
            return Ok(false);
        }
        if bytes.is_empty() || is_zeros_behind(bytes, newest) {
            return Ok(true);
        }
        if self.was_version(path, head, bytes).unwrap_or(false) {
            // An older file in its place was put there by someone if that happened after the newer one was written.
            let same_file = head.stamp.is_some_and(|ours| ours.inode == stamp.inode);
            return Ok(same_file || self.tree.changed_ns(path).map_err(look)? <= written_ns);
        }
        Ok(newest.starts_with(bytes))
    }

    /// Whether a file was last changed clearly before the record of its newest version was made: then that version was never put there, as
    /// where permission to do so was missing.
    fn is_untouched_since(&self, path: &ProjectPath, head: &Head) -> Result<bool> {
        let Some(recorded_us) = self.journal.read_record(head.at).ok().and_then(|record| parse_time(&record.at)) else { return Ok(false) };
        let changed_ns = self.tree.changed_ns(path).map_err(StoreError::io("cannot look"))?;
        Ok(changed_ns.saturating_add(TICK_NS) < recorded_us.saturating_mul(1000))
    }

    /// When the newest version of a file was written, at the latest.
    fn written_ns(&self, head: &Head) -> i64 {
        let recorded_us = || self.journal.read_record(head.at).ok().and_then(|record| parse_time(&record.at));
        match head.stamp {
            Some(stamp) => stamp.mtime_ns,
            None => recorded_us().map_or(i64::MAX, |us| us.saturating_mul(1000).saturating_add(PLACING_NS)),
        }
    }

    /// Removes a file anew if its removal was lost: an earlier version that nobody has put there since.
    fn remove_again(&self, path: &ProjectPath, head: &Head, found: Option<(Vec<u8>, Stamp)>) -> Result<()> {
        let Some((bytes, stamp)) = found else { return Ok(()) };
        let removed_ns = self.written_ns(head).saturating_sub(PLACING_NS);
        let changed_ns = self.tree.changed_ns(path).map_err(StoreError::io("cannot look"))?;
        if stamp.mtime_ns.max(changed_ns) <= removed_ns && self.was_version(path, head, &bytes).unwrap_or(false) {
            self.tree.remove(path, Some(stamp)).map_err(StoreError::io("cannot remove"))?;
        }
        Ok(())
    }
}
