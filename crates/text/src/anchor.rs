//! Anchors: the names by which links refer to sections.
//!
//! A section has several names: its explicit IDs, its GitHub slug, its heading (links to CJK
//! sections usually use the heading itself) and a heading path such as `Chapter 5/Glossary`. Lookup
//! ignores case, Unicode form and percent-encoding. If headings are equal, the first one wins, as
//! on GitHub. A failed lookup returns the nearest anchors.

use std::borrow::Cow;
use std::collections::HashMap;
use std::sync::OnceLock;

use unicode_normalization::char::is_combining_mark;
use unicode_normalization::{IsNormalized, UnicodeNormalization, is_nfkc_quick};

use crate::link::find_marks;
use crate::section::{Section, SectionId};

/// The number of near anchors that a miss lists.
const SUGGESTIONS: usize = 3;

/// The minimum similarity of a suggestion. It must accept a match of one of two Han characters.
const LIKENESS: f64 = 0.5;

/// Longer anchors are compared by their first characters, so that a miss stays cheap.
const COMPARED_CHARS: usize = 64;

/// An anchor that matches no section.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("no section `{anchor}`{}", render_nearest(.nearest))]
pub struct Miss {
    pub anchor: String,
    /// The nearest existing anchors, best first.
    pub nearest: Vec<String>,
}

fn render_nearest(nearest: &[String]) -> String {
    match nearest {
        [] => String::new(),
        names => format!("; nearest: {}", names.join(", ")),
    }
}

/// Generates GitHub slugs that are unique within one document.
#[derive(Debug, Default)]
pub struct Slugger {
    seen: HashMap<String, usize>,
}

impl Slugger {
    /// Returns the slug of the next heading.
    pub fn slug(&mut self, heading: &str) -> String {
        let plain = slug(heading);
        let mut unique = plain.clone();
        while self.seen.contains_key(&unique) {
            let count = self.seen.entry(plain.clone()).or_insert(0);
            *count += 1;
            unique = format!("{plain}-{count}");
        }
        self.seen.insert(unique.clone(), 0);
        unique
    }
}

/// Returns GitHub's slug of a heading: lower case, no punctuation, a hyphen for each space.
pub fn slug(heading: &str) -> String {
    heading
        .trim()
        .chars()
        .flat_map(char::to_lowercase)
        .filter_map(|c| match c {
            ' ' => Some('-'),
            '-' | '_' => Some(c),
            _ if c.is_alphanumeric() || is_combining_mark(c) => Some(c),
            _ => None,
        })
        .collect()
}

/// Returns the normalised form in which anchors are compared.
pub(crate) fn fold(anchor: &str) -> String {
    let decoded = percent_decoded(anchor.trim());
    if decoded.is_ascii() {
        return decoded.to_ascii_lowercase();
    }
    // Most text is already normalised, and the check is much cheaper than the normalisation.
    match is_nfkc_quick(decoded.chars()) {
        IsNormalized::Yes => decoded.chars().flat_map(char::to_lowercase).collect(),
        _ => decoded.nfkc().flat_map(char::to_lowercase).collect(),
    }
}

/// Decodes `%E5…`. Text that is not a valid encoding is returned unchanged.
pub(crate) fn percent_decoded(text: &str) -> Cow<'_, str> {
    if !text.contains('%') {
        return Cow::Borrowed(text);
    }
    let mut bytes = Vec::with_capacity(text.len());
    let mut rest = text.as_bytes();
    while let Some((&first, tail)) = rest.split_first() {
        let pair = tail
            .get(..2)
            .and_then(|pair| std::str::from_utf8(pair).ok());
        match pair.and_then(|pair| u8::from_str_radix(pair, 16).ok()) {
            Some(byte) if first == b'%' => {
                bytes.push(byte);
                rest = &tail[2..];
            }
            _ => {
                bytes.push(first);
                rest = tail;
            }
        }
    }
    String::from_utf8(bytes).map_or(Cow::Borrowed(text), Cow::Owned)
}

/// Splits `Title {#my-id}` into title and ID.
pub(crate) fn split_explicit_id(heading: &str) -> (&str, Option<&str>) {
    let split = || {
        let inner = heading.trim_end().strip_suffix('}')?;
        let (title, attributes) = inner.rsplit_once('{')?;
        let id = attributes.trim().strip_prefix('#')?;
        let id = id.split_whitespace().next()?;
        Some((title.trim_end(), Some(id)))
    };
    split().unwrap_or((heading, None))
}

/// Returns a heading without level tags, links and press marks.
pub(crate) fn strip_marks(heading: &str) -> String {
    let marks = find_marks(heading);
    if marks.is_empty() {
        return heading.to_owned();
    }
    let mut kept = String::with_capacity(heading.len());
    let mut from = 0;
    for mark in marks {
        kept.push_str(&heading[from..mark.range.start]);
        from = mark.range.end;
    }
    kept.push_str(&heading[from..]);
    let words: Vec<&str> = kept.split_whitespace().collect();
    match words.as_slice() {
        [] => heading.to_owned(),
        words => words.join(" "),
    }
}

/// Maps every name to its section.
#[derive(Debug, Clone, Default)]
pub(crate) struct AnchorIndex {
    names: HashMap<String, SectionId>,
    /// Built on the first lookup of a heading path.
    parts: OnceLock<PartIndex>,
}

impl AnchorIndex {
    pub(crate) fn new(sections: &[Section]) -> Self {
        let mut names = HashMap::with_capacity(sections.len() * 2);
        // Insert stronger names first: `or_insert` keeps the first section for each name.
        for section in sections {
            for id in &section.ids {
                names.entry(fold(id)).or_insert(section.id);
            }
        }
        let headed = || sections.iter().filter(|section| section.level > 0);
        for section in headed() {
            names.entry(fold(&section.slug)).or_insert(section.id);
        }
        for section in headed() {
            names.entry(fold(&section.title)).or_insert(section.id);
            names
                .entry(fold(&slug(&section.title)))
                .or_insert(section.id);
            if let Some(marked) = &section.marked_slug {
                names.entry(fold(marked)).or_insert(section.id);
            }
        }
        names.remove("");
        Self {
            names,
            parts: OnceLock::new(),
        }
    }

    /// Returns the section that an anchor names.
    pub(crate) fn lookup<'s>(&self, sections: &'s [Section], anchor: &str) -> Option<&'s Section> {
        let key = fold(wanted(anchor));
        let named = |key: &str| self.names.get(key).map(|id| &sections[id.0]);
        named(&key)
            .or_else(|| self.find_path(sections, &key))
            .or_else(|| named(&slug(&key)))
    }

    pub(crate) fn find<'s>(
        &self,
        sections: &'s [Section],
        anchor: &str,
    ) -> Result<&'s Section, Miss> {
        let miss = || Miss {
            anchor: wanted(anchor).to_owned(),
            nearest: self.nearest(anchor),
        };
        self.lookup(sections, anchor).ok_or_else(miss)
    }

    /// Returns the names most similar to an anchor, best first. Compares all names.
    pub(crate) fn nearest(&self, anchor: &str) -> Vec<String> {
        plan_nearest(&self.names, &fold(wanted(anchor)))
    }

    pub(crate) fn len(&self) -> usize {
        self.names.len()
    }

    /// Resolves `Chapter 5/Glossary`: the last part names the section, the other parts its
    /// ancestors in order.
    fn find_path<'s>(&self, sections: &'s [Section], key: &str) -> Option<&'s Section> {
        let parts = key
            .split('/')
            .map(str::trim)
            .filter(|part| !part.is_empty());
        let parts: Vec<(&str, String)> = parts.map(|part| (part, slug(part))).collect();
        let (last, above) = parts.split_last()?;
        let first = above.first()?;
        let index = self.parts.get_or_init(|| PartIndex::new(sections));
        let (tops, candidates) = (index.answering(first), index.answering(last));
        let fits = |id: &&SectionId| {
            let mut at = sections[id.0].parent;
            above.iter().rev().all(|part| {
                while let Some(id) = at {
                    at = sections[id.0].parent;
                    if index.answers(id, part) {
                        return true;
                    }
                }
                false
            })
        };
        let count = |lists: &[&[SectionId]; 2]| lists.iter().map(|list| list.len()).sum::<usize>();
        if count(&candidates) <= count(&tops) {
            return candidates
                .iter()
                .filter_map(|list| list.iter().find(fits))
                .min()
                .map(|id| &sections[id.0]);
        }
        // The first part matches fewer sections than the last, so search only below those. The
        // descendants of a section are consecutive.
        let first_below = |tops: &[SectionId], candidates: &'_ [SectionId]| {
            tops.iter().find_map(|top| {
                let end = sections
                    .partition_point(|section| section.range.start < sections[top.0].range.end);
                let from = candidates.partition_point(|id| id <= top);
                candidates[from..]
                    .iter()
                    .take_while(|id| id.0 < end)
                    .find(fits)
                    .copied()
            })
        };
        let found = tops.iter().flat_map(|tops| {
            candidates
                .iter()
                .filter_map(|candidates| first_below(tops, candidates))
        });
        found.min().map(|id| &sections[id.0])
    }
}

/// Strips the `#`: `#glossary` is `glossary`.
fn wanted(anchor: &str) -> &str {
    anchor.trim().trim_start_matches('#')
}

/// Sections by the names that a part of a heading path may use: the slug of the title, or an
/// explicit ID.
#[derive(Debug, Clone, Default)]
struct PartIndex {
    /// Each list is in document order.
    by_slug: HashMap<String, Vec<SectionId>>,
    by_id: HashMap<String, Vec<SectionId>>,
    /// The slug of each section. `None` for level 0, which has no heading.
    slugs: Vec<Option<String>>,
}

impl PartIndex {
    fn new(sections: &[Section]) -> PartIndex {
        let mut index = PartIndex::default();
        for section in sections {
            let slug = (section.level > 0).then(|| slug(&fold(&section.title)));
            if let Some(slug) = &slug {
                index
                    .by_slug
                    .entry(slug.clone())
                    .or_default()
                    .push(section.id);
                for id in &section.ids {
                    let named = index.by_id.entry(fold(id)).or_default();
                    if named.last() != Some(&section.id) {
                        named.push(section.id);
                    }
                }
            }
            index.slugs.push(slug);
        }
        index
    }

    /// Returns the sections that a part (given with its slug) names.
    fn answering(&self, (part, slug): &(&str, String)) -> [&[SectionId]; 2] {
        [self.by_slug.get(slug), self.by_id.get(*part)]
            .map(|list| list.map(Vec::as_slice).unwrap_or_default())
    }

    fn answers(&self, id: SectionId, part: &(&str, String)) -> bool {
        self.slugs[id.0].as_ref() == Some(&part.1)
            || self
                .by_id
                .get(part.0)
                .is_some_and(|named| named.binary_search(&id).is_ok())
    }
}

/// Returns the names most similar to `key`, at most one per section.
fn plan_nearest(names: &HashMap<String, SectionId>, key: &str) -> Vec<String> {
    let wanted: String = key.chars().take(COMPARED_CHARS).collect();
    if wanted.is_empty() {
        return Vec::new();
    }
    let mut scored: Vec<(f64, SectionId, &str)> = Vec::new();
    for (name, &section) in names {
        let compared: String = name.chars().take(COMPARED_CHARS).collect();
        let score = likeness(&wanted, &compared);
        if score >= LIKENESS {
            scored.push((score, section, name));
        }
    }
    scored.sort_by(|a, b| b.0.total_cmp(&a.0).then((a.1, a.2).cmp(&(b.1, b.2))));
    let mut nearest: Vec<(SectionId, &str)> = Vec::new();
    for (_, section, name) in scored {
        if nearest.len() < SUGGESTIONS && nearest.iter().all(|taken| taken.0 != section) {
            nearest.push((section, name));
        }
    }
    nearest
        .into_iter()
        .map(|(_, name)| name.to_owned())
        .collect()
}

/// Computes the similarity of two names. If one contains the other they are similar at any length,
/// because CJK headings are often quoted in part.
fn likeness(wanted: &str, name: &str) -> f64 {
    let contained = !name.is_empty() && (name.contains(wanted) || wanted.contains(name));
    let (one, other) = (wanted.chars().count(), name.chars().count());
    // Skip the edit distance if the lengths alone differ too much.
    let too_far = one.abs_diff(other) as f64 > (1.0 - LIKENESS) * one.max(other) as f64;
    let alike = if too_far {
        0.0
    } else {
        strsim::normalized_damerau_levenshtein(wanted, name)
    };
    if contained { alike.max(0.8) } else { alike }
}

/// Returns the anchor to write in a link: the explicit ID, else the heading itself in CJK text,
/// else the slug.
pub(crate) fn preferred(section: &Section) -> &str {
    match section.ids.first() {
        Some(id) => id,
        None if section.title.chars().any(is_cjk) || section.slug.is_empty() => &section.title,
        None => &section.slug,
    }
}

/// Returns true for characters of scripts without spaces (Han and kana, but not Hangul syllables).
pub(crate) fn is_cjk(c: char) -> bool {
    matches!(c as u32,
        0x2E80..=0x2FDF | 0x3005..=0x3007 | 0x3021..=0x3029 | 0x3040..=0x30FF | 0x3400..=0x4DBF
        | 0x4E00..=0x9FFF | 0xF900..=0xFAFF | 0x20000..=0x3FFFF)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn slugs_follow_github() {
        assert_eq!(slug("Hello, World!"), "hello-world");
        assert_eq!(slug("  A  B_c-d "), "a--b_c-d");
        assert_eq!(slug("🚀 Launch"), "-launch");
        assert_eq!(slug("第五章：决裂"), "第五章决裂");
        assert_eq!(slug("Émile & Zoë"), "émile--zoë");
        assert_eq!(slug("1.2 What's new?"), "12-whats-new");
    }

    #[test]
    fn repeats_are_numbered_and_avoid_taken_names() {
        let mut slugger = Slugger::default();
        let slugs = ["Foo", "Foo", "Foo 1", "foo"].map(|heading| slugger.slug(heading));
        assert_eq!(slugs, ["foo", "foo-1", "foo-1-1", "foo-2"]);
    }

    #[test]
    fn explicit_ids_need_a_hash() {
        assert_eq!(
            split_explicit_id("Title {#my-id}"),
            ("Title", Some("my-id"))
        );
        assert_eq!(
            split_explicit_id("Title { #x .note }"),
            ("Title", Some("x"))
        );
        assert_eq!(split_explicit_id("设定 {草稿}"), ("设定 {草稿}", None));
        assert_eq!(split_explicit_id("{#}"), ("{#}", None));
    }

    #[test]
    fn marks_are_not_part_of_a_title() {
        assert_eq!(strip_marks("奥托 [arc] [⊣ characters.md#卡莲]"), "奥托");
        assert_eq!(strip_marks("[arc]"), "[arc]");
        assert_eq!(strip_marks("Array [0]  x"), "Array [0]  x");
    }

    #[test]
    fn folding_ignores_case_and_unicode_form() {
        assert_eq!(fold("Chapter"), "chapter");
        assert_eq!(fold("E\u{301}tude"), fold("étude"));
        assert_eq!(fold("Ａ：一"), "a:一");
        assert_eq!(fold("Ωmega 林"), "ωmega 林");
    }

    #[test]
    fn percent_encoding_is_undone_only_when_valid() {
        assert_eq!(percent_decoded("%E5%A5%A5%E6%89%98"), "奥托");
        assert_eq!(percent_decoded("100%"), "100%");
        assert_eq!(percent_decoded("%FF"), "%FF");
        assert_eq!(percent_decoded("a%20b"), "a b");
    }
}
