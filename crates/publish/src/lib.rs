//! Turns final chapters into HTML pages and an EPUB.
//!
//! The crate is pure: it does no I/O and reads no clock, and the same input gives the same bytes.
//! It publishes the words of a chapter unchanged, except completion markers and comments, which it
//! drops. It does not trust text that agents wrote: it shows raw HTML as text, and no link can run
//! a script.
//!
//! Internal to Quipu: programs use `quipu-memory`.

#![cfg_attr(test, allow(clippy::unwrap_used))]

mod body;
mod code;
mod diagram;
mod epub;
mod html;
mod ids;
mod image;
mod languages;
mod links;
mod markup;
mod page;
mod place;
mod print;
mod reference;
mod script;
mod search;
mod shown;
mod source;
mod svg;
mod words;
mod zip;

use std::collections::BTreeMap;

use quipu_contract::Language;

pub use code::{TokenClass, code_tokens};
pub use diagram::{diagrams_of, drawing_name};
pub use image::images_of;
pub use markup::escaped;
pub use place::sources_of;
pub use script::{SCRIPT_HASHES, own_script};
pub use shown::{MissingText, find_missing_text};

use crate::image::Media;
use crate::links::Shelf;
use crate::markup::{encoded, relative};
use crate::page::Sheet;
use crate::words::words;

/// A book, ready to be rendered.
#[derive(Debug, Clone)]
pub struct Book {
    pub title: String,
    pub author: Option<String>,
    pub language: Language,
    pub chapters: Vec<Chapter>,
    /// Images by project path. An image that is missing here is replaced by its alternative text.
    pub images: BTreeMap<String, Vec<u8>>,
    /// Rendered Mermaid diagrams by source, or the reason why one could not be rendered.
    pub drawings: BTreeMap<String, Result<Vec<u8>, String>>,
    /// The current terms, in the order in which the book introduces them.
    pub terms: Vec<Term>,
    pub references: Vec<Reference>,
    /// The folder of the source code that the book is about.
    pub source_root: String,
    /// The source files that chapters cite, by project path.
    pub sources: BTreeMap<String, String>,
    /// The reasons why cited files are not in `sources`, by project path.
    pub withheld: BTreeMap<String, String>,
    pub places: Places,
}

impl Book {
    /// Returns the path of the glossary page, if there are any terms.
    pub(crate) fn glossary_page(&self) -> Option<&str> {
        self.places
            .glossary
            .as_deref()
            .filter(|_| !self.terms.is_empty())
    }
}

/// A term of the glossary.
#[derive(Debug, Clone)]
pub struct Term {
    pub term: String,
    pub definition: String,
    /// The chapter that defines it.
    pub chapter: String,
}

/// A row of the cross-reference table.
#[derive(Debug, Clone)]
pub struct Reference {
    pub from: String,
    pub to: String,
    pub about: String,
    /// The location of the row, for remarks.
    pub path: String,
    pub line: usize,
}

#[derive(Debug, Clone)]
pub struct Chapter {
    pub id: String,
    /// Its number among the units of the book.
    pub number: usize,
    /// The title if the text has no H1.
    pub title: String,
    /// The path of the text in the project. Relative links start from it.
    pub path: String,
    pub text: String,
    /// The path of its page.
    pub page: String,
}

/// The output paths of the whole book, relative to the project.
#[derive(Debug, Clone, Default)]
pub struct Places {
    pub contents: String,
    pub stylesheet: String,
    /// The folder of the images.
    pub media: String,
    pub ebook: Option<String>,
    pub glossary: Option<String>,
    pub search: Option<String>,
    /// The page with all chapters.
    pub print: Option<String>,
    /// The folder of the source pages.
    pub sources: Option<String>,
}

/// The generated files, and remarks.
#[derive(Debug, Clone, Default)]
pub struct Published {
    /// File contents by path.
    pub files: BTreeMap<String, Vec<u8>>,
    pub remarks: Vec<Remark>,
}

/// A part of a chapter that could not be rendered as intended.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct Remark {
    pub path: String,
    pub line: usize,
    pub what: String,
}

/// The completion marker at the end of a page.
pub const PAGE_MARKER: &str = "HTML_COMPLETE";

pub fn publish(book: &Book) -> Published {
    let shelf = Shelf::new(book);
    let media = Media::collect(book);
    let mut made = Published {
        remarks: media.remarks.clone(),
        ..Published::default()
    };
    for (at, chapter) in book.chapters.iter().enumerate() {
        let (page, remarks) = page::chapter(book, &shelf, &media, at);
        made.files.insert(chapter.page.clone(), page.into_bytes());
        made.remarks.extend(remarks);
    }
    made.files.insert(
        book.places.contents.clone(),
        page::contents(book, &shelf).into_bytes(),
    );
    made.files.insert(
        book.places.stylesheet.clone(),
        page::STYLE.as_bytes().to_vec(),
    );
    if let Some(here) = book.glossary_page() {
        let page_of = |at: usize| encoded(&relative(here, &book.chapters[at].page));
        let about = Sheet {
            here,
            title: words(book.language).glossary,
            class: "terms",
            script: None,
        };
        made.files.insert(
            here.to_owned(),
            page::sheet(book, &about, &reference::glossary(book, &shelf, &page_of)).into_bytes(),
        );
    }
    made.remarks.extend(reference::unresolved(book, &shelf));
    if let Some(here) = &book.places.search {
        made.files
            .insert(here.clone(), search::page(book, &shelf, here).into_bytes());
    }
    if let Some(here) = &book.places.print {
        made.files.insert(
            here.clone(),
            print::page(book, &shelf, &media, here).into_bytes(),
        );
    }
    for (path, text) in &book.sources {
        if let Some(here) = source::page_of(book, path) {
            let page = source::page(book, path, text, &here);
            made.files.insert(here, page.into_bytes());
        }
    }
    for (path, bytes) in media.files() {
        made.files.insert(path, bytes.to_vec());
    }
    if let Some(ebook) = &book.places.ebook {
        made.files
            .insert(ebook.clone(), epub::bind(book, &shelf, &media));
    }
    made.remarks.sort();
    made.remarks.dedup();
    made
}
