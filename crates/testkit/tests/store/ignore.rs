//! Tests of ignored files, of files that are never ignored, and of the tree fingerprint.

use proptest::prelude::*;
use quipu_contract::Actor;
use quipu_store::{Change, Store, TreeFingerprint};
use quipu_testkit::Playground;

const TAG: &str = "Signature: 8a477f597d28d172789f06886806bc55\n# made by a tool\n";

const CONTRACT: &str = r#"quipu = 1
ignore = ["vendor/**", "scratch/", "**/*.log.md", "data/*/raw"]

[[files]]
path = "memory/**"
class = "append"

[[files]]
path = "vendor/notes.md"
class = "append"
"#;

fn free(store: &Store) -> Vec<String> {
    store.scan_status().unwrap().free
}

fn named(store: &Store) -> Vec<String> {
    store
        .scan_status()
        .unwrap()
        .files
        .into_iter()
        .map(|file| file.path)
        .collect()
}

#[test]
fn folders_of_tools_and_what_the_contract_ignores_are_left_out() {
    let play = Playground::with_contract(CONTRACT);
    let store = play.open();
    for path in [
        "node_modules/a/README.md",
        "deep/node_modules/README.md",
        "__pycache__/x.md",
        ".hg/x.md",
        "vendor/a/README.md",
        "scratch/x.md",
        "run.log.md",
        "deep/run.log.md",
        "data/one/raw/x.md",
        "target/doc/x.md",
        "env/lib/x.md",
    ] {
        play.edit(path, "text\n");
    }
    play.edit("target/CACHEDIR.TAG", TAG);
    play.edit("env/pyvenv.cfg", "home = /usr/bin\n");
    let seen = [
        "README.md",
        "data/one/x.md",
        "deep/vendor/x.md",
        "mine/CACHEDIR.TAG",
        "mine/x.md",
        "node_modules.md",
        "vendored.md",
    ];
    for path in seen {
        play.edit(path, "text\n");
    }
    // Without the signature, the folder is not a cache.
    play.edit("mine/CACHEDIR.TAG", "mine\n");
    assert_eq!(free(&store), seen);
    assert_eq!(store.list().unwrap().len(), seen.len() + 1); // and quipu.toml
}

#[test]
fn what_a_rule_names_or_a_commit_touched_is_never_left_out() {
    let play = Playground::with_contract(CONTRACT);
    let store = play.open();
    for path in [
        "vendor/notes.md",
        "vendor/other.md",
        "memory/node_modules/a.md",
        "memory/cache/b.md",
        "node_modules/x.md",
        "node_modules/y.md",
    ] {
        play.edit(path, "text\n");
    }
    play.edit("memory/cache/CACHEDIR.TAG", TAG);
    assert_eq!(
        named(&store),
        [
            "memory/cache/CACHEDIR.TAG",
            "memory/cache/b.md",
            "memory/node_modules/a.md",
            "quipu.toml",
            "vendor/notes.md"
        ]
    );
    assert_eq!(free(&store), [""; 0]);
    let commit = |change: Change| store.validate(change).unwrap().publish().unwrap();
    commit(Change::by(&Actor::Person).append(&Playground::path("node_modules/x.md"), "ours\n"));
    assert_eq!(free(&store), ["node_modules/x.md"]);
    // A committed file in an ignored folder is not adopted as removed; a real removal is.
    let known = store.log(usize::MAX).unwrap().len();
    assert_eq!(free(&play.open()), ["node_modules/x.md"]);
    assert_eq!(store.log(usize::MAX).unwrap().len(), known);
    std::fs::remove_file(play.file("node_modules/x.md")).unwrap();
    let adopted = store.scan_status().unwrap().adopted;
    assert_eq!(
        adopted
            .iter()
            .map(|a| (a.path.as_str(), a.how))
            .collect::<Vec<_>>(),
        [("node_modules/x.md", "removed")]
    );
    assert_eq!(store.verify().unwrap().problems, []);
}

#[test]
fn a_sight_changes_with_every_file_that_counts_and_no_other() {
    let play = Playground::with_contract(CONTRACT);
    let store = play.open();
    play.edit("memory/a.md", "one\n");
    store.scan_status().unwrap();
    let mut last = store.tree_fingerprint().unwrap();
    assert_eq!(store.tree_fingerprint().unwrap(), last);
    assert_eq!(play.open().tree_fingerprint().unwrap(), last);
    assert_eq!(store.scan_with_fingerprint().unwrap().1, Some(last));
    for path in ["node_modules/x.md", "vendor/other.md", "scratch/a/b.md"] {
        play.edit(path, "text\n");
        assert_eq!(store.tree_fingerprint().unwrap(), last, "{path}");
    }
    let mut differs = |what: &str| {
        let now = store.tree_fingerprint().unwrap();
        assert_ne!(now, last, "{what}");
        last = now;
    };
    play.edit("memory/a.md", "one\ntwo\n");
    differs("edited");
    play.edit("notes.txt", "");
    differs("a new file");
    std::fs::rename(play.file("notes.txt"), play.file("other.txt")).unwrap();
    differs("another name");
    std::fs::remove_file(play.file("other.txt")).unwrap();
    differs("removed");
    std::os::unix::fs::symlink("memory/a.md", play.file("link.md")).unwrap();
    differs("a link");
    store.scan_status().unwrap();
    differs("adopted");
    store
        .validate(Change::by(&Actor::Person).append(&Playground::path("memory/a.md"), "three\n"))
        .unwrap()
        .publish()
        .unwrap();
    differs("committed");
}

#[derive(Debug, Clone)]
enum Act {
    Edit(usize, u8),
    Remove(usize),
    Commit(usize),
    StatusScan,
}

const PLACES: [&str; 6] = [
    "memory/a.md",
    "memory/node_modules/b.md",
    "node_modules/c.md",
    "vendor/notes.md",
    "vendor/d.md",
    "e.md",
];

fn acts() -> impl Strategy<Value = Vec<Act>> {
    let place = 0..PLACES.len();
    let act = prop_oneof![
        (place.clone(), 0u8..3).prop_map(|(place, text)| Act::Edit(place, text)),
        place.clone().prop_map(Act::Remove),
        place.prop_map(Act::Commit),
        Just(Act::StatusScan),
    ];
    prop::collection::vec(act, 1..12)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(32))]

    /// After any actions, a long-running store sees the same as a new one; equal fingerprints mean
    /// equal status scans.
    #[test]
    fn equal_sights_mean_equal_surveys(acts in acts()) {
        let play = Playground::with_contract(CONTRACT);
        let store = play.open();
        let mut seen: Vec<(TreeFingerprint, String)> = Vec::new();
        for act in acts {
            match act {
                Act::Edit(place, text) => play.edit(PLACES[place], &"text ".repeat(usize::from(text))),
                Act::Remove(place) => drop(std::fs::remove_file(play.file(PLACES[place]))),
                Act::Commit(place) => {
                    let change = Change::by(&Actor::Person).append(&Playground::path(PLACES[place]), "more\n");
                    if let Ok(judged) = store.validate(change) {
                        judged.publish().unwrap();
                    }
                }
                Act::StatusScan => drop(store.scan_status().unwrap()),
            }
            let (scan, sight) = store.scan_with_fingerprint().unwrap();
            let Some(sight) = sight else { continue };
            let told = format!("{:?} {:?} {:?}", scan.files, scan.free, scan.strange);
            prop_assert_eq!(store.tree_fingerprint().unwrap(), sight);
            // Two threads compute the same as one.
            let (together, done) = store.fingerprint_while(|| 7);
            prop_assert_eq!((together.unwrap(), done), (sight, 7));
            let (fresh, fresh_sight) = play.open().scan_with_fingerprint().unwrap();
            prop_assert_eq!(fresh_sight, Some(sight));
            prop_assert_eq!(&format!("{:?} {:?} {:?}", fresh.files, fresh.free, fresh.strange), &told);
            for (other, before) in &seen {
                prop_assert!(*other != sight || *before == told);
            }
            seen.push((sight, told));
        }
    }
}
