//! Derives the state of a panel from its reports and its flow.
//!
//! The state is rebuilt in the commit that accepts a report, so the two cannot disagree. The file
//! does not show running agents; `review status` does.

use quipu_contract::{Contract, Form, PanelPart, ProjectPath, Step};
use quipu_store::Version;
use serde::Serialize;
use serde_json::{Value, json};

use super::agree::{Known, find_faults, score_faults};
use super::checks::{Checks, checks_comments, checks_of};
use super::matter::follow;
use super::report::{Author, Report, ReportFault, parse_report};
use super::rounds::{Comment, Read, RoundReport, Rounds};
use super::sum::{Conflict, Counted, Counts, Sum, sum_up};
use crate::flow::{Flow, JobStatus, PlannedJob, State};
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
    /// The report that Quipu makes without a model.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub checks: Option<Checks>,
    pub phase: Option<String>,
    /// The number of the current round, from 1.
    pub round: usize,
    /// The path of the manuscript.
    pub manuscript: Option<ProjectPath>,
    /// The version of the manuscript.
    pub version: Option<Version>,
    /// The comments of all rounds.
    pub comments: Vec<Comment>,
    pub sum: Option<Sum>,
    /// The verdict of the agent that weighs the panel. `sum` has that of the rule.
    pub verdict: Option<String>,
}

impl PanelView {
    /// The open comments by severity.
    pub fn open(&self) -> Counts {
        Counts::of(self.comments.iter())
    }

    /// Whether all reports are in, or excused.
    pub fn is_complete(&self) -> bool {
        !self.members.iter().any(Member::is_open)
    }
}

/// The texts from which a panel is derived.
struct Sources<'s> {
    contract: &'s Contract,
    rounds: Rounds<'s>,
    read: Read<'s>,
    fresh: &'s [(ProjectPath, String)],
}

/// Reads every report of a flow. `fresh` has texts that are about to be committed.
pub fn panel_view(
    contract: &Contract,
    flow: &Flow<'_>,
    read: Read<'_>,
    fresh: &[(ProjectPath, String)],
) -> PanelView {
    let rounds = Rounds::load(contract, read);
    let sources = Sources {
        contract,
        rounds,
        read,
        fresh,
    };
    let mut members = Vec::new();
    let mut comments = Vec::new();
    let mut texts = Vec::new();
    for (job, status) in flow.jobs.iter().zip(&flow.statuses) {
        if let Some((member, own, text)) = sources.member(job, status) {
            members.push(member);
            comments.extend(own);
            texts.push((job.step, text));
        }
    }
    let checks = checks_of(contract).filter(|_| !sources.rounds.text(1).is_empty());
    if let Some(checks) = &checks {
        let text = sources.text(&checks.path);
        let reports = sources.rounds.reports(&checks.path, text.as_deref(), read);
        comments.extend(checks_comments(checks, &reports, contract.language));
    }
    follow(&mut comments);
    sources.rounds.place(&mut comments, read);
    let mut sum = sum_members(&members, &comments);
    // The rule needs all reports: one of 26 says nothing about the manuscript.
    let is_complete = members
        .iter()
        .filter(|m| m.domain.is_some())
        .all(|m| !m.is_open());
    if let Some(sum) = sum.as_mut().filter(|_| !is_complete) {
        sum.verdict = None;
    }
    if let Some(sum) = &sum {
        let round = sources.rounds.number();
        check_panel(contract, &mut members, &texts, sum, (&comments, round));
    }
    if let Some(sum) = &mut sum {
        add_rulings(sum, &members);
    }
    let phase = members
        .iter()
        .find(|m| m.is_open())
        .and_then(|m| m.phase.clone());
    let verdict = members
        .iter()
        .rev()
        .filter(|m| !m.stale)
        .find_map(|m| m.report.as_ref()?.verdict.clone());
    let text = sources.rounds.text(sources.rounds.number());
    PanelView {
        phase,
        sum,
        verdict,
        members,
        checks,
        comments,
        round: sources.rounds.number(),
        manuscript: sources.rounds.manuscript.clone(),
        version: (!text.is_empty()).then(|| Version::of(text.as_bytes())),
    }
}

impl Sources<'_> {
    /// A file as it is, or as it is about to be committed.
    fn text(&self, path: &ProjectPath) -> Option<String> {
        let mut fresh = self.fresh.iter().filter(|(fresh, _)| fresh == path);
        let new = fresh.next().map(|(_, text)| text.clone());
        new.or_else(|| (self.read)(path))
    }

    /// A member of the panel, its comments of all rounds, and the text of its report.
    fn member(
        &self,
        job: &PlannedJob<'_>,
        status: &JobStatus,
    ) -> Option<(Member, Vec<Comment>, String)> {
        let (contract, role) = (self.contract, job.role?);
        // An agent of another mode is not a member of this panel.
        let when = &job.step.when;
        let value = when.var.as_ref().map(|var| job.binding.get(var));
        if value.is_some_and(|value| !value.is_some_and(|value| when.is.contains(value))) {
            return None;
        }
        let output = self.report_of(job)?;
        let mut fresh = self.fresh.iter().filter(|(path, _)| *path == output);
        let new = fresh.next().map(|(_, text)| text.clone());
        let is_stale = status.state == State::Stale && new.is_none();
        let text = match status.state {
            _ if new.is_some() => new,
            State::Done | State::Stale => (self.read)(&output),
            _ => None,
        };
        let metrics = self.metrics(job);
        let reports = self.rounds.reports(&output, text.as_deref(), self.read);
        let read = self.read_reports(&job.job.step, job.step, &metrics, &reports, is_stale);
        let (mut report, mut faults) = (None, Vec::new());
        if text.is_some() {
            report = read.report.filter(|_| read.faults.is_empty());
            faults = read.faults;
        }
        let member = Member {
            id: job.job.step.clone(),
            title: role.title.in_language(contract.language).to_owned(),
            domain: job.step.domain.clone(),
            phase: job.step.phase.clone(),
            status: status_of(status, report.is_some(), !faults.is_empty()),
            why: status.why.clone(),
            excused: status.excused,
            stale: is_stale,
            path: output,
            report,
            faults,
        };
        Some((member, read.comments, text.unwrap_or_default()))
    }

    /// The path of the report that a job writes.
    fn report_of(&self, job: &PlannedJob<'_>) -> Option<ProjectPath> {
        let is_report = |path: &ProjectPath| {
            self.contract.rule(path).and_then(|r| r.form) == Some(Form::Report)
        };
        let mut paths = job.required().map(|output| &output.path);
        paths.find(|path| is_report(path)).cloned()
    }

    fn metrics<'j>(&self, job: &PlannedJob<'j>) -> Vec<&'j str> {
        let metrics = job.role.iter().flat_map(|role| &role.metrics);
        metrics
            .map(|metric| metric.in_language(self.contract.language))
            .collect()
    }

    /// Reads the reports of an agent, oldest first. A faulty report adds no comments.
    fn read_reports(
        &self,
        agent: &str,
        step: &Step,
        metrics: &[&str],
        reports: &[RoundReport],
        is_stale: bool,
    ) -> ReadReports {
        let author = if step.panel.is_some() {
            Author::Panel
        } else {
            Author::Reviewer
        };
        let mut read = ReadReports::default();
        let mut last = None;
        // Comments are joined between two rounds.
        let mut ended = 1;
        for RoundReport { round, text } in reports {
            self.rounds
                .go_on(ended..*round, &mut read.comments, self.read);
            ended = *round;
            // A report that the last revision did not concern belongs to an earlier round. No open
            // comment needs an answer of its agent.
            let is_same = last.replace(text.as_str()) == Some(text.as_str());
            let is_asked = read.comments.iter().any(Comment::needs_answer);
            if is_same && read.faults.is_empty() && !is_asked {
                continue;
            }
            let report = match parse_report(text, metrics, author, read.report.as_ref()) {
                Ok(report) => report,
                Err(faults) => {
                    read.faults = faults;
                    continue;
                }
            };
            let mut faults = Vec::new();
            let mut after = read.comments.clone();
            self.rounds.add(agent, *round, &report, &mut after);
            // An older report agreed with the text of its time.
            if *round == self.rounds.number() && !is_stale && author == Author::Reviewer {
                faults = self
                    .rounds
                    .find_faults(*round, &report, &read.comments, self.read);
                faults.extend(score_faults(&report, &after));
                faults.sort_by_key(|fault| fault.line);
            }
            read.faults = faults;
            if read.faults.is_empty() {
                read.report = Some(report);
                read.comments = after;
            }
        }
        let current = self.rounds.number();
        self.rounds
            .go_on(ended..current, &mut read.comments, self.read);
        read
    }
}

/// The reports of an agent in the rounds before the current one.
pub struct Earlier {
    /// Its comments, with their places in the current text.
    pub comments: Vec<Comment>,
    /// Its newest report without faults.
    pub report: Report,
}

/// None if the agent has no report without faults: it reports as in the first round.
pub fn load_earlier(contract: &Contract, job: &PlannedJob<'_>, read: Read<'_>) -> Option<Earlier> {
    let sources = Sources {
        contract,
        rounds: Rounds::load(contract, read),
        read,
        fresh: &[],
    };
    let output = sources.report_of(job)?;
    let reports = sources.rounds.reports(&output, None, read);
    let metrics = sources.metrics(job);
    let mut found = sources.read_reports(&job.job.step, job.step, &metrics, &reports, false);
    sources.rounds.place(&mut found.comments, read);
    Some(Earlier {
        comments: found.comments,
        report: found.report?,
    })
}

/// The newest report of an agent without faults, the faults of a newer one, and its comments of all
/// rounds.
#[derive(Default)]
struct ReadReports {
    report: Option<Report>,
    faults: Vec<ReportFault>,
    comments: Vec<Comment>,
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

impl Member {
    /// Whether the panel still waits for it.
    pub const fn is_open(&self) -> bool {
        match self.status {
            AgentStatus::Pending | AgentStatus::InProgress => true,
            AgentStatus::Failed => !self.excused,
            AgentStatus::Completed => self.stale,
            AgentStatus::NotApplicable => false,
        }
    }
}

fn sum_members(members: &[Member], comments: &[Comment]) -> Option<Sum> {
    let counted: Vec<Counted<'_>> = members
        .iter()
        .filter_map(|m| {
            Some(Counted {
                domain: m.domain.as_deref()?,
                report: m.report.as_ref()?,
            })
        })
        .collect();
    sum_up(&counted, comments)
}

/// Checks the reports about the panel against its numbers and comments. A report with a fault
/// counts as failed until it is fixed.
fn check_panel(
    contract: &Contract,
    members: &mut [Member],
    texts: &[(&Step, String)],
    sum: &Sum,
    (comments, round): (&[Comment], usize),
) {
    let failed: Vec<String> = members
        .iter()
        .filter(|m| m.domain.is_some() && m.status == AgentStatus::Failed)
        .map(|m| m.id.clone())
        .collect();
    let mut weighed: Option<Report> = None;
    let reports = members.iter_mut().zip(texts);
    for (member, (step, text)) in reports.filter(|(_, (step, _))| step.panel.is_some()) {
        let Some(report) = &member.report else {
            continue;
        };
        let known = Known {
            sum: Some(sum),
            comments,
            round,
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

/// Adds the rulings of the agent that weighs the panel to the conflicts.
fn add_rulings(sum: &mut Sum, members: &[Member]) {
    let reports = members.iter().filter(|m| m.domain.is_none() && !m.stale);
    for ruling in reports
        .filter_map(|m| m.report.as_ref())
        .flat_map(|report| &report.rulings)
    {
        let names_all = |conflict: &&mut Conflict| {
            let mut named = conflict.comments.iter();
            named.all(|id| ruling.comments.contains(id))
        };
        match sum.conflicts.iter_mut().find(names_all) {
            Some(conflict) => conflict.ruling = Some(ruling.text.clone()),
            None => sum.conflicts.push(Conflict {
                comments: ruling.comments.clone(),
                ruling: Some(ruling.text.clone()),
            }),
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
        let said = member.report.as_ref().map(|r| &r.summary);
        summary.insert(member.id.clone(), json!({"title": member.title, "status": lasting(member.status), "overall_score": score, "confidence": confidence, "summary": said}));
    }
    base["agent_outputs_summary"] = Value::Object(summary);
    base["round"] = json!(panel.round);
    base["manuscript_version"] = json!(panel.version);
    if let Some(checks) = &panel.checks {
        let own = panel.comments.iter().filter(|c| c.agent == checks.id);
        base["checks"] = json!({
            "report": checks.path,
            "open_comments": own.filter(|c| c.is_open()).count(),
        });
    }
    base["open_comments"] = json!(panel.open());
    base["comments"] = json!([]);
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
    // A comment on one line costs agents that read the state half as much.
    let comments: Vec<String> = panel
        .comments
        .iter()
        .map(|comment| format!("\n    {}", json!(comment)))
        .collect();
    let list = match comments.is_empty() {
        true => String::new(),
        false => format!("{}\n  ", comments.join(",")),
    };
    let text = format!("{base:#}\n");
    text.replacen(
        "\n  \"comments\": []",
        &format!("\n  \"comments\": [{list}]"),
        1,
    )
}
