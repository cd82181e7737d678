//! Tests that damaged or missing caches never change an answer.

use proptest::prelude::*;
use quipu_contract::Actor;
use quipu_store::{Change, Expect, Store};
use quipu_testkit::Playground;

fn person() -> Change {
    Change::by(&Actor::Person)
}

fn keyed(store: &Store, path: &str, text: &str, key: &str) -> bool {
    store
        .validate(person().append(&Playground::path(path), text).key(key))
        .unwrap()
        .publish()
        .unwrap()
        .repeated
}

/// Creates a project with files, keys and leases. Its index was checkpointed when it was closed.
fn project() -> Playground {
    let play = Playground::local();
    let store = play.open();
    for number in 0..150 {
        keyed(
            &store,
            &format!("meta/f{}.md", number % 30),
            &format!("line {number}\n"),
            &format!("key-{number}"),
        );
        // Updating the index one by one grows its log beyond the limit that is left for the next
        // command.
        store.leases().unwrap();
        store.newest_of(&[]).unwrap();
    }
    store
        .validate(person().write(&Playground::path("drafts/ch01.md"), "draft\n", Expect::Any))
        .unwrap()
        .publish()
        .unwrap();
    store
        .take_lease(&Actor::Person, &["drafts/ch02.md".into()], 600)
        .unwrap();
    drop(store);
    play
}

/// Collects all answers from the index, and makes some commits that depend on it.
fn answers(play: &Playground) -> String {
    let store = play.open();
    let mut told = String::new();
    for path in (0..30)
        .map(|n| format!("meta/f{n}.md"))
        .chain(["drafts/ch01.md".into(), "meta/new.md".into()])
    {
        let path = Playground::path(&path);
        let events: Vec<_> = store
            .events(&path)
            .unwrap()
            .iter()
            .map(|e| (e.seq, e.version.clone(), e.after_gap))
            .collect();
        told.push_str(&format!(
            "{path}: {:?} {events:?}\n",
            store.read(&path).unwrap()
        ));
    }
    let leases: Vec<_> = store
        .leases()
        .unwrap()
        .into_iter()
        .map(|l| (l.id, l.fence))
        .collect();
    told.push_str(&format!("{leases:?}\n"));
    for number in [3, 77, 149] {
        let path = format!("meta/f{}.md", number % 30);
        assert!(
            keyed(
                &store,
                &path,
                &format!("line {number}\n"),
                &format!("key-{number}")
            ),
            "commit {number} was made twice"
        );
    }
    keyed(&store, "meta/f7.md", "more\n", "key-more");
    keyed(&store, "meta/a-new.md", "new\n", "key-new");
    let other = store.take_lease(&Actor::Person, &["drafts/ch02.md".into()], 600);
    told.push_str(&format!("{}\n", other.is_err()));
    let scan = store.scan_status().unwrap();
    told.push_str(&format!(
        "{:?} {:?}\n",
        scan.adopted,
        scan.flagged().collect::<Vec<_>>()
    ));
    let commits: Vec<_> = store
        .log(3)
        .unwrap()
        .into_iter()
        .map(|e| (e.seq, e.kind, e.paths))
        .collect();
    told.push_str(&format!(
        "{commits:?} {:?}",
        store.verify().unwrap().problems
    ));
    told
}

const CACHES: [&str; 4] = ["index.db", "index.db-wal", "index.db-shm", "watermarks"];

#[test]
fn something_else_in_the_place_of_a_cache_stops_no_command() {
    let play = project();
    let told = answers(&play.copy());
    for name in CACHES {
        for with_content in [false, true] {
            let play = play.copy();
            let place = play.file(".quipu").join(name);
            let _ = std::fs::remove_file(&place);
            std::fs::create_dir(&place).unwrap();
            if with_content {
                std::fs::write(place.join("inside"), "x").unwrap();
            }
            assert_eq!(answers(&play), told, "{name}");
        }
    }
}

#[test]
fn doctor_goes_on_with_an_index_that_cannot_be_read() {
    let play = project();
    let whole = std::fs::read(play.file(".quipu/index.db")).unwrap();
    for from in (0..whole.len()).step_by(whole.len() / 40) {
        let play = play.copy();
        let mut bytes = whole.clone();
        let to = (from + 700).min(bytes.len());
        bytes[from..to].fill(0xa5);
        std::fs::write(play.file(".quipu/index.db"), &bytes).unwrap();
        let store = play.open();
        store.doctor().unwrap();
        assert_eq!(store.verify().unwrap().problems, [], "from byte {from}");
    }
}

#[test]
fn an_index_without_its_tables_is_rebuilt() {
    let play = project();
    let told = answers(&play.copy());
    let whole = std::fs::read(play.file(".quipu/index.db")).unwrap();
    for (old, new) in [
        ("TABLE head", "TABLE hEbd"),
        ("checksum", "chexksum"),
        ("CREATE", "CRATE "),
    ] {
        let play = play.copy();
        let mut bytes = whole.clone();
        let at = bytes
            .windows(old.len())
            .position(|w| w == old.as_bytes())
            .unwrap();
        bytes[at..at + new.len()].copy_from_slice(new.as_bytes());
        std::fs::write(play.file(".quipu/index.db"), &bytes).unwrap();
        assert_eq!(answers(&play), told, "{new}");
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 96, failure_persistence: None, ..ProptestConfig::default() })]

    /// SQLite does not detect a flipped bit in a row: a version, an offset, a key, the number of a
    /// lease.
    #[test]
    fn flipped_bits_in_a_cache_change_no_answer(cache in 0..CACHES.len() + 3, places in prop::collection::vec((any::<u32>(), 0..8u8), 1..4)) {
        thread_local! {
            static PROJECT: (Playground, String) = {
                let play = project();
                let told = answers(&play.copy());
                (play, told)
            };
        }
        PROJECT.with(|(play, told)| {
            let play = play.copy();
            // The index is damaged more often than the others, because it is the largest.
            let file = play.file(".quipu").join(CACHES.get(cache).unwrap_or(&"index.db"));
            let Ok(mut bytes) = std::fs::read(&file) else { return Ok(()) };
            let used: Vec<usize> = (0..bytes.len()).filter(|at| bytes[*at] != 0).collect();
            if used.is_empty() {
                return Ok(());
            }
            for (place, bit) in &places {
                bytes[used[*place as usize % used.len()]] ^= 1 << bit;
            }
            std::fs::write(&file, &bytes).unwrap();
            prop_assert_eq!(&answers(&play), told, "{}", file.display());
            Ok(())
        })?;
    }
}
