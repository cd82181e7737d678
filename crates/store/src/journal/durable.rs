//! The journal as the processes of a project share it: segments, watermarks, and the locks of
//! writers.
//!
//! Records are appended under the append lock and synced under the sync lock, so that one sync
//! covers all waiting writers. `segments.rs` knows only bytes and positions; `publish.rs` says what
//! a crash leaves at each step.

use std::collections::BTreeMap;
use std::ops::Deref;
use std::sync::{Arc, Mutex};

use crate::error::{Result, StoreError};
use crate::journal::record::Record;
use crate::journal::segments::{Position, Segments};
use crate::journal::watermarks::{Tail, Watermarks};
use crate::lock::{Held, KernelLock, locked};
use crate::settings::Settings;

pub(crate) struct Journal {
    settings: Arc<Settings>,
    segments: Segments,
    append_lock: KernelLock,
    sync_lock: KernelLock,
    /// Opened on first use.
    watermarks: Mutex<Option<Arc<Watermarks>>>,
}

/// Reading needs no lock.
impl Deref for Journal {
    type Target = Segments;

    fn deref(&self) -> &Segments {
        &self.segments
    }
}

/// The result of appending records.
pub(crate) struct AppendedRecords {
    /// The new tail of the journal.
    pub end: Tail,
    /// The last record as it was written, if there were any.
    pub last: Option<Record>,
}

impl Journal {
    pub fn new(settings: Arc<Settings>, segment_bytes: u64) -> Journal {
        let folder = settings.quipu().join("journal");
        Journal {
            segments: Segments::new(folder, settings.disk.clone(), segment_bytes),
            append_lock: settings.lock("append.lock"),
            sync_lock: settings.lock("sync.lock"),
            watermarks: Mutex::new(None),
            settings,
        }
    }

    pub fn settings(&self) -> &Settings {
        &self.settings
    }

    /// Acquires the append lock.
    pub fn lock(&self) -> Result<Held> {
        self.append_lock.acquire()
    }

    pub fn watermarks(&self) -> Result<Arc<Watermarks>> {
        let mut slot = locked(&self.watermarks);
        if let Some(watermarks) = &*slot {
            return Ok(Arc::clone(watermarks));
        }
        let path = self.settings.quipu().join("watermarks");
        let opened = Arc::new(Watermarks::open(
            &path,
            self.settings.boot.clone(),
            self.settings.disk.clone(),
        )?);
        *slot = Some(Arc::clone(&opened));
        Ok(opened)
    }

    /// The watermarks, reopened if the file was deleted: other processes may use a new one.
    pub fn watermarks_now(&self) -> Result<Arc<Watermarks>> {
        let watermarks = self.watermarks()?;
        if !watermarks.is_deleted() {
            return Ok(watermarks);
        }
        *locked(&self.watermarks) = None;
        self.watermarks()
    }

    /// Appends records and moves the tail past them. `synced` is how far the journal is known to be
    /// synced. If it fails, the records are erased. Requires the append lock.
    pub fn append_records(
        &self,
        before: &Tail,
        synced: Option<Position>,
        in_new_segment: bool,
        records: Vec<Record>,
    ) -> Result<AppendedRecords> {
        let appended = self.try_append(before, synced, in_new_segment, records);
        appended.map_err(|error| {
            // The caller gets an error, so another process should not complete these records.
            let erased = self.cut(before.at);
            // If a sync failed, the next sync cannot be trusted.
            let _ = self
                .watermarks()
                .and_then(|watermarks| watermarks.set_doubt(true));
            match erased {
                Ok(_) => error,
                Err(_) => StoreError::Unsure {
                    seq: before.seq + 1,
                    source: Box::new(error),
                },
            }
        })
    }

    fn try_append(
        &self,
        before: &Tail,
        synced: Option<Position>,
        in_new_segment: bool,
        records: Vec<Record>,
    ) -> Result<AppendedRecords> {
        let mut last = None;
        let mut tail = *before;
        // The position of the newest of these records about each file.
        let mut places: BTreeMap<String, Position> = BTreeMap::new();
        for mut record in records {
            record.seq = tail.seq + 1;
            record.prev = tail.hash;
            record.synced = synced.map(Position::text);
            for op in &mut record.ops {
                if let Some(at) = places.get(&op.path) {
                    op.last = Some(at.text());
                }
            }
            let line = record.encode();
            let (start, end) = self.append(tail.at, &line, in_new_segment && last.is_none())?;
            for op in record.changes() {
                places.insert(op.path.clone(), start);
            }
            tail = Tail::after(&record, end, tail.wall_us);
            last = Some(record);
        }
        self.watermarks()?.set_tail(&tail)?;
        Ok(AppendedRecords { end: tail, last })
    }

    /// Step 3: returns when everything up to a position is synced.
    pub fn sync_to(&self, end: Position) -> Result<()> {
        // The segment has no bytes yet, and the previous one was synced when it was closed.
        if end.offset == 0 && (end == Position::START || !self.has(end.segment)) {
            return Ok(());
        }
        // A waiter stops as soon as its position is synced: by then the lock may be held for the
        // next sync.
        let watermarks = self.watermarks()?;
        let Some(_held) = self
            .sync_lock
            .acquire_unless(&|| watermarks.is_synced_to(end))?
        else {
            return Ok(());
        };
        let watermarks = self.watermarks_now()?;
        let known = watermarks.known();
        if !known.doubt && known.synced.is_some_and(|synced| synced >= end) {
            return Ok(());
        }
        // The same sync covers records that were appended since.
        let target = known.tail.map_or(end, |tail| tail.at.max(end));
        let synced = if known.doubt {
            let from = known.synced.unwrap_or(Position::start_of(target.segment));
            self.rewrite(from, target)
        } else {
            self.sync(target.segment)
        };
        if let Err(error) = synced {
            // A later sync alone cannot be trusted: see `Segments::rewrite`.
            watermarks.set_doubt(true)?;
            return Err(error);
        }
        if known.doubt {
            watermarks.set_doubt(false)?;
        }
        watermarks.set_synced(target)
    }
}
