//! Parses source locations in chapters (`source/journal.rs:12`, `journal.rs:12-20`) and lists the
//! files they may refer to.
//!
//! Only paths below the source folder count. This module does not check whether a file exists.

use std::collections::BTreeSet;

use pulldown_cmark::{Event, Options, Parser, Tag};
use quipu_text::{Document, LinkKind, parse_source_place, parse_target};

use crate::Chapter;
use crate::links::candidates;

/// Returns the path and the first line if a text is a source location.
pub(crate) fn parse_place(text: &str) -> Option<(&str, usize)> {
    let place = parse_source_place(text)?;
    let first = *place.lines.first().filter(|line| **line > 0)?;
    Some((place.path, first))
}

/// Parses a link address: `source/journal.rs#L12`, `source/journal.rs:12` or the file alone.
pub(crate) fn parse_address(address: &str) -> Option<(String, Option<usize>)> {
    let (path, anchor) = parse_target(address);
    let line = anchor
        .and_then(|anchor| anchor.trim_start_matches(['L', 'l']).parse().ok())
        .filter(|line| *line > 0);
    match parse_place(&path) {
        Some((path, line)) => Some((path.to_owned(), Some(line))),
        None => (!path.is_empty()).then_some((path, line)),
    }
}

/// Returns the project paths below the source folder that a path may refer to.
pub(crate) fn below_root(root: &str, path: &str) -> Vec<String> {
    let inside = format!("{root}/");
    let path = path.strip_prefix("./").unwrap_or(path);
    let mut paths = candidates(&format!("{inside}file"), path);
    paths.retain(|path| path.starts_with(&inside));
    // Try the path as written first, then relative to the folder.
    paths.reverse();
    paths
}

/// Returns the project paths that the locations and links of a chapter may refer to. The caller
/// reads the files.
pub fn sources_of(chapter: &Chapter, root: &str) -> Vec<String> {
    let document = Document::parse(&chapter.text);
    let mut found = BTreeSet::new();
    for (event, range) in Parser::new_ext(&chapter.text, Options::ENABLE_TABLES).into_offset_iter()
    {
        let written = match &event {
            Event::Code(text) => text.as_ref(),
            Event::Start(Tag::Paragraph) => &chapter.text[range],
            _ => continue,
        };
        if let Some((path, _)) = parse_place(written) {
            found.extend(below_root(root, path));
        }
    }
    for link in document
        .links()
        .iter()
        .filter(|link| link.kind != LinkKind::Image)
    {
        if let Some((path, _)) = parse_address(document.slice(&link.target)) {
            found.extend(
                candidates(&chapter.path, &path)
                    .into_iter()
                    .filter(|path| path.starts_with(&format!("{root}/"))),
            );
        }
    }
    found.into_iter().collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_are_counted_from_one() {
        assert_eq!(parse_place("a/b.rs:12-20"), Some(("a/b.rs", 12)));
        assert_eq!(parse_place("a.rs:0"), None);
    }

    #[test]
    fn nothing_outside_the_source_is_named() {
        assert_eq!(
            below_root("source", "source/a.rs"),
            ["source/a.rs", "source/source/a.rs"]
        );
        assert_eq!(below_root("source", "a.rs"), ["source/a.rs"]);
        assert_eq!(below_root("lib/src", "./a.rs"), ["lib/src/a.rs"]);
        for outside in [
            "../quipu.toml",
            "/etc/passwd",
            "source/../quipu.toml",
            "../../x",
        ] {
            let found = below_root("source", outside);
            assert!(
                found
                    .iter()
                    .all(|path| path.starts_with("source/") && !path.contains("..")),
                "{outside}: {found:?}"
            );
        }
    }
}
