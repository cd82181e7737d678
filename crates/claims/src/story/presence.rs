//! Whether a sentence shows somebody in its scene, or only speaks of them.
//!
//! Unsure cases count as absent: a scene in which somebody takes part names them more than once.

use std::ops::Range;

use crate::claim::Claim;
use crate::memory::Mention;
use crate::words::{clause_before, has_han, is_unreal, says_any, words};

/// Signs that a sentence remembers, or is about something that stands for a person.
const REMEMBERED: &[&str] = &[
    "remember",
    "remembered",
    "remembering",
    "recalled",
    "memory",
    "memories",
    "dreamt",
    "dreamed",
    "ghost",
    "grave",
    "tomb",
    "portrait",
    "photograph",
    "letter",
    "years ago",
    "back then",
    "used to",
    "missed",
    "mourned",
    "funeral",
    "记得",
    "想起",
    "回忆",
    "梦见",
    "梦到",
    "坟",
    "墓",
    "遗像",
    "生前",
    "当年",
    "那年",
    "画像",
    "照片",
    "来信",
    "写信",
    "信里",
    "信中",
    "从前",
    "思念",
];
/// Words before a name that make it a subject of talk or thought, in English.
const ABOUT: &[&str] = &[
    "of",
    "about",
    "like",
    "than",
    "without",
    "for",
    "from",
    "after",
    "that",
    "whether",
    "if",
    "how",
    "why",
    "where",
    "what",
    "as",
    "named",
    "called",
    "mentioned",
    "until",
    "because",
];
/// Verbs of speech and thought with a clause about somebody else.
const REPORTS: &[&str] = &[
    "said",
    "says",
    "told",
    "knew",
    "heard",
    "believed",
    "thought",
    "asked",
    "wondered",
    "swore",
    "wrote",
    "explained",
    "feared",
    "hoped",
    "claimed",
    "insisted",
];
const JOINTS: &[&str] = &[
    "that", "whether", "if", "how", "why", "where", "what", "when",
];
/// Ends of a clause before a name that is only spoken of, in Chinese.
const ABOUT_ZH: &[&str] = &[
    "说", "听说", "知道", "以为", "认为", "相信", "猜", "想", "想着", "想到", "提到", "提起",
    "谈到", "谈起", "说到", "说起", "讲起", "问起", "关于", "像", "如", "如同", "替", "为", "为了",
    "等", "等着", "找", "寻找", "怕", "恨", "信", "怀疑", "没有", "不见", "叫",
];

/// Returns true if a name in a sentence, outside of speech, shows its bearer in the scene.
pub fn is_there(text: &str, mention: &Mention) -> bool {
    if mention.possessive || is_unreal(text) || says_any(text, REMEMBERED) {
        return false;
    }
    let before = clause_before(text, mention.start).trim_end();
    if has_han(before) || has_han(&text[mention.start..mention.end]) {
        return !ABOUT_ZH.iter().any(|sign| before.ends_with(sign));
    }
    let earlier: Vec<String> = words(before).into_iter().map(|word| word.lower).collect();
    let last = earlier.iter().rev().find(|word| *word != "the");
    if last.is_some_and(|word| ABOUT.contains(&word.as_str())) {
        return false;
    }
    // `Odile said that the man at the gate was Pell`.
    let reports = earlier
        .iter()
        .position(|word| REPORTS.contains(&word.as_str()));
    reports.is_none_or(|at| {
        let mut rest = earlier[at + 1..].iter();
        !rest.any(|word| JOINTS.contains(&word.as_str()))
    })
}

/// Finds the direct speech in each sentence of a scene. A speech of several sentences is one.
pub fn find_speech(sentences: &[Claim]) -> Vec<Vec<Range<usize>>> {
    let mut open: Option<char> = None;
    let mut all = Vec::new();
    for claim in sentences {
        if claim.opens {
            open = None;
        }
        let mut start = open.map(|_| 0);
        let mut found = Vec::new();
        for (at, c) in claim.text.char_indices() {
            match open {
                None => {
                    open = closing(&claim.text, at, c);
                    start = open.map(|_| at);
                }
                Some(end) if c == end && !is_apostrophe(&claim.text, at, c) => {
                    found.push(start.unwrap_or(0)..at + c.len_utf8());
                    open = None;
                }
                Some(_) => {}
            }
        }
        if open.is_some() {
            found.push(start.unwrap_or(0)..claim.text.len());
        }
        all.push(found);
    }
    all
}

/// Returns the sign that closes a quotation that this character opens.
fn closing(text: &str, at: usize, c: char) -> Option<char> {
    match c {
        '“' => Some('”'),
        '「' => Some('」'),
        '『' => Some('』'),
        '‘' => Some('’'),
        '"' => Some('"'),
        // A straight single quotation mark begins a word; an apostrophe is inside or behind one.
        '\'' => {
            let before = text[..at].chars().next_back();
            let after = text[at + 1..].chars().next();
            let opens =
                before.is_none_or(char::is_whitespace) && after.is_some_and(char::is_uppercase);
            opens.then_some('\'')
        }
        _ => None,
    }
}

/// Returns true if a closing single quotation mark is inside or directly behind a word: `didn’t`,
/// `the boys’ boat`.
fn is_apostrophe(text: &str, at: usize, c: char) -> bool {
    let before = text[..at].chars().next_back();
    matches!(c, '’' | '\'') && before.is_some_and(char::is_alphanumeric)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::claim::cut_claims;
    use crate::memory::Memory;
    use crate::page::Page;
    use quipu_recall::Tier;

    fn is_shown(prose: &str) -> bool {
        let page = Page {
            path: "c.md".into(),
            tier: Tier::L1,
            is_memory: true,
            form: None,
            text: "## Pell\n\n## 佩尔\n".into(),
        };
        let memory = Memory::of(&[page]);
        let claims = cut_claims(prose);
        let speech = find_speech(&claims);
        claims.iter().zip(&speech).any(|(claim, spoken)| {
            let mentions = memory.mentions(&claim.text).into_iter();
            let mut outside =
                mentions.filter(|m| !spoken.iter().any(|range| range.contains(&m.start)));
            outside.any(|mention| is_there(&claim.text, &mention))
        })
    }

    #[test]
    fn who_takes_part_is_there() {
        for prose in [
            "Pell waited on the bank.",
            "Joss handed the key to Pell.",
            "“Go,” said Pell.",
            "‘Go,’ said Pell. Joss went.",
            "Beside Pell the fire smoked.",
            "Joss saw Pell at the gate.",
            "佩尔站在门口。",
            "裘望把钥匙递给佩尔。",
            "“走吧。”佩尔说。",
            "他看见佩尔在灯下。",
        ] {
            assert!(is_shown(prose), "{prose}");
        }
    }

    #[test]
    fn who_is_only_spoken_of_is_not() {
        for prose in [
            "“It was the night of the flood. Pell did it.”",
            "‘I don’t know. Pell did it,’ he said.",
            "'Pell did it,' he said.",
            "Odile said that Pell had done it.",
            "Odile told him where Pell was buried.",
            "They spoke of Pell for an hour.",
            "Pell's coat hung on the nail.",
            "He remembered Pell at the gate.",
            "He waited for Pell until dark.",
            "“那晚发大水。佩尔割的绳子。”",
            "奥蒂说佩尔来过。",
            "他想起佩尔站在门口的样子。",
            "佩尔的外套挂在钉子上。",
            "他们谈起佩尔。",
        ] {
            assert!(!is_shown(prose), "{prose}");
        }
    }
}
