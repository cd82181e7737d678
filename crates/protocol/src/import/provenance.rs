//! Records the provenance of an imported note in two keys of its front matter.

use quipu_text::{Document, Syntax};
use serde_json::json;

/// Adds the provenance to a text. All bytes of the text stay; the keys are added to the end of the
/// front matter, or a new front matter is created.
pub(super) fn with_provenance(text: &str, from: &str, hash: &str) -> String {
    let yaml = format!(
        "imported_from: {}\nimported_hash: \"{hash}\"\n",
        json!(from)
    );
    match Document::parse(text).front_matter() {
        Some(front) => {
            let lines = match front.syntax {
                Syntax::Yaml => yaml,
                Syntax::Toml => format!(
                    "imported_from = {}\nimported_hash = \"{hash}\"\n",
                    json!(from)
                ),
            };
            let at = front.content.end;
            format!("{}{lines}{}", &text[..at], &text[at..])
        }
        None => {
            let start = if text.starts_with('\u{feff}') {
                '\u{feff}'.len_utf8()
            } else {
                0
            };
            format!("{}---\n{yaml}---\n\n{}", &text[..start], &text[start..])
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_byte_stays() {
        for text in [
            "# A\n",
            "---\ntitle: A\n---\n# A",
            "+++\na = 1\n+++\nx\n",
            "\u{feff}# A\n",
            "---\n\nno front matter\n",
            "",
        ] {
            let with = with_provenance(text, "markdown: a \"b\".md", "00ff");
            let document = Document::parse(&with);
            let front = document.front_matter().unwrap().value.as_ref().unwrap();
            assert_eq!(front["imported_from"], "markdown: a \"b\".md");
            assert_eq!(front["imported_hash"], "00ff");
            let without = with.replace(
                "imported_from: \"markdown: a \\\"b\\\".md\"\nimported_hash: \"00ff\"\n",
                "",
            );
            let without = without.replace(
                "imported_from = \"markdown: a \\\"b\\\".md\"\nimported_hash = \"00ff\"\n",
                "",
            );
            assert_eq!(without.replacen("---\n---\n\n", "", 1), text);
        }
    }
}
