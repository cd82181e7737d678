//! Claims: a draft cut into sentences, each with its line.
//!
//! Headings, code, comments, front matter and italic instructions of templates claim nothing. A sentence that
//! wraps over lines keeps the line it begins on.

use quipu_text::{Document, first_sentence};
use serde::Serialize;

/// One sentence of a draft.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Claim {
    pub line: usize,
    pub text: String,
    /// Whether it opens its paragraph: then no one was named before it.
    #[serde(skip)]
    pub opens: bool,
}

/// Cuts a draft, or one sentence.
pub fn cut_claims(draft: &str) -> Vec<Claim> {
    let document = Document::parse(draft);
    let clean = blank_comments(draft);
    let start = document.front_matter().map_or(0, |front| front.range.end);
    let (mut claims, mut paragraph, mut first_line, mut at) = (Vec::new(), String::new(), 1, 0);
    for (nth, line) in clean.split_inclusive('\n').enumerate() {
        let inside = at >= start && !document.in_code_block(at) && !document.section_at(at).heading.contains(&at);
        at += line.len();
        let trimmed = line.trim();
        let list = trimmed.starts_with(['-', '*', '>', '|']) && !trimmed.starts_with("**");
        let instruction = trimmed.starts_with('_') && trimmed.ends_with('_');
        if !inside || trimmed.is_empty() || list || instruction {
            flush(&mut claims, &mut paragraph, first_line);
        }
        if !inside || trimmed.is_empty() || instruction || trimmed.chars().all(|c| "-*=|: ".contains(c)) {
            continue;
        }
        if paragraph.is_empty() {
            first_line = nth + 1;
        }
        paragraph.push_str(line);
        if list {
            flush(&mut claims, &mut paragraph, first_line);
        }
    }
    flush(&mut claims, &mut paragraph, first_line);
    claims
}

/// Cuts a paragraph that is complete into its sentences.
fn flush(claims: &mut Vec<Claim>, paragraph: &mut String, first_line: usize) {
    // Blanks at the end would be looked at again for each sentence.
    let mut rest = paragraph.trim_end();
    let (mut opens, mut line) = (true, first_line);
    let newlines = |passed: &str| passed.matches('\n').count();
    loop {
        let from = rest.len() - rest.trim_start().len();
        let sentence = first_sentence(rest);
        if sentence.is_empty() {
            break;
        }
        line += newlines(&rest[..from]);
        let text = sentence.trim_start_matches(['-', '*', '>', ' ']).split_whitespace().collect::<Vec<_>>();
        let text = join(&text);
        if text.chars().any(char::is_alphanumeric) {
            claims.push(Claim { line, text, opens });
            opens = false;
        }
        line += newlines(sentence);
        rest = &rest[from + sentence.len()..];
    }
    paragraph.clear();
}

/// Words joined by blanks, but none between two Han characters that a line break parted.
fn join(words: &[&str]) -> String {
    let mut text = String::new();
    for word in words {
        let tight = text.chars().next_back().is_some_and(|c| !c.is_ascii()) && word.chars().next().is_some_and(|c| !c.is_ascii());
        if !text.is_empty() && !tight {
            text.push(' ');
        }
        text.push_str(word);
    }
    text
}

/// The text with comments blank, line for line and byte for byte: examples in templates say nothing.
pub fn blank_comments(text: &str) -> String {
    let mut clean = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(open) = rest.find("<!--") {
        let close = rest[open..].find("-->").map_or(rest.len(), |at| open + at + 3);
        clean.push_str(&rest[..open]);
        clean.extend(rest[open..close].bytes().map(|b| if b == b'\n' { '\n' } else { ' ' }));
        rest = &rest[close..];
    }
    clean.push_str(rest);
    clean
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sentences_keep_their_lines() {
        let draft = "---\na: 1\n---\n# Title\n\nOtto came. He sat\ndown. “Go!” she said.\n\n<!-- x.\ny. -->\n- one. two\n\n他走了。\n她没走。\n<!-- DONE -->\n";
        let told: Vec<(usize, String)> = cut_claims(draft).into_iter().map(|c| (c.line, c.text)).collect();
        let expected =
            [(6, "Otto came."), (6, "He sat down."), (7, "“Go!” she said."), (11, "one. two"), (13, "他走了。"), (14, "她没走。")];
        assert_eq!(told, expected.map(|(line, text)| (line, text.to_owned())));
    }

    /// Each of these would take minutes if every heading or sentence were compared with all others.
    #[test]
    fn long_drafts_are_cut_in_linear_time() {
        const MANY: usize = 60_000;
        assert!(cut_claims(&"## Heading\n\n".repeat(MANY)).is_empty());
        let claims = cut_claims(&"He came.\nShe went. ".repeat(MANY));
        assert_eq!((claims.len(), claims[2 * MANY - 1].line), (2 * MANY, MANY + 1));
        let blanks = " ".repeat(MANY);
        assert_eq!(cut_claims(&("He came. ".repeat(MANY) + &blanks)).len(), MANY);
    }

    #[test]
    fn one_sentence_is_one_claim() {
        assert_eq!(cut_claims("奥托用右手签了名"), [Claim { line: 1, text: "奥托用右手签了名".into(), opens: true }]);
        assert!(cut_claims("# Only a heading\n").is_empty());
    }
}
