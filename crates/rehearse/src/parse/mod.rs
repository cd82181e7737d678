//! Finds the types and functions of Rust, Python, JavaScript and TypeScript files.
//!
//! The scanner of the publisher splits a file into tokens; a few rules for each language recognise
//! declarations among them. A broken file yields the items that can be recognised. The rules enter
//! only containers (modules, impls, classes) to a fixed depth, so hostile nesting costs nothing.

mod python;
mod rust;
mod script;
#[cfg(test)]
mod tests;
mod tokens;

use self::tokens::Tokens;
use crate::source::{Item, Module, SourceLanguage};

/// The maximum depth of containers.
const DEPTH: usize = 8;

pub(crate) fn module(path: &str, language: SourceLanguage, text: &str) -> Module {
    let tokens = Tokens::new(language.name(), text);
    let mut items: Vec<Item> = Vec::new();
    match language {
        SourceLanguage::Rust => rust::find_items(&tokens, &mut items),
        SourceLanguage::Python => python::find_items(&tokens, &mut items),
        SourceLanguage::Script => script::find_items(&tokens, &mut items),
    }
    Module {
        path: path.into(),
        language,
        doc: opening(language, text),
        items,
        lines: text.lines().count(),
        broken: tokens.broken,
        cut: false,
        focus: false,
    }
}

/// Returns the comment at the start of a file.
fn opening(language: SourceLanguage, text: &str) -> String {
    let text = text.trim_start_matches('\u{feff}').trim_start();
    match language {
        SourceLanguage::Rust => joined(
            text.lines()
                .map_while(|line| line.trim().strip_prefix("//!")),
        ),
        SourceLanguage::Python => {
            let text = text
                .lines()
                .skip_while(|line| line.starts_with('#'))
                .collect::<Vec<_>>()
                .join("\n");
            let text = text.trim_start();
            let mark = ["\"\"\"", "'''"]
                .into_iter()
                .find(|mark| text.starts_with(mark));
            let inner = mark.and_then(|mark| text[3..].split_once(mark));
            inner
                .map(|(doc, _)| joined(doc.lines()))
                .unwrap_or_default()
        }
        SourceLanguage::Script => match text
            .strip_prefix("/**")
            .and_then(|rest| rest.split_once("*/"))
        {
            // A comment right above a declaration belongs to that declaration.
            Some((doc, after))
                if after.starts_with("\n\n") || after.trim_start().starts_with("import") =>
            {
                block_text(&format!("/**{doc}*/"))
            }
            _ => joined(
                text.lines()
                    .map_while(|line| line.trim().strip_prefix("//")),
            ),
        },
    }
}

fn block_text(comment: &str) -> String {
    let inner = comment.trim_start_matches("/**").trim_end_matches("*/");
    joined(
        inner
            .lines()
            .map(|line| line.trim().trim_start_matches('*')),
    )
}

fn unquoted(string: &str) -> &str {
    let string = string.trim_start_matches(['r', 'R', 'u', 'U', 'b', 'B', 'f', 'F']);
    string.trim_matches(['"', '\''])
}

/// Joins lines with single spaces.
pub(crate) fn joined<'l>(lines: impl Iterator<Item = &'l str>) -> String {
    lines
        .flat_map(str::split_whitespace)
        .collect::<Vec<_>>()
        .join(" ")
}

pub(crate) fn shortened(text: &str, most: usize) -> String {
    match text.char_indices().nth(most) {
        Some((at, _)) => format!("{}…", &text[..at]),
        None => text.to_owned(),
    }
}
