//! Kills the program at random moments and starts it again. It must end with the same tree as an
//! undisturbed run.
//!
//! Ten kills in the ordinary test; `QUIPU_KILLS=50` for more.

use std::collections::BTreeMap;
use std::process::{Command, Stdio};
use std::time::Duration;

use quipu_protocol::flow::State;

use crate::stage::Stage;

fn quipu(stage: &Stage, arguments: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_quipu"));
    command
        .args(arguments)
        .current_dir(&stage.root)
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::null());
    command
        .env("QUIPU_SCRIPT", &stage.script.folder)
        .env("QUIPU_SCRIPT_PAUSE", "5");
    for name in ["QUIPU_ROLE", "QUIPU_UNIT", "QUIPU_AGENT", "QUIPU_LEASE"] {
        command.env_remove(name);
    }
    command
}

fn begun() -> Stage {
    let stage = Stage::book(3, "");
    stage.play(quipu_protocol::flow::Choice::default());
    stage.approve("approve-outline", None);
    stage
}

/// A deterministic pseudo-random number.
fn next(seed: &mut u64) -> u64 {
    *seed ^= *seed << 13;
    *seed ^= *seed >> 7;
    *seed ^= *seed << 17;
    *seed
}

fn tree(stage: &Stage) -> BTreeMap<String, String> {
    stage.tree()
}

#[test]
fn killed_at_any_moment_it_ends_with_the_same_tree() {
    let undisturbed = begun();
    let whole = std::time::Instant::now();
    quipu(&undisturbed, &["run", "--by", "script", "--until", "audit"])
        .status()
        .unwrap();
    let whole = whole.elapsed();
    assert_eq!(undisturbed.state("audit", None).0, State::Done);

    let kills: u64 = std::env::var("QUIPU_KILLS")
        .ok()
        .and_then(|k| k.parse().ok())
        .unwrap_or(10);
    let killed = begun();
    let mut seed = 0x9e37_79b9_7f4a_7c15;
    // All kills together take less than one run, so that each has something to kill.
    let longest = u64::try_from(whole.as_millis()).unwrap() / 8;
    let mut really = 0;
    for _ in 0..kills {
        let mut child = quipu(&killed, &["run", "--by", "script", "--until", "audit"])
            .spawn()
            .unwrap();
        std::thread::sleep(Duration::from_millis(next(&mut seed) % longest.max(20)));
        really += u64::from(child.try_wait().unwrap().is_none());
        child.kill().unwrap();
        child.wait().unwrap();
    }
    assert!(
        really * 2 >= kills.min(8),
        "only {really} of {kills} were killed while they ran"
    );
    quipu(&killed, &["run", "--by", "script", "--until", "audit"])
        .status()
        .unwrap();
    assert_eq!(
        killed.state("audit", None).0,
        State::Done,
        "{:#?}",
        killed.with_flow(|f| f.statuses.clone())
    );
    assert_eq!(tree(&killed), tree(&undisturbed));
    // No completed job was repeated: each has one accepted attempt.
    let project = killed.open();
    let mut runs: BTreeMap<String, usize> = BTreeMap::new();
    for noted in project.store.noted(0).unwrap() {
        let job = format!(
            "{}/{}",
            noted.note["step"].as_str().unwrap(),
            noted.note["unit"].as_str().unwrap_or_default()
        );
        if noted.note["ruling"] == "accepted" {
            *runs.entry(job).or_default() += 1;
        }
    }
    assert!(runs.values().all(|n| *n == 1), "{runs:#?}");
    assert!(quipu(&killed, &["verify"]).status().unwrap().success());
}

#[test]
fn asked_to_stop_it_gives_its_leases_back() {
    let stage = begun();
    stage.script.put("research/ch01-research.md.acts", "hang\n");
    let mut child = quipu(&stage, &["run", "--by", "script"]).spawn().unwrap();
    let project = stage.open();
    let held = || {
        project
            .store
            .leases()
            .unwrap()
            .iter()
            .any(|l| l.paths.contains(&"research/ch01-research.md".to_owned()))
    };
    let begun = std::time::Instant::now();
    while !held() {
        assert!(begun.elapsed() < Duration::from_secs(60), "it never began");
        std::thread::sleep(Duration::from_millis(10));
    }
    let id = child.id().to_string();
    assert!(
        Command::new("kill")
            .args(["-INT", &id])
            .status()
            .unwrap()
            .success()
    );
    let status = child.wait().unwrap();
    assert_eq!(status.code(), Some(1));
    assert!(project.store.leases().unwrap().is_empty());
    assert_eq!(
        stage.state("research", Some("ch01")).0,
        State::Ready,
        "nothing is held against an agent that was stopped"
    );
}
