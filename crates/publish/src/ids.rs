//! The ids of headings: from their text, unique on the page, and XML names, for EPUB wants those.

use std::collections::HashSet;

use quipu_text::Document;

/// The ids of one page.
pub(crate) struct Names(HashSet<String>);

impl Default for Names {
    fn default() -> Names {
        // `text` is the main element of a page.
        Names(HashSet::from(["text".to_owned()]))
    }
}

impl Names {
    /// An id that no one has yet, from a text.
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

/// An id for each section of a document, in order; empty for text before the first heading.
pub(crate) fn heading_ids(document: &Document<'_>) -> Vec<String> {
    let mut names = Names::default();
    let mut id = |section: &quipu_text::Section| match section.level {
        0 => String::new(),
        _ => names.take(section.ids.first().unwrap_or(&section.slug)),
    };
    document.sections().iter().map(&mut id).collect()
}

/// The nearest XML name. None begins with `_`: those are the ids of notes.
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
