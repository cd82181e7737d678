//! Splits pages into passages and searches them for the text of a claim.
//!
//! The index is built in memory with `quipu_recall`, without the encoder.

use quipu_recall::{Damage, Error, FileText, Index, Options, Overlay, Section, Tier};

use crate::page::{Page, Place};

/// The approximate length of a passage: enough context to judge by, short enough to quote.
const PASSAGE_CHARS: usize = 600;

/// A piece of a page.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Passage {
    pub at: Place,
    pub tier: Tier,
    pub heading: String,
    pub text: String,
    /// The page line of each line of the text. Blank lines are omitted.
    pub lines: Vec<usize>,
}

/// Pages split into passages, with a search index.
pub struct Passages {
    overlay: Overlay,
    passages: Vec<Vec<Passage>>,
    paths: Vec<String>,
    index: Index,
}

impl Passages {
    /// Splits and indexes the pages.
    pub fn of<'p>(pages: impl IntoIterator<Item = &'p Page>) -> Result<Passages, Damage> {
        let (mut files, mut passages, mut paths) = (Vec::new(), Vec::new(), Vec::new());
        for page in pages {
            let cut = cut(page);
            let section = |passage: &Passage| Section {
                line: u32::try_from(passage.at.line).unwrap_or(u32::MAX),
                heading_path: vec![passage.heading.clone()],
                text: passage.text.clone(),
            };
            files.push(FileText {
                path: page.path.clone(),
                version: String::new(),
                tier: page.tier,
                sections: cut.iter().map(section).collect(),
            });
            paths.push(page.path.clone());
            passages.push(cut);
        }
        Ok(Passages {
            overlay: Overlay::new(&files, &[])?,
            passages,
            paths,
            index: Index::empty(),
        })
    }

    /// Returns the passages closest to a text with their scores, best first.
    pub fn nearest(&self, text: &str, k: usize) -> Result<Vec<(&Passage, f32)>, Error> {
        let answer = self.index.recall_with(
            &self.overlay,
            text,
            &Options {
                k,
                use_model: false,
                ..Options::default()
            },
        )?;
        let found = answer.hits.iter().filter_map(|hit| {
            let file = self.paths.iter().position(|path| *path == hit.path)?;
            Some((self.passages[file].get(hit.ordinal as usize)?, hit.score))
        });
        Ok(found.collect())
    }

    pub fn all(&self) -> impl Iterator<Item = &Passage> {
        self.passages.iter().flatten()
    }

    pub fn is_empty(&self) -> bool {
        self.passages.iter().all(Vec::is_empty)
    }
}

/// Splits a page into paragraphs. Joins short ones and splits long ones at a line break.
fn cut(page: &Page) -> Vec<Passage> {
    let clean = quipu_text::blank_comments(&page.text, quipu_text::Comments::All);
    let mut passages: Vec<Passage> = Vec::new();
    let (mut text, mut after_blank, mut heading) = (String::new(), false, String::new());
    let mut lines = Vec::new();
    let mut close = |text: &mut String, lines: &mut Vec<usize>, heading: &str| {
        if let (true, Some(from)) = (text.chars().any(char::is_alphanumeric), lines.first()) {
            let at = Place::new(&page.path, *from);
            passages.push(Passage {
                at,
                tier: page.tier,
                heading: heading.to_owned(),
                text: text.clone(),
                lines: lines.clone(),
            });
        }
        text.clear();
        lines.clear();
    };
    for (nth, line) in clean.lines().enumerate() {
        let size = text.chars().count();
        let headed = line.starts_with('#');
        if headed || after_blank && size > PASSAGE_CHARS / 2 || size > PASSAGE_CHARS {
            close(&mut text, &mut lines, &heading);
        }
        if headed {
            heading = line.trim_start_matches('#').trim().to_owned();
            continue;
        }
        after_blank = line.trim().is_empty();
        if after_blank {
            continue;
        }
        if !text.is_empty() {
            text.push('\n');
        }
        lines.push(nth + 1);
        text.push_str(line.trim());
    }
    close(&mut text, &mut lines, &heading);
    passages
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_passage_that_speaks_of_it_is_found_with_its_line() {
        let text = format!(
            "# One\n\n{}\n\nOtto hid the red cord under the stair.\n\n# 二\n\n奥托把红绳藏在楼梯下。\n",
            "The sea was calm. ".repeat(40)
        );
        let page = Page {
            path: "m.md".into(),
            tier: Tier::L2,
            is_memory: true,
            form: None,
            text,
        };
        let passages = Passages::of([&page]).unwrap();
        let (found, _) = passages
            .nearest("Where did Otto hide the red cord?", 1)
            .unwrap()[0];
        assert_eq!(
            (
                found.at.line,
                found.text.contains("red cord"),
                found.heading.as_str()
            ),
            (5, true, "One")
        );
        assert_eq!(passages.nearest("红绳藏在哪里", 1).unwrap()[0].0.at.line, 9);
    }
}
