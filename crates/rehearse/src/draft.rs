//! Writes a chapter from the quotations of a report. It adds no statement of its own.
//!
//! The report's list items become paragraphs, the most informative first, until the target length
//! is reached. The chapter has one H1, three to six H2 and no H4.

use quipu_contract::Language;
use quipu_text::{Document, first_sentence};

use crate::parse::shortened;
use crate::research::ended;
use crate::sheet::{Sheet, code, count_words, quoted, say};
use crate::task::RehearseTask;
use crate::view::View;

/// Upper limit of the length, as a share of the target.
const MOST: f64 = 1.12;
/// Below this share of the target, the draft adds further excerpts of code.
const LEAST: f64 = 0.86;
/// The usual number of code excerpts.
const BLOCKS: usize = 2;

/// One statement of a report: its subject, the location and the text.
#[derive(Debug, Default, Clone, PartialEq, Eq)]
pub(crate) struct Fact {
    pub name: String,
    pub word: String,
    pub place: String,
    pub said: String,
    pub signature: Option<String>,
    pub members: Option<String>,
}

impl Fact {
    /// Parses ``**`name`** (word) `place`: text. Signature: `…`. Made of: …``.
    pub fn parse(item: &str) -> Option<Fact> {
        let (name, rest) = item.strip_prefix("**`")?.split_once("`**")?;
        let (word, rest) = match rest
            .trim_start()
            .strip_prefix('(')
            .and_then(|rest| rest.split_once(')'))
        {
            Some((word, rest)) => (word, rest),
            None => ("", rest),
        };
        let (place, rest) = rest.trim_start().strip_prefix('`')?.split_once('`')?;
        let said = rest.split_once(':').map_or(rest, |(_, said)| said).trim();
        let (said, members) = cut(said, &[" Made of: ", " 组成："]);
        let (said, signature) = cut(said, &[" Signature: ", " 签名："]);
        let own = |text: &str| text.trim().trim_end_matches(['.', '。']).to_owned();
        Some(Fact {
            name: name.into(),
            word: word.into(),
            place: place.into(),
            said: said.into(),
            signature: signature.map(own),
            members: members.map(own),
        })
    }

    fn is_documented(&self) -> bool {
        ![
            "not documented.",
            "没有注释。",
            "no opening comment",
            "没有文件注释",
            "",
        ]
        .contains(&self.said.as_str())
    }
}

fn cut<'t>(text: &'t str, marks: &[&str]) -> (&'t str, Option<&'t str>) {
    match marks.iter().find_map(|mark| text.split_once(mark)) {
        Some((before, after)) => (before, Some(after)),
        None => (text, None),
    }
}

/// A parsed report: the list items of each H2, and the code blocks with their locations.
pub(crate) struct Material {
    pub parts: Vec<Vec<String>>,
    pub blocks: Vec<(String, String)>,
}

impl Material {
    pub fn of(report: &str) -> Material {
        let document = Document::parse(report);
        let sections = document
            .sections()
            .iter()
            .filter(|section| section.level == 2);
        let parts = sections.map(|section| {
            let items = document
                .items_in(&section.range)
                .iter()
                .filter(|item| item.depth == 0);
            items
                .map(|item| {
                    document
                        .slice(&item.content)
                        .split_whitespace()
                        .collect::<Vec<_>>()
                        .join(" ")
                })
                .collect()
        });
        Material {
            parts: parts.collect(),
            blocks: blocks(report),
        }
    }
}

/// Returns the fenced blocks, each with the last line of text above it, which holds the location.
pub(crate) fn blocks(text: &str) -> Vec<(String, String)> {
    let mut found = Vec::new();
    let mut place = String::new();
    let mut lines = text.lines();
    while let Some(line) = lines.next() {
        let ticks = line.len() - line.trim_start_matches('`').len();
        if ticks < 3 {
            if !line.trim().is_empty() {
                place = line.trim().to_owned();
            }
            continue;
        }
        let fence = &line[..ticks];
        let mut block = vec![line];
        for inner in lines.by_ref() {
            block.push(inner);
            if inner.trim_end() == fence {
                break;
            }
        }
        found.push((std::mem::take(&mut place), block.join("\n")));
    }
    found
}

pub(crate) fn draft(view: &View, report: &str, task: &RehearseTask) -> Sheet {
    let l = task.language;
    let mut material = Material::of(report);
    // What the source explains in sentences comes before what it only names.
    for part in material.parts.iter_mut().take(3) {
        part.sort_by_key(|item| Fact::parse(item).is_some_and(|fact| !fact.is_documented()));
    }
    let title = task
        .unit
        .as_ref()
        .map_or(task.project.as_str(), |unit| &unit.title);
    let mut sheet = Sheet::titled(title);
    sheet.paragraph(&opening(view, task, title));

    let empty = Vec::new();
    let part = |at: usize| material.parts.get(at).unwrap_or(&empty);
    let names = [
        say(l, "What is here", "这里有什么"),
        say(l, "What it is made of", "由什么构成"),
        say(l, "What it does", "它做什么"),
        say(l, "How it runs", "怎样运行"),
        say(l, "Why it is so", "为什么这样"),
    ];
    let paragraphs: Vec<Vec<String>> = (0..5)
        .map(|at| {
            part(at)
                .iter()
                .filter_map(|item| paragraph(at, item, l))
                .collect()
        })
        .collect();
    let room = task.words as f64;
    // Reserve words for the headings and the closing section, which are always written.
    let mut used = count_words(sheet.text()) + if l == Language::Zh { 110 } else { 75 };
    // Choose the code first, because a chapter about code needs some. Then take paragraphs from
    // each part in turn.
    let shown: Vec<&(String, String)> = material
        .blocks
        .iter()
        .filter(|(place, _)| place.starts_with('`'))
        .take(BLOCKS)
        .collect();
    let mut shown: Vec<_> = shown
        .into_iter()
        .filter(|(_, block)| (count_words(block) as f64) < room * 0.12)
        .collect();
    used += shown
        .iter()
        .map(|(_, block)| count_words(block) + 20)
        .sum::<usize>();
    let mut taken = [0; 5];
    let mut grew = true;
    while grew && (used as f64) < room {
        grew = false;
        for at in [2, 1, 0, 2, 3, 1, 2, 4] {
            let Some(next) = paragraphs[at].get(taken[at]) else {
                continue;
            };
            let cost = count_words(next);
            if (used + cost) as f64 <= room * MOST {
                used += cost;
            } else {
                continue;
            }
            taken[at] += 1;
            grew = true;
            if used as f64 >= room {
                break;
            }
        }
    }
    // If the report is used up and the chapter is still too short, add more code.
    for block in material
        .blocks
        .iter()
        .filter(|(place, _)| place.starts_with('`'))
    {
        let cost = count_words(&block.1) + 20;
        if (used as f64) < room * LEAST
            && !shown.contains(&block)
            && (used + cost) as f64 <= room * MOST
        {
            used += cost;
            shown.push(block);
        }
    }
    let mut sections = 0;
    for (at, name) in names.into_iter().enumerate() {
        if taken[at] == 0 && (at != 2 || shown.is_empty()) {
            continue;
        }
        sections += 1;
        sheet.h2(name);
        for paragraph in &paragraphs[at][..taken[at]] {
            sheet.paragraph(paragraph);
        }
        if at == 2 {
            for (number, (place, block)) in shown.iter().enumerate() {
                let lead = match (number, l) {
                    (0, Language::En) => "Here is how the source puts it; read it line by line:",
                    (_, Language::En) => "And this stands at another place:",
                    (0, Language::Zh) => "源码是这样写的，请逐行读：",
                    (_, Language::Zh) => "另一处是这样写的：",
                };
                sheet.paragraph(&format!("{lead}\n\n{place}"));
                sheet.paragraph(block);
            }
            if !shown.is_empty() {
                sheet.paragraph(say(
                    l,
                    "The code is quoted as it stands; nothing was left out.",
                    "以上代码照原样引用，没有删节。",
                ));
            }
        }
    }
    if sections < 2 {
        sheet.h2(say(l, "How this chapter came about", "这一章是怎样来的"));
        sheet.paragraph(say(
            l,
            "This is a rehearsal: it quotes the report on the source and adds nothing. Where the report is silent, so is the chapter.",
            "这是一次预演：只引用源码报告，不添加任何内容。报告没有写的，本章也不写。",
        ));
    }
    if sections == 0 {
        sheet.h2(say(l, "What the report holds", "报告里有什么"));
        sheet.paragraph(&quoted(first_sentence(
            report.trim_start_matches(['#', ' ']),
        )));
    }
    closing(&mut sheet, &paragraphs, &taken, &material, l);
    sheet
}

fn opening(view: &View, task: &RehearseTask, title: &str) -> String {
    let l = task.language;
    let id = task
        .unit
        .as_ref()
        .map(|unit| unit.id.as_str())
        .unwrap_or_default();
    let goal = ["**Goal:**", "**目标：**"].iter().find_map(|mark| {
        view.texts.values().find_map(|seen| {
            let document = Document::parse(&seen.text);
            let section = document
                .sections()
                .iter()
                .find(|section| section.title == id)?;
            let text = document.slice(&section.range);
            Some(text.split_once(mark)?.1.lines().next()?.trim().to_owned())
                .filter(|goal| !goal.is_empty())
        })
    });
    let mut text = match (goal, l) {
        (Some(goal), Language::En) => format!(
            "What is there to know about *{}*? In one sentence: {}",
            quoted(title),
            ended(&goal, l)
        ),
        (Some(goal), Language::Zh) => format!(
            "关于“{}”，要知道什么？一句话：{}",
            quoted(title),
            ended(&goal, l)
        ),
        (None, Language::En) => {
            format!(
                "What is there to know about *{}*? The source answers, and this chapter says where.",
                quoted(title)
            )
        }
        (None, Language::Zh) => format!(
            "关于“{}”，要知道什么？源码给出答案，本章指出它在哪里。",
            quoted(title)
        ),
    };
    for need in task.unit.iter().flat_map(|unit| &unit.needs) {
        let known = task
            .units
            .iter()
            .find(|unit| unit.id == *need)
            .map_or(need.as_str(), |unit| &unit.title);
        text.push_str(&match l {
            Language::En => format!(" It builds on chapter {need}, *{}*.", quoted(known)),
            Language::Zh => format!("它承接 {need}《{}》。", quoted(known)),
        });
    }
    text
}

/// Turns a list item of a report into a paragraph.
fn paragraph(part: usize, item: &str, l: Language) -> Option<String> {
    let Some(fact) = Fact::parse(item) else {
        return item.contains('`').then(|| ended(item, l));
    };
    let Fact {
        name,
        word,
        place,
        said,
        ..
    } = &fact;
    // Doc-comment links have no target in a chapter. Keep only the name.
    let said = if fact.is_documented() {
        said.replace("[`", "`").replace("`]", "`")
    } else {
        String::new()
    };
    let place = code(place);
    Some(match (part, l) {
        (0, Language::En) if said.is_empty() => {
            format!("{} is at {place}, without an opening comment.", code(name))
        }
        (0, Language::Zh) if said.is_empty() => {
            format!("{} 在 {place}，没有文件注释。", code(name))
        }
        (0, Language::En) => format!("{} is at {place}. It says of itself: {said}", code(name)),
        (0, Language::Zh) => format!("{} 在 {place}。它这样介绍自己：{said}", code(name)),
        (1, Language::En) => {
            let members = fact
                .members
                .as_ref()
                .filter(|_| said.is_empty())
                .map(|members| format!(" It is made of {members}."))
                .unwrap_or_default();
            let said = if said.is_empty() {
                String::new()
            } else {
                format!(" {said}")
            };
            format!(
                "*{name}* is {} {word} at {place}.{said}{members}",
                if word.starts_with(['a', 'e', 'i', 'o']) {
                    "an"
                } else {
                    "a"
                }
            )
            .trim_end()
            .to_owned()
        }
        (1, Language::Zh) => {
            let members = fact
                .members
                .as_ref()
                .filter(|_| said.is_empty())
                .map(|members| format!("它由 {members} 组成。"))
                .unwrap_or_default();
            format!("*{name}* 是一个 {word}，见 {place}。{said}{members}")
        }
        (3, _) => ended(item, l),
        (_, Language::En) => {
            let signature = fact
                .signature
                .as_ref()
                .filter(|_| said.is_empty())
                .map(|signature| format!(" In full: {signature}."))
                .unwrap_or_default();
            format!(
                "{} is at {place}.{}{said}{signature}",
                code(name),
                if said.is_empty() { "" } else { " " }
            )
        }
        (_, Language::Zh) => {
            let signature = fact
                .signature
                .as_ref()
                .filter(|_| said.is_empty())
                .map(|signature| format!("完整签名：{signature}。"))
                .unwrap_or_default();
            format!("{} 在 {place}。{said}{signature}", code(name))
        }
    })
}

fn closing(
    sheet: &mut Sheet,
    paragraphs: &[Vec<String>],
    taken: &[usize; 5],
    material: &Material,
    l: Language,
) {
    sheet.h2(say(l, "What you now know", "现在你知道了"));
    let names = |at: usize| -> Vec<String> {
        let items = material
            .parts
            .get(at)
            .into_iter()
            .flatten()
            .filter_map(|item| Fact::parse(item));
        items
            .take(4.min(taken[at]))
            .map(|fact| code(&shortened(&fact.name, 60)))
            .collect()
    };
    let count: usize = taken.iter().sum();
    let mut text = match l {
        Language::En => format!(
            "You have seen {count} of the {} statements that the report on this part makes.",
            paragraphs.iter().map(Vec::len).sum::<usize>()
        ),
        Language::Zh => format!(
            "关于这一部分，报告共有 {} 条，你读到了其中 {count} 条。",
            paragraphs.iter().map(Vec::len).sum::<usize>()
        ),
    };
    for (at, en, zh) in [
        (
            1,
            "You know what it is made of, first of all",
            "你知道它由什么构成，首先是",
        ),
        (
            2,
            "You know what it does, first of all",
            "你知道它做什么，首先是",
        ),
    ] {
        let names = names(at);
        if !names.is_empty() {
            text.push_str(&match l {
                Language::En => format!(" {en} {}.", names.join(", ")),
                Language::Zh => format!("{zh} {}。", names.join("、")),
            });
        }
    }
    text.push_str(say(
        l,
        " Every statement names its place, so you can go and look.",
        "每条都写明出处，可以去核对。",
    ));
    sheet.paragraph(&text);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn facts_are_read_back() {
        let fact = Fact::parse("**`Journal::append`** (fn) `src/a.rs:12`: Adds a record. Signature: `pub fn append(&mut self)`.").unwrap();
        assert_eq!(
            (fact.name.as_str(), fact.word.as_str(), fact.place.as_str()),
            ("Journal::append", "fn", "src/a.rs:12")
        );
        assert_eq!(
            (fact.said.as_str(), fact.signature.as_deref()),
            ("Adds a record.", Some("`pub fn append(&mut self)`"))
        );
        assert_eq!(Fact::parse("just words"), None);
    }
}
