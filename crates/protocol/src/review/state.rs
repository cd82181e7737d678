//! Derives the state of a panel from its reports and its flow.
//!
//! The state is rebuilt in the commit that accepts a report, so the two cannot disagree. The file
//! does not show running agents; `review status` does.

use quipu_contract::{Contract, Form, PanelPart, ProjectPath, Step};
use serde::Serialize;
use serde_json::{Value, json};

use super::agree::{Known, find_faults};
use super::report::{Report, ReportFault, parse_report};
use super::sum::{Counted, Sum, sum_up};
use crate::flow::{Flow, JobStatus, State};
use crate::project::open::Project;
use crate::project::template::{TemplateError, render_template, template_values};

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
    /// Whether a person excused it after it failed: the others go on without it.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub excused: bool,
    /// Whether its report is on an older text.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub stale: bool,
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
    let mut texts = Vec::new();
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
        let text = if done {
            new.clone().or_else(|| read(&output.path))
        } else {
            None
        };
        let (report, faults) = match text.as_deref().map(|text| parse_report(text, &metrics)) {
            Some(Ok(report)) => (Some(report), Vec::new()),
            Some(Err(faults)) => (None, faults),
            None => (None, Vec::new()),
        };
        members.push(Member {
            id: job.job.step.clone(),
            title: role.title.in_language(contract.language).to_owned(),
            domain: job.step.domain.clone(),
            phase: job.step.phase.clone(),
            status: status_of(job_status, report.is_some(), !faults.is_empty()),
            why: job_status.why.clone(),
            excused: job_status.excused,
            stale: job_status.state == State::Stale && new.is_none(),
            path: output.path.clone(),
            report,
            faults,
        });
        texts.push((job.step, text.unwrap_or_default()));
    }
    check_members(contract, &mut members, &texts, None);
    let mut sum = sum_members(contract, &members);
    // The rule needs all reports: one of 26 says nothing about the manuscript.
    let is_complete = members
        .iter()
        .filter(|m| m.domain.is_some())
        .all(|m| !is_open(m));
    if let Some(sum) = sum.as_mut().filter(|_| !is_complete) {
        sum.verdict = None;
    }
    if sum.is_some() {
        check_members(contract, &mut members, &texts, sum.as_ref());
    }
    let phase = members
        .iter()
        .find(|m| is_open(m))
        .and_then(|m| m.phase.clone());
    let verdict = members
        .iter()
        .rev()
        .filter(|m| !m.stale)
        .find_map(|m| m.report.as_ref()?.verdict.clone());
    PanelView {
        phase,
        sum,
        verdict,
        members,
    }
}

fn status_of(job: &JobStatus, has_report: bool, has_faults: bool) -> AgentStatus {
    match job.state {
        _ if has_report => AgentStatus::Completed,
        _ if has_faults || job.excused => AgentStatus::Failed,
        State::Running => AgentStatus::InProgress,
        State::Failed => AgentStatus::Failed,
        State::Skipped => AgentStatus::NotApplicable,
        _ => AgentStatus::Pending,
    }
}

/// Whether the panel still waits for a member.
fn is_open(member: &Member) -> bool {
    match member.status {
        AgentStatus::Pending | AgentStatus::InProgress => true,
        AgentStatus::Failed => !member.excused,
        AgentStatus::Completed => member.stale,
        AgentStatus::NotApplicable => false,
    }
}

fn sum_members(contract: &Contract, members: &[Member]) -> Option<Sum> {
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
    sum_up(&counted, &subjects, &opposites)
}

/// Checks scores against metrics or, with the computed result, the reports about the panel. A report
/// with a fault counts as failed until it is fixed.
fn check_members(
    contract: &Contract,
    members: &mut [Member],
    texts: &[(&Step, String)],
    sum: Option<&Sum>,
) {
    let failed: Vec<String> = members
        .iter()
        .filter(|m| m.domain.is_some() && m.status == AgentStatus::Failed)
        .map(|m| m.id.clone())
        .collect();
    let mut weighed: Option<Report> = None;
    let reports = members.iter_mut().zip(texts);
    for (member, (step, text)) in reports.filter(|(_, (s, _))| s.panel.is_some() == sum.is_some()) {
        let Some(report) = &member.report else {
            continue;
        };
        let known = Known {
            sum,
            failed: failed.iter().map(String::as_str).collect(),
            weighed: weighed.as_ref(),
            language: contract.language,
        };
        // A stale report agreed with the numbers of its time.
        let faults = if member.stale {
            Vec::new()
        } else {
            find_faults(step, text, report, &known)
        };
        if step.panel == Some(PanelPart::Weigh) {
            weighed = Some(report.clone());
        }
        if !faults.is_empty() {
            member.report = None;
            member.status = AgentStatus::Failed;
            member.faults = faults;
        }
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
    let those = |is: fn(&Member) -> bool| {
        let members = panel.members.iter().filter(|m| is(m));
        members.map(|m| m.id.clone()).collect::<Vec<_>>()
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
        "excused_agents": those(|m| m.excused),
        "stale_agents": those(|m| m.stale),
    });
    let mut summary = serde_json::Map::new();
    for member in &panel.members {
        let score = member.report.as_ref().map(|r| r.score);
        let confidence = member.report.as_ref().map(|r| r.confidence);
        summary.insert(member.id.clone(), json!({"status": lasting(member.status), "overall_score": score, "confidence": confidence}));
    }
    base["agent_outputs_summary"] = Value::Object(summary);
    base["aggregates"] = json!(panel.sum);
    base["verdict"] = json!(panel.verdict);
    let done = panel
        .members
        .iter()
        .filter(|m| m.status == AgentStatus::Completed)
        .count();
    let stale = panel.members.iter().filter(|m| m.stale).count();
    let said = last.map(str::to_owned).unwrap_or_else(|| match stale {
        0 => format!("{done} reports are in."),
        _ => format!("{done} reports are in; {stale} are on an older text."),
    });
    base["last_action"] = if done == 0 && last.is_none() {
        base["last_action"].take()
    } else {
        json!(said)
    };
    format!("{base:#}\n")
}
