//! The bytes that an operation stores: a text, other bytes, or a difference to the text before.
//!
//! A body can also be dropped by retention. `delta.rs` decides when a difference is stored;
//! `compose` rebuilds a text from its operations.

use std::borrow::Cow;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use quipu_contract::ProjectPath;
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;

use crate::error::StoreError;
use crate::journal::record::{OpKind, RecordOp};
use crate::version::Version;

/// At an offset of the old text, this many bytes are replaced by a text.
pub type Cut = (u64, u64, String);

#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub enum Body {
    /// The operation has no bytes.
    #[default]
    None,
    Text(String),
    /// Bytes that are not UTF-8.
    Binary(Vec<u8>),
    /// The difference to the base version; cuts in the order of their offsets.
    Splice {
        cuts: Vec<Cut>,
        /// The resulting text, if this process made it. It is not stored.
        whole: Option<Vec<u8>>,
    },
    /// The bytes were dropped from the journal.
    Dropped,
}

/// The JSON form of bodies that are not a text.
#[derive(Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
enum Tagged<'b> {
    Base64(String),
    Splice(Cow<'b, [Cut]>),
}

impl Body {
    pub fn of(bytes: Vec<u8>) -> Body {
        match String::from_utf8(bytes) {
            Ok(text) => Body::Text(text),
            Err(error) => Body::Binary(error.into_bytes()),
        }
    }

    /// The bytes themselves; empty for a difference with an unknown result.
    pub fn bytes(&self) -> &[u8] {
        match self {
            Body::Text(text) => text.as_bytes(),
            Body::Binary(bytes) => bytes,
            Body::Splice { whole, .. } => whole.as_deref().unwrap_or_default(),
            Body::None | Body::Dropped => &[],
        }
    }

    /// The approximate size in the journal.
    pub fn size(&self) -> usize {
        match self {
            Body::Splice { cuts, .. } => splice_size(cuts),
            other => other.bytes().len(),
        }
    }

    pub(crate) fn write_to(&self, line: &mut Vec<u8>) {
        let written = match self {
            Body::None | Body::Dropped => serde_json::to_writer(line, &()),
            Body::Text(text) => serde_json::to_writer(line, text),
            Body::Binary(bytes) => {
                serde_json::to_writer(line, &Tagged::Base64(STANDARD.encode(bytes)))
            }
            Body::Splice { cuts, .. } => serde_json::to_writer(line, &Tagged::Splice(cuts.into())),
        };
        written.expect("a body has only strings and numbers");
    }

    /// Parses the body in a line; none if it is invalid.
    pub(crate) fn read(raw: Option<&RawValue>) -> Option<Body> {
        let Some(raw) = raw.map(RawValue::get) else {
            return Some(Body::None);
        };
        if raw.starts_with('"') {
            return serde_json::from_str(raw).ok().map(Body::Text);
        }
        Some(match serde_json::from_str(raw).ok()? {
            Tagged::Base64(coded) => Body::Binary(STANDARD.decode(coded).ok()?),
            Tagged::Splice(cuts) => Body::Splice {
                cuts: cuts.into_owned(),
                whole: None,
            },
        })
    }
}

pub(crate) fn splice_size(cuts: &[Cut]) -> usize {
    /// Offsets, brackets and quotes.
    const AROUND: usize = 20;
    cuts.iter().map(|(_, _, text)| AROUND + text.len()).sum()
}

/// The operation that turns one version of a file into the next.
#[derive(Clone, Copy)]
pub(crate) struct Edit<'b> {
    pub op: OpKind,
    pub base: Option<&'b Version>,
    pub version: &'b Version,
    pub len: u64,
    pub body: &'b Body,
}

/// Why a text cannot be rebuilt.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Gap {
    /// A part of it was dropped from the journal.
    Dropped,
    /// The stored parts do not give the recorded version or length.
    Mismatch,
}

impl Gap {
    /// The error for the newest version of a file. Pruning never drops a part of it.
    pub fn of_newest(self, path: &ProjectPath) -> StoreError {
        match self {
            Gap::Dropped => StoreError::damaged(format!("the newest text of `{path}` is missing")),
            Gap::Mismatch => self.of(path),
        }
    }

    pub fn of(self, path: &ProjectPath) -> StoreError {
        match self {
            Gap::Dropped => StoreError::not_found(
                format!("the text of this version of `{path}` was deleted by retention"),
                format!("quipu log {path}     (then name a newer version)"),
            ),
            Gap::Mismatch => StoreError::damaged(format!(
                "the stored text of `{path}` does not match its version"
            )),
        }
    }
}

impl RecordOp {
    pub(crate) fn edit(&self) -> Edit<'_> {
        Edit {
            op: self.op,
            base: self.base.as_ref(),
            version: &self.version,
            len: self.len,
            body: &self.body,
        }
    }
}

impl Edit<'_> {
    /// Whether the resulting text needs no older operation.
    pub fn is_start(&self) -> bool {
        match self.op {
            OpKind::Append => false,
            OpKind::Write => !matches!(self.body, Body::Splice { whole: None, .. }),
            OpKind::Remove | OpKind::Keep => true,
        }
    }

    /// Turns the text before this operation into the text after it.
    pub fn apply(&self, text: &mut Vec<u8>) -> Result<(), Gap> {
        match (self.op, self.body) {
            (OpKind::Write | OpKind::Append, Body::Dropped) => return Err(Gap::Dropped),
            (OpKind::Remove | OpKind::Keep, _) => text.clear(),
            (OpKind::Append, body) => text.extend_from_slice(body.bytes()),
            (OpKind::Write, Body::Splice { cuts, whole: None }) => {
                let after = splice(text, cuts)
                    .filter(|after| after.len() as u64 == self.len)
                    .ok_or(Gap::Mismatch)?;
                // A restore of the newest version keeps its version, which need not be a hash of
                // the text.
                let is_same = if self.base == Some(self.version) {
                    after == *text
                } else {
                    Version::of(&after) == *self.version
                };
                if !is_same {
                    return Err(Gap::Mismatch);
                }
                *text = after;
            }
            (OpKind::Write, body) => {
                text.clear();
                text.extend_from_slice(body.bytes());
            }
        }
        // A journal that lost lines may hold only the end of a text.
        let is_whole =
            matches!(self.op, OpKind::Remove | OpKind::Keep) || text.len() as u64 == self.len;
        if is_whole { Ok(()) } else { Err(Gap::Mismatch) }
    }
}

/// Rebuilds the text from operations, newest first. Operations before the newest whole text are
/// ignored.
pub(crate) fn compose<'b>(newest_first: impl Iterator<Item = Edit<'b>>) -> Result<Vec<u8>, Gap> {
    let mut edits = Vec::new();
    for edit in newest_first {
        edits.push(edit);
        if edit.is_start() {
            break;
        }
    }
    let mut text = Vec::new();
    for edit in edits.iter().rev() {
        edit.apply(&mut text)?;
    }
    Ok(text)
}

/// The text with the cuts applied; none if they do not fit.
pub(crate) fn splice(text: &[u8], cuts: &[Cut]) -> Option<Vec<u8>> {
    let mut after = Vec::with_capacity(text.len());
    let mut rest = 0;
    for (at, cut, with) in cuts {
        let at = usize::try_from(*at).ok()?;
        after.extend_from_slice(text.get(rest..at)?);
        after.extend_from_slice(with.as_bytes());
        rest = at.checked_add(usize::try_from(*cut).ok()?)?;
    }
    after.extend_from_slice(text.get(rest..)?);
    Some(after)
}
