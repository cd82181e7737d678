//! Links between chapters: from the paths that authors write to the pages that readers have.
//!
//! A link may start from the chapter's own folder or from the project's root, or name a chapter by
//! its id. Marks that are no Markdown (`[→ path#anchor]`, `[[path|alias]]`) are first spelt as
//! Markdown links.

use std::collections::BTreeMap;

use quipu_text::{Document, LinkKind, is_external, parse_target};

use crate::ids::heading_ids;
use crate::{Book, Chapter};

/// A chapter with the names of its sections.
pub(crate) struct Volume<'b> {
    pub chapter: &'b Chapter,
    /// The text below front matter, as it was written.
    source: Document<'b>,
    /// The id of each section.
    pub ids: Vec<String>,
    /// How many lines stand before that text.
    pub lines_before: usize,
}

/// A heading of a chapter, for tables of contents.
pub(crate) struct Heading<'s> {
    pub id: &'s str,
    pub title: &'s str,
}

/// Every chapter of a book.
pub(crate) struct Shelf<'b> {
    pub volumes: Vec<Volume<'b>>,
    /// How many lines each source file has: counted once, however often it is cited.
    pub source_lines: BTreeMap<&'b str, usize>,
}

/// Where a link leads.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Target<'s> {
    /// To another site, as it was written.
    Outside(String),
    /// To a section of a chapter, or to its beginning.
    Chapter { at: usize, id: Option<&'s str> },
    /// Nowhere that a reader could follow.
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

    /// Where an address written in the chapter at `from` leads.
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

    /// The chapter that a cell of a memory file names: `ch02`, `ch02#leases`, or words with its id
    /// among them.
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

    /// The text of a chapter with every mark that links spelt as a Markdown link.
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

    /// What a bare link is called: the heading it leads to.
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
    /// The chapter's H1 or, if it has none, the title of its unit.
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

    /// The H2 of the chapter.
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

/// Whether an outside address is one that a page may link to: no script, and a host that is one.
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

/// A text without byte-order mark and front matter.
fn readable(text: &str) -> &str {
    let document = Document::parse(text);
    let start = document.front_matter().map_or(0, |front| front.range.end);
    text[start..].trim_start_matches('\u{feff}')
}

/// The project paths that a path written in the file `from` may mean.
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

/// Adds text that Markdown takes literally.
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
