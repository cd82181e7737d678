//! The Chinese text of messages.
//!
//! An error gets its English text where it is made, in crates that do not know who reads it. Who
//! shows a message to a person or an agent looks it up here. The catalogue has the English
//! text, with names for the parts that vary, and the Chinese one. A message without an entry stays
//! English. Nothing but the printed text depends on this: codes, paths, commands and keys stay the
//! same.

mod pattern;

use std::sync::LazyLock;

use quipu_contract::Language;

use pattern::{Part, Said, parse};

/// Blocks of two lines: the English text, then the Chinese one. `{name}` stands for a value that is
/// kept, `{name*}` for a text that has an entry itself, `{name?}` for one that may have one.
const CATALOGUE: [&str; 6] = [
    include_str!("contract.txt"),
    include_str!("store.txt"),
    include_str!("protocol.txt"),
    include_str!("flow.txt"),
    include_str!("review.txt"),
    include_str!("program.txt"),
];

/// The same for texts that the program gets from elsewhere.
const LIBRARIES: &str = include_str!("libraries.txt");

/// How deep texts may contain texts.
const DEEPEST: usize = 4;

struct Entry {
    english: Vec<Part>,
    chinese: Vec<Part>,
}

static ENTRIES: LazyLock<Vec<Entry>> = LazyLock::new(|| {
    let entry = |(english, chinese): (String, String)| Entry {
        english: parse(&english),
        chinese: parse(&chinese),
    };
    let files = CATALOGUE.into_iter().chain([LIBRARIES]);
    files.flat_map(pairs).map(entry).collect()
});

fn pairs(file: &'static str) -> impl Iterator<Item = (String, String)> {
    file.split("\n\n").filter_map(|block| {
        let mut lines = block.lines().filter(|line| !line.starts_with('#'));
        Some((lines.next()?.to_owned(), lines.next()?.to_owned()))
    })
}

/// The Chinese text of a message. None if it has no entry.
pub fn message(english: &str) -> Option<String> {
    said(english, 0).map(|said| said.text)
}

/// The Chinese text of a message, or of each of its lines; what has no entry stays as it is.
pub fn message_or_same(english: &str) -> String {
    let line = |line: &str| message(line).unwrap_or_else(|| line.to_owned());
    message(english).unwrap_or_else(|| english.split('\n').map(line).collect::<Vec<_>>().join("\n"))
}

/// A message in the language of a project.
pub fn in_language(language: Language, message: String) -> String {
    match language {
        Language::En => message,
        Language::Zh => message_or_same(&message),
    }
}

fn said(english: &str, depth: usize) -> Option<Said> {
    if english.is_empty() {
        return Some(Said::default());
    }
    if depth > DEEPEST {
        return None;
    }
    let inner = |text: &str| said(text, depth + 1);
    let fits = ENTRIES
        .iter()
        .filter_map(|entry| pattern::translate(&entry.english, &entry.chinese, english, &inner));
    // The entry that leaves the least of the message as it is.
    fits.max_by_key(|said| said.known)
}

/// The words between the parts of a remedy.
const JOINTS: [(&str, &str); 5] = [
    ("; or, ", "；或者，"),
    ("; or: ", "；或者："),
    ("; or ", "；或者 "),
    ("; then ", "；然后 "),
    ("; ", "；"),
];

/// The Chinese text of a remedy: commands stay as they are, the words around them have entries.
pub fn remedy(english: &str) -> String {
    if let Some(whole) = message(english) {
        return whole;
    }
    if let Some((first, joint, chinese, rest)) = split_at_joint(english) {
        let (first, rest) = (remedy(first), remedy(rest));
        let is_said = chinese != "；" || has_chinese(&first) || has_chinese(&rest);
        return match is_said {
            true => format!("{first}{chinese}{rest}"),
            false => format!("{first}{joint}{rest}"),
        };
    }
    let noted = english.split_once("     (");
    match noted.and_then(|(command, note)| Some((command, note.strip_suffix(')')?))) {
        Some((command, note)) => match remedy(note) {
            note if has_chinese(&note) => format!("{}     （{note}）", remedy(command)),
            note => format!("{}     ({note})", remedy(command)),
        },
        None => english.to_owned(),
    }
}

/// Splits a remedy at its first joint outside parentheses.
fn split_at_joint(text: &str) -> Option<(&str, &'static str, &'static str, &str)> {
    let mut depth = 0usize;
    for (at, c) in text.char_indices() {
        match c {
            '(' => depth += 1,
            ')' => depth = depth.saturating_sub(1),
            ';' if depth == 0 => {
                let mut joints = JOINTS.into_iter();
                let found = joints.find(|(joint, _)| text[at..].starts_with(joint));
                if let Some((joint, chinese)) = found {
                    return Some((&text[..at], joint, chinese, &text[at + joint.len()..]));
                }
            }
            _ => {}
        }
    }
    None
}

fn has_chinese(text: &str) -> bool {
    text.chars().any(|c| ('\u{4e00}'..='\u{9fff}').contains(&c))
}

#[cfg(test)]
mod tests;
