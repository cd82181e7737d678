//! Tests of external edits: adopted if the contract allows them, otherwise flagged and kept.

use std::io::Write;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use quipu_contract::Actor;
use quipu_store::{
    Change, Expect, Kind, Op, Options, Receipt, Step, StepVerdict, Store, StoreError, Watch,
};
use quipu_testkit::{PausedDisk, Playground, Restore as _};

fn person() -> Change {
    Change::by(&Actor::Person)
}

fn at(text: &str) -> quipu_contract::ProjectPath {
    Playground::path(text)
}

fn commit(store: &Store, change: Change) -> Result<Receipt, StoreError> {
    store.validate(change)?.publish()
}

/// Creates one journalled file of each class.
fn begun() -> (Playground, Store) {
    let (play, store, _) = begun_paused();
    (play, store)
}

/// The same on a disk that can leave commits unapplied.
fn begun_paused() -> (Playground, Store, Arc<PausedDisk>) {
    let play = Playground::new();
    let (store, disk) = play.open_paused(Options::default());
    let change = person()
        .append(&at("meta/a.md"), "one\ntwo\n")
        .create(&at("outline.md"), "sealed\n");
    let change = change
        .create(&at(".sessions/s.md"), "session\n")
        .create(&at("state.json"), "{\"a\":1}\n");
    commit(&store, change.create(&at("drafts/ch01.md"), "draft\n")).unwrap();
    commit(
        &store,
        Change::by(&Actor::Runtime).op(Op::Derive {
            path: at("index.md"),
            bytes: b"index\n".to_vec(),
            expect: Expect::Any,
        }),
    )
    .unwrap();
    (play, store, disk)
}

fn flag_of(store: &Store, path: &str) -> Option<String> {
    let scan = store.scan_status().unwrap();
    scan.files
        .into_iter()
        .find(|f| f.path == path)
        .and_then(|f| f.flag)
        .map(|f| f.what)
}

fn asides(store: &Store, path: &str) -> Vec<Vec<u8>> {
    let log = store.log(usize::MAX).unwrap();
    log.iter()
        .filter(|e| e.kind == Kind::ConflictCopy)
        .filter_map(|e| store.conflict_copies_of(e.seq, &at(path)).unwrap())
        .collect()
}

#[test]
fn what_the_class_allows_is_adopted() {
    for (path, text, how) in [
        ("meta/a.md", Some("one\ntwo\nthree\n"), "grew"),
        ("meta/a.md", Some("one\nmerged\ntwo\nthree\n"), "changed"),
        ("state.json", Some("{\"a\":2}\n"), "changed"),
        ("drafts/ch01.md", Some("by hand\n"), "changed"),
        ("drafts/ch01.md", None, "removed"),
        ("drafts/ch02.md", Some("new\n"), "new"),
        (".sessions/t.md", Some("new\n"), "new"),
    ] {
        let (play, store) = begun();
        match text {
            Some(text) => play.edit(path, text),
            None => std::fs::remove_file(play.file(path)).unwrap(),
        }
        let adopted = store.scan_status().unwrap().adopted;
        let ours: Vec<_> = adopted.iter().filter(|a| a.path == path).collect();
        assert_eq!(ours.len(), 1, "{path}");
        assert_eq!(ours[0].how, how, "{path}");
        assert_eq!(
            store.read(&at(path)).unwrap().map(|(b, _)| b),
            text.map(|t| t.as_bytes().to_vec())
        );
        assert_eq!(store.log(1).unwrap()[0].kind, Kind::Adopt);
        assert_eq!(store.verify().unwrap().problems, []);
        assert!(
            store.scan_status().unwrap().adopted.is_empty(),
            "adopted twice"
        );
    }
}

#[test]
fn what_it_does_not_allow_is_flagged_refused_and_kept() {
    for (path, text) in [
        ("meta/a.md", Some("one\nTWO\n")),
        ("meta/a.md", Some("one\n")),
        ("meta/a.md", None),
        ("outline.md", Some("sealed?\n")),
        ("outline.md", None),
        (".sessions/s.md", Some("session, improved\n")),
        (".sessions/s.md", None),
        ("state.json", Some("{\"a\": }\n")),
        ("state.json", None),
        ("index.md", Some("my own index\n")),
    ] {
        let (play, store) = begun();
        let before = store.read(&at(path)).unwrap().unwrap();
        match text {
            Some(text) => play.edit(path, text),
            None => std::fs::remove_file(play.file(path)).unwrap(),
        }
        assert!(flag_of(&store, path).is_some(), "{path} {text:?}");
        assert_eq!(
            store.read(&at(path)).unwrap().unwrap(),
            before,
            "a flagged edit is not shown: {path}"
        );
        assert_eq!(
            play.text(path).as_deref(),
            text,
            "nothing is undone unasked"
        );
        assert!(!store.verify().unwrap().problems.is_empty(), "{path}");
        for change in [
            person().append(&at(path), "more\n"),
            person().write(&at(path), "{}\n", Expect::Version(before.1.clone())),
        ] {
            let refused = commit(&store, change);
            assert!(
                matches!(refused, Err(StoreError::Refused(_))),
                "{path}: {refused:?}"
            );
        }
        // Other files are not blocked by it.
        commit(&store, person().append(&at("meta/b.md"), "b\n")).unwrap();
        store.restore(&Actor::Person, &at(path), None).unwrap();
        assert_eq!(play.text(path).unwrap().as_bytes(), before.0, "{path}");
        assert_eq!(flag_of(&store, path), None);
        assert_eq!(
            asides(&store, path),
            text.map(|t| t.as_bytes().to_vec())
                .into_iter()
                .collect::<Vec<_>>(),
            "{path}"
        );
        assert_eq!(store.verify().unwrap().problems, []);
    }
}

#[test]
fn a_person_may_accept_an_edit_of_what_is_sealed() {
    let (play, store) = begun();
    play.edit("outline.md", "a better plan\n");
    commit(
        &store,
        person().why("agreed").op(Op::Amend {
            path: at("outline.md"),
            bytes: None,
        }),
    )
    .unwrap();
    assert_eq!(
        store.read(&at("outline.md")).unwrap().unwrap().0,
        b"a better plan\n"
    );
    assert_eq!(store.verify().unwrap().problems, []);
    assert_eq!(asides(&store, "outline.md"), Vec::<Vec<u8>>::new());
}

#[test]
fn an_invalid_state_file_made_by_hand_is_told() {
    let play = Playground::new();
    let store = play.open();
    play.edit("state.json", "{");
    assert_eq!(
        flag_of(&store, "state.json").as_deref(),
        Some("is not valid JSON")
    );
    assert!(matches!(
        commit(
            &store,
            person().write(&at("state.json"), "{}\n", Expect::Any)
        ),
        Err(StoreError::Refused(_))
    ));
    play.edit("state.json", "{}");
    assert_eq!(store.scan_status().unwrap().adopted.len(), 1);
}

#[test]
fn touching_is_no_edit() {
    let (play, store) = begun();
    let before = store.log(usize::MAX).unwrap().len();
    for path in ["meta/a.md", "outline.md", "state.json"] {
        let text = play.text(path).unwrap();
        std::fs::remove_file(play.file(path)).unwrap();
        play.edit(path, &text);
        assert!(store.adopt_edits(&[at(path)]).unwrap().is_empty());
        assert_eq!(flag_of(&store, path), None);
    }
    commit(&store, person().append(&at("meta/a.md"), "three\n")).unwrap();
    assert_eq!(play.text("meta/a.md").unwrap(), "one\ntwo\nthree\n");
    // The first scan adopts the contract; only the commit is new besides.
    assert_eq!(store.log(usize::MAX).unwrap().len(), before + 2);
}

#[test]
fn things_that_are_no_files_are_flagged_and_hold_up_no_one() {
    let secret = tempfile::NamedTempFile::new().unwrap();
    std::fs::write(secret.path(), "secret\n").unwrap();
    for what in ["link", "link to a ruled file", "fifo", "folder"] {
        let (play, store) = begun();
        let file = play.file("drafts/ch01.md");
        std::fs::remove_file(&file).unwrap();
        match what {
            "link" => std::os::unix::fs::symlink(secret.path(), &file).unwrap(),
            "link to a ruled file" => {
                std::os::unix::fs::symlink(play.file("outline.md"), &file).unwrap()
            }
            "fifo" => assert!(
                std::process::Command::new("mkfifo")
                    .arg(&file)
                    .status()
                    .unwrap()
                    .success()
            ),
            _ => std::fs::create_dir(&file).unwrap(),
        }
        assert!(flag_of(&store, "drafts/ch01.md").is_some(), "{what}");
        assert_eq!(
            store.read(&at("drafts/ch01.md")).unwrap().unwrap().0,
            b"draft\n",
            "{what}"
        );
        assert!(
            matches!(
                commit(
                    &store,
                    person().write(&at("drafts/ch01.md"), "x", Expect::Any)
                ),
                Err(StoreError::Refused(_))
            ),
            "{what}"
        );
        commit(&store, person().append(&at("meta/a.md"), "three\n")).unwrap();
        assert!(
            store
                .verify()
                .unwrap()
                .problems
                .iter()
                .any(|p| p.place == "drafts/ch01.md"),
            "{what}"
        );
        let restored = store.restore(&Actor::Person, &at("drafts/ch01.md"), None);
        if what == "folder" {
            // Quipu must not delete the folder's contents. All other files continue.
            assert!(
                matches!(restored, Err(StoreError::Unfinished { .. })),
                "{restored:?}"
            );
            commit(&store, person().append(&at("meta/a.md"), "four\n")).unwrap();
            assert!(file.is_dir());
            continue;
        }
        restored.unwrap();
        assert!(file.symlink_metadata().unwrap().is_file(), "{what}");
        assert_eq!(play.text("drafts/ch01.md").unwrap(), "draft\n");
        assert_eq!(std::fs::read_to_string(secret.path()).unwrap(), "secret\n");
        assert_eq!(play.text("outline.md").unwrap(), "sealed\n");
        assert_eq!(store.verify().unwrap().problems, []);
    }
}

#[test]
fn a_second_name_outside_is_never_written_through() {
    let (play, store) = begun();
    let other = tempfile::tempdir_in(play.root().parent().unwrap()).unwrap();
    let outside = other.path().join("glossary");
    for path in ["meta/a.md", "drafts/ch01.md"] {
        let _ = std::fs::remove_file(&outside);
        std::fs::hard_link(play.file(path), &outside).unwrap();
        let before = std::fs::read(&outside).unwrap();
        commit(&store, person().append(&at(path), "more\n")).unwrap();
        assert_eq!(std::fs::read(&outside).unwrap(), before, "{path}");
        assert!(play.text(path).unwrap().ends_with("more\n"));
    }
    assert_eq!(store.verify().unwrap().problems, []);
}

/// A commit is durable, its files are not applied yet, and an external edit changes them.
#[test]
fn an_edit_during_a_pending_commit_is_kept() {
    let (play, store, disk) = begun_paused();
    let change = person()
        .write(&at("drafts/ch01.md"), "draft two\n", Expect::Any)
        .append(&at("meta/a.md"), "three\n");
    let change = change.op(Op::Merge {
        path: at("state.json"),
        value: serde_json::json!({"b": 1}),
    });
    disk.publish(store.validate(change).unwrap());
    play.edit("drafts/ch01.md", "edited meanwhile\n");
    play.edit("meta/a.md", "one\ntwo\nby hand\n");
    std::os::unix::fs::symlink("/etc/passwd", play.file("drafts/ch02.md")).unwrap();
    store.settle().unwrap();
    assert_eq!(play.text("drafts/ch01.md").unwrap(), "draft two\n");
    assert_eq!(
        asides(&store, "drafts/ch01.md"),
        [b"edited meanwhile\n".to_vec()]
    );
    let glossary = String::from_utf8(store.read(&at("meta/a.md")).unwrap().unwrap().0).unwrap();
    assert!(
        glossary.contains("by hand\n") && glossary.contains("three\n"),
        "{glossary}"
    );
    assert_eq!(play.text("meta/a.md").unwrap(), glossary);
    std::fs::remove_file(play.file("drafts/ch02.md")).unwrap();
    assert_eq!(store.verify().unwrap().problems, []);
}

#[test]
fn an_edit_during_a_pending_removal_is_kept() {
    let (play, store, disk) = begun_paused();
    let change = person().op(Op::Remove {
        path: at("drafts/ch01.md"),
        expect: Expect::Any,
    });
    disk.publish(store.validate(change).unwrap());
    play.edit("drafts/ch01.md", "I still need this\n");
    store.settle().unwrap();
    assert_eq!(play.text("drafts/ch01.md"), None);
    assert_eq!(
        asides(&store, "drafts/ch01.md"),
        [b"I still need this\n".to_vec()]
    );
}

#[test]
fn a_folder_in_the_way_of_a_pending_commit_stops_only_that_file() {
    let (play, store, disk) = begun_paused();
    let change = person()
        .create(&at("drafts/ch02.md"), "new\n")
        .append(&at("meta/a.md"), "three\n");
    disk.publish(store.validate(change).unwrap());
    std::fs::create_dir_all(play.file("drafts/ch02.md/x")).unwrap();
    // Another process may apply the commit, so the blocked file is flagged and reported to the next
    // reader.
    store.settle().unwrap();
    assert_eq!(
        store
            .scan_status()
            .unwrap()
            .flagged()
            .map(|f| f.path.as_str())
            .collect::<Vec<_>>(),
        ["drafts/ch02.md"]
    );
    assert_eq!(play.text("meta/a.md").unwrap(), "one\ntwo\nthree\n");
    commit(&store, person().append(&at("meta/a.md"), "four\n")).unwrap();
    std::fs::remove_dir_all(play.file("drafts/ch02.md")).unwrap();
    store
        .restore(
            &Actor::Person,
            &at("drafts/ch02.md"),
            Some(&quipu_store::At::Seq(3)),
        )
        .unwrap();
    assert_eq!(play.text("drafts/ch02.md").unwrap(), "new\n");
}

#[test]
fn asides_of_a_killed_program_are_journalled_by_the_next() {
    let (play, store) = begun();
    drop(store);
    std::fs::write(
        play.file(".quipu/conflict-copies/0123"),
        "drafts/ch01.md\nrescued\n",
    )
    .unwrap();
    let store = play.open();
    assert_eq!(asides(&store, "drafts/ch01.md"), [b"rescued\n".to_vec()]);
    assert_eq!(
        std::fs::read_dir(play.file(".quipu/conflict-copies"))
            .unwrap()
            .count(),
        0
    );
}

/// Two branches that both appended, merged by git with both sides kept.
#[test]
fn a_merge_of_two_branches_is_adopted_and_appended_to() {
    let (play, store) = begun();
    play.edit("meta/a.md", "one\ntheirs\ntwo\nours\n");
    let receipt = commit(&store, person().append(&at("meta/a.md"), "after\n")).unwrap();
    assert_eq!(receipt.adopted.len(), 1);
    assert_eq!(
        play.text("meta/a.md").unwrap(),
        "one\ntheirs\ntwo\nours\nafter\n"
    );
    let log = store.log(2).unwrap();
    assert_eq!((log[0].kind, log[1].kind), (Kind::Commit, Kind::Adopt));
    assert_eq!(store.verify().unwrap().problems, []);
}

#[test]
fn restoring_an_allowed_edit_goes_back_before_it_but_never_shortens_an_append_file() {
    let (play, store) = begun();
    play.edit("drafts/ch01.md", "a bad idea\n");
    store
        .restore(&Actor::Person, &at("drafts/ch01.md"), None)
        .unwrap();
    assert_eq!(play.text("drafts/ch01.md").unwrap(), "draft\n");
    play.edit("meta/a.md", "one\ntwo\nthree\n");
    let refused = store.restore(&Actor::Person, &at("meta/a.md"), None);
    assert!(
        matches!(refused, Err(StoreError::Refused(_))),
        "{refused:?}"
    );
    assert_eq!(play.text("meta/a.md").unwrap(), "one\ntwo\nthree\n");
}

#[test]
fn the_mode_of_a_file_stays() {
    use std::os::unix::fs::PermissionsExt;
    let (play, store) = begun();
    std::fs::set_permissions(
        play.file("drafts/ch01.md"),
        std::fs::Permissions::from_mode(0o600),
    )
    .unwrap();
    commit(
        &store,
        person().write(&at("drafts/ch01.md"), "draft two\n", Expect::Any),
    )
    .unwrap();
    assert_eq!(
        std::fs::metadata(play.file("drafts/ch01.md"))
            .unwrap()
            .permissions()
            .mode()
            & 0o777,
        0o600
    );
}

/// An external program that keeps an append file open, and writes to it between Quipu's check and
/// its write.
struct Meddling {
    open: std::fs::File,
    writes: [&'static str; 2],
    /// The disk's verdict on each reordering.
    reorder: StepVerdict,
    written: AtomicUsize,
}

impl Meddling {
    fn with(play: &Playground, writes: [&'static str; 2], reorder: StepVerdict) -> Arc<Meddling> {
        let open = std::fs::File::options()
            .append(true)
            .open(play.file("meta/a.md"))
            .unwrap();
        Arc::new(Meddling {
            open,
            writes,
            reorder,
            written: AtomicUsize::new(0),
        })
    }

    fn write(&self) {
        if let Some(text) = self.writes.get(self.written.fetch_add(1, Ordering::SeqCst)) {
            (&self.open).write_all(text.as_bytes()).unwrap();
        }
    }
}

impl Watch for Meddling {
    fn before(&self, step: Step, _: usize) -> StepVerdict {
        match step {
            Step::Append => self.write(),
            Step::Reorder => {
                self.write();
                return self.reorder;
            }
            _ => {}
        }
        StepVerdict::Go
    }
}

#[test]
fn whoever_appends_by_hand_in_the_same_moment_keeps_the_file_and_every_byte() {
    for (writes, left) in [
        (
            ["by hand\n", "and more\n"],
            "one\ntwo\nthree\nby hand\nand more\n",
        ),
        (
            ["no end of line", " yet\n"],
            "one\ntwo\nthree\nno end of line yet\n",
        ),
        (["three\n", ""], "one\ntwo\nthree\nthree\n"),
        (["\n", "three\n"], "one\ntwo\nthree\n\nthree\n"),
    ] {
        let (play, store) = begun();
        drop(store);
        let hand = Meddling::with(&play, writes, StepVerdict::Go);
        let store = play.open_with(Options {
            watch: Some(hand.clone()),
            ..Options::default()
        });
        commit(&store, person().append(&at("meta/a.md"), "three\n")).unwrap();
        assert_eq!(play.text("meta/a.md").unwrap(), left, "{writes:?}");
        // The file is still the one that the external program has open, and its text is adopted as
        // an append.
        (&hand.open).write_all(b"later\n").unwrap();
        let adopted = store.scan_status().unwrap().adopted;
        assert!(
            adopted
                .iter()
                .any(|a| a.path == "meta/a.md" && a.how == "grew"),
            "{writes:?}: {adopted:?}"
        );
        assert_eq!(
            store.read(&at("meta/a.md")).unwrap().unwrap().0,
            format!("{left}later\n").into_bytes()
        );
        assert_eq!(asides(&store, "meta/a.md"), Vec::<Vec<u8>>::new());
        assert_eq!(
            std::fs::read_dir(play.file(".quipu/conflict-copies"))
                .unwrap()
                .count(),
            0
        );
        assert_eq!(store.verify().unwrap().problems, []);
    }
}

/// An external program that truncates the text after the journalled one and writes less, just
/// before Quipu appends.
struct Cutting(std::fs::File);

impl Watch for Cutting {
    fn before(&self, step: Step, _: usize) -> StepVerdict {
        if step == Step::Append {
            self.0.set_len("one\ntwo\n".len() as u64).unwrap();
            (&self.0).write_all(b"less\n").unwrap();
        }
        StepVerdict::Go
    }
}

#[test]
fn a_file_that_is_cut_off_meanwhile_holds_what_was_acknowledged() {
    let (play, store, disk) = begun_paused();
    let change = person().append(&at("meta/a.md"), "three\n");
    disk.publish(store.validate(change).unwrap());
    drop(store);
    let mut file = std::fs::File::options()
        .append(true)
        .open(play.file("meta/a.md"))
        .unwrap();
    file.write_all(b"a long line by hand\n").unwrap();
    let store = play.open_with(Options {
        watch: Some(Arc::new(Cutting(file))),
        ..Options::default()
    });
    store.settle().unwrap();
    assert_eq!(play.text("meta/a.md").unwrap(), "one\ntwo\nthree\n");
    assert_eq!(
        asides(&store, "meta/a.md"),
        [b"one\ntwo\nless\nthree\n".to_vec()]
    );
    assert_eq!(store.verify().unwrap().problems, []);
}

#[test]
fn a_crash_while_texts_change_places_loses_neither() {
    let (play, store) = begun();
    drop(store);
    let sound = play.text("meta/a.md").unwrap();
    for torn in std::iter::once(StepVerdict::Stop).chain((1..14).map(StepVerdict::Torn)) {
        let before = play.text("meta/a.md").unwrap();
        let number = before.len();
        let text = format!("ours {number}\n");
        let hand = Meddling::with(&play, ["by hand\n", ""], torn);
        let store = play.open_with(Options {
            watch: Some(hand),
            ..Options::default()
        });
        assert!(commit(&store, person().append(&at("meta/a.md"), text.as_str())).is_err());
        drop(store);
        let store = play.open();
        store.scan_status().unwrap();
        let found = play.text("meta/a.md").unwrap();
        let added = found.strip_prefix(&before).unwrap();
        assert!(added.starts_with(&text), "{torn:?}: {added}");
        let kept = asides(&store, "meta/a.md");
        assert!(
            added[text.len()..].contains("by hand\n") || kept.contains(&b"by hand\n".to_vec()),
            "{torn:?}: {added} {kept:?}"
        );
        assert_eq!(
            store.read(&at("meta/a.md")).unwrap().unwrap().0,
            found.into_bytes()
        );
        assert_eq!(store.verify().unwrap().problems, [], "{torn:?}");
    }
    assert!(play.text("meta/a.md").unwrap().starts_with(&sound));
}

#[test]
fn an_edit_that_is_adopted_and_not_yet_in_the_heads_is_not_appended_again() {
    let (play, store, disk) = begun_paused();
    play.edit("meta/a.md", "one\ntwo\nby hand\n");
    // The adoption and the commit are journalled, and before the files are written more comes by
    // hand.
    let change = person().append(&at("meta/a.md"), "three\n");
    disk.publish(store.validate(change).unwrap());
    let mut file = std::fs::File::options()
        .append(true)
        .open(play.file("meta/a.md"))
        .unwrap();
    file.write_all(b"by hand again\n").unwrap();
    store.settle().unwrap();
    assert_eq!(
        play.text("meta/a.md").unwrap(),
        "one\ntwo\nby hand\nthree\nby hand again\n"
    );
    store.scan_status().unwrap();
    assert_eq!(store.verify().unwrap().problems, []);
}

/// An external program that appends while a commit is being synced.
struct WhileSyncing(std::path::PathBuf, &'static str);

impl Watch for WhileSyncing {
    fn before(&self, step: Step, _: usize) -> StepVerdict {
        if step == Step::JournalSync {
            std::fs::File::options()
                .append(true)
                .open(&self.0)
                .unwrap()
                .write_all(self.1.as_bytes())
                .unwrap();
        }
        StepVerdict::Go
    }
}

#[test]
fn what_reads_the_same_by_hand_is_not_taken_for_what_was_committed() {
    for (by_hand, left) in [
        ("three\n", "one\ntwo\nthree\nthree\n"),
        ("hand\nthree\n", "one\ntwo\nthree\nhand\nthree\n"),
        ("th", "one\ntwo\nthree\nth"),
    ] {
        // As the first command of a process, and with a cached index.
        for commits_before in [0, 2] {
            let (play, store) = begun();
            drop(store);
            let store = play.open();
            for number in 0..commits_before {
                commit(
                    &store,
                    person().append(&at("meta/b.md"), format!("{number}\n")),
                )
                .unwrap();
            }
            drop(store);
            let watch = WhileSyncing(play.file("meta/a.md"), by_hand);
            let store = play.open_with(Options {
                watch: Some(Arc::new(watch)),
                ..Options::default()
            });
            commit(&store, person().append(&at("meta/a.md"), "three\n")).unwrap();
            drop(store);
            assert_eq!(play.text("meta/a.md").unwrap(), left);
            let store = play.open();
            store.scan_status().unwrap();
            assert_eq!(
                store.read(&at("meta/a.md")).unwrap().unwrap().0,
                left.as_bytes()
            );
            assert_eq!(store.verify().unwrap().problems, []);
        }
    }
}

#[test]
fn a_flag_goes_with_its_cause() {
    let (play, store) = begun();
    std::fs::rename(play.file("meta/a.md"), play.file("away")).unwrap();
    assert!(flag_of(&store, "meta/a.md").is_some());
    std::fs::rename(play.file("away"), play.file("meta/a.md")).unwrap();
    assert_eq!(flag_of(&store, "meta/a.md"), None);
    assert_eq!(flag_of(&play.open(), "meta/a.md"), None);
}

#[test]
fn verify_tells_of_what_was_never_taken_over() {
    let play = Playground::new();
    play.edit("state.json", "\u{feff}{}");
    let store = play.open();
    let scan = store.scan_status().unwrap();
    let flagged: Vec<_> = scan.flagged().collect();
    assert!(
        flagged[0].path == "state.json" && flagged[0].remedy().contains("in an editor"),
        "{flagged:?}"
    );
    assert!(
        store
            .verify()
            .unwrap()
            .problems
            .iter()
            .any(|p| p.place == "state.json" && p.remedy.contains("in an editor"))
    );
}
