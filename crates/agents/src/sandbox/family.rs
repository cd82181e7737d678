//! Finds every living process that an agent started, even if it tried to detach.
//!
//! The helper is their subreaper, or process 1 of their namespace, so an orphan becomes a child of
//! the helper instead of init. All living processes are therefore descendants of the helper.

use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use std::collections::BTreeMap;

pub struct Member {
    pub pid: Pid,
    pub program: String,
    pub threads: u64,
}

impl Member {
    /// Returns the bytes of its private and shared memory, without mapped files.
    pub fn resident(&self) -> u64 {
        self.kilobytes("status", &["RssAnon:", "RssShmem:", "VmSwap:"])
            .unwrap_or(0)
    }

    /// Like `resident`, with a proportional share of shared pages. Falls back to `resident` if the
    /// kernel does not report the share.
    pub fn proportional(&self) -> u64 {
        self.kilobytes("smaps_rollup", &["Pss_Anon:", "Pss_Shmem:", "SwapPss:"])
            .unwrap_or_else(|| self.resident())
    }

    /// Sums some lines of a file in `/proc`, in bytes.
    fn kilobytes(&self, file: &str, wanted: &[&str]) -> Option<u64> {
        let text = std::fs::read_to_string(format!("/proc/{}/{file}", self.pid)).ok()?;
        let numbers = text.lines().filter_map(|line| {
            let (name, rest) = line.split_once(char::is_whitespace)?;
            wanted
                .contains(&name)
                .then(|| rest.split_whitespace().next()?.parse::<u64>().ok())?
        });
        let found: Vec<u64> = numbers.collect();
        (!found.is_empty()).then(|| {
            found.iter().fold(0u64, |sum, kib| {
                sum.saturating_add(kib.saturating_mul(1024))
            })
        })
    }
}

/// Fields of `/proc/PID/stat`.
struct Stat {
    parent: i32,
    name: String,
    threads: u64,
}

/// Returns all living descendants of this process, without zombies.
pub fn living() -> Vec<Member> {
    let Ok(entries) = std::fs::read_dir("/proc") else {
        return Vec::new();
    };
    let numbers = entries
        .flatten()
        .filter_map(|entry| entry.file_name().to_str()?.parse::<i32>().ok());
    let all: BTreeMap<i32, Stat> = numbers
        .filter_map(|pid| Some((pid, load_stat(pid)?)))
        .collect();
    let me = std::process::id() as i32;
    let below = |mut pid: i32| {
        // Bounds the loop; real process trees are not this deep.
        for _ in 0..4096 {
            match all.get(&pid) {
                Some(stat) if stat.parent == me => return true,
                Some(stat) if stat.parent > 1 => pid = stat.parent,
                _ => return false,
            }
        }
        false
    };
    all.iter()
        .filter(|(pid, _)| **pid != me && below(**pid))
        .map(|(pid, stat)| {
            let pid = Pid::from_raw(*pid);
            Member {
                pid,
                program: program_of(pid).unwrap_or_else(|| stat.name.clone()),
                threads: stat.threads,
            }
        })
        .collect()
}

/// Returns `None` if the process has exited or is a zombie.
fn load_stat(pid: i32) -> Option<Stat> {
    let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
    // The name is in parentheses and may hold any character, including parentheses.
    let (open, close) = (stat.find('(')?, stat.rfind(')')?);
    let mut fields = stat[close + 1..].split_whitespace();
    let (state, parent) = (fields.next()?, fields.next()?.parse().ok()?);
    if state == "Z" || state == "X" {
        return None;
    }
    // The 20th field of the line; the state is the 3rd.
    let threads = fields.nth(15)?.parse().ok()?;
    Some(Stat {
        parent,
        name: stat[open + 1..close].to_string(),
        threads,
    })
}

/// Returns the file name of the executable. A process can change its own name, but not this one.
pub fn program_of(pid: Pid) -> Option<String> {
    let file = std::fs::read_link(format!("/proc/{pid}/exe")).ok()?;
    Some(file.file_name()?.to_string_lossy().into_owned())
}

/// Kills all processes that a scan finds. The next scan finds processes started meanwhile.
pub fn end_all() {
    for member in living() {
        // The process may have exited already.
        let _ = kill(member.pid, Signal::SIGKILL);
    }
}
