//! The declarations of a Python file, by indentation.

use std::ops::Range;

use quipu_publish::TokenClass;

use super::tokens::{Declaration, Tokens};
use super::{DEPTH, joined, unquoted};
use crate::source::{Item, ItemKind};

/// A line with its continuations, such as the lines of a bracket.
struct LogicalLine {
    first: usize,
    last: usize,
    indent: usize,
}

pub(super) fn find_items(tokens: &Tokens<'_>, items: &mut Vec<Item>) {
    let lines = logical_lines(tokens);
    let all = 0..lines.len();
    let mut walk = Walk {
        tokens,
        lines,
        items,
    };
    walk.container(all, None, 0);
}

fn logical_lines(tokens: &Tokens<'_>) -> Vec<LogicalLine> {
    let mut lines: Vec<LogicalLine> = Vec::new();
    let mut at = 0;
    while at < tokens.list.len() {
        let token = &tokens.list[at];
        let continues = at > 0 && tokens.at(at - 1) == "\\";
        match lines.last_mut() {
            Some(line) if !token.first || continues => line.last = token.close,
            _ => {
                let text = tokens.lines.get(token.line).copied().unwrap_or_default();
                lines.push(LogicalLine {
                    first: at,
                    last: token.close,
                    indent: text.len() - text.trim_start().len(),
                });
            }
        }
        at = tokens.after(at);
    }
    lines
}

struct Walk<'w, 't> {
    tokens: &'w Tokens<'t>,
    lines: Vec<LogicalLine>,
    items: &'w mut Vec<Item>,
}

impl Walk<'_, '_> {
    fn container(&mut self, range: Range<usize>, owner: Option<&str>, depth: usize) {
        let Some(indent) = self.lines.get(range.start).map(|line| line.indent) else {
            return;
        };
        let mut at = range.start;
        while at < range.end && depth <= DEPTH {
            let inner = (at + 1..range.end)
                .find(|next| self.lines[*next].indent <= self.lines[at].indent)
                .unwrap_or(range.end);
            if self.lines[at].indent == indent {
                self.definition(at, inner, owner, depth);
            }
            at = inner;
        }
    }

    /// Adds the class or function that the lines from `at` to `end` define.
    fn definition(&mut self, at: usize, end: usize, owner: Option<&str>, depth: usize) {
        let tokens = self.tokens;
        let first = self.lines[at].first;
        let keyword = first + usize::from(tokens.at(first) == "async");
        let (kind, word) = match tokens.at(keyword) {
            "def" => (ItemKind::Function, "def"),
            "class" => (ItemKind::Type, "class"),
            _ => return,
        };
        let mut colon = keyword + 1;
        while colon <= self.lines[at].last && tokens.at(colon) != ":" {
            colon = tokens.after(colon);
        }
        if !tokens.is_word(keyword + 1) || tokens.at(colon) != ":" {
            return;
        }
        let name = tokens.at(keyword + 1);
        self.items.extend(tokens.item(Declaration {
            kind,
            word,
            name: keyword + 1,
            owner,
            public: !name.starts_with('_') || name.starts_with("__") && name.ends_with("__"),
            doc: self.docstring(colon + 1),
            start: first,
            last: self.lines[end - 1].last,
            body: Some(colon),
            members: Vec::new(),
        }));
        if kind == ItemKind::Type && at + 1 < end {
            self.container(at + 1..end, Some(name), depth + 1);
        }
    }

    /// Returns the text of the string at `index`, which may have a prefix such as `r`.
    fn docstring(&self, index: usize) -> String {
        let at = index + usize::from(matches!(self.tokens.at(index), "r" | "R" | "u" | "U"));
        let token = self.tokens.list.get(at);
        let string = token.filter(|token| token.class == TokenClass::Text);
        string.map_or_else(String::new, |string| joined(unquoted(string.text).lines()))
    }
}
