//! Finds the ends of brackets and here-documents in a shell command.
//!
//! Nesting is bounded, so that no command needs a deep stack. The lexer parses the enclosed text.

use std::iter::Peekable;
use std::str::Chars;

use super::lexer::{ENDS, is_blank};

/// The maximum depth of nested brackets.
const DEEPEST_BRACKETS: usize = 64;

/// The delimiter of a here-document. Commands in its text run unless a part of the delimiter is
/// quoted.
pub struct HereDocument {
    pub text: String,
    pub is_quoted: bool,
    /// `<<-`: leading tabs are ignored.
    strips: bool,
}

/// The text up to the bracket that closes one that was already read.
pub fn enclosed(letters: &mut Peekable<Chars>, open: char, close: char) -> String {
    enclosed_in(letters, open, close, false)
}

/// Like `enclosed`, optionally within double quotes, where a single quote is an ordinary character.
pub fn enclosed_in(
    letters: &mut Peekable<Chars>,
    open: char,
    close: char,
    is_quoted: bool,
) -> String {
    let mut text = String::new();
    copy_enclosed(letters, (open, close), is_quoted, 0, &mut text);
    if text.ends_with(close) {
        text.pop();
    }
    text
}

/// Copies the text up to and including the closing bracket. Brackets in quotes, comments and
/// here-documents are ignored.
fn copy_enclosed(
    letters: &mut Peekable<Chars>,
    (open, close): (char, char),
    is_quoted: bool,
    level: usize,
    text: &mut String,
) {
    let (mut depth, mut marks, begin) = (1, Vec::new(), text.len());
    let is_command = open == '(' && letters.peek() != Some(&'(');
    while let Some(c) = letters.next() {
        let begins_word = text[begin..]
            .chars()
            .last()
            .is_none_or(|c| is_blank(c) || ";|&(".contains(c));
        text.push(c);
        match c {
            '\\' => text.extend(letters.next()),
            '\'' if !is_quoted => copy_to(letters, '\'', text),
            '"' => copy_quoted(letters, level, text),
            '`' => copy_to(letters, '`', text),
            '$' => copy_dollar(letters, level, text),
            '#' if is_command && begins_word => {
                while let Some(c) = letters.next_if(|c| *c != '\n') {
                    text.push(c);
                }
            }
            '<' if is_command && letters.peek() == Some(&'<') => {
                text.extend(letters.next());
                if let Some(c) = letters.next_if_eq(&'<') {
                    text.push(c);
                    continue;
                }
                marks.push(mark(&mut letters.clone()));
            }
            '\n' => {
                for mark in marks.drain(..) {
                    text.push_str(&document(letters, &mark, true));
                    text.push_str(&mark.text);
                    text.push('\n');
                }
            }
            c if c == open => depth += 1,
            c if c == close => depth -= 1,
            _ => {}
        }
        if depth == 0 {
            return;
        }
    }
    // An unclosed bracket has no end to remove.
    text.push(close);
}

/// Copies a quoted text up to its end.
fn copy_to(letters: &mut Peekable<Chars>, end: char, text: &mut String) {
    while let Some(c) = letters.next() {
        text.push(c);
        match c {
            '\\' if end != '\'' => text.extend(letters.next()),
            c if c == end => break,
            _ => {}
        }
    }
}

fn copy_quoted(letters: &mut Peekable<Chars>, level: usize, text: &mut String) {
    while let Some(c) = letters.next() {
        text.push(c);
        match c {
            '\\' => text.extend(letters.next()),
            '"' => break,
            '`' => copy_to(letters, '`', text),
            '$' => copy_dollar(letters, level, text),
            _ => {}
        }
    }
}

fn copy_dollar(letters: &mut Peekable<Chars>, level: usize, text: &mut String) {
    let close = match letters.peek() {
        Some('(') => ')',
        Some('{') => '}',
        _ => return,
    };
    if level < DEEPEST_BRACKETS
        && let Some(open) = letters.next()
    {
        text.push(open);
        copy_enclosed(letters, (open, close), false, level + 1, text);
    }
}

/// The word after `<<` or `<<-`, without its quotes.
pub fn mark(letters: &mut Peekable<Chars>) -> HereDocument {
    let strips = letters.next_if_eq(&'-').is_some();
    while letters.next_if(|c| *c == ' ' || *c == '\t').is_some() {}
    let (mut text, mut quote, mut is_quoted) = (String::new(), None, false);
    while let Some(c) = letters.next_if(|c| quote.is_some() || !is_blank(*c) && !ENDS.contains(*c))
    {
        is_quoted |= matches!(c, '\\' | '\'' | '"');
        match (c, quote) {
            ('\\', None | Some('"')) => text.extend(letters.next()),
            ('\'' | '"', None) => quote = Some(c),
            // A delimiter is not expanded; it is taken literally.
            ('$', None) if letters.next_if_eq(&'(').is_some() => {
                text.push_str(&format!("$({})", enclosed(letters, '(', ')')));
            }
            (c, Some(begun)) if c == begun => quote = None,
            _ => text.push(c),
        }
    }
    HereDocument {
        text,
        is_quoted,
        strips,
    }
}

/// The lines of a here-document. Within brackets it also ends at `MARK)`, and the bracket is read
/// next.
pub fn document(letters: &mut Peekable<Chars>, mark: &HereDocument, is_enclosed: bool) -> String {
    let mut text = String::new();
    while letters.peek().is_some() {
        let begin = letters.clone();
        let line: String = letters.by_ref().take_while(|c| *c != '\n').collect();
        let bare = match mark.strips {
            true => line.trim_start_matches('\t'),
            false => &line,
        };
        if bare == mark.text {
            break;
        }
        let behind = bare.strip_prefix(&mark.text).unwrap_or_default();
        if is_enclosed && behind.starts_with(')') {
            let read = line.chars().count() - behind.chars().count();
            *letters = begin;
            for _ in 0..read {
                letters.next();
            }
            break;
        }
        text.push_str(&line);
        text.push('\n');
    }
    text
}
