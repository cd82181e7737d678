//! Guards on writes, through the store: lost text, placeholders, credentials.

use quipu_contract::{Actor, ActorName};
use quipu_store::{Change, Expect, Op, Options, Receipt, Store, StoreError};
use quipu_testkit::{CONTRACT, Playground};

fn write(store: &Store, path: &str, text: &str, force: bool) -> Result<Receipt, StoreError> {
    let path = Playground::path(path);
    let expect = match store.read(&path)? {
        Some((_, version)) => Expect::Version(version),
        None => Expect::Any,
    };
    store
        .validate(Change {
            force,
            ..Change::by(&Actor::Person).write(&path, text, expect)
        })?
        .publish()
}

fn refused(result: Result<Receipt, StoreError>, about: &str) {
    match result {
        Err(StoreError::Refused(refused)) => {
            assert!(refused.what.contains(about), "{}", refused.what)
        }
        other => panic!("not refused ({about}): {other:?}"),
    }
}

fn key() -> String {
    // In pieces, so that this file contains no text that looks like a key.
    ["gh", "p_a8Kd02mZx91LqPw73RtYvB5nHc6JsE4u"].concat()
}

#[test]
fn a_large_loss_must_be_meant() {
    let play = Playground::new();
    let store = play.open();
    let long = "a line of a draft that someone wrote\n".repeat(40);
    let chinese = "这是草稿里的一行文字，有人写了很久。\n".repeat(40);
    for text in [&long, &chinese] {
        write(&store, "drafts/ch01.md", text, true).unwrap();
        refused(
            write(&store, "drafts/ch01.md", "short\n", false),
            "would shrink",
        );
        refused(write(&store, "drafts/ch01.md", "", false), "would shrink");
        assert_eq!(play.text("drafts/ch01.md").unwrap(), *text);
        write(&store, "drafts/ch01.md", "short\n", true).unwrap();
    }
    let state = format!("{{\"a\": \"{}\"}}\n", "x".repeat(900));
    write(&store, "state.json", &state, false).unwrap();
    refused(write(&store, "state.json", "{}\n", false), "would shrink");
    write(&store, "state.json", "{}\n", true).unwrap();
}

#[test]
fn the_contract_sets_how_much_may_go() {
    let play = Playground::with_contract(&format!("{CONTRACT}\n[guards]\nshrink_below = 0.1\n"));
    let store = play.open();
    write(&store, "drafts/ch01.md", &"line\n".repeat(200), false).unwrap();
    write(&store, "drafts/ch01.md", &"line\n".repeat(30), false).unwrap();
}

#[test]
fn a_stand_in_for_text_is_refused_with_its_line() {
    let play = Playground::new();
    let store = play.open();
    write(&store, "drafts/ch01.md", "one\ntwo\nthree\n", false).unwrap();
    for stand_in in [
        "... rest unchanged ...",
        "// ... existing code ...",
        "（其余不变）",
        "……此处省略……",
    ] {
        let text = format!("one\ntwo and a half\n{stand_in}\n");
        refused(write(&store, "drafts/ch01.md", &text, false), "line 3");
        let amended = Op::Amend {
            path: Playground::path("outline.md"),
            bytes: Some(text.clone().into_bytes()),
        };
        if store
            .read(&Playground::path("outline.md"))
            .unwrap()
            .is_none()
        {
            write(&store, "outline.md", "plan\n", false).unwrap();
        }
        refused(
            store
                .validate(Change::by(&Actor::Person).why("x").op(amended))
                .and_then(quipu_store::Validated::publish),
            "line 3",
        );
        assert_eq!(play.text("drafts/ch01.md").unwrap(), "one\ntwo\nthree\n");
    }
    write(&store, "drafts/ch01.md", "... rest unchanged ...\n", true).unwrap();
    write(
        &store,
        "drafts/ch01.md",
        "其余的人都睡了。\nThe rest of the crew slept.\n",
        false,
    )
    .unwrap();
}

#[test]
fn a_credential_in_the_reason_is_refused() {
    let play = Playground::new();
    let store = play.open();
    let change = |why: String| {
        Change::by(&Actor::Person)
            .append(&Playground::path("meta/a.md"), "one\n")
            .why(why)
    };
    refused(
        store
            .validate(change(format!("deploy with {}", key())))
            .and_then(quipu_store::Validated::publish),
        "the reason",
    );
    store
        .validate(change("deploy without".into()))
        .unwrap()
        .publish()
        .unwrap();
}

/// The pieces are in the journal, and the file is not applied yet.
#[test]
fn a_credential_in_pieces_is_refused_while_its_file_is_still_to_come() {
    let play = Playground::new();
    let (store, disk) = play.open_paused(Options::default());
    let path = Playground::path("meta/a.md");
    let append = |text: &str| store.validate(Change::by(&Actor::Person).append(&path, text));
    append("one\n").unwrap().publish().unwrap();
    let key = key();
    let pieces = [&key[..3], &key[3..12], &key[12..]];
    disk.publish(append(&format!("two {}", pieces[0])).unwrap());
    disk.publish(append(pieces[1]).unwrap());
    assert_eq!(play.text("meta/a.md").unwrap(), "one\n");
    refused(
        append(pieces[2]).and_then(quipu_store::Validated::publish),
        "GitHub token",
    );
    append("\nthree\n").unwrap().publish().unwrap();
    assert_eq!(
        play.text("meta/a.md").unwrap(),
        format!("one\ntwo {}{}\nthree\n", pieces[0], pieces[1])
    );
}

#[test]
fn credentials_are_refused_through_every_operation() {
    let play = Playground::new();
    let store = play.open();
    write(&store, "outline.md", "plan\n", false).unwrap();
    write(&store, "state.json", "{}\n", false).unwrap();
    let text = format!("一\n密钥：{}\n", key());
    let at = Playground::path;
    let person = || Change {
        force: true,
        ..Change::by(&Actor::Person).why("because")
    };
    for change in [
        person().append(&at("meta/a.md"), text.as_str()),
        person().create(&at(".sessions/s.md"), text.as_str()),
        person().write(&at("drafts/ch01.md"), text.as_str(), Expect::Any),
        person().write(&at("free.txt"), text.as_str(), Expect::Any),
        person().op(Op::Merge {
            path: at("state.json"),
            value: serde_json::json!({"token": key()}),
        }),
        person().op(Op::Amend {
            path: at("outline.md"),
            bytes: Some(text.clone().into_bytes()),
        }),
    ] {
        refused(
            store
                .validate(change)
                .and_then(quipu_store::Validated::publish),
            "GitHub token",
        );
    }
    // The journal does not contain it either.
    let journal = std::fs::read(play.file(".quipu/journal/00000001.jsonl")).unwrap();
    assert!(!journal.windows(key().len()).any(|w| w == key().as_bytes()));
}

#[test]
fn the_contract_may_allow_a_path_or_a_literal() {
    let play = Playground::with_contract(&format!(
        "{CONTRACT}\n[guards]\ncredentials_in = [\"meta/keys.md\"]\n"
    ));
    let store = play.open();
    let append = |store: &Store, path: &str| {
        store
            .validate(
                Change::by(&Actor::Person).append(&Playground::path(path), format!("{}\n", key())),
            )
            .and_then(quipu_store::Validated::publish)
    };
    append(&store, "meta/keys.md").unwrap();
    refused(append(&store, "meta/other.md"), "looks like");
    let play = Playground::with_contract(&format!(
        "{CONTRACT}\n[guards]\ncredentials = [\"{}\"]\n",
        key()
    ));
    append(&play.open(), "meta/other.md").unwrap();
}

#[test]
fn a_loss_in_steps_is_a_loss() {
    let play = Playground::new();
    let store = play.open();
    let path = Playground::path("drafts/ch01.md");
    let publish = |change: Change| {
        store
            .validate(change)
            .and_then(quipu_store::Validated::publish)
    };
    let line = "a line of a draft that someone wrote\n";
    write(&store, "drafts/ch01.md", &line.repeat(120), false).unwrap();
    let by_steps = || {
        [65, 35, 19]
            .iter()
            .fold(Change::by(&Actor::Person), |c, n| {
                c.write(&path, line.repeat(*n), Expect::Any)
            })
    };
    refused(publish(by_steps()), "would shrink from 4440 to 703 bytes");
    let anew = || {
        Change::by(&Actor::Person)
            .op(Op::Remove {
                path: path.clone(),
                expect: Expect::Any,
            })
            .create(&path, line)
    };
    refused(publish(anew()), "would shrink");
    assert_eq!(play.text("drafts/ch01.md").unwrap(), line.repeat(120));
    // Only the final text counts.
    publish(
        Change::by(&Actor::Person)
            .write(&path, line, Expect::Any)
            .write(&path, line.repeat(100), Expect::Any),
    )
    .unwrap();
    publish(Change {
        force: true,
        ..anew()
    })
    .unwrap();
}

#[test]
fn a_credential_in_pieces_is_refused() {
    let play = Playground::new();
    let store = play.open();
    let publish = |change: Change| {
        store
            .validate(change)
            .and_then(quipu_store::Validated::publish)
    };
    let path = Playground::path("meta/a.md");
    let append = |texts: &[&str]| {
        texts
            .iter()
            .fold(Change::by(&Actor::Person), |c, text| c.append(&path, *text))
    };
    let key = key();
    let (one, two) = key.split_at(12);
    let begun = format!("一行\ntoken {one}");
    // In one commit, on a new file and on an existing one.
    refused(publish(append(&[&begun, two])), "GitHub token");
    publish(append(&["first\n"])).unwrap();
    refused(publish(append(&[&begun, two])), "GitHub token");
    refused(
        publish(append(&["token g", &key[1..5], &key[5..]])),
        "GitHub token",
    );
    // In two commits.
    publish(append(&[&begun])).unwrap();
    refused(
        publish(append(&[&format!("{two}\nmore\n")])),
        "GitHub token",
    );
    publish(append(&[" and so on\n", &format!("{two}\n")])).unwrap();
    // Text that was there before does not count against this writer.
    std::fs::write(play.file("meta/b.md"), format!("token {key} and")).unwrap();
    let behind =
        Change::by(&Actor::Person).append(&Playground::path("meta/b.md"), "q8Zk2Lm words\n");
    publish(behind).unwrap();
    assert!(!play.text("meta/a.md").unwrap().contains(&key));
}

#[test]
fn a_credential_in_the_key_is_refused() {
    let play = Playground::new();
    let change = Change::by(&Actor::Person)
        .append(&Playground::path("meta/a.md"), "one\n")
        .key(format!("run-of {}", key()));
    refused(
        play.open()
            .validate(change)
            .and_then(quipu_store::Validated::publish),
        "the key",
    );
}

#[test]
fn a_credential_in_a_name_is_refused() {
    let play = Playground::new();
    let name = format!("notes/{}.md", key());
    let error = write(&play.open(), &name, "one\n", true).unwrap_err();
    assert!(
        error
            .to_string()
            .contains("the name of this file looks like a GitHub token")
            && !error.to_string().contains(&key()),
        "{error}"
    );
    let journal =
        std::fs::read_to_string(play.file(".quipu/journal/00000001.jsonl")).unwrap_or_default();
    assert!(!journal.contains(&key()) && !play.file(&name).exists());
    let play = Playground::with_contract(&format!(
        "{CONTRACT}\n[guards]\ncredentials_in = [\"notes/**\"]\n"
    ));
    write(&play.open(), &name, "one\n", true).unwrap();
}

#[test]
fn a_merge_that_empties_a_file_is_a_loss() {
    let play = Playground::new();
    let store = play.open();
    let fields = |value: &dyn Fn(usize) -> serde_json::Value| {
        (0..40)
            .map(|n| (format!("field{n}"), value(n)))
            .collect::<serde_json::Map<_, _>>()
    };
    let merge = |value, force| {
        let op = Op::Merge {
            path: Playground::path("state.json"),
            value: serde_json::Value::Object(value),
        };
        store
            .validate(Change {
                force,
                ..Change::by(&Actor::Person).op(op)
            })
            .and_then(quipu_store::Validated::publish)
    };
    write(&store, "state.json", "{}\n", false).unwrap();
    merge(
        fields(&|n| format!("a value of some length {n}").into()),
        false,
    )
    .unwrap();
    refused(
        merge(fields(&|_| serde_json::Value::Null), false),
        "would shrink",
    );
    merge(fields(&|_| serde_json::Value::Null), true).unwrap();
}

#[test]
fn a_credential_in_the_path_of_a_lease_or_in_a_name_is_refused() {
    let play = Playground::new();
    let store = play.open();
    let leased = store.take_lease(&Actor::Person, &[format!("notes/{}.md", key())], 60);
    assert!(matches!(leased, Err(StoreError::Refused(_))), "{leased:?}");
    let wild = store.take_lease(&Actor::Person, &[format!("notes/{}/*.md", key())], 60);
    assert!(matches!(wild, Err(StoreError::Refused(_))), "{wild:?}");
    let agent = Actor::Agent {
        role: None,
        unit: None,
        agent: ActorName::parse(&key()).ok(),
    };
    if agent.agent().is_some() {
        let begun = store.begin_session(&agent, 60);
        assert!(matches!(begun, Err(StoreError::Refused(_))), "{begun:?}");
    }
    assert!(
        store
            .log(10)
            .unwrap()
            .iter()
            .all(|entry| !format!("{entry:?}").contains(&key()))
    );
}

#[test]
fn a_reason_and_a_key_are_one_line() {
    let play = Playground::new();
    let store = play.open();
    for line_break in [
        "\n", "\r", "\u{85}", "\u{2028}", "\u{2029}", "\u{b}", "\u{c}", "\u{1c}",
    ] {
        let forged = format!("one{line_break}@9  2026-01-01  commit  person  two");
        let change = |why: &str| {
            Change::by(&Actor::Person)
                .append(&Playground::path("notes.md"), "a\n")
                .why(why)
        };
        let refused = store.validate(change(&forged)).map(|_| ());
        assert!(
            matches!(refused, Err(StoreError::Refused(_))),
            "{refused:?}"
        );
        let keyed = store
            .validate(Change {
                key: Some(forged),
                ..change("fine")
            })
            .map(|_| ());
        assert!(matches!(keyed, Err(StoreError::Refused(_))), "{keyed:?}");
    }
}
