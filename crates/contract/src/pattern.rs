//! Path patterns: `meta/*.md`, `research/{unit}-research.md`, `{source_root}/**`.
//!
//! Written by hand because a rule must also *capture* (`{unit}`), because two patterns must be
//! compared for overlap, and because a command that starts in milliseconds cannot compile sixty
//! regular expressions first. `*` and `{name}` stay within one part of the path, `**` does not.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::OnceLock;

use crate::path::fold;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Token {
    Literal(char),
    AnyChar,
    Star,
    DoubleStar,
    /// One of the pattern's names.
    Hole(u16),
}

/// More names than this in one pattern are a mistake.
const MOST_HOLES: usize = 64;

/// What the holes of a pattern stand for: `unit` → `ch05`.
pub type Binding = BTreeMap<String, String>;

/// A pattern over project paths.
#[derive(Debug, Clone)]
pub struct Pattern {
    text: String,
    tokens: Vec<Token>,
    /// The names in `{}`, in their order; one that stands twice is here twice.
    holes: Vec<String>,
    /// What every path that it matches begins with: most paths are told apart by that alone.
    prefix: String,
    /// As it looks to someone who does not look closely; made when first asked for.
    folded: OnceLock<Vec<Token>>,
}

impl PartialEq for Pattern {
    fn eq(&self, other: &Pattern) -> bool {
        self.text == other.text && self.tokens == other.tokens && self.holes == other.holes
    }
}

impl Eq for Pattern {}

impl Pattern {
    pub fn parse(text: &str) -> Result<Pattern, String> {
        let mut tokens = Vec::with_capacity(text.len());
        let mut holes = Vec::new();
        let mut chars = text.chars().peekable();
        while let Some(c) = chars.next() {
            tokens.push(match c {
                '*' if chars.peek() == Some(&'*') => {
                    chars.next();
                    // `**/` also matches nothing at all, so `a/**/b` matches `a/b`.
                    Token::DoubleStar
                }
                '*' => Token::Star,
                '?' => Token::AnyChar,
                '{' => {
                    let mut name = String::new();
                    loop {
                        match chars.next() {
                            Some('}') => break,
                            Some(c) if c.is_alphanumeric() || c == '_' => name.push(c),
                            _ => return Err(format!("`{text}`: `{{` opens a name like `{{unit}}` and must be closed by `}}`")),
                        }
                    }
                    if name.is_empty() {
                        return Err(format!("`{text}`: `{{}}` names nothing; write a name such as `{{unit}}`"));
                    }
                    hole(&mut holes, name)
                }
                '}' => return Err(format!("`{text}`: `}}` without `{{`")),
                c => Token::Literal(c),
            });
        }
        if tokens.is_empty() {
            return Err("a path pattern may not be empty".into());
        }
        if holes.len() > MOST_HOLES {
            return Err(format!("`{text}`: more than {MOST_HOLES} names"));
        }
        Ok(Pattern::of(text.to_owned(), tokens, holes))
    }

    fn of(text: String, tokens: Vec<Token>, holes: Vec<String>) -> Pattern {
        let literal = tokens.iter().map_while(|token| match token {
            Token::Literal(c) => Some(c.len_utf8()),
            _ => None,
        });
        let mut prefix = text[..literal.sum::<usize>()].to_owned();
        if tokens.iter().any(|token| matches!(token, Token::DoubleStar)) && prefix.ends_with('/') {
            prefix.pop();
        }
        Pattern { text, tokens, holes, prefix, folded: OnceLock::new() }
    }

    /// Everything below a folder, whatever characters its name has.
    pub(crate) fn below(folder: &str) -> Pattern {
        let tokens: Vec<Token> = folder.chars().chain(['/']).map(Token::Literal).chain([Token::DoubleStar]).collect();
        Pattern::of(format!("{folder}/**"), tokens, Vec::new())
    }

    pub fn as_str(&self) -> &str {
        &self.text
    }

    /// The names in `{}`.
    pub fn holes(&self) -> impl Iterator<Item = &str> {
        self.holes.iter().map(String::as_str)
    }

    /// The path itself, where the pattern has neither holes nor wildcards.
    pub fn as_literal(&self) -> Option<&str> {
        self.tokens.iter().all(|t| matches!(t, Token::Literal(_))).then_some(self.text.as_str())
    }

    /// The same pattern with the given holes filled; the others stay open.
    pub fn fill(&self, binding: &Binding) -> Pattern {
        if !self.holes.iter().any(|name| binding.contains_key(name)) {
            return self.clone();
        }
        let mut tokens = Vec::with_capacity(self.tokens.len());
        let mut holes = Vec::new();
        for token in &self.tokens {
            match token {
                Token::Hole(at) => match binding.get(self.name(*at)) {
                    Some(value) => tokens.extend(value.chars().map(Token::Literal)),
                    None => tokens.push(hole(&mut holes, self.name(*at).to_owned())),
                },
                other => tokens.push(*other),
            }
        }
        Pattern::of(render(&tokens, &holes), tokens, holes)
    }

    fn name(&self, at: u16) -> &str {
        &self.holes[usize::from(at)]
    }

    /// Some path that this pattern names: every hole and wildcard stands for an `x`.
    pub fn stand_in(&self) -> String {
        let tell = |token: &Token| match token {
            Token::Literal(c) => *c,
            Token::AnyChar | Token::Star | Token::DoubleStar | Token::Hole(_) => 'x',
        };
        self.tokens.iter().map(tell).collect()
    }

    /// Matches a whole path; the binding says what each hole stood for.
    pub fn matches(&self, path: &str) -> Option<Binding> {
        if !path.starts_with(&self.prefix) {
            return None;
        }
        let mut binding = Binding::new();
        matches(&self.tokens, &self.holes, path, &mut binding).then_some(binding)
    }

    /// Whether some path *looks* as if this pattern named it, though it does not. The path comes folded.
    pub(crate) fn looks_like(&self, folded: &str) -> bool {
        let tokens = self.folded.get_or_init(|| {
            let fold = |token: &Token| match token {
                Token::Literal(c) => fold(&c.to_string()).chars().map(Token::Literal).collect(),
                other => vec![*other],
            };
            self.tokens.iter().flat_map(fold).collect()
        });
        matches(tokens, &self.holes, folded, &mut Binding::new())
    }

    /// Whether some path is named by both patterns.
    pub fn overlaps(&self, other: &Pattern) -> bool {
        let mut seen = vec![None; (self.tokens.len() + 1) * (other.tokens.len() + 1)];
        overlap(&self.tokens, &other.tokens, 0, 0, &mut seen)
    }
}

impl fmt::Display for Pattern {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)
    }
}

/// A hole for a name, which is put behind the others.
fn hole(holes: &mut Vec<String>, name: String) -> Token {
    holes.push(name);
    Token::Hole(u16::try_from(holes.len() - 1).unwrap_or(u16::MAX))
}

fn render(tokens: &[Token], holes: &[String]) -> String {
    let mut text = String::new();
    for token in tokens {
        match token {
            Token::Literal(c) => text.push(*c),
            Token::AnyChar => text.push('?'),
            Token::Star => text.push('*'),
            Token::DoubleStar => text.push_str("**"),
            Token::Hole(at) => {
                text.push('{');
                text.push_str(&holes[usize::from(*at)]);
                text.push('}');
            }
        }
    }
    text
}

fn matches(mut tokens: &[Token], holes: &[String], mut path: &str, binding: &mut Binding) -> bool {
    loop {
        let Some((first, rest)) = tokens.split_first() else {
            return path.is_empty();
        };
        match first {
            Token::Literal(c) => match path.strip_prefix(*c) {
                Some(behind) => path = behind,
                None => return false,
            },
            Token::AnyChar => match path.chars().next() {
                Some(c) if c != '/' => path = &path[c.len_utf8()..],
                _ => return false,
            },
            Token::DoubleStar => {
                if rest.first() == Some(&Token::Literal('/')) && matches(&rest[1..], holes, path, binding) {
                    return true;
                }
                return rest.is_empty() || ends(path).any(|taken| matches(rest, holes, &path[taken..], binding));
            }
            Token::Star => {
                let part = &path[..path.find('/').unwrap_or(path.len())];
                return ends(part).rev().any(|taken| matches(rest, holes, &path[taken..], binding));
            }
            Token::Hole(at) => {
                let name = &holes[usize::from(*at)];
                let part = &path[..path.find('/').unwrap_or(path.len())];
                // Longest first, so that `{agent}` takes the whole part; never nothing.
                return ends(part)
                    .rev()
                    .filter(|taken| *taken > 0)
                    .any(|taken| captures((name, &path[..taken]), rest, holes, &path[taken..], binding));
            }
        }
        tokens = rest;
    }
}

/// Whether the rest matches if a name stands for a value: one name means one value.
fn captures((name, value): (&str, &str), rest: &[Token], holes: &[String], path: &str, binding: &mut Binding) -> bool {
    match binding.get(name) {
        Some(bound) => bound == value && matches(rest, holes, path, binding),
        None => {
            binding.insert(name.to_owned(), value.to_owned());
            let found = matches(rest, holes, path, binding);
            if !found {
                binding.remove(name);
            }
            found
        }
    }
}

/// Every place at which a text can be cut, both ends included.
fn ends(text: &str) -> impl DoubleEndedIterator<Item = usize> {
    text.char_indices().map(|(at, _)| at).chain(std::iter::once(text.len()))
}

/// Whether two token sequences share a word: a walk over the product of both, each state once.
fn overlap(a: &[Token], b: &[Token], i: usize, j: usize, seen: &mut Vec<Option<bool>>) -> bool {
    let key = i * (b.len() + 1) + j;
    if let Some(known) = seen[key] {
        return known;
    }
    seen[key] = Some(false);
    let found = match (a.get(i), b.get(j)) {
        (None, None) => true,
        (Some(t), None) => is_loop(t) && overlap(a, b, i + 1, j, seen),
        (None, Some(t)) => is_loop(t) && overlap(a, b, i, j + 1, seen),
        (Some(x), Some(y)) => {
            (is_loop(x) && overlap(a, b, i + 1, j, seen))
                || (is_loop(y) && overlap(a, b, i, j + 1, seen))
                || (share_a_char(x, y)
                    && ((is_loop(x) && overlap(a, b, i, j + 1, seen))
                        || (is_loop(y) && overlap(a, b, i + 1, j, seen))
                        || overlap(a, b, i + 1, j + 1, seen)))
        }
    };
    seen[key] = Some(found);
    found
}

fn is_loop(token: &Token) -> bool {
    matches!(token, Token::Star | Token::DoubleStar | Token::Hole(_))
}

fn share_a_char(x: &Token, y: &Token) -> bool {
    let takes = |t: &Token, c: char| match t {
        Token::Literal(l) => *l == c,
        Token::DoubleStar => true,
        _ => c != '/',
    };
    match (x, y) {
        (Token::Literal(c), other) | (other, Token::Literal(c)) => takes(other, *c),
        _ => true,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn folded(path: &str) -> String {
        fold(path)
    }

    fn pattern(text: &str) -> Pattern {
        Pattern::parse(text).unwrap()
    }

    #[test]
    fn holes_capture_one_part() {
        let bound = pattern("research/{unit}-research.md").matches("research/ch05-research.md").unwrap();
        assert_eq!(bound["unit"], "ch05");
        assert!(pattern("research/{unit}-research.md").matches("research/a/b-research.md").is_none());
        assert!(pattern(".notes/{agent}/task_process.md").matches(".notes//task_process.md").is_none());
    }

    #[test]
    fn one_name_means_one_value() {
        assert!(pattern("{unit}/{unit}.md").matches("ch01/ch01.md").is_some());
        assert!(pattern("{unit}/{unit}.md").matches("ch01/ch02.md").is_none());
    }

    #[test]
    fn stars_stop_at_slashes_and_double_stars_do_not() {
        assert!(pattern("meta/*.md").matches("meta/a.md").is_some());
        assert!(pattern("meta/*.md").matches("meta/a/b.md").is_none());
        assert!(pattern("src/**").matches("src/a/b.rs").is_some());
        assert!(pattern("src/**/b.rs").matches("src/b.rs").is_some());
    }

    #[test]
    fn overlap_is_found_between_any_two_shapes() {
        for (a, b, yes) in [
            ("a/*.md", "a/x.md", true),
            ("a/*.md", "b/*.md", false),
            ("**", "a/b/c", true),
            ("drafts/{unit}-draft.md", "drafts/*.md", true),
            ("drafts/{unit}-draft.md", "drafts/notes.txt", false),
            ("a/*/c", "a/b/*", true),
            ("a/*", "a/b/c", false),
        ] {
            assert_eq!(pattern(a).overlaps(&pattern(b)), yes, "{a} {b}");
            assert_eq!(pattern(b).overlaps(&pattern(a)), yes, "{b} {a}");
        }
    }

    #[test]
    fn a_look_alike_is_recognised() {
        assert!(pattern("meta/glossary.md").looks_like(&folded("Meta/GLOSSARY.md")));
        assert!(pattern("drafts/{unit}-draft.md").looks_like(&folded("drafts/ch01-DRAFT.md")));
        assert!(!pattern("meta/glossary.md").looks_like(&folded("meta/glossaries.md")));
    }

    #[test]
    fn faults_are_told() {
        assert!(Pattern::parse("a/{unit").is_err());
        assert!(Pattern::parse("a/{}").is_err());
        assert!(Pattern::parse("a}").is_err());
        assert!(Pattern::parse("").is_err());
    }
}
