//! The commands `delegate`, `report` and `collect`.

use clap::Args;
use quipu_protocol::{
    Again, NewDelegation, collect, delegate, delegate_again, find_delegation, headline, report,
};
use serde_json::json;

use super::receipt;
use crate::answer::{Answer, Failure, in_language};
use crate::session::Session;
use crate::table::Operate;

#[derive(Debug, Args)]
pub struct Delegate {
    /// The task, written for a reader who has not seen your session
    #[arg(long, value_name = "TEXT", required_unless_present = "again")]
    task: Option<String>,
    /// The expected result, and how you will check it
    #[arg(long, value_name = "TEXT", required_unless_present = "again")]
    expect: Option<String>,
    /// A file or section that the subagent may read: "path#section: why"; repeatable
    #[arg(long, value_name = "PTR")]
    input: Vec<String>,
    /// The deadline: 30m, 2h, 3d, a date or a time
    #[arg(long, value_name = "WHEN")]
    deadline: Option<String>,
    /// The id; by default a new unique one
    #[arg(long, value_name = "ID")]
    id: Option<String>,
    /// Delegate this task again, after its subagent died or missed the deadline
    #[arg(long, value_name = "ID", conflicts_with_all = ["task", "expect", "input", "id"])]
    again: Option<String>,
    /// The reason for delegating it again
    #[arg(long, value_name = "WHY", requires = "again")]
    why: Option<String>,
}

impl Operate for Delegate {
    const NAME: &'static str = "delegate";
    const ABOUT: &'static str =
        "Delegate a task to a subagent, in a file of its own, and print its id";

    fn operate(self, session: &Session) -> Result<Answer, Failure> {
        let project = session.project()?;
        let lease = session.lease.as_ref();
        let (id, receipt) = match self.again {
            Some(id) => {
                let id = find_delegation(&project, &session.actor, &id);
                let again = Again {
                    id: id.clone(),
                    why: self.why,
                    deadline: self.deadline,
                };
                (id, delegate_again(&project, &session.actor, lease, &again)?)
            }
            None => {
                let new = NewDelegation {
                    id: self.id,
                    task: self.task.unwrap_or_default(),
                    expect: self.expect.unwrap_or_default(),
                    inputs: self.input,
                    deadline: self.deadline,
                };
                delegate(&project, &session.actor, lease, &new)?
            }
        };
        let answer = receipt::with(
            project.contract.language,
            &receipt,
            json!({"id": id}),
            id.clone(),
        );
        let command = format!("quipu start --delegation {id}");
        Ok(answer.say(in_language(
            project.contract.language,
            format!("the subagent starts with: {command}"),
            format!("子 Agent 以此开始：{command}"),
        )))
    }
}

#[derive(Debug, Args)]
pub struct Report {
    /// The id of the delegation; by default your unit
    #[arg(long, value_name = "ID")]
    delegation: Option<String>,
    /// The result: done, partly or failed
    #[arg(long, value_name = "R", value_parser = ["done", "partly", "failed"])]
    result: String,
    /// What was produced and where it is, or the answer itself
    #[arg(long, value_name = "TEXT", allow_hyphen_values = true)]
    output: String,
    /// The evidence: a command and its output, or file:line
    #[arg(long, value_name = "TEXT", allow_hyphen_values = true)]
    evidence: Option<String>,
    /// Decisions that you may not make yourself, each with your proposal
    #[arg(long, value_name = "TEXT", allow_hyphen_values = true)]
    decisions: Option<String>,
    /// What remains to be done, and what is needed for it
    #[arg(long, value_name = "TEXT", allow_hyphen_values = true)]
    undone: Option<String>,
}

impl Operate for Report {
    const NAME: &'static str = "report";
    const ABOUT: &'static str = "Report on a delegated task and end the subagent's session";

    fn operate(self, session: &Session) -> Result<Answer, Failure> {
        let project = session.project()?;
        let unit = session.actor.unit().map(ToString::to_string);
        let named = self
            .delegation
            .map(|id| find_delegation(&project, &session.actor, &id));
        let Some(id) = named.or(unit) else {
            return Err(Failure::usage(
                "the delegation is missing",
                "quipu report --delegation ID …",
            ));
        };
        let said = quipu_protocol::Report {
            id: id.clone(),
            result: self.result,
            output: self.output,
            evidence: self.evidence,
            decisions: self.decisions,
            undone: self.undone,
        };
        let (number, receipt) = report(&project, &session.actor, session.lease.as_ref(), &said)?;
        let answer = receipt::with(
            project.contract.language,
            &receipt,
            json!({"id": id, "report": number}),
            in_language(
                project.contract.language,
                format!("report {number} of {id}"),
                format!("{id} 的第 {number} 份报告"),
            ),
        );
        Ok(match number {
            1 => answer,
            _ => answer.say(in_language(
                project.contract.language,
                format!(
                    "{} already existed; your change was added beside it and marked",
                    crate::answer::count(number - 1, "report")
                ),
                format!(
                    "此前已有 {} 份报告；你的改动已加在旁边并作了标记",
                    number - 1
                ),
            )),
        })
    }
}

#[derive(Debug, Args)]
pub struct Collect {
    /// Show only this delegation
    id: Option<String>,
}

impl Operate for Collect {
    const NAME: &'static str = "collect";
    const ABOUT: &'static str = "Show the result of every delegation and record it in the state";

    fn operate(self, session: &Session) -> Result<Answer, Failure> {
        let project = session.project()?;
        let only = self
            .id
            .map(|id| find_delegation(&project, &session.actor, &id));
        let collected = collect(
            &project,
            &session.actor,
            session.lease.as_ref(),
            only.as_deref(),
        )?;
        let mut text = String::new();
        for order in &collected.delegations {
            let until = order
                .deadline
                .as_ref()
                .map(|d| {
                    let language = project.contract.language;
                    in_language(language, format!("  until {d}"), format!("  至 {d}"))
                })
                .unwrap_or_default();
            let task = headline(&order.task);
            text.push_str(&format!(
                "{}  {}{until}  {task}\n",
                order.id,
                order.progress.as_str()
            ));
            for report in &order.reports {
                text.push_str(
                    &report
                        .lines()
                        .map(|l| format!("    {l}\n"))
                        .collect::<String>(),
                );
            }
        }
        let mut answer = match &collected.receipt {
            Some(receipt) => {
                receipt::with(project.contract.language, receipt, json!(collected), text)
            }
            None => Answer::new(json!(collected), text),
        };
        if collected.delegations.is_empty() {
            answer = answer.say(in_language(
                project.contract.language,
                "no delegations",
                "没有委派",
            ));
        }
        Ok(answer)
    }
}
