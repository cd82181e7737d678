//! The ids of headings: from their text, unique on the page, and XML names, for EPUB wants those.

use std::collections::HashSet;

use quipu_text::Document;

/// An id for each section of a document, in order; empty for text before the first heading.
pub(crate) fn heading_ids(document: &Document<'_>) -> Vec<String> {
    // `text` is the main element of a page.
    let mut taken = HashSet::from(["text".to_owned()]);
    let mut ids = Vec::new();
    for section in document.sections() {
        if section.level == 0 {
            ids.push(String::new());
            continue;
        }
        let plain = as_name(section.ids.first().unwrap_or(&section.slug));
        let mut id = plain.clone();
        let mut count = 1;
        while !taken.insert(id.clone()) {
            count += 1;
            id = format!("{plain}-{count}");
        }
        ids.push(id);
    }
    ids
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
        let document = Document::parse("pre\n\n# 1. Cords\n\n## 绳结\n\n## 绳结\n\n## !?\n\n## Text\n\n## Own {#my id}\n");
        assert_eq!(heading_ids(&document), ["", "s-1-cords", "绳结", "绳结-1", "section", "text-2", "my"]);
    }
}
