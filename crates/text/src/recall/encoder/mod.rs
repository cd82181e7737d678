//! The sentence encoder: text in, a direction in 192 dimensions out. English and Chinese share them.
//!
//! It is Google's multilingual universal sentence encoder, pruned and shrunk by
//! `scripts/build-model`, and travels inside the binary. Nothing is loaded until the first text is
//! encoded. Equal text gives equal vectors on one machine; vectors are derived and never leave it.

mod forward;
mod pieces;

use std::sync::OnceLock;

use forward::Network;
use pieces::Pieces;

use super::rank::normalise;

/// Numbers of a vector.
pub const DIMENSIONS: usize = 192;

static BYTES: &[u8] = include_bytes!("../../../model/encoder.bin");
static HASHES: &str = include_str!("../../../model/HASHES");

/// Tokens of one text that are looked at; the rest adds little and costs as much.
const LONGEST: usize = 128;

/// The encoder, ready to run.
pub struct Encoder {
    pieces: Pieces<'static>,
    network: Network<'static>,
}

impl Encoder {
    /// Whether this build carries an encoder at all.
    pub const IS_BUILT_IN: bool = true;

    /// The built-in encoder. `None` if its bytes are not what this version expects.
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
        bytes.is_empty().then_some(Self { pieces, network })
    }

    /// The direction of a text, of length one.
    #[must_use]
    pub fn encode(&self, text: &str) -> Vec<f32> {
        let mut ids = self.pieces.split(text);
        ids.truncate(LONGEST);
        let mut vector = self.network.run(&ids);
        normalise(&mut vector);
        vector
    }
}

/// Which model made a vector: its name and the start of its hash. Vectors of another are not used.
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

    /// Vectors that NumPy computed from the same weights in floating point. Here the input of each
    /// layer is rounded to 14 bits, so they agree within 0.002 in every number and 0.9999 in cosine.
    #[test]
    fn agrees_with_numpy() {
        let mut bytes: &[u8] = include_bytes!("../../../model/expected.bin");
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
            assert!(super::super::rank::dot(&vector, &expected) > 0.9999, "{text:?}");
            for (got, wanted) in vector.iter().zip(&expected) {
                assert!((got - wanted).abs() < 2e-3, "{text:?}: {got} for {wanted}");
            }
        }
    }

    #[test]
    fn languages_share_directions() {
        let encoder = Encoder::built_in().unwrap();
        let near = |a: &str, b: &str| super::super::rank::dot(&encoder.encode(a), &encoder.encode(b));
        assert!(near("the cat sleeps", "猫在睡觉") > 0.5);
        assert!(near("the cat sleeps", "猫在睡觉") > near("the cat sleeps", "股票市场下跌了"));
    }
}
