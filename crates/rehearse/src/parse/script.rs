//! The declarations of a JavaScript or TypeScript file.

use std::ops::Range;

use super::DEPTH;
use super::tokens::{Declaration, Tokens};
use crate::source::{Item, ItemKind};

/// The maximum number of tokens in the result type of an arrow function.
const RESULT_TOKENS: usize = 400;

const MODIFIERS: [&str; 12] = [
    "public",
    "private",
    "protected",
    "static",
    "async",
    "readonly",
    "abstract",
    "override",
    "get",
    "set",
    "declare",
    "accessor",
];

pub(super) fn find_items(tokens: &Tokens<'_>, items: &mut Vec<Item>) {
    let mut walk = Walk { tokens, items };
    walk.statements(0..tokens.list.len(), None, 0);
}

struct Walk<'w, 't> {
    tokens: &'w Tokens<'t>,
    items: &'w mut Vec<Item>,
}

/// The place of a declaration: the token below the doc comment, and the token of its keyword.
#[derive(Clone, Copy)]
struct Place<'a> {
    outer: usize,
    start: usize,
    keyword: usize,
    owner: Option<&'a str>,
    public: bool,
}

impl Walk<'_, '_> {
    fn statements(&mut self, range: Range<usize>, owner: Option<&str>, depth: usize) {
        let mut at = range.start;
        while at < range.end && depth <= DEPTH {
            let starts = at == range.start
                || matches!(self.tokens.at(at - 1), ";" | "}")
                || self.tokens.list[at].first && !continues(self.tokens.at(at - 1));
            let last = match starts {
                true => self.statement(at, range.end, owner, depth),
                false => None,
            };
            at = last.map_or_else(|| self.tokens.after(at), |last| last + 1);
        }
    }

    /// Adds the declaration at `outer`, if there is one, and returns its last token.
    fn statement(
        &mut self,
        outer: usize,
        end: usize,
        owner: Option<&str>,
        depth: usize,
    ) -> Option<usize> {
        let tokens = self.tokens;
        let mut start = outer;
        while matches!(tokens.at(start), "export" | "default" | "declare") {
            start += 1;
        }
        let mut keyword = start;
        while matches!(tokens.at(keyword), "abstract" | "async")
            || tokens.at(keyword) == "const" && tokens.at(keyword + 1) == "enum"
        {
            keyword += 1;
        }
        let place = Place {
            outer,
            start,
            keyword,
            owner,
            public: tokens.at(outer) == "export",
        };
        let named = tokens.is_word(keyword + 1);
        match tokens.at(keyword) {
            "function" => self.function(place, end),
            "class" if named => Some(self.class(place, end, depth)),
            "interface" if named => Some(self.plain_type(place, "interface", end)),
            "enum" if named => Some(self.plain_type(place, "enum", end)),
            "type" if named => {
                let last = self.statement_end(keyword + 1, end);
                self.add(place, (ItemKind::Type, "type"), keyword + 1, None, last);
                Some(last)
            }
            "const" | "let" | "var" if named => self.variable(place, end),
            "namespace" | "module" if named => {
                let (body, last) = self.head(keyword + 1, end);
                if let Some(body) = body {
                    self.statements(body + 1..last, Some(tokens.at(keyword + 1)), depth + 1);
                }
                Some(last)
            }
            _ => None,
        }
    }

    fn add(
        &mut self,
        place: Place<'_>,
        what: (ItemKind, &'static str),
        name: usize,
        body: Option<usize>,
        last: usize,
    ) {
        self.add_type(place, what, name, body, last, Vec::new());
    }

    fn add_type(
        &mut self,
        place: Place<'_>,
        (kind, word): (ItemKind, &'static str),
        name: usize,
        body: Option<usize>,
        last: usize,
        members: Vec<String>,
    ) {
        self.items.extend(self.tokens.item(Declaration {
            kind,
            word,
            name,
            owner: place.owner,
            public: place.public,
            doc: self.tokens.block_above(place.outer),
            start: place.start,
            last,
            body,
            members,
        }));
    }

    /// Returns the brace that begins the body, if there is one, and the last token.
    fn head(&self, from: usize, end: usize) -> (Option<usize>, usize) {
        let tokens = self.tokens;
        let mut at = from;
        while at < end {
            // A brace after these marks begins a type.
            let in_type = matches!(tokens.at(at - 1), ":" | "|" | "&" | "<" | "," | "=" | "(");
            let next = matches!(tokens.at(at), "export" | "function" | "class" | "const");
            match tokens.at(at) {
                "{" if !in_type => return (Some(at), tokens.after(at) - 1),
                ";" => return (None, at),
                _ if next && tokens.list[at].first && at > from => return (None, at - 1),
                _ => at = tokens.after(at),
            }
        }
        (None, end - 1)
    }

    /// Returns the last token of a statement that may have no semicolon.
    fn statement_end(&self, from: usize, end: usize) -> usize {
        let tokens = self.tokens;
        let mut at = from;
        while at < end {
            let text = tokens.at(at);
            let begins = tokens.list[at].first && !continues(tokens.at(at - 1));
            if at > from && begins && !continues(text) && !matches!(text, "." | ")" | "]" | "}") {
                return at - 1;
            }
            if text == ";" {
                return at;
            }
            at = tokens.after(at);
        }
        end - 1
    }

    fn function(&mut self, place: Place<'_>, end: usize) -> Option<usize> {
        let name = place.keyword + 1 + usize::from(self.tokens.at(place.keyword + 1) == "*");
        if !self.tokens.is_word(name) {
            return None;
        }
        let (body, last) = self.head(name + 1, end);
        self.add(place, (ItemKind::Function, "function"), name, body, last);
        Some(last)
    }

    /// Adds a variable that holds a function: `name = (…) => …` or `name = function …`.
    fn variable(&mut self, place: Place<'_>, end: usize) -> Option<usize> {
        let tokens = self.tokens;
        let name = place.keyword + 1;
        let is_arrow = |at: usize| tokens.at(at) == "=" && tokens.at(at + 1) == ">";
        let mut at = name + 1;
        while at < end && (tokens.at(at) != "=" || is_arrow(at)) {
            if tokens.at(at) == ";" || tokens.list[at].first {
                return None;
            }
            at = tokens.after(at) + usize::from(is_arrow(at));
        }
        at += 1 + usize::from(tokens.at(at + 1) == "async");
        let place = Place {
            start: name,
            ..place
        };
        let what = (ItemKind::Function, "function");
        if tokens.at(at) == "function" {
            let (body, last) = self.head(at + 1, end);
            self.add(place, what, name, body, last);
            return Some(last);
        }
        at = tokens.after_angles(at);
        if tokens.at(at) != "(" && !tokens.is_word(at) {
            return None;
        }
        at = tokens.after(at);
        if tokens.at(at) == ":" {
            let end = end.min(at + RESULT_TOKENS);
            while at < end && !is_arrow(at) && tokens.at(at) != ";" {
                at = tokens.after(at);
            }
        }
        if !is_arrow(at) || at + 2 >= end {
            return None;
        }
        let last = self.statement_end(at + 2, end);
        self.add(place, what, name, Some(at + 2), last);
        Some(last)
    }

    fn plain_type(&mut self, place: Place<'_>, word: &'static str, end: usize) -> usize {
        let (body, last) = self.head(place.keyword + 2, end);
        let inside = body.map_or(last..last, |body| body + 1..last);
        let parts = match word {
            "enum" => self.tokens.split(inside),
            _ => self.properties(inside),
        };
        let (members, name) = (self.tokens.members(parts), place.keyword + 1);
        self.add_type(place, (ItemKind::Type, word), name, body, last, members);
        last
    }

    /// Returns the properties of an interface, without its methods.
    fn properties(&self, range: Range<usize>) -> Vec<Range<usize>> {
        let mut found = Vec::new();
        let mut at = range.start;
        while at < range.end {
            let last = self.statement_end(at, range.end);
            let closed = matches!(self.tokens.at(last), ";" | ",");
            let mut name = at;
            while self.tokens.at(name) == "readonly" {
                name += 1;
            }
            if self.tokens.is_word(name) && !matches!(self.tokens.at(name + 1), "(" | "<") {
                found.push(at..last + usize::from(!closed));
            }
            at = last + 1;
        }
        found
    }

    fn class(&mut self, place: Place<'_>, end: usize, depth: usize) -> usize {
        let name = place.keyword + 1;
        let (body, last) = self.head(name + 1, end);
        let place_of_item = self.items.len();
        let mut fields = Vec::new();
        if let Some(body) = body.filter(|_| depth < DEPTH) {
            let mut at = body + 1;
            while at < last {
                at = self.member(at, last, self.tokens.at(name), &mut fields) + 1;
            }
        }
        let methods = self.items.split_off(place_of_item);
        let members = self.tokens.members(fields);
        self.add_type(place, (ItemKind::Type, "class"), name, body, last, members);
        self.items.extend(methods);
        last
    }

    /// Adds the method at `outer`, or its field to `fields`. Returns its last token.
    fn member(
        &mut self,
        outer: usize,
        end: usize,
        owner: &str,
        fields: &mut Vec<Range<usize>>,
    ) -> usize {
        let tokens = self.tokens;
        let mut start = outer;
        while tokens.at(start) == "@" {
            start += 2;
            while tokens.at(start) == "." {
                start += 2;
            }
            start += usize::from(tokens.at(start) == "(") * (tokens.after(start) - start);
        }
        let mut name = start;
        let mut hidden = false;
        while name < end
            && (matches!(tokens.at(name), "*" | "#")
                || MODIFIERS.contains(&tokens.at(name))
                    && (tokens.is_word(name + 1) || matches!(tokens.at(name + 1), "[" | "*" | "#")))
        {
            hidden |= matches!(tokens.at(name), "private" | "#");
            name += 1;
        }
        if name >= end {
            return end;
        }
        let mut next = tokens.after(name);
        next += usize::from(matches!(tokens.at(next), "?" | "!"));
        if tokens.at(tokens.after_angles(next)) != "(" {
            let last = self.statement_end(name, end);
            if tokens.is_word(name) {
                fields.push(start..last + usize::from(tokens.at(last) != ";"));
            }
            return last;
        }
        let (body, last) = self.head(tokens.after_angles(next), end);
        if tokens.is_word(name) {
            let place = Place {
                outer,
                start,
                keyword: name,
                owner: Some(owner),
                public: !hidden,
            };
            self.add(place, (ItemKind::Function, "method"), name, body, last);
        }
        last
    }
}

/// Returns true if a statement cannot end with, or begin with, this token.
fn continues(text: &str) -> bool {
    let marks = [
        "=", ",", "(", "[", ":", "|", "&", "+", "-", "/", "?", ".", "<", ">", "%", "^",
    ];
    marks.contains(&text) || matches!(text, "extends" | "implements" | "of" | "in")
}
