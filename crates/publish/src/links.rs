//! Resolves links between chapters from the paths that authors write to the published pages.
//!
//! A path may be relative to the chapter's folder or to the project's root, or it may be the ID of
//! a chapter. Link syntax outside Markdown (`[→ path#anchor]`, `[[path|alias]]`) is first rewritten
//! as Markdown links. `body` renders the result.

use std::collections::BTreeMap;

use quipu_text::{Document, LinkKind, is_external, parse_target};

use crate::ids::heading_ids;
use crate::{Book, Chapter};

/// A chapter with the IDs of its sections.
pub(crate) struct Volume<'b> {
    pub chapter: &'b Chapter,
    /// The text after the front matter.
    source: Document<'b>,
    /// The ID of each section.
    pub ids: Vec<String>,
    /// The number of lines before that text.
    pub lines_before: usize,
}

/// A heading of a chapter, for tables of contents.
pub(crate) struct Heading<'s> {
    pub id: &'s str,
    pub title: &'s str,
}

/// All chapters of a book.
pub(crate) struct Shelf<'b> {
    pub volumes: Vec<Volume<'b>>,
    /// The number of lines of each source file, counted once.
    pub source_lines: BTreeMap<&'b str, usize>,
}

/// The target of a link.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Target<'s> {
    /// Another site, with the address as it was written.
    Outside(String),
    /// A section of a chapter, or its beginning.
    Chapter { at: usize, id: Option<&'s str> },
    /// No target that a reader could open.
    Nowhere,
}

impl<'b> Shelf<'b> {
    pub fn new(book: &'b Book) -> Shelf<'b> {
        let volumes = book.chapters.iter().map(|chapter| {
            let text = readable(&chapter.text);
            let source = Document::parse(text);
            let before = &chapter.text[..chapter.text.len() - text.len()];
            Volume {
                ids: heading_ids(&source),
                lines_before: before.matches('\n').count(),
                chapter,
                source,
            }
        });
        let source_lines = book
            .sources
            .iter()
            .map(|(path, text)| (path.as_str(), text.lines().count()));
        Shelf {
            volumes: volumes.collect(),
            source_lines: source_lines.collect(),
        }
    }

    /// Resolves an address written in the chapter at `from`.
    pub fn resolve(&self, from: usize, address: &str) -> Target<'_> {
        if is_external(address) {
            let address = address.trim();
            return if is_safe(address) {
                Target::Outside(address.to_owned())
            } else {
                Target::Nowhere
            };
        }
        let (path, anchor) = parse_target(address);
        let at = if path.is_empty() {
            Some(from)
        } else {
            self.chapter_at(from, &path)
        };
        let Some(at) = at else {
            return Target::Nowhere;
        };
        let volume = &self.volumes[at];
        let id = anchor.and_then(|anchor| volume.find(&anchor));
        Target::Chapter { at, id }
    }

    fn chapter_at(&self, from: usize, path: &str) -> Option<usize> {
        let paths = candidates(&self.volumes[from].chapter.path, path);
        let by_path = |wanted: &String| {
            self.volumes
                .iter()
                .position(|volume| volume.chapter.path == *wanted || volume.chapter.page == *wanted)
        };
        let stem = path.rsplit('/').next().unwrap_or(path);
        let stem = stem
            .strip_suffix(".md")
            .or_else(|| stem.strip_suffix(".html"))
            .unwrap_or(stem);
        paths.iter().find_map(by_path).or_else(|| {
            self.volumes
                .iter()
                .position(|volume| volume.chapter.id == stem)
        })
    }

    /// Finds the chapter that a cell of a memory file names: `ch02`, `ch02#leases`, or text that
    /// contains its ID.
    pub fn named(&self, cell: &str) -> Option<(usize, Option<&str>)> {
        let plain: String = cell
            .chars()
            .filter(|c| !matches!(c, '`' | '*' | '_' | '[' | ']'))
            .collect();
        let address = plain.trim();
        if self.volumes.is_empty() || address.is_empty() || address.starts_with('#') {
            return None;
        }
        if let Target::Chapter { at, id } = self.resolve(0, address) {
            return Some((at, id));
        }
        let mut words = plain.split(|c: char| !c.is_ascii_alphanumeric() && c != '-');
        words
            .find_map(|word| {
                self.volumes
                    .iter()
                    .position(|volume| volume.chapter.id == word)
            })
            .map(|at| (at, None))
    }

    /// Returns the text of a chapter with all link syntax rewritten as Markdown links.
    pub fn as_markdown(&self, at: usize) -> String {
        let source = &self.volumes[at].source;
        let text = source.text();
        let mut out = String::with_capacity(text.len());
        let mut from = 0;
        for link in source.links() {
            let arrow = match link.kind {
                LinkKind::Arrow | LinkKind::BareArrow => "→ ",
                LinkKind::Press => "⊣ ",
                LinkKind::Wiki => "",
                LinkKind::Inline | LinkKind::Reference | LinkKind::Image => continue,
            };
            if link.range.start < from {
                continue;
            }
            let address = source.slice(&link.target);
            let label = match (link.kind, source.slice(&link.range).split_once('|')) {
                (LinkKind::Wiki, Some((_, alias))) => alias
                    .trim_end_matches(']')
                    .trim_end_matches('\\')
                    .trim()
                    .to_owned(),
                _ => self.label(at, address),
            };
            out.push_str(&text[from..link.range.start]);
            out.push_str(arrow);
            out.push('[');
            push_literal(&mut out, &label);
            out.push_str("](<");
            out.extend(
                address
                    .trim()
                    .chars()
                    .filter(|c| !matches!(c, '<' | '>' | '\n' | '\r' | '\\')),
            );
            out.push_str(">)");
            from = link.range.end;
        }
        out.push_str(&text[from..]);
        out
    }

    /// Returns the label of a link without one: the heading that it leads to.
    fn label(&self, from: usize, address: &str) -> String {
        match self.resolve(from, address) {
            Target::Chapter { at, id: Some(id) } => {
                let volume = &self.volumes[at];
                let section = volume.ids.iter().position(|known| known == id);
                section.map_or_else(
                    || volume.title().to_owned(),
                    |section| volume.source.sections()[section].title.clone(),
                )
            }
            Target::Chapter { at, id: None } if at != from => self.volumes[at].title().to_owned(),
            _ => address.trim().to_owned(),
        }
    }
}

impl Volume<'_> {
    /// Returns the chapter's H1, or the title of its unit if it has none.
    pub fn title(&self) -> &str {
        let first = self
            .source
            .sections()
            .iter()
            .find(|section| section.level == 1 && !section.title.is_empty());
        first.map_or(&self.chapter.title, |section| &section.title)
    }

    pub fn has_title(&self) -> bool {
        self.source
            .sections()
            .iter()
            .any(|section| section.level == 1)
    }

    /// Returns true if the title begins with a number of its own, such as `3.`, `Chapter 3` or
    /// `第三章`.
    pub fn is_numbered(&self) -> bool {
        let title = self.title().trim_start().to_lowercase();
        let after = title.trim_start_matches(|c: char| c.is_ascii_digit());
        let is_listed =
            after.len() < title.len() && after.starts_with(['.', ':', ')', '、', '．', '：']);
        let is_chinese = title.starts_with('第')
            && title
                .chars()
                .take(8)
                .any(|c| matches!(c, '章' | '回' | '节'));
        is_listed || is_chinese || title.starts_with("chapter ")
    }

    /// Returns the H2 headings of the chapter.
    pub fn headings(&self) -> impl Iterator<Item = Heading<'_>> {
        let sections = self.source.sections().iter().zip(&self.ids);
        sections
            .filter(|(section, _)| section.level == 2)
            .map(|(section, id)| Heading {
                id,
                title: &section.title,
            })
    }

    fn find(&self, anchor: &str) -> Option<&str> {
        let section = self.source.find(anchor).ok()?;
        Some(self.ids[section.id.0].as_str()).filter(|id| !id.is_empty())
    }
}

/// Returns true if a page may link to an external address: no script, and a valid host.
fn is_safe(address: &str) -> bool {
    let Some((scheme, rest)) = address.split_once(':') else {
        return false;
    };
    match scheme.to_ascii_lowercase().as_str() {
        "mailto" => true,
        "http" | "https" => {
            let host = rest
                .strip_prefix("//")
                .and_then(|rest| rest.split(['/', '?', '#']).next())
                .unwrap_or_default();
            !host.is_empty()
                && host
                    .chars()
                    .all(|c| c.is_alphanumeric() || matches!(c, '.' | '-' | '_' | ':'))
        }
        _ => false,
    }
}

/// Returns a text without byte-order mark and front matter.
fn readable(text: &str) -> &str {
    let document = Document::parse(text);
    let start = document.front_matter().map_or(0, |front| front.range.end);
    text[start..].trim_start_matches('\u{feff}')
}

/// Returns the project paths that a path in the file `from` may refer to.
pub(crate) fn candidates(from: &str, path: &str) -> Vec<String> {
    let folder = from.rsplit_once('/').map_or("", |(folder, _)| folder);
    let mut paths = Vec::new();
    let starts: &[&str] = if path.starts_with('/') {
        &[""]
    } else {
        &[folder, ""]
    };
    for start in starts {
        let mut parts: Vec<&str> = Vec::new();
        let mut inside = true;
        for part in start.split('/').chain(path.split('/')) {
            match part {
                "" | "." => {}
                ".." => inside &= parts.pop().is_some(),
                part => parts.push(part),
            }
        }
        let found = parts.join("/");
        if inside && !found.is_empty() && !paths.contains(&found) {
            paths.push(found);
        }
    }
    paths
}

/// Appends text with Markdown punctuation escaped.
fn push_literal(out: &mut String, text: &str) {
    for c in text.chars().filter(|c| *c != '\n') {
        if c.is_ascii_punctuation() {
            out.push('\\');
        }
        out.push(c);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_start_from_the_file_or_from_the_root() {
        assert_eq!(
            candidates("chapters/ch01.md", "ch02.md"),
            ["chapters/ch02.md", "ch02.md"]
        );
        assert_eq!(
            candidates("chapters/ch01.md", "../meta/x.md"),
            ["meta/x.md"]
        );
        assert_eq!(
            candidates("chapters/ch01.md", "../../etc/passwd"),
            Vec::<String>::new()
        );
        assert_eq!(candidates("ch01.md", "/img/a.png"), ["img/a.png"]);
    }
}
