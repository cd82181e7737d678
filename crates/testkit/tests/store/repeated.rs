//! A process that commits again and again: crashes, other processes, external edits.

use std::sync::Arc;

use quipu_contract::Actor;
use quipu_store::{Change, Expect, Options, Store, StoreError, Validated};
use quipu_testkit::{FailingDisk, Failure, Playground};

fn entry(number: usize) -> String {
    format!("entry {number}\n")
}

/// Makes one commit of an append, a draft and a key.
fn commit(store: &Store, number: usize) -> Result<(), StoreError> {
    judged(store, number)?.publish().map(|_| ())
}

fn judged(store: &Store, number: usize) -> Result<Validated<'_>, StoreError> {
    let change = Change::by(&Actor::Person)
        .append(&Playground::path("meta/log.md"), entry(number))
        .write(
            &Playground::path("drafts/ch01.md"),
            format!("draft {number}\n"),
            Expect::Any,
        )
        .key(format!("key {number}"));
    store.validate(change)
}

/// Counts the commits in the files; the two files must agree.
fn count(play: &Playground) -> usize {
    let log = play.text("meta/log.md").unwrap_or_default();
    let entries = log.lines().count();
    assert_eq!(
        log,
        (0..entries).map(entry).collect::<String>(),
        "an entry is missing or twice"
    );
    let draft = play.text("drafts/ch01.md");
    assert_eq!(
        draft,
        entries.checked_sub(1).map(|last| format!("draft {last}\n")),
        "half a commit"
    );
    entries
}

const COMMITS: usize = 4;

#[test]
fn a_crash_at_every_step_of_a_run_of_commits() {
    let counting = Arc::new(FailingDisk::counting());
    let play = Playground::local();
    let store = play.open_with(Options {
        watch: Some(counting.clone()),
        ..Options::default()
    });
    (0..COMMITS).for_each(|number| commit(&store, number).unwrap());
    store.settle().unwrap();
    drop(store);
    let steps = counting.steps().len();
    for index in 0..steps {
        for failure in [Failure::Stop, Failure::Torn] {
            for lost in [
                &[][..],
                &["watermarks"][..],
                &["index.db", "index.db-wal", "index.db-shm"][..],
            ] {
                let play = Playground::local();
                let disk = Arc::new(FailingDisk::at(index, failure));
                let store = play.open_with(Options {
                    watch: Some(disk),
                    ..Options::default()
                });
                let acknowledged = (0..COMMITS)
                    .take_while(|number| commit(&store, *number).is_ok())
                    .count();
                let _ = store.settle();
                drop(store);
                for name in lost {
                    let _ = std::fs::remove_file(play.file(&format!(".quipu/{name}")));
                }
                let store = play.open();
                store.settle().unwrap();
                let place = format!("step {index} of {steps}, {failure:?}, without {lost:?}");
                let found = count(&play);
                assert!(
                    found >= acknowledged && found <= acknowledged + 1,
                    "{place}: {acknowledged} acknowledged, {found} there"
                );
                assert_eq!(store.verify().unwrap().problems, [], "{place}");
                assert!(
                    store
                        .log(100)
                        .unwrap()
                        .iter()
                        .all(|e| e.who.kind == "person"),
                    "{place}: its own bytes were adopted"
                );
                (found..COMMITS).for_each(|number| commit(&store, number).unwrap());
                store.settle().unwrap();
                assert_eq!(count(&play), COMMITS, "{place}");
                assert!(
                    (0..COMMITS).all(|n| commit(&store, n).is_ok()) && count(&play) == COMMITS,
                    "{place}: keys are forgotten"
                );
            }
        }
    }
}

#[test]
fn two_stores_take_turns() {
    let play = Playground::new();
    let (one, two) = (play.open(), play.open());
    for number in 0..60 {
        // Alternates between the two stores in runs of every length.
        let store = if (number / (1 + number / 10)) % 2 == 0 {
            &one
        } else {
            &two
        };
        commit(store, number).unwrap();
        assert_eq!(count(&play), number + 1);
    }
    let third = play.open();
    assert_eq!(third.verify().unwrap().problems, []);
    assert_eq!(third.log(100).unwrap().len(), 60);
}

/// Threads of two stores: nothing is lost, nothing is there twice.
#[test]
fn threads_of_two_stores_at_once() {
    let play = Playground::new();
    let stores = [play.open(), play.open()];
    let log = Playground::path("meta/log.md");
    std::thread::scope(|scope| {
        for writer in 0..8 {
            let (store, log) = (&stores[writer % 2], &log);
            scope.spawn(move || {
                for number in 0..40 {
                    let change = Change::by(&Actor::Person)
                        .append(log, format!("{writer} {number}\n"))
                        .write(
                            &Playground::path(&format!("drafts/w{writer}.md")),
                            format!("{number}\n"),
                            Expect::Any,
                        );
                    store.validate(change).unwrap().publish().unwrap();
                }
            });
        }
    });
    stores.iter().for_each(|store| store.settle().unwrap());
    let text = play.text("meta/log.md").unwrap();
    for writer in 0..8 {
        let own: Vec<&str> = text
            .lines()
            .filter_map(|l| l.strip_prefix(&format!("{writer} ")))
            .collect();
        assert_eq!(
            own,
            (0..40).map(|n| n.to_string()).collect::<Vec<_>>(),
            "writer {writer}"
        );
        assert_eq!(play.text(&format!("drafts/w{writer}.md")).unwrap(), "39\n");
    }
    assert_eq!(stores[0].verify().unwrap().problems, []);
    assert_eq!(stores[1].log(1000).unwrap().len(), 320);
}

#[test]
fn an_outside_edit_in_a_run_of_commits_is_adopted() {
    let play = Playground::new();
    let (store, other) = (play.open(), play.open());
    let log = Playground::path("meta/log.md");
    let append = |store: &Store, text: &str| {
        store
            .validate(Change::by(&Actor::Person).append(&log, text))
            .unwrap()
            .publish()
            .unwrap()
    };
    append(&store, "one\n");
    append(&store, "two\n");
    play.edit("meta/log.md", "one\ntwo\nby hand\n");
    let receipt = append(&store, "three\n");
    assert_eq!(receipt.adopted.len(), 1);
    append(&store, "four\n");
    play.edit(
        "meta/log.md",
        &format!("{}again\n", play.text("meta/log.md").unwrap()),
    );
    append(&other, "five\n");
    other.scan_status().unwrap();
    let text = play.text("meta/log.md").unwrap();
    for line in ["one", "two", "by hand", "three", "four", "again", "five"] {
        assert_eq!(
            text.lines().filter(|l| *l == line).count(),
            1,
            "{line} in {text}"
        );
    }
    assert_eq!(other.verify().unwrap().problems, []);
}

#[test]
fn a_store_that_stays_open_sees_commits_leases_and_keys_of_others() {
    let play = Playground::new();
    let (open, other) = (play.open(), play.open());
    commit(&open, 0).unwrap();
    commit(&other, 1).unwrap();
    let path = Playground::path("drafts/ch01.md");
    let read = || open.read(&path).unwrap().unwrap();
    let (text, version) = read();
    assert_eq!(text, b"draft 1\n");
    // The same key again changes nothing, though another store committed it.
    commit(&open, 1).unwrap();
    assert_eq!(count(&play), 2);
    let lease = other
        .take_lease(&Actor::Person, &["drafts/ch01.md".into()], 60)
        .unwrap();
    let write = |text: &str| {
        let change =
            Change::by(&Actor::Person).write(&path, text, Expect::Version(version.clone()));
        open.validate(change).and_then(Validated::publish)
    };
    assert!(matches!(
        write("under a lease\n"),
        Err(StoreError::LeaseLost { .. })
    ));
    other
        .release_lease(&Actor::Person, &lease.id, None)
        .unwrap();
    commit(&other, 2).unwrap();
    assert!(matches!(write("stale\n"), Err(StoreError::Stale { .. })));
    assert_eq!(read().0, b"draft 2\n");
}
