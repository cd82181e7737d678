//! Time, injected so that tests can turn it back.

use std::fmt;
use std::sync::Arc;

/// A moment: wall-clock microseconds since 1970, and a clock of this boot that never jumps.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Instant {
    pub wall_us: i64,
    /// Microseconds since boot, sleep included.
    pub boot_us: i64,
}

/// Where the time comes from.
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

/// A clock that is set back by less than this is waited for: times in the journal stay in order.
/// What is further ahead was written while the clock was wrong, and is left alone.
pub(crate) const AHEAD_US: i64 = 60_000_000;

/// The time of a record that follows one of another time. Numbers tell the order of records, so a
/// time that lies far ahead of the clock does not hold back the times of all later records.
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

/// `2026-11-15T14:00:00.123456Z`, as records tell time.
pub fn render_time(wall_us: i64) -> String {
    jiff::Timestamp::from_microsecond(wall_us)
        .map_or_else(|_| wall_us.to_string(), |t| format!("{t:.6}"))
}

/// `2026-11-15T14:00:00Z`, as memory files tell time.
pub fn render_second(wall_us: i64) -> String {
    jiff::Timestamp::from_microsecond(wall_us)
        .map_or_else(|_| wall_us.to_string(), |t| format!("{t:.0}"))
}

pub fn parse_time(text: &str) -> Option<i64> {
    let time = text.parse::<jiff::Timestamp>().ok()?;
    Some(time.as_microsecond())
}

/// Names this boot of this machine: what was in memory at another boot is gone.
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
