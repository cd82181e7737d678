//! `.quipu/meanings`: a cache of the encoder's vectors of lessons, so that a start encodes only new
//! ones.
//!
//! The first line names the encoder. A line is a checksum, the hash of a text and its vector in
//! hexadecimal digits. Damaged lines are ignored, and their texts are encoded again. Vectors are
//! rounded to 8 bits before they are compared, so that a cached one gives the same answer.

use std::collections::{HashMap, HashSet};
use std::fmt::Write as _;
use std::io::Write;
use std::path::PathBuf;

use quipu_recall::{encode_texts, encoder_name};
use quipu_store::Version;

use crate::project::open::Project;

const FILE: &str = ".quipu/meanings";

/// A vector of 8-bit numbers.
pub type Meaning = Vec<i8>;

/// The vectors of texts.
pub trait Encode {
    /// The vector of each text; empty without an encoder.
    fn encode(&self, texts: &[&str]) -> Vec<Meaning>;
}

/// Encodes with the built-in encoder and caches the vectors in the project.
pub struct CachedEncoder<'p> {
    pub project: &'p Project,
}

impl Encode for CachedEncoder<'_> {
    fn encode(&self, texts: &[&str]) -> Vec<Meaning> {
        let file = self.file();
        let known = std::fs::read_to_string(&file).unwrap_or_default();
        let header = encoder_name();
        let lines = known
            .strip_prefix(&header)
            .and_then(|rest| rest.strip_prefix('\n'));
        let mut cached: HashMap<String, Meaning> = lines
            .unwrap_or_default()
            .lines()
            .filter_map(parse)
            .collect();
        let hashes: Vec<String> = texts.iter().map(|text| hash(text)).collect();
        let mut met = HashSet::new();
        let fresh: Vec<(&String, &str)> = hashes
            .iter()
            .zip(texts.iter().copied())
            .filter(|(hash, _)| !cached.contains_key(*hash) && met.insert(*hash))
            .collect();
        let vectors = encode_texts(&fresh.iter().map(|(_, text)| *text).collect::<Vec<_>>());
        if vectors.len() != fresh.len() {
            return Vec::new();
        }
        let mut added = String::new();
        let fresh: Vec<String> = fresh.into_iter().map(|(hash, _)| hash.clone()).collect();
        for (hash, vector) in fresh.into_iter().zip(vectors) {
            let meaning: Meaning = vector.iter().map(|x| (x * 127.0).round() as i8).collect();
            added.push_str(&render(&hash, &meaning));
            cached.insert(hash, meaning);
        }
        if !added.is_empty() && !self.project.store.is_read_only() {
            let whole = lines.is_some() && known.ends_with('\n');
            // Without the cache, the texts are encoded again.
            let _ = match whole {
                true => append(&file, &added),
                false => super::past::write_derived(&file, format!("{header}\n{added}").as_bytes()),
            };
        }
        hashes
            .iter()
            .map(|hash| cached.get(hash).cloned().unwrap_or_default())
            .collect()
    }
}

impl CachedEncoder<'_> {
    fn file(&self) -> PathBuf {
        self.project.store.root().join(FILE)
    }
}

/// The cosine similarity in percent; 0 if one text has no vector.
pub fn similarity(a: &[i8], b: &[i8]) -> u32 {
    let product = |a: &[i8], b: &[i8]| -> f64 {
        let products = a.iter().zip(b).map(|(x, y)| i64::from(*x) * i64::from(*y));
        products.sum::<i64>() as f64
    };
    let length = (product(a, a) * product(b, b)).sqrt();
    if length == 0.0 {
        return 0;
    }
    (100.0 * product(a, b) / length).round().max(0.0) as u32
}

fn hash(text: &str) -> String {
    Version::of(text.as_bytes()).as_str().to_owned()
}

fn append(file: &std::path::Path, lines: &str) -> std::io::Result<()> {
    let mut file = std::fs::OpenOptions::new().append(true).open(file)?;
    file.write_all(lines.as_bytes())
}

fn render(of: &str, meaning: &[i8]) -> String {
    let mut line = format!("{of} ");
    for number in meaning {
        // Writing into a string does not fail.
        let _ = write!(line, "{:02x}", number.cast_unsigned());
    }
    format!("{} {line}\n", hash(&line))
}

fn parse(line: &str) -> Option<(String, Meaning)> {
    let (sum, rest) = line.split_once(' ')?;
    let (of, digits) = rest.split_once(' ').filter(|_| hash(rest) == sum)?;
    let byte = |at: usize| u8::from_str_radix(digits.get(at..at + 2)?, 16).ok();
    let bytes = (0..digits.len()).step_by(2).map(byte);
    let meaning: Meaning = bytes
        .map(|b| b.map(u8::cast_signed))
        .collect::<Option<_>>()?;
    Some((of.to_owned(), meaning))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_is_read_again_and_a_damaged_one_is_not() {
        let line = render("abc", &[1, -1, 127, -127]);
        let read = parse(line.trim_end());
        assert_eq!(read, Some(("abc".to_owned(), vec![1, -1, 127, -127])));
        for at in 0..line.trim_end().len() {
            let mut bytes = line.trim_end().as_bytes().to_vec();
            bytes[at] ^= 1;
            let damaged = String::from_utf8_lossy(&bytes).into_owned();
            assert_eq!(parse(&damaged), None, "byte {at}");
        }
    }

    #[test]
    fn similarity_is_a_percentage() {
        assert_eq!(similarity(&[3, 4], &[6, 8]), 100);
        assert_eq!(similarity(&[1, 0], &[0, 1]), 0);
        assert_eq!(similarity(&[1, 0], &[-1, 0]), 0);
        assert_eq!(similarity(&[], &[1]), 0);
    }
}
