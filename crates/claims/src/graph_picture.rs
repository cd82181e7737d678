//! Draws the link graph, as Graphviz input or as a self-contained SVG.
//!
//! Columns show the tiers of pages or, in a memory without tiers, the distance from the root.
//! Broken links are dashed, pressure links end in a bar, and links from the root are faint.

use std::collections::{BTreeMap, VecDeque};

use quipu_recall::Tier;

use crate::graph::{Fate, Graph};

const COLUMN: usize = 250;
const ROW: usize = 46;
const BOX: (usize, usize) = (170, 28);
const TOP: usize = 44;

/// Groups the edges by page pair and kind. Returns the number of edges, and whether any of them is
/// broken.
fn bundles(graph: &Graph) -> BTreeMap<(&str, &str, bool), (usize, bool)> {
    let mut bundles: BTreeMap<(&str, &str, bool), (usize, bool)> = BTreeMap::new();
    for edge in graph.edges.iter().filter(|edge| edge.from.path != edge.to) {
        let bundle = bundles
            .entry((&edge.from.path, &edge.to, edge.presses))
            .or_default();
        bundle.0 += 1;
        bundle.1 |= edge.fate != Fate::Fine;
    }
    bundles
}

pub fn render_dot(graph: &Graph) -> String {
    let mut text = String::from("digraph links {\n  rankdir=LR; node [shape=box];\n");
    for page in &graph.pages {
        text.push_str(&format!("  {page:?};\n"));
    }
    for ((from, to, presses), (count, broken)) in bundles(graph) {
        let style = if broken { ", style=dashed" } else { "" };
        let head = if presses { ", arrowhead=tee" } else { "" };
        text.push_str(&format!(
            "  {from:?} -> {to:?} [label=\"{count}\"{style}{head}];\n"
        ));
    }
    text + "}\n"
}

pub fn render_svg(graph: &Graph, root: Option<&str>) -> String {
    let places = place(graph, root);
    let width = places
        .values()
        .map(|(x, _)| x + BOX.0)
        .max()
        .unwrap_or(BOX.0)
        + 40;
    let height = places
        .values()
        .map(|(_, y)| y + BOX.1)
        .max()
        .unwrap_or(BOX.1)
        + 40;
    let mut svg = format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {width} {height}\" width=\"{width}\" height=\"{height}\" font-family=\"sans-serif\" font-size=\"12\">\n\
         <title>Links between {} files</title>\n\
         <defs><marker id=\"a\" viewBox=\"0 0 8 8\" refX=\"8\" refY=\"4\" markerWidth=\"7\" markerHeight=\"7\" orient=\"auto\"><path d=\"M0 0L8 4L0 8z\" fill=\"#5b6b7b\"/></marker>\n\
         <marker id=\"t\" viewBox=\"0 0 8 8\" refX=\"6\" refY=\"4\" markerWidth=\"7\" markerHeight=\"7\" orient=\"auto\"><path d=\"M5 0V8\" stroke=\"#b3412f\" stroke-width=\"2\"/></marker></defs>\n\
         <rect width=\"100%\" height=\"100%\" fill=\"#fbfaf7\"/>\n",
        graph.pages.len()
    );
    svg.push_str(&render_headings(graph, &places));
    for ((from, to, presses), (count, broken)) in bundles(graph) {
        let (Some((fx, fy)), Some((tx, ty))) = (places.get(from), places.get(to)) else {
            continue;
        };
        let (fy, ty) = (fy + BOX.1 / 2, ty + BOX.1 / 2);
        let colour = if presses || broken {
            "#b3412f"
        } else {
            "#5b6b7b"
        };
        let dash = if broken {
            " stroke-dasharray=\"5 4\""
        } else {
            ""
        };
        let head = if presses { "t" } else { "a" };
        // Forward links leave on the right. Links that go back, or stay within a column, curve
        // outwards so that they do not cross the boxes.
        let path = if tx > fx {
            let (x1, bend) = (fx + BOX.0, (tx - fx - BOX.0) / 2);
            format!("M{x1} {fy}C{} {fy} {} {ty} {tx} {ty}", x1 + bend, tx - bend)
        } else {
            let (x1, x2) = (fx + BOX.0, tx + BOX.0);
            let out = x1.max(x2) + 44;
            format!("M{x1} {fy}C{out} {fy} {out} {ty} {x2} {ty}")
        };
        let faint = if root == Some(from) { 0.25 } else { 0.75 };
        let weight = 1.0 + (count.min(6) as f64 - 1.0) * 0.4;
        svg.push_str(&format!(
            "<path d=\"{path}\" fill=\"none\" stroke=\"{colour}\" stroke-opacity=\"{faint}\" stroke-width=\"{weight:.1}\"{dash} marker-end=\"url(#{head})\"><title>{} → {}: {count}</title></path>\n",
            escaped(from),
            escaped(to)
        ));
    }
    for (path, (x, y)) in &places {
        let known = graph.pages.iter().any(|page| page == path);
        let (fill, stroke) = match (known, root == Some(*path)) {
            (false, _) => ("#fff", "#b3412f"),
            (true, true) => ("#dfe9f2", "#2f5d85"),
            (true, false) => ("#fff", "#8a97a3"),
        };
        svg.push_str(&format!(
            "<g><title>{path}</title><rect x=\"{x}\" y=\"{y}\" width=\"{}\" height=\"{}\" rx=\"5\" fill=\"{fill}\" stroke=\"{stroke}\"/>\
             <text x=\"{}\" y=\"{}\" fill=\"#1d2733\">{}</text></g>\n",
            BOX.0,
            BOX.1,
            x + 10,
            y + 18,
            short(path),
            path = escaped(path),
        ));
    }
    svg + "</svg>\n"
}

/// Draws the heading of each column if columns are tiers, and the legend for red lines if there are
/// any.
fn render_headings(graph: &Graph, places: &BTreeMap<&str, (usize, usize)>) -> String {
    let mut svg = String::new();
    let tiers = if graph.tiers.contains(&Some(Tier::L2)) {
        &["L0", "L1", "L2", "–"][..]
    } else {
        &[]
    };
    for (nth, name) in tiers
        .iter()
        .enumerate()
        .filter(|(nth, _)| places.values().any(|(x, _)| *x == 20 + nth * COLUMN))
    {
        svg.push_str(&format!(
            "<text x=\"{}\" y=\"28\" fill=\"#5b6b7b\" font-weight=\"bold\">{name}</text>\n",
            20 + nth * COLUMN
        ));
    }
    if graph.edges.iter().any(|edge| edge.presses) {
        svg.push_str(&format!(
            "<text x=\"{}\" y=\"28\" fill=\"#b3412f\">⊣</text>\n",
            20 + COLUMN + BOX.0 + 16
        ));
    }
    svg
}

/// Assigns a column to each page by tier (or by distance from the root), with pages outside memory
/// last. Rows are in page order.
fn place<'g>(graph: &'g Graph, root: Option<&'g str>) -> BTreeMap<&'g str, (usize, usize)> {
    let columns = if graph.tiers.contains(&Some(Tier::L2)) {
        by_tier(graph, root)
    } else {
        by_distance(graph, root)
    };
    let last = columns.values().max().map_or(0, |deepest| deepest + 1);
    let named = graph
        .pages
        .iter()
        .map(String::as_str)
        .chain(graph.edges.iter().map(|edge| edge.to.as_str()));
    let mut rows: BTreeMap<usize, usize> = BTreeMap::new();
    let mut places = BTreeMap::new();
    for path in named {
        if places.contains_key(path) {
            continue;
        }
        let column = columns.get(path).copied().unwrap_or(last);
        let row = rows.entry(column).or_default();
        places.insert(path, (20 + column * COLUMN, TOP + *row * ROW));
        *row += 1;
    }
    places
}

fn by_tier<'g>(graph: &'g Graph, root: Option<&str>) -> BTreeMap<&'g str, usize> {
    let column = |path: &str, tier: Option<Tier>| match tier {
        _ if root == Some(path) => Some(0),
        Some(Tier::L0) => Some(0),
        Some(Tier::L1) => Some(1),
        Some(Tier::L2) => Some(2),
        None => None,
    };
    graph
        .pages
        .iter()
        .zip(&graph.tiers)
        .filter_map(|(path, tier)| Some((path.as_str(), column(path, *tier)?)))
        .collect()
}

fn by_distance<'g>(graph: &'g Graph, root: Option<&'g str>) -> BTreeMap<&'g str, usize> {
    let mut depth: BTreeMap<&str, usize> = BTreeMap::new();
    let mut next = VecDeque::new();
    if let Some(root) = root {
        depth.insert(root, 0);
        next.push_back(root);
    }
    let edges = graph.by_page();
    while let Some(path) = next.pop_front() {
        let below = depth[path] + 1;
        for edge in edges.get(path).into_iter().flatten() {
            if !depth.contains_key(edge.to.as_str()) {
                depth.insert(&edge.to, below);
                next.push_back(&edge.to);
            }
        }
    }
    depth
}

fn short(path: &str) -> String {
    let wide = |c: char| if c.is_ascii() { 1 } else { 2 };
    let mut room = 22;
    let mut kept = String::new();
    for c in path.chars() {
        if room < wide(c) {
            kept.push('…');
            break;
        }
        room -= wide(c);
        kept.push(c);
    }
    escaped(&kept)
}

pub(crate) fn escaped(text: &str) -> String {
    text.replace('&', "&amp;")
        .replace('<', "&lt;")
        .replace('>', "&gt;")
        .replace('"', "&quot;")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::page::Page;
    use quipu_recall::Tier;

    #[test]
    fn a_hostile_name_cannot_leave_its_element() {
        let page = |path: &str, text: &str| Page {
            path: path.into(),
            tier: Tier::L1,
            is_memory: true,
            form: None,
            text: text.into(),
        };
        let graph = Graph::of(
            &[
                page("a.md", "[→ b&'x.md]\n"),
                page("b&'x.md", "# x\n"),
                page("<c>.md", ""),
            ],
            Some("a.md"),
            5,
        );
        let svg = render_svg(&graph, Some("a.md"));
        assert!(
            svg.contains("b&amp;'x.md") && svg.contains("&lt;c&gt;.md") && !svg.contains("<c>")
        );
        assert!(render_dot(&graph).contains("\"a.md\" -> \"b&'x.md\""));
    }
}
