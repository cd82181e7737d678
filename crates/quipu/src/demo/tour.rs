//! The tour: an agent that is killed, a refused overwrite, eight agents at once, a contradiction in
//! a story, and a page.
//!
//! The agent is a shell script and no model is called. The hooks, commands and files are real.

use std::io::{BufRead, BufReader};
use std::os::unix::fs::PermissionsExt;
use std::path::PathBuf;
use std::process::{Command, Stdio};
use std::time::Instant;

use serde_json::json;

use super::{BUG, Shown, Stage, cannot_run, crowd, end, prepare};
use crate::answer::{Answer, Failure, exit};

/// The scripted agent. The name of the file is the name of its process, by which hooks recognise
/// an agent host.
const AGENT: (&str, &str) = ("scripted-agent", include_str!("agent.sh"));

/// The coding project and the novel, in the folder of the demonstration.
const CODE: &str = "tern";
const STORY: &str = "story";
const CROWD: &str = "crowd";

const CHARACTERS: &str = "# Characters\n\n## Joss Arden\n- handed: left\n\n## Tam\n- status: dead, \
    drowned under the ice\n";
const DRAFT: &str = "# Three\n\nJoss Arden came up from the river. He signed the paper with his \
    right hand.\n\nTam laughed from the bench.\n";

const FINISH: &str = "## Done\n- the parser accepts +02:00 and Z\n## Decisions\n- none\n## Todos\n\
    - done zones\n## Next\n- add a test for each form of a zone\n";

pub fn run(folder: Option<PathBuf>) -> Result<Answer, Failure> {
    let begun = Instant::now();
    let mut stage = Stage::new(folder, "quipu demo")?;
    stage.told.push_str(
        "Scripted here: the agent, which is a shell script; no model is called. Real: every \
         command, hook and file.\n",
    );
    kill_and_continue(&mut stage)?;
    refuse(&mut stage)?;
    stage.say(&format!(
        "3. {} processes append to one file at the same time, {} times each. Some are killed.",
        crowd::AGENTS,
        crowd::APPENDS
    ));
    stage.run(
        "",
        &["init", CROWD, "--profile", "relay", "--no-integrate"],
        "",
        0,
    )?;
    let acknowledged = stage.append_at_once(CROWD, "decisions.md")?;
    contradict(&mut stage)?;
    let page = publish(&mut stage)?;

    let (seconds, place) = (begun.elapsed().as_secs_f32(), stage.root.display());
    let last = format!(
        "Done in {seconds:.1} s. Everything is in {place}:\n  \
         {page}     a page of the story; open it in a browser\n\nTry next:\n  \
         quipu -C {place}/{CODE} serve --open     the project live, in a browser\n  \
         quipu -C {place}/{CODE} start --peek     what the next session will read\n  \
         quipu demo book                          agents plan, write and review a small book\n  \
         cd your-project && quipu init            a memory of your own\n"
    );
    let json = json!({
        "root": place.to_string(),
        "pages": [page],
        "acknowledged": acknowledged,
        "lost": 0,
    });
    Ok(end(stage, json, &last))
}

/// A session is killed in the middle; the next one reads what was asked, changed and remains.
fn kill_and_continue(stage: &mut Stage) -> Result<(), Failure> {
    stage.say(
        "1. An agent works on a repository. Its process is killed before it can save anything.",
    );
    stage.lay(
        "tern/README.md",
        "# Tern\n\nA search index for logs, in one file.\n",
    )?;
    stage.lay("tern/src/main.rs", "fn main() {}\n")?;
    stage.show(
        CODE,
        &["init", "--no-integrate"],
        0,
        Shown::Between("Created", "Try"),
    )?;
    for todo in [
        [
            "todo",
            "add",
            "Accept time zones in log lines",
            "--id",
            "zones",
        ],
        [
            "todo",
            "add",
            "Test each form of a time zone",
            "--id",
            "zone-tests",
        ],
    ] {
        stage.run(CODE, &todo, "", 0)?;
    }
    let why = [
        "decide",
        "Keep the index in SQLite",
        "--id",
        "ADR-001",
        "--why",
        "one file, no server",
    ];
    stage.show(CODE, &why, 0, Shown::Last(1))?;
    let changed = kill_agent(stage).map_err(cannot_run)?;
    if !changed {
        return Err(Failure::new(
            exit::NO,
            "the scripted agent ended too early",
            BUG,
        ));
    }
    stage.line(
        "scripted-agent: is asked for time zones, starts a todo, changes src/parse.rs, kill -9",
    );

    stage.line("");
    stage.line("The next session starts. Its hook gives the agent this:");
    let start = r#"{"session_id": "tuesday", "source": "startup"}"#;
    let hook = [
        "hook",
        "session-start",
        "--as",
        "main",
        "--agent",
        "scripted",
    ];
    let heard = stage.run(CODE, &hook, start, 0)?;
    stage.print(&heard, Shown::Between("## Unfinished", "## About"));

    stage.line("");
    stage.line("It finishes the work and leaves word. The killed session is closed too:");
    let finish = ["finish", "--as", "main", "--agent", "scripted"];
    let said = stage.run(CODE, &finish, FINISH, 0)?;
    stage.line("$ quipu finish --as main --agent scripted < finish.md");
    stage.print(&said, Shown::All);
    Ok(())
}

/// Starts the scripted agent and kills it while it works. Returns whether it was at work.
fn kill_agent(stage: &Stage) -> std::io::Result<bool> {
    let tools = tempfile::tempdir()?;
    let place = tools.path().join(AGENT.0);
    std::fs::write(&place, AGENT.1)?;
    std::fs::set_permissions(&place, std::fs::Permissions::from_mode(0o755))?;
    let mut command = Command::new(&place);
    prepare(&mut command, &stage.root.join(CODE));
    let mut agent = command
        .env("QUIPU_PROGRAM", &stage.program)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()?;
    let said = agent.stdout.take();
    let mut lines = BufReader::new(said.ok_or(std::io::ErrorKind::BrokenPipe)?).lines();
    let is_at_work = lines.any(|line| line.is_ok_and(|line| line == "ready"));
    agent.kill()?;
    agent.wait()?;
    Ok(is_at_work)
}

fn refuse(stage: &mut Stage) -> Result<(), Failure> {
    stage.say("2. An agent tries to rewrite the decision log: with a command, then with its own file tool.");
    let write = [
        "write",
        "decisions.md",
        "--as",
        "main",
        "--text",
        "# Decisions: keep it in Redis",
    ];
    stage.show(CODE, &write, exit::REFUSED.into(), Shown::All)?;
    let tool = r##"{"tool_name": "Write", "tool_input": {"file_path": "decisions.md", "content": "# Redis"}}"##;
    let hook = ["hook", "pre-tool", "--as", "main", "--agent", "scripted"];
    stage.run(CODE, &hook, tool, 2)?;
    stage.line("the hook of the host denies the tool call with the same message (exit 2)");
    Ok(())
}

fn contradict(stage: &mut Stage) -> Result<(), Failure> {
    stage.say("4. A draft of chapter 3 contradicts what is written. Quipu names both places.");
    stage.run(
        "",
        &["init", STORY, "--profile", "novel", "--no-integrate"],
        "",
        0,
    )?;
    stage.lay("story/characters.md", CHARACTERS)?;
    let final_chapter = "# One\n\n## The landing\n\nJoss Arden tied the boat with his left hand.\n\n<!-- CHAPTER_FINAL -->\n";
    stage.run(
        STORY,
        &["write", "manuscripts/ch01.md", "--text", final_chapter],
        "",
        0,
    )?;
    stage.run(
        STORY,
        &["write", "drafts/ch03-draft.md", "--text", DRAFT],
        "",
        0,
    )?;
    let check = ["check", "drafts/ch03-draft.md", "--tokens", "0"];
    let found = stage.run(STORY, &check, "", exit::NO.into())?;
    stage.line("$ quipu check drafts/ch03-draft.md --tokens 0");
    stage.print(&found, Shown::Between("conflict", "no model"));
    let both = found.contains("drafts/ch03-draft.md:3 ⇄ characters.md:4");
    match both && found.contains("drafts/ch03-draft.md:5 ⇄ characters.md:7") {
        true => Ok(()),
        false => Err(Failure::new(exit::NO, "a contradiction was not found", BUG)),
    }
}

/// Publishes the final chapter. Returns the path of its page.
fn publish(stage: &mut Stage) -> Result<String, Failure> {
    stage.say("5. The final chapter becomes a page, and the journals are verified.");
    stage.show(STORY, &["publish"], 0, Shown::Last(1))?;
    stage.show(CODE, &["verify"], 0, Shown::All)?;
    let page = stage.root.join(STORY).join("publish/index.html");
    match page.is_file() {
        true => Ok(page.display().to_string()),
        false => Err(Failure::new(exit::NO, "no page was published", BUG)),
    }
}
