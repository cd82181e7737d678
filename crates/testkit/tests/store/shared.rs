//! Working copies of one project in PostgreSQL: one order, many folders.

use quipu_contract::Actor;
use quipu_store::{Change, Expect, Op, Store, StoreError, Version};
use quipu_testkit::Playground;
use serde_json::json;

fn append(store: &Store, path: &str, text: &str) -> Result<quipu_store::Receipt, StoreError> {
    store.judge(Change::by(&Actor::Person).append(&Playground::path(path), text))?.publish()
}

fn write(store: &Store, path: &str, text: &str, on: Option<&Version>) -> Result<quipu_store::Receipt, StoreError> {
    let expect = on.map_or(Expect::Any, |version| Expect::Version(version.clone()));
    store.judge(Change::by(&Actor::Person).write(&Playground::path(path), text, expect))?.publish()
}

#[test]
fn two_working_copies_share_one_order() {
    let one = Playground::shared();
    let two = one.another();
    let (first, second) = (one.open(), two.open());
    assert_eq!(append(&first, "meta/a.md", "one\n").unwrap().seq, 1);
    // The other has seen nothing and appends to the same file: it learns of it on the way.
    assert_eq!(append(&second, "meta/a.md", "two\n").unwrap().seq, 2);
    assert_eq!(two.text("meta/a.md").unwrap(), "one\ntwo\n");
    assert_eq!(one.text("meta/a.md").unwrap(), "one\n");
    let synced = first.sync().unwrap();
    assert_eq!((synced.from, synced.to), (1, 2));
    assert_eq!(one.text("meta/a.md").unwrap(), "one\ntwo\n");
    for store in [&first, &second] {
        assert_eq!(store.verify().unwrap().problems, []);
        assert_eq!(store.log(10).unwrap().len(), 2);
    }
    second
        .judge(Change::by(&Actor::Person).op(Op::Merge { path: Playground::path("state.json"), value: json!({"a": 1}) }))
        .unwrap()
        .publish()
        .unwrap();
    first
        .judge(Change::by(&Actor::Person).op(Op::Merge { path: Playground::path("state.json"), value: json!({"b": 2}) }))
        .unwrap()
        .publish()
        .unwrap();
    second.sync().unwrap();
    assert_eq!(one.text("state.json"), two.text("state.json"));
    assert_eq!(one.text("state.json").unwrap(), "{\n  \"a\": 1,\n  \"b\": 2\n}\n");
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
    let StoreError::Stale { kept: Some(kept), .. } = &error else { panic!("{error:?}") };
    assert_eq!(two.text(kept).unwrap(), "slow\n");
    assert!(error.to_string().contains(kept), "{error}");
    assert_eq!(two.text("drafts/ch01.md").unwrap(), "quick\n");
}
