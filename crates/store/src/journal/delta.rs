//! Decides how a new version of a text is stored: whole, or as a difference to the previous
//! version.
//!
//! A difference is used if it is clearly smaller. Reading a version applies all differences since
//! the last whole text, so their number and total size are bounded (see [`Delta::load`]).

use std::time::{Duration, Instant};

use crate::journal::body::{Body, Cut, splice_size};
use crate::journal::record::RecordOp;

/// Shorter texts are stored whole: the rest of their record is as long.
pub(crate) const SMALL: usize = 1 << 10;
/// The maximum of [`RecordOp::deltas`]: this many differences at most, and fewer large ones.
pub(crate) const MOST: u32 = 64;
/// The time limit of a line diff. If two texts have little in common, the result so far is used.
const PATIENCE: Duration = Duration::from_millis(20);

/// The difference between a text and the previous version.
pub(crate) struct Delta {
    pub cuts: Vec<Cut>,
    pub load: u32,
}

impl RecordOp {
    /// Sets the whole text, stored as a difference if there is one.
    pub(crate) fn with_text(mut self, text: Vec<u8>, delta: Option<Delta>) -> RecordOp {
        match delta {
            Some(Delta { cuts, load }) => {
                self.body = Body::Splice {
                    cuts,
                    whole: Some(text),
                };
                self.deltas = load;
                self
            }
            None => self.with_bytes(text),
        }
    }
}

/// The cuts that turn one text into another; none if either is not UTF-8.
pub(crate) fn difference(before: &[u8], after: &[u8]) -> Option<Vec<Cut>> {
    let (before, after) = (
        std::str::from_utf8(before).ok()?,
        std::str::from_utf8(after).ok()?,
    );
    let start = common_start(before, after);
    let end = common_end(&before[start..], &after[start..]);
    let (old, new) = (
        &before[start..before.len() - end],
        &after[start..after.len() - end],
    );
    let whole = vec![(start as u64, old.len() as u64, new.to_owned())];
    if old == new {
        return Some(Vec::new());
    }
    // Most changes are one edit in one place.
    if old.is_empty() || new.len() <= after.len() / 16 {
        return Some(whole);
    }
    let cuts = by_lines(old, new, start);
    Some(if splice_size(&cuts) < splice_size(&whole) {
        cuts
    } else {
        whole
    })
}

fn by_lines(old: &str, new: &str, start: usize) -> Vec<Cut> {
    let old_lines: Vec<&str> = old.split_inclusive('\n').collect();
    let new_lines: Vec<&str> = new.split_inclusive('\n').collect();
    let deadline = Some(Instant::now() + PATIENCE);
    let mut cuts = Vec::new();
    let mut at = start;
    let length = |lines: &[&str]| lines.iter().map(|line| line.len()).sum::<usize>();
    for op in similar::capture_diff_slices_deadline(
        similar::Algorithm::Myers,
        &old_lines,
        &new_lines,
        deadline,
    ) {
        let cut = length(&old_lines[op.old_range()]);
        if !matches!(op, similar::DiffOp::Equal { .. }) {
            cuts.push((at as u64, cut as u64, new_lines[op.new_range()].concat()));
        }
        at += cut;
    }
    cuts
}

/// The length of the common beginning of two texts, at a character boundary.
fn common_start(a: &str, b: &str) -> usize {
    let pairs = a.bytes().zip(b.bytes());
    let same = pairs.take_while(|(a, b)| a == b).count();
    a.floor_char_boundary(same).min(b.floor_char_boundary(same))
}

/// The length of the common end of two texts, at a character boundary.
fn common_end(a: &str, b: &str) -> usize {
    let pairs = a.bytes().rev().zip(b.bytes().rev());
    let same = pairs.take_while(|(a, b)| a == b).count();
    let rest = |text: &str| text.len() - text.ceil_char_boundary(text.len() - same);
    rest(a).min(rest(b))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::journal::body::splice;

    fn check(before: &str, after: &str) -> usize {
        let cuts = difference(before.as_bytes(), after.as_bytes()).unwrap();
        assert_eq!(
            splice(before.as_bytes(), &cuts).as_deref(),
            Some(after.as_bytes()),
            "{cuts:?}"
        );
        splice_size(&cuts)
    }

    #[test]
    fn a_difference_makes_one_text_of_another() {
        check("", "");
        check("", "new");
        check("old", "");
        check("a\nb\nc\n", "a\nB\nc\n");
        // Characters of several bytes that share some of them.
        check("行一", "行七");
        check("é", "è");
        check("aé", "aéé");
        check("ééé", "éé");
    }

    #[test]
    fn a_difference_anywhere_in_a_long_text_is_found() {
        for at in [0, 1, 1023, 1024, 1025, 3071] {
            let before = "é".repeat(2048);
            let mut after: Vec<char> = before.chars().collect();
            after[at / 2] = 'è';
            let after: String = after.into_iter().collect();
            assert!(check(&before, &after) < 64, "byte {at}");
            check(&before, &before[..before.len() - 2]);
        }
    }

    #[test]
    fn edits_far_apart_cost_what_they_are() {
        let lines: Vec<String> = (0..2000)
            .map(|n| format!("line {n} of a longer text\n"))
            .collect();
        let mut edited = lines.clone();
        edited[3] = "another\n".into();
        edited[1700] = "one more\n".into();
        edited.remove(900);
        assert!(check(&lines.concat(), &edited.concat()) < 200);
    }

    #[test]
    fn texts_with_nothing_in_common_are_compared_in_bounded_time() {
        let lines = |offset: usize| {
            (0..60_000)
                .map(|n| format!("{}\n", n * 7 % 65_537 + offset))
                .collect::<String>()
        };
        check(&lines(0), &lines(100_000));
    }
}
