//! Finds links between memory files, level tags and press marks.
//!
//! The parser recognises `[→ path#anchor]`, a bare `→ path#anchor` in a list item, Markdown links
//! (inline and reference), images, wikilinks and `[⊣ path#anchor]`. It skips code and HTML, and
//! addresses with a scheme, which are not memory. Each link has the byte range of its target, so
//! that a rename can replace exactly those bytes. The caller checks whether a target exists.

use std::ops::Range;

use crate::anchor::percent_decoded;
use crate::lines::Positions;
use crate::scan::{MarkdownLink, Run, RunKind};

/// The syntax of a link.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LinkKind {
    /// `[→ path#anchor]`
    Arrow,
    /// `→ path#anchor` in a list item
    BareArrow,
    /// `[text](path#anchor)`
    Inline,
    /// `[text][label]`: the target is in the definition, which several links may share
    Reference,
    /// `![alt](path)`
    Image,
    /// `[[path#anchor|alias]]`
    Wiki,
    /// `[⊣ path#anchor]`: this fact puts pressure on that one
    Press,
}

/// A link to a file of the project, or to a section of the same file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Link {
    pub kind: LinkKind,
    /// The path with percent-encoding decoded. Empty for the same file.
    pub path: String,
    pub anchor: Option<String>,
    pub line: usize,
    /// In characters, 1-based.
    pub column: usize,
    /// The bytes of `path#anchor`.
    pub target: Range<usize>,
    pub range: Range<usize>,
}

/// The firmness of a fact. Earlier levels are harder to overturn.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Level {
    Premise,
    Arc,
    Chapter,
    Scene,
}

impl Level {
    /// Parses the English or Chinese name of a level: `arc`, `弧`, `弧级`.
    pub fn parse(name: &str) -> Option<Self> {
        match name.strip_suffix('级').unwrap_or(name) {
            "premise" | "前提" => Some(Self::Premise),
            "arc" | "弧" => Some(Self::Arc),
            "chapter" | "章" => Some(Self::Chapter),
            "scene" | "场景" => Some(Self::Scene),
            _ => None,
        }
    }

    /// Returns the English name.
    pub fn name(self) -> &'static str {
        match self {
            Self::Premise => "premise",
            Self::Arc => "arc",
            Self::Chapter => "chapter",
            Self::Scene => "scene",
        }
    }
}

/// A level tag on a heading or an entry: `[arc]`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LevelTag {
    pub level: Level,
    pub line: usize,
    pub range: Range<usize>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum MarkKind {
    Link(LinkKind),
    Level(Level),
}

/// A bracketed mark or bare arrow in running text.
#[derive(Debug)]
pub(crate) struct Mark {
    pub kind: MarkKind,
    pub range: Range<usize>,
    pub target: Range<usize>,
}

/// Finds the bracketed marks of a short text without code.
pub(crate) fn find_marks(text: &str) -> Vec<Mark> {
    let mut marks = Vec::new();
    find_marks_in(text, 0..text.len(), false, &[], &mut marks);
    marks
}

/// Finds every link and level tag of a document.
pub(crate) fn plan_links(
    text: &str,
    runs: &[Run],
    holes: &[Range<usize>],
    markdown: Vec<MarkdownLink>,
) -> (Vec<Link>, Vec<LevelTag>) {
    let mut marks = Vec::new();
    for run in runs {
        let bare = run.kind == RunKind::Item;
        find_marks_in(text, run.range.clone(), bare, holes, &mut marks);
    }
    // A mark inside the text of a Markdown link belongs to that link.
    let mut spans: Vec<&Range<usize>> = markdown.iter().map(|link| &link.range).collect();
    spans.sort_by_key(|span| span.start);
    marks.retain(|mark| {
        let before = spans.partition_point(|span| span.start <= mark.range.start);
        before == 0 || spans[before - 1].end < mark.range.end
    });

    let mut links = Vec::new();
    let mut tags = Vec::new();
    for mark in marks {
        match mark.kind {
            MarkKind::Level(level) => tags.push(LevelTag {
                level,
                line: 0,
                range: mark.range,
            }),
            MarkKind::Link(kind) => {
                let raw = text[mark.target.clone()].to_owned();
                links.extend(link(kind, &raw, mark.target, mark.range));
            }
        }
    }
    for found in markdown {
        let kind = match (found.image, found.reference) {
            (true, _) => LinkKind::Image,
            (false, true) => LinkKind::Reference,
            (false, false) => LinkKind::Inline,
        };
        links.extend(link(kind, &found.destination, found.target, found.range));
    }
    links.sort_by_key(|link| (link.range.start, link.range.end));
    tags.sort_by_key(|tag| tag.range.start);
    let mut positions = Positions::new(text);
    for link in &mut links {
        (link.line, link.column) = positions.at(link.range.start);
    }
    let mut positions = Positions::new(text);
    for tag in &mut tags {
        (tag.line, _) = positions.at(tag.range.start);
    }
    (links, tags)
}

fn link(kind: LinkKind, raw: &str, target: Range<usize>, range: Range<usize>) -> Option<Link> {
    if raw.trim().is_empty() || is_external(raw) {
        return None;
    }
    let (path, anchor) = parse_target(raw);
    Some(Link {
        kind,
        path,
        anchor,
        line: 0,
        column: 0,
        target,
        range,
    })
}

/// Splits `path#anchor` and decodes percent-encoding.
pub fn parse_target(raw: &str) -> (String, Option<String>) {
    let (path, anchor) = match raw.split_once('#') {
        Some((path, anchor)) => (path, Some(anchor.trim())),
        None => (raw, None),
    };
    let anchor = anchor.filter(|anchor| !anchor.is_empty());
    (
        percent_decoded(path.trim()).into_owned(),
        anchor.map(|anchor| percent_decoded(anchor).into_owned()),
    )
}

/// Returns true if an address has a scheme (`https:`, `mailto:`) or a host (`//…`).
pub fn is_external(raw: &str) -> bool {
    let raw = raw.trim_start();
    if raw.starts_with("//") {
        return true;
    }
    raw.split_once(':').is_some_and(|(scheme, _)| {
        scheme.len() > 1
            && scheme.starts_with(|c: char| c.is_ascii_alphabetic())
            && scheme
                .chars()
                .all(|c| c.is_ascii_alphanumeric() || matches!(c, '+' | '-' | '.'))
            && !scheme.contains(".md")
    })
}

/// Returns the byte range of the destination of a Markdown link or definition: after `opener`,
/// within `span`.
pub(crate) fn destination_range(
    text: &str,
    span: Range<usize>,
    opener: &str,
) -> Option<Range<usize>> {
    let at = span.start + text.get(span.clone())?.find(opener)? + opener.len();
    let rest = &text[at..span.end];
    let at = at + (rest.len() - rest.trim_start().len());
    let rest = rest.trim_start();
    if let Some(inner) = rest.strip_prefix('<') {
        let end = inner.find(['>', '\n'])?;
        return Some(at + 1..at + 1 + end);
    }
    let mut depth = 0usize;
    let mut escaped = false;
    for (offset, c) in rest.char_indices() {
        match c {
            _ if escaped => escaped = false,
            '\\' => escaped = true,
            '(' => depth += 1,
            ')' if depth == 0 => return Some(at..at + offset),
            ')' => depth -= 1,
            c if c.is_ascii_whitespace() => return Some(at..at + offset),
            _ => {}
        }
    }
    Some(at..at + rest.len())
}

/// Scans `range` of `text` for marks. Skips `holes`, which are sorted by start.
fn find_marks_in(
    text: &str,
    range: Range<usize>,
    bare: bool,
    holes: &[Range<usize>],
    marks: &mut Vec<Mark>,
) {
    let bytes = text.as_bytes();
    let mut holes = holes[holes.partition_point(|hole| hole.end <= range.start)..]
        .iter()
        .peekable();
    let mut at = range.start;
    // 0xE2 is the first byte of `→`.
    while let Some(next) = memchr::memchr2(b'[', 0xE2, &bytes[at..range.end]) {
        at += next;
        while holes.peek().is_some_and(|hole| hole.end <= at) {
            holes.next();
        }
        let hole = holes.peek().map_or(range.end, |hole| hole.start);
        if hole <= at && hole < range.end {
            at = holes
                .peek()
                .map_or(range.end, |hole| hole.end)
                .min(range.end);
            continue;
        }
        let end = hole.min(range.end);
        let escaped = bytes[..at]
            .iter()
            .rev()
            .take_while(|&&b| b == b'\\')
            .count()
            % 2
            == 1;
        let mark = match bytes[at] {
            _ if escaped => None,
            b'[' => bracket_mark(text, at, end),
            _ if bare => bare_arrow(text, at, end),
            _ => None,
        };
        match mark {
            Some(mark) => {
                at = mark.range.end;
                marks.push(mark);
            }
            None => at += 1,
        }
    }
}

fn bracket_mark(text: &str, at: usize, end: usize) -> Option<Mark> {
    let inner = at + 1;
    if text[inner..end].starts_with('[') {
        return wiki_link(text, at, end);
    }
    let bytes = text.as_bytes();
    let close = inner + memchr::memchr3(b'[', b']', b'\n', &bytes[inner..end])?;
    let followed = bytes.get(close + 1);
    if bytes[close] != b']' || matches!(followed, Some(b'(' | b'[')) {
        return None;
    }
    let content = &text[inner..close];
    let range = at..close + 1;
    if let Some(level) = Level::parse(content) {
        return (followed != Some(&b':')).then_some(Mark {
            kind: MarkKind::Level(level),
            target: range.clone(),
            range,
        });
    }
    let (kind, rest) = [('→', LinkKind::Arrow), ('⊣', LinkKind::Press)]
        .into_iter()
        .find_map(|(sign, kind)| Some((kind, content.strip_prefix(sign)?)))?;
    let target = rest.trim();
    let start = close - rest.trim_start().len();
    (!target.is_empty()).then(|| Mark {
        kind: MarkKind::Link(kind),
        target: start..start + target.len(),
        range,
    })
}

fn wiki_link(text: &str, at: usize, end: usize) -> Option<Mark> {
    let inner = at + 2;
    let close = inner + memchr::memchr3(b'[', b']', b'\n', &text.as_bytes()[inner..end])?;
    if !text[close..end].starts_with("]]") {
        return None;
    }
    let content = &text[inner..close];
    // In a table, the bar before an alias is written as `\|`.
    let target = content.split('|').next().unwrap_or(content);
    let target = target.strip_suffix('\\').unwrap_or(target);
    let start = inner + (target.len() - target.trim_start().len());
    let target = target.trim();
    (!target.is_empty()).then(|| Mark {
        kind: MarkKind::Link(LinkKind::Wiki),
        target: start..start + target.len(),
        range: at..close + 2,
    })
}

/// Parses `→ path#anchor` if the target looks like a file or has an anchor. Other arrows are prose.
fn bare_arrow(text: &str, at: usize, end: usize) -> Option<Mark> {
    let rest = text[at..end].strip_prefix('→')?;
    let start = end - rest.trim_start_matches([' ', '\t']).len();
    // An arrow also ends the previous path, so that a row of arrows is parsed in linear time.
    let stop = |c: char| c.is_whitespace() || "→，。；、！？（）()[]【】《》“”,;|`".contains(c);
    let token = &text[start..end];
    let mut length = token.find(stop).unwrap_or(token.len());
    // `characters.md #奥托`, with a space before the anchor.
    if is_file(&token[..length])
        && let Some(anchor) = token[length..].strip_prefix(" #")
    {
        let anchor = anchor.find(stop).unwrap_or(anchor.len());
        if anchor > 0 {
            length += 2 + anchor;
        }
    }
    let target = token[..length].trim_end_matches(['.', ':', '：']);
    let (path, anchor) = parse_target(target);
    let named = !path.is_empty() && anchor.is_some();
    (named || is_file(&path)).then(|| Mark {
        kind: MarkKind::Link(LinkKind::BareArrow),
        range: at..start + target.len(),
        target: start..start + target.len(),
    })
}

/// Returns true if a path ends in an extension.
fn is_file(path: &str) -> bool {
    path.rsplit_once('.').is_some_and(|(stem, extension)| {
        !stem.is_empty()
            && (1..=8).contains(&extension.len())
            && extension.chars().all(|c| c.is_ascii_alphanumeric())
            && extension.contains(|c: char| c.is_ascii_alphabetic())
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Document;

    fn targets(text: &str) -> Vec<(LinkKind, String, Option<String>, &str)> {
        let doc = Document::parse(text);
        doc.links()
            .iter()
            .map(|link| {
                (
                    link.kind,
                    link.path.clone(),
                    link.anchor.clone(),
                    &text[link.target.clone()],
                )
            })
            .collect()
    }

    #[test]
    fn arrows_in_brackets() {
        let found = targets("背景：[→ manuscripts/ch03.md#奥托回忆] and [→world.md] [→ #here]\n");
        assert_eq!(
            found,
            [
                (
                    LinkKind::Arrow,
                    "manuscripts/ch03.md".into(),
                    Some("奥托回忆".into()),
                    "manuscripts/ch03.md#奥托回忆"
                ),
                (LinkKind::Arrow, "world.md".into(), None, "world.md"),
                (LinkKind::Arrow, String::new(), Some("here".into()), "#here"),
            ]
        );
    }

    #[test]
    fn bare_arrows_need_a_list_item_and_a_file() {
        let found = targets(
            "- → 卡莲: 愧疚 → a/b.md#决裂，然后\n- see → world.md #崩坏能 (x)\n- done → fixed\n\nprose → b.md\n",
        );
        let raw: Vec<_> = found.iter().map(|f| f.3).collect();
        assert_eq!(raw, ["a/b.md#决裂", "world.md #崩坏能"]);
        assert_eq!(found[1].2.as_deref(), Some("崩坏能"));
    }

    #[test]
    fn markdown_links_know_their_target_bytes() {
        let text = "[a `](x)`](b_(c).md#d \"t\") [e](<f g.md>) [h][r] [r] ![i](j.png)\n\n[r]: ../k.md#l 'm'\n";
        let raw: Vec<_> = targets(text).into_iter().map(|f| (f.0, f.3)).collect();
        assert_eq!(
            raw,
            [
                (LinkKind::Inline, "b_(c).md#d"),
                (LinkKind::Inline, "f g.md"),
                (LinkKind::Reference, "../k.md#l"),
                (LinkKind::Reference, "../k.md#l"),
                (LinkKind::Image, "j.png"),
            ]
        );
    }

    #[test]
    fn external_addresses_are_not_memory() {
        let text = "[a](https://x.org/y.md) <https://x.org> [b](mailto:a@b.c) [→ https://x.org] [c](//h/p)\n";
        assert_eq!(targets(text), []);
        assert!(!is_external("notes.md#a:b"));
        assert!(!is_external("c:/x"));
    }

    #[test]
    fn wikilinks_with_and_without_alias() {
        let raw: Vec<_> =
            targets("[[a b.md#C|the c]] [[ d ]] [[]] [[x]\n\n| t |\n|---|\n| [[e\\|f]] |\n")
                .into_iter()
                .map(|f| (f.3, f.2))
                .collect();
        assert_eq!(
            raw,
            [("a b.md#C", Some("C".into())), ("d", None), ("e", None)]
        );
    }

    #[test]
    fn nothing_is_found_in_code_or_html() {
        let text = "`[→ a.md]` ``[[b]]``\n\n```\n[→ c.md]\n[d](e.md)\n```\n\n    [→ f.md]\n\n<!-- [→ g.md] -->\n\n\\[→ h.md]\n";
        assert_eq!(targets(text), []);
    }

    #[test]
    fn an_arrow_inside_a_link_text_is_that_link() {
        let raw: Vec<_> = targets("- [→ a.md](b.md) [→ [c](d.md)]\n")
            .into_iter()
            .map(|f| f.3)
            .collect();
        assert_eq!(raw, ["b.md", "d.md"]);
    }

    #[test]
    fn levels_and_presses() {
        let text = "## 奥托 [弧级]\n\n- [scene] he parks [⊣ characters.md#奥托]\n- [场景] x [chapters] [arc](y.md)\n- [前提级] y\n- [章级] [级] z\n";
        let doc = Document::parse(text);
        let tags: Vec<_> = doc
            .level_tags()
            .iter()
            .map(|tag| (tag.level, tag.line))
            .collect();
        assert_eq!(
            tags,
            [
                (Level::Arc, 1),
                (Level::Scene, 3),
                (Level::Scene, 4),
                (Level::Premise, 5),
                (Level::Chapter, 6)
            ]
        );
        assert_eq!(
            doc.sections().last().map(|s| s.title.as_str()),
            Some("奥托")
        );
        assert!(Level::Premise < Level::Scene);
        let press = &doc.links()[0];
        assert_eq!(
            (press.kind, press.line, press.column),
            (LinkKind::Press, 3, 20)
        );
    }
}
