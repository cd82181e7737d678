//! The result of a status scan, and the last one of a running process.

use crate::apply::conflict_copies::ConflictCopy;
use crate::index::file_index::FileHead;
use crate::lock::locked;
use crate::rules::flag::Flag;
use crate::version::Version;
use crate::worktree::external_edit::Adopted;
use crate::worktree::walk::TreeFingerprint;
use quipu_contract::Class;
use serde::Serialize;
use std::sync::Mutex;

/// The status of one file.
#[derive(Debug, Clone, Serialize)]
pub struct FileStatus {
    pub path: String,
    pub class: Class,
    pub version: Option<Version>,
    pub len: u64,
    pub seq: u64,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub flag: Option<Flag>,
}

/// The result of a status scan.
#[derive(Debug, Clone, Default, Serialize)]
pub struct StatusScan {
    /// Files that a rule names.
    pub files: Vec<FileStatus>,
    pub adopted: Vec<Adopted>,
    /// Files that no rule names.
    pub free: Vec<String>,
    /// Files of `free` that have a history and are unchanged.
    #[serde(skip)]
    pub free_journalled: Vec<FileStatus>,
    /// Files with names that the contract cannot hold, with the reason.
    pub strange: Vec<(String, String)>,
    /// Allowed edits that wait for the shared store, because it does not answer or another owner
    /// holds a lease.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub waiting: Vec<String>,
    /// Edits that a commit or a recovery replaced, as conflict copies. Reported once.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub kept: Vec<ConflictCopy>,
}

impl FileStatus {
    /// The command that fixes the flag.
    pub fn remedy(&self) -> String {
        self.flag
            .as_ref()
            .map(|flag| flag.remedy(&self.path, self.class, self.version.is_some()))
            .unwrap_or_default()
    }
}

impl StatusScan {
    pub fn flagged(&self) -> impl Iterator<Item = &FileStatus> {
        self.files.iter().filter(|f| f.flag.is_some())
    }
}

/// The last status scan of a running process, and the tree fingerprint that it is valid for.
#[derive(Default)]
pub(crate) struct LastScan(Mutex<Option<(TreeFingerprint, StatusScan)>>);

impl LastScan {
    pub(super) fn find(&self, now: TreeFingerprint) -> Option<StatusScan> {
        let last = locked(&self.0);
        let (fingerprint, scan) = last.as_ref()?;
        (*fingerprint == now).then(|| scan.clone())
    }

    pub(super) fn set(&self, fingerprint: Option<TreeFingerprint>, scan: &StatusScan) {
        *locked(&self.0) = fingerprint.map(|fingerprint| (fingerprint, scan.clone()));
    }
}

pub(crate) fn file_status(
    path: &str,
    class: Class,
    head: Option<&FileHead>,
    flag: Option<Flag>,
) -> FileStatus {
    FileStatus {
        path: path.to_owned(),
        class,
        version: head.map(|h| h.version.clone()),
        len: head.map_or(0, |h| h.len),
        seq: head.map_or(0, |h| h.seq),
        flag,
    }
}
