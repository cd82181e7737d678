//! Extracts the title and the first paragraph of a README.
//!
//! The text is untrusted: `tame` in `mod.rs` cleans and cuts it.

use std::path::Path;

use quipu_contract::Language;

use super::{load_text, tame};

/// The possible names of a README, the most common first.
const NAMES: [&str; 8] = [
    "README.md",
    "README",
    "README.rst",
    "README.txt",
    "Readme.md",
    "readme.md",
    "README.zh-CN.md",
    "README.zh.md",
];
const LONGEST_TITLE: usize = 60;
const LONGEST_ABOUT: usize = 400;
/// A paragraph with fewer letters is a row of badges or links.
const FEWEST_LETTERS: usize = 12;

#[derive(Debug)]
pub(super) struct Readme {
    pub file: String,
    pub title: Option<String>,
    pub about: Option<String>,
    pub language: Language,
}

pub(super) fn find_readme(root: &Path) -> Option<Readme> {
    let (file, text) = NAMES
        .iter()
        .find_map(|name| Some((*name, load_text(root, name)?)))?;
    let text = without_markup(&text);
    let (title, about) = split(&text);
    let language = if is_mostly_chinese(&text) {
        Language::Zh
    } else {
        Language::En
    };
    Some(Readme {
        file: file.to_owned(),
        title: title.and_then(|title| tame(&title, LONGEST_TITLE)),
        about: about.and_then(|about| tame(&about, LONGEST_ABOUT)),
        language,
    })
}

/// Removes comments, code blocks, tags and images, and replaces links with their text.
fn without_markup(text: &str) -> String {
    let mut plain = String::new();
    let mut in_code = false;
    for line in without_between(text, "<!--", "-->").lines() {
        let fence = line.trim_start().starts_with("```") || line.trim_start().starts_with("~~~");
        in_code ^= fence;
        if !fence && !in_code {
            // Treat an HTML title as a heading too.
            plain.push_str(if line.trim_start().to_lowercase().starts_with("<h1") {
                "# "
            } else {
                ""
            });
            plain.push_str(&without_links(&without_between(line, "<", ">")));
        }
        plain.push('\n');
    }
    plain
}

/// Removes everything between two delimiters.
fn without_between(text: &str, open: &str, close: &str) -> String {
    let mut kept = String::new();
    let mut rest = text;
    while let Some(at) = rest.find(open) {
        let Some(end) = rest[at + open.len()..].find(close) else {
            break;
        };
        kept.push_str(&rest[..at]);
        rest = &rest[at + open.len() + end + close.len()..];
    }
    kept + rest
}

/// Removes `![image](…)` and replaces `[words](…)` with `words`. Runs twice, because badges are
/// images inside links.
fn without_links(line: &str) -> String {
    let once = |line: &str| {
        let mut kept = String::new();
        let mut rest = line;
        while let Some(open) = rest.find('[') {
            let target = rest[open..].find("](").map(|at| open + at);
            let end = target.and_then(|at| rest[at..].find(')').map(|end| at + end));
            let (Some(target), Some(end)) = (target, end) else {
                break;
            };
            // The innermost bracket before the target contains the text.
            let open = rest[..target].rfind('[').unwrap_or(open);
            match rest[..open].strip_suffix('!') {
                Some(before) => kept.push_str(before),
                None => kept.push_str(&format!("{}{}", &rest[..open], &rest[open + 1..target])),
            }
            rest = &rest[end + 1..];
        }
        kept + rest
    };
    once(&once(line))
}

/// The title and the first paragraph of prose after it.
fn split(text: &str) -> (Option<String>, Option<String>) {
    let lines: Vec<&str> = text.lines().map(str::trim).collect();
    let is_rule = |line: &str| {
        line.len() > 2
            && line
                .chars()
                .all(|c| c == '=' || c == '-' || c == '*' || c == '~')
    };
    let underlined = lines
        .windows(2)
        .position(|pair| !pair[0].is_empty() && is_rule(pair[1]) && pair[1].starts_with('='));
    let marked = lines.iter().position(|line| line.starts_with("# "));
    let (title, from) = match (marked, underlined) {
        (Some(at), other) if other.is_none_or(|other| at < other) => {
            (Some(lines[at][2..].trim_matches('#').to_owned()), at + 1)
        }
        (_, Some(at)) => (Some(lines[at].to_owned()), at + 2),
        _ => (None, 0),
    };
    let is_prose = |line: &&str| {
        !line.starts_with(['#', '|', '[', '!', '+', '=', '`'])
            && !is_list_item(line)
            && !is_rule(line)
    };
    let mut paragraphs = lines[from.min(lines.len())..]
        .split(|line| line.is_empty())
        .filter(|lines| !lines.is_empty());
    let about = paragraphs.find_map(|lines| {
        let prose: Vec<&str> = lines
            .iter()
            .take_while(|line| is_prose(line))
            .map(|line| line.trim_start_matches(['>', ' ']))
            .collect();
        let text = prose.join(" ");
        (text.chars().filter(|c| c.is_alphabetic()).count() >= FEWEST_LETTERS).then_some(text)
    });
    (title, about.map(|about| about.replace(['*', '`'], "")))
}

fn is_list_item(line: &str) -> bool {
    let numbered = line.split_once(['.', ')']).is_some_and(|(number, rest)| {
        rest.starts_with(' ') && number.bytes().all(|b| b.is_ascii_digit())
    });
    line.starts_with("- ") || line.starts_with("* ") || numbered
}

/// Whether Chinese characters outnumber Latin words; a Latin word counts as two characters.
fn is_mostly_chinese(text: &str) -> bool {
    let is_chinese = |c: char| matches!(c, '\u{3400}'..='\u{9fff}' | '\u{f900}'..='\u{faff}');
    let chinese = text.chars().filter(|c| is_chinese(*c)).count();
    let words = text
        .split(|c: char| !c.is_ascii_alphabetic())
        .filter(|word| word.len() > 1)
        .count();
    chinese > words * 2
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn title_and_first_paragraph_are_found_behind_badges() {
        let text = "<p align=\"center\"><img src=x></p>\n\n<h1 align=\"center\">Tern</h1>\n\n[![CI](a.svg)](b) [![npm](c.svg)](d)\n\n\
                    Tern counts *birds*\nin [photographs](https://x.org/a). It is small.\n\nMore.\n";
        let (title, about) = split(&without_markup(text));
        assert_eq!(title.as_deref(), Some("Tern"));
        assert_eq!(
            about.as_deref(),
            Some("Tern counts birds in photographs. It is small.")
        );
        let (title, about) = split(
            "Tern\n====\n\n- a list\n- of things that are no prose\n\nProse that says what it is.\n",
        );
        assert_eq!(
            (title.as_deref(), about.as_deref()),
            (Some("Tern"), Some("Prose that says what it is."))
        );
        assert_eq!(split(""), (None, None));
    }

    #[test]
    fn a_chinese_readme_is_known_by_its_words() {
        assert!(is_mostly_chinese(
            "# 燕鸥\n\n用 Python 在照片里数鸟的小工具。"
        ));
        assert!(!is_mostly_chinese("# Tern\n\nCounts birds. See also 燕鸥."));
    }
}
