//! Finds the Mermaid diagrams of a chapter and names their image files.
//!
//! This module draws nothing. Images are PNG files, because Mermaid's SVG relies on HTML labels and
//! on style rules that `svg` removes.

use pulldown_cmark::{CodeBlockKind, Event, Options, Parser, Tag, TagEnd};

use crate::Chapter;

/// The info string of a fenced block that holds a diagram.
pub(crate) const LANGUAGE: &str = "mermaid";

/// The opening tag of a diagram on a published page.
pub(crate) const DIAGRAM: &str = "<figure class=\"diagram\">";

/// Returns the language named in the info string of a fenced block.
pub(crate) fn language_of(info: &str) -> String {
    info.split([' ', ',', '{', '\t'])
        .next()
        .unwrap_or_default()
        .to_ascii_lowercase()
}

/// Returns the sources of a chapter's diagrams.
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

/// Returns the file name of a diagram's image. It contains a hash of the source.
pub fn drawing_name(diagram: &str) -> String {
    format!(
        "mermaid-{}.png",
        &blake3::hash(diagram.as_bytes()).to_hex()[..16]
    )
}
