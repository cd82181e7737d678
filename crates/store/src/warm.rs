//! What this process knows by heart: the heads at the journal's end, for as long as it alone writes.
//!
//! A process that commits one change after another need not ask the index of heads for what it has
//! just written, nor tell it each time: it tells it every few commits, before anyone in this process
//! asks it, and at the end. Until then the index is behind, as after a crash, and whoever looks
//! reads the rest from the journal, and from `.quipu/stamps` what the files looked like. The first
//! record of another process ends it all.

use std::collections::{BTreeMap, HashMap, HashSet};
use std::io::Write;
use std::sync::PoisonError;

use crate::disk::Step;
use crate::error::{Result, StoreError};
use crate::heads::Head;
use crate::journal::Position;
use crate::lease::Lease;
use crate::live::Tail;
use crate::record::{OpKind, Record};
use crate::store::Store;
use crate::tree::Stamp;

/// The index is told after so many records: what a crash makes others read again.
const RECORDS: usize = 64;
/// More files than this are not kept in mind.
const FILES: usize = 4096;

pub(crate) struct Warm {
    /// The end of the journal that all this is true of; the files are applied up to it.
    tail: Tail,
    /// How far the index of heads has been told.
    told: Position,
    heads: HashMap<String, Option<Head>>,
    leases: Option<(Vec<Lease>, u64)>,
    /// What the index has not been told.
    dirty: HashSet<String>,
    keys: Vec<(String, Position)>,
    records: usize,
}

impl Store {
    /// Begins anew after everything up to `tail` was applied and told.
    pub(crate) fn warm_up(&self, tail: Tail, heads: impl Iterator<Item = (String, Head)>) {
        let told = tail.at;
        let heads = heads.map(|(path, head)| (path, Some(head))).collect();
        let warm = Warm { tail, told, heads, leases: None, dirty: HashSet::new(), keys: Vec::new(), records: 0 };
        *self.warm.lock().unwrap_or_else(PoisonError::into_inner) = Some(warm);
    }

    pub(crate) fn is_warm_at(&self, tail: &Tail) -> bool {
        self.warm.lock().unwrap_or_else(PoisonError::into_inner).as_ref().is_some_and(|w| w.tail == *tail)
    }

    /// Tells the index what it does not know yet and forgets everything.
    pub(crate) fn cool(&self) -> Result<()> {
        self.tell_heads()?;
        *self.warm.lock().unwrap_or_else(PoisonError::into_inner) = None;
        Ok(())
    }

    /// A head at the end of the journal. Only while warm, under the append or the apply lock.
    pub(crate) fn warm_head(&self, path: &str) -> Result<Option<Head>> {
        let mut slot = self.warm.lock().unwrap_or_else(PoisonError::into_inner);
        let Some(warm) = slot.as_mut() else { return self.heads_as_told()?.head(path) };
        if let Some(head) = warm.heads.get(path) {
            return Ok(head.clone());
        }
        let head = self.heads_as_told()?.head(path)?;
        warm.heads.insert(path.to_owned(), head.clone());
        Ok(head)
    }

    pub(crate) fn warm_leases(&self) -> Result<(Vec<Lease>, u64)> {
        let mut slot = self.warm.lock().unwrap_or_else(PoisonError::into_inner);
        let ask = || -> Result<(Vec<Lease>, u64)> {
            let heads = self.heads_as_told()?;
            Ok((heads.leases()?, heads.fence()?))
        };
        let Some(warm) = slot.as_mut() else { return ask() };
        if warm.leases.is_none() {
            warm.leases = Some(ask()?);
        }
        Ok(warm.leases.clone().unwrap_or_default())
    }

    pub(crate) fn warm_key(&self, key: &str) -> Result<Option<Position>> {
        let slot = self.warm.lock().unwrap_or_else(PoisonError::into_inner);
        let fresh = slot.as_ref().and_then(|w| w.keys.iter().find(|(known, _)| known == key).map(|(_, at)| *at));
        match fresh {
            Some(at) => Ok(Some(at)),
            None => self.heads_as_told()?.key(key),
        }
    }

    /// Keeps in mind what was just applied.
    pub(crate) fn keep_warm(&self, tail: Tail, records: &[(Position, Record)], heads: impl Iterator<Item = (String, Head)>) -> Result<()> {
        let full = {
            let mut slot = self.warm.lock().unwrap_or_else(PoisonError::into_inner);
            let Some(warm) = slot.as_mut() else { return Ok(()) };
            let heads: Vec<(String, Head)> = heads.collect();
            self.note_stamps(&heads)?;
            for (path, head) in heads {
                warm.dirty.insert(path.clone());
                warm.heads.insert(path, Some(head));
            }
            warm.keys.extend(records.iter().filter_map(|(at, record)| Some((record.key.clone()?, *at))));
            warm.records += records.len();
            warm.tail = tail;
            warm.records >= RECORDS || warm.heads.len() > FILES
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
    pub(crate) fn heads_of_placed<'r>(&self, records: impl Iterator<Item = &'r (Position, Record)>) -> Result<BTreeMap<String, Head>> {
        let mut heads = BTreeMap::new();
        for (at, record) in records {
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

    /// Brings the index up to date, unless someone else has done so.
    pub(crate) fn tell_heads(&self) -> Result<()> {
        let mut slot = self.warm.lock().unwrap_or_else(PoisonError::into_inner);
        let Some(warm) = slot.as_mut() else { return Ok(()) };
        if warm.told == warm.tail.at {
            if warm.heads.len() > FILES {
                *slot = None;
            }
            return Ok(());
        }
        self.disk.step(Step::HeadsCommit).map_err(StoreError::io("cannot write the heads"))?;
        let heads = self.heads_as_told()?;
        let told = heads.transaction(|heads| {
            // Another process, which knew no better, has read it all from the journal.
            if heads.applied()?.at != warm.told {
                return Ok(false);
            }
            for path in &warm.dirty {
                if let Some(Some(head)) = warm.heads.get(path) {
                    heads.put(path, head)?;
                }
            }
            for (key, at) in &warm.keys {
                heads.put_key(key, *at)?;
            }
            heads.set_applied(&warm.tail)?;
            Ok(true)
        })?;
        if told && warm.heads.len() <= FILES {
            warm.told = warm.tail.at;
            warm.dirty.clear();
            warm.keys.clear();
            warm.records = 0;
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
