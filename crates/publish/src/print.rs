//! Builds the page with the whole book, for printing and for searching with the browser.
//!
//! Links between chapters stay on the page: every ID begins with its chapter.

use crate::Book;
use crate::body::{Edition, id_prefix, render};
use crate::image::Media;
use crate::links::Shelf;
use crate::markup::{Markup, encoded, escaped, relative};
use crate::page::{Sheet, number, numbering, sheet};
use crate::source;
use crate::words::words;

pub(crate) fn page(book: &Book, shelf: &Shelf<'_>, media: &Media<'_>, here: &str) -> String {
    let said = words(book.language);
    let mut body = format!("<h1>{}</h1>\n", escaped(&book.title));
    if let Some(author) = &book.author {
        body.push_str(&format!("<p class=\"author\">{}</p>\n", escaped(author)));
    }
    body.push_str(&format!(
        "<nav aria-label=\"{0}\">\n<h2>{0}</h2>\n<ol>\n",
        said.contents
    ));
    for (at, volume) in shelf.volumes.iter().enumerate() {
        body.push_str(&format!(
            "<li{}><a href=\"#{}text\">{}</a></li>\n",
            numbering(volume),
            id_prefix(at),
            escaped(volume.title())
        ));
    }
    body.push_str("</ol>\n</nav>\n");
    // All links to chapters stay on this page.
    let address = |_: usize| String::new();
    let image = |place: &str| encoded(&relative(here, place));
    let source = |path: &str, line: Option<usize>| source::address(book, here, path, line);
    let edition = Edition {
        markup: Markup::Html,
        address: &address,
        image: &image,
        source: Some(&source),
        one_page: true,
    };
    for (at, volume) in shelf.volumes.iter().enumerate() {
        let (text, _) = render(book, shelf, media, at, &edition);
        body.push_str(&format!(
            "<div class=\"chapter\" id=\"{}text\">\n{}<article>\n{text}</article>\n</div>\n",
            id_prefix(at),
            number(book, volume)
        ));
    }
    let about = Sheet {
        here,
        title: said.one_page,
        class: "print",
        script: None,
    };
    sheet(book, &about, &body)
}
