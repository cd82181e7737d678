//! The helper's input: the program, its folders, its limits. The policy is a file in the record and
//! holds no secrets; variables reach the program only through its environment.

use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::ffi::OsString;
use std::path::{Path, PathBuf};

/// Prefix of each variable meant for the agent. The helper runs outside the sandbox, and a host's
/// table could otherwise control it: `LD_PRELOAD` would run the table's code there.
const FOR_AGENT: &str = "QUIPU_SANDBOX_SET_";

/// Prefixes the agent's variables, so that no Quipu process obeys them.
pub fn wrap_variables(
    variables: BTreeMap<OsString, OsString>,
) -> impl Iterator<Item = (OsString, OsString)> {
    variables.into_iter().map(|(name, value)| {
        let mut wrapped = OsString::from(FOR_AGENT);
        wrapped.push(name);
        (wrapped, value)
    })
}

/// Returns the agent's variables from this process's environment, under their own names.
#[cfg(target_os = "linux")]
pub fn unwrap_variables() -> impl Iterator<Item = (OsString, OsString)> {
    use std::os::unix::ffi::OsStrExt;
    std::env::vars_os().filter_map(|(name, value)| {
        let own = name.as_bytes().strip_prefix(FOR_AGENT.as_bytes())?;
        Some((std::ffi::OsStr::from_bytes(own).to_os_string(), value))
    })
}

/// The policy for one program.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Policy {
    pub program: PathBuf,
    pub args: Vec<String>,
    pub folder: PathBuf,
    /// Read and execute: system, program.
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
    /// The file that the helper writes its report to.
    pub report: PathBuf,
    /// The calling process. When it exits, the helper ends the agent.
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
