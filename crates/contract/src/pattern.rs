//! Path patterns: `meta/*.md`, `research/{unit}-research.md`, `{source_root}/**`.
//!
//! Written by hand because a rule must also *capture* (`{unit}`), because two patterns must be
//! compared for overlap, and because a command that starts in milliseconds cannot compile sixty
//! regular expressions first. `*` and `{name}` stay within one part of the path, `**` does not.

mod overlap;

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
    Variable(u16),
}

/// More names than this in one pattern are a mistake.
const MOST_HOLES: usize = 64;
/// And so are more characters.
const LONGEST: usize = 2048;
/// From so many wildcards on it is remembered where the rest of a pattern was tried in vain:
/// without that, each would multiply the work.
const MANY_LOOPS: usize = 3;

/// The values of a pattern's variables: `unit` → `ch05`.
pub type Binding = BTreeMap<String, String>;

/// A pattern over project paths.
#[derive(Debug, Clone)]
pub struct Pattern {
    text: String,
    tokens: Vec<Token>,
    /// The names in `{}`, in their order; repeated names are kept.
    variables: Vec<String>,
    /// The literal beginning of every path that it matches. It alone rules out most paths.
    prefix: String,
    /// As it looks to someone who does not look closely; made when first asked for.
    folded: OnceLock<Vec<Token>>,
}

impl PartialEq for Pattern {
    fn eq(&self, other: &Pattern) -> bool {
        self.text == other.text && self.tokens == other.tokens && self.variables == other.variables
    }
}

impl Eq for Pattern {}

impl Pattern {
    pub fn parse(text: &str) -> Result<Pattern, String> {
        if text.chars().count() > LONGEST {
            return Err(format!(
                "a path pattern may have at most {LONGEST} characters"
            ));
        }
        let mut tokens = Vec::with_capacity(text.len());
        let mut variables = Vec::new();
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
                        return Err(format!("`{text}`: `{{}}` contains no name; write a name such \
                            as `{{unit}}`"));
                    }
                    variable(&mut variables, name)
                }
                '}' => return Err(format!("`{text}`: `}}` without `{{`")),
                c => Token::Literal(c),
            });
            // A wildcard that takes anything takes what its neighbour would.
            if let [.., Token::DoubleStar, Token::Star | Token::DoubleStar] = tokens[..] {
                tokens.pop();
            }
        }
        if tokens.is_empty() {
            return Err("a path pattern may not be empty".into());
        }
        if variables.len() > MOST_HOLES {
            return Err(format!("`{text}`: more than {MOST_HOLES} names"));
        }
        let mut sorted: Vec<&String> = variables.iter().collect();
        sorted.sort();
        let repeated = sorted
            .chunk_by(|a, b| a == b)
            .filter(|same| same.len() > 1)
            .count();
        // Every value that a repeated name may have is tried: a second such name would try every
        // pair of values.
        if repeated > 1 {
            return Err(format!(
                "`{text}`: only one name may occur more than once in a pattern"
            ));
        }
        Ok(Pattern::of(text.to_owned(), tokens, variables))
    }

    fn of(text: String, tokens: Vec<Token>, variables: Vec<String>) -> Pattern {
        let literal = tokens.iter().map_while(|token| match token {
            Token::Literal(c) => Some(c.len_utf8()),
            _ => None,
        });
        let mut prefix = text[..literal.sum::<usize>()].to_owned();
        if tokens
            .iter()
            .any(|token| matches!(token, Token::DoubleStar))
            && prefix.ends_with('/')
        {
            prefix.pop();
        }
        Pattern {
            text,
            tokens,
            variables,
            prefix,
            folded: OnceLock::new(),
        }
    }

    /// Matches everything below a folder. The folder's name is taken literally.
    pub(crate) fn below(folder: &str) -> Pattern {
        let tokens: Vec<Token> = folder
            .chars()
            .chain(['/'])
            .map(Token::Literal)
            .chain([Token::DoubleStar])
            .collect();
        Pattern::of(format!("{folder}/**"), tokens, Vec::new())
    }

    pub fn as_str(&self) -> &str {
        &self.text
    }

    /// The names in `{}`.
    pub fn variables(&self) -> impl Iterator<Item = &str> {
        self.variables.iter().map(String::as_str)
    }

    /// The path itself, where the pattern has neither variables nor wildcards.
    pub fn as_literal(&self) -> Option<&str> {
        self.tokens
            .iter()
            .all(|t| matches!(t, Token::Literal(_)))
            .then_some(self.text.as_str())
    }

    /// The same pattern with the given variables filled; the others stay open.
    pub fn fill(&self, binding: &Binding) -> Pattern {
        if !self.variables.iter().any(|name| binding.contains_key(name)) {
            return self.clone();
        }
        let mut tokens = Vec::with_capacity(self.tokens.len());
        let mut variables = Vec::new();
        for token in &self.tokens {
            match token {
                Token::Variable(at) => match binding.get(self.name(*at)) {
                    Some(value) => tokens.extend(value.chars().map(Token::Literal)),
                    None => tokens.push(variable(&mut variables, self.name(*at).to_owned())),
                },
                other => tokens.push(*other),
            }
        }
        Pattern::of(render(&tokens, &variables), tokens, variables)
    }

    fn name(&self, at: u16) -> &str {
        &self.variables[usize::from(at)]
    }

    /// A path that this pattern matches: every variable and wildcard becomes an `x`.
    pub fn stand_in(&self) -> String {
        let tell = |token: &Token| match token {
            Token::Literal(c) => *c,
            Token::AnyChar | Token::Star | Token::DoubleStar | Token::Variable(_) => 'x',
        };
        self.tokens.iter().map(tell).collect()
    }

    /// Whether a path has the literal beginning that all matching paths share.
    pub(crate) fn begins_like(&self, path: &str) -> bool {
        path.starts_with(&self.prefix)
    }

    /// Matches a whole path; returns the value of each variable.
    pub fn matches(&self, path: &str) -> Option<Binding> {
        if !path.starts_with(&self.prefix) {
            return None;
        }
        // The prefix is the first tokens, a character each.
        Matching::of(&self.tokens, &self.variables, path)
            .from(self.prefix.chars().count(), self.prefix.len())
    }

    /// Whether some path *looks* as if this pattern named it, though it does not. The path comes
    /// folded.
    pub(crate) fn looks_like(&self, folded: &str) -> bool {
        let tokens = self.folded.get_or_init(|| {
            let fold = |token: &Token| match token {
                Token::Literal(c) => fold(&c.to_string()).chars().map(Token::Literal).collect(),
                other => vec![*other],
            };
            self.tokens.iter().flat_map(fold).collect()
        });
        Matching::of(tokens, &self.variables, folded)
            .from(0, 0)
            .is_some()
    }

    /// Whether some path is named by both patterns.
    pub fn overlaps(&self, other: &Pattern) -> bool {
        if !self.prefix.starts_with(&other.prefix) && !other.prefix.starts_with(&self.prefix) {
            return false;
        }
        overlap::share_a_path(&self.tokens, &other.tokens)
    }
}

impl fmt::Display for Pattern {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)
    }
}

/// A variable for a name, which is put behind the others.
fn variable(variables: &mut Vec<String>, name: String) -> Token {
    variables.push(name);
    Token::Variable(u16::try_from(variables.len() - 1).unwrap_or(u16::MAX))
}

fn render(tokens: &[Token], variables: &[String]) -> String {
    let mut text = String::new();
    for token in tokens {
        match token {
            Token::Literal(c) => text.push(*c),
            Token::AnyChar => text.push('?'),
            Token::Star => text.push('*'),
            Token::DoubleStar => text.push_str("**"),
            Token::Variable(at) => {
                text.push('{');
                text.push_str(&variables[usize::from(*at)]);
                text.push('}');
            }
        }
    }
    text
}

/// A pattern against one path.
struct Matching<'m> {
    tokens: &'m [Token],
    variables: &'m [String],
    path: &'m str,
    binding: Binding,
    /// For each wildcard and each place of the path: whether the rest was tried there in vain.
    /// Empty where there are few wildcards.
    in_vain: Vec<bool>,
}

impl<'m> Matching<'m> {
    fn of(tokens: &'m [Token], variables: &'m [String], path: &'m str) -> Self {
        let loops = tokens.iter().filter(|token| is_loop(token)).count();
        let in_vain = if loops < MANY_LOOPS {
            Vec::new()
        } else {
            vec![false; tokens.len() * (path.len() + 1)]
        };
        Matching {
            tokens,
            variables,
            path,
            binding: Binding::new(),
            in_vain,
        }
    }

    /// Matches the tokens from `at` and the path from `from`; the part before is known to match.
    fn from(mut self, at: usize, from: usize) -> Option<Binding> {
        self.matches(at, from).then_some(self.binding)
    }

    /// Whether the tokens from `at` match the path from `from`.
    fn matches(&mut self, mut at: usize, mut from: usize) -> bool {
        while let Some(token) = self.tokens.get(at) {
            let next = self.path[from..].chars().next();
            match token {
                Token::Literal(c) if next == Some(*c) => {}
                Token::AnyChar if next.is_some_and(|c| c != '/') => {}
                Token::Literal(_) | Token::AnyChar => return false,
                Token::Star | Token::DoubleStar | Token::Variable(_) => {
                    return self.wildcard(at, from);
                }
            }
            from += next.map_or(0, char::len_utf8);
            at += 1;
        }
        from == self.path.len()
    }

    fn wildcard(&mut self, at: usize, from: usize) -> bool {
        let place = at * (self.path.len() + 1) + from;
        if self.in_vain.get(place) == Some(&true) {
            return false;
        }
        let found = match self.tokens[at] {
            Token::DoubleStar => self.anything(at + 1, from),
            Token::Variable(name) => self.name(usize::from(name), at + 1, from),
            _ => ends(self.part(from)).rev().any(|taken| {
                self.may_follow(at + 1, from + taken) && self.matches(at + 1, from + taken)
            }),
        };
        if !found && let Some(in_vain) = self.in_vain.get_mut(place) {
            *in_vain = true;
        }
        found
    }

    /// Whether the first token from `at` allows what the path has at `from`. Rules out most ends of a
    /// wildcard before anything is bound or tried.
    fn may_follow(&self, at: usize, from: usize) -> bool {
        match self.tokens.get(at) {
            Some(Token::Literal(c)) => self.path[from..].starts_with(*c),
            Some(_) => true,
            None => from == self.path.len(),
        }
    }

    /// The rest of the part of the path that `from` is in.
    fn part(&self, from: usize) -> &'m str {
        let rest = &self.path[from..];
        &rest[..rest.find('/').unwrap_or(rest.len())]
    }

    fn anything(&mut self, rest: usize, from: usize) -> bool {
        if self.tokens.get(rest) == Some(&Token::Literal('/')) && self.matches(rest + 1, from) {
            return true;
        }
        rest == self.tokens.len()
            || ends(&self.path[from..]).any(|taken| self.matches(rest, from + taken))
    }

    /// Longest first, so that `{agent}` takes the whole part; never nothing. One name means one
    /// value.
    fn name(&mut self, variable: usize, rest: usize, from: usize) -> bool {
        let name = &self.variables[variable];
        if let Some(bound) = self.binding.get(name) {
            let end = from + bound.len();
            return self.part(from).starts_with(bound.as_str()) && self.matches(rest, end);
        }
        let again = self.variables[variable + 1..].contains(name);
        ends(self.part(from))
            .rev()
            .filter(|taken| *taken > 0)
            .any(|taken| {
                if !self.may_follow(rest, from + taken) {
                    return false;
                }
                let value = &self.path[from..from + taken];
                // The search below tries one value at a time, so a value that cannot match is ruled
                // out first.
                if again && !self.can_go_on(name, value, rest, from + taken) {
                    return false;
                }
                self.binding.insert(name.clone(), value.to_owned());
                let found = self.matches(rest, from + taken);
                if !found {
                    self.binding.remove(name);
                }
                found
            })
    }

    /// Whether the tokens from `rest` match the path from `from` if a name stands for this value.
    /// From the end of the pattern to its beginning: at which places of the path does the rest
    /// match? So each token costs one pass over the path.
    fn can_go_on(&self, name: &str, value: &str, rest: usize, from: usize) -> bool {
        let path = self.path;
        if !path[from..].contains(value) {
            return false;
        }
        let mut after = vec![false; path.len() + 1];
        after[path.len()] = true;
        // The places that match behind the `/` of `**/`, which may match nothing.
        let mut behind_slash: Option<Vec<bool>> = None;
        for (index, token) in self.tokens.iter().enumerate().skip(rest).rev() {
            let mut here = vec![false; path.len() + 1];
            for place in ends(&path[from..]).rev().map(|end| from + end) {
                let next = path[place..].chars().next();
                let step = place + next.map_or(0, char::len_utf8);
                let in_part = next.is_some_and(|c| c != '/');
                here[place] = match token {
                    Token::Literal(c) => next == Some(*c) && after[step],
                    Token::AnyChar => in_part && after[step],
                    Token::Star => after[place] || in_part && here[step],
                    Token::DoubleStar => {
                        let nothing = behind_slash.as_ref().is_some_and(|behind| behind[place]);
                        nothing || after[place] || next.is_some() && here[step]
                    }
                    Token::Variable(at) if self.variables[usize::from(*at)] == name => {
                        path[place..].starts_with(value) && after[place + value.len()]
                    }
                    Token::Variable(_) => in_part && (after[step] || here[step]),
                };
            }
            let is_slash_of_double_star = *token == Token::Literal('/')
                && index
                    .checked_sub(1)
                    .is_some_and(|i| self.tokens[i] == Token::DoubleStar);
            behind_slash = is_slash_of_double_star.then_some(after);
            after = here;
        }
        after[from]
    }
}

/// Every place at which a text can be cut, both ends included.
fn ends(text: &str) -> impl DoubleEndedIterator<Item = usize> {
    text.char_indices()
        .map(|(at, _)| at)
        .chain(std::iter::once(text.len()))
}

fn is_loop(token: &Token) -> bool {
    matches!(token, Token::Star | Token::DoubleStar | Token::Variable(_))
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
        let bound = pattern("research/{unit}-research.md")
            .matches("research/ch05-research.md")
            .unwrap();
        assert_eq!(bound["unit"], "ch05");
        assert!(
            pattern("research/{unit}-research.md")
                .matches("research/a/b-research.md")
                .is_none()
        );
        assert!(
            pattern(".notes/{agent}/task_process.md")
                .matches(".notes//task_process.md")
                .is_none()
        );
    }

    #[test]
    fn one_name_means_one_value() {
        assert!(
            pattern("{unit}/{unit}.md")
                .matches("ch01/ch01.md")
                .is_some()
        );
        assert!(
            pattern("{unit}/{unit}.md")
                .matches("ch01/ch02.md")
                .is_none()
        );
    }

    #[test]
    fn stars_stop_at_slashes_and_double_stars_do_not() {
        assert!(pattern("meta/*.md").matches("meta/a.md").is_some());
        assert!(pattern("meta/*.md").matches("meta/a/b.md").is_none());
        assert!(pattern("src/**").matches("src/a/b.rs").is_some());
        assert!(pattern("src/**/b.rs").matches("src/b.rs").is_some());
    }

    #[test]
    fn what_follows_the_prefix_is_matched_as_if_all_were() {
        let paths = [
            "第一章/稿.md",
            "第一章",
            "第一章/第一章/稿.md",
            "a",
            "a/b",
            "a/b/b",
            "ab/b",
            "第一章稿/稿.md",
        ];
        for pattern in [
            "第一章/*.md",
            "第一章/**",
            "第一章/**/稿.md",
            "第一章{x}/稿.md",
            "a/**",
            "a/**/b",
            "a?b",
            "a/b",
            "**",
        ]
        .map(pattern)
        {
            for path in paths {
                let from_the_start =
                    Matching::of(&pattern.tokens, &pattern.variables, path).from(0, 0);
                assert_eq!(pattern.matches(path), from_the_start, "{pattern} {path}");
            }
        }
        assert!(pattern("第一章/**/稿.md").matches("第一章/稿.md").is_some());
    }

    #[test]
    fn a_look_alike_is_recognised() {
        assert!(pattern("meta/glossary.md").looks_like(&folded("Meta/GLOSSARY.md")));
        assert!(pattern("drafts/{unit}-draft.md").looks_like(&folded("drafts/ch01-DRAFT.md")));
        assert!(!pattern("meta/glossary.md").looks_like(&folded("meta/glossaries.md")));
    }

    /// Each of these would take longer than anyone waits if every wildcard multiplied the work.
    #[test]
    fn many_wildcards_are_matched_in_no_time() {
        let name = "a".repeat(200);
        assert!(
            pattern(&format!("{}x", "**".repeat(40)))
                .matches(&format!("{name}/{name}"))
                .is_none()
        );
        assert!(
            pattern(&format!("{}X", "**?".repeat(40)))
                .matches(&format!(".sessions/{name}"))
                .is_none()
        );
        assert!(
            pattern(&format!("**/{}b", "*a".repeat(30)))
                .matches(&format!("sessions/{name}"))
                .is_none()
        );
        assert!(
            pattern(&format!("**/{}b", "*a".repeat(30)))
                .matches(&format!("sessions/{name}b"))
                .is_some()
        );
        assert!(pattern("{a}*?*?*?*{a}*?*x").matches(&name[..60]).is_none());
        assert!(Pattern::parse(&"*?".repeat(LONGEST)).is_err());
        assert!(pattern("*{a}*?*{b}*?*{a}*x").matches(&name).is_none());
        assert!(
            pattern("**/{a}*{a}*?{a}*x")
                .matches(&format!("{name}/{name}/{name}"))
                .is_none()
        );
        let twice: String = (0..100)
            .map(|n| char::from(b'a' + (n * n % 23) as u8))
            .collect();
        assert!(
            pattern("{a}*?*?*{a}x")
                .matches(&format!("{twice}{twice}"))
                .is_none()
        );
        assert!(
            Pattern::parse("{a}{b}-{a}{b}")
                .unwrap_err()
                .contains("more than once")
        );
    }

    #[test]
    fn a_repeated_name_is_matched_as_by_trying_everything() {
        let patterns = [
            "{a}{a}",
            "*{a}?{a}",
            "{a}/**/{a}",
            "**/{a}{b}{a}*",
            "{a}*/**{a}",
            "{b}{a}/{a}*",
            "?{a}**{a}?",
        ]
        .map(pattern);
        let letters = ['a', 'b', '/', '稿'];
        for number in 0..4_usize.pow(6) {
            let path: String = (0..6)
                .map(|digit| letters[number / 4_usize.pow(digit) % 4])
                .collect();
            for pattern in &patterns {
                let name = "a".to_owned();
                let values: std::collections::BTreeSet<String> = ends(&path)
                    .flat_map(|from| {
                        ends(&path)
                            .filter(move |to| *to > from)
                            .map(move |to| (from, to))
                    })
                    .map(|(from, to)| path[from..to].to_owned())
                    .filter(|value| !value.contains('/'))
                    .collect();
                let by_trying = values.into_iter().any(|value| {
                    pattern
                        .fill(&Binding::from([(name.clone(), value)]))
                        .matches(&path)
                        .is_some()
                });
                let found = pattern.matches(&path);
                assert_eq!(found.is_some(), by_trying, "{pattern} {path}");
                if let Some(found) = found {
                    assert!(
                        pattern.fill(&found).matches(&path).is_some(),
                        "{pattern} {path} {found:?}"
                    );
                }
            }
        }
    }

    #[test]
    fn what_was_tried_in_vain_with_one_value_is_tried_with_the_next() {
        assert_eq!(
            pattern("*{a}*-*{a}.md").matches("xab-cab.md").unwrap()["a"],
            "b"
        );
        assert_eq!(
            pattern("{a}-*{a}*").matches("ch-1-ch-2").unwrap()["a"],
            "ch"
        );
        assert!(pattern("*{a}*-*{a}.md").matches("xy-z.md").is_none());
    }

    #[test]
    fn wildcards_side_by_side_are_one() {
        for text in ["a/****/b", "a/***/b"] {
            assert!(
                pattern(text).matches("a/b").is_some()
                    && pattern(text).matches("a/x/y/b").is_some(),
                "{text}"
            );
            assert_eq!(pattern(text).as_str(), text);
        }
    }

    #[test]
    fn faults_are_told() {
        assert!(Pattern::parse("a/{unit").is_err());
        assert!(Pattern::parse("a/{}").is_err());
        assert!(Pattern::parse("a}").is_err());
        assert!(Pattern::parse("").is_err());
    }
}
