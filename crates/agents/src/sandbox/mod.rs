//! The sandbox: an agent's program reads its view, writes its out folder, and leaves no process
//! running.
//!
//! A helper starts the program. The helper is the caller's own executable, called with a hidden
//! command, and runs outside the sandbox. It watches every process of the agent, records the
//! accesses that the kernel refused, ends the agent if it exceeds its bounds, and ends leftover
//! processes. If the machine permits it, the helper is process 1 of a namespace (`namespace.rs`),
//! and the kernel ends all processes with it. A further process of the same executable confines
//! itself and becomes the agent.
//!
//! The kernel (Landlock) decides which accesses are refused. The helper only observes: an agent
//! that deceives it achieves nothing but a gap in the record.

mod grants;
mod policy;
mod report;

#[cfg(target_os = "linux")]
mod calls;
#[cfg(target_os = "linux")]
mod confine;
#[cfg(target_os = "linux")]
mod family;
#[cfg(target_os = "linux")]
mod helper;
#[cfg(target_os = "linux")]
mod limits;
#[cfg(target_os = "linux")]
mod namespace;
#[cfg(target_os = "linux")]
mod registers;
#[cfg(target_os = "linux")]
mod tracer;

#[cfg(target_os = "linux")]
pub use confine::{probe_landlock, probe_seccomp};
pub(crate) use grants::{plan_grants, search_path};
pub(crate) use policy::{Policy, wrap_variables};
pub(crate) use report::{Report, load_report};

use std::ffi::OsString;
use std::path::PathBuf;
use std::process::ExitCode;

/// The hidden command that runs this executable as the sandbox helper.
pub const SANDBOX_COMMAND: &str = "sandbox-exec";
/// The hidden command of the process that becomes the agent.
#[cfg(target_os = "linux")]
const INNER_COMMAND: &str = "sandbox-become";
/// The hidden command of the process that leaves the caller's namespaces.
#[cfg(target_os = "linux")]
const NAMESPACE_COMMAND: &str = "sandbox-namespace";
/// The hidden command of process 1 of an agent's namespace.
#[cfg(target_os = "linux")]
const FIRST_COMMAND: &str = "sandbox-first";

/// Selects the executable that serves as the helper.
#[derive(Clone, Debug)]
pub struct Sandbox {
    /// An executable with a `main` that calls [`sandbox_main`] first.
    pub helper: PathBuf,
}

impl Sandbox {
    /// Uses the running executable as the helper.
    pub fn of_this_program() -> std::io::Result<Self> {
        Ok(Sandbox {
            helper: std::env::current_exe()?,
        })
    }
}

/// Serves the hidden commands. Call it first in `main`, with the arguments after the program's name
/// and before any thread starts. `None` means that the arguments are not a hidden command.
pub fn sandbox_main(args: impl IntoIterator<Item = OsString>) -> Option<ExitCode> {
    let mut args = args.into_iter();
    let command = args.next()?;
    #[cfg(target_os = "linux")]
    {
        let commands = [
            SANDBOX_COMMAND,
            NAMESPACE_COMMAND,
            FIRST_COMMAND,
            INNER_COMMAND,
        ];
        let command = commands.into_iter().find(|known| command == *known)?;
        let Some(policy) = args.next().map(PathBuf::from) else {
            return Some(ExitCode::from(confine::NOT_STARTED));
        };
        Some(match command {
            NAMESPACE_COMMAND => namespace::leave(&policy),
            FIRST_COMMAND => helper::stand_by_as_first(
                &policy,
                &args.next().unwrap_or_default().to_string_lossy(),
            ),
            INNER_COMMAND => confine::become_agent(&policy),
            _ => helper::stand_by(&policy),
        })
    }
    #[cfg(not(target_os = "linux"))]
    {
        let _ = command;
        None
    }
}
