//! Counts o200k_base tokens by byte pair encoding.
//!
//! The pair with the lowest rank merges first, until none is left. The remaining parts are the
//! tokens. Short pieces scan for the lowest rank and long ones use a heap, so no input takes
//! quadratic time. A small thread-local cache holds the counts of frequent short pieces.

use std::cell::RefCell;
use std::cmp::Reverse;
use std::collections::BinaryHeap;

use super::pieces::each_piece;
use super::table::{NO_MERGE, SAFE, byte_rank, class_byte, pair_rank};

/// The maximum length of cached pieces: their bytes and length fit one `u128`.
const REMEMBERED_BYTES: usize = 15;

/// Cached pieces per thread (256 KB). A newer piece replaces an older one.
const REMEMBERED: usize = 8192;

/// From this number of parts on, a heap is faster than a scan.
const HEAP_PARTS: usize = 160;

/// Returns the number of tokens in `text`.
pub(crate) fn count(text: &str) -> u64 {
    thread_local!(static MERGER: RefCell<Merger> = RefCell::new(Merger::new()));
    MERGER.with_borrow_mut(|merger| {
        let mut total = 0;
        each_piece(text, |piece| total += merger.count(piece));
        total
    })
}

struct Merger {
    memory: Vec<(u128, u64)>,
    ranks: Vec<u32>,
    pairs: Vec<u32>,
}

impl Merger {
    fn new() -> Self {
        Self {
            memory: vec![(0, 0); REMEMBERED],
            ranks: Vec::new(),
            pairs: Vec::new(),
        }
    }

    #[inline]
    fn count(&mut self, piece: &str) -> u64 {
        match piece.len() {
            1 => return 1,
            2..=REMEMBERED_BYTES => {}
            _ => return self.merge(piece),
        }
        let mut bytes = [0u8; 16];
        bytes[..piece.len()].copy_from_slice(piece.as_bytes());
        bytes[15] = piece.len() as u8;
        let key = u128::from_le_bytes(bytes);
        let folded = (key as u64) ^ ((key >> 64) as u64).rotate_left(23);
        let slot = (folded.wrapping_mul(0x9E37_79B9_7F4A_7C15) >> 51) as usize % REMEMBERED;
        if self.memory[slot].0 == key {
            return self.memory[slot].1;
        }
        let count = self.merge(piece);
        self.memory[slot] = (key, count);
        count
    }

    fn merge(&mut self, piece: &str) -> u64 {
        self.ranks.clear();
        if !piece.is_ascii() && piece.chars().all(|c| class_byte(c) & SAFE != 0) {
            for c in piece.chars() {
                self.push_char(c);
            }
        } else {
            self.ranks.extend(piece.bytes().map(byte_rank));
        }
        if self.ranks.len() > HEAP_PARTS {
            merge_with_heap(&self.ranks)
        } else {
            self.merge_by_scan()
        }
    }

    /// Pushes a character after merging its own bytes.
    fn push_char(&mut self, c: char) {
        let mut buffer = [0; 4];
        match c.encode_utf8(&mut buffer).as_bytes() {
            &[a, b, c] => {
                let (a, b, c) = (byte_rank(a), byte_rank(b), byte_rank(c));
                let (front, back) = (pair_rank(a, b), pair_rank(b, c));
                let (first, second) = match front <= back {
                    true if front == NO_MERGE => {
                        self.ranks.extend([a, b, c]);
                        return;
                    }
                    true => (front, c),
                    false => (a, back),
                };
                match pair_rank(first, second) {
                    NO_MERGE => self.ranks.extend([first, second]),
                    whole => self.ranks.push(whole),
                }
            }
            bytes => self.ranks.extend(bytes.iter().map(|&byte| byte_rank(byte))),
        }
    }

    fn merge_by_scan(&mut self) -> u64 {
        let Self { ranks, pairs, .. } = self;
        pairs.clear();
        pairs.extend(ranks.windows(2).map(|pair| pair_rank(pair[0], pair[1])));
        loop {
            let lowest = pairs.iter().copied().min().unwrap_or(NO_MERGE);
            if lowest == NO_MERGE {
                return ranks.len() as u64;
            }
            let Some(at) = pairs.iter().position(|&rank| rank == lowest) else {
                return ranks.len() as u64;
            };
            ranks[at] = lowest;
            ranks.remove(at + 1);
            pairs.remove(at);
            if at > 0 {
                pairs[at - 1] = pair_rank(ranks[at - 1], lowest);
            }
            if at < pairs.len() {
                pairs[at] = pair_rank(lowest, ranks[at + 1]);
            }
        }
    }
}

/// Merges with a heap of candidates. Outdated candidates are recognised by their ranks and dropped.
fn merge_with_heap(initial: &[u32]) -> u64 {
    const GONE: u32 = u32::MAX;
    let mut ranks = initial.to_vec();
    let mut next: Vec<usize> = (1..=ranks.len()).collect();
    let mut previous: Vec<usize> = (0..ranks.len()).map(|at| at.wrapping_sub(1)).collect();
    let mut left = ranks.len() as u64;
    let mut heap = BinaryHeap::new();
    let candidate = |ranks: &[u32], at: usize, right: usize| {
        let rank = pair_rank(ranks[at], ranks[right]);
        (rank != NO_MERGE).then_some(Reverse((rank, at)))
    };
    for at in 1..ranks.len() {
        heap.extend(candidate(&ranks, at - 1, at));
    }
    while let Some(Reverse((rank, at))) = heap.pop() {
        let right = next[at];
        if ranks[at] == GONE || right >= ranks.len() || pair_rank(ranks[at], ranks[right]) != rank {
            continue;
        }
        ranks[at] = rank;
        ranks[right] = GONE;
        next[at] = next[right];
        if next[at] < ranks.len() {
            previous[next[at]] = at;
            heap.extend(candidate(&ranks, at, next[at]));
        }
        if previous[at] < ranks.len() {
            heap.extend(candidate(&ranks, previous[at], at));
        }
        left -= 1;
    }
    left
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// Merges bytes one pair at a time, without optimisations.
    fn plainly(piece: &str) -> u64 {
        let mut ranks: Vec<u32> = piece.bytes().map(byte_rank).collect();
        loop {
            let best = (1..ranks.len())
                .map(|at| (pair_rank(ranks[at - 1], ranks[at]), at))
                .min()
                .filter(|best| best.0 != NO_MERGE);
            let Some((rank, at)) = best else {
                return ranks.len() as u64;
            };
            ranks[at - 1] = rank;
            ranks.remove(at);
        }
    }

    proptest! {
        #[test]
        fn every_shortcut_agrees_with_plain_merging(
            piece in "[a-z一-龥彩神天ぁ-んА-я가-힣ก-๛ ，。！、\u{300}😀-😎]{1,40}"
        ) {
            let expected = plainly(&piece);
            prop_assert_eq!(Merger::new().merge(&piece), expected);
            let bytes: Vec<u32> = piece.bytes().map(byte_rank).collect();
            prop_assert_eq!(merge_with_heap(&bytes), expected);
        }
    }

    #[test]
    fn remembered_counts_are_the_merged_ones() {
        let mut merger = Merger::new();
        for piece in [" hello", " hello", "ab", "ba", " hellos"] {
            assert_eq!(merger.count(piece), plainly(piece), "{piece}");
        }
    }

    #[test]
    fn huge_pieces_are_not_quadratic() {
        // A quadratic merge of half a megabyte would take minutes.
        assert!(count(&"ab".repeat(250_000)) > 10_000);
        assert!(count(&" ".repeat(500_000)) > 1_000);
    }
}
