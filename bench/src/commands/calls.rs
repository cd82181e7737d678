//! The calls: commands as processes, and tools of servers that speak MCP.

use std::io::{BufRead, BufReader, Write};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::Instant;

use serde_json::{Value, json};

use crate::Outcome;
use crate::machine::{children_cpu, median};

/// Calls of a round, shared by its clients.
const CALLS: usize = 16;

/// The folder that a case runs in, and the program to call.
#[derive(Clone)]
pub struct Place {
    pub root: PathBuf,
    pub program: PathBuf,
}

#[derive(Clone, Copy)]
pub struct Measured {
    pub wall: f64,
    pub cpu: f64,
    pub failed: usize,
}

pub struct Case {
    pub name: &'static str,
    /// The program to start; `quipu` is the one that is measured.
    program: &'static str,
    call: Call,
}

enum Call {
    /// Words, and a text for standard input.
    Command(Vec<&'static str>, &'static str),
    /// Words that start a server, the tool and its arguments.
    Tool(Vec<&'static str>, &'static str, &'static str),
}

/// Name, command line and what goes to its standard input; or name, server, tool and arguments.
/// `CLIENT` is replaced by the number of the client, `NUMBER` by another number each time.
const CASES: &str = include_str!("cases.txt");

pub fn cases() -> Vec<Case> {
    let parse = |line: &'static str| {
        let mut fields = line.split(" | ").map(str::trim);
        let mut next = || fields.next().unwrap_or_default();
        let (name, words, third, fourth) = (next(), next(), next(), next());
        // Every other part is quoted.
        let words = words
            .split('\'')
            .enumerate()
            .flat_map(|(index, part)| match index % 2 {
                0 => part.split_whitespace().collect(),
                _ => vec![part],
            });
        let mut words: Vec<_> = words.collect();
        let program = words.remove(0);
        let call = match fourth {
            "" => Call::Command(words, third),
            arguments => Call::Tool(words, third, arguments),
        };
        Case {
            name,
            program,
            call,
        }
    };
    CASES.lines().map(parse).collect()
}

impl Case {
    /// The places that this case runs in; none if its program is not installed.
    pub fn places(&self, places: &[Place], folder: &Path) -> Option<Vec<Place>> {
        if self.program == "quipu" {
            return Some(places.to_vec());
        }
        let (root, program) = (folder.join("other"), self.program.into());
        let path = std::env::var_os("PATH").unwrap_or_default();
        let mut folders = std::env::split_paths(&path);
        let is_installed = folders.any(|folder| folder.join(self.program).is_file());
        is_installed.then(|| vec![Place { root, program }])
    }

    /// One round: each client makes its calls one after the other.
    pub fn measure(&self, place: &Place, clients: usize) -> Outcome<Measured> {
        let each = CALLS.div_ceil(clients).max(2);
        let before = children_cpu();
        let (mut walls, mut cpu, mut failed) = (Vec::new(), 0.0, 0);
        std::thread::scope(|scope| -> Outcome {
            let threads: Vec<_> = (0..clients)
                .map(|client| {
                    scope.spawn(move || {
                        self.one_client(place, client, each)
                            .map_err(|e| e.to_string())
                    })
                })
                .collect();
            for thread in threads {
                let (times, servers_cpu, faults) = thread.join().unwrap()?;
                walls.extend(times);
                cpu += servers_cpu;
                failed += faults;
            }
            Ok(())
        })?;
        if !matches!(self.call, Call::Tool(..)) {
            cpu = children_cpu() - before;
        }
        let calls = (clients * each) as f64;
        Ok(Measured {
            wall: median(walls),
            cpu: cpu / calls,
            failed,
        })
    }

    fn one_client(
        &self,
        place: &Place,
        client: usize,
        calls: usize,
    ) -> Outcome<(Vec<f64>, f64, usize)> {
        let (mut times, mut failed) = (Vec::new(), 0);
        if let Call::Tool(words, tool, arguments) = &self.call {
            let mut server = Server::start(place, words)?;
            server.call(tool, &filled(arguments, client))?;
            let before = server.cpu();
            for _ in 0..calls {
                let start = Instant::now();
                failed += usize::from(!server.call(tool, &filled(arguments, client))?);
                times.push(start.elapsed().as_secs_f64() * 1000.0);
            }
            return Ok((times, server.cpu() - before, failed));
        }
        for _ in 0..calls {
            let start = Instant::now();
            failed += usize::from(!self.command(place, client)?);
            times.push(start.elapsed().as_secs_f64() * 1000.0);
        }
        Ok((times, 0.0, failed))
    }

    /// Whether the command succeeded.
    fn command(&self, place: &Place, client: usize) -> Outcome<bool> {
        let (Call::Command(words, input) | Call::Tool(words, input, _)) = &self.call;
        let mut child = Command::new(&place.program)
            .args(words.iter().map(|word| filled(word, client)))
            .current_dir(&place.root)
            .stdin(Stdio::piped())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()?;
        // A command that does not read its input may have ended.
        let _ = child
            .stdin
            .take()
            .unwrap()
            .write_all(filled(input, client).as_bytes());
        Ok(child.wait()?.success())
    }
}

/// A text with the number of its client, and with another number each time.
fn filled(text: &str, client: usize) -> String {
    use std::sync::atomic::{AtomicU64, Ordering};
    static NUMBER: AtomicU64 = AtomicU64::new(0);
    let number = NUMBER.fetch_add(1, Ordering::Relaxed).to_string();
    text.replace("CLIENT", &client.to_string())
        .replace("NUMBER", &number)
}

/// A server that speaks MCP on its standard input and output.
struct Server {
    child: Child,
    answers: BufReader<std::process::ChildStdout>,
    requests: u64,
}

impl Server {
    fn start(place: &Place, words: &[&str]) -> Outcome<Server> {
        let mut command = Command::new(&place.program);
        command.args(words).current_dir(&place.root);
        let mut child = command
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()?;
        let answers = BufReader::new(child.stdout.take().unwrap());
        let mut server = Server {
            child,
            answers,
            requests: 0,
        };
        let client = json!({"name": "bench", "version": "1"});
        server.ask(
            "initialize",
            json!({"protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": client}),
        )?;
        server.send(&json!({"jsonrpc": "2.0", "method": "notifications/initialized"}))?;
        Ok(server)
    }

    fn send(&mut self, message: &Value) -> Outcome {
        let stdin = self.child.stdin.as_mut().unwrap();
        Ok(stdin.write_all(format!("{message}\n").as_bytes())?)
    }

    fn ask(&mut self, method: &str, params: Value) -> Outcome<Value> {
        self.requests += 1;
        let id = self.requests;
        self.send(&json!({"jsonrpc": "2.0", "id": id, "method": method, "params": params}))?;
        loop {
            let mut line = String::new();
            if self.answers.read_line(&mut line)? == 0 {
                return Err(format!("the server ended before it answered `{method}`").into());
            }
            let answer: Value = serde_json::from_str(&line)?;
            if answer["id"] == id {
                return Ok(answer);
            }
        }
    }

    /// Whether the tool did what it was asked.
    fn call(&mut self, tool: &str, arguments: &str) -> Outcome<bool> {
        let arguments: Value = serde_json::from_str(arguments)?;
        let answer = self.ask("tools/call", json!({"name": tool, "arguments": arguments}))?;
        Ok(answer["result"].is_object() && answer["result"]["isError"] != true)
    }

    /// Milliseconds of CPU that its threads have used.
    fn cpu(&self) -> f64 {
        let tasks = std::fs::read_dir(format!("/proc/{}/task", self.child.id()));
        let used = |task: std::fs::DirEntry| {
            let text = std::fs::read_to_string(task.path().join("schedstat")).ok()?;
            text.split(' ').next()?.parse::<f64>().ok()
        };
        tasks
            .into_iter()
            .flatten()
            .flatten()
            .filter_map(used)
            .sum::<f64>()
            / 1e6
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        drop(self.child.stdin.take());
        let _ = self.child.wait();
    }
}
