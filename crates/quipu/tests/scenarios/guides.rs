//! Executes README and the documents: every `console` block of a document runs as printed, in order,
//! in one shell that starts in an empty folder. So a document creates everything that it uses.
//!
//! Each line that a block shows must be printed, in this order; `…` matches any text, and times,
//! dates and versions of files match any others. A command must succeed unless the block shows
//! `[exit N]` or an error. `` ```toml file=PATH `` writes a file before the next command.
//!
//! A block that cannot run here says so where a reader of the source sees it:
//! `` ```console no-run: needs a PostgreSQL server ``.

use std::path::Path;
use std::sync::LazyLock;

use regex::Regex;

use crate::redact::{without_times, without_versions};
use crate::run::{Shell, in_one_shell};
use crate::transcript::{self, Step};

/// Also times without a zone, which `redact` leaves alone.
static TIME: LazyLock<Regex> =
    LazyLock::new(|| Regex::new(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?Z?").unwrap());

/// The commands of a document.
#[derive(Default)]
struct Guide {
    steps: Vec<Step>,
    /// Reasons of the blocks that do not run.
    left_out: Vec<String>,
}

/// The block that the parser is in.
enum Block {
    Console(String),
    File { path: String, text: String },
    Other,
}

fn parse(document: &str) -> Result<Guide, String> {
    let mut guide = Guide::default();
    let mut block: Option<Block> = None;
    for line in document.lines() {
        match &mut block {
            None => {
                if let Some(info) = line.strip_prefix("```") {
                    block = Some(opened(info, &mut guide.left_out)?);
                }
            }
            Some(_) if line == "```" => match block.take() {
                Some(Block::Console(text)) => guide.steps.extend(transcript::parse(&text)?),
                Some(Block::File { path, text }) => guide.steps.push(writes(&path, &text)),
                _ => {}
            },
            Some(Block::Console(text) | Block::File { text, .. }) => {
                text.push_str(line);
                text.push('\n');
            }
            Some(Block::Other) => {}
        }
    }
    Ok(guide)
}

fn opened(info: &str, left_out: &mut Vec<String>) -> Result<Block, String> {
    if info == "console" {
        return Ok(Block::Console(String::new()));
    }
    if let Some(reason) = info.strip_prefix("console no-run: ") {
        left_out.push(reason.to_owned());
        return Ok(Block::Other);
    }
    if info.starts_with("console") {
        return Err(format!("```{info}: `console` or `console no-run: REASON`"));
    }
    Ok(match info.split_once(" file=") {
        Some((_, path)) => Block::File {
            path: path.to_owned(),
            text: String::new(),
        },
        None => Block::Other,
    })
}

fn writes(path: &str, text: &str) -> Step {
    let folder = Path::new(path).parent().unwrap_or(Path::new("."));
    let folder = match folder.as_os_str().is_empty() {
        true => ".".to_owned(),
        false => folder.display().to_string(),
    };
    Step {
        command: vec![format!(
            "mkdir -p {folder} && cat > {path} <<'END_OF_FILE'\n{text}END_OF_FILE"
        )],
        ..Step::default()
    }
}

/// Runs a document and returns what differs.
fn run(name: &str, guide: &Guide) -> Result<(), String> {
    let temp = tempfile::tempdir().map_err(|e| e.to_string())?;
    let root = temp.path().canonicalize().map_err(|e| e.to_string())?;
    let project = root.join("project");
    std::fs::create_dir(&project).map_err(|e| e.to_string())?;
    let happened = in_one_shell(Shell::Bash, &root, &project, &guide.steps)?;
    let faults: Vec<String> = guide
        .steps
        .iter()
        .zip(&happened)
        .filter_map(|(shown, happened)| compare(shown, happened).err())
        .map(|what| format!("{name}: {what}"))
        .collect();
    match faults.is_empty() {
        true => Ok(()),
        false => Err(faults.join("\n")),
    }
}

/// Whether a command printed what the document shows, and ended as it shows.
fn compare(shown: &Step, happened: &Step) -> Result<(), String> {
    let plain =
        |line: &str| without_versions(&without_times(&TIME.replace_all(line.trim_end(), "[TIME]")));
    let printed: Vec<String> = happened.output.lines().map(plain).collect();
    let fault = |what: &str| {
        let (command, output) = (shown.command.join("\n"), &happened.output);
        Err(format!("`$ {command}` {what}\nbut prints\n{output}\n"))
    };
    let mut at = 0;
    let lines = shown.output.lines().map(str::trim_end);
    for line in lines.filter(|line| !line.is_empty() && *line != "…") {
        let pattern = matching(&plain(line));
        match printed[at..].iter().position(|line| pattern.is_match(line)) {
            Some(found) => at += found + 1,
            None => return fault(&format!("shows, at its place,\n{line}")),
        }
    }
    let ends = |step: &Step| step.output.lines().any(|line| line.starts_with("[exit "));
    // A shell prints no exit code, so the lines of a failure are enough.
    if ends(happened) && shown.output.is_empty() {
        return fault("shows success");
    }
    Ok(())
}

/// The pattern of a shown line: `…` matches any text.
fn matching(line: &str) -> Regex {
    let parts: Vec<String> = line.split('…').map(regex::escape).collect();
    Regex::new(&format!("^{}$", parts.join(".*"))).unwrap()
}

#[test]
fn documents_run_as_printed() {
    if crate::is_shared() {
        return;
    }
    let root = crate::folder_of_scenarios().join("../..");
    let mut paths = vec![root.join("README.md")];
    for folder in ["docs", "docs/guide", "docs/tutorial"] {
        let entries = std::fs::read_dir(root.join(folder)).unwrap();
        paths.extend(entries.map(|entry| entry.unwrap().path()));
    }
    paths.retain(|path| path.extension().is_some_and(|e| e == "md"));
    let chosen = std::env::var("QUIPU_GUIDE").unwrap_or_default();
    paths.retain(|path| path.to_string_lossy().contains(&chosen));
    let run_one = |path: &Path| -> Result<usize, String> {
        let name = path.file_name().unwrap().to_string_lossy().into_owned();
        let guide = parse(&std::fs::read_to_string(path).unwrap())
            .map_err(|what| format!("{name}: {what}"))?;
        if let Some(reason) = guide.left_out.iter().find(|reason| reason.len() < 10) {
            return Err(format!("{name}: `no-run: {reason}` is no reason"));
        }
        if !guide.steps.is_empty() {
            run(&name, &guide)?;
        }
        Ok(guide.steps.len())
    };
    let results: Vec<Result<usize, String>> = std::thread::scope(|scope| {
        let threads: Vec<_> = paths
            .iter()
            .map(|path| scope.spawn(|| run_one(path)))
            .collect();
        threads.into_iter().map(|t| t.join().unwrap()).collect()
    });
    let faults: Vec<&String> = results.iter().filter_map(|r| r.as_ref().err()).collect();
    assert!(
        faults.is_empty(),
        "{}",
        faults.iter().map(|f| format!("\n{f}")).collect::<String>()
    );
    let steps: usize = results
        .iter()
        .map(|r| r.as_ref().copied().unwrap_or(0))
        .sum();
    assert!(
        steps > 150 || !chosen.is_empty(),
        "only {steps} commands ran: does the test still see the blocks?"
    );
}

/// Tests of the runner itself: the faults it must detect.
mod runner {
    use super::*;

    fn fails_with(document: &str, what: &str) {
        let fault = parse(document)
            .and_then(|guide| run("x.md", &guide))
            .unwrap_err();
        assert!(fault.contains(what), "{fault}");
    }

    #[test]
    fn a_document_that_shows_something_else_fails() {
        fails_with("```console\n$ echo a\nb\n```\n", "shows, at its place");
        fails_with(
            "```console\n$ printf 'a\\nb\\n'\nb\na\n```\n",
            "shows, at its place",
        );
        fails_with("```console\n$ false\n```\n", "shows success");
        fails_with("```console\n$ echo a; false\n```\n", "shows success");
        fails_with("```console\n$ true\n[exit 3]\n```\n", "shows, at its place");
        fails_with("```console later\n$ true\n```\n", "no-run: REASON");
    }

    #[test]
    fn a_document_that_shows_what_happens_passes() {
        let document = "```toml file=a/b\nx = 1\n```\n\n```console\n$ cat a/b\nx…1\n$ printf 'a\\nb\\nc\\n'\n…\nc\n```\n\n```console no-run: needs a moon\n$ false\n```\n";
        let guide = parse(document).unwrap();
        assert_eq!(guide.left_out, ["needs a moon"]);
        run("x.md", &guide).unwrap();
    }
}
