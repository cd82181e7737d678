//! Builds a page for each source file that chapters cite, with an anchor for each line.
//!
//! Only files in `Book::sources` get a page. `place` parses the locations and `code` highlights.

use crate::Book;
use crate::code::colour;
use crate::links::Shelf;
use crate::markup::{encoded, escaped, relative};
use crate::page::{Sheet, sheet};
use crate::place::below_root;
use crate::words::words;

/// Returns the path of a source file's page.
pub(crate) fn page_of(book: &Book, path: &str) -> Option<String> {
    let folder = book.places.sources.as_ref()?;
    let below = path.strip_prefix(&book.source_root)?.strip_prefix('/')?;
    book.sources
        .contains_key(path)
        .then(|| format!("{folder}/{below}.html"))
}

/// The result of looking up a cited file.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Cited<'b> {
    /// The published file, and the line if the file has that many.
    File { path: &'b str, line: Option<usize> },
    /// The reason why the file is not published.
    Withheld(String),
    /// No such file below the source folder.
    Unknown,
}

/// Finds the file that a path refers to.
pub(crate) fn find<'b>(
    book: &'b Book,
    shelf: &Shelf<'_>,
    path: &str,
    line: Option<usize>,
) -> Cited<'b> {
    let paths = below_root(&book.source_root, path);
    if let Some((path, _)) = paths
        .iter()
        .find_map(|path| book.sources.get_key_value(path))
    {
        let lines = shelf
            .source_lines
            .get(path.as_str())
            .copied()
            .unwrap_or_default();
        return Cited::File {
            path,
            line: line.filter(|line| *line <= lines),
        };
    }
    match paths.iter().find_map(|path| book.withheld.get(path)) {
        Some(why) => Cited::Withheld(why.clone()),
        None => Cited::Unknown,
    }
}

/// Builds the page of a source file. Each line has a number and an anchor.
pub(crate) fn page(book: &Book, path: &str, text: &str, here: &str) -> String {
    let said = words(book.language);
    let language = path
        .rsplit('/')
        .next()
        .and_then(|name| name.rsplit_once('.'))
        .map_or("", |(_, ending)| ending);
    let mut coloured = String::with_capacity(text.len() * 2);
    colour(
        &mut coloured,
        &language.to_ascii_lowercase(),
        text.strip_suffix('\n').unwrap_or(text),
    );
    let mut body = format!("<h1 class=\"path\">{}</h1>\n", escaped(path));
    body.push_str(&format!(
        "<pre class=\"source\" role=\"region\" aria-label=\"{}\" tabindex=\"0\"><code>",
        said.code
    ));
    let mut open: Option<String> = None;
    for (at, line) in coloured.split('\n').enumerate() {
        let number = at + 1;
        let before = open.as_deref().unwrap_or_default().to_owned();
        open = open_span(line, open);
        let after = if open.is_some() { "</span>" } else { "" };
        body.push_str(&format!("<span class=\"line\" id=\"L{number}\"><a href=\"#L{number}\">{number}</a>{before}{line}{after}</span>\n"));
    }
    body.push_str("</code></pre>\n");
    sheet(
        book,
        &Sheet {
            here,
            title: path,
            class: "wide",
            script: None,
        },
        &body,
    )
}

/// Returns the tag of the span that is open at the end of a line. Spans do not nest, because
/// `colour` writes none inside another.
fn open_span(line: &str, open: Option<String>) -> Option<String> {
    let last_open = line.rfind("<span");
    let last_close = line.rfind("</span>");
    match (last_open, last_close) {
        (Some(from), close) if close.is_none_or(|close| close < from) => {
            let end = line[from..]
                .find('>')
                .map_or(line.len(), |end| from + end + 1);
            Some(line[from..end].to_owned())
        }
        (_, Some(_)) => None,
        _ => open,
    }
}

/// Returns the address of a line of a source file, relative to a page.
pub(crate) fn address(book: &Book, here: &str, path: &str, line: Option<usize>) -> Option<String> {
    let page = page_of(book, path)?;
    let anchor = line.map_or_else(String::new, |line| format!("#L{line}"));
    Some(format!("{}{anchor}", encoded(&relative(here, &page))))
}
