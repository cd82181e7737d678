//! Renders the Markdown of a chapter as HTML (for pages) or XHTML (for EPUB).
//!
//! One renderer serves both formats. They differ in the syntax of empty elements and in the
//! addresses of links to chapters. Emphasis of Han text gets a class, so that the stylesheet can
//! avoid italics. A line break between two Han characters adds no space. A paragraph in the other
//! language gets a `lang` attribute.

use std::collections::HashMap;
use std::ops::Range;

use pulldown_cmark::{
    Alignment, BlockQuoteKind, CodeBlockKind, CowStr, Event, HeadingLevel, Options, Parser, Tag,
    TagEnd,
};
use quipu_contract::Language;
use quipu_text::{Document, parse_target};

use crate::code;
use crate::diagram::{self, language_of};
use crate::image::Media;
use crate::links::{Shelf, Target, candidates};
use crate::markup::{Markup, encoded, escape_into, escaped, is_cjk, letters};
use crate::place::{parse_address, parse_place};
use crate::source::{self, Cited};
use crate::words::{Words, words};
use crate::{Book, Remark};

/// Returns the address of a source file, or of a line in it, if that file is published.
pub(crate) type SourceLink<'e> = dyn Fn(&str, Option<usize>) -> Option<String> + 'e;

/// The differences between pages and EPUB.
pub(crate) struct Edition<'e> {
    pub markup: Markup,
    /// Returns the address of the chapter at an index.
    pub address: &'e dyn Fn(usize) -> String,
    /// Returns the address of an image from its published path.
    pub image: &'e dyn Fn(&str) -> String,
    /// Returns the address of a line of a source file. `None` if the edition publishes no source
    /// files.
    pub source: Option<&'e SourceLink<'e>>,
    /// Whether all chapters are on one page. Then every ID begins with its chapter.
    pub one_page: bool,
}

impl Edition<'_> {
    fn prefix(&self, at: usize) -> String {
        if self.one_page {
            id_prefix(at)
        } else {
            String::new()
        }
    }
}

/// Returns the beginning of the IDs of the chapter at `at` on a page with all chapters.
pub(crate) fn id_prefix(at: usize) -> String {
    format!("c{}-", at + 1)
}

/// Renders the chapter at `at`. Also returns remarks about content that could not be rendered.
pub(crate) fn render(
    book: &Book,
    shelf: &Shelf<'_>,
    media: &Media<'_>,
    at: usize,
    edition: &Edition<'_>,
) -> (String, Vec<Remark>) {
    let text = shelf.as_markdown(at);
    let document = Document::parse(&text);
    // Rewriting links never adds or removes a heading, so both texts have the same sections.
    let ids = document
        .sections()
        .iter()
        .zip(&shelf.volumes[at].ids)
        .map(|(section, id)| (section.heading.start, id.as_str()));
    let mut setter = Setter {
        book,
        shelf,
        media,
        at,
        edition,
        words: words(book.language),
        ids: ids.collect(),
        document: &document,
        out: String::with_capacity(text.len() * 2),
        opened: Vec::new(),
        links: Vec::new(),
        columns: Vec::new(),
        column: 0,
        in_head: false,
        code: None,
        code_start: 0,
        place_link: None,
        alt: None,
        notes: Vec::new(),
        note_numbers: HashMap::new(),
        outer: Vec::new(),
        remarks: Vec::new(),
    };
    setter.title();
    let options = Options::ENABLE_TABLES
        | Options::ENABLE_STRIKETHROUGH
        | Options::ENABLE_TASKLISTS
        | Options::ENABLE_FOOTNOTES
        | Options::ENABLE_GFM;
    let mut events = Parser::new_ext(&text, options)
        .into_offset_iter()
        .peekable();
    while let Some((event, range)) = events.next() {
        let soft = matches!(event, Event::SoftBreak);
        if soft {
            let next = match events.peek() {
                Some((Event::Text(text) | Event::Code(text), _)) => text.chars().next(),
                _ => None,
            };
            setter.soft_break(next);
        } else {
            setter.set(event, range);
        }
    }
    setter.finish()
}

struct Setter<'s> {
    book: &'s Book,
    shelf: &'s Shelf<'s>,
    media: &'s Media<'s>,
    at: usize,
    edition: &'s Edition<'s>,
    words: &'static Words,
    /// Heading IDs by the start offset of the heading.
    ids: HashMap<usize, &'s str>,
    document: &'s Document<'s>,
    out: String,
    /// Start offsets in `out` of elements that get their opening tag only once the content is
    /// known.
    opened: Vec<usize>,
    /// For each open link, whether it was rendered as a link.
    links: Vec<bool>,
    columns: Vec<Alignment>,
    column: usize,
    in_head: bool,
    /// The language and the text of the open code block.
    code: Option<(String, String)>,
    code_start: usize,
    /// The link target of the open paragraph, if the paragraph is a source location.
    place_link: Option<String>,
    /// The address and the alternative text of the open image.
    alt: Option<(String, String)>,
    /// The footnotes, by number.
    notes: Vec<Note>,
    note_numbers: HashMap<String, usize>,
    /// The output that was being written when a footnote definition began.
    outer: Vec<(String, usize)>,
    remarks: Vec<Remark>,
}

#[derive(Default)]
struct Note {
    markup: String,
    references: usize,
}

impl Setter<'_> {
    fn title(&mut self) {
        let volume = &self.shelf.volumes[self.at];
        if !volume.has_title() {
            self.out
                .push_str(&format!("<h1>{}</h1>\n", escaped(&volume.chapter.title)));
        }
    }

    fn remark(&mut self, start: usize, what: String) {
        let volume = &self.shelf.volumes[self.at];
        let line = volume.lines_before + self.document.lines().line(start);
        self.remarks.push(Remark {
            path: volume.chapter.path.clone(),
            line,
            what,
        });
    }

    fn set(&mut self, event: Event<'_>, range: Range<usize>) {
        let start = range.start;
        match event {
            Event::Start(Tag::Paragraph) => self.paragraph(range),
            Event::Start(tag) => self.start(tag, start),
            Event::End(tag) => self.end(tag),
            Event::Text(text) => self.text(&text),
            Event::Code(text) => match &mut self.alt {
                Some((_, alt)) => alt.push_str(&text),
                None => self.code_span(&text, start),
            },
            Event::Html(html) | Event::InlineHtml(html) => self.raw(&html, start),
            Event::SoftBreak => self.out.push('\n'),
            Event::HardBreak => self.line_break(),
            Event::Rule => self
                .out
                .push_str(&format!("<hr{}\n", self.edition.markup.void())),
            Event::FootnoteReference(name) => self.reference(&name),
            Event::TaskListMarker(done) => {
                let (sign, said) = if done {
                    ("☑", self.words.done)
                } else {
                    ("☐", self.words.open)
                };
                self.out.push_str(&format!(
                    "<span class=\"task\" role=\"img\" aria-label=\"{said}\">{sign}</span> "
                ));
            }
            Event::InlineMath(text) | Event::DisplayMath(text) => self.text(&text),
        }
    }

    fn text(&mut self, text: &str) {
        if let Some((_, code)) = &mut self.code {
            code.push_str(text);
        } else if let Some((_, alt)) = &mut self.alt {
            alt.push_str(text);
        } else {
            escape_into(&mut self.out, text);
        }
    }

    fn soft_break(&mut self, next: Option<char>) {
        if let Some((_, alt)) = &mut self.alt {
            alt.push(' ');
            return;
        }
        let joins = self.out.chars().next_back().is_some_and(is_cjk) && next.is_some_and(is_cjk);
        if !joins {
            self.out.push('\n');
        }
    }

    fn line_break(&mut self) {
        self.out
            .push_str(&format!("<br{}\n", self.edition.markup.void()));
    }

    /// Renders raw HTML: drops comments, keeps line breaks and shows everything else as text.
    fn raw(&mut self, html: &CowStr<'_>, start: usize) {
        let shown = without_comments(html);
        let trimmed = shown.trim();
        if trimmed.is_empty() {
            return;
        }
        if matches!(
            trimmed.to_ascii_lowercase().as_str(),
            "<br>" | "<br/>" | "<br />"
        ) {
            self.line_break();
            return;
        }
        self.remark(start, "raw HTML is shown as text".into());
        if let Some((_, alt)) = &mut self.alt {
            alt.push_str(&shown);
        } else {
            escape_into(&mut self.out, &shown);
        }
    }

    fn start(&mut self, tag: Tag<'_>, start: usize) {
        match tag {
            Tag::Heading { level, .. } => {
                let id =
                    self.ids.get(&start).filter(|id| !id.is_empty()).map(|id| {
                        format!(" id=\"{}{}\"", self.edition.prefix(self.at), escaped(id))
                    });
                self.out
                    .push_str(&format!("<{}{}>", tag_of(level), id.unwrap_or_default()));
            }
            Tag::BlockQuote(kind) => self.quote(kind),
            Tag::CodeBlock(kind) => {
                let info = match kind {
                    CodeBlockKind::Fenced(info) => info.into_string(),
                    CodeBlockKind::Indented => String::new(),
                };
                (self.code, self.code_start) = (Some((language_of(&info), String::new())), start);
            }
            // Show a block of HTML as a paragraph of text, if it holds anything but comments.
            Tag::HtmlBlock => {
                self.opened.push(self.out.len());
                self.out.push_str("<p class=\"raw\">");
            }
            Tag::List(Some(1)) => self.out.push_str("<ol>\n"),
            Tag::List(Some(first)) => self.out.push_str(&format!("<ol start=\"{first}\">\n")),
            Tag::List(None) => self.out.push_str("<ul>\n"),
            Tag::Item => self.out.push_str("<li>"),
            Tag::FootnoteDefinition(name) => {
                let number = self.number(&name);
                self.outer.push((std::mem::take(&mut self.out), number));
            }
            Tag::Table(columns) => {
                self.columns = columns;
                self.out.push_str(&format!(
                    "<div class=\"table\" role=\"region\" aria-label=\"{}\" tabindex=\"0\">\n<table>\n",
                    self.words.table
                ));
            }
            Tag::TableHead => {
                (self.in_head, self.column) = (true, 0);
                self.out.push_str("<thead>\n<tr>");
            }
            Tag::TableRow => {
                self.column = 0;
                self.out.push_str("<tr>");
            }
            Tag::TableCell => {
                let side = match self.columns.get(self.column) {
                    Some(Alignment::Right) => " class=\"right\"",
                    Some(Alignment::Center) => " class=\"centre\"",
                    _ => "",
                };
                self.column += 1;
                let (name, scope) = if self.in_head {
                    ("th", " scope=\"col\"")
                } else {
                    ("td", "")
                };
                self.out.push_str(&format!("<{name}{scope}{side}>"));
            }
            Tag::Emphasis => {
                self.opened.push(self.out.len());
                self.out.push_str("<em>");
            }
            Tag::Strong => self.out.push_str("<strong>"),
            Tag::Strikethrough => self.out.push_str("<del>"),
            Tag::Link { dest_url, .. } => self.link(&dest_url, start),
            Tag::Image { dest_url, .. } => {
                // A nested image becomes part of the outer image's alternative text.
                if self.alt.is_none() {
                    self.alt = Some((dest_url.into_string(), String::new()));
                }
                self.opened.push(start);
            }
            Tag::DefinitionList
            | Tag::DefinitionListTitle
            | Tag::DefinitionListDefinition
            | Tag::Superscript
            | Tag::Subscript
            | Tag::Paragraph
            | Tag::MetadataBlock(_) => {}
        }
    }

    /// Opens a paragraph. A paragraph that holds only a source location, as above a code block,
    /// becomes a link to it.
    fn paragraph(&mut self, range: Range<usize>) {
        self.opened.push(self.out.len());
        self.out.push_str("<p>");
        let written = self.document.slice(&range).trim();
        self.place_link = parse_place(written)
            .and_then(|(path, line)| self.cite(path, Some(line), written, range.start));
        if let Some(address) = &self.place_link {
            self.out
                .push_str(&format!("<a href=\"{}\">", escaped(address)));
        }
    }

    /// Renders inline code. A source location becomes a link.
    fn code_span(&mut self, text: &str, start: usize) {
        let free = !self.links.contains(&true) && self.place_link.is_none();
        let link = parse_place(text)
            .filter(|_| free)
            .and_then(|(path, line)| self.cite(path, Some(line), text, start));
        let mut code = "<code>".to_owned();
        escape_into(&mut code, text);
        code.push_str("</code>");
        match link {
            Some(address) => self.out.push_str(&format!(
                "<a class=\"place\" href=\"{}\">{code}</a>",
                escaped(&address)
            )),
            None => self.out.push_str(&code),
        }
    }

    /// Returns the address of a source location. If there is none, adds a remark with the reason.
    fn cite(
        &mut self,
        path: &str,
        line: Option<usize>,
        written: &str,
        start: usize,
    ) -> Option<String> {
        let source = self.edition.source?;
        self.book.places.sources.as_ref()?;
        let root = format!("{}/", self.book.source_root);
        match source::find(self.book, self.shelf, path, line) {
            Cited::File { path, line: found } => {
                if line.is_some() && found.is_none() {
                    self.remark(
                        start,
                        format!(
                            "`{written}` is past the end of `{path}`; the link points to the file"
                        ),
                    );
                }
                source(path, found)
            }
            Cited::Withheld(why) => {
                self.remark(
                    start,
                    format!("`{written}` is published without a link: {why}"),
                );
                None
            }
            // Only a path that starts with the source folder is certainly a location: `note:1` may
            // be anything.
            Cited::Unknown if path.starts_with(&root) => {
                self.remark(
                    start,
                    format!(
                        "`{written}` is published without a link: file `{path}` does not exist"
                    ),
                );
                None
            }
            Cited::Unknown => None,
        }
    }

    fn end(&mut self, tag: TagEnd) {
        match tag {
            TagEnd::Paragraph => {
                if self.place_link.take().is_some() {
                    self.out.push_str("</a>");
                }
                self.say_language();
                self.out.push_str("</p>\n");
            }
            TagEnd::Heading(level) => self.out.push_str(&format!("</{}>\n", tag_of(level))),
            TagEnd::BlockQuote(Some(_)) => self.out.push_str("</aside>\n"),
            TagEnd::BlockQuote(None) => self.out.push_str("</blockquote>\n"),
            TagEnd::CodeBlock => self.code_block(),
            TagEnd::HtmlBlock => {
                let from = self.opened.pop().unwrap_or_default();
                if self.out.ends_with("<p class=\"raw\">") {
                    self.out.truncate(from);
                } else {
                    self.out.truncate(self.out.trim_end().len());
                    self.out.push_str("</p>\n");
                }
            }
            TagEnd::List(true) => self.out.push_str("</ol>\n"),
            TagEnd::List(false) => self.out.push_str("</ul>\n"),
            TagEnd::Item => self.out.push_str("</li>\n"),
            TagEnd::FootnoteDefinition => {
                if let Some((outer, number)) = self.outer.pop() {
                    self.notes[number - 1].markup = std::mem::replace(&mut self.out, outer);
                }
            }
            TagEnd::Table => self.out.push_str("</tbody>\n</table>\n</div>\n"),
            TagEnd::TableHead => {
                self.in_head = false;
                self.out.push_str("</tr>\n</thead>\n<tbody>\n");
            }
            TagEnd::TableRow => self.out.push_str("</tr>\n"),
            TagEnd::TableCell => self
                .out
                .push_str(if self.in_head { "</th>" } else { "</td>" }),
            TagEnd::Emphasis => {
                let from = self.opened.pop().unwrap_or_default();
                if self.out[from..].chars().any(is_cjk) {
                    self.out
                        .replace_range(from..from + "<em>".len(), "<em class=\"cjk\">");
                }
                self.out.push_str("</em>");
            }
            TagEnd::Strong => self.out.push_str("</strong>"),
            TagEnd::Strikethrough => self.out.push_str("</del>"),
            TagEnd::Link => {
                if self.links.pop().unwrap_or_default() {
                    self.out.push_str("</a>");
                }
            }
            TagEnd::Image => self.image(),
            TagEnd::DefinitionList
            | TagEnd::DefinitionListTitle
            | TagEnd::DefinitionListDefinition
            | TagEnd::Superscript
            | TagEnd::Subscript
            | TagEnd::MetadataBlock(_) => {}
        }
    }

    fn quote(&mut self, kind: Option<BlockQuoteKind>) {
        let Some(kind) = kind else {
            self.out.push_str("<blockquote>\n");
            return;
        };
        let (at, class) = match kind {
            BlockQuoteKind::Note => (0, "note"),
            BlockQuoteKind::Tip => (1, "tip"),
            BlockQuoteKind::Important => (2, "important"),
            BlockQuoteKind::Warning => (3, "warning"),
            BlockQuoteKind::Caution => (4, "caution"),
        };
        self.out.push_str(&format!(
            "<aside class=\"{class}\">\n<p class=\"label\">{}</p>\n",
            self.words.alerts[at]
        ));
    }

    /// Sets `lang` on a paragraph that is entirely in the other language. Line breaking, fonts and
    /// screen readers depend on it.
    fn say_language(&mut self) {
        let from = self.opened.pop().unwrap_or_default();
        let (cjk, other) = letters(&without_tags(&self.out[from..]));
        let tag = match self.book.language {
            Language::En if cjk > other => "zh-Hans",
            Language::Zh if cjk == 0 && other > 12 => "en",
            _ => return,
        };
        self.out
            .replace_range(from..from + "<p>".len(), &format!("<p lang=\"{tag}\">"));
    }

    fn code_block(&mut self) {
        let Some((language, text)) = self.code.take() else {
            return;
        };
        if language == diagram::LANGUAGE {
            return self.diagram(&text);
        }
        self.code_element(&language, &text);
    }

    /// Renders a diagram: its image with the source in `<details>`, or the source with a caption.
    /// The page contains the diagram's text in both cases.
    fn diagram(&mut self, text: &str) {
        self.out.push_str(diagram::DIAGRAM);
        self.out.push('\n');
        let (name, source, void) = (
            self.words.diagram,
            self.words.diagram_source,
            self.edition.markup.void(),
        );
        if let Some(image) = self.media.drawing(text) {
            let place = escaped(&(self.edition.image)(&self.media.place(image)));
            self.out.push_str(&format!("<img src=\"{place}\" alt=\"{name}\"{void}\n<details>\n<summary>{source}</summary>\n"));
            self.code_element(diagram::LANGUAGE, text);
            self.out.push_str("</details>\n");
        } else {
            let why = match self.book.drawings.get(text) {
                Some(Err(why)) => why.clone(),
                Some(Ok(_)) => "the picture is not a PNG".to_owned(),
                None => "no renderer is configured ([agents.mermaid] in quipu.toml)".to_owned(),
            };
            self.remark(
                self.code_start,
                format!("the Mermaid diagram is published as code: {why}"),
            );
            self.code_element(diagram::LANGUAGE, text);
            self.out
                .push_str(&format!("<figcaption>{source}</figcaption>\n"));
        }
        self.out.push_str("</figure>\n");
    }

    fn code_element(&mut self, language: &str, text: &str) {
        let class = match language.is_empty() {
            true => String::new(),
            false => format!(" class=\"language-{}\"", escaped(language)),
        };
        self.out.push_str(&format!(
            "<pre role=\"region\" aria-label=\"{}\" tabindex=\"0\"><code{class}>",
            self.words.code
        ));
        code::colour(
            &mut self.out,
            language,
            text.strip_suffix('\n').unwrap_or(text),
        );
        self.out.push_str("</code></pre>\n");
    }

    fn link(&mut self, address: &str, start: usize) {
        // HTML allows no link inside a link, nor in an image's alternative text.
        let nested = self.alt.is_some() || self.links.contains(&true);
        let found = match self.shelf.resolve(self.at, address) {
            _ if nested => None,
            Target::Outside(address) => Some(address_of(&address)),
            Target::Chapter { at, id } => {
                if id.is_none() && parse_target(address).1.is_some() {
                    self.remark(
                        start,
                        format!(
                            "`{address}` does not match a section; the link points to the \
                            chapter"
                        ),
                    );
                }
                let page = if at == self.at || self.edition.one_page {
                    String::new()
                } else {
                    (self.edition.address)(at)
                };
                match id {
                    Some(id) => Some(format!("{page}#{}{}", self.edition.prefix(at), encoded(id))),
                    None if page.is_empty() => Some(format!("#{}text", self.edition.prefix(at))),
                    None => Some(page),
                }
            }
            Target::Nowhere => {
                let cited = self.cite_link(address, start);
                if cited.is_none() {
                    self.remark(
                        start,
                        format!(
                            "`{address}` does not point to a published page; it is published \
                             without a link"
                        ),
                    );
                }
                cited
            }
        };
        if let Some(address) = &found {
            self.out
                .push_str(&format!("<a href=\"{}\">", escaped(address)));
        }
        self.links.push(found.is_some());
    }

    /// Returns the address of a source file that a link points to.
    fn cite_link(&mut self, address: &str, start: usize) -> Option<String> {
        let (path, line) = parse_address(address)?;
        let chapter = self.shelf.volumes[self.at].chapter;
        let root = format!("{}/", self.book.source_root);
        let path = candidates(&chapter.path, &path)
            .into_iter()
            .find(|path| self.book.sources.contains_key(path) && path.starts_with(&root))?;
        self.cite(&path, line, address, start)
    }

    fn image(&mut self) {
        let start = self.opened.pop().unwrap_or_default();
        // This is the end of a nested image. Only the end of the outer one writes the element.
        if self.alt.is_some()
            && self
                .opened
                .last()
                .is_some_and(|outer| self.is_open_image(*outer, start))
        {
            return;
        }
        let Some((address, alt)) = self.alt.take() else {
            return;
        };
        let chapter = self.shelf.volumes[self.at].chapter;
        let path = parse_target(&address).0;
        match self.media.find(chapter, &path) {
            Some(image) => {
                let place = (self.edition.image)(&self.media.place(image));
                self.out.push_str(&format!(
                    "<img src=\"{}\" alt=\"{}\"{}",
                    escaped(&place),
                    escaped(&alt),
                    self.edition.markup.void()
                ));
            }
            None => {
                self.remark(
                    start,
                    format!(
                        "the image `{address}` does not exist (or is not PNG, JPEG, GIF, WebP \
                        or SVG); its description is published instead"
                    ),
                );
                self.out.push_str(&format!(
                    "<span class=\"missing\">[{}]</span>",
                    escaped(if alt.is_empty() { &address } else { &alt })
                ));
            }
        }
    }

    fn is_open_image(&self, outer: usize, inner: usize) -> bool {
        outer < inner && self.document.slice(&(outer..inner)).starts_with("![")
    }

    fn number(&mut self, name: &str) -> usize {
        let next = self.notes.len() + 1;
        let number = *self.note_numbers.entry(name.to_owned()).or_insert(next);
        if number == next {
            self.notes.push(Note::default());
        }
        number
    }

    fn reference(&mut self, name: &str) {
        let number = self.number(name);
        let note = &mut self.notes[number - 1];
        note.references += 1;
        let again = if note.references > 1 {
            format!("-{}", note.references)
        } else {
            String::new()
        };
        let prefix = self.edition.prefix(self.at);
        self.out.push_str(&format!("<sup><a id=\"{prefix}_ref{number}{again}\" href=\"#{prefix}_note{number}\" role=\"doc-noteref\">{number}</a></sup>"));
    }

    fn finish(mut self) -> (String, Vec<Remark>) {
        let prefix = self.edition.prefix(self.at);
        if !self.notes.is_empty() {
            self.out.push_str(&format!(
                "<section class=\"notes\" role=\"doc-endnotes\" aria-label=\"{}\">\n<ol>\n",
                self.words.notes
            ));
            for (at, note) in self.notes.iter().enumerate() {
                let number = at + 1;
                self.out.push_str(&format!(
                    "<li id=\"{prefix}_note{number}\">{}",
                    note.markup.trim_end()
                ));
                if note.references > 0 {
                    let back = self.words.back;
                    self.out.push_str(&format!(
                        "\n<p class=\"back\"><a href=\"#{prefix}_ref{number}\" role=\"doc-backlink\" aria-label=\"{back}\">↩</a></p>"
                    ));
                }
                self.out.push_str("</li>\n");
            }
            self.out.push_str("</ol>\n</section>\n");
        }
        (self.out, self.remarks)
    }
}

fn tag_of(level: HeadingLevel) -> &'static str {
    match level {
        HeadingLevel::H1 => "h1",
        HeadingLevel::H2 => "h2",
        HeadingLevel::H3 => "h3",
        HeadingLevel::H4 => "h4",
        HeadingLevel::H5 => "h5",
        HeadingLevel::H6 => "h6",
    }
}

/// Returns an external address that validators accept: percent-encodes invalid characters and
/// leaves existing escapes as they are.
fn address_of(address: &str) -> String {
    let mut out = String::with_capacity(address.len());
    for (at, c) in address.char_indices() {
        let escape = c == '%'
            && address
                .as_bytes()
                .get(at + 1..at + 3)
                .is_some_and(|pair| pair.iter().all(u8::is_ascii_hexdigit));
        match c {
            _ if escape => out.push(c),
            c if c.is_ascii_alphanumeric() || "-._~:/?#@!$&'()*+,;=".contains(c) => out.push(c),
            c => out.push_str(&encoded(c.encode_utf8(&mut [0; 4]))),
        }
    }
    out
}

/// Removes HTML comments. An unclosed comment extends to the end.
fn without_comments(html: &str) -> String {
    let mut out = String::with_capacity(html.len());
    let mut rest = html;
    while let Some((before, comment)) = rest.split_once("<!--") {
        out.push_str(before);
        rest = comment.split_once("-->").map_or("", |(_, after)| after);
    }
    out.push_str(rest);
    out
}

fn without_tags(markup: &str) -> String {
    let mut inside = false;
    markup
        .chars()
        .filter(|c| match c {
            '<' => {
                inside = true;
                false
            }
            '>' => !std::mem::take(&mut inside),
            _ => !inside,
        })
        .collect()
}
