//! Twenty concurrent agent processes: no acknowledged write is lost, no process waits forever, and
//! killed agents are reported.

use std::path::Path;
use std::process::{Child, Command, Output, Stdio};
use std::time::Duration;

use serde_json::Value;

const AGENTS: usize = 20;
const TWINS: usize = 8;

fn quipu(root: &Path, agent: &str) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_quipu"));
    command
        .current_dir(root)
        .env_clear()
        .env("QUIPU_AGENT", agent)
        .env("QUIPU_ROLE", "agent")
        .stdin(Stdio::null());
    command
}

fn run(root: &Path, agent: &str, arguments: &[&str]) -> Output {
    quipu(root, agent).args(arguments).output().unwrap()
}

fn good(root: &Path, agent: &str, arguments: &[&str]) -> String {
    let output = run(root, agent, arguments);
    assert!(
        output.status.success(),
        "{agent} {arguments:?}: {}",
        String::from_utf8_lossy(&output.stderr)
    );
    String::from_utf8(output.stdout).unwrap()
}

fn read(root: &Path, file: &str) -> Value {
    serde_json::from_str(&std::fs::read_to_string(root.join(file)).unwrap()).unwrap()
}

/// Returns the number of an agent's session records, and the number in its knowledge file.
fn recorded(root: &Path, agent: &str) -> (usize, Option<usize>) {
    let records = std::fs::read_dir(root.join(".sessions")).unwrap();
    let texts = records.map(|entry| std::fs::read_to_string(entry.unwrap().path()).unwrap());
    let own = texts
        .filter(|text| text.contains(&format!("- Agent: {agent}\n")))
        .count();
    let knowledge =
        std::fs::read_to_string(root.join(format!(".notes/{agent}/agent_knowledge.md"))).ok();
    let tasks = knowledge.and_then(|text| {
        text.lines()
            .find_map(|line| line.strip_prefix("- Tasks: ")?.parse().ok())
    });
    (own, tasks)
}

/// Kills a process before, during or after its finish, by chance.
fn kill_in_the_middle(mut child: Child) {
    let chance = std::time::SystemTime::now()
        .duration_since(std::time::UNIX_EPOCH)
        .unwrap()
        .subsec_nanos()
        % 150_000_000;
    std::thread::sleep(Duration::from_nanos(u64::from(chance)));
    let _ = child.kill();
    let _ = child.wait();
}

#[test]
fn twenty_agents_start_and_finish_at_once() {
    let folder = quipu_testkit::temp_folder();
    let root = folder.path();
    let laid = Command::new(env!("CARGO_BIN_EXE_quipu"))
        .args(["init", "--profile", "relay,worldlog"])
        .current_dir(root)
        .env_clear()
        .output()
        .unwrap();
    assert!(laid.status.success());
    std::thread::scope(|scope| {
        for number in 0..AGENTS {
            scope.spawn(move || {
                let agent = format!("a{number}");
                good(root, &agent, &["start"]);
                let id = good(root, &agent, &["todo", "add", &format!("task of {agent}")]);
                good(root, &agent, &["todo", "start", id.trim()]);
                // All records would have the same name.
                good(
                    root,
                    &agent,
                    &["task", "start", "the same fault", "--type", "fix"],
                );
                let (fact, decision) = (
                    format!("Structure/{agent}=done"),
                    format!("by {agent} | many at once | go on"),
                );
                let said = [
                    "--solution",
                    "fixed",
                    "--lesson",
                    "none",
                    "--world",
                    &fact,
                    "--world",
                    "Environment/last=x",
                ];
                let state = [
                    "--did",
                    &agent,
                    "--next",
                    "more",
                    "--decision",
                    &decision,
                    "--done",
                    id.trim(),
                ];
                let finish = [&["finish"], &said[..], &state[..]].concat();
                if number % 5 == 4 {
                    kill_in_the_middle(
                        quipu(root, &agent)
                            .args(finish)
                            .stdout(Stdio::null())
                            .stderr(Stdio::null())
                            .spawn()
                            .unwrap(),
                    );
                } else {
                    good(root, &agent, &finish);
                }
            });
        }
    });
    let (state, todos) = (read(root, "state.json"), read(root, "todos.json"));
    let done: Vec<&str> = state["progress"]["completed"]
        .as_array()
        .unwrap()
        .iter()
        .map(|d| d.as_str().unwrap())
        .collect();
    let list = todos["todos"].as_array().unwrap();
    assert_eq!(list.len(), AGENTS, "no todo is lost");
    let completed = list.iter().filter(|t| t["status"] == "completed").count();
    assert_eq!(todos["metadata"]["total_created"], AGENTS);
    assert_eq!(todos["metadata"]["total_completed"], completed);
    let decisions = std::fs::read_to_string(root.join("decisions.md")).unwrap();
    let mut whole = 0;
    for number in 0..AGENTS {
        let agent = format!("a{number}");
        let finished = usize::from(done.contains(&agent.as_str()));
        assert!(
            number % 5 == 4 || finished == 1,
            "{agent} was told that it had finished"
        );
        whole += finished;
        // A finish is applied completely or not at all.
        assert_eq!(done.iter().filter(|d| **d == agent).count(), finished);
        assert_eq!(
            decisions.matches(&format!(": by {agent}\n")).count(),
            finished,
            "{agent}"
        );
        assert_eq!(
            recorded(root, &agent),
            (finished, (finished == 1).then_some(1)),
            "{agent}"
        );
        let fact = run(
            root,
            &agent,
            &["world", "get", &agent, "--section", "Structure"],
        );
        assert_eq!(
            fact.stdout,
            if finished == 1 {
                &b"done\n"[..]
            } else {
                &b""[..]
            },
            "{agent}"
        );
        assert_eq!(
            run(root, &agent, &["task", "status"]).status.success(),
            finished == 0,
            "{agent}"
        );
    }
    assert_eq!(
        (
            whole,
            std::fs::read_dir(root.join(".sessions")).unwrap().count()
        ),
        (completed, completed)
    );
    // The next session lists exactly the agents that were killed before their finish.
    let awake: Value = serde_json::from_str(&good(root, "next", &["start", "--json"])).unwrap();
    let open = awake["blocks"]
        .as_array()
        .unwrap()
        .iter()
        .find(|b| b["name"] == "unfinished")
        .map(|b| b["data"]["at_work"].as_array().unwrap().len());
    assert_eq!(open.unwrap_or(0), AGENTS - completed, "{awake:#}");
    let verified = Command::new(env!("CARGO_BIN_EXE_quipu"))
        .arg("verify")
        .current_dir(root)
        .env_clear()
        .output()
        .unwrap();
    assert!(
        verified.status.success(),
        "{}",
        String::from_utf8_lossy(&verified.stdout)
    );
}

#[test]
fn one_agent_in_many_places_is_counted_whole() {
    let folder = quipu_testkit::temp_folder();
    let root = folder.path();
    let laid = Command::new(env!("CARGO_BIN_EXE_quipu"))
        .args(["init", "--profile", "worldlog"])
        .current_dir(root)
        .env_clear()
        .output()
        .unwrap();
    assert!(laid.status.success());
    std::thread::scope(|scope| {
        for number in 0..TWINS {
            scope.spawn(move || {
                let problem = format!("small fault {}", number % 2);
                let said = [
                    "--problem",
                    &problem,
                    "--solution",
                    "fixed",
                    "--lesson",
                    "none",
                    "--none",
                    "world",
                ];
                let finish = [&["finish"], &said[..]].concat();
                match number % 4 {
                    3 => kill_in_the_middle(
                        quipu(root, "twin")
                            .args(finish)
                            .stdout(Stdio::null())
                            .stderr(Stdio::null())
                            .spawn()
                            .unwrap(),
                    ),
                    _ => drop(good(root, "twin", &finish)),
                }
            });
        }
    });
    let (records, tasks) = recorded(root, "twin");
    assert!(
        records >= TWINS - TWINS / 4,
        "every acknowledged session exists: {records}"
    );
    assert_eq!(tasks, Some(records));
}
