//! A change: the operations that a caller requests.
//!
//! It holds only the request. `validate.rs` checks it, and `publish.rs` commits it.

use quipu_contract::{Actor, ProjectPath};
use serde_json::Value;

use crate::journal::lease::LeaseToken;
use crate::version::Version;

/// The version that an operation expects to find.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub enum Expect {
    /// Any version, or no file.
    #[default]
    Any,
    Version(Version),
}

/// One operation on one file.
#[derive(Debug, Clone, PartialEq)]
pub enum Op {
    Append {
        path: ProjectPath,
        bytes: Vec<u8>,
        /// The text begins on a new line: an unterminated last line is terminated first.
        apart: bool,
    },
    Write {
        path: ProjectPath,
        bytes: Vec<u8>,
        expect: Expect,
    },
    Create {
        path: ProjectPath,
        bytes: Vec<u8>,
    },
    /// Merges an object into a JSON file, key by key; `null` removes a key.
    Merge {
        path: ProjectPath,
        value: Value,
    },
    Remove {
        path: ProjectPath,
        expect: Expect,
    },
    /// Replaces sealed text. Without bytes, accepts the text on disk.
    Amend {
        path: ProjectPath,
        bytes: Option<Vec<u8>>,
    },
    /// Writes a derived file.
    Derive {
        path: ProjectPath,
        bytes: Vec<u8>,
        /// The derived file's version at that time: another writer may have derived it since.
        expect: Expect,
    },
    /// Restores a version; `older` if it is not the newest journalled one.
    Restore {
        path: ProjectPath,
        bytes: Vec<u8>,
        older: bool,
    },
}

impl Op {
    pub fn path(&self) -> &ProjectPath {
        match self {
            Op::Append { path, .. }
            | Op::Write { path, .. }
            | Op::Create { path, .. }
            | Op::Merge { path, .. }
            | Op::Remove { path, .. }
            | Op::Amend { path, .. }
            | Op::Derive { path, .. }
            | Op::Restore { path, .. } => path,
        }
    }
}

/// A set of operations that is committed whole or not at all.
#[derive(Debug, Clone, PartialEq)]
pub struct Change {
    pub actor: Actor,
    pub why: Option<String>,
    /// Makes a retry safe: a second change with the same key returns the result of the first.
    pub key: Option<String>,
    pub lease: Option<LeaseToken>,
    /// The writer confirms a large loss, or a text that looks like a placeholder.
    pub force: bool,
    /// A person confirms a new file with a name that is close to one in the contract.
    pub new_name: bool,
    /// The session that this change ends. One record holds both, so that neither exists without the
    /// other.
    pub ends: Option<String>,
    /// The change is a finish: it may change files that roles change only then.
    pub at_finish: bool,
    /// A note to store with the commit. The store does not interpret it.
    pub note: Option<Value>,
    /// The caller rebuilds the change on the newest texts if it is stale. Its text therefore need
    /// not be kept.
    pub revised: bool,
    /// Journal `quipu.toml` as well, if its current text is not journalled.
    pub with_rules: bool,
    pub ops: Vec<Op>,
    /// Operations of Quipu itself in the same commit: derived files, a log.
    pub beside: Vec<Op>,
}

impl Change {
    pub fn by(actor: &Actor) -> Change {
        Change {
            actor: actor.clone(),
            why: None,
            key: None,
            lease: None,
            force: false,
            new_name: false,
            ends: None,
            at_finish: false,
            note: None,
            revised: false,
            with_rules: false,
            ops: Vec::new(),
            beside: Vec::new(),
        }
    }

    /// A hash of the requested operations: a second change under the same key must request the
    /// same.
    pub(crate) fn digest(&self) -> String {
        let mut digested = Vec::new();
        for op in &self.ops {
            let (name, bytes): (&str, std::borrow::Cow<'_, [u8]>) = match op {
                Op::Append { bytes, .. } => ("append", bytes.into()),
                Op::Write { bytes, .. } => ("write", bytes.into()),
                Op::Create { bytes, .. } => ("create", bytes.into()),
                Op::Merge { value, .. } => ("merge", value.to_string().into_bytes().into()),
                Op::Remove { .. } => ("remove", b"".into()),
                Op::Amend { bytes, .. } => ("amend", bytes.as_deref().unwrap_or_default().into()),
                Op::Derive { bytes, .. } => ("derive", bytes.into()),
                Op::Restore { bytes, .. } => ("restore", bytes.into()),
            };
            // Include lengths, so that two different changes never hash the same bytes.
            digested.extend_from_slice(
                format!(
                    "{name} {} {} {}\n",
                    op.path().as_str().len(),
                    op.path(),
                    bytes.len()
                )
                .as_bytes(),
            );
            digested.extend_from_slice(&bytes);
        }
        Version::of(&digested).to_string()
    }

    pub fn why(mut self, why: impl Into<String>) -> Change {
        self.why = Some(why.into());
        self
    }

    pub fn key(mut self, key: impl Into<String>) -> Change {
        self.key = Some(key.into());
        self
    }

    pub fn note(mut self, note: Value) -> Change {
        self.note = Some(note);
        self
    }

    pub fn op(mut self, op: Op) -> Change {
        self.ops.push(op);
        self
    }

    pub fn append(self, path: &ProjectPath, bytes: impl Into<Vec<u8>>) -> Change {
        self.op(Op::Append {
            path: path.clone(),
            bytes: bytes.into(),
            apart: false,
        })
    }

    pub fn write(self, path: &ProjectPath, bytes: impl Into<Vec<u8>>, expect: Expect) -> Change {
        self.op(Op::Write {
            path: path.clone(),
            bytes: bytes.into(),
            expect,
        })
    }

    pub fn create(self, path: &ProjectPath, bytes: impl Into<Vec<u8>>) -> Change {
        self.op(Op::Create {
            path: path.clone(),
            bytes: bytes.into(),
        })
    }
}
