//! `decide` and `decisions`.

use clap::Args;
use quipu_protocol::{Decision, NewDecision, decide, load_decisions, short_name};
use serde_json::json;

use super::receipt;
use crate::answer::{Answer, Failure};
use crate::session::Session;
use crate::table::Operate;

#[derive(Debug, Args)]
pub struct Decide {
    /// What was decided, one line
    title: String,
    /// What forced a choice
    #[arg(long, value_name = "TEXT", allow_hyphen_values = true)]
    context: Option<String>,
    /// What was chosen
    #[arg(long, value_name = "TEXT", allow_hyphen_values = true)]
    decision: Option<String>,
    /// Why this and nothing else
    #[arg(long, value_name = "TEXT", allow_hyphen_values = true)]
    why: Option<String>,
    /// What lost
    #[arg(long, value_name = "TEXT", allow_hyphen_values = true)]
    alternatives: Option<String>,
    /// What is easier and what is harder now
    #[arg(long, value_name = "TEXT", allow_hyphen_values = true)]
    consequences: Option<String>,
    /// Proposed, Accepted or Rejected; Accepted without it
    #[arg(long, value_name = "STATUS")]
    status: Option<String>,
    /// Who decided
    #[arg(long, value_name = "NAME")]
    by: Option<String>,
    /// The decision that this one replaces; may be given several times
    #[arg(long, value_name = "ID")]
    supersedes: Vec<String>,
    /// An id of your own; without it one that collides with no one's
    #[arg(long, value_name = "ID")]
    id: Option<String>,
}

impl Operate for Decide {
    const NAME: &'static str = "decide";
    const ABOUT: &'static str = "Record a decision, for good; prints its id";

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
        Ok(receipt::with(&receipt, json!({"id": id, "short": short}), short))
    }
}

#[derive(Debug, Args)]
pub struct Decisions {
    /// Only those that still hold
    #[arg(long)]
    standing: bool,
}

impl Operate for Decisions {
    const NAME: &'static str = "decisions";
    const ABOUT: &'static str = "Every decision, oldest first, with what superseded it";

    fn operate(self, session: &Session) -> Result<Answer, Failure> {
        let project = session.project()?;
        let mut all = load_decisions(&project, &session.actor)?;
        let ids: Vec<String> = all.iter().map(|d| d.id.clone()).collect();
        all.retain(|d| !self.standing || d.superseded_by.is_none());
        let text = all.iter().map(|decision| line(&ids, decision)).collect::<String>();
        let answer = Answer::new(json!({"decisions": all}), text);
        Ok(if all.is_empty() { answer.say("no decision yet") } else { answer })
    }
}

fn line(ids: &[String], decision: &Decision) -> String {
    let short = |id: &str| short_name(ids.iter().map(String::as_str), id).to_owned();
    let date = decision.date.as_deref().unwrap_or("          ");
    let status = decision.status.as_deref().map(|s| format!("  [{s}]")).unwrap_or_default();
    let by = decision.by.as_deref().map(|by| format!("  ({by})")).unwrap_or_default();
    let older: Vec<String> = decision.supersedes.iter().map(|id| short(id)).collect();
    let older = if older.is_empty() { String::new() } else { format!("  ⟵ {}", older.join(", ")) };
    let newer = decision.superseded_by.as_ref().map(|id| format!("  ⟶ {}", short(id))).unwrap_or_default();
    let title = if decision.title == decision.id { "" } else { &decision.title };
    format!("{}  {date}  {title}{status}{by}{older}{newer}\n", short(&decision.id))
}
