//! Crash tests: every operation, stopped at every write step, in every way.
//!
//! After each crash the project is opened again as after a killed program, a reboot, a lost index,
//! both, or a power cut that loses unsynced data. All files must be in the state before or after,
//! never between, and an operation that returned must have happened.

use std::collections::BTreeMap;
use std::os::unix::fs::FileExt;
use std::path::Path;
use std::sync::{Arc, Mutex};

use quipu_contract::{Actor, Keep};
use quipu_store::{Change, Expect, Kind, Op, Options, Step, Store, StoreError};
use quipu_testkit::{FailingDisk, Failure, Playground, Restore as _};
use serde_json::json;

type Files = BTreeMap<String, Vec<u8>>;
type Act = fn(&Playground, &Store) -> Result<(), StoreError>;

const PATHS: [&str; 9] = [
    "meta/a.md",
    "meta/b.md",
    "drafts/ch01.md",
    "drafts/ch02.md",
    "state.json",
    "outline.md",
    ".sessions/one.md",
    ".sessions/two.md",
    "notes/deep/free.txt",
];

fn person() -> Change {
    Change::by(&Actor::Person)
}

fn at(text: &str) -> quipu_contract::ProjectPath {
    Playground::path(text)
}

fn commit(store: &Store, change: Change) -> Result<(), StoreError> {
    store.validate(change)?.publish().map(|_| ())
}

/// A project with some history. Segments are small in tests of rotation.
struct Stage {
    segment_bytes: u64,
    /// An external edit, made before the operation and part of the state before it.
    edit: Option<(&'static str, &'static str)>,
}

const PLAIN: Stage = Stage {
    segment_bytes: 16 << 20,
    edit: None,
};

impl Stage {
    fn options(&self, disk: FailingDisk, boot: &str) -> Options {
        Options {
            segment_bytes: self.segment_bytes,
            watch: Some(Arc::new(disk)),
            boot: Some(boot.into()),
            ..Options::default()
        }
    }

    fn set(&self) -> Playground {
        let play = Playground::local();
        let store = play.open_with(Options {
            segment_bytes: self.segment_bytes,
            boot: Some("first".into()),
            ..Options::default()
        });
        commit(&store, person().append(&at("meta/a.md"), "one\ntwo\n")).unwrap();
        let draft = person().write(&at("drafts/ch01.md"), "draft one\n", Expect::Any);
        commit(&store, draft.create(&at("state.json"), "{\"a\":1}\n")).unwrap();
        commit(
            &store,
            person()
                .create(&at("outline.md"), "sealed\n")
                .create(&at(".sessions/one.md"), "s\n"),
        )
        .unwrap();
        commit(
            &store,
            person().write(&at("drafts/ch01.md"), "draft two\n", Expect::Any),
        )
        .unwrap();
        drop(store);
        if let Some((path, text)) = self.edit {
            play.edit(path, text);
        }
        play
    }
}

/// The event after the crash.
#[derive(Debug, Clone, Copy, PartialEq)]
enum After {
    Kill,
    LiveLost,
    Reboot,
    HeadsLost,
    BothLost,
    /// The machine lost power: unsynced data is lost from the journal.
    CutClean,
    /// Like `CutClean`, but some of the unsynced data reached the disk.
    CutGarbled,
    /// Like `CutClean`, and the files of the operation are empty or half written.
    CutFilesEmpty,
    CutFilesHalf,
}

const AFTERS: [After; 9] = [
    After::Kill,
    After::LiveLost,
    After::Reboot,
    After::HeadsLost,
    After::BothLost,
    After::CutClean,
    After::CutGarbled,
    After::CutFilesEmpty,
    After::CutFilesHalf,
];

fn journal(root: &Path) -> Files {
    let folder = root.join(".quipu/journal");
    let entries = std::fs::read_dir(&folder).into_iter().flatten().flatten();
    entries
        .map(|e| {
            (
                e.file_name().to_str().unwrap().to_owned(),
                std::fs::read(e.path()).unwrap(),
            )
        })
        .collect()
}

fn remove(play: &Playground, names: &[&str]) {
    for name in names {
        let _ = std::fs::remove_file(play.file(&format!(".quipu/{name}")));
    }
}

/// Reverts the journal to its synced state. With `garbled`, every other page of the unsynced data
/// survives.
fn lose_unsynced(play: &Playground, synced: &Files, garbled: bool) {
    for (name, now) in journal(play.root()) {
        let path = play.file(&format!(".quipu/journal/{name}"));
        let Some(kept) = synced.get(&name) else {
            if name.ends_with(".jsonl") {
                // The name of a new segment is synced with its folder; its bytes are not.
                std::fs::write(&path, b"").unwrap();
            }
            continue;
        };
        if *kept == now {
            continue;
        }
        if !garbled {
            std::fs::write(&path, kept).unwrap();
            continue;
        }
        let file = std::fs::File::options().write(true).open(&path).unwrap();
        for (index, piece) in now.chunks(97).enumerate() {
            let start = index * 97;
            let old = kept
                .get(start..(start + piece.len()).min(kept.len()))
                .unwrap_or_default();
            if old != piece && index % 2 == 0 {
                let mut lost = old.to_vec();
                lost.resize(piece.len(), 0);
                file.write_all_at(&lost, start as u64).unwrap();
            }
        }
    }
}

fn crash(play: &Playground, after: After, synced: &Files, before: &Files) -> &'static str {
    const HEADS: [&str; 3] = ["index.db", "index.db-wal", "index.db-shm"];
    match after {
        After::Kill => return "first",
        After::LiveLost => {
            remove(play, &["watermarks"]);
            return "first";
        }
        After::HeadsLost => {
            remove(play, &HEADS);
            return "first";
        }
        After::BothLost => {
            remove(play, &HEADS);
            remove(play, &["watermarks"]);
            return "first";
        }
        After::Reboot => {}
        After::CutClean => lose_unsynced(play, synced, false),
        After::CutGarbled => lose_unsynced(play, synced, true),
        After::CutFilesEmpty | After::CutFilesHalf => {
            lose_unsynced(play, synced, false);
            for (name, now) in play.files() {
                if before.get(&name) != Some(&now) {
                    let left = if after == After::CutFilesEmpty {
                        0
                    } else {
                        now.len() / 2
                    };
                    // A file that was never written completely has the time of its creation.
                    let modified = std::fs::metadata(play.file(&name))
                        .unwrap()
                        .modified()
                        .unwrap();
                    let file = std::fs::File::options()
                        .write(true)
                        .open(play.file(&name))
                        .unwrap();
                    file.set_len(left as u64).unwrap();
                    file.set_modified(modified).unwrap();
                }
            }
        }
    }
    "second"
}

/// Returns all answers of the store about every file.
fn answers(store: &Store) -> Files {
    PATHS
        .iter()
        .filter_map(|p| Some(((*p).to_owned(), store.read(&at(p)).unwrap()?.0)))
        .collect()
}

fn check(name: &str, stage: &Stage, act: Act) {
    let good = stage.set();
    let before = good.files();
    let counting = Arc::new(FailingDisk::counting());
    let options = Options {
        watch: Some(counting.clone()),
        ..stage.options(FailingDisk::counting(), "first")
    };
    let store = good.open_with(options);
    act(&good, &store).unwrap_or_else(|e| panic!("{name}: {e}"));
    store.settle().unwrap();
    drop(store);
    let after_files = good.files();
    let steps = counting.steps();
    assert!(!steps.is_empty(), "{name} writes nothing");
    for index in 0..steps.len() {
        for failure in [Failure::Stop, Failure::Torn, Failure::Full] {
            let torn = failure != Failure::Torn || is_tearable(steps[index]);
            if !torn {
                continue;
            }
            let play = stage.set();
            let synced = Arc::new(Mutex::new(journal(play.root())));
            let (root, last) = (play.root().to_owned(), Arc::clone(&synced));
            let disk = FailingDisk::at(index, failure)
                .on_sync(move || *last.lock().unwrap() = journal(&root));
            let store = play.open_with(stage.options(disk, "first"));
            let result = act(&play, &store);
            drop(store);
            let synced = synced.lock().unwrap().clone();
            for after in AFTERS {
                let place = format!(
                    "{name}, step {index} of {} ({:?}), {failure:?}, {after:?}",
                    steps.len(),
                    steps[index]
                );
                let play = play.copy();
                let boot = crash(&play, after, &synced, &before);
                judge_the_ruins(&place, stage, &play, boot, &result, &before, &after_files);
            }
        }
    }
}

/// Whether a step writes bytes, and so can be interrupted midway.
fn is_tearable(step: Step) -> bool {
    use Step::{Append, JournalErase, JournalWrite, LiveWrite, SegmentFill, TempWrite};
    matches!(
        step,
        Append | JournalErase | JournalWrite | LiveWrite | SegmentFill | TempWrite
    )
}

fn judge_the_ruins(
    place: &str,
    stage: &Stage,
    play: &Playground,
    boot: &str,
    result: &Result<(), StoreError>,
    before: &Files,
    after: &Files,
) {
    let store = play.open_with(stage.options(FailingDisk::counting(), boot));
    let told = answers(&store);
    store.settle().unwrap_or_else(|e| panic!("{place}: {e}"));
    let found = play.files();
    assert_eq!(told, found, "{place}: what is told is not what is there");
    let happened = found == *after;
    if !happened {
        assert!(result.is_err(), "{place}: it was acknowledged and is lost");
        assert!(found == *before, "{place}: half of it happened: {found:?}");
    }
    let problems = store
        .verify()
        .unwrap_or_else(|e| panic!("{place}: {e}"))
        .problems;
    assert_eq!(problems, [], "{place}");
    commit(&store, person().append(&at("meta/z.md"), "life goes on\n"))
        .unwrap_or_else(|e| panic!("{place}: {e}"));
    assert_eq!(
        store.read(&at("meta/z.md")).unwrap().unwrap().0,
        b"life goes on\n",
        "{place}"
    );
    let log = store.log(usize::MAX).unwrap();
    assert_eq!(
        log.first().unwrap().seq,
        log.len() as u64,
        "{place}: numbers have gaps"
    );
    assert!(
        log.iter().all(|entry| entry.kind != Kind::ConflictCopy),
        "{place}: Quipu's own bytes were taken for someone's edit"
    );
    drop(store);
    if !place.ends_with("Kill") {
        return;
    }
    remove(play, &["index.db", "index.db-wal", "index.db-shm"]);
    let rebuilt = play.open_with(stage.options(FailingDisk::counting(), boot));
    assert_eq!(
        answers(&rebuilt),
        told,
        "{place}: other heads, other answers"
    );
}

#[test]
fn appending() {
    check("append", &PLAIN, |_, store| {
        commit(store, person().append(&at("meta/a.md"), "three\n"))
    });
    check("append to a new file", &PLAIN, |_, store| {
        commit(store, person().append(&at("notes/deep/free.txt"), "x\n"))
    });
}

#[test]
fn replacing() {
    check("replace", &PLAIN, |_, store| {
        commit(
            store,
            person().write(&at("drafts/ch01.md"), "draft three\n", Expect::Any),
        )
    });
    check("merge", &PLAIN, |_, store| {
        commit(
            store,
            person().op(Op::Merge {
                path: at("state.json"),
                value: json!({"b": 2}),
            }),
        )
    });
}

#[test]
fn creating() {
    check("create", &PLAIN, |_, store| {
        commit(store, person().create(&at(".sessions/two.md"), "t\n"))
    });
}

#[test]
fn committing_four_files() {
    check("four files", &PLAIN, |_, store| {
        let change = person()
            .append(&at("meta/a.md"), "four\n")
            .append(&at("meta/b.md"), "new\n");
        let change = change
            .write(&at("drafts/ch01.md"), "draft four\n", Expect::Any)
            .create(&at(".sessions/two.md"), "t\n");
        commit(store, change)
    });
}

#[test]
fn removing() {
    check("remove", &PLAIN, |_, store| {
        commit(
            store,
            person().op(Op::Remove {
                path: at("drafts/ch01.md"),
                expect: Expect::Any,
            }),
        )
    });
}

#[test]
fn amending() {
    check("amend", &PLAIN, |_, store| {
        commit(
            store,
            person().why("a better plan").op(Op::Amend {
                path: at("outline.md"),
                bytes: Some(b"amended\n".to_vec()),
            }),
        )
    });
}

#[test]
fn restoring() {
    check("restore", &PLAIN, |_, store| {
        store
            .restore(
                &Actor::Person,
                &at("drafts/ch01.md"),
                Some(&quipu_store::At::Back(1)),
            )
            .map(|_| ())
    });
}

#[test]
fn adopting_and_committing() {
    let grown = Stage {
        edit: Some(("meta/a.md", "one\ntwo\nby hand\n")),
        ..PLAIN
    };
    check("adopt, then append", &grown, |_, store| {
        commit(store, person().append(&at("meta/a.md"), "three\n"))
    });
    let merged = Stage {
        edit: Some(("meta/a.md", "zero\none\ntwo\n")),
        ..PLAIN
    };
    check("adopt a merge, then append", &merged, |_, store| {
        commit(store, person().append(&at("meta/a.md"), "three\n"))
    });
    let edited = Stage {
        edit: Some(("drafts/ch01.md", "by hand\n")),
        ..PLAIN
    };
    check("adopt, then replace", &edited, |_, store| {
        commit(
            store,
            person().write(&at("drafts/ch01.md"), "draft three\n", Expect::Any),
        )
    });
}

#[test]
fn rotating() {
    // Every record starts a new segment.
    let tiny = Stage {
        segment_bytes: 64,
        edit: None,
    };
    check("rotate", &tiny, |_, store| {
        commit(
            store,
            person()
                .append(&at("meta/a.md"), "three\n")
                .append(&at("meta/b.md"), "b\n"),
        )
    });
    let edited = Stage {
        segment_bytes: 64,
        edit: Some(("meta/a.md", "one\ntwo\nby hand\n")),
    };
    check("rotate twice in one commit", &edited, |_, store| {
        commit(store, person().append(&at("meta/a.md"), "three\n"))
    });
}

/// The files were written, the heads were not, and someone edits before the commit is redone.
#[test]
fn a_commit_that_is_redone_behind_an_edit_is_there_once() {
    let play = PLAIN.set();
    let counting = Arc::new(FailingDisk::counting());
    let good = play.copy();
    let store = good.open_with(Options {
        watch: Some(counting.clone()),
        ..PLAIN.options(FailingDisk::counting(), "first")
    });
    commit(&store, person().append(&at("meta/a.md"), "three\n")).unwrap();
    drop(store);
    let step = counting
        .steps()
        .iter()
        .position(|s| *s == Step::HeadsCommit)
        .unwrap();
    let store = play.open_with(PLAIN.options(FailingDisk::at(step, Failure::Stop), "first"));
    let _ = commit(&store, person().append(&at("meta/a.md"), "three\n"));
    drop(store);
    assert_eq!(play.text("meta/a.md").unwrap(), "one\ntwo\nthree\n");
    play.edit("meta/a.md", "one\ntwo\nthree\nby hand\n");
    let store = play.open_with(PLAIN.options(FailingDisk::counting(), "first"));
    assert_eq!(
        store.read(&at("meta/a.md")).unwrap().unwrap().0,
        b"one\ntwo\nthree\nby hand\n"
    );
    assert_eq!(
        play.text("meta/a.md").unwrap(),
        "one\ntwo\nthree\nby hand\n"
    );
}

/// One program has journalled its text, another is killed while it applies it, and the first
/// continues.
#[test]
fn what_another_had_begun_to_put_in_place_is_there_once() {
    let settled_by_another = |step: usize, failure: Failure| {
        let play = PLAIN.set();
        let (store, paused) = play.open_paused(PLAIN.options(FailingDisk::counting(), "first"));
        commit(&store, person().append(&at("meta/a.md"), "three\n")).unwrap();
        let change = person()
            .append(&at("meta/a.md"), "three\n")
            .append(&at("meta/b.md"), "b\n");
        paused.publish(store.validate(change).unwrap());
        assert_eq!(play.text("meta/a.md").unwrap(), "one\ntwo\nthree\n");
        let disk = Arc::new(FailingDisk::at(step, failure));
        let other = play.open_with(Options {
            watch: Some(disk.clone()),
            ..PLAIN.options(FailingDisk::counting(), "first")
        });
        let settled = other.settle();
        drop(other);
        commit(&store, person().append(&at("meta/b.md"), "c\n")).unwrap();
        let texts = ["meta/a.md", "meta/b.md"].map(|path| play.text(path).unwrap());
        assert_eq!(
            texts,
            ["one\ntwo\nthree\nthree\n", "b\nc\n"],
            "step {step} {failure:?}: {:?}",
            disk.steps().get(step)
        );
        assert_eq!(store.verify().unwrap().problems, []);
        (settled, disk.steps())
    };
    let (settled, steps) = settled_by_another(usize::MAX, Failure::Stop);
    settled.unwrap();
    assert!(steps.contains(&Step::Append), "{steps:?}");
    for step in 0..steps.len() {
        for failure in [Failure::Stop, Failure::Torn] {
            let _ = settled_by_another(step, failure);
        }
    }
}

/// A killed program has written its text after an external edit, and more is committed before the
/// next scan.
#[test]
fn what_a_killed_program_wrote_behind_an_edit_is_there_once() {
    let long = |letter: &str| format!("{}\n", letter.repeat(12_000));
    let (c, d) = (long("c"), long("d"));
    let begun = "one\ntwo\n";
    // The journalled texts, the bytes in the file after the previous text, and the result.
    let cases: [(&[&str], String, String); 6] = [
        (
            &["three\n"],
            "by hand\nthree\n".into(),
            "three\nfour\nby hand\n".into(),
        ),
        (
            &["three\n", "3b\n"],
            "by hand\nthree\n".into(),
            "three\n3b\nfour\nby hand\n".into(),
        ),
        (
            &["three\n", "3b\n"],
            "by hand\nthree\n3b\nmore\n".into(),
            "three\n3b\nfour\nby hand\nmore\n".into(),
        ),
        (
            &["three\n", "3b\n"],
            "three\nby hand\n3b\n".into(),
            "three\n3b\nfour\nby hand\n".into(),
        ),
        (
            &["three\n", "3b\n"],
            "by hand\n".into(),
            "three\n3b\nfour\nby hand\n".into(),
        ),
        // On a full disk only some pages were written.
        (
            &[&c, &d],
            format!("{}by hand\n", &c[..8192 - begun.len()]),
            format!("{c}{d}four\nby hand\n"),
        ),
    ];
    for (texts, rest, expected) in cases {
        let play = PLAIN.set();
        let (store, paused) = play.open_paused(PLAIN.options(FailingDisk::counting(), "first"));
        commit(&store, person().append(&at("meta/b.md"), "b\n")).unwrap();
        for text in texts {
            let change = person().append(&at("meta/a.md"), *text);
            paused.publish(store.validate(change).unwrap());
        }
        drop(store);
        assert_eq!(play.text("meta/a.md").unwrap(), begun);
        play.edit("meta/a.md", &format!("{begun}{rest}"));
        let store = play.open_with(PLAIN.options(FailingDisk::counting(), "first"));
        commit(&store, person().append(&at("meta/a.md"), "four\n")).unwrap();
        assert_eq!(
            play.text("meta/a.md").unwrap(),
            format!("{begun}{expected}"),
            "{} texts, {} bytes there",
            texts.len(),
            rest.len()
        );
        store.scan_status().unwrap();
        assert_eq!(store.verify().unwrap().problems, []);
    }
}

/// Operations that change no memory file: the files stay the same, and never block them.
#[test]
fn leasing_and_doctoring() {
    check("lease", &PLAIN, |_, store| {
        let lease = store.take_lease(&Actor::Person, &["drafts/ch02.md".into()], 60)?;
        store.renew_lease(&Actor::Person, &lease.token(), 120)?;
        store
            .release_lease(&Actor::Person, &lease.id, None)
            .map(|_| ())
    });
    let tiny = Stage {
        segment_bytes: 64,
        edit: None,
    };
    check("doctor and compress", &tiny, |_, store| {
        store.doctor().map(|_| ())
    });
    for stage in [&PLAIN, &tiny] {
        check("prune", stage, |_, store| {
            let pruned = store.prune(&Actor::Person, Keep::Versions(1))?;
            assert_eq!(
                (pruned.texts, pruned.files.len()),
                (1, 1),
                "the older draft"
            );
            Ok(())
        });
    }
}
