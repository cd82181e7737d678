//! The tokens of a source file, with matched brackets, and the items made of them.

use std::ops::Range;

use quipu_publish::{TokenClass, code_tokens};

use super::{block_text, joined, shortened};
use crate::source::{Item, ItemKind};

/// The maximum number of tokens of a body to search for calls.
const BODY_TOKENS: usize = 4000;
const MEMBERS: usize = 24;
/// The maximum number of tokens between angle brackets.
const ANGLE_TOKENS: usize = 400;
/// The maximum number of lines of a block comment.
const COMMENT_LINES: usize = 400;
const NAME_BYTES: usize = 80;

/// A token that is neither a comment nor white space.
pub(super) struct Token<'t> {
    pub class: TokenClass,
    pub text: &'t str,
    /// The position in the text, in bytes.
    pub start: usize,
    /// The number of its first line, from zero.
    pub line: usize,
    /// The token is the first one on its line.
    pub first: bool,
    /// The index of the closing bracket; the token's own index if it opens nothing.
    pub close: usize,
}

pub(super) struct Tokens<'t> {
    text: &'t str,
    pub lines: Vec<&'t str>,
    pub list: Vec<Token<'t>>,
    /// A bracket or a string is not closed.
    pub broken: bool,
}

/// A declaration among the tokens.
pub(super) struct Declaration<'a> {
    pub kind: ItemKind,
    pub word: &'static str,
    /// The index of the name.
    pub name: usize,
    pub owner: Option<&'a str>,
    pub public: bool,
    pub doc: String,
    /// The indices of the first and the last token.
    pub start: usize,
    pub last: usize,
    /// The index of the token that begins the body.
    pub body: Option<usize>,
    pub members: Vec<String>,
}

impl<'t> Tokens<'t> {
    pub fn new(language: &str, text: &'t str) -> Tokens<'t> {
        let mut tokens = Tokens {
            text,
            lines: text.lines().collect(),
            list: Vec::new(),
            broken: false,
        };
        let (mut at, mut line, mut last_line) = (0, 0, None);
        for (class, token) in code_tokens(language, text).into_iter().flatten() {
            if class != TokenClass::Comment && !token.trim().is_empty() {
                tokens.broken |= class == TokenClass::Text && !is_closed(token);
                tokens.list.push(Token {
                    class,
                    text: token,
                    start: at,
                    line,
                    first: last_line != Some(line),
                    close: tokens.list.len(),
                });
                last_line = Some(line);
            }
            at += token.len();
            line += token.matches('\n').count();
        }
        tokens.match_brackets();
        tokens
    }

    /// Finds the closing bracket of each opening one. A bracket without a partner stays alone.
    fn match_brackets(&mut self) {
        let mut open: Vec<(usize, usize)> = Vec::new();
        let mut counts = [0; 3];
        for at in 0..self.list.len() {
            let text = self.list[at].text;
            if let Some(kind) = ["(", "[", "{"].iter().position(|mark| *mark == text) {
                open.push((at, kind));
                counts[kind] += 1;
            }
            let closes = [")", "]", "}"].iter().position(|mark| *mark == text);
            let Some(kind) = closes else { continue };
            if counts[kind] == 0 {
                self.broken = true;
                continue;
            }
            while let Some((begin, opened)) = open.pop() {
                counts[opened] -= 1;
                if opened == kind {
                    self.list[begin].close = at;
                    break;
                }
                self.broken = true;
            }
        }
        self.broken |= !open.is_empty();
    }

    /// Returns the text of a token, or an empty text past the end.
    pub fn at(&self, index: usize) -> &'t str {
        self.list.get(index).map_or("", |token| token.text)
    }

    pub fn is_word(&self, index: usize) -> bool {
        self.list.get(index).is_some_and(|token| {
            token.class != TokenClass::Text
                && token
                    .text
                    .starts_with(|c: char| c.is_alphabetic() || c == '_')
        })
    }

    /// Returns the index after a token, or after its closing bracket.
    pub fn after(&self, index: usize) -> usize {
        self.list.get(index).map_or(index, |token| token.close) + 1
    }

    /// Returns the index after the angle brackets that open at `index`, or `index` if none do.
    pub fn after_angles(&self, index: usize) -> usize {
        let mut depth = 0;
        let mut at = index;
        while at < self.list.len().min(index + ANGLE_TOKENS) {
            depth += self.angle(at);
            if depth <= 0 {
                return if at == index { index } else { at + 1 };
            }
            at = self.after(at);
        }
        index
    }

    /// Returns 1 for `<`, -1 for `>`, and 0 for others, including the ends of `->` and `=>`.
    pub fn angle(&self, index: usize) -> i32 {
        let is_arrow = || index > 0 && matches!(self.at(index - 1), "-" | "=");
        match self.at(index) {
            "<" => 1,
            ">" if !is_arrow() => -1,
            _ => 0,
        }
    }

    /// Returns the text of a range of tokens on one line.
    pub fn joined(&self, range: Range<usize>) -> String {
        match (self.list.get(range.start), range.end.checked_sub(1)) {
            (Some(first), Some(last)) if range.start <= last => {
                joined(self.text[first.start..self.end(last)].lines())
            }
            _ => String::new(),
        }
    }

    fn end(&self, index: usize) -> usize {
        self.list
            .get(index)
            .map_or(self.text.len(), |token| token.start + token.text.len())
    }

    /// Splits a range at its commas. Commas inside brackets do not count.
    pub fn split(&self, range: Range<usize>) -> Vec<Range<usize>> {
        let mut parts = Vec::new();
        let (mut begin, mut at, mut depth) = (range.start, range.start, 0);
        let mut in_type = true;
        while at < range.end {
            depth += if in_type { self.angle(at) } else { 0 };
            // The value of an enum variant may contain a shift.
            in_type &= self.at(at) != "=";
            if self.at(at) == "," && depth <= 0 {
                parts.push(begin..at);
                (begin, depth, in_type) = (at + 1, 0, true);
            }
            at = self.after(at);
        }
        parts.push(begin..range.end);
        parts.retain(|part| !part.is_empty());
        parts
    }

    pub fn members(&self, parts: impl IntoIterator<Item = Range<usize>>) -> Vec<String> {
        let texts = parts.into_iter().map(|part| self.joined(part));
        texts
            .filter(|text| !text.is_empty())
            .take(MEMBERS)
            .map(|text| shortened(&text, 100))
            .collect()
    }

    /// Returns the item of a declaration, or `None` if its name is too long.
    pub fn item(&self, found: Declaration<'_>) -> Option<Item> {
        let (first, last) = (self.list.get(found.start)?, self.list.get(found.last)?);
        let name = self.at(found.name);
        if name.len() > NAME_BYTES {
            return None;
        }
        let head_end = found
            .body
            .and_then(|body| self.list.get(body))
            .map_or(self.end(found.last), |body| body.start);
        let signature = joined(self.text[first.start..head_end].lines());
        let signature = signature
            .trim_end_matches("=>")
            .trim_end_matches(['{', ':', '=', ';', ' ']);
        let (line, end) = (first.line, last.line + last.text.matches('\n').count());
        let calls = match found.body {
            Some(body) if found.kind == ItemKind::Function => self.calls(body..found.last + 1),
            _ => Vec::new(),
        };
        Some(Item {
            kind: found.kind,
            word: found.word,
            name: name.to_owned(),
            owner: found.owner.map(str::to_owned),
            public: found.public,
            doc: found.doc,
            signature: shortened(signature, 300),
            members: found.members,
            calls,
            line: line + 1,
            end: end + 1,
            code: self.lines[line.min(end)..(end + 1).min(self.lines.len())].join("\n"),
        })
    }

    /// Returns the names before `(`, without keywords and declarations.
    fn calls(&self, body: Range<usize>) -> Vec<String> {
        let mut calls: Vec<String> = Vec::new();
        for at in body.take(BODY_TOKENS) {
            let declared = at > 0 && matches!(self.at(at - 1), "fn" | "def" | "function" | "new");
            let keyword = self.list[at].class == TokenClass::Keyword;
            if !self.is_word(at) || declared || keyword || self.at(at + 1) != "(" {
                continue;
            }
            let name = self.at(at);
            if !calls.iter().any(|known| known == name) {
                calls.push(name.to_owned());
            }
        }
        calls
    }

    /// Returns the comment lines right above a token. Skips lines that start with a prefix in
    /// `between`, such as attributes.
    pub fn lines_above(&self, index: usize, mark: &str, between: &[&str]) -> String {
        let mut found = Vec::new();
        for line in self.lines_before(index) {
            match line.strip_prefix(mark) {
                Some(doc) => found.push(doc),
                None if found.is_empty() && between.iter().any(|mark| line.starts_with(mark)) => {}
                None => break,
            }
        }
        found.reverse();
        joined(found.into_iter())
    }

    /// Returns the `/** … */` comment right above a token.
    pub fn block_above(&self, index: usize) -> String {
        let mut found = Vec::new();
        for line in self.lines_before(index).take(COMMENT_LINES) {
            if found.is_empty() && !line.ends_with("*/") {
                break;
            }
            found.push(line);
            if line.starts_with("/*") {
                break;
            }
        }
        found.reverse();
        let text = found.join("\n");
        match text.starts_with("/**") {
            true => block_text(&text),
            false => String::new(),
        }
    }

    /// Returns the lines above a token, upwards.
    fn lines_before(&self, index: usize) -> impl Iterator<Item = &'t str> {
        let line = self.list.get(index).map_or(0, |token| token.line);
        let above = &self.lines[..line.min(self.lines.len())];
        above.iter().rev().map(|line| line.trim())
    }
}

/// Returns false for a string that ends with its file.
fn is_closed(text: &str) -> bool {
    let is_triple =
        |mark: &str| text.starts_with(mark) && !(text.len() >= 6 && text.ends_with(mark));
    let ends = text.ends_with(['"', '\'', '`', '#', '/']);
    text.len() >= 2 && ends && !is_triple("\"\"\"") && !is_triple("'''")
}
