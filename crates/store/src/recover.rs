//! After a crash: finding the journal's end, making the heads anew, redoing lost files.

use std::collections::BTreeSet;
use std::sync::atomic::Ordering;

use quipu_contract::ProjectPath;
use serde::Serialize;

use crate::apply::note;
use crate::clock::parse_time;
use crate::error::{Result, StoreError};
use crate::heads::{Head, Heads};
use crate::journal::{Damage, Line, Position};
use crate::live::Tail;
use crate::record::OpKind;
use crate::store::Store;

/// How many of the newest records are looked at when the heads had to be made anew: more than
/// could have been pending at once.
const REDO_RECORDS: usize = 256;

/// What `doctor` did.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Mended {
    pub what: String,
}

impl Store {
    /// Finds the journal's end when no running process knows it: after a reboot, or when
    /// `.quipu/live` is gone. Only under the append lock.
    pub(crate) fn find_end(&self) -> Result<Tail> {
        let applied = self.heads()?.applied()?;
        let mut tail = applied.clone();
        let mut damaged: Vec<Damage> = Vec::new();
        let end = self.journal.scan(applied.at, &mut |_, end, line| match line {
            Line::Record(record) => {
                damaged.clear();
                tail = Tail { at: end, seq: record.seq, wall_us: parse_time(&record.at).unwrap_or(tail.wall_us), sum: record.sum };
            }
            Line::Damaged(damage) => damaged.push(damage),
        })?;
        // Damage with no record behind it is a torn tail: no one was ever told of it. It is kept all the same.
        if let Some(first) = damaged.first() {
            let torn: Vec<u8> = damaged.iter().flat_map(|d| [d.bytes.as_slice(), b"\n"].concat()).collect();
            let name = format!("torn-{}-{}.txt", first.at.segment, first.at.offset);
            std::fs::write(self.quipu().join(&name), torn).map_err(StoreError::io(format!("cannot keep `.quipu/{name}`")))?;
            tail.at = first.at;
        } else {
            tail.at = tail.at.max(end);
        }
        self.journal.clear_behind(tail.at)?;
        let live = self.live()?;
        live.set_tail(&self.disk, &tail)?;
        if tail.at > Position::START {
            self.journal.sync(tail.at.segment)?;
        }
        live.set_synced(&self.disk, tail.at)?;
        self.apply_files(tail.at)?;
        self.redo_after_power_cut()?;
        Ok(tail)
    }

    /// Fills empty heads from the journal. No file is written: what a file looks like is unknown
    /// until it is next looked at.
    pub(crate) fn fill_heads(&self, heads: &Heads) -> Result<()> {
        heads.transaction(|heads| {
            if heads.is_made() {
                return Ok(()); // another process was faster
            }
            heads.clear()?;
            let mut tail = heads.applied()?;
            let mut result = Ok(());
            let mut newest: std::collections::BTreeMap<String, Head> = std::collections::BTreeMap::new();
            self.journal.scan(Position::START, &mut |at, end, line| {
                let Line::Record(record) = line else { return };
                for op in record.ops.iter().filter(|o| o.op != OpKind::Keep) {
                    newest.insert(op.path.clone(), Head::after(op, at, record.seq));
                }
                if result.is_ok() {
                    result = note(heads, at, &record);
                }
                tail = Tail { at: end, seq: record.seq, wall_us: parse_time(&record.at).unwrap_or(tail.wall_us), sum: record.sum };
            })?;
            result?;
            for (path, head) in &newest {
                heads.put(path, head)?;
            }
            heads.set_applied(&tail)?;
            heads.set_kept(tail.at, &self.boot)?;
            heads.set_made()
        })
    }

    /// The files of the newest records, compared with the journal once the heads were made anew.
    pub(crate) fn redo_after_rebuild(&self) -> Result<()> {
        if self.is_read_only() || !self.redo_wanted.load(Ordering::SeqCst) {
            return Ok(());
        }
        let paths = self.newest_paths(REDO_RECORDS)?;
        let _held = self.apply_lock.acquire()?;
        self.redo_lost(paths)?;
        self.redo_wanted.store(false, Ordering::SeqCst);
        Ok(())
    }

    /// Files are not synced one by one. After a reboot those written since the last full sync are
    /// compared with the journal, which was.
    fn redo_after_power_cut(&self) -> Result<()> {
        let (kept, boot) = self.heads()?.kept()?;
        if boot == self.boot {
            return Ok(());
        }
        let mut paths = BTreeSet::new();
        self.journal.scan(kept, &mut |_, _, line| {
            if let Line::Record(record) = line {
                paths.extend(record.ops.iter().filter(|o| o.op != OpKind::Keep).map(|o| o.path.clone()));
            }
        })?;
        let _held = self.apply_lock.acquire()?;
        self.redo_lost(paths)?;
        self.heads()?.set_boot(&self.boot)
    }

    fn newest_paths(&self, records: usize) -> Result<BTreeSet<String>> {
        let mut paths = BTreeSet::new();
        self.each_newest_first(records, &mut |_, record| {
            paths.extend(record.ops.iter().filter(|o| o.op != OpKind::Keep).map(|o| o.path.clone()));
        })?;
        Ok(paths)
    }

    /// Writes a file anew if what stands there is what a crash leaves: nothing, a beginning of the
    /// newest text, or an earlier version of it. Anything else is someone's edit and stays.
    fn redo_lost(&self, paths: BTreeSet<String>) -> Result<()> {
        for text in paths {
            let Ok(path) = ProjectPath::parse(&text) else { continue };
            let Some(head) = self.heads()?.head(&text)?.filter(|h| !h.gone) else { continue };
            let Ok(newest) = self.content_from_journal(&path, &head) else { continue };
            let io = || format!("cannot redo `{path}`");
            let found = self.tree.read(&path).map_err(StoreError::io(io()))?;
            let stamp = match found {
                Some((bytes, stamp)) if bytes == newest => stamp,
                found => {
                    let bytes = found.map(|(bytes, _)| bytes).unwrap_or_default();
                    let lost = newest.starts_with(&bytes) || bytes.iter().all(|b| *b == 0) || self.was_version(&path, &head, &bytes)?;
                    if !lost {
                        continue;
                    }
                    let replaced = self.tree.replace(&path, &newest, None).map_err(StoreError::io(io()))?;
                    if let Some(taken) = replaced.unexpected {
                        taken.discard().map_err(StoreError::io(io()))?;
                    }
                    replaced.stamp
                }
            };
            self.heads()?.set_stamp(&text, &head.version, Some(stamp))?;
        }
        Ok(())
    }

    /// Mends what can be mended and says what it did.
    pub fn doctor(&self) -> Result<Vec<Mended>> {
        let mut mended = Vec::new();
        let mut did = |what: String| mended.push(Mended { what });
        let tail = {
            let _held = self.append_lock.acquire()?;
            let known = self.live()?.tail();
            let lost = known.as_ref().is_some_and(|t| t.at > Position::START && !self.journal.has(t.at.segment));
            if lost {
                self.live()?.forget(&self.disk)?;
                did("the journal is gone: what is on disk becomes the new beginning".into());
            }
            self.drop_heads()?;
            match self.live()?.tail() {
                Some(tail) => tail,
                None => self.find_end()?,
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
