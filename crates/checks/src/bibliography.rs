//! The entries of a bibliography: keys and identifiers, with their places.

use std::ops::Range;

use biblatex::{RawBibliography, RawChunk};

use crate::Bibliography;

pub(crate) struct Entry<'t> {
    pub key: &'t str,
    pub at: Range<usize>,
    /// The DOI as it is written, and its place.
    pub doi: Option<(String, Range<usize>)>,
}

/// Reads the entries. None if the file is no bibliography that could be read: then nothing can be
/// said about its keys.
pub(crate) fn entries<'t>(bibliography: &Bibliography<'t>) -> Option<Vec<Entry<'t>>> {
    let parsed = RawBibliography::parse(bibliography.text).ok()?;
    let entries = parsed.entries.into_iter().map(|entry| {
        let key = entry.v.key;
        let field = entry.v.fields.into_iter();
        let mut dois = field.filter(|pair| pair.key.v.eq_ignore_ascii_case("doi"));
        Entry {
            key: key.v,
            at: key.span,
            doi: dois.next().map(|pair| {
                let text = pair.value.v.iter().map(|chunk| match chunk.v {
                    RawChunk::Normal(text) | RawChunk::Abbreviation(text) => text,
                });
                let at = without_braces(bibliography.text, pair.value.span);
                (text.collect::<String>(), at)
            }),
        }
    });
    Some(entries.collect())
}

/// The range of a value without the signs around it.
fn without_braces(text: &str, at: Range<usize>) -> Range<usize> {
    let signs = |c: char| matches!(c, '{' | '}' | '"') || c.is_whitespace();
    let value = &text[at.clone()];
    let start = at.start + value.len() - value.trim_start_matches(signs).len();
    start..start + value.trim_matches(signs).len()
}
