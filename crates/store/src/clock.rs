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

/// `2026-11-15T14:00:00.123456Z`. Every commit asks: the years of four digits are written without a
/// calendar's generality.
pub fn render_time(wall_us: i64) -> String {
    const DAY: i64 = 86_400_000_000;
    let (year, month, day) = civil(wall_us.div_euclid(DAY));
    let within = wall_us.rem_euclid(DAY);
    if (1..=9998).contains(&year) {
        let mut text = *b"0000-00-00T00:00:00.000000Z";
        let fields = [
            (0, 4, year),
            (5, 7, month),
            (8, 10, day),
            (11, 13, within / 3_600_000_000),
            (14, 16, within / 60_000_000 % 60),
        ];
        for (from, to, value) in fields.into_iter().chain([
            (17, 19, within / 1_000_000 % 60),
            (20, 26, within % 1_000_000),
        ]) {
            let mut value = value;
            for digit in text[from..to].iter_mut().rev() {
                *digit = b'0' + u8::try_from(value % 10).unwrap_or_default();
                value /= 10;
            }
        }
        return std::str::from_utf8(&text).unwrap_or_default().to_owned();
    }
    jiff::Timestamp::from_microsecond(wall_us)
        .map_or_else(|_| wall_us.to_string(), |t| format!("{t:.6}"))
}

/// `2026-11-15T14:00:00Z`, as memory files tell time.
pub fn render_second(wall_us: i64) -> String {
    jiff::Timestamp::from_microsecond(wall_us)
        .map_or_else(|_| wall_us.to_string(), |t| format!("{t:.0}"))
}

/// Year, month and day of a day counted from 1970, by the Gregorian calendar (Howard Hinnant's
/// `civil_from_days`).
fn civil(day: i64) -> (i64, i64, i64) {
    // Counted from 1 March of the year 0, so that a leap day is the last of its year.
    let day = day + 719_468;
    let (era, of_era) = (day.div_euclid(146_097), day.rem_euclid(146_097));
    let year = (of_era - of_era / 1460 + of_era / 36_524 - of_era / 146_096) / 365;
    let of_year = of_era - (365 * year + year / 4 - year / 100);
    let month = (5 * of_year + 2) / 153;
    let day = of_year - (153 * month + 2) / 5 + 1;
    let month = if month < 10 { month + 3 } else { month - 9 };
    (year + era * 400 + i64::from(month <= 2), month, day)
}

pub fn parse_time(text: &str) -> Option<i64> {
    as_rendered(text).or_else(|| {
        text.parse::<jiff::Timestamp>()
            .ok()
            .map(|t| t.as_microsecond())
    })
}

/// A time in the very form of [`render_time`]: every record is read so, and what else a time may
/// look like costs ten times as much.
fn as_rendered(text: &str) -> Option<i64> {
    let text: &[u8; 27] = text.as_bytes().try_into().ok()?;
    let marks = [
        (4, b'-'),
        (7, b'-'),
        (10, b'T'),
        (13, b':'),
        (16, b':'),
        (19, b'.'),
        (26, b'Z'),
    ];
    if marks.iter().any(|(at, mark)| text[*at] != *mark) {
        return None;
    }
    let number = |from: usize, to: usize| {
        let digits = text[from..to].iter();
        digits
            .clone()
            .all(u8::is_ascii_digit)
            .then(|| digits.fold(0, |number, digit| number * 10 + i32::from(digit - b'0')))
    };
    let short = |from: usize| i8::try_from(number(from, from + 2)?).ok();
    let (year, micros) = (i16::try_from(number(0, 4)?).ok()?, number(20, 26)?);
    let time = jiff::civil::DateTime::new(
        year,
        short(5)?,
        short(8)?,
        short(11)?,
        short(14)?,
        short(17)?,
        micros * 1000,
    )
    .ok()?;
    jiff::tz::Offset::UTC
        .to_timestamp(time)
        .ok()
        .map(|time| time.as_microsecond())
}

/// Stands for a boot where the kernel does not tell which it is.
pub(crate) const UNKNOWN_BOOT: &str = "unknown";

/// Names this boot of this machine: what was in memory at another boot is gone.
pub(crate) fn boot_id() -> String {
    std::fs::read_to_string("/proc/sys/kernel/random/boot_id")
        .map(|t| t.trim().replace('-', ""))
        .unwrap_or_else(|_| UNKNOWN_BOOT.into())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_are_written_as_the_calendar_says() {
        let edges = [
            -1,
            0,
            1,
            999_999,
            951_782_399_999_999,
            951_782_400_000_000,
            253_370_764_799_999_999,
            253_370_764_800_000_000,
            -62_135_596_800_000_000,
        ];
        // Some 41 days apart, and never at the same time of day.
        let all = (-62_135_596_800_000_000..253_402_207_200_000_000).step_by(3_600_000_123_457);
        for wall_us in edges.into_iter().chain(all) {
            let calendar = jiff::Timestamp::from_microsecond(wall_us)
                .map(|t| format!("{t:.6}"))
                .unwrap();
            assert_eq!(render_time(wall_us), calendar, "{wall_us}");
            assert_eq!(parse_time(&calendar), Some(wall_us), "{calendar}");
        }
        assert_eq!(render_time(i64::MAX), i64::MAX.to_string());
    }

    #[test]
    fn times_are_read_as_the_calendar_says_whatever_they_look_like() {
        let times = [
            "2026-11-15T14:00:00.123456Z",
            "2026-11-15T14:00:60.123456Z",
            "2026-11-15t14:00:00.123456z",
            "2026-11-15 14:00:00.123456Z",
            "2026-02-29T14:00:00.123456Z",
            "2024-02-29T14:00:00.123456Z",
            "2026-13-15T14:00:00.123456Z",
            "2026-11-15T25:00:00.123456Z",
            "2026-11-15T14:00:00.12345+Z",
            "2026-11-15T14:00:00.1234567Z",
            "2026-11-15T14:00:00Z",
            "+026-11-15T14:00:00.123456Z",
            "０026-11-15T14:00:00.1234Z",
            "",
        ];
        for text in times {
            let calendar = text
                .parse::<jiff::Timestamp>()
                .ok()
                .map(|time| time.as_microsecond());
            assert_eq!(parse_time(text), calendar, "{text}");
        }
    }
}
