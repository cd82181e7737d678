//! States after a power cut that a plain crash does not produce: meaningless file times, and a lost
//! contract.
//!
//! The `powercut` example of `quipu-testkit` produces such states with real file systems; these are
//! the first ones that it found.

use std::fs::File;
use std::os::unix::fs::FileExt;
use std::sync::Arc;

use quipu_contract::{Actor, Class, MANIFEST};
use quipu_protocol::Project;
use quipu_store::{Change, Expect, Kind, Op, Options, Step, Store};
use quipu_testkit::{CONTRACT, FailingDisk, Failure, Playground, Restore as _};

const LOG: &str = "meta/a.md";
const DRAFT: &str = "drafts/ch01.md";

fn person() -> Change {
    Change::by(&Actor::Person)
}

fn at(text: &str) -> quipu_contract::ProjectPath {
    Playground::path(text)
}

fn commit(store: &Store, change: Change) {
    store.validate(change).unwrap().publish().unwrap();
}

fn boot(name: &str) -> Options {
    Options {
        boot: Some(name.into()),
        ..Options::default()
    }
}

/// Overwrites part of a file with zeros, keeping its inode, size and modification time.
fn lose_data(play: &Playground, path: &str, from: u64, length: usize) {
    let file = File::options().write(true).open(play.file(path)).unwrap();
    let time = file.metadata().unwrap().modified().unwrap();
    file.write_all_at(&vec![0; length], from).unwrap();
    file.set_modified(time).unwrap();
}

/// Checks that every file has its newest text, and that no loss was recorded as an edit.
fn assert_recovered(play: &Playground, store: &Store, texts: &[(&str, &str)], what: &str) {
    let scan = store.scan_status().unwrap();
    assert_eq!(
        scan.flagged()
            .map(|f| (&f.path, &f.flag))
            .collect::<Vec<_>>(),
        [],
        "{what}"
    );
    // The playground's own `quipu.toml` was not written through Quipu.
    assert!(
        scan.adopted.iter().all(|adopted| adopted.path == MANIFEST),
        "{what}: {:?}",
        scan.adopted
    );
    assert_eq!(scan.kept, [], "{what}");
    for (path, text) in texts {
        assert_eq!(play.text(path).as_deref(), Some(*text), "{what}: {path}");
        assert_eq!(
            store.read(&at(path)).unwrap().unwrap().0,
            text.as_bytes(),
            "{what}: {path}"
        );
    }
    assert_eq!(store.verify().unwrap().problems, [], "{what}");
    let edits = [Kind::Adopt, Kind::ConflictCopy];
    let log = store.log(usize::MAX).unwrap();
    assert!(
        log.iter()
            .all(|entry| !edits.contains(&entry.kind) || entry.paths == [MANIFEST]),
        "{what}: {log:?}"
    );
}

#[test]
fn zeros_in_a_file_that_looks_as_recorded_are_redone() {
    let long = "0123456789abcde\n".repeat(256);
    let cases: [(&str, u64, usize); 4] = [
        ("one\ntwo\n", 0, 8),
        (&long, 0, 4096),
        (&long, 512, 1024),
        (&long, 4000, 96),
    ];
    for (text, from, length) in cases {
        for pending in [false, true] {
            let play = Playground::local();
            let store = play.open_with(boot("one"));
            commit(&store, person().append(&at(LOG), text));
            commit(&store, person().write(&at(DRAFT), text, Expect::Any));
            drop(store);
            let index = std::fs::read(play.file(".quipu/index.db")).unwrap();
            let wal = std::fs::read(play.file(".quipu/index.db-wal")).unwrap();
            let mut whole = text.to_owned();
            if pending {
                // The record of a further append is durable; neither the file nor the index has it.
                let store = play.open_with(boot("one"));
                let before = std::fs::read(play.file(LOG)).unwrap();
                commit(&store, person().append(&at(LOG), "three\n"));
                drop(store);
                std::fs::write(play.file(".quipu/index.db"), index).unwrap();
                std::fs::write(play.file(".quipu/index.db-wal"), wal).unwrap();
                let _ = std::fs::remove_file(play.file(".quipu/index.db-shm"));
                std::fs::write(play.file(LOG), before).unwrap();
                whole.push_str("three\n");
            }
            lose_data(&play, LOG, from, length);
            lose_data(&play, DRAFT, from, length);
            let what = format!(
                "{} bytes, {length} lost at {from}, pending: {pending}",
                text.len()
            );
            assert_recovered(
                &play,
                &play.open_with(boot("two")),
                &[(LOG, &whole), (DRAFT, text)],
                &what,
            );
        }
    }
}

#[test]
fn files_missing_from_one_folder_all_come_back() {
    let play = Playground::local();
    let store = play.open_with(boot("one"));
    let texts = [
        (".sessions/1.md", "1\n"),
        (".sessions/2.md", "2\n"),
        (".sessions/3.md", "3\n"),
        ("notes/free.txt", "4\n"),
    ];
    for (path, text) in texts {
        commit(&store, person().create(&at(path), text));
    }
    drop(store);
    for (path, _) in texts {
        std::fs::remove_file(play.file(path)).unwrap();
    }
    assert_recovered(&play, &play.open_with(boot("two")), &texts, "all missing");
}

#[test]
fn a_removed_file_does_not_come_back_as_zeros() {
    for left in [&b""[..], b"\0\0\0\0\0\0"] {
        let play = Playground::local();
        let store = play.open_with(boot("one"));
        commit(&store, person().write(&at(DRAFT), "draft\n", Expect::Any));
        let modified = std::fs::metadata(play.file(DRAFT))
            .unwrap()
            .modified()
            .unwrap();
        commit(
            &store,
            person().op(Op::Remove {
                path: at(DRAFT),
                expect: Expect::Any,
            }),
        );
        drop(store);
        std::fs::write(play.file(DRAFT), left).unwrap();
        File::options()
            .write(true)
            .open(play.file(DRAFT))
            .unwrap()
            .set_modified(modified)
            .unwrap();
        let store = play.open_with(boot("two"));
        assert_recovered(&play, &store, &[], "removed");
        assert_eq!(play.text(DRAFT), None, "{left:?}");
    }
}

/// The next command completes a recovery that was killed at any step or interrupted by another
/// power cut.
#[test]
fn an_interrupted_recovery_is_completed() {
    let damaged = || {
        let play = Playground::local();
        let store = play.open_with(boot("one"));
        commit(&store, person().append(&at(LOG), "one\n"));
        commit(
            &store,
            person()
                .write(&at(DRAFT), "draft\n", Expect::Any)
                .create(&at(".sessions/1.md"), "1\n"),
        );
        drop(store);
        lose_data(&play, LOG, 0, 4);
        lose_data(&play, DRAFT, 0, 6);
        std::fs::remove_file(play.file(".sessions/1.md")).unwrap();
        play
    };
    let texts = [
        (LOG, "one\n"),
        (DRAFT, "draft\n"),
        (".sessions/1.md", "1\n"),
    ];
    let counting = Arc::new(FailingDisk::counting());
    let play = damaged();
    play.open_with(Options {
        watch: Some(counting.clone()),
        ..boot("two")
    })
    .settle()
    .unwrap();
    let steps = counting.steps();
    // Everything is synced after the last of these.
    let last = steps
        .iter()
        .rposition(|step| matches!(step, Step::Exchange | Step::Place | Step::TakenOut))
        .unwrap();
    for step in 0..steps.len() {
        for next in ["two", "three"] {
            if next == "three" && step > last {
                continue;
            }
            let play = damaged();
            let disk = Arc::new(FailingDisk::at(step, Failure::Stop));
            let _ = play
                .open_with(Options {
                    watch: Some(disk),
                    ..boot("two")
                })
                .settle();
            if next == "three" {
                // The recovery's writes did not reach the disk either, except for the file's time.
                for path in [LOG, DRAFT] {
                    let file = File::options().write(true).open(play.file(path)).unwrap();
                    file.set_len(0).unwrap();
                }
            }
            let store = play.open_with(boot(next));
            for left in std::fs::read_dir(play.file(".quipu/tmp"))
                .unwrap()
                .flatten()
            {
                std::fs::remove_file(left.path()).unwrap();
            }
            assert_recovered(
                &play,
                &store,
                &texts,
                &format!("step {step}, then boot {next}"),
            );
        }
    }
}

/// The acknowledged rules apply to the first command after the cut, even if `quipu.toml` is
/// damaged.
#[test]
fn the_contract_is_recovered_before_it_is_read() {
    let old = CONTRACT.replace(
        "quipu = 1\n",
        "quipu = 1\n\n[[files]]\npath = \"notes.md\"\nclass = \"overwrite\"\n",
    );
    let new = CONTRACT.replace(
        "quipu = 1\n",
        "quipu = 1\n\n[[files]]\npath = \"notes.md\"\nclass = \"append\"\n",
    );
    let zeros = vec![0; new.len()];
    for left in [
        Some(old.as_bytes()),
        Some(b""),
        Some(&zeros),
        Some(&new.as_bytes()[..20]),
        None,
    ] {
        let what = left.map(String::from_utf8_lossy);
        let what = format!("{what:?}");
        let play = Playground::local();
        std::fs::write(play.file(MANIFEST), &old).unwrap();
        let project = Project::open(play.root(), boot("one")).unwrap();
        commit(
            &project.store,
            person().write(&at("notes.md"), "first\n", Expect::Any),
        );
        let time = std::fs::metadata(play.file(MANIFEST))
            .unwrap()
            .modified()
            .unwrap();
        commit(
            &project.store,
            person().write(&at(MANIFEST), new.clone(), Expect::Any),
        );
        drop(project);
        match left {
            Some(bytes) => {
                std::fs::write(play.file(MANIFEST), bytes).unwrap();
                File::options()
                    .write(true)
                    .open(play.file(MANIFEST))
                    .unwrap()
                    .set_modified(time)
                    .unwrap();
            }
            None => std::fs::remove_file(play.file(MANIFEST)).unwrap(),
        }
        let project = Project::open(play.root(), boot("two"))
            .unwrap_or_else(|error| panic!("{what}: {error}"));
        assert_eq!(
            project.contract.class(&at("notes.md")),
            Class::Append,
            "{what}"
        );
        let overwritten = project
            .store
            .validate(person().write(&at("notes.md"), "second\n", Expect::Any))
            .map(|_| ());
        assert!(overwritten.is_err(), "{what}");
        assert_eq!(play.text(MANIFEST).unwrap(), new, "{what}");
    }
}

/// A project that was damaged by an earlier version, or by something else than a power cut.
#[test]
fn restore_rewrites_a_file_that_only_looks_as_recorded() {
    let play = Playground::local();
    let store = play.open_with(boot("one"));
    commit(&store, person().append(&at(LOG), "one\ntwo\n"));
    lose_data(&play, LOG, 0, 8);
    let problems = store.verify().unwrap().problems;
    assert!(
        problems
            .iter()
            .any(|p| p.place == LOG && p.remedy.contains("quipu restore meta/a.md")),
        "{problems:?}"
    );
    store.restore(&Actor::Person, &at(LOG), None).unwrap();
    assert_eq!(play.text(LOG).as_deref(), Some("one\ntwo\n"));
    assert_eq!(store.verify().unwrap().problems, []);
}

/// Text that is not a remnant of a journalled text is an external edit, and stays.
#[test]
fn an_edit_between_the_last_command_and_the_cut_survives() {
    for pending in [false, true] {
        let play = Playground::local();
        let store = play.open_with(boot("one"));
        commit(
            &store,
            person().write(&at(DRAFT), "draft one\n", Expect::Any),
        );
        drop(store);
        let saved: Vec<_> = ["index.db", "index.db-wal"]
            .map(|name| play.file(&format!(".quipu/{name}")))
            .into();
        let saved: Vec<_> = saved
            .into_iter()
            .map(|path| (std::fs::read(&path).unwrap(), path))
            .collect();
        let store = play.open_with(boot("one"));
        commit(
            &store,
            person().write(&at(DRAFT), "draft two\n", Expect::Any),
        );
        drop(store);
        if pending {
            saved
                .into_iter()
                .for_each(|(bytes, path)| std::fs::write(path, bytes).unwrap());
            let _ = std::fs::remove_file(play.file(".quipu/index.db-shm"));
        }
        play.edit(DRAFT, "draft by hand\n");
        let store = play.open_with(boot("two"));
        store.scan_status().unwrap();
        assert_eq!(
            play.text(DRAFT).as_deref(),
            Some("draft by hand\n"),
            "pending: {pending}"
        );
        assert_eq!(store.verify().unwrap().problems, [], "pending: {pending}");
    }
}
