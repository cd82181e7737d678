//! Tests of leases: the right to write for longer than one commit, with fences.

use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering};

use quipu_contract::Actor;
use quipu_store::{
    Change, Clock, Expect, Instant, LeaseToken, Options, Receipt, Store, StoreError,
};
use quipu_testkit::Playground;

const SECOND: i64 = 1_000_000;

/// Opens a store with a wall clock and a boot clock that the test sets.
fn timed(play: &Playground, boot: &str) -> (Store, Arc<AtomicI64>, Arc<AtomicI64>) {
    let (wall, since) = (
        Arc::new(AtomicI64::new(1_800_000_000 * SECOND)),
        Arc::new(AtomicI64::new(1_000 * SECOND)),
    );
    let (w, s) = (Arc::clone(&wall), Arc::clone(&since));
    let clock = Clock::from_fn(move || Instant {
        wall_us: w.load(Ordering::SeqCst),
        boot_us: s.load(Ordering::SeqCst),
    });
    (
        play.open_with(Options {
            clock,
            boot: Some(boot.into()),
            ..Options::default()
        }),
        wall,
        since,
    )
}

fn write(
    store: &Store,
    actor: &Actor,
    token: Option<LeaseToken>,
    text: &str,
) -> Result<Receipt, StoreError> {
    let change = Change::by(actor).write(&Playground::path("drafts/ch01.md"), text, Expect::Any);
    store
        .validate(Change {
            lease: token,
            ..change
        })?
        .publish()
}

fn draft() -> Vec<String> {
    vec!["drafts/ch01.md".into()]
}

fn lost<T: std::fmt::Debug>(result: Result<T, StoreError>) {
    assert!(
        matches!(result, Err(StoreError::LeaseLost { .. })),
        "{result:?}"
    );
}

#[test]
fn only_the_holder_writes_until_it_lets_go() {
    let play = Playground::new();
    let (store, ..) = timed(&play, "b");
    let writer = Playground::role("writer", Some("ch01"));
    let lease = store.take_lease(&writer, &draft(), 60).unwrap();
    write(&store, &writer, Some(lease.token()), "one\n").unwrap();
    lost(write(&store, &writer, None, "two\n"));
    lost(write(&store, &Actor::Person, None, "two\n"));
    lost(write(
        &store,
        &Actor::Person,
        Some(LeaseToken {
            fence: lease.fence + 1,
            ..lease.token()
        }),
        "two\n",
    ));
    lost(store.take_lease(&Actor::Person, &["drafts/*.md".into()], 60));
    lost(store.take_lease(&Actor::Person, &["**".into()], 60));
    // Another process sees the same.
    lost(write(&timed(&play, "b").0, &Actor::Person, None, "two\n"));
    store
        .release_lease(&writer, &lease.id, Some(lease.fence))
        .unwrap();
    assert!(store.leases().unwrap().is_empty());
    lost(write(&store, &writer, Some(lease.token()), "late\n"));
    write(&store, &Actor::Person, None, "three\n").unwrap();
    assert_eq!(play.text("drafts/ch01.md").unwrap(), "three\n");
}

#[test]
fn a_late_writer_with_an_old_number_is_refused_inside_the_commit() {
    let play = Playground::local();
    let (store, _, since) = timed(&play, "b");
    let old = store.take_lease(&Actor::Person, &draft(), 60).unwrap();
    since.fetch_add(61 * SECOND, Ordering::SeqCst);
    assert!(store.leases().unwrap().is_empty());
    lost(write(&store, &Actor::Person, Some(old.token()), "late\n"));
    lost(store.renew_lease(&Actor::Person, &old.token(), 60));
    let new = store.take_lease(&Actor::Person, &draft(), 60).unwrap();
    assert!(new.fence > old.fence);
    lost(write(&store, &Actor::Person, Some(old.token()), "late\n"));
    write(&store, &Actor::Person, Some(new.token()), "new\n").unwrap();
    assert_eq!(play.text("drafts/ch01.md").unwrap(), "new\n");
}

#[test]
fn renewal_lengthens_and_the_end_is_exact() {
    let play = Playground::local();
    let (store, _, since) = timed(&play, "b");
    let lease = store.take_lease(&Actor::Person, &draft(), 60).unwrap();
    since.fetch_add(59 * SECOND, Ordering::SeqCst);
    let renewed = store
        .renew_lease(&Actor::Person, &lease.token(), 60)
        .unwrap();
    assert_eq!((&renewed.id, renewed.fence), (&lease.id, lease.fence));
    since.fetch_add(60 * SECOND - 1, Ordering::SeqCst);
    write(&store, &Actor::Person, Some(lease.token()), "in time\n").unwrap();
    since.fetch_add(1, Ordering::SeqCst);
    lost(write(&store, &Actor::Person, Some(lease.token()), "late\n"));
}

#[test]
fn the_wall_clock_counts_only_after_a_reboot() {
    let play = Playground::local();
    let (store, wall, _) = timed(&play, "one");
    let lease = store.take_lease(&Actor::Person, &draft(), 600).unwrap();
    wall.fetch_add(86_400 * SECOND, Ordering::SeqCst);
    write(
        &store,
        &Actor::Person,
        Some(lease.token()),
        "the clock jumped\n",
    )
    .unwrap();
    drop(store);
    let (store, wall, since) = timed(&play, "two");
    since.store(0, Ordering::SeqCst);
    assert_eq!(store.leases().unwrap().len(), 1);
    lost(write(&store, &Actor::Person, None, "x\n"));
    wall.fetch_add(601 * SECOND, Ordering::SeqCst);
    assert!(store.leases().unwrap().is_empty());
    write(&store, &Actor::Person, None, "x\n").unwrap();
}

#[test]
fn a_role_leases_only_what_it_may_write() {
    let play = Playground::new();
    let (store, ..) = timed(&play, "b");
    let writer = Playground::role("writer", Some("ch01"));
    for path in ["drafts/ch02.md", "outline.md", "drafts/*.md", "**"] {
        let refused = store.take_lease(&writer, &[path.into()], 60);
        assert!(
            matches!(refused, Err(StoreError::Refused(_))),
            "{path}: {refused:?}"
        );
    }
    // A role may not lease a wildcard of its own pointers: `meta/**.md` would reach further than
    // `meta/*.md`.
    let keeper = Playground::role("keeper", None);
    for path in ["meta/**.md", "meta/*.md", "meta/?.md"] {
        let refused = store
            .take_lease(&keeper, &[path.into()], 60)
            .unwrap_err()
            .to_string();
        assert!(refused.contains("single paths"), "{path}: {refused}");
    }
    for bad in [
        "../x",
        "/etc/passwd",
        ".git/config",
        "drafts/{unit}.md",
        "",
        "meta//a.md",
        "a/./b",
        "STATE.JSON",
        "Meta/*.md",
    ] {
        let refused = store.take_lease(&Actor::Person, &[bad.into()], 60);
        assert!(
            matches!(refused, Err(StoreError::Refused(_))),
            "{bad}: {refused:?}"
        );
    }
    assert!(store.take_lease(&Actor::Person, &[], 60).is_err());
    store.take_lease(&writer, &draft(), 60).unwrap();
}

#[test]
fn a_lease_is_kept_as_paths_are_spelled() {
    let play = Playground::new();
    let (store, ..) = timed(&play, "b");
    let lease = store
        .take_lease(
            &Playground::role("writer", Some("ch01")),
            &["./drafts/ch01.md".into()],
            60,
        )
        .unwrap();
    assert_eq!(lease.paths, draft());
    lost(write(&store, &Actor::Person, None, "x\n"));
    lost(store.take_lease(&Actor::Person, &draft(), 60));
}

#[test]
fn a_lease_is_of_use_to_its_holder_alone() {
    let play = Playground::new();
    let (store, ..) = timed(&play, "b");
    let writer = Playground::role("writer", Some("ch01"));
    let token = store.take_lease(&writer, &draft(), 60).unwrap().token();
    let named = |agent: &str| match Playground::role("writer", Some("ch01")) {
        Actor::Agent { role, unit, .. } => Actor::Agent {
            role,
            unit,
            agent: quipu_contract::ActorName::parse(agent).ok(),
        },
        other => other,
    };
    // Every actor can see its number; it is useless to others.
    for other in [
        Playground::role("writer", Some("ch02")),
        Playground::role("keeper", None),
        Actor::Agent {
            role: None,
            unit: None,
            agent: None,
        },
    ] {
        lost(write(&store, &other, Some(token.clone()), "x\n"));
        lost(store.renew_lease(&other, &token, 60));
        lost(store.release_lease(&other, &token.id, Some(token.fence)));
    }
    write(&store, &named("ada"), Some(token.clone()), "y\n").unwrap();
    store
        .release_lease(&writer, &token.id, Some(token.fence))
        .unwrap();
    // A lease that an agent holds under its name does not serve another agent of the same role.
    let token = store
        .take_lease(&named("ada"), &draft(), 60)
        .unwrap()
        .token();
    lost(write(&store, &named("bob"), Some(token.clone()), "z\n"));
    write(&store, &named("ada"), Some(token.clone()), "z\n").unwrap();
    write(&store, &Actor::Person, Some(token.clone()), "p\n").unwrap();
}

#[test]
fn a_person_may_end_anyones_lease_and_an_agent_may_not() {
    let play = Playground::new();
    let (store, ..) = timed(&play, "b");
    let lease = store
        .take_lease(&Playground::role("writer", Some("ch01")), &draft(), 60)
        .unwrap();
    let keeper = Playground::role("keeper", None);
    lost(store.release_lease(&keeper, &lease.id, None));
    lost(store.release_lease(&keeper, &lease.id, Some(lease.fence + 1)));
    assert!(matches!(
        store.release_lease(&Actor::Person, "none", None),
        Err(StoreError::NotFound { .. })
    ));
    store
        .release_lease(&Actor::Person, &lease.id, None)
        .unwrap();
    assert!(store.leases().unwrap().is_empty());
}

#[test]
fn leases_and_numbers_survive_lost_heads_and_a_pending_journal() {
    let play = Playground::local();
    let (store, ..) = timed(&play, "b");
    let first = store
        .take_lease(&Actor::Person, &["drafts/ch02.md".into()], 60)
        .unwrap();
    store
        .release_lease(&Actor::Person, &first.id, None)
        .unwrap();
    let lease = store.take_lease(&Actor::Person, &draft(), 60).unwrap();
    drop(store);
    for name in ["index.db", "index.db-wal", "index.db-shm", "watermarks"] {
        let _ = std::fs::remove_file(play.file(&format!(".quipu/{name}")));
    }
    let (store, ..) = timed(&play, "b");
    assert_eq!(store.leases().unwrap(), std::slice::from_ref(&lease));
    lost(write(&store, &Actor::Person, None, "x\n"));
    write(&store, &Actor::Person, Some(lease.token()), "x\n").unwrap();
    let next = store
        .take_lease(&Actor::Person, &["meta/a.md".into()], 60)
        .unwrap();
    assert!(next.fence > lease.fence);
    assert_eq!(store.verify().unwrap().problems, []);
}

#[test]
fn a_change_without_files_is_fenced_off_as_well() {
    let play = Playground::new();
    let (store, ..) = timed(&play, "b");
    let lease = store.take_lease(&Actor::Person, &draft(), 60).unwrap();
    let noted = |text: &str| {
        let change = Change::by(&Actor::Person).note(serde_json::json!({"said": text}));
        store
            .validate(Change {
                lease: Some(lease.token()),
                ..change
            })?
            .publish()
    };
    noted("in time").unwrap();
    store
        .release_lease(&Actor::Person, &lease.id, None)
        .unwrap();
    lost(noted("late"));
    assert_eq!(store.noted(0).unwrap().len(), 1);
}

#[test]
fn what_a_dead_worker_claimed_is_given_back_and_nothing_else() {
    let play = Playground::new();
    let (store, ..) = timed(&play, "b");
    let registration = store.register_worker(Some("first"), 1).unwrap();
    // A dead worker: its note exists, and nobody holds its lock. It had named two leases and taken
    // one of them.
    let says = |id: &str, leases: &[&str]| {
        let claims: Vec<_> = leases
            .iter()
            .map(|lease| serde_json::json!({"lease": lease, "step": "write", "since": ""}))
            .collect();
        let worker = serde_json::json!({"id": id, "host": "h", "process": 1, "jobs": 2, "since": "", "claims": claims});
        std::fs::write(
            play.root().join(format!(".quipu/workers/{id}.json")),
            worker.to_string(),
        )
        .unwrap();
        std::fs::write(play.root().join(format!(".quipu/workers/{id}.lock")), "").unwrap();
        if let Some(order) = store.commit_log() {
            order.heartbeat(id, &worker).unwrap();
        }
    };
    says("dead", &["d1", "d2"]);
    store
        .take_lease_as(&Actor::Runtime, "d1", &draft(), 600)
        .unwrap();
    // Its successor has the paths of the second lease by now.
    let living = store.register_worker(Some("second"), 1).unwrap();
    let name = living.claim("write", Some("ch02")).unwrap();
    store
        .take_lease_as(&Actor::Runtime, &name, &["drafts/ch02.md".into()], 600)
        .unwrap();
    let ids =
        |leases: Vec<quipu_store::Lease>| leases.into_iter().map(|l| l.id).collect::<Vec<_>>();
    assert_eq!(
        store
            .registered()
            .unwrap()
            .iter()
            .filter(|s| s.alive)
            .count(),
        2
    );
    assert_eq!(store.registered().unwrap().len(), 3);
    assert_eq!(ids(registration.hand_back().unwrap()), ["d1"]);
    assert_eq!(ids(store.leases().unwrap()), [name.as_str()]);
    assert_eq!(store.registered().unwrap().len(), 2);
    // A lease of its own that was in doubt is released too, and the claim is over.
    living.doubt(&name);
    assert!(
        living.hand_back().unwrap().is_empty(),
        "it was no dead worker's"
    );
    assert!(store.leases().unwrap().is_empty());
    drop(living);
    let left = store.registered().unwrap();
    assert_eq!(
        (left.len(), left[0].worker.agent.as_deref()),
        (1, Some("first"))
    );
}
