//! The sentence encoder: text in, a direction in 192 dimensions out. English and Chinese share
//! them.
//!
//! It is Google's multilingual universal sentence encoder, pruned and shrunk by
//! `scripts/build-model`, and travels inside the binary. Nothing is loaded until the first text is
//! encoded. Equal text gives equal vectors on one machine; vectors are derived and never leave it.

mod forward;
mod pieces;
mod product;

use std::sync::{Mutex, OnceLock};

pub use forward::Met;
use forward::Network;
use pieces::Pieces;

use super::wide::normalise;

/// Numbers of a vector.
pub const DIMENSIONS: usize = 192;

static BYTES: &[u8] = include_bytes!("../../../model/encoder.bin");
static HASHES: &str = include_str!("../../../model/HASHES");

/// Pieces of one text that are looked at; the rest adds little and costs as much.
const LONGEST: usize = 128;
/// Texts go through together up to so many pieces: as much as stays in a processor's second cache.
const TOGETHER: usize = 256;

/// The encoder, ready to run.
pub struct Encoder {
    pieces: Pieces<'static>,
    network: Network<'static>,
    met: Mutex<Met>,
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
        bytes.is_empty().then(|| Self {
            pieces,
            network,
            met: Mutex::default(),
        })
    }

    /// The direction of a text, of length one. Questions share words: a running process keeps what
    /// it met.
    #[must_use]
    pub fn encode(&self, text: &str) -> Vec<f32> {
        match self.met.try_lock() {
            Ok(mut met) => self.encode_all(&[text], &mut met),
            Err(_) => self.encode_all(&[text], &mut Met::default()),
        }
    }

    /// The directions of some texts, one after the other. `met` saves time if it is kept for more.
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
    /// layer is rounded to 14 bits, so they agree within 0.002 in every number and 0.9999 in
    /// cosine.
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
