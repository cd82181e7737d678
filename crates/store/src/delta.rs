//! Decides how a new version of a text is stored: whole, or as a difference to the previous
//! version.
//!
//! A difference is used if it is clearly smaller. Reading a version applies all differences since
//! the last whole text, so their number and total size are bounded (see [`Delta::load`]).

use std::time::{Duration, Instant};

use quipu_contract::ProjectPath;

use crate::body::{Body, Cut, splice, splice_size};
use crate::error::{Result, StoreError};
use crate::heads::Head;
use crate::record::{OpKind, RecordOp};
use crate::store::Store;
use crate::version::Version;

/// Shorter texts are stored whole: the rest of their record is as long.
const SMALL: usize = 1 << 10;
/// The maximum of [`RecordOp::deltas`]: this many differences at most, and fewer large ones.
pub(crate) const MOST: u32 = 64;
/// Texts are compared in blocks of this many bytes.
const BLOCK: usize = 1 << 10;
/// The time limit of a line diff. If two texts have little in common, the result so far is used.
const PATIENCE: Duration = Duration::from_millis(20);

/// The difference between a text and the previous version.
pub(crate) struct Delta {
    cuts: Vec<Cut>,
    load: u32,
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

impl Store {
    /// The difference between a text and the newest journalled version; none if the text is to be
    /// stored whole. `known` is the presumed text of that version.
    pub(crate) fn delta(
        &self,
        path: &ProjectPath,
        head: Option<&Head>,
        known: Option<Vec<u8>>,
        after: &[u8],
    ) -> Option<Delta> {
        let head = head.filter(|head| !head.gone && head.seq > 0 && after.len() >= SMALL)?;
        let load = self.load_of(path, head).ok().filter(|load| *load < MOST)?;
        // An external edit can keep the file stat. The text counts only if the version matches.
        let before = match known.filter(|known| Version::of(known) == head.version) {
            Some(known) => known,
            None => self.plain_content(path, head).ok()?,
        };
        let cuts = difference(&before, after)?;
        let size = splice_size(&cuts);
        if size > after.len() / 2 {
            return None;
        }
        let share = u32::try_from(size.saturating_mul(MOST as usize) / after.len()).ok()?;
        let load = load.saturating_add(1).saturating_add(share);
        // Never store a difference that does not reproduce the text.
        (load <= MOST && splice(&before, &cuts)? == after).then_some(Delta { cuts, load })
    }

    /// The load of the differences since the last whole text of a file.
    fn load_of(&self, path: &ProjectPath, head: &Head) -> Result<u32> {
        let mut found = None;
        self.walk(path, head.at, &mut |_, op| {
            found = Some(op.deltas).filter(|_| op.op != OpKind::Append);
            found.is_none()
        })?;
        found.ok_or_else(|| StoreError::Damaged {
            segment: 0,
            line: 0,
            what: format!("no text of `{path}`"),
        })
    }
}

/// The cuts that turn one text into another; none if either is not UTF-8.
fn difference(before: &[u8], after: &[u8]) -> Option<Vec<Cut>> {
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
    let (a_bytes, b_bytes) = (a.as_bytes(), b.as_bytes());
    // Compare block by block, then the rest byte by byte.
    let blocks = a_bytes
        .chunks_exact(BLOCK)
        .zip(b_bytes.chunks_exact(BLOCK))
        .take_while(|(a, b)| a == b)
        .count()
        * BLOCK;
    let same = blocks
        + a_bytes[blocks..]
            .iter()
            .zip(&b_bytes[blocks..])
            .take_while(|(a, b)| a == b)
            .count();
    (0..=same)
        .rev()
        .find(|at| a.is_char_boundary(*at) && b.is_char_boundary(*at))
        .unwrap_or(0)
}

/// The length of the common end of two texts.
fn common_end(a: &str, b: &str) -> usize {
    let (a_bytes, b_bytes) = (a.as_bytes(), b.as_bytes());
    let blocks = a_bytes
        .rchunks_exact(BLOCK)
        .zip(b_bytes.rchunks_exact(BLOCK))
        .take_while(|(a, b)| a == b)
        .count()
        * BLOCK;
    let (a_rest, b_rest) = (&a_bytes[..a.len() - blocks], &b_bytes[..b.len() - blocks]);
    let same = blocks
        + a_rest
            .iter()
            .rev()
            .zip(b_rest.iter().rev())
            .take_while(|(a, b)| a == b)
            .count();
    let is_boundary = |length: &usize| {
        a.is_char_boundary(a.len() - length) && b.is_char_boundary(b.len() - length)
    };
    (0..=same).rev().find(is_boundary).unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::*;

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
    fn a_difference_beside_the_edge_of_a_block_is_found() {
        for at in [0, 1, BLOCK - 1, BLOCK, BLOCK + 1, 3 * BLOCK - 1] {
            let before = "é".repeat(2 * BLOCK);
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
