//! Decides whether two patterns match a common path, by a search over pairs of positions that both
//! can reach with the same characters.
//!
//! The result is exact except for a variable that occurs twice in a pattern: the two occurrences
//! are treated as independent, so an overlap may be reported in error.

use super::{Token, is_loop};

/// A position in a pattern, and whether the wildcard there has consumed a character.
#[derive(Clone, Copy, PartialEq, Eq)]
struct Place {
    at: usize,
    begun: bool,
}

impl Place {
    fn at(at: usize) -> Place {
        Place { at, begun: false }
    }

    /// Returns the positions reachable without a character. As in `Matching`, `**/` may match
    /// nothing, and a variable may not.
    fn passes(self, tokens: &[Token]) -> impl Iterator<Item = Place> {
        let behind = match tokens.get(self.at) {
            Some(Token::Star | Token::DoubleStar) => Some(self.at + 1),
            Some(Token::Variable(_)) if self.begun => Some(self.at + 1),
            _ => None,
        };
        let is_folders = !self.begun
            && matches!(
                tokens.get(self.at..self.at + 2),
                Some([Token::DoubleStar, Token::Literal('/')])
            );
        behind
            .into_iter()
            .chain(is_folders.then_some(self.at + 2))
            .map(Place::at)
    }

    /// Returns the position after the token here consumes one character.
    fn takes(self, token: &Token) -> Place {
        if is_loop(token) {
            Place {
                at: self.at,
                begun: true,
            }
        } else {
            Place::at(self.at + 1)
        }
    }

    fn index(self) -> usize {
        self.at * 2 + usize::from(self.begun)
    }
}

pub(super) fn share_a_path(a: &[Token], b: &[Token]) -> bool {
    let width = (b.len() + 1) * 2;
    let mut seen = vec![false; (a.len() + 1) * 2 * width];
    let mut open = vec![(Place::at(0), Place::at(0))];
    while let Some((x, y)) = open.pop() {
        if std::mem::replace(&mut seen[x.index() * width + y.index()], true) {
            continue;
        }
        match (a.get(x.at), b.get(y.at)) {
            (None, None) => return true,
            (Some(s), Some(t)) if share_a_char(s, t) => open.push((x.takes(s), y.takes(t))),
            _ => {}
        }
        open.extend(x.passes(a).map(|x| (x, y)));
        open.extend(y.passes(b).map(|y| (x, y)));
    }
    false
}

/// Whether both tokens can consume the same character.
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
    use proptest::prelude::*;

    use crate::Pattern;

    fn pattern(text: &str) -> Pattern {
        Pattern::parse(text).unwrap()
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
            ("**/a.md", "a.md", true),
            ("**/*", "a.md", true),
            ("**/*.md", "*/**/a.md", true),
            ("n/**/x.md", "n/x.md", true),
            ("n/**/x.md", "n/y.md", false),
            // `**/` matches whole folders or nothing, not the beginning of a name.
            ("**/a.md", "ba.md", false),
            ("a{unit}", "a", false),
        ] {
            assert_eq!(pattern(a).overlaps(&pattern(b)), yes, "{a} {b}");
            assert_eq!(pattern(b).overlaps(&pattern(a)), yes, "{b} {a}");
        }
    }

    /// Returns every path of up to four characters over the letters of the patterns below.
    fn short_paths() -> Vec<String> {
        let mut paths = vec![String::new()];
        let mut from = 0;
        for _ in 0..4 {
            let to = paths.len();
            for at in from..to {
                paths.extend(['a', 'b', '/'].map(|letter| format!("{}{letter}", paths[at])));
            }
            from = to;
        }
        paths
    }

    proptest! {
        /// Two patterns overlap if a path matches both. The patterns are short, so a common path is
        /// among the short paths if there is one.
        #[test]
        fn patterns_that_match_one_path_overlap(
            a in proptest::collection::vec(proptest::sample::select(vec!["a", "b", "/", "*", "**", "**/", "?", "{x}"]), 1..5),
            b in proptest::collection::vec(proptest::sample::select(vec!["a", "b", "/", "*", "**", "**/", "?", "{y}"]), 1..5),
        ) {
            let (a, b) = (a.concat(), b.concat());
            let (Ok(a), Ok(b)) = (Pattern::parse(&a), Pattern::parse(&b)) else { return Ok(()) };
            let common = short_paths().into_iter().find(|path| a.matches(path).is_some() && b.matches(path).is_some());
            prop_assert!(common.is_none() || a.overlaps(&b) && b.overlaps(&a), "{a} {b} {common:?}");
        }
    }
}
