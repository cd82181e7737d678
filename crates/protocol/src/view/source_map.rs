//! Parses source maps: a file with one section per unit. Each section has a table; its first column
//! names files, folders or patterns.
//!
//! Pure: text in, paths out.

use quipu_contract::{Pattern, ProjectPath};

/// The paths of a section: the first cell of each table row.
pub fn mapped_paths(body: &str) -> Vec<String> {
    let rows: Vec<&str> = body
        .lines()
        .map(str::trim)
        .filter(|line| line.starts_with('|'))
        .collect();
    let is_line = |row: &str| row.chars().all(|c| matches!(c, '|' | '-' | ':' | ' '));
    let mut paths = Vec::new();
    for (at, row) in rows.iter().enumerate() {
        if is_line(row) || rows.get(at + 1).is_some_and(|next| is_line(next)) {
            continue;
        }
        let cell = row
            .trim_matches('|')
            .split('|')
            .next()
            .unwrap_or_default()
            .trim();
        let cell = cell
            .split('`')
            .nth(1)
            .unwrap_or(cell)
            .trim_matches(['*', ' ', '"']);
        // A path may have line numbers.
        let (path, lines) = cell.rsplit_once(':').unwrap_or((cell, ""));
        let path = if lines
            .chars()
            .all(|c| c.is_ascii_digit() || matches!(c, '-' | '–' | ','))
        {
            path
        } else {
            cell
        };
        if !path.is_empty() {
            paths.push(path.trim_start_matches("./").to_owned());
        }
    }
    paths
}

/// Whether a map entry covers a file: by its path, by a folder above it, or by a pattern.
pub fn is_named(named: &str, file: &ProjectPath) -> bool {
    let folder = format!("{}/", named.trim_end_matches('/'));
    let pattern = || {
        named
            .contains('*')
            .then(|| Pattern::parse(named).ok())
            .flatten()
    };
    let file = file.as_str();
    file == named
        || file.starts_with(&folder)
        || pattern().is_some_and(|pattern| pattern.matches(file).is_some())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_are_read_from_the_first_column() {
        let body = "| path | lines | why |\n|---|---|---|\n| `source/a.rs` | 1-9 | x |\n| source/b.rs:3-4 | | y |\n| ./source/c/ | | z |\n";
        assert_eq!(
            mapped_paths(body),
            ["source/a.rs", "source/b.rs", "source/c/"]
        );
        assert_eq!(mapped_paths("Nothing yet.\n"), [""; 0]);
    }

    #[test]
    fn a_mapped_path_is_a_file_a_folder_or_a_pattern() {
        let files = ["source/a.rs", "source/c/d.rs"].map(|p| ProjectPath::parse(p).unwrap());
        for there in ["source/a.rs", "source/c", "source/c/", "source/*.rs"] {
            assert!(files.iter().any(|file| is_named(there, file)), "{there}");
        }
        assert!(
            !["source/b.rs", "source/a"]
                .iter()
                .any(|named| files.iter().any(|file| is_named(named, file)))
        );
    }
}
