//! Random changes by several stores on one project, compared with a map as the model.

use std::collections::BTreeMap;
use std::sync::Arc;

use proptest::prelude::*;
use quipu_contract::Actor;
use quipu_store::{Change, Expect, Op, Options, Store, Validated};
use quipu_testkit::{FailingDisk, Failure, Playground};

const FILES: [&str; 5] = [
    "meta/a.md",
    "meta/b.md",
    "drafts/ch01.md",
    "drafts/ch02.md",
    "notes.txt",
];

#[derive(Debug, Clone)]
enum Act {
    Append(usize, usize, String),
    Write(usize, usize, String),
    Remove(usize, usize),
    /// Several files in one commit, published without waiting for the files.
    Several(usize, String),
    /// An external edit that appends a line.
    ByHand(usize, String),
    /// Several files in one commit by a program that is killed at a step of it.
    Dies(usize, usize, Failure, String),
    /// A file is leased, or its lease released.
    Lease(usize, usize),
    LoseHeads,
    LoseWatermarks,
    Reopen(usize),
    Read(usize, usize),
}

fn acts() -> impl Strategy<Value = Vec<Act>> {
    let line = "[a-c]{1,3}\n";
    let act = prop_oneof![
        4 => (0..3usize, 0..5usize, line).prop_map(|(s, f, t)| Act::Append(s, f, t)),
        3 => (0..3usize, 2..5usize, line).prop_map(|(s, f, t)| Act::Write(s, f, t)),
        1 => (0..3usize, 2..5usize).prop_map(|(s, f)| Act::Remove(s, f)),
        2 => (0..3usize, line).prop_map(|(s, t)| Act::Several(s, t)),
        // Never a text that was committed: right after a commit, without index and watermarks, an
        // older version is taken for a loss (docs/decisions/04-recovery.md).
        2 => (0..5usize, "[d-f]{1,3}\n").prop_map(|(f, t)| Act::ByHand(f, t)),
        2 => (0..3usize, 0..16usize, prop_oneof![Just(Failure::Stop), Just(Failure::Torn)], line)
            .prop_map(|(s, step, failure, t)| Act::Dies(s, step, failure, t)),
        2 => (0..3usize, 0..5usize).prop_map(|(s, f)| Act::Lease(s, f)),
        1 => Just(Act::LoseHeads),
        1 => Just(Act::LoseWatermarks),
        1 => (0..3usize).prop_map(Act::Reopen),
        2 => (0..3usize, 0..5usize).prop_map(|(s, f)| Act::Read(s, f)),
    ];
    proptest::collection::vec(act, 1..30)
}

/// A segment size that rotates all the time, and one that never does, so that stores follow each
/// other.
const SMALL: u64 = 2048;
const LARGE: u64 = 1 << 20;

fn run(acts: &[Act], segment_bytes: u64) {
    let play = Playground::new();
    let options = || Options {
        segment_bytes,
        ..Options::default()
    };
    let open = |play: &Playground| play.open_with(options());
    let mut stores: Vec<Store> = (0..3).map(|_| open(&play)).collect();
    let mut model: BTreeMap<&str, String> = BTreeMap::new();
    let mut leases: BTreeMap<&str, String> = BTreeMap::new();
    let person = || Change::by(&Actor::Person);
    let several = |text: &str| {
        FILES[..4].iter().fold(person(), |change, file| {
            change.append(&Playground::path(file), text)
        })
    };
    for act in acts {
        match act {
            Act::Append(store, file, text) => {
                let change = person().append(&Playground::path(FILES[*file]), text.as_str());
                let done = stores[*store].validate(change).and_then(Validated::publish);
                assert_eq!(done.is_ok(), !leases.contains_key(FILES[*file]), "{done:?}");
                if done.is_ok() {
                    model.entry(FILES[*file]).or_default().push_str(text);
                }
            }
            Act::Write(store, file, text) => {
                let change =
                    person().write(&Playground::path(FILES[*file]), text.as_str(), Expect::Any);
                let done = stores[*store].validate(change).and_then(Validated::publish);
                assert_eq!(done.is_ok(), !leases.contains_key(FILES[*file]), "{done:?}");
                if done.is_ok() {
                    model.insert(FILES[*file], text.clone());
                }
            }
            Act::Remove(store, file) => {
                let change = person().op(Op::Remove {
                    path: Playground::path(FILES[*file]),
                    expect: Expect::Any,
                });
                let done = stores[*store].validate(change).and_then(Validated::publish);
                let allowed =
                    !leases.contains_key(FILES[*file]) && model.remove(FILES[*file]).is_some();
                assert_eq!(done.is_ok(), allowed, "{done:?}");
            }
            Act::Several(store, text) => {
                let done = stores[*store]
                    .validate(several(text))
                    .and_then(Validated::publish);
                assert_eq!(
                    done.is_ok(),
                    !FILES[..4].iter().any(|file| leases.contains_key(file)),
                    "{done:?}"
                );
                if done.is_ok() {
                    FILES[..4]
                        .iter()
                        .for_each(|file| model.entry(file).or_default().push_str(text));
                }
            }
            // In a shared store an external edit of a leased file waits for the end of the lease;
            // here it is adopted at once.
            Act::Lease(..) if play.is_shared() => {}
            Act::Lease(store, file) => match leases.remove(FILES[*file]) {
                Some(id) => drop(
                    stores[*store]
                        .release_lease(&Actor::Person, &id, None)
                        .unwrap(),
                ),
                None => {
                    let taken = stores[*store]
                        .take_lease(&Actor::Person, &[FILES[*file].into()], 600)
                        .unwrap();
                    leases.insert(FILES[*file], taken.id);
                }
            },
            Act::ByHand(file, text) => {
                // Files that wait for their commit are left alone; `outside` and `many` test those.
                stores[0].settle().unwrap();
                let known = model.entry(FILES[*file]).or_default();
                known.push_str(text);
                play.edit(FILES[*file], known);
            }
            // A request sent to a shared store stays in doubt while the process lives, and this one
            // does.
            Act::Dies(..) if play.is_shared() => {}
            Act::Dies(store, step, failure, text) => {
                let disk = Arc::new(FailingDisk::at(*step, *failure));
                let dying = play.open_with(Options {
                    watch: Some(disk),
                    ..options()
                });
                let done = dying.validate(several(text)).and_then(Validated::publish);
                drop(dying);
                stores[*store] = open(&play);
                // The first of its files shows whether the commit happened; then it must have
                // happened to all.
                let first = model.get(FILES[0]).cloned().unwrap_or_default() + text;
                let found = stores[*store]
                    .read(&Playground::path(FILES[0]))
                    .unwrap()
                    .map(|(bytes, _)| bytes);
                let happened = found.as_deref() == Some(first.as_bytes());
                assert!(happened || done.is_err(), "{done:?}: {found:?}");
                if happened {
                    FILES[..4]
                        .iter()
                        .for_each(|file| model.entry(file).or_default().push_str(text));
                }
            }
            Act::LoseHeads => {
                for name in ["index.db", "index.db-wal", "index.db-shm"] {
                    let _ = std::fs::remove_file(play.file(&format!(".quipu/{name}")));
                }
            }
            Act::LoseWatermarks => drop(std::fs::remove_file(play.file(".quipu/watermarks"))),
            Act::Reopen(store) => stores[*store] = open(&play),
            Act::Read(store, file) => {
                let found = stores[*store]
                    .read(&Playground::path(FILES[*file]))
                    .unwrap();
                assert_eq!(
                    found.map(|(b, _)| String::from_utf8(b).unwrap()),
                    model.get(FILES[*file]).cloned(),
                    "{}",
                    FILES[*file]
                );
            }
        }
    }
    for store in &stores {
        store.scan_status().unwrap();
        for file in FILES {
            let found = store.read(&Playground::path(file)).unwrap();
            assert_eq!(
                found.map(|(b, _)| String::from_utf8(b).unwrap()),
                model.get(file).cloned(),
                "{file}"
            );
        }
        assert_eq!(store.verify().unwrap().problems, []);
    }
    let on_disk: BTreeMap<String, Vec<u8>> = model
        .iter()
        .map(|(k, v)| ((*k).to_owned(), v.clone().into_bytes()))
        .collect();
    assert_eq!(play.files(), on_disk);
    let log = stores[0].log(usize::MAX).unwrap();
    assert!(log.iter().rev().map(|e| e.seq).eq(1..=log.len() as u64));
}

/// Sequences that failed once.
#[test]
fn known_sequences() {
    let line = |text: &str| text.to_owned();
    let run = |acts: &[Act]| {
        [SMALL, LARGE]
            .into_iter()
            .for_each(|segment_bytes| run(acts, segment_bytes))
    };
    // Another store had applied files, and the record of its progress was lost.
    run(&[
        Act::Several(0, line("c\n")),
        Act::Append(0, 0, line("a\n")),
        Act::Append(0, 0, line("a\n")),
        Act::Several(0, line("a\n")),
        Act::Append(2, 0, line("a\n")),
        Act::Append(0, 3, line("a\n")),
        Act::LoseWatermarks,
        Act::ByHand(0, line("a\n")),
        Act::Append(2, 1, line("a\n")),
    ]);
    // The same, and the store that scans next had written one of the records itself.
    run(&[
        Act::Several(0, line("a\n")),
        Act::Several(2, line("a\n")),
        Act::Write(0, 2, line("a\n")),
        Act::LoseWatermarks,
        Act::Remove(2, 2),
    ]);
    // A removed file was recreated externally, and then the index was lost.
    run(&[
        Act::Append(0, 2, line("ca\n")),
        Act::Remove(0, 2),
        Act::ByHand(2, line("ca\n")),
        Act::LoseHeads,
    ]);
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 48, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn stores_agree_with_a_map(acts in acts(), rotates in any::<bool>()) {
        run(&acts, if rotates { SMALL } else { LARGE });
    }
}
