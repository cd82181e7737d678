//! Tests of a worker's database role with its own SQL: it can read and commit, and nothing else.

use std::sync::Once;

use quipu_contract::{Actor, ProjectPath};
use quipu_store::{Change, FORMAT, Op, StoreError};
use quipu_testkit::Playground;
use quipu_testkit::postgres::Cluster;

use super::{append, id_of, lost, write, write_with};

/// Creates two hosts with separate logins, and a keeper.
fn cluster() -> &'static Cluster {
    static ROLES: Once = Once::new();
    let cluster = Cluster::shared();
    drop(Playground::shared()); // creates the schema
    ROLES.call_once(|| {
        cluster.sql(quipu_postgres::roles());
        cluster.sql("CREATE ROLE host1 LOGIN IN ROLE quipu_worker; CREATE ROLE host2 LOGIN IN ROLE quipu_worker; CREATE ROLE ann LOGIN IN ROLE quipu_keeper");
        cluster.sql("CREATE ROLE stranger LOGIN");
    });
    cluster
}

fn as_role(play: &Playground, role: &str) -> Playground {
    play.another_at(
        &play
            .attachment()
            .address
            .replace("//quipu@", &format!("//{role}@")),
    )
}

#[test]
fn a_worker_touches_no_table() {
    let (cluster, play) = (cluster(), Playground::shared());
    append(&play.open(), "meta/a.md", "one\n").unwrap();
    for table in [
        "project", "log", "op", "body", "head", "key", "lease", "worker",
    ] {
        for sql in [
            format!("SELECT * FROM quipu.{table}"),
            format!("DELETE FROM quipu.{table}"),
            format!("TRUNCATE quipu.{table} CASCADE"),
            format!("DROP TABLE quipu.{table}"),
            format!("ALTER TABLE quipu.{table} DISABLE TRIGGER ALL"),
        ] {
            for role in ["host1", "ann", "stranger"] {
                let refused = cluster.try_sql(role, &sql).unwrap_err();
                assert!(
                    refused.contains("permission denied") || refused.contains("must be owner"),
                    "{role}: {sql}: {refused}"
                );
            }
        }
    }
    for sql in [
        "UPDATE quipu.log SET body = '{}'",
        "UPDATE quipu.project SET rev = 0",
        "INSERT INTO quipu.migration (version) VALUES (99)",
        "CREATE FUNCTION quipu.keeps() RETURNS boolean LANGUAGE sql AS 'SELECT true'",
        "GRANT quipu_keeper TO host1",
        "SET ROLE quipu",
        "SET SESSION AUTHORIZATION ann",
    ] {
        assert!(cluster.try_sql("host1", sql).is_err(), "{sql}");
    }
}

#[test]
fn a_worker_calls_only_what_checks() {
    let (cluster, play) = (cluster(), Playground::shared());
    let id = id_of(&play);
    for call in [
        format!("quipu.write_down({id}, 1, gen_random_uuid(), 0, '{{}}', '{{}}', NULL, NULL, 0)"),
        format!("quipu.lease_event({id}, '{{}}', 0, 0)"),
        format!("quipu.rows_between({id}, 0, 9)"),
        format!("quipu.load({id}, 0, '{{}}', '{{}}', '{{}}', '{{}}', '{{}}')"),
        "quipu.found('mine')".to_owned(),
        "quipu.keep()".to_owned(),
    ] {
        let refused = cluster
            .try_sql("host1", &format!("SELECT {call}"))
            .unwrap_err();
        assert!(
            refused.contains("permission denied for function"),
            "{call}: {refused}"
        );
    }
    let refused = cluster
        .try_sql("stranger", &format!("SELECT quipu.head_rev({id})"))
        .unwrap_err();
    assert!(refused.contains("permission denied"), "{refused}");
    // Temporary names of a session must not shadow those of the functions.
    let shadowed = "CREATE TEMP TABLE lease (project uuid); CREATE TEMP TABLE project (id uuid); SET search_path = pg_temp, quipu";
    cluster
        .try_sql(
            "host1",
            &format!("{shadowed}; SELECT * FROM quipu.after({id}, 0, '')"),
        )
        .unwrap();
}

#[test]
fn a_worker_works_and_cannot_rewrite_history() {
    cluster();
    let play = Playground::shared();
    let owner = play.open();
    append(&owner, "meta/a.md", "one\n").unwrap();
    write(&owner, "outline.md", "sealed\n", None).unwrap();
    write(&owner, "rules/own/profile.toml", "about = \"ours\"\n", None).unwrap();
    owner.scan_status().unwrap();
    let host = as_role(&play, "host1");
    let store = host.open();
    append(&store, "meta/a.md", "two\n").unwrap();
    write(&store, "drafts/ch01.md", "a draft\n", None).unwrap();
    write(&store, "drafts/ch01.md", "another draft\n", None).unwrap();
    // The program refuses these; here the database refuses them, without trust in the program.
    let refused = |sql_kind: &str, path: &str, op: &str, class: &str| {
        let head = Cluster::shared().sql(&format!(
            "SELECT version FROM quipu.head WHERE project = {} AND path = '{path}'",
            id_of(&play)
        ));
        let base = if head.is_empty() {
            String::new()
        } else {
            format!(",\"base\":\"{head}\"")
        };
        let body = format!(
            "{{\"v\":{FORMAT},\"kind\":\"{sql_kind}\",\"who\":{{\"kind\":\"person\"}},\"ops\":[{{\"op\":\"{op}\",\"path\":\"{path}\",\"class\":\"{class}\",\"version\":\"ff\",\"len\":3{base}}}]}}"
        );
        let call = format!(
            "SELECT verdict, what FROM quipu.commit({}, 0, '', ARRAY[gen_random_uuid()::text], ARRAY['{body}'], ARRAY[NULL]::text[], ARRAY['abc'::bytea], NULL, NULL, '{{}}') LIMIT 1",
            id_of(&play)
        );
        Cluster::shared().try_sql("host1", &call).unwrap()
    };
    for (kind, path, op, class) in [
        ("commit", "meta/a.md", "write", "append"),
        ("commit", "meta/a.md", "remove", "append"),
        ("restore", "meta/a.md", "write", "append"),
        ("adopt", "meta/a.md", "write", "append"),
        ("commit", "meta/a.md", "write", "overwrite"),
        ("commit", "meta/a.md", "append", "overwrite"),
        ("commit", "outline.md", "write", "sealed"),
        ("amend", "outline.md", "write", "sealed"),
        ("amend", "drafts/ch01.md", "write", "overwrite"),
        ("commit", "outline.md", "append", "append"),
        ("commit", "quipu.toml", "write", "overwrite"),
        ("commit", "new/profile.toml", "write", "overwrite"),
        ("commit", "rules/own/roles.toml", "write", "free"),
        ("commit", "../outside.md", "write", "free"),
        ("commit", "a/../../outside.md", "write", "free"),
        (".", "/etc/passwd", "write", "free"),
        ("commit", ".quipu/shared", "write", "free"),
        ("commit", "drafts/ch01.md", "scribble", "overwrite"),
        // Names that no working copy accepts.
        ("commit", "x/.git/hooks/h", "write", "free"),
        ("commit", "x/.GIT/h", "write", "free"),
        ("commit", "x/git~1/h", "write", "free"),
        ("commit", "x/.quipu/watermarks", "write", "free"),
        ("commit", &"n".repeat(300), "write", "free"),
        ("commit", &"a/".repeat(600), "write", "free"),
        ("commit", "right\u{202e}left.md", "write", "free"),
        ("commit", "two\\nlines.md", "write", "free"),
        ("commit", "e\u{301}.md", "write", "free"),
        ("commit", "dot./x.md", "write", "free"),
        ("commit", " blank.md", "write", "free"),
        ("commit", "wide\u{3000}/x.md", "write", "free"),
        ("commit", "none\u{10ffff}.md", "write", "free"),
        ("commit", "C:/x.md", "write", "free"),
        // Settings that hosts execute, and contracts of a folder.
        ("commit", ".claude/settings.json", "write", "free"),
        ("commit", "sub/.Claude/settings.local.json", "write", "free"),
        ("commit", ".opencode/tool/x.ts", "write", "free"),
        ("commit", "sub/.opencode/opencode.jsonc", "write", "free"),
        ("commit", ".mcp.json", "write", "free"),
        ("commit", ".cursor/hooks.json", "write", "free"),
        ("commit", "sub/quipu.toml", "write", "free"),
        ("commit", "sub/Quipu.toml/x.md", "write", "free"),
    ] {
        let answer = refused(kind, path, op, class);
        assert!(
            answer.starts_with("refused|") && !answer.contains("format that this store knows"),
            "{kind} {op} {path} as {class}: {answer}"
        );
    }
    // Valid names that would be committed.
    for path in [
        "drafts/第三章.md",
        "drafts/a b.md",
        "drafts/.github/x",
        "drafts/…é.md",
    ] {
        let answer = refused("commit", path, "write", "free");
        assert!(answer.starts_with("accepted|"), "{path}: {answer}");
    }
    assert_eq!(
        play.open().sync().map(|s| s.to).unwrap(),
        store.sync().unwrap().to
    );
    assert_eq!(play.text("meta/a.md").unwrap(), "one\ntwo\n");
    assert_eq!(play.text("outline.md").unwrap(), "sealed\n");
    // A keeper is a person and may do it.
    let ann = as_role(&play, "ann");
    let keeper = ann.open();
    keeper.sync().unwrap();
    let amend = Change::by(&Actor::Person).why("a slip").op(Op::Amend {
        path: Playground::path("outline.md"),
        bytes: Some(b"amended\n".to_vec()),
    });
    keeper.validate(amend).unwrap().publish().unwrap();
    let amend = Change::by(&Actor::Person).why("a slip").op(Op::Amend {
        path: Playground::path("outline.md"),
        bytes: Some(b"again\n".to_vec()),
    });
    store.sync().unwrap();
    let error = store.validate(amend).unwrap().publish().unwrap_err();
    assert!(
        matches!(&error, StoreError::Refused(r) if r.what.contains("this database role may not amend")),
        "{error:?}"
    );
}

/// The program and the database accept the same names: every character inside a component, before
/// and after one.
#[test]
fn names_are_checked_alike_in_sql() {
    let (cluster, _play) = (cluster(), Playground::shared());
    for (before, behind) in [("a", "b"), ("a/", "/b")] {
        let named = |c: char| format!("{before}{c}{behind}");
        let shape = format!("'{before}' || chr(n) || '{behind}'");
        let numbers = "generate_series(1, 131071) n WHERE n NOT BETWEEN 55296 AND 57343";
        let told = cluster.sql(&format!("SELECT string_agg(n::text, ' ' ORDER BY n) FROM {numbers} AND NOT quipu.is_name({shape})"));
        let refused: Vec<u32> = told
            .split(' ')
            .map(|number| number.parse().unwrap())
            .collect();
        let is_refused =
            |c: char| !ProjectPath::parse(&named(c)).is_ok_and(|path| path.as_str() == named(c));
        let expected: Vec<u32> = (1..=131_071)
            .filter_map(char::from_u32)
            .filter(|c| is_refused(*c))
            .map(u32::from)
            .collect();
        let only = |these: &[u32], those: &[u32]| {
            these
                .iter()
                .filter(|n| !those.contains(n))
                .map(|n| format!("{n:x}"))
                .collect::<Vec<_>>()
        };
        assert_eq!(
            (only(&refused, &expected), only(&expected, &refused)),
            (vec![], vec![]),
            "{shape}: only SQL, only the program"
        );
    }
}

/// The log is append-only, so a record that one copy cannot apply must not block the later ones.
#[test]
fn a_record_that_no_copy_can_take_over_stops_none() {
    let (cluster, play) = (cluster(), Playground::shared());
    let writer = play.open();
    write(&writer, "drafts/ch01.md", "one\n", None).unwrap();
    let other = play.another();
    let reader = other.open();
    reader.sync().unwrap();
    let bad = [
        r#"replace(body, 'drafts/bad.md', 'x/.git/hooks/h')"#,
        r#"replace(body, '"len"', '"deltas":"x","len"')"#,
        r#"replace(body, '"ops"', '"note":' || repeat('[', 200) || repeat(']', 200) || ',"ops"')"#,
        r#"'no JSON at all'"#,
    ];
    for body in bad {
        let at = write(&writer, "drafts/bad.md", &format!("{body}\n"), None)
            .unwrap()
            .seq;
        cluster.sql(&format!(
            "UPDATE quipu.log SET body = {body} WHERE project = {} AND rev = {at}",
            id_of(&play)
        ));
        write(&writer, "drafts/ch01.md", &format!("after {at}\n"), None).unwrap();
        assert_eq!(reader.sync().unwrap().to, at + 1, "{body}");
        assert_eq!(
            other.text("drafts/ch01.md").unwrap(),
            format!("after {at}\n")
        );
        assert_eq!(reader.held_back().unwrap().last().unwrap().0, at, "{body}");
        let verified = reader.verify().unwrap();
        assert!(
            verified
                .notices
                .iter()
                .any(|notice| notice.contains(&format!("@{at} "))),
            "{:?}",
            verified.notices
        );
    }
    assert_eq!(
        (other.text("drafts/bad.md"), other.text("x/.git/hooks/h")),
        (None, None)
    );
    assert_eq!(
        reader.compare_log().unwrap().unwrap().differ,
        0,
        "what was held back is what the log holds"
    );
    append(&reader, "meta/a.md", "goes on\n").unwrap();
    let third = play.another();
    third.open().sync().unwrap();
    assert_eq!(third.text("meta/a.md").unwrap(), "goes on\n");
}

/// A delta that does not produce its version: every line of the journal is intact, but the text
/// cannot be rebuilt.
#[test]
fn a_text_that_cannot_be_made_is_reported() {
    let (cluster, play) = (cluster(), Playground::shared());
    let writer = play.open();
    write(&writer, "drafts/ch01.md", "one\n", None).unwrap();
    for bytes in ["[[999999999999,1,\"x\"]]", "no JSON"] {
        let other = play.another();
        let at = write(&writer, "drafts/ch01.md", &format!("with {bytes}\n"), None)
            .unwrap()
            .seq;
        let of = format!("project = {} AND rev = {at}", id_of(&play));
        cluster.sql(&format!("UPDATE quipu.log SET body = replace(body, '\"len\"', '\"splice\":true,\"len\"') WHERE {of}"));
        cluster.sql(&format!("UPDATE quipu.op SET bytes = '{bytes}' WHERE {of}"));
        let reader = other.open();
        reader.sync().unwrap();
        let problems = reader.verify().unwrap().problems;
        assert!(
            problems
                .iter()
                .any(|problem| problem.place == "drafts/ch01.md"),
            "{bytes}: {problems:?}"
        );
    }
}

#[test]
fn a_gate_is_passed_by_a_keeper_and_by_no_worker() {
    cluster();
    let play = Playground::shared();
    let (host, keeper) = (as_role(&play, "host1"), as_role(&play, "ann"));
    for ruling in ["approved", "rejected"] {
        let decided = || {
            Change::by(&Actor::Person)
                .why("gate")
                .note(serde_json::json!({"run": "r", "step": "final", "ruling": ruling}))
        };
        let store = host.open();
        let error = store
            .validate(decided())
            .and_then(quipu_store::Validated::publish)
            .unwrap_err();
        assert!(
            matches!(&error, StoreError::Refused(r) if r.what.contains("a gate is for people")),
            "{error:?}"
        );
        let done = Change::by(&Actor::Person)
            .note(serde_json::json!({"run": "r", "step": "write", "ruling": "accepted"}));
        store.validate(done).unwrap().publish().unwrap();
        keeper
            .open()
            .validate(decided())
            .unwrap()
            .publish()
            .unwrap();
    }
}

#[test]
fn a_lease_belongs_to_the_login_that_took_it() {
    cluster();
    let play = Playground::shared();
    let (one, two) = (as_role(&play, "host1"), as_role(&play, "host2"));
    let (first, second) = (one.open(), two.open());
    let lease = first
        .take_lease(&Actor::Person, &["drafts/ch01.md".into()], 600)
        .unwrap();
    second.sync().unwrap();
    // It knows the id and the number, because everyone can read them in the log.
    lost(write_with(
        &second,
        "drafts/ch01.md",
        "forged\n",
        lease.token(),
    ));
    lost(second.renew_lease(&Actor::Person, &lease.token(), 600));
    lost(second.release_lease(&Actor::Person, &lease.id, Some(lease.fence)));
    write_with(&first, "drafts/ch01.md", "mine\n", lease.token()).unwrap();
    // Workers must not lock others out of everything either.
    lost(second.take_lease(&Actor::Person, &["meta/**".into()], 600));
    let ann = as_role(&play, "ann");
    let keeper = ann.open();
    keeper.sync().unwrap();
    keeper
        .release_lease(&Actor::Person, &lease.id, None)
        .unwrap();
    lost(write_with(
        &first,
        "drafts/ch01.md",
        "late\n",
        lease.token(),
    ));
    let by: String = Cluster::shared()
        .sql(&format!("SELECT string_agg(DISTINCT by_role, ',' ORDER BY by_role) FROM quipu.log WHERE project = {}", id_of(&play)));
    assert_eq!(by, "ann,host1", "the log tells which login wrote what");
}

#[test]
fn a_server_proves_its_name() {
    let cluster = Cluster::start();
    let play = Playground::shared_in(&cluster);
    let authority = cluster.with_tls();
    let at = |host: &str, more: &str| {
        let address = play
            .attachment()
            .address
            .replace("127.0.0.1", host)
            .replace("wait=10", "wait=1")
            .replace("?", &format!("?sslmode=require{more}&"));
        append(&play.another_at(&address).open(), "meta/a.md", "over TLS\n")
    };
    let trusted = format!("&sslrootcert={}", authority.display());
    at("localhost", &trusted).unwrap();
    // Signed by an unknown authority, or issued for another name.
    for refused in [at("localhost", ""), at("127.0.0.1", &trusted)] {
        let error = refused.unwrap_err();
        assert!(
            error.to_string().contains("could not prove its identity"),
            "{error}"
        );
    }
    cluster.sql("ALTER SYSTEM SET ssl = off");
    cluster.stop();
    cluster.restart();
    assert!(
        matches!(
            at("localhost", &trusted),
            Err(StoreError::Unreachable { .. })
        ),
        "never without TLS once it was asked for"
    );
}

#[test]
fn a_password_is_asked_for_and_never_told() {
    let (cluster, play) = (cluster(), Playground::shared());
    cluster.sql("DO $$ BEGIN IF NOT EXISTS (SELECT FROM pg_roles WHERE rolname = 'locked') THEN CREATE ROLE locked LOGIN PASSWORD 'open sesame' IN ROLE quipu_worker; END IF; END $$");
    let with = |password: &str| {
        play.another_at(
            &play
                .attachment()
                .address
                .replace("//quipu@", &format!("//locked:{password}@")),
        )
    };
    append(&with("open%20sesame").open(), "meta/a.md", "let in\n").unwrap();
    let error = append(&with("hunter2").open(), "meta/a.md", "not let in\n").unwrap_err();
    assert!(error.to_string().contains("rejected the login"), "{error}");
    assert!(!format!("{error:?}").contains("hunter2"), "{error:?}");
}

/// Sets a worker's heartbeat back as the owner of the tables, because a test should not wait ten
/// seconds.
fn fall_silent(cluster: &Cluster, play: &Playground, worker: &str) {
    let id = id_of(play);
    cluster.sql(&format!("UPDATE quipu.worker SET seen_us = seen_us - 11000000 WHERE project = {id} AND name = '{worker}'"));
}

#[test]
fn what_a_silent_worker_held_may_be_released_by_another_login_and_nothing_else() {
    let (cluster, play) = (cluster(), Playground::shared());
    append(&play.open(), "meta/a.md", "one\n").unwrap();
    let (first, second) = (as_role(&play, "host1"), as_role(&play, "host2"));
    let (one, two) = (first.open(), second.open());
    one.sync().unwrap();
    two.sync().unwrap();
    let registration = one.register_worker(Some("a"), 1).unwrap();
    let name = registration.claim("write", Some("ch01")).unwrap();
    let lease = one
        .take_lease_as(&Actor::Runtime, &name, &["drafts/ch01.md".into()], 600)
        .unwrap();
    let other = two.register_worker(Some("b"), 1).unwrap();
    two.sync().unwrap();
    let release = || two.release_lease(&Actor::Runtime, &lease.id, Some(lease.fence));
    lost(release());
    // Reporting other work in its place, or claiming its lease and missing the heartbeat, does not
    // help.
    let commit_log = two.commit_log().unwrap();
    commit_log
        .heartbeat(
            &registration.id(),
            &serde_json::json!({"id": registration.id(), "claims": []}),
        )
        .unwrap();
    commit_log
        .heartbeat(
            "forged",
            &serde_json::json!({"id": "forged", "claims": [{"lease": lease.id}]}),
        )
        .unwrap();
    fall_silent(cluster, &play, "forged");
    lost(release());
    commit_log.leave(&registration.id()).unwrap();
    assert!(
        two.registered()
            .unwrap()
            .iter()
            .any(|s| s.worker.id == registration.id() && s.alive),
        "its row is its own"
    );
    // It misses its heartbeat, others release its leases, and its late commit is refused.
    fall_silent(cluster, &play, &registration.id());
    assert!(
        two.registered()
            .unwrap()
            .iter()
            .any(|s| s.worker.id == registration.id() && !s.alive)
    );
    let given_back = other.hand_back().unwrap();
    assert_eq!(
        given_back.iter().map(|l| l.id.as_str()).collect::<Vec<_>>(),
        [name.as_str()]
    );
    lost(write_with(&one, "drafts/ch01.md", "late\n", lease.token()));
    two.take_lease(&Actor::Runtime, &["drafts/ch01.md".into()], 600)
        .unwrap();
}

#[test]
fn a_lease_that_a_dead_worker_asked_for_is_refused_however_late_the_request_arrives() {
    let (cluster, play) = (cluster(), Playground::shared());
    append(&play.open(), "meta/a.md", "one\n").unwrap();
    let (first, second) = (play.another(), play.another());
    let (one, two) = (first.open(), second.open());
    let registration = one.register_worker(Some("a"), 1).unwrap();
    let name = registration.claim("write", Some("ch01")).unwrap();
    fall_silent(cluster, &play, &registration.id());
    let other = two.register_worker(Some("b"), 1).unwrap();
    assert!(other.hand_back().unwrap().is_empty());
    // Its request was under way all the time.
    let take =
        |name: &str| one.take_lease_as(&Actor::Runtime, name, &["drafts/ch01.md".into()], 600);
    lost(take(&name));
    assert!(two.sync().is_ok() && two.leases().unwrap().is_empty());
    // It was only slow: what it claims from now on is its own.
    let again = registration.claim("write", Some("ch01")).unwrap();
    take(&again).unwrap();
}
