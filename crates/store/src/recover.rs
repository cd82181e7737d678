//! Making the heads anew, and what `doctor` fixes.

use std::collections::BTreeMap;

use quipu_contract::ProjectPath;
use serde::Serialize;

use crate::apply::note;
use crate::error::Result;
use crate::heads::{Head, Heads};
use crate::journal::{Line, Position};
use crate::live::Tail;
use crate::record::{OpKind, RecordOp};
use crate::salvage::healed_by;
use crate::store::Store;

/// How many segments back files are compared when the heads had to be made anew: all files reach
/// the disk when a segment is left, and one commit can leave no more than this many.
const REDO_SEGMENTS: u32 = 4;

/// What `doctor` did.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Repair {
    pub what: String,
}

impl Store {
    /// Where the heads end that are made anew: where a running process has told that files are in
    /// place. What lies behind is put there as always, by whoever is at it or comes next; to take
    /// it for done would make a commit on its way look like someone's edit.
    fn placed_bound(&self) -> Result<Position> {
        let bound = self.bound()?;
        if self.is_read_only() {
            return Ok(bound);
        }
        Ok(self
            .live()?
            .known()
            .applied
            .map_or(bound, |placed| placed.min(bound)))
    }

    /// Fills heads from the journal. No file is written. What a file looked like is taken over from
    /// heads that were filled before and say the same of it; otherwise it is unknown until it is
    /// next looked at.
    pub(crate) fn fill_heads(&self, heads: &Heads) -> Result<()> {
        let bound = self.placed_bound()?;
        heads.transaction(|heads| {
            let were_redone = heads.is_redone()?;
            let known: BTreeMap<String, Head> = if heads.is_made()? {
                heads.all()?.into_iter().collect()
            } else {
                BTreeMap::new()
            };
            heads.clear()?;
            let mut tail = Tail::start();
            let mut result = Ok(());
            let mut newest: BTreeMap<String, Head> = BTreeMap::new();
            // Damaged records of which not even the files are known.
            let mut hidden: BTreeMap<String, Position> = BTreeMap::new();
            self.journal
                .scan(Position::START, Some(bound), &mut |seen| {
                    let record = match seen.line {
                        Line::Record(record) => record,
                        Line::Damaged(damage) => {
                            let told = self.salvage(&damage, &newest, tail.seq);
                            if !told.is_whole {
                                hidden.insert(damage.name(), damage.at);
                            }
                            newest.extend(told.heads);
                            return;
                        }
                        Line::OtherFormat(other) => {
                            result = Err(other.refusal());
                            return;
                        }
                    };
                    // A line that was doubled or moved says nothing new of its files.
                    let is_newer = |path: &str| {
                        newest
                            .get(path)
                            .is_none_or(|head: &Head| head.seq <= record.seq)
                    };
                    let ops: Vec<&RecordOp> = record
                        .ops
                        .iter()
                        .filter(|o| o.op != OpKind::Keep && is_newer(&o.path))
                        .collect();
                    for op in ops {
                        newest.insert(op.path.clone(), Head::after(op, seen.at, record.seq));
                    }
                    for name in healed_by(&record) {
                        hidden.remove(&name);
                    }
                    if result.is_ok() {
                        result = note(heads, seen.at, &record);
                    }
                    if record.seq >= tail.seq {
                        tail = Tail::after(&record, seen.end, tail.wall_us);
                    }
                })?;
            result?;
            let mut all_known = were_redone;
            for (path, head) in &mut newest {
                match known.get(path).filter(|old| {
                    old.at == head.at && old.version == head.version && old.gone == head.gone
                }) {
                    Some(old) => (head.stamp, head.flag) = (old.stamp, old.flag.clone()),
                    None => all_known = false,
                }
            }
            heads.put_all(newest.iter())?;
            tail.at = tail.at.max(bound);
            heads.set_applied(&tail)?;
            heads.set_hidden(hidden.into_values())?;
            if all_known {
                return heads.set_redone();
            }
            // Which files have reached the disk is not known any more.
            heads.set_kept(
                Position {
                    segment: bound.segment.saturating_sub(REDO_SEGMENTS).max(1),
                    offset: 0,
                },
                "",
            )?;
            heads.set_made()
        })
    }

    /// Repairs what it can and says what it did.
    pub fn doctor(&self) -> Result<Vec<Repair>> {
        let mut fixed = Vec::new();
        let mut did = |what: String| fixed.push(Repair { what });
        let known = match self.live()?.tail() {
            Some(tail) => Ok(tail),
            None => self.heads().and_then(|heads| heads.applied()),
        };
        let known = known.ok().filter(|tail| tail.at > Position::START);
        let lost = known
            .is_some_and(|tail| self.journal.is_end(tail.at).is_err() || self.is_displaced(&tail));
        if !lost {
            // With the heads as they are: they know what the files looked like. What hinders this
            // is fixed below.
            let _ = self.settle();
            for path in self.with_sound_heads(|| self.write_unwritten())? {
                did(format!(
                    "wrote `{path}`, which could not be written when it was committed"
                ));
            }
            self.heal()?.into_iter().for_each(&mut did);
        }
        let tail = {
            let _held = self.append_lock.acquire()?;
            if lost {
                let live = self.live()?;
                let in_doubt = live.known().doubt;
                live.forget(&self.disk)?;
                live.set_doubt(&self.disk, in_doubt)?;
                did(
                    "the journal is gone or cut short: what is on disk becomes the new beginning"
                        .into(),
                );
            }
            // Nobody commits meanwhile, and nobody is about to put files in place.
            if !lost {
                let tail = self.with_sound_heads(|| self.look())?.tail;
                let _ = self
                    .sync_to(tail.at)
                    .and_then(|()| self.apply_files(tail.at));
            }
            let placing = self.apply_lock.acquire()?;
            self.rebuild_heads()?;
            self.with_sound_heads(|| self.doubt_stamps())?;
            drop(placing);
            match self.live()?.tail() {
                Some(tail) => tail,
                None => self.find_end(None)?,
            }
        };
        self.settle()?;
        did(format!(
            "made the heads anew from {} {}",
            tail.seq,
            if tail.seq == 1 { "record" } else { "records" }
        ));
        if lost {
            self.heal()?.into_iter().for_each(&mut did);
            let taken = self.survey()?.adopted.len();
            did(format!(
                "journalled {taken} {} as they stand",
                if taken == 1 { "file" } else { "files" }
            ));
        }
        for left in self.with_sound_heads(|| self.rescue_leftovers())? {
            did(match left.edit_of {
                Some(path) => format!(
                    "set aside an edit of `{path}` that a killed program left in `.quipu/tmp`"
                ),
                None => format!("removed the left-over `.quipu/tmp/{}`", left.name),
            });
        }
        let asides = self.journal_asides()?;
        if asides > 0 {
            did(format!(
                "journalled {asides} external edit(s) that a commit had replaced"
            ));
        }
        let compressed = {
            // A prune that rewrites a segment must not be undone by a compressed copy of what it
            // was.
            let _held = self.append_lock.acquire()?;
            self.journal.compress_older(tail.at.segment)?
        };
        if compressed > 0 {
            did(format!("compressed {compressed} old journal segment(s)"));
        }
        Ok(fixed)
    }

    /// Forgets the look of files that hold something else than the journal says and look as
    /// recorded all the same: an edit within a tick of the clock, or one whose time was set back.
    /// They are compared at the next look.
    fn doubt_stamps(&self) -> Result<()> {
        let heads = self.heads()?.all()?;
        for (text, head) in heads
            .into_iter()
            .filter(|(_, head)| !head.gone && head.stamp.is_some())
        {
            let Ok(path) = ProjectPath::parse(&text) else {
                continue;
            };
            if let Ok(Some((bytes, stamp))) = self.tree.read(&path)
                && head.stamp == Some(stamp)
                && self
                    .plain_content(&path, &head)
                    .is_ok_and(|journalled| journalled != bytes)
            {
                self.heads()?.set_stamp(&text, &head.version, None)?;
            }
        }
        Ok(())
    }
}
