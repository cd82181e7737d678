//! Unique ids for commits and leases.
//!
//! Processes need no coordination for them, and a new id needs no system call after the first.

use std::sync::OnceLock;
use std::sync::atomic::{AtomicU64, Ordering};

/// A UUID of version 7: ordered by time, otherwise random. Each process draws randomness once and
/// expands it, so that a commit needs no system call for it.
pub(crate) fn commit_id(wall_us: i64) -> String {
    uuid::Builder::from_unix_timestamp_millis(u64::try_from(wall_us / 1000).unwrap_or(0), &random())
        .into_uuid()
        .to_string()
}

/// A short random id.
pub(crate) fn short_id() -> String {
    random()[..6]
        .iter()
        .map(|byte| format!("{byte:02x}"))
        .collect()
}

/// Ten bytes that are unique across processes and calls.
pub fn fresh_bytes() -> [u8; 10] {
    random()
}

fn random() -> [u8; 10] {
    static SEED: OnceLock<[u8; 32]> = OnceLock::new();
    static NEXT: AtomicU64 = AtomicU64::new(0);
    let seed = SEED.get_or_init(|| {
        let drawn = [uuid::Uuid::now_v7(), uuid::Uuid::now_v7()];
        *blake3::hash(&[drawn[0].as_bytes().as_slice(), drawn[1].as_bytes()].concat()).as_bytes()
    });
    let stretched = blake3::keyed_hash(seed, &NEXT.fetch_add(1, Ordering::Relaxed).to_le_bytes());
    let mut bytes = [0; 10];
    bytes.copy_from_slice(&stretched.as_bytes()[..10]);
    bytes
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_differ_within_one_moment() {
        let ids: std::collections::BTreeSet<String> = (0..1000)
            .flat_map(|_| [commit_id(1_000_000), short_id()])
            .collect();
        assert_eq!(ids.len(), 2000);
        assert!(commit_id(2_000_000) > commit_id(1_000_000));
    }
}
