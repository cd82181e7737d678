//! The letter to the authors: the result, a checklist, the manuscript with its comments, and a
//! template for their reply. SARIF carries the open comments to pages that host code.
//!
//! All three files are derived from the reports and can be written again at any time.

mod markdown;
mod page;
mod sarif;

use quipu_contract::{Actor, Contract, Form, Language, PanelPart, ProjectPath};
use quipu_store::{Change, Expect, Op, Receipt, StoreError};
use thiserror::Error;

use super::comment::{Severity, Status};
use super::report::Report;
use super::rounds::{Comment, Rounds};
use super::state::{PanelView, panel_view};
use crate::flow::{FlowCache, FlowError, flow_now};
use crate::project::open::Project;

#[derive(Debug, Error)]
pub enum LetterError {
    #[error("the contract declares no file of form `letter`")]
    NoLetter,
    #[error("no report is in yet")]
    NoReports,
    #[error(transparent)]
    Flow(#[from] FlowError),
    #[error(transparent)]
    Store(#[from] StoreError),
}

/// The text of a reply's template before its first comment.
pub(super) const TEMPLATE_OPENING: [&str; 2] = [
    "Copy this part into a file, fill it in, and hand it in with the revision. To decline a comment, \
     say why.",
    "把这一部分复制到文件里填好，与修改稿一并提交。不改的意见请写明理由。",
];

/// What the files of the letter are rendered from.
pub(super) struct Letter<'l> {
    pub language: Language,
    pub title: String,
    pub manuscript: String,
    pub text: &'l str,
    pub panel: &'l PanelView,
    /// The report that weighs the panel, and the one that sums it up.
    pub weighed: Option<&'l Report>,
    pub summed: Option<&'l Report>,
}

/// Something that the authors should do: one comment, or several that say the same.
pub(super) struct Point<'l> {
    pub number: usize,
    pub severity: Severity,
    /// What the report that weighs the panel says of it, if it joins comments.
    pub text: Option<String>,
    pub comments: Vec<&'l Comment>,
}

impl Letter<'_> {
    pub fn say<'t>(&self, en: &'t str, zh: &'t str) -> &'t str {
        match self.language {
            Language::En => en,
            Language::Zh => zh,
        }
    }

    pub fn severity(&self, severity: Severity) -> &'static str {
        severity.in_language(self.language)
    }

    pub fn status(&self, status: Status) -> &'static str {
        match (self.language, status) {
            (Language::En, status) => status.as_str(),
            (Language::Zh, Status::Open) => "未回应",
            (Language::Zh, Status::Addressed) => "已解决",
            (Language::Zh, Status::Partly) => "部分解决",
            (Language::Zh, Status::NotAddressed) => "未解决",
            (Language::Zh, Status::CannotBeChecked) => "无法核对",
            (Language::Zh, Status::Declined) => "同意不改",
            (Language::Zh, Status::Withdrawn) => "已撤回",
        }
    }

    /// The points, gravest first, then in the order of the manuscript.
    pub fn points(&self) -> Vec<Point<'_>> {
        let open = || self.panel.comments.iter().filter(|c| c.is_open());
        let mut points = Vec::new();
        let mut placed: Vec<&str> = Vec::new();
        for issue in self.weighed.iter().flat_map(|report| &report.issues) {
            let names = |id: &String| issue.comments.contains(id);
            let is_of = |c: &&Comment| names(&c.id) || c.joined_to.as_ref().is_some_and(names);
            let comments: Vec<&Comment> = open().filter(is_of).collect();
            placed.extend(comments.iter().map(|c| c.id.as_str()));
            if !comments.is_empty() {
                points.push(Point {
                    number: 0,
                    severity: issue.severity,
                    text: (comments.len() > 1).then(|| issue.text.clone()),
                    comments,
                });
            }
        }
        let others = || open().filter(|c| !placed.contains(&c.id.as_str()));
        for comment in others().filter(|c| c.is_asked()) {
            let joined = others().filter(|c| c.joined_to.as_ref() == Some(&comment.id));
            points.push(Point {
                number: 0,
                severity: comment.severity,
                text: comment.matter.as_ref().map(|matter| matter.text.clone()),
                comments: std::iter::once(comment).chain(joined).collect(),
            });
        }
        points.sort_by_key(|point| (point.severity, point.comments[0].line));
        for (at, point) in points.iter_mut().enumerate() {
            point.number = at + 1;
        }
        points
    }

    /// The title of an agent.
    pub fn agent<'c>(&'c self, comment: &'c Comment) -> &'c str {
        let mut members = self.panel.members.iter();
        let member = members.find(|member| member.id == comment.agent);
        let checks = self.panel.checks.as_ref();
        let checks = checks.filter(|checks| checks.id == comment.agent);
        let title = member.map(|member| &member.title);
        title
            .or(checks.map(|checks| &checks.title))
            .unwrap_or(&comment.agent)
    }

    /// The words of a comment's newest answer. They are given once, where several comments share them.
    pub fn answer(&self, comment: &Comment) -> Option<String> {
        let text = &comment.answer.as_ref()?.text;
        Some(match &comment.joined_to {
            None => text.clone(),
            Some(id) => format!("{} {id}", self.say("see", "见")),
        })
    }

    /// The comments that are no longer open. Those that were joined to others count with them.
    pub fn resolved(&self) -> impl Iterator<Item = &Comment> {
        let all = self.panel.comments.iter();
        all.filter(|c| !c.is_open() && c.joined_to.is_none())
    }

    pub fn place(&self, comment: &Comment) -> String {
        comment.place(self.language)
    }

    pub fn verdict(&self) -> &str {
        let given = self.panel.verdict.as_deref();
        given.unwrap_or_else(|| self.say("not given yet", "尚未给出"))
    }
}

/// Writes the letter. Returns the paths with the receipt.
pub fn write_letter(project: &Project) -> Result<(Receipt, Vec<ProjectPath>), LetterError> {
    let contract = &project.contract;
    let paths: Vec<ProjectPath> = contract
        .of_form(Form::Letter)
        .filter_map(|rule| ProjectPath::parse(rule.path.as_literal()?).ok())
        .collect();
    if paths.is_empty() {
        return Err(LetterError::NoLetter);
    }
    let read = |path: &ProjectPath| {
        let found = project.store.read(path).ok().flatten();
        found.map(|(bytes, _)| String::from_utf8_lossy(&bytes).into_owned())
    };
    let (flow, _) = flow_now(project, &FlowCache::default())?;
    let panel = panel_view(contract, &flow, &read, &[]);
    if panel.members.iter().all(|m| m.report.is_none()) && panel.comments.is_empty() {
        return Err(LetterError::NoReports);
    }
    let rounds = Rounds::load(contract, &read);
    let letter = letter(contract, &panel, &rounds);
    let mut change = Change::by(&Actor::Runtime).why("the letter, derived from the reports");
    for path in &paths {
        let text = match path.as_str().rsplit('.').next() {
            Some("html") => page::render(&letter),
            Some("sarif" | "json") => sarif::render(&letter),
            _ => markdown::render(&letter),
        };
        change = change.op(Op::Derive {
            path: path.clone(),
            bytes: text.into_bytes(),
            expect: Expect::Any,
        });
    }
    Ok((project.validate(change)?.publish()?, paths))
}

fn letter<'l>(contract: &Contract, panel: &'l PanelView, rounds: &'l Rounds<'_>) -> Letter<'l> {
    let report = |part: PanelPart| {
        let member = panel.members.iter().find(|member| {
            let step = contract.step(&member.id);
            !member.stale && step.and_then(|step| step.panel) == Some(part)
        });
        member.and_then(|member| member.report.as_ref())
    };
    let binding = contract.binding();
    let value = |name: &str| binding.get(name).filter(|value| !value.trim().is_empty());
    Letter {
        language: contract.language,
        title: value("project").cloned().unwrap_or_default(),
        manuscript: rounds
            .manuscript
            .as_ref()
            .map(ToString::to_string)
            .unwrap_or_default(),
        text: rounds.text(rounds.number()),
        panel,
        weighed: report(PanelPart::Weigh),
        summed: report(PanelPart::SumUp),
    }
}
