//! Edits that keep every other byte.
//!
//! An edit is planned as one `Splice` (a byte range and its replacement), so bytes outside the
//! range cannot change. Inserted text gets the line ends of the document. Before an edit is
//! returned, the result is parsed again. The edit is refused if the text would swallow the
//! following sections (an open code fence), leave its own section or end up in code. A completion
//! marker stays the last line.

mod plan;

use std::ops::Range;

use crate::document::Document;
use crate::marker::marker;
use crate::section::{Section, SectionId};

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Splice {
    pub range: Range<usize>,
    pub text: String,
}

/// The position of a new section.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Place {
    Before(SectionId),
    /// After the section and all its subsections.
    After(SectionId),
    End,
}

/// The reason why an edit was refused.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum SpliceError {
    #[error(
        "the text leaves its section: it has a heading of level {level} in a section of level \
         {section}"
    )]
    Escapes { level: u8, section: u8 },
    #[error("the text would swallow or change the sections around it (is a code fence left open?)")]
    Swallows,
    #[error("the end of the section is inside a code block that is never closed")]
    InCode,
    #[error("the completion marker would no longer be read as one")]
    LosesMarker,
    #[error("`{text}` must be a single line")]
    NotOneLine { text: String },
    #[error("`{key}: {value}` would not be read back as written")]
    Unreadable { key: String, value: String },
    #[error("a heading has level 1 to 6, not {level}")]
    NoSuchLevel { level: u8 },
    #[error("no section can be inserted before the text that opens the file")]
    BeforePreamble,
    #[error("edits overlap or are outside the text at byte {at}")]
    Overlap { at: usize },
}

impl Splice {
    /// Applies the splice to a text.
    pub fn apply(&self, text: &str) -> String {
        let mut edited = String::with_capacity(text.len() + self.text.len());
        edited.push_str(&text[..self.range.start]);
        edited.push_str(&self.text);
        edited.push_str(&text[self.range.end..]);
        edited
    }
}

/// Applies several splices, given in any order.
pub fn splice_all(text: &str, splices: &[Splice]) -> Result<String, SpliceError> {
    let mut sorted: Vec<&Splice> = splices.iter().collect();
    sorted.sort_by_key(|splice| (splice.range.start, splice.range.end));
    let mut edited = String::with_capacity(text.len());
    let mut from = 0;
    for splice in sorted {
        let kept = text.get(from..splice.range.start);
        let replaced = text.get(splice.range.clone());
        let (Some(kept), Some(_)) = (kept, replaced) else {
            return Err(SpliceError::Overlap {
                at: splice.range.start,
            });
        };
        edited.push_str(kept);
        edited.push_str(&splice.text);
        from = splice.range.end;
    }
    edited.push_str(&text[from..]);
    Ok(edited)
}

impl Document<'_> {
    /// Replaces a section's own body. Keeps surrounding blank lines, subsections and marker.
    pub fn replace_body(&self, section: &Section, body: &str) -> Result<String, SpliceError> {
        let splice = self.plan_replace_body(section, body);
        self.checked(section, &splice)
    }

    /// Adds an entry at the end of a section's own body, and joins it to a list or table there.
    pub fn append_entry(&self, section: &Section, entry: &str) -> Result<String, SpliceError> {
        let splice = self.plan_append_entry(section, entry);
        let edited = self.checked(section, &splice)?;
        let at = splice.range.start + splice.text.len() - splice.text.trim_start().len();
        let fenced = entry.trim_start().starts_with(['`', '~']) || entry.starts_with("    ");
        if !fenced && Document::parse(&edited).in_code_block(at) {
            return Err(SpliceError::InCode);
        }
        Ok(edited)
    }

    pub fn insert_section(
        &self,
        place: Place,
        level: u8,
        title: &str,
        body: &str,
    ) -> Result<String, SpliceError> {
        let (splice, after) = self.plan_insert_section(place, level, title, body)?;
        let edited = self.applied(&splice)?;
        let parsed = Document::parse(&edited);
        let old: Vec<&Section> = self.headed().collect();
        let new: Vec<&Section> = parsed.headed().collect();
        let tail = old.len() - after;
        let added = new.len().checked_sub(old.len()).filter(|&added| added > 0);
        let whole = added.is_some_and(|added| {
            same(&old[..after], &new[..after]) && same(&old[after..], &new[new.len() - tail..]) && {
                let inserted = &new[after..after + added];
                inserted[0].level == level && inserted[1..].iter().all(|below| below.level > level)
            }
        });
        if whole {
            Ok(edited)
        } else {
            Err(SpliceError::Swallows)
        }
    }

    /// Sets the value of a keyed line in a section, or adds the line in the style of its
    /// neighbours.
    pub fn set_keyed(
        &self,
        section: &Section,
        key: &str,
        value: &str,
    ) -> Result<String, SpliceError> {
        let splice = self.plan_set_keyed(section, key, value)?;
        let edited = self.checked(section, &splice)?;
        let parsed = Document::parse(&edited);
        let body = &parsed.section(section.id).body;
        let read = plan::find_keyed(&parsed, body, key).map(|line| parsed.slice(&line.value));
        if read == Some(value.trim()) {
            return Ok(edited);
        }
        Err(SpliceError::Unreadable {
            key: key.to_owned(),
            value: value.to_owned(),
        })
    }

    /// Applies a splice if the completion marker survives.
    fn applied(&self, splice: &Splice) -> Result<String, SpliceError> {
        let edited = splice.apply(self.text());
        let kept = marker(self.text())
            .is_none_or(|old| marker(&edited).is_some_and(|new| new.name == old.name));
        if kept {
            Ok(edited)
        } else {
            Err(SpliceError::LosesMarker)
        }
    }

    fn headed(&self) -> impl Iterator<Item = &Section> {
        self.sections().iter().filter(|section| section.level > 0)
    }

    /// Applies a splice inside one section's body if the outline around it stays the same.
    fn checked(&self, section: &Section, splice: &Splice) -> Result<String, SpliceError> {
        let edited = self.applied(splice)?;
        let parsed = Document::parse(&edited);
        let old: Vec<&Section> = self.headed().collect();
        let new: Vec<&Section> = parsed.headed().collect();
        let head = old.iter().filter(|one| one.id <= section.id).count();
        let tail = old.len() - head;
        if new.len() < old.len()
            || !same(&old[..head], &new[..head])
            || !same(&old[head..], &new[new.len() - tail..])
        {
            return Err(SpliceError::Swallows);
        }
        match new[head..new.len() - tail]
            .iter()
            .find(|one| one.level <= section.level)
        {
            Some(out) => Err(SpliceError::Escapes {
                level: out.level,
                section: section.level,
            }),
            None => Ok(edited),
        }
    }
}

fn same(old: &[&Section], new: &[&Section]) -> bool {
    old.iter()
        .zip(new)
        .all(|(a, b)| a.level == b.level && a.title == b.title)
}

#[cfg(test)]
mod tests {
    use super::*;

    const BOOK: &str = "# Book\n\nIntro.\n\n## One\n\n- a\n- b\n\n## Two\n\n| k | v |\n|---|---|\n| x | 1 |\n\n## Three\n";

    #[test]
    fn a_body_is_replaced_between_its_blank_lines() {
        let doc = Document::parse(BOOK);
        let one = doc.find("one").unwrap();
        let edited = doc.replace_body(one, "new\ntext\n\n").unwrap();
        assert_eq!(edited, BOOK.replace("- a\n- b", "new\ntext"));
        let three = doc.find("three").unwrap();
        assert_eq!(
            doc.replace_body(three, "x").unwrap(),
            format!("{BOOK}\nx\n")
        );
        let emptied = doc.replace_body(one, "").unwrap();
        assert_eq!(emptied, BOOK.replace("- a\n- b\n\n", ""));
    }

    #[test]
    fn the_outline_is_protected() {
        let doc = Document::parse(BOOK);
        let one = doc.find("one").unwrap();
        assert_eq!(
            doc.replace_body(one, "```\nopen"),
            Err(SpliceError::Swallows)
        );
        assert_eq!(
            doc.replace_body(one, "# Out"),
            Err(SpliceError::Escapes {
                level: 1,
                section: 2
            })
        );
        assert!(doc.replace_body(one, "### Sub\n\nfine").is_ok());
        let open = Document::parse("## A\n\n```\ncode\n");
        assert_eq!(
            open.append_entry(&open.sections()[0], "- x"),
            Err(SpliceError::InCode)
        );
    }

    #[test]
    fn entries_join_lists_and_tables() {
        let doc = Document::parse(BOOK);
        let edited = doc.append_entry(doc.find("one").unwrap(), "- c").unwrap();
        assert_eq!(edited, BOOK.replace("- b\n", "- b\n- c\n"));
        let edited = doc
            .append_entry(doc.find("two").unwrap(), "| y | 2 |")
            .unwrap();
        assert_eq!(
            edited,
            BOOK.replace("| x | 1 |\n", "| x | 1 |\n| y | 2 |\n")
        );
        let edited = doc
            .append_entry(doc.find("book").unwrap(), "- first")
            .unwrap();
        assert_eq!(edited, BOOK.replace("Intro.\n", "Intro.\n\n- first\n"));
    }

    #[test]
    fn line_ends_and_missing_last_newline_are_respected() {
        let doc = Document::parse("# A\r\n\r\n- x");
        let edited = doc.append_entry(&doc.sections()[0], "- y\n  z").unwrap();
        assert_eq!(edited, "# A\r\n\r\n- x\r\n- y\r\n  z\r\n");
        let bare = Document::parse("# A");
        assert_eq!(
            bare.append_entry(&bare.sections()[0], "- y").unwrap(),
            "# A\n\n- y\n"
        );
        let empty = Document::parse("");
        assert_eq!(
            empty.append_entry(&empty.sections()[0], "- y").unwrap(),
            "- y\n"
        );
    }

    #[test]
    fn a_marker_stays_last() {
        let text = "# A\n\n- x\n\n<!-- DONE -->\n";
        let doc = Document::parse(text);
        let edited = doc.append_entry(&doc.sections()[0], "- y").unwrap();
        assert_eq!(edited, "# A\n\n- x\n- y\n\n<!-- DONE -->\n");
        let edited = doc.insert_section(Place::End, 2, "B", "text").unwrap();
        assert_eq!(edited, "# A\n\n- x\n\n## B\n\ntext\n\n<!-- DONE -->\n");
        let bare = Document::parse("# A\n<!-- DONE -->");
        assert_eq!(
            bare.append_entry(&bare.sections()[0], "- y").unwrap(),
            "# A\n\n- y\n\n<!-- DONE -->"
        );
    }

    #[test]
    fn a_marker_that_would_turn_into_code_is_protected() {
        let text = "| a | b |\n|---|---|\n| c |\n1. **Key:** value\n        <!-- DONE -->\n";
        let doc = Document::parse(text);
        let section = &doc.sections()[0];
        assert_eq!(
            doc.replace_body(section, "# A"),
            Err(SpliceError::LosesMarker)
        );
        assert_eq!(
            doc.append_entry(section, "- a\n\n  ***"),
            Err(SpliceError::LosesMarker)
        );
    }

    #[test]
    fn sections_are_inserted_with_blank_lines_around() {
        let doc = Document::parse(BOOK);
        let one = doc.find("one").unwrap().id;
        let edited = doc
            .insert_section(Place::After(one), 2, "New", "body")
            .unwrap();
        assert_eq!(edited, BOOK.replace("## Two", "## New\n\nbody\n\n## Two"));
        let edited = doc
            .insert_section(Place::Before(one), 2, "New", "")
            .unwrap();
        assert_eq!(edited, BOOK.replace("## One", "## New\n\n## One"));
        assert_eq!(
            doc.insert_section(Place::End, 2, "a\nb", ""),
            Err(SpliceError::NotOneLine {
                text: "a\nb".into()
            })
        );
        assert_eq!(
            doc.insert_section(Place::End, 7, "a", ""),
            Err(SpliceError::NoSuchLevel { level: 7 })
        );
        assert_eq!(
            doc.insert_section(Place::Before(one), 2, "a", "```"),
            Err(SpliceError::Swallows)
        );
    }

    #[test]
    fn keyed_lines_are_set_or_added_in_style() {
        let text = "## 奥托\n\n- **动机**：愧疚\n  仍在\n- **Age:** 31\n\n## B\n";
        let doc = Document::parse(text);
        let otto = doc.find("奥托").unwrap();
        let edited = doc.set_keyed(otto, "动机", "赎罪").unwrap();
        assert_eq!(edited, text.replace("愧疚\n  仍在", "赎罪"));
        let edited = doc.set_keyed(otto, "age", "32").unwrap();
        assert_eq!(edited, text.replace("31", "32"));
        let edited = doc.set_keyed(otto, "Home", "X").unwrap();
        assert_eq!(edited, text.replace("31\n", "31\n- **Home:** X\n"));
        let b = doc.find("b").unwrap();
        assert_eq!(
            doc.set_keyed(b, "K", "v").unwrap(),
            format!("{text}\n- **K:** v\n")
        );
        assert!(matches!(
            doc.set_keyed(b, "K", "a\nb"),
            Err(SpliceError::NotOneLine { .. })
        ));
        assert!(matches!(
            doc.set_keyed(b, "no; key", "a"),
            Err(SpliceError::Unreadable { .. })
        ));
    }

    #[test]
    fn an_empty_value_gets_its_blank() {
        let doc = Document::parse("- Status:\n- 键：\n");
        let section = &doc.sections()[0];
        assert_eq!(
            doc.set_keyed(section, "Status", "done").unwrap(),
            "- Status: done\n- 键：\n"
        );
        assert_eq!(
            doc.set_keyed(section, "键", "值").unwrap(),
            "- Status:\n- 键：值\n"
        );
    }

    #[test]
    fn several_splices_must_not_overlap() {
        let splice = |range: Range<usize>, text: &str| Splice {
            range,
            text: text.into(),
        };
        let both = [splice(4..5, "E"), splice(0..1, "AA")];
        assert_eq!(splice_all("abcde", &both).unwrap(), "AAbcdE");
        let clash = [splice(0..3, ""), splice(2..4, "")];
        assert_eq!(
            splice_all("abcde", &clash),
            Err(SpliceError::Overlap { at: 2 })
        );
        assert!(splice_all("中", &[splice(1..2, "")]).is_err());
    }
}
