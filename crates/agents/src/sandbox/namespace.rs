//! Processes of its own for a run: a PID namespace with its own `/proc`, where the machine permits
//! one.
//!
//! Two processes are needed. The first leaves the caller's namespaces and stays, because a PID
//! namespace is entered only by being born into it. The second is born into it as its process 1,
//! mounts `/proc`, and does the helper's work there. When process 1 ends, for whatever reason, the
//! kernel kills every process of the namespace.
//!
//! Nothing of the agent is started before everything is in place. If a step is not permitted, the
//! first process ends and the helper works without a namespace.

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

/// Starts the process that leaves the caller's namespaces.
pub fn start(policy: &Path) -> std::io::Result<Child> {
    Command::new("/proc/self/exe")
        .arg(NAMESPACE_COMMAND)
        .arg(policy)
        .spawn()
}

/// The process that leaves the caller's namespaces, starts process 1, and passes on what it is
/// told.
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
            // If it ended meanwhile, the next signal says so.
            Ok(signal) => drop(kill(first, signal)),
            Err(_) => return not_started,
        }
    }
}

/// Own process numbers, own mounts, own shared memory. Root needs no user namespace for it;
/// everybody else does.
fn leave_namespaces() -> Result<(), String> {
    let wanted = CloneFlags::CLONE_NEWPID | CloneFlags::CLONE_NEWNS | CloneFlags::CLONE_NEWIPC;
    if unshare(wanted).is_err() {
        let (user, group) = (
            rustix::process::geteuid().as_raw(),
            rustix::process::getegid().as_raw(),
        );
        unshare(wanted | CloneFlags::CLONE_NEWUSER).map_err(|why| why.to_string())?;
        // User and group keep their numbers, so the agent's files belong to the user as ever.
        for (file, text) in [
            ("setgroups", "deny".to_string()),
            ("uid_map", format!("{user} {user} 1")),
            ("gid_map", format!("{group} {group} 1")),
        ] {
            std::fs::write(format!("/proc/self/{file}"), text).map_err(|why| why.to_string())?;
        }
        pass_on_the_right_to_mount().map_err(|why| why.to_string())?;
    }
    // What is mounted here must not appear outside.
    let private = MsFlags::MS_REC | MsFlags::MS_PRIVATE;
    mount(None::<&str>, "/", None::<&str>, private, None::<&str>).map_err(|why| why.to_string())
}

/// Process 1 is another program run, and a user who is not root loses all rights on the way unless
/// they are ambient.
fn pass_on_the_right_to_mount() -> rustix::io::Result<()> {
    let mut sets = rustix::thread::capabilities(None)?;
    sets.inheritable |= CapabilitySet::SYS_ADMIN;
    rustix::thread::set_capabilities(None, sets)?;
    rustix::thread::configure_capability_in_ambient_set(CapabilitySet::SYS_ADMIN, true)
}

/// Prepares process 1 of a namespace. `parent` is the number of the process that started it,
/// outside.
pub fn prepare_first(parent: &str) -> Result<(), String> {
    end_with(parent)?;
    let flags = MsFlags::MS_NOSUID | MsFlags::MS_NODEV | MsFlags::MS_NOEXEC;
    mount(Some("proc"), "/proc", Some("proc"), flags, None::<&str>)
        .map_err(|why| why.to_string())?;
    // Its children need no rights.
    rustix::thread::clear_ambient_capability_set().map_err(|why| why.to_string())?;
    let own = std::fs::read_link("/proc/self").map_err(|why| why.to_string())?;
    if own == Path::new("1") {
        Ok(())
    } else {
        Err(format!("/proc shows another namespace: {}", own.display()))
    }
}

/// The kernel kills this process when its parent ends. The parent may have ended before that was
/// asked for, so its entry in `/proc`, still the outer one, is looked at afterwards.
fn end_with(parent: &str) -> Result<(), String> {
    rustix::process::set_parent_process_death_signal(Some(rustix::process::Signal::KILL))
        .map_err(|why| why.to_string())?;
    if Path::new(&format!("/proc/{parent}")).exists() {
        Ok(())
    } else {
        Err("the parent has ended".to_string())
    }
}
