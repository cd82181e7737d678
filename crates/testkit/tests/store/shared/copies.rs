//! Several concurrent working copies: they follow one commit log, and none overwrites an external
//! edit in another.

use std::collections::BTreeSet;
use std::io::Write;
use std::time::Duration;

use quipu_contract::Actor;
use quipu_store::{Change, Kind, Op, StoreError};
use quipu_testkit::Playground;
use quipu_testkit::postgres::Cluster;
use serde_json::json;

use super::{append, id_of, lost, write, write_with};

#[test]
fn two_working_copies_share_one_order() {
    let one = Playground::shared();
    let two = one.another();
    let (first, second) = (one.open(), two.open());
    assert_eq!(append(&first, "meta/a.md", "one\n").unwrap().seq, 1);
    // The other copy has seen nothing and appends to the same file. It gets the first record on the
    // way.
    assert_eq!(append(&second, "meta/a.md", "two\n").unwrap().seq, 2);
    assert_eq!(two.text("meta/a.md").unwrap(), "one\ntwo\n");
    assert_eq!(one.text("meta/a.md").unwrap(), "one\n");
    let synced = first.sync().unwrap();
    assert_eq!((synced.from, synced.to), (1, 2));
    assert_eq!(one.text("meta/a.md").unwrap(), "one\ntwo\n");
    let merge = |value| {
        Change::by(&Actor::Person).op(Op::Merge {
            path: Playground::path("state.json"),
            value,
        })
    };
    second
        .validate(merge(json!({"a": 1})))
        .unwrap()
        .publish()
        .unwrap();
    first
        .validate(merge(json!({"b": 2})))
        .unwrap()
        .publish()
        .unwrap();
    second.sync().unwrap();
    assert_eq!(
        one.text("state.json").unwrap(),
        "{\n  \"a\": 1,\n  \"b\": 2\n}\n"
    );
    assert_eq!(one.files(), two.files());
    for store in [&first, &second] {
        assert_eq!(store.verify().unwrap().problems, []);
        assert_eq!(store.log(10).unwrap().len(), 4);
    }
    // The log has the same actors everywhere.
    let told = |store: &quipu_store::Store| {
        store
            .blame(&Playground::path("meta/a.md"))
            .unwrap()
            .iter()
            .map(|l| l.seq)
            .collect::<Vec<_>>()
    };
    assert_eq!(told(&first), told(&second));
}

#[test]
fn a_stale_replace_keeps_the_losers_bytes() {
    let one = Playground::shared();
    let two = one.another();
    let (first, second) = (one.open(), two.open());
    let begun = write(&first, "drafts/ch01.md", "begun\n", None).unwrap();
    second.sync().unwrap();
    let version = begun.versions["drafts/ch01.md"].clone();
    write(&first, "drafts/ch01.md", "quick\n", Some(&version)).unwrap();
    let error = write(&second, "drafts/ch01.md", "slow\n", Some(&version)).unwrap_err();
    let StoreError::Stale {
        kept: Some(kept), ..
    } = &error
    else {
        panic!("{error:?}")
    };
    assert_eq!(two.text(kept).unwrap(), "slow\n");
    assert!(error.to_string().contains(kept), "{error}");
    assert_eq!(two.text("drafts/ch01.md").unwrap(), "quick\n");
}

#[test]
fn many_copies_that_write_at_once_end_alike() {
    let first = Playground::shared();
    let copies: Vec<Playground> = (0..4).map(|_| first.another()).collect();
    let (threads, commits) = (2, 8);
    std::thread::scope(|scope| {
        for (copy, play) in copies.iter().enumerate() {
            for thread in 0..threads {
                scope.spawn(move || {
                    let store = play.open();
                    for n in 0..commits {
                        let line = format!("{copy}.{thread}.{n}\n");
                        let change = Change::by(&Actor::Person)
                            .append(&Playground::path("meta/shared.md"), line.as_bytes())
                            .op(Op::Merge {
                                path: Playground::path("state.json"),
                                value: json!({format!("{copy}.{thread}"): n}),
                            });
                        store.validate(change).unwrap().publish().unwrap();
                    }
                });
            }
        }
    });
    for play in &copies {
        play.open().sync().unwrap();
        assert_eq!(play.open().verify().unwrap().problems, []);
        assert_eq!(play.files(), copies[0].files());
        let compared = play.open().compare_log().unwrap().unwrap();
        assert_eq!(
            (compared.agree, compared.differ),
            (play.open().pulse().unwrap(), 0)
        );
    }
    let text = copies[0].text("meta/shared.md").unwrap();
    assert_eq!(
        text.lines().collect::<BTreeSet<_>>().len(),
        copies.len() * threads * commits
    );
    assert_eq!(text.lines().count(), copies.len() * threads * commits);
    assert_eq!(
        copies[0].open().pulse().unwrap(),
        (copies.len() * threads * commits) as u64
    );
    assert_eq!(
        Cluster::shared().sql(&format!("SELECT * FROM quipu.examine({})", id_of(&first))),
        ""
    );
}

/// Times in a project with a newest record from a wrong database clock.
#[test]
fn a_record_of_the_future_does_not_hold_back_later_times() {
    let play = Playground::shared();
    let store = play.open();
    append(&store, "meta/a.md", "one\n").unwrap();
    let id = id_of(&play);
    let year = 365 * 86_400_000_000_i64;
    Cluster::shared().sql(&format!(
        "UPDATE quipu.project SET at_us = at_us + {year} WHERE id = {id}"
    ));
    append(&store, "meta/a.md", "two\n").unwrap();
    let ahead = Cluster::shared().sql(&format!(
        "SELECT max(at_us) > quipu.now_us() FROM quipu.log WHERE project = {id}"
    ));
    assert_eq!(ahead.trim(), "f");
    // A clock that was set back by less than a minute is waited for, so that times stay in order.
    Cluster::shared().sql(&format!(
        "UPDATE quipu.project SET at_us = quipu.now_us() + 30000000 WHERE id = {id}"
    ));
    append(&store, "meta/a.md", "three\n").unwrap();
    let ahead = Cluster::shared().sql(&format!(
        "SELECT max(at_us) > quipu.now_us() FROM quipu.log WHERE project = {id}"
    ));
    assert_eq!(ahead.trim(), "t");
}

#[test]
fn an_edit_by_hand_is_never_written_over() {
    let one = Playground::shared();
    let two = one.another();
    let (first, second) = (one.open(), two.open());
    first.scan_status().unwrap();
    append(&first, "meta/a.md", "begin\n").unwrap();
    write(&first, "drafts/ch01.md", "begun\n", None).unwrap();
    second.sync().unwrap();
    // Both files are edited here, and changed there.
    std::fs::File::options()
        .append(true)
        .open(two.file("meta/a.md"))
        .unwrap()
        .write_all(b"by hand\n")
        .unwrap();
    two.edit("drafts/ch01.md", "edited by hand\n");
    append(&first, "meta/a.md", "from afar\n").unwrap();
    write(&first, "drafts/ch01.md", "from afar\n", None).unwrap();
    let synced = second.sync().unwrap();
    // The externally appended text comes after the earlier commit, and is still an append.
    assert_eq!(
        two.text("meta/a.md").unwrap(),
        "begin\nfrom afar\nby hand\n"
    );
    assert_eq!(two.text("drafts/ch01.md").unwrap(), "from afar\n");
    assert_eq!(synced.conflicts.len(), 1, "{synced:?}");
    assert_eq!(two.text(&synced.conflicts[0]).unwrap(), "edited by hand\n");
    let scan = second.scan_status().unwrap();
    assert_eq!(
        scan.adopted
            .iter()
            .map(|a| (a.path.as_str(), a.how))
            .collect::<Vec<_>>(),
        [("meta/a.md", "grew")]
    );
    assert_eq!(scan.flagged().count(), 0);
    first.sync().unwrap();
    assert_eq!(
        one.text("meta/a.md").unwrap(),
        "begin\nfrom afar\nby hand\n"
    );
    // The replaced bytes are in everyone's history, too.
    let aside = first
        .log(usize::MAX)
        .unwrap()
        .into_iter()
        .find(|e| e.kind == Kind::ConflictCopy)
        .unwrap();
    assert_eq!(
        first
            .conflict_copies_of(aside.seq, &Playground::path("drafts/ch01.md"))
            .unwrap()
            .unwrap(),
        b"edited by hand\n"
    );
    assert_eq!(one.files(), two.files());
}

#[test]
fn an_adopted_edit_reaches_the_others_files() {
    let one = Playground::shared();
    let two = one.another();
    one.edit("drafts/ch02.md", "written with an editor\n");
    one.edit("state.json", "{\"n\": 1}\n");
    let scan = one.open().scan_status().unwrap();
    assert!(scan.adopted.len() >= 2, "{scan:?}");
    two.open().sync().unwrap();
    assert_eq!(one.files(), two.files());
    std::fs::remove_file(one.file("drafts/ch02.md")).unwrap();
    one.open().scan_status().unwrap();
    two.open().sync().unwrap();
    assert_eq!(two.text("drafts/ch02.md"), None);
    assert_eq!(two.open().verify().unwrap().problems, []);
}

#[test]
fn an_expired_lease_is_refused_by_the_clock_of_the_database() {
    let one = Playground::shared();
    let (two, three) = (one.another(), one.another());
    let (first, second) = (one.open(), two.open());
    let lease = first
        .take_lease(&Actor::Person, &["drafts/ch01.md".into()], 3600)
        .unwrap();
    // The other copy has not synced and does not know of it.
    lost(write(&second, "drafts/ch01.md", "theirs\n", None));
    lost(second.take_lease(&Actor::Person, &["drafts/ch01.md".into()], 60));
    Cluster::shared().sql(&format!(
        "UPDATE quipu.lease SET until_us = quipu.now_us() - 1 WHERE project = {}",
        id_of(&one)
    ));
    // By its own clock, the holder has the lease for another hour.
    lost(write_with(
        &first,
        "drafts/ch01.md",
        "late\n",
        lease.token(),
    ));
    lost(first.renew_lease(&Actor::Person, &lease.token(), 60));
    assert_eq!(one.text("drafts/ch01.md"), None);
    // This copy has not heard of the lease, so only the database decides.
    let third = three.open();
    let newer = third
        .take_lease(&Actor::Person, &["drafts/ch01.md".into()], 60)
        .unwrap();
    assert!(newer.fence > lease.fence);
    lost(write_with(
        &first,
        "drafts/ch01.md",
        "late\n",
        lease.token(),
    ));
    write_with(&third, "drafts/ch01.md", "in time\n", newer.token()).unwrap();
}

/// An answer has a size limit; the copy requests the rest before its own commit.
#[test]
fn a_copy_that_is_far_behind_commits_all_the_same() {
    let one = Playground::shared();
    let two = one.another();
    let (first, second) = (one.open(), two.open());
    let large = "0123456789abcdef".repeat(1 << 16);
    for number in 10..21 {
        write(&first, &format!("drafts/ch{number}.md"), &large, None).unwrap();
    }
    assert_eq!(append(&second, "meta/a.md", "mine\n").unwrap().seq, 12);
    assert_eq!(two.text("drafts/ch20.md").unwrap(), large);
    first.sync().unwrap();
    assert_eq!(one.files(), two.files());
    assert_eq!(second.verify().unwrap().problems, []);
}

#[test]
fn a_wait_ends_when_another_copy_commits() {
    let one = Playground::shared();
    let two = one.another();
    let (first, second) = (one.open(), two.open());
    append(&first, "meta/a.md", "one\n").unwrap();
    assert!(second.wait(Duration::from_secs(10)).unwrap());
    second.sync().unwrap();
    assert!(!second.wait(Duration::from_millis(1)).unwrap());
    std::thread::scope(|scope| {
        let waiter = scope.spawn(|| second.wait(Duration::from_secs(30)).unwrap());
        append(&first, "meta/a.md", "two\n").unwrap();
        assert!(waiter.join().unwrap());
    });
}

#[test]
fn a_contract_that_changed_elsewhere_is_judged_by_anew() {
    let one = Playground::shared();
    let (first, two) = (one.open(), one.another());
    first.scan_status().unwrap();
    let second = two.open();
    second.sync().unwrap();
    append(&second, "meta/a.md", "by the old contract\n").unwrap();
    // A person changes the contract in the first copy.
    let text = one.text("quipu.toml").unwrap();
    write(
        &first,
        "quipu.toml",
        &format!("{text}\n[[files]]\npath = \"new.md\"\nclass = \"sealed\"\n"),
        None,
    )
    .unwrap();
    let refused = append(&second, "meta/a.md", "still by the old one\n").unwrap_err();
    assert!(
        refused.to_string().contains("the contract has changed"),
        "{refused}"
    );
    assert_eq!(two.text("quipu.toml"), one.text("quipu.toml"));
    append(&two.open(), "meta/a.md", "by the new one\n").unwrap();
}
