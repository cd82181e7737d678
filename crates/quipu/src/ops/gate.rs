//! The commands `approve` and `reject`: decide at a gate, or overrule an objection.

use clap::Args;
use quipu_contract::{Class, Contract, ProjectPath};
use quipu_protocol::flow::{Decided, Job, Ruling, decide_gate};
use serde_json::json;

use crate::answer::{Answer, Failure};
use crate::flow_text::render_unit;
use crate::session::Session;
use crate::table::Operate;

#[derive(Debug, Args)]
pub struct Approve {
    /// The gate; or a step whose objection is overruled
    gate: String,
    /// Why
    #[arg(long, value_name = "TEXT")]
    why: Option<String>,
}

impl Operate for Approve {
    const NAME: &'static str = "approve";
    const ABOUT: &'static str = "Approve a gate, or overrule an objection; people only";

    fn operate(self, session: &Session) -> Result<Answer, Failure> {
        decide(session, &self.gate, Ruling::Approved, self.why.as_deref())
    }
}

#[derive(Debug, Args)]
pub struct Reject {
    /// The gate
    gate: String,
    /// What is wrong: whoever does it again is told
    #[arg(long, value_name = "TEXT")]
    why: String,
}

impl Operate for Reject {
    const NAME: &'static str = "reject";
    const ABOUT: &'static str = "Reject the work before a gate and send it back; people only";

    fn operate(self, session: &Session) -> Result<Answer, Failure> {
        decide(session, &self.gate, Ruling::Rejected, Some(&self.why))
    }
}

fn decide(
    session: &Session,
    gate: &str,
    ruling: Ruling,
    why: Option<&str>,
) -> Result<Answer, Failure> {
    let project = session.project()?;
    let job = Job {
        step: gate.to_owned(),
        unit: session.actor.unit().cloned(),
    };
    let Decided {
        receipt,
        made,
        declared,
        stale,
    } = decide_gate(&project, &session.decider(), &job, ruling, why)?;
    let verb = if ruling == Ruling::Approved {
        "approved"
    } else {
        "rejected"
    };
    let mut text = format!("{verb} {job}\n");
    for path in &made {
        text.push_str(&format!(
            "{path} {}\n",
            receipt
                .versions
                .get(path)
                .map(ToString::to_string)
                .unwrap_or_default()
        ));
    }
    for unit in &declared {
        text.push_str(&format!("declared {}\n", render_unit(unit)));
    }
    let mut answer = Answer::new(
        json!({"job": job, "ruling": ruling, "made": made, "declared": declared, "stale": stale, "receipt": receipt}),
        text,
    );
    if !stale.is_empty() {
        let names = stale
            .iter()
            .map(ToString::to_string)
            .collect::<Vec<_>>()
            .join(", ");
        let sealed: Vec<String> = made
            .iter()
            .filter(|path| is_sealed(&project.contract, path))
            .map(|path| format!("`{path}`"))
            .collect();
        let sealed = if sealed.is_empty() {
            String::new()
        } else {
            format!(" (sealed with the changed text: {})", sealed.join(", "))
        };
        answer = answer.say(format!(
            "warning: what you approved changed after it was looked at: {names} {} stale{sealed}; to have it looked at: quipu run --stale --by NAME",
            if stale.len() == 1 { "is" } else { "are" }
        ));
    }
    Ok(answer.say(format!(
        "saved as @{}; go on with: quipu run --by NAME",
        receipt.seq
    )))
}

fn is_sealed(contract: &Contract, path: &str) -> bool {
    ProjectPath::parse(path).is_ok_and(|path| contract.class(&path) == Class::Sealed)
}
