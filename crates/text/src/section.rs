//! Sections: a document split at its headings.
//!
//! Sections are in document order. There is always at least one: text before the first heading, or
//! a file without headings, is a section of level 0. Ranges nest by level, and a body ends at the
//! start of the next section. Headings inside lists, quotations, code and HTML do not count.

use std::ops::Range;

use crate::anchor::{Slugger, slug, split_explicit_id, strip_marks};
use crate::lines::LineIndex;
use crate::scan::Heading;

/// The index of a section in its document.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct SectionId(pub usize);

/// A heading and its contents.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Section {
    pub id: SectionId,
    /// 1 to 6, or 0 for text before the first heading.
    pub level: u8,
    /// The heading without markup, marks and explicit ID. Empty for level 0.
    pub title: String,
    /// GitHub's slug of the title, made unique in the document by `-1`, `-2`… Empty for level 0.
    pub slug: String,
    /// GitHub's slug of the heading including its marks (`[arc]`), if it has any.
    pub marked_slug: Option<String>,
    /// IDs from `{#id}`, `<a id>` or `<a name>`.
    pub ids: Vec<String>,
    /// The 1-based line of the heading.
    pub line: usize,
    /// The heading with its line end. Empty for level 0.
    pub heading: Range<usize>,
    /// From the end of the heading to the next heading of any level.
    pub body: Range<usize>,
    /// From the heading (or the anchor directly before it) to the end of its last subsection.
    pub range: Range<usize>,
    pub parent: Option<SectionId>,
}

/// Builds the sections of `text`. `base` is the offset after any front matter.
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

#[cfg(test)]
mod tests {
    use crate::Document;

    fn titles(text: &str) -> Vec<(u8, String)> {
        let doc = Document::parse(text);
        doc.sections()
            .iter()
            .map(|section| (section.level, section.title.clone()))
            .collect()
    }

    #[test]
    fn only_headings_at_the_top_count() {
        let text = "# A\n\n```\n# code\n```\n\n    # indented\n\n> # quoted\n\n- # listed\n\n<div>\n# html\n</div>\n\n#nospace\n\n####### seven\n\n## `B` *b* [c](d.md) ![e](f)\n";
        assert_eq!(titles(text), [(1, "A".into()), (2, "B b c".into())]);
    }

    #[test]
    fn skipped_levels_nest_under_the_nearest_higher_heading() {
        let doc = Document::parse("## A\n#### B\n### C\n# D\n## E\n");
        let parents: Vec<_> = doc
            .sections()
            .iter()
            .map(|section| section.parent.map(|id| doc.section(id).title.as_str()))
            .collect();
        assert_eq!(parents, [None, Some("A"), Some("A"), None, Some("D")]);
        let a = &doc.sections()[0];
        assert_eq!(doc.slice(&a.range), "## A\n#### B\n### C\n");
        assert_eq!(doc.slice(&a.body), "");
        let below: Vec<_> = doc
            .children(a)
            .map(|section| section.title.as_str())
            .collect();
        assert_eq!(below, ["B", "C"]);
        assert_eq!(doc.section_at(doc.text().find("E").unwrap()).title, "E");
    }

    #[test]
    fn explicit_ids_before_and_in_a_heading() {
        let text = "x\n\n<a id=\"one\"></a>\n<a name=\"two\"></a>\n## A <a id='three'></a>{#four}\n\ntext <a id=\"no\"></a>\n\n## B\n";
        let doc = Document::parse(text);
        let a = &doc.sections()[1];
        assert_eq!(a.ids, ["four", "one", "two", "three"]);
        assert_eq!(a.title, "A");
        assert_eq!(a.line, 5);
        assert!(doc.slice(&a.range).starts_with("<a id=\"one\">"));
        assert!(doc.slice(&a.heading).starts_with("## A"));
        assert_eq!(doc.sections()[2].ids, [""; 0]);
    }

    #[test]
    fn indented_and_closed_headings() {
        let doc = Document::parse("text\n   ## A ##\nbody\n");
        let a = &doc.sections()[1];
        assert_eq!(
            (a.title.as_str(), doc.slice(&a.heading)),
            ("A", "   ## A ##\n")
        );
        assert_eq!(doc.slice(&a.body), "body\n");
    }
}
