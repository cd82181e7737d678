//! A book by workers on several hosts with one PostgreSQL server. Workers are killed, hosts are cut
//! off, the server is killed or a standby is promoted. The result equals that of one undisturbed
//! run on one machine, no job is done twice, and every acknowledged job is present.
//!
//! The short form is part of `scripts/test`. `QUIPU_FLEET=CHAPTERS,WORKERS,HOSTS,SECONDS` makes it
//! longer: `scripts/test-fleet`.

use std::collections::BTreeMap;
use std::fs::File;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use quipu_protocol::Project;
use quipu_store::Options;
use quipu_testkit::postgres::Cluster;
use quipu_testkit::{Host, Network};

use crate::fleet::{accepted, same_trees};
use crate::rehearsal::{Desk, next, tree_of};

/// The size of a trial.
struct Size {
    chapters: usize,
    workers: usize,
    hosts: usize,
    /// Maximum pause between two disasters.
    pause: Duration,
}

impl Size {
    fn asked(short: Size) -> Size {
        let Ok(text) = std::env::var("QUIPU_FLEET") else {
            return short;
        };
        let numbers: Vec<usize> = text.split(',').map(|n| n.trim().parse().unwrap()).collect();
        let [chapters, workers, hosts, seconds] = numbers[..] else {
            panic!("QUIPU_FLEET=CHAPTERS,WORKERS,HOSTS,SECONDS")
        };
        Size {
            chapters,
            workers,
            hosts,
            pause: Duration::from_secs(seconds as u64),
        }
    }
}

/// A worker's process, and the file of its output.
struct Worker {
    host: usize,
    child: Child,
}

/// Hosts with working copies of one book.
struct Fleet {
    // Dropped in this order.
    crew: Vec<Worker>,
    hosts: Vec<Host>,
    network: Network,
    home: Desk,
    copies: Vec<PathBuf>,
    logs: PathBuf,
    url: String,
    begun: Instant,
}

/// Minimum duration of a job, so that the book is unfinished when the disasters come.
const TURN_MS: &str = "600";

const PATIENCE: Duration = Duration::from_secs(1500);

/// Prepares Quipu without a role; its trust records go beside the logs.
fn quipu<'c>(command: &'c mut Command, logs: &Path) -> &'c mut Command {
    command.env("XDG_STATE_HOME", logs.with_file_name("state"));
    for name in [
        "QUIPU_ROLE",
        "QUIPU_UNIT",
        "QUIPU_AGENT",
        "QUIPU_LEASE",
        "QUIPU_STORE",
    ] {
        command.env_remove(name);
    }
    command.stdin(Stdio::null())
}

impl Fleet {
    /// Creates a book in the shared store and a copy on each host. Every host can reach `servers`.
    fn lay(size: &Size, network: Network, servers: &[&Cluster]) -> Fleet {
        let home = Desk::sourced_book_of(size.chapters);
        let places: Vec<String> = servers
            .iter()
            .map(|server| format!("{}:{}", network.address(), server.port()))
            .collect();
        let url = |role: &str| {
            let any = if places.len() > 1 {
                "&target_session_attrs=read-write"
            } else {
                ""
            };
            format!(
                "postgres://{role}@{}/postgres?project=book&sslmode=disable{any}",
                places.join(",")
            )
        };
        home.fine(&["store", "push", &url("quipu")]);
        home.fine(&["store", "roles", "--grant", &url("quipu")]);
        let logs = home.root.parent().unwrap().join("logs");
        std::fs::create_dir(&logs).unwrap();
        let mut fleet = Fleet {
            crew: Vec::new(),
            hosts: Vec::new(),
            network,
            copies: Vec::new(),
            logs,
            url: url("quipu"),
            home,
            begun: Instant::now(),
        };
        for number in 1..=size.hosts {
            let host = fleet
                .network
                .host(u32::try_from(number).unwrap(), &format!("host{number}"));
            servers[0].sql(&format!(
                "CREATE ROLE host{number} LOGIN IN ROLE quipu_worker"
            ));
            let copy = fleet
                .home
                .root
                .parent()
                .unwrap()
                .join(format!("copy{number}"));
            let mut checkout = host.command(env!("CARGO_BIN_EXE_quipu"));
            checkout
                .args(["checkout", &url(&format!("host{number}"))])
                .arg(&copy);
            let output = quipu(&mut checkout, &fleet.logs).output().unwrap();
            assert!(
                output.status.success(),
                "{}",
                String::from_utf8_lossy(&output.stderr)
            );
            fleet.hosts.push(host);
            fleet.copies.push(copy);
        }
        for number in 0..size.workers {
            let worker = fleet.start(number % size.hosts);
            fleet.crew.push(worker);
        }
        fleet
    }

    fn start(&self, host: usize) -> Worker {
        let number = std::fs::read_dir(&self.logs).unwrap().count();
        let log = |end: &str| {
            File::create(
                self.logs
                    .join(format!("{number:04}-host{}.{end}", host + 1)),
            )
            .unwrap()
        };
        let mut command = self.hosts[host].command(env!("CARGO_BIN_EXE_quipu"));
        command
            .args([
                "worker", "--by", "rehearse", "--flow", "book", "--jobs", "1", "--json",
            ])
            .current_dir(&self.copies[host]);
        command.env("QUIPU_REHEARSE_PAUSE", TURN_MS);
        let child = quipu(&mut command, &self.logs)
            .stdout(log("out"))
            .stderr(log("err"))
            .spawn()
            .unwrap();
        Worker { host, child }
    }

    /// Waits for the person's gate, and approves it.
    fn approve(&self) {
        while self.home.call(&["approve", "approve-outline"]).0 != 0 {
            self.check("the gate");
            std::thread::sleep(Duration::from_millis(200));
            let _ = self.home.call(&["sync"]);
        }
    }

    fn check(&self, what: &str) {
        assert!(
            self.begun.elapsed() < PATIENCE,
            "{what} takes too long\n{}\n{}",
            self.home.call(&["fleet", "status"]).1,
            self.said()
        );
    }

    /// Returns the last output of every worker.
    fn said(&self) -> String {
        let mut files: Vec<PathBuf> = std::fs::read_dir(&self.logs)
            .unwrap()
            .map(|e| e.unwrap().path())
            .collect();
        files.sort();
        let tail = |path: &Path| {
            let text = std::fs::read_to_string(path).unwrap_or_default();
            let lines: Vec<&str> = text.lines().collect();
            format!(
                "--- {}\n{}\n",
                path.file_name().unwrap().display(),
                lines[lines.len().saturating_sub(6)..].join("\n")
            )
        };
        files.iter().map(|path| tail(path)).collect()
    }

    /// Kills one of the running workers, and starts another in its place.
    fn kill_one(&mut self, seed: &mut u64) -> bool {
        let mut working = Vec::new();
        for (place, worker) in self.crew.iter_mut().enumerate() {
            if worker.child.try_wait().unwrap().is_none() {
                working.push(place);
            }
        }
        if working.is_empty() {
            return false;
        }
        let place = working[usize::try_from(next(seed) >> 1).unwrap() % working.len()];
        let host = self.crew[place].host;
        self.crew[place].child.kill().unwrap();
        self.crew[place].child.wait().unwrap();
        self.crew[place] = self.start(host);
        true
    }

    fn processes_on(&self, host: usize) -> Vec<u32> {
        self.crew
            .iter()
            .filter(|w| w.host == host)
            .map(|w| w.child.id())
            .collect()
    }

    fn is_at_work(&mut self) -> bool {
        self.crew
            .iter_mut()
            .any(|worker| worker.child.try_wait().unwrap().is_none())
    }

    /// Counts the accepted jobs in the log.
    fn count(&self, server: &Cluster) -> usize {
        let counted = server.try_sql(
            "quipu",
            r#"SELECT count(*) FROM quipu.log WHERE body LIKE '%"ruling":"accepted"%'"#,
        );
        counted.ok().and_then(|n| n.parse().ok()).unwrap_or(0)
    }

    /// Waits until this many more jobs are accepted, or all workers are done.
    fn go_on(&mut self, server: &Cluster, more: usize) {
        let wanted = self.count(server) + more;
        while self.is_at_work() && self.count(server) < wanted {
            self.check("the next jobs");
            std::thread::sleep(Duration::from_millis(100));
        }
    }

    /// Checks the invariants after the end.
    fn prove(mut self, alone: &Desk, server: &Cluster) {
        while self.is_at_work() {
            self.check("the book");
            std::thread::sleep(Duration::from_millis(100));
        }
        for worker in &mut self.crew {
            let status = worker.child.wait().unwrap();
            assert!(status.success(), "{status}\n{}", self.logs.display());
        }
        self.home.fine(&["sync"]);
        let tree = alone.tree();
        same_trees(&self.home.tree(), &tree);
        self.home.fine(&["verify"]);
        for (host, copy) in self.hosts.iter().zip(&self.copies) {
            for arguments in [["sync"], ["verify"]] {
                let mut command = host.command(env!("CARGO_BIN_EXE_quipu"));
                let output = quipu(command.args(arguments).current_dir(copy), &self.logs)
                    .output()
                    .unwrap();
                let said = [output.stdout, output.stderr]
                    .map(|b| String::from_utf8_lossy(&b).into_owned())
                    .concat();
                assert!(
                    output.status.success(),
                    "{arguments:?} on {}: {said}",
                    host.name
                );
            }
            same_trees(&tree_of(copy), &tree);
            assert!(
                !copy.join(".quipu/conflicts").exists()
                    || std::fs::read_dir(copy.join(".quipu/conflicts"))
                        .unwrap()
                        .next()
                        .is_none()
            );
        }
        // Each job was accepted exactly once, and the log has no gap.
        quipu_postgres::register(|_| {}, |_, _| true);
        let project = Project::open(&self.home.root, Options::default()).unwrap();
        let jobs = accepted(&project);
        let same = accepted(&Project::open(&alone.root, Options::default()).unwrap());
        assert_eq!(jobs, same, "jobs and how often they were accepted");
        assert_eq!(server.sql("SELECT bool_and(n = rev) FROM (SELECT count(l.*) n, p.rev FROM quipu.project p JOIN quipu.log l ON l.project = p.id GROUP BY p.id) x"), "t");
        assert_eq!(
            server.sql("SELECT count(*) FROM quipu.lease WHERE cardinality(paths) > 0"),
            "0"
        );
        // Every job that a worker saw accepted is there, and no two workers saw the same.
        let told = self.told();
        for (job, times) in &told {
            let kept = jobs.get(job).copied().unwrap_or(0);
            assert!(
                *times <= kept,
                "{job} was acknowledged {times} times and is in the log {kept} times"
            );
        }
        assert!(
            told.len() * 10 >= jobs.len() * 8,
            "{} of {} jobs were told of",
            told.len(),
            jobs.len()
        );
        eprintln!(
            "{} jobs, {} of them told of, on {} in {:?}",
            jobs.len(),
            told.len(),
            self.url,
            self.begun.elapsed()
        );
    }

    /// Counts the jobs that workers saw accepted.
    fn told(&self) -> BTreeMap<String, usize> {
        let mut told = BTreeMap::new();
        for entry in std::fs::read_dir(&self.logs).unwrap() {
            let path = entry.unwrap().path();
            let text = std::fs::read_to_string(&path).unwrap();
            for event in text
                .lines()
                .filter_map(|line| serde_json::from_str::<serde_json::Value>(line).ok())
            {
                if event["event"] == "accepted" || event["event"] == "did" {
                    let job = &event["job"];
                    let name = format!(
                        "{}/{}",
                        job["step"].as_str().unwrap(),
                        job["unit"].as_str().unwrap_or_default()
                    );
                    *told.entry(name).or_default() += 1;
                }
            }
        }
        told
    }
}

impl Drop for Fleet {
    fn drop(&mut self) {
        for worker in &mut self.crew {
            let _ = worker.child.kill();
            let _ = worker.child.wait();
        }
        if std::thread::panicking() {
            eprintln!("{}", self.said());
        }
    }
}

#[test]
fn a_book_by_many_hosts_is_the_book_of_one() {
    let size = Size::asked(Size {
        chapters: 6,
        workers: 3,
        hosts: 3,
        pause: Duration::from_secs(1),
    });
    let alone = crate::fleet::undisturbed_on(Desk::sourced_book_of(size.chapters));
    let cluster = Cluster::start();
    let mut fleet = Fleet::lay(&size, Network::new(), &[&cluster]);
    fleet.approve();
    let (mut seed, mut kills) = (0x5bd1_e995_0c0f_fee5, 0);
    fleet.go_on(&cluster, 3);
    kills += usize::from(fleet.kill_one(&mut seed));
    // A host is cut off for longer than the heartbeat timeout, and returns with its unfinished job.
    fleet.go_on(&cluster, 3);
    let lost = 1 % size.hosts;
    let cut_at = fleet.count(&cluster);
    fleet.hosts[lost].cut(&fleet.processes_on(lost));
    let cut = Instant::now();
    while cut.elapsed() < Duration::from_secs(13) {
        std::thread::sleep(size.pause.min(Duration::from_secs(3)));
        if size.workers > 3 {
            kills += usize::from(fleet.kill_one(&mut seed));
        }
    }
    assert!(fleet.count(&cluster) > cut_at, "the others went on");
    fleet.hosts[lost].rejoin(&fleet.processes_on(lost));
    // The server is killed, and is down for a moment.
    fleet.go_on(&cluster, 3);
    assert!(
        fleet.is_at_work(),
        "the book was finished before the server was killed"
    );
    cluster.kill();
    std::thread::sleep(Duration::from_secs(2));
    cluster.restart();
    fleet.go_on(&cluster, 3);
    kills += usize::from(fleet.kill_one(&mut seed));
    // In the long form, a worker is killed every few seconds from here on.
    while size.workers > 3 && fleet.is_at_work() {
        fleet.check("the book");
        let begun = Instant::now();
        let pause = Duration::from_millis(
            1000 + next(&mut seed) % u64::try_from(size.pause.as_millis()).unwrap(),
        );
        while fleet.is_at_work() && begun.elapsed() < pause {
            std::thread::sleep(Duration::from_millis(50));
        }
        kills += usize::from(fleet.kill_one(&mut seed));
    }
    assert!(
        kills >= 2,
        "only {kills} workers were killed while they worked"
    );
    eprintln!("{kills} workers were killed");
    fleet.prove(&alone, &cluster);
}

#[test]
fn a_promoted_standby_has_everything_that_was_acknowledged() {
    let size = Size::asked(Size {
        chapters: 3,
        workers: 2,
        hosts: 2,
        pause: Duration::from_secs(1),
    });
    let alone = crate::fleet::undisturbed_on(Desk::sourced_book_of(size.chapters));
    let first = Cluster::start();
    let second = first.standby();
    let mut fleet = Fleet::lay(&size, Network::new(), &[&first, &second]);
    fleet.approve();
    fleet.go_on(&first, size.chapters * 4);
    first.kill();
    second.promote();
    assert!(
        fleet.is_at_work(),
        "the book was finished before the server was lost"
    );
    fleet.prove(&alone, &second);
}
