//! What this process knows by heart: the heads at the journal's end, and the records whose files are
//! not yet in place.
//!
//! A process that commits one change after another need not ask the index of heads for what it has
//! just written, nor tell it each time: it tells it every few commits, before anyone in this process
//! asks it, and at the end. Until then the index is behind, as after a crash, and whoever looks
//! reads the rest from the journal, and from `.quipu/stamps` what the files looked like. Records of
//! other processes are followed, while this one waits for its turn if it has to; so are files that others
//! put in place, as long as they tell the index.

use std::collections::{BTreeMap, HashMap, HashSet};
use std::io::Write;
use std::sync::{Arc, MutexGuard, PoisonError};

use crate::change::Change;
use crate::disk::Step;
use crate::error::{Result, StoreError};
use crate::heads::Head;
use crate::journal::Position;
use crate::lease::Lease;
use crate::live::{Known, Tail};
use crate::record::OpKind;
use crate::store::Store;
use crate::tree::Stamp;
use crate::unplaced::{Care, Journalled, Unplaced};

/// The index is told after so many records: what a crash makes others read again.
const RECORDS: usize = 64;
/// More files than this are not kept in mind.
const FILES: usize = 4096;

pub(crate) struct Warm {
    /// The end of the journal that all this is true of.
    tail: Tail,
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
    /// Whether nobody else has put files in place since. Where no one knows how far files are in place,
    /// as when `.quipu/live` was lost, someone may have.
    fn places_alone(&self, known: &Known) -> bool {
        known.applied == Some(self.placed_to.at)
    }
}

impl Store {
    fn by_heart(&self) -> MutexGuard<'_, Option<Warm>> {
        self.warm.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Whether this process knows everything up to the end of the journal, having read what others
    /// wrote meanwhile. Only under the append lock.
    pub(crate) fn catch_up(&self, known: &Known) -> Result<bool> {
        match &known.tail {
            Some(tail) => Ok(self.follow_others(known, tail)? && self.journal.is_end(tail.at)?),
            None => Ok(false),
        }
    }

    /// Follows the journal from what this process knows to a place where it ended a moment ago.
    fn follow_others(&self, known: &Known, tail: &Tail) -> Result<bool> {
        let mut slot = self.by_heart();
        let Some(warm) = slot.as_mut().filter(|_| !known.doubt) else { return Ok(false) };
        if warm.tail != *tail {
            if warm.tail.at >= tail.at || warm.tail.at.segment != tail.at.segment {
                return Ok(false);
            }
            let lines = Arc::new(self.journal.read_between(warm.tail.at, tail.at)?);
            if !warm.unplaced.follow(&lines, &warm.tail, tail, Care::Links) {
                return Ok(false);
            }
            warm.tail.clone_from(tail);
        }
        Ok(warm.places_alone(known) || self.follow_placed(warm, known)?)
    }

    /// Others have put files in place. Where the index was told of all of them, it is asked about those from now on.
    fn follow_placed(&self, warm: &mut Warm, known: &Known) -> Result<bool> {
        let Some(placed) = known.applied.filter(|placed| *placed > warm.placed_to.at && *placed <= warm.tail.at) else { return Ok(false) };
        // What only this process knows would be lost.
        if warm.told != warm.placed_to.at {
            return Ok(false);
        }
        let told = self.heads_as_told()?.applied()?;
        if told.at != placed {
            return Ok(false);
        }
        warm.unplaced.forget(placed);
        warm.placed.clear();
        warm.told = placed;
        warm.placed_to = told;
        Ok(true)
    }

    /// For who waits for the append lock: follows what others write meanwhile and searches it for the files of a change, so that
    /// little of that is left to do under the lock. Without it others may write at any moment: what is learned is checked
    /// again by the links of the journal when it is this one's turn.
    pub(crate) fn catch_up_early(&self, change: &Change) {
        let Ok(known) = self.live().map(|live| live.known()) else { return };
        if let Some(tail) = &known.tail
            && self.follow_others(&known, tail).unwrap_or(false)
            && let Some(warm) = self.by_heart().as_mut()
        {
            change.ops.iter().for_each(|op| warm.unplaced.search(op.path().as_str()));
        }
    }

    /// The first look needs the index: opened before the append lock is taken, it keeps no one waiting.
    pub(crate) fn open_heads_early(&self) -> Result<()> {
        if self.by_heart().is_none() && !self.is_read_only() {
            drop(self.heads_as_told()?);
        }
        Ok(())
    }

    /// Begins to know things by heart: the index reaches to `applied`, and these lines stand between
    /// there and the end. False if they hold something that only the index can keep.
    pub(crate) fn learn(&self, applied: Tail, tail: &Tail, lines: &Arc<Vec<u8>>) -> bool {
        let mut unplaced = Unplaced::default();
        if applied.at != tail.at && !unplaced.follow(lines, &applied, tail, Care::Sums) {
            return false;
        }
        *self.by_heart() = Some(Warm {
            tail: tail.clone(),
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
    pub(crate) fn keep_in_mind(&self, before: &Tail, records: Vec<Journalled>) -> Result<()> {
        {
            let mut slot = self.by_heart();
            let Some(warm) = slot.as_mut() else { return Ok(()) };
            // Another thread, waiting for its turn, has read them already.
            if records.last().is_some_and(|last| warm.tail == last.end) {
                return Ok(());
            }
            let fits = |journalled: &Journalled| journalled.record.lease.is_none() && journalled.at.segment == before.at.segment;
            if warm.tail == *before && records.iter().all(fits) {
                for journalled in records {
                    warm.tail.clone_from(&journalled.end);
                    warm.unplaced.push(journalled);
                }
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
        slot.as_ref().map(|warm| warm.tail.at.offset.saturating_sub(warm.placed_to.at.offset))
    }

    /// The newest head of a path and whether it is still on its way to the disk; none if all was forgotten meanwhile. The
    /// index may not be asked instead: it does not know what is not in place.
    pub(crate) fn head_by_heart(&self, path: &str) -> Result<Option<(Option<Head>, bool)>> {
        let mut slot = self.by_heart();
        let Some(warm) = slot.as_mut() else { return Ok(None) };
        Ok(Some(match warm.unplaced.head(path)? {
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
        let Some(warm) = slot.as_mut() else { return Ok(None) };
        if warm.leases.is_none() {
            let heads = self.heads_as_told()?;
            warm.leases = Some((heads.leases()?, heads.fence()?));
        }
        Ok(warm.leases.clone())
    }

    /// Where the commit with a key stands, if there is one; none at all if all was forgotten meanwhile.
    pub(crate) fn key_by_heart(&self, key: &str) -> Result<Option<Option<Position>>> {
        let slot = self.by_heart();
        let Some(warm) = slot.as_ref() else { return Ok(None) };
        let placed = || warm.keys.iter().find(|(known, _)| known == key).map(|(_, at)| *at);
        match warm.unplaced.key(key).or_else(placed) {
            Some(at) => Ok(Some(Some(at))),
            None => Ok(Some(self.heads_as_told()?.key(key)?)),
        }
    }

    /// A file turned out to be as journalled, only with another stamp.
    pub(crate) fn note_touched(&self, path: &str, stamp: Option<Stamp>) {
        if let Some(Some(Some(head))) = self.by_heart().as_mut().map(|warm| warm.placed.get_mut(path)) {
            head.stamp = stamp;
        }
    }

    /// What is synced and not in place, oldest first; none if this process does not know. Only under
    /// the apply lock.
    pub(crate) fn unplaced(&self, known: &Known, end: Position) -> Option<Vec<Journalled>> {
        let mut slot = self.by_heart();
        let warm = slot.as_mut().filter(|warm| warm.places_alone(known) && warm.tail.at >= end)?;
        warm.unplaced.records_to(known.synced.map_or(end, |synced| synced.max(end)))
    }

    /// Keeps in mind that files are in place. Only under the apply lock.
    pub(crate) fn note_placed(&self, records: &[Journalled], heads: Vec<(String, Head)>) -> Result<()> {
        let Some(last) = records.last() else { return Ok(()) };
        self.note_stamps(&heads)?;
        let full = {
            let mut slot = self.by_heart();
            let Some(warm) = slot.as_mut() else { return Ok(()) };
            if !warm.unplaced.begins_at(records[0].at) {
                return Ok(()); // begun anew meanwhile: the journal and the stamps tell
            }
            warm.unplaced.forget(last.end.at);
            for (path, head) in heads {
                warm.dirty.insert(path.clone());
                warm.placed.insert(path, Some(head));
            }
            warm.keys.extend(records.iter().filter_map(|j| Some((j.record.key.clone()?, j.at))));
            warm.placed_to = last.end.clone();
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
    fn note_stamps(&self, heads: &[(String, Head)]) -> Result<()> {
        let mut lines = String::new();
        for (path, head) in heads {
            if let Some(stamp) = head.stamp {
                lines.push_str(&format!("{} {} {} {} {} {path}\n", head.at, head.version, stamp.inode, stamp.size, stamp.mtime_ns));
            }
        }
        let file = match self.stamps.get() {
            Some(file) => file,
            None => {
                let opened = std::fs::File::options().create(true).append(true).open(self.quipu().join("stamps"));
                let opened = opened.map_err(StoreError::io("cannot open `.quipu/stamps`"))?;
                self.stamps.get_or_init(|| opened)
            }
        };
        (&*file).write_all(lines.as_bytes()).map_err(StoreError::io("cannot write `.quipu/stamps`"))
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
    pub(crate) fn heads_of_placed<'r>(&self, records: impl Iterator<Item = &'r Journalled>) -> Result<BTreeMap<String, Head>> {
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
        for line in std::fs::read_to_string(self.quipu().join("stamps")).unwrap_or_default().lines() {
            let mut fields = line.splitn(6, ' ');
            let mut next = || fields.next().unwrap_or_default();
            let (at, version, inode, size, mtime, path) = (next(), next(), next(), next(), next(), next());
            if let Some(head) = heads.get_mut(path)
                && head.at.to_string() == at
                && head.version.as_str() == version
                && let (Ok(inode), Ok(size), Ok(mtime_ns)) = (inode.parse(), size.parse(), mtime.parse())
            {
                head.stamp = Some(Stamp { inode, size, mtime_ns });
            }
        }
        Ok(heads)
    }

    /// Brings the index up to date with the files, unless someone else has done so.
    pub(crate) fn tell_heads(&self) -> Result<()> {
        let mut slot = self.by_heart();
        let Some(warm) = slot.as_mut() else { return Ok(()) };
        if warm.told == warm.placed_to.at {
            if warm.placed.len() > FILES {
                *slot = None;
            }
            return Ok(());
        }
        self.forget_deleted_heads();
        self.disk.step(Step::HeadsCommit).map_err(StoreError::io("cannot write the heads"))?;
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
mod tests {
    use quipu_contract::{Actor, ProjectPath, Source, resolve_contract};

    use super::*;
    use crate::Options;
    use crate::change::{Change, Expect};

    const CONTRACT: &str =
        "quipu = 1\n[[files]]\npath = \"state.json\"\nclass = \"state\"\n[[files]]\npath = \"log.md\"\nclass = \"append\"\n";

    /// A store that knows things by heart, in which a commit is acknowledged whose files are not in place.
    fn behind(name: &str, last: Change) -> (std::path::PathBuf, Store) {
        let folder = std::env::temp_dir().join(format!("quipu-warm-{name}-{}", std::process::id()));
        let _ = std::fs::remove_dir_all(&folder);
        std::fs::create_dir_all(&folder).unwrap();
        std::fs::write(folder.join("quipu.toml"), CONTRACT).unwrap();
        Store::init(&folder).unwrap();
        let source = Source::new("quipu.toml", CONTRACT);
        let contract = Arc::new(resolve_contract(&source, &|name, _| Err(format!("no profile `{name}`"))).unwrap());
        let store = Store::open(&folder, contract, Options::default()).unwrap();
        for text in ["one\n", "two\n"] {
            store.judge(Change::by(&Actor::Person).append(&path("log.md"), text)).unwrap().publish().unwrap();
        }
        store.judge(Change::by(&Actor::Person).write(&path("state.json"), "1", Expect::Any)).unwrap().publish().unwrap();
        store.judge(last).unwrap().publish_behind().unwrap();
        assert!(store.behind().is_some_and(|bytes| bytes > 0));
        (folder, store)
    }

    fn path(path: &str) -> ProjectPath {
        ProjectPath::parse(path).unwrap()
    }

    /// Judges a change while another thread forgets all that is known by heart, between the look and the judgement.
    fn judged_meanwhile(store: &Store, change: &Change) -> Result<crate::Receipt> {
        let held = store.append_lock.acquire()?;
        let look = store.look()?;
        std::thread::scope(|scope| scope.spawn(|| store.cool().unwrap()).join().unwrap());
        store.judge_held(held, look, change)?.publish()
    }

    /// The same project as another process has it.
    fn another(folder: &std::path::Path) -> Store {
        let source = Source::new("quipu.toml", CONTRACT);
        let contract = Arc::new(resolve_contract(&source, &|name, _| Err(format!("no profile `{name}`"))).unwrap());
        Store::open(folder, contract, Options::default()).unwrap()
    }

    fn append(text: &str) -> Change {
        Change::by(&Actor::Person).append(&path("log.md"), text)
    }

    #[test]
    fn files_that_others_put_in_place_are_followed() {
        let (folder, store) = behind("others", append("three\n"));
        store.settle().unwrap();
        store.tell_heads().unwrap();
        let placed_to = store.by_heart().as_ref().unwrap().placed_to.at;
        // Another process commits, puts it in place and tells the index when it ends.
        let other = another(&folder);
        other.judge(append("four\n")).unwrap().publish().unwrap();
        let on_first = |text: &str| Change::by(&Actor::Person).write(&path("state.json"), text, Expect::Version(crate::Version::of(b"1")));
        other.judge(on_first("2")).unwrap().publish().unwrap();
        drop(other);
        store.catch_up_early(&append(""));
        {
            let slot = store.by_heart();
            let warm = slot.as_ref().unwrap();
            assert!(warm.placed_to.at > placed_to && warm.placed_to == warm.tail && warm.placed.is_empty());
        }
        // What came by hand since is noticed, and what the other wrote is the newest.
        std::fs::write(folder.join("log.md"), "one\ntwo\nthree\nfour\nby hand\n").unwrap();
        let receipt = store.judge(append("five\n")).unwrap().publish().unwrap();
        assert_eq!(receipt.adopted.len(), 1);
        assert_eq!(std::fs::read(folder.join("log.md")).unwrap(), b"one\ntwo\nthree\nfour\nby hand\nfive\n");
        assert!(matches!(store.judge(on_first("3")).map(drop), Err(StoreError::Stale { .. })));
        assert!(store.verify().unwrap().problems.is_empty());
        drop(store);
        std::fs::remove_dir_all(folder).unwrap();
    }

    #[test]
    fn files_in_place_that_the_index_was_not_told_of_are_looked_up_the_long_way() {
        let (folder, store) = behind("untold", append("three\n"));
        store.settle().unwrap();
        store.tell_heads().unwrap();
        let other = another(&folder);
        other.judge(append("four\n")).unwrap().publish().unwrap();
        // It is still there and knows more than the index.
        let known = store.live().unwrap().known();
        assert!(!store.follow_others(&known, known.tail.as_ref().unwrap()).unwrap());
        store.judge(append("five\n")).unwrap().publish().unwrap();
        other.judge(append("six\n")).unwrap().publish_behind().unwrap();
        store.judge(append("seven\n")).unwrap().publish_behind().unwrap();
        drop((store, other));
        let after = another(&folder);
        assert_eq!(after.read(&path("log.md")).unwrap().unwrap().0, b"one\ntwo\nthree\nfour\nfive\nsix\nseven\n");
        assert!(after.verify().unwrap().problems.is_empty());
        drop(after);
        std::fs::remove_dir_all(folder).unwrap();
    }

    #[test]
    fn an_end_that_was_taken_back_is_not_believed() {
        let (folder, store) = behind("withdrawn", append("three\n"));
        store.settle().unwrap();
        let other = another(&folder);
        let look = || other.look().unwrap();
        let (before, record) = {
            let _held = other.append_lock.acquire().unwrap();
            let before = look().tail;
            let mut record = look().next_record(&other, crate::record::Kind::Note, crate::record::Who::outside());
            record.note = Some(serde_json::json!({"about": "withdrawn"}));
            (before, record)
        };
        {
            let _held = other.append_lock.acquire().unwrap();
            other.grow(look(), vec![record]).unwrap();
            store.catch_up_early(&append(""));
            assert!(store.by_heart().as_ref().is_some_and(|warm| warm.tail.at > before.at));
            // As if the writer had failed right after.
            other.journal.cut(before.at).unwrap();
            other.live().unwrap().set_tail(&other.disk, &before).unwrap();
            other.forget_by_heart();
        }
        other.judge(append("four\n")).unwrap().publish_behind().unwrap();
        store.judge(append("five\n")).unwrap().publish().unwrap();
        assert_eq!(std::fs::read(folder.join("log.md")).unwrap(), b"one\ntwo\nthree\nfour\nfive\n");
        assert!(store.verify().unwrap().problems.is_empty());
        drop((store, other));
        std::fs::remove_dir_all(folder).unwrap();
    }

    #[test]
    fn a_stale_text_is_refused_when_all_is_forgotten_meanwhile() {
        let old = crate::Version::of(b"1");
        let newer = |text: &str| Change::by(&Actor::Person).write(&path("state.json"), text, Expect::Version(old.clone()));
        let (folder, store) = behind("stale", newer("2"));
        assert!(matches!(judged_meanwhile(&store, &newer("3")), Err(StoreError::Stale { .. })));
        assert_eq!(store.read(&path("state.json")).unwrap().unwrap().0, b"2");
        drop(store);
        std::fs::remove_dir_all(folder).unwrap();
    }

    #[test]
    fn a_repeated_key_is_known_when_all_is_forgotten_meanwhile() {
        let keyed = || Change::by(&Actor::Person).key("k").append(&path("log.md"), "three\n");
        let (folder, store) = behind("key", keyed());
        assert!(judged_meanwhile(&store, &keyed()).unwrap().repeated);
        assert_eq!(store.read(&path("log.md")).unwrap().unwrap().0, b"one\ntwo\nthree\n");
        drop(store);
        std::fs::remove_dir_all(folder).unwrap();
    }
}
