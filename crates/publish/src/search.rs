//! Builds the search page: the text of every section as JSON, and one small script that searches
//! it.
//!
//! A page opened from disk cannot load another file, so the page contains the index. The data
//! contains no `<`, so no text can end its element. The content security policy names the hash of
//! this script. The script inserts results as text.

use pulldown_cmark::{Event, Options, Parser, Tag, TagEnd};
use quipu_text::Document;

use crate::Book;
use crate::links::Shelf;
use crate::markup::{encoded, is_unfit, relative};
use crate::page::{Sheet, sheet};
use crate::reference::{entries, plain};
use crate::words::words;

pub(crate) const SCRIPT: &str = include_str!("search.js");
/// The hash of `SCRIPT`. A test checks it.
pub(crate) const SCRIPT_HASH: &str = "sha256-ISNG3enHs7NHIKxjlxjmjuYL0x62uslLoYbmL4Jkv+M=";

pub(crate) fn page(book: &Book, shelf: &Shelf<'_>, here: &str) -> String {
    let said = words(book.language);
    let body = format!(
        "<h1>{0}</h1>\n<form role=\"search\"><input type=\"search\" id=\"query\" name=\"q\" aria-label=\"{0}\" autocomplete=\"off\"></form>\n\
         <noscript><p>{1}</p></noscript>\n<p id=\"count\" role=\"status\" data-found=\"{2}\" data-nothing=\"{3}\"></p>\n\
         <ol id=\"found\"></ol>\n<script type=\"application/json\" id=\"index\">{4}</script>\n<script>{SCRIPT}</script>\n",
        said.search,
        said.no_script,
        said.found,
        said.nothing,
        index(book, shelf, here),
    );
    sheet(
        book,
        &Sheet {
            here,
            title: said.search,
            class: "search",
            script: Some(SCRIPT_HASH),
        },
        &body,
    )
}

/// Returns every section and every term as JSON that is safe inside markup.
fn index(book: &Book, shelf: &Shelf<'_>, here: &str) -> String {
    let mut rows: Vec<[String; 4]> = Vec::new();
    for (at, volume) in shelf.volumes.iter().enumerate() {
        let page = encoded(&relative(here, &volume.chapter.page));
        for section in sections(shelf, at) {
            let anchor = section
                .id
                .map_or_else(String::new, |id| format!("#{}", encoded(id)));
            rows.push([
                format!("{page}{anchor}"),
                volume.title().to_owned(),
                section.title,
                section.text,
            ]);
        }
    }
    if let Some(glossary) = book.glossary_page() {
        let page = encoded(&relative(here, glossary));
        for entry in entries(book) {
            let address = format!("{page}#{}", encoded(&entry.id));
            rows.push([
                address,
                words(book.language).glossary.to_owned(),
                plain(entry.term),
                plain(entry.definition),
            ]);
        }
    }
    harmless(&serde_json::to_string(&rows).unwrap_or_else(|_| "[]".to_owned()))
}

/// Escapes every character of the JSON that markup or a script could interpret, and drops
/// characters that no page may contain. All of them are inside strings, so the escapes are valid
/// JSON.
fn harmless(json: &str) -> String {
    let mut out = String::with_capacity(json.len());
    for c in json.chars() {
        match c {
            '<' | '>' | '&' | '\u{2028}' | '\u{2029}' => {
                out.push_str(&format!("\\u{:04x}", c as u32))
            }
            c if is_unfit(c) => {}
            c => out.push(c),
        }
    }
    out
}

struct Found<'s> {
    id: Option<&'s str>,
    title: String,
    text: String,
}

/// Returns the sections of a chapter with their text as readers see it.
fn sections<'s>(shelf: &'s Shelf<'_>, at: usize) -> Vec<Found<'s>> {
    let text = shelf.as_markdown(at);
    let document = Document::parse(&text);
    let ids: Vec<(usize, &str)> = document
        .sections()
        .iter()
        .zip(&shelf.volumes[at].ids)
        .map(|(section, id)| (section.heading.start, id.as_str()))
        .collect();
    let mut found = vec![Found {
        id: None,
        title: String::new(),
        text: String::new(),
    }];
    let mut in_heading = false;
    for (event, range) in Parser::new_ext(
        &text,
        Options::ENABLE_TABLES | Options::ENABLE_STRIKETHROUGH,
    )
    .into_offset_iter()
    {
        let Some(last) = found.last_mut() else { break };
        match event {
            Event::Start(Tag::Heading { .. }) => {
                let id = ids
                    .iter()
                    .find(|(start, id)| *start == range.start && !id.is_empty())
                    .map(|(_, id)| *id);
                found.push(Found {
                    id,
                    title: String::new(),
                    text: String::new(),
                });
                in_heading = true;
            }
            Event::End(TagEnd::Heading(_)) => in_heading = false,
            Event::Text(text) | Event::Code(text) => {
                let to = if in_heading {
                    &mut last.title
                } else {
                    &mut last.text
                };
                to.push_str(&text);
            }
            Event::SoftBreak | Event::HardBreak | Event::End(_)
                if !in_heading && !last.text.ends_with([' ', '\n']) =>
            {
                last.text.push(' ')
            }
            _ => {}
        }
    }
    found.retain(|section| !section.title.is_empty() || !section.text.trim().is_empty());
    for section in &mut found {
        section.text = section
            .text
            .split_whitespace()
            .collect::<Vec<_>>()
            .join(" ");
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_text_leaves_its_block_of_data() {
        let json = serde_json::to_string(&[
            "</script><script>alert(1)</script>",
            "a\u{2028}b\u{2029}<!--",
            "\u{85}&amp;",
        ])
        .unwrap();
        let safe = harmless(&json);
        assert!(
            !safe.contains(['<', '>', '&', '\u{2028}', '\u{2029}', '\u{85}']),
            "{safe}"
        );
        assert_eq!(
            serde_json::from_str::<Vec<String>>(&safe).unwrap(),
            [
                "</script><script>alert(1)</script>",
                "a\u{2028}b\u{2029}<!--",
                "&amp;"
            ]
        );
    }
}
