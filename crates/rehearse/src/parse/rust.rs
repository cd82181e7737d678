//! The declarations of a Rust file.

use std::ops::Range;

use super::DEPTH;
use super::tokens::{Declaration, Tokens};
use crate::source::{Item, ItemKind};

pub(super) fn find_items(tokens: &Tokens<'_>, items: &mut Vec<Item>) {
    let mut walk = Walk { tokens, items };
    walk.container(0..tokens.list.len(), None, false, 0);
}

struct Walk<'w, 't> {
    tokens: &'w Tokens<'t>,
    items: &'w mut Vec<Item>,
}

/// The tokens before the keyword of a declaration.
#[derive(Clone, Copy)]
struct Opening {
    start: usize,
    public: bool,
    /// An attribute says that the item is compiled only for tests.
    test: bool,
}

impl Walk<'_, '_> {
    /// Walks through the items of a container. `public` says that its functions are as visible as
    /// the container.
    fn container(&mut self, range: Range<usize>, owner: Option<&str>, public: bool, depth: usize) {
        let fresh = |start| Opening {
            start,
            public: false,
            test: false,
        };
        let mut at = range.start;
        let mut opening = fresh(at);
        while at < range.end && depth <= DEPTH {
            let word = self.tokens.at(at);
            let named = self.tokens.is_word(at + 1);
            let last = match word {
                "#" => {
                    let end = self
                        .tokens
                        .after(at + 1 + usize::from(self.tokens.at(at + 1) == "!"));
                    opening.test |= self.tokens.joined(at..end).contains("cfg(test)");
                    opening.start = end;
                    at = end;
                    continue;
                }
                "pub" => {
                    opening.public = true;
                    None
                }
                "fn" if named => Some(self.function(at, opening, owner, public, range.end)),
                "struct" | "enum" | "union" | "trait" | "type" if named => {
                    Some(self.type_item(at, opening, owner, range.end, depth))
                }
                "impl" => Some(self.impl_block(at, range.end, depth)),
                "mod" if named => Some(self.module(at, opening, range.end, depth)),
                ";" => Some(at),
                "{" => Some(self.tokens.after(at) - 1),
                _ => None,
            };
            at = last.map_or_else(|| self.tokens.after(at), |last| last + 1);
            if last.is_some() {
                opening = fresh(at);
            }
        }
    }

    /// Returns the brace that begins the body, if there is one, and the last token.
    fn head(&self, from: usize, end: usize) -> (Option<usize>, usize) {
        let mut at = from;
        while at < end {
            match self.tokens.at(at) {
                "{" => return (Some(at), self.tokens.after(at) - 1),
                ";" => return (None, at),
                _ => at = self.tokens.after(at),
            }
        }
        (None, end - 1)
    }

    fn function(
        &mut self,
        at: usize,
        opening: Opening,
        owner: Option<&str>,
        public: bool,
        end: usize,
    ) -> usize {
        let (body, last) = self.head(at + 1, end);
        self.items.extend(self.tokens.item(Declaration {
            kind: ItemKind::Function,
            word: "fn",
            name: at + 1,
            owner,
            public: owner.is_some() && public || opening.public,
            doc: self.doc(opening),
            start: opening.start,
            last,
            body,
            members: Vec::new(),
        }));
        last
    }

    fn type_item(
        &mut self,
        at: usize,
        opening: Opening,
        owner: Option<&str>,
        end: usize,
        depth: usize,
    ) -> usize {
        let (body, last) = self.head(at + 1, end);
        let word = match self.tokens.at(at) {
            "struct" => "struct",
            "enum" => "enum",
            "union" => "union",
            "trait" => "trait",
            _ => "type",
        };
        let inside = body.filter(|_| word != "type").map(|body| body + 1..last);
        let members = match &inside {
            Some(inside) if word != "trait" => {
                let parts = self.tokens.split(inside.clone()).into_iter();
                self.tokens
                    .members(parts.map(|part| self.without_attributes(part)))
            }
            _ => Vec::new(),
        };
        self.items.extend(self.tokens.item(Declaration {
            kind: ItemKind::Type,
            word,
            name: at + 1,
            owner,
            public: opening.public,
            doc: self.doc(opening),
            start: opening.start,
            last,
            body,
            members,
        }));
        if let Some(inside) = inside.filter(|_| word == "trait") {
            self.container(inside, Some(self.tokens.at(at + 1)), true, depth + 1);
        }
        last
    }

    fn without_attributes(&self, part: Range<usize>) -> Range<usize> {
        let mut start = part.start;
        while start < part.end && self.tokens.at(start) == "#" {
            start = self.tokens.after(start + 1);
        }
        start..part.end
    }

    /// Methods of a trait implementation are as visible as the trait.
    fn impl_block(&mut self, at: usize, end: usize, depth: usize) -> usize {
        let (body, last) = self.head(at + 1, end);
        let Some(body) = body else { return last };
        let after_generics = self.tokens.after_angles(at + 1);
        let (mut from, mut to, mut angles) = (after_generics, body, 0);
        let mut of_trait = false;
        for index in after_generics..body {
            angles += self.tokens.angle(index);
            match self.tokens.at(index) {
                "for" if angles == 0 => (from, of_trait) = (index + 1, true),
                "where" if angles == 0 => {
                    to = index;
                    break;
                }
                _ => {}
            }
        }
        let name = self.tokens.joined(from..to);
        let name = name.split('<').next().unwrap_or_default().trim();
        self.container(body + 1..last, Some(name), of_trait, depth + 1);
        last
    }

    fn module(&mut self, at: usize, opening: Opening, end: usize, depth: usize) -> usize {
        let (body, last) = self.head(at + 1, end);
        if let Some(body) = body.filter(|_| !opening.test) {
            self.container(
                body + 1..last,
                Some(self.tokens.at(at + 1)),
                false,
                depth + 1,
            );
        }
        last
    }

    fn doc(&self, opening: Opening) -> String {
        self.tokens
            .lines_above(opening.start, "///", &["#[", "#!["])
    }
}
