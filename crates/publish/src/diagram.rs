//! Mermaid diagrams: which a chapter holds, and the names of their pictures.
//!
//! Nothing is drawn here. A picture is a PNG: Mermaid's SVG keeps labels in HTML and colours in
//! style rules that a published drawing may not have.

use pulldown_cmark::{CodeBlockKind, Event, Options, Parser, Tag, TagEnd};

use crate::Chapter;

/// The word after a fence that begins a diagram.
pub(crate) const LANGUAGE: &str = "mermaid";

/// The tag that begins a diagram on a published page.
pub(crate) const DIAGRAM: &str = "<figure class=\"diagram\">";

/// The word of a fence that says what a block of code is in.
pub(crate) fn language_of(info: &str) -> String {
    info.split([' ', ',', '{', '\t'])
        .next()
        .unwrap_or_default()
        .to_ascii_lowercase()
}

/// The diagrams of a chapter, as they were written.
pub fn diagrams_of(chapter: &Chapter) -> Vec<String> {
    let mut found: Vec<String> = Vec::new();
    let mut inside = false;
    for event in Parser::new_ext(&chapter.text, Options::ENABLE_TABLES) {
        match event {
            Event::Start(Tag::CodeBlock(CodeBlockKind::Fenced(info)))
                if language_of(&info) == LANGUAGE =>
            {
                inside = true;
                found.push(String::new());
            }
            Event::End(TagEnd::CodeBlock) => inside = false,
            Event::Text(text) if inside => found
                .last_mut()
                .into_iter()
                .for_each(|last| last.push_str(&text)),
            _ => {}
        }
    }
    found
}

/// The name of a diagram's picture: another text gives another picture.
pub fn drawing_name(diagram: &str) -> String {
    format!(
        "mermaid-{}.png",
        &blake3::hash(diagram.as_bytes()).to_hex()[..16]
    )
}
