//! The index of a project: path and first line of each file, sorted.
//!
//! A contract has an index if a derived file has the form `index`. A change of one file changes one
//! row, so the commit that changes a file can update the index too. Text before the first row is
//! kept.

use std::collections::BTreeMap;

use crate::class::Class;
use crate::contract::Contract;
use crate::form::Form;
use crate::path::ProjectPath;

const ROW: &str = "- [→ ";
/// The escape of a closing bracket, which would end the path.
const BRACKET: &str = "%5D";
/// A longer first line is cut, because the index is always read whole.
const LINE_CHARS: usize = 120;

/// An index as text, row by row.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Listing {
    head: String,
    rows: BTreeMap<String, String>,
}

impl Listing {
    pub fn parse(text: &str) -> Listing {
        let mut listing = Listing::default();
        for line in text.lines() {
            match line.strip_prefix(ROW).and_then(|rest| rest.split_once(']')) {
                Some((path, first)) => {
                    listing
                        .rows
                        .insert(path.replace(BRACKET, "]"), first.trim().to_owned());
                }
                None if listing.rows.is_empty() => {
                    listing.head.push_str(line);
                    listing.head.push('\n');
                }
                None => {}
            }
        }
        listing
    }

    /// Returns the listed first line of a file.
    pub fn first_line_of(&self, path: &str) -> Option<&str> {
        self.rows.get(path).map(String::as_str)
    }

    /// Returns the text of an index from its first row on.
    pub fn from_first_row(text: &str) -> &str {
        let head: usize = text
            .split_inclusive('\n')
            .take_while(|line| !line.starts_with(ROW))
            .map(str::len)
            .sum();
        &text[head..]
    }

    /// Returns a listing with the same head and other rows.
    pub fn with_rows(&self, rows: impl IntoIterator<Item = (String, String)>) -> Listing {
        Listing {
            head: self.head.clone(),
            rows: rows.into_iter().collect(),
        }
    }

    /// Sets the first line of a file, or removes the file.
    pub fn set(&mut self, path: &str, first: Option<String>) {
        match first {
            Some(first) => self.rows.insert(path.to_owned(), first),
            None => self.rows.remove(path),
        };
    }

    pub fn render(&self) -> String {
        let mut text = self.head.trim_end().to_owned();
        text.push_str(if text.is_empty() { "" } else { "\n\n" });
        for (path, first) in &self.rows {
            text.push_str(format!("{ROW}{}] {first}", path.replace(']', BRACKET)).trim_end());
            text.push('\n');
        }
        text
    }
}

/// Returns the first heading or line of a file after the front matter, without markup.
pub fn first_line(text: &str) -> String {
    let text = text.trim_start_matches('\u{feff}');
    let body = match text
        .strip_prefix("---\n")
        .and_then(|rest| rest.split_once("\n---"))
    {
        Some((_, after)) => after.trim_start_matches('-'),
        None => text,
    };
    let line = body
        .lines()
        .map(str::trim)
        .find(|line| !line.is_empty() && !line.starts_with("<!--"))
        .unwrap_or_default();
    let line = line.trim_start_matches('#').trim();
    if line.chars().count() <= LINE_CHARS {
        return line.to_owned();
    }
    line.chars().take(LINE_CHARS).chain(['…']).collect()
}

impl Contract {
    /// Returns the path of the index file, if the contract has one.
    pub fn index_path(&self) -> Option<ProjectPath> {
        let rule = self
            .of_form(Form::Index)
            .find(|rule| rule.class == Class::Derived)?;
        ProjectPath::parse(rule.path.as_literal()?).ok()
    }

    /// Whether the index lists a file: memory of a tier, and text that no rule names.
    pub fn is_listed(&self, path: &ProjectPath) -> bool {
        let text = [".md", ".txt"]
            .iter()
            .any(|ending| path.as_str().ends_with(ending));
        text && self
            .rule(path)
            .is_none_or(|rule| rule.tier.is_some() && rule.form != Some(Form::Index))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rows_stay_sorted_and_the_head_stays() {
        let mut listing = Listing::parse("# 索引\n\nKept.\n\n- [→ b.md] B\n- [→ a.md] A\n");
        listing.set("aa.md", Some("新文件".into()));
        listing.set("b.md", None);
        assert_eq!(
            listing.render(),
            "# 索引\n\nKept.\n\n- [→ a.md] A\n- [→ aa.md] 新文件\n"
        );
        assert_eq!(Listing::parse(&listing.render()).render(), listing.render());
    }

    #[test]
    fn a_bracket_in_a_path_ends_no_row() {
        let mut listing = Listing::parse("- [→ a.md] A\n");
        listing.set("a.md] B, see b.md", Some("C".into()));
        let read = Listing::parse(&listing.render());
        assert_eq!((read.first_line_of("a.md"), &read), (Some("A"), &listing));
    }

    #[test]
    fn the_first_line_is_the_heading_or_the_first_words() {
        assert_eq!(first_line("\u{feff}\n## 角色\nx"), "角色");
        assert_eq!(first_line("---\na: 1\n---\n\n# Title\n"), "Title");
        assert_eq!(
            first_line("<!-- x -->\nOtto tied a knot.\n"),
            "Otto tied a knot."
        );
        assert_eq!(first_line(""), "");
        assert_eq!(
            first_line(&"字".repeat(200)).chars().count(),
            LINE_CHARS + 1
        );
    }
}
