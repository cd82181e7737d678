//! Runs one scenario in a folder of its own.

use std::path::Path;
use std::process::{Command, Stdio};

use quipu_testkit::postgres::Cluster;

use crate::redact::{redact, without_places, without_rule_lines, without_versions};
use crate::transcript::{self, Step};
use crate::tree::{Tree, difference};

/// Quipu's own folder and git's. They hold times, ids and a database; the commands' output covers
/// them.
const NOT_COMPARED: [&str; 2] = [".quipu", ".git"];
/// The scenario that compares the lines of rules; all others hide them.
const SHOWS_RULE_LINES: &str = "rule-lines";

/// Runs a scenario and returns the differences. With `record`, updates the scenario instead.
pub fn run(folder: &Path, record: bool) -> Result<(), String> {
    let io = |what: &str| {
        let what = what.to_owned();
        move |e: std::io::Error| format!("{what}: {e}")
    };
    for entry in std::fs::read_dir(folder)
        .map_err(io("the scenario"))?
        .flatten()
    {
        let name = entry.file_name().to_string_lossy().into_owned();
        if !["before", "transcript", "after"].contains(&name.as_str()) {
            return Err(format!(
                "`{name}` is neither `before/`, `transcript` nor `after/`"
            ));
        }
    }
    let file = folder.join("transcript");
    let told =
        std::fs::read_to_string(&file).map_err(|_| "`transcript` does not exist".to_owned())?;
    let steps = transcript::parse(&told)?;
    let before = Tree::load(&folder.join("before"), &[]).map_err(io("before/"))?;

    let temp = tempfile::tempdir().map_err(io("a temporary folder"))?;
    let root = temp
        .path()
        .canonicalize()
        .map_err(io("a temporary folder"))?;
    // The folder's name becomes the project's name, so it must not change from run to run.
    let project = root.join("project");
    std::fs::create_dir(&project).map_err(io("the project"))?;
    before.write(&project).map_err(io("the project"))?;
    let mut happened = in_one_shell(Shell::Plain, &root, &project, &steps)?;
    if !folder.ends_with(SHOWS_RULE_LINES) {
        for step in &mut happened {
            step.output = without_rule_lines(&step.output);
        }
    }
    let left = Tree::load(&project, &NOT_COMPARED)
        .map_err(io("the project"))?
        .redacted(&root);

    // Only the files that the scenario is about are compared: those in `after/`, or those in
    // `before/`, which then must not change.
    let after = folder.join("after");
    let expected = if after.exists() {
        Tree::load(&after, &[]).map_err(io("after/"))?
    } else {
        before
    };
    let left = left.only(&expected);
    if record {
        std::fs::write(&file, transcript::render(&happened)?).map_err(io("transcript"))?;
        if left != expected {
            let _ = std::fs::remove_dir_all(&after);
            std::fs::create_dir(&after)
                .and_then(|()| left.write(&after))
                .map_err(io("after/"))?;
        }
        return Ok(());
    }
    let mut differs = String::new();
    for (step, happened) in steps.iter().zip(&happened).filter(|(a, b)| a != b) {
        differs.push_str(&format!(
            "$ {}\n{}",
            step.command.join("\n> "),
            difference("output", &ended(step), &ended(happened))
        ));
    }
    differs.push_str(&left.difference(&expected));
    if differs.is_empty() {
        Ok(())
    } else {
        Err(differs)
    }
}

/// Whether a command writes the time into a file, so that its version differs in every run.
fn writes_times(command: &str) -> bool {
    [
        "quipu finish",
        "quipu state",
        "quipu todo",
        "quipu decide",
        "quipu start",
        "quipu collect",
    ]
    .iter()
    .any(|c| command.contains(c))
}

fn ended(step: &Step) -> String {
    if step.output.is_empty() {
        String::new()
    } else {
        format!("{}\n", step.output)
    }
}

/// Returns the folders of PATH without an agent host, because the output of `quipu init` must not
/// depend on this machine.
fn path_without_hosts() -> String {
    const HOSTS: [&str; 7] = [
        "claude",
        "codex",
        "gemini",
        "opencode",
        "goose",
        "qwen",
        "cursor-agent",
    ];
    let path = std::env::var("PATH").unwrap_or_default();
    path.split(':')
        .filter(|folder| {
            !HOSTS
                .iter()
                .any(|host| Path::new(folder).join(host).is_file())
        })
        .collect::<Vec<_>>()
        .join(":")
}

/// The shell of the commands, and what becomes of its two outputs.
#[derive(Clone, Copy, PartialEq)]
pub enum Shell {
    /// `sh`; lines of the error output follow the others and begin with `! `.
    Plain,
    /// `bash`, which readers of a guide use; both outputs mixed, as a terminal shows them.
    Bash,
}

/// Runs all commands in one shell, each with its own output.
pub fn in_one_shell(
    kind: Shell,
    root: &Path,
    project: &Path,
    steps: &[Step],
) -> Result<Vec<Step>, String> {
    let outputs = root.join("outputs");
    std::fs::create_dir(&outputs).map_err(|e| format!("outputs: {e}"))?;
    let name = |number: usize, kind: &str| outputs.join(format!("{number}.{kind}"));
    let mut script = String::new();
    for (number, step) in steps.iter().enumerate() {
        let [out, err, code] =
            ["out", "err", "code"].map(|kind| name(number, kind).display().to_string());
        let errors = match kind {
            Shell::Plain => err,
            Shell::Bash => "&1".to_owned(),
        };
        script.push_str(&format!(
            "{{ {}\n}} >{out} 2>{errors}\necho $? >{code}\n",
            step.command.join("\n")
        ));
    }
    let file = root.join("script");
    std::fs::write(&file, script).map_err(|e| format!("script: {e}"))?;

    let quipu = Path::new(env!("CARGO_BIN_EXE_quipu"));
    let bin = root.join("bin");
    std::fs::create_dir(&bin).map_err(|e| format!("bin: {e}"))?;
    std::os::unix::fs::symlink(quipu, bin.join("quipu")).map_err(|e| format!("bin: {e}"))?;
    let path = format!("{}:{}", bin.display(), path_without_hosts());
    let mut shell = Command::new(match kind {
        Shell::Plain => "sh",
        Shell::Bash => "bash",
    });
    shell
        .arg(&file)
        .current_dir(project)
        .stdin(Stdio::null())
        .env("PATH", path)
        .env("LC_ALL", "C.UTF-8")
        .env_remove("HOME");
    shell.env("XDG_STATE_HOME", root.join("state"));
    shell
        .env("GIT_CONFIG_GLOBAL", "/dev/null")
        .env("GIT_CONFIG_NOSYSTEM", "1");
    for (variable, _) in std::env::vars_os() {
        if variable.to_string_lossy().starts_with("QUIPU_") {
            shell.env_remove(variable);
        }
    }
    // The test is the parent process of every hook, as a host would be. Commands without a name are
    // a person's here, unless a scenario unsets this.
    shell.env("QUIPU_ROLE", "person");
    // A scenario about shared stores gets an empty one; the others must behave the same on one.
    let server = steps
        .iter()
        .any(|s| s.command.iter().any(|line| line.contains("$SERVER")))
        .then(|| Cluster::shared().fresh_store());
    match &server {
        Some(server) => drop(shell.env("SERVER", server)),
        None if crate::is_shared() => {
            shell.env("QUIPU_STORE", Cluster::shared().fresh_store());
        }
        None => {}
    }
    let output = shell.output().map_err(|e| format!("sh: {e}"))?;
    let mut happened = Vec::new();
    for (number, step) in steps.iter().enumerate() {
        let command = step.command.join("\n");
        let read = |kind: &str| {
            let plain = |bytes: Vec<u8>| {
                let text = String::from_utf8_lossy(&bytes).into_owned();
                match &server {
                    Some(server) => text.replace(server, "[SERVER]"),
                    None if crate::is_shared() => without_places(&text),
                    None => text,
                }
            };
            let told = std::fs::read(name(number, kind)).map(|b| redact(&plain(b), root));
            told.map(|told| {
                if writes_times(&command) {
                    without_versions(&told)
                } else {
                    told
                }
            })
        };
        let Ok(code) = read("code") else {
            return Err(format!(
                "the shell ended at `$ {}`: {}",
                step.command[0],
                String::from_utf8_lossy(&output.stderr)
            ));
        };
        let mut told = read("out").unwrap_or_default();
        if !told.is_empty() && !told.ends_with('\n') {
            told.push('\n');
        }
        for line in read("err").unwrap_or_default().lines() {
            told.push_str(&format!("! {line}\n"));
        }
        // Trailing blank lines do not count; an exit code does.
        told.truncate(told.trim_end_matches('\n').len());
        if code.trim() != "0" {
            told.push_str(&format!(
                "{}[exit {}]",
                if told.is_empty() { "" } else { "\n" },
                code.trim()
            ));
        }
        happened.push(Step {
            notes: step.notes.clone(),
            command: step.command.clone(),
            output: told,
        });
    }
    Ok(happened)
}
