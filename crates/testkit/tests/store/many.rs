//! Many concurrent processes and threads, some killed, some editing files externally.

use std::collections::{BTreeMap, BTreeSet};
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use quipu_contract::Actor;
use quipu_store::{Change, Expect, Kind, Op, Options, Store};
use quipu_testkit::{CONTRACT, Playground, contract, open_store};
use serde_json::json;

const WRITERS: usize = 32;
const COMMITS: usize = 30;
const ROOT: &str = "QUIPU_TEST_ROOT";
const NAME: &str = "QUIPU_TEST_NAME";
const RECORDS: &str = "QUIPU_TEST_RECORDS";

/// How much a writer journals with each commit.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Records {
    /// Little, in small segments.
    Short,
    /// A reason of some length, in segments of the ordinary size.
    Long,
}

fn options() -> Options {
    // Small segments, so that writers meet rotation.
    Options {
        segment_bytes: 48 << 10,
        ..options_of(Records::Long)
    }
}

fn options_of(records: Records) -> Options {
    match records {
        Records::Short => options(),
        // A long wait: the machine may be busy with other things.
        Records::Long => Options {
            wait: Duration::from_secs(120),
            ..Options::default()
        },
    }
}

/// Creates a project with a long wait for a shared store, because many writers share one server and
/// few cores.
fn patient() -> Playground {
    let play = Playground::new();
    if play.is_shared() {
        let own = play.attachment();
        quipu_postgres::Attachment {
            address: own.address.replace("wait=10", "wait=120"),
            ..own
        }
        .save(play.root())
        .unwrap();
    }
    play
}

/// What one writer does: appends to a shared and an own file, replaces its own, commits to several.
/// Each acknowledgement is written down right after it came: `kind seq text`.
fn write_much(store: &Store, name: &str, records: Records, acks: &mut dyn Write) {
    let own = Playground::path(&format!("meta/own-{name}.md"));
    let shared = Playground::path("meta/shared.md");
    let draft = Playground::path(&format!("drafts/{name}.md"));
    let state = Playground::path("state.json");
    for number in 0..COMMITS {
        let line = format!("{name}-{number}");
        let append = format!("{line}\n");
        let change = Change::by(&Actor::Person);
        let change = if records == Records::Long {
            change.why("because ".repeat(1000))
        } else {
            change
        };
        let (kind, change) = match number % 4 {
            0 => ("append", change.append(&shared, append.as_bytes())),
            1 => (
                "draft",
                change.write(&draft, append.as_bytes(), Expect::Any),
            ),
            2 => (
                "both",
                change
                    .append(&shared, append.as_bytes())
                    .append(&own, append.as_bytes()),
            ),
            _ => (
                "merge",
                change.append(&own, append.as_bytes()).op(Op::Merge {
                    path: state.clone(),
                    value: json!({name: number}),
                }),
            ),
        };
        let judged = store
            .validate(change.key(line.clone()))
            .unwrap_or_else(|e| panic!("{line}: {e}"));
        let receipt = judged.publish().unwrap_or_else(|e| panic!("{line}: {e}"));
        // One write, so that a kill leaves the whole line or none of it.
        acks.write_all(format!("{kind} {} {line}\n", receipt.seq).as_bytes())
            .unwrap();
    }
}

/// Helper process: the body of the processes that `processes_lose_nothing` starts.
#[test]
fn writer_process() {
    let (Ok(root), Ok(name)) = (std::env::var(ROOT), std::env::var(NAME)) else {
        return;
    };
    let root = PathBuf::from(root);
    let records = if std::env::var(RECORDS).is_ok_and(|records| records == "long") {
        Records::Long
    } else {
        Records::Short
    };
    let store = open_store(&root, contract(CONTRACT), options_of(records));
    let mut acks = std::fs::File::options()
        .append(true)
        .create(true)
        .open(ack_file(&root, &name))
        .unwrap();
    write_much(&store, &name, records, &mut acks);
}

fn ack_file(root: &Path, name: &str) -> PathBuf {
    root.join(".quipu").join(format!("acks-{name}"))
}

fn start(root: &Path, name: &str, records: Records) -> Child {
    Command::new(std::env::current_exe().unwrap())
        .args(["--exact", "many::writer_process", "--nocapture"])
        .env(ROOT, root)
        .env(NAME, name)
        .env(
            RECORDS,
            if records == Records::Long {
                "long"
            } else {
                "short"
            },
        )
        .stdout(Stdio::null())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap()
}

/// Returns every acknowledgement: kind, number and line.
fn read_acks(root: &Path, names: &[String]) -> Vec<(String, u64, String)> {
    let mut acks = Vec::new();
    for name in names {
        let text = std::fs::read_to_string(ack_file(root, name)).unwrap_or_default();
        for line in text
            .split_inclusive('\n')
            .filter_map(|line| line.strip_suffix('\n'))
        {
            let fields: Vec<&str> = line.split(' ').collect();
            acks.push((
                fields[0].to_owned(),
                fields[1].parse().unwrap(),
                fields[2].to_owned(),
            ));
        }
    }
    acks
}

/// Checks that no acknowledged write is missing, none is duplicated, and the journal is sound.
fn check(play: &Playground, names: &[String]) {
    let store = play.open_with(options());
    store.settle().unwrap();
    let acks = read_acks(play.root(), names);
    assert!(!acks.is_empty());
    let numbers: BTreeSet<u64> = acks.iter().map(|(_, seq, _)| *seq).collect();
    assert_eq!(
        numbers.len(),
        acks.len(),
        "two acknowledgements share a number"
    );
    let mut texts: BTreeMap<String, Vec<String>> = BTreeMap::new();
    let mut lines = |path: &str| -> Vec<String> {
        let read = || {
            String::from_utf8(
                store
                    .read(&Playground::path(path))
                    .unwrap()
                    .unwrap_or_default_bytes(),
            )
            .unwrap()
        };
        texts
            .entry(path.to_owned())
            .or_insert_with(|| read().lines().map(str::to_owned).collect())
            .clone()
    };
    for (kind, seq, line) in &acks {
        let name = line.split('-').next().unwrap();
        let own = format!("meta/own-{name}.md");
        let places: Vec<&str> = match kind.as_str() {
            "append" => vec!["meta/shared.md"],
            "both" => vec!["meta/shared.md", &own],
            "merge" => vec![&own],
            _ => vec![],
        };
        for place in places {
            let count = lines(place).iter().filter(|l| *l == line).count();
            assert_eq!(
                count, 1,
                "{line} (commit {seq}) is {count} times in {place}"
            );
        }
    }
    for name in names {
        let newest = acks
            .iter()
            .filter(|(kind, _, line)| kind == "draft" && line.starts_with(&format!("{name}-")))
            .max_by_key(|a| a.1);
        if let Some((_, _, line)) = newest {
            let path = format!("drafts/{name}.md");
            let found = lines(&path);
            // A later write may have happened without acknowledgement; an earlier one must not be
            // the current text.
            let number = |text: &str| text.rsplit('-').next().unwrap().parse::<u32>().unwrap();
            assert!(
                number(&found[0]) >= number(line),
                "{path} holds {found:?}, {line} was acknowledged"
            );
        }
    }
    let log = store.log(usize::MAX).unwrap();
    let seqs: Vec<u64> = log.iter().rev().map(|e| e.seq).collect();
    assert_eq!(
        seqs,
        (1..=log.len() as u64).collect::<Vec<_>>(),
        "numbers have gaps"
    );
    assert_eq!(store.verify().unwrap().problems, []);
}

trait OrEmpty {
    fn unwrap_or_default_bytes(self) -> Vec<u8>;
}

impl OrEmpty for Option<(Vec<u8>, quipu_store::Version)> {
    fn unwrap_or_default_bytes(self) -> Vec<u8> {
        self.map(|(bytes, _)| bytes).unwrap_or_default()
    }
}

#[test]
fn processes_lose_nothing_though_some_are_killed() {
    crowd(Records::Short);
}

#[test]
fn processes_with_long_records_lose_nothing_though_some_are_killed() {
    crowd(Records::Long);
}

fn crowd(records: Records) {
    let play = patient();
    let names: Vec<String> = (0..WRITERS).map(|n| format!("w{n}")).collect();
    let mut children: Vec<(String, Child)> = names
        .iter()
        .map(|name| (name.clone(), start(play.root(), name, records)))
        .collect();
    // Every third process is killed at a random moment after some acknowledged commits.
    let mut killed = 0;
    while killed < WRITERS / 3 {
        let mut alive = false;
        for (index, (name, child)) in children.iter_mut().enumerate() {
            let acked = std::fs::read(ack_file(play.root(), name))
                .map_or(0, |text| text.iter().filter(|b| **b == b'\n').count());
            if index % 3 == 0 && child.try_wait().unwrap().is_none() {
                alive = true;
                if acked > index % 7 {
                    child.kill().unwrap(); // SIGKILL
                    child.wait().unwrap();
                    killed += 1;
                }
            }
        }
        if !alive {
            break;
        }
        std::thread::sleep(Duration::from_micros(500));
    }
    for (index, (name, child)) in children.into_iter().enumerate() {
        let output = child.wait_with_output().unwrap();
        assert!(
            output.status.success() || index % 3 == 0,
            "{name}: {}",
            String::from_utf8_lossy(&output.stderr)
        );
    }
    check(&play, &names);
}

#[test]
fn threads_share_one_store() {
    let play = patient();
    let store = play.open_with(options());
    let names: Vec<String> = (0..8).map(|n| format!("t{n}")).collect();
    std::thread::scope(|scope| {
        for name in &names {
            let mut acks = std::fs::File::create(ack_file(play.root(), name)).unwrap();
            let store = &store;
            scope.spawn(move || write_much(store, name, Records::Short, &mut acks));
        }
    });
    drop(store);
    check(&play, &names);
}

#[test]
fn two_who_edit_by_hand_meanwhile_lose_nothing_either() {
    let play = patient();
    let names: Vec<String> = (0..4).map(|n| format!("h{n}")).collect();
    let first = play.open_with(options());
    first
        .validate(Change::by(&Actor::Person).append(&Playground::path("meta/shared.md"), "begin\n"))
        .unwrap()
        .publish()
        .unwrap();
    let done = Arc::new(AtomicBool::new(false));
    let mut by_hand = 0;
    std::thread::scope(|scope| {
        let writers: Vec<_> = names
            .iter()
            .map(|name| {
                let store = play.open_with(options());
                let mut acks = std::fs::File::create(ack_file(play.root(), name)).unwrap();
                scope.spawn(move || write_much(&store, name, Records::Short, &mut acks))
            })
            .collect();
        // One thread appends to the same file as Quipu, as `echo … >>` does.
        let (finished, root) = (Arc::clone(&done), play.root());
        let appender = scope.spawn(move || {
            let mut count = 0;
            while !finished.load(Ordering::SeqCst) && count < 400 {
                let mut file = std::fs::File::options()
                    .append(true)
                    .open(root.join("meta/shared.md"))
                    .unwrap();
                if count % 7 == 3 {
                    // Simulates a busy machine: time passes between opening and writing.
                    std::thread::sleep(Duration::from_millis(40));
                }
                file.write_all(format!("hand-{count}\n").as_bytes())
                    .unwrap();
                count += 1;
                std::thread::sleep(Duration::from_micros(500));
            }
            count
        });
        // The other rewrites a file of its own.
        let finished = Arc::clone(&done);
        let editor = scope.spawn(move || {
            let mut count = 0;
            while !finished.load(Ordering::SeqCst) {
                std::fs::write(root.join("notes.txt"), format!("edit {count}\n")).unwrap();
                count += 1;
                std::thread::sleep(Duration::from_micros(500));
            }
        });
        let ended: Vec<_> = writers.into_iter().map(|writer| writer.join()).collect();
        done.store(true, Ordering::SeqCst);
        by_hand = appender.join().unwrap();
        editor.join().unwrap();
        ended.into_iter().for_each(|writer| writer.unwrap());
    });
    assert!(by_hand > 0);
    let scan = first.scan_status().unwrap();
    assert_eq!(
        scan.flagged().count(),
        0,
        "{:?}",
        scan.flagged().collect::<Vec<_>>()
    );
    // Every external edit is in the file or in a conflict copy.
    let shared = Playground::path("meta/shared.md");
    let mut kept = String::from_utf8(first.read(&shared).unwrap().unwrap().0).unwrap();
    for entry in first
        .log(usize::MAX)
        .unwrap()
        .iter()
        .filter(|e| e.kind == Kind::ConflictCopy)
    {
        kept.push_str(&String::from_utf8_lossy(
            &first
                .conflict_copies_of(entry.seq, &shared)
                .unwrap()
                .unwrap_or_default(),
        ));
    }
    let kept: BTreeSet<&str> = kept.lines().collect();
    for number in 0..by_hand {
        assert!(
            kept.contains(format!("hand-{number}").as_str()),
            "hand-{number} of {by_hand} is lost"
        );
    }
    check(&play, &names);
}

#[test]
fn verifying_beside_a_writer_finds_nothing() {
    let play = patient();
    let done = AtomicBool::new(false);
    std::thread::scope(|scope| {
        let writer = scope.spawn(|| {
            let store = play.open();
            for number in 0.. {
                if done.load(Ordering::Relaxed) {
                    break;
                }
                let change = Change::by(&Actor::Person)
                    .append(&Playground::path("meta/a.md"), format!("line {number}\n"));
                store.validate(change).unwrap().publish().unwrap();
                std::thread::sleep(Duration::from_millis(1));
            }
        });
        let store = play.open();
        let problems: Vec<_> = (0..30)
            .flat_map(|_| store.verify().unwrap().problems)
            .collect();
        done.store(true, Ordering::Relaxed);
        writer.join().unwrap();
        assert_eq!(problems, []);
    });
}

const ONE_BY_ONE: &str = "QUIPU_TEST_ONE_BY_ONE";
const LINES: usize = 60;

/// Helper process: appends line after line to its own file and replaces another, as separate
/// commands or as one process.
#[test]
fn line_by_line_process() {
    let (Ok(root), Ok(name)) = (std::env::var(ROOT), std::env::var(NAME)) else {
        return;
    };
    let Ok(one_by_one) = std::env::var(ONE_BY_ONE) else {
        return;
    };
    let open = || {
        open_store(
            Path::new(&root),
            contract(CONTRACT),
            options_of(Records::Long),
        )
    };
    let (log, draft) = (
        Playground::path(&format!("meta/{name}.md")),
        Playground::path(&format!("drafts/{name}.md")),
    );
    let mut store = open();
    for number in 0..LINES {
        if one_by_one == "yes" {
            store = open();
        }
        let line = format!("{name}-{number}\n");
        let change = match number % 3 {
            0 => Change::by(&Actor::Person)
                .append(&log, line.as_bytes())
                .write(&draft, line.as_bytes(), Expect::Any),
            1 => Change::by(&Actor::Person).append(&log, line.as_bytes()),
            _ => Change::by(&Actor::Person)
                .append(&log, line.as_bytes())
                .create(
                    &Playground::path(&format!(".sessions/{name}-{number}.md")),
                    line.as_bytes(),
                ),
        };
        store
            .validate(change)
            .unwrap_or_else(|e| panic!("{line}: {e}"))
            .publish()
            .unwrap_or_else(|e| panic!("{line}: {e}"));
    }
}

/// There are no external edits, so anything that looks like one is caused by `doctor`.
#[test]
fn a_doctor_beside_writers_does_no_harm() {
    for one_by_one in ["yes", "no"] {
        let play = patient();
        play.open();
        let children: Vec<Child> = (0..6)
            .map(|name| {
                Command::new(std::env::current_exe().unwrap())
                    .args(["--exact", "many::line_by_line_process", "--nocapture"])
                    .env(ROOT, play.root())
                    .env(NAME, format!("w{name}"))
                    .env(ONE_BY_ONE, one_by_one)
                    .stdout(Stdio::null())
                    .stderr(Stdio::piped())
                    .spawn()
                    .unwrap()
            })
            .collect();
        let over = AtomicBool::new(false);
        let doctors = std::thread::scope(|scope| {
            let doctor = scope.spawn(|| {
                let mut doctors = 0;
                while !over.load(Ordering::SeqCst) {
                    play.open_with(options_of(Records::Long)).doctor().unwrap();
                    doctors += 1;
                }
                doctors
            });
            for child in children {
                let output = child.wait_with_output().unwrap();
                assert!(
                    output.status.success(),
                    "{}",
                    String::from_utf8_lossy(&output.stderr)
                );
            }
            over.store(true, Ordering::SeqCst);
            doctor.join().unwrap()
        });
        assert!(doctors > 2, "{doctors}");
        let store = play.open();
        let strange: Vec<String> = store
            .log(usize::MAX)
            .unwrap()
            .into_iter()
            .filter(|entry| matches!(entry.kind, Kind::Adopt | Kind::ConflictCopy))
            .map(|entry| format!("{entry:?}"))
            .collect();
        assert!(
            strange.is_empty(),
            "{one_by_one}: after {doctors} doctors: {strange:#?}"
        );
        assert_eq!(store.scan_status().unwrap().flagged().count(), 0);
        for name in (0..6).map(|n| format!("w{n}")) {
            let expected: String = (0..LINES)
                .map(|number| format!("{name}-{number}\n"))
                .collect();
            assert_eq!(play.text(&format!("meta/{name}.md")).unwrap(), expected);
            assert_eq!(
                play.text(&format!("drafts/{name}.md")).unwrap(),
                format!("{name}-{}\n", LINES - LINES % 3 - 3)
            );
        }
        assert_eq!(store.verify().unwrap().problems, []);
    }
}
