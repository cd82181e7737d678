//! Versions of a file.
//!
//! The version of a whole text is a hash of its bytes. An append extends the previous version by
//! the appended bytes alone, so its cost depends on the added text and not on the file.

use std::fmt;
use std::hash::Hash;

use serde::{Deserialize, Serialize};
use smol_str::SmolStr;

/// Identifies one state of one file. It is cloned with every index entry and record, which is cheap
/// because it is short.
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

    /// Accepts any text: a version that never existed matches nothing.
    pub fn parse(text: &str) -> Version {
        Version(text.trim().into())
    }

    /// The version of a file that does not exist. A writer that expects it creates the file.
    pub fn none() -> Version {
        Version(SmolStr::new_static("none"))
    }

    /// The version shown for a file that the actor may not read: a version is a hash of the text,
    /// and would confirm a guess.
    pub fn withheld() -> Version {
        Version(SmolStr::new_static("withheld"))
    }

    /// The version, if the file exists.
    pub fn if_any(&self) -> Option<&Version> {
        (self.0 != "none").then_some(self)
    }

    pub fn as_str(&self) -> &str {
        &self.0
    }
}

/// 64 bits distinguish the versions of one file; the journal's chain has the full hash.
fn short(hash: &blake3::Hash) -> SmolStr {
    SmolStr::new(&hash.to_hex()[..16])
}

impl fmt::Display for Version {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}
