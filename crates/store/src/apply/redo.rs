//! Recovery after a power cut: rewrites lost files from the journal.
//!
//! Memory files are not synced one by one. A power cut may leave every file that was written since
//! the last full sync missing, empty, cut short, partly or wholly zero, or in an older version. Its
//! inode, size and times prove nothing: file systems may write them before the data, and change a
//! folder's time because of another file. The journal was synced. After a reboot, recovery
//! therefore compares the contents of all these files with the journal, and rewrites each file that
//! can be the remnant of a journalled text. Any other text is an edit and stays.

use std::collections::BTreeSet;

use quipu_contract::ProjectPath;

use crate::apply::applier::Applier;
use crate::clock::parse_time;
use crate::error::{Result, StoreError};
use crate::files::tree::FileStat;
use crate::index::file_index::{Built, FileHead};
use crate::journal::record::{OpKind, RecordOp};
use crate::journal::segments::{Line, Position};
use crate::rules::flag::Flag;
use crate::version::Version;

/// The clock of a file system may lag by this much.
const TICK_NS: i64 = 10_000_000;
/// A disk writes at least this many bytes at once.
const SECTOR: usize = 512;

/// The knowledge about files before they are compared.
#[derive(Clone, Copy)]
struct Known {
    /// A running process has applied files up to here: only later ones can be lost.
    placed: Option<Position>,
    /// The index was rebuilt and has no file stats. There may have been no power cut.
    is_rebuilt: bool,
}

/// The result of comparing a file with the journal.
enum Compared {
    /// It holds the newest text.
    Same(FileStat),
    /// A crash lost the newest text: the found bytes are to be replaced.
    Lost {
        newest: Vec<u8>,
        found: Vec<u8>,
        keeps_found: bool,
    },
    /// A crash lost the deletion of this file.
    LostRemoval(FileStat),
    /// An edit, or something that cannot be compared.
    Other,
}

fn is_unwritten(head: &FileHead) -> bool {
    let flag = head.flag.as_ref();
    flag.is_some_and(|(flag, _)| flag.is_unwritten())
}

/// Whether bytes can be the remnant of any text that these operations made, beginning with a whole
/// text.
fn is_remnant_of_any(bytes: &[u8], newest_first: &[RecordOp]) -> bool {
    let mut text = Vec::new();
    let mut oldest_first = newest_first.iter().rev().peekable();
    while let Some(op) = oldest_first.next() {
        if op.edit().apply(&mut text).is_err() {
            return false;
        }
        // The text before an append is the beginning of the text after it.
        let grows = oldest_first
            .peek()
            .is_some_and(|next| next.op == OpKind::Append);
        if !grows && is_remnant_of(bytes, &text) {
            return true;
        }
    }
    false
}

/// Whether bytes can be the remnant of a text: its beginning, in which sectors or the ends of
/// sectors may be zero.
fn is_remnant_of(bytes: &[u8], text: &[u8]) -> bool {
    bytes.chunks(SECTOR).enumerate().all(|(index, sector)| {
        let used = sector
            .iter()
            .rposition(|byte| *byte != 0)
            .map_or(0, |last| last + 1);
        used == 0
            || text
                .get(index * SECTOR..)
                .is_some_and(|rest| rest.starts_with(&sector[..used]))
    })
}

impl Applier {
    /// Compares the newest files with the journal after the index was rebuilt. A crash may have
    /// left them behind, and only the lost index knew.
    pub(crate) fn redo_after_rebuild(&self) -> Result<()> {
        if self.settings.read_only || self.index.open()?.progress()?.built == Built::Compared {
            return Ok(());
        }
        let end = self.index.open()?.applied()?.at;
        self.journal.sync_to(end)?;
        let _held = self.lock()?;
        let placed = self.journal.watermarks()?.known().applied;
        self.redo_since_full_sync(
            Known {
                placed,
                is_rebuilt: true,
            },
            end,
        )?;
        let index = self.index.open()?;
        index.change_progress(|progress| progress.built = Built::Compared)
    }

    /// Applies journalled records up to `end`. In the first command of a boot, compares every file
    /// that was written since the last full sync with the journal; after that, only files that this
    /// boot writes can be lost.
    pub(crate) fn recover_files(&self, end: Position) -> Result<()> {
        let progress = self.index.open()?.progress()?;
        if progress.built == Built::Compared && progress.boot != self.settings.boot {
            let _held = self.lock()?;
            self.advance_index(end)?;
            return self.redo_since_full_sync(
                Known {
                    placed: None,
                    is_rebuilt: false,
                },
                end,
            );
        }
        self.apply_files(end)?;
        self.redo_after_rebuild()?;
        let _held = self.lock()?;
        self.tell_in_place()
    }

    /// Requires the apply lock.
    fn redo_since_full_sync(&self, known: Known, end: Position) -> Result<()> {
        let kept = self.index.open()?.progress()?.kept;
        let paths = self.paths_since(kept)?;
        if !paths.is_empty() {
            self.redo_lost(&paths, known)?;
            self.sync_everything()?;
        }
        self.index.open()?.set_kept(end, &self.settings.boot)?;
        self.tell_in_place()
    }

    pub fn sync_everything(&self) -> Result<()> {
        self.tree
            .sync_everything()
            .map_err(StoreError::io("cannot sync the files"))
    }

    /// Publishes the applied watermark to running processes: later differences are external edits.
    /// Requires the apply lock.
    fn tell_in_place(&self) -> Result<()> {
        let applied = self.index.open()?.applied()?.at;
        let watermarks = self.journal.watermarks()?;
        if watermarks
            .known()
            .applied
            .is_none_or(|known| known < applied)
        {
            watermarks.set_applied(applied)?;
        }
        Ok(())
    }

    fn paths_since(&self, kept: Position) -> Result<BTreeSet<String>> {
        let mut paths = BTreeSet::new();
        self.journal.scan(kept, None, &mut |seen| {
            if let Line::Record(record) = seen.line {
                paths.extend(record.changes().map(|o| o.path.clone()));
            }
        })?;
        Ok(paths)
    }

    fn redo_lost(&self, paths: &BTreeSet<String>, known: Known) -> Result<()> {
        let mut lost = Vec::new();
        for text in paths {
            let Ok(path) = ProjectPath::parse(text) else {
                continue;
            };
            let Some(head) = self.index.open()?.head(text)? else {
                continue;
            };
            // Something else has this path or a folder above it. A crash does not leave this, but
            // it may have blocked the newest text.
            if let Err(error) = self.tree.file_stat(&path)
                && error.kind() == std::io::ErrorKind::InvalidInput
            {
                if !head.gone {
                    self.index.open()?.set_flag(
                        text,
                        &head.version,
                        &Flag::unwritten(&error),
                        None,
                    )?;
                }
                continue;
            }
            match self.compare(&path, &head, known)? {
                Compared::Same(file_stat) => {
                    self.index
                        .open()?
                        .set_stat(text, &head.version, Some(file_stat))?
                }
                Compared::Lost { .. } | Compared::LostRemoval(_) => lost.push((path, head)),
                Compared::Other => {}
            }
        }
        if lost.is_empty() {
            return Ok(());
        }
        // Another power cut may come while files are rewritten. No recorded time of theirs may then
        // count as proof of an edit.
        for (path, head) in &mut lost {
            self.index
                .open()?
                .set_stat(path.as_str(), &head.version, None)?;
            head.file_stat = None;
        }
        self.sync_everything()?;
        for (path, head) in lost {
            self.rewrite_lost(&path, &head, known)
                .map_err(|error| match error {
                    StoreError::Io { source, .. } => {
                        StoreError::io(format!("cannot write `{path}` again"))(source)
                    }
                    other => other,
                })?;
        }
        Ok(())
    }

    fn rewrite_lost(&self, path: &ProjectPath, head: &FileHead, known: Known) -> Result<()> {
        let (newest, found, keeps_found) = match self.compare(path, head, known)? {
            Compared::Lost {
                newest,
                found,
                keeps_found,
            } => (newest, found, keeps_found),
            Compared::LostRemoval(file_stat) => {
                self.tree
                    .remove(path, Some(file_stat))
                    .map_err(StoreError::io("cannot remove"))?;
                return Ok(());
            }
            Compared::Same(_) | Compared::Other => return Ok(()),
        };
        if keeps_found {
            self.copies
                .keep_conflict_copy(path, &found)
                .map_err(StoreError::io("cannot keep a conflict copy"))?;
        }
        let mut conflict_copies = false;
        match self.replace(
            path,
            &newest,
            &[&Version::of(&found)],
            None,
            &mut conflict_copies,
        ) {
            // This concerns only one file: it keeps its flag from the first attempt.
            Err(error) if error.kind() == std::io::ErrorKind::PermissionDenied => {
                let seen = self.tree.file_stat(path).ok().flatten();
                self.index.open()?.set_flag(
                    path.as_str(),
                    &head.version,
                    &Flag::unwritten(&error),
                    seen,
                )
            }
            other => self.index.open()?.set_stat(
                path.as_str(),
                &head.version,
                other.map_err(StoreError::io("cannot write"))?,
            ),
        }
    }

    fn compare(&self, path: &ProjectPath, head: &FileHead, known: Known) -> Result<Compared> {
        let Ok(found) = self.tree.read(path) else {
            return Ok(Compared::Other);
        };
        let was_in_place = known.placed.is_some_and(|placed| head.at < placed);
        if head.gone {
            return match found {
                Some((bytes, file_stat)) if !was_in_place => {
                    self.compare_removed(path, head, &bytes, file_stat)
                }
                _ => Ok(Compared::Other),
            };
        }
        let Ok(newest) = self.texts.content_from_journal(path, head) else {
            return Ok(Compared::Other);
        };
        let (bytes, file_stat) = match found {
            Some((bytes, file_stat)) if bytes == newest => return Ok(Compared::Same(file_stat)),
            None if was_in_place => return Ok(Compared::Other),
            None => {
                return Ok(Compared::Lost {
                    newest,
                    found: Vec::new(),
                    keeps_found: false,
                });
            }
            Some(_) if was_in_place && !self.is_untouched_since(path, head)? => {
                return Ok(Compared::Other);
            }
            Some(found) => found,
        };
        if self.is_remnant(path, head, &bytes) {
            // A whole text that was saved after Quipu wrote the file is an edit, even if it is a
            // beginning or an older version.
            let is_later = head
                .file_stat
                .is_some_and(|ours| file_stat.mtime_ns > ours.mtime_ns);
            if is_later && !bytes.is_empty() && !bytes.contains(&0) {
                return Ok(Compared::Other);
            }
            let keeps_found = known.is_rebuilt && self.may_be_cut_by_hand(path, head, &bytes);
            return Ok(Compared::Lost {
                newest,
                found: bytes,
                keeps_found,
            });
        }
        // An edit from before the commit, which never replaced it. The commit was acknowledged, so
        // the edit gives way.
        let is_earlier = head.file_stat.is_none()
            && self
                .recorded_ns(head)
                .is_some_and(|recorded| file_stat.mtime_ns <= recorded);
        Ok(if is_earlier {
            Compared::Lost {
                newest,
                found: bytes,
                keeps_found: true,
            }
        } else {
            Compared::Other
        })
    }

    /// If a deleted file exists again, a power cut brought it back, unless someone created it
    /// since.
    fn compare_removed(
        &self,
        path: &ProjectPath,
        head: &FileHead,
        bytes: &[u8],
        file_stat: FileStat,
    ) -> Result<Compared> {
        let Some(removed_ns) = self.recorded_ns(head) else {
            return Ok(Compared::Other);
        };
        let is_zeros = bytes.is_empty() || bytes.contains(&0);
        let changed_ns = self
            .tree
            .changed_ns(path)
            .map_err(StoreError::io("cannot check"))?;
        let is_older = file_stat.mtime_ns <= removed_ns && (is_zeros || changed_ns <= removed_ns);
        Ok(if is_older && self.is_remnant(path, head, bytes) {
            Compared::LostRemoval(file_stat)
        } else {
            Compared::Other
        })
    }

    /// Writes files that could not be written at their commit because of permissions, if that is
    /// possible now. Returns the paths.
    pub(crate) fn write_unwritten(&self) -> Result<Vec<String>> {
        let mut unwritten = self.index.open()?.all()?;
        unwritten.retain(|(_, head)| is_unwritten(head));
        let mut written = Vec::new();
        if unwritten.is_empty() {
            return Ok(written);
        }
        let _held = self.lock()?;
        for (text, _) in unwritten {
            // Other processes may have changed the entry.
            let head = self.index.open()?.head(&text)?;
            if let Some(head) = head.filter(|head| !head.gone && is_unwritten(head))
                && let Ok(path) = ProjectPath::parse(&text)
                && let Some(file_stat) = self.try_unwritten(&path, &head)
            {
                let index = self.index.open()?;
                index.set_stat(&text, &head.version, Some(file_stat))?;
                written.push(text);
            }
        }
        Ok(written)
    }

    /// Writes a file, unless it was edited since its write failed. None if it still fails.
    fn try_unwritten(&self, path: &ProjectPath, head: &FileHead) -> Option<FileStat> {
        let found = self.tree.read(path).ok()?;
        let newest = self.texts.content_from_journal(path, head).ok()?;
        let bytes = found.map(|(bytes, _)| bytes);
        self.worktree
            .still_unwritten(path, head, &newest, bytes.as_deref())?;
        let replaced = Version::of(&bytes.unwrap_or_default());
        self.replace(path, &newest, &[&replaced], None, &mut false)
            .ok()?
    }

    /// Without a recorded file stat, a text that was shortened by hand looks like a partial write.
    /// A power cut leaves a version, or whole sectors of one.
    fn may_be_cut_by_hand(&self, path: &ProjectPath, head: &FileHead, bytes: &[u8]) -> bool {
        let is_whole = |op: &RecordOp| op.op == OpKind::Write;
        !bytes.len().is_multiple_of(SECTOR)
            && !bytes.contains(&0)
            && self
                .journal
                .read_record(head.at)
                .is_ok_and(|record| record.about(path.as_str()).into_iter().any(is_whole))
            && !self.texts.was_version(path, head, bytes).unwrap_or(false)
    }

    /// Whether bytes can be the remnant of any text that a file had.
    fn is_remnant(&self, path: &ProjectPath, head: &FileHead, bytes: &[u8]) -> bool {
        let mut found = bytes.is_empty();
        let mut newest_first: Vec<RecordOp> = Vec::new();
        let walked = self.texts.walk(path, head.at, &mut |_, op| {
            if op.op == OpKind::Keep {
                return true;
            }
            newest_first.push(op.clone());
            if op.edit().is_start() {
                found |= is_remnant_of_any(bytes, &newest_first);
                newest_first.clear();
            }
            !found
        });
        found || (walked.is_ok() && is_remnant_of_any(bytes, &newest_first))
    }

    /// Whether a file was last changed clearly before its newest record. Then that version was
    /// never written, for example because of permissions.
    fn is_untouched_since(&self, path: &ProjectPath, head: &FileHead) -> Result<bool> {
        let Some(recorded_us) = self
            .journal
            .read_record(head.at)
            .ok()
            .and_then(|record| parse_time(&record.at))
        else {
            return Ok(false);
        };
        let changed_ns = self
            .tree
            .changed_ns(path)
            .map_err(StoreError::io("cannot check"))?;
        Ok(changed_ns.saturating_add(TICK_NS) < recorded_us.saturating_mul(1000))
    }

    /// The time of the newest record about a file.
    fn recorded_ns(&self, head: &FileHead) -> Option<i64> {
        let record = self.journal.read_record(head.at).ok()?;
        Some(parse_time(&record.at)?.saturating_mul(1000))
    }
}

#[cfg(test)]
mod tests {
    use super::is_remnant_of;

    #[test]
    fn remnants_of_a_text() {
        let text: Vec<u8> = (0..2000_u32)
            .map(|n| b'a' + u8::try_from(n % 26).unwrap_or(0))
            .collect();
        let zeroed = |from: usize, to: usize| {
            let mut bytes = text.clone();
            bytes[from..to].fill(0);
            bytes
        };
        let remnants = [
            vec![],
            vec![0; 3000],
            text[..7].to_vec(),
            zeroed(0, 2000),
            zeroed(512, 1024),
            zeroed(100, 512),
            zeroed(1990, 2000),
        ];
        for remnant in remnants {
            assert!(is_remnant_of(&remnant, &text), "{remnant:?}");
        }
        let edits = [
            b"x".to_vec(),
            zeroed(512, 1000),
            [&text[..], b"x"].concat(),
            [&[0; 512][..], b"x"].concat(),
        ];
        for edit in edits {
            assert!(!is_remnant_of(&edit, &text), "{edit:?}");
        }
    }
}
