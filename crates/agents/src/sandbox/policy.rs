//! What the helper is told: the program, its folders, its limits. A file in the record, without any
//! secret: variables reach the program through its environment only.

use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::ffi::OsString;
use std::path::{Path, PathBuf};

/// Precedes the name of each variable that is meant for the agent. The helper stands outside the
/// sandbox, and a host's table could otherwise direct it: `LD_PRELOAD` would run the table's code
/// there.
const FOR_AGENT: &str = "QUIPU_SANDBOX_SET_";

/// The agent's variables, named so that no process of Quipu obeys them.
pub fn wrap_variables(
    variables: BTreeMap<OsString, OsString>,
) -> impl Iterator<Item = (OsString, OsString)> {
    variables.into_iter().map(|(name, value)| {
        let mut wrapped = OsString::from(FOR_AGENT);
        wrapped.push(name);
        (wrapped, value)
    })
}

/// The agent's variables among those of this process, under their own names.
#[cfg(target_os = "linux")]
pub fn unwrap_variables() -> impl Iterator<Item = (OsString, OsString)> {
    use std::os::unix::ffi::OsStrExt;
    std::env::vars_os().filter_map(|(name, value)| {
        let own = name.as_bytes().strip_prefix(FOR_AGENT.as_bytes())?;
        Some((std::ffi::OsStr::from_bytes(own).to_os_string(), value))
    })
}

/// The orders for one program.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Policy {
    pub program: PathBuf,
    pub args: Vec<String>,
    pub folder: PathBuf,
    /// Read and run: system, program.
    pub run: Vec<PathBuf>,
    /// Read only: the view.
    pub read: Vec<PathBuf>,
    /// Read and write: the out folder, the private home.
    pub write: Vec<PathBuf>,
    /// Devices that may be opened for writing.
    pub devices: Vec<PathBuf>,
    /// No sockets at all.
    pub offline: bool,
    /// Largest file that may be written.
    pub file_bound: u64,
    /// Bytes of memory that all processes may use together.
    pub memory_bound: u64,
    /// Processes and threads that may live at once.
    pub task_bound: u64,
    /// Where the helper reports.
    pub report: PathBuf,
    /// The process that asked: if it goes, the agent goes.
    pub parent: u32,
}

impl Policy {
    pub fn load(path: &Path) -> std::io::Result<Self> {
        let text = std::fs::read(path)?;
        serde_json::from_slice(&text).map_err(std::io::Error::other)
    }

    pub fn save(&self, path: &Path) -> std::io::Result<()> {
        std::fs::write(
            path,
            serde_json::to_vec_pretty(self).map_err(std::io::Error::other)?,
        )
    }
}
