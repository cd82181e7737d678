//! The state of a panel, derived from its reports and its flow. It is rebuilt in the commit that
//! accepts a report, so it cannot disagree with them; who is at work just now is told by `review
//! status`, not by the file.

use quipu_contract::{Contract, Form, ProjectPath};
use serde::Serialize;
use serde_json::{Value, json};

use super::report::{Report, ReportFault, parse_report};
use super::sum::{Counted, Sum, sum_up};
use crate::flow::{Flow, State};
use crate::project::Project;
use crate::template::{TemplateError, render_template, template_values};

/// How one agent stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Standing {
    Pending,
    InProgress,
    Completed,
    Failed,
    NotApplicable,
}

impl Standing {
    pub const fn as_str(self) -> &'static str {
        match self {
            Standing::Pending => "pending",
            Standing::InProgress => "in_progress",
            Standing::Completed => "completed",
            Standing::Failed => "failed",
            Standing::NotApplicable => "not_applicable",
        }
    }
}

/// One agent of the panel.
#[derive(Debug, Clone, Serialize)]
pub struct Member {
    pub id: String,
    pub title: String,
    pub domain: Option<String>,
    pub phase: Option<String>,
    pub status: Standing,
    /// Why it does not apply or has failed.
    pub why: Vec<String>,
    pub path: ProjectPath,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub report: Option<Report>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub faults: Vec<ReportFault>,
}

/// The whole panel.
#[derive(Debug, Clone, Serialize)]
pub struct PanelView {
    pub members: Vec<Member>,
    pub phase: Option<String>,
    pub sum: Option<Sum>,
    /// The verdict of the agent that gives one, beside the one that follows from the scores.
    pub verdict: Option<String>,
}

/// Reads every report of a flow. `fresh` is a text that is about to be committed.
pub fn panel_view(
    contract: &Contract,
    flow: &Flow<'_>,
    read: &dyn Fn(&ProjectPath) -> Option<String>,
    fresh: &[(ProjectPath, String)],
) -> PanelView {
    let mut members = Vec::new();
    for (turn, standing) in flow.turns.iter().zip(&flow.standings) {
        let Some(role) = turn.role else { continue };
        // Whoever belongs to another mode is no member of this panel.
        let when = &turn.step.when;
        if when.var.as_ref().is_some_and(|var| {
            !turn
                .binding
                .get(var)
                .is_some_and(|value| when.is.contains(value))
        }) {
            continue;
        }
        let Some(output) = turn
            .required()
            .find(|o| contract.rule(&o.path).and_then(|r| r.form) == Some(Form::Report))
        else {
            continue;
        };
        let new = fresh
            .iter()
            .find(|(path, _)| *path == output.path)
            .map(|(_, text)| text.clone());
        let done = matches!(standing.state, State::Done | State::Stale) || new.is_some();
        let metrics: Vec<&str> = role
            .metrics
            .iter()
            .map(|m| m.in_language(contract.language))
            .collect();
        let parsed = if done {
            new.or_else(|| read(&output.path))
                .map(|text| parse_report(&text, &metrics))
        } else {
            None
        };
        let (report, faults) = match parsed {
            Some(Ok(report)) => (Some(report), Vec::new()),
            Some(Err(faults)) => (None, faults),
            None => (None, Vec::new()),
        };
        let status = match standing.state {
            _ if report.is_some() => Standing::Completed,
            _ if !faults.is_empty() => Standing::Failed,
            State::Running => Standing::InProgress,
            State::Failed => Standing::Failed,
            State::Skipped => Standing::NotApplicable,
            _ => Standing::Pending,
        };
        members.push(Member {
            id: turn.turn.step.clone(),
            title: role.title.in_language(contract.language).to_owned(),
            domain: turn.step.domain.clone(),
            phase: turn.step.phase.clone(),
            status,
            why: standing.why.clone(),
            path: output.path.clone(),
            report,
            faults,
        });
    }
    let counted: Vec<Counted<'_>> = members
        .iter()
        .filter_map(|m| {
            Some(Counted {
                agent: &m.id,
                domain: m.domain.as_deref()?,
                report: m.report.as_ref()?,
            })
        })
        .collect();
    let subjects = contract
        .steps
        .iter()
        .flat_map(|s| s.subjects.clone())
        .collect();
    let opposites: Vec<Vec<String>> = contract
        .steps
        .iter()
        .flat_map(|s| s.opposites.clone())
        .collect();
    let sum = sum_up(&counted, &subjects, &opposites);
    let open = members
        .iter()
        .find(|m| matches!(m.status, Standing::Pending | Standing::InProgress));
    let phase = open.and_then(|m| m.phase.clone());
    let verdict = members
        .iter()
        .rev()
        .find_map(|m| m.report.as_ref()?.verdict.clone());
    PanelView {
        phase,
        sum,
        verdict,
        members,
    }
}

/// The path and new text of the derived state, if the contract has one.
pub fn derive_panel(
    project: &Project,
    panel: &PanelView,
    last: Option<&str>,
) -> Result<Option<(ProjectPath, String)>, TemplateError> {
    let contract = &project.contract;
    let Some(rule) = contract.of_form(Form::Panel).next() else {
        return Ok(None);
    };
    let Some(path) = rule
        .path
        .as_literal()
        .and_then(|p| ProjectPath::parse(p).ok())
    else {
        return Ok(None);
    };
    let template = contract.template_path(contract.language, path.as_str());
    let text = rule
        .profile
        .as_deref()
        .and_then(|p| project.library.read(p, &template))
        .unwrap_or_else(|| "{}".into());
    let rendered = render_template(
        &template,
        &text,
        &template_values(&contract.binding(), jiff::Timestamp::UNIX_EPOCH),
    )?;
    let base: Value = serde_json::from_str(&rendered).unwrap_or_else(|_| json!({}));
    Ok(Some((path, render_state(base, panel, last))))
}

/// The state as JSON: the template's own keys, with what the reports say over them.
pub fn render_state(mut base: Value, panel: &PanelView, last: Option<&str>) -> String {
    let ids = |status: &[Standing]| {
        panel
            .members
            .iter()
            .filter(|m| status.contains(&m.status))
            .map(|m| m.id.clone())
            .collect::<Vec<_>>()
    };
    // Who works just now is no fact that outlives the moment.
    let lasting = |status: Standing| {
        if status == Standing::InProgress {
            Standing::Pending
        } else {
            status
        }
    };
    base["review_progress"] = json!({
        "current_phase": panel.phase.as_deref().unwrap_or("done"),
        "completed_agents": ids(&[Standing::Completed]),
        "pending_agents": ids(&[Standing::Pending, Standing::InProgress]),
        "failed_agents": ids(&[Standing::Failed]),
        "not_applicable_agents": ids(&[Standing::NotApplicable]),
    });
    let mut summary = serde_json::Map::new();
    for member in &panel.members {
        let score = member.report.as_ref().map(|r| r.score);
        let confidence = member.report.as_ref().map(|r| r.confidence);
        summary.insert(member.id.clone(), json!({"status": lasting(member.status), "overall_score": score, "confidence": confidence}));
    }
    base["agent_outputs_summary"] = Value::Object(summary);
    base["aggregates"] = json!(panel.sum);
    if let Some(verdict) = &panel.verdict {
        base["verdict"] = json!(verdict);
    }
    let done = panel
        .members
        .iter()
        .filter(|m| m.status == Standing::Completed)
        .count();
    let said = last
        .map(str::to_owned)
        .unwrap_or_else(|| format!("{done} reports are in."));
    base["last_action"] = if done == 0 && last.is_none() {
        base["last_action"].take()
    } else {
        json!(said)
    };
    format!("{base:#}\n")
}
