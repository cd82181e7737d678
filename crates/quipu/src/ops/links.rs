//! The `links` command: shows the link graph of a project.

use std::path::PathBuf;

use clap::Args;
use quipu_claims::{Edge, Fate, Graph, render_dot, render_svg};
use quipu_protocol::link_graph;
use serde_json::{Value, json};

use crate::answer::{Answer, Failure, count, exit};
use crate::session::Session;
use crate::table::Operate;

#[derive(Debug, Args)]
pub struct Links {
    /// Show only the links of this file
    path: Option<String>,
    /// Show links to the file
    #[arg(long = "in", requires = "path")]
    into: bool,
    /// Show links from the file
    #[arg(long, requires = "path")]
    out: bool,
    /// Show broken links, each with the nearest existing target
    #[arg(long)]
    broken: bool,
    /// Show files that cannot be reached from the index
    #[arg(long)]
    orphans: bool,
    /// Show sections with too many links, and suggest a split for each
    #[arg(long)]
    dense: bool,
    /// Print the graph in Graphviz DOT format
    #[arg(long, conflicts_with = "svg")]
    dot: bool,
    /// Draw the graph into this file; `-` writes to stdout
    #[arg(long, value_name = "FILE")]
    svg: Option<PathBuf>,
}

impl Operate for Links {
    const NAME: &'static str = "links";
    const ABOUT: &'static str =
        "Show the link graph: targets, broken links, orphans, dense sections";

    fn operate(self, session: &Session) -> Result<Answer, Failure> {
        let path = self.path.as_deref().map(Session::path).transpose()?;
        let project = session.project()?;
        let (graph, root) = link_graph(&project, &session.actor)?;
        if self.dot {
            let dot = render_dot(&graph);
            return Ok(Answer::new(json!({"dot": dot}), dot));
        }
        if let Some(file) = &self.svg {
            return super::picture::deliver(
                session,
                &project,
                file,
                &render_svg(&graph, root.as_deref()),
            );
        }
        if let Some(path) = path {
            return of_path(&graph, path.as_str(), self.into, self.out);
        }
        let all = !(self.broken || self.orphans || self.dense);
        let mut text = String::new();
        let mut json = serde_json::Map::new();
        let broken: Vec<&Edge> = graph.broken().collect();
        if all {
            let orphans = graph
                .orphans
                .iter()
                .filter(|orphan| orphan.is_memory)
                .count();
            text.push_str(&format!(
                "{}, {}: {} broken, {}, {} dense\n",
                count(graph.pages.len(), "file"),
                count(graph.edges.len(), "link"),
                broken.len(),
                count(orphans, "orphan"),
                graph.dense.len()
            ));
            json.insert("pages".into(), json!(graph.pages));
            json.insert("links".into(), json!(graph.edges));
        }
        if all || self.broken {
            broken
                .iter()
                .for_each(|edge| text.push_str(&render_broken(edge)));
            json.insert("broken".into(), json!(broken));
        }
        if all || self.orphans {
            for orphan in graph
                .orphans
                .iter()
                .filter(|orphan| self.orphans || orphan.is_memory)
            {
                let note = if orphan.is_memory {
                    ""
                } else {
                    "  (work in progress)"
                };
                text.push_str(&format!("orphan  {}{note}\n", orphan.path));
            }
            if self.orphans {
                graph.unlinked.iter().for_each(|path| {
                    text.push_str(&format!(
                        "alone   {path}  (only {} links to it)\n",
                        root.as_deref().unwrap_or("the root")
                    ))
                });
            }
            json.insert("root".into(), json!(root));
            json.insert("orphans".into(), json!(graph.orphans));
            json.insert("unlinked".into(), json!(graph.unlinked));
        }
        if all || self.dense {
            for dense in &graph.dense {
                let lines = dense
                    .lines
                    .iter()
                    .map(ToString::to_string)
                    .collect::<Vec<_>>()
                    .join(", ");
                text.push_str(&format!(
                    "dense   {} #{} has {}\n",
                    dense.at,
                    dense.section,
                    count(dense.links, "link")
                ));
                text.push_str(&format!(
                    "        split: move the entries of lines {lines} to {}, and link to it\n",
                    dense.split
                ));
            }
            json.insert("dense".into(), json!(graph.dense));
        }
        let mut answer = Answer::new(Value::Object(json), text);
        if (all || self.broken) && !broken.is_empty() {
            answer.exit = exit::NO;
        }
        Ok(answer)
    }
}

fn of_path(graph: &Graph, path: &str, into: bool, out: bool) -> Result<Answer, Failure> {
    if !graph.pages.iter().any(|page| page == path) {
        return Err(Failure::new(
            exit::NOT_FOUND,
            format!("`{path}` is not a page that you may read"),
            "quipu status --files",
        ));
    }
    let both = into == out;
    let outgoing: Vec<&Edge> = graph.out_of(path).filter(|_| both || out).collect();
    let incoming: Vec<&Edge> = graph.leading_to(path).filter(|_| both || into).collect();
    let mut text = String::new();
    for edge in &outgoing {
        let sign = if edge.presses { '⊣' } else { '→' };
        text.push_str(&format!(
            "{}  {sign} {}{}\n",
            edge.from,
            edge.named(),
            if edge.fate == Fate::Fine {
                ""
            } else {
                "  (broken)"
            }
        ));
    }
    for edge in &incoming {
        let sign = if edge.presses { '⊢' } else { '←' };
        let anchor = edge
            .anchor
            .as_ref()
            .map(|anchor| format!("#{anchor}"))
            .unwrap_or_default();
        text.push_str(&format!("{path}{anchor}  {sign} {}\n", edge.from));
    }
    let talk = format!("{} out, {} in", outgoing.len(), incoming.len());
    Ok(Answer::new(json!({"path": path, "out": outgoing, "in": incoming}), text).say(talk))
}

fn render_broken(edge: &Edge) -> String {
    let (what, nearest) = match &edge.fate {
        Fate::NoFile(nearest) => ("no such file", nearest.as_ref()),
        Fate::NoSection(nearest) => ("no such section", nearest.as_ref()),
        Fate::Unread(why) => {
            return format!("unread  {} → {}: the file {why}\n", edge.from, edge.named());
        }
        Fate::Fine => return String::new(),
    };
    let near = nearest
        .map(|nearest| format!("; nearest: {nearest}"))
        .unwrap_or_default();
    format!("broken  {} → {}: {what}{near}\n", edge.from, edge.named())
}
