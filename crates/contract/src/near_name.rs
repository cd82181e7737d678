//! Detects paths that are one typo away from a file of the contract: `decisons.md`, `todo.json`,
//! `state.jsn`.
//!
//! Readers of the intended file would never see text written to such a path. Only rules that name a
//! single file are compared, because similar names are ordinary below a pattern. Names that differ
//! only in digits are ordinary too.

use crate::contract::{Contract, FileRule};
use crate::path::ProjectPath;

/// Shorter names often differ by one letter.
const SHORTEST: usize = 4;
/// Extensions that are often confused with each other.
const ENDINGS: [&[&str]; 2] = [
    &["md", "markdown", "mdown", "mkd", "txt", ""],
    &["json", "jsonc", "json5", "jsn"],
];

impl Contract {
    /// Returns the rule for the file that a path probably means: same folder, and a name that
    /// differs by one typo. `None` for a path that a rule names or that the contract ignores.
    pub fn near_name(&self, path: &ProjectPath) -> Option<&FileRule> {
        let named = self
            .files
            .iter()
            .any(|rule| rule.path.matches(path.as_str()).is_some());
        if named
            || self
                .ignore
                .iter()
                .any(|pattern| pattern.matches(path.as_str()).is_some())
        {
            return None;
        }
        let (folder, name) = split_folder(path.as_str());
        self.files.iter().find(|rule| {
            let meant = rule.path.as_literal().map(split_folder);
            meant.is_some_and(|(its_folder, its_name)| {
                folder == its_folder && is_slip(name, its_name)
            })
        })
    }
}

impl Contract {
    /// Returns the rule for a file of the same name in a folder below: `decisions.md` if the
    /// contract has `memory/decisions.md`.
    pub fn same_name_below(&self, path: &ProjectPath) -> Option<&FileRule> {
        let named = self
            .files
            .iter()
            .any(|rule| rule.path.matches(path.as_str()).is_some());
        let (folder, name) = split_folder(path.as_str());
        let is_meant = |rule: &&FileRule| {
            let meant = rule.path.as_literal().map(split_folder);
            meant.is_some_and(|(its_folder, its_name)| {
                let below = its_folder
                    .strip_prefix(folder)
                    .is_some_and(|rest| folder.is_empty() || rest.starts_with('/'));
                name == its_name && folder != its_folder && below
            })
        };
        self.files.iter().filter(|_| !named).find(is_meant)
    }
}

fn split_folder(path: &str) -> (&str, &str) {
    path.rsplit_once('/').unwrap_or(("", path))
}

fn is_slip(name: &str, meant: &str) -> bool {
    let (name, meant) = (name.to_lowercase(), meant.to_lowercase());
    let split = |text: &str| {
        text.rsplit_once('.')
            .map_or((text.to_owned(), String::new()), |(stem, end)| {
                (stem.to_owned(), end.to_owned())
            })
    };
    let ((stem, end), (its_stem, its_end)) = (split(&name), split(&meant));
    let digits = |text: &str| {
        text.chars()
            .filter(char::is_ascii_digit)
            .collect::<String>()
    };
    if its_stem.chars().count() < SHORTEST || digits(&stem) != digits(&its_stem) {
        return false;
    }
    let plain = |text: &str| {
        text.chars()
            .filter(|c| !matches!(c, '-' | '_' | ' '))
            .collect::<Vec<char>>()
    };
    let (stem, its_stem) = (plain(&stem), plain(&its_stem));
    if end == its_end {
        return is_one_edit(&stem, &its_stem) || is_disordered(&stem, &its_stem);
    }
    let alike = |ends: &&[&str]| ends.contains(&end.as_str()) && ends.contains(&its_end.as_str());
    let chars = |text: &str| text.chars().collect::<Vec<char>>();
    stem == its_stem && (ENDINGS.iter().any(alike) || is_one_edit(&chars(&end), &chars(&its_end)))
}

/// Whether two words differ by one letter that is inserted, deleted, replaced, or swapped with its
/// neighbour.
fn is_one_edit(one: &[char], other: &[char]) -> bool {
    let begin = one.iter().zip(other).take_while(|(a, b)| a == b).count();
    let (one, other) = (&one[begin..], &other[begin..]);
    let end = one
        .iter()
        .rev()
        .zip(other.iter().rev())
        .take_while(|(a, b)| a == b)
        .count();
    let (one, other) = (&one[..one.len() - end], &other[..other.len() - end]);
    match (one, other) {
        ([a, b], [c, d]) => a == d && b == c,
        (one, other) => {
            one.len() < 2
                && other.len() < 2
                && one.iter().chain(other).all(char::is_ascii_alphabetic)
        }
    }
}

/// Whether two words have the same letters and differ in at most two places: `desicions`.
fn is_disordered(one: &[char], other: &[char]) -> bool {
    let sorted = |word: &[char]| {
        let mut letters = word.to_vec();
        letters.sort_unstable();
        letters
    };
    let differing = one.iter().zip(other).filter(|(a, b)| a != b);
    one.len() == other.len()
        && differing.count() <= 2
        && one.iter().all(char::is_ascii_alphabetic)
        && sorted(one) == sorted(other)
}

#[cfg(test)]
mod tests {
    use super::is_slip;

    #[test]
    fn one_slip_is_recognised() {
        for (name, meant) in [
            ("decisons.md", "decisions.md"),
            ("decision.md", "decisions.md"),
            ("decisoins.md", "decisions.md"),
            ("desicions.md", "decisions.md"),
            ("decisions.markdown", "decisions.md"),
            ("decisions.txt", "decisions.md"),
            ("decisions", "decisions.md"),
            ("todo.json", "todos.json"),
            ("to-dos.json", "todos.json"),
            ("state.jsn", "state.json"),
            ("state.jso", "state.json"),
            ("world-state.md", "world_state.md"),
            ("Projects.md", "PROJECT.md"),
        ] {
            assert!(is_slip(name, meant), "{name} {meant}");
        }
    }

    #[test]
    fn ordinary_neighbours_are_not_slips() {
        for (name, meant) in [
            ("ch02.md", "ch01.md"),
            ("chapter-2.md", "chapter-1.md"),
            ("decisions2.md", "decisions.md"),
            ("state.js", "state.json"),
            ("status.json", "state.json"),
            ("todos.md", "todos.json"),
            ("decisions.md~", "decisions.md"),
            ("a.md", "b.md"),
            ("人物设定集.md", "人物设定.md"),
            ("README.md", "PROJECT.md"),
            ("revisions.md", "decisions.md"),
        ] {
            assert!(!is_slip(name, meant), "{name} {meant}");
        }
    }
}
