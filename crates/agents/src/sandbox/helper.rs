//! The sandbox helper: starts the agent, waits for its end, ends leftover processes, and reports.
//!
//! It runs as process 1 of a namespace if the machine permits one, and otherwise among the caller's
//! processes. It ends the agent on SIGTERM, when its caller has exited, and when a bound is
//! exceeded. If the helper itself is killed, the kernel ends every process of its namespace, or
//! every process that it traced.

use super::confine::{NOT_STARTED, OWN_PROC, UNOBSERVED};
use super::limits::End;
use super::policy::Policy;
use super::report::{Line, load_report, tell};
use super::tracer::{self, Ended, Meeting, Tracer};
use super::{INNER_COMMAND, family, namespace, registers};
use nix::errno::Errno;
use nix::sys::signal::{SigSet, Signal, kill};
use nix::sys::wait::{WaitPidFlag, WaitStatus, waitpid};
use nix::unistd::Pid;
use std::fs::OpenOptions;
use std::os::unix::process::ExitStatusExt;
use std::path::Path;
use std::process::{Child, Command, ExitCode};
use std::sync::Arc;
use std::sync::atomic::{AtomicI32, Ordering};
use std::thread;
use std::time::Duration;

/// Interval at which the helper checks that its caller still runs.
const CALLER_LOOK: Duration = Duration::from_millis(250);
/// Pause between two attempts to end leftover processes.
const END_PAUSE: Duration = Duration::from_millis(5);

/// Runs one program by its policy. Returns the program's exit code, or 128 plus the signal number,
/// as a shell does.
pub fn stand_by(path: &Path) -> ExitCode {
    let Ok(policy) = Policy::load(path) else {
        return ExitCode::from(NOT_STARTED);
    };
    if OpenOptions::new()
        .create(true)
        .append(true)
        .open(&policy.report)
        .is_err()
    {
        return ExitCode::from(NOT_STARTED);
    }
    conclude(&policy, stand_outside(path, &policy))
}

/// Like `stand_by`, as process 1 of a namespace. `parent` is the process that created the
/// namespace.
pub fn stand_by_as_first(path: &Path, parent: &str) -> ExitCode {
    // An empty report shows the outer helper that nothing was started; it then continues without a
    // namespace.
    if namespace::prepare_first(parent).is_err() {
        return ExitCode::from(NOT_STARTED);
    }
    let Ok(policy) = Policy::load(path) else {
        return ExitCode::from(NOT_STARTED);
    };
    tell(&policy.report, &Line::OwnProcesses);
    let end = End::new(&policy);
    let told = end.clone();
    let run = on_signals(move || told.decide()).and_then(|()| {
        Helper {
            policy: &policy,
            end,
            own_proc: true,
        }
        .run(path)
    });
    conclude(&policy, run)
}

fn conclude(policy: &Policy, run: Result<u8, String>) -> ExitCode {
    match run {
        Ok(code) => ExitCode::from(code),
        Err(why) => {
            tell(&policy.report, &Line::Failed { why });
            ExitCode::from(NOT_STARTED)
        }
    }
}

fn stand_outside(path: &Path, policy: &Policy) -> Result<u8, String> {
    rustix::process::set_child_subreaper(Some(rustix::process::getpid()))
        .map_err(|why| format!("cannot adopt orphaned processes: {why}"))?;
    let end = End::new(policy);
    let namespaced = Arc::new(AtomicI32::new(0));
    let (told, passed_to) = (end.clone(), Arc::clone(&namespaced));
    on_signals(move || match passed_to.load(Ordering::SeqCst) {
        0 => told.decide(),
        // Process 1 ends its descendants and completes the report.
        pid => drop(kill(Pid::from_raw(pid), Signal::SIGTERM)),
    })?;
    watch_caller(policy.parent, end.clone());
    if let Ok(mut child) = namespace::start(path) {
        namespaced.store(child.id() as i32, Ordering::SeqCst);
        let status = child
            .wait()
            .map_err(|why| format!("waiting for the namespace: {why}"))?;
        namespaced.store(0, Ordering::SeqCst);
        if load_report(&policy.report).own_processes {
            return Ok(exit_code((
                status.code(),
                status
                    .signal()
                    .and_then(|number| Signal::try_from(number).ok()),
            )));
        }
    }
    Helper {
        policy,
        end,
        own_proc: false,
    }
    .run(path)
}

struct Helper<'a> {
    policy: &'a Policy,
    end: End,
    own_proc: bool,
}

impl Helper<'_> {
    fn tell(&self, line: &Line) {
        tell(&self.policy.report, line);
    }

    fn run(self, path: &Path) -> Result<u8, String> {
        let observed = registers::KNOWN && may_trace();
        let mut child = self.start_inner(path, observed)?;
        self.end.watch_bounds();
        let met = if observed {
            tracer::meet(&child)
        } else {
            Meeting::Refused
        };
        let ended = match met {
            Meeting::Observed => self.observe(&child)?,
            Meeting::Ended(signal) => (None, Some(signal)),
            Meeting::Refused => {
                if observed {
                    child = self.start_inner(path, false)?;
                }
                self.wait(&child)?
            }
        };
        self.end_the_rest();
        self.tell(&Line::Exited {
            code: ended.0,
            signal: ended.1.map(|signal| signal.as_str().to_string()),
        });
        Ok(exit_code(ended))
    }

    fn start_inner(&self, policy: &Path, observed: bool) -> Result<Child, String> {
        let mut command = Command::new("/proc/self/exe");
        command.arg(INNER_COMMAND).arg(policy);
        if !observed {
            command.env(UNOBSERVED, "1");
        }
        if self.own_proc {
            command.env(OWN_PROC, "1");
        }
        let child = command
            .spawn()
            .map_err(|why| format!("the sandbox's second process: {why}"))?;
        if self.end.is_decided() {
            family::end_all();
        }
        Ok(child)
    }

    fn observe(&self, child: &Child) -> Result<Ended, String> {
        let mut tracer = Tracer::new(child, self.end.clone());
        let ended = tracer.follow(&mut |attempt| self.tell(&Line::Denied(attempt)))?;
        for attempt in tracer.repeated() {
            self.tell(&Line::Denied(attempt));
        }
        if tracer.unlisted() > 0 {
            self.tell(&Line::MoreDenied {
                times: tracer.unlisted(),
            });
        }
        Ok(ended)
    }

    /// Waits for an agent that is not traced, and reaps orphans meanwhile.
    fn wait(&self, child: &Child) -> Result<Ended, String> {
        let agent = Pid::from_raw(child.id() as i32);
        loop {
            match waitpid(None, Some(WaitPidFlag::__WALL)) {
                Ok(WaitStatus::Exited(pid, code)) if pid == agent => return Ok((Some(code), None)),
                Ok(WaitStatus::Signaled(pid, signal, _)) if pid == agent => {
                    return Ok((None, Some(signal)));
                }
                Ok(_) | Err(Errno::EINTR) => {}
                Err(why) => return Err(format!("waiting for the agent: {why}")),
            }
        }
    }

    /// Ends the processes that outlived the agent. The loop stops when this process has no child
    /// left. Every orphan becomes its child, so this is the only proof that none remains.
    fn end_the_rest(&self) {
        let mut named = Vec::new();
        loop {
            for member in family::living() {
                if !named.contains(&member.pid) {
                    named.push(member.pid);
                    self.tell(&Line::LeftBehind {
                        program: member.program,
                    });
                }
                // The process may have exited already.
                let _ = kill(member.pid, Signal::SIGKILL);
            }
            if bury() {
                return;
            }
            thread::sleep(END_PAUSE);
        }
    }
}

/// Reaps exited children, and kills traced ones that stopped. A process that forks stops, and so
/// does its child, so no process can fork faster than it is killed. Returns whether no child is
/// left.
fn bury() -> bool {
    loop {
        match waitpid(None, Some(WaitPidFlag::WNOHANG | WaitPidFlag::__WALL)) {
            Ok(WaitStatus::StillAlive) => return false,
            Ok(WaitStatus::Exited(..) | WaitStatus::Signaled(..)) | Err(Errno::EINTR) => {}
            Ok(stopped) => {
                if let Some(pid) = stopped.pid() {
                    let _ = kill(pid, Signal::SIGKILL);
                }
            }
            Err(_) => return true,
        }
    }
}

/// Calls `act` for each termination signal that this process receives.
fn on_signals(act: impl Fn() + Send + 'static) -> Result<(), String> {
    let mut wanted = SigSet::empty();
    for signal in [Signal::SIGTERM, Signal::SIGINT, Signal::SIGHUP] {
        wanted.add(signal);
    }
    wanted
        .thread_block()
        .map_err(|why| format!("signals: {why}"))?;
    thread::spawn(move || {
        while wanted.wait().is_ok() {
            act();
        }
    });
    Ok(())
}

/// Ends everything when the caller has exited. Nobody reads the report in that case.
fn watch_caller(caller: u32, end: End) {
    thread::spawn(move || {
        loop {
            if std::os::unix::process::parent_id() != caller {
                end.decide();
            }
            thread::sleep(CALLER_LOOK);
        }
    });
}

/// Whether this process may trace its children. `ptrace_scope` 2 and 3 forbid it to ordinary users.
fn may_trace() -> bool {
    let scope = std::fs::read_to_string("/proc/sys/kernel/yama/ptrace_scope").unwrap_or_default();
    match scope.trim() {
        "2" => rustix::process::geteuid().is_root(),
        "3" => false,
        _ => true,
    }
}

fn exit_code(ended: Ended) -> u8 {
    match ended {
        (Some(code), _) => code as u8,
        (None, Some(signal)) => 128u8.saturating_add(signal as i32 as u8),
        (None, None) => NOT_STARTED,
    }
}
