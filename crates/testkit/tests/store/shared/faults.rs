//! Faults of the connection: a killed server, a cut connection, a process that dies at the worst
//! moment.

use std::collections::BTreeSet;
use std::io::{Read, Write};
use std::net::{Shutdown, TcpListener, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

use quipu_contract::Actor;
use quipu_store::{Change, CommitRequest, LogCursor, Options, StoreError, Verdict, WaitPolicy};
use quipu_testkit::postgres::Cluster;
use quipu_testkit::{FailingDisk, Failure, Playground};

use super::{append, id_of, write};

#[test]
fn a_server_that_is_killed_loses_nothing_it_acknowledged() {
    let cluster = Cluster::start();
    let first = Playground::shared_in(&cluster);
    let copies: Vec<Playground> = (0..3).map(|_| first.another()).collect();
    let (acked, done) = (AtomicUsize::new(0), AtomicBool::new(false));
    let acks: Vec<(u64, String)> = std::thread::scope(|scope| {
        let writers: Vec<_> = copies
            .iter()
            .enumerate()
            .map(|(copy, play)| {
                let (acked, done) = (&acked, &done);
                scope.spawn(move || {
                    let store = play.open();
                    let mut acks = Vec::new();
                    for n in 0.. {
                        if done.load(Ordering::SeqCst) {
                            break;
                        }
                        let line = format!("{copy}.{n}");
                        let receipt = append(&store, "meta/shared.md", &format!("{line}\n"))
                            .unwrap_or_else(|e| panic!("{line}: {e}"));
                        acks.push((receipt.seq, line));
                        acked.fetch_add(1, Ordering::SeqCst);
                    }
                    acks
                })
            })
            .collect();
        let reach = |count: usize| {
            while acked.load(Ordering::SeqCst) < count && !writers.iter().any(|w| w.is_finished()) {
                std::thread::sleep(std::time::Duration::from_millis(1));
            }
        };
        for round in 1..=3 {
            reach(round * 30);
            cluster.kill();
            cluster.restart();
        }
        reach(acked.load(Ordering::SeqCst) + 30);
        done.store(true, Ordering::SeqCst);
        writers
            .into_iter()
            .flat_map(|writer| writer.join().unwrap())
            .collect()
    });
    let numbers: BTreeSet<u64> = acks.iter().map(|(seq, _)| *seq).collect();
    assert_eq!(
        numbers.len(),
        acks.len(),
        "two acknowledgements share a number"
    );
    for play in &copies {
        let store = play.open();
        store.sync().unwrap();
        let text = play.text("meta/shared.md").unwrap();
        for (_, line) in &acks {
            assert_eq!(text.lines().filter(|l| l == line).count(), 1, "{line}");
        }
        // The log contains only requested appends: every one was acknowledged in the end.
        assert_eq!(text.lines().count(), acks.len());
        assert_eq!(store.pulse().unwrap(), acks.len() as u64);
        assert_eq!(store.verify().unwrap().problems, []);
        assert_eq!(store.examine_commit_log().unwrap(), []);
    }
}

#[test]
fn a_standby_that_is_promoted_has_everything_that_was_acknowledged() {
    let cluster = Cluster::start();
    let play = Playground::shared_in(&cluster);
    let standby = cluster.standby();
    // The address lists both hosts; the client uses the writable one.
    let (project, id) = (play.attachment().project, play.attachment().id);
    let hosts = format!("127.0.0.1:{},127.0.0.1:{}", cluster.port(), standby.port());
    let address = format!(
        "postgres://quipu@{hosts}/postgres?target_session_attrs=read-write&wait=30&project={project}"
    );
    quipu_postgres::Attachment {
        address,
        project,
        id,
    }
    .save(play.root())
    .unwrap();
    let store = play.open();
    for n in 0..10 {
        append(&store, "meta/a.md", &format!("{n}\n")).unwrap();
    }
    cluster.kill();
    std::thread::scope(|scope| {
        let writer = scope.spawn(|| append(&store, "meta/a.md", "10\n").unwrap().seq);
        standby.promote();
        assert_eq!(writer.join().unwrap(), 11);
    });
    let fresh = play.another();
    fresh.open().sync().unwrap();
    assert_eq!(
        fresh.text("meta/a.md").unwrap(),
        (0..=10).map(|n| format!("{n}\n")).collect::<String>()
    );
}

#[test]
fn without_the_server_reading_goes_on_and_writing_says_so() {
    let cluster = Cluster::start();
    let play = Playground::shared_in(&cluster);
    let mut attachment = play.attachment();
    attachment.address = attachment.address.replace("wait=10", "wait=1");
    attachment.save(play.root()).unwrap();
    append(&play.open(), "meta/a.md", "one\n").unwrap();
    cluster.stop();
    let store = play.open();
    assert_eq!(
        store
            .read(&Playground::path("meta/a.md"))
            .unwrap()
            .unwrap()
            .0,
        b"one\n"
    );
    assert_eq!(store.log(5).unwrap().len(), 1);
    let error = append(&store, "meta/a.md", "two\n").unwrap_err();
    assert!(
        matches!(error, StoreError::Unreachable { sent: false, .. }),
        "{error:?}"
    );
    assert!(error.to_string().contains("cannot be reached"), "{error}");
    // An external edit waits in its file; meanwhile reads return the journalled text.
    play.edit("meta/a.md", "one\nby hand\n");
    assert_eq!(
        store
            .read(&Playground::path("meta/a.md"))
            .unwrap()
            .unwrap()
            .0,
        b"one\n"
    );
    let scan = store.scan_status().unwrap();
    assert!(scan.waiting.contains(&"meta/a.md".to_owned()), "{scan:?}");
    assert!(matches!(store.sync(), Err(StoreError::Unreachable { .. })));
    assert_eq!(store.verify().unwrap().records, 1);
    cluster.restart();
    append(&store, "meta/a.md", "two\n").unwrap();
    assert_eq!(play.text("meta/a.md").unwrap(), "one\nby hand\ntwo\n");
    assert_eq!(store.verify().unwrap().problems, []);
}

#[test]
fn a_process_that_dies_at_any_step_is_made_whole_by_the_next() {
    for failure in [Failure::Stop, Failure::Torn, Failure::Full] {
        let (mut reached, mut accepted) = (0, 0);
        while let Some(there) = die_at(reached, failure) {
            reached += 1;
            accepted += usize::from(there);
        }
        assert!(
            reached > 5 && accepted > 2,
            "{failure:?}: {reached} steps, {accepted} of them behind the acceptance"
        );
    }
}

/// Runs a commit that dies at a step. Returns `None` if there is no such step, else whether it
/// failed although it was accepted.
fn die_at(at: usize, failure: Failure) -> Option<bool> {
    let place = format!("step {at}, {failure:?}");
    let play = Playground::shared();
    append(&play.open(), "meta/a.md", "one\n").unwrap();
    let two = Playground::path("meta/b.md");
    let change = || {
        Change::by(&Actor::Person)
            .append(&Playground::path("meta/a.md"), "two\n")
            .append(&two, "b\n")
            .key("k")
    };
    let disk = Arc::new(FailingDisk::at(at, failure));
    let ended = {
        let dying = play.open_with(Options {
            watch: Some(Arc::clone(&disk) as Arc<dyn quipu_store::Watch>),
            ..Options::default()
        });
        dying.validate(change()).and_then(|judged| judged.publish())
    };
    forget_process(&play);
    // Some runs lose more than their process.
    let lost: &[&str] = [
        &[][..],
        &["index.db", "index.db-wal", "index.db-shm"],
        &["watermarks"],
        &["sent"],
    ][at % 4];
    lost.iter()
        .for_each(|name| drop(std::fs::remove_file(play.file(&format!(".quipu/{name}")))));
    let there = Cluster::shared().sql(&format!(
        "SELECT count(*) FROM quipu.log WHERE project = {}",
        id_of(&play)
    )) == "2";
    assert!(
        there || ended.is_err(),
        "{place}: acknowledged and not there"
    );
    let told_safe = matches!(ended, Err(StoreError::Unfinished { .. }));
    assert!(
        there || !told_safe,
        "{place}: told to be safe and not there"
    );
    // The next command finds the accepted commit, and repeating it does nothing more.
    let store = play.open();
    if lost == ["sent"] {
        store.sync().unwrap();
    }
    let text = store
        .read(&Playground::path("meta/a.md"))
        .unwrap()
        .unwrap()
        .0;
    assert_eq!(
        text,
        if there { "one\ntwo\n" } else { "one\n" }.as_bytes(),
        "{place}: {ended:?}"
    );
    assert_eq!(
        store
            .validate(change())
            .unwrap()
            .publish()
            .unwrap()
            .repeated,
        there,
        "{place}"
    );
    assert_eq!(play.text("meta/a.md").unwrap(), "one\ntwo\n", "{place}");
    assert_eq!(play.text("meta/b.md").unwrap(), "b\n", "{place}");
    assert_eq!(store.pulse().unwrap(), 2, "{place}");
    assert!(
        store
            .log(usize::MAX)
            .unwrap()
            .iter()
            .all(|entry| entry.kind != quipu_store::Kind::ConflictCopy),
        "{place}: its own bytes were set aside"
    );
    assert_eq!(store.verify().unwrap().problems, [], "{place}");
    (disk.steps().len() > at).then_some(there && ended.is_err())
}

/// Removes the process that recorded its request.
fn forget_process(play: &Playground) {
    let note = play.text(".quipu/sent").unwrap_or_default();
    let mine = format!("\n{} ", std::process::id());
    std::fs::write(play.file(".quipu/sent"), note.replace(&mine, "\n4194305 ")).unwrap();
}

#[test]
fn the_same_bid_twice_is_one_commit() {
    let play = Playground::shared();
    let store = play.open();
    let judged = store
        .validate(Change::by(&Actor::Person).append(&Playground::path("meta/a.md"), "once\n"))
        .unwrap();
    let records = judged.records().to_vec();
    drop(judged);
    let commit_log = store.commit_log().unwrap();
    let request = CommitRequest {
        cursor: LogCursor::default(),
        records: &records,
        lease: None,
        relies: Vec::new(),
        wait_policy: WaitPolicy::Retry,
    };
    for _ in 0..3 {
        let ruling = commit_log.commit(&request).unwrap();
        assert_eq!(
            (ruling.verdict, ruling.records.len(), ruling.newest),
            (Verdict::Accepted, 1, 1)
        );
        assert_eq!(ruling.records[0].id, records[0].id);
    }
    store.sync().unwrap();
    assert_eq!(play.text("meta/a.md").unwrap(), "once\n");
}

/// A proxy that cuts the connection once, after this many bytes in one direction.
struct CutLine {
    port: u16,
}

impl CutLine {
    fn new(server: u16, after: usize, towards_server: bool) -> (CutLine, Arc<AtomicBool>) {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let port = listener.local_addr().unwrap().port();
        let cut = Arc::new(AtomicBool::new(false));
        let was_cut = Arc::clone(&cut);
        std::thread::spawn(move || {
            for client in listener.incoming().flatten() {
                let Ok(server) = TcpStream::connect(("127.0.0.1", server)) else {
                    continue;
                };
                // Only the first connection is cut.
                let first = !was_cut.load(Ordering::SeqCst);
                for (from, to, up) in [(&client, &server, true), (&server, &client, false)] {
                    let (from, to) = (from.try_clone().unwrap(), to.try_clone().unwrap());
                    let left = if first && up == towards_server {
                        after
                    } else {
                        usize::MAX
                    };
                    let was_cut = Arc::clone(&was_cut);
                    std::thread::spawn(move || pump(from, to, left, &was_cut));
                }
            }
        });
        (CutLine { port }, cut)
    }
}

fn pump(mut from: TcpStream, mut to: TcpStream, mut left: usize, cut: &AtomicBool) {
    let mut buffer = [0; 4096];
    while let Ok(count) = from.read(&mut buffer) {
        if count == 0 {
            break;
        }
        let through = count.min(left);
        if to.write_all(&buffer[..through]).is_err() {
            break;
        }
        left = left.saturating_sub(count);
        if left == 0 {
            cut.store(true, Ordering::SeqCst);
            break;
        }
    }
    let _ = from.shutdown(Shutdown::Both);
    let _ = to.shutdown(Shutdown::Both);
}

#[test]
fn a_line_that_is_cut_anywhere_loses_and_doubles_nothing() {
    let cluster = Cluster::shared();
    let play = Playground::shared();
    append(&play.open(), "meta/a.md", "begin\n").unwrap();
    let mut lines = vec!["begin".to_owned()];
    for towards_server in [true, false] {
        let mut after = 1;
        loop {
            let (line, cut) = CutLine::new(cluster.port(), after, towards_server);
            let copy = play.another_at(&play.attachment().address.replace(
                &format!(":{}/", cluster.port()),
                &format!(":{}/", line.port),
            ));
            let text = format!("{}-{after}", if towards_server { "to" } else { "from" });
            append(&copy.open(), "meta/a.md", &format!("{text}\n"))
                .unwrap_or_else(|e| panic!("{text}: {e}"));
            lines.push(text);
            assert_eq!(
                copy.text("meta/a.md").unwrap().lines().collect::<Vec<_>>(),
                lines
            );
            if !cut.load(Ordering::SeqCst) {
                break; // the whole conversation is shorter than that
            }
            after += 1 + after / 9;
        }
    }
    assert!(lines.len() > 60, "{}", lines.len());
    let rows = cluster.sql(&format!(
        "SELECT count(*) FROM quipu.log WHERE project = {}",
        id_of(&play)
    ));
    assert_eq!(rows, lines.len().to_string());
}

#[test]
fn a_log_that_lost_its_end_is_not_followed() {
    let play = Playground::shared();
    let store = play.open();
    (0..3).for_each(|n| drop(append(&store, "meta/a.md", &format!("{n}\n")).unwrap()));
    // As after the restore of an older backup.
    let (cluster, id) = (Cluster::shared(), id_of(&play));
    cluster.sql(&format!(
        "DELETE FROM quipu.op WHERE project = {id} AND rev = 3"
    ));
    cluster.sql(&format!(
        "DELETE FROM quipu.log WHERE project = {id} AND rev = 3"
    ));
    cluster.sql(&format!("UPDATE quipu.project SET rev = 2 WHERE id = {id}"));
    for error in [
        store.sync().unwrap_err(),
        append(&store, "meta/a.md", "3\n").unwrap_err(),
        write(&store, "drafts/x.md", "x\n", None).unwrap_err(),
    ] {
        assert!(
            error
                .to_string()
                .contains("is not the one that this working copy follows"),
            "{error}"
        );
    }
    assert_eq!(play.text("meta/a.md").unwrap(), "0\n1\n2\n");
}
