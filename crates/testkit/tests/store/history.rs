//! Tests of history: every version of every file, through every query.

use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering};

use quipu_contract::{Actor, ActorName};
use quipu_store::{At, Change, Clock, Expect, Instant, Op, OpKind, Options, Store, StoreError};
use quipu_testkit::{Playground, Restore as _};

fn agent(name: &str) -> Actor {
    Actor::Agent {
        role: None,
        unit: None,
        agent: ActorName::parse(name).ok(),
    }
}

fn append(store: &Store, actor: &Actor, path: &str, text: &str) -> quipu_store::Receipt {
    store
        .validate(Change::by(actor).append(&Playground::path(path), text))
        .unwrap()
        .publish()
        .unwrap()
}

fn write(store: &Store, actor: &Actor, path: &str, text: &str) -> quipu_store::Receipt {
    store
        .validate(Change::by(actor).write(&Playground::path(path), text, Expect::Any))
        .unwrap()
        .publish()
        .unwrap()
}

#[test]
fn a_version_is_found_by_name_number_time_and_distance() {
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
    for path in ["meta/a.md", "drafts/ch01.md"] {
        let start = store.log(1).unwrap().first().map_or(0, |e| e.seq);
        let mut texts = Vec::new();
        let mut versions = Vec::new();
        for number in 0..4 {
            now.fetch_add(1_000_000, Ordering::SeqCst);
            let line = format!("line {number}\n");
            let receipt = if path.starts_with("meta") {
                append(&store, &Actor::Person, path, &line)
            } else {
                write(&store, &Actor::Person, path, &line)
            };
            versions.push(receipt.versions[path].clone());
            texts.push(if path.starts_with("meta") {
                format!("{}{line}", texts.last().cloned().unwrap_or_default())
            } else {
                line
            });
        }
        let path = Playground::path(path);
        let newest = now.load(Ordering::SeqCst);
        for (index, text) in texts.iter().enumerate() {
            let back = 3 - index;
            for at in [
                At::parse(versions[index].as_str()).unwrap(),
                At::parse(&versions[index].as_str()[..8]).unwrap(),
                At::Seq(start + index as u64 + 1),
                At::Back(back),
                At::Time(newest - back as i64 * 1_000_000),
                At::Time(newest - back as i64 * 1_000_000 + 999_999),
            ] {
                let (found, event) = store.text_at(&path, &at).unwrap();
                assert_eq!(String::from_utf8(found).unwrap(), *text, "{at:?}");
                assert_eq!(event.version, versions[index]);
            }
        }
        for nowhere in [
            At::Back(4),
            At::Seq(start),
            At::Version("ffffffff".into()),
            At::Time(0),
        ] {
            assert!(
                matches!(
                    store.text_at(&path, &nowhere),
                    Err(StoreError::NotFound { .. })
                ),
                "{nowhere:?}"
            );
        }
    }
}

#[test]
fn blame_names_who_made_each_line() {
    let play = Playground::new();
    let store = play.open();
    append(&store, &agent("otto"), "meta/a.md", "one\ntwo\n");
    append(&store, &agent("anna"), "meta/a.md", "three\n");
    write(&store, &agent("otto"), "drafts/ch01.md", "a\nb\nc\n");
    write(&store, &agent("anna"), "drafts/ch01.md", "a\nB\nc\nd\n");
    let who = |path: &str| -> Vec<(u64, String, String)> {
        let lines = store.blame(&Playground::path(path)).unwrap();
        lines
            .into_iter()
            .map(|l| (l.seq, l.who.agent.unwrap_or_default(), l.text))
            .collect()
    };
    let line = |seq, name: &str, text: &str| (seq, name.to_owned(), text.to_owned());
    assert_eq!(
        who("meta/a.md"),
        [
            line(1, "otto", "one"),
            line(1, "otto", "two"),
            line(2, "anna", "three")
        ]
    );
    assert_eq!(
        who("drafts/ch01.md"),
        [
            line(3, "otto", "a"),
            line(4, "anna", "B"),
            line(3, "otto", "c"),
            line(4, "anna", "d")
        ]
    );
    assert!(matches!(
        store.blame(&Playground::path("meta/none.md")),
        Err(StoreError::NotFound { .. })
    ));
    let path = Playground::path("drafts/ch01.md");
    let older = store.blame_at(&path, &At::Seq(3)).unwrap();
    let older: Vec<(u64, String)> = older.into_iter().map(|l| (l.seq, l.text)).collect();
    assert_eq!(older, [(3, "a".into()), (3, "b".into()), (3, "c".into())]);
    assert!(matches!(
        store.blame_at(&path, &At::Seq(2)),
        Err(StoreError::NotFound { .. })
    ));
}

#[test]
fn older_versions_come_back_where_the_class_allows_it() {
    let play = Playground::new();
    let store = play.open();
    let restore = |path: &str, actor: &Actor| {
        store.restore(actor, &Playground::path(path), Some(&At::Back(1)))
    };
    write(&store, &Actor::Person, "drafts/ch01.md", "one\n");
    write(&store, &Actor::Person, "drafts/ch01.md", "two\n");
    restore("drafts/ch01.md", &agent("otto")).unwrap();
    assert_eq!(play.text("drafts/ch01.md").unwrap(), "one\n");
    let path = Playground::path("state.json");
    store
        .validate(Change::by(&Actor::Person).create(&path, "{\"a\":1}\n"))
        .unwrap()
        .publish()
        .unwrap();
    store
        .validate(Change::by(&Actor::Person).op(Op::Merge {
            path,
            value: serde_json::json!({"a": 2}),
        }))
        .unwrap()
        .publish()
        .unwrap();
    restore("state.json", &agent("otto")).unwrap();
    assert_eq!(play.text("state.json").unwrap(), "{\"a\":1}\n");
    write(&store, &Actor::Person, "outline.md", "one\n");
    let amend = Op::Amend {
        path: Playground::path("outline.md"),
        bytes: Some(b"two\n".to_vec()),
    };
    store
        .validate(Change::by(&Actor::Person).why("better").op(amend))
        .unwrap()
        .publish()
        .unwrap();
    assert!(matches!(
        restore("outline.md", &agent("otto")),
        Err(StoreError::Refused(_))
    ));
    restore("outline.md", &Actor::Person).unwrap();
    assert_eq!(play.text("outline.md").unwrap(), "one\n");
    append(&store, &Actor::Person, "meta/a.md", "one\n");
    append(&store, &Actor::Person, "meta/a.md", "two\n");
    assert!(matches!(
        restore("meta/a.md", &Actor::Person),
        Err(StoreError::Refused(_))
    ));
    assert_eq!(play.text("meta/a.md").unwrap(), "one\ntwo\n");
    assert_eq!(store.verify().unwrap().problems, []);
}

#[test]
fn what_was_removed_comes_back_and_its_history_with_it() {
    let play = Playground::new();
    let store = play.open();
    let path = Playground::path("drafts/ch01.md");
    write(&store, &Actor::Person, "drafts/ch01.md", "one\n");
    store
        .validate(Change::by(&Actor::Person).op(Op::Remove {
            path: path.clone(),
            expect: Expect::Any,
        }))
        .unwrap()
        .publish()
        .unwrap();
    assert_eq!(store.read(&path).unwrap(), None);
    store.restore(&Actor::Person, &path, None).unwrap();
    assert_eq!(play.text("drafts/ch01.md").unwrap(), "one\n");
    let ops: Vec<OpKind> = store.events(&path).unwrap().iter().map(|e| e.op).collect();
    assert_eq!(ops, [OpKind::Write, OpKind::Remove, OpKind::Write]);
}

#[test]
fn a_thousand_appends_over_rotated_and_compressed_segments() {
    let play = Playground::new();
    let options = || Options {
        segment_bytes: 32 << 10,
        ..Options::default()
    };
    let store = play.open_with(options());
    let path = Playground::path("meta/a.md");
    let mut text = String::new();
    for number in 0..1_000 {
        let line = format!("entry {number}\n");
        store
            .validate(Change::by(&Actor::Person).append(&path, line.as_bytes()))
            .unwrap()
            .publish()
            .unwrap();
        text.push_str(&line);
        if number == 400 {
            assert!(
                store
                    .doctor()
                    .unwrap()
                    .iter()
                    .any(|m| m.what.contains("compressed"))
            );
        }
    }
    assert_eq!(store.read(&path).unwrap().unwrap().0, text.as_bytes());
    assert_eq!(play.text("meta/a.md").unwrap(), text);
    let events = store.events(&path).unwrap();
    assert_eq!(
        events.iter().map(|e| e.seq).collect::<Vec<_>>(),
        (1..=1_000).rev().collect::<Vec<u64>>()
    );
    let (found, _) = store.text_at(&path, &At::Seq(300)).unwrap();
    assert_eq!(
        String::from_utf8(found).unwrap(),
        (0..300).map(|n| format!("entry {n}\n")).collect::<String>()
    );
    assert_eq!(store.blame(&path).unwrap()[700].seq, 701);
    assert_eq!(store.verify().unwrap().problems, []);
    drop(store);
    std::fs::remove_file(play.file(".quipu/index.db")).unwrap();
    let rebuilt = play.open_with(options());
    assert_eq!(rebuilt.events(&path).unwrap().len(), 1_000);
    assert_eq!(rebuilt.read(&path).unwrap().unwrap().0, text.as_bytes());
}

#[test]
fn a_change_that_appends_and_merges_builds_on_itself() {
    let play = Playground::new();
    let store = play.open();
    let path = Playground::path("notes.json");
    write(&store, &Actor::Person, "other.txt", "x");
    write(&store, &Actor::Person, "notes.json", "{\"a\":1}");
    let merge = Op::Merge {
        path: path.clone(),
        value: serde_json::json!({"b": 2}),
    };
    store
        .validate(Change::by(&Actor::Person).append(&path, "\n").op(merge))
        .unwrap()
        .publish()
        .unwrap();
    let found: serde_json::Value = serde_json::from_str(&play.text("notes.json").unwrap()).unwrap();
    assert_eq!(found, serde_json::json!({"a": 1, "b": 2}));
}

#[test]
fn a_restore_that_meets_a_commit_does_not_undo_it() {
    let play = Playground::new();
    let store = play.open();
    append(&store, &Actor::Person, "meta/a.md", "one\n");
    // The bytes of the request are older than another commit.
    let late = Change::by(&Actor::Person).op(Op::Restore {
        path: Playground::path("meta/a.md"),
        bytes: b"one\n".to_vec(),
        older: false,
    });
    append(&store, &Actor::Person, "meta/a.md", "two\n");
    store.validate(late).unwrap().publish().unwrap();
    assert_eq!(play.text("meta/a.md").unwrap(), "one\ntwo\n");
    assert_eq!(
        store.log(usize::MAX).unwrap().len(),
        2,
        "what stands as it should is no commit"
    );
}

#[test]
fn the_log_is_searched_in_windows_and_its_pulse_is_its_newest_commit() {
    let play = Playground::new();
    let store = play.open();
    for number in 0..10 {
        append(
            &store,
            &agent(if number % 2 == 0 { "even" } else { "odd" }),
            "meta/a.md",
            &format!("{number}\n"),
        );
    }
    assert_eq!(store.pulse().unwrap(), store.newest_seq().unwrap());
    let even = |entry: &quipu_store::LogEntry| entry.who.to_string() == "even";
    let newest = store.log_before(None, 3, &even).unwrap();
    assert_eq!(newest.entries.len(), 3);
    let rest = store.log_before(newest.next, 100, &even).unwrap();
    assert_eq!((rest.entries.len(), rest.next), (2, None));
    let seqs: Vec<u64> = newest
        .entries
        .iter()
        .chain(&rest.entries)
        .map(|entry| entry.seq)
        .collect();
    assert!(
        seqs.windows(2).all(|pair| pair[0] > pair[1]),
        "newest first, none twice: {seqs:?}"
    );
    append(&play.open(), &agent("other"), "meta/a.md", "more\n");
    assert_eq!(
        store.pulse().unwrap(),
        store.newest_seq().unwrap(),
        "what another process commits is seen at once"
    );
}

#[test]
fn a_short_look_back_tells_what_the_whole_log_tells() {
    let play = Playground::new();
    let store = play.open();
    // Records have very different sizes, so that the read window ends in the middle of lines.
    for number in 0..120usize {
        let line = "x".repeat(if number % 7 == 0 {
            20_000
        } else {
            90 * (number % 5) + 1
        });
        append(
            &store,
            &Actor::Person,
            "meta/a.md",
            &format!("{number} {line}\n"),
        );
    }
    let all: Vec<u64> = store
        .log(1000)
        .unwrap()
        .iter()
        .map(|entry| entry.seq)
        .collect();
    for most in [0, 1, 5, 40, 90, 1000] {
        let recent: Vec<u64> = store
            .recent(most)
            .unwrap()
            .iter()
            .map(|entry| entry.seq)
            .collect();
        assert_eq!(recent, all[..recent.len()], "{most}");
        assert!(
            recent.len() == most.min(all.len()) || most > 100,
            "{most}: {}",
            recent.len()
        );
    }
    let recent = store
        .recent_until(1000, &mut |entry| entry.seq == all[17])
        .unwrap();
    assert_eq!(
        recent.iter().map(|entry| entry.seq).collect::<Vec<_>>(),
        all[..18]
    );
}

#[test]
fn many_files_are_read_as_each_is() {
    let play = Playground::new();
    let store = play.open();
    let paths: Vec<_> = (0..5)
        .map(|n| Playground::path(&format!("drafts/ch0{n}.md")))
        .collect();
    for (number, path) in paths.iter().enumerate().take(4) {
        write(
            &store,
            &Actor::Person,
            path.as_str(),
            &"行\n".repeat(number * 3000),
        );
    }
    std::fs::write(play.root().join("drafts/ch01.md"), "edited by hand\n").unwrap();
    store
        .validate(Change::by(&Actor::Person).op(Op::Remove {
            path: paths[2].clone(),
            expect: Expect::Any,
        }))
        .unwrap()
        .publish()
        .unwrap();
    let one_by_one: Vec<_> = paths.iter().map(|path| store.read(path).unwrap()).collect();
    std::fs::write(play.root().join("drafts/ch03.md"), "edited again\n").unwrap();
    let at_once = store.read_all(&paths).unwrap();
    assert_eq!(at_once[..3], one_by_one[..3]);
    assert_eq!(at_once[3].as_ref().unwrap().0, b"edited again\n");
    assert_eq!(at_once[4], None);
}

fn journal_bytes(play: &Playground) -> u64 {
    let text = std::fs::read(play.file(".quipu/journal/00000001.jsonl")).unwrap();
    text.split(|byte| *byte == b'\n')
        .filter(|line| !line.is_empty())
        .map(|line| line.len() as u64 + 1)
        .sum()
}

/// Returns a text of many lines with one edited line.
fn long_text(edited: usize, version: usize) -> String {
    (0..1000)
        .map(|n| {
            if n == edited {
                format!("line {n}, edit {version}\n")
            } else {
                format!("line {n} of a text that stays as it is, more or less\n")
            }
        })
        .collect()
}

#[test]
fn small_edits_of_a_long_text_take_little_room() {
    let play = Playground::local();
    let store = play.open();
    let path = Playground::path("drafts/ch01.md");
    store.scan_status().unwrap();
    let mut texts = Vec::new();
    for number in 0..200 {
        let text = long_text(number * 7 % 1000, number);
        if number % 3 == 2 {
            play.edit(path.as_str(), &text);
            assert_eq!(
                store.scan_status().unwrap().adopted.len(),
                1,
                "edit {number}"
            );
        } else {
            write(&store, &Actor::Person, path.as_str(), &text);
        }
        texts.push(text);
    }
    let whole: usize = texts.iter().map(String::len).sum();
    assert!(
        journal_bytes(&play) < whole as u64 / 10,
        "{} of {whole}",
        journal_bytes(&play)
    );
    for (back, text) in texts.iter().rev().enumerate() {
        assert_eq!(
            store.text_at(&path, &At::Back(back)).unwrap().0,
            text.as_bytes(),
            "{back} back"
        );
    }
    // A new process finds the same, and so does one without the index.
    drop(store);
    std::fs::remove_file(play.file(".quipu/index.db")).unwrap();
    let rebuilt = play.open();
    assert_eq!(rebuilt.verify().unwrap().problems, []);
    std::fs::remove_file(play.file(path.as_str())).unwrap();
    rebuilt
        .restore(&Actor::Person, &path, Some(&At::Back(1)))
        .unwrap();
    assert_eq!(play.text(path.as_str()).unwrap(), texts[199]);
    rebuilt
        .restore(&Actor::Person, &path, Some(&At::Seq(2)))
        .unwrap();
    assert_eq!(play.text(path.as_str()).unwrap(), texts[0]);
    assert_eq!(rebuilt.verify().unwrap().problems, []);
}

/// A delta with a damaged base: the file proves the newest version, and `doctor` stores it whole.
#[test]
fn a_damaged_base_costs_older_versions_and_not_the_newest() {
    let play = Playground::local();
    let store = play.open();
    let path = Playground::path("drafts/ch01.md");
    let texts: Vec<String> = (0..4).map(|number| long_text(number, number)).collect();
    texts
        .iter()
        .for_each(|text| drop(write(&store, &Actor::Person, path.as_str(), text)));
    drop(store);
    let segment = play.file(".quipu/journal/00000001.jsonl");
    let journal = std::fs::read_to_string(&segment).unwrap();
    std::fs::write(&segment, journal.replacen("line 500 of", "line 5OO of", 1)).unwrap();
    // The same bytes in a file with different metadata, so the bytes have to be compared.
    play.edit(path.as_str(), &texts[3]);
    let store = play.open();
    assert_eq!(store.scan_status().unwrap().flagged().count(), 0);
    assert!(matches!(
        store.text_at(&path, &At::Back(1)),
        Err(StoreError::Damaged { .. })
    ));
    store.doctor().unwrap();
    std::fs::remove_file(play.file(path.as_str())).unwrap();
    let store = play.open();
    store
        .restore(&Actor::Person, &path, Some(&At::Back(1)))
        .unwrap();
    assert_eq!(play.text(path.as_str()).unwrap(), texts[3]);
    // Later deltas are based on the whole text.
    write(&store, &Actor::Person, path.as_str(), &texts[2]);
    assert_eq!(
        store.text_at(&path, &At::Back(0)).unwrap().0,
        texts[2].as_bytes()
    );
}

#[test]
fn a_text_of_other_bytes_and_texts_that_share_nothing_are_stored_whole() {
    let play = Playground::local();
    let store = play.open();
    let path = Playground::path("pictures/one.bin");
    let texts: Vec<Vec<u8>> = (0..6u8)
        .map(|number| match number % 3 {
            0 => vec![0xff - number; 5000],
            1 => (0..2000)
                .flat_map(|n| {
                    format!("{} {number}\n", n * 7919 % 10_007 + usize::from(number)).into_bytes()
                })
                .collect(),
            _ => Vec::new(),
        })
        .collect();
    for text in &texts {
        let op = Op::Write {
            path: path.clone(),
            bytes: text.clone(),
            expect: Expect::Any,
        };
        let mut change = Change::by(&Actor::Person).op(op);
        change.force = true;
        store.validate(change).unwrap().publish().unwrap();
    }
    for (back, text) in texts.iter().rev().enumerate() {
        assert_eq!(
            store.text_at(&path, &At::Back(back)).unwrap().0,
            *text,
            "{back} back"
        );
    }
    assert_eq!(store.verify().unwrap().problems, []);
}

#[test]
fn restoring_a_file_that_grew_does_not_store_it_again() {
    let play = Playground::local();
    let store = play.open();
    let (sealed, path) = (
        Playground::path("meta/a.md"),
        Playground::path("drafts/ch01.md"),
    );
    for number in 0..50 {
        append(
            &store,
            &Actor::Person,
            path.as_str(),
            &format!("{number} {}\n", "x".repeat(500)),
        );
    }
    for number in 0..50 {
        append(
            &store,
            &Actor::Person,
            sealed.as_str(),
            &format!("{number} {}\n", "x".repeat(500)),
        );
    }
    let newest = play.text(path.as_str()).unwrap();
    let before = journal_bytes(&play);
    // Back to the newest version after a forbidden edit.
    play.edit(sealed.as_str(), "spoilt\n");
    store.restore(&Actor::Person, &sealed, None).unwrap();
    assert_eq!(play.text(sealed.as_str()).unwrap(), newest);
    // Back to an older version, and then to the newer one.
    store
        .restore(&Actor::Person, &path, Some(&At::Seq(40)))
        .unwrap();
    assert_eq!(
        play.text(path.as_str()).unwrap(),
        newest
            .lines()
            .take(40)
            .map(|line| format!("{line}\n"))
            .collect::<String>()
    );
    append(&store, &Actor::Person, path.as_str(), "more\n");
    store
        .restore(&Actor::Person, &path, Some(&At::Seq(50)))
        .unwrap();
    assert_eq!(play.text(path.as_str()).unwrap(), newest);
    // Only the ten lines that had been cut off are stored once more.
    assert!(
        journal_bytes(&play) - before < 10_000,
        "{} bytes",
        journal_bytes(&play) - before
    );
    assert_eq!(play.open().verify().unwrap().problems, []);
}
