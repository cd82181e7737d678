//! Unique ids for commits and leases. Processes need no coordination for them.

/// A UUID of version 7: ordered by time, otherwise random.
pub(crate) fn commit_id(wall_us: i64) -> String {
    let millis = u64::try_from(wall_us / 1000).unwrap_or(0);
    uuid::Builder::from_unix_timestamp_millis(millis, &fresh_bytes())
        .into_uuid()
        .to_string()
}

/// A short random id.
pub(crate) fn short_id() -> String {
    fresh_bytes()[..6]
        .iter()
        .map(|byte| format!("{byte:02x}"))
        .collect()
}

/// Ten bytes that are unique across processes and calls.
pub fn fresh_bytes() -> [u8; 10] {
    // Two bytes of a random UUID are not entirely random: they hold its version and its variant.
    let drawn = blake3::hash(uuid::Uuid::new_v4().as_bytes());
    let mut bytes = [0; 10];
    bytes.copy_from_slice(&drawn.as_bytes()[..10]);
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
