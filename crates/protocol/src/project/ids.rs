//! Generates ids for todos, decisions and delegations that are unique across processes and clones.
//!
//! `TODO-261115-k7q2m`: the date, so that ids sort by time, plus five random characters. There is
//! no counter, so no coordination is needed.

use jiff::Timestamp;

/// Digits and letters without those that are easily confused.
const LETTERS: &[u8; 32] = b"0123456789abcdefghjkmnpqrstvwxyz";
const CHANCE: usize = 5;

/// Generates an id that is not taken.
pub fn fresh_name(prefix: &str, now: Timestamp, taken: impl Fn(&str) -> bool) -> String {
    let day = now
        .to_zoned(jiff::tz::TimeZone::UTC)
        .strftime("%y%m%d")
        .to_string();
    loop {
        let bytes = quipu_store::fresh_bytes();
        let chance: String = bytes[..CHANCE]
            .iter()
            .map(|b| char::from(LETTERS[usize::from(b & 31)]))
            .collect();
        let name = format!("{prefix}-{day}-{chance}");
        if !taken(&name) {
            return name;
        }
    }
}

/// Resolves an id: an exact match, or the only id that ends in `-asked`.
pub fn find_name<'n>(names: impl Iterator<Item = &'n str> + Clone, asked: &str) -> Option<&'n str> {
    if let Some(same) = names.clone().find(|name| name.eq_ignore_ascii_case(asked)) {
        return Some(same);
    }
    let mut ending = names.filter(|name| {
        name.rsplit_once('-')
            .is_some_and(|(_, end)| end.eq_ignore_ascii_case(asked))
    });
    ending.next().filter(|_| ending.next().is_none())
}

/// The displayed form of an id: the ending of a generated id if it is unique, else the whole id.
pub fn short_name<'n, 'i>(names: impl Iterator<Item = &'n str>, id: &'i str) -> &'i str {
    let Some((head, ending)) = id.rsplit_once('-') else {
        return id;
    };
    let day = head.rsplit_once('-').map_or("", |(_, day)| day);
    let is_generated =
        ending.len() == CHANCE && day.len() == 6 && day.bytes().all(|b| b.is_ascii_digit());
    let ends_so = |name: &&str| {
        name.rsplit_once('-')
            .map_or(*name, |(_, end)| end)
            .eq_ignore_ascii_case(ending)
    };
    if is_generated && names.filter(ends_so).count() <= 1 {
        ending
    } else {
        id
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_differ_and_sort() {
        let now: Timestamp = "2026-11-15T14:00:00Z".parse().unwrap();
        let names: std::collections::BTreeSet<String> = (0..1000)
            .map(|_| fresh_name("TODO", now, |_| false))
            .collect();
        assert!(names.len() > 995, "{}", names.len());
        assert!(names.iter().all(|n| n.starts_with("TODO-261115-")));
    }

    #[test]
    fn an_ending_is_enough() {
        let names = ["TODO-001", "TODO-261115-k7q2m", "X-k7q2m"];
        assert_eq!(find_name(names.into_iter(), "todo-001"), Some("TODO-001"));
        assert_eq!(find_name(names.into_iter(), "001"), Some("TODO-001"));
        assert_eq!(find_name(names.into_iter(), "k7q2m"), None);
        assert_eq!(find_name(names.into_iter(), "nope"), None);
        assert_eq!(short_name(names.into_iter(), "TODO-001"), "TODO-001");
        assert_eq!(
            short_name(names.into_iter(), "TODO-261115-k7q2m"),
            "TODO-261115-k7q2m"
        );
        assert_eq!(
            short_name(names[..2].iter().copied(), "TODO-261115-k7q2m"),
            "k7q2m"
        );
    }
}
