//! Moves a project between backends with its complete history; and tests incompatible schemas.

use quipu_contract::{Actor, Keep};
use quipu_postgres::{Address, Attachment, Postgres, checkout, detach, push};
use quipu_store::{At, Change, Expect, Options, Store};
use quipu_testkit::postgres::Cluster;
use quipu_testkit::{CONTRACT, Playground, contract, open_store, temp_folder};

use super::{append, id_of, write};

fn alone(play: &Playground) -> Store {
    play.open_with(Options {
        alone: true,
        ..Options::default()
    })
}

/// Creates a project with some of everything: large and binary bytes, a removal, a lease, a
/// session, an amendment, an external edit.
fn lived() -> Playground {
    let play = Playground::local();
    let store = alone(&play);
    append(&store, "meta/a.md", "一\n").unwrap();
    let large = "0123456789".repeat(5000);
    for path in ["drafts/ch01.md", "drafts/ch02.md"] {
        write(&store, path, &large, None).unwrap();
    }
    let binary = Change::by(&Actor::Person).write(
        &Playground::path("blob.bin"),
        vec![0, 255, 1, 0],
        Expect::Any,
    );
    store
        .validate(binary.key("a key").note(serde_json::json!({"n": 1})))
        .unwrap()
        .publish()
        .unwrap();
    write(&store, "drafts/ch02.md", "shorter, by force\n", None).unwrap_err();
    store
        .validate(Change::by(&Actor::Person).op(quipu_store::Op::Remove {
            path: Playground::path("drafts/ch02.md"),
            expect: Expect::Any,
        }))
        .unwrap()
        .publish()
        .unwrap();
    store
        .take_lease(&Actor::Person, &["drafts/ch01.md".into()], 3600)
        .unwrap();
    store.begin_session(&Actor::Person, 600).unwrap();
    play.edit("meta/a.md", "一\nby hand\n");
    store.scan_status().unwrap();
    play
}

/// Returns the history, without storage offsets.
fn told(store: &Store) -> String {
    let mut text = String::new();
    for entry in store.log(usize::MAX).unwrap() {
        text.push_str(&format!(
            "{} {} {} {:?} {} {:?} {:?}\n",
            entry.seq, entry.id, entry.at, entry.kind, entry.who, entry.why, entry.paths
        ));
    }
    for event in store.events(&Playground::path("meta/a.md")).unwrap() {
        text.push_str(&format!("{} {} {}\n", event.seq, event.version, event.len));
    }
    text
}

#[test]
fn a_project_moves_there_and_back_with_its_whole_history() {
    let (cluster, play) = (Cluster::shared(), lived());
    let before = told(&alone(&play));
    let name = cluster.fresh_name();
    let address = Address::parse(&cluster.url(&name)).unwrap();
    let moved = push(&alone(&play), &address, &name).unwrap();
    assert_eq!(moved.records, alone(&play).pulse().unwrap());
    let store = play.open();
    assert_eq!(told(&store), before);
    assert_eq!(store.examine_commit_log().unwrap(), []);
    let folder = temp_folder();
    let copy = folder.path().join("copy");
    checkout(&address, &name, &copy).unwrap();
    let there = open_store(&copy, contract(CONTRACT), Options::default());
    assert_eq!(told(&there), before);
    for store in [&store, &there] {
        let compared = store.compare_log().unwrap().unwrap();
        assert_eq!(
            (compared.agree, compared.differing.as_slice()),
            (moved.records, &[][..])
        );
    }
    assert_eq!(alone(&lived()).compare_log().unwrap(), None);
    assert_eq!(
        std::fs::read(copy.join("blob.bin")).unwrap(),
        [0, 255, 1, 0]
    );
    assert_eq!(
        std::fs::read_to_string(copy.join("drafts/ch01.md")).unwrap(),
        "0123456789".repeat(5000)
    );
    assert!(!copy.join("drafts/ch02.md").exists());
    assert_eq!(there.verify().unwrap().problems, []);
    assert_eq!(there.leases().unwrap().len(), 1);
    assert_eq!(there.sessions().unwrap().len(), 1);
    let older = there
        .text_at(&Playground::path("meta/a.md"), &At::Back(1))
        .unwrap()
        .0;
    assert_eq!(older, "一\n".as_bytes());
    // Large bodies are stored once.
    let hashes = cluster.sql(&format!(
        "SELECT count(hash), count(DISTINCT hash) FROM quipu.op WHERE project = {}",
        id_of(&play)
    ));
    assert_eq!(hashes, "2|1");
    // An idempotency key from before the move is known everywhere.
    let again = Change::by(&Actor::Person)
        .write(
            &Playground::path("blob.bin"),
            vec![0, 255, 1, 0],
            Expect::Any,
        )
        .key("a key");
    assert!(there.validate(again).unwrap().publish().unwrap().repeated);
    append(&there, "meta/a.md", "from the copy\n").unwrap();
    let detached = detach(&store).unwrap();
    assert_eq!(detached.records, there.pulse().unwrap());
    let own = play.open();
    assert!(own.commit_log().is_none());
    append(&own, "meta/a.md", "alone again\n").unwrap();
    assert_eq!(
        play.text("meta/a.md").unwrap(),
        "一\nby hand\nfrom the copy\nalone again\n"
    );
    assert_eq!(own.verify().unwrap().problems, []);
    // The shared project continued from its state, and its history is no longer a prefix of the
    // other's.
    append(&there, "meta/a.md", "not alone\n").unwrap();
    let refused = push(&alone(&play), &address, &name).unwrap_err();
    assert!(
        refused.to_string().contains("with another history"),
        "{refused}"
    );
}

/// A working copy is not pruned: the shared store keeps the whole history. Versions that were
/// pruned before stay pruned.
#[test]
fn a_pruned_project_moves_there_and_back() {
    let (cluster, play) = (Cluster::shared(), Playground::local());
    let store = alone(&play);
    for number in 0..3 {
        write(&store, "drafts/ch01.md", &format!("draft {number}\n"), None).unwrap();
    }
    assert_eq!(
        store
            .prune(&Actor::Person, Keep::Versions(1))
            .unwrap()
            .texts,
        2
    );
    drop(store);
    let name = cluster.fresh_name();
    let address = Address::parse(&cluster.url(&name)).unwrap();
    push(&alone(&play), &address, &name).unwrap();
    let folder = temp_folder();
    let copy = folder.path().join("copy");
    checkout(&address, &name, &copy).unwrap();
    for store in [
        play.open(),
        open_store(&copy, contract(CONTRACT), Options::default()),
    ] {
        let found = store.verify().unwrap();
        assert_eq!((found.problems, found.dropped), (vec![], 2));
        write(&store, "drafts/ch01.md", "one more\n", None).unwrap();
        let refused = store.prune(&Actor::Person, Keep::Versions(1)).unwrap_err();
        assert!(
            refused.to_string().contains("this is a working copy"),
            "{refused}"
        );
    }
    detach(&play.open()).unwrap();
    let own = play.open();
    assert!(own.prune(&Actor::Person, Keep::Versions(1)).unwrap().texts > 0);
    assert_eq!(own.verify().unwrap().problems, []);
}

#[test]
fn a_push_that_was_cut_short_goes_on() {
    let (cluster, play) = (Cluster::shared(), lived());
    let name = cluster.fresh_name();
    let address = Address::parse(&cluster.url(&name)).unwrap();
    push(&alone(&play), &address, &name).unwrap();
    // As if the command had been killed midway: half of the data is there, and the folder has no
    // attachment.
    let id = id_of(&play);
    Attachment::forget(play.root()).unwrap();
    for table in ["op", "log"] {
        cluster.sql(&format!(
            "DELETE FROM quipu.{table} WHERE project = {id} AND rev > 3"
        ));
    }
    cluster.sql(&format!("UPDATE quipu.project SET rev = 3 WHERE id = {id}"));
    append(&alone(&play), "meta/a.md", "meanwhile\n").unwrap();
    let moved = push(&alone(&play), &address, &name).unwrap();
    assert_eq!(moved.records, alone(&play).pulse().unwrap());
    assert_eq!(play.open().examine_commit_log().unwrap(), []);
}

#[test]
fn a_program_that_runs_on_does_not_write_beside_the_order() {
    let (cluster, play) = (Cluster::shared(), lived());
    let old = alone_by_default(&play);
    append(&old, "meta/a.md", "before\n").unwrap();
    let name = cluster.fresh_name();
    push(
        &alone(&play),
        &Address::parse(&cluster.url(&name)).unwrap(),
        &name,
    )
    .unwrap();
    let refused = append(&old, "meta/a.md", "beside\n").unwrap_err();
    assert!(
        refused.to_string().contains("became a working copy"),
        "{refused}"
    );
    append(&play.open(), "meta/a.md", "after\n").unwrap();
    assert!(append(&old, "meta/a.md", "beside\n").is_err());
    assert!(play.text("meta/a.md").unwrap().ends_with("before\nafter\n"));
}

/// Opens the project like a program that was started before the move.
fn alone_by_default(play: &Playground) -> Store {
    play.open()
}

#[test]
fn an_unknown_schema_is_not_touched() {
    let cluster = Cluster::start();
    let play = Playground::shared_in(&cluster);
    append(&play.open(), "meta/a.md", "one\n").unwrap();
    cluster.sql("INSERT INTO quipu.migration (version) VALUES (99)");
    let error = append(&play.open(), "meta/a.md", "two\n").unwrap_err();
    assert!(
        error
            .to_string()
            .contains("has schema 99, but this version of Quipu supports"),
        "{error}"
    );
    assert!(
        Postgres::at(&Address::parse(&cluster.url("")).unwrap())
            .migrate()
            .is_err()
    );
    cluster.sql("DELETE FROM quipu.migration WHERE version > 0");
    cluster.sql("DROP SCHEMA quipu CASCADE");
    let error = append(&play.open(), "meta/a.md", "two\n").unwrap_err();
    assert!(
        error.to_string().contains("contains no Quipu store"),
        "{error}"
    );
    assert_eq!(play.text("meta/a.md").unwrap(), "one\n");
}

#[test]
fn an_older_schema_becomes_the_newest_with_what_it_holds() {
    let cluster = Cluster::start();
    let first = include_str!("../../../../postgres/src/migrations/0001.sql");
    cluster.sql(&format!(
        "{first}; INSERT INTO quipu.migration (version) VALUES (1)"
    ));
    let (name, version) = ("old", "0123456789abcdef");
    cluster.sql(&format!("SELECT quipu.found('{name}')"));
    let body = format!(
        r#"{{"v":1,"kind":"commit","who":{{"kind":"person"}},"ops":[{{"op":"write","path":"drafts/ch01.md","class":"overwrite","version":"{version}","len":4}}]}}"#
    );
    let commit =
        "quipu.commit((SELECT id FROM quipu.project), 0, '', ARRAY[gen_random_uuid()::text], ARRAY[$b$BODY$b$], ARRAY[NULL]::text[],
        ARRAY['old\n'::bytea], NULL, NULL, NULL)";
    cluster.sql(&format!("SELECT * FROM {}", commit.replace("BODY", &body)));
    let address = Address::parse(&cluster.url(name)).unwrap();
    let folder = temp_folder();
    let old = checkout(&address, name, &folder.path().join("too-early")).unwrap_err();
    assert!(
        old.to_string()
            .contains("has schema 1, but this version of Quipu needs"),
        "{old}"
    );
    assert_eq!(Postgres::at(&address).migrate().unwrap(), 1);
    let copy = folder.path().join("copy");
    checkout(&address, name, &copy).unwrap();
    assert_eq!(
        std::fs::read_to_string(copy.join("drafts/ch01.md")).unwrap(),
        "old\n"
    );
    let store = open_store(&copy, contract(CONTRACT), Options::default());
    assert_eq!(append(&store, "meta/a.md", "new\n").unwrap().seq, 2);
    assert_eq!(store.examine_commit_log().unwrap(), []);
}
