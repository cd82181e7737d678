//! Plans a rename: rewrites the links to a renamed page.
//!
//! It changes only the bytes of link targets, and keeps the style in which each link was written.
//! The caller moves the file and writes the pages.

use std::collections::BTreeSet;
use std::ops::Range;

use quipu_text::{Document, Splice, splice_all};

use crate::graph::{Fate, Graph, is_other_file, resolve_link};
use crate::page::{Page, Place};

/// A page with rewritten links.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FixedPage {
    pub path: String,
    pub text: String,
    /// The links that were rewritten.
    pub links: Vec<Place>,
}

/// Returns the pages that change when `old` is renamed to `new`. Includes `old` itself, under its
/// old path, if its own links change. These are rewritten as if every page existed that `is_hidden`
/// names: the new text does not show which of them do.
pub fn plan_rename(
    pages: &[Page],
    old: &str,
    new: &str,
    is_hidden: &dyn Fn(&str) -> bool,
) -> Vec<FixedPage> {
    let graph = Graph::of(pages, None, usize::MAX);
    let edges = graph.by_page();
    let mut fixed = Vec::new();
    for page in pages {
        let own = (page.path == old).then(|| own_links(page, pages, is_hidden));
        let edges = edges.get(page.path.as_str()).into_iter().flatten();
        let links = own.unwrap_or_else(|| {
            edges
                .filter(|edge| !matches!(edge.fate, Fate::NoFile(_)))
                .map(|edge| {
                    (
                        edge.from.clone(),
                        edge.target.clone(),
                        edge.to.clone(),
                        edge.from_root,
                    )
                })
                .collect()
        });
        fixed.extend(fix_page(page, links, old, new));
    }
    fixed
}

/// A link: its place, the bytes of its target, the path that it names, and whether that path is
/// relative to the root.
type Aim = (Place, Range<usize>, String, bool);

/// The links of a page to pages that are not hidden, and to all paths that are.
fn own_links(page: &Page, pages: &[Page], is_hidden: &dyn Fn(&str) -> bool) -> Vec<Aim> {
    let paths: BTreeSet<&str> = pages.iter().map(|page| page.path.as_str()).collect();
    let is_seen = |path: &str| paths.contains(path) && !is_hidden(path);
    let mut aims = Vec::new();
    for link in Document::parse(&page.text).links() {
        let seen = resolve_link(&page.path, &link.path, link.kind, &is_seen);
        let (to, from_root) = if is_seen(&seen.0) {
            seen
        } else {
            resolve_link(&page.path, &link.path, link.kind, is_hidden)
        };
        if is_seen(&to) || is_hidden(&to) || is_other_file(&to) {
            let place = Place::new(&page.path, link.line);
            aims.push((place, link.target.clone(), to, from_root));
        }
    }
    aims
}

fn fix_page(page: &Page, aims: Vec<Aim>, old: &str, new: &str) -> Option<FixedPage> {
    let mut splices: Vec<Splice> = Vec::new();
    let mut links = Vec::new();
    // Reference links share the target of their definition.
    let mut seen = BTreeSet::new();
    for (place, target, to, from_root) in aims {
        let written = &page.text[target.clone()];
        if written.starts_with('#') || !seen.insert(target.start) {
            continue;
        }
        // Leave a link unchanged if it is still correct.
        if to != old && (from_root || page.path != old || folder(old) == folder(new)) {
            continue;
        }
        let here = if page.path == old { new } else { &page.path };
        let to = if to == old { new } else { &to };
        let path = if from_root {
            to.to_owned()
        } else {
            beside(here, to)
        };
        let anchor = written
            .split_once('#')
            .map(|(_, anchor)| format!("#{anchor}"))
            .unwrap_or_default();
        let text = spelled(written, &path) + &anchor;
        if text != written {
            splices.push(Splice {
                range: target,
                text,
            });
            links.push(place);
        }
    }
    if splices.is_empty() {
        return None;
    }
    Some(FixedPage {
        path: page.path.clone(),
        text: splice_all(&page.text, &splices).ok()?,
        links,
    })
}

fn folder(path: &str) -> &str {
    path.rsplit_once('/').map_or("", |(folder, _)| folder)
}

/// Writes a path in the style of the one it replaces: without `.md`, or with encoded spaces.
fn spelled(written: &str, path: &str) -> String {
    let old = written.split('#').next().unwrap_or(written);
    let path = if old.ends_with(".md") {
        path.to_owned()
    } else {
        path.trim_end_matches(".md").to_owned()
    };
    if old.contains("%20") || (old.contains('%') && path.contains(' ')) {
        path.replace(' ', "%20")
    } else {
        path
    }
}

/// Returns a path relative to another file's folder.
fn beside(from: &str, to: &str) -> String {
    let base: Vec<&str> = folder(from)
        .split('/')
        .filter(|part| !part.is_empty())
        .collect();
    let parts: Vec<&str> = to.split('/').collect();
    let shared = base
        .iter()
        .zip(&parts[..parts.len() - 1])
        .take_while(|(a, b)| a == b)
        .count();
    "../".repeat(base.len() - shared) + &parts[shared..].join("/")
}

#[cfg(test)]
mod tests {
    use super::*;
    use quipu_recall::Tier;

    fn page(path: &str, text: &str) -> Page {
        Page {
            path: path.into(),
            tier: Tier::L1,
            is_memory: true,
            form: None,
            text: text.into(),
        }
    }

    #[test]
    fn every_notation_follows_a_rename() {
        let pages = [
            page(
                "a.md",
                "[→ 角色.md#奥托] and [c](角色.md) `[→ 角色.md]` [[角色#奥托|x]]\n[r][r]\n\n[r]: 角色.md\n",
            ),
            page("notes/b.md", "[c](../角色.md#奥托)\n"),
            page(
                "角色.md",
                "## 奥托\n[b](notes/b.md) [self](#奥托) [→ a.md]\n",
            ),
        ];
        let fixed = plan_rename(&pages, "角色.md", "人物/角色.md", &|_| false);
        let told: Vec<(&str, &str)> = fixed
            .iter()
            .map(|m| (m.path.as_str(), m.text.as_str()))
            .collect();
        assert_eq!(
            told,
            [
                (
                    "a.md",
                    "[→ 人物/角色.md#奥托] and [c](人物/角色.md) `[→ 角色.md]` [[人物/角色#奥托|x]]\n[r][r]\n\n[r]: 人物/角色.md\n"
                ),
                ("notes/b.md", "[c](../人物/角色.md#奥托)\n"),
                (
                    "角色.md",
                    "## 奥托\n[b](../notes/b.md) [self](#奥托) [→ a.md]\n"
                ),
            ]
        );
    }

    #[test]
    fn a_hidden_page_is_linked_alike_whether_it_exists_or_not() {
        let text = "[a](../private/x.md) [b](../private/x) [c](private/x.md) [d](gone.md)\n";
        let own = page("own/l.md", text);
        let hidden = |path: &str| path.starts_with("private/");
        let moved = |pages: &[Page]| plan_rename(pages, "own/l.md", "own/d/l.md", &hidden);
        let without = moved(std::slice::from_ref(&own));
        assert_eq!(
            without[0].text,
            "[a](../../private/x.md) [b](../../private/x) [c](private/x.md) [d](gone.md)\n"
        );
        assert_eq!(moved(&[own, page("private/x.md", "x\n")]), without);
    }

    /// This would take minutes if each page were compared with all others, or each name searched in
    /// all pages.
    #[test]
    fn a_page_among_many_is_renamed_in_linear_time() {
        const MANY: usize = 32_000;
        let text = |n: usize| format!("[next](n{}.md) [[n7]] [gone](m{n}.md)\n", (n + 1) % MANY);
        let pages: Vec<Page> = (0..MANY)
            .map(|n| page(&format!("notes/n{n}.md"), &text(n)))
            .collect();
        let fixed = plan_rename(&pages, "notes/n7.md", "notes/seven.md", &|_| false);
        assert_eq!(
            (fixed.len(), fixed[6].links.len(), fixed[8].links.len()),
            (MANY, 2, 1)
        );
    }
}
