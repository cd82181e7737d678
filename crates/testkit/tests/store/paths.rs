//! Tests of paths: no file outside the project is read or written, and no spelling evades a rule.

use std::os::unix::fs::symlink;

use quipu_contract::{Actor, ProjectPath};
use quipu_store::{Change, Expect, Op, Options, Store, StoreError};
use quipu_testkit::Playground;
use serde_json::json;

/// Returns every operation on a path, as a change.
fn every_op(path: &ProjectPath) -> Vec<Change> {
    let person = || Change::by(&Actor::Person).why("because");
    vec![
        person().append(path, "x\n"),
        person().write(path, "x\n", Expect::Any),
        person().create(path, "x\n"),
        person().op(Op::Merge {
            path: path.clone(),
            value: json!({"x": 1}),
        }),
        person().op(Op::Remove {
            path: path.clone(),
            expect: Expect::Any,
        }),
        person().op(Op::Amend {
            path: path.clone(),
            bytes: Some(b"x\n".to_vec()),
        }),
        person().op(Op::Amend {
            path: path.clone(),
            bytes: None,
        }),
        person().op(Op::Restore {
            path: path.clone(),
            bytes: b"x\n".to_vec(),
            older: false,
        }),
        person().op(Op::Restore {
            path: path.clone(),
            bytes: b"x\n".to_vec(),
            older: true,
        }),
        Change::by(&Actor::Runtime).op(Op::Derive {
            path: path.clone(),
            bytes: b"x\n".to_vec(),
            expect: Expect::Any,
        }),
    ]
}

fn nothing_works(store: &Store, path: &ProjectPath) {
    for change in every_op(path) {
        let done = store
            .validate(change.clone())
            .and_then(quipu_store::Validated::publish);
        assert!(done.is_err(), "{path}: {:?} gave {done:?}", change.ops);
    }
    let read = store.read(path);
    assert!(
        read.as_ref().map_or(true, Option::is_none),
        "{path}: {read:?}"
    );
}

#[test]
fn no_spelling_leaves_the_project_or_enters_what_is_reserved() {
    for bad in [
        "../x",
        "a/../../x",
        "a/..",
        "..",
        ".",
        "",
        "/etc/passwd",
        "//etc/passwd",
        "~/../x\0",
        "C:\\x",
        "C:/x",
        "a\\b",
        "a//b",
        "a/./b",
        ".git/config",
        ".GIT/config",
        "a/.git/hooks/x",
        ".quipu/journal/00000001.jsonl",
        ".Quipu/watermarks",
        ".quipu",
        ".git",
        "．git/x",
        ".ｇｉｔ/x",
        ".g\u{200d}it/x",
        ".git./x",
        ".git /x",
        "git~1/x",
        "cafe\u{301}.md",
        "a\u{202e}b",
        "a\nb",
        "．．/x",
        "a/．．/x",
    ] {
        // Fullwidth dots are ordinary characters on this file system.
        match ProjectPath::parse(bad) {
            Err(_) => {}
            Ok(path) => assert!(
                path.parts()
                    .all(|p| p != ".." && p != "." && p != ".git" && p != ".quipu"),
                "{bad:?}"
            ),
        }
    }
}

#[test]
fn links_lead_nowhere() {
    let play = Playground::new();
    let store = play.open();
    let path = Playground::path("outline.md");
    store
        .validate(Change::by(&Actor::Person).create(&path, "sealed\n"))
        .unwrap()
        .publish()
        .unwrap();
    let outside = tempfile::tempdir().unwrap();
    std::fs::write(outside.path().join("file.md"), "outside\n").unwrap();
    symlink(outside.path(), play.file("away")).unwrap();
    symlink(outside.path().join("file.md"), play.file("file.md")).unwrap();
    symlink(outside.path().join("missing.md"), play.file("dangling.md")).unwrap();
    symlink("outline.md", play.file("alias.md")).unwrap();
    symlink(".", play.file("here")).unwrap();
    symlink(".quipu", play.file("inside")).unwrap();
    std::fs::create_dir(play.file("meta")).unwrap();
    symlink("../outline.md", play.file("meta/linked.md")).unwrap();
    symlink(outside.path(), play.file("drafts")).unwrap();
    for bad in [
        "away/file.md",
        "away/new.md",
        "away/deep/new.md",
        "file.md",
        "dangling.md",
        "alias.md",
        "here/outline.md",
        "here/here/outline.md",
        "inside/watermarks",
        "inside/journal/00000001.jsonl",
        "meta/linked.md",
        "drafts/ch01.md",
        "drafts/file.md",
    ] {
        nothing_works(&store, &Playground::path(bad));
    }
    assert_eq!(std::fs::read_dir(outside.path()).unwrap().count(), 1);
    assert_eq!(
        std::fs::read_to_string(outside.path().join("file.md")).unwrap(),
        "outside\n"
    );
    assert_eq!(play.text("outline.md").unwrap(), "sealed\n");
    // A status scan lists no link, follows none and is stopped by none.
    let scan = store.scan_status().unwrap();
    assert!(
        scan.free.is_empty() && scan.adopted.iter().all(|a| a.path == "quipu.toml"),
        "{scan:?}"
    );
}

#[test]
fn a_folder_that_becomes_a_link_after_the_judgement_is_not_followed() {
    let play = Playground::new();
    let (store, disk) = play.open_paused(Options::default());
    let path = Playground::path("drafts/ch01.md");
    store
        .validate(Change::by(&Actor::Person).create(&path, "one\n"))
        .unwrap()
        .publish()
        .unwrap();
    let change = Change::by(&Actor::Person).write(&path, "two\n", Expect::Any);
    disk.publish(store.validate(change).unwrap());
    let outside = tempfile::tempdir().unwrap();
    std::fs::rename(play.file("drafts"), play.file("drafts-moved")).unwrap();
    symlink(outside.path(), play.file("drafts")).unwrap();
    store.settle().unwrap();
    assert_eq!(
        store
            .scan_status()
            .unwrap()
            .flagged()
            .map(|f| f.path.as_str())
            .collect::<Vec<_>>(),
        ["drafts/ch01.md"]
    );
    assert_eq!(std::fs::read_dir(outside.path()).unwrap().count(), 0);
    assert_eq!(store.read(&path).unwrap().unwrap().0, b"two\n");
    std::fs::remove_file(play.file("drafts")).unwrap();
    std::fs::rename(play.file("drafts-moved"), play.file("drafts")).unwrap();
}

#[test]
fn another_spelling_is_not_another_file() {
    let play = Playground::new();
    let store = play.open();
    for bad in [
        "Outline.md",
        "OUTLINE.MD",
        "ｏutline.md",
        "STATE.json",
        "Index.md",
        "Quipu.toml",
        "META/a.md",
        "Drafts/ch01.md",
    ] {
        let path = Playground::path(bad);
        for change in every_op(&path) {
            let done = store
                .validate(change)
                .and_then(quipu_store::Validated::publish);
            assert!(
                matches!(done, Err(StoreError::Refused(_))),
                "{bad}: {done:?}"
            );
        }
    }
    assert!(play.files().is_empty());
}

#[test]
fn a_restore_writes_nothing_that_was_never_there() {
    let play = Playground::new();
    let store = play.open();
    let agent = Actor::Agent {
        role: None,
        unit: None,
        agent: None,
    };
    for (path, class_allows) in [
        ("outline.md", false),
        ("meta/a.md", false),
        ("drafts/ch01.md", true),
        ("state.json", true),
    ] {
        let path = Playground::path(path);
        let text = if path.as_str() == "state.json" {
            "{\"a\":1}\n"
        } else {
            "true\n"
        };
        store
            .validate(Change::by(&Actor::Person).create(&path, text))
            .unwrap()
            .publish()
            .unwrap();
        for older in [true, false] {
            let forged = Change::by(&agent).op(Op::Restore {
                path: path.clone(),
                bytes: b"forged\n".to_vec(),
                older,
            });
            let done = store
                .validate(forged)
                .and_then(quipu_store::Validated::publish);
            assert!(done.is_err() || !older, "{path}: {done:?}");
            assert_eq!(
                play.text(path.as_str()).unwrap(),
                text,
                "older: {older}, class allows older: {class_allows}"
            );
        }
    }
}

#[test]
fn the_contract_and_the_store_are_not_memory() {
    let play = Playground::new();
    let store = play.open();
    let agent = Actor::Agent {
        role: None,
        unit: None,
        agent: None,
    };
    let path = Playground::path("quipu.toml");
    for mut change in every_op(&path) {
        change.actor = agent.clone();
        assert!(
            store
                .validate(change)
                .and_then(quipu_store::Validated::publish)
                .is_err()
        );
    }
    assert_eq!(play.text("quipu.toml").unwrap(), quipu_testkit::CONTRACT);
}

/// A project may come from a stranger, including the files in `.quipu`.
#[test]
fn a_link_among_quipus_own_files_is_refused_and_not_followed() {
    let play = Playground::new();
    let path = Playground::path("outline.md");
    play.open()
        .validate(Change::by(&Actor::Person).create(&path, "one\n"))
        .unwrap()
        .publish()
        .unwrap();
    let outside = tempfile::tempdir().unwrap();
    let precious = outside.path().join("precious");
    std::fs::write(&precious, "precious\n").unwrap();
    for folder in ["recall", "conflicts"] {
        std::fs::create_dir_all(play.file(".quipu").join(folder)).unwrap();
    }
    for place in [
        "watermarks",
        "append.lock",
        "index.db",
        "journal/00000002.jsonl",
        "recall/complete",
        "recall/lock",
        "tokens",
        "conflict-copies/x",
        "conflicts/x",
    ] {
        let place = format!(".quipu/{place}");
        let aside = play.file(".quipu-aside");
        let was_there = std::fs::rename(play.file(&place), &aside).is_ok();
        symlink(&precious, play.file(&place)).unwrap();
        let told = match quipu_store::Store::open(
            play.root(),
            std::sync::Arc::clone(&play.contract),
            quipu_store::Options::default(),
        ) {
            Err(error) => error.to_string(),
            Ok(_) => panic!("{place} was followed"),
        };
        assert!(
            told.contains(&format!("`{place}` is a symbolic link")),
            "{told}"
        );
        std::fs::remove_file(play.file(&place)).unwrap();
        if was_there {
            std::fs::rename(&aside, play.file(&place)).unwrap();
        }
    }
    assert_eq!(std::fs::read_to_string(&precious).unwrap(), "precious\n");
    assert_eq!(play.open().read(&path).unwrap().unwrap().0, b"one\n");
}
