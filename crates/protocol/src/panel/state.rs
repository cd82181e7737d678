//! Derives the state of a panel from its reports and its flow.
//!
//! The state is rebuilt in the commit that accepts a report, so the two cannot disagree. The file
//! does not show running agents; `review status` does.

use quipu_contract::{Contract, Form, ProjectPath};
use serde::Serialize;
use serde_json::{Value, json};

use super::report::{Report, ReportFault, parse_report};
use super::sum::{Counted, Sum, sum_up};
use crate::flow::{Flow, State};
use crate::project::Project;
use crate::template::{TemplateError, render_template, template_values};

/// The status of one agent.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum AgentStatus {
    Pending,
    InProgress,
    Completed,
    Failed,
    NotApplicable,
}

impl AgentStatus {
    pub const fn as_str(self) -> &'static str {
        match self {
            AgentStatus::Pending => "pending",
            AgentStatus::InProgress => "in_progress",
            AgentStatus::Completed => "completed",
            AgentStatus::Failed => "failed",
            AgentStatus::NotApplicable => "not_applicable",
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
    pub status: AgentStatus,
    /// The reason why it does not apply or has failed.
    pub why: Vec<String>,
    pub path: ProjectPath,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub report: Option<Report>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub faults: Vec<ReportFault>,
}

#[derive(Debug, Clone, Serialize)]
pub struct PanelView {
    pub members: Vec<Member>,
    pub phase: Option<String>,
    pub sum: Option<Sum>,
    /// The verdict of the agent that gives one, beside the verdict derived from the scores.
    pub verdict: Option<String>,
}

/// Reads every report of a flow. `fresh` has texts that are about to be committed.
pub fn panel_view(
    contract: &Contract,
    flow: &Flow<'_>,
    read: &dyn Fn(&ProjectPath) -> Option<String>,
    fresh: &[(ProjectPath, String)],
) -> PanelView {
    let mut members = Vec::new();
    for (job, job_status) in flow.jobs.iter().zip(&flow.statuses) {
        let Some(role) = job.role else { continue };
        // An agent of another mode is not a member of this panel.
        let when = &job.step.when;
        if when.var.as_ref().is_some_and(|var| {
            !job.binding
                .get(var)
                .is_some_and(|value| when.is.contains(value))
        }) {
            continue;
        }
        let Some(output) = job
            .required()
            .find(|o| contract.rule(&o.path).and_then(|r| r.form) == Some(Form::Report))
        else {
            continue;
        };
        let new = fresh
            .iter()
            .find(|(path, _)| *path == output.path)
            .map(|(_, text)| text.clone());
        let done = matches!(job_status.state, State::Done | State::Stale) || new.is_some();
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
        let status = match job_status.state {
            _ if report.is_some() => AgentStatus::Completed,
            _ if !faults.is_empty() => AgentStatus::Failed,
            State::Running => AgentStatus::InProgress,
            State::Failed => AgentStatus::Failed,
            State::Skipped => AgentStatus::NotApplicable,
            _ => AgentStatus::Pending,
        };
        members.push(Member {
            id: job.job.step.clone(),
            title: role.title.in_language(contract.language).to_owned(),
            domain: job.step.domain.clone(),
            phase: job.step.phase.clone(),
            status,
            why: job_status.why.clone(),
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
        .find(|m| matches!(m.status, AgentStatus::Pending | AgentStatus::InProgress));
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

/// Renders the state as JSON: the template's keys, overlaid with the results of the reports.
pub fn render_state(mut base: Value, panel: &PanelView, last: Option<&str>) -> String {
    let ids = |status: &[AgentStatus]| {
        panel
            .members
            .iter()
            .filter(|m| status.contains(&m.status))
            .map(|m| m.id.clone())
            .collect::<Vec<_>>()
    };
    // Running agents are a temporary status, so the file shows them as pending.
    let lasting = |status: AgentStatus| {
        if status == AgentStatus::InProgress {
            AgentStatus::Pending
        } else {
            status
        }
    };
    base["review_progress"] = json!({
        "current_phase": panel.phase.as_deref().unwrap_or("done"),
        "completed_agents": ids(&[AgentStatus::Completed]),
        "pending_agents": ids(&[AgentStatus::Pending, AgentStatus::InProgress]),
        "failed_agents": ids(&[AgentStatus::Failed]),
        "not_applicable_agents": ids(&[AgentStatus::NotApplicable]),
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
        .filter(|m| m.status == AgentStatus::Completed)
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
