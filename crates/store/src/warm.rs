//! What this process knows by heart: the heads at the journal's end, and the records whose files
//! are not yet in place.
//!
//! A process that commits one change after another need not ask the index of heads for what it has
//! just written, nor tell it each time: it tells it every few commits, before anyone in this
//! process asks it, and at the end. Until then the index is behind, as after a crash, and whoever
//! looks reads the rest from the journal, and from `.quipu/stamps` what the files looked like.
//! Records of other processes are followed; so are files that others put in place, as long as they
//! tell the index.
//!
//! How far each thing has come, from the last to the first; each place lies before or at the next:
//!
//! | | says | written under |
//! |---|---|---|
//! | `told` (`Heads::applied`) | the index knows the heads so far | the apply lock, or by who placed the files, later |
//! | `placed_to` (`Known::applied`) | the files are in place so far | the apply lock |
//! | `Known::synced` | the journal is on the disk so far | the sync lock |
//! | `tail` (`Known::tail`) | the journal ends here | the append lock |

use std::collections::{BTreeMap, HashMap, HashSet};
use std::io::Write;
use std::sync::{Arc, MutexGuard, PoisonError};

use crate::disk::Step;
use crate::error::{Result, StoreError};
use crate::heads::Head;
use crate::journal::Position;
use crate::lease::Lease;
use crate::live::{Known, Tail, Traced};
use crate::record::OpKind;
use crate::store::{Store, remove_cache};
use crate::trace::Trace;
use crate::tree::Stamp;
use crate::unplaced::{Care, Journalled, Source, Unplaced};

/// The index is told after so many records: what a crash makes others read again.
const RECORDS: usize = 64;
/// More files than this are not kept in mind.
const FILES: usize = 4096;

pub(crate) struct Warm {
    /// The end of the journal that all this is true of.
    tail: Tail,
    /// What was traced there.
    traced: Option<Traced>,
    /// The files are in place up to here.
    placed_to: Tail,
    /// How far the index of heads has been told; never beyond the files.
    told: Position,
    /// Heads of files that are in place.
    placed: HashMap<String, Option<Head>>,
    /// Of those, what the index has not been told.
    dirty: HashSet<String>,
    keys: Vec<(String, Position)>,
    untold: usize,
    /// What is journalled behind `placed_to`.
    unplaced: Unplaced,
    leases: Option<(Vec<Lease>, u64)>,
}

impl Warm {
    /// Whether nobody else has put files in place since. Where no one knows how far files are in
    /// place, as when `.quipu/live` was lost, someone may have.
    fn places_alone(&self, known: &Known) -> bool {
        known.applied == Some(self.placed_to.at)
    }

    /// Others have put files in place and told the index, which answers for them from now on.
    fn leave_to_index(&mut self, told: Tail, traced: bool) {
        self.unplaced.forget(&told);
        self.placed.clear();
        // What has left no traces up to there need not have been read here.
        self.leases = self.leases.take().filter(|_| traced);
        self.told = told.at;
        if self.tail.at < told.at {
            self.tail = told;
        }
        self.placed_to = told;
    }
}

impl Source for Store {
    fn lines(&self, from: Position, to: Position) -> Result<Vec<u8>> {
        self.journal.read_between(from, to)
    }

    fn traces(&self, first: u64, last: u64) -> Option<Vec<Trace>> {
        self.live().ok()?.traces(first, last)
    }
}

/// What others have done about files since this process last knew.
enum Placed {
    None,
    /// They have put them in place up to here, and told the index.
    To(Tail),
    /// They have, and the index or this process knows something that the other does not.
    Unclear,
}

impl Store {
    fn by_heart(&self) -> MutexGuard<'_, Option<Warm>> {
        self.warm.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Whether this process knows everything up to the end of the journal, having read what others
    /// wrote meanwhile. Only under the append lock.
    pub(crate) fn catch_up(&self, known: &Known) -> Result<bool> {
        let mut slot = self.by_heart();
        let (Some(warm), Some(tail)) = (slot.as_mut(), &known.tail) else {
            return Ok(false);
        };
        if !self.journal.is_end(tail.at)? {
            return Ok(false);
        }
        if known.doubt {
            return Ok(false);
        }
        // Told by traces alone, a journal that was cut and went on otherwise would be taken for the
        // one that is known.
        let traced = known
            .traced
            .is_some_and(|traced| warm.traced == Some(traced) && traced.from <= warm.tail.at);
        match self.placed_by_others(warm, tail, known)? {
            Placed::None => {}
            Placed::To(told) => warm.leave_to_index(told, traced),
            Placed::Unclear => return Ok(false),
        }
        if warm.tail != *tail {
            if warm.tail.at >= tail.at
                || warm.tail.seq >= tail.seq
                || warm.tail.at.segment != tail.at.segment
            {
                return Ok(false);
            }
            if traced {
                warm.unplaced.pass(&warm.tail, tail);
            } else {
                let lines = Arc::new(self.journal.read_between(warm.tail.at, tail.at)?);
                if !warm.unplaced.follow(&lines, &warm.tail, tail, Care::Links) {
                    return Ok(false);
                }
            }
            warm.tail = *tail;
        }
        warm.traced = known.traced;
        Ok(true)
    }

    /// Whether others have put files in place since.
    fn placed_by_others(&self, warm: &Warm, tail: &Tail, known: &Known) -> Result<Placed> {
        if warm.places_alone(known) {
            return Ok(Placed::None);
        }
        let followed = known
            .applied
            .filter(|placed| *placed > warm.placed_to.at && *placed <= tail.at);
        // What this process alone knows would be lost.
        let Some(placed) = followed.filter(|_| warm.told == warm.placed_to.at) else {
            return Ok(Placed::Unclear);
        };
        let told = self.heads_as_told()?.applied()?;
        Ok(if told.at == placed {
            Placed::To(told)
        } else {
            Placed::Unclear
        })
    }

    /// The first look needs the index: opened before the append lock is taken, it keeps no one
    /// waiting.
    pub(crate) fn open_heads_early(&self) -> Result<()> {
        if self.by_heart().is_none() && !self.is_read_only() {
            drop(self.heads_as_told()?);
        }
        Ok(())
    }

    /// Begins to know things by heart: the index reaches to `applied`, and these lines stand
    /// between there and the end. False if they hold something that only the index can keep.
    pub(crate) fn learn(
        &self,
        applied: Tail,
        tail: &Tail,
        lines: &Arc<Vec<u8>>,
        traced: Option<Traced>,
    ) -> bool {
        let mut unplaced = Unplaced::default();
        if applied.at != tail.at && !unplaced.follow(lines, &applied, tail, Care::Sums) {
            return false;
        }
        *self.by_heart() = Some(Warm {
            tail: *tail,
            traced,
            told: applied.at,
            placed_to: applied,
            placed: HashMap::new(),
            dirty: HashSet::new(),
            keys: Vec::new(),
            untold: 0,
            unplaced,
            leases: None,
        });
        true
    }

    /// Keeps in mind what was just journalled behind `before`. Only under the append lock.
    pub(crate) fn keep_in_mind(
        &self,
        before: &Tail,
        records: Vec<Journalled>,
        traced: Traced,
    ) -> Result<()> {
        {
            let mut slot = self.by_heart();
            let Some(warm) = slot.as_mut() else {
                return Ok(());
            };
            let fits = |journalled: &Journalled| {
                journalled.record.lease.is_none() && journalled.at.segment == before.at.segment
            };
            if warm.tail == *before && records.iter().all(fits) {
                for journalled in records {
                    warm.tail = journalled.end;
                    warm.unplaced.push(journalled);
                }
                warm.traced = Some(traced);
                return Ok(());
            }
        }
        self.cool()
    }

    /// Tells the index what it does not know yet and forgets everything.
    pub(crate) fn cool(&self) -> Result<()> {
        self.tell_heads()?;
        *self.by_heart() = None;
        Ok(())
    }

    /// Forgets everything, untold: the journal has it.
    pub(crate) fn forget_by_heart(&self) {
        *self.by_heart() = None;
    }

    /// Bytes of the journal whose files are not in place; none if this process does not know.
    pub(crate) fn behind(&self) -> Option<u64> {
        let slot = self.by_heart();
        slot.as_ref()
            .map(|warm| warm.tail.at.offset.saturating_sub(warm.placed_to.at.offset))
    }

    /// The newest head of a path and whether it is still on its way to the disk; none if all was
    /// forgotten meanwhile. The index may not be asked instead: it does not know what is not in
    /// place.
    pub(crate) fn head_by_heart(&self, path: &str) -> Result<Option<(Option<Head>, bool)>> {
        let mut slot = self.by_heart();
        let Some(warm) = slot.as_mut() else {
            return Ok(None);
        };
        Ok(Some(match warm.unplaced.head(path, self)? {
            Some(head) => (Some(head), true),
            None => (self.placed_head(warm, path)?, false),
        }))
    }

    fn placed_head(&self, warm: &mut Warm, path: &str) -> Result<Option<Head>> {
        if let Some(head) = warm.placed.get(path) {
            return Ok(head.clone());
        }
        let head = self.heads_as_told()?.head(path)?;
        warm.placed.insert(path.to_owned(), head.clone());
        Ok(head)
    }

    /// The head of a file as it is in place.
    pub(crate) fn head_in_place(&self, path: &str) -> Result<Option<Head>> {
        match self.by_heart().as_mut() {
            Some(warm) => self.placed_head(warm, path),
            None => self.heads_as_told()?.head(path),
        }
    }

    /// All leases and the highest fencing number; none if all was forgotten meanwhile.
    pub(crate) fn leases_by_heart(&self) -> Result<Option<(Vec<Lease>, u64)>> {
        let mut slot = self.by_heart();
        let Some(warm) = slot.as_mut() else {
            return Ok(None);
        };
        if warm.leases.is_none() {
            let heads = self.heads_as_told()?;
            warm.leases = Some((heads.leases()?, heads.fence()?));
        }
        Ok(warm.leases.clone())
    }

    /// Where the commit with a key stands, if there is one; none at all if all was forgotten
    /// meanwhile.
    pub(crate) fn key_by_heart(&self, key: &str) -> Result<Option<Option<Position>>> {
        let mut slot = self.by_heart();
        let Some(warm) = slot.as_mut() else {
            return Ok(None);
        };
        let pending = warm.unplaced.key(key, self)?;
        let placed = || {
            warm.keys
                .iter()
                .find(|(known, _)| known == key)
                .map(|(_, at)| *at)
        };
        match pending.or_else(placed) {
            Some(at) => Ok(Some(Some(at))),
            None => Ok(Some(self.heads_as_told()?.key(key)?)),
        }
    }

    /// A file turned out to be as journalled, only with another stamp.
    pub(crate) fn note_touched(&self, path: &str, stamp: Option<Stamp>) {
        if let Some(Some(Some(head))) = self
            .by_heart()
            .as_mut()
            .map(|warm| warm.placed.get_mut(path))
        {
            head.stamp = stamp;
        }
    }

    /// What is synced and not in place, oldest first; none if this process does not know. Only
    /// under the apply lock.
    pub(crate) fn unplaced(&self, known: &Known, end: Position) -> Option<Vec<Journalled>> {
        let mut slot = self.by_heart();
        let warm = slot
            .as_mut()
            .filter(|warm| warm.places_alone(known) && warm.tail.at >= end)?;
        warm.unplaced.records_to(
            known
                .synced
                .map_or(end, |synced| synced.clamp(end, warm.tail.at)),
            self,
        )
    }

    /// Keeps in mind that files are in place. Only under the apply lock.
    pub(crate) fn note_placed(
        &self,
        records: &[Journalled],
        heads: Vec<(String, Head)>,
    ) -> Result<()> {
        let Some(last) = records.last() else {
            return Ok(());
        };
        self.note_stamps(&heads);
        let full = {
            let mut slot = self.by_heart();
            let Some(warm) = slot.as_mut() else {
                return Ok(());
            };
            if !warm.unplaced.begins_at(records[0].at) {
                return Ok(()); // begun anew meanwhile: the journal and the stamps tell
            }
            warm.unplaced.forget(&last.end);
            for (path, head) in heads {
                warm.dirty.insert(path.clone());
                warm.placed.insert(path, Some(head));
            }
            warm.keys.extend(
                records
                    .iter()
                    .filter_map(|j| Some((j.record.key.clone()?, j.at))),
            );
            warm.placed_to = last.end;
            warm.untold += records.len();
            warm.untold >= RECORDS || warm.placed.len() > FILES
        };
        if full {
            self.tell_heads()?;
            self.forget_stamps();
        }
        Ok(())
    }

    /// Writes down what the files look like, for others: one small append, under the apply lock.
    /// Without it they compare the files byte by byte, so that it cannot be written is no reason to
    /// fail.
    fn note_stamps(&self, heads: &[(String, Head)]) {
        let mut lines = String::new();
        for (path, head) in heads {
            if let Some(stamp) = head.stamp {
                lines.push_str(&format!(
                    "{} {} {} {} {} {path}\n",
                    head.at, head.version, stamp.inode, stamp.size, stamp.mtime_ns
                ));
            }
        }
        let file = match self.stamps.get() {
            Some(file) => file,
            None => {
                let path = self.quipu().join("stamps");
                let open = || {
                    std::fs::File::options()
                        .create(true)
                        .append(true)
                        .open(&path)
                };
                let Ok(opened) = open().or_else(|_| remove_cache(&path).and_then(|()| open()))
                else {
                    return;
                };
                self.stamps.get_or_init(|| opened)
            }
        };
        let _ = (&*file).write_all(lines.as_bytes());
    }

    /// The index knows it all now. Lines that stay by accident are of records it has.
    pub(crate) fn forget_stamps(&self) {
        let path = self.quipu().join("stamps");
        if std::fs::metadata(&path).is_ok_and(|m| m.len() > 0)
            && let Ok(file) = std::fs::File::options().write(true).open(path)
        {
            let _ = file.set_len(0);
        }
    }

    /// The heads after records whose files another process has put in place.
    pub(crate) fn heads_of_placed<'r>(
        &self,
        records: impl Iterator<Item = &'r Journalled>,
    ) -> Result<BTreeMap<String, Head>> {
        let mut heads = BTreeMap::new();
        for Journalled { at, record, .. } in records {
            for op in record.ops.iter().filter(|o| o.op != OpKind::Keep) {
                heads.insert(op.path.clone(), Head::after(op, *at, record.seq));
            }
        }
        if heads.is_empty() {
            return Ok(heads);
        }
        // Without its line a file is merely compared byte by byte when it is next looked at.
        for line in crate::regular::read_regular_text(&self.quipu().join("stamps"))
            .unwrap_or_default()
            .lines()
        {
            let mut fields = line.splitn(6, ' ');
            let mut next = || fields.next().unwrap_or_default();
            let (at, version, inode, size, mtime, path) =
                (next(), next(), next(), next(), next(), next());
            if let Some(head) = heads.get_mut(path)
                && head.at.to_string() == at
                && head.version.as_str() == version
                && let (Ok(inode), Ok(size), Ok(mtime_ns)) =
                    (inode.parse(), size.parse(), mtime.parse())
            {
                head.stamp = Some(Stamp {
                    inode,
                    size,
                    mtime_ns,
                });
            }
        }
        Ok(heads)
    }

    /// Brings the index up to date with the files, unless someone else has done so.
    pub(crate) fn tell_heads(&self) -> Result<()> {
        let mut slot = self.by_heart();
        let Some(warm) = slot.as_mut() else {
            return Ok(());
        };
        if warm.told == warm.placed_to.at {
            if warm.placed.len() > FILES {
                *slot = None;
            }
            return Ok(());
        }
        self.forget_deleted_heads();
        self.disk
            .step(Step::HeadsCommit)
            .map_err(StoreError::io("cannot write the heads"))?;
        let heads = self.heads_as_told()?;
        let told = heads.transaction(|heads| {
            // Another process, which knew no better, has read it all from the journal.
            if heads.applied()?.at != warm.told {
                return Ok(false);
            }
            for path in &warm.dirty {
                if let Some(Some(head)) = warm.placed.get(path) {
                    heads.put(path, head)?;
                }
            }
            for (key, at) in &warm.keys {
                heads.put_key(key, *at)?;
            }
            heads.set_applied(&warm.placed_to)?;
            Ok(true)
        })?;
        if told && warm.placed.len() <= FILES {
            warm.told = warm.placed_to.at;
            warm.dirty.clear();
            warm.keys.clear();
            warm.untold = 0;
        } else {
            *slot = None;
        }
        Ok(())
    }
}

impl Drop for Store {
    fn drop(&mut self) {
        // If it fails, the journal has it all.
        let _ = self.tell_heads();
    }
}

#[cfg(test)]
#[path = "warm_tests.rs"]
mod tests;
