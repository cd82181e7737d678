//! Builds the pages: chapters with navigation, the contents page, and the frame that all pages
//! share.
//!
//! A page loads only the stylesheet and the images of the book. A content security policy names the
//! hashes of the publisher's scripts and forbids all others, so text from agents could not run even
//! if the escaping failed.

use quipu_text::render_marker;

use crate::body::{Edition, render};
use crate::image::Media;
use crate::links::{Shelf, Volume};
use crate::markup::{Markup, encoded, escaped, relative};
use crate::reference::see_also;
use crate::script::{self, own_script};
use crate::source;
use crate::words::words;
use crate::{Book, PAGE_MARKER, Remark};

/// The stylesheet of every page.
pub(crate) const STYLE: &str = include_str!("style.css");

/// A page other than a chapter.
pub(crate) struct Sheet<'s> {
    pub here: &'s str,
    pub title: &'s str,
    pub class: &'s str,
    /// The hash of a second script that may run, in the form of a content security policy.
    pub script: Option<&'s str>,
}

/// Builds the page of the chapter at `at`.
pub(crate) fn chapter(
    book: &Book,
    shelf: &Shelf<'_>,
    media: &Media<'_>,
    at: usize,
) -> (String, Vec<Remark>) {
    let said = words(book.language);
    let volume = &shelf.volumes[at];
    let here = volume.chapter.page.as_str();
    let to = |place: &str| encoded(&relative(here, place));
    let page_of = |at: usize| to(&book.chapters[at].page);
    let source = |path: &str, line: Option<usize>| source::address(book, here, path, line);
    let edition = Edition {
        markup: Markup::Html,
        address: &page_of,
        image: &to,
        source: Some(&source),
        one_page: false,
    };
    let (text, remarks) = render(book, shelf, media, at, &edition);

    let before = at.checked_sub(1);
    let after = Some(at + 1).filter(|next| *next < book.chapters.len());
    let contents = to(&book.places.contents);
    let mut out = head(
        book,
        &format!("{} · {}", volume.title(), book.title),
        here,
        None,
    );
    for (relation, neighbour) in [("prev", before), ("next", after)] {
        if let Some(neighbour) = neighbour {
            out.push_str(&format!(
                "<link rel=\"{relation}\" href=\"{}\">\n",
                escaped(&page_of(neighbour))
            ));
        }
    }
    out.push_str("</head>\n<body>\n");
    out.push_str(&top(book, here));
    out.push_str("<div class=\"sheet\">\n");
    if volume.headings().next().is_some() {
        out.push_str(&format!(
            "<nav class=\"inside\" aria-label=\"{0}\">\n<p>{0}</p>\n<ol>\n",
            said.in_chapter
        ));
        for heading in volume.headings() {
            out.push_str(&format!(
                "<li><a href=\"#{}\">{}</a></li>\n",
                encoded(heading.id),
                escaped(heading.title)
            ));
        }
        out.push_str("</ol>\n</nav>\n");
    }
    out.push_str("<main id=\"text\">\n");
    out.push_str(&number(book, volume));
    out.push_str("<article>\n");
    out.push_str(&text);
    out.push_str("</article>\n");
    out.push_str(&see_also(book, shelf, at, &page_of));
    out.push_str("</main>\n");
    out.push_str(&chapter_list(book, shelf, here));
    out.push_str("</div>\n");
    out.push_str(&format!(
        "<nav class=\"turn\" aria-label=\"{}\">\n",
        said.chapters
    ));
    let step = |class: &str, label: &str, neighbour: Option<usize>| match neighbour {
        Some(neighbour) => {
            let title = escaped(shelf.volumes[neighbour].title());
            format!(
                "<a class=\"{class}\" rel=\"{class}\" href=\"{}\"><span>{label}</span> {title}</a>\n",
                escaped(&page_of(neighbour))
            )
        }
        None => String::new(),
    };
    out.push_str(&step("prev", said.previous, before));
    out.push_str(&format!(
        "<a class=\"up\" href=\"{}\">{}</a>\n",
        escaped(&contents),
        said.contents
    ));
    out.push_str(&step("next", said.next, after));
    out.push_str("</nav>\n");
    (tail(out), remarks)
}

pub(crate) fn contents(book: &Book, shelf: &Shelf<'_>) -> String {
    let said = words(book.language);
    let here = book.places.contents.as_str();
    let to = |place: &str| escaped(&encoded(&relative(here, place)));
    let mut out = head(book, &book.title, here, None);
    out.push_str("</head>\n<body class=\"cover\">\n<main id=\"text\">\n");
    out.push_str(&format!("<h1>{}</h1>\n", escaped(&book.title)));
    if let Some(author) = &book.author {
        out.push_str(&format!("<p class=\"author\">{}</p>\n", escaped(author)));
    }
    out.push_str(&search_box(book, here));
    out.push_str(&format!(
        "<nav aria-label=\"{0}\">\n<h2>{0}</h2>\n<ol>\n",
        said.contents
    ));
    for volume in &shelf.volumes {
        let page = to(&volume.chapter.page);
        out.push_str(&format!(
            "<li{}><a href=\"{page}\">{}</a>",
            numbering(volume),
            escaped(volume.title())
        ));
        if volume.headings().next().is_some() {
            out.push_str("\n<ul>\n");
            for heading in volume.headings() {
                out.push_str(&format!(
                    "<li><a href=\"{page}#{}\">{}</a></li>\n",
                    encoded(heading.id),
                    escaped(heading.title)
                ));
            }
            out.push_str("</ul>\n");
        }
        out.push_str("</li>\n");
    }
    out.push_str("</ol>\n</nav>\n");
    out.push_str(&others(book, here));
    out.push_str("</main>\n");
    tail(out)
}

/// Returns the list of the parts of the book that are no chapters.
fn others(book: &Book, here: &str) -> String {
    let said = words(book.language);
    let parts = [
        (book.glossary_page(), said.glossary),
        (book.places.print.as_deref(), said.one_page),
        (book.places.ebook.as_deref(), said.ebook),
    ];
    let items: String = parts
        .iter()
        .filter_map(|(place, title)| {
            let address = escaped(&encoded(&relative(here, (*place)?)));
            Some(format!("<li><a href=\"{address}\">{title}</a></li>\n"))
        })
        .collect();
    match items.is_empty() {
        true => items,
        false => format!("<ul class=\"others\">\n{items}</ul>\n"),
    }
}

/// Returns the list of all chapters that is shown beside each of them on wide screens.
fn chapter_list(book: &Book, shelf: &Shelf<'_>, here: &str) -> String {
    let said = words(book.language);
    let to = |place: &str| escaped(&encoded(&relative(here, place)));
    let mut out = format!(
        "<nav class=\"book\" aria-label=\"{0}\">\n<p>{0}</p>\n<ol>\n",
        said.contents
    );
    for volume in &shelf.volumes {
        let current = match volume.chapter.page == here {
            true => " aria-current=\"page\"",
            false => "",
        };
        out.push_str(&format!(
            "<li{}><a href=\"{}\"{current}>{}</a></li>\n",
            numbering(volume),
            to(&volume.chapter.page),
            escaped(volume.title())
        ));
    }
    out.push_str("</ol>\n");
    out.push_str(&others(book, here));
    out.push_str("</nav>\n");
    out
}

/// Returns the line with the chapter's number. It is empty if the title begins with a number.
pub(crate) fn number(book: &Book, volume: &Volume<'_>) -> String {
    if volume.is_numbered() {
        return String::new();
    }
    let number = volume.chapter.number.to_string();
    format!(
        "<p class=\"number\">{}</p>\n",
        words(book.language).chapter.replace('#', &number)
    )
}

/// Returns the attribute of a chapter's item in a numbered list.
pub(crate) fn numbering(volume: &Volume<'_>) -> String {
    match volume.is_numbered() {
        true => " class=\"own\"".to_owned(),
        false => format!(" value=\"{}\"", volume.chapter.number),
    }
}

/// Builds a page with the book's frame around the body.
pub(crate) fn sheet(book: &Book, about: &Sheet<'_>, body: &str) -> String {
    let mut out = head(
        book,
        &format!("{} · {}", about.title, book.title),
        about.here,
        about.script,
    );
    out.push_str(&format!("</head>\n<body class=\"{}\">\n", about.class));
    out.push_str(&top(book, about.here));
    out.push_str(&format!(
        "<div class=\"sheet\">\n<main id=\"text\">\n{body}</main>\n</div>\n"
    ));
    tail(out)
}

/// Returns the header of every page except the contents page.
fn top(book: &Book, here: &str) -> String {
    let contents = escaped(&encoded(&relative(here, &book.places.contents)));
    let mut out = format!(
        "<a class=\"skip\" href=\"#text\">{}</a>\n",
        words(book.language).skip
    );
    out.push_str(&format!(
        "<header><a href=\"{contents}\">{}</a>",
        escaped(&book.title)
    ));
    if book.places.search.as_deref() != Some(here) {
        out.push_str(&search_box(book, here));
    }
    out.push_str("</header>\n");
    out
}

/// Returns a form that opens the search page. It works without a script.
pub(crate) fn search_box(book: &Book, here: &str) -> String {
    let Some(search) = &book.places.search else {
        return String::new();
    };
    let label = words(book.language).search;
    let address = escaped(&encoded(&relative(here, search)));
    format!(
        "\n<form role=\"search\" action=\"{address}\"><input type=\"search\" name=\"q\" aria-label=\"{label}\" autocomplete=\"off\"> \
         <button>{label}</button></form>\n"
    )
}

fn head(book: &Book, title: &str, here: &str, script: Option<&str>) -> String {
    let stylesheet = encoded(&relative(here, &book.places.stylesheet));
    let mut out = format!(
        "<!doctype html>\n<html lang=\"{}\">\n<head>\n<meta charset=\"utf-8\">\n",
        words(book.language).tag
    );
    let second = script.map_or_else(String::new, |hash| format!(" '{hash}'"));
    let scripts = format!("'{}'{second}", script::HASH);
    out.push_str(&format!(
        "<meta http-equiv=\"Content-Security-Policy\" content=\"script-src {scripts}; connect-src 'none'; object-src 'none'; \
         frame-src 'none'; base-uri 'none'\">\n"
    ));
    out.push_str("<meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n");
    out.push_str("<meta name=\"color-scheme\" content=\"light dark\">\n");
    out.push_str(&format!("<title>{}</title>\n", escaped(title)));
    if let Some(author) = &book.author {
        out.push_str(&format!(
            "<meta name=\"author\" content=\"{}\">\n",
            escaped(author)
        ));
    }
    out.push_str(&format!(
        "<link rel=\"stylesheet\" href=\"{}\">\n",
        escaped(&stylesheet)
    ));
    out.push_str(&own_script(book.language));
    out
}

fn tail(mut out: String) -> String {
    out.push_str("</body>\n</html>\n");
    out.push_str(&render_marker(PAGE_MARKER));
    out.push('\n');
    out
}
