//! Groups the claims of a draft into scenes.
//!
//! A heading or a scene break (`***`, `⁂`, `# # #`) ends a scene. A longer stretch is divided at
//! paragraphs into parts of similar size, because one question to a judge covers one scene. Every
//! claim belongs to exactly one scene, in order.

use std::ops::Range;

use quipu_text::{Document, count_words};
use serde::Serialize;

use crate::claim::Claim;

/// The size above which a stretch is divided, in words or Chinese characters.
const LONGEST: usize = 700;

/// Consecutive claims of one place and time of the story.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Scene {
    /// Counted from 1 in the draft.
    pub number: usize,
    pub first_line: usize,
    pub last_line: usize,
    /// The indices of its claims.
    pub claims: Range<usize>,
    pub words: usize,
}

/// Divides a draft into scenes.
pub fn cut_scenes(draft: &str, claims: &[Claim]) -> Vec<Scene> {
    let breaks = break_lines(draft);
    let mut stretches: Vec<Range<usize>> = Vec::new();
    let mut from = 0;
    for at in 1..claims.len() {
        let (before, here) = (claims[at - 1].line, claims[at].line);
        let next = breaks.partition_point(|line| *line <= before);
        if breaks.get(next).is_some_and(|line| *line < here) {
            stretches.push(from..at);
            from = at;
        }
    }
    if from < claims.len() {
        stretches.push(from..claims.len());
    }
    let parts = stretches
        .into_iter()
        .flat_map(|stretch| divide(claims, stretch));
    parts
        .enumerate()
        .map(|(nth, range)| Scene {
            number: nth + 1,
            first_line: claims[range.start].line,
            last_line: claims[range.end - 1].line,
            words: words_of(&claims[range.clone()]),
            claims: range,
        })
        .collect()
}

fn words_of(claims: &[Claim]) -> usize {
    claims.iter().map(|claim| count_words(&claim.text)).sum()
}

/// Returns the lines of headings and scene breaks, in order.
fn break_lines(draft: &str) -> Vec<usize> {
    let document = Document::parse(draft);
    let headings = document
        .sections()
        .iter()
        .filter(|section| section.level > 0)
        .map(|section| section.line);
    let signs = draft
        .lines()
        .enumerate()
        .filter(|(_, line)| is_break(line))
        .map(|(nth, _)| nth + 1);
    let mut lines: Vec<usize> = headings.chain(signs).collect();
    lines.sort_unstable();
    lines.dedup();
    lines
}

/// Returns true for a line of ornaments, such as `* * *` or `⁂`.
fn is_break(line: &str) -> bool {
    let line = line.trim();
    let ornament = |c: char| c.is_whitespace() || "*-_#~=+·•⁂＊—…◇◆☆★○●§※".contains(c);
    !line.is_empty() && line.chars().all(ornament)
}

/// Divides a long stretch at paragraphs into parts of similar size.
fn divide(claims: &[Claim], stretch: Range<usize>) -> Vec<Range<usize>> {
    let total = words_of(&claims[stretch.clone()]);
    let parts = total.div_ceil(LONGEST).max(1);
    let target = total.div_ceil(parts);
    let (mut ranges, mut from, mut size) = (Vec::new(), stretch.start, 0);
    for at in stretch.clone() {
        // A single paragraph without end is divided between sentences.
        let too_long = size > LONGEST + LONGEST / 2;
        if at > from && size >= target && (claims[at].opens || too_long) {
            ranges.push(from..at);
            (from, size) = (at, 0);
        }
        size += words_of(&claims[at..=at]);
    }
    ranges.push(from..stretch.end);
    ranges
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::claim::cut_claims;

    fn scenes(draft: &str) -> Vec<(usize, usize, usize)> {
        let claims = cut_claims(draft);
        cut_scenes(draft, &claims)
            .into_iter()
            .map(|scene| (scene.first_line, scene.last_line, scene.claims.len()))
            .collect()
    }

    #[test]
    fn headings_and_breaks_end_a_scene() {
        let draft = "# One\n\nHe came. She went.\n\nIt rained.\n\n* * *\n\n夜里下雨。\n\n⁂\n\nMorning.\n\n## Two\n\nNoon.\n";
        assert_eq!(
            scenes(draft),
            [(3, 5, 3), (9, 9, 1), (13, 13, 1), (17, 17, 1)]
        );
        assert_eq!(scenes("# Only\n"), []);
    }

    #[test]
    fn a_long_stretch_is_divided_at_paragraphs() {
        let paragraph = "One two three four five six seven eight nine ten. ".repeat(10);
        let draft = format!("{}\n", vec![paragraph; 20].join("\n\n"));
        let found = scenes(&draft);
        assert_eq!(found.len(), 3);
        assert!(found.windows(2).all(|two| two[0].1 < two[1].0));
        assert_eq!(found.iter().map(|(.., claims)| claims).sum::<usize>(), 200);
    }
}
