//! Lint for memory entries: an assertion without a cause, a fact without a source, too many links,
//! an unknown level, a period that is not read, a link in a manuscript.
//!
//! All findings are advice.

use quipu_contract::Form;
use quipu_recall::Tier;
use quipu_text::{Document, Level};
use serde::Serialize;

use crate::graph::Graph;
use crate::memory::{plain, split_key};
use crate::page::{Page, Place};
use crate::period::{Scenes, find_period, stray_limit};
use crate::words::{has_han, says_any};

/// One piece of advice.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Lint {
    pub at: Place,
    /// `flat`, `source`, `dense`, `level`, `period` or `leaf`.
    pub rule: &'static str,
    pub what: String,
}

const ABSOLUTE: &[&str] = &[
    "never",
    "always",
    "hates",
    "loves",
    "does not",
    "doesn't",
    "cannot stand",
    "is brave",
    "is lonely",
    "is stubborn",
    "is kind",
    "is cruel",
    "绝不",
    "从不",
    "总是",
    "永远",
    "讨厌",
    "不会",
    "一向",
    "很勇敢",
    "很孤独",
    "很固执",
    "很善良",
];
const CAUSE: &[&str] = &[
    "because",
    "so that",
    "so ",
    "since",
    "for fear",
    "guilt",
    "in order",
    "out of",
    "lest",
    "therefore",
    "after",
    "learnt",
    "learned",
    "owing",
    "due to",
    "until",
    "except",
    "因为",
    "所以",
    "由于",
    "为了",
    "因此",
    "愧疚",
    "免得",
    "自从",
    "学会",
    "怕",
    "于是",
    "以致",
    "直到",
    "除非",
];
/// The minimum similarity at which a bracketed word is considered a misspelt level.
const LIKENESS: f64 = 0.6;

/// Lints all pages. Returns the advice sorted by location.
pub fn lint(pages: &[Page], most_links: usize) -> Vec<Lint> {
    let mut found = Vec::new();
    for page in pages
        .iter()
        .filter(|page| page.is_memory && page.tier != Tier::L0)
    {
        let clean = quipu_text::blank_comments(&page.text, quipu_text::Comments::All);
        let document = Document::parse(&clean);
        if page.tier == Tier::L2 {
            for link in document.links() {
                let what = if has_han(&page.text) {
                    "定稿是叶子，不得含有链接"
                } else {
                    "a manuscript is a leaf and must not contain links"
                };
                let what = what.to_owned();
                found.push(Lint {
                    at: Place::new(&page.path, link.line),
                    rule: "leaf",
                    what,
                });
            }
            continue;
        }
        for item in document
            .items()
            .iter()
            .filter(|_| page.form != Some(Form::Threads))
        {
            lint_item(page, &document, item, &mut found);
        }
    }
    for dense in Graph::of(pages, None, most_links).dense {
        let lines = dense
            .lines
            .iter()
            .map(ToString::to_string)
            .collect::<Vec<_>>()
            .join(", ");
        let (links, split) = (dense.links, &dense.split);
        let what = in_language_of(
            split,
            format!("{links} links in one section; move the entries of lines {lines} to {split}"),
            format!("一节里有 {links} 个链接；把第 {lines} 行的条目移到 {split}"),
        );
        found.push(Lint {
            at: dense.at,
            rule: "dense",
            what,
        });
    }
    found.sort_by(|a, b| (&a.at, a.rule).cmp(&(&b.at, b.rule)));
    found
}

fn lint_item(page: &Page, document: &Document<'_>, item: &quipu_text::Item, found: &mut Vec<Lint>) {
    let at = Place::new(&page.path, item.line);
    let source = document.slice(&item.content);
    if source.trim_start().starts_with('_') {
        return;
    }
    let level = document
        .level_tags_in(&item.content)
        .first()
        .map(|tag| tag.level);
    let text = plain(source);
    let said = split_key(&text).map_or(text.as_str(), |(_, value)| value);
    // A chronicle records events, which need no cause.
    let happened = page.form == Some(Form::Chronicle);
    let high = level.is_none_or(|level| level <= Level::Arc) && !happened;
    if high && says_any(said, ABSOLUTE) && !says_any(&format!("{said} "), CAUSE) {
        found.push(Lint {
            at: at.clone(),
            rule: "flat",
            what: in_language_of(
                said,
                format!(
                    "a judgement without a cause: `{}`; add what causes it",
                    cut(said)
                ),
                format!("只有断言，没有原因：`{}`；请补上原因", cut(said)),
            ),
        });
    }
    // Premises and arcs are set by the author. A fact of a chapter or a scene comes from one.
    if level.is_some_and(|level| level > Level::Arc) && document.links_in(&item.content).is_empty()
    {
        found.push(Lint {
            at: at.clone(),
            rule: "source",
            what: in_language_of(
                &text,
                format!("no link to its source: `{}`", cut(&text)),
                format!("没有指向出处的链接：`{}`", cut(&text)),
            ),
        });
    }
    lint_period(&text, &at, found);
    if let Some((word, _)) = source
        .trim_start()
        .strip_prefix('[')
        .and_then(|rest| rest.split_once(']'))
        && Level::parse(word).is_none()
        && word.chars().count() > 1
        && !word.contains([' ', '→', '⊣', '[', '/', '.'])
        && !source.contains(&format!("[{word}]("))
    {
        let names = [
            "premise", "arc", "chapter", "scene", "前提", "弧", "章", "场景",
        ];
        let near = names.into_iter().max_by(|a, b| {
            strsim::normalized_damerau_levenshtein(a, word)
                .total_cmp(&strsim::normalized_damerau_levenshtein(b, word))
        });
        if let Some(near) = near.filter(|near| {
            strsim::normalized_damerau_levenshtein(near, &word.to_lowercase()) >= LIKENESS
        }) {
            found.push(Lint {
                at,
                rule: "level",
                what: in_language_of(
                    source,
                    format!("unknown level `[{word}]`; did you mean `[{near}]`?"),
                    format!("没有层级 `[{word}]`；是不是 `[{near}]`？"),
                ),
            });
        }
    }
}

/// Reports a limit of a keyed fact that is not read, and a period that ends before it begins.
fn lint_period(text: &str, at: &Place, found: &mut Vec<Lint>) {
    let scenes = Scenes::default();
    let what = match find_period(text, &scenes) {
        Some((_, period)) if period.is_inverted() => in_language_of(
            text,
            format!("the period ends before it begins: {period}"),
            format!("结束早于开始：{period}"),
        ),
        Some(_) => return,
        None => {
            let is_keyed = split_key(text).is_some();
            let Some(point) = stray_limit(text, &scenes).filter(|_| is_keyed) else {
                return;
            };
            in_language_of(
                text,
                format!(
                    "`{point}` does not limit the fact; end it with `(from {point})`, `(until \
                     {point})` or both"
                ),
                format!(
                    "`{point}` 没有限定这条事实；请在末尾写（自 {point}）、（至 {point}）或两者"
                ),
            )
        }
    };
    found.push(Lint {
        at: at.clone(),
        rule: "period",
        what,
    });
}

/// The advice in the language of the line that it is about.
fn in_language_of(line: &str, en: String, zh: String) -> String {
    if has_han(line) { zh } else { en }
}

fn cut(text: &str) -> String {
    if text.chars().count() <= 50 {
        text.to_owned()
    } else {
        text.chars().take(50).chain(['…']).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn advice_names_the_line() {
        let text = "# C\n\n## Otto\n- [premise] never leaves the island\n- [premise] never leaves the island, because Karen drowned leaving it\n- [chapter] trusts Mara\n- [chaptr] lied [→ m.md]\n- [link](m.md) is fine\n- [弧] 从不信任官府\n- [场景] 手在抖\n- scar: left palm, from ch03\n- 伤疤：左掌，自第三章\n- scar: left palm (from ch08, until ch03)\n- scar: left (from ch03)\n";
        let page = |path: &str, tier, text: &str| Page {
            path: path.into(),
            tier,
            is_memory: true,
            form: None,
            text: text.into(),
        };
        let told: Vec<(usize, &str)> = lint(
            &[
                page("c.md", Tier::L1, text),
                page("m.md", Tier::L2, "see [→ c.md]\n"),
            ],
            5,
        )
        .iter()
        .map(|l| (l.at.line, l.rule))
        .collect();
        assert_eq!(
            told,
            [
                (4, "flat"),
                (6, "source"),
                (7, "level"),
                (9, "flat"),
                (10, "source"),
                (11, "period"),
                (12, "period"),
                (13, "period"),
                (1, "leaf")
            ]
        );
    }
}
