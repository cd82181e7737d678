//! Places in the source as chapters write them (`source/journal.rs:12`, `journal.rs:12-20`), and the files they name.
//!
//! A place counts only below the folder of the source. Whether the file is there is not known here.

use std::collections::BTreeSet;

use pulldown_cmark::{Event, Options, Parser, Tag};
use quipu_text::{Document, LinkKind, parse_target};

use crate::Chapter;
use crate::links::candidates;

/// A file and a line of it, as they were written.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct SourcePlace<'t> {
    pub path: &'t str,
    pub line: Option<usize>,
}

/// Parses `path:12`, `path:12-20` or `path:L12`.
pub(crate) fn parse_place(text: &str) -> Option<SourcePlace<'_>> {
    let (path, lines) = text.trim().rsplit_once(':')?;
    let is_path = !path.is_empty() && !path.contains("//") && !path.contains(|c: char| c.is_whitespace() || c.is_control() || c == '`');
    let is_lines = lines.chars().all(|c| c.is_ascii_digit() || matches!(c, 'L' | '-' | '–' | ',' | ' '));
    let first = lines.split(['-', '–', ',']).next()?.trim().trim_start_matches('L').parse().ok().filter(|line| *line > 0);
    (is_path && is_lines && first.is_some()).then_some(SourcePlace { path, line: first })
}

/// Parses the address of a link: `source/journal.rs#L12`, `source/journal.rs:12` or the file alone.
pub(crate) fn parse_address(address: &str) -> Option<(String, Option<usize>)> {
    let (path, anchor) = parse_target(address);
    let line = anchor.and_then(|anchor| anchor.trim_start_matches(['L', 'l']).parse().ok()).filter(|line| *line > 0);
    match parse_place(&path) {
        Some(place) => Some((place.path.to_owned(), place.line)),
        None => (!path.is_empty()).then_some((path, line)),
    }
}

/// The project paths that a path may mean, all below the folder of the source.
pub(crate) fn below_root(root: &str, path: &str) -> Vec<String> {
    let inside = format!("{root}/");
    let path = path.strip_prefix("./").unwrap_or(path);
    let mut paths = candidates(&format!("{inside}file"), path);
    paths.retain(|path| path.starts_with(&inside));
    // As it was written first, then from the folder.
    paths.reverse();
    paths
}

/// The project paths that the places and links of a chapter may mean, for whoever reads the files.
pub fn sources_of(chapter: &Chapter, root: &str) -> Vec<String> {
    let document = Document::parse(&chapter.text);
    let mut found = BTreeSet::new();
    for (event, range) in Parser::new_ext(&chapter.text, Options::ENABLE_TABLES).into_offset_iter() {
        let written = match &event {
            Event::Code(text) => text.as_ref(),
            Event::Start(Tag::Paragraph) => &chapter.text[range],
            _ => continue,
        };
        if let Some(place) = parse_place(written) {
            found.extend(below_root(root, place.path));
        }
    }
    for link in document.links().iter().filter(|link| link.kind != LinkKind::Image) {
        if let Some((path, _)) = parse_address(document.slice(&link.target)) {
            found.extend(candidates(&chapter.path, &path).into_iter().filter(|path| path.starts_with(&format!("{root}/"))));
        }
    }
    found.into_iter().collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn places_are_paths_with_lines() {
        let place = |path, line| Some(SourcePlace { path, line: Some(line) });
        assert_eq!(parse_place("source/a.rs:12"), place("source/a.rs", 12));
        assert_eq!(parse_place(" a/b.rs:12-20 "), place("a/b.rs", 12));
        assert_eq!(parse_place("a.rs:L3–L9"), place("a.rs", 3));
        for none in ["a.rs", "a.rs:", "a.rs:0", "http://x:80", "a b.rs:1", "Vec::new", "12:30:", ":1", "x:1a"] {
            assert_eq!(parse_place(none), None, "{none}");
        }
    }

    #[test]
    fn nothing_outside_the_source_is_named() {
        assert_eq!(below_root("source", "source/a.rs"), ["source/a.rs", "source/source/a.rs"]);
        assert_eq!(below_root("source", "a.rs"), ["source/a.rs"]);
        assert_eq!(below_root("lib/src", "./a.rs"), ["lib/src/a.rs"]);
        for outside in ["../quipu.toml", "/etc/passwd", "source/../quipu.toml", "../../x"] {
            let found = below_root("source", outside);
            assert!(found.iter().all(|path| path.starts_with("source/") && !path.contains("..")), "{outside}: {found:?}");
        }
    }
}
