//! The parts of a revision that a reviewer needs: the changes that touch its comments or the sections
//! that it judges, and the part of the authors' reply that answers it.

use std::collections::{BTreeMap, BTreeSet};
use std::ops::Range;
use std::sync::LazyLock;

use quipu_text::Document;
use similar::{DiffOp, DiffTag, TextDiff};

use super::comment::{Status, ids_in};
use super::letter::TEMPLATE_OPENING;
use super::passage::Passages;
use super::rounds::Comment;
use super::sentences::{Sentence, by_line, bytes_of_lines, sentences};
use crate::view::words;

/// A change that shares so many words with a comment may answer it.
pub(super) const RELATED: usize = 2;
/// A change beside a sentence concerns it if it exchanges so many words; a correction of spelling does not.
const SUBSTANTIAL: usize = 5;
/// A change of more pairs of sentences is not split: the text is another one.
const MOST_PAIRS: usize = 10_000;
/// In `passages` of a step: its report judges the whole text.
const WHOLE: &str = "*";

/// The parts of a revision that a reviewer judges.
pub struct Concern<'c> {
    /// Its comments, with their places in the new text.
    pub comments: &'c [Comment],
    /// Words of the headings of its sections.
    pub words: &'c [String],
    /// The authors' answer to it.
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
    /// Sentences of the new text by line; those that are gone stand where they were.
    pub text: String,
    /// The lines of the other changes.
    pub elsewhere: Vec<String>,
}

impl Changes {
    /// The lines that it shows.
    pub fn lines(&self) -> impl Iterator<Item = usize> {
        let numbers = self.text.lines().filter_map(|line| line.strip_prefix('L'));
        numbers.filter_map(|line| line.split([' ', '\t']).next()?.parse().ok())
    }
}

/// Changed sentences in both texts.
pub(super) struct Hunk {
    old: Range<usize>,
    new: Range<usize>,
    /// The old sentences of the whole change of which this is a part.
    whole: Range<usize>,
}

/// Splits a change where a sentence has become another one that shares half of its words.
fn by_sentence(hunk: Hunk, before: &[Sentence], after: &[Sentence]) -> Vec<Hunk> {
    let (rows, columns) = (hunk.old.len(), hunk.new.len());
    if rows * columns > MOST_PAIRS || rows * columns < 2 {
        return vec![hunk];
    }
    let of = |all: &[Sentence]| all.iter().map(|s| words(&s.plain)).collect::<Vec<_>>();
    let (old, new) = (of(&before[hunk.old.clone()]), of(&after[hunk.new.clone()]));
    let is_like = |row: usize, column: usize| {
        let shared = old[row].intersection(&new[column]).count();
        shared > 0 && 2 * shared >= old[row].len().max(new[column].len())
    };
    // The most pairs in order: `most[row][column]` is that of the sentences from there on.
    let mut most = vec![vec![0usize; columns + 1]; rows + 1];
    for row in (0..rows).rev() {
        for column in (0..columns).rev() {
            let pair = usize::from(is_like(row, column)) + most[row + 1][column + 1];
            most[row][column] = pair.max(most[row + 1][column]).max(most[row][column + 1]);
        }
    }
    let (mut row, mut column) = (0, 0);
    let (mut first_row, mut first_column) = (0, 0);
    let mut parts = Vec::new();
    let mut add = |old: Range<usize>, new: Range<usize>| {
        if !(old.is_empty() && new.is_empty()) {
            parts.push(Hunk {
                old: hunk.old.start + old.start..hunk.old.start + old.end,
                new: hunk.new.start + new.start..hunk.new.start + new.end,
                whole: hunk.old.clone(),
            });
        }
    };
    while row < rows && column < columns {
        if is_like(row, column) && most[row][column] == most[row + 1][column + 1] + 1 {
            add(first_row..row, first_column..column);
            add(row..row + 1, column..column + 1);
            (row, column) = (row + 1, column + 1);
            (first_row, first_column) = (row, column);
        } else if most[row + 1][column] >= most[row][column + 1] {
            row += 1;
        } else {
            column += 1;
        }
    }
    add(first_row..rows, first_column..columns);
    parts
}

/// A revision by sentences.
pub(super) struct Revision<'t> {
    new: &'t str,
    pub before: Vec<Sentence>,
    after: Vec<Sentence>,
    pub hunks: Vec<Hunk>,
}

impl<'t> Revision<'t> {
    pub fn of(old: &str, new: &'t str) -> Revision<'t> {
        let (before, after) = (sentences(old), sentences(new));
        let hunks = {
            let one: Vec<&str> = before.iter().map(|s| s.plain.as_str()).collect();
            let other: Vec<&str> = after.iter().map(|s| s.plain.as_str()).collect();
            let difference = TextDiff::from_slices(&one, &other);
            let ops = difference.ops().iter();
            let changed = ops.filter(|op| op.tag() != DiffTag::Equal);
            let hunk = |op: &DiffOp| Hunk {
                old: op.old_range(),
                new: op.new_range(),
                whole: op.old_range(),
            };
            let parts = |hunk: Hunk| by_sentence(hunk, &before, &after);
            changed.map(hunk).flat_map(parts).collect::<Vec<_>>()
        };
        Revision {
            new,
            before,
            after,
            hunks,
        }
    }

    /// Whether a change meets some bytes of either text.
    pub fn meets(&self, hunk: &Hunk, old: &[Range<usize>], new: &[Range<usize>]) -> bool {
        let meet = |own: &[Sentence], others: &[Range<usize>]| {
            own.iter()
                .any(|s| others.iter().any(|other| s.overlaps(other)))
        };
        meet(&self.before[hunk.old.clone()], old) || meet(&self.after[hunk.new.clone()], new)
    }

    /// The sentences of the new text that overlap some bytes.
    pub fn overlapping(&self, bytes: &Range<usize>) -> Vec<usize> {
        let all = self.after.iter().enumerate();
        all.filter(|(_, s)| s.overlaps(bytes))
            .map(|(at, _)| at)
            .collect()
    }

    /// Whether a change is beside some sentences of the new text.
    fn is_beside(&self, hunk: &Hunk, own: &[usize]) -> bool {
        let near = hunk.new.start.saturating_sub(1)..hunk.new.end + 1;
        own.iter().any(|at| near.contains(at))
    }

    /// The words of the new sentences of a change.
    fn words_of(&self, hunk: &Hunk) -> BTreeSet<String> {
        words_in(&self.after[hunk.new.clone()])
    }

    /// The words that a change takes away and those that it brings.
    fn exchanged(&self, hunk: &Hunk) -> (BTreeSet<String>, BTreeSet<String>) {
        let before = words_in(&self.before[hunk.old.clone()]);
        let after = self.words_of(hunk);
        (&before - &after, &after - &before)
    }

    /// The words that a change brings. A word that moved from one sentence to the next is not new.
    pub fn brought(&self, hunk: &Hunk) -> BTreeSet<String> {
        &self.words_of(hunk) - &words_in(&self.before[hunk.whole.clone()])
    }

    /// Whether a change beside some sentences of the new text concerns them: a sentence is new or gone,
    /// or many words are.
    pub fn weighs_on(&self, hunk: &Hunk, own: &[usize]) -> bool {
        let is_whole = hunk.old.is_empty() || hunk.new.is_empty();
        let (taken, brought) = self.exchanged(hunk);
        let is_heavy = is_whole || taken.len().max(brought.len()) >= SUBSTANTIAL;
        is_heavy && self.is_beside(hunk, own)
    }

    /// The hunk that brings most words of a comment.
    fn most_related(&self, comment: &Comment) -> Option<usize> {
        let wanted = words(&format!("{} {}", comment.last_quote(), comment.text));
        let shared = |hunk: &Hunk| self.brought(hunk).intersection(&wanted).count();
        let all = self.hunks.iter().map(shared).enumerate();
        // The first of equal hunks.
        all.filter(|(_, count)| *count >= RELATED)
            .reduce(|best, next| if next.1 > best.1 { next } else { best })
            .map(|(at, _)| at)
    }

    /// The changes that concern an open comment: those of its sentences, or next to them.
    fn about(&self, comment: &Comment, passages: &(Passages<'_>, Passages<'_>)) -> Vec<usize> {
        let (before, after) = passages;
        let found = before.find(comment.last_quote()).into_iter();
        let there = found.min_by_key(|p| p.first.abs_diff(comment.written_line));
        let there: Vec<_> = there.iter().map(|p| before.bytes(&p.plain)).collect();
        let here: Vec<_> = comment
            .in_manuscript()
            .map(|p| after.bytes(&p.plain))
            .into_iter()
            .collect();
        let own: Vec<usize> = here
            .iter()
            .flat_map(|bytes| self.overlapping(bytes))
            .collect();
        let touches = |hunk: &Hunk| self.meets(hunk, &there, &here) || self.weighs_on(hunk, &own);
        let touched: Vec<usize> = (0..self.hunks.len())
            .filter(|at| touches(&self.hunks[*at]))
            .collect();
        match touched.is_empty() {
            // A change elsewhere may answer a comment whose words are unchanged.
            true => self.most_related(comment).into_iter().collect(),
            false => touched,
        }
    }

    /// Renders sentences and hunks in the order of the new text. Sentences that are gone are shown if
    /// nothing took their place, or all of them to a reader of the whole.
    fn render(&self, shown: &BTreeSet<usize>, hunks: &[&Hunk], with_old: bool) -> String {
        let added: BTreeSet<usize> = hunks.iter().flat_map(|hunk| hunk.new.clone()).collect();
        let mut gone: BTreeMap<usize, &[Sentence]> = BTreeMap::new();
        for hunk in hunks.iter().filter(|hunk| with_old || hunk.new.is_empty()) {
            gone.insert(hunk.new.start, &self.before[hunk.old.clone()]);
        }
        let mut places: BTreeSet<usize> = shown.union(&added).copied().collect();
        places.extend(hunks.iter().map(|hunk| hunk.new.start));
        let mut text = String::new();
        // The line that is open, whether it is new, and the sentence before.
        let mut last: Option<(usize, bool, usize)> = None;
        for at in places {
            for sentence in gone.get(&at).copied().unwrap_or_default() {
                text.push_str(&format!("\nold\t{}", sentence.plain));
                last = None;
            }
            let Some(sentence) = self.after.get(at) else {
                continue;
            };
            let is_new = added.contains(&at);
            if !is_new && !shown.contains(&at) {
                continue;
            }
            for (line, part) in by_line(self.new, &sentence.bytes) {
                match last {
                    Some((open, new, before)) if (open, new) == (line, is_new) => {
                        text.push_str(if before + 1 < at { " … " } else { " " });
                    }
                    _ => {
                        let sign = if is_new { " new" } else { "" };
                        text.push_str(&format!("\nL{line}{sign}\t"));
                    }
                }
                text.push_str(part);
                last = Some((line, is_new, at));
            }
        }
        text.trim_start().to_owned()
    }

    /// The lines of a change: `L12`, `L12-18`.
    fn lines_of(&self, hunk: &Hunk) -> (usize, usize) {
        let line = |byte: usize| self.new[..byte].matches('\n').count() + 1;
        match self.after.get(hunk.new.clone()) {
            Some([first, .., last]) => (line(first.bytes.start), line(last.bytes.end)),
            Some([one]) => (line(one.bytes.start), line(one.bytes.end)),
            _ => {
                let next = self.after.get(hunk.new.start);
                let first = line(next.map_or(self.new.trim_end().len(), |s| s.bytes.start));
                (first, first)
            }
        }
    }
}

fn words_in(sentences: &[Sentence]) -> BTreeSet<String> {
    let text: Vec<&str> = sentences.iter().map(|s| s.plain.as_str()).collect();
    words(&text.join("\n"))
}

/// The changes that concern a reviewer, and the sentences of its open comments.
pub fn changed_passages(old: &str, new: &str, concern: &Concern<'_>) -> Changes {
    let revision = Revision::of(old, new);
    let is_whole = concern.words.iter().any(|word| word == WHOLE);
    let sections = (judged(old, concern.words), judged(new, concern.words));
    let is_undone = |c: &Comment| c.gone && c.status == Status::Addressed;
    let asked: Vec<&Comment> = concern
        .comments
        .iter()
        .filter(|c| c.needs_answer() || is_undone(c))
        .collect();
    let named_by = |text: &str| -> Vec<Range<usize>> {
        let lines = lines_in(text).into_iter();
        lines
            .map(|(first, last)| bytes_of_lines(new, first, last))
            .collect()
    };
    let answered = named_by(concern.answers);
    // A comment that compares its words with another line needs both.
    let compared: Vec<(Vec<Range<usize>>, BTreeSet<String>)> = asked
        .iter()
        .map(|c| (named_by(&c.text), words(&c.text)))
        .collect();
    let is_compared = |hunk: &Hunk| {
        compared.iter().any(|(named, own)| {
            let shared = || revision.words_of(hunk).intersection(own).count();
            revision.meets(hunk, &[], named) && shared() >= RELATED
        })
    };
    let mut is_shown: Vec<bool> = revision
        .hunks
        .iter()
        .map(|hunk| {
            is_whole
                || revision.meets(hunk, &sections.0, &sections.1)
                || revision.meets(hunk, &[], &answered)
                || is_compared(hunk)
        })
        .collect();
    let passages = (Passages::of(old), Passages::of(new));
    let mut shown: BTreeSet<usize> = BTreeSet::new();
    for comment in asked {
        for at in revision.about(comment, &passages) {
            is_shown[at] = true;
        }
        let here = comment.in_manuscript().into_iter();
        let here = here.map(|p| passages.1.bytes(&p.plain));
        shown.extend(here.flat_map(|bytes| revision.overlapping(&bytes)));
    }
    let hunks = || revision.hunks.iter().zip(&is_shown);
    let own: Vec<&Hunk> = hunks()
        .filter(|(_, shown)| **shown)
        .map(|(h, _)| h)
        .collect();
    let others = hunks()
        .filter(|(_, shown)| !**shown)
        .map(|(h, _)| revision.lines_of(h));
    let mut elsewhere: Vec<String> = others
        .map(|(first, last)| match first == last {
            true => format!("L{first}"),
            false => format!("L{first}-{last}"),
        })
        .collect();
    elsewhere.dedup();
    Changes {
        text: revision.render(&shown, &own, is_whole),
        elsewhere,
    }
}

/// The bytes of the sections whose headings contain one of these words; `#` is the title, `*` the
/// whole text.
pub(super) fn judged(text: &str, words: &[String]) -> Vec<Range<usize>> {
    let document = Document::parse(text);
    let mut found = Vec::new();
    if words.iter().any(|word| word == WHOLE) {
        found.push(0..text.len());
    }
    for section in document.sections() {
        let title = section.title.to_lowercase();
        let is_named = |word: &&String| match word.as_str() {
            "#" => section.level == 1,
            word => section.level > 0 && title.contains(&word.to_lowercase()),
        };
        for word in words.iter().filter(is_named) {
            found.push(match word.as_str() {
                "#" => section.heading.clone(),
                _ => section.range.clone(),
            });
        }
    }
    found
}

/// The lines that a text names: `L12`, `L12-15`, `第12行`; the first and the last.
pub(super) fn lines_in(text: &str) -> Vec<(usize, usize)> {
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
        found.push((first, last));
    }
    found
}

/// Whether a reply answers comments one by one, in sections that name them.
pub fn is_by_comment(reply: &str) -> bool {
    let document = Document::parse(reply);
    let mut sections = document.sections().iter();
    sections.any(|section| !ids_in(&section.title).is_empty())
}

/// The parts of a reply: paragraphs and items of lists, without headings.
pub(super) fn blocks(reply: &str) -> Vec<String> {
    let mut blocks: Vec<String> = Vec::new();
    let mut is_open = false;
    for line in reply.lines() {
        let text = line.trim();
        let is_item = text.starts_with(['-', '*', '+']);
        match blocks.last_mut().filter(|_| is_open && !is_item) {
            Some(last) if !text.is_empty() && !text.starts_with('#') => {
                last.push(' ');
                last.push_str(text);
            }
            _ if text.is_empty() || text.starts_with('#') => is_open = false,
            _ => {
                blocks.push(text.to_owned());
                is_open = true;
            }
        }
    }
    blocks
}

/// Whether a section of a reply that names one of these comments says something.
pub(super) fn replies_to(reply: &str, ids: &[&str]) -> bool {
    let document = Document::parse(reply);
    document.sections().iter().any(|section| {
        let named = ids_in(&section.title);
        let body = document.slice(&(section.body.start..section.range.end));
        named.iter().any(|id| ids.contains(id)) && !said(body).is_empty()
    })
}

/// The part of a reply before its first section about a comment: all of it if there is none.
pub(super) fn said_to_all(reply: &str) -> String {
    let document = Document::parse(reply);
    let mut sections = document.sections().iter();
    let first = sections.find(|section| !ids_in(&section.title).is_empty());
    match first {
        Some(first) => said(&reply[..first.range.start]),
        None => reply.to_owned(),
    }
}

/// The lines that the authors wrote: the reader has what the template of the letter repeats, and a field
/// that is not filled in says nothing.
fn said(text: &str) -> String {
    let is_said = |line: &&str| {
        let line = line.trim();
        let is_empty = line.is_empty() || line.ends_with(":**") || line.ends_with("：**");
        !is_empty && !line.starts_with(['>', '#']) && !TEMPLATE_OPENING.contains(&line)
    };
    text.lines().filter(is_said).collect::<Vec<_>>().join("\n")
}

/// The sections of a reply that name these comments, and what comes before the first section about
/// a comment. A reply that names no comment is for everybody, except for its parts that name only
/// other comments, or other lines than `lines`.
pub fn answers_to(reply: &str, ids: &[&str], lines: &BTreeSet<usize>) -> String {
    let document = Document::parse(reply);
    let about: Vec<_> = document
        .sections()
        .iter()
        .filter(|section| !ids_in(&section.title).is_empty())
        .collect();
    let Some(first) = about.first() else {
        let concerns = |block: &String| {
            let (named, at) = (ids_in(block), lines_in(block));
            let is_own =
                |(first, last): &(usize, usize)| lines.range(first..=last).next().is_some();
            (named.is_empty() && at.is_empty())
                || named.iter().any(|id| ids.contains(id))
                || at.iter().any(is_own)
        };
        let own = blocks(reply).into_iter().filter(concerns);
        return own.collect::<Vec<_>>().join("\n");
    };
    let mut parts = vec![said(&reply[..first.range.start])];
    for section in about {
        let named = ids_in(&section.title);
        if named.iter().any(|id| ids.contains(id)) {
            let body = said(document.slice(&(section.body.start..section.range.end)));
            if !body.is_empty() {
                parts.push(format!("### {}\n{body}", named.join(", ")));
            }
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

    const OLD: &str = "# T\n\n- one\n- two\n- three\n\n## Methods\n\nSeven cords. Eight knots. Nine \
                       hands.\n\n## End\n\nThe last one.\n";
    const NEW: &str = "# T\n\n- one\n- 2\n- three\n\n## Methods\n\nSeven cords. Eight knots. 9 \
                       hands.\n\n## End\n";

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
        assert_eq!(shown.text, "L4 new\t- 2");
        assert_eq!(shown.elsewhere, ["L9", "L11"]);
        let shown = show(&[comment("s1.1", "Seven", NEW)], &["Method"], "");
        assert_eq!(shown.text, "L9\tSeven cords.\nL9 new\t9 hands.");
        assert_eq!(shown.elsewhere, ["L4", "L11"]);
        let shown = show(&[], &["End"], "Changed: L4.");
        assert_eq!(shown.text, "L4 new\t- 2\nold\tThe last one.");
        // The change beside it is one word.
        let shown = show(&[comment("s1.1", "Eight", NEW)], &[], "");
        assert_eq!(shown.text, "L9\tEight knots.");
    }

    #[test]
    fn a_reader_of_the_whole_sees_every_change_with_what_was_there() {
        let shown = show(&[], &["*"], "");
        assert_eq!(
            shown.text,
            "old\t- two\nL4 new\t- 2\nold\tNine hands.\nL9 new\t9 hands.\nold\tThe last one."
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
            "L3\tWe sampled.\nL7 new\tThe sampling interval was 2 s."
        );
        assert_eq!(shown.elsewhere, ["L11"]);
    }

    #[test]
    fn a_paragraph_that_is_wrapped_anew_has_not_changed() {
        let old =
            "The cords were wet when the first group tied them on a\ncold morning. It rained.\n";
        let new =
            "The cords were wet when the first group tied them on a cold\nmorning. It snowed.\n";
        let shown = changed_passages(old, new, &Concern::whole());
        assert_eq!(shown.text, "old\tIt rained.\nL2 new\tIt snowed.");
    }

    #[test]
    fn a_section_is_found_by_a_word_of_its_heading() {
        let text = "# Knots\n\nWe tie.\n\n## 1 Methods and materials\n\nCord.\n\n### Cord\n\nWet.\n\n## 结果\n\n三个。\n";
        let found = |words: &[&str]| -> Vec<String> {
            let words: Vec<String> = words.iter().map(|w| (*w).to_owned()).collect();
            let found = judged(text, &words).into_iter();
            found.map(|bytes| text[bytes].trim().to_owned()).collect()
        };
        assert_eq!(found(&["#"]), ["# Knots"]);
        assert_eq!(
            found(&["Method"]),
            ["## 1 Methods and materials\n\nCord.\n\n### Cord\n\nWet."]
        );
        assert_eq!(found(&["结果", "Results"]), ["## 结果\n\n三个。"]);
        assert!(found(&["Discussion"]).is_empty());
        assert_eq!(found(&["*"]), [text.trim()]);
    }

    #[test]
    fn lines_are_read_from_a_reply() {
        assert_eq!(
            lines_in("See L12, XL3 and L4–6; 第9行."),
            [(12, 12), (4, 6), (9, 9)]
        );
    }

    #[test]
    fn a_reviewer_gets_the_answers_to_its_own_comments() {
        let reply = "# Reply\n\nThank you.\n\n### 1. s1.1, r2.3, L4\n\n> Why?\n\nDone.\n\n### 2. w1.1, L9\n\nNot done.\n";
        let none = BTreeSet::new();
        assert_eq!(
            answers_to(reply, &["s1.1"], &none),
            "Thank you.\n\n### s1.1, r2.3\nDone."
        );
        assert!(replies_to(reply, &["r2.3"]) && !replies_to(reply, &["r2.4"]));
        // The template as it is says nothing.
        let template = "Thanks.\n\n### 1. s1.1, L4\n\n> Why?\n\n- **Answer:** \n- **Change:** \n";
        assert_eq!(answers_to(template, &["s1.1"], &none), "Thanks.");
        assert!(!replies_to(template, &["s1.1"]));
        assert_eq!(
            answers_to("We changed it all.\n", &["s1.1"], &none),
            "We changed it all."
        );
        // A part that names other lines or comments is left out.
        let reply = "# Reply\n\nThanks.\n\n- L4: new\n  words.\n- L9-12: gone.\n- s1.1: no.\n- w1.1: yes.\n";
        assert_eq!(
            answers_to(reply, &["s1.1"], &BTreeSet::from([11])),
            "Thanks.\n- L9-12: gone.\n- s1.1: no."
        );
    }
}
