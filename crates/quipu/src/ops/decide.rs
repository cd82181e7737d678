//! `decide` and `decisions`.

use clap::Args;
use quipu_contract::Form;
use quipu_protocol::{Decision, NewDecision, decide, load_decisions};
use serde_json::json;

use super::flagged::with_flag_of;
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
        };
        let (id, receipt) = decide(&project, &session.actor, session.lease.as_ref(), &new)?;
        Ok(receipt::with(&receipt, json!({"id": id}), id))
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
        all.retain(|d| !self.standing || d.superseded_by.is_none());
        let text = all.iter().map(line).collect::<String>();
        let answer = Answer::new(json!({"decisions": all}), text);
        let answer = if all.is_empty() { answer.say("no decision yet") } else { answer };
        with_flag_of(answer, &project, &session.actor, Form::Decisions)
    }
}

fn line(decision: &Decision) -> String {
    let date = decision.date.as_deref().unwrap_or("          ");
    let status = decision.status.as_deref().map(|s| format!("  [{s}]")).unwrap_or_default();
    let older = if decision.supersedes.is_empty() { String::new() } else { format!("  ⟵ {}", decision.supersedes.join(", ")) };
    let newer = decision.superseded_by.as_ref().map(|id| format!("  ⟶ {id}")).unwrap_or_default();
    let title = if decision.title == decision.id { "" } else { &decision.title };
    format!("{}  {date}  {title}{status}{older}{newer}\n", decision.id)
}
