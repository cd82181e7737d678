//! The commands `decide` and `decisions`.

use clap::Args;
use quipu_contract::{Form, Language};
use quipu_protocol::{
    Decision, NewDecision, Project, decide, load_decisions, read_pointer, resolve_form, short_name,
};
use serde_json::json;

use super::flagged::with_flag_of;
use super::receipt;
use crate::answer::{Answer, Failure};
use crate::session::Session;
use crate::table::Operate;

#[derive(Debug, Args)]
pub struct Decide {
    /// The title, one line
    title: String,
    /// The context: why a decision is needed
    #[arg(long, value_name = "TEXT", allow_hyphen_values = true)]
    context: Option<String>,
    /// The decision
    #[arg(long, value_name = "TEXT", allow_hyphen_values = true)]
    decision: Option<String>,
    /// The reason for it
    #[arg(long, value_name = "TEXT", allow_hyphen_values = true)]
    why: Option<String>,
    /// The alternatives that were rejected
    #[arg(long, value_name = "TEXT", allow_hyphen_values = true)]
    alternatives: Option<String>,
    /// The consequences
    #[arg(long, value_name = "TEXT", allow_hyphen_values = true)]
    consequences: Option<String>,
    /// The status: Proposed, Accepted (default) or Rejected
    #[arg(long, value_name = "STATUS")]
    status: Option<String>,
    /// The name of the person or agent who decided
    #[arg(long, value_name = "NAME")]
    by: Option<String>,
    /// The id of a decision that this one replaces; repeatable
    #[arg(long, value_name = "ID")]
    supersedes: Vec<String>,
    /// The id; by default a new unique one
    #[arg(long, value_name = "ID")]
    id: Option<String>,
}

impl Operate for Decide {
    const NAME: &'static str = "decide";
    const ABOUT: &'static str = "Record a decision and print its id";

    fn operate(self, session: &Session) -> Result<Answer, Failure> {
        let project = session.project()?;
        let new = NewDecision {
            title: self.title,
            id: self.id,
            context: self.context,
            decision: self.decision,
            why: self.why,
            alternatives: self.alternatives,
            consequences: self.consequences,
            status: self.status,
            supersedes: self.supersedes,
            by: self.by,
        };
        let (id, receipt) = decide(&project, &session.actor, session.lease.as_ref(), &new)?;
        let all = load_decisions(&project, &session.actor)?;
        let short = short_name(all.iter().map(|d| d.id.as_str()), &id).to_owned();
        let entry = all.iter().find(|decision| decision.id == id);
        let saved = entry.and_then(|entry| entry_text(&project, session, entry));
        Ok(receipt::with(
            project.contract.language,
            &receipt,
            json!({"id": id, "short": short, "saved": saved}),
            short,
        ))
    }
}

/// A decision as it is in the file.
fn entry_text(project: &Project, session: &Session, entry: &Decision) -> Option<String> {
    let path = resolve_form(project, &session.actor, Form::Decisions).ok()?;
    let place = format!("{path}:{}", entry.line);
    let reading = read_pointer(project, &session.actor, &place, None).ok()?;
    Some(String::from_utf8_lossy(&reading.bytes).trim().to_owned())
}

#[derive(Debug, Args)]
pub struct Decisions {
    /// List only decisions that are still valid
    #[arg(long)]
    current: bool,
}

impl Operate for Decisions {
    const NAME: &'static str = "decisions";
    const ABOUT: &'static str = "List decisions, oldest first, with what superseded them";

    fn operate(self, session: &Session) -> Result<Answer, Failure> {
        let project = session.project()?;
        let mut all = load_decisions(&project, &session.actor)?;
        let ids: Vec<String> = all.iter().map(|d| d.id.clone()).collect();
        all.retain(|d| !self.current || d.superseded_by.is_none());
        let text = all
            .iter()
            .map(|decision| line(&ids, decision, project.contract.language))
            .collect::<String>();
        let answer = Answer::new(json!({"decisions": all}), text);
        let answer = if all.is_empty() {
            answer.say(match project.contract.language {
                Language::En => "no decisions",
                Language::Zh => "没有决策",
            })
        } else {
            answer
        };
        with_flag_of(answer, &project, &session.actor, Form::Decisions)
    }
}

/// One decision on one line. The status that a superseded decision has in its file is no longer
/// its status.
fn line(ids: &[String], decision: &Decision, language: Language) -> String {
    let short = |id: &str| short_name(ids.iter().map(String::as_str), id).to_owned();
    let date = decision.date.as_deref().unwrap_or("          ");
    let superseded = match language {
        Language::En => "superseded",
        Language::Zh => "已取代",
    };
    let status = match decision.superseded_by {
        Some(_) => Some(superseded),
        None => decision.status.as_deref(),
    };
    let status = status.map(|s| format!("  [{s}]")).unwrap_or_default();
    let by = decision
        .by
        .as_deref()
        .map(|by| format!("  ({by})"))
        .unwrap_or_default();
    let older: Vec<String> = decision.supersedes.iter().map(|id| short(id)).collect();
    let older = if older.is_empty() {
        String::new()
    } else {
        format!("  ⟵ {}", older.join(", "))
    };
    let newer = decision
        .superseded_by
        .as_ref()
        .map(|id| format!("  ⟶ {}", short(id)))
        .unwrap_or_default();
    let title = if decision.title == decision.id {
        ""
    } else {
        &decision.title
    };
    format!(
        "{}  {date}  {title}{status}{by}{older}{newer}\n",
        short(&decision.id)
    )
}
