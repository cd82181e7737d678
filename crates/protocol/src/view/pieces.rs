//! Splits texts into pieces: the sections, rows or blocks that a view shows or cuts.
//!
//! Pieces are contiguous: joined, they are the text. A title, a preamble or a table's header is a
//! frame, which is shown whenever any part of the file is.

use std::ops::Range;

use quipu_contract::ProjectPath;
use quipu_text::{Document, LineIndex, first_sentence};

/// Blocks of plain text or code are joined up to this length, because single braces are useless in
/// a view.
const BLOCK_BYTES: usize = 600;

/// A part of a text.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PieceText {
    pub range: Range<usize>,
    pub frame: bool,
    /// Heading and first sentence on one line, without a line break.
    pub overview: Option<String>,
}

/// The kind of a text with regard to splitting.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Form {
    Markdown,
    /// A part of it would be broken, not shorter.
    Indivisible,
    Blocks,
}

/// Splits a text into pieces, at least one.
pub fn plan_pieces(path: &ProjectPath, text: &str) -> Vec<PieceText> {
    let entries = match form(path) {
        Form::Indivisible => Vec::new(),
        Form::Blocks => blocks(text, |_| false),
        Form::Markdown => {
            let document = Document::parse(text);
            let ways: [fn(&Document<'_>) -> Vec<PieceText>; 4] =
                [sections, rows, items, paragraphs];
            ways.iter()
                .map(|way| way(&document))
                .find(|entries| entries.len() > 1)
                .unwrap_or_default()
        }
    };
    if entries.len() < 2 {
        return vec![PieceText {
            range: 0..text.len(),
            frame: false,
            overview: None,
        }];
    }
    let mut pieces = Vec::with_capacity(entries.len() + 2);
    let mut at = 0;
    let frame = |range: Range<usize>| PieceText {
        range,
        frame: true,
        overview: None,
    };
    for entry in entries {
        if entry.range.start > at {
            pieces.push(frame(at..entry.range.start));
        }
        at = entry.range.end;
        pieces.push(entry);
    }
    if at < text.len() {
        pieces.push(frame(at..text.len()));
    }
    pieces
}

fn form(path: &ProjectPath) -> Form {
    let name = path.as_str().rsplit('/').next().unwrap_or_default();
    match name
        .rsplit_once('.')
        .map(|(_, extension)| extension.to_ascii_lowercase())
        .as_deref()
    {
        Some("md" | "markdown" | "mdx" | "txt") | None => Form::Markdown,
        Some(
            "json" | "jsonl" | "toml" | "yaml" | "yml" | "xml" | "csv" | "html" | "svg" | "lock",
        ) => Form::Indivisible,
        Some(_) => Form::Blocks,
    }
}

/// The sections of the highest level with more than one section. Text around them is frame.
fn sections(document: &Document<'_>) -> Vec<PieceText> {
    let of_level = |level: u8| document.sections().iter().filter(move |s| s.level == level);
    let Some(level) = (1..=6).find(|level| of_level(*level).count() > 1) else {
        return Vec::new();
    };
    of_level(level)
        .map(|section| {
            let overview = match document.first_sentence(section) {
                Some(sentence) => format!("- {}: {}", section.title, one_line(&sentence)),
                None => format!("- {}", section.title),
            };
            PieceText {
                range: section.range.clone(),
                frame: false,
                overview: Some(overview),
            }
        })
        .collect()
}

/// The rows of tables.
fn rows(document: &Document<'_>) -> Vec<PieceText> {
    let whole = 0..document.text().len();
    lines_of(
        document,
        document.rows_in(&whole).iter().map(|row| row.range.clone()),
    )
}

/// The items of top-level lists.
fn items(document: &Document<'_>) -> Vec<PieceText> {
    lines_of(
        document,
        document
            .items()
            .iter()
            .filter(|i| i.depth == 0)
            .map(|item| item.range.clone()),
    )
}

/// Extends ranges to whole lines.
fn lines_of(document: &Document<'_>, ranges: impl Iterator<Item = Range<usize>>) -> Vec<PieceText> {
    let text = document.text();
    let mut pieces: Vec<PieceText> = Vec::new();
    for range in ranges {
        let start = text[..range.start].rfind('\n').map_or(0, |at| at + 1);
        let end = if text[..range.end].ends_with('\n') {
            range.end
        } else {
            text[range.end..]
                .find('\n')
                .map_or(text.len(), |at| range.end + at + 1)
        };
        if pieces.last().is_none_or(|p| p.range.end <= start) {
            pieces.push(PieceText {
                range: start..end,
                frame: false,
                overview: None,
            });
        }
    }
    pieces
}

fn paragraphs(document: &Document<'_>) -> Vec<PieceText> {
    let text = document.text();
    let mut pieces = blocks(text, |at| document.in_code_block(at));
    for piece in &mut pieces {
        let body = &text[piece.range.clone()];
        let sentence = first_sentence(body.trim_start_matches(['#', ' ']));
        piece.overview = (!sentence.is_empty()).then(|| format!("- {}", one_line(sentence)));
    }
    pieces
}

/// Splits at blank lines that are followed by an unindented line, and joins short blocks.
fn blocks(text: &str, keep_together: impl Fn(usize) -> bool) -> Vec<PieceText> {
    let lines = LineIndex::new(text);
    let mut pieces: Vec<PieceText> = Vec::new();
    let mut start = 0;
    let mut was_blank = false;
    let mut number = 1;
    while let Some(range) = lines.range(number, text.len()) {
        number += 1;
        let line = &text[range.clone()];
        let opens = was_blank
            && line.starts_with(|c: char| !c.is_whitespace() && !matches!(c, '}' | ')' | ']'));
        if opens && range.start - start >= BLOCK_BYTES && !keep_together(range.start) {
            pieces.push(PieceText {
                range: start..range.start,
                frame: false,
                overview: None,
            });
            start = range.start;
        }
        was_blank = line.trim().is_empty();
        if range.end >= text.len() {
            break;
        }
    }
    pieces.push(PieceText {
        range: start..text.len(),
        frame: false,
        overview: None,
    });
    pieces
}

fn one_line(text: &str) -> String {
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn cut(path: &str, text: &str) -> Vec<(String, bool)> {
        let pieces = plan_pieces(&ProjectPath::parse(path).unwrap(), text);
        let joined: String = pieces.iter().map(|p| &text[p.range.clone()]).collect();
        assert_eq!(joined, text, "pieces are the text");
        pieces
            .iter()
            .map(|p| {
                (
                    text[p.range.clone()]
                        .lines()
                        .next()
                        .unwrap_or_default()
                        .to_owned(),
                    p.frame,
                )
            })
            .collect()
    }

    fn said(text: &[(&str, bool)]) -> Vec<(String, bool)> {
        text.iter().map(|(t, f)| ((*t).to_owned(), *f)).collect()
    }

    #[test]
    fn a_growing_file_is_cut_at_its_entries() {
        let text = "# Summaries\n\nIntro.\n\n## ch01\nOne.\n### more\nx\n\n## ch02\nTwo.\n";
        assert_eq!(
            cut("a.md", text),
            said(&[
                ("# Summaries", true),
                ("## ch01", false),
                ("## ch02", false)
            ])
        );
    }

    #[test]
    fn a_table_is_cut_at_its_rows() {
        let text =
            "# Terms\n\nNote.\n\n| term | meaning |\n|---|---|\n| a | b |\n| c | d |\n\nEnd.\n";
        assert_eq!(
            cut("a.md", text),
            said(&[
                ("# Terms", true),
                ("| a | b |", false),
                ("| c | d |", false),
                ("", true)
            ])
        );
    }

    #[test]
    fn lists_paragraphs_and_single_texts() {
        assert_eq!(
            cut("a.md", "# T\n\n- a\n  - b\n- c\n"),
            said(&[("# T", true), ("- a", false), ("- c", false)])
        );
        assert_eq!(cut("a.md", "One line.\n").len(), 1);
        assert_eq!(cut("a.json", "{\"a\": 1,\n\n\"b\": 2}\n").len(), 1);
        assert_eq!(cut("a.md", "").len(), 1);
        let long = format!("{}\n\n{}\n", "A word. ".repeat(100), "B word. ".repeat(100));
        assert_eq!(cut("a.md", &long).len(), 2);
    }

    #[test]
    fn code_is_cut_between_items_of_the_top_level() {
        let item = |name: &str| {
            format!(
                "fn {name}() {{\n{}\n\n    end();\n}}\n\n",
                "    call();\n".repeat(60)
            )
        };
        let text = format!("{}{}", item("one"), item("two"));
        assert_eq!(
            cut("a.rs", &text),
            said(&[("fn one() {", false), ("fn two() {", false)])
        );
    }

    #[test]
    fn an_overview_is_heading_and_first_sentence() {
        let text = "# S\n## ch01\n**Core:** A lease ends\nby itself. It is renewed.\n## 第二章\n租约会自行结束。它可以续期。\n";
        let pieces = plan_pieces(&ProjectPath::parse("a.md").unwrap(), text);
        assert_eq!(
            pieces[1].overview.as_deref(),
            Some("- ch01: Core: A lease ends by itself.")
        );
        assert_eq!(
            pieces[2].overview.as_deref(),
            Some("- 第二章: 租约会自行结束。")
        );
    }
}
