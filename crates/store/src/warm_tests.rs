//! Stores on one folder, as several processes would have them, and what each knows by heart.

use quipu_contract::{Actor, ProjectPath, Source, resolve_contract};

use super::*;
use crate::Options;
use crate::change::{Change, Expect};

const CONTRACT: &str = "quipu = 1\n[[files]]\npath = \"state.json\"\nclass = \"state\"\n[[files]]\npath = \"log.md\"\nclass = \"append\"\n";

/// A store that knows things by heart, in which a commit is acknowledged whose files are not in
/// place.
fn behind(name: &str, last: Change) -> (std::path::PathBuf, Store) {
    let folder = std::env::temp_dir().join(format!("quipu-warm-{name}-{}", std::process::id()));
    let _ = std::fs::remove_dir_all(&folder);
    std::fs::create_dir_all(&folder).unwrap();
    std::fs::write(folder.join("quipu.toml"), CONTRACT).unwrap();
    Store::init(&folder).unwrap();
    let store = another(&folder);
    for text in ["one\n", "two\n"] {
        store.judge(append(text)).unwrap().publish().unwrap();
    }
    store
        .judge(Change::by(&Actor::Person).write(&path("state.json"), "1", Expect::Any))
        .unwrap()
        .publish()
        .unwrap();
    store.judge(last).unwrap().publish_behind().unwrap();
    assert!(store.behind().is_some_and(|bytes| bytes > 0));
    (folder, store)
}

fn path(path: &str) -> ProjectPath {
    ProjectPath::parse(path).unwrap()
}

/// Judges a change while another thread forgets all that is known by heart, between the look and
/// the judgement.
fn judged_meanwhile(store: &Store, change: &Change) -> Result<crate::Receipt> {
    let held = store.append_lock.acquire()?;
    let look = store.look()?;
    std::thread::scope(|scope| scope.spawn(|| store.cool().unwrap()).join().unwrap());
    store.judge_held(held, look, change)?.publish()
}

/// The same project as another process has it.
fn another(folder: &std::path::Path) -> Store {
    another_with(folder, Options::default())
}

fn another_with(folder: &std::path::Path, options: Options) -> Store {
    let source = Source::new("quipu.toml", CONTRACT);
    let contract = Arc::new(
        resolve_contract(&source, &|name, _| Err(format!("no profile `{name}`"))).unwrap(),
    );
    Store::open(folder, contract, options).unwrap()
}

/// A store that knows things by heart, whose files are in place; the index knows of them.
fn told(name: &str) -> (std::path::PathBuf, Store) {
    let (folder, store) = behind(name, append("three\n"));
    store.settle().unwrap();
    store.tell_heads().unwrap();
    (folder, store)
}

/// Looks as whoever is about to write does.
fn catch_up(store: &Store) {
    let _held = store.append_lock.acquire().unwrap();
    store.look().unwrap();
}

fn append(text: &str) -> Change {
    Change::by(&Actor::Person).append(&path("log.md"), text)
}

#[test]
fn files_that_others_put_in_place_are_followed() {
    let (folder, store) = told("others");
    let placed_to = store.by_heart().as_ref().unwrap().placed_to.at;
    // Another process commits, puts it in place and tells the index when it ends.
    let other = another(&folder);
    other.judge(append("four\n")).unwrap().publish().unwrap();
    let on_first = |text: &str| {
        Change::by(&Actor::Person).write(
            &path("state.json"),
            text,
            Expect::Version(crate::Version::of(b"1")),
        )
    };
    other.judge(on_first("2")).unwrap().publish().unwrap();
    drop(other);
    catch_up(&store);
    {
        let slot = store.by_heart();
        let warm = slot.as_ref().unwrap();
        assert!(
            warm.placed_to.at > placed_to && warm.placed_to == warm.tail && warm.placed.is_empty()
        );
    }
    // What came by hand since is noticed, and what the other wrote is the newest.
    std::fs::write(folder.join("log.md"), "one\ntwo\nthree\nfour\nby hand\n").unwrap();
    let receipt = store.judge(append("five\n")).unwrap().publish().unwrap();
    assert_eq!(receipt.adopted.len(), 1);
    assert_eq!(
        std::fs::read(folder.join("log.md")).unwrap(),
        b"one\ntwo\nthree\nfour\nby hand\nfive\n"
    );
    assert!(matches!(
        store.judge(on_first("3")).map(drop),
        Err(StoreError::Stale { .. })
    ));
    assert!(store.verify().unwrap().problems.is_empty());
    drop(store);
    std::fs::remove_dir_all(folder).unwrap();
}

#[test]
fn a_lease_that_the_index_was_told_of_is_not_overlooked() {
    let (folder, store) = told("leased");
    assert!(
        store
            .leases_by_heart()
            .unwrap()
            .is_some_and(|(leases, _)| leases.is_empty())
    );
    let other = another(&folder);
    other
        .take_lease(&Actor::Person, &["log.md".into()], 60)
        .unwrap();
    drop(other);
    catch_up(&store);
    assert!(
        store
            .by_heart()
            .as_ref()
            .is_some_and(|warm| warm.placed_to == warm.tail),
        "this is followed by heart"
    );
    assert!(matches!(
        store.judge(append("four\n")).map(drop),
        Err(StoreError::LeaseLost { .. })
    ));
    drop(store);
    std::fs::remove_dir_all(folder).unwrap();
}

#[test]
fn files_in_place_that_the_index_was_not_told_of_are_looked_up_the_long_way() {
    let (folder, store) = told("untold");
    let other = another(&folder);
    other.judge(append("four\n")).unwrap().publish().unwrap();
    // It is still there and knows more than the index.
    catch_up(&store);
    assert!(
        store.by_heart().is_none(),
        "the index knows less than is in place"
    );
    store.judge(append("five\n")).unwrap().publish().unwrap();
    other
        .judge(append("six\n"))
        .unwrap()
        .publish_behind()
        .unwrap();
    store
        .judge(append("seven\n"))
        .unwrap()
        .publish_behind()
        .unwrap();
    drop((store, other));
    let after = another(&folder);
    assert_eq!(
        after.read(&path("log.md")).unwrap().unwrap().0,
        b"one\ntwo\nthree\nfour\nfive\nsix\nseven\n"
    );
    assert!(after.verify().unwrap().problems.is_empty());
    drop(after);
    std::fs::remove_dir_all(folder).unwrap();
}

#[test]
fn what_others_write_is_followed_by_its_traces() {
    let (folder, store) = told("traced");
    let other = another(&folder);
    other
        .judge(append("four\n"))
        .unwrap()
        .publish_behind()
        .unwrap();
    other
        .judge(append("five\n").key("k"))
        .unwrap()
        .publish_behind()
        .unwrap();
    // More files than a trace has room for: then the record itself is read.
    let mut change = Change::by(&Actor::Person).write(
        &path("state.json"),
        "2",
        Expect::Version(crate::Version::of(b"1")),
    );
    for name in ["a", "b", "c", "d", "e"] {
        change = change.write(&path(name), "2", Expect::Any);
    }
    other.judge(change).unwrap().publish_behind().unwrap();
    let held = store.append_lock.acquire().unwrap();
    let look = store.look().unwrap();
    assert_eq!(
        store.by_heart().as_ref().unwrap().unplaced.unread(),
        1,
        "it is not read before someone asks"
    );
    for name in ["log.md", "a", "state.json", "none.md"] {
        let (head, pending) = look.head(&store, &path(name)).unwrap();
        let (theirs, _) = other.head_by_heart(name).unwrap().unwrap();
        assert_eq!((head, pending), (theirs, name != "none.md"), "{name}");
    }
    assert_eq!(
        store.by_heart().as_ref().unwrap().unplaced.unread(),
        1,
        "nor because someone asks about a file"
    );
    assert_eq!(
        look.find_key(&store, "k").unwrap().unwrap().key.as_deref(),
        Some("k")
    );
    drop(held);
    // Without traces the lines are read instead.
    other
        .judge(append("six\n"))
        .unwrap()
        .publish_behind()
        .unwrap();
    let live = std::fs::File::options()
        .write(true)
        .open(folder.join(".quipu/live"))
        .unwrap();
    let length = live.metadata().unwrap().len();
    live.set_len(5 * 256).unwrap();
    live.set_len(length).unwrap();
    store.judge(append("seven\n")).unwrap().publish().unwrap();
    assert_eq!(
        std::fs::read(folder.join("log.md")).unwrap(),
        b"one\ntwo\nthree\nfour\nfive\nsix\nseven\n"
    );
    drop((store, other));
    let after = another(&folder);
    assert!(after.verify().unwrap().problems.is_empty());
    drop(after);
    std::fs::remove_dir_all(folder).unwrap();
}

#[test]
fn a_lease_among_records_that_left_traces_is_not_overlooked() {
    let (folder, store) = told("between");
    let other = another(&folder);
    assert!(
        store
            .leases_by_heart()
            .unwrap()
            .is_some_and(|(leases, _)| leases.is_empty())
    );
    other
        .judge(append("four\n"))
        .unwrap()
        .publish_behind()
        .unwrap();
    other
        .take_lease(&Actor::Person, &["state.json".into()], 60)
        .unwrap();
    other
        .judge(append("five\n"))
        .unwrap()
        .publish_behind()
        .unwrap();
    let write = Change::by(&Actor::Person).write(&path("state.json"), "3", Expect::Any);
    assert!(matches!(
        store.judge(write).map(drop),
        Err(StoreError::LeaseLost { .. })
    ));
    store.judge(append("six\n")).unwrap().publish().unwrap();
    assert_eq!(
        std::fs::read(folder.join("log.md")).unwrap(),
        b"one\ntwo\nthree\nfour\nfive\nsix\n"
    );
    drop((store, other));
    std::fs::remove_dir_all(folder).unwrap();
}

#[test]
fn a_commit_that_is_on_the_disk_is_not_told_as_failed_when_files_cannot_follow() {
    let (folder, store) = told("hurried");
    drop(store);
    let hurried = another_with(
        &folder,
        Options {
            wait: std::time::Duration::from_millis(20),
            ..Options::default()
        },
    );
    let other = another(&folder);
    other.judge(append("four\n")).unwrap().publish().unwrap();
    // It knows more than the index, and goes on putting files in place.
    let held = other.apply_lock.acquire().unwrap();
    let told = hurried.judge(append("five\n")).unwrap().publish_behind();
    assert!(
        matches!(told, Err(StoreError::Unfinished { .. })),
        "{told:?}"
    );
    drop(held);
    drop((hurried, other));
    let after = another(&folder);
    assert_eq!(
        after.read(&path("log.md")).unwrap().unwrap().0,
        b"one\ntwo\nthree\nfour\nfive\n"
    );
    drop(after);
    std::fs::remove_dir_all(folder).unwrap();
}

#[test]
fn the_trace_of_a_record_that_was_taken_back_is_not_believed() {
    let (folder, store) = told("withdrawn");
    let other = another(&folder);
    other
        .judge(append("four\n"))
        .unwrap()
        .publish_behind()
        .unwrap();
    let known = other.live().unwrap().known();
    {
        let Ok((_held, look, records, _)) =
            other.judge(append("gone\n")).unwrap().into_parts().unwrap()
        else {
            panic!("a commit")
        };
        let before = look.tail;
        other.grow(look, records).unwrap();
        // As if the writer had failed right after. What comes next is just as long.
        other.journal.cut(before.at).unwrap();
        other
            .live()
            .unwrap()
            .set_tail(&other.disk, &before, known.traced)
            .unwrap();
        other.forget_by_heart();
    }
    other
        .judge(append("five\n"))
        .unwrap()
        .publish_behind()
        .unwrap();
    let newest = other.head_by_heart("log.md").unwrap().unwrap().0;
    {
        let _held = store.append_lock.acquire().unwrap();
        let look = store.look().unwrap();
        assert_eq!(look.head(&store, &path("log.md")).unwrap(), (newest, true));
        assert_eq!(
            store.by_heart().as_ref().unwrap().unplaced.unread(),
            1,
            "it was told by traces"
        );
    }
    store.judge(append("six\n")).unwrap().publish().unwrap();
    assert_eq!(
        std::fs::read(folder.join("log.md")).unwrap(),
        b"one\ntwo\nthree\nfour\nfive\nsix\n"
    );
    assert!(store.verify().unwrap().problems.is_empty());
    drop((store, other));
    std::fs::remove_dir_all(folder).unwrap();
}

#[test]
fn a_journal_that_was_cut_and_went_on_otherwise_is_not_taken_for_the_one_that_is_known() {
    let (folder, store) = told("otherwise");
    let known = store.live().unwrap().known();
    let before = known.tail.unwrap();
    let first = |text: &str| {
        Change::by(&Actor::Person).write(
            &path("state.json"),
            text,
            Expect::Version(crate::Version::of(b"1")),
        )
    };
    store.judge(first("22")).unwrap().publish_behind().unwrap();
    // As after a sync that failed and lost it: the journal ends before it again, and others go on
    // from there.
    let other = another(&folder);
    {
        let _held = other.append_lock.acquire().unwrap();
        other.journal.cut(before.at).unwrap();
        other
            .live()
            .unwrap()
            .set_tail(&other.disk, &before, None)
            .unwrap();
    }
    other.judge(first("33")).unwrap().publish_behind().unwrap();
    other
        .judge(append("more\n"))
        .unwrap()
        .publish_behind()
        .unwrap();
    let gone = Change::by(&Actor::Person).write(
        &path("state.json"),
        "4",
        Expect::Version(crate::Version::of(b"22")),
    );
    assert!(matches!(
        store.judge(gone).map(drop),
        Err(StoreError::Stale { .. })
    ));
    drop((store, other));
    let after = another(&folder);
    assert_eq!(after.read(&path("state.json")).unwrap().unwrap().0, b"33");
    drop(after);
    std::fs::remove_dir_all(folder).unwrap();
}

#[test]
fn who_is_further_behind_than_there_are_traces_reads_the_records() {
    let (folder, store) = told("far");
    let other = another(&folder);
    let write = |name: &str| Change::by(&Actor::Person).write(&path(name), "x", Expect::Any);
    other
        .judge(write("early.md"))
        .unwrap()
        .publish_behind()
        .unwrap();
    for number in 0..270 {
        if number == 100 {
            other
                .judge(write("late.md"))
                .unwrap()
                .publish_behind()
                .unwrap();
        }
        other
            .judge(append(&format!("line {number}\n")))
            .unwrap()
            .publish_behind()
            .unwrap();
    }
    let _held = store.append_lock.acquire().unwrap();
    let look = store.look().unwrap();
    for name in ["log.md", "late.md"] {
        assert_eq!(
            look.head(&store, &path(name)).unwrap().0,
            other.head_by_heart(name).unwrap().unwrap().0,
            "{name}"
        );
    }
    assert_eq!(
        store.by_heart().as_ref().unwrap().unplaced.unread(),
        1,
        "there are traces of these"
    );
    assert_eq!(
        look.head(&store, &path("early.md")).unwrap().0,
        other.head_by_heart("early.md").unwrap().unwrap().0
    );
    assert_eq!(store.by_heart().as_ref().unwrap().unplaced.unread(), 0);
    drop(_held);
    drop((store, other));
    std::fs::remove_dir_all(folder).unwrap();
}

#[test]
fn a_stale_text_is_refused_when_all_is_forgotten_meanwhile() {
    let old = crate::Version::of(b"1");
    let newer = |text: &str| {
        Change::by(&Actor::Person).write(&path("state.json"), text, Expect::Version(old.clone()))
    };
    let (folder, store) = behind("stale", newer("2"));
    assert!(matches!(
        judged_meanwhile(&store, &newer("3")),
        Err(StoreError::Stale { .. })
    ));
    assert_eq!(store.read(&path("state.json")).unwrap().unwrap().0, b"2");
    drop(store);
    std::fs::remove_dir_all(folder).unwrap();
}

#[test]
fn a_repeated_key_is_known_when_all_is_forgotten_meanwhile() {
    let keyed = || {
        Change::by(&Actor::Person)
            .key("k")
            .append(&path("log.md"), "three\n")
    };
    let (folder, store) = behind("key", keyed());
    assert!(judged_meanwhile(&store, &keyed()).unwrap().repeated);
    assert_eq!(
        store.read(&path("log.md")).unwrap().unwrap().0,
        b"one\ntwo\nthree\n"
    );
    drop(store);
    std::fs::remove_dir_all(folder).unwrap();
}
