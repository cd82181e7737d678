//! Looks on while an agent's processes make the calls in `calls.rs`, and notes those that the
//! kernel refused.
//!
//! A filter stops a process at each such call; the path is read, the call goes on, and its result
//! is looked at. Nothing is decided here. A path that another thread changes between reading and
//! result makes one line of the record wrong and nothing else. All processes and threads below the
//! agent are followed; when this process ends, the kernel ends them.

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

/// Different attempts that are listed. More are only counted: a program that scans a disk must not
/// fill another.
const MOST_LISTED: usize = 500;

/// What the kernel answers when it refuses. `EXDEV` is Landlock's answer to moving a file out of a
/// tree.
const REFUSALS: [i64; 3] = [libc::EACCES as i64, libc::EPERM as i64, libc::EXDEV as i64];

/// How the agent's own process ended.
pub type Ended = (Option<i32>, Option<Signal>);

/// Follows one agent and everything it starts.
pub struct Tracer {
    agent: Pid,
    known: BTreeSet<Pid>,
    asked: BTreeMap<Pid, Asked>,
    seen: BTreeMap<(String, String), Attempt>,
    unlisted: u64,
    end: End,
}

/// A call that is under way.
struct Asked {
    act: &'static str,
    path: String,
}

/// What came of meeting a new process that is to be observed.
pub enum Meeting {
    Observed,
    /// It may not be observed here and has ended.
    Refused,
    /// It was ended before it began.
    Ended(Signal),
}

/// Waits for the new process to stop for its observer, and sets the options.
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
                // Whatever was between the two, the process is not to run unobserved by accident.
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

    /// Attempts that happened more than once, with their number.
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

    /// Follows until the agent's own process has ended.
    pub fn follow(&mut self, tell: &mut dyn FnMut(Attempt)) -> Result<Ended, String> {
        loop {
            let status = match waitpid(None, Some(WaitPidFlag::__WALL)) {
                Ok(status) => status,
                Err(Errno::EINTR) => continue,
                // The observed processes are all gone, and with them the answer how the agent
                // ended.
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
                // Nobody goes on, and whoever was just started does not begin.
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
            // A call that replaced the program was not refused.
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

    fn note(&mut self, pid: Pid, asked: Asked, tell: &mut dyn FnMut(Attempt)) {
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
        // A new process arrives stopped. A process that has stopped already (no signal is pending
        // on it) is let on: an agent's job control has no one to continue it.
        let swallowed = stops && (is_new || ptrace::getsiginfo(pid).is_err());
        resume(pid, (!swallowed).then_some(signal));
    }
}

fn resume(pid: Pid, signal: Option<Signal>) {
    // A process that was killed meanwhile cannot be resumed; its end is told by the next wait.
    let _ = ptrace::cont(pid, signal);
}

fn resume_to_result(pid: Pid) {
    let _ = ptrace::syscall(pid, None);
}

/// The call that a process is about to make.
fn read_call(pid: Pid) -> Option<Asked> {
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
    Some(Asked {
        act: act(call.want, flags),
        path,
    })
}

/// A path in another process's memory, to its zero byte, never across a page that is not there.
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

/// A program that lists processes tries the same file of each: one line tells of all.
fn one_for_all_processes(path: &str) -> String {
    let of_process = path
        .strip_prefix("/proc/")
        .and_then(|rest| rest.split_once('/'));
    match of_process {
        Some((pid, rest)) if pid.parse::<u32>().is_ok() => format!("/proc/*/{rest}"),
        _ => path.to_string(),
    }
}

/// Where a path leads, if that is not where it says. This process stands outside and may follow it.
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
