//! Generates the IDs of headings.
//!
//! An ID is derived from the heading's text, unique on its page, and a valid XML name, as EPUB
//! requires. Footnotes have their own IDs, which start with `_`.

use std::collections::HashSet;

use quipu_text::Document;

/// The IDs in use on one page.
pub(crate) struct Names(HashSet<String>);

impl Default for Names {
    fn default() -> Names {
        // `text` is the ID of the page's main element.
        Names(HashSet::from(["text".to_owned()]))
    }
}

impl Names {
    /// Returns an unused ID derived from a text.
    pub fn take(&mut self, text: &str) -> String {
        let plain = as_name(text);
        let mut id = plain.clone();
        let mut count = 1;
        while !self.0.insert(id.clone()) {
            count += 1;
            id = format!("{plain}-{count}");
        }
        id
    }
}

/// Returns an ID for each section of a document, in order. Text before the first heading gets an
/// empty one.
pub(crate) fn heading_ids(document: &Document<'_>) -> Vec<String> {
    let mut names = Names::default();
    let mut id = |section: &quipu_text::Section| match section.level {
        0 => String::new(),
        _ => names.take(section.ids.first().unwrap_or(&section.slug)),
    };
    document.sections().iter().map(&mut id).collect()
}

/// Returns the nearest XML name. It never begins with `_`, which is reserved for footnotes.
fn as_name(text: &str) -> String {
    let name: String = text.chars().filter(|c| is_name_char(*c)).collect();
    match name.chars().next() {
        None => "section".into(),
        Some(first) if first.is_alphabetic() => name,
        Some(_) => format!("s-{name}"),
    }
}

fn is_name_char(c: char) -> bool {
    c.is_ascii_alphanumeric()
        || matches!(c, '-' | '_' | '\u{c0}'..='\u{d6}' | '\u{d8}'..='\u{f6}' | '\u{f8}'..='\u{37d}' | '\u{37f}'..='\u{1fff}'
            | '\u{3001}'..='\u{d7ff}' | '\u{f900}'..='\u{fdcf}' | '\u{10000}'..='\u{effff}')
            && c.is_alphanumeric()
        || matches!(c, '-' | '_')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ids_are_names_and_unique() {
        let document = Document::parse(
            "pre\n\n# 1. Cords\n\n## 绳结\n\n## 绳结\n\n## !?\n\n## Text\n\n## Own {#my id}\n",
        );
        assert_eq!(
            heading_ids(&document),
            ["", "s-1-cords", "绳结", "绳结-1", "section", "text-2", "my"]
        );
    }
}
