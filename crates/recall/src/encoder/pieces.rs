//! Splits text into the word pieces of the encoder's vocabulary.
//!
//! The result is the most probable split under the unigram scores (Viterbi), after Unicode
//! normalisation and with spaces written as `▁`. The vocabulary is a hash table of all prefixes of
//! pieces inside the model's bytes, so nothing is built at load time.

use unicode_normalization::UnicodeNormalization;

use super::{floats, take};

const UNKNOWN: u32 = 0;
const BEGIN: u32 = 1;
const END: u32 = 2;
const SPACE: char = '\u{2581}';

pub struct Pieces<'b> {
    checks: &'b [u8],
    values: &'b [u8],
    scores: Vec<f32>,
    unknown: f32,
}

impl<'b> Pieces<'b> {
    pub fn parse(bytes: &mut &'b [u8], count: usize, slots: usize) -> Option<Self> {
        if !slots.is_power_of_two() {
            return None;
        }
        let checks = take(bytes, 4 * slots)?;
        let values = take(bytes, 2 * slots)?;
        let scores = floats(take(bytes, 4 * count)?);
        let unknown = scores.iter().copied().fold(f32::INFINITY, f32::min) - 10.0;
        Some(Self {
            checks,
            values,
            scores,
            unknown,
        })
    }

    /// Returns `None` if no piece has this prefix, and `Some(None)` if the prefix itself is not a
    /// piece.
    fn look_up(&self, hash: u64) -> Option<Option<u32>> {
        let mask = self.values.len() / 2 - 1;
        let check = ((hash >> 32) as u32).max(1);
        let mut slot = hash as usize & mask;
        loop {
            let four = self.checks[4 * slot..4 * slot + 4]
                .try_into()
                .expect("four");
            match u32::from_le_bytes(four) {
                0 => return None,
                found if found == check => {
                    let value =
                        u16::from_le_bytes([self.values[2 * slot], self.values[2 * slot + 1]]);
                    return Some(u32::from(value).checked_sub(1));
                }
                _ => slot = (slot + 1) & mask,
            }
        }
    }

    /// Returns the IDs of the pieces of a text, between the begin and end markers.
    pub fn split(&self, text: &str) -> Vec<u32> {
        let mut plain = String::with_capacity(text.len() + 8);
        let visible = text
            .nfkc()
            .map(|c| if c.is_control() { ' ' } else { c })
            .collect::<String>();
        for word in visible.split_whitespace() {
            plain.push(SPACE);
            plain.push_str(word);
        }
        if plain.is_empty() {
            return vec![BEGIN, UNKNOWN, END];
        }
        // best[i]: the score of the best split of the first i bytes, the start of its last piece,
        // and that piece.
        let mut best = vec![(f32::NEG_INFINITY, 0usize, UNKNOWN); plain.len() + 1];
        best[0].0 = 0.0;
        for (start, first) in plain.char_indices() {
            let base = best[start].0;
            let mut hash = 0xcbf2_9ce4_8422_2325u64;
            let mut end = start;
            let mut single = false;
            for c in plain[start..].chars() {
                let mut buffer = [0; 4];
                for byte in c.encode_utf8(&mut buffer).bytes() {
                    hash = (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3);
                }
                end += c.len_utf8();
                let Some(piece) = self.look_up(hash) else {
                    break;
                };
                if let Some(piece) = piece {
                    single |= end == start + first.len_utf8();
                    let score = base + self.scores[piece as usize];
                    if score > best[end].0 {
                        best[end] = (score, start, piece);
                    }
                }
            }
            let after = start + first.len_utf8();
            if !single && base + self.unknown > best[after].0 {
                best[after] = (base + self.unknown, start, UNKNOWN);
            }
        }
        let mut ids = vec![END];
        let mut at = plain.len();
        while at > 0 {
            let (_, start, piece) = best[at];
            ids.push(piece);
            at = start;
        }
        ids.push(BEGIN);
        ids.reverse();
        ids
    }
}
