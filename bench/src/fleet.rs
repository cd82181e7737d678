//! Measures many writers on one project and on sixteen, on local files and on PostgreSQL; lease
//! claims; and the time a commit takes to reach another host. Extrapolates from these figures to a
//! large fleet.
//!
//! Every writer of the shared store has its own working copy, as a host would. All writers and the
//! server run on this machine.

use std::path::{Path, PathBuf};
use std::sync::{Barrier, mpsc};
use std::time::{Duration, Instant};

use quipu_contract::{Actor, ProjectPath};
use quipu_postgres::{Address, checkout, push};
use quipu_store::{Change, Expect, Options, Store};
use quipu_testkit::postgres::Cluster;
use tempfile::TempDir;

use crate::hosts::cross;
use crate::machine::describe;
use crate::small::{contract, prepare};

const PAYLOAD: usize = 500;
const WRITERS: [usize; 3] = [1, 16, 64];
const PROJECTS: [usize; 2] = [1, 16];
/// Commits of one cell of the table, all writers together.
const COMMITS: usize = 640;
const SYNCS: usize = 100;

/// The store that a benchmark uses.
#[derive(Clone, Copy)]
enum Site<'c> {
    Local,
    /// PostgreSQL, with one working copy per writer, as if each writer had its own host.
    Shared(&'c Cluster),
    /// PostgreSQL, with this many working copies of each project. The writers share them in turn.
    Hosts(&'c Cluster, usize),
}

/// Operations per second, and latency of one operation.
struct Speed {
    rate: f64,
    p50: f64,
    p99: f64,
}

pub fn run(arguments: &[&str]) {
    let commits: usize = arguments
        .iter()
        .find_map(|a| a.parse().ok())
        .unwrap_or(COMMITS);
    let wanted = |part: &str| {
        arguments.iter().all(|a| a.parse::<usize>().is_ok()) || arguments.contains(&part)
    };
    quipu_postgres::register(|what| eprintln!("{what}"), |_, _| true);
    let disk =
        PathBuf::from(std::env::var("QUIPU_BENCH_DIR").unwrap_or_else(|_| "/var/tmp".into()));
    let cluster = Cluster::start_on(&disk);
    println!(
        "{}; {}",
        describe(),
        cluster.sql("SELECT split_part(version(), ' on ', 1)")
    );
    let mut rates = [0.0; 2];
    if wanted("commits") {
        rates = print_commits(&cluster, &disk, commits);
    }
    if wanted("lone") {
        print_lone(&cluster, &disk, commits);
    }
    if wanted("claims") {
        print_claims(&cluster, &disk, commits / 2);
    }
    if wanted("hosts") {
        print_crossing(&cluster, &disk);
    }
    if wanted("commits") {
        project_fleet(rates[0], rates[1]);
    }
}

/// Returns the commits per second of sixteen writers, on one project and on sixteen.
fn print_commits(cluster: &Cluster, disk: &Path, commits: usize) -> [f64; 2] {
    println!(
        "{commits} commits a cell, {PAYLOAD} bytes each, every writer a file of its own; milliseconds a commit\n"
    );
    println!(
        "| projects | writers | local, commits/s | p50 | p99 | PostgreSQL, commits/s | p50 | p99 |"
    );
    println!("|---|---|---|---|---|---|---|---|");
    let mut rates = [0.0; 2];
    for (place, projects) in PROJECTS.into_iter().enumerate() {
        for writers in WRITERS {
            let local = measure(Site::Local, disk, projects, writers, commits, commit);
            let shared = measure(
                Site::Shared(cluster),
                disk,
                projects,
                writers,
                commits,
                commit,
            );
            println!(
                "| {projects} | {writers} | {} | {} |",
                told(&local),
                told(&shared)
            );
            if writers == 16 {
                rates[place] = shared.rate;
            }
        }
    }
    println!(
        "\nthe same on one project where writers share working copies, as workers of a host do\n"
    );
    println!("| writers | working copies | commits/s | p50 | p99 |");
    println!("|---|---|---|---|---|");
    for (writers, copies) in [(16, 1), (16, 4), (64, 4)] {
        let shared = measure(
            Site::Hosts(cluster, copies),
            disk,
            1,
            writers,
            commits,
            commit,
        );
        println!("| {writers} | {copies} | {} |", told(&shared));
    }
    rates
}

/// Breaks down the latency of a single commit by the server's own statistics.
fn print_lone(cluster: &Cluster, disk: &Path, commits: usize) {
    let count = |settings: [&str; 2]| {
        cluster.sql(&format!(
            "ALTER SYSTEM SET track_functions = {}",
            settings[0]
        ));
        cluster.sql(&format!(
            "ALTER SYSTEM SET track_wal_io_timing = {}",
            settings[1]
        ));
        cluster.sql("SELECT pg_reload_conf()");
    };
    count(["pl", "on"]);
    cluster.sql("SELECT pg_stat_reset()");
    cluster.sql("SELECT pg_stat_reset_shared('wal')");
    let local = measure(Site::Local, disk, 1, 1, commits, commit);
    let shared = measure(Site::Shared(cluster), disk, 1, 1, commits, commit);
    std::thread::sleep(Duration::from_secs(2)); // the server publishes statistics with a delay
    let number = |sql: &str| -> f64 { cluster.sql(sql).parse().unwrap_or(0.0) };
    let of = |name: &str| {
        number(&format!(
            "SELECT total_time / calls FROM pg_stat_user_functions WHERE funcname = '{name}'"
        ))
    };
    let (commit, tell) = (of("commit"), of("tell"));
    let (syncs, sync) = (
        number("SELECT wal_sync FROM pg_stat_wal"),
        number("SELECT wal_sync_time / greatest(wal_sync, 1) FROM pg_stat_wal"),
    );
    count(["default", "default"]);
    println!(
        "\na lone commit: {:.2} ms (p50 of {commits}); means of its parts, in milliseconds, as the server counts them\n",
        shared.p50
    );
    println!("| part | ms |");
    println!("|---|---|");
    println!("| `quipu.commit` in the server | {commit:.2} |");
    println!(
        "| the server's disk ({syncs:.0} syncs for {} commits) | {sync:.2} |",
        commits + 1
    );
    println!(
        "| journal and files of the working copy, as for a local commit (p50) | {:.2} |",
        local.p50
    );
    println!(
        "| the wire, waking up, encoding: what is left | {:.2} |",
        (shared.p50 - commit - sync - local.p50).max(0.0)
    );
    println!("| `quipu.tell`, behind the answer | {tell:.2} |");
}

fn print_claims(cluster: &Cluster, disk: &Path, claims: usize) {
    println!("\nclaims: a lease taken and given back, milliseconds for both\n");
    println!(
        "| projects | workers | local, claims/s | p50 | p99 | PostgreSQL, claims/s | p50 | p99 |"
    );
    println!("|---|---|---|---|---|---|---|---|");
    for projects in PROJECTS {
        for writers in [1, 16] {
            let local = measure(Site::Local, disk, projects, writers, claims, claim);
            let shared = measure(
                Site::Shared(cluster),
                disk,
                projects,
                writers,
                claims,
                claim,
            );
            println!(
                "| {projects} | {writers} | {} | {} |",
                told(&local),
                told(&shared)
            );
        }
    }
}

fn told(speed: &Speed) -> String {
    format!("{:.0} | {:.2} | {:.2}", speed.rate, speed.p50, speed.p99)
}

/// One operation of a writer.
type Act = fn(&Store, usize, usize);

fn path_of(writer: usize) -> ProjectPath {
    ProjectPath::parse(&format!("drafts/w{writer}.md")).unwrap()
}

fn commit(store: &Store, writer: usize, number: usize) {
    let text = format!("{writer:04} {number:08} {}\n", "x".repeat(PAYLOAD - 15));
    store
        .validate(Change::by(&Actor::Person).write(&path_of(writer), text, Expect::Any))
        .unwrap()
        .publish()
        .unwrap();
}

fn claim(store: &Store, writer: usize, _: usize) {
    let lease = store
        .take_lease(&Actor::Person, &[path_of(writer).to_string()], 600)
        .unwrap();
    store
        .release_lease(&Actor::Person, &lease.id, Some(lease.fence))
        .unwrap();
}

fn measure(
    site: Site<'_>,
    disk: &Path,
    projects: usize,
    writers: usize,
    acts: usize,
    act: Act,
) -> Speed {
    let folder = tempfile::tempdir_in(disk).unwrap();
    let places: Vec<PathBuf> = (0..projects)
        .map(|number| begin(site, &folder, number))
        .collect();
    let stores: Vec<Store> = (0..writers)
        .map(|writer| open(site, &folder, &places, writer))
        .collect();
    let each = (acts / writers).max(1);
    let barrier = Barrier::new(writers + 1);
    let (sender, receiver) = mpsc::channel();
    let seconds = std::thread::scope(|scope| {
        for (writer, store) in stores.iter().enumerate() {
            let (barrier, sender) = (&barrier, sender.clone());
            scope.spawn(move || {
                act(store, writer, 0); // connects and fills the caches
                barrier.wait();
                for number in 1..=each {
                    let begun = Instant::now();
                    act(store, writer, number);
                    sender.send(begun.elapsed()).unwrap();
                }
                barrier.wait();
            });
        }
        barrier.wait();
        let begun = Instant::now();
        barrier.wait();
        begun.elapsed().as_secs_f64()
    });
    drop(sender);
    let (p50, p99) = percentiles(receiver.into_iter().collect());
    Speed {
        rate: (each * writers) as f64 / seconds,
        p50,
        p99,
    }
}

/// Creates a project on the given site.
fn begin(site: Site<'_>, folder: &TempDir, number: usize) -> PathBuf {
    let root = folder.path().join(format!("p{number}"));
    std::fs::create_dir(&root).unwrap();
    prepare(&root);
    if let Site::Shared(cluster) | Site::Hosts(cluster, _) = site {
        let store = Store::open(&root, contract(), Options::default()).unwrap();
        let name = format!("{}-p{number}", folder.path().file_name().unwrap().display());
        push(&store, &Address::parse(&cluster.url("")).unwrap(), &name).unwrap();
    }
    root
}

/// Opens the store for a writer: the project's folder, or a working copy of its own.
fn open(site: Site<'_>, folder: &TempDir, places: &[PathBuf], writer: usize) -> Store {
    let number = writer % places.len();
    let (cluster, copies) = match site {
        Site::Local => {
            return Store::open(&places[number], contract(), Options::default()).unwrap();
        }
        Site::Shared(cluster) => (cluster, usize::MAX),
        Site::Hosts(cluster, copies) => (cluster, copies),
    };
    let root = folder
        .path()
        .join(format!("copy{number}-{}", writer / places.len() % copies));
    if !root.exists() {
        let name = format!("{}-p{number}", folder.path().file_name().unwrap().display());
        checkout(&Address::parse(&cluster.url("")).unwrap(), &name, &root).unwrap();
    }
    Store::open(&root, contract(), Options::default()).unwrap()
}

fn percentiles(mut times: Vec<Duration>) -> (f64, f64) {
    times.sort();
    let at = |share: f64| times[((times.len() - 1) as f64 * share) as usize].as_secs_f64() * 1000.0;
    (at(0.5), at(0.99))
}

/// Measures the latency from one host to another.
fn print_crossing(cluster: &Cluster, disk: &Path) {
    let crossing = cross(cluster, disk, SYNCS);
    let between = if crossing.apart {
        "two hosts (network namespaces, the server on the bridge between them)"
    } else {
        "two working copies ON ONE HOST: network namespaces are not permitted here"
    };
    println!(
        "\nfrom the beginning of a commit to its text in the file of the other of {between}, where `quipu sync --follow` runs; milliseconds\n"
    );
    println!(
        "| who commits | in the other host's file, p50 | p99 | answered, p50 | p99 | commits |"
    );
    println!("|---|---|---|---|---|---|");
    let kinds = [
        ("a process that stays (`quipu mcp`)", crossing.standing),
        ("a command each (`quipu write`)", crossing.command),
    ];
    for (who, (seen, answered)) in kinds {
        let count = seen.len();
        let ((seen50, seen99), (answered50, answered99)) =
            (percentiles(seen), percentiles(answered));
        println!(
            "| {who} | {seen50:.1} | {seen99:.1} | {answered50:.1} | {answered99:.1} | {count} |"
        );
    }
    println!();
}

/// Extrapolates the measured figures to a large fleet.
fn project_fleet(one: f64, sixteen: f64) {
    const AGENTS: f64 = 10_000.0;
    const PROJECTS: f64 = 1_000.0;
    const JOB_SECONDS: f64 = 180.0;
    const RECORDS: f64 = 3.0;
    const HOSTS: f64 = 500.0;
    let jobs = AGENTS / JOB_SECONDS;
    let commits = jobs * RECORDS;
    println!(
        "On paper: {AGENTS} agents over {PROJECTS} projects, a job of {JOB_SECONDS} s, {HOSTS} hosts with a worker a project each at most 20 jobs\n"
    );
    println!(
        "    jobs            {AGENTS} agents / {JOB_SECONDS} s                      = {jobs:.0} a second"
    );
    println!(
        "    commits         {jobs:.0} jobs x {RECORDS} (claim, commit, give back)   = {commits:.0} a second"
    );
    println!(
        "    of capacity     {commits:.0} / {sixteen:.0} commits/s (16 projects)          = {:.0} %",
        100.0 * commits / sixteen
    );
    println!(
        "    one project     {commits:.0} / {PROJECTS} = {:.2} a second, of {one:.0}           = {:.2} %",
        commits / PROJECTS,
        100.0 * commits / PROJECTS / one
    );
    println!(
        "    signs of life   {PROJECTS} workers / 2 s                         = {:.0} a second",
        PROJECTS / 2.0
    );
    println!(
        "    looks           {PROJECTS} workers x 2 a second                  = {:.0} a second",
        PROJECTS * 2.0
    );
    println!(
        "    connections     {PROJECTS} workers x 2                           = {:.0}",
        PROJECTS * 2.0
    );
    println!(
        "    one database bears it up to {:.0} s a job",
        AGENTS * RECORDS / sixteen
    );
}
