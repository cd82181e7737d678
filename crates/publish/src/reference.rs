//! Renders the glossary and the lists of cross-references between chapters.
//!
//! Both come from memory files. Each cell is rendered as one line of Markdown.

use pulldown_cmark::{Event, Parser, Tag, TagEnd};

use crate::ids::Names;
use crate::links::Shelf;
use crate::markup::{encoded, escape_into, escaped, is_cjk};
use crate::words::words;
use crate::{Book, Reference, Remark};

/// Renders the chapters that a chapter refers to and those that refer to it. Returns an empty
/// string if there are none.
pub(crate) fn see_also(
    book: &Book,
    shelf: &Shelf<'_>,
    at: usize,
    address: &dyn Fn(usize) -> String,
) -> String {
    let said = words(book.language);
    let (mut to, mut from) = (Vec::new(), Vec::new());
    for reference in &book.references {
        let (Some(source), Some(target)) =
            (shelf.named(&reference.from), shelf.named(&reference.to))
        else {
            continue;
        };
        let (list, other) = match (source.0 == at, target.0 == at) {
            (true, false) => (&mut to, target),
            (false, true) => (&mut from, source),
            _ => continue,
        };
        let anchor = other
            .1
            .map_or_else(String::new, |id| format!("#{}", encoded(id)));
        let link = format!(
            "<a href=\"{}{anchor}\">{}</a>",
            escaped(&address(other.0)),
            escaped(shelf.volumes[other.0].title())
        );
        let about = inline(&reference.about);
        let entry = if about.is_empty() {
            link
        } else {
            format!("{link}{}{about}", said.colon)
        };
        if !list.contains(&entry) {
            list.push(entry);
        }
    }
    let mut out = String::new();
    for (title, entries) in [(said.see_also, to), (said.referred, from)] {
        if !entries.is_empty() {
            out.push_str(&format!(
                "<section class=\"see\">\n<h2>{title}</h2>\n<ul>\n"
            ));
            entries
                .iter()
                .for_each(|entry| out.push_str(&format!("<li>{entry}</li>\n")));
            out.push_str("</ul>\n</section>\n");
        }
    }
    out
}

/// Returns remarks about references to chapters that are not published.
pub(crate) fn unresolved(book: &Book, shelf: &Shelf<'_>) -> Vec<Remark> {
    let missing = |reference: &Reference| {
        let ends = [&reference.from, &reference.to];
        ends.into_iter()
            .find(|end| shelf.named(end).is_none())
            .cloned()
    };
    let remark = |reference: &Reference| {
        let what = format!(
            "`{}` is not a published chapter; this cross-reference is left out",
            missing(reference)?
        );
        Some(Remark {
            path: reference.path.clone(),
            line: reference.line,
            what,
        })
    };
    book.references.iter().filter_map(remark).collect()
}

/// A term of the glossary with the ID of its entry.
pub(crate) struct Entry<'b> {
    pub id: String,
    pub term: &'b str,
    pub definition: &'b str,
    chapter: &'b str,
}

/// Returns the terms in glossary order: alphabetical first, then terms in Han characters in the
/// order in which the book introduces them.
pub(crate) fn entries(book: &Book) -> Vec<Entry<'_>> {
    let mut names = Names::default();
    let mut terms: Vec<_> = book.terms.iter().enumerate().collect();
    terms.sort_by_cached_key(|(at, term)| {
        let plain = plain(&term.term);
        if plain.starts_with(is_cjk) {
            (true, String::new(), *at)
        } else {
            (false, plain.to_lowercase(), *at)
        }
    });
    let mut entries = Vec::new();
    for (_, term) in terms {
        let id = names.take(&plain(&term.term));
        entries.push(Entry {
            id,
            term: &term.term,
            definition: &term.definition,
            chapter: &term.chapter,
        });
    }
    entries
}

/// Renders the glossary. The markup is the same for pages and EPUB.
pub(crate) fn glossary(
    book: &Book,
    shelf: &Shelf<'_>,
    address: &dyn Fn(usize) -> String,
) -> String {
    let mut out = format!(
        "<h1>{}</h1>\n<dl class=\"glossary\">\n",
        words(book.language).glossary
    );
    for entry in entries(book) {
        out.push_str(&format!(
            "<dt id=\"{}\"><dfn>{}</dfn></dt>\n<dd>{}",
            escaped(&entry.id),
            inline(entry.term),
            inline(entry.definition)
        ));
        if let Some((at, id)) = shelf.named(entry.chapter) {
            let anchor = id.map_or_else(String::new, |id| format!("#{}", encoded(id)));
            let title = escaped(shelf.volumes[at].title());
            out.push_str(&format!(
                " <a class=\"from\" href=\"{}{anchor}\">{title}</a>",
                escaped(&address(at))
            ));
        }
        out.push_str("</dd>\n");
    }
    out.push_str("</dl>\n");
    out
}

/// Renders one line of Markdown: emphasis and code as markup, everything else as text.
fn inline(text: &str) -> String {
    let mut out = String::new();
    for event in Parser::new(text) {
        match event {
            Event::Text(text) | Event::Html(text) | Event::InlineHtml(text) => {
                escape_into(&mut out, &text)
            }
            Event::Code(text) => {
                out.push_str("<code>");
                escape_into(&mut out, &text);
                out.push_str("</code>");
            }
            Event::Start(Tag::Emphasis) => out.push_str("<em>"),
            Event::End(TagEnd::Emphasis) => out.push_str("</em>"),
            Event::Start(Tag::Strong) => out.push_str("<strong>"),
            Event::End(TagEnd::Strong) => out.push_str("</strong>"),
            Event::SoftBreak | Event::HardBreak => out.push(' '),
            _ => {}
        }
    }
    out
}

/// Returns one line of Markdown as plain text.
pub(crate) fn plain(text: &str) -> String {
    let text_of = |event| match event {
        Event::Text(text) | Event::Code(text) | Event::Html(text) | Event::InlineHtml(text) => {
            Some(text.into_string())
        }
        _ => None,
    };
    Parser::new(text).filter_map(text_of).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_cell_is_one_line_of_harmless_markup() {
        assert_eq!(
            inline("a *b* `c<d>` **e**"),
            "a <em>b</em> <code>c&lt;d&gt;</code> <strong>e</strong>"
        );
        assert_eq!(
            inline("<script>x</script>"),
            "&lt;script&gt;x&lt;/script&gt;"
        );
        assert_eq!(inline("# [x](javascript:y) ![z](w)"), "x z");
        assert_eq!(plain("`append` *lock*"), "append lock");
    }
}
