//! Reads the folder of a view, and nothing outside it.
//!
//! Files are sorted by path, so the same view gives the same outputs. Large and binary files are
//! listed but not read.

use std::collections::BTreeMap;
use std::path::Path;

use quipu_contract::Pattern;

use crate::RehearseError;

/// Larger files are listed but not read. No source file of this size is written by hand.
const READABLE_BYTES: u64 = 2 << 20;

/// The manifest of a view. The agent does not read it as content.
const MANIFEST: &str = ".quipu-view.json";

pub(crate) struct Seen {
    pub text: String,
    /// The numbers of its lines in the file, if the view shows them.
    pub lines: Vec<usize>,
    /// True if parts were cut to fit a budget, so line numbers differ from the file's.
    pub cut: bool,
}

/// The files of a view by path, in order.
pub(crate) struct View {
    pub texts: BTreeMap<String, Seen>,
    /// Files that are not text, or are too large.
    pub unread: Vec<String>,
}

impl View {
    /// Reads a view, or all stages of one.
    pub fn read(folder: &Path) -> Result<View, RehearseError> {
        let mut view = View {
            texts: BTreeMap::new(),
            unread: Vec::new(),
        };
        let stages = (1..)
            .map(|number| folder.join(format!("stage-{number}")))
            .take_while(|stage| stage.join(MANIFEST).is_file());
        let stages: Vec<_> = stages.collect();
        for stage in if stages.is_empty() {
            vec![folder.to_owned()]
        } else {
            stages
        } {
            view.walk(&stage, "")?;
        }
        view.unread.sort();
        view.unread.dedup();
        Ok(view)
    }

    fn walk(&mut self, folder: &Path, prefix: &str) -> Result<(), RehearseError> {
        let fail = |source| RehearseError::View {
            path: folder.display().to_string(),
            source,
        };
        for entry in std::fs::read_dir(folder).map_err(fail)? {
            let entry = entry.map_err(fail)?;
            let Ok(name) = entry.file_name().into_string() else {
                continue;
            };
            let path = if prefix.is_empty() {
                name
            } else {
                format!("{prefix}/{name}")
            };
            let kind = entry.file_type().map_err(fail)?;
            if kind.is_dir() {
                self.walk(&entry.path(), &path)?;
            } else if kind.is_file() && path != MANIFEST {
                let small = entry.metadata().map_err(fail)?.len() <= READABLE_BYTES;
                let text = if small {
                    std::fs::read(entry.path()).map_err(fail)?
                } else {
                    vec![0]
                };
                match String::from_utf8(text) {
                    Ok(text) if !text.contains('\0') => self.add(path, text),
                    _ => self.unread.push(path),
                }
            }
        }
        Ok(())
    }

    fn add(&mut self, path: String, text: String) {
        let (text, cut) = match text.trim_end().rsplit_once('\n') {
            Some((before, note)) if is_cut_note(note) => {
                (before.trim_end().to_owned() + "\n", true)
            }
            _ => (text, false),
        };
        let (text, lines) = strip_numbers(text);
        match self.texts.get_mut(&path) {
            // Each stage may show another part of the file.
            Some(seen) if seen.text != text => {
                seen.text.push('\n');
                seen.text.push_str(&text);
                if !lines.is_empty() {
                    seen.lines.push(0);
                }
                seen.lines.extend(lines);
                seen.cut = true;
            }
            Some(_) => {}
            None => drop(self.texts.insert(path, Seen { text, lines, cut })),
        }
    }

    /// Returns the texts that match a pattern.
    pub fn matching<'v>(
        &'v self,
        pattern: &'v Pattern,
    ) -> impl Iterator<Item = (&'v str, &'v Seen)> {
        let named = self
            .texts
            .iter()
            .filter(|(path, _)| pattern.matches(path).is_some());
        named.map(|(path, seen)| (path.as_str(), seen))
    }
}

/// Separates the numbers that a view puts before lines, `L12` and a tab, from the text.
fn strip_numbers(text: String) -> (String, Vec<usize>) {
    let split = |line: &str| -> Option<(usize, usize)> {
        let (number, rest) = line.strip_prefix('L')?.split_once('\t')?;
        Some((number.parse().ok()?, line.len() - rest.len()))
    };
    let first = text.lines().next();
    if first.is_none_or(|line| split(line).is_none()) {
        return (text, Vec::new());
    }
    let (mut bare, mut lines) = (String::new(), Vec::new());
    for line in text.split_inclusive('\n') {
        let (number, start) = split(line).unwrap_or_default();
        lines.push(number);
        bare.push_str(&line[start..]);
    }
    (bare, lines)
}

/// Returns true for a line by which a view reports omitted text.
fn is_cut_note(line: &str) -> bool {
    line.starts_with('[')
        && line.ends_with(']')
        && (line.contains("quipu read '")
            || line.contains("' ") && (line.starts_with("[part ") || line.starts_with("[第 ")))
}
