//! Pages: a chapter with its way forward and back, and the contents of the book.
//!
//! They need no script, nothing from elsewhere and no other file than the stylesheet and the images.

use quipu_text::render_marker;

use crate::body::{Edition, render};
use crate::image::Media;
use crate::links::Shelf;
use crate::markup::{Markup, encoded, escaped, relative};
use crate::words::words;
use crate::{Book, PAGE_MARKER, Remark};

/// The stylesheet of every page.
pub(crate) const STYLE: &str = include_str!("style.css");

/// The page of the chapter at `at`.
pub(crate) fn chapter(book: &Book, shelf: &Shelf<'_>, media: &Media<'_>, at: usize) -> (String, Vec<Remark>) {
    let said = words(book.language);
    let volume = &shelf.volumes[at];
    let here = volume.chapter.page.as_str();
    let to = |place: &str| encoded(&relative(here, place));
    let page_of = |at: usize| to(&book.chapters[at].page);
    let (text, remarks) = render(book, shelf, media, at, &Edition { markup: Markup::Html, address: &page_of, image: &to });

    let before = at.checked_sub(1);
    let after = Some(at + 1).filter(|next| *next < book.chapters.len());
    let contents = to(&book.places.contents);
    let mut out = head(book, &format!("{} · {}", volume.title(), book.title), &to(&book.places.stylesheet));
    for (relation, neighbour) in [("prev", before), ("next", after)] {
        if let Some(neighbour) = neighbour {
            out.push_str(&format!("<link rel=\"{relation}\" href=\"{}\">\n", escaped(&page_of(neighbour))));
        }
    }
    out.push_str("</head>\n<body>\n");
    out.push_str(&format!("<a class=\"skip\" href=\"#text\">{}</a>\n", said.skip));
    out.push_str(&format!("<header><a href=\"{}\">{}</a></header>\n", escaped(&contents), escaped(&book.title)));
    out.push_str("<div class=\"sheet\">\n");
    if volume.headings().next().is_some() {
        out.push_str(&format!("<nav class=\"inside\" aria-label=\"{0}\">\n<p>{0}</p>\n<ol>\n", said.in_chapter));
        for heading in volume.headings() {
            out.push_str(&format!("<li><a href=\"#{}\">{}</a></li>\n", encoded(heading.id), escaped(heading.title)));
        }
        out.push_str("</ol>\n</nav>\n");
    }
    out.push_str("<main id=\"text\">\n<article>\n");
    out.push_str(&text);
    out.push_str("</article>\n</main>\n</div>\n");
    out.push_str(&format!("<nav class=\"turn\" aria-label=\"{}\">\n", said.chapters));
    let step = |class: &str, label: &str, neighbour: Option<usize>| match neighbour {
        Some(neighbour) => {
            let title = escaped(shelf.volumes[neighbour].title());
            format!("<a class=\"{class}\" rel=\"{class}\" href=\"{}\"><span>{label}</span> {title}</a>\n", escaped(&page_of(neighbour)))
        }
        None => String::new(),
    };
    out.push_str(&step("prev", said.previous, before));
    out.push_str(&format!("<a class=\"up\" href=\"{}\">{}</a>\n", escaped(&contents), said.contents));
    out.push_str(&step("next", said.next, after));
    out.push_str("</nav>\n");
    (tail(out), remarks)
}

/// The contents of the book, as a page.
pub(crate) fn contents(book: &Book, shelf: &Shelf<'_>) -> String {
    let said = words(book.language);
    let here = book.places.contents.as_str();
    let to = |place: &str| escaped(&encoded(&relative(here, place)));
    let mut out = head(book, &book.title, &to(&book.places.stylesheet));
    out.push_str("</head>\n<body class=\"cover\">\n<main id=\"text\">\n");
    out.push_str(&format!("<h1>{}</h1>\n", escaped(&book.title)));
    if let Some(author) = &book.author {
        out.push_str(&format!("<p class=\"author\">{}</p>\n", escaped(author)));
    }
    out.push_str(&format!("<nav aria-label=\"{0}\">\n<h2>{0}</h2>\n<ol>\n", said.contents));
    for volume in &shelf.volumes {
        let page = to(&volume.chapter.page);
        out.push_str(&format!("<li><a href=\"{page}\">{}</a>", escaped(volume.title())));
        if volume.headings().next().is_some() {
            out.push_str("\n<ul>\n");
            for heading in volume.headings() {
                out.push_str(&format!("<li><a href=\"{page}#{}\">{}</a></li>\n", encoded(heading.id), escaped(heading.title)));
            }
            out.push_str("</ul>\n");
        }
        out.push_str("</li>\n");
    }
    out.push_str("</ol>\n</nav>\n");
    if let Some(ebook) = &book.places.ebook {
        out.push_str(&format!("<p class=\"ebook\"><a href=\"{}\">{}</a></p>\n", to(ebook), said.ebook));
    }
    out.push_str("</main>\n");
    tail(out)
}

fn head(book: &Book, title: &str, stylesheet: &str) -> String {
    let mut out = format!("<!doctype html>\n<html lang=\"{}\">\n<head>\n<meta charset=\"utf-8\">\n", words(book.language).tag);
    out.push_str("<meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n");
    out.push_str("<meta name=\"color-scheme\" content=\"light dark\">\n");
    out.push_str(&format!("<title>{}</title>\n", escaped(title)));
    if let Some(author) = &book.author {
        out.push_str(&format!("<meta name=\"author\" content=\"{}\">\n", escaped(author)));
    }
    out.push_str(&format!("<link rel=\"stylesheet\" href=\"{}\">\n", escaped(stylesheet)));
    out
}

fn tail(mut out: String) -> String {
    out.push_str("</body>\n</html>\n");
    out.push_str(&render_marker(PAGE_MARKER));
    out.push('\n');
    out
}
