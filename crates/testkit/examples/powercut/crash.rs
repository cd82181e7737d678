//! Crash states: all writes up to a flush, and any subset of the later ones, some torn.

use std::fmt;

use crate::disk::{Disk, SECTOR};
use crate::record::Log;
use crate::workload::Random;

pub struct Crash {
    /// The power fails right after this many entries of the log.
    pub entries: usize,
    /// Number of entries up to the last flush before that.
    durable: usize,
    /// For each entry after the flush, which of its sectors reached the disk.
    reached: Vec<(usize, Vec<bool>)>,
    /// Bytes of the log written so far.
    pub log_bytes: u64,
    manner: &'static str,
}

impl Crash {
    /// Draws a moment, near one of some interesting log sizes or anywhere, and the writes that
    /// reached the disk by then.
    pub fn draw(log: &Log, near: &[u64], seed: u64, state: u64) -> Crash {
        let mut random = Random::new(seed ^ state.wrapping_mul(0x9e37_79b9_7f4a_7c15));
        let count = log.entries.len();
        let entries = match random.below(3) {
            0 if !near.is_empty() => {
                let bytes = near[random.below(near.len())];
                let at = log.entries.partition_point(|entry| entry.end <= bytes);
                (at + random.below(4)).min(count)
            }
            _ => 1 + random.below(count),
        };
        let durable = log.entries[..entries]
            .iter()
            .rposition(|entry| entry.is_flush)
            .map_or(0, |flush| flush + 1);
        let manner = [
            "all",
            "none",
            "few",
            "half",
            "most",
            "but the last",
            "only one",
        ][random.below(7)];
        let volatile: Vec<usize> = (durable..entries)
            .filter(|index| !log.entries[*index].bytes.is_empty())
            .collect();
        let one = if volatile.is_empty() {
            0
        } else {
            random.below(volatile.len())
        };
        let mut reached = Vec::new();
        for (order, index) in volatile.iter().enumerate() {
            let whole = match manner {
                "all" => true,
                "none" => false,
                "few" => random.below(8) == 0,
                "half" => random.below(2) == 0,
                "most" => random.below(8) != 0,
                "but the last" => order + 1 < volatile.len(),
                _ => order == one,
            };
            let sectors = log.entries[*index].bytes.len() / SECTOR;
            // One write in eight is torn.
            let torn = random.below(8) == 0;
            reached.push((
                *index,
                (0..sectors)
                    .map(|_| if torn { random.below(2) == 0 } else { whole })
                    .collect(),
            ));
        }
        let log_bytes = entries
            .checked_sub(1)
            .map_or(0, |last| log.entries[last].end);
        Crash {
            entries,
            durable,
            reached,
            log_bytes,
            manner,
        }
    }

    /// Returns the disk after the crash.
    pub fn image(&self, log: &Log) -> Disk {
        let mut disk = log.base.clone();
        for entry in &log.entries[..self.durable] {
            for (sector, bytes) in (entry.sector..).zip(entry.bytes.chunks(SECTOR)) {
                disk.write_sector(sector, bytes);
            }
        }
        for (index, sectors) in &self.reached {
            let entry = &log.entries[*index];
            for ((sector, bytes), reached) in (entry.sector..)
                .zip(entry.bytes.chunks(SECTOR))
                .zip(sectors)
            {
                if *reached {
                    disk.write_sector(sector, bytes);
                }
            }
        }
        disk
    }
}

impl fmt::Display for Crash {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Crash {
            entries,
            durable,
            manner,
            ..
        } = self;
        write!(
            f,
            "behind entry {entries}, {durable} durable, {manner} of the rest"
        )
    }
}
