//! Imports Claude Code's memory: its memory folder, or CLAUDE.md with its imports.
//!
//! A link that leads out of the imported folder is not followed, except for a file that the person
//! named explicitly.

use std::collections::BTreeSet;
use std::path::{Component, Path, PathBuf};

use quipu_text::Document;

use super::error::ImportError;
use super::folder;
use super::source::{Piece, Taken};
use crate::files::source_file::Sources;

/// Claude Code follows nested imports up to this depth.
const DEEPEST: usize = 5;

/// A folder of files that Claude Code reads with CLAUDE.md.
const RULES: &str = ".claude/rules";

/// Files beside a CLAUDE.md that Claude Code reads as well.
const BESIDE: [&str; 4] = [
    "CLAUDE.md",
    "CLAUDE.local.md",
    ".claude/CLAUDE.md",
    ".claude/CLAUDE.local.md",
];

/// Finds the folder with MEMORY.md: the named folder, `memory/` in it, or the parent of a named
/// file.
pub(super) fn memory_folder(place: &Path) -> Result<PathBuf, ImportError> {
    let here = if place.is_file() {
        place.parent().unwrap_or(place).to_owned()
    } else {
        place.to_owned()
    };
    let there = [Some(here.clone()), place_below(&here, "memory").ok()];
    there
        .into_iter()
        .flatten()
        .find(|folder| folder.join("MEMORY.md").is_file())
        .ok_or_else(|| ImportError::Other {
            path: place.to_owned(),
            what: "it contains no MEMORY.md".into(),
            remedy: "name the folder with MEMORY.md; for Claude Code: \
                 ~/.claude/projects/PROJECT/memory"
                .into(),
        })
}

/// Imports CLAUDE.md, or a folder with one.
pub(super) fn take(place: &Path, sources: Sources<'_>) -> Result<Taken, ImportError> {
    sources.check_absent(place)?;
    let mut taken = Taken::default();
    let root = if place.is_file() {
        place
            .parent()
            .filter(|p| *p != Path::new(""))
            .unwrap_or(Path::new("."))
    } else {
        place
    };
    let mut found = Follower {
        root,
        sources,
        seen: BTreeSet::new(),
        taken: &mut taken,
    };
    if place.is_file() {
        // The person named this file explicitly, so a link is followed.
        let name = place
            .file_name()
            .and_then(|n| n.to_str())
            .unwrap_or("CLAUDE.md");
        found.take(name, place, 0)?;
    } else {
        for name in BESIDE.into_iter().filter(|name| root.join(name).is_file()) {
            found.file(name, 0, String::new)?;
        }
        let mut rules = Taken::default();
        match place_below(root, RULES) {
            Ok(folder) if folder.is_dir() => folder::below(
                &folder,
                &format!("{RULES}/"),
                Path::new(""),
                sources,
                &mut rules,
            )?,
            Err(why) if root.join(RULES).is_dir() => rules.leave_out(RULES.to_owned(), why),
            _ => {}
        }
        for rule in rules.pieces {
            found.file(&rule.from, 0, String::new)?;
        }
        found.taken.left_out.extend(rules.left_out);
    }
    if taken.pieces.is_empty() && taken.left_out.is_empty() {
        return Err(ImportError::Other {
            path: place.to_owned(),
            what: "it contains no CLAUDE.md".into(),
            remedy: "name the file, or the folder that contains it".into(),
        });
    }
    Ok(taken)
}

/// Resolves a file or folder below a root. A repository's author can place links in it: a link out
/// of the root would copy a private file of the importing person into memory.
fn place_below(root: &Path, name: &str) -> Result<PathBuf, &'static str> {
    let real = |path: &Path| std::fs::canonicalize(path).map_err(|_| "does not exist");
    let (top, found) = (real(root)?, real(&root.join(name))?);
    match found.strip_prefix(&top) {
        Err(_) => Err("a link to a place outside the folder"),
        Ok(inner) if inner.components().any(|part| part.as_os_str() == ".git") => {
            Err("git's own file")
        }
        Ok(_) => Ok(found),
    }
}

struct Follower<'t> {
    root: &'t Path,
    sources: Sources<'t>,
    seen: BTreeSet<String>,
    taken: &'t mut Taken,
}

impl Follower<'_> {
    /// Takes a file below the root. A file that is really elsewhere, or too large, is left out.
    /// `by` says what names it.
    fn file(
        &mut self,
        name: &str,
        depth: usize,
        by: impl Fn() -> String,
    ) -> Result<(), ImportError> {
        let why = match place_below(self.root, name) {
            Ok(place) if !self.sources.sees(&place)? => return Ok(()),
            Ok(place)
                if place
                    .metadata()
                    .is_ok_and(|found| found.len() > folder::LARGEST) =>
            {
                "larger than 8 MiB"
            }
            Ok(place) => return self.take(name, &place, depth),
            Err(why) => why,
        };
        if self.seen.insert(name.to_owned()) {
            self.taken
                .leave_out(name.to_owned(), format!("{}{why}", by()));
        }
        Ok(())
    }

    fn take(&mut self, name: &str, place: &Path, depth: usize) -> Result<(), ImportError> {
        if !self.seen.insert(name.to_owned()) {
            return Ok(());
        }
        let bytes = self.sources.read(place, &self.root.join(name))?;
        let text = String::from_utf8_lossy(&bytes).into_owned();
        self.taken.pieces.push(Piece::of_file(name, bytes));
        let folder = Path::new(name).parent().unwrap_or(Path::new(""));
        for (line, target) in imports(&text) {
            let why = |why: &str| format!("{name}:{line} imports it{why}");
            match inside(&folder.join(&target)) {
                None => self.taken.leave_out(
                    target,
                    why(", but it is outside the folder: import it separately"),
                ),
                Some(inner) if !self.root.join(&inner).is_file() => {}
                Some(inner) if depth >= DEEPEST => self
                    .taken
                    .leave_out(inner, why(", deeper than Claude Code follows")),
                Some(inner) => self.file(&inner, depth + 1, || why(": "))?,
            }
        }
        Ok(())
    }
}

/// Finds `@path` outside code, with its line.
fn imports(text: &str) -> Vec<(usize, String)> {
    let document = Document::parse(text);
    let mut found = Vec::new();
    // A single pass over the characters, independent of the number of `@`.
    let (mut starts_word, mut in_ticks) = (true, false);
    for (at, c) in text.char_indices() {
        match c {
            '\n' => in_ticks = false,
            '`' => in_ticks = !in_ticks,
            '@' if starts_word && !in_ticks && !document.in_code_block(at) => {
                let rest = &text[at + 1..];
                let word = &rest[..rest.find(char::is_whitespace).unwrap_or(rest.len())];
                let path = word.trim_end_matches([',', ';', ')', '.']);
                if path.contains(['/', '.']) && !path.contains('@') {
                    found.push((document.lines().line(at), path.to_owned()));
                }
            }
            _ => {}
        }
        starts_word = c.is_whitespace();
    }
    found
}

/// Normalises a path relative to the root. None if it leaves the root.
fn inside(path: &Path) -> Option<String> {
    let mut parts: Vec<&str> = Vec::new();
    for part in path.components() {
        match part {
            Component::Normal(part) if part != "~" => parts.push(part.to_str()?),
            Component::CurDir => {}
            Component::ParentDir => drop(parts.pop()?),
            _ => return None,
        }
    }
    Some(parts.join("/"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_of_at_signs_is_read_in_linear_time() {
        let began = std::time::Instant::now();
        assert_eq!(
            imports(&format!("{}\n@a.md", "@".repeat(200_000))),
            [(2, "a.md".into())]
        );
        assert!(began.elapsed().as_secs() < 20, "{:?}", began.elapsed());
    }

    #[test]
    fn an_import_is_a_path_after_an_at_sign() {
        let text = "See @docs/style.md, and @./a.md.\n`@no.md` me@x.org @someone\n```\n@no.md\n```\n@~/.claude/own.md\n";
        let found = imports(text);
        assert_eq!(
            found,
            [
                (1, "docs/style.md".into()),
                (1, "./a.md".into()),
                (6, "~/.claude/own.md".into())
            ]
        );
        assert_eq!(inside(Path::new("docs/../a.md")).as_deref(), Some("a.md"));
        assert_eq!(
            (
                inside(Path::new("../a.md")),
                inside(Path::new("~/a.md")),
                inside(Path::new("/a"))
            ),
            (None, None, None)
        );
    }
}
