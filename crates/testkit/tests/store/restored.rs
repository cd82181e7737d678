//! Tests of projects that a person restores from a copy, whole or in part, and of folders that are
//! exchanged while a command runs.

use std::path::Path;
use std::sync::Arc;

use quipu_contract::Actor;
use quipu_store::{Change, Expect, Options, Step, StepVerdict, Store, StoreError, Watch};
use quipu_testkit::{CONTRACT, Playground, contract, copy_folder, open_store, temp_folder};

const FILES: usize = 9;

fn append(store: &Store, path: &str, text: &str) -> Result<(), StoreError> {
    let change = Change::by(&Actor::Person).append(&Playground::path(path), text);
    store.validate(change)?.publish().map(drop)
}

fn write(store: &Store, path: &str, text: &str) -> Result<(), StoreError> {
    let change = Change::by(&Actor::Person).write(&Playground::path(path), text, Expect::Any);
    store.validate(change)?.publish().map(drop)
}

fn open(root: &Path) -> Store {
    open_store(root, contract(CONTRACT), Options::default())
}

/// A project, the copy of it from before its last commits, and what `keep` leaves out of the
/// restored files.
fn restored(keep: &dyn Fn(&str) -> bool) -> Playground {
    let play = Playground::local();
    append(&play.open(), "meta/a.md", "one\n").unwrap();
    let backup = play.copy();
    for _ in 0..30 {
        append(&play.open(), "meta/a.md", "later\n").unwrap();
    }
    let mut folders = vec![String::new()];
    while let Some(folder) = folders.pop() {
        for entry in std::fs::read_dir(backup.file(&folder)).unwrap() {
            let entry = entry.unwrap();
            let name = format!("{folder}{}", entry.file_name().to_string_lossy());
            if entry.path().is_dir() {
                folders.push(format!("{name}/"));
            } else if !keep(&name) {
                std::fs::copy(entry.path(), play.file(&name)).unwrap();
            }
        }
    }
    play
}

#[test]
fn a_file_index_newer_than_a_restored_journal_is_replaced() {
    let index = |name: &str| name.starts_with(".quipu/index.db");
    // The first command writes, reads, compares all files or repairs.
    for first in 0..4 {
        let play = restored(&index);
        match first {
            1 => drop(play.open().read(&Playground::path("meta/a.md")).unwrap()),
            2 => drop(play.open().scan_status().unwrap()),
            3 => drop(play.open().doctor().unwrap()),
            _ => {}
        }
        for number in 0..FILES {
            write(&play.open(), &format!("drafts/{number}.md"), "text\n").unwrap();
        }
        for number in 0..FILES {
            let path = format!("drafts/{number}.md");
            assert_eq!(play.text(&path).as_deref(), Some("text\n"), "{first}");
        }
        append(&play.open(), "meta/a.md", "two\n").unwrap();
        assert_eq!(play.text("meta/a.md").unwrap(), "one\ntwo\n");
        let store = play.open();
        let adopted = store.scan_status().unwrap().adopted;
        let mut others = adopted.iter().filter(|a| a.path.as_str() != "quipu.toml");
        assert!(others.next().is_none(), "{first}: {adopted:?}");
        assert_eq!(store.verify().unwrap().problems, [], "{first}");
    }
}

#[test]
fn a_running_store_notices_the_restored_journal() {
    let play = Playground::local();
    let store = play.open();
    append(&store, "meta/a.md", "one\n").unwrap();
    let backup = play.copy();
    append(&store, "meta/a.md", "later\n").unwrap();
    for name in [
        "meta/a.md",
        ".quipu/watermarks",
        ".quipu/journal/00000001.jsonl",
    ] {
        std::fs::write(play.file(name), std::fs::read(backup.file(name)).unwrap()).unwrap();
    }
    append(&store, "meta/a.md", "two\n").unwrap();
    assert_eq!(play.text("meta/a.md").unwrap(), "one\ntwo\n");
    assert_eq!(play.open().verify().unwrap().problems, []);
}

#[test]
fn a_journal_restored_alone_is_told_before_anything_is_written_behind_its_gap() {
    let all_but_the_journal = |name: &str| !name.starts_with(".quipu/journal/");
    let play = restored(&all_but_the_journal);
    let before = std::fs::read(play.file(".quipu/journal/00000001.jsonl")).unwrap();
    assert!(append(&play.open(), "meta/a.md", "two\n").is_err());
    assert_eq!(
        std::fs::read(play.file(".quipu/journal/00000001.jsonl")).unwrap(),
        before
    );
    let store = play.open();
    store.doctor().unwrap();
    append(&store, "meta/a.md", "two\n").unwrap();
    let text = play.text("meta/a.md").unwrap();
    assert!(text.ends_with("later\ntwo\n"), "{text}");
    assert_eq!(play.open().verify().unwrap().problems, []);
}

#[test]
fn a_folder_exchanged_under_a_command_gets_nothing() {
    for part in ["", ".quipu", ".quipu/journal"] {
        let play = Playground::local();
        append(&play.open(), "meta/a.md", "one\n").unwrap();
        let folder = temp_folder();
        let at = |name: &str| folder.path().join(name).join(part);
        copy_folder(play.root(), &folder.path().join("new"));
        copy_folder(play.root(), &folder.path().join("project"));
        let store = open(&folder.path().join("project"));
        store.read(&Playground::path("meta/a.md")).unwrap();
        std::fs::create_dir_all(at("old").parent().unwrap()).unwrap();
        std::fs::rename(at("project"), at("old")).unwrap();
        std::fs::rename(at("new"), at("project")).unwrap();
        let refused = append(&store, "meta/a.md", "two\n").unwrap_err();
        assert!(
            refused.to_string().contains("moved or replaced"),
            "{refused}"
        );
        // The advice: the same command again.
        append(&open(&folder.path().join("project")), "meta/a.md", "two\n").unwrap();
        let text = std::fs::read_to_string(folder.path().join("project/meta/a.md")).unwrap();
        assert_eq!(text, "one\ntwo\n", "{part}");
        let problems = open(&folder.path().join("project"))
            .verify()
            .unwrap()
            .problems;
        assert_eq!(problems, [], "{part}");
    }
}

/// A disk that writes records, and then neither the new tail nor anything over a record.
struct NoWayBack;

impl Watch for NoWayBack {
    fn before(&self, step: Step, _: usize) -> StepVerdict {
        match step {
            Step::LiveWrite | Step::JournalErase => StepVerdict::Fail,
            _ => StepVerdict::Go,
        }
    }
}

#[test]
fn a_record_that_could_not_be_erased_is_no_failed_commit() {
    let play = Playground::local();
    append(&play.open(), "meta/a.md", "one\n").unwrap();
    let store = play.open_with(Options {
        watch: Some(Arc::new(NoWayBack)),
        ..Options::default()
    });
    let unsure = append(&store, "meta/a.md", "two\n").unwrap_err();
    assert!(
        matches!(unsure, StoreError::Unsure { seq: 2, .. }),
        "{unsure}"
    );
    drop(store);
    let read = play.open().read(&Playground::path("meta/a.md"));
    assert_eq!(read.unwrap().unwrap().0, b"one\ntwo\n");
}
