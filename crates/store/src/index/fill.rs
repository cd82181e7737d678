//! Fills the file index from the journal.
//!
//! A rebuild ends at the applied watermark and writes no memory file. A flipped bit in the text of a
//! record leaves the rest of the line readable. The line's entry for a file is accepted only if it
//! matches the state before it: the file's version and the position of its record.

use std::collections::BTreeMap;

use quipu_contract::ProjectPath;

use crate::error::Result;
use crate::index::file_index::{Built, FileHead, FileIndex};
use crate::index::shared_index::Index;
use crate::journal::chain::healed_by;
use crate::journal::record::{OpKind, Record, RecordOp};
use crate::journal::segments::{Damage, Line, Position, Seen};
use crate::journal::watermarks::Tail;
use crate::version::Version;

/// How many segments back files are compared after the index was rebuilt. All files are synced when
/// a segment is closed, and one commit can close at most this many.
const REDO_SEGMENTS: u32 = 4;

/// The readable parts of a damaged record.
#[derive(Default)]
pub(crate) struct Salvaged {
    pub file_index: Vec<(String, FileHead)>,
    /// Whether it changed no other files.
    is_whole: bool,
}

impl Index {
    /// The index entries after a damaged record, as far as its line matches `newest`, the entries
    /// before it.
    pub fn salvage(
        &self,
        damage: &Damage,
        newest: &BTreeMap<String, FileHead>,
        seq_before: u64,
    ) -> Salvaged {
        let record = serde_json::from_str::<Record>(&String::from_utf8_lossy(&damage.bytes));
        let Some(record) = record.ok().filter(|record| record.seq == seq_before + 1) else {
            return Salvaged::default();
        };
        let ops: Vec<&RecordOp> = record.changes().collect();
        let fitting = ops.iter().filter(|op| self.fits(op, newest.get(&op.path)));
        let file_index: Vec<_> = fitting
            .map(|op| (op.path.clone(), FileHead::after(op, damage.at, record.seq)))
            .collect();
        // A record without files and without a lease may have lost its files to the damage.
        let is_whole = file_index.len() == ops.len() && (!ops.is_empty() || record.lease.is_some());
        Salvaged {
            file_index,
            is_whole,
        }
    }

    fn fits(&self, op: &RecordOp, before: Option<&FileHead>) -> bool {
        match before {
            Some(head) => {
                let base = (!head.gone).then_some(&head.version);
                op.base.as_ref() == base
                    && op.last.as_deref().and_then(Position::parse) == Some(head.at)
            }
            // Nothing earlier confirms the name of a new file, but the file itself may.
            None => {
                let found = ProjectPath::parse(&op.path)
                    .ok()
                    .and_then(|path| self.tree.read(&path).ok().flatten());
                op.base.is_none()
                    && op.last.is_none()
                    && found.is_some_and(|(bytes, _)| Version::of(&bytes) == op.version)
            }
        }
    }

    /// The end of a rebuilt index: the applied watermark, if a running process knows it. Later
    /// records are applied as usual. Treating them as applied would make an unfinished commit look
    /// like an external edit.
    fn placed_bound(&self) -> Result<Position> {
        let bound = self.journal.bound()?;
        if self.journal.settings().read_only {
            return Ok(bound);
        }
        Ok(self
            .journal
            .watermarks()?
            .known()
            .applied
            .map_or(bound, |placed| placed.min(bound)))
    }

    /// Fills the index from the journal. Writes no file. File stats are copied from an earlier
    /// index if it has the same version; otherwise they are unknown until the file is compared.
    pub(super) fn fill(&self, file_index: &FileIndex) -> Result<()> {
        let bound = self.placed_bound()?;
        file_index.transaction(|file_index| {
            let built = file_index.progress()?.built;
            let known: BTreeMap<String, FileHead> = if built > Built::No {
                file_index.all()?.into_iter().collect()
            } else {
                BTreeMap::new()
            };
            file_index.clear()?;
            let mut filling = Filling::new();
            self.journal
                .scan(Position::START, Some(bound), &mut |seen| {
                    filling.see(self, seen, file_index);
                })?;
            filling.result?;
            let mut all_known = built == Built::Compared;
            for (path, head) in &mut filling.newest {
                let old = known.get(path).filter(|old| {
                    old.at == head.at && old.version == head.version && old.gone == head.gone
                });
                match old {
                    Some(old) => (head.file_stat, head.flag) = (old.file_stat, old.flag.clone()),
                    None => all_known = false,
                }
            }
            file_index.put_all(filling.newest.iter())?;
            let mut tail = filling.tail;
            tail.at = tail.at.max(bound);
            file_index.change_progress(|progress| {
                progress.applied = tail;
                progress.hidden = filling.hidden.into_values().collect();
                if all_known {
                    progress.built = Built::Compared;
                } else {
                    // It is no longer known which files are synced.
                    let kept = bound.segment.saturating_sub(REDO_SEGMENTS).max(1);
                    (progress.kept, progress.boot) = (Position::start_of(kept), String::new());
                    progress.built = Built::Filled;
                }
            })
        })
    }
}

/// The state of a scan that fills an index.
struct Filling {
    newest: BTreeMap<String, FileHead>,
    /// Damaged records about unknown files.
    hidden: BTreeMap<String, Position>,
    tail: Tail,
    result: Result<()>,
}

impl Filling {
    fn new() -> Filling {
        Filling {
            newest: BTreeMap::new(),
            hidden: BTreeMap::new(),
            tail: Tail::start(),
            result: Ok(()),
        }
    }

    fn see(&mut self, index: &Index, seen: Seen, file_index: &FileIndex) {
        let record = match seen.line {
            Line::Record(record) => record,
            Line::Damaged(damage) => {
                let salvaged = index.salvage(&damage, &self.newest, self.tail.seq);
                if !salvaged.is_whole {
                    self.hidden.insert(damage.name(), damage.at);
                }
                self.newest.extend(salvaged.file_index);
                return;
            }
            Line::OtherFormat(other) => {
                self.result = Err(other.refusal());
                return;
            }
        };
        // A duplicated or moved line says nothing new about its files.
        let is_newer = |path: &str| {
            let known = self.newest.get(path);
            known.is_none_or(|head| head.seq <= record.seq)
        };
        let ops: Vec<&RecordOp> = record
            .ops
            .iter()
            .filter(|o| o.op != OpKind::Keep && is_newer(&o.path))
            .collect();
        for op in ops {
            let head = FileHead::after(op, seen.at, record.seq);
            self.newest.insert(op.path.clone(), head);
        }
        for name in healed_by(&record) {
            self.hidden.remove(&name);
        }
        if self.result.is_ok() {
            self.result = file_index.note(seen.at, &record);
        }
        if record.seq >= self.tail.seq {
            self.tail = Tail::after(&record, seen.end, self.tail.wall_us);
        }
    }
}
