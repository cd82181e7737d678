//! A journal with damaged lines: each costs only its own content.

use std::path::PathBuf;

use quipu_contract::Actor;
use quipu_store::{At, Change, Expect, Options, Store, StoreError};
use quipu_testkit::{Playground, Restore as _};

const LOG: &str = "meta/a.md";

fn person() -> Change {
    Change::by(&Actor::Person)
}

fn at(text: &str) -> quipu_contract::ProjectPath {
    Playground::path(text)
}

fn append(store: &Store, path: &str, text: &str) {
    store
        .validate(person().append(&at(path), text))
        .unwrap()
        .publish()
        .unwrap();
}

fn write(store: &Store, path: &str, text: &str) {
    store
        .validate(person().write(&at(path), text, Expect::Any))
        .unwrap()
        .publish()
        .unwrap();
}

fn segment(play: &Playground, name: &str) -> PathBuf {
    play.file(&format!(".quipu/journal/{name}"))
}

/// Damages the lines that contain some words.
fn damage(play: &Playground, words: &[&str]) {
    let path = segment(play, "00000001.jsonl");
    let mut text = String::from_utf8(std::fs::read(&path).unwrap()).unwrap();
    for word in words {
        assert!(text.contains(word));
        text = text.replace(word, &"x".repeat(word.len()));
    }
    std::fs::write(path, text).unwrap();
}

/// Checks that everything works: a scan, a read, a commit, a restore.
fn assert_alive(play: &Playground, store: &Store, text: &str, what: &str) {
    let scan = store.scan_status().unwrap();
    assert_eq!(
        scan.flagged().map(|f| &f.path).collect::<Vec<_>>(),
        [] as [&str; 0],
        "{what}"
    );
    assert_eq!(
        store.read(&at(LOG)).unwrap().unwrap().0,
        text.as_bytes(),
        "{what}"
    );
    append(store, LOG, "more\n");
    assert_eq!(play.text(LOG).unwrap(), format!("{text}more\n"), "{what}");
    play.edit(LOG, "spoilt\n");
    assert_eq!(store.scan_status().unwrap().flagged().count(), 1, "{what}");
    store.restore(&Actor::Person, &at(LOG), None).unwrap();
    assert_eq!(play.text(LOG).unwrap(), format!("{text}more\n"), "{what}");
}

fn four_appends() -> Playground {
    let play = Playground::local();
    let store = play.open();
    for text in ["a1 one\n", "a2 two\n", "a3 three\n", "a4 four\n"] {
        append(&store, LOG, text);
    }
    write(&store, "drafts/ch01.md", "draft\n");
    play
}

const FOUR: &str = "a1 one\na2 two\na3 three\na4 four\n";

#[test]
fn doctor_saves_a_file_of_which_much_is_damaged() {
    let play = four_appends();
    damage(&play, &["a2 two", "a3 three"]);
    let store = play.open();
    let fixed = store.doctor().unwrap();
    assert!(
        fixed
            .iter()
            .any(|m| m.what.contains("has not changed since")),
        "{fixed:?}"
    );
    assert_alive(&play, &store, FOUR, "untouched");
    // `doctor` twice, with the index deleted in between.
    store.doctor().unwrap();
    drop(store);
    std::fs::remove_file(play.file(".quipu/index.db")).unwrap();
    assert_eq!(
        play.open().read(&at(LOG)).unwrap().unwrap().0,
        format!("{FOUR}more\n").as_bytes()
    );
}

#[test]
fn a_file_that_nothing_proves_is_flagged_alone_and_doctor_takes_it() {
    let play = four_appends();
    damage(&play, &["a2 two", "a3 three"]);
    std::fs::remove_file(play.file(".quipu/index.db")).unwrap();
    let store = play.open();
    let scan = store.scan_status().unwrap();
    let flagged: Vec<_> = scan.flagged().collect();
    assert_eq!(flagged.len(), 1);
    assert_eq!(
        (flagged[0].path.as_str(), flagged[0].remedy().as_str()),
        (LOG, "quipu doctor")
    );
    assert!(matches!(
        store.validate(person().append(&at(LOG), "x\n")).err(),
        Some(StoreError::Refused(_))
    ));
    write(&store, "drafts/ch01.md", "others go on\n");
    let fixed = store.doctor().unwrap();
    assert!(
        fixed
            .iter()
            .any(|m| m.what.contains("the file on disk was used")),
        "{fixed:?}"
    );
    assert_alive(&play, &store, FOUR, "taken");
}

#[test]
fn damage_hides_no_more_than_itself() {
    for doctor in [false, true] {
        let play = four_appends();
        damage(&play, &["a2 two"]);
        let store = play.open();
        if doctor {
            store.doctor().unwrap();
            // The file does not prove the text any more.
            play.edit(LOG, "spoilt\n");
        }
        let text = |at: At| {
            store
                .text_at(&Playground::path(LOG), &at)
                .map(|(bytes, _)| String::from_utf8(bytes).unwrap())
        };
        assert_eq!(text(At::Seq(1)).unwrap(), "a1 one\n");
        let told = text(At::Seq(2));
        assert!(matches!(told, Err(StoreError::Damaged { .. })), "{told:?}");
        assert!(!told.unwrap_err().to_string().contains("segment 0"));
        // The file on disk proves the later appends, as long as it is sound.
        let third = text(At::Seq(3));
        assert_eq!(
            third.ok().as_deref(),
            (!doctor).then_some("a1 one\na2 two\na3 three\n")
        );
        let seqs: Vec<(u64, bool)> = store
            .events(&at(LOG))
            .unwrap()
            .iter()
            .map(|e| (e.seq, e.after_gap))
            .collect();
        let tail = [(4, false), (3, true), (1, false)];
        assert!(seqs.ends_with(&tail), "{seqs:?}");
        assert!(matches!(
            text(At::Back(seqs.len() - 1)),
            Err(StoreError::Damaged { .. })
        ));
        let blamed = store.blame(&at(LOG));
        assert!(
            matches!(blamed, Err(StoreError::Damaged { .. })),
            "{blamed:?}"
        );
        store
            .restore(&Actor::Person, &at("drafts/ch01.md"), None)
            .unwrap();
    }
    // A file that was rewritten since has its full text.
    let play = Playground::local();
    let store = play.open();
    for text in [
        "one kept\n",
        "two lost\n",
        "one kept\ntwo lost\nthree new\n",
    ] {
        write(&store, "drafts/ch01.md", text);
    }
    append(&store, "drafts/ch01.md", "four\n");
    damage(&play, &["[\"two lost"]);
    assert!(
        store
            .text_at(&at("drafts/ch01.md"), &At::Seq(4))
            .unwrap()
            .0
            .ends_with(b"four\n")
    );
    assert!(matches!(
        store.text_at(&at("drafts/ch01.md"), &At::Seq(2)),
        Err(StoreError::Damaged { .. })
    ));
    assert_eq!(
        store.text_at(&at("drafts/ch01.md"), &At::Seq(1)).unwrap().0,
        b"one kept\n"
    );
    store
        .restore(&Actor::Person, &at("drafts/ch01.md"), Some(&At::Seq(1)))
        .unwrap();
    assert_eq!(play.text("drafts/ch01.md").unwrap(), "one kept\n");
}

fn small() -> Options {
    Options {
        segment_bytes: 1024,
        ..Options::default()
    }
}

/// Creates several segments; all but the last are compressed.
fn long() -> (Playground, String) {
    let play = Playground::local();
    let store = play.open_with(small());
    write(&store, "drafts/ch01.md", "only in the first segment\n");
    let mut text = String::new();
    for number in 0..12 {
        append(&store, LOG, &format!("line {number}\n"));
        text.push_str(&format!("line {number}\n"));
    }
    store.doctor().unwrap();
    (play, text)
}

fn segments(play: &Playground) -> Vec<PathBuf> {
    let mut all: Vec<PathBuf> = std::fs::read_dir(play.file(".quipu/journal"))
        .unwrap()
        .map(|e| e.unwrap().path())
        .collect();
    all.sort_unstable();
    all
}

#[test]
fn a_missing_segment_is_named_and_costs_what_it_held() {
    let (_, text) = long();
    for (which, begins_anew) in [(0, false), (1, false), (usize::MAX, true)] {
        for cut_only in [false, true] {
            let (play, _) = long();
            let all = segments(&play);
            assert!(
                all.len() > 3 && all[1].extension().is_some_and(|e| e == "gz"),
                "{all:?}"
            );
            let which = which.min(all.len() - 1);
            let what = format!("{:?}, cut: {cut_only}", all[which]);
            match cut_only {
                true if begins_anew => std::fs::File::options()
                    .write(true)
                    .open(&all[which])
                    .unwrap()
                    .set_len(40)
                    .unwrap(),
                true => continue,
                false => std::fs::remove_file(&all[which]).unwrap(),
            }
            let store = play.open_with(small());
            let problems = store.verify().unwrap().problems;
            let name = format!("{:08}.jsonl", which + 1);
            assert!(
                problems
                    .iter()
                    .any(|p| p.place.contains(&name) || begins_anew && p.what.contains("segment")),
                "{what}: {problems:?}"
            );
            if !begins_anew {
                append(&store, LOG, "before doctor\n");
            }
            store.doctor().unwrap();
            store.scan_status().unwrap();
            let left = store.verify().unwrap().problems;
            assert!(
                left.iter().all(|p| p.place.starts_with(".quipu/journal/")),
                "{what}: {left:?}"
            );
            let before = if begins_anew { "" } else { "before doctor\n" };
            assert_alive(&play, &store, &format!("{text}{before}"), &what);
            assert_eq!(
                store.read(&at("drafts/ch01.md")).unwrap().unwrap().0,
                b"only in the first segment\n",
                "{what}"
            );
            // And again from the journal alone.
            drop(store);
            for name in ["index.db", "index.db-wal", "index.db-shm", "watermarks"] {
                let _ = std::fs::remove_file(play.file(&format!(".quipu/{name}")));
            }
            let store = play.open_with(small());
            assert_eq!(
                store.read(&at(LOG)).unwrap().unwrap().0,
                format!("{text}{before}more\n").as_bytes(),
                "{what}"
            );
            append(&store, LOG, "on\n");
            store.doctor().unwrap();
        }
    }
}

#[test]
fn an_older_journal_under_what_is_known_of_a_newer_one() {
    let play = Playground::local();
    let store = play.open();
    append(&store, LOG, "one\n");
    drop(store);
    let older = std::fs::read(segment(&play, "00000001.jsonl")).unwrap();
    let store = play.open();
    append(&store, LOG, "two\n");
    drop(store);
    std::fs::write(segment(&play, "00000001.jsonl"), older).unwrap();
    let store = play.open();
    let fixed = store.doctor().unwrap();
    assert!(
        fixed
            .iter()
            .any(|m| m.what == "rebuilt the file index from 1 record"),
        "{fixed:?}"
    );
    store.scan_status().unwrap();
    assert_eq!(store.read(&at(LOG)).unwrap().unwrap().0, b"one\ntwo\n");
    assert_eq!(store.verify().unwrap().problems, []);
}
