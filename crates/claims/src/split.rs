//! Plans the split of a page that exceeds its size limit, without breaking links.
//!
//! All H2 sections except the last move to separate pages, in a folder named after the page. A link
//! replaces each of them. Links into moved sections are rewritten on all pages.

use std::collections::BTreeSet;

use quipu_text::{Document, Splice, splice_all};

use crate::graph::Graph;
use crate::memory::plain;
use crate::page::Page;
use crate::rename::FixedPage;

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Split {
    /// The page itself, and every other page with rewritten links.
    pub changed: Vec<FixedPage>,
    /// New pages: path and text.
    pub created: Vec<(String, String)>,
}

/// Plans the split of a page. Returns `None` if it has fewer than two H2 sections.
pub fn plan_split(pages: &[Page], path: &str) -> Option<Split> {
    let page = pages.iter().find(|page| page.path == path)?;
    let document = Document::parse(&page.text);
    let arcs: Vec<_> = document
        .sections()
        .iter()
        .filter(|section| section.level == 2)
        .collect();
    let (_, moved) = arcs.split_last()?;
    if moved.is_empty() {
        return None;
    }
    let stem = path.trim_end_matches(".md");
    let name = |section: &quipu_text::Section| {
        format!(
            "{stem}/{}.md",
            document.anchor_of(section).replace(['/', ' ', '.'], "-")
        )
    };
    let graph = Graph::of(pages, None, usize::MAX);
    // Rewrite links into moved sections. Links from a moved page back to the page are rewritten
    // too.
    let retarget = |edge: &crate::graph::Edge, from: &str| -> Option<String> {
        let anchor = edge.anchor.as_ref()?;
        if edge.to != path {
            return None;
        }
        let section = document.lookup(anchor)?;
        let before = moved.partition_point(|arc| arc.range.start <= section.range.start);
        let home = before
            .checked_sub(1)
            .map(|at| &moved[at])
            .filter(|arc| section.range.end <= arc.range.end);
        match home {
            Some(arc) => Some(format!("{}#{anchor}", name(arc))),
            None if from == path => Some(format!("{path}#{anchor}")),
            None => None,
        }
    };
    let (mut changed, mut created) = (Vec::new(), Vec::new());
    let edges = graph.by_page();
    for other in pages {
        let mut splices: Vec<Splice> = Vec::new();
        let mut links = Vec::new();
        // Reference links share the target of their definition.
        let mut seen = BTreeSet::new();
        for edge in edges.get(other.path.as_str()).into_iter().flatten() {
            if let Some(text) = retarget(edge, &other.path)
                && seen.insert(edge.target.start)
                && other.text[edge.target.clone()] != text
            {
                splices.push(Splice {
                    range: edge.target.clone(),
                    text,
                });
                links.push(edge.from.clone());
            }
        }
        let mut text = splice_all(&other.text, &splices).ok()?;
        if other.path == path {
            let fixed = Document::parse(&text);
            let arcs: Vec<_> = fixed
                .sections()
                .iter()
                .filter(|section| section.level == 2)
                .collect();
            let mut cuts = Vec::new();
            for (old, new) in moved.iter().zip(&arcs) {
                created.push((name(old), promoted(fixed.slice(&new.range))));
                let first = fixed
                    .first_sentence(new)
                    .map(|sentence| format!(" {}", plain(&sentence)))
                    .unwrap_or_default();
                let stub = format!(
                    "{}\n- [→ {}]{first}\n\n",
                    fixed.slice(&new.heading).trim_end(),
                    name(old)
                );
                cuts.push(Splice {
                    range: new.range.clone(),
                    text: stub,
                });
            }
            text = splice_all(&text, &cuts).ok()?;
        } else if splices.is_empty() {
            continue;
        }
        changed.push(FixedPage {
            path: other.path.clone(),
            text,
            links,
        });
    }
    Some(Split { changed, created })
}

/// Turns a section into a page: raises every heading by one level.
fn promoted(section: &str) -> String {
    let document = Document::parse(section);
    let splices: Vec<Splice> = document
        .sections()
        .iter()
        .filter(|section| section.level >= 2)
        .map(|found| Splice {
            range: found.heading.start..found.heading.start + 1,
            text: String::new(),
        })
        .collect();
    let text = splice_all(section, &splices).unwrap_or_else(|_| section.to_owned());
    format!("{}\n", text.trim_end())
}

#[cfg(test)]
mod tests {
    use super::*;
    use quipu_recall::Tier;

    #[test]
    fn arcs_move_and_links_follow() {
        let page = |path: &str, text: &str| Page {
            path: path.into(),
            tier: Tier::L1,
            is_memory: true,
            form: None,
            text: text.into(),
        };
        let pages = [
            page(
                "a.md",
                "[→ chronicle.md#ch01] [→ chronicle.md#ch02] [→ chronicle.md]\n",
            ),
            page(
                "chronicle.md",
                "# Chronicle\n\n## The Fair\n\n### ch01\n- x [→ chronicle.md#ch02]\n\n## 桥\n\n### ch02\n- y [→ chronicle.md#ch01]\n",
            ),
            page("z.md", "[→ chronicle.md#the-fair]\n"),
        ];
        let split = plan_split(&pages, "chronicle.md").unwrap();
        assert_eq!(
            split.created,
            [(
                "chronicle/the-fair.md".to_owned(),
                "# The Fair\n\n## ch01\n- x [→ chronicle.md#ch02]\n".to_owned()
            )]
        );
        let text = |path: &str| {
            split
                .changed
                .iter()
                .find(|m| m.path == path)
                .map(|m| m.text.clone())
                .unwrap()
        };
        assert_eq!(
            text("a.md"),
            "[→ chronicle/the-fair.md#ch01] [→ chronicle.md#ch02] [→ chronicle.md]\n"
        );
        assert_eq!(text("z.md"), "[→ chronicle/the-fair.md#the-fair]\n");
        assert_eq!(
            text("chronicle.md"),
            "# Chronicle\n\n## The Fair\n- [→ chronicle/the-fair.md] x\n\n## 桥\n\n### ch02\n- y [→ chronicle/the-fair.md#ch01]\n"
        );
        assert_eq!(plan_split(&pages, "a.md"), None);
    }
}
