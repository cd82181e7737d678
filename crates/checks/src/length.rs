//! Word counts against the limits of the outlet.

use std::ops::RangeInclusive;
use std::sync::LazyLock;

use quipu_text::{Document, Section, count_words};
use regex::Regex;

use crate::plain::is_references;
use crate::{Finder, Gravity};

/// Editors count differently: this share is no fault.
const SLACK: f64 = 0.02;

/// How many words an outlet wants.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Limits {
    pub text: Option<(usize, usize)>,
    pub summary: Option<(usize, usize)>,
}

static RANGE: LazyLock<Regex> = LazyLock::new(|| {
    Regex::new(r"(\d[\d,]*)\s*[-–~～至到]\s*(\d[\d,]*)").expect("a valid pattern")
});
static NUMBER: LazyLock<Regex> =
    LazyLock::new(|| Regex::new(r"\d[\d,]*").expect("a valid pattern"));

impl Limits {
    /// Adds the limits that a file of criteria states: `- **Words:** 750-1750`.
    pub fn read(&mut self, criteria: &str) {
        for line in criteria.lines() {
            let line = line.trim_start_matches(['-', '*', ' ']);
            let Some((name, value)) = line.split_once(['：', ':']) else {
                continue;
            };
            let name = name.trim_matches(['*', ' ']).to_lowercase();
            let limit = match name.as_str() {
                "words" | "字数" => &mut self.text,
                "abstract words" | "摘要字数" => &mut self.summary,
                _ => continue,
            };
            *limit = parse_limit(value).or(*limit);
        }
    }
}

/// Parses `750-1750`, `at most 250`, `at least 100`.
fn parse_limit(value: &str) -> Option<(usize, usize)> {
    let number = |text: &str| text.replace(',', "").parse::<usize>().ok();
    if let Some(range) = RANGE.captures(value) {
        return Some((number(&range[1])?, number(&range[2])?));
    }
    let bound = number(NUMBER.find(value)?.as_str())?;
    let is_least = ["at least", "min", "≥", ">=", "至少", "不少于"];
    match is_least
        .iter()
        .any(|word| value.to_lowercase().contains(word))
    {
        true => Some((bound, usize::MAX)),
        false => Some((0, bound)),
    }
}

/// Whether a heading opens the abstract.
pub(crate) fn is_abstract(title: &str) -> bool {
    let title = title.trim().to_lowercase();
    matches!(title.as_str(), "abstract" | "摘要" | "中文摘要")
}

pub(crate) fn check(document: &Document<'_>, limits: &Limits, found: &mut Finder<'_>) {
    let sections = document.sections();
    let first = sections.iter().find(|s| s.level > 0).or(sections.first());
    let words = words_without_references(document);
    let summary = sections.iter().find(|s| is_abstract(&s.title));
    let of_summary = summary.map(|s| count_words(document.slice(&s.body)));
    match of_summary {
        Some(of_summary) => found.covered(
            format!("words without references: {words}, in the abstract: {of_summary}"),
            format!("字数（不计参考文献）：{words}，摘要：{of_summary}"),
        ),
        None => found.covered(
            format!("words without references: {words}"),
            format!("字数（不计参考文献）：{words}"),
        ),
    }
    if let (Some(limit), Some(section)) = (limits.text, first) {
        compare(words, limit, section, ("The text has", "全文有"), found);
    }
    if let (Some(limit), Some(section), Some(words)) = (limits.summary, summary, of_summary) {
        compare(words, limit, section, ("The abstract has", "摘要有"), found);
    }
}

/// The words of a text without front matter and references.
fn words_without_references(document: &Document<'_>) -> usize {
    let text = document.text();
    let start = document.front_matter().map_or(0, |front| front.range.end);
    let is_list = |s: &&Section| is_references(&s.title);
    let lists = document.sections().iter().filter(is_list);
    let apart: usize = lists.map(|s| count_words(document.slice(&s.range))).sum();
    count_words(&text[start..]).saturating_sub(apart)
}

fn compare(
    words: usize,
    (least, most): (usize, usize),
    section: &Section,
    (en, zh): (&str, &str),
    found: &mut Finder<'_>,
) {
    let slack = |limit: usize| (limit as f64 * SLACK) as usize;
    let allowed: RangeInclusive<usize> = least - slack(least)..=most.saturating_add(slack(most));
    if allowed.contains(&words) {
        return;
    }
    let bound = if words < least { least } else { most };
    let (at, zh_at) = if words < least {
        ("at least", "至少")
    } else {
        ("at most", "至多")
    };
    let text = found.say(
        format!("{en} {words} words; the outlet wants {at} {bound}."),
        format!("{zh} {words} 字；拟投处要求{zh_at} {bound} 字。"),
    );
    let at = match section.level {
        0 => section.body.start..section.body.end.min(section.body.start + 1),
        _ => section.heading.clone(),
    };
    let at = match found.source[at.clone()].trim().is_empty() {
        true => return,
        false => at.start..at.start + found.source[at].trim_end().len(),
    };
    found.source(at, Gravity::Minor, text);
}
