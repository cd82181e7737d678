//! Writes the book as EPUB 3.
//!
//! The same book gives the same bytes. The modification date is fixed at 1980-01-01, the earliest
//! date that ZIP can represent. The identifier is derived from title, author and language, so a
//! reading app replaces the old edition of a book with the new one.

use std::fmt::Write as _;

use crate::Book;
use crate::body::{Edition, render};
use crate::image::Media;
use crate::links::Shelf;
use crate::markup::{Markup, encoded, escaped};
use crate::reference::{glossary, see_also};
use crate::words::words;
use crate::zip::Zip;

/// EPUB has a simpler stylesheet than the pages.
const STYLE: &str = include_str!("ebook.css");

const CONTAINER: &str = r#"<?xml version="1.0" encoding="UTF-8"?>
<container version="1.0" xmlns="urn:oasis:names:tc:opendocument:xmlns:container">
<rootfiles><rootfile full-path="EPUB/package.opf" media-type="application/oebps-package+xml"/></rootfiles>
</container>
"#;

/// Builds the EPUB archive.
pub(crate) fn bind(book: &Book, shelf: &Shelf<'_>, media: &Media<'_>) -> Vec<u8> {
    let mut zip = Zip::default();
    zip.store("mimetype", b"application/epub+zip");
    zip.deflate("META-INF/container.xml", CONTAINER.as_bytes());
    zip.deflate("EPUB/package.opf", package(book, media).as_bytes());
    zip.deflate("EPUB/nav.xhtml", contents(book, shelf).as_bytes());
    zip.deflate("EPUB/title.xhtml", title_page(book).as_bytes());
    zip.deflate("EPUB/style.css", STYLE.as_bytes());
    let folder = format!("{}/", book.places.media);
    let image = |place: &str| {
        format!(
            "media/{}",
            encoded(place.strip_prefix(&folder).unwrap_or(place))
        )
    };
    for (at, volume) in shelf.volumes.iter().enumerate() {
        let edition = Edition {
            markup: Markup::Xhtml,
            address: &file_of,
            image: &image,
            source: None,
            one_page: false,
        };
        let (text, _) = render(book, shelf, media, at, &edition);
        let also = see_also(book, shelf, at, &file_of);
        let main = format!("<main id=\"text\" epub:type=\"chapter\">\n{text}{also}</main>\n");
        zip.deflate(
            &format!("EPUB/{}", file_of(at)),
            document(book, volume.title(), "chapter", &main).as_bytes(),
        );
    }
    if !book.terms.is_empty() {
        let main = format!(
            "<main id=\"text\" epub:type=\"glossary\">\n{}</main>\n",
            glossary(book, shelf, &file_of)
        );
        zip.deflate(
            "EPUB/glossary.xhtml",
            document(book, words(book.language).glossary, "terms", &main).as_bytes(),
        );
    }
    for image in media.images.values() {
        zip.deflate(&format!("EPUB/media/{}", image.name), &image.bytes);
    }
    zip.finish()
}

fn file_of(at: usize) -> String {
    format!("chapter-{:03}.xhtml", at + 1)
}

fn package(book: &Book, media: &Media<'_>) -> String {
    let tag = words(book.language).tag;
    let mut out = format!(
        "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<package xmlns=\"http://www.idpf.org/2007/opf\" version=\"3.0\" \
         unique-identifier=\"id\" xml:lang=\"{tag}\">\n<metadata xmlns:dc=\"http://purl.org/dc/elements/1.1/\">\n\
         <dc:identifier id=\"id\">{}</dc:identifier>\n<dc:title>{}</dc:title>\n<dc:language>{tag}</dc:language>\n",
        identifier(book),
        escaped(&named(&book.title)),
    );
    if let Some(author) = &book.author {
        let _ = writeln!(out, "<dc:creator>{}</dc:creator>", escaped(author));
    }
    out.push_str("<meta property=\"dcterms:modified\">1980-01-01T00:00:00Z</meta>\n</metadata>\n<manifest>\n");
    out.push_str("<item id=\"nav\" href=\"nav.xhtml\" media-type=\"application/xhtml+xml\" properties=\"nav\"/>\n");
    out.push_str(
        "<item id=\"title\" href=\"title.xhtml\" media-type=\"application/xhtml+xml\"/>\n",
    );
    out.push_str("<item id=\"style\" href=\"style.css\" media-type=\"text/css\"/>\n");
    for at in 0..book.chapters.len() {
        let _ = writeln!(
            out,
            "<item id=\"c{}\" href=\"{}\" media-type=\"application/xhtml+xml\"/>",
            at + 1,
            file_of(at)
        );
    }
    if !book.terms.is_empty() {
        out.push_str("<item id=\"glossary\" href=\"glossary.xhtml\" media-type=\"application/xhtml+xml\"/>\n");
    }
    for (at, image) in media.images.values().enumerate() {
        let _ = writeln!(
            out,
            "<item id=\"i{}\" href=\"media/{}\" media-type=\"{}\"/>",
            at + 1,
            encoded(&image.name),
            image.kind
        );
    }
    out.push_str("</manifest>\n<spine>\n<itemref idref=\"title\"/>\n<itemref idref=\"nav\"/>\n");
    for at in 1..=book.chapters.len() {
        let _ = writeln!(out, "<itemref idref=\"c{at}\"/>");
    }
    if !book.terms.is_empty() {
        out.push_str("<itemref idref=\"glossary\"/>\n");
    }
    out.push_str("</spine>\n</package>\n");
    out
}

/// EPUB requires a title that is not empty.
fn named(title: &str) -> String {
    if escaped(title).trim().is_empty() {
        "—".into()
    } else {
        title.to_owned()
    }
}

/// Returns a version 8 UUID (custom format) derived from title, author and language.
fn identifier(book: &Book) -> String {
    let mut hasher = blake3::Hasher::new();
    for part in [
        book.title.as_str(),
        book.author.as_deref().unwrap_or_default(),
        book.language.as_str(),
    ] {
        hasher.update(part.as_bytes()).update(&[0]);
    }
    let hash = hasher.finalize();
    let mut bytes = [0; 16];
    bytes.copy_from_slice(&hash.as_bytes()[..16]);
    bytes[6] = bytes[6] & 0x0f | 0x80;
    bytes[8] = bytes[8] & 0x3f | 0x80;
    let hex: String = bytes.iter().map(|byte| format!("{byte:02x}")).collect();
    format!(
        "urn:uuid:{}-{}-{}-{}-{}",
        &hex[..8],
        &hex[8..12],
        &hex[12..16],
        &hex[16..20],
        &hex[20..]
    )
}

fn document(book: &Book, title: &str, class: &str, body: &str) -> String {
    let tag = words(book.language).tag;
    format!(
        "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<!DOCTYPE html>\n<html xmlns=\"http://www.w3.org/1999/xhtml\" \
         xmlns:epub=\"http://www.idpf.org/2007/ops\" lang=\"{tag}\" xml:lang=\"{tag}\">\n<head>\n<meta charset=\"utf-8\"/>\n<title>{}</title>\n\
         <link rel=\"stylesheet\" href=\"style.css\"/>\n</head>\n<body class=\"{class}\">\n{body}</body>\n</html>\n",
        escaped(&named(title)),
    )
}

fn title_page(book: &Book) -> String {
    let mut body = format!(
        "<section epub:type=\"titlepage\">\n<h1>{}</h1>\n",
        escaped(&book.title)
    );
    if let Some(author) = &book.author {
        let _ = writeln!(body, "<p class=\"author\">{}</p>", escaped(author));
    }
    body.push_str("</section>\n");
    document(book, &book.title, "cover", &body)
}

fn contents(book: &Book, shelf: &Shelf<'_>) -> String {
    let said = words(book.language);
    let mut body = format!(
        "<nav epub:type=\"toc\" id=\"toc\">\n<h1>{}</h1>\n<ol>\n",
        said.contents
    );
    for (at, volume) in shelf.volumes.iter().enumerate() {
        let _ = write!(
            body,
            "<li><a href=\"{}\">{}</a>",
            file_of(at),
            escaped(&named(volume.title()))
        );
        if volume.headings().next().is_some() {
            body.push_str("\n<ol>\n");
            for heading in volume.headings() {
                let _ = writeln!(
                    body,
                    "<li><a href=\"{}#{}\">{}</a></li>",
                    file_of(at),
                    encoded(heading.id),
                    escaped(&named(heading.title))
                );
            }
            body.push_str("</ol>\n");
        }
        body.push_str("</li>\n");
    }
    if !book.terms.is_empty() {
        let _ = writeln!(
            body,
            "<li><a href=\"glossary.xhtml\">{}</a></li>",
            said.glossary
        );
    }
    body.push_str("</ol>\n</nav>\n");
    document(book, said.contents, "cover", &body)
}
