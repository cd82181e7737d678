//! Time, injected so that tests can control it.
//!
//! It also renders and parses the times of records, and identifies the boot. Expiry of leases is
//! decided in `leases.rs`.

use std::fmt;
use std::sync::Arc;

/// A point in time: wall-clock microseconds since 1970, and a clock of this boot that never jumps.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Instant {
    pub wall_us: i64,
    /// Microseconds since boot, including sleep.
    pub boot_us: i64,
}

/// The source of the time.
#[derive(Clone)]
pub struct Clock(Arc<dyn Fn() -> Instant + Send + Sync>);

impl Clock {
    pub fn system() -> Clock {
        Clock(Arc::new(|| Instant {
            wall_us: micros(rustix::time::ClockId::Realtime),
            boot_us: micros(rustix::time::ClockId::Boottime),
        }))
    }

    pub fn from_fn(now: impl Fn() -> Instant + Send + Sync + 'static) -> Clock {
        Clock(Arc::new(now))
    }

    pub fn now(&self) -> Instant {
        (self.0)()
    }
}

/// If the clock was set back by less than this, records keep the last time until the clock catches
/// up, so that times in the journal stay in order. A time further ahead was written while the clock
/// was wrong and is ignored.
pub(crate) const AHEAD_US: i64 = 60_000_000;

/// The time of a record that follows another one. Records are ordered by number, so a time far
/// ahead of the clock does not hold back the times of all later records.
pub(crate) fn next_time(now_us: i64, before_us: i64) -> i64 {
    if before_us.saturating_sub(now_us) > AHEAD_US {
        now_us
    } else {
        now_us.max(before_us)
    }
}

impl fmt::Debug for Clock {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Clock")
    }
}

fn micros(clock: rustix::time::ClockId) -> i64 {
    let time = rustix::time::clock_gettime(clock);
    time.tv_sec * 1_000_000 + time.tv_nsec / 1_000
}

/// `2026-11-15T14:00:00.123456Z`, the format in records.
pub fn render_time(wall_us: i64) -> String {
    jiff::Timestamp::from_microsecond(wall_us)
        .map_or_else(|_| wall_us.to_string(), |t| format!("{t:.6}"))
}

/// `2026-11-15T14:00:00Z`, the format in memory files.
pub fn render_second(wall_us: i64) -> String {
    jiff::Timestamp::from_microsecond(wall_us)
        .map_or_else(|_| wall_us.to_string(), |t| format!("{t:.0}"))
}

pub fn parse_time(text: &str) -> Option<i64> {
    let time = text.parse::<jiff::Timestamp>().ok()?;
    Some(time.as_microsecond())
}

/// Identifies this boot of this machine. Unsynced data of another boot may be lost.
pub(crate) fn boot_id() -> String {
    std::fs::read_to_string("/proc/sys/kernel/random/boot_id")
        .map(|t| t.trim().replace('-', ""))
        .unwrap_or_else(|_| "unknown".into())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_are_rendered_with_microseconds_and_parsed_again() {
        for wall_us in [-1, 0, 999_999, 951_782_400_000_000, 1_794_753_172_578_503] {
            assert_eq!(parse_time(&render_time(wall_us)), Some(wall_us));
        }
        assert_eq!(render_time(1_000_000), "1970-01-01T00:00:01.000000Z");
        assert_eq!(render_time(i64::MAX), i64::MAX.to_string());
        assert_eq!(parse_time("2026-02-29T14:00:00Z"), None);
    }
}
