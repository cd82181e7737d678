//! Versions of a file.
//!
//! The version of a whole text is a hash of its bytes. An append extends the version before it by
//! the appended bytes alone, so that its cost follows what is added and not what is there.

use std::fmt;

use serde::{Deserialize, Serialize};
use smol_str::SmolStr;

/// Names one state of one file. It is copied about with every head and record, which costs nothing
/// while it is short.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Version(SmolStr);

impl Version {
    pub fn of(bytes: &[u8]) -> Version {
        Version(short(&blake3::hash(bytes)))
    }

    /// The version after `bytes` were appended.
    pub fn extended(&self, bytes: &[u8]) -> Version {
        let mut hasher = blake3::Hasher::new();
        hasher.update(self.0.as_bytes());
        hasher.update(bytes);
        Version(short(&hasher.finalize()))
    }

    /// Its digits as a number, if it was made here.
    pub(crate) fn bits(&self) -> Option<u64> {
        let digits = self.0.len() == 16
            && self
                .0
                .bytes()
                .all(|b| matches!(b, b'0'..=b'9' | b'a'..=b'f'));
        u64::from_str_radix(&self.0, 16).ok().filter(|_| digits)
    }

    pub(crate) fn of_bits(bits: u64) -> Version {
        Version(SmolStr::new(
            std::str::from_utf8(&digits::<16>(&bits.to_be_bytes())).unwrap_or_default(),
        ))
    }

    /// Any text: a version that never existed simply matches nothing.
    pub fn parse(text: &str) -> Version {
        Version(text.trim().into())
    }

    /// What a file has that is not there. A writer who expects it makes the file.
    pub fn none() -> Version {
        Version(SmolStr::new_static("none"))
    }

    /// What an actor is shown of a file that it does not read: a version is a hash of the text, and
    /// would confirm a guess.
    pub fn withheld() -> Version {
        Version(SmolStr::new_static("withheld"))
    }

    /// The version, if it is one of a file that is there.
    pub fn if_any(&self) -> Option<&Version> {
        (self.0 != "none").then_some(self)
    }

    pub fn as_str(&self) -> &str {
        &self.0
    }
}

/// 64 bits tell versions of one file apart; the journal's chain has the full hash.
fn short(hash: &blake3::Hash) -> SmolStr {
    SmolStr::new(std::str::from_utf8(&digits::<16>(hash.as_bytes())).unwrap_or_default())
}

/// The first bytes of a hash in hexadecimal digits. All of them, as `to_hex` makes them, take
/// longer than the hash.
pub(crate) fn digits<const COUNT: usize>(hash: &[u8]) -> [u8; COUNT] {
    let mut digits = [0; COUNT];
    for (pair, byte) in digits.chunks_exact_mut(2).zip(hash) {
        pair.copy_from_slice(&[
            b"0123456789abcdef"[usize::from(byte >> 4)],
            b"0123456789abcdef"[usize::from(byte & 15)],
        ]);
    }
    digits
}

impl fmt::Display for Version {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}
