//! What Claude Code keeps: the folder of its own memory, and CLAUDE.md with what that imports.

use std::collections::BTreeSet;
use std::path::{Component, Path, PathBuf};

use quipu_text::Document;

use super::error::ImportError;
use super::folder;
use super::source::{Piece, Taken};
use crate::source_file::Sources;

/// Claude Code follows imports of imports so far.
const DEEPEST: usize = 5;

/// Files beside a CLAUDE.md that Claude Code reads as well.
const BESIDE: [&str; 4] = ["CLAUDE.md", "CLAUDE.local.md", ".claude/CLAUDE.md", ".claude/CLAUDE.local.md"];

/// The folder with MEMORY.md: the one that is named, `memory/` in it, or the one around a file that is named.
pub(super) fn memory_folder(place: &Path) -> Result<PathBuf, ImportError> {
    let here = if place.is_file() { place.parent().unwrap_or(place).to_owned() } else { place.to_owned() };
    let there = [here.clone(), here.join("memory")];
    there.into_iter().find(|folder| folder.join("MEMORY.md").is_file()).ok_or_else(|| ImportError::Other {
        path: place.to_owned(),
        what: "there is no MEMORY.md in it".into(),
        mend: "name the folder that holds it; for Claude Code: ~/.claude/projects/PROJECT/memory".into(),
    })
}

/// CLAUDE.md, or a folder with one.
pub(super) fn take(place: &Path, sources: Sources<'_>) -> Result<Taken, ImportError> {
    let mut taken = Taken::default();
    let root = if place.is_file() { place.parent().filter(|p| *p != Path::new("")).unwrap_or(Path::new(".")) } else { place };
    let mut found = Follower { root, sources, seen: BTreeSet::new(), taken: &mut taken };
    if place.is_file() {
        let name = place.file_name().and_then(|n| n.to_str()).unwrap_or("CLAUDE.md");
        found.file(name, 0)?;
    } else {
        for name in BESIDE {
            if root.join(name).is_file() {
                found.file(name, 0)?;
            }
        }
        let mut rules = Taken::default();
        if root.join(".claude/rules").is_dir() {
            folder::below(&root.join(".claude/rules"), ".claude/rules/", Path::new(""), sources, &mut rules)?;
        }
        for rule in rules.pieces {
            found.file(&rule.from, 0)?;
        }
        taken.left_out.extend(rules.left_out);
    }
    if taken.pieces.is_empty() {
        return Err(ImportError::Other {
            path: place.to_owned(),
            what: "there is no CLAUDE.md in it".into(),
            mend: "name the file, or the folder that holds it".into(),
        });
    }
    Ok(taken)
}

struct Follower<'t> {
    root: &'t Path,
    sources: Sources<'t>,
    seen: BTreeSet<String>,
    taken: &'t mut Taken,
}

impl Follower<'_> {
    fn file(&mut self, name: &str, depth: usize) -> Result<(), ImportError> {
        if !self.seen.insert(name.to_owned()) {
            return Ok(());
        }
        let path = self.root.join(name);
        let bytes = self.sources.read(&path, &path)?;
        let text = String::from_utf8_lossy(&bytes).into_owned();
        self.taken.pieces.push(Piece::of_file(name, bytes));
        let folder = Path::new(name).parent().unwrap_or(Path::new(""));
        for (line, target) in imports(&text) {
            let why = |why: &str| format!("{name}:{line} imports it{why}");
            match inside(&folder.join(&target)) {
                None => self.taken.leave_out(target, why(", but it lies elsewhere: import it by itself")),
                Some(inner) if !self.root.join(&inner).is_file() => {}
                Some(inner) if depth >= DEEPEST => self.taken.leave_out(inner, why(", deeper than Claude Code follows")),
                Some(inner) => self.file(&inner, depth + 1)?,
            }
        }
        Ok(())
    }
}

/// `@path` outside of code, with its line.
fn imports(text: &str) -> Vec<(usize, String)> {
    let document = Document::parse(text);
    let mut found = Vec::new();
    for (at, _) in text.match_indices('@') {
        let line = text[..at].rfind('\n').map_or(0, |end| end + 1);
        let starts_word = text[..at].chars().next_back().is_none_or(char::is_whitespace);
        let in_code = document.in_code_block(at) || text[line..at].matches('`').count() % 2 == 1;
        let path: String = text[at + 1..].chars().take_while(|c| !c.is_whitespace()).collect();
        let path = path.trim_end_matches([',', ';', ')', '.']);
        let is_path = path.contains(['/', '.']) && !path.contains('@');
        if starts_word && !in_code && is_path {
            found.push((document.lines().line(at), path.to_owned()));
        }
    }
    found
}

/// The path from the root, if it does not leave it.
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
    fn an_import_is_a_path_after_an_at_sign() {
        let text = "See @docs/style.md, and @./a.md.\n`@no.md` me@x.org @someone\n```\n@no.md\n```\n@~/.claude/own.md\n";
        let found = imports(text);
        assert_eq!(found, [(1, "docs/style.md".into()), (1, "./a.md".into()), (6, "~/.claude/own.md".into())]);
        assert_eq!(inside(Path::new("docs/../a.md")).as_deref(), Some("a.md"));
        assert_eq!((inside(Path::new("../a.md")), inside(Path::new("~/a.md")), inside(Path::new("/a"))), (None, None, None));
    }
}
