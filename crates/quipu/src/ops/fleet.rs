//! The `fleet status` command: lists the workers of a project, their jobs, and the jobs that wait
//! for a person.

use clap::Args;
use quipu_protocol::Project;
use quipu_protocol::flow::{FlowCache, State, flow_now};
use quipu_store::RegisteredWorker;
use serde_json::{Value, json};

use super::lease::{described, shown_leases};
use crate::answer::{Answer, Failure, exit};
use crate::flow_text::table;
use crate::session::Session;
use crate::table::Operate;

#[derive(Debug, Args)]
pub struct FleetStatus {}

impl Operate for FleetStatus {
    const NAME: &'static str = "fleet status";
    const ABOUT: &'static str =
        "List the workers of this project, what they do, and what waits for a person";

    fn operate(self, session: &Session) -> Result<Answer, Failure> {
        let root = Project::find_root(&session.folder)?;
        let (project, behind) = session.newest_project(&root)?;
        project
            .contract
            .grant(&session.actor)
            .map_err(|what| Failure::new(exit::REFUSED, what, "quipu contract show"))?;
        let workers = project.store.registered()?;
        let leases = shown_leases(&project, &session.actor)?;
        let (mut gates, mut counts) = (Vec::new(), Vec::new());
        if !project.contract.steps.is_empty() {
            let (flow, _) = flow_now(&project, &FlowCache::default())?;
            let waiting = flow.statuses.iter().filter(|s| s.state == State::Waiting);
            gates = waiting
                .map(|s| {
                    (
                        s.job.to_string(),
                        s.why.first().cloned().unwrap_or_default(),
                    )
                })
                .collect();
            counts = State::ALL
                .iter()
                .map(|s| (s.as_str(), flow.count(*s)))
                .filter(|(_, n)| *n > 0)
                .collect();
        }
        let mut text = String::new();
        if !workers.is_empty() {
            let head = ["host", "process", "agent", "since", "seen", "at"]
                .map(str::to_owned)
                .to_vec();
            text.push_str(&table(
                &std::iter::once(head)
                    .chain(workers.iter().map(row))
                    .collect::<Vec<_>>(),
            ));
        }
        if !counts.is_empty() {
            text.push_str(&format!(
                "flow: {}\n",
                counts
                    .iter()
                    .map(|(s, n)| format!("{n} {s}"))
                    .collect::<Vec<_>>()
                    .join(", ")
            ));
        }
        for (job, open) in &gates {
            text.push_str(&format!("  waits    {job}  {open}\n"));
        }
        for lease in &leases {
            text.push_str(&format!(
                "  held     {} by {} until {}\n",
                lease.paths.join(" "),
                lease.holder,
                lease.until
            ));
        }
        let told = json!({
            "workers": workers,
            "flow": counts.iter().map(|(s, n)| ((*s).to_owned(), json!(n))).collect::<serde_json::Map<_, _>>(),
            "waiting": gates.iter().map(|(job, open)| json!({"job": job, "open": open})).collect::<Vec<Value>>(),
            "leases": leases.iter().map(described).collect::<Vec<_>>(),
        });
        let mut answer = Answer::new(told, text);
        if let Some(behind) = behind {
            answer = answer.say(behind);
        }
        Ok(if workers.iter().any(|w| w.alive) {
            answer
        } else {
            answer.say("no workers; to start one: quipu worker --by NAME")
        })
    }
}

fn row(registered: &RegisteredWorker) -> Vec<String> {
    let worker = &registered.worker;
    let jobs = worker.claims.iter().map(|c| {
        c.unit
            .as_ref()
            .map_or_else(|| c.step.clone(), |unit| format!("{}/{unit}", c.step))
    });
    let at = match (jobs.collect::<Vec<_>>().join(", "), registered.alive) {
        (jobs, false) if jobs.is_empty() => "dead".to_owned(),
        (jobs, false) => format!("dead, held {jobs}"),
        (jobs, true) if jobs.is_empty() => "waits".to_owned(),
        (jobs, true) => jobs,
    };
    let agent = worker.agent.clone().unwrap_or_default();
    vec![
        worker.host.clone(),
        worker.process.to_string(),
        agent,
        worker.since.clone(),
        registered.seen.clone(),
        at,
    ]
}
