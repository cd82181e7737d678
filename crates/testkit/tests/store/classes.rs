//! Tests of every class: allowed and refused changes.

use quipu_contract::Actor;
use quipu_store::{Change, Expect, Op, Options, StoreError, Version};
use quipu_testkit::{CONTRACT, Playground};
use serde_json::json;

fn refused(result: Result<quipu_store::Receipt, StoreError>) -> quipu_store::Refused {
    match result {
        Err(StoreError::Refused(refused)) => refused,
        other => panic!("not refused: {other:?}"),
    }
}

fn commit(store: &quipu_store::Store, change: Change) -> Result<quipu_store::Receipt, StoreError> {
    store.validate(change)?.publish()
}

#[test]
fn append_grows_and_never_changes() {
    let play = Playground::new();
    let store = play.open();
    let path = Playground::path("meta/glossary.md");
    commit(&store, Change::by(&Actor::Person).append(&path, "one\n")).unwrap();
    let receipt = commit(&store, Change::by(&Actor::Person).append(&path, "two\n")).unwrap();
    assert_eq!(receipt.seq, 2);
    assert_eq!(play.text("meta/glossary.md").unwrap(), "one\ntwo\n");
    let no = refused(commit(
        &store,
        Change::by(&Actor::Person).write(&path, "three\n", Expect::Any),
    ));
    assert_eq!(
        no.what,
        "`meta/glossary.md` is append-only: existing bytes never change"
    );
    assert_eq!(no.rule.unwrap().0.to_string(), "quipu.toml:8");
    assert_eq!(play.text("meta/glossary.md").unwrap(), "one\ntwo\n");
}

#[test]
fn sealed_is_written_once_and_amended_by_a_person() {
    let play = Playground::new();
    let store = play.open();
    let path = Playground::path("outline.md");
    commit(
        &store,
        Change::by(&Actor::Person).write(&path, "v1\n", Expect::Any),
    )
    .unwrap();
    refused(commit(
        &store,
        Change::by(&Actor::Person).write(&path, "v2\n", Expect::Any),
    ));
    let agent = Actor::Agent {
        role: None,
        unit: None,
        agent: None,
    };
    let amend = |actor: &Actor| {
        Change::by(actor).op(Op::Amend {
            path: path.clone(),
            bytes: Some(b"v2\n".to_vec()),
        })
    };
    refused(commit(&store, amend(&agent).why("because")));
    refused(commit(&store, amend(&Actor::Person)));
    commit(
        &store,
        amend(&Actor::Person).why("the reader advocate objects"),
    )
    .unwrap();
    assert_eq!(play.text("outline.md").unwrap(), "v2\n");
    assert_eq!(
        store.log(1).unwrap()[0].why.as_deref(),
        Some("the reader advocate objects")
    );
}

#[test]
fn a_record_is_created_once() {
    let play = Playground::new();
    let store = play.open();
    let path = Playground::path(".sessions/2026-11-15_fix_x.md");
    commit(&store, Change::by(&Actor::Person).create(&path, "s\n")).unwrap();
    refused(commit(
        &store,
        Change::by(&Actor::Person).create(&path, "t\n"),
    ));
    refused(commit(
        &store,
        Change::by(&Actor::Person).append(&path, "t\n"),
    ));
    refused(commit(
        &store,
        Change::by(&Actor::Person).write(&path, "t\n", Expect::Any),
    ));
}

#[test]
fn state_is_replaced_on_the_version_read_or_merged() {
    let play = Playground::new();
    let store = play.open();
    let path = Playground::path("state.json");
    let first = commit(
        &store,
        Change::by(&Actor::Person).create(&path, "{\"a\":1,\"x\":[1]}\n"),
    )
    .unwrap();
    refused(commit(
        &store,
        Change::by(&Actor::Person).write(&path, "{}\n", Expect::Any),
    ));
    let version = first.versions["state.json"].clone();
    let good = Change::by(&Actor::Person).write(
        &path,
        "{\"a\":2,\"x\":[1]}\n",
        Expect::Version(version.clone()),
    );
    commit(&store, good).unwrap();
    let stale = commit(
        &store,
        Change::by(&Actor::Person).write(&path, "{}\n", Expect::Version(version)),
    );
    assert!(matches!(stale, Err(StoreError::Stale { .. })), "{stale:?}");
    commit(
        &store,
        Change::by(&Actor::Person).op(Op::Merge {
            path: path.clone(),
            value: json!({"b": {"c": 1}}),
        }),
    )
    .unwrap();
    let text: serde_json::Value = serde_json::from_str(&play.text("state.json").unwrap()).unwrap();
    assert_eq!(text, json!({"a": 2, "x": [1], "b": {"c": 1}}));
    let version = store.read(&path).unwrap().unwrap().1;
    let no = refused(commit(
        &store,
        Change::by(&Actor::Person).write(&path, "{\n  \"a\": \n}", Expect::Version(version)),
    ));
    assert!(no.what.contains("line 3"), "{}", no.what);
}

#[test]
fn derived_is_written_by_quipu_alone() {
    let play = Playground::new();
    let store = play.open();
    let path = Playground::path("index.md");
    refused(commit(
        &store,
        Change::by(&Actor::Person).write(&path, "x", Expect::Any),
    ));
    commit(
        &store,
        Change::by(&Actor::Runtime).op(Op::Derive {
            path: path.clone(),
            bytes: b"x".to_vec(),
            expect: Expect::Any,
        }),
    )
    .unwrap();
    refused(commit(
        &store,
        Change::by(&Actor::Runtime).op(Op::Derive {
            path: Playground::path("outline.md"),
            bytes: b"x".to_vec(),
            expect: Expect::Any,
        }),
    ));
}

#[test]
fn a_role_writes_its_pointers_only() {
    let play = Playground::new();
    let store = play.open();
    let writer = Playground::role("writer", Some("ch01"));
    commit(
        &store,
        Change::by(&writer).write(&Playground::path("drafts/ch01.md"), "d\n", Expect::Any),
    )
    .unwrap();
    let no = refused(commit(
        &store,
        Change::by(&writer).write(&Playground::path("drafts/ch02.md"), "d\n", Expect::Any),
    ));
    assert_eq!(
        no.what,
        "role `writer` may write `drafts/ch01.md`, not `drafts/ch02.md`"
    );
    refused(commit(
        &store,
        Change::by(&writer).append(&Playground::path("notes.txt"), "d\n"),
    ));
    refused(commit(
        &store,
        Change::by(&Playground::role("nobody", None)).append(&Playground::path("notes.txt"), "d\n"),
    ));
}

#[test]
fn a_change_is_whole_or_nothing() {
    let play = Playground::new();
    let store = play.open();
    let change = Change::by(&Actor::Person)
        .append(&Playground::path("meta/a.md"), "a\n")
        .create(&Playground::path("drafts/ch01.md"), "d\n")
        .op(Op::Derive {
            path: Playground::path("index.md"),
            bytes: b"no".to_vec(),
            expect: Expect::Any,
        });
    refused(commit(&store, change));
    assert_eq!(play.text("meta/a.md"), None);
    assert_eq!(store.log(10).unwrap().len(), 0);
    let change = Change::by(&Actor::Person)
        .append(&Playground::path("meta/a.md"), "a\n")
        .append(&Playground::path("meta/a.md"), "b\n")
        .create(&Playground::path("drafts/ch01.md"), "d\n");
    let receipt = commit(&store, change).unwrap();
    assert_eq!(receipt.versions.len(), 2);
    assert_eq!(play.text("meta/a.md").unwrap(), "a\nb\n");
    assert_eq!(store.verify().unwrap().problems, []);
    assert_eq!(
        store.events(&Playground::path("meta/a.md")).unwrap().len(),
        2
    );
}

#[test]
fn a_repeated_key_returns_the_first_receipt() {
    let play = Playground::new();
    let store = play.open();
    let path = Playground::path("meta/a.md");
    let change = || Change::by(&Actor::Person).key("once").append(&path, "a\n");
    let first = commit(&store, change()).unwrap();
    let second = commit(&store, change()).unwrap();
    assert!(second.repeated && !first.repeated);
    assert_eq!(
        (first.seq, &first.id, &first.versions),
        (second.seq, &second.id, &second.versions)
    );
    let other = play.open();
    assert!(commit(&other, change()).unwrap().repeated);
    assert_eq!(play.text("meta/a.md").unwrap(), "a\n");
}

#[test]
fn a_key_stands_for_one_change() {
    let play = Playground::new();
    let store = play.open();
    let (path, state) = (
        Playground::path("meta/a.md"),
        Playground::path("state.json"),
    );
    let keyed = || Change::by(&Actor::Person).key("once");
    let merge = |value| Op::Merge {
        path: state.clone(),
        value,
    };
    commit(
        &store,
        keyed()
            .append(&path, "a\n")
            .op(merge(serde_json::json!({"a": 1}))),
    )
    .unwrap();
    for other in [
        keyed()
            .append(&path, "b\n")
            .op(merge(serde_json::json!({"a": 1}))),
        keyed()
            .append(&path, "a\n")
            .op(merge(serde_json::json!({"a": 2}))),
        keyed().append(&path, "a\n"),
        keyed()
            .append(&path, "a\n")
            .op(merge(serde_json::json!({"a": 1})))
            .append(&path, "c\n"),
    ] {
        let no = refused(commit(&store, other));
        assert!(no.what.contains("a different change"), "{}", no.what);
    }
    assert!(
        commit(
            &play.open(),
            keyed()
                .append(&path, "a\n")
                .op(merge(serde_json::json!({"a": 1})))
        )
        .unwrap()
        .repeated
    );
    assert_eq!(play.text("meta/a.md").unwrap(), "a\n");
}

#[test]
fn only_an_object_is_merged_and_the_rest_of_the_state_stays_as_it_is_written() {
    let play = Playground::new();
    let store = play.open();
    let state = Playground::path("state.json");
    let text = "{\n  \"long\": 123456789012345678901234567890,\n  \"a\": 1\n}\n";
    commit(&store, Change::by(&Actor::Person).create(&state, text)).unwrap();
    for value in [
        serde_json::json!("x"),
        serde_json::json!([1]),
        serde_json::json!(null),
    ] {
        let no = refused(commit(
            &store,
            Change::by(&Actor::Person).op(Op::Merge {
                path: state.clone(),
                value,
            }),
        ));
        assert!(no.what.contains("only an object"), "{}", no.what);
    }
    commit(
        &store,
        Change::by(&Actor::Person).op(Op::Merge {
            path: state.clone(),
            value: serde_json::json!({"a": 2}),
        }),
    )
    .unwrap();
    assert_eq!(
        play.text("state.json").unwrap(),
        text.replace(": 1\n", ": 2\n")
    );
}

#[test]
fn writing_the_same_bytes_is_no_commit() {
    let play = Playground::new();
    let store = play.open();
    let path = Playground::path("drafts/ch01.md");
    commit(
        &store,
        Change::by(&Actor::Person).write(&path, "same\n", Expect::Any),
    )
    .unwrap();
    let again = commit(
        &store,
        Change::by(&Actor::Person).write(&path, "same\n", Expect::Any),
    )
    .unwrap();
    assert!(again.unchanged);
    assert_eq!(store.log(10).unwrap().len(), 1);
}

#[test]
fn only_people_change_the_contract() {
    let play = Playground::new();
    let store = play.open();
    let agent = Actor::Agent {
        role: None,
        unit: None,
        agent: None,
    };
    let path = Playground::path("quipu.toml");
    let no = refused(commit(
        &store,
        Change::by(&agent).write(&path, "quipu = 1\n", Expect::Any),
    ));
    assert!(no.what.contains("only a person"), "{}", no.what);
    // Only a person may begin a project inside this one.
    for inner in [
        "meta/quipu.toml",
        "meta/Quipu.toml",
        "drafts/quipu.toml/x.md",
    ] {
        let path = Playground::path(inner);
        for actor in [&agent, &Playground::role("keeper", None), &Actor::Runtime] {
            let no = refused(commit(
                &store,
                Change::by(actor).create(&path, "quipu = 1\n"),
            ));
            assert!(
                no.what.contains("only a person may create one"),
                "{}",
                no.what
            );
        }
    }
    commit(
        &store,
        Change::by(&Actor::Person).create(&Playground::path("inner/quipu.toml"), "quipu = 1\n"),
    )
    .unwrap();
}

#[test]
fn nobody_takes_the_contract_away() {
    let play = Playground::new();
    let store = play.open();
    let path = Playground::path("quipu.toml");
    let remove = || Op::Remove {
        path: path.clone(),
        expect: Expect::Any,
    };
    let no = refused(commit(&store, Change::by(&Actor::Person).op(remove())));
    assert!(
        no.what.contains("cannot be moved or removed"),
        "{}",
        no.what
    );
    let no = refused(commit(
        &store,
        Change::by(&Actor::Person)
            .op(remove())
            .create(&Playground::path("other.toml"), CONTRACT),
    ));
    assert!(
        no.what.contains("cannot be moved or removed"),
        "{}",
        no.what
    );
    commit(
        &store,
        Change {
            force: true,
            ..Change::by(&Actor::Person)
                .op(remove())
                .create(&path, "quipu = 1\n")
        },
    )
    .unwrap();
}

#[test]
fn a_name_is_a_file_or_a_folder_in_one_change() {
    let play = Playground::new();
    let store = play.open();
    let at = Playground::path;
    for (one, two) in [
        ("a", "a/b"),
        ("a/b", "a"),
        ("a/b/c", "a"),
        ("a", "a/b/c"),
        ("a/b", "a/b/c/d"),
    ] {
        let change = Change::by(&Actor::Person)
            .create(&at("a-z"), "x")
            .create(&at(one), "x")
            .create(&at("a0"), "x")
            .create(&at(two), "x");
        let no = refused(commit(&store, change));
        assert!(no.what.contains("cannot both be files"), "{}", no.what);
    }
    let beside = ["a/b", "a-b", "a/b.md", "a/bc/d", "ab/c"]
        .iter()
        .fold(Change::by(&Actor::Person), |c, path| {
            c.create(&at(path), "x")
        });
    commit(&store, beside).unwrap();
}

#[test]
fn who_expects_nothing_makes_the_file() {
    let play = Playground::new();
    let store = play.open();
    let path = Playground::path("state.json");
    let none = || Expect::Version(Version::none());
    commit(
        &store,
        Change::by(&Actor::Person).write(&path, "{}\n", none()),
    )
    .unwrap();
    let stale = commit(
        &store,
        Change::by(&Actor::Person).write(&path, "{\"a\": 1}\n", none()),
    );
    assert!(matches!(stale, Err(StoreError::Stale { .. })), "{stale:?}");
}

#[test]
fn no_agent_writes_what_a_gate_makes() {
    let gate = "\n[[steps]]\nname = \"final\"\nbuiltin = \"gate\"\nreads = [\"outline.md\"]\nwrites = [\"drafts/{unit}.md\"]\n";
    let play = Playground::with_contract(&format!("{CONTRACT}{gate}"));
    let store = play.open();
    let path = Playground::path("drafts/ch01.md");
    for agent in [
        Actor::Agent {
            role: None,
            unit: None,
            agent: None,
        },
        Playground::role("writer", Some("ch01")),
    ] {
        let no = refused(commit(&store, Change::by(&agent).create(&path, "plan\n")));
        assert!(
            no.what.contains("only a person may pass a gate"),
            "{}",
            no.what
        );
    }
    commit(&store, Change::by(&Actor::Person).create(&path, "plan\n")).unwrap();
}

#[test]
fn the_version_of_a_file_does_not_depend_on_how_it_is_read() {
    let play = Playground::new();
    let store = play.open();
    let path = Playground::path("drafts/ch01.md");
    let receipt = commit(
        &store,
        Change::by(&Actor::Person).write(&path, "text\n", Expect::Any),
    )
    .unwrap();
    assert_eq!(receipt.versions["drafts/ch01.md"], Version::of(b"text\n"));
    assert_eq!(
        store.read(&path).unwrap().unwrap(),
        (b"text\n".to_vec(), Version::of(b"text\n"))
    );
}

const WORLD: &str =
    "quipu = 1\n\n[[files]]\npath = \"world.md\"\nclass = \"state\"\nform = \"world\"\n";

#[test]
fn a_world_that_moved_on_is_merged_by_key() {
    let play = Playground::with_contract(WORLD);
    let store = play.open();
    let path = Playground::path("world.md");
    let text = "# World\n\nProse.\n\n## Facts\n\n- python: 3.11\n- tests: make\n";
    let read = commit(
        &store,
        Change::by(&Actor::Person).write(&path, text, Expect::Any),
    )
    .unwrap()
    .versions["world.md"]
        .clone();
    let write = |text: String| {
        commit(
            &store,
            Change::by(&Actor::Person).write(&path, text, Expect::Version(read.clone())),
        )
        .unwrap()
    };
    let first = write(
        text.replace("3.11", "3.12")
            .replace("Prose.", "Prose, fixed."),
    );
    assert!(first.merged.is_empty());
    let second = write(
        text.replace("3.11", "3.13")
            .replace("- tests", "- cache: on\n- tests"),
    );
    assert_eq!(second.merged, ["world.md"]);
    let merged = play.text("world.md").unwrap();
    let (before, history) = merged.split_once("\n### History\n\n").unwrap();
    assert_eq!(
        before,
        text.replace("3.11", "3.13")
            .replace("Prose.", "Prose, fixed.")
            .replace("- tests", "- cache: on\n- tests")
    );
    assert!(
        history.starts_with("- python: 3.12 (until 20") && history.ends_with("Z)\n"),
        "{history}"
    );

    // A version that was never written gives no base to merge from; an external edit does.
    let unknown = Change::by(&Actor::Person).write(
        &path,
        text,
        Expect::Version(Version::parse("0123456789abcdef")),
    );
    assert!(matches!(
        commit(&store, unknown),
        Err(StoreError::Stale { .. })
    ));
    play.edit("world.md", &merged.replace("Prose, fixed.", "By hand."));
    let last = Change::by(&Actor::Person).write(
        &path,
        merged.replace("make", "just"),
        Expect::Version(second.versions["world.md"].clone()),
    );
    assert_eq!(commit(&store, last).unwrap().merged, ["world.md"]);
    assert_eq!(
        play.text("world.md").unwrap(),
        merged
            .replace("make", "just")
            .replace("Prose, fixed.", "By hand.")
    );
}

#[test]
fn twenty_writers_of_one_world_keep_every_fact() {
    let play = Playground::with_contract(WORLD);
    let store = play.open();
    let path = Playground::path("world.md");
    let text = "# World\n\n## Facts\n\n- shared: 0\n";
    let read = commit(
        &store,
        Change::by(&Actor::Person).write(&path, text, Expect::Any),
    )
    .unwrap()
    .versions["world.md"]
        .clone();
    std::thread::scope(|scope| {
        for writer in 0..20 {
            let (play, path, read) = (&play, &path, &read);
            scope.spawn(move || {
                let store = play.open();
                let ours = text.replace(
                    "- shared: 0",
                    &format!("- shared: {writer}\n- agent {writer}: done"),
                );
                commit(
                    &store,
                    Change::by(&Actor::Person).write(path, ours, Expect::Version(read.clone())),
                )
                .unwrap();
            });
        }
    });
    let facts = quipu_contract::facts(&play.text("world.md").unwrap());
    for writer in 0..20 {
        assert!(
            facts
                .iter()
                .any(|f| f.key == format!("agent {writer}") && f.value == "done" && !f.older),
            "{writer}"
        );
        let told = |f: &&quipu_contract::Fact| {
            f.key == "shared" && f.value.split(" (").next() == Some(&writer.to_string())
        };
        // The very first value does not belong to a writer.
        assert!(
            writer == 0 || facts.iter().filter(told).count() == 1,
            "{writer}"
        );
    }
}

#[test]
fn a_key_is_remembered_where_nothing_changed() {
    let play = Playground::new();
    let store = play.open();
    let draft = |text: &str, key: &str| {
        let change = Change::by(&Actor::Person).key(key).write(
            &Playground::path("drafts/ch01.md"),
            text,
            Expect::Any,
        );
        store.validate(change).unwrap().publish().unwrap()
    };
    draft("A\n", "k1");
    let same = draft("A\n", "k2");
    assert!(same.unchanged && !same.repeated);
    assert!(!draft("B\n", "k3").unchanged);
    // Repeating the change does nothing, although it would change the file now.
    assert!(draft("A\n", "k2").repeated);
    assert_eq!(play.text("drafts/ch01.md").unwrap(), "B\n");
    assert_eq!(store.verify().unwrap().problems, []);
}

/// A text that begins its own line closes the line before it, regardless of who left it open, on
/// disk or not yet applied.
#[test]
fn an_append_apart_begins_a_line() {
    let play = Playground::new();
    let (one, disk) = play.open_paused(Options::default());
    let (other, other_disk) = play.open_paused(Options::default());
    let apart = |text: &str, key: Option<&str>| {
        let change = Change::by(&Actor::Person).op(Op::Append {
            path: Playground::path("meta/a.md"),
            bytes: text.into(),
            apart: true,
        });
        key.into_iter().fold(change, |change, key| change.key(key))
    };
    let first = one
        .validate(apart("a", Some("k")))
        .unwrap()
        .publish()
        .unwrap();
    // Repeating the change returns the first one, although the file has a different end now.
    assert!(
        one.validate(apart("a", Some("k")))
            .unwrap()
            .publish()
            .unwrap()
            .repeated
    );
    assert!(!first.repeated);
    disk.publish(one.validate(apart("b", None)).unwrap());
    other_disk.publish(other.validate(apart("c", None)).unwrap());
    assert_eq!(play.text("meta/a.md").unwrap(), "a");
    one.validate(apart("d\n", None)).unwrap().publish().unwrap();
    other
        .validate(apart("e\n", None))
        .unwrap()
        .publish()
        .unwrap();
    other.validate(apart("", None)).unwrap().publish().unwrap();
    assert_eq!(play.text("meta/a.md").unwrap(), "a\nb\nc\nd\ne\n");
}
