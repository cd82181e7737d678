//! A PID namespace with its own `/proc` for an agent, if the machine permits one.
//!
//! This takes two processes. The first calls `unshare` and stays outside, because only its children
//! enter the new PID namespace. The second is process 1 of the namespace; it mounts `/proc` and
//! does the helper's work. When process 1 exits, the kernel kills every process of the namespace.
//!
//! The agent starts only after every step succeeded. If a step is not permitted, the first process
//! exits and the helper works without a namespace.

use super::confine::NOT_STARTED;
use super::{FIRST_COMMAND, NAMESPACE_COMMAND};
use nix::mount::{MsFlags, mount};
use nix::sched::{CloneFlags, unshare};
use nix::sys::signal::{SigSet, Signal, kill};
use nix::sys::wait::{WaitPidFlag, WaitStatus, waitpid};
use nix::unistd::Pid;
use rustix::thread::CapabilitySet;
use std::path::Path;
use std::process::{Child, Command, ExitCode};

/// Starts the process that calls `unshare`.
pub fn start(policy: &Path) -> std::io::Result<Child> {
    Command::new("/proc/self/exe")
        .arg(NAMESPACE_COMMAND)
        .arg(policy)
        .spawn()
}

/// The process that leaves the caller's namespaces, starts process 1, and forwards signals to it.
pub fn leave(policy: &Path) -> ExitCode {
    let parent = std::os::unix::process::parent_id().to_string();
    let mut told = SigSet::empty();
    for signal in [
        Signal::SIGTERM,
        Signal::SIGINT,
        Signal::SIGHUP,
        Signal::SIGCHLD,
    ] {
        told.add(signal);
    }
    let not_started = ExitCode::from(NOT_STARTED);
    if told.thread_block().is_err() || leave_namespaces().is_err() || end_with(&parent).is_err() {
        return not_started;
    }
    let mut command = Command::new("/proc/self/exe");
    command
        .arg(FIRST_COMMAND)
        .arg(policy)
        .arg(std::process::id().to_string());
    let Ok(first) = command.spawn() else {
        return not_started;
    };
    let first = Pid::from_raw(first.id() as i32);
    loop {
        match told.wait() {
            Ok(Signal::SIGCHLD) => match waitpid(first, Some(WaitPidFlag::WNOHANG)) {
                Ok(WaitStatus::Exited(_, code)) => return ExitCode::from(code as u8),
                Ok(WaitStatus::Signaled(_, signal, _)) => {
                    return ExitCode::from(128u8.saturating_add(signal as i32 as u8));
                }
                Ok(_) => {}
                Err(_) => return not_started,
            },
            // If process 1 has exited meanwhile, the next SIGCHLD reports it.
            Ok(signal) => drop(kill(first, signal)),
            Err(_) => return not_started,
        }
    }
}

/// Creates new PID, mount and IPC namespaces. Root needs no user namespace for that; other users
/// do.
fn leave_namespaces() -> Result<(), String> {
    let wanted = CloneFlags::CLONE_NEWPID | CloneFlags::CLONE_NEWNS | CloneFlags::CLONE_NEWIPC;
    if unshare(wanted).is_err() {
        let (user, group) = (
            rustix::process::geteuid().as_raw(),
            rustix::process::getegid().as_raw(),
        );
        unshare(wanted | CloneFlags::CLONE_NEWUSER).map_err(|why| why.to_string())?;
        // User and group ids map to themselves, so the agent's files still belong to the user.
        for (file, text) in [
            ("setgroups", "deny".to_string()),
            ("uid_map", format!("{user} {user} 1")),
            ("gid_map", format!("{group} {group} 1")),
        ] {
            std::fs::write(format!("/proc/self/{file}"), text).map_err(|why| why.to_string())?;
        }
        pass_on_the_right_to_mount().map_err(|why| why.to_string())?;
    }
    // Mounts made here must not propagate outside.
    let private = MsFlags::MS_REC | MsFlags::MS_PRIVATE;
    mount(None::<&str>, "/", None::<&str>, private, None::<&str>).map_err(|why| why.to_string())
}

/// Makes CAP_SYS_ADMIN ambient. Otherwise a user other than root would lose it when process 1 is
/// executed.
fn pass_on_the_right_to_mount() -> rustix::io::Result<()> {
    let mut sets = rustix::thread::capabilities(None)?;
    sets.inheritable |= CapabilitySet::SYS_ADMIN;
    rustix::thread::set_capabilities(None, sets)?;
    rustix::thread::configure_capability_in_ambient_set(CapabilitySet::SYS_ADMIN, true)
}

/// Prepares process 1 of a namespace. `parent` is the outer pid of the process that started it.
pub fn prepare_first(parent: &str) -> Result<(), String> {
    end_with(parent)?;
    let flags = MsFlags::MS_NOSUID | MsFlags::MS_NODEV | MsFlags::MS_NOEXEC;
    mount(Some("proc"), "/proc", Some("proc"), flags, None::<&str>)
        .map_err(|why| why.to_string())?;
    // Its children need no capabilities.
    rustix::thread::clear_ambient_capability_set().map_err(|why| why.to_string())?;
    let own = std::fs::read_link("/proc/self").map_err(|why| why.to_string())?;
    if own == Path::new("1") {
        Ok(())
    } else {
        Err(format!("/proc shows another namespace: {}", own.display()))
    }
}

/// Makes the kernel kill this process when its parent exits. The parent may have exited before the
/// request, so its entry in `/proc`, still the outer one, is checked afterwards.
fn end_with(parent: &str) -> Result<(), String> {
    rustix::process::set_parent_process_death_signal(Some(rustix::process::Signal::KILL))
        .map_err(|why| why.to_string())?;
    if Path::new(&format!("/proc/{parent}")).exists() {
        Ok(())
    } else {
        Err("the parent has ended".to_string())
    }
}
