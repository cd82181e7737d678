//! The parts of a revision that a reviewer needs: the changes that touch its comments or the sections
//! that it judges, and the part of the authors' reply that answers it.

use std::collections::{BTreeMap, BTreeSet};
use std::ops::Range;
use std::sync::LazyLock;

use quipu_text::Document;
use similar::{DiffTag, TextDiff};

use super::comment::{Status, ids_in};
use super::excerpt::{excerpt, sentences_of};
use super::letter::TEMPLATE_OPENING;
use super::passage::Passages;
use super::rounds::Comment;
use crate::view::words;

/// The lines shown before and after a passage.
const AROUND: usize = 1;
/// A change that shares so many words with a comment may answer it.
const RELATED: usize = 2;
/// In `passages` of a step: its report judges the whole text.
const WHOLE: &str = "*";

/// What a reviewer judges in a revision.
pub struct Concern<'c> {
    /// Its comments, with their places in the new text.
    pub comments: &'c [Comment],
    /// Words of the headings of its sections.
    pub words: &'c [String],
    /// What the authors answer it.
    pub answers: &'c str,
}

impl Concern<'static> {
    /// Every change.
    pub fn whole() -> Concern<'static> {
        static WORDS: LazyLock<Vec<String>> = LazyLock::new(|| vec![WHOLE.to_owned()]);
        Concern {
            comments: &[],
            words: &WORDS,
            answers: "",
        }
    }
}

/// The changes that a reviewer is shown.
#[derive(Debug, PartialEq, Eq)]
pub struct Changes {
    /// Lines of the new text with their numbers; lines that are gone stand where they were.
    pub text: String,
    /// The other changes, by line and heading.
    pub elsewhere: Vec<String>,
}

/// Changed lines, counted from 0, in both texts.
struct Hunk {
    old: Range<usize>,
    new: Range<usize>,
}

impl Hunk {
    fn touches(&self, old: &[Range<usize>], new: &[Range<usize>]) -> bool {
        let meet = |own: &Range<usize>, other: &Range<usize>| {
            own.start < other.end && other.start < own.end
        };
        old.iter().any(|other| meet(&self.old, other)) || new.iter().any(|o| meet(&self.new, o))
    }
}

/// The hunks of a difference; those that an empty line divides are one.
fn hunks(old: &str, new: &str) -> Vec<Hunk> {
    let (before, lines): (Vec<&str>, Vec<&str>) = (old.lines().collect(), new.lines().collect());
    let difference = TextDiff::from_slices(&before, &lines);
    let mut hunks: Vec<Hunk> = Vec::new();
    for op in difference
        .ops()
        .iter()
        .filter(|op| op.tag() != DiffTag::Equal)
    {
        let (old, new) = (op.old_range(), op.new_range());
        let is_near = |last: &Hunk| {
            let between = lines.get(last.new.end..new.start).unwrap_or_default();
            between.iter().all(|line| line.trim().is_empty())
        };
        match hunks.last_mut().filter(|last| is_near(last)) {
            Some(last) => (last.old.end, last.new.end) = (old.end, new.end),
            None => hunks.push(Hunk { old, new }),
        }
    }
    // An empty line more or less is no change.
    let says = |text: &str, range: &Range<usize>| {
        let mut lines = text.lines().skip(range.start).take(range.len());
        lines.any(|line| !line.trim().is_empty())
    };
    hunks.retain(|hunk| says(old, &hunk.old) || says(new, &hunk.new));
    for hunk in hunks.iter_mut().filter(|hunk| says(new, &hunk.new)) {
        let is_empty = |at: usize| lines[at].trim().is_empty();
        while is_empty(hunk.new.start) {
            hunk.new.start += 1;
        }
        while is_empty(hunk.new.end - 1) {
            hunk.new.end -= 1;
        }
    }
    hunks
}

/// The changes that concern a reviewer, and the lines of its open comments.
pub fn changed_passages(old: &str, new: &str, concern: &Concern<'_>) -> Changes {
    let mut texts = Texts::of(old, new);
    let hunks = hunks(old, new);
    let is_whole = concern.words.iter().any(|word| word == WHOLE);
    let mut shown = vec![is_whole; hunks.len()];
    let mut passages: Vec<Range<usize>> = lines_in(concern.answers);
    let sections = (judged(old, concern.words), judged(new, concern.words));
    for (hunk, shown) in hunks.iter().zip(&mut shown) {
        *shown |= hunk.touches(&sections.0, &sections.1) || hunk.touches(&[], &passages);
    }
    let (before, after) = (Passages::of(old), Passages::of(new));
    let is_undone = |c: &Comment| c.gone && c.status == Status::Addressed;
    let asked = concern
        .comments
        .iter()
        .filter(|c| c.is_open() || is_undone(c));
    for comment in asked {
        let here = comment.passage.as_ref();
        texts.wanted.extend(here.map(|p| after.bytes(&p.plain)));
        let here: Vec<Range<usize>> = here.iter().map(|p| p.first - 1..p.last).collect();
        let found = before.find(comment.last_quote()).into_iter();
        let there = found.min_by_key(|p| p.first.abs_diff(comment.written_line));
        let there: Vec<Range<usize>> = there.iter().map(|p| p.first - 1..p.last).collect();
        let touched: Vec<usize> = (0..hunks.len())
            .filter(|at| hunks[*at].touches(&there, &here))
            .collect();
        // What the authors wrote elsewhere may answer a comment whose words they left.
        let related = match touched.is_empty() {
            true => most_related(comment, &hunks, &texts.new),
            false => None,
        };
        for at in touched.into_iter().chain(related) {
            shown[at] = true;
        }
        passages.extend(here);
    }
    let mut elsewhere = Vec::new();
    for (hunk, _) in hunks.iter().zip(&shown).filter(|(_, shown)| !**shown) {
        elsewhere.push(name_hunk(new, hunk));
    }
    let hunks: Vec<&Hunk> = hunks
        .iter()
        .zip(&shown)
        .filter(|(_, s)| **s)
        .map(|(h, _)| h)
        .collect();
    let text = render(&texts, &hunks, &passages, is_whole);
    Changes { text, elsewhere }
}

/// The hunk whose new lines share most words with a comment.
fn most_related(comment: &Comment, hunks: &[Hunk], lines: &[&str]) -> Option<usize> {
    let wanted = words(&format!("{} {}", comment.last_quote(), comment.text));
    let shared = |hunk: &Hunk| {
        let text = lines.get(hunk.new.clone()).unwrap_or_default().join("\n");
        words(&text).intersection(&wanted).count()
    };
    let all = hunks.iter().map(shared).enumerate();
    // The first of equal hunks.
    all.filter(|(_, count)| *count >= RELATED)
        .reduce(|best, next| if next.1 > best.1 { next } else { best })
        .map(|(at, _)| at)
}

/// `L12-18 (Methods)`.
fn name_hunk(new: &str, hunk: &Hunk) -> String {
    let first = hunk.new.start + 1;
    let place = match hunk.new.len() {
        0 | 1 => format!("L{first}"),
        _ => format!("L{first}-{}", hunk.new.end),
    };
    let document = Document::parse(new);
    let mut sections = document.sections().iter();
    match sections.rfind(|s| s.level > 0 && s.line <= first) {
        Some(section) => format!("{place} ({})", section.title),
        None => place,
    }
}

/// The texts of a revision by lines, and the bytes of the new text that must be shown.
struct Texts<'t> {
    old: Vec<&'t str>,
    new: Vec<&'t str>,
    /// The first byte of each line of the new text.
    starts: Vec<usize>,
    wanted: Vec<Range<usize>>,
}

impl<'t> Texts<'t> {
    fn of(old: &'t str, new: &'t str) -> Texts<'t> {
        let mut starts = vec![0];
        starts.extend(new.match_indices('\n').map(|(at, _)| at + 1));
        Texts {
            old: old.lines().collect(),
            new: new.lines().collect(),
            starts,
            wanted: Vec::new(),
        }
    }

    /// A line of the new text without what is known or unwanted in it.
    fn excerpt(&self, at: usize, known: &BTreeSet<&str>) -> String {
        let (line, start) = (self.new[at], self.starts[at]);
        let wanted = self.wanted.iter().filter(|w| w.end > start);
        let own: Vec<Range<usize>> = wanted
            .map(|w| w.start.saturating_sub(start)..w.end - start)
            .collect();
        excerpt(line, known, &own)
    }

    fn is_said(&self, at: usize) -> bool {
        !self.new[at].trim().is_empty()
    }
}

/// Renders hunks and passages in the order of the new text. Lines that are gone are shown if nothing
/// took their place, or all of them to a reader of the whole. Of a long line only the sentences are
/// shown that changed or that comments rest on.
fn render(texts: &Texts<'_>, hunks: &[&Hunk], passages: &[Range<usize>], with_old: bool) -> String {
    let mut shown: BTreeMap<usize, Option<&Hunk>> = BTreeMap::new();
    let mut gone: BTreeMap<usize, Vec<String>> = BTreeMap::new();
    for range in passages.iter().chain(hunks.iter().map(|hunk| &hunk.new)) {
        let from = range.start.saturating_sub(AROUND);
        let lines = from..(range.end + AROUND).min(texts.new.len());
        shown.extend(lines.map(|at| (at, None)));
    }
    for hunk in hunks {
        shown.extend(hunk.new.clone().map(|at| (at, Some(*hunk))));
        let has_new = hunk.new.clone().any(|line| texts.is_said(line));
        if with_old || !has_new {
            let known = sentences_of(&texts.new[hunk.new.clone()]);
            let lines = texts.old[hunk.old.clone()].iter();
            let said = lines.filter(|line| !line.trim().is_empty());
            let lines = said.map(|line| excerpt(line, &known, &[])).collect();
            gone.insert(hunk.new.start, lines);
        }
    }
    let mut text = String::new();
    let write_gone = |text: &mut String, lines: &[String]| {
        let lines = lines.iter().map(|line| format!("old\t{line}\n"));
        text.extend(lines);
    };
    let mut last = None;
    for (at, hunk) in shown {
        if last.is_some_and(|last| at > last + 1) {
            text.push_str("…\n");
        }
        if let Some(lines) = gone.get(&at) {
            write_gone(&mut text, lines);
        }
        if texts.is_said(at) {
            let known = match hunk {
                Some(hunk) => sentences_of(&texts.old[hunk.old.clone()]),
                None => sentences_of(&texts.new[at..=at]),
            };
            let sign = if hunk.is_some() { " new" } else { "" };
            text.push_str(&format!(
                "L{}{sign}\t{}\n",
                at + 1,
                texts.excerpt(at, &known)
            ));
        }
        last = Some(at);
    }
    for lines in gone.range(texts.new.len()..).map(|(_, lines)| lines) {
        write_gone(&mut text, lines);
    }
    text
}

/// The lines of the sections whose headings contain one of these words, counted from 0; `#` is the
/// title, `*` the whole text.
pub(super) fn judged(text: &str, words: &[String]) -> Vec<Range<usize>> {
    let document = Document::parse(text);
    let line = |byte: usize| text[..byte].matches('\n').count();
    let mut found = Vec::new();
    if words.iter().any(|word| word == WHOLE) {
        found.push(0..text.lines().count());
    }
    for section in document.sections() {
        let title = section.title.to_lowercase();
        let is_named = |word: &&String| match word.as_str() {
            "#" => section.level == 1,
            word => section.level > 0 && title.contains(&word.to_lowercase()),
        };
        for word in words.iter().filter(is_named) {
            let range = match word.as_str() {
                "#" => &section.heading,
                _ => &section.range,
            };
            let end = document.slice(range).trim_end().len();
            found.push(line(range.start)..line(range.start + end) + 1);
        }
    }
    found
}

/// The lines that a text names: `L12`, `L12-15`, `第12行`, counted from 0.
fn lines_in(text: &str) -> Vec<Range<usize>> {
    let mut found = Vec::new();
    for (at, word) in text.match_indices(['L', '第']) {
        let starts_word = !text[..at].ends_with(|c: char| c.is_ascii_alphanumeric());
        let number = |text: &str| {
            let end = text
                .find(|c: char| !c.is_ascii_digit())
                .unwrap_or(text.len());
            let number = text[..end].parse::<usize>().ok().filter(|n| *n > 0)?;
            Some((number, text[end..].to_owned()))
        };
        let Some((first, rest)) = number(&text[at + word.len()..]).filter(|_| starts_word) else {
            continue;
        };
        let last = rest
            .strip_prefix(['-', '–', '—', '至'])
            .and_then(|rest| number(rest.trim_start_matches(['L', '第'])));
        let last = last.map_or(first, |(last, _)| last.max(first));
        found.push(first - 1..last);
    }
    found
}

/// The sections of a reply that name these comments, and what comes before the first section about
/// a comment. A reply that names no comment is for everybody. The reader has the comments, so what
/// the template of the letter repeats of them is left out.
pub fn answers_to(reply: &str, ids: &[&str]) -> String {
    let document = Document::parse(reply);
    let about: Vec<_> = document
        .sections()
        .iter()
        .filter(|section| !ids_in(&section.title).is_empty())
        .collect();
    let Some(first) = about.first() else {
        return reply.trim().to_owned();
    };
    let is_said = |line: &&str| {
        let line = line.trim();
        !line.is_empty() && !line.starts_with(['>', '#']) && !TEMPLATE_OPENING.contains(&line)
    };
    let said = |text: &str| text.lines().filter(is_said).collect::<Vec<_>>().join("\n");
    let mut parts = vec![said(&reply[..first.range.start])];
    for section in about {
        let named = ids_in(&section.title);
        if named.iter().any(|id| ids.contains(id)) {
            let body = document.slice(&(section.body.start..section.range.end));
            parts.push(format!("### {}\n{}", named.join(", "), said(body)));
        }
    }
    parts.join("\n\n").trim().to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::review::comment::{Cited, Severity, WrittenComment};

    fn comment(id: &str, quote: &str, text: &str) -> Comment {
        let written = WrittenComment {
            line: 1,
            severity: Severity::Minor,
            cited: Cited {
                path: None,
                lines: (1, 1),
                quote: quote.into(),
            },
            text: "Why? Name the sampling interval.".into(),
        };
        let mut comment = Comment::new(id.into(), "s1", 1, &written);
        comment.passage = Passages::of(text).find(quote).into_iter().next();
        comment
    }

    const OLD: &str = "# T\n\none\ntwo\nthree\nfour\nfive\n\n## Methods\nseven\neight\nnine\nten\n\n## End\nlast\n";
    const NEW: &str =
        "# T\n\none\n2\nthree\nfour\nfive\n\n## Methods\nseven\neight\n9\nten\n\n## End\n";

    fn show(comments: &[Comment], words: &[&str], answers: &str) -> Changes {
        let words: Vec<String> = words.iter().map(|w| (*w).to_owned()).collect();
        let concern = Concern {
            comments,
            words: &words,
            answers,
        };
        changed_passages(OLD, NEW, &concern)
    }

    #[test]
    fn a_reviewer_sees_the_changes_that_touch_its_comments_or_its_sections() {
        let shown = show(&[comment("s1.1", "two", NEW)], &[], "");
        assert_eq!(shown.text, "L3\tone\nL4 new\t2\nL5\tthree\n");
        assert_eq!(shown.elsewhere, ["L12 (Methods)", "L16 (End)"]);
        let shown = show(&[comment("s1.1", "seven", NEW)], &["Method"], "");
        assert_eq!(
            shown.text,
            "L9\t## Methods\nL10\tseven\nL11\teight\nL12 new\t9\nL13\tten\n"
        );
        assert_eq!(shown.elsewhere, ["L4 (T)", "L16 (End)"]);
        let shown = show(&[], &["End"], "Changed: L4.");
        assert_eq!(
            shown.text,
            "L3\tone\nL4 new\t2\nL5\tthree\n…\nL15\t## End\nold\tlast\n"
        );
    }

    #[test]
    fn a_reader_of_the_whole_sees_every_change_with_what_was_there() {
        let shown = show(&[], &["*"], "");
        assert!(
            shown
                .text
                .starts_with("L3\tone\nold\ttwo\nL4 new\t2\nL5\tthree\n…\n")
        );
        assert!(
            shown.text.ends_with("L15\t## End\nold\tlast\n"),
            "{}",
            shown.text
        );
        assert!(shown.elsewhere.is_empty());
    }

    #[test]
    fn a_change_elsewhere_that_shares_words_may_answer_a_comment() {
        let old = "# T\n\nWe sampled.\n\nx\n\ny\n";
        let new = "# T\n\nWe sampled.\n\nx\n\nThe sampling interval was 2 s.\n\ny\n\nz\n";
        let concern = Concern {
            comments: &[comment("s1.1", "We sampled", new)],
            words: &[],
            answers: "",
        };
        let shown = changed_passages(old, new, &concern);
        assert_eq!(
            shown.text,
            "L3\tWe sampled.\n…\nL7 new\tThe sampling interval was 2 s.\n"
        );
        assert_eq!(shown.elsewhere, ["L11 (T)"]);
    }

    #[test]
    fn a_section_is_found_by_a_word_of_its_heading() {
        let text = "# Knots\n\nWe tie.\n\n## 1 Methods and materials\n\nCord.\n\n### Cord\n\nWet.\n\n## 结果\n\n三个。\n";
        let lines = |words: &[&str]| -> Vec<(usize, usize)> {
            let words: Vec<String> = words.iter().map(|w| (*w).to_owned()).collect();
            let found = judged(text, &words).into_iter();
            found.map(|range| (range.start, range.end)).collect()
        };
        assert_eq!(lines(&["#"]), [(0, 1)]);
        assert_eq!(lines(&["Method"]), [(4, 11)]);
        assert_eq!(lines(&["结果", "Results"]), [(12, 15)]);
        assert!(lines(&["Discussion"]).is_empty());
        assert_eq!(lines(&["*"]), [(0, 15)]);
    }

    #[test]
    fn lines_are_read_from_a_reply() {
        assert_eq!(
            lines_in("See L12, XL3 and L4–6; 第9行."),
            [11..12, 3..6, 8..9]
        );
    }

    #[test]
    fn a_reviewer_gets_the_answers_to_its_own_comments() {
        let reply = "# Reply\n\nThank you.\n\n### 1. s1.1, r2.3, L4\n\n> Why?\n\nDone.\n\n### 2. w1.1, L9\n\nNot done.\n";
        assert_eq!(
            answers_to(reply, &["s1.1"]),
            "Thank you.\n\n### s1.1, r2.3\nDone."
        );
        assert_eq!(
            answers_to("We changed it all.\n", &["s1.1"]),
            "We changed it all."
        );
    }
}
