//! Long-running processes on a working copy: one that follows the shared store, and one that
//! commits for its client.

use std::io::{BufRead, BufReader, Write};
use std::process::{Child, Stdio};
use std::time::{Duration, Instant};

use quipu_testkit::postgres::Cluster;

use crate::rehearsal::Desk;

const PATIENCE: Duration = Duration::from_secs(60);

struct Ended(Child);

impl Drop for Ended {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// Creates a project in a shared store, and the folder of a second copy.
fn two_copies(cluster: &Cluster) -> (Desk, String) {
    let desk = Desk::lay(&["init", "--profile", "relay"]);
    let name = cluster.fresh_name();
    desk.fine(&["store", "push", &cluster.url(""), "--project", &name]);
    let other = desk
        .root
        .parent()
        .unwrap()
        .join("other")
        .display()
        .to_string();
    desk.fine(&["checkout", &cluster.url(""), &other, "--project", &name]);
    (desk, other)
}

fn wait_for(desk: &Desk, path: &str, text: &str) {
    let begun = Instant::now();
    while !desk.text(path).contains(text) {
        assert!(begun.elapsed() < PATIENCE, "{text} does not arrive");
        std::thread::sleep(Duration::from_millis(5));
    }
}

#[test]
fn a_copy_that_follows_has_what_others_commit_also_after_a_crash_of_the_server() {
    let cluster = Cluster::start();
    let (desk, other) = two_copies(&cluster);
    let mut follower = Ended(desk.quipu(&["sync", "--follow", "--json"]).spawn().unwrap());
    let mut events = BufReader::new(follower.0.stdout.take().unwrap()).lines();
    let mut next = |kind: &str| loop {
        let line = events.next().unwrap().unwrap();
        if line.contains(&format!("\"event\":\"{kind}\"")) {
            return line;
        }
    };
    next("following");
    desk.fine(&[
        "append",
        "decisions.md",
        "--text",
        "- from elsewhere",
        "-C",
        &other,
    ]);
    wait_for(&desk, "decisions.md", "- from elsewhere");
    assert!(next("synced").contains("\"conflicts\":[]"));
    cluster.kill();
    next("waiting");
    cluster.restart();
    desk.fine(&[
        "append",
        "decisions.md",
        "--text",
        "- and again",
        "-C",
        &other,
    ]);
    wait_for(&desk, "decisions.md", "- and again");
}

#[test]
fn an_agents_server_keeps_its_connection_and_bears_that_it_ends() {
    let cluster = Cluster::start();
    let (desk, other) = two_copies(&cluster);
    let mut server = Ended(desk.quipu(&["mcp"]).stdin(Stdio::piped()).spawn().unwrap());
    let (mut input, output) = (
        server.0.stdin.take().unwrap(),
        server.0.stdout.take().unwrap(),
    );
    let mut lines = BufReader::new(output).lines();
    let mut call = |number: usize| {
        let arguments =
            serde_json::json!({"path": "decisions.md", "text": format!("- number {number}")});
        let params = serde_json::json!({"name": "append", "arguments": arguments});
        writeln!(input, "{}", serde_json::json!({"jsonrpc": "2.0", "id": number, "method": "tools/call", "params": params})).unwrap();
        let answer = lines.next().unwrap().unwrap();
        assert!(
            answer.contains("\"result\"") && !answer.contains("\"isError\":true"),
            "{answer}"
        );
    };
    let begun = || {
        cluster.sql("SELECT string_agg(pid::text, ',') FROM pg_stat_activity WHERE query LIKE '%quipu.%' AND pid <> pg_backend_pid()")
    };
    call(1);
    let first = begun();
    call(2);
    assert!(
        !first.is_empty() && begun() == first,
        "another connection: {first} and {}",
        begun()
    );
    cluster.kill();
    cluster.restart();
    call(3);
    desk.fine(&["sync", "-C", &other]);
    let text = std::fs::read_to_string(format!("{other}/decisions.md")).unwrap();
    let found: Vec<&str> = text
        .lines()
        .filter(|line| line.starts_with("- number"))
        .collect();
    assert_eq!(found, ["- number 1", "- number 2", "- number 3"]);
}
