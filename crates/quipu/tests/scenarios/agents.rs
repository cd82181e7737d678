//! Twenty agents at once, as processes: nothing acknowledged is lost, nobody waits for ever, and who
//! was killed is seen.

use std::path::Path;
use std::process::{Command, Output, Stdio};

use serde_json::Value;

const AGENTS: usize = 20;

fn quipu(root: &Path, agent: &str) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_quipu"));
    command.current_dir(root).env_clear().env("QUIPU_AGENT", agent).env("QUIPU_ROLE", "main").stdin(Stdio::null());
    command
}

fn run(root: &Path, agent: &str, arguments: &[&str]) -> Output {
    quipu(root, agent).args(arguments).output().unwrap()
}

fn good(root: &Path, agent: &str, arguments: &[&str]) -> String {
    let output = run(root, agent, arguments);
    assert!(output.status.success(), "{agent} {arguments:?}: {}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout).unwrap()
}

fn read(root: &Path, file: &str) -> Value {
    serde_json::from_str(&std::fs::read_to_string(root.join(file)).unwrap()).unwrap()
}

#[test]
fn twenty_agents_start_and_finish_at_once() {
    let folder = quipu_testkit::temp_folder();
    let root = folder.path();
    let laid =
        Command::new(env!("CARGO_BIN_EXE_quipu")).args(["init", "--profile", "relay"]).current_dir(root).env_clear().output().unwrap();
    assert!(laid.status.success());
    std::thread::scope(|scope| {
        for number in 0..AGENTS {
            scope.spawn(move || {
                let agent = format!("a{number}");
                good(root, &agent, &["start"]);
                let id = good(root, &agent, &["todo", "add", &format!("task of {agent}")]);
                good(root, &agent, &["todo", "start", id.trim()]);
                if number % 5 == 4 {
                    // Killed in the middle of its finish, or before it, or after: it does not know.
                    let mut child = quipu(root, &agent)
                        .args(["finish", "--did", &agent, "--next", "more", "--none", "decisions", "--done", id.trim()])
                        .stdout(Stdio::null())
                        .stderr(Stdio::null())
                        .spawn()
                        .unwrap();
                    for _ in 0..number * 2000 {
                        std::hint::spin_loop();
                    }
                    let _ = child.kill();
                    let _ = child.wait();
                    return;
                }
                let decision = format!("by {agent} | many at once | go on");
                good(root, &agent, &["finish", "--did", &agent, "--next", "more", "--decision", &decision, "--done", id.trim()]);
            });
        }
    });
    let (state, todos) = (read(root, "state.json"), read(root, "todos.json"));
    let done: Vec<&str> = state["progress"]["completed"].as_array().unwrap().iter().map(|d| d.as_str().unwrap()).collect();
    let list = todos["todos"].as_array().unwrap();
    assert_eq!(list.len(), AGENTS, "no todo is lost");
    let completed = list.iter().filter(|t| t["status"] == "completed").count();
    assert_eq!(todos["metadata"]["total_created"], AGENTS);
    assert_eq!(todos["metadata"]["total_completed"], completed);
    assert_eq!(done.len(), completed, "a finish is whole: what was done and its todo");
    let decisions = std::fs::read_to_string(root.join("decisions.md")).unwrap();
    for number in 0..AGENTS {
        let agent = format!("a{number}");
        let finished = done.iter().filter(|d| **d == agent).count();
        if number % 5 != 4 {
            assert_eq!((finished, decisions.matches(&format!(": by {agent}\n")).count()), (1, 1), "{agent}");
        }
    }
    // Whoever was killed before its finish is seen by the next; whoever was not, is not.
    let awake: Value = serde_json::from_str(&good(root, "next", &["start", "--json"])).unwrap();
    let open = awake["blocks"]
        .as_array()
        .unwrap()
        .iter()
        .find(|b| b["name"] == "unfinished")
        .map(|b| b["data"]["at_work"].as_array().unwrap().len());
    assert_eq!(open.unwrap_or(0), AGENTS - completed, "{awake:#}");
    let verified = Command::new(env!("CARGO_BIN_EXE_quipu")).arg("verify").current_dir(root).env_clear().output().unwrap();
    assert!(verified.status.success(), "{}", String::from_utf8_lossy(&verified.stdout));
}
