//! Crash states: everything up to a flush, and of what was written after it any subset, in part torn.

use std::fmt;

use crate::disk::{Disk, SECTOR};
use crate::record::Recording;
use crate::workload::Random;

pub struct Crash {
    /// The power goes right behind this many entries of the log.
    pub entries: usize,
    /// The entries up to the last flush before that.
    durable: usize,
    /// Of each entry behind the flush, which of its sectors reached the disk.
    reached: Vec<(usize, Vec<bool>)>,
    /// Commands that had been acknowledged.
    pub acked: usize,
    manner: &'static str,
}

impl Crash {
    pub fn draw(recording: &Recording, seed: u64, state: u64) -> Crash {
        let mut random = Random::new(seed ^ state.wrapping_mul(0x9e37_79b9_7f4a_7c15));
        let count = recording.entries.len();
        // Most moments are near an acknowledgement or a flush; the others are anywhere.
        let entries = match random.below(3) {
            0 => {
                let ack = &recording.acks[random.below(recording.acks.len())];
                let at = recording.entries.partition_point(|entry| entry.end <= ack.log_bytes);
                (at + random.below(4)).min(count)
            }
            _ => 1 + random.below(count),
        };
        let durable = recording.entries[..entries].iter().rposition(|entry| entry.is_flush).map_or(0, |flush| flush + 1);
        let manner = ["all", "none", "few", "half", "most", "but the last", "only one"][random.below(7)];
        let volatile: Vec<usize> = (durable..entries).filter(|index| !recording.entries[*index].bytes.is_empty()).collect();
        let one = if volatile.is_empty() { 0 } else { random.below(volatile.len()) };
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
            let sectors = recording.entries[*index].bytes.len() / SECTOR;
            // One write in eight is torn.
            let torn = random.below(8) == 0;
            reached.push((*index, (0..sectors).map(|_| if torn { random.below(2) == 0 } else { whole }).collect()));
        }
        let log_bytes = entries.checked_sub(1).map_or(0, |last| recording.entries[last].end);
        let acked = recording.acks.partition_point(|ack| ack.log_bytes <= log_bytes);
        Crash { entries, durable, reached, acked, manner }
    }

    /// The disk that is left.
    pub fn image(&self, recording: &Recording) -> Disk {
        let mut disk = recording.base.clone();
        for entry in &recording.entries[..self.durable] {
            for (sector, bytes) in (entry.sector..).zip(entry.bytes.chunks(SECTOR)) {
                disk.write_sector(sector, bytes);
            }
        }
        for (index, sectors) in &self.reached {
            let entry = &recording.entries[*index];
            for ((sector, bytes), reached) in (entry.sector..).zip(entry.bytes.chunks(SECTOR)).zip(sectors) {
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
        let Crash { entries, durable, acked, manner, .. } = self;
        write!(f, "behind entry {entries}, {durable} durable, {manner} of the rest, {acked} commands acknowledged")
    }
}
