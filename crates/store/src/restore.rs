//! Restores versions, and keeps replaced edits as conflict copies.
//!
//! A conflict copy is saved and synced in `.quipu/aside` before its original disappears, and then
//! journalled. `tree.rs` exchanges the files.

use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};

use quipu_contract::{Actor, ProjectPath};
use serde::Serialize;

use crate::body::Body;
use crate::change::{Change, Op};
use crate::error::{Result, StoreError};
use crate::heads::Head;
use crate::history::{At, RECENT_BYTES};
use crate::publish::{Published, Receipt};
use crate::record::{Kind, OpKind, Record, RecordOp, Who};
use crate::store::Store;
use crate::version::Version;

/// The result of `restore`.
#[derive(Debug, Clone)]
pub struct Restored {
    pub receipt: Receipt,
    pub version: Version,
}

/// A conflict copy: replaced bytes of an edit, kept in a record and not current.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Kept {
    pub path: String,
    pub seq: u64,
}

/// The conflict copies that this process has made, by the root of the project. A command may open
/// its project several times, and its user has to be notified.
static SET_ASIDE: Mutex<Vec<(PathBuf, Kept)>> = Mutex::new(Vec::new());

/// Returns and clears the conflict copies that this process has made in a project.
pub fn take_set_aside(root: &Path) -> Vec<Kept> {
    let mut all = SET_ASIDE.lock().unwrap_or_else(PoisonError::into_inner);
    all.extract_if(.., |(of, _)| of == root)
        .map(|(_, kept)| kept)
        .collect()
}

impl Store {
    /// Restores the newest journalled version, or an older one.
    pub fn restore(
        &self,
        actor: &Actor,
        path: &ProjectPath,
        at: Option<&At>,
        why: Option<String>,
    ) -> Result<Restored> {
        let mut change = Change::by(actor);
        change.why = why;
        self.restore_in(change, path, at)
    }

    /// Like `restore`, as part of a change that gives the actor, the reason and the lease.
    pub fn restore_in(
        &self,
        change: Change,
        path: &ProjectPath,
        at: Option<&At>,
    ) -> Result<Restored> {
        let change = self.restoring(change, path, at)?;
        let version = match change.ops.last() {
            Some(Op::Restore { bytes, .. }) => Version::of(bytes),
            _ => Version::of(b""),
        };
        let receipt = self.judge(change)?.publish()?;
        let version = receipt
            .versions
            .get(path.as_str())
            .cloned()
            .unwrap_or(version);
        Ok(Restored { receipt, version })
    }

    /// The change that restores a version, not yet judged.
    pub fn restoring(&self, change: Change, path: &ProjectPath, at: Option<&At>) -> Result<Change> {
        let head = {
            self.settle()?;
            self.with_sound_heads(|| self.heads()?.head(path.as_str()))?
        };
        let (bytes, older) = match (at, &head) {
            (Some(at), _) => (self.text_at(path, at)?.0, true),
            (None, Some(head)) if !head.gone => {
                let newest = self.content_from_journal(path, head)?;
                self.distrust_stamp(path, head, &newest)?;
                match self.repaired(path, head)? {
                    Some(repaired) => (repaired, true),
                    None => (newest, false),
                }
            }
            // The file was deleted: restore the newest version before that.
            (None, Some(_)) => (self.text_at(path, &At::Back(1))?.0, true),
            (None, None) => {
                return Err(StoreError::NotFound {
                    what: format!("`{path}` has no history"),
                    remedy: "quipu log".into(),
                });
            }
        };
        Ok(change.op(Op::Restore {
            path: path.clone(),
            bytes,
            older,
        }))
    }

    /// A file with the recorded stat is not read. If this one has other content, clears the stat,
    /// so that it is compared from now on.
    fn distrust_stamp(&self, path: &ProjectPath, head: &Head, newest: &[u8]) -> Result<()> {
        if let Ok(Some((bytes, stamp))) = self.tree.read(path)
            && head.stamp == Some(stamp)
            && bytes != newest
        {
            self.heads()?
                .set_stamp(path.as_str(), &head.version, None)?;
        }
        Ok(())
    }

    /// Keeps the bytes of an external edit where a commit had to write.
    pub(crate) fn keep_aside(&self, path: &ProjectPath, bytes: &[u8]) -> std::io::Result<()> {
        self.set_aside(path, bytes)?;
        if self.order.is_some() {
            // A commit from another machine came first: the author of the edit will look for it
            // here.
            self.keep_conflict(path.as_str(), bytes)?;
        }
        Ok(())
    }

    /// Saves bytes in `.quipu/aside` and returns the path. They stay there until they are
    /// journalled.
    pub(crate) fn set_aside(&self, path: &ProjectPath, bytes: &[u8]) -> std::io::Result<PathBuf> {
        let folder = self.quipu().join("aside");
        std::fs::create_dir_all(&folder)?;
        let name = crate::ident::short_id();
        let temp = folder.join(format!("{name}.part"));
        let file = std::fs::File::create_new(&temp)?;
        std::io::Write::write_all(
            &mut &file,
            &[format!("{path}\n").as_bytes(), bytes].concat(),
        )?;
        // The only other copy is about to be deleted.
        file.sync_all()?;
        let saved = folder.join(name);
        std::fs::rename(temp, &saved)?;
        std::fs::File::open(folder)?.sync_all()?;
        Ok(saved)
    }

    /// Journals the conflict copies, so that `log` shows them and nothing depends on the folder.
    pub(crate) fn journal_asides(&self) -> Result<usize> {
        let folder = self.quipu().join("aside");
        let Ok(entries) = std::fs::read_dir(&folder) else {
            return Ok(0);
        };
        let (names, parts): (Vec<_>, Vec<_>) = entries
            .flatten()
            .map(|e| e.path())
            .partition(|p| p.extension().is_none());
        // An unfinished copy: its original is still in place.
        let unfinished = |part: &&PathBuf| {
            part.extension().is_some_and(|ending| ending == "part") && is_old(part)
        };
        for part in parts
            .iter()
            .filter(|_| !self.is_read_only())
            .filter(unfinished)
        {
            let _ = std::fs::remove_file(part);
        }
        if names.is_empty() {
            return Ok(0);
        }
        let held = self.append_lock.acquire()?;
        let look = self.look()?;
        let mut ops: Vec<RecordOp> = Vec::new();
        // One edit per file and record, so that each can be selected.
        let (mut taken, mut later) = (Vec::new(), false);
        for name in names {
            let Ok(bytes) = std::fs::read(&name) else {
                continue;
            }; // another process journalled it
            let Some(split) = memchr::memchr(b'\n', &bytes) else {
                continue;
            };
            let path = String::from_utf8_lossy(&bytes[..split]).into_owned();
            if ops.iter().any(|op| op.path == path) {
                later = true;
                continue;
            }
            taken.push(name);
            let kept = bytes[split + 1..].to_vec();
            ops.push(
                RecordOp {
                    op: OpKind::Keep,
                    path,
                    class: "".into(),
                    base: None,
                    version: Version::of(&kept),
                    len: kept.len() as u64,
                    last: None,
                    deltas: 0,
                    hash: None,
                    body: Body::None,
                }
                .with_bytes(kept),
            );
        }
        let count = ops.len();
        if count > 0 {
            let mut seq = look.tail.seq + 1;
            let paths: Vec<String> = ops.iter().map(|op| op.path.clone()).collect();
            let mut record = look.next_record(self, Kind::Aside, Who::outside());
            record.why = Some("an external edit met a commit; these are its bytes".into());
            record.ops = ops;
            match self.publish_records(held, look, vec![record]) {
                // Bytes that are not current have no base version. They stay in the folder until
                // the server is back.
                Err(StoreError::Unreachable { .. }) | Ok(Published::Overtaken) => return Ok(0),
                other => other.map(|_| ())?,
            }
            if self.order.is_some() {
                seq = self.pulse()?;
            }
            let told: Vec<Kept> = paths.into_iter().map(|path| Kept { path, seq }).collect();
            let mut all = SET_ASIDE.lock().unwrap_or_else(PoisonError::into_inner);
            all.extend(
                told.iter()
                    .map(|kept| (self.root().to_owned(), kept.clone())),
            );
            self.kept
                .lock()
                .unwrap_or_else(PoisonError::into_inner)
                .extend(told);
        }
        let removed = taken
            .iter()
            .filter(|name| std::fs::remove_file(name).is_ok())
            .count();
        Ok(count
            + if later && removed > 0 {
                self.journal_asides()?
            } else {
                0
            })
    }

    /// The conflict copies among the newest records, except those of files that were written since.
    pub fn set_aside_since_written(&self) -> Result<Vec<Kept>> {
        let mut found = Vec::new();
        self.each_last_line(RECENT_BYTES, &mut |line| {
            if memchr::memmem::find(line, b"\"aside\"").is_some()
                && let Ok(record) = Record::decode(line.strip_suffix(b"\n").unwrap_or(line))
                && record.kind == Kind::Aside
            {
                found.extend(record.ops.iter().map(|op| Kept {
                    path: op.path.clone(),
                    seq: record.seq,
                }));
            }
            true
        })?;
        let mut listed = Vec::new();
        for kept in found.into_iter().rev() {
            if self
                .heads()?
                .head(&kept.path)?
                .is_none_or(|head| head.seq < kept.seq)
            {
                listed.push(kept);
            }
        }
        Ok(listed)
    }

    /// The bytes of a conflict copy, by the number of its record.
    pub fn kept_aside(&self, seq: u64, path: &ProjectPath) -> Result<Option<Vec<u8>>> {
        let mut found = None;
        self.each_newest_first(usize::MAX, &mut |_, record| {
            if record.seq == seq {
                found = record
                    .ops
                    .iter()
                    .find(|o| o.op == OpKind::Keep && o.path == path.as_str())
                    .map(|op| op.content().to_vec());
            }
        })?;
        Ok(found)
    }
}

/// Whether the file has not been written for longer than a copy takes.
fn is_old(path: &std::path::Path) -> bool {
    let age = path
        .metadata()
        .and_then(|metadata| metadata.modified())
        .ok()
        .and_then(|time| time.elapsed().ok());
    age.is_some_and(|age| age.as_secs() > 600)
}
