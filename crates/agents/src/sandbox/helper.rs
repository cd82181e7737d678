//! The helper: starts the agent, stands by until it ends, ends what it left, and reports.
//!
//! It ends the agent when told (SIGTERM) and when its own caller is gone. If the helper itself is killed, the kernel
//! ends every process that it observed.

use super::confine::{NOT_STARTED, UNOBSERVED};
use super::policy::Policy;
use super::report::Line;
use super::tracer::{self, Meeting, Tracer};
use super::{INNER_COMMAND, family, registers};
use nix::sys::signal::{SigSet, Signal};
use std::fs::{File, OpenOptions};
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitCode};
use std::thread;
use std::time::Duration;

/// How often the helper looks whether its caller is still there.
const CALLER_LOOK: Duration = Duration::from_millis(250);

/// Runs one program by its policy. The exit code is the program's; a signal is 128 and its number, as in a shell.
pub fn stand_by(policy: Option<PathBuf>) -> ExitCode {
    let Some(path) = policy else { return ExitCode::from(NOT_STARTED) };
    let Ok(policy) = Policy::load(&path) else { return ExitCode::from(NOT_STARTED) };
    let Ok(report) = OpenOptions::new().create(true).append(true).open(&policy.report) else {
        return ExitCode::from(NOT_STARTED);
    };
    match Helper::new(report).run(&path, &policy) {
        Ok(code) => ExitCode::from(code),
        Err(why) => {
            Helper::again(&policy.report, &Line::Failed { why });
            ExitCode::from(NOT_STARTED)
        }
    }
}

struct Helper {
    report: File,
}

impl Helper {
    fn new(report: File) -> Self {
        Helper { report }
    }

    /// Adds a line to a report that this process has no handle of any more.
    fn again(report: &Path, line: &Line) {
        if let Ok(file) = OpenOptions::new().append(true).open(report) {
            Helper::new(file).tell(line);
        }
    }

    fn tell(&mut self, line: &Line) {
        if let Ok(text) = serde_json::to_string(line) {
            // Nobody is left to tell if the report cannot be written.
            let _ = self.report.write_all(format!("{text}\n").as_bytes());
        }
    }

    fn run(mut self, path: &Path, policy: &Policy) -> Result<u8, String> {
        rustix::process::set_child_subreaper(Some(rustix::process::getpid())).map_err(|why| format!("orphans cannot be kept: {why}"))?;
        watch_caller(policy.parent)?;
        let observed = registers::KNOWN && may_trace();
        let mut child = start_inner(path, observed)?;
        let met = if observed { tracer::meet(&child) } else { Meeting::Refused };
        let (code, signal) = match met {
            Meeting::Observed => self.observe(&child)?,
            Meeting::Ended(signal) => (None, Some(signal)),
            Meeting::Refused => {
                if observed {
                    child = start_inner(path, false)?;
                }
                wait(&mut child)?
            }
        };
        self.end_the_rest();
        self.tell(&Line::Exited { code, signal: signal.map(|signal| signal.as_str().to_string()) });
        Ok(match (code, signal) {
            (Some(code), _) => code as u8,
            (None, Some(signal)) => 128u8.saturating_add(signal as i32 as u8),
            (None, None) => NOT_STARTED,
        })
    }

    fn observe(&mut self, child: &Child) -> Result<(Option<i32>, Option<Signal>), String> {
        let mut tracer = Tracer::new(child);
        let ended = tracer.follow(&mut |attempt| self.tell(&Line::Denied(attempt)))?;
        for attempt in tracer.repeated() {
            self.tell(&Line::Denied(attempt));
        }
        if tracer.unlisted() > 0 {
            self.tell(&Line::MoreDenied { times: tracer.unlisted() });
        }
        Ok(ended)
    }

    /// Ends what outlived the agent, until nothing is left.
    fn end_the_rest(&mut self) {
        let mut named = Vec::new();
        for _ in 0..200 {
            let rest = family::living();
            if rest.is_empty() {
                break;
            }
            for member in rest {
                if !named.contains(&member.pid) {
                    named.push(member.pid);
                    self.tell(&Line::LeftBehind { program: member.program });
                }
            }
            family::end_all();
            reap();
            thread::sleep(Duration::from_millis(5));
        }
        reap();
    }
}

/// Ends the agent when this process is told to, or when its caller is gone.
fn watch_caller(caller: u32) -> Result<(), String> {
    let mut wanted = SigSet::empty();
    for signal in [Signal::SIGTERM, Signal::SIGINT, Signal::SIGHUP] {
        wanted.add(signal);
    }
    wanted.thread_block().map_err(|why| format!("signals: {why}"))?;
    thread::spawn(move || {
        // However often it is told: each time all are ended.
        while wanted.wait().is_ok() {
            family::end_all();
        }
    });
    thread::spawn(move || {
        loop {
            if std::os::unix::process::parent_id() != caller {
                family::end_all();
            }
            thread::sleep(CALLER_LOOK);
        }
    });
    Ok(())
}

fn start_inner(policy: &Path, observed: bool) -> Result<Child, String> {
    let mut command = Command::new("/proc/self/exe");
    command.arg(INNER_COMMAND).arg(policy);
    if !observed {
        command.env(UNOBSERVED, "1");
    }
    command.spawn().map_err(|why| format!("the sandbox's second process: {why}"))
}

/// Whether this process may observe its children. `ptrace_scope` 2 and 3 forbid it to ordinary users.
fn may_trace() -> bool {
    let scope = std::fs::read_to_string("/proc/sys/kernel/yama/ptrace_scope").unwrap_or_default();
    match scope.trim() {
        "2" => rustix::process::geteuid().is_root(),
        "3" => false,
        _ => true,
    }
}

fn wait(child: &mut Child) -> Result<(Option<i32>, Option<Signal>), String> {
    use std::os::unix::process::ExitStatusExt;
    let status = child.wait().map_err(|why| format!("waiting for the agent: {why}"))?;
    Ok((status.code(), status.signal().and_then(|number| Signal::try_from(number).ok())))
}

/// Takes note of children that ended, so that they do not count as living.
fn reap() {
    use nix::sys::wait::{WaitPidFlag, WaitStatus, waitpid};
    let flags = WaitPidFlag::WNOHANG | WaitPidFlag::__WALL;
    while let Ok(status) = waitpid(None, Some(flags)) {
        if status == WaitStatus::StillAlive {
            break;
        }
    }
}
