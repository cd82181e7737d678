//! Estimates o200k_base token counts from pairs of byte classes.
//!
//! Every byte adds a weight that depends on its class and on the class of the previous byte: a
//! letter after a space starts a word, a dash after a dash rarely costs a token, and the second
//! byte of a Han character indicates how common it is. `examples/calibrate.rs` fits the weights,
//! which are in `data/estimate.bin`. `compare` measures their error. One table lookup per byte
//! keeps the cost far below a microsecond per kilobyte.

use super::{Counter, Tokens};

/// The maximum number of byte classes. A power of two, so that the index of a pair is a shift.
pub const CLASSES: usize = 64;

/// Weights are in this fraction of a token.
pub const UNIT: u64 = 16_384;

static WEIGHTS: [u16; CLASSES * CLASSES] = weights(include_bytes!("../../data/estimate.bin"));

static CLASS: [u8; 256] = classes();

/// The assumed byte before the first.
const START: u8 = b'\n';

/// Returns the index of a pair of adjacent bytes in the weights.
#[inline]
pub fn pair_index(before: u8, byte: u8) -> usize {
    usize::from(CLASS[usize::from(before)]) * CLASSES + usize::from(CLASS[usize::from(byte)])
}

/// Returns the indices of all pairs of a text.
pub fn pair_indices(text: &str) -> impl Iterator<Item = usize> {
    let before = std::iter::once(START).chain(text.bytes());
    before
        .zip(text.bytes())
        .map(|(before, byte)| pair_index(before, byte))
}

pub(crate) fn estimate(text: &str) -> u64 {
    let mut sum = 0u64;
    let mut before = CLASS[usize::from(START)];
    // Blocks keep the inner sum in 32 bits. The mask lets the compiler remove bounds checks.
    for block in text.as_bytes().chunks(32_768) {
        let mut part = 0u32;
        for &byte in block {
            let class = CLASS[usize::from(byte)];
            let pair = usize::from(before) << 6 | usize::from(class);
            part += u32::from(WEIGHTS[pair & (CLASSES * CLASSES - 1)]);
            before = class;
        }
        sum += u64::from(part);
    }
    (sum + UNIT / 2) / UNIT + u64::from(!text.is_empty() && sum < UNIT / 2)
}

const fn weights(bytes: &[u8; CLASSES * CLASSES * 2]) -> [u16; CLASSES * CLASSES] {
    let mut table = [0; CLASSES * CLASSES];
    let mut at = 0;
    while at < table.len() {
        table[at] = u16::from_le_bytes([bytes[at * 2], bytes[at * 2 + 1]]);
        at += 1;
    }
    table
}

/// Groups bytes that behave alike in the vocabulary.
const fn classes() -> [u8; 256] {
    let mut table = [0u8; 256];
    let mut byte = 0;
    while byte < 256 {
        table[byte] = match byte as u8 {
            b'a' | b'e' | b'i' | b'o' | b'u' => 1,
            b'j' | b'q' | b'x' | b'z' | b'k' | b'v' => 2,
            b'a'..=b'z' => 3,
            b'A' | b'E' | b'I' | b'O' | b'U' => 4,
            b'A'..=b'Z' => 5,
            b'0'..=b'9' => 6,
            b' ' => 7,
            b'\n' => 8,
            b'\r' => 9,
            b'\t' => 10,
            b'.' => 11,
            b',' => 12,
            b':' | b';' => 13,
            b'!' | b'?' => 14,
            b'"' => 15,
            b'\'' => 16,
            b'`' => 17,
            b'(' | b'[' | b'{' => 18,
            b')' | b']' | b'}' => 19,
            b'<' | b'>' => 20,
            b'/' | b'\\' => 21,
            b'_' => 22,
            b'-' => 23,
            b'=' => 24,
            b'*' | b'#' | b'~' => 25,
            b'|' => 26,
            0x80..=0x8F => 27,
            0x90..=0x9F => 28,
            0xA0..=0xAF => 29,
            0xB0..=0xBF => 30,
            0xC2..=0xC3 => 31,
            0xC4..=0xDF => 32,
            0xE0..=0xE1 => 33,
            0xE2 => 34,
            0xE3 => 35,
            0xE4 => 36,
            0xE5 => 37,
            0xE6 => 38,
            0xE7 => 39,
            0xE8 => 40,
            0xE9 => 41,
            0xEA..=0xED => 42,
            0xEE..=0xEF => 43,
            0xF0..=0xFF => 44,
            _ => 0,
        };
        byte += 1;
    }
    table
}

/// The error of the estimate.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Comparison {
    pub exact: Tokens,
    pub estimate: Tokens,
    /// The mean absolute error over the chunks, in per cent.
    pub mean_error: f64,
    /// The largest error of a chunk, in per cent.
    pub worst_error: f64,
}

/// Compares both counters on a text, as a whole and in chunks of about `chunk` bytes.
pub fn compare(text: &str, chunk: usize) -> Comparison {
    let (mut sum, mut worst, mut count) = (0.0, 0.0f64, 0u32);
    for part in chunks(text, chunk) {
        let exact = Counter::O200k.count(part).0 as f64;
        let error = (Counter::Estimate.count(part).0 as f64 / exact - 1.0).abs() * 100.0;
        sum += error;
        worst = worst.max(error);
        count += 1;
    }
    Comparison {
        exact: Counter::O200k.count(text),
        estimate: Counter::Estimate.count(text),
        mean_error: sum / f64::from(count.max(1)),
        worst_error: worst,
    }
}

/// Splits a text at line ends (or at characters, if there are none) into chunks of at least `size`
/// bytes.
pub fn chunks(text: &str, size: usize) -> impl Iterator<Item = &str> {
    let mut rest = text;
    std::iter::from_fn(move || {
        if rest.is_empty() {
            return None;
        }
        let from = rest.ceil_char_boundary(size.max(1));
        let near = rest.ceil_char_boundary(size.max(1) * 2);
        let end =
            memchr::memchr(b'\n', &rest.as_bytes()[from..near]).map_or(near, |at| from + at + 1);
        let (chunk, tail) = rest.split_at(end);
        rest = tail;
        Some(chunk)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_estimate_is_near_on_text_it_was_not_fitted_to() {
        let english = "The keeper counted the lamps twice before the storm, and wrote the number in the log. \
            Nobody on the island had asked her to; she simply liked to know what would still be burning at dawn.";
        let chinese = "守塔人在风暴来临之前把灯数了两遍，然后把数目记在日志里。岛上没有人要求她这么做，她只是想知道黎明时还有哪些灯亮着。";
        let table = "| term | first used | meaning |\n|---|---|---|\n| lease | ch03 | a write set held for a run |\n| 标记 | ch04 | 最后一行 |\n";
        for text in [english, chinese, table] {
            let found = compare(text, usize::MAX / 4);
            assert!(found.worst_error < 25.0, "{found:?} {text}");
        }
    }

    #[test]
    fn only_an_empty_text_costs_nothing() {
        assert_eq!(estimate(""), 0);
        assert_eq!(estimate("a"), 1);
        assert_eq!(estimate("\n"), 1);
    }

    #[test]
    fn chunks_are_the_text() {
        let text = "一行\n二行\nno line end but quite a long line";
        assert_eq!(chunks(text, 4).collect::<String>(), text);
        assert_eq!(chunks(text, 4).next(), Some("一行\n"));
    }
}
