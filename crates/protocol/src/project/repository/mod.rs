//! Extracts a repository's description of itself for the first PROJECT.md: README, manifests,
//! top-level folders.
//!
//! All of this text is untrusted. No link is followed, no command is run, nothing is fetched. Every
//! piece is cut to one line of a few hundred characters, without control characters and markup. A
//! piece with a credential is left out.

mod folders;
mod readme;
mod stack;

use std::collections::BTreeMap;
use std::path::Path;

use quipu_contract::{GuardRules, Language, find_credentials, is_invisible};
use quipu_store::OpenFolder;

/// Larger files are ignored.
const LARGEST_BYTES: u64 = 1 << 20;

/// The template variables; empty if nothing was found.
pub(crate) const VALUES: [&str; 3] = ["repository_about", "repository_stack", "repository_folders"];

/// The extracted values.
#[derive(Debug, Clone, Default)]
pub struct Repository {
    /// The README's title.
    pub title: Option<String>,
    /// The language of most of the README.
    pub language: Language,
    /// The files that were read, so that people can check them.
    pub sources: Vec<String>,
    values: BTreeMap<String, String>,
}

impl Repository {
    /// Reads the files of a folder. `language` is the language of the generated texts, if it was
    /// chosen.
    pub fn survey(root: &Path, language: Option<Language>) -> Repository {
        let readme = readme::find_readme(root);
        let language = language.unwrap_or_else(|| {
            readme
                .as_ref()
                .map(|readme| readme.language)
                .unwrap_or_default()
        });
        let mut found = Repository {
            language,
            ..Repository::default()
        };
        let mut keep = |name: &str, lines: Vec<String>| {
            found.values.insert(name.to_owned(), lines.join("\n"));
        };
        if let Some(readme) = &readme {
            let brackets = if language == Language::Zh {
                ('（', '）')
            } else {
                ('(', ')')
            };
            let space = if language == Language::Zh { "" } else { " " };
            let about = readme.about.as_ref().map(|about| {
                format!(
                    "> {about}{space}{}{}{}",
                    brackets.0, readme.file, brackets.1
                )
            });
            keep(VALUES[0], about.into_iter().collect());
        }
        let stack = stack::describe_stack(root, language);
        keep(
            VALUES[1],
            stack.iter().map(|(_, line)| line.clone()).collect(),
        );
        let folders = folders::describe_folders(root, language);
        keep(VALUES[2], folders);
        found
            .sources
            .extend(readme.as_ref().map(|readme| readme.file.clone()));
        found
            .sources
            .extend(stack.into_iter().map(|(file, _)| file));
        found.title = readme.and_then(|readme| readme.title);
        found
    }

    pub(crate) fn values(&self) -> &BTreeMap<String, String> {
        &self.values
    }
}

/// Reads a regular file of moderate size directly in a folder.
fn load_text(root: &Path, name: &str) -> Option<String> {
    let stat = root.join(name).symlink_metadata().ok()?;
    if !stat.is_file() || stat.len() > LARGEST_BYTES {
        return None;
    }
    let bytes = OpenFolder::read_in(root, name).ok()??;
    Some(String::from_utf8_lossy(&bytes).into_owned())
}

/// Reduces untrusted text to one line of limited length. None if nothing is left, or if it contains
/// a credential.
fn tame(text: &str, longest: usize) -> Option<String> {
    let visible = text
        .chars()
        .map(|c| if c.is_whitespace() { ' ' } else { c })
        .filter(|c| !c.is_control() && !is_invisible(*c));
    let words = visible
        .collect::<String>()
        .split_whitespace()
        .collect::<Vec<_>>()
        .join(" ");
    if words.is_empty() || find_credentials(&GuardRules::default(), &words).is_some() {
        return None;
    }
    if words.chars().count() <= longest {
        return Some(words);
    }
    let cut: String = words.chars().take(longest).collect();
    // Cut at the end of a sentence in the second half, else between two words.
    let sentence = cut
        .rfind(". ")
        .map(|at| at + 1)
        .into_iter()
        .chain(cut.rfind('。').map(|at| at + '。'.len_utf8()))
        .max();
    Some(match sentence.filter(|at| *at > cut.len() / 2) {
        Some(at) => cut[..at].to_owned(),
        None => format!(
            "{}…",
            cut.rfind(' ')
                .filter(|at| *at > cut.len() / 2)
                .map_or(cut.as_str(), |at| &cut[..at])
        ),
    })
}

/// Accepts only plain names of packages, scripts and folders.
fn plain_name(name: &str) -> Option<&str> {
    let plain = |c: char| c.is_alphanumeric() || "@/._-+".contains(c);
    (!name.is_empty() && name.len() <= 60 && name.chars().all(plain)).then_some(name)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn foreign_text_is_one_short_plain_line() {
        assert_eq!(
            tame("a\n# b\t\u{1b}[2Kc\u{202e}", 100).as_deref(),
            Some("a # b [2Kc")
        );
        assert_eq!(
            tame(&"word ".repeat(200), 20).as_deref(),
            Some("word word word word…")
        );
        assert_eq!(
            tame("One sentence here. And another one that is cut", 30).as_deref(),
            Some("One sentence here.")
        );
        assert_eq!(tame("key AKIAIOSFODNN7EXAMPLA", 100), None);
        assert_eq!(
            (
                plain_name("@scope/pkg.js"),
                plain_name("a b"),
                plain_name("a`b")
            ),
            (Some("@scope/pkg.js"), None, None)
        );
    }
}
