//! The `links` command: shows the link graph of a project.

use std::path::PathBuf;

use clap::Args;
use quipu_claims::{Edge, Fate, Graph, render_dot, render_svg};
use quipu_contract::Language;
use quipu_protocol::chinese::message_or_same;
use quipu_protocol::link_graph;
use serde_json::{Value, json};

use crate::answer::{Answer, Failure, count, exit, in_language};
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
        let language = project.contract.language;
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
            return of_path(language, &graph, path.as_str(), self.into, self.out);
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
            let (pages, links) = (graph.pages.len(), graph.edges.len());
            let (broken, dense) = (broken.len(), graph.dense.len());
            text.push_str(&in_language(
                language,
                format!(
                    "{}, {}: {broken} broken, {}, {dense} dense\n",
                    count(pages, "file"),
                    count(links, "link"),
                    count(orphans, "orphan"),
                ),
                format!(
                    "{pages} 个文件，{links} 个链接：断开 {broken} 个，孤立文件 {orphans} 个，过密 \
                     {dense} 节\n"
                ),
            ));
            json.insert("pages".into(), json!(graph.pages));
            json.insert("links".into(), json!(graph.edges));
        }
        if all || self.broken {
            broken
                .iter()
                .for_each(|edge| text.push_str(&render_broken(language, edge)));
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
                    in_language(language, "  (work in progress)", "  （进行中的稿件）")
                };
                let label = in_language(language, "orphan", "孤立  ");
                text.push_str(&format!("{label}  {}{note}\n", orphan.path));
            }
            if self.orphans {
                graph.unlinked.iter().for_each(|path| {
                    let root = root.as_deref();
                    text.push_str(&in_language(
                        language,
                        format!(
                            "alone   {path}  (only {} links to it)\n",
                            root.unwrap_or("the root")
                        ),
                        format!(
                            "单链    {path}  （只有 {} 链接到它）\n",
                            root.unwrap_or("根页")
                        ),
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
                let (at, section, links, split) =
                    (&dense.at, &dense.section, dense.links, &dense.split);
                text.push_str(&in_language(
                    language,
                    format!(
                        "dense   {at} #{section} has {}\n        split: move the entries of lines \
                         {lines} to {split}, and link to it\n",
                        count(links, "link")
                    ),
                    format!(
                        "过密    {at} #{section} 有 {links} 个链接\n        拆分：把第 {lines} \
                         行的条目移到 {split}，并链接到它\n"
                    ),
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

fn of_path(
    language: Language,
    graph: &Graph,
    path: &str,
    into: bool,
    out: bool,
) -> Result<Answer, Failure> {
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
                in_language(language, "  (broken)", "  （断开）")
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
    let (from, to) = (outgoing.len(), incoming.len());
    let talk = in_language(
        language,
        format!("{from} out, {to} in"),
        format!("链出 {from} 个，链入 {to} 个"),
    );
    Ok(Answer::new(json!({"path": path, "out": outgoing, "in": incoming}), text).say(talk))
}

fn render_broken(language: Language, edge: &Edge) -> String {
    let say = |en: &'static str, zh: &'static str| in_language(language, en, zh);
    let link = format!("{} → {}", edge.from, edge.named());
    let (what, nearest) = match &edge.fate {
        Fate::NoFile(nearest) => (say("no such file", "没有这个文件"), nearest.as_ref()),
        Fate::NoSection(nearest) => (say("no such section", "没有这一节"), nearest.as_ref()),
        Fate::Unread(why) => {
            return in_language(
                language,
                format!("unread  {link}: the file {why}\n"),
                format!("未读    {link}：文件 {}\n", message_or_same(why)),
            );
        }
        Fate::Fine => return String::new(),
    };
    let label = say("broken  ", "断开    ");
    let near = nearest.map(|nearest| format!("{}{nearest}", say("; nearest: ", "；最接近的是 ")));
    let near = near.unwrap_or_default();
    format!("{label}{link}{}{what}{near}\n", say(": ", "："))
}
