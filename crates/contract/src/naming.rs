//! Checks whether a pattern can match any valid path.
//!
//! Paths are validated before they are matched: none begins with `./`, has an empty component or a
//! decomposed letter. A pattern that only an invalid path could match would be a rule without
//! effect, and nobody would notice.

use crate::characters::quotable;
use crate::path::{BadPath, ProjectPath, normal_form};
use crate::pattern::Pattern;

/// The reason why a pattern matches no path, and the probable intention.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NamesNothing {
    pub bad: BadPath,
    /// The corrected pattern, if it is clear.
    pub instead: Option<String>,
}

impl Pattern {
    /// Whether some project path can match. Variables and wildcards are filled with sample text.
    pub fn can_name(&self) -> Result<(), NamesNothing> {
        let bad = match bad_path(&self.stand_in()) {
            Some(bad) => bad.told_of(self.as_str()),
            None => return Ok(()),
        };
        let plain = plain_spelling(self.as_str());
        let names = |text: &String| {
            Pattern::parse(text).is_ok_and(|pattern| bad_path(&pattern.stand_in()).is_none())
        };
        Err(NamesNothing {
            bad,
            instead: Some(plain).filter(names),
        })
    }
}

/// Validates a path exactly as written. A command accepts `./a.md` for `a.md`; a rule is matched
/// literally.
fn bad_path(text: &str) -> Option<BadPath> {
    match ProjectPath::parse(text) {
        Ok(path) if path.as_str() != text => Some(BadPath::Leaves(text.to_owned())),
        Ok(_) => None,
        Err(bad) => Some(bad),
    }
}

impl BadPath {
    /// Returns the same error for the text as the user wrote it.
    fn told_of(self, text: &str) -> BadPath {
        let path = quotable(text);
        match self {
            BadPath::Empty => BadPath::Empty,
            BadPath::Absolute(_) => BadPath::Absolute(path),
            BadPath::Leaves(_) => BadPath::Leaves(path),
            BadPath::Reserved { folder, .. } => BadPath::Reserved { path, folder },
            BadPath::NotNormal { path, .. } => BadPath::NotNormal {
                path,
                normal: normal_form(text),
            },
            BadPath::OddCharacter(_) => BadPath::OddCharacter(path),
            BadPath::TooLong(_) => BadPath::TooLong(path),
        }
    }
}

/// Removes empty and `.` components of a pattern; a trailing slash becomes `/**`.
fn plain_spelling(text: &str) -> String {
    let parts: Vec<&str> = text
        .split('/')
        .filter(|part| !part.is_empty() && *part != ".")
        .collect();
    let below = if text.ends_with('/') { "/**" } else { "" };
    normal_form(&format!("{}{below}", parts.join("/")))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn judged(text: &str) -> Result<(), NamesNothing> {
        Pattern::parse(text).unwrap().can_name()
    }

    #[test]
    fn a_pattern_that_names_nothing_says_what_was_meant() {
        for (text, instead) in [
            ("./decisions.md", Some("decisions.md")),
            ("./secret/*.md", Some("secret/*.md")),
            ("meta//*.md", Some("meta/*.md")),
            ("meta/./{unit}.md", Some("meta/{unit}.md")),
            ("drafts/", Some("drafts/**")),
            ("cafe\u{301}/*.md", Some("café/*.md")),
            ("./**", Some("**")),
            ("../x/*.md", None),
            ("a/../b", None),
            (".quipu/watermarks", None),
            ("**/.GIT/config", None),
            ("a\\b.md", None),
            ("notes./*.md", None),
        ] {
            assert_eq!(
                judged(text).unwrap_err().instead.as_deref(),
                instead,
                "{text}"
            );
        }
    }

    #[test]
    fn whatever_can_match_a_path_is_left_alone() {
        for text in [
            "**",
            "*",
            "a/**/b.md",
            "**/*.md",
            ".notes/{agent}/*.md",
            "{unit}/{unit}?.md",
            ".github/**",
            "手稿/*.md",
            "..a/b",
            "a/..*",
        ] {
            assert_eq!(judged(text), Ok(()), "{text}");
        }
    }
}
