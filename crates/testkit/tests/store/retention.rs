//! Tests of retention: a person can delete old versions, and everything else stays unchanged.

use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering};

use quipu_contract::{Actor, ActorName, Keep};
use quipu_store::{
    At, Change, Clock, Expect, ExpectedHead, HeadFound, Instant, Op, Options, Store, StoreError,
};
use quipu_testkit::{Playground, Restore as _};

fn write(store: &Store, path: &str, text: &str) {
    store
        .validate(Change::by(&Actor::Person).write(&Playground::path(path), text, Expect::Any))
        .unwrap()
        .publish()
        .unwrap();
}

/// Returns a text of 100 lines; each version changes one line, so it is stored as a delta.
fn long(version: usize) -> String {
    (0..100)
        .map(|line| {
            if line == version {
                format!("changed in {version}\n")
            } else {
                format!("line {line} of a longer text\n")
            }
        })
        .collect()
}

fn texts_at(store: &Store, path: &str) -> Vec<Option<String>> {
    let path = Playground::path(path);
    let count = store.events(&path).unwrap().len();
    let text = |back| match store.text_at(&path, &At::Back(back)) {
        Ok((text, _)) => Some(String::from_utf8(text).unwrap()),
        Err(StoreError::NotFound { what, remedy }) => {
            assert_eq!(
                what,
                format!("the text of this version of `{path}` was deleted by retention")
            );
            assert_eq!(
                remedy,
                format!("quipu log {path}     (then name a newer version)")
            );
            None
        }
        Err(other) => panic!("{other}"),
    };
    (0..count).map(text).collect()
}

/// Creates a draft of short texts, one stored as deltas, a file that only grows, and a removed
/// file.
fn stage() -> Playground {
    let play = Playground::local();
    let store = play.open();
    for number in 0..6 {
        write(&store, "drafts/ch01.md", &format!("draft {number}\n"));
        write(&store, "drafts/ch02.md", &long(number));
        let line = format!("entry {number}\n");
        store
            .validate(Change::by(&Actor::Person).append(&Playground::path("meta/a.md"), line))
            .unwrap()
            .publish()
            .unwrap();
    }
    write(&store, "drafts/ch03.md", "first\n");
    write(&store, "drafts/ch03.md", "last\n");
    let path = Playground::path("drafts/ch03.md");
    store
        .validate(Change::by(&Actor::Person).op(Op::Remove {
            path,
            expect: Expect::Any,
        }))
        .unwrap()
        .publish()
        .unwrap();
    play
}

#[test]
fn old_texts_go_and_everything_else_stays() {
    let play = stage();
    let store = play.open();
    let (files, head, log) = (
        play.files(),
        store.journal_head().unwrap().unwrap(),
        store.log(100).unwrap().len(),
    );
    let (ch02, grown) = (
        texts_at(&store, "drafts/ch02.md"),
        texts_at(&store, "meta/a.md"),
    );
    let planned = store.prunable(&Actor::Person, Keep::Versions(2)).unwrap();
    assert_eq!(
        store.verify().unwrap().dropped,
        0,
        "a dry run drops nothing"
    );
    let pruned = store.prune(&Actor::Person, Keep::Versions(2)).unwrap();
    assert_eq!(pruned, planned);
    assert_eq!(
        pruned.files.keys().collect::<Vec<_>>(),
        ["drafts/ch01.md", "drafts/ch03.md"]
    );
    assert_eq!((pruned.texts, pruned.files["drafts/ch01.md"].texts), (5, 4));
    let check = |store: &Store, place: &str| {
        let text = |text: &str| Some(text.to_owned());
        let kept = [text("draft 5\n"), text("draft 4\n"), None, None, None, None];
        assert_eq!(texts_at(store, "drafts/ch01.md"), kept, "{place}");
        assert_eq!(
            texts_at(store, "drafts/ch02.md"),
            ch02,
            "{place}: what kept differences are based on stays"
        );
        assert_eq!(
            texts_at(store, "meta/a.md"),
            grown,
            "{place}: a file that grows needs all of it"
        );
        assert_eq!(play.files(), files, "{place}");
        let found = store.verify().unwrap();
        assert_eq!(
            (found.problems, found.dropped, found.healed),
            (vec![], 5, vec![]),
            "{place}"
        );
        assert_eq!(store.log(100).unwrap().len(), log + 1, "{place}");
        let expected = ExpectedHead::parse(&head.to_string()).unwrap();
        assert_eq!(
            store.find_heads(&[expected]).unwrap().found,
            [HeadFound::Same],
            "{place}"
        );
        let blame = store.blame(&Playground::path("drafts/ch01.md")).unwrap();
        assert_eq!(
            (blame[0].text.as_str(), blame[0].or_older),
            ("draft 5", false),
            "{place}"
        );
    };
    check(&store, "after the prune");
    assert_eq!(
        store
            .prune(&Actor::Person, Keep::Versions(2))
            .unwrap()
            .texts,
        0,
        "there is nothing left to drop"
    );
    assert_eq!(
        store.log(100).unwrap().len(),
        log + 1,
        "and that is not journalled"
    );
    drop(store);
    for name in ["index.db", "index.db-wal", "index.db-shm", "watermarks"] {
        let _ = std::fs::remove_file(play.file(&format!(".quipu/{name}")));
    }
    let rebuilt = play.open();
    check(&rebuilt, "after a rebuild of the index");
    let fixed = rebuilt.doctor().unwrap();
    assert!(
        !fixed.iter().any(|m| m.what.contains("damaged")),
        "{fixed:?}"
    );
    check(&rebuilt, "after doctor");
    // A removed file can still be restored, and writing continues.
    rebuilt
        .restore(&Actor::Person, &Playground::path("drafts/ch03.md"), None)
        .unwrap();
    assert_eq!(play.text("drafts/ch03.md").unwrap(), "last\n");
    write(&rebuilt, "drafts/ch01.md", "draft 6\n");
    assert_eq!(rebuilt.verify().unwrap().problems, []);
}

#[test]
fn lines_whose_origin_was_dropped_are_told_as_that_old_or_older() {
    let play = Playground::local();
    let store = play.open();
    for text in ["one\n", "one\ntwo\n", "one\ntwo\nthree\n"] {
        write(&store, "drafts/ch01.md", text);
    }
    store.prune(&Actor::Person, Keep::Versions(2)).unwrap();
    let blame = store.blame(&Playground::path("drafts/ch01.md")).unwrap();
    let told: Vec<_> = blame.iter().map(|line| (line.seq, line.or_older)).collect();
    assert_eq!(told, [(2, true), (2, true), (3, false)]);
}

#[test]
fn days_keep_the_version_that_was_current_then() {
    const DAY_US: i64 = 86_400_000_000;
    let play = Playground::local();
    let now = Arc::new(AtomicI64::new(1_800_000_000_000_000));
    let ticking = Arc::clone(&now);
    let clock = Clock::from_fn(move || Instant {
        wall_us: ticking.load(Ordering::SeqCst),
        boot_us: 0,
    });
    let store = play.open_with(Options {
        clock,
        ..Options::default()
    });
    for number in 0..5 {
        write(&store, "drafts/ch01.md", &format!("draft {number}\n"));
        now.fetch_add(10 * DAY_US, Ordering::SeqCst);
    }
    // Ages in days: 50, 40, 30, 20, 10.
    store.prune(&Actor::Person, Keep::Days(25)).unwrap();
    let kept: Vec<bool> = texts_at(&store, "drafts/ch01.md")
        .iter()
        .map(Option::is_some)
        .collect();
    assert_eq!(kept, [true, true, true, false, false]);
    store.prune(&Actor::Person, Keep::Days(1)).unwrap();
    let kept: Vec<bool> = texts_at(&store, "drafts/ch01.md")
        .iter()
        .map(Option::is_some)
        .collect();
    assert_eq!(kept, [true, false, false, false, false]);
    assert_eq!(
        (
            store.verify().unwrap().problems,
            store.verify().unwrap().dropped
        ),
        (vec![], 4)
    );
}

#[test]
fn differences_go_together_with_what_they_are_based_on() {
    let play = Playground::local();
    let store = play.open();
    for number in 0..4 {
        write(&store, "drafts/ch02.md", &long(number));
    }
    let other = "another text\n".repeat(150);
    write(&store, "drafts/ch02.md", &other);
    let pruned = store.prune(&Actor::Person, Keep::Versions(1)).unwrap();
    assert_eq!(pruned.texts, 4);
    assert_eq!(
        texts_at(&store, "drafts/ch02.md"),
        [Some(other), None, None, None, None]
    );
    assert_eq!(store.verify().unwrap().problems, []);
}

/// Tests the documented rule about a text that the newest version is a delta of.
#[test]
fn a_file_that_is_removed_and_written_again_needs_nothing_older() {
    let play = Playground::local();
    let store = play.open();
    write(&store, "drafts/ch02.md", &long(1));
    write(&store, "drafts/ch02.md", &long(2));
    assert_eq!(
        store
            .prune(&Actor::Person, Keep::Versions(1))
            .unwrap()
            .texts,
        0
    );
    let path = Playground::path("drafts/ch02.md");
    store
        .validate(Change::by(&Actor::Person).op(Op::Remove {
            path,
            expect: Expect::Any,
        }))
        .unwrap()
        .publish()
        .unwrap();
    write(&store, "drafts/ch02.md", &long(2));
    assert_eq!(
        store
            .prune(&Actor::Person, Keep::Versions(1))
            .unwrap()
            .texts,
        2
    );
    assert_eq!(play.text("drafts/ch02.md").unwrap(), long(2));
    assert_eq!(store.verify().unwrap().problems, []);
}

#[test]
fn the_bytes_are_gone_from_the_disk() {
    let play = Playground::local();
    let store = play.open();
    write(
        &store,
        "drafts/ch01.md",
        "something that should not be here\n",
    );
    write(&store, "drafts/ch01.md", "clean\n");
    store.prune(&Actor::Person, Keep::Versions(1)).unwrap();
    let mut names = Vec::new();
    for entry in std::fs::read_dir(play.file(".quipu/journal"))
        .unwrap()
        .flatten()
    {
        names.push(entry.file_name().into_string().unwrap());
        let text = if names.last().unwrap().ends_with(".gz") {
            std::process::Command::new("gzip")
                .arg("-dc")
                .arg(entry.path())
                .output()
                .unwrap()
                .stdout
        } else {
            std::fs::read(entry.path()).unwrap()
        };
        assert!(!text.is_empty());
        assert!(
            !String::from_utf8(text)
                .unwrap()
                .contains("should not be here")
        );
    }
    names.sort();
    assert_eq!(names, ["00000001.jsonl.gz", "00000002.jsonl"]);
}

#[test]
fn a_missing_text_that_no_prune_names_is_damage() {
    let play = stage();
    let store = play.open();
    store.prune(&Actor::Person, Keep::Versions(2)).unwrap();
    write(&store, "drafts/ch01.md", "draft 6\n");
    write(&store, "drafts/ch01.md", "draft 7\n");
    drop(store);
    // Removes a body by hand, in the same way as a prune.
    let segment = play.file(".quipu/journal/00000002.jsonl");
    let text = std::fs::read_to_string(&segment).unwrap();
    let gone = text.replacen("\"draft 6\\n\"", "null       ", 1).replacen(
        "\"draft 7\\n\"",
        "null       ",
        1,
    );
    assert_ne!(text, gone);
    std::fs::write(&segment, gone).unwrap();
    let store = play.open();
    let problems = store.verify().unwrap().problems;
    let whats: Vec<_> = problems.iter().map(|p| p.what.as_str()).collect();
    let expected = [23, 24].map(|seq| {
        format!("record {seq}: the text of `drafts/ch01.md` is missing, but no prune deleted it")
    });
    assert_eq!(whats, expected);
    assert!(matches!(
        store.prune(&Actor::Person, Keep::Versions(1)),
        Err(StoreError::Refused(_))
    ));
    store.doctor().unwrap();
    let found = store.verify().unwrap();
    assert_eq!(
        (found.problems, found.healed.len(), found.dropped),
        (vec![], 2, 5)
    );
    assert_eq!(play.text("drafts/ch01.md").unwrap(), "draft 7\n");
}

#[test]
fn only_people_prune() {
    let play = stage();
    let store = play.open();
    let agent = Actor::Agent {
        role: None,
        unit: None,
        agent: ActorName::parse("otto").ok(),
    };
    for actor in [agent, Actor::Runtime] {
        assert!(matches!(
            store.prune(&actor, Keep::Versions(1)),
            Err(StoreError::Refused(_))
        ));
        assert!(matches!(
            store.prunable(&actor, Keep::Versions(1)),
            Err(StoreError::Refused(_))
        ));
    }
    assert_eq!(store.verify().unwrap().dropped, 0);
}
