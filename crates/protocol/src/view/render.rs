//! Renders a view: joins the shown pieces and marks every cut with a line that says how to read the
//! rest.
//!
//! The contract's planner decides what is shown; this module only renders the decision.

use std::ops::Range;

use quipu_contract::Language;
use quipu_contract::plan::{Shown, Strategy};

use super::pieces::PieceText;

/// A part of a staged text: number and count.
pub type Part = Option<(usize, usize)>;

/// A text with its pieces.
pub struct Source<'s> {
    pub name: &'s str,
    pub text: &'s str,
    pub pieces: &'s [PieceText],
    /// Whether each line begins with its number in the file, `L12` and a tab.
    pub is_numbered: bool,
}

impl Source<'_> {
    fn part(&self, range: Range<usize>) -> String {
        let part = &self.text[range.clone()];
        if !self.is_numbered {
            return part.to_owned();
        }
        let first = 1 + self.text[..range.start].matches('\n').count();
        let lines = part.split_inclusive('\n').enumerate();
        lines
            .map(|(at, line)| format!("L{}\t{line}", first + at))
            .collect()
    }
}

/// Renders the shown pieces of a text. None if nothing is shown.
pub fn render_shown(
    source: &Source<'_>,
    shown: &[Shown],
    part: Part,
    language: Language,
) -> Option<String> {
    let Source { name, pieces, .. } = *source;
    if shown.iter().all(|s| *s == Shown::Whole) {
        return Some(source.part(0..source.text.len()));
    }
    let entries = || pieces.iter().zip(shown).filter(|(piece, _)| !piece.frame);
    if entries().all(|(_, shown)| *shown == Shown::Hidden) {
        return None;
    }
    let of = entries().count();
    let overviews = entries().filter(|(_, s)| **s == Shown::Overview).count();
    let hidden = entries().filter(|(_, s)| **s == Shown::Hidden).count();
    let mut rendered = String::new();
    let mut said = false;
    let mut in_overviews = false;
    for (piece, shown) in pieces.iter().zip(shown) {
        let overview = *shown == Shown::Overview;
        if in_overviews && !overview && *shown != Shown::Hidden {
            rendered.push('\n');
            in_overviews = false;
        }
        match (shown, &piece.overview) {
            (Shown::Hidden, _) => {}
            (Shown::Overview, Some(line)) => {
                if !said {
                    rendered.push_str(&overview_note(name, overviews, language));
                    said = true;
                }
                in_overviews = true;
                rendered.push_str(line);
                rendered.push('\n');
            }
            _ => {
                rendered.push_str(&source.part(piece.range.clone()));
                if !rendered.ends_with('\n') {
                    rendered.push('\n');
                }
            }
        }
    }
    if hidden > 0 {
        rendered.push_str(&hidden_note(name, hidden, of, part, language));
    }
    Some(rendered)
}

/// The longest possible notes about cuts, to reserve their tokens before cutting.
pub fn render_longest_notes(name: &str, entries: usize, language: Language) -> String {
    let part = Some((99, 99));
    let hidden = [part, None].map(|part| hidden_note(name, entries, entries, part, language));
    let longest = hidden
        .into_iter()
        .max_by_key(String::len)
        .unwrap_or_default();
    format!("{}\n{longest}", overview_note(name, entries, language))
}

fn overview_note(name: &str, count: usize, language: Language) -> String {
    match language {
        Language::En => format!("[{count} older, one sentence each; all: quipu read '{name}']\n"),
        Language::Zh => format!("[较早的 {count} 节各取一句；全文：quipu read '{name}']\n"),
    }
}

fn hidden_note(name: &str, hidden: usize, of: usize, part: Part, language: Language) -> String {
    match (part, language) {
        (None, Language::En) => format!("\n[… {hidden} of {of} not shown: quipu read '{name}']\n"),
        (None, Language::Zh) => {
            format!("\n[……{of} 项中有 {hidden} 项未显示：quipu read '{name}']\n")
        }
        (Some((number, count)), Language::En) => {
            format!(
                "\n[part {number} of {count}: {} of {of} of '{name}'; the rest belongs to the other parts]\n",
                of - hidden
            )
        }
        (Some((number, count)), Language::Zh) => {
            format!(
                "\n[第 {number} 部分，共 {count} 部分：'{name}' {of} 项中的 {} 项；其余在其他部分]\n",
                of - hidden
            )
        }
    }
}

/// The note about a cut in a brief. None if nothing is cut.
pub fn render_strategy_note(strategy: Strategy, name: &str, language: Language) -> Option<String> {
    Some(match (strategy, language) {
        (Strategy::Whole | Strategy::Section, _) => return None,
        (
            Strategy::Recent {
                whole,
                overview,
                hidden,
            },
            Language::En,
        ) => {
            let rest = if hidden > 0 {
                format!(", {hidden} left out")
            } else {
                String::new()
            };
            format!("cut to size: the newest {whole} in full, {overview} as one sentence{rest}")
        }
        (
            Strategy::Recent {
                whole,
                overview,
                hidden,
            },
            Language::Zh,
        ) => {
            let rest = if hidden > 0 {
                format!("，{hidden} 节略去")
            } else {
                String::new()
            };
            format!("已裁剪：最新 {whole} 节全文，{overview} 节各取一句{rest}")
        }
        (Strategy::Relevant { shown, of }, Language::En) => {
            format!("cut to size: the {shown} of {of} parts that are relevant here")
        }
        (Strategy::Relevant { shown, of }, Language::Zh) => {
            format!("已裁剪：{of} 项中与此相关的 {shown} 项")
        }
        (Strategy::Head { shown, of }, Language::En) => {
            format!("cut to size: the first {shown} of {of} parts")
        }
        (Strategy::Head { shown, of }, Language::Zh) => {
            format!("已裁剪：{of} 项中的前 {shown} 项")
        }
        (Strategy::Stage { number, of, .. }, Language::En) => format!("part {number} of {of}"),
        (Strategy::Stage { number, of, .. }, Language::Zh) => {
            format!("第 {number} 部分，共 {of} 部分")
        }
        (Strategy::Trimmed, Language::En) => {
            format!("not in this view for lack of space: quipu read '{name}'")
        }
        (Strategy::Trimmed, Language::Zh) => format!("篇幅所限，未列入：quipu read '{name}'"),
    })
}

/// The note in a brief about wildcard files that are too many to be named.
pub fn render_left_out(more: usize, role: &str, unit: Option<&str>, language: Language) -> String {
    let unit = unit
        .map(|unit| format!(" --unit {unit}"))
        .unwrap_or_default();
    match language {
        Language::En => format!(
            "{more} more files not in this view for lack of space: quipu view {role}{unit} \
             --explain"
        ),
        Language::Zh => {
            format!("篇幅所限，另有 {more} 个文件未列入：quipu view {role}{unit} --explain")
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::view::pieces::plan_pieces;

    #[test]
    fn every_cut_is_visible() {
        let path = quipu_contract::ProjectPath::parse("log.md").unwrap();
        let text = "# Log\n\n## a\nFirst. More.\n\n## b\nSecond. More.\n\n## c\nThird. More.\n";
        let pieces = plan_pieces(&path, text);
        let render_as = |shown: [Shown; 3], part: Part, is_numbered: bool| {
            let all = [&[Shown::Whole][..], &shown].concat();
            let source = Source {
                name: "log.md",
                text,
                pieces: &pieces,
                is_numbered,
            };
            render_shown(&source, &all, part, Language::En)
        };
        let render = |shown, part| render_as(shown, part, false);
        use Shown::{Hidden, Overview, Whole};
        assert_eq!(render([Whole; 3], None).unwrap(), text);
        assert_eq!(render([Hidden; 3], None), None);
        assert_eq!(
            render([Hidden, Overview, Whole], None).unwrap(),
            "# Log\n\n[1 older, one sentence each; all: quipu read 'log.md']\n- b: Second.\n\n## c\nThird. More.\n\n[… 1 of 3 not shown: quipu read 'log.md']\n"
        );
        assert_eq!(
            render_as([Hidden, Hidden, Whole], None, true).unwrap(),
            "L1\t# Log\nL2\t\nL9\t## c\nL10\tThird. More.\n\n[… 2 of 3 not shown: quipu read \
             'log.md']\n"
        );
        assert!(
            render([Hidden, Hidden, Whole], Some((2, 2)))
                .unwrap()
                .ends_with(
                    "[part 2 of 2: 1 of 3 of 'log.md'; the rest belongs to the other parts]\n"
                )
        );
    }
}
