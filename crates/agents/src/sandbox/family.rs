//! Every process that an agent started and that still lives, however it tried to get away.
//!
//! The helper is their subreaper: an orphan becomes its child, not init's. So the living are those below the helper in
//! the tree of processes.

use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use std::collections::BTreeMap;

/// One living process.
pub struct Member {
    pub pid: Pid,
    pub program: String,
}

/// All living processes below this one, zombies left out.
pub fn living() -> Vec<Member> {
    let mut parents: BTreeMap<i32, (i32, String)> = BTreeMap::new();
    let Ok(entries) = std::fs::read_dir("/proc") else { return Vec::new() };
    for entry in entries.flatten() {
        let Some(pid) = entry.file_name().to_str().and_then(|name| name.parse::<i32>().ok()) else { continue };
        let Ok(stat) = std::fs::read_to_string(format!("/proc/{pid}/stat")) else { continue };
        // The name is in parentheses and may hold anything, parentheses too.
        let (Some(open), Some(close)) = (stat.find('('), stat.rfind(')')) else { continue };
        let mut fields = stat[close + 1..].split_whitespace();
        let (Some(state), Some(Ok(parent))) = (fields.next(), fields.next().map(str::parse)) else { continue };
        if state != "Z" && state != "X" {
            parents.insert(pid, (parent, stat[open + 1..close].to_string()));
        }
    }
    let me = std::process::id() as i32;
    let below = |mut pid: i32| {
        // A tree of processes is not deeper than this.
        for _ in 0..4096 {
            match parents.get(&pid) {
                Some((parent, _)) if *parent == me => return true,
                Some((parent, _)) if *parent > 1 => pid = *parent,
                _ => return false,
            }
        }
        false
    };
    parents
        .iter()
        .filter(|(pid, _)| **pid != me && below(**pid))
        .map(|(pid, (_, name))| {
            let pid = Pid::from_raw(*pid);
            Member { pid, program: program_of(pid).unwrap_or_else(|| name.clone()) }
        })
        .collect()
}

/// The name of the program that a process runs, as its file has it: a process may call itself anything.
pub fn program_of(pid: Pid) -> Option<String> {
    let file = std::fs::read_link(format!("/proc/{pid}/exe")).ok()?;
    Some(file.file_name()?.to_string_lossy().into_owned())
}

/// Ends all of them at once.
pub fn end_all() {
    for member in living() {
        // One that ended by itself meanwhile is no fault.
        let _ = kill(member.pid, Signal::SIGKILL);
    }
}
