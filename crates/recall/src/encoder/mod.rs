//! The sentence encoder: maps a text to a vector of 192 dimensions. English and Chinese share the
//! vector space.
//!
//! The model is Google's multilingual universal sentence encoder, pruned and quantised by
//! `scripts/build-model` and embedded in the binary. Nothing is loaded until the first text is
//! encoded. On one machine, equal text gives equal vectors. Vectors are derived data and never
//! leave the machine.

mod forward;
mod pieces;
mod product;

use std::sync::{Mutex, OnceLock};

pub use forward::Met;
use forward::Network;
use pieces::Pieces;

use super::wide::normalise;

/// The length of a vector.
pub const DIMENSIONS: usize = 192;

static BYTES: &[u8] = include_bytes!("../../model/encoder.bin");
static HASHES: &str = include_str!("../../model/HASHES");

/// The maximum number of pieces of one text. Further pieces add little and cost as much.
const LONGEST: usize = 128;
/// The maximum number of pieces in one batch of texts. Their data fits the L2 cache.
const TOGETHER: usize = 256;

pub struct Encoder {
    pieces: Pieces<'static>,
    network: Network<'static>,
    met: Mutex<Met>,
}

impl Encoder {
    /// True if this build contains an encoder.
    pub const IS_BUILT_IN: bool = true;

    /// Returns the built-in encoder. `None` if this version does not recognise the model's bytes.
    #[must_use]
    pub fn built_in() -> Option<&'static Self> {
        static ENCODER: OnceLock<Option<Encoder>> = OnceLock::new();
        ENCODER.get_or_init(|| Self::parse(BYTES)).as_ref()
    }

    fn parse(bytes: &'static [u8]) -> Option<Self> {
        let mut bytes = bytes.strip_prefix(b"QUIPUENC")?;
        let [version, count, slots, matrices] = take_numbers(&mut bytes)?;
        if version != 1 {
            return None;
        }
        let pieces = Pieces::parse(&mut bytes, count as usize, slots as usize)?;
        let network = Network::parse(&mut bytes, count as usize, matrices as usize)?;
        bytes.is_empty().then(|| Self {
            pieces,
            network,
            met: Mutex::default(),
        })
    }

    /// Returns the normalised vector of a text. Questions share words, so a long-running process
    /// caches the pieces it has seen.
    #[must_use]
    pub fn encode(&self, text: &str) -> Vec<f32> {
        match self.met.try_lock() {
            Ok(mut met) => self.encode_all(&[text], &mut met),
            Err(_) => self.encode_all(&[text], &mut Met::default()),
        }
    }

    /// Returns the concatenated vectors of some texts. Keep `met` between calls to save time.
    #[must_use]
    pub fn encode_all(&self, texts: &[&str], met: &mut Met) -> Vec<f32> {
        let mut vectors = Vec::with_capacity(texts.len() * DIMENSIONS);
        let (mut group, mut pieces) = (Vec::new(), 0);
        for text in texts {
            let mut ids = self.pieces.split(text);
            ids.truncate(LONGEST);
            if pieces + ids.len() > TOGETHER && pieces > 0 {
                vectors.extend(self.network.run(&group, met));
                group.clear();
                pieces = 0;
            }
            pieces += ids.len();
            group.push(ids);
        }
        if !group.is_empty() {
            vectors.extend(self.network.run(&group, met));
        }
        vectors.chunks_exact_mut(DIMENSIONS).for_each(normalise);
        vectors
    }
}

/// Identifies the model by the start of its hash. Vectors of another model are not used.
#[must_use]
pub fn identity() -> [u8; 16] {
    let mut name = [b'-'; 16];
    let hash = HASHES.as_bytes();
    for (place, byte) in name.iter_mut().zip(hash) {
        *place = *byte;
    }
    name
}

fn take<'b>(bytes: &mut &'b [u8], len: usize) -> Option<&'b [u8]> {
    let (taken, rest) = bytes.split_at_checked(len)?;
    *bytes = rest;
    Some(taken)
}

fn take_numbers<const N: usize>(bytes: &mut &[u8]) -> Option<[u32; N]> {
    let taken = take(bytes, 4 * N)?;
    let mut numbers = [0; N];
    for (number, four) in numbers.iter_mut().zip(taken.chunks_exact(4)) {
        *number = u32::from_le_bytes(four.try_into().ok()?);
    }
    Some(numbers)
}

fn floats(bytes: &[u8]) -> Vec<f32> {
    let four = |four: &[u8]| f32::from_le_bytes(four.try_into().expect("chunks of four"));
    bytes.chunks_exact(4).map(four).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Compares with vectors that NumPy computed from the same weights in floating point. Here the
    /// input of each layer is rounded to 14 bits, so the vectors agree within 0.002 per component
    /// and 0.9999 in cosine.
    #[test]
    fn agrees_with_numpy() {
        let mut bytes: &[u8] = include_bytes!("../../model/expected.bin");
        let encoder = Encoder::built_in().unwrap();
        let [count, dimensions] = take_numbers(&mut bytes).unwrap();
        assert_eq!(dimensions as usize, DIMENSIONS);
        for _ in 0..count {
            let [len] = take_numbers(&mut bytes).unwrap();
            let text = std::str::from_utf8(take(&mut bytes, len as usize).unwrap()).unwrap();
            let [tokens] = take_numbers(&mut bytes).unwrap();
            let ids: Vec<u32> = take(&mut bytes, 4 * tokens as usize)
                .unwrap()
                .chunks_exact(4)
                .map(|four| u32::from_le_bytes(four.try_into().unwrap()))
                .collect();
            assert_eq!(encoder.pieces.split(text), ids, "pieces of {text:?}");
            let expected = floats(take(&mut bytes, 4 * DIMENSIONS).unwrap());
            let vector = encoder.encode(text);
            assert!(
                super::super::wide::dot(&vector, &expected) > 0.9999,
                "{text:?}"
            );
            for (got, wanted) in vector.iter().zip(&expected) {
                assert!((got - wanted).abs() < 2e-3, "{text:?}: {got} for {wanted}");
            }
        }
    }

    #[test]
    fn languages_share_directions() {
        let encoder = Encoder::built_in().unwrap();
        let near =
            |a: &str, b: &str| super::super::wide::dot(&encoder.encode(a), &encoder.encode(b));
        assert!(near("the cat sleeps", "猫在睡觉") > 0.5);
        assert!(near("the cat sleeps", "猫在睡觉") > near("the cat sleeps", "股票市场下跌了"));
    }

    #[test]
    fn company_changes_no_bit() {
        let encoder = Encoder::built_in().unwrap();
        let long = "The relay runners carry cords with knots. ".repeat(40);
        let texts = [
            "a lease ends by itself",
            "租约会自己结束",
            "",
            &long,
            "a lease ends by itself",
            "Who wrote the journal?",
        ];
        let many: Vec<&str> = texts.iter().copied().cycle().take(40).collect();
        let together = encoder.encode_all(&many, &mut Met::default());
        for (text, vector) in many.iter().zip(together.chunks_exact(DIMENSIONS)) {
            assert_eq!(encoder.encode(text), vector, "{text:?}");
        }
    }
}
