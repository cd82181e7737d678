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
        Clock(Arc::new(|| Instant { wall_us: micros(rustix::time::ClockId::Realtime), boot_us: micros(rustix::time::ClockId::Boottime) }))
    }

    pub fn from_fn(now: impl Fn() -> Instant + Send + Sync + 'static) -> Clock {
        Clock(Arc::new(now))
    }

    pub fn now(&self) -> Instant {
        (self.0)()
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

/// `2026-11-15T14:00:00.123456Z`.
pub fn render_time(wall_us: i64) -> String {
    jiff::Timestamp::from_microsecond(wall_us).map_or_else(|_| wall_us.to_string(), |t| format!("{t:.6}"))
}

/// `2026-11-15T14:00:00Z`, as memory files tell time.
pub fn render_second(wall_us: i64) -> String {
    jiff::Timestamp::from_microsecond(wall_us).map_or_else(|_| wall_us.to_string(), |t| format!("{t:.0}"))
}

pub fn parse_time(text: &str) -> Option<i64> {
    text.parse::<jiff::Timestamp>().ok().map(|t| t.as_microsecond())
}

/// Names this boot of this machine: what was in memory at another boot is gone.
pub(crate) fn boot_id() -> String {
    std::fs::read_to_string("/proc/sys/kernel/random/boot_id").map(|t| t.trim().replace('-', "")).unwrap_or_else(|_| "unknown".into())
}
