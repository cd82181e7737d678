//! Measures the time from a commit on one host to the updated file on another.
//!
//! Each of the two hosts is a network namespace with a working copy and its own Quipu process. The
//! server is on the bridge between them, so every byte travels over TCP and a veth pair. One host
//! commits; on the other, `quipu sync --follow` applies new commits to the files. The clock runs
//! from before the commit request until a reader finds the new text in the other host's file.

use std::io::{BufRead, BufReader, Write};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};
use std::time::{Duration, Instant};

use quipu_postgres::{Address, push};
use quipu_store::{Options, Store};
use quipu_testkit::postgres::Cluster;
use quipu_testkit::{Host, Network};
use serde_json::{Value, json};

use crate::machine::program;
use crate::small::{contract, prepare};

/// The file that is committed and synced.
const FILE: &str = "drafts/w0.md";
/// Polling interval of the reader.
const LOOK: Duration = Duration::from_micros(200);
/// Pause between two commits, so that one commit does not affect the next measurement.
const PAUSE: Duration = Duration::from_millis(25);
const PATIENCE: Duration = Duration::from_secs(30);

/// The measured latencies.
pub struct Crossing {
    /// Whether the hosts ran in separate network namespaces.
    pub apart: bool,
    /// Commits by a long-running process: time until the other host's file changed, and until the
    /// process answered.
    pub standing: (Vec<Duration>, Vec<Duration>),
    /// Commits by a new process each.
    pub command: (Vec<Duration>, Vec<Duration>),
}

/// A child process that is killed on drop.
struct Ended(Child);

impl Drop for Ended {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

pub fn cross(cluster: &Cluster, disk: &Path, commits: usize) -> Crossing {
    let folder = tempfile::tempdir_in(disk).unwrap();
    let root = folder.path().join("home");
    std::fs::create_dir(&root).unwrap();
    prepare(&root);
    let store = Store::open(&root, contract(), Options::default()).unwrap();
    push(
        &store,
        &Address::parse(&cluster.url("")).unwrap(),
        "crossing",
    )
    .unwrap();
    let network = Network::new();
    let url = format!(
        "postgres://quipu@{}:{}/postgres?project=crossing&sslmode=disable",
        network.address(),
        cluster.port()
    );
    let site = |number: u32| -> (Host, PathBuf) {
        let host = network.host(number, &format!("host{number}"));
        let copy = folder.path().join(format!("copy{number}"));
        let output = on(&host)
            .args(["checkout", &url])
            .arg(&copy)
            .output()
            .unwrap();
        assert!(
            output.status.success(),
            "{}",
            String::from_utf8_lossy(&output.stderr)
        );
        (host, copy)
    };
    let ((here, copy), (there, other)) = (site(1), site(2));
    let following = on(&there)
        .args(["sync", "--follow"])
        .current_dir(&other)
        .stderr(Stdio::piped())
        .spawn();
    let mut follower = Ended(following.unwrap());
    let mut said = String::new();
    BufReader::new(follower.0.stderr.take().unwrap())
        .read_line(&mut said)
        .unwrap();
    assert!(said.contains("following"), "{said}");
    let file = other.join(FILE);

    let mut writer = Standing::start(&here, &copy);
    let mut standing = (Vec::new(), Vec::new());
    for number in 0..=commits {
        let text = text_of(number);
        let begun = Instant::now();
        writer.ask(&text);
        let seen = seen_in(&file, &text, begun);
        writer.hear();
        // The first commit opens the connection and is not counted.
        if number > 0 {
            standing.0.push(seen);
            standing.1.push(writer.answered.duration_since(begun));
        }
        std::thread::sleep(PAUSE);
    }
    drop(writer);
    let mut shell = Shell::start(&here, &copy);
    let mut command = (Vec::new(), Vec::new());
    for number in 0..commits / 2 {
        let text = text_of(1_000_000 + number);
        let begun = Instant::now();
        shell.ask(&text);
        let seen = seen_in(&file, &text, begun);
        command.0.push(seen);
        command.1.push(shell.hear().duration_since(begun));
        std::thread::sleep(PAUSE);
    }
    Crossing {
        apart: network.is_real(),
        standing,
        command,
    }
}

fn text_of(number: usize) -> String {
    format!("{number:08} {}\n", "x".repeat(490))
}

/// Builds a command that runs Quipu on a host.
fn on(host: &Host) -> Command {
    let mut command = host.command(program().to_str().unwrap());
    for name in [
        "QUIPU_ROLE",
        "QUIPU_UNIT",
        "QUIPU_AGENT",
        "QUIPU_LEASE",
        "QUIPU_STORE",
    ] {
        command.env_remove(name);
    }
    command.stdin(Stdio::null()).stdout(Stdio::null());
    command
}

/// Polls a file until it holds a text.
fn seen_in(file: &Path, text: &str, begun: Instant) -> Duration {
    while !std::fs::read_to_string(file).is_ok_and(|found| found.trim_end() == text.trim_end()) {
        assert!(
            begun.elapsed() < PATIENCE,
            "it does not arrive in {}",
            file.display()
        );
        std::thread::sleep(LOOK);
    }
    begun.elapsed()
}

/// A long-running process that commits on request: the MCP server of an agent.
struct Standing {
    child: Ended,
    input: ChildStdin,
    answers: std::sync::mpsc::Receiver<(Instant, String)>,
    answered: Instant,
}

impl Standing {
    fn start(host: &Host, copy: &Path) -> Standing {
        let mut command = on(host);
        let mut child = command
            .arg("mcp")
            .current_dir(copy)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let (input, output) = (child.stdin.take().unwrap(), child.stdout.take().unwrap());
        let answers = heard(output);
        let mut standing = Standing {
            child: Ended(child),
            input,
            answers,
            answered: Instant::now(),
        };
        standing.send(
            &json!({"jsonrpc": "2.0", "id": 0, "method": "initialize", "params": {"protocolVersion": "2025-06-18", "capabilities": {}}}),
        );
        standing.hear();
        standing
    }

    fn send(&mut self, message: &Value) {
        writeln!(self.input, "{message}").unwrap();
        self.input.flush().unwrap();
    }

    fn ask(&mut self, text: &str) {
        let arguments = json!({"path": FILE, "text": text});
        self.send(&json!({"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": {"name": "write", "arguments": arguments}}));
    }

    fn hear(&mut self) {
        let (at, line) = self
            .answers
            .recv_timeout(PATIENCE)
            .unwrap_or_else(|_| panic!("{} says nothing", self.child.0.id()));
        let answer: Value = serde_json::from_str(&line).unwrap();
        assert!(
            answer["result"].is_object() && answer["result"]["isError"] != true,
            "{line}"
        );
        self.answered = at;
    }
}

/// A shell on a host that starts a command for each line, so that the time to enter the namespace
/// is not counted.
struct Shell {
    _child: Ended,
    input: ChildStdin,
    answers: std::sync::mpsc::Receiver<(Instant, String)>,
}

impl Shell {
    fn start(host: &Host, copy: &Path) -> Shell {
        let script = format!(
            "while read -r text; do '{}' write {FILE} --text \"$text\" >/dev/null 2>&1; echo $?; done",
            program().display()
        );
        let mut command = host.command("sh");
        command
            .args(["-c", &script])
            .current_dir(copy)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped());
        let mut child = command.spawn().unwrap();
        let (input, output) = (child.stdin.take().unwrap(), child.stdout.take().unwrap());
        Shell {
            _child: Ended(child),
            input,
            answers: heard(output),
        }
    }

    fn ask(&mut self, text: &str) {
        writeln!(self.input, "{}", text.trim_end()).unwrap();
    }

    /// Returns the time at which the command ended.
    fn hear(&mut self) -> Instant {
        let (at, code) = self.answers.recv_timeout(PATIENCE).unwrap();
        assert_eq!(code, "0");
        at
    }
}

/// Reads lines, each with its arrival time.
fn heard(output: ChildStdout) -> std::sync::mpsc::Receiver<(Instant, String)> {
    let (sender, receiver) = std::sync::mpsc::channel();
    std::thread::spawn(move || {
        for line in BufReader::new(output).lines().map_while(Result::ok) {
            if sender.send((Instant::now(), line)).is_err() {
                return;
            }
        }
    });
    receiver
}
