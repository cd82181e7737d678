//! The process that confines itself and then executes the agent's program.
//!
//! Order matters. The process first opens everything outside the sandbox (the policy, the report).
//! If the helper is to observe it, it then stops for the helper. Then it closes inherited
//! descriptors, restricts itself with Landlock, installs its seccomp filters, and executes the
//! program with the agent's variables. Landlock restrictions cannot be undone; any failure after
//! them ends the process.

use super::calls;
use super::grants::{PROC, PROC_OF_ALL};
use super::policy::{Policy, unwrap_variables};
use super::report::Line;
use crate::outcome::Confinement;
use landlock::{
    ABI, Access, AccessFs, BitFlags, CompatLevel, Compatible, LandlockStatus, Ruleset, RulesetAttr,
    RulesetCreatedAttr, RulesetStatus, Scope, path_beneath_rules,
};
use nix::libc;
use nix::sys::ptrace;
use nix::sys::signal::{SigSet, Signal, raise};
use rustix::process::{Resource, Rlimit};
use rustix::thread::{CapabilitySet, CapabilitySets};
use seccompiler::{
    BpfProgram, SeccompAction, SeccompCmpArgLen, SeccompCmpOp, SeccompCondition, SeccompFilter,
    SeccompRule,
};
use std::collections::BTreeMap;
use std::fs::OpenOptions;
use std::io::Write;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode};

/// Exit code of a helper that could not start the program; the report has the reason.
pub const NOT_STARTED: u8 = 125;
/// Exit code of a process that must not be traced; the helper then starts one without tracing.
pub const UNOBSERVABLE: u8 = 124;
/// Set by the helper when it cannot trace on this machine.
pub const UNOBSERVED: &str = "QUIPU_SANDBOX_UNOBSERVED";

/// The newest Landlock version tested. Older kernels enforce the rules they know.
const NEWEST: ABI = ABI::V9;

/// Set by the helper when `/proc` shows only the agent's processes.
pub const OWN_PROC: &str = "QUIPU_SANDBOX_OWN_PROC";
/// OOM score: the kernel kills the agent before the user's other processes when memory runs out.
const OUT_OF_MEMORY: &str = "1000";

/// Confines this process by the policy and executes the program in it. Returns only on failure.
pub fn become_agent(policy: &Path) -> ExitCode {
    let Ok(policy) = Policy::load(policy) else {
        return ExitCode::from(NOT_STARTED);
    };
    let Ok(mut report) = OpenOptions::new().append(true).open(&policy.report) else {
        return ExitCode::from(NOT_STARTED);
    };
    let mut tell = |line: &Line| {
        if let Ok(text) = serde_json::to_string(line) {
            // Without a report the confinement is unknown, which the reader treats as a failure.
            let _ = report.write_all(format!("{text}\n").as_bytes());
        }
    };
    let observed = std::env::var_os(UNOBSERVED).is_none();
    // The helper sets its ptrace options while this process is stopped; the filter below needs
    // them.
    if observed && (ptrace::traceme().is_err() || raise(Signal::SIGSTOP).is_err()) {
        return ExitCode::from(UNOBSERVABLE);
    }
    let why = match confine(&policy, observed, &mut tell) {
        Ok(()) => {
            let mut command = Command::new(&policy.program);
            command
                .args(&policy.args)
                .current_dir(&policy.folder)
                .env_clear()
                .envs(unwrap_variables());
            let failed = command.exec();
            format!("{}: {failed}", policy.program.display())
        }
        Err(why) => why,
    };
    tell(&Line::Failed { why });
    ExitCode::from(NOT_STARTED)
}

fn confine(policy: &Policy, observed: bool, tell: &mut dyn FnMut(&Line)) -> Result<(), String> {
    rustix::process::setsid().map_err(|why| format!("cannot create a session: {why}"))?;
    SigSet::all()
        .thread_unblock()
        .map_err(|why| format!("signals: {why}"))?;
    let limit = Rlimit {
        current: Some(policy.file_bound),
        maximum: Some(policy.file_bound),
    };
    rustix::process::setrlimit(Resource::Fsize, limit)
        .map_err(|why| format!("limit of file size: {why}"))?;
    let none = Rlimit {
        current: Some(0),
        maximum: Some(0),
    };
    rustix::process::setrlimit(Resource::Core, none)
        .map_err(|why| format!("limit of core files: {why}"))?;
    // Runs before the restriction, while `/proc` can still be read.
    keep_three_descriptors().map_err(|why| format!("inherited descriptors: {why}"))?;
    // If it cannot be set, the helper's own memory bound still applies.
    let _ = std::fs::write("/proc/self/oom_score_adj", OUT_OF_MEMORY);
    let abi = restrict(policy)?;
    tell(&Line::Confined(match abi {
        Some(abi) => Confinement::Kernel { abi, observed },
        None => Confinement::VerificationOnly {
            why: "this kernel has no Landlock".to_string(),
        },
    }));
    drop_capabilities()?;
    filter(observed, policy.offline)
}

/// Restricts this process to the policy's folders. Returns the kernel's Landlock version, or `None`
/// without Landlock.
fn restrict(policy: &Policy) -> Result<Option<i32>, String> {
    for must in policy.read.iter().chain(&policy.write) {
        if !must.is_dir() {
            return Err(format!("{} is not a folder", must.display()));
        }
    }
    let reading = AccessFs::ReadFile | AccessFs::ReadDir;
    let running = AccessFs::from_read(NEWEST);
    // Agents must not create device nodes.
    let writing = AccessFs::from_all(NEWEST) & !(AccessFs::MakeChar | AccessFs::MakeBlock);
    let device = AccessFs::ReadFile | AccessFs::WriteFile;
    // In a shared `/proc`, the rules grant only this process's own folder. Its children get none,
    // because a rule cannot name a folder that does not exist yet.
    let proc: Vec<PathBuf> = match std::env::var_os(OWN_PROC) {
        Some(_) => vec![PathBuf::from(PROC)],
        None => PROC_OF_ALL
            .iter()
            .chain(&["/proc/self"])
            .map(PathBuf::from)
            .filter(|path| path.exists())
            .collect(),
    };
    let build = || -> Result<_, landlock::RulesetError> {
        Ruleset::default()
            .set_compatibility(CompatLevel::BestEffort)
            .handle_access(AccessFs::from_all(NEWEST))?
            .scope(Scope::from_all(NEWEST))?
            .create()?
            .add_rules(rules(&policy.run, running))?
            .add_rules(rules(&proc, reading))?
            .add_rules(rules(&policy.read, reading))?
            .add_rules(rules(&policy.write, writing))?
            .add_rules(rules(&policy.devices, device))?
            .no_new_privs(true)
            .restrict_self()
    };
    let status = build().map_err(|why| format!("Landlock: {why}"))?;
    match (status.landlock, status.ruleset) {
        (
            LandlockStatus::Available { effective_abi, .. },
            RulesetStatus::FullyEnforced | RulesetStatus::PartiallyEnforced,
        ) => Ok(Some(effective_abi as i32)),
        (LandlockStatus::Available { .. }, _) => {
            Err("Landlock is available but was not enforced".to_string())
        }
        _ => Ok(None),
    }
}

/// Returns the kernel's Landlock version, or `None` without Landlock. Confines a thread that then
/// ends, because the crate tells the version only of what was confined.
pub fn probe_landlock() -> Option<i32> {
    let probe = || {
        let status = Ruleset::default()
            .set_compatibility(CompatLevel::BestEffort)
            .handle_access(AccessFs::from_all(NEWEST))
            .and_then(|ruleset| ruleset.create())
            .and_then(|ruleset| ruleset.no_new_privs(true).restrict_self())
            .ok()?;
        match status.landlock {
            LandlockStatus::Available { effective_abi, .. } => Some(effective_abi as i32),
            _ => None,
        }
    };
    std::thread::spawn(probe).join().ok().flatten()
}

/// Whether the kernel has the seccomp filters that the sandbox needs.
pub fn probe_seccomp() -> bool {
    std::fs::read_to_string("/proc/sys/kernel/seccomp/actions_avail")
        .is_ok_and(|known| known.split_whitespace().any(|action| action == "trace"))
}

/// Drops the capabilities of root. Landlock does not restrict all of them: with CAP_PERFMON, for
/// example, root can read the environment of every process.
fn drop_capabilities() -> Result<(), String> {
    let none = CapabilitySet::empty();
    let sets = CapabilitySets {
        effective: none,
        permitted: none,
        inheritable: none,
    };
    rustix::thread::set_capabilities(None, sets).map_err(|why| format!("capabilities: {why}"))
}

fn rules(
    paths: &[PathBuf],
    access: BitFlags<AccessFs>,
) -> impl Iterator<Item = Result<landlock::PathBeneath<landlock::PathFd>, landlock::RulesetError>> {
    path_beneath_rules(
        paths.iter().map(PathBuf::as_path).collect::<Vec<&Path>>(),
        access,
    )
}

/// Installs the seccomp filters: traced calls, calls that return ENOSYS, and no sockets if offline.
fn filter(observed: bool, offline: bool) -> Result<(), String> {
    // io_uring opens files without an observable system call. clone3 takes its flags in memory,
    // where a filter cannot read them. Programs fall back to other calls for both.
    let mut absent = vec![libc::SYS_io_uring_setup, libc::SYS_clone3];
    // Kernel keyrings are not files, so Landlock does not protect them.
    absent.extend([libc::SYS_keyctl, libc::SYS_add_key, libc::SYS_request_key]);
    if observed {
        // A process that detached from its tracer would lose file access anyway; denying the call
        // is simpler.
        absent.push(libc::SYS_ptrace);
    }
    deny(&absent, libc::ENOSYS)?;
    // An untraced process would outlive its tracer.
    let untraced = SeccompCondition::new(
        0,
        SeccompCmpArgLen::Qword,
        SeccompCmpOp::MaskedEq(UNTRACED),
        UNTRACED,
    )
    .and_then(|condition| SeccompRule::new(vec![condition]))
    .map_err(|why| format!("system call filter: {why}"))?;
    let rules = with_x32(&[libc::SYS_clone])
        .map(|number| (number, vec![untraced.clone()]))
        .collect();
    set_filter(rules, SeccompAction::Errno(libc::EPERM as u32))?;
    keep_to_itself()?;
    if offline {
        deny(&[libc::SYS_socket], libc::EACCES)?;
    }
    if observed {
        let rules = calls::all().map(|call| (call.number, Vec::new())).collect();
        set_filter(rules, SeccompAction::Trace(0))?;
    }
    Ok(())
}

/// A process may set limits and priorities only for itself (pid 0). A file size limit of zero on
/// the helper would stop its report, and a CPU limit of zero would end any process of the user.
/// Access to other processes' memory and descriptors is denied. The scheduler calls stay allowed:
/// programs pass the ids of their own threads, and slowing down the helper gains nothing.
fn keep_to_itself() -> Result<(), String> {
    // The `which` argument that selects all processes of a user.
    const PRIO_USER: u64 = 2;
    const IOPRIO_WHO_USER: u64 = 3;
    let memory = [
        libc::SYS_process_vm_readv,
        libc::SYS_process_vm_writev,
        libc::SYS_process_madvise,
    ];
    deny(
        &[&memory[..], &[libc::SYS_pidfd_getfd, libc::SYS_kcmp]].concat(),
        libc::EPERM,
    )?;
    let rule = |argument: u8, operator: SeccompCmpOp, value: u64| {
        SeccompCondition::new(argument, SeccompCmpArgLen::Dword, operator, value)
            .and_then(|condition| SeccompRule::new(vec![condition]))
            .map_err(|why| format!("system call filter: {why}"))
    };
    let of_other = |argument| rule(argument, SeccompCmpOp::Ne, 0);
    let of = |user| rule(0, SeccompCmpOp::Eq, user);
    let calls = [
        (libc::SYS_prlimit64, vec![of_other(0)?]),
        (libc::SYS_setpriority, vec![of_other(1)?, of(PRIO_USER)?]),
        (
            libc::SYS_ioprio_set,
            vec![of_other(1)?, of(IOPRIO_WHO_USER)?],
        ),
        (libc::SYS_migrate_pages, vec![of_other(0)?]),
        (libc::SYS_move_pages, vec![of_other(0)?]),
    ];
    let mut rules = BTreeMap::new();
    for (number, conditions) in calls {
        rules.extend(with_x32(&[number]).map(|number| (number, conditions.clone())));
    }
    set_filter(rules, SeccompAction::Errno(libc::EPERM as u32))
}

const UNTRACED: u64 = libc::CLONE_UNTRACED as u64;

fn deny(numbers: &[i64], errno: i32) -> Result<(), String> {
    let rules = with_x32(numbers)
        .map(|number| (number, Vec::new()))
        .collect();
    set_filter(rules, SeccompAction::Errno(errno as u32))
}

/// Adds the x32 numbers of the same calls, which some x86-64 kernels accept as well. Some calls
/// have special numbers there.
fn with_x32(numbers: &[i64]) -> impl Iterator<Item = i64> {
    const X32: i64 = 0x4000_0000;
    let x32 = numbers.iter().map(|number| match *number {
        libc::SYS_ptrace => X32 + 521,
        libc::SYS_move_pages => X32 + 533,
        libc::SYS_process_vm_readv => X32 + 539,
        libc::SYS_process_vm_writev => X32 + 540,
        number => X32 + number,
    });
    numbers
        .iter()
        .copied()
        .chain(x32.filter(|_| cfg!(target_arch = "x86_64")))
}

fn set_filter(rules: BTreeMap<i64, Vec<SeccompRule>>, action: SeccompAction) -> Result<(), String> {
    let failed = |why: &dyn std::fmt::Display| format!("system call filter: {why}");
    let arch = std::env::consts::ARCH
        .try_into()
        .map_err(|why| failed(&why))?;
    let filter = SeccompFilter::new(rules, SeccompAction::Allow, action, arch)
        .map_err(|why| failed(&why))?;
    let program: BpfProgram = filter
        .try_into()
        .map_err(|why: seccompiler::BackendError| failed(&why))?;
    seccompiler::apply_filter(&program).map_err(|why| failed(&why))
}

/// Closes every inherited descriptor except stdin, stdout and stderr. Descriptors opened here are
/// close-on-exec, so only the others are closed.
fn keep_three_descriptors() -> std::io::Result<()> {
    let entries = std::fs::read_dir("/proc/self/fd")?;
    let numbers: Vec<i32> = entries
        .flatten()
        .filter_map(|entry| entry.file_name().to_str()?.parse().ok())
        .collect();
    for number in numbers.into_iter().filter(|number| *number > 2) {
        let flags =
            std::fs::read_to_string(format!("/proc/self/fdinfo/{number}")).unwrap_or_default();
        let closes_itself = flags
            .lines()
            .find_map(|line| line.strip_prefix("flags:"))
            .and_then(|octal| i64::from_str_radix(octal.trim(), 8).ok())
            .is_some_and(|flags| flags & i64::from(libc::O_CLOEXEC) != 0);
        if !closes_itself {
            // The descriptor of the listing itself is already closed.
            let _ = nix::unistd::close(number);
        }
    }
    Ok(())
}
