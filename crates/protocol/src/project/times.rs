//! Formats and parses times, as in memory files and as typed by people.
//!
//! All times are printed in UTC.

use jiff::{SignedDuration, Timestamp};
use quipu_store::Store;

/// The time of the store's clock.
pub fn now(store: &Store) -> Timestamp {
    Timestamp::from_microsecond(store.now().wall_us).unwrap_or(Timestamp::UNIX_EPOCH)
}

/// Formats as `2026-11-15T14:00:00Z`.
pub fn render_moment(moment: Timestamp) -> String {
    format!("{moment:.0}")
}

pub fn render_date(moment: Timestamp) -> String {
    moment
        .to_zoned(jiff::tz::TimeZone::UTC)
        .strftime("%Y-%m-%d")
        .to_string()
}

/// Parses a time with any offset, or a date (its start in UTC).
pub fn parse_moment(text: &str) -> Option<Timestamp> {
    let text = text.trim();
    text.parse()
        .ok()
        .or_else(|| format!("{text}T00:00:00Z").parse().ok())
}

/// Parses a time, a date, or a duration from now: `30m`, `2h`, `3d`.
pub fn parse_deadline(text: &str, now: Timestamp) -> Option<Timestamp> {
    let number = |unit: &str| {
        text.strip_suffix(unit)
            .and_then(|digits| digits.parse::<i64>().ok())
    };
    let minutes = number("m")
        .or_else(|| number("h").map(|h| h * 60))
        .or_else(|| number("d").map(|d| d * 24 * 60));
    match minutes {
        Some(minutes) if minutes >= 0 => now.checked_add(SignedDuration::from_mins(minutes)).ok(),
        _ => parse_moment(text),
    }
}

/// Hours between two times, never negative.
pub fn hours_between(earlier: Timestamp, later: Timestamp) -> i64 {
    later.duration_since(earlier).as_hours().max(0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn deadlines_are_read() {
        let now: Timestamp = "2026-11-15T14:00:00Z".parse().unwrap();
        for (text, told) in [
            ("30m", "2026-11-15T14:30:00Z"),
            ("2h", "2026-11-15T16:00:00Z"),
            ("1d", "2026-11-16T14:00:00Z"),
            ("2026-12-01", "2026-12-01T00:00:00Z"),
            ("2026-12-01T10:00:00+08:00", "2026-12-01T02:00:00Z"),
        ] {
            assert_eq!(render_moment(parse_deadline(text, now).unwrap()), told);
        }
        assert!(parse_deadline("soon", now).is_none());
    }
}
