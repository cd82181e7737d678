//! The parts of a revision that a reviewer needs: the changed lines, the lines of its comments, and the part
//! of the authors' reply that answers it.

use std::collections::{BTreeMap, BTreeSet};

use quipu_text::Document;
use similar::{ChangeTag, TextDiff};

use super::comment::ids_in;
use super::rounds::Comment;

/// The lines shown before and after a passage.
const AROUND: usize = 1;

/// The passages of the new text that changed or that open comments rest on, with their line numbers
/// as a view shows them. Lines that are gone stand where they were.
pub fn changed_passages(old: &str, new: &str, comments: &[Comment]) -> String {
    let difference = TextDiff::from_lines(old, new);
    let lines: Vec<&str> = new.lines().collect();
    let mut shown: BTreeSet<usize> = BTreeSet::new();
    let mut show = |first: usize, last: usize| {
        let last = (last + AROUND).min(lines.len());
        shown.extend(first.saturating_sub(AROUND).max(1)..=last);
    };
    // The lines that are gone, by the line of the new text before which they stood.
    let mut gone: BTreeMap<usize, Vec<String>> = BTreeMap::new();
    let mut added: BTreeSet<usize> = BTreeSet::new();
    let mut at = 1;
    for change in difference.iter_all_changes() {
        match change.tag() {
            ChangeTag::Equal => at += 1,
            ChangeTag::Insert => {
                added.insert(at);
                show(at, at);
                at += 1;
            }
            ChangeTag::Delete => {
                let line = change.value().trim_end().to_owned();
                gone.entry(at).or_default().push(line);
                show(at, at);
            }
        }
    }
    for comment in comments.iter().filter(|c| c.is_open()) {
        if let Some(passage) = &comment.passage {
            show(passage.first, passage.last);
        }
    }
    let mut text = String::new();
    let mut last = 0;
    for line in shown {
        if last > 0 && line > last + 1 {
            text.push_str("…\n");
        }
        for old in gone
            .get(&line)
            .into_iter()
            .flatten()
            .filter(|old| !old.is_empty())
        {
            text.push_str(&format!("old\t{old}\n"));
        }
        if let Some(words) = lines.get(line - 1) {
            let sign = if added.contains(&line) { " new" } else { "" };
            text.push_str(&format!("L{line}{sign}\t{words}\n"));
        }
        last = line;
    }
    for old in gone
        .range(lines.len() + 1..)
        .flat_map(|(_, old)| old)
        .filter(|old| !old.is_empty())
    {
        text.push_str(&format!("old\t{old}\n"));
    }
    text
}

/// The whole new text with line numbers, and a sign at each line that is new. After a revision that
/// changed most lines it is shorter than the passages with what is gone.
pub fn marked_text(old: &str, new: &str) -> String {
    let difference = TextDiff::from_lines(old, new);
    let changes = difference.iter_all_changes();
    let kept = changes.filter(|change| change.tag() != ChangeTag::Delete);
    let lines = kept.enumerate().map(|(at, change)| {
        let sign = if change.tag() == ChangeTag::Insert {
            " new"
        } else {
            ""
        };
        format!("L{}{sign}\t{}\n", at + 1, change.value().trim_end())
    });
    lines.collect()
}

/// The sections of a reply that name these comments, and what comes before the first section about
/// a comment. A reply that names no comment is for everybody.
pub fn answers_to(reply: &str, comments: &[Comment]) -> String {
    let document = Document::parse(reply);
    let about: Vec<_> = document
        .sections()
        .iter()
        .filter(|section| !ids_in(&section.title).is_empty())
        .collect();
    let Some(first) = about.first() else {
        return reply.trim().to_owned();
    };
    let is_own = |id: &str| comments.iter().any(|c| c.id == id);
    let own = about
        .iter()
        .filter(|s| ids_in(&s.title).into_iter().any(is_own));
    let sections = own.map(|section| document.slice(&section.range).trim());
    let opening = reply[..first.range.start].trim();
    let parts: Vec<&str> = std::iter::once(opening).chain(sections).collect();
    parts.join("\n\n").trim().to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::review::comment::{Cited, Severity, WrittenComment};
    use crate::review::passage::Passages;

    fn comment(id: &str, quote: &str, text: &str) -> Comment {
        let written = WrittenComment {
            line: 1,
            severity: Severity::Minor,
            cited: Cited {
                path: None,
                lines: (1, 1),
                quote: quote.into(),
            },
            text: "Why?".into(),
        };
        let mut comment = Comment::new(id.into(), "s1", 1, &written);
        comment.passage = Passages::of(text).find(quote).into_iter().next();
        comment
    }

    #[test]
    fn passages_are_those_that_changed_and_those_of_open_comments() {
        let old = "# T\n\none\ntwo\nthree\nfour\nfive\nsix\nseven\neight\nnine\nlast\n";
        let new = "# T\n\none\n2\nthree\nfour\nfive\nsix\nseven\neight\nnine\n";
        let text = changed_passages(old, new, &[comment("s1.1", "seven", new)]);
        assert_eq!(
            text,
            "L3\tone\nold\ttwo\nL4 new\t2\nL5\tthree\n…\nL8\tsix\nL9\tseven\nL10\teight\nL11\tnine\nold\tlast\n"
        );
    }

    #[test]
    fn a_rewritten_text_is_shown_whole() {
        let text = marked_text("one\ntwo\n", "one\n2\nthree\n");
        assert_eq!(text, "L1\tone\nL2 new\t2\nL3 new\tthree\n");
    }

    #[test]
    fn a_reviewer_gets_the_answers_to_its_own_comments() {
        let reply =
            "Thank you.\n\n### 1. s1.1, r2.3, L4\n\nDone.\n\n### 2. w1.1, L9\n\nNot done.\n";
        let own = [comment("s1.1", "x", "")];
        assert_eq!(
            answers_to(reply, &own),
            "Thank you.\n\n### 1. s1.1, r2.3, L4\n\nDone."
        );
        assert_eq!(
            answers_to("We changed it all.\n", &own),
            "We changed it all."
        );
    }
}
