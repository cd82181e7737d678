//! A project of a given size for each program, and a Git repository and a SQLite file beside it.

use std::fmt::Write;
use std::path::Path;
use std::process::Command;

use quipu_contract::{Actor, ProjectPath};
use quipu_protocol::Project;
use quipu_store::{Change, Options};

use super::calls::Place;
use crate::Outcome;

/// Files that the cases write, besides those of the profiles.
const RULES: &str = "\n[[files]]\npath = \"log/*.md\"\nclass = \"append\"\n\n[[files]]\npath = \"notes/*.md\"\nclass = \"overwrite\"\n";
/// The history is spread over so many files.
const LOGS: usize = 100;
const THREADS: usize = 8;

/// Builds the project once and copies it for each program.
pub fn build(
    folder: &Path,
    programs: &[std::path::PathBuf],
    commits: usize,
    files: usize,
) -> Outcome<Vec<Place>> {
    let first = folder.join("p0");
    std::fs::create_dir(&first)?;
    let call = |words: &[&str], root: &Path, program: &Path| {
        good(Command::new(program).args(words).current_dir(root))
    };
    call(
        &["init", "--profile", "relay,worldlog"],
        &first,
        &programs[0],
    )?;
    let manifest = first.join("quipu.toml");
    let rules = std::fs::read_to_string(&manifest)? + RULES;
    std::fs::write(manifest, rules)?;
    for number in 0..files {
        let (name, text) = session(number)?;
        std::fs::write(first.join(format!(".sessions/{name}.md")), text)?;
    }
    call(&["status"], &first, &programs[0])?;
    add_history(&first, commits)?;
    let mut places = Vec::new();
    for (index, program) in programs.iter().enumerate() {
        let root = folder.join(format!("p{index}"));
        if index > 0 {
            good(Command::new("cp").arg("-a").arg(&first).arg(&root))?;
        }
        call(&["status"], &root, program)?;
        places.push(Place {
            root,
            program: program.clone(),
        });
    }
    let other = folder.join("other");
    good(Command::new("cp").arg("-a").arg(&first).arg(&other))?;
    let script = "rm -r .quipu && git init -q . && git config user.name b && git config user.email b@b && git add -A && git commit -qm files && { ! command -v sqlite3 || sqlite3 rival.db 'PRAGMA journal_mode=WAL; CREATE TABLE log (id INTEGER PRIMARY KEY, body TEXT)'; }";
    good(Command::new("sh").args(["-c", script]).current_dir(&other))?;
    Ok(places)
}

/// The record of one past session.
fn session(number: usize) -> Outcome<(String, String)> {
    let (day, month, year) = (
        number % 28 + 1,
        number / 28 % 12 + 1,
        2025 - number / 336 % 20,
    );
    let name = format!("{year}-{month:02}-{day:02}_debug_undefined_part_{number}");
    let mut text = format!(
        "# Session: {name}\n\n## Task\n\n- Agent: otto\n- Type: debug\n\n## Problem\n\nNameError in part {number}\n"
    );
    let pattern = ["Undefined name", "none", "none"][number % 3];
    write!(
        text,
        "\n## Execution\n\n- Pattern: {pattern}\n- Rounds: {}\n- Steps: find; fix; test\n",
        number % 9 + 1
    )?;
    Ok((name, text))
}

/// Commits that append one line each.
fn add_history(root: &Path, commits: usize) -> Outcome {
    let project = Project::open(root, Options::default())?;
    let append = |number: usize| -> Outcome {
        let path = ProjectPath::parse(&format!("log/{}.md", number % LOGS))?;
        let change = Change::by(&Actor::Person).append(&path, format!("entry {number}\n"));
        project.store.validate(change)?.publish()?;
        Ok(())
    };
    let each = commits.div_ceil(THREADS);
    std::thread::scope(|scope| {
        let threads: Vec<_> = (0..THREADS)
            .map(|thread| {
                let range = thread * each..commits.min((thread + 1) * each);
                scope.spawn(move || {
                    range
                        .into_iter()
                        .try_for_each(append)
                        .map_err(|e| e.to_string())
                })
            })
            .collect();
        threads.into_iter().try_for_each(|t| t.join().unwrap())
    })?;
    Ok(())
}

fn good(command: &mut Command) -> Outcome {
    let output = command.output()?;
    if output.status.success() {
        return Ok(());
    }
    let said = String::from_utf8_lossy(&output.stderr);
    Err(format!("{command:?}: {said}").into())
}
