//! The rules of the commit log, tested on both backends from one definition.

use std::collections::BTreeSet;

use quipu_contract::Actor;
use quipu_store::{Change, Kind, Lease, LeaseToken, Store, StoreError};
use quipu_testkit::Playground;

use super::{append, lost, write, write_with};

/// Runs a rule on a local project and on a working copy.
fn both(rule: fn(&Playground)) {
    rule(&Playground::local());
    rule(&Playground::shared());
}

#[test]
fn a_repeated_key_returns_the_first_receipt() {
    both(|play| {
        let store = play.open();
        let change = || {
            Change::by(&Actor::Person)
                .append(&Playground::path("meta/a.md"), "once\n")
                .key("k1")
        };
        let first = store.validate(change()).unwrap().publish().unwrap();
        // Also in another process, and after other writes.
        append(&store, "meta/a.md", "more\n").unwrap();
        let again = play.open().validate(change()).unwrap().publish().unwrap();
        assert!(again.repeated && !first.repeated);
        assert_eq!(
            (again.seq, &again.id, &again.versions),
            (first.seq, &first.id, &first.versions)
        );
        assert_eq!(play.text("meta/a.md").unwrap(), "once\nmore\n");
    });
}

#[test]
fn revisions_have_no_gap_and_nothing_is_lost_under_many_writers() {
    both(|play| {
        let (threads, commits) = (6, 12);
        let seqs: Vec<u64> = std::thread::scope(|scope| {
            let writers: Vec<_> = (0..threads)
                .map(|name| {
                    scope.spawn(move || {
                        let store = play.open();
                        (0..commits)
                            .map(|n| {
                                append(&store, "meta/shared.md", &format!("{name}-{n}\n"))
                                    .unwrap()
                                    .seq
                            })
                            .collect::<Vec<_>>()
                    })
                })
                .collect();
            writers
                .into_iter()
                .flat_map(|writer| writer.join().unwrap())
                .collect()
        });
        let all: BTreeSet<u64> = seqs.iter().copied().collect();
        assert_eq!(
            all,
            (1..=threads * commits).collect(),
            "numbers have gaps or were given twice"
        );
        let text = play.text("meta/shared.md").unwrap();
        let lines: BTreeSet<&str> = text.lines().collect();
        assert_eq!(
            (text.lines().count() as u64, lines.len() as u64),
            (threads * commits, threads * commits)
        );
        assert_eq!(play.open().verify().unwrap().problems, []);
    });
}

#[test]
fn time_never_runs_backwards_in_the_log() {
    both(|play| {
        let store = play.open();
        (0..5).for_each(|n| drop(append(&store, "meta/a.md", &format!("{n}\n")).unwrap()));
        let times: Vec<String> = store
            .log(10)
            .unwrap()
            .iter()
            .rev()
            .map(|e| e.at.clone())
            .collect();
        assert!(times.is_sorted(), "{times:?}");
    });
}

#[test]
fn a_lease_that_was_released_or_is_another_s_is_refused_inside_the_commit() {
    both(|play| {
        let store = play.open();
        let lease = store
            .take_lease(&Actor::Person, &["drafts/ch01.md".into()], 60)
            .unwrap();
        write_with(&store, "drafts/ch01.md", "mine\n", lease.token()).unwrap();
        lost(write(&store, "drafts/ch01.md", "without\n", None));
        lost(write_with(
            &store,
            "drafts/ch01.md",
            "wrong\n",
            LeaseToken {
                fence: lease.fence + 1,
                ..lease.token()
            },
        ));
        lost(store.take_lease(&Actor::Person, &["drafts/*.md".into()], 60));
        let renewed = store
            .renew_lease(&Actor::Person, &lease.token(), 120)
            .unwrap();
        assert_eq!(renewed.fence, lease.fence);
        assert!(renewed.until > lease.until);
        store
            .release_lease(&Actor::Person, &lease.id, Some(lease.fence))
            .unwrap();
        lost(write_with(
            &store,
            "drafts/ch01.md",
            "late\n",
            lease.token(),
        ));
        lost(store.renew_lease(&Actor::Person, &lease.token(), 60));
        let next = store
            .take_lease(&Actor::Person, &["drafts/ch01.md".into()], 60)
            .unwrap();
        assert!(next.fence > lease.fence);
        assert_eq!(play.text("drafts/ch01.md").unwrap(), "mine\n");
    });
}

#[test]
fn each_of_several_leases_goes_to_one_of_many_takers() {
    /// The first of the wishes that nobody holds, as workers claim jobs.
    fn take_first(store: &Store, wishes: &[Vec<String>]) -> Option<(usize, Lease)> {
        for (index, paths) in wishes.iter().enumerate() {
            match store.take_lease(&Actor::Person, paths, 60) {
                Ok(lease) => return Some((index, lease)),
                Err(StoreError::LeaseLost { .. }) => {}
                Err(error) => panic!("{error}"),
            }
        }
        None
    }
    both(|play| {
        let wishes: Vec<Vec<String>> = (1..=4).map(|n| vec![format!("drafts/c{n}.md")]).collect();
        let taken: Vec<usize> = std::thread::scope(|scope| {
            let claimers: Vec<_> = (0..6)
                .map(|_| {
                    let wishes = &wishes;
                    scope.spawn(move || take_first(&play.open(), wishes).map(|(index, _)| index))
                })
                .collect();
            claimers
                .into_iter()
                .filter_map(|c| c.join().unwrap())
                .collect()
        });
        assert_eq!(
            taken.iter().copied().collect::<BTreeSet<_>>(),
            (0..4).collect(),
            "{taken:?}"
        );
        assert_eq!(taken.len(), 4);
        let store = play.open();
        assert!(take_first(&store, &wishes).is_none());
        let held = store.leases().unwrap();
        assert_eq!(
            held.iter().map(|l| l.fence).collect::<BTreeSet<_>>().len(),
            4,
            "two leases share a number"
        );
        store
            .release_lease(&Actor::Person, &held[0].id, None)
            .unwrap();
        let (_, again) = take_first(&store, &wishes).unwrap();
        assert_eq!(again.paths, held[0].paths);
    });
}

#[test]
fn a_session_ends_in_the_record_of_the_commit_that_finishes_it() {
    both(|play| {
        let store = play.open();
        let begun = store.begin_session(&Actor::Person, 600).unwrap();
        let mut change =
            Change::by(&Actor::Person).append(&Playground::path("meta/a.md"), "done\n");
        change.ends = Some(begun.id.clone());
        let receipt = store.validate(change).unwrap().publish().unwrap();
        assert_eq!(receipt.seq, begun.seq + 1);
        assert!(store.sessions().unwrap().is_empty());
        assert_eq!(store.log(1).unwrap()[0].kind, Kind::Commit);
    });
}

#[test]
fn what_is_refused_leaves_nothing() {
    both(|play| {
        let store = play.open();
        append(&store, "meta/a.md", "a\n").unwrap();
        let refused = store.validate(
            Change::by(&Actor::Person)
                .append(&Playground::path("meta/a.md"), "b\n")
                .write(
                    &Playground::path("meta/a.md"),
                    "rewritten\n",
                    quipu_store::Expect::Any,
                ),
        );
        assert!(matches!(refused.map(|_| ()), Err(StoreError::Refused(_))));
        assert_eq!(store.pulse().unwrap(), 1);
        assert_eq!(play.text("meta/a.md").unwrap(), "a\n");
        history_is_whole(&store);
    });
}

fn history_is_whole(store: &Store) {
    let seqs: Vec<u64> = store
        .log(usize::MAX)
        .unwrap()
        .iter()
        .rev()
        .map(|e| e.seq)
        .collect();
    assert_eq!(seqs, (1..=seqs.len() as u64).collect::<Vec<_>>());
}
