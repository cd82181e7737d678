//! The link graph: edges between sections, broken links, orphan pages and sections with too many
//! links.
//!
//! `[→ …]`, `[⊣ …]` and wikilinks name paths from the project's root. Markdown links name paths
//! from the folder of their file. If no page has that path, the resolver tries the other
//! interpretation. Edges are in page order.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::ops::Range;

use quipu_recall::Tier;
use quipu_text::{Document, Level, LinkKind};
use serde::Serialize;

use crate::page::{Page, Place};

/// The minimum similarity of a suggested path. A less similar one would mislead.
const LIKENESS: f64 = 0.6;

/// Longer targets get no suggestions: they are not typing errors.
const COMPARED_CHARS: usize = 256;

/// The maximum number of comparisons for suggestions. It covers 500 broken links among 400 pages
/// and takes at most a second.
const COMPARED: usize = 200_000;

/// The state of a link's target.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Fate {
    Fine,
    /// The file does not exist. Holds the most similar path, if any is close.
    NoFile(Option<String>),
    /// The file has no such section. Holds the most similar target, if any is close.
    NoSection(Option<String>),
    /// The file exists but could not be read, for this reason.
    Unread(String),
}

/// One link.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Edge {
    pub from: Place,
    /// The anchor of the section that contains the link.
    pub section: String,
    /// The path that the link names. A guess if no such file exists.
    pub to: String,
    pub anchor: Option<String>,
    /// True for a `[⊣ …]` link, which puts pressure on its target.
    pub presses: bool,
    pub fate: Fate,
    #[serde(skip)]
    pub(crate) target: Range<usize>,
    #[serde(skip)]
    pub(crate) from_root: bool,
}

impl Edge {
    /// Returns `path#anchor`.
    pub fn named(&self) -> String {
        match &self.anchor {
            Some(anchor) => format!("{}#{anchor}", self.to),
            None => self.to.clone(),
        }
    }
}

/// A page that is not reachable from the index.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Orphan {
    pub path: String,
    /// False for work in progress, which need not be reachable.
    pub is_memory: bool,
}

/// A section with more outgoing links than the contract recommends.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Dense {
    pub at: Place,
    pub section: String,
    pub links: usize,
    /// The file to move entries to, and the lines of those entries.
    pub split: String,
    pub lines: Vec<usize>,
}

#[derive(Debug, Clone, Default, Serialize)]
pub struct Graph {
    pub pages: Vec<String>,
    /// The tier of each page. `None` for work in progress.
    #[serde(skip)]
    pub tiers: Vec<Option<Tier>>,
    pub edges: Vec<Edge>,
    pub orphans: Vec<Orphan>,
    /// Memory pages that only the index links to.
    pub unlinked: Vec<String>,
    pub dense: Vec<Dense>,
}

impl Graph {
    /// Reads the links of all pages. Reachability starts at `root`.
    pub fn of(pages: &[Page], root: Option<&str>, most_links: usize) -> Graph {
        // Only targets of links with an anchor stay parsed: all pages together would take more memory
        // than the graph.
        let mut targets: BTreeMap<usize, Document<'_>> = BTreeMap::new();
        let by_path: BTreeMap<&str, usize> = pages
            .iter()
            .enumerate()
            .map(|(nth, page)| (page.path.as_str(), nth))
            .collect();
        let tiers = pages
            .iter()
            .map(|page| page.is_memory.then_some(page.tier))
            .collect();
        let mut graph = Graph {
            pages: pages.iter().map(|page| page.path.clone()).collect(),
            tiers,
            ..Graph::default()
        };
        let mut suggested = Suggested::new(&by_path);
        for page in pages {
            let document = Document::parse(&page.text);
            for link in document.links() {
                let (to, from_root) = resolve_link(&page.path, &link.path, link.kind, &|path| {
                    by_path.contains_key(path)
                });
                let found = by_path.get(to.as_str()).copied();
                let fate = match (found, &link.anchor) {
                    (None, _) if is_other_file(&to) => Fate::Fine,
                    (None, _) => Fate::NoFile(suggested.path(&to)),
                    (Some(_), None) => Fate::Fine,
                    (Some(nth), Some(anchor)) => {
                        let target = targets
                            .entry(nth)
                            .or_insert_with(|| Document::parse(&pages[nth].text));
                        if target.lookup(anchor).is_some() {
                            Fate::Fine
                        } else {
                            Fate::NoSection(suggested.section(&to, target, anchor))
                        }
                    }
                };
                let section = document.section_at(link.range.start);
                graph.edges.push(Edge {
                    from: Place::new(&page.path, link.line),
                    section: document.anchor_of(section).to_owned(),
                    to,
                    anchor: link.anchor.clone(),
                    presses: link.kind == LinkKind::Press,
                    fate,
                    target: link.target.clone(),
                    from_root,
                });
            }
            if page.tier != Tier::L0 {
                graph.dense.extend(find_dense(page, &document, most_links));
            }
        }
        graph.find_orphans(pages, root);
        graph
    }

    /// Adds the reason to links to files that exist but could not be read.
    pub fn note_unread(&mut self, unread: &[(String, String)]) {
        let unread: BTreeMap<&str, &str> = unread
            .iter()
            .map(|(path, why)| (path.as_str(), why.as_str()))
            .collect();
        for edge in self
            .edges
            .iter_mut()
            .filter(|edge| matches!(edge.fate, Fate::NoFile(_)))
        {
            let found = unread
                .get_key_value(edge.to.as_str())
                .or_else(|| unread.get_key_value(format!("{}.md", edge.to).as_str()));
            if let Some((path, why)) = found {
                (edge.to, edge.fate) = ((*path).to_owned(), Fate::Unread((*why).to_owned()));
            }
        }
    }

    pub fn broken(&self) -> impl Iterator<Item = &Edge> {
        self.edges.iter().filter(|edge| edge.fate != Fate::Fine)
    }

    /// Returns the links of each page that has any. Use `out_of` for a single page.
    pub fn by_page(&self) -> BTreeMap<&str, Vec<&Edge>> {
        let mut links: BTreeMap<&str, Vec<&Edge>> = BTreeMap::new();
        for edge in &self.edges {
            links.entry(&edge.from.path).or_default().push(edge);
        }
        links
    }

    pub fn out_of<'g>(&'g self, path: &'g str) -> impl Iterator<Item = &'g Edge> {
        self.edges.iter().filter(move |edge| edge.from.path == path)
    }

    pub fn leading_to<'g>(&'g self, path: &'g str) -> impl Iterator<Item = &'g Edge> {
        self.edges
            .iter()
            .filter(move |edge| edge.to == path && edge.from.path != path)
    }

    fn find_orphans(&mut self, pages: &[Page], root: Option<&str>) {
        let Some(root) = root else { return };
        let mut out: BTreeMap<&str, BTreeSet<&str>> = BTreeMap::new();
        for edge in &self.edges {
            out.entry(&edge.from.path).or_default().insert(&edge.to);
        }
        let mut reached = BTreeSet::from([root]);
        let mut next = VecDeque::from([root]);
        while let Some(path) = next.pop_front() {
            for to in out.get(path).into_iter().flatten() {
                if reached.insert(to) {
                    next.push_back(to);
                }
            }
        }
        let led: BTreeSet<&str> = self
            .edges
            .iter()
            .filter(|e| e.from.path != root && e.from.path != e.to)
            .map(|e| e.to.as_str())
            .collect();
        let orphan = |page: &&Page| !reached.contains(page.path.as_str());
        let orphans = pages
            .iter()
            .filter(orphan)
            .map(|page| Orphan {
                path: page.path.clone(),
                is_memory: page.is_memory,
            })
            .collect();
        let unlinked = pages
            .iter()
            .filter(|page| {
                page.is_memory
                    && page.path != root
                    && !orphan(page)
                    && !led.contains(page.path.as_str())
            })
            .map(|page| page.path.clone())
            .collect();
        (self.orphans, self.unlinked) = (orphans, unlinked);
    }
}

/// Whether a path names a file that is not a page, such as an image. Such files are not in `pages`,
/// so their links cannot be checked.
pub(crate) fn is_other_file(path: &str) -> bool {
    !path.ends_with(".md")
        && path
            .rsplit('/')
            .next()
            .is_some_and(|name| name.contains('.'))
}

/// Resolves a link on a page. Returns the path, and true if it is relative to the root. If no
/// candidate is a page, returns the first one.
pub fn resolve_link(
    from: &str,
    written: &str,
    kind: LinkKind,
    is_page: &dyn Fn(&str) -> bool,
) -> (String, bool) {
    if written.is_empty() {
        return (from.to_owned(), true);
    }
    let root_first = matches!(
        kind,
        LinkKind::Arrow | LinkKind::BareArrow | LinkKind::Press | LinkKind::Wiki
    );
    let rooted = tidy("", written.trim_start_matches('/'));
    let beside = tidy(
        from.rsplit_once('/').map_or("", |(folder, _)| folder),
        written,
    );
    let order = if root_first {
        [(&rooted, true), (&beside, false)]
    } else {
        [(&beside, false), (&rooted, true)]
    };
    for (path, from_root) in order {
        for candidate in [path.clone(), format!("{path}.md")] {
            if is_page(&candidate) {
                return (candidate, from_root);
            }
        }
    }
    (order[0].0.clone(), root_first)
}

/// Resolves `.` and `..` in a path.
fn tidy(folder: &str, path: &str) -> String {
    let mut parts: Vec<&str> = folder.split('/').filter(|part| !part.is_empty()).collect();
    for part in path.split('/') {
        match part {
            "" | "." => {}
            ".." => {
                parts.pop();
            }
            part => parts.push(part),
        }
    }
    parts.join("/")
}

/// Finds names similar to those in broken links, and caches the results. Each lookup compares a
/// name with all existing ones, so a text full of broken links would cost their product. After
/// `COMPARED` comparisons it suggests nothing more.
struct Suggested<'p> {
    pages: &'p BTreeMap<&'p str, usize>,
    paths: BTreeMap<String, Option<String>>,
    sections: BTreeMap<(String, String), Option<String>>,
    left: usize,
}

impl<'p> Suggested<'p> {
    fn new(pages: &'p BTreeMap<&'p str, usize>) -> Self {
        Suggested {
            pages,
            paths: BTreeMap::new(),
            sections: BTreeMap::new(),
            left: COMPARED,
        }
    }

    /// Returns the most similar path, if any is close.
    fn path(&mut self, wanted: &str) -> Option<String> {
        if let Some(known) = self.paths.get(wanted) {
            return known.clone();
        }
        self.left = self.left.checked_sub(self.pages.len())?;
        let near = nearest_path(wanted, self.pages);
        self.paths.insert(wanted.to_owned(), near.clone());
        near
    }

    /// Returns the most similar section of a page, if any is close.
    fn section(&mut self, path: &str, document: &Document<'_>, anchor: &str) -> Option<String> {
        let key = (path.to_owned(), anchor.to_owned());
        if let Some(known) = self.sections.get(&key) {
            return known.clone();
        }
        self.left = self.left.checked_sub(document.anchor_count())?;
        let near = document
            .nearest(anchor)
            .first()
            .map(|near| format!("{path}#{near}"));
        self.sections.insert(key, near.clone());
        near
    }
}

fn nearest_path(wanted: &str, pages: &BTreeMap<&str, usize>) -> Option<String> {
    fn name(path: &str) -> &str {
        path.rsplit('/').next().unwrap_or(path)
    }
    let length = wanted.chars().count();
    let likeness = |path: &str| {
        let other = path.chars().count();
        // Skip the edit distance if the lengths alone differ too much.
        let too_far = length.abs_diff(other) as f64 > (1.0 - LIKENESS) * length.max(other) as f64;
        let whole = if too_far || length > COMPARED_CHARS {
            0.0
        } else {
            strsim::normalized_damerau_levenshtein(wanted, path)
        };
        whole.max(if name(wanted) == name(path) { 0.9 } else { 0.0 })
    };
    let best = pages
        .keys()
        .map(|path| (likeness(path), *path))
        .max_by(|a, b| a.0.total_cmp(&b.0).then(b.1.cmp(a.1)))?;
    (best.0 >= LIKENESS).then(|| best.1.to_owned())
}

/// Returns the sections over the limit, with the entries to move to a separate file: lowest levels
/// first, until the rest is within the limit. The link to the new file counts too.
fn find_dense(page: &Page, document: &Document<'_>, most: usize) -> Vec<Dense> {
    let mut dense = Vec::new();
    for section in document.sections() {
        let links: Vec<_> = document
            .links_in(&section.body)
            .iter()
            .filter(|l| !matches!(l.kind, LinkKind::Press | LinkKind::Image))
            .collect();
        if links.len() <= most {
            continue;
        }
        // The first tag on a line is the level of its entry.
        let tags = document.level_tags_in(&section.body).iter().rev();
        let levels: BTreeMap<usize, Level> = tags.map(|tag| (tag.line, tag.level)).collect();
        let mut on_line: BTreeMap<usize, usize> = BTreeMap::new();
        links
            .iter()
            .for_each(|link| *on_line.entry(link.line).or_default() += 1);
        let mut lines: Vec<usize> = on_line.keys().copied().collect();
        lines.sort_by_key(|line| {
            (
                Reverse(levels.get(line).copied().unwrap_or(Level::Scene)),
                Reverse(*line),
            )
        });
        let mut moved = Vec::new();
        let mut stays = links.len() + 1;
        for line in lines {
            if stays <= most {
                break;
            }
            stays -= on_line[&line];
            moved.push(line);
        }
        moved.sort_unstable();
        let anchor = document.anchor_of(section);
        let stem = page.path.trim_end_matches(".md");
        let name = if anchor.is_empty() { "more" } else { anchor };
        dense.push(Dense {
            at: Place::new(&page.path, section.line),
            section: anchor.to_owned(),
            links: links.len(),
            split: format!("{stem}/{}.md", name.replace(['/', ' '], "-")),
            lines: moved,
        });
    }
    dense
}

#[cfg(test)]
mod tests {
    use super::*;

    pub(crate) fn page(path: &str, text: &str) -> Page {
        let tier = if path.starts_with("manuscripts/") {
            Tier::L2
        } else {
            Tier::L1
        };
        Page {
            path: path.into(),
            tier,
            is_memory: true,
            form: None,
            text: text.into(),
        }
    }

    #[test]
    fn links_are_read_from_the_root_or_from_beside() {
        let pages = [
            page(
                "a.md",
                "# A\n[→ b/c.md#one] [c](b/c.md) [x](gone.md) [→ b/c.md#on]\n",
            ),
            page(
                "b/c.md",
                "## One\n[back](../a.md) [→ a] [d](d.md)\n![p](p.png)\n",
            ),
            page("b/d.md", "# D\n"),
        ];
        let graph = Graph::of(&pages, Some("a.md"), 5);
        let told: Vec<(String, &Fate)> = graph.edges.iter().map(|e| (e.named(), &e.fate)).collect();
        assert_eq!(told[0], ("b/c.md#one".into(), &Fate::Fine));
        assert_eq!(told[2].1, &Fate::NoFile(None));
        assert_eq!(told[3].1, &Fate::NoSection(Some("b/c.md#one".into())));
        assert_eq!(told[5], ("a.md".into(), &Fate::Fine));
        assert_eq!(told[6].0, "b/d.md");
        assert_eq!(graph.broken().count(), 2);
        assert!(graph.orphans.is_empty());
        assert_eq!(graph.leading_to("a.md").count(), 2);
    }

    #[test]
    fn what_nothing_leads_to_is_an_orphan() {
        let pages = [
            page("index.md", "- [→ 角色.md] x\n"),
            page("角色.md", "## 奥托\n"),
            page("旧稿.md", "[→ 角色.md#奥脱]\n"),
        ];
        let graph = Graph::of(&pages, Some("index.md"), 5);
        assert_eq!(
            graph.orphans,
            [Orphan {
                path: "旧稿.md".into(),
                is_memory: true
            }]
        );
        assert_eq!(
            graph.broken().next().unwrap().fate,
            Fate::NoSection(Some("角色.md#奥托".into()))
        );
    }

    /// Each case would take minutes if every link were compared with all others, or with all
    /// sections.
    #[test]
    fn hostile_links_are_read_in_linear_time() {
        const MANY: usize = 20_000;
        let text = |line: &dyn Fn(usize) -> String| -> String { (0..MANY).map(line).collect() };
        let broken = Graph::of(
            &[page("a.md", &text(&|n| format!("- [arc] [[gone{n}]]\n")))],
            None,
            5,
        );
        assert_eq!(
            (broken.broken().count(), broken.dense[0].lines.len()),
            (MANY, MANY - 4)
        );
        let anchors = page(
            "a.md",
            &text(&|n| format!("## H{n}\n\n[[a#hx{n}]] [[a#t/h{n}]]\n\n")),
        );
        assert_eq!(Graph::of(&[anchors], None, 5).broken().count(), 2 * MANY);
        let same = page(
            "a.md",
            &(String::from("# Top\n")
                + &text(&|n| format!("## Same\n\n[[a#top{n}/same]] [[a#top/same]]\n\n"))),
        );
        assert_eq!(Graph::of(&[same], None, 5).broken().count(), MANY);
        let arrows = page("a.md", &(String::from("- ") + &"→".repeat(MANY * 2)));
        assert_eq!(Graph::of(&[arrows], None, 5).edges.len(), 0);
    }

    #[test]
    fn no_more_is_suggested_than_can_be_compared() {
        let pages = [page("a.md", "[[bb]] [[bbx]] [[bb]]\n"), page("b.md", "")];
        let by_path = pages
            .iter()
            .enumerate()
            .map(|(nth, page)| (page.path.as_str(), nth))
            .collect();
        let mut suggested = Suggested {
            left: 3,
            ..Suggested::new(&by_path)
        };
        let asked: Vec<Option<String>> = ["b/b.md", "c/b.md", "b/b.md"]
            .into_iter()
            .map(|path| suggested.path(path))
            .collect();
        assert_eq!(
            asked,
            [Some("b.md".to_owned()), None, Some("b.md".to_owned())]
        );
    }

    #[test]
    fn dense_sections_are_split_at_their_lowest_facts() {
        let text = "## Otto\n- [premise] a [→ m.md]\n- [scene] b [→ m.md]\n- [arc] c [→ m.md]\n- d [→ m.md]\n";
        let graph = Graph::of(&[page("characters.md", text), page("m.md", "")], None, 3);
        let dense = &graph.dense[0];
        assert_eq!(
            (dense.links, dense.split.as_str()),
            (4, "characters/otto.md")
        );
        assert_eq!(dense.lines, [3, 5]);
    }
}
