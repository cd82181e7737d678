//! Checks that README, CONTRIBUTING and `docs/` cite only what exists: source paths, links with their
//! anchors, commands and their options; and that names of types and functions in the architecture
//! page are in the source.
//!
//! A code span that looks like a path of the repository must be one (`flow/job.rs` may leave out the
//! folders in front). A code span that begins with `quipu ` must be a command of `docs/cli.md`, which
//! is generated from the table of operations, with options that this command has. Words in capitals
//! and `…` are placeholders.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::process::Command;

use pulldown_cmark::{Event, Options, Parser, Tag, TagEnd};

/// Paths that a document invents for an example.
const EXAMPLES: [&str; 3] = [
    "crates/quipu/src/ops/NAME.rs",
    "profiles/NAME",
    "profiles/lab",
];

fn root() -> PathBuf {
    crate::folder_of_scenarios()
        .join("../..")
        .canonicalize()
        .unwrap()
}

fn tracked(root: &Path) -> Vec<String> {
    let listed = Command::new("git")
        .args(["ls-files", "--cached", "--others", "--exclude-standard"])
        .current_dir(root)
        .output()
        .unwrap();
    let text = String::from_utf8(listed.stdout).unwrap();
    text.lines()
        .filter(|path| root.join(path).exists())
        .map(str::to_owned)
        .collect()
}

/// A document, split into the parts that the tests check.
struct Document {
    path: String,
    code: Vec<String>,
    links: Vec<String>,
    anchors: BTreeSet<String>,
}

fn parse(root: &Path, path: &str) -> Document {
    let text = std::fs::read_to_string(root.join(path)).unwrap();
    let mut document = Document {
        path: path.to_owned(),
        code: Vec::new(),
        links: Vec::new(),
        anchors: BTreeSet::new(),
    };
    let mut heading: Option<String> = None;
    for event in Parser::new_ext(&text, Options::ENABLE_TABLES) {
        match event {
            Event::Start(Tag::Heading { .. }) => heading = Some(String::new()),
            Event::End(TagEnd::Heading(_)) => {
                document
                    .anchors
                    .insert(anchor(&heading.take().unwrap_or_default()));
            }
            Event::Start(Tag::Link { dest_url, .. }) => document.links.push(dest_url.into_string()),
            Event::Code(code) => {
                if let Some(heading) = &mut heading {
                    heading.push_str(&code);
                }
                document.code.push(code.into_string());
            }
            Event::Text(text) => {
                if let Some(heading) = &mut heading {
                    heading.push_str(&text);
                }
            }
            _ => {}
        }
    }
    document
}

/// The anchor that code-hosting sites give a heading.
fn anchor(heading: &str) -> String {
    let kept = heading.to_lowercase();
    let kept = kept
        .chars()
        .filter(|c| c.is_alphanumeric() || matches!(c, ' ' | '-' | '_'));
    kept.map(|c| if c == ' ' { '-' } else { c }).collect()
}

fn documents(root: &Path, tracked: &[String]) -> Vec<Document> {
    let is_document = |path: &&String| {
        path.ends_with(".md")
            && (path.starts_with("docs/")
                || matches!(path.as_str(), "README.md" | "CONTRIBUTING.md"))
    };
    tracked
        .iter()
        .filter(is_document)
        .map(|path| parse(root, path))
        .collect()
}

fn looks_like_path(code: &str) -> bool {
    let plain = |c: char| c.is_ascii_alphanumeric() || matches!(c, '/' | '.' | '_' | '-');
    let first = code.split('/').next().unwrap_or_default();
    code.chars().all(plain)
        && (code.ends_with(".rs")
            || code.contains('/')
                && matches!(
                    first,
                    "crates"
                        | "scripts"
                        | "bench"
                        | "page"
                        | "tests"
                        | "profiles"
                        | "plugins"
                        | "python"
                ))
}

#[test]
fn documents_cite_paths_that_exist() {
    let root = root();
    let tracked = tracked(&root);
    let mut known: BTreeSet<&str> = BTreeSet::new();
    for path in &tracked {
        let mut ends: Vec<usize> = path.match_indices('/').map(|(at, _)| at).collect();
        ends.push(path.len());
        let starts = std::iter::once(0).chain(path.match_indices('/').map(|(at, _)| at + 1));
        for start in starts {
            known.extend(
                ends.iter()
                    .filter(|end| **end > start)
                    .map(|end| &path[start..*end]),
            );
        }
    }
    let mut cited = 0;
    let mut missing = Vec::new();
    for document in documents(&root, &tracked) {
        for code in document.code.iter().filter(|code| looks_like_path(code)) {
            cited += 1;
            let path = code.trim_end_matches('/');
            if !known.contains(path) && !EXAMPLES.contains(&path) {
                missing.push(format!("{}: `{code}`", document.path));
            }
        }
    }
    assert!(
        cited > 100,
        "only {cited} paths are cited: does the test still see them?"
    );
    assert_eq!(missing, Vec::<String>::new());
}

/// Whether a code span is a name of the source: `adopt_edits`, `CommitLog::wait`, `RuleBook`.
fn looks_like_name(code: &str) -> bool {
    let word = |c: char| c.is_ascii_alphanumeric() || matches!(c, '_' | ':');
    let humps = code.chars().zip(code.chars().skip(1));
    code.starts_with(|c: char| c.is_ascii_alphabetic())
        && code.chars().all(word)
        && (code.contains(['_', ':'])
            || humps
                .into_iter()
                .any(|(a, b)| a.is_ascii_lowercase() && b.is_ascii_uppercase()))
}

#[test]
fn architecture_cites_names_that_exist() {
    let root = root();
    let tracked = tracked(&root);
    let mut words: BTreeSet<String> = BTreeSet::new();
    let is_source = |path: &&String| path.ends_with(".rs") || path.ends_with(".sql");
    for path in tracked.iter().filter(is_source) {
        let text = std::fs::read_to_string(root.join(path)).unwrap();
        let parts = text.split(|c: char| !(c.is_ascii_alphanumeric() || c == '_'));
        words.extend(parts.map(str::to_owned));
    }
    let page = parse(&root, "docs/architecture.md");
    let names: Vec<&String> = page.code.iter().filter(|c| looks_like_name(c)).collect();
    assert!(names.len() > 10, "the page cites {} names", names.len());
    let is_known = |name: &&&String| name.split("::").all(|part| words.contains(part));
    let unknown: Vec<&&String> = names.iter().filter(|name| !is_known(name)).collect();
    assert_eq!(unknown, Vec::<&&String>::new());
}

#[test]
fn links_of_documents_lead_somewhere() {
    let root = root();
    let tracked = tracked(&root);
    let documents = documents(&root, &tracked);
    let anchors: BTreeMap<&str, &BTreeSet<String>> = documents
        .iter()
        .map(|document| (document.path.as_str(), &document.anchors))
        .collect();
    let mut dead = Vec::new();
    for document in &documents {
        let folder = Path::new(&document.path).parent().unwrap();
        for link in document.links.iter().filter(|link| !link.contains("://")) {
            let (path, anchor) = link.split_once('#').unwrap_or((link, ""));
            let target = if path.is_empty() {
                document.path.clone()
            } else {
                joined(folder, path)
            };
            let there = root.join(&target).exists();
            let found = anchor.is_empty()
                || anchors
                    .get(target.as_str())
                    .is_none_or(|anchors| anchors.contains(anchor));
            if !there || !found {
                dead.push(format!("{}: {link}", document.path));
            }
        }
    }
    assert_eq!(dead, Vec::<String>::new());
}

fn joined(folder: &Path, path: &str) -> String {
    let mut parts: Vec<&str> = folder.iter().map(|part| part.to_str().unwrap()).collect();
    for part in path.split('/') {
        match part {
            "" | "." => {}
            ".." => drop(parts.pop()),
            part => parts.push(part),
        }
    }
    parts.join("/")
}

/// The options of each command, by its words: `todo add` → {`--json`, `--priority`, …}.
fn commands(reference: &str) -> BTreeMap<String, BTreeSet<String>> {
    let mut everywhere = BTreeSet::from(["--help".to_owned(), "--version".to_owned()]);
    let mut commands: BTreeMap<String, BTreeSet<String>> = BTreeMap::new();
    let mut current: Option<String> = None;
    for line in reference.lines() {
        if let Some(heading) = line.strip_prefix("### quipu ") {
            commands.entry(heading.to_owned()).or_default();
            current = Some(heading.to_owned());
        } else if line.starts_with("## ") {
            current = None;
        }
        let into = match &current {
            Some(name) => commands.entry(name.clone()).or_default(),
            None => &mut everywhere,
        };
        into.extend(options(line));
    }
    commands
        .values_mut()
        .for_each(|own| own.extend(everywhere.iter().cloned()));
    commands
}

fn options(line: &str) -> impl Iterator<Item = String> + '_ {
    let end = |c: char| !(c.is_ascii_lowercase() || c == '-' || c.is_ascii_digit());
    line.split(end)
        .filter(|word| word.starts_with("--") && word.len() > 2)
        .map(str::to_owned)
}

#[test]
fn documents_cite_commands_that_exist() {
    let root = root();
    let commands = commands(&std::fs::read_to_string(root.join("docs/cli.md")).unwrap());
    let groups: BTreeSet<&str> = commands
        .keys()
        .filter_map(|name| name.split_once(' '))
        .map(|(group, _)| group)
        .collect();
    let (mut cited, mut unknown) = (0, Vec::new());
    for document in documents(&root, &tracked(&root)) {
        for code in document
            .code
            .iter()
            .filter(|code| code.starts_with("quipu "))
        {
            let words: Vec<&str> = code.split_whitespace().skip(1).collect();
            let first = words.first().copied().unwrap_or_default();
            if first == "="
                || first.starts_with('-')
                || first == "…"
                || first.chars().any(|c| c.is_uppercase())
            {
                continue;
            }
            cited += 1;
            let whole = words.iter().take(2).copied().collect::<Vec<_>>().join(" ");
            let own = commands.get(&whole).or_else(|| commands.get(first));
            let Some(own) = own else {
                if !groups.contains(first) {
                    unknown.push(format!("{}: `{code}`", document.path));
                }
                continue;
            };
            // Quoted text may contain any characters.
            let bare: String = code.split('"').step_by(2).collect();
            let strange = options(&bare).find(|option| !own.contains(option));
            if let Some(option) = strange {
                unknown.push(format!("{}: `{code}`: no option {option}", document.path));
            }
        }
    }
    assert!(
        cited > 200,
        "only {cited} commands are cited: does the test still see them?"
    );
    assert_eq!(unknown, Vec::<String>::new());
}
