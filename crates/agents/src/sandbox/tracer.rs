//! Traces the system calls listed in `calls.rs` and records those that the kernel refused.
//!
//! A seccomp filter stops a process at each such call. The tracer reads the path, lets the call
//! run, and checks its result. It decides nothing: if another thread changes the path in between,
//! one line of the record is wrong. All processes and threads of the agent are traced; when the
//! tracer exits, the kernel ends them.

use super::calls::{Call, Want, act, resolve_call};
use super::limits::End;
use super::{family, registers};
use crate::outcome::Attempt;
use nix::errno::Errno;
use nix::libc;
use nix::sys::ptrace::{self, Event, Options};
use nix::sys::signal::{Signal, kill};
use nix::sys::wait::{WaitPidFlag, WaitStatus, waitpid};
use nix::unistd::Pid;
use std::collections::{BTreeMap, BTreeSet};
use std::fs::File;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use std::process::Child;

/// Number of distinct denied attempts that are listed. Further ones are only counted, so that a
/// program that scans a disk cannot fill the record.
const MOST_LISTED: usize = 500;

/// Error codes of a refusal. Landlock answers `EXDEV` when a file would move out of a tree.
const REFUSALS: [i64; 3] = [libc::EACCES as i64, libc::EPERM as i64, libc::EXDEV as i64];

/// How the agent's own process ended.
pub type Ended = (Option<i32>, Option<Signal>);

/// Traces one agent and everything it starts.
pub struct Tracer {
    agent: Pid,
    known: BTreeSet<Pid>,
    asked: BTreeMap<Pid, PendingCall>,
    seen: BTreeMap<(String, String), Attempt>,
    unlisted: u64,
    end: End,
}

/// A system call in progress.
struct PendingCall {
    act: &'static str,
    path: String,
}

/// The result of attaching to a new process.
pub enum Meeting {
    Observed,
    /// Tracing is not permitted; the process has ended.
    Refused,
    /// The process was ended before it started the program.
    Ended(Signal),
}

/// Waits for the new process to stop, and sets the ptrace options.
pub fn meet(child: &Child) -> Meeting {
    let pid = Pid::from_raw(child.id() as i32);
    let options = Options::PTRACE_O_TRACESYSGOOD
        | Options::PTRACE_O_TRACESECCOMP
        | Options::PTRACE_O_TRACEFORK
        | Options::PTRACE_O_TRACEVFORK
        | Options::PTRACE_O_TRACECLONE
        | Options::PTRACE_O_TRACEEXEC
        | Options::PTRACE_O_EXITKILL;
    match waitpid(pid, Some(WaitPidFlag::__WALL)) {
        Ok(WaitStatus::Stopped(_, Signal::SIGSTOP)) => {
            if ptrace::setoptions(pid, options).is_err() {
                // After any other status, the process must not continue untraced.
                let _ = kill(pid, Signal::SIGKILL);
                let _ = waitpid(pid, Some(WaitPidFlag::__WALL));
                return Meeting::Refused;
            }
            resume(pid, None);
            Meeting::Observed
        }
        Ok(WaitStatus::Signaled(_, signal, _)) => Meeting::Ended(signal),
        _ => Meeting::Refused,
    }
}

impl Tracer {
    pub fn new(child: &Child, end: End) -> Self {
        let agent = Pid::from_raw(child.id() as i32);
        Tracer {
            agent,
            known: BTreeSet::from([agent]),
            asked: BTreeMap::new(),
            seen: BTreeMap::new(),
            unlisted: 0,
            end,
        }
    }

    /// Returns the attempts that happened more than once, with their count.
    pub fn repeated(&self) -> Vec<Attempt> {
        self.seen
            .values()
            .filter(|attempt| attempt.times > 1)
            .cloned()
            .collect()
    }

    pub fn unlisted(&self) -> u64 {
        self.unlisted
    }

    /// Traces until the agent's own process has ended.
    pub fn follow(&mut self, tell: &mut dyn FnMut(Attempt)) -> Result<Ended, String> {
        loop {
            let status = match waitpid(None, Some(WaitPidFlag::__WALL)) {
                Ok(status) => status,
                Err(Errno::EINTR) => continue,
                // No traced process is left, so the agent's exit status is lost.
                Err(Errno::ECHILD) => return Ok((None, Some(Signal::SIGKILL))),
                Err(why) => return Err(format!("waiting for the agent: {why}")),
            };
            let is_stop = matches!(
                status,
                WaitStatus::PtraceEvent(..)
                    | WaitStatus::PtraceSyscall(_)
                    | WaitStatus::Stopped(..)
            );
            if let (true, true, Some(pid)) = (self.end.is_decided(), is_stop, status.pid()) {
                // The end is decided: kills stopped processes, including those just started.
                let _ = kill(pid, Signal::SIGKILL);
                continue;
            }
            match status {
                WaitStatus::Exited(pid, code) if pid == self.agent => {
                    return Ok((Some(code), None));
                }
                WaitStatus::Signaled(pid, signal, _) if pid == self.agent => {
                    return Ok((None, Some(signal)));
                }
                WaitStatus::Exited(pid, _) | WaitStatus::Signaled(pid, _, _) => self.forget(pid),
                WaitStatus::PtraceEvent(pid, _, event) => self.on_event(pid, event),
                WaitStatus::PtraceSyscall(pid) => self.on_result(pid, tell),
                WaitStatus::Stopped(pid, signal) => self.on_signal(pid, signal),
                _ => {}
            }
        }
    }

    fn forget(&mut self, pid: Pid) {
        self.known.remove(&pid);
        self.asked.remove(&pid);
    }

    fn on_event(&mut self, pid: Pid, event: i32) {
        if event == Event::PTRACE_EVENT_SECCOMP as i32
            && let Some(asked) = read_call(pid)
        {
            self.asked.insert(pid, asked);
            resume_to_result(pid);
            return;
        }
        if event == Event::PTRACE_EVENT_EXEC as i32 {
            // A successful execve was not refused.
            self.asked.remove(&pid);
        }
        resume(pid, None);
    }

    fn on_result(&mut self, pid: Pid, tell: &mut dyn FnMut(Attempt)) {
        if let (Some(asked), Ok(regs)) = (self.asked.remove(&pid), registers::read(pid))
            && REFUSALS.contains(&-regs.result)
        {
            self.note(pid, asked, tell);
        }
        resume(pid, None);
    }

    fn note(&mut self, pid: Pid, asked: PendingCall, tell: &mut dyn FnMut(Attempt)) {
        let key = (asked.act.to_string(), one_for_all_processes(&asked.path));
        if let Some(known) = self.seen.get_mut(&key) {
            known.times += 1;
        } else if self.seen.len() >= MOST_LISTED {
            self.unlisted += 1;
        } else {
            let attempt = Attempt {
                act: key.0.clone(),
                leads_to: leads_to(pid, &key.1),
                path: key.1.clone(),
                program: family::program_of(pid).unwrap_or_default(),
                by: "kernel".to_string(),
                times: 1,
            };
            tell(attempt.clone());
            self.seen.insert(key, attempt);
        }
    }

    fn on_signal(&mut self, pid: Pid, signal: Signal) {
        let stops = matches!(
            signal,
            Signal::SIGSTOP | Signal::SIGTSTP | Signal::SIGTTIN | Signal::SIGTTOU
        );
        let is_new = self.known.insert(pid);
        if is_new {
            self.end.check_tasks(self.known.len() as u64);
        }
        // A new process arrives stopped; its stop signal is swallowed. A group-stop (without
        // pending signal info) is resumed too, because nothing would continue a stopped agent.
        let swallowed = stops && (is_new || ptrace::getsiginfo(pid).is_err());
        resume(pid, (!swallowed).then_some(signal));
    }
}

fn resume(pid: Pid, signal: Option<Signal>) {
    // A process killed meanwhile cannot be resumed; the next wait reports its end.
    let _ = ptrace::cont(pid, signal);
}

fn resume_to_result(pid: Pid) {
    let _ = ptrace::syscall(pid, None);
}

/// Reads the call that a process is about to make.
fn read_call(pid: Pid) -> Option<PendingCall> {
    let regs = registers::read(pid).ok()?;
    let call: &Call = resolve_call(regs.number)?;
    let memory = File::open(format!("/proc/{pid}/mem")).ok()?;
    let flags = match call.want {
        Want::Open(flags) => regs.args[flags],
        Want::OpenHow(how) => {
            let mut word = [0u8; 8];
            memory.read_exact_at(&mut word, regs.args[how]).ok()?;
            u64::from_ne_bytes(word)
        }
        _ => 0,
    };
    let path = read_path(&memory, regs.args[call.path])?;
    let path = absolute(pid, &path, call.folder.map(|index| regs.args[index] as i32));
    Some(PendingCall {
        act: act(call.want, flags),
        path,
    })
}

/// Reads a path from another process's memory up to its zero byte, page by page, because the next
/// page may be unmapped.
fn read_path(memory: &File, address: u64) -> Option<PathBuf> {
    const PAGE: u64 = 4096;
    let mut bytes = Vec::new();
    let mut at = address;
    while bytes.len() < libc::PATH_MAX as usize {
        let mut part = vec![0u8; (PAGE - at % PAGE) as usize];
        let read = memory.read_at(&mut part, at).ok()?;
        if read == 0 {
            return None;
        }
        match part[..read].iter().position(|byte| *byte == 0) {
            Some(end) => {
                bytes.extend_from_slice(&part[..end]);
                return Some(PathBuf::from(String::from_utf8_lossy(&bytes).into_owned()));
            }
            None => bytes.extend_from_slice(&part[..read]),
        }
        at += read as u64;
    }
    None
}

/// Replaces the pid in a `/proc` path. A program that lists processes tries the same file of each,
/// and one line covers all.
fn one_for_all_processes(path: &str) -> String {
    let of_process = path
        .strip_prefix("/proc/")
        .and_then(|rest| rest.split_once('/'));
    match of_process {
        Some((pid, rest)) if pid.parse::<u32>().is_ok() => format!("/proc/*/{rest}"),
        _ => path.to_string(),
    }
}

/// Returns the resolved path if it differs. The tracer runs outside the sandbox and may follow
/// links.
fn leads_to(pid: Pid, path: &str) -> Option<String> {
    let path = match path.strip_prefix("/proc/self/") {
        Some(rest) => PathBuf::from(format!("/proc/{pid}/{rest}")),
        None => PathBuf::from(path),
    };
    let real = path.canonicalize().ok()?;
    (real != path).then(|| real.display().to_string())
}

fn absolute(pid: Pid, path: &Path, folder: Option<i32>) -> String {
    if path.is_absolute() {
        return path.display().to_string();
    }
    let link = match folder {
        Some(number) if number != libc::AT_FDCWD => format!("/proc/{pid}/fd/{number}"),
        _ => format!("/proc/{pid}/cwd"),
    };
    match std::fs::read_link(link) {
        Ok(folder) => folder.join(path).display().to_string(),
        Err(_) => path.display().to_string(),
    }
}
