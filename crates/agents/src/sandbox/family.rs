//! Every process that an agent started and that still lives, however it tried to get away.
//!
//! The helper is their subreaper, or process 1 of their namespace: an orphan becomes its child, not
//! init's. So the living are those below the helper in the tree of processes.

use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use std::collections::BTreeMap;

/// One living process.
pub struct Member {
    pub pid: Pid,
    pub program: String,
    pub threads: u64,
}

impl Member {
    /// Bytes of memory that are its own or shared with other processes, without files that it only
    /// maps.
    pub fn resident(&self) -> u64 {
        self.kilobytes("status", &["RssAnon:", "RssShmem:", "VmSwap:"])
            .unwrap_or(0)
    }

    /// The same with its share of what it shares; the whole where that cannot be told.
    pub fn proportional(&self) -> u64 {
        self.kilobytes("smaps_rollup", &["Pss_Anon:", "Pss_Shmem:", "SwapPss:"])
            .unwrap_or_else(|| self.resident())
    }

    /// The sum of some lines of a file in `/proc`, in bytes.
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

/// One process of the machine, as `/proc/PID/stat` has it.
struct Stat {
    parent: i32,
    name: String,
    threads: u64,
}

/// All living processes below this one, zombies left out.
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
        // A tree of processes is not deeper than this.
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

/// None if the process is gone or a zombie.
fn load_stat(pid: i32) -> Option<Stat> {
    let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
    // The name is in parentheses and may hold anything, parentheses too.
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

/// The name of the program that a process runs, as its file has it: a process may call itself
/// anything.
pub fn program_of(pid: Pid) -> Option<String> {
    let file = std::fs::read_link(format!("/proc/{pid}/exe")).ok()?;
    Some(file.file_name()?.to_string_lossy().into_owned())
}

/// Kills all of them that a look finds. One that starts processes meanwhile is found by the next.
pub fn end_all() {
    for member in living() {
        // One that ended by itself meanwhile is no fault.
        let _ = kill(member.pid, Signal::SIGKILL);
    }
}
