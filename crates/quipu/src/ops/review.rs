//! The `review` command: shows each reviewer's status and scores, averages, conflicts and the
//! verdict.

use clap::Args;
use quipu_contract::{Form, Privilege, ProjectPath};
use quipu_protocol::flow::{FlowCache, flow_now, refresh_panel};
use quipu_protocol::review::{PanelView, panel_view};
use serde_json::json;

use crate::answer::{Answer, Failure, count, exit};
use crate::flow_text::table;
use crate::session::Session;
use crate::table::Operate;

#[derive(Debug, Args)]
pub struct ReviewStatus {}

impl Operate for ReviewStatus {
    const NAME: &'static str = "review status";
    const ABOUT: &'static str =
        "Show each reviewer's status and scores, averages, conflicts and the verdict";

    fn operate(self, session: &Session) -> Result<Answer, Failure> {
        session.actor.may(Privilege::SeeAll)?;
        let project = session.project()?;
        if project.contract.of_form(Form::Report).next().is_none() {
            return Err(Failure::new(
                exit::NOT_FOUND,
                "the contract declares no reports",
                "quipu profile list     (the review profile has a panel)",
            ));
        }
        let memory = FlowCache::default();
        if !project.store.is_read_only() {
            refresh_panel(&project, &memory)?;
        }
        let (flow, _) = flow_now(&project, &memory)?;
        let read = |path: &ProjectPath| {
            project
                .store
                .read(path)
                .ok()
                .flatten()
                .map(|(bytes, _)| String::from_utf8_lossy(&bytes).into_owned())
        };
        let panel = panel_view(&project.contract, &flow, &read, &[]);
        let mut answer = Answer::new(json!(panel), render(&panel));
        if panel.members.iter().any(|m| !m.faults.is_empty()) {
            answer.exit = exit::NO;
        }
        Ok(answer)
    }
}

fn render(panel: &PanelView) -> String {
    let mut rows = vec![
        ["agent", "", "status", "score", "confidence", "scores"]
            .map(str::to_owned)
            .to_vec(),
    ];
    for member in &panel.members {
        let number = |n: Option<u8>| n.map(|n| n.to_string()).unwrap_or_default();
        let report = member.report.as_ref();
        let scores = report
            .map(|r| {
                r.scores
                    .iter()
                    .map(|(_, s)| s.to_string())
                    .collect::<Vec<_>>()
                    .join(" ")
            })
            .unwrap_or_default();
        rows.push(vec![
            member.id.clone(),
            member.title.clone(),
            match (member.excused, member.stale) {
                (true, _) => format!("{}, excused", member.status.as_str()),
                (_, true) => format!("{}, stale", member.status.as_str()),
                _ => member.status.as_str().to_owned(),
            },
            number(report.map(|r| r.score)),
            number(report.map(|r| r.confidence)),
            scores,
        ]);
    }
    let mut text = table(&rows);
    for member in panel.members.iter().filter(|m| !m.faults.is_empty()) {
        for fault in &member.faults {
            text.push_str(&format!(
                "  fault    {}:{} {}\n",
                member.path, fault.line, fault.what
            ));
        }
    }
    if let Some(sum) = &panel.sum {
        text.push('\n');
        for domain in &sum.domains {
            text.push_str(&format!(
                "{}: {:.1} ({})\n",
                domain.name,
                domain.mean,
                count(domain.agents, "agent")
            ));
        }
        text.push_str(&format!(
            "overall: {:.2}, weighted by confidence\n",
            sum.overall
        ));
        for conflict in &sum.conflicts {
            let [a, b] = &conflict.agents;
            let [left, right] = conflict.scores;
            text.push_str(&format!(
                "conflict: {a} {left} | {b} {right} | {}\n",
                conflict.subject
            ));
            if let Some([one, other]) = &conflict.advice {
                text.push_str(&format!("          {a}: {one}\n          {b}: {other}\n"));
            }
        }
        for (name, issues) in [("critical", &sum.critical), ("important", &sum.important)] {
            for issue in issues {
                text.push_str(&format!("{name}: {} ({})\n", issue.what, issue.agent));
            }
        }
        text.push_str(&format!("minor: {}\n", sum.minor.len()));
        let verdict = sum.verdict.unwrap_or("open until every report is in");
        text.push_str(&format!("by the scores: {verdict}\n"));
    }
    if let Some(verdict) = &panel.verdict {
        text.push_str(&format!("verdict: {verdict}\n"));
    }
    text
}
