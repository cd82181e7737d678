//! Tests of damage: to the journal, to derived data, to the disk, to the clock.

use std::collections::BTreeMap;
use std::os::unix::fs::PermissionsExt;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering};

use quipu_contract::Actor;
use quipu_protocol::Project;
use quipu_store::{
    At, Change, Clock, Expect, FORMAT, Instant, Op, Options, Step, StepVerdict, Store, StoreError,
    Unwritable, Watch,
};
use quipu_testkit::{
    CONTRACT, FailingDisk, Failure, Playground, Restore as _, contract, open_store,
};

fn person() -> Change {
    Change::by(&Actor::Person)
}

fn append(store: &Store, path: &str, text: &str) {
    store
        .validate(person().append(&Playground::path(path), text))
        .unwrap()
        .publish()
        .unwrap();
}

fn write(store: &Store, path: &str, text: &str) {
    store
        .validate(person().write(&Playground::path(path), text, Expect::Any))
        .unwrap()
        .publish()
        .unwrap();
}

fn segment(play: &Playground, number: u32) -> PathBuf {
    play.file(&format!(".quipu/journal/{number:08}.jsonl"))
}

fn boot(name: &str) -> Options {
    Options {
        boot: Some(name.into()),
        ..Options::default()
    }
}

/// Returns all answers of the store about some files.
fn answers(store: &Store, paths: &[&str]) -> String {
    let mut told = String::new();
    for path in paths {
        let path = Playground::path(path);
        let events: Vec<_> = store
            .events(&path)
            .unwrap()
            .iter()
            .map(|e| (e.seq, e.version.clone(), e.len))
            .collect();
        told.push_str(&format!(
            "{path}: {:?} {events:?}\n",
            store.read(&path).unwrap()
        ));
    }
    let leases: Vec<_> = store
        .leases()
        .unwrap()
        .into_iter()
        .map(|l| (l.id, l.fence))
        .collect();
    format!(
        "{told}{leases:?} {:?}",
        store
            .log(100)
            .unwrap()
            .iter()
            .map(|e| (e.seq, e.id.clone()))
            .collect::<Vec<_>>()
    )
}

/// Flips a bit of the first occurrence of a text.
fn flip(path: &Path, text: &str) {
    let mut bytes = std::fs::read(path).unwrap();
    let at = bytes
        .windows(text.len())
        .position(|w| w == text.as_bytes())
        .unwrap();
    bytes[at] ^= 1;
    std::fs::write(path, bytes).unwrap();
}

#[test]
fn a_followed_line_that_cannot_be_read_stops_no_one() {
    // With a shared commit log, a change is judged against that log, and a damaged local line stops
    // it.
    let play = Playground::local();
    let (one, disk) = play.open_paused(Options::default());
    let (other, other_disk) = play.open_paused(Options::default());
    let behind = |store: &Store, path: &str, text: &str| {
        let judged = store
            .validate(person().append(&Playground::path(path), text))
            .unwrap();
        if std::ptr::eq(store, &one) {
            disk.publish(judged);
        } else {
            other_disk.publish(judged);
        }
    };
    append(&one, "meta/a.md", "first\n");
    append(&one, "meta/b.md", "first\n");
    one.settle().unwrap();
    behind(&other, "meta/b.md", "by the other\n");
    behind(&one, "meta/a.md", "by one\n");
    behind(&other, "meta/b.md", "once more\n");
    behind(&one, "meta/a.md", "lost words\n");
    flip(&segment(&play, 1), "lost words");
    // The first change only has to follow that line; the second has to read it.
    behind(&other, "meta/b.md", "not about it\n");
    behind(&other, "meta/a.md", "about it\n");
    drop((one, other));
    let store = play.open();
    let read = |path: &str| {
        String::from_utf8(store.read(&Playground::path(path)).unwrap().unwrap().0).unwrap()
    };
    assert_eq!(
        read("meta/b.md"),
        "first\nby the other\nonce more\nnot about it\n"
    );
    let a = read("meta/a.md");
    assert!(
        a.starts_with("first\nby one\n") && a.ends_with("about it\n"),
        "{a}"
    );
    let problems = store.verify().unwrap().problems;
    assert!(
        problems
            .iter()
            .any(|p| format!("{p:?}").contains("does not match its hash")),
        "{problems:?}"
    );
}

#[test]
fn a_torn_tail_is_kept_aside_and_cut() {
    let play = Playground::new();
    append(&play.open_with(boot("one")), "meta/a.md", "one\n");
    let text = std::fs::read(segment(&play, 1)).unwrap();
    let end = text.iter().rposition(|b| *b != b'\n').unwrap() + 2;
    let mut torn = text[..end].to_vec();
    torn.extend_from_slice(b"{\"v\":1,\"seq\":2,\"id\":\"half a rec");
    std::fs::write(segment(&play, 1), torn).unwrap();
    let store = play.open_with(boot("two"));
    assert_eq!(
        store
            .read(&Playground::path("meta/a.md"))
            .unwrap()
            .unwrap()
            .0,
        b"one\n"
    );
    append(&store, "meta/a.md", "two\n");
    assert_eq!(store.verify().unwrap().problems, []);
    assert_eq!(store.log(9).unwrap().len(), 2);
    let kept: Vec<_> = std::fs::read_dir(play.file(".quipu"))
        .unwrap()
        .flatten()
        .filter(|e| e.file_name().to_string_lossy().starts_with("torn-"))
        .collect();
    assert_eq!(kept.len(), 1);
    assert!(
        std::fs::read_to_string(kept[0].path())
            .unwrap()
            .contains("half a rec")
    );
}

#[test]
fn a_flipped_byte_is_named_and_nothing_else_is_lost() {
    let play = Playground::new();
    let store = play.open_with(boot("one"));
    append(&store, "meta/a.md", "a1\n");
    write(&store, "drafts/ch01.md", "first draft\n");
    append(&store, "meta/b.md", "b1\n");
    write(&store, "drafts/ch01.md", "second draft\n");
    append(&store, "meta/a.md", "a2\n");
    drop(store);
    flip(&segment(&play, 1), "first draft");
    for (heads_lost, name) in [
        (false, "one"),
        (false, "two"),
        (true, "two"),
        (true, "three"),
    ] {
        if heads_lost {
            let _ = std::fs::remove_file(play.file(".quipu/index.db"));
        }
        let store = play.open_with(boot(name));
        let problems = store.verify().unwrap().problems;
        assert_eq!(problems.len(), 1, "{name} {problems:?}");
        assert_eq!(problems[0].place, ".quipu/journal/00000001.jsonl:2");
        assert_eq!(
            store
                .read(&Playground::path("meta/a.md"))
                .unwrap()
                .unwrap()
                .0,
            b"a1\na2\n"
        );
        assert_eq!(
            store.events(&Playground::path("meta/a.md")).unwrap().len(),
            2
        );
        assert_eq!(
            store
                .read(&Playground::path("drafts/ch01.md"))
                .unwrap()
                .unwrap()
                .0,
            b"second draft\n"
        );
        assert_eq!(
            store
                .read(&Playground::path("meta/b.md"))
                .unwrap()
                .unwrap()
                .0,
            b"b1\n"
        );
    }
    let store = play.open_with(boot("three"));
    append(&store, "meta/a.md", "a3\n");
    assert_eq!(store.log(1).unwrap()[0].seq, 6);
    assert_eq!(store.verify().unwrap().problems.len(), 1);
    // The history of the damaged file itself is reported as far as it goes.
    assert_eq!(
        store
            .events(&Playground::path("drafts/ch01.md"))
            .unwrap()
            .len(),
        1
    );
}

#[test]
fn an_append_file_with_a_damaged_record_lives_on() {
    let play = Playground::local();
    let store = play.open();
    for text in ["a1\n", "a2\n", "a3\n"] {
        append(&store, "meta/a.md", text);
    }
    drop(store);
    flip(&segment(&play, 1), "a2");
    std::fs::remove_file(play.file(".quipu/index.db")).unwrap();
    let store = play.open();
    assert_eq!(
        store
            .read(&Playground::path("meta/a.md"))
            .unwrap()
            .unwrap()
            .0,
        b"a1\na2\na3\n"
    );
    append(&store, "meta/a.md", "a4\n");
    assert_eq!(play.text("meta/a.md").unwrap(), "a1\na2\na3\na4\n");
    // `doctor` records the text that only the file could prove. Then the file is not needed for it.
    let healed = play.copy();
    let fixed = healed.open().doctor().unwrap();
    assert!(
        fixed.iter().any(|m| m.what.contains("`meta/a.md` again")),
        "{fixed:?}"
    );
    healed.edit("meta/a.md", "a1\nXX\n");
    assert_eq!(
        healed
            .open()
            .read(&Playground::path("meta/a.md"))
            .unwrap()
            .unwrap()
            .0,
        b"a1\na2\na3\na4\n"
    );
    // Only proven text counts: a changed line is not accepted.
    play.edit("meta/a.md", "a1\nXX\na3\na4\n");
    assert!(
        store
            .validate(person().append(&Playground::path("meta/a.md"), "a5\n"))
            .is_err()
    );
}

#[test]
fn an_old_compressed_segment_loses_only_what_is_damaged() {
    let play = Playground::new();
    let options = || Options {
        segment_bytes: 4096,
        ..Options::default()
    };
    let store = play.open_with(options());
    for number in 0..60 {
        append(
            &store,
            &format!("meta/f{}.md", number % 3),
            &format!("line {number}\n"),
        );
    }
    store.doctor().unwrap();
    drop(store);
    let old = play.file(".quipu/journal/00000001.jsonl.gz");
    let mut bytes = std::fs::read(&old).unwrap();
    let middle = bytes.len() / 2;
    bytes[middle] ^= 4;
    std::fs::write(&old, bytes).unwrap();
    let store = play.open_with(options());
    let problems = store.verify().unwrap().problems;
    assert!(
        problems
            .iter()
            .any(|p| p.place.starts_with(".quipu/journal/00000001.jsonl:")),
        "{problems:?}"
    );
    assert!(problems.iter().all(|p| p.place.starts_with(".quipu/journal/00000001") || p.place.starts_with("meta/")), "{problems:?}");
    append(&store, "meta/f0.md", "more\n");
    append(&store, "meta/new.md", "more\n");
    assert!(
        play.text("meta/f0.md")
            .unwrap()
            .ends_with("line 57\nmore\n")
    );
    assert_eq!(store.log(1).unwrap()[0].seq, 62);
}

#[test]
fn derived_files_may_be_lost_or_damaged_in_every_way() {
    let play = Playground::local();
    let store = play.open();
    append(&store, "meta/a.md", "one\n");
    write(&store, "drafts/ch01.md", "draft\n");
    append(&store, "meta/a.md", "two\n");
    store
        .validate(person().op(Op::Remove {
            path: Playground::path("drafts/ch01.md"),
            expect: Expect::Any,
        }))
        .unwrap()
        .publish()
        .unwrap();
    store
        .take_lease(&Actor::Person, &["drafts/ch02.md".into()], 600)
        .unwrap();
    for number in 0..200 {
        write(&store, &format!("notes/{number}.txt"), "x");
    }
    let paths = ["meta/a.md", "drafts/ch01.md", "notes/7.txt"];
    let told = answers(&store, &paths);
    drop(store);
    type Harm = fn(&Path);
    let harms: [(&str, Harm); 9] = [
        ("heads gone", |quipu| {
            ["index.db", "index.db-wal", "index.db-shm"]
                .iter()
                .for_each(|n| drop(std::fs::remove_file(quipu.join(n))))
        }),
        ("heads empty", |quipu| {
            std::fs::write(quipu.join("index.db"), b"").unwrap()
        }),
        ("heads garbage", |quipu| {
            std::fs::write(quipu.join("index.db"), vec![b'x'; 9000]).unwrap()
        }),
        ("heads cut", |quipu| {
            let bytes = std::fs::read(quipu.join("index.db")).unwrap();
            std::fs::write(quipu.join("index.db"), &bytes[..bytes.len() / 2]).unwrap();
        }),
        ("heads overwritten", |quipu| {
            let mut bytes = std::fs::read(quipu.join("index.db")).unwrap();
            let from = bytes.len() / 3;
            bytes[from..].fill(0xa5);
            std::fs::write(quipu.join("index.db"), &bytes).unwrap();
        }),
        ("watermarks gone", |quipu| {
            std::fs::remove_file(quipu.join("watermarks")).unwrap()
        }),
        ("watermarks garbage", |quipu| {
            std::fs::write(quipu.join("watermarks"), vec![b'?'; 768]).unwrap()
        }),
        ("watermarks cut", |quipu| {
            std::fs::write(quipu.join("watermarks"), b"x").unwrap()
        }),
        ("locks gone", |quipu| {
            for name in ["append.lock", "sync.lock", "apply.lock", "index.lock"] {
                let _ = std::fs::remove_file(quipu.join(name));
            }
        }),
    ];
    for (name, harm) in harms {
        let play = play.copy();
        harm(&play.file(".quipu"));
        let store = play.open();
        assert_eq!(answers(&store, &paths), told, "{name}");
        assert_eq!(store.verify().unwrap().problems, [], "{name}");
        append(&store, "meta/a.md", "three\n");
        assert_eq!(
            play.text("meta/a.md").unwrap(),
            "one\ntwo\nthree\n",
            "{name}"
        );
    }
}

#[test]
fn what_is_deleted_under_a_running_program_costs_nothing() {
    let play = Playground::new();
    let old = play.open();
    append(&old, "meta/a.md", "one\n");
    for name in [
        "watermarks",
        "append.lock",
        "sync.lock",
        "apply.lock",
        "index.lock",
        "index.db",
        "index.db-wal",
        "index.db-shm",
    ] {
        let _ = std::fs::remove_file(play.file(&format!(".quipu/{name}")));
    }
    let new = play.open();
    append(&new, "meta/a.md", "two\n");
    append(&old, "meta/a.md", "three\n");
    append(&new, "meta/a.md", "four\n");
    assert_eq!(
        old.read(&Playground::path("meta/a.md")).unwrap().unwrap().0,
        b"one\ntwo\nthree\nfour\n"
    );
    assert_eq!(play.text("meta/a.md").unwrap(), "one\ntwo\nthree\nfour\n");
    assert_eq!(new.verify().unwrap().problems, []);
}

#[test]
fn a_lost_journal_is_told_and_doctor_begins_anew() {
    let play = Playground::local();
    append(&play.open(), "meta/a.md", "one\n");
    std::fs::remove_dir_all(play.file(".quipu/journal")).unwrap();
    let store = play.open();
    assert!(
        store
            .validate(person().append(&Playground::path("meta/a.md"), "two\n"))
            .is_err()
    );
    let fixed = store.doctor().unwrap();
    assert!(
        fixed.iter().any(|m| m.what.contains("journal is missing")),
        "{fixed:?}"
    );
    assert!(
        fixed
            .iter()
            .any(|m| m.what == "journalled 2 files with their current contents"),
        "{fixed:?}"
    ); // the contract itself is a file with a rule
    assert_eq!(store.verify().unwrap().files, 2);
    append(&store, "meta/a.md", "two\n");
    assert_eq!(play.text("meta/a.md").unwrap(), "one\ntwo\n");
    assert_eq!(store.verify().unwrap().problems, []);
}

/// With a line doubled, the recorded end of the journal lies within a later line. The bytes after it
/// are not a torn tail: truncating them would lose acknowledged records, and `doctor` would take the
/// files of these records for external edits.
#[test]
fn a_doubled_line_costs_no_record_behind_it() {
    // The last pair: the first copy of the last line is damaged.
    for (doubled, before) in [
        (6, 2),
        (6, 5),
        (2, 6),
        (1, 0),
        (1, 7),
        (2, 7),
        (7, 6),
        (7, 7),
    ] {
        let play = Playground::local();
        for n in 0..4 {
            append(&play.open(), "meta/log.md", &format!("entry {n}\n"));
            write(
                &play.open(),
                "drafts/ch01.md",
                &format!("draft number {n}\n"),
            );
        }
        let journal = segment(&play, 1);
        let text = std::fs::read_to_string(&journal).unwrap();
        let mut lines: Vec<&str> = text.trim_end_matches('\n').lines().collect();
        let damaged = lines[doubled].replacen("drafts", "dreads", 1);
        let inserted = if doubled == before {
            damaged.as_str()
        } else {
            lines[doubled]
        };
        lines.insert(before, inserted);
        let fill = "\n".repeat(text.len() - text.trim_end_matches('\n').len());
        std::fs::write(&journal, lines.join("\n") + &fill).unwrap();
        let case = format!("line {doubled} again before line {before}");
        assert!(
            matches!(play.open().scan_status(), Err(StoreError::Damaged { .. })),
            "{case}"
        );
        play.open().doctor().unwrap();
        assert_eq!(
            play.text("drafts/ch01.md").unwrap(),
            "draft number 3\n",
            "{case}"
        );
        let log = play.text("meta/log.md").unwrap();
        assert!(log.ends_with("entry 2\nentry 3\n"), "{case}: {log}");
        let newest = lines.last().unwrap();
        let kept = std::fs::read_to_string(&journal).unwrap();
        assert!(kept.contains(newest), "{case}: a record was cut off");
        append(&play.open(), "meta/log.md", "entry 4\n");
        assert_eq!(
            play.text("meta/log.md").unwrap(),
            log + "entry 4\n",
            "{case}"
        );
    }
}

/// A complete record behind the end belongs to nobody's commit, and it is cut off. It is still a
/// record: a person may want to look at it.
#[test]
fn a_record_that_is_cut_off_is_kept_aside() {
    let play = Playground::local();
    for n in 0..4 {
        append(&play.open(), "meta/log.md", &format!("entry {n}\n"));
    }
    let journal = segment(&play, 1);
    let text = std::fs::read_to_string(&journal).unwrap();
    let lines = text.trim_end_matches('\n');
    let stray = lines.lines().nth(1).unwrap();
    std::fs::write(&journal, format!("{lines}\n{stray}\n")).unwrap();
    append(&play.open(), "meta/log.md", "entry 4\n");
    let kept: Vec<String> = std::fs::read_dir(play.root().join(".quipu"))
        .unwrap()
        .map(|entry| entry.unwrap().path())
        .filter(|path| path.to_string_lossy().contains("/torn-"))
        .map(|path| std::fs::read_to_string(path).unwrap())
        .collect();
    assert_eq!(kept, [format!("{stray}\n")]);
    assert_eq!(play.open().verify().unwrap().problems, []);
}

#[test]
fn a_failed_sync_is_not_forgotten_by_the_next_one() {
    let play = Playground::local();
    append(&play.open(), "meta/a.md", "one\n");
    let counting = Arc::new(FailingDisk::counting());
    let copy = play.copy();
    append(
        &copy.open_with(Options {
            watch: Some(counting.clone()),
            ..Options::default()
        }),
        "meta/a.md",
        "two\n",
    );
    let sync = counting
        .steps()
        .iter()
        .position(|s| *s == Step::JournalSync)
        .unwrap();
    let disk = Arc::new(FailingDisk::at(sync, Failure::Full));
    let store = play.open_with(Options {
        watch: Some(disk.clone()),
        ..Options::default()
    });
    let failed = store
        .validate(
            person()
                .append(&Playground::path("meta/a.md"), "two\n")
                .key("k"),
        )
        .unwrap()
        .publish();
    // The next process may complete it, so it is not reported as if nothing had happened.
    assert!(
        matches!(failed, Err(StoreError::Unsure { seq: 2, .. })),
        "{failed:?}"
    );
    let before = disk.steps().len();
    // The retry is the same commit. It may be acknowledged only after its bytes were rewritten.
    let retried = store
        .validate(
            person()
                .append(&Playground::path("meta/a.md"), "two\n")
                .key("k"),
        )
        .unwrap()
        .publish()
        .unwrap();
    assert!(retried.repeated);
    let steps = disk.steps().split_off(before);
    let again = steps.iter().position(|s| *s == Step::JournalWrite).unwrap();
    assert_eq!(steps[again + 1], Step::JournalSync, "{steps:?}");
    assert_eq!(play.text("meta/a.md").unwrap(), "one\ntwo\n");
}

#[test]
fn writing_the_same_again_waits_for_the_first_to_be_synced() {
    let play = Playground::new();
    append(&play.open(), "meta/a.md", "one\n");
    // A program died between moving the end and the sync.
    let disk = FailingDisk::at(2, Failure::Stop);
    let dying = play.open_with(Options {
        watch: Some(Arc::new(disk)),
        ..Options::default()
    });
    assert!(
        dying
            .validate(person().write(&Playground::path("drafts/ch01.md"), "d\n", Expect::Any))
            .unwrap()
            .publish()
            .is_err()
    );
    drop(dying);
    let disk = Arc::new(FailingDisk::counting());
    let store = play.open_with(Options {
        watch: Some(disk.clone()),
        ..Options::default()
    });
    let same = store
        .validate(person().write(&Playground::path("drafts/ch01.md"), "d\n", Expect::Any))
        .unwrap()
        .publish()
        .unwrap();
    assert!(same.unchanged);
    assert!(
        disk.steps().contains(&Step::JournalSync),
        "{:?}",
        disk.steps()
    );
}

/// Store options with a clock that the test sets.
fn turned(wall: &Arc<AtomicI64>, name: &str) -> Options {
    let ticking = Arc::clone(wall);
    let clock = Clock::from_fn(move || Instant {
        wall_us: ticking.load(Ordering::SeqCst),
        boot_us: 1_000_000,
    });
    Options {
        clock,
        ..boot(name)
    }
}

#[test]
fn a_clock_that_was_wrong_once_does_not_hold_back_later_times() {
    const START: i64 = 1_800_000_000_000_000;
    let play = Playground::local();
    let wall = Arc::new(AtomicI64::new(START));
    let store = play.open_with(turned(&wall, "one"));
    let lease = store
        .take_lease(&Actor::Person, &["drafts/ch01.md".into()], 60)
        .unwrap();
    // Small steps back are waited for, so that times stay in order. The last step corrects a wrong
    // clock.
    let steps = [
        (0, 0),
        (-3_000_000, 0),
        (86_400_000_000, 86_400_000_000),
        (5_000_000, 5_000_000),
    ];
    for (step, (now, _)) in steps.into_iter().enumerate() {
        wall.store(START + now, Ordering::SeqCst);
        append(&store, "meta/a.md", "x\n");
        // Within a boot, a lease ends by a monotonic clock.
        assert_eq!(store.leases().unwrap().len(), 1);
        let change = Change {
            lease: Some(lease.token()),
            ..person().write(
                &Playground::path("drafts/ch01.md"),
                step.to_string(),
                Expect::Any,
            )
        };
        store.validate(change).unwrap().publish().unwrap();
        let told = store.clock_notice().unwrap();
        assert_eq!(told, None, "step {step}");
    }
    let events = store.events(&Playground::path("meta/a.md")).unwrap();
    let times: Vec<i64> = events
        .iter()
        .rev()
        .map(|e| quipu_store::parse_time(&e.at).unwrap() - START)
        .collect();
    assert_eq!(times, steps.map(|(_, at)| at));
    // Records of the wrong clock are reported, but they are not a problem.
    let found = store.verify().unwrap();
    assert_eq!(found.problems, []);
    assert!(
        found
            .notices
            .iter()
            .any(|n| n.contains("commit @6 and 1 more: the time")),
        "{:?}",
        found.notices
    );
    let moment = At::Time(START + 6_000_000);
    assert_eq!(
        store
            .text_at(&Playground::path("meta/a.md"), &moment)
            .unwrap()
            .1
            .seq,
        events[0].seq
    );
}

#[test]
fn a_newest_record_of_the_future_is_told_and_its_leases_end_with_the_boot() {
    const START: i64 = 1_800_000_000_000_000;
    let play = Playground::local();
    let wall = Arc::new(AtomicI64::new(START + 86_400_000_000));
    let store = play.open_with(turned(&wall, "one"));
    store
        .take_lease(&Actor::Person, &["drafts/ch01.md".into()], 3600)
        .unwrap();
    wall.store(START, Ordering::SeqCst);
    assert!(
        store
            .clock_notice()
            .unwrap()
            .unwrap()
            .contains("the newest commit @1 has the time")
    );
    assert_eq!(store.leases().unwrap().len(), 1);
    drop(store);
    assert_eq!(
        play.open_with(turned(&wall, "two")).leases().unwrap().len(),
        0
    );
}

#[test]
fn a_damaged_newest_record_is_told_by_every_command() {
    for (flipped, index_lost) in [
        ("three", false),
        ("three", true),
        (
            "\"path\":\"drafts/ch01.md\",\"class\":\"overwrite\",\"base\"",
            false,
        ),
    ] {
        let play = Playground::local();
        let store = play.open();
        let path = Playground::path("drafts/ch01.md");
        for text in ["one\n", "two\n", "three\n"] {
            write(&store, "drafts/ch01.md", text);
        }
        append(&store, "meta/a.md", "a\n");
        drop(store);
        // The last occurrence: in the newest record about the file.
        let mut bytes = std::fs::read(segment(&play, 1)).unwrap();
        let at = bytes
            .windows(flipped.len())
            .rposition(|w| w == flipped.as_bytes())
            .unwrap();
        bytes[at] ^= 1;
        std::fs::write(segment(&play, 1), bytes).unwrap();
        if index_lost {
            ["index.db", "index.db-wal", "index.db-shm"]
                .iter()
                .for_each(|n| drop(std::fs::remove_file(play.file(".quipu").join(n))));
        }
        let store = play.open();
        let events = store.events(&path).unwrap();
        assert_eq!(
            events
                .iter()
                .map(|e| (e.seq, e.damaged))
                .collect::<Vec<_>>(),
            [(3, true), (2, false), (1, false)],
            "{flipped}"
        );
        assert!(events[0].after_gap);
        assert_eq!(store.read(&path).unwrap().unwrap().0, b"three\n");
        assert!(matches!(
            store.text_at(&path, &At::Back(1)),
            Err(StoreError::Damaged { .. })
        ));
        assert!(matches!(
            store.restoring(person(), &path, Some(&At::Back(1))),
            Err(StoreError::Damaged { .. })
        ));
        assert_eq!(store.text_at(&path, &At::Seq(2)).unwrap().0, b"two\n");
        assert!(matches!(
            store.blame(&path),
            Err(StoreError::Damaged { .. })
        ));
        let log: Vec<_> = store
            .log(9)
            .unwrap()
            .iter()
            .map(|e| (e.seq, e.damaged))
            .collect();
        assert_eq!(log, [(4, false), (3, true), (2, false), (1, false)]);
        assert_eq!(
            store.verify().unwrap().problems.len(),
            1,
            "{:?}",
            store.verify().unwrap().problems
        );
        // `doctor` handles it once; another damage in the same line counts as new.
        store.doctor().unwrap();
        let found = store.verify().unwrap();
        assert_eq!(
            (found.problems.len(), found.healed.len()),
            (0, 1),
            "{found:?}"
        );
        assert_eq!(store.read(&path).unwrap().unwrap().0, b"three\n");
        assert!(
            store
                .doctor()
                .unwrap()
                .iter()
                .all(|m| !m.what.contains("damaged"))
        );
        flip(&segment(&play, 1), "\"seq\":3");
        assert_eq!(play.open().verify().unwrap().problems.len(), 1);
    }
}

#[test]
fn a_record_of_which_nothing_can_be_read_hides_no_change() {
    let play = Playground::local();
    let store = play.open();
    let path = Playground::path("drafts/ch01.md");
    for text in ["one\n", "two\n"] {
        write(&store, "drafts/ch01.md", text);
    }
    write(&store, "drafts/ch02.md", "other\n");
    append(&store, "meta/a.md", "a\n");
    drop(store);
    flip(
        &segment(&play, 1),
        "\"ops\":[{\"op\":\"write\",\"path\":\"drafts/ch01.md\",\"class\":\"overwrite\",\"base\"",
    );
    ["index.db", "index.db-wal", "index.db-shm"]
        .iter()
        .for_each(|n| drop(std::fs::remove_file(play.file(".quipu").join(n))));
    let store = play.open();
    // The text of the damaged record looks like an external edit now.
    assert_eq!(store.read(&path).unwrap().unwrap().0, b"two\n");
    assert!(store.events(&path).unwrap()[0].after_gap);
    assert!(matches!(
        store.text_at(&path, &At::Back(1)),
        Err(StoreError::Damaged { .. })
    ));
    assert!(matches!(
        store.blame(&path),
        Err(StoreError::Damaged { .. })
    ));
    // Files that were committed since and not edited are not in doubt.
    assert!(
        store
            .events(&Playground::path("drafts/ch02.md"))
            .unwrap()
            .iter()
            .all(|e| !e.after_gap)
    );
    store.doctor().unwrap();
    assert_eq!(store.verify().unwrap().problems, []);
}

/// Appends a valid line to the journal, as a later version of Quipu might write it.
fn add_line(
    play: &Playground,
    seq: u64,
    change: &dyn Fn(&mut BTreeMap<String, serde_json::Value>),
) {
    let path = segment(play, 1);
    let text = String::from_utf8(std::fs::read(&path).unwrap()).unwrap();
    let last = text.lines().rfind(|l| !l.is_empty()).unwrap();
    let mut fields: BTreeMap<String, serde_json::Value> = serde_json::from_str(last).unwrap();
    let prev = fields.remove("hash").unwrap();
    fields.remove("bodies");
    fields.insert("prev".into(), prev.clone());
    fields.insert("seq".into(), seq.into());
    change(&mut fields);
    let mut body = serde_json::to_string(&fields).unwrap();
    body.pop();
    let mut hasher = blake3::Hasher::new();
    hasher.update(prev.as_str().unwrap().as_bytes());
    hasher.update(body.as_bytes());
    let sum = &hasher.finalize().to_hex()[..32];
    std::fs::write(
        &path,
        format!("{}\n{body},\"hash\":\"{sum}\"}}\n", text.trim_end()),
    )
    .unwrap();
}

#[test]
fn kinds_and_fields_of_a_later_quipu_survive() {
    let play = Playground::local();
    append(&play.open_with(boot("one")), "meta/a.md", "one\n");
    add_line(&play, 2, &|fields| {
        fields.insert("kind".into(), "braid".into());
        fields.insert("colour".into(), "red".into());
        fields.remove("ops");
    });
    let store = play.open_with(boot("two"));
    append(&store, "meta/a.md", "two\n");
    assert_eq!(
        store
            .log(9)
            .unwrap()
            .iter()
            .map(|e| e.seq)
            .collect::<Vec<_>>(),
        [3, 2, 1]
    );
    assert_eq!(store.verify().unwrap().problems, []);
    assert!(
        String::from_utf8(std::fs::read(segment(&play, 1)).unwrap())
            .unwrap()
            .contains("\"colour\":\"red\"")
    );
}

#[test]
fn another_format_is_refused_and_not_cut_off() {
    for (format, remedy) in [
        (FORMAT - 1, "mv .quipu .quipu-old "),
        (FORMAT + 1, "use the version of Quipu that wrote it"),
    ] {
        let play = Playground::local();
        append(&play.open_with(boot("one")), "meta/a.md", "one\n");
        add_line(&play, 2, &|fields| {
            drop(fields.insert("v".into(), format.into()))
        });
        let before = std::fs::read(segment(&play, 1)).unwrap();
        let store = play.open_with(boot("two"));
        let refused = store
            .validate(person().append(&Playground::path("meta/a.md"), "two\n"))
            .err()
            .unwrap();
        let StoreError::Refused(refused) = refused else {
            panic!("{refused}")
        };
        assert_eq!(
            refused.what,
            format!(
                "record 2 of the journal has format {format}; this version of Quipu reads format {FORMAT}"
            )
        );
        assert!(refused.remedy.starts_with(remedy), "{}", refused.remedy);
        assert_eq!(std::fs::read(segment(&play, 1)).unwrap(), before);
    }
}

/// Tests the advice in the refusal of an older journal format.
#[test]
fn a_new_journal_begins_when_the_old_one_is_moved_away() {
    let play = Playground::local();
    append(&play.open_with(boot("one")), "meta/a.md", "one\n");
    add_line(&play, 2, &|fields| {
        drop(fields.insert("v".into(), 1.into()))
    });
    std::fs::rename(play.file(".quipu"), play.file(".quipu-old")).unwrap();
    Store::init(&play.file("")).unwrap();
    let store = play.open_with(boot("two"));
    append(&store, "meta/a.md", "two\n");
    assert_eq!(play.text("meta/a.md").unwrap(), "one\ntwo\n");
    assert_eq!(store.verify().unwrap().problems, []);
}

/// A disk that is full after this many write steps, until a test frees space.
struct Filling(AtomicI64);

impl Watch for Filling {
    fn before(&self, _: Step, _: usize) -> StepVerdict {
        if self.0.fetch_sub(1, Ordering::SeqCst) > 0 {
            StepVerdict::Go
        } else {
            StepVerdict::Fail
        }
    }
}

#[test]
fn a_disk_that_stays_full_loses_nothing_and_recovers_in_place() {
    let play = Playground::new();
    let disk = Arc::new(Filling(AtomicI64::new(i64::MAX)));
    let store = play.open_with(Options {
        segment_bytes: 2048,
        watch: Some(disk.clone()),
        ..Options::default()
    });
    append(&store, "meta/a.md", "begin\n");
    let mut acknowledged = vec!["begin".to_owned()];
    let mut failed = 0;
    for room in 0..24 {
        disk.0.store(room, Ordering::SeqCst);
        for try_number in 0..3 {
            let line = format!("{room}-{try_number}");
            let change = person()
                .append(&Playground::path("meta/a.md"), format!("{line}\n"))
                .append(&Playground::path("meta/b.md"), "b\n");
            match store
                .validate(change)
                .and_then(quipu_store::Validated::publish)
            {
                Ok(_) => acknowledged.push(line),
                Err(
                    StoreError::Io { .. }
                    | StoreError::Unfinished { .. }
                    | StoreError::Unsure { .. },
                ) => failed += 1,
                Err(other) => panic!("{line}: {other}"),
            }
        }
        disk.0.store(i64::MAX, Ordering::SeqCst);
        let line = format!("{room}-after");
        append(&store, "meta/a.md", &format!("{line}\n"));
        acknowledged.push(line);
        let text = play.text("meta/a.md").unwrap();
        for line in &acknowledged {
            assert_eq!(
                text.lines().filter(|l| l == line).count(),
                1,
                "{line} after room for {room} steps: {text}"
            );
        }
        assert_eq!(
            store.verify().unwrap().problems,
            [],
            "room for {room} steps"
        );
    }
    assert!(failed > 10 && acknowledged.len() > 30);
}

const READ_ONLY: &str = "QUIPU_TEST_READ_ONLY";

/// Helper process: runs as a user without write permission.
#[test]
fn reader_process() {
    let Ok(root) = std::env::var(READ_ONLY) else {
        return;
    };
    let store = open_store(Path::new(&root), contract(CONTRACT), Options::default());
    assert!(store.is_read_only());
    let path = Playground::path("meta/a.md");
    assert_eq!(store.read(&path).unwrap().unwrap().0, b"one\ntwo\n");
    assert_eq!(store.log(9).unwrap().len(), 2);
    assert_eq!(store.events(&path).unwrap().len(), 2);
    assert_eq!(store.text_at(&path, &At::Back(1)).unwrap().0, b"one\n");
    assert_eq!(store.scan_status().unwrap().flagged().count(), 0);
    assert_eq!(store.verify().unwrap().problems, []);
    assert!(store.sessions().unwrap().is_empty() && store.leases().unwrap().is_empty());
    assert_eq!(store.recent_until(9, &mut |_| false).unwrap().len(), 2);
    let refused = store
        .validate(person().append(&path, "three\n"))
        .err()
        .unwrap();
    assert!(matches!(refused, StoreError::Io { .. }), "{refused}");
}

#[test]
fn a_folder_that_cannot_be_written_can_be_read() {
    let play = Playground::new();
    let store = play.open();
    append(&store, "meta/a.md", "one\n");
    append(&store, "meta/a.md", "two\n");
    drop(store);
    let set = |path: &Path, writable: bool| {
        let mode = match (path.is_dir(), writable) {
            (true, true) => 0o755,
            (true, false) => 0o555,
            (false, true) => 0o644,
            (false, false) => 0o444,
        };
        std::fs::set_permissions(path, std::fs::Permissions::from_mode(mode)).unwrap();
    };
    let all = every_path(play.root());
    all.iter().for_each(|path| set(path, false));
    let output = as_another_user("damage::reader_process", READ_ONLY, play.root());
    all.iter().for_each(|path| set(path, true));
    assert!(
        output.status.success(),
        "{}",
        String::from_utf8_lossy(&output.stderr)
    );
}

/// Runs one of these tests as a user that is not root. An environment variable passes the folder.
fn as_another_user(test: &str, variable: &str, folder: &Path) -> std::process::Output {
    // Another user may not read the folder of the test program, so the program is copied.
    let program = std::env::temp_dir().join(format!("quipu-{variable}-{}", std::process::id()));
    std::fs::copy(std::env::current_exe().unwrap(), &program).unwrap();
    std::fs::set_permissions(&program, std::fs::Permissions::from_mode(0o755)).unwrap();
    let mut child = Command::new(&program);
    child
        .args(["--exact", test, "--nocapture"])
        .env(variable, folder)
        .current_dir("/");
    if is_root() {
        child.uid(65534).gid(65534); // root may write everywhere
    }
    let output = child.output().unwrap();
    std::fs::remove_file(&program).unwrap();
    output
}

fn is_root() -> bool {
    std::fs::metadata("/proc/self").is_ok_and(|m| std::os::unix::fs::MetadataExt::uid(&m) == 0)
}

fn every_path(root: &Path) -> Vec<PathBuf> {
    let mut all = vec![root.to_owned()];
    let mut next = 0;
    while next < all.len() {
        if all[next].is_dir() {
            all.extend(
                std::fs::read_dir(&all[next])
                    .unwrap()
                    .map(|e| e.unwrap().path()),
            );
        }
        next += 1;
    }
    all
}

const DENIED: &str = "QUIPU_TEST_DENIED";

/// Helper process: a user who owns everything, and has made a file and a folder read-only.
#[test]
fn denied_process() {
    let Ok(root) = std::env::var(DENIED) else {
        return;
    };
    let root = Path::new(&root);
    let set = |path: &str, mode| {
        std::fs::set_permissions(root.join(path), std::fs::Permissions::from_mode(mode)).unwrap()
    };
    let store = || open_store(root, contract(CONTRACT), Options::default());
    let log = Playground::path("meta/a.md");
    let draft = Playground::path("drafts/ch01.md");
    set("meta/a.md", 0o444);
    set("drafts", 0o555);
    for (path, change) in [
        (&log, person().append(&log, "two\n")),
        (&draft, person().write(&draft, "second\n", Expect::Any)),
    ] {
        let result = store().validate(change).unwrap().publish();
        assert!(
            matches!(&result, Err(StoreError::Unfinished { path: told, .. }) if told == path.as_str()),
            "{result:?}"
        );
    }
    let reader = store();
    assert_eq!(
        reader
            .read(&Playground::path("state.json"))
            .unwrap()
            .unwrap()
            .0,
        b"{}\n"
    );
    append(&reader, "meta/b.md", "others go on\n");
    // A file that could not be written is flagged, not taken for an edit, and reads return the
    // newest text.
    let scan = reader.scan_status().unwrap();
    let flagged: Vec<_> = scan
        .flagged()
        .map(|f| (f.path.as_str(), f.remedy()))
        .collect();
    let remedy =
        |path: &str| format!("grant permission to write it, then run: quipu restore {path}");
    assert_eq!(
        flagged,
        [
            ("drafts/ch01.md", remedy("drafts/ch01.md")),
            ("meta/a.md", remedy("meta/a.md"))
        ]
    );
    assert_eq!(reader.read(&log).unwrap().unwrap().0, b"one\ntwo\n");
    assert_eq!(reader.read(&draft).unwrap().unwrap().0, b"second\n");
    // The flag survives while the file cannot even be read.
    set("drafts", 0o000);
    assert_eq!(reader.scan_status().unwrap().flagged().count(), 2);
    set("drafts", 0o555);
    set("meta/a.md", 0o000);
    assert_eq!(reader.scan_status().unwrap().flagged().count(), 2);
    assert_eq!(
        store()
            .read(&Playground::path("state.json"))
            .unwrap()
            .unwrap()
            .0,
        b"{}\n"
    );
    set("meta/a.md", 0o444);
    // A touched file is not taken for an edit either.
    drop(reader);
    let now = std::time::SystemTime::now();
    std::fs::File::open(root.join("drafts/ch01.md"))
        .unwrap()
        .set_modified(now)
        .unwrap();
    assert_eq!(store().scan_status().unwrap().flagged().count(), 2);
    assert_eq!(store().read(&draft).unwrap().unwrap().0, b"second\n");
    // `verify` reports the same.
    let problems = store().verify().unwrap().problems;
    let told: Vec<_> = problems
        .iter()
        .map(|p| (p.place.as_str(), p.remedy.clone()))
        .collect();
    assert_eq!(
        told,
        [
            ("drafts/ch01.md", remedy("drafts/ch01.md")),
            ("meta/a.md", remedy("meta/a.md"))
        ]
    );
    assert!(
        problems
            .iter()
            .all(|p| p.what.starts_with("could not be written: ")),
        "{problems:?}"
    );
    set("meta/a.md", 0o644);
    let fixing = store();
    fixing.restore(&Actor::Person, &log, None).unwrap();
    // A file that still cannot be written stays as it is; later `doctor` writes it.
    fixing.doctor().unwrap();
    assert_eq!(
        std::fs::read(root.join("drafts/ch01.md")).unwrap(),
        b"first\n"
    );
    set("drafts", 0o755);
    let fixed = fixing.doctor().unwrap();
    assert!(
        fixed
            .iter()
            .any(|m| m.what.starts_with("wrote `drafts/ch01.md`")),
        "{fixed:?}"
    );
    assert_eq!(
        std::fs::read(root.join("meta/a.md")).unwrap(),
        b"one\ntwo\n"
    );
    assert_eq!(
        std::fs::read(root.join("drafts/ch01.md")).unwrap(),
        b"second\n"
    );
    assert_eq!(fixing.verify().unwrap().problems, []);
    // The same with a new file that does not exist yet; no other user gets it reported as theirs.
    let new = Playground::path("drafts/new.md");
    set("drafts", 0o555);
    let result = store()
        .validate(person().write(&new, "new\n", Expect::Any))
        .unwrap()
        .publish();
    assert!(
        matches!(&result, Err(StoreError::Unfinished { .. })),
        "{result:?}"
    );
    for (when, mode) in [("denied", 0o555), ("allowed", 0o755)] {
        set("drafts", mode);
        let told: Vec<String> = store()
            .verify()
            .unwrap()
            .problems
            .into_iter()
            .map(|p| format!("{}: {}", p.place, p.what))
            .collect();
        assert!(
            told.len() == 1
                && told[0].starts_with("drafts/new.md: could not be written: Permission denied"),
            "{when}: {told:?}"
        );
        assert_eq!(
            store()
                .scan_status()
                .unwrap()
                .flagged()
                .map(|f| f.path.as_str())
                .collect::<Vec<_>>(),
            ["drafts/new.md"],
            "{when}"
        );
    }
    store().doctor().unwrap();
    assert_eq!(std::fs::read(root.join("drafts/new.md")).unwrap(), b"new\n");
    assert_eq!(store().verify().unwrap().problems, []);
}

const DENIED_WITHOUT_INDEX: &str = "QUIPU_TEST_DENIED_WITHOUT_INDEX";

/// Helper process: a user with drafts that are read-only for a while, who deletes the index
/// meanwhile and afterwards.
#[test]
fn denied_without_index_process() {
    let Ok(root) = std::env::var(DENIED_WITHOUT_INDEX) else {
        return;
    };
    let root = Path::new(&root);
    let set = |mode| {
        std::fs::set_permissions(root.join("drafts"), std::fs::Permissions::from_mode(mode))
            .unwrap()
    };
    let store = || open_store(root, contract(CONTRACT), Options::default());
    let delete_index = || {
        for name in ["index.db", "index.db-wal", "index.db-shm"] {
            let _ = std::fs::remove_file(root.join(".quipu").join(name));
        }
    };
    let draft = Playground::path("drafts/ch01.md");
    set(0o555);
    let result = store()
        .validate(person().write(&draft, "second\n", Expect::Any))
        .unwrap()
        .publish();
    assert!(
        matches!(&result, Err(StoreError::Unfinished { .. })),
        "{result:?}"
    );
    delete_index();
    let scan = store().scan_status().unwrap();
    assert_eq!(
        scan.flagged().map(|f| f.path.as_str()).collect::<Vec<_>>(),
        ["drafts/ch01.md"]
    );
    assert_eq!(store().read(&draft).unwrap().unwrap().0, b"second\n");
    set(0o755);
    delete_index();
    let scan = store().scan_status().unwrap();
    assert_eq!(scan.flagged().count(), 0);
    assert_eq!(
        std::fs::read(root.join("drafts/ch01.md")).unwrap(),
        b"second\n"
    );
    assert_eq!(store().verify().unwrap().problems, []);
    // An external edit is still detected, with or without the index.
    std::fs::write(root.join("drafts/ch01.md"), "first\n").unwrap();
    delete_index();
    store().scan_status().unwrap();
    assert_eq!(store().read(&draft).unwrap().unwrap().0, b"first\n");
}

#[test]
fn what_could_not_be_written_is_no_edit_though_the_index_is_gone() {
    let play = Playground::local();
    let store = play.open();
    write(&store, "drafts/ch01.md", "first\n");
    drop(store);
    if is_root() {
        every_path(play.root())
            .iter()
            .for_each(|path| std::os::unix::fs::chown(path, Some(65534), Some(65534)).unwrap());
    }
    // File times may be a tick behind the clock.
    std::thread::sleep(std::time::Duration::from_millis(50));
    let output = as_another_user(
        "damage::denied_without_index_process",
        DENIED_WITHOUT_INDEX,
        play.root(),
    );
    assert!(
        output.status.success(),
        "{}",
        String::from_utf8_lossy(&output.stderr)
    );
}

#[test]
fn what_may_not_be_written_stops_no_other_file() {
    let play = Playground::local();
    let store = play.open();
    append(&store, "meta/a.md", "one\n");
    write(&store, "drafts/ch01.md", "first\n");
    store
        .validate(person().create(&Playground::path("state.json"), "{}\n"))
        .unwrap()
        .publish()
        .unwrap();
    drop(store);
    if is_root() {
        every_path(play.root())
            .iter()
            .for_each(|path| std::os::unix::fs::chown(path, Some(65534), Some(65534)).unwrap());
    }
    let output = as_another_user("damage::denied_process", DENIED, play.root());
    assert!(
        output.status.success(),
        "{}",
        String::from_utf8_lossy(&output.stderr)
    );
}

#[test]
fn what_stands_in_the_place_of_a_file_is_told_and_moved_away() {
    let play = Playground::new();
    let store = play.open();
    for path in ["meta/a.md", "meta/b.md", "meta/c.md"] {
        append(&store, path, "one\n");
        std::fs::remove_file(play.file(path)).unwrap();
    }
    std::fs::create_dir(play.file("meta/a.md")).unwrap();
    std::os::unix::fs::symlink("/etc/hostname", play.file("meta/b.md")).unwrap();
    assert!(
        Command::new("mkfifo")
            .arg(play.file("meta/c.md"))
            .status()
            .unwrap()
            .success()
    );
    let remedy = |path: &str| format!("move it away, then run: quipu restore {path}");
    let expected = [
        (
            "meta/a.md",
            "is a folder, where a file is expected",
            remedy("meta/a.md"),
        ),
        (
            "meta/b.md",
            "is a symbolic link, where a file is expected",
            remedy("meta/b.md"),
        ),
        (
            "meta/c.md",
            "is not a regular file, where a file is expected",
            remedy("meta/c.md"),
        ),
    ];
    let scan = store.scan_status().unwrap();
    let flagged: Vec<_> = scan
        .flagged()
        .map(|f| {
            (
                f.path.as_str(),
                f.flag.as_ref().unwrap().what.as_str(),
                f.remedy(),
            )
        })
        .collect();
    assert_eq!(flagged, expected);
    assert_eq!(scan.strange, [], "each is told once");
    let problems = store.verify().unwrap().problems;
    let told: Vec<_> = problems
        .iter()
        .map(|p| (p.place.as_str(), p.what.as_str(), p.remedy.clone()))
        .collect();
    assert_eq!(told, expected);
    for (path, ..) in expected {
        std::fs::rename(play.file(path), play.file("away")).unwrap();
        store
            .restore(&Actor::Person, &Playground::path(path), None)
            .unwrap();
        assert_eq!(play.text(path).unwrap(), "one\n");
        let away = play.file("away");
        let _ = std::fs::remove_dir(&away).or_else(|_| std::fs::remove_file(&away));
    }
    assert_eq!(store.verify().unwrap().problems, []);
}

/// A path without a file has no flag, but it is still reported as strange.
#[test]
fn a_folder_for_a_file_and_a_link_for_a_folder_are_strange() {
    let play = Playground::new();
    std::fs::create_dir(play.file("outline.md")).unwrap();
    std::os::unix::fs::symlink("/tmp", play.file("drafts")).unwrap();
    let strange = play.open().scan_status().unwrap().strange;
    let told: Vec<&str> = strange.iter().map(|(path, _)| path.as_str()).collect();
    assert_eq!(told, ["drafts", "outline.md"], "{strange:?}");
}

/// A disk that accepts all writes and refuses to sync the journal.
struct RefusesSyncs;

impl Watch for RefusesSyncs {
    fn before(&self, step: Step, _: usize) -> StepVerdict {
        if step == Step::JournalSync {
            StepVerdict::Refused
        } else {
            StepVerdict::Go
        }
    }
}

#[test]
fn a_disk_that_refuses_syncs_keeps_nobody_from_reading() {
    let play = Playground::local();
    let store = play.open();
    append(&store, "meta/a.md", "one\n");
    write(&store, "drafts/ch01.md", "first\n");
    drop(store);
    let refusing = || Options {
        watch: Some(Arc::new(RefusesSyncs)),
        ..Options::default()
    };
    let (log, draft) = (
        Playground::path("meta/a.md"),
        Playground::path("drafts/ch01.md"),
    );
    // The next process must sync the data that the disk did not confirm.
    let store = play.open_with(refusing());
    let unsure = store
        .validate(person().append(&log, "two\n"))
        .and_then(quipu_store::Validated::publish)
        .unwrap_err();
    assert!(
        matches!(unsure, StoreError::Unsure { .. }) && unsure.is_failing_disk(),
        "{unsure}"
    );
    drop(store);
    for boot in [None, Some("another".to_owned())] {
        let project = Project::open_to_read(play.root(), Options { boot, ..refusing() }).unwrap();
        let store = &project.store;
        assert_eq!(store.read(&log).unwrap().unwrap().0, b"one\ntwo\n");
        assert_eq!(store.read(&draft).unwrap().unwrap().0, b"first\n");
        for file in store.scan_status().unwrap().flagged() {
            let flag = file.flag.as_ref().map(|flag| flag.what.as_str());
            assert_eq!(flag, Some("is not written yet: the disk reports errors"));
            assert_eq!(file.remedy(), "repair the disk, then run: quipu doctor");
        }
        let refused = store
            .validate(person().append(&log, "three\n"))
            .and_then(quipu_store::Validated::publish)
            .unwrap_err();
        assert!(matches!(refused, StoreError::Failing { .. }), "{refused}");
    }
    let store = play.open();
    append(&store, "meta/a.md", "three\n");
    assert_eq!(play.text("meta/a.md").unwrap(), "one\ntwo\nthree\n");
    assert_eq!(store.verify().unwrap().problems, []);
}

/// Nothing can be written at all, but committed text can be read.
#[test]
fn a_full_disk_keeps_nobody_from_reading() {
    let mut unfinished = 0;
    for room in 0..24 {
        let play = Playground::local();
        let disk = Arc::new(Filling(AtomicI64::new(i64::MAX)));
        let store = play.open_with(Options {
            watch: Some(disk.clone()),
            ..Options::default()
        });
        append(&store, "meta/a.md", "one\n");
        write(&store, "drafts/ch01.md", "first\n");
        disk.0.store(room, Ordering::SeqCst);
        let (log, draft) = (
            Playground::path("meta/a.md"),
            Playground::path("drafts/ch01.md"),
        );
        let failed = store
            .validate(
                person()
                    .append(&log, "two\n")
                    .write(&draft, "second\n", Expect::Any),
            )
            .and_then(quipu_store::Validated::publish);
        let Err(failed @ StoreError::Unfinished { .. }) = failed else {
            continue;
        };
        unfinished += 1;
        assert!(failed.is_full_disk(), "{failed}");
        drop(store);
        let full = || Some(Arc::new(Filling(AtomicI64::new(0))) as Arc<dyn Watch>);
        let hindered = play.open_with(Options {
            watch: full(),
            ..Options::default()
        });
        let error = hindered.settle().unwrap_err();
        assert!(error.is_full_disk(), "{error}");
        let looking = play.open_with(Options {
            watch: full(),
            unwritable: Some(Unwritable::Full(error.to_string())),
            ..Options::default()
        });
        assert_eq!(looking.read(&log).unwrap().unwrap().0, b"one\ntwo\n");
        assert_eq!(looking.read(&draft).unwrap().unwrap().0, b"second\n");
        assert_eq!(looking.log(9).unwrap().len(), 3);
        let scan = looking.scan_status().unwrap();
        let flagged: Vec<String> = scan.flagged().map(|f| f.path.clone()).collect();
        let problems = looking.verify().unwrap().problems;
        assert_eq!(
            problems.iter().map(|p| p.place.clone()).collect::<Vec<_>>(),
            flagged,
            "{problems:?}"
        );
        for what in scan
            .flagged()
            .map(|f| (f.flag.as_ref().unwrap().what.clone(), f.remedy()))
            .chain(problems.into_iter().map(|p| (p.what, p.remedy)))
        {
            assert_eq!(
                what,
                (
                    "is not written yet: the disk is full".into(),
                    "free some disk space, then run: quipu doctor".into()
                )
            );
        }
        let refused = looking
            .validate(person().append(&log, "three\n"))
            .and_then(quipu_store::Validated::publish)
            .unwrap_err();
        assert!(matches!(refused, StoreError::Full { .. }), "{refused}");
        assert!(matches!(
            looking.doctor(),
            Err(StoreError::Full { .. } | StoreError::Io { .. })
        ));
        drop((hindered, looking));
        let store = play.open();
        assert_eq!(store.scan_status().unwrap().flagged().count(), 0);
        assert_eq!(play.text("meta/a.md").unwrap(), "one\ntwo\n");
        assert_eq!(store.verify().unwrap().problems, []);
    }
    assert!(unfinished > 2, "{unfinished}");
}

/// A commit that finds a folder in place of its file is reported, waits, and is applied when the
/// folder is gone.
#[test]
fn a_folder_in_the_place_of_a_file_makes_no_commit_an_edit() {
    let play = Playground::local();
    let store = play.open();
    store.scan_status().unwrap();
    let (draft, log) = (
        Playground::path("drafts/ch01.md"),
        Playground::path("meta/a.md"),
    );
    for (path, change) in [
        (&draft, person().write(&draft, "one\n", Expect::Any)),
        (&log, person().append(&log, "one\n")),
    ] {
        store.validate(change).unwrap().publish().unwrap();
        std::fs::remove_file(play.file(path.as_str())).unwrap();
        std::fs::create_dir(play.file(path.as_str())).unwrap();
        std::fs::write(play.file(path.as_str()).join("in"), "x").unwrap();
        let restored = store.restore(&Actor::Person, path, None);
        assert!(
            matches!(&restored, Err(StoreError::Unfinished { .. })),
            "{restored:?}"
        );
        let flagged = |store: &quipu_store::Store| {
            let scan = store.scan_status().unwrap();
            assert_eq!(scan.adopted, []);
            scan.flagged()
                .map(|f| (f.path.clone(), f.remedy()))
                .collect::<Vec<_>>()
        };
        let waits = [(
            path.to_string(),
            "move the obstacle away, then run: quipu doctor".to_owned(),
        )];
        assert_eq!(flagged(&store), waits);
        std::fs::rename(play.file(path.as_str()), play.file("away")).unwrap();
        assert_eq!(flagged(&store), waits);
        let fixed = store.doctor().unwrap();
        assert!(
            fixed
                .iter()
                .any(|m| m.what.starts_with(&format!("wrote `{path}`"))),
            "{fixed:?}"
        );
        assert_eq!(play.text(path.as_str()).unwrap(), "one\n");
        assert_eq!(flagged(&store), []);
        assert_eq!(store.verify().unwrap().problems, []);
        std::fs::remove_dir_all(play.file("away")).unwrap();
    }
}

#[test]
fn a_file_in_the_place_of_a_folder_is_told_until_it_is_gone() {
    let play = Playground::local();
    let store = play.open();
    for path in ["drafts/a.md", "drafts/b.md"] {
        write(&store, path, "one\n");
    }
    std::fs::rename(play.file("drafts"), play.file("away")).unwrap();
    std::fs::write(play.file("drafts"), "a file\n").unwrap();
    let told = |problems: Vec<(String, String)>| {
        assert_eq!(
            problems
                .iter()
                .map(|(path, _)| path.as_str())
                .collect::<Vec<_>>(),
            ["drafts/a.md", "drafts/b.md"]
        );
        assert!(
            problems
                .iter()
                .all(|(_, what)| what.contains("is below something that is not a folder")),
            "{problems:?}"
        );
    };
    for _ in 0..2 {
        told(
            store
                .verify()
                .unwrap()
                .problems
                .into_iter()
                .map(|p| (p.place, p.what))
                .collect(),
        );
        told(
            store
                .scan_status()
                .unwrap()
                .flagged()
                .map(|f| (f.path.clone(), f.flag.as_ref().unwrap().what.clone()))
                .collect(),
        );
    }
    std::fs::remove_file(play.file("drafts")).unwrap();
    std::fs::rename(play.file("away"), play.file("drafts")).unwrap();
    assert_eq!(store.scan_status().unwrap().flagged().count(), 0);
    assert_eq!(store.verify().unwrap().problems, []);
}

#[test]
fn zero_bytes_are_no_new_file_either() {
    let play = Playground::local();
    let store = play.open();
    std::fs::create_dir_all(play.file("drafts")).unwrap();
    std::fs::write(play.file("drafts/new.md"), [0; 50]).unwrap();
    let scan = store.scan_status().unwrap();
    assert!(scan.adopted.iter().all(|a| a.path != "drafts/new.md"));
    assert_eq!(
        scan.flagged().map(|f| f.path.as_str()).collect::<Vec<_>>(),
        ["drafts/new.md"]
    );
}

#[test]
fn each_edit_that_gave_way_can_be_shown() {
    let play = Playground::local();
    let store = play.open();
    write(&store, "drafts/ch01.md", "first\n");
    for (name, text) in [
        ("99999-0~drafts%2Fch01.md", "one by hand\n"),
        ("99998-0~drafts%2Fch01.md", "another by hand\n"),
    ] {
        std::fs::write(play.file(".quipu/tmp").join(name), text).unwrap();
        std::fs::set_permissions(
            play.file(".quipu/tmp").join(name),
            std::fs::Permissions::from_mode(0o000),
        )
        .unwrap();
    }
    let kept = store.scan_status().unwrap().kept;
    assert_eq!(kept.len(), 2, "{kept:?}");
    let mut shown: Vec<String> = kept
        .iter()
        .map(|kept| {
            String::from_utf8(
                store
                    .conflict_copies_of(kept.seq, &Playground::path(&kept.path))
                    .unwrap()
                    .unwrap(),
            )
            .unwrap()
        })
        .collect();
    shown.sort();
    assert_eq!(shown, ["another by hand\n", "one by hand\n"]);
}

/// Blocked writes are detected again without the index and the in-memory caches.
#[test]
fn what_stands_in_the_way_stops_nobody_though_the_caches_are_gone() {
    for caches in [
        &["index.db", "index.db-wal", "index.db-shm"][..],
        &["index.db", "index.db-wal", "index.db-shm", "watermarks"],
    ] {
        let play = Playground::local();
        let store = play.open();
        write(&store, "drafts/a.md", "one\n");
        append(&store, "meta/a.md", "one\n");
        store.scan_status().unwrap();
        drop(store);
        std::fs::rename(play.file("drafts"), play.file("away")).unwrap();
        std::fs::write(play.file("drafts"), "a file\n").unwrap();
        std::fs::remove_file(play.file("meta/a.md")).unwrap();
        std::fs::create_dir(play.file("meta/a.md")).unwrap();
        for name in caches {
            let _ = std::fs::remove_file(play.file(".quipu").join(name));
        }
        let store = play.open();
        let flagged = |store: &quipu_store::Store| {
            store
                .scan_status()
                .unwrap()
                .flagged()
                .map(|f| f.path.clone())
                .collect::<Vec<_>>()
        };
        assert_eq!(flagged(&store), ["drafts/a.md", "meta/a.md"]);
        append(&store, "meta/b.md", "others go on\n");
        let problems: Vec<String> = store
            .verify()
            .unwrap()
            .problems
            .into_iter()
            .map(|p| p.place)
            .collect();
        assert_eq!(problems, ["drafts/a.md", "meta/a.md"]);
        std::fs::remove_file(play.file("drafts")).unwrap();
        std::fs::remove_dir(play.file("meta/a.md")).unwrap();
        assert_eq!(store.scan_status().unwrap().adopted, []);
        store.doctor().unwrap();
        assert_eq!(
            (
                play.text("drafts/a.md").unwrap(),
                play.text("meta/a.md").unwrap()
            ),
            ("one\n".into(), "one\n".into())
        );
        assert_eq!(store.verify().unwrap().problems, []);
    }
}
