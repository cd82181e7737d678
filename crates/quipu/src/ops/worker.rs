//! The `worker` command: performs ready jobs of a flow beside other workers.

use std::time::{Duration, Instant};

use clap::Args;
use quipu_contract::{Contract, Privilege, did_you_mean};
use quipu_protocol::Project;
use quipu_protocol::flow::{Choice, LeaveRule, Until};

use super::run::{JOBS, carry_out, choose};
use crate::agents::{By, unnamed};
use crate::answer::{Answer, Failure, exit};
use crate::session::Session;
use crate::table::Operate;
use crate::terminal;

#[derive(Debug, Args)]
pub struct Worker {
    /// The agent that performs the steps, as for `quipu run`
    #[arg(long, value_name = "NAME")]
    by: Vec<String>,
    /// Run only the flow of this profile, and the steps of quipu.toml
    #[arg(long, value_name = "PROFILE")]
    flow: Option<String>,
    /// Run only this step; repeatable
    #[arg(long = "step", value_name = "STEP")]
    steps: Vec<String>,
    /// Stop after this step
    #[arg(long, value_name = "STEP")]
    until: Option<String>,
    /// The maximum number of agents that work at the same time
    #[arg(long, value_name = "N", default_value_t = JOBS)]
    jobs: usize,
    /// Exit when no job is ready and no other worker is busy, instead of waiting for people
    #[arg(long)]
    until_idle: bool,
    /// Start no job after this number of seconds, and exit
    #[arg(long = "for", value_name = "SECONDS")]
    seconds: Option<u64>,
    /// Let agents complete files that were started, instead of starting over
    #[arg(long)]
    salvage: bool,
    /// The model to use, if the agent supports a choice
    #[arg(long, value_name = "MODEL")]
    model: Option<String>,
}

impl Operate for Worker {
    const NAME: &'static str = "worker";
    const ABOUT: &'static str =
        "Perform ready steps of the flow, beside other workers, until all are done";

    fn operate(self, session: &Session) -> Result<Answer, Failure> {
        session.actor.may(Privilege::RunFlow)?;
        let root = Project::find_root(&session.folder)?;
        let until = if self.until_idle {
            Until::Idle
        } else {
            Until::Done
        };
        let leave_rule = LeaveRule {
            until,
            leave_at: self
                .seconds
                .map(|seconds| Instant::now() + Duration::from_secs(seconds)),
        };
        let done = loop {
            let (project, behind) = session.newest_project(&root)?;
            if let Some(behind) = behind {
                terminal::say(&behind);
            }
            check_flow(&project.contract, self.flow.as_deref())?;
            let by = By::parse(&project.contract, &self.by)?;
            let choice = choose(
                session,
                &project.contract,
                &self.steps,
                self.until.as_ref(),
                &by,
            )?;
            if self.by.is_empty() {
                return Err(unnamed(Self::NAME));
            }
            let choice = Choice {
                flow: self.flow.clone(),
                salvage: self.salvage,
                jobs: self.jobs,
                ..choice
            };
            let done = carry_out(
                session,
                &project,
                choice,
                leave_rule,
                &by,
                self.model.as_deref(),
            )?;
            if done.stopped || !done.rules_changed {
                break done;
            }
        };
        let mut answer = done.answer;
        if done.stopped {
            answer = answer.say("stopped on request; its jobs were released");
        } else if !done.complete {
            answer = answer.say("stopped before all jobs were done");
        }
        // A requested stop is not a failure; failed and stuck jobs are.
        answer.exit = match () {
            () if done.failed && !done.stopped => exit::AGENT,
            () if done.stuck && !done.stopped => exit::NO,
            () => exit::FINE,
        };
        Ok(answer)
    }
}

fn check_flow(contract: &Contract, flow: Option<&str>) -> Result<(), Failure> {
    let Some(flow) = flow else { return Ok(()) };
    let mut known: Vec<&str> = contract
        .steps
        .iter()
        .map(|s| s.profile.as_str())
        .filter(|p| !p.is_empty())
        .collect();
    known.dedup();
    if known.contains(&flow) {
        return Ok(());
    }
    let remedy = if known.is_empty() {
        "omit --flow".to_owned()
    } else {
        format!("use one of {}", known.join(", "))
    };
    let near = did_you_mean(flow, known.iter().copied());
    Err(Failure::new(
        exit::NOT_FOUND,
        format!("no profile `{flow}` with a flow in this project{near}"),
        remedy,
    ))
}
