//! Sections: a document cut at its headings.
//!
//! Sections are in document order and never empty as a list: text before the first heading, or a file without
//! headings, is a section of level 0. Ranges nest by level, and a body ends where the next section starts.
//! Only headings outside lists, quotes, code and HTML count.

use std::ops::Range;

use crate::anchor::{Slugger, slug, split_explicit_id, strip_marks};
use crate::lines::LineIndex;
use crate::scan::Heading;

/// The place of a section in its document.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct SectionId(pub usize);

/// A heading with what stands under it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Section {
    pub id: SectionId,
    /// 1 to 6, or 0 for text before the first heading.
    pub level: u8,
    /// The heading without markup, marks and explicit id; empty for level 0.
    pub title: String,
    /// GitHub's slug of the title, made unique in the document by `-1`, `-2`…; empty for level 0.
    pub slug: String,
    /// GitHub's slug of the heading with its marks (`[arc]`), where it has any.
    pub marked_slug: Option<String>,
    /// Ids given by `{#id}`, `<a id>` or `<a name>`.
    pub ids: Vec<String>,
    /// The 1-based line of the heading.
    pub line: usize,
    /// The heading with its line end; empty for level 0.
    pub heading: Range<usize>,
    /// From the end of the heading to the next heading of any level.
    pub body: Range<usize>,
    /// From the heading (or the anchor just before it) to the end of its last subsection.
    pub range: Range<usize>,
    pub parent: Option<SectionId>,
}

/// Builds the sections of `text`, whose readable part starts at `base`.
pub(crate) fn plan_sections(
    text: &str,
    base: usize,
    headings: Vec<Heading>,
    lines: &LineIndex,
) -> Vec<Section> {
    let first = headings.first().map_or(text.len(), |heading| heading.start);
    let mut sections = Vec::with_capacity(headings.len() + 1);
    if headings.is_empty() || !text[base..first].trim().is_empty() {
        sections.push(Section {
            id: SectionId(0),
            level: 0,
            title: String::new(),
            slug: String::new(),
            marked_slug: None,
            ids: Vec::new(),
            line: lines.line(base),
            heading: base..base,
            body: base..first,
            range: base..first,
            parent: None,
        });
    }
    let mut slugger = Slugger::default();
    let mut open: Vec<usize> = Vec::new();
    let starts: Vec<usize> = headings
        .iter()
        .skip(1)
        .map(|heading| heading.start)
        .collect();
    for (nth, mut heading) in headings.into_iter().enumerate() {
        let id = sections.len();
        let next = starts.get(nth).copied().unwrap_or(text.len());
        while let Some(&above) = open.last() {
            let above: &mut Section = &mut sections[above];
            if above.level < heading.level {
                break;
            }
            above.range.end = heading.start;
            open.pop();
        }
        let (plain, explicit) = split_explicit_id(&heading.plain);
        heading.ids.splice(0..0, explicit.map(str::to_owned));
        let title = strip_marks(plain);
        sections.push(Section {
            id: SectionId(id),
            level: heading.level,
            slug: slugger.slug(&title),
            marked_slug: (title != plain).then(|| slug(plain)),
            title,
            ids: heading.ids,
            line: lines.line(heading.range.start),
            body: heading.range.end..next,
            range: heading.start..text.len(),
            heading: heading.range,
            parent: open.last().map(|&above| SectionId(above)),
        });
        open.push(id);
    }
    sections
}
