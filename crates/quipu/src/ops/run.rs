//! The `run` command: runs the ready jobs of a flow. `worker` shares its argument handling.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, PoisonError};

use clap::Args;
use quipu_contract::{Contract, Each, Language, Privilege, UnitId, did_you_mean, unknown};
use quipu_protocol::flow::{
    Choice, Engine, Event, FlowCache, Idle, LeaveRule, State, Usage, estimate_flow, explain_idle,
    flow_now,
};
use quipu_protocol::{BookPublisher, Draw, Project};
use quipu_text::Counter;
use serde_json::json;

use crate::agents::{By, Drawing, counts_tokens, unnamed};
use crate::answer::{Answer, Failure, count, exit, in_language};
use crate::flow_text::{render_compared, render_estimate, render_flow, render_plans, render_usage};
use crate::progress::Progress;
use crate::session::Session;
use crate::table::Operate;
use crate::terminal;

/// Agents mostly wait for a model. Three at a time stay within the limits of a machine and a rate
/// limit.
pub const JOBS: usize = 3;

#[derive(Debug, Args)]
pub struct Run {
    /// The agent that performs the steps: rehearse (offline), claude, codex, person,
    /// command:'PROGRAM ARGUMENTS', …; ROLE=NAME for one role or step; repeatable
    #[arg(long, value_name = "NAME")]
    by: Vec<String>,
    /// Run only this step; repeatable
    #[arg(long = "step", value_name = "STEP")]
    steps: Vec<String>,
    /// The maximum number of agents that work at the same time
    #[arg(long, value_name = "N", default_value_t = JOBS)]
    jobs: usize,
    /// Stop after this step
    #[arg(long, value_name = "STEP")]
    until: Option<String>,
    /// Run only stale jobs, including those that depend on stale ones
    #[arg(long)]
    stale: bool,
    /// Run the steps given with --step even if they are done
    #[arg(long, requires = "steps", conflicts_with = "stale")]
    again: bool,
    /// Let agents complete files that were started, instead of starting over
    #[arg(long)]
    salvage: bool,
    /// The model to use, if the agent supports a choice
    #[arg(long, value_name = "MODEL")]
    model: Option<String>,
    /// Print what would be done, with tokens and costs; run nothing
    #[arg(long)]
    dry_run: bool,
}

impl Operate for Run {
    const NAME: &'static str = "run";
    const ABOUT: &'static str =
        "Run every step of the flow that is ready, for all units or --unit UNIT";

    fn operate(self, session: &Session) -> Result<Answer, Failure> {
        session.actor.may(Privilege::RunFlow)?;
        let root = Project::find_root(&session.folder)?;
        let (project, behind) = session.newest_project(&root)?;
        if let Some(behind) = behind {
            terminal::say(&behind);
        }
        let by = By::parse(&project.contract, &self.by)?;
        let choice = choose(
            session,
            &project.contract,
            &self.steps,
            self.until.as_ref(),
            &by,
        )?;
        let choice = Choice {
            stale: self.stale,
            again: self.again,
            salvage: self.salvage,
            jobs: self.jobs,
            ..choice
        };
        if self.dry_run {
            let estimate = estimate_flow(&project, &choice, Counter::default())?;
            let mut answer = Answer::new(
                json!(estimate),
                render_estimate(project.contract.language, &estimate),
            );
            if estimate.cost.is_none() {
                answer = answer.say(in_language(
                    project.contract.language,
                    "no prices: set [prices.NAME] input and output in quipu.toml, per million tokens",
                    "没有价格：在 quipu.toml 中设定 [prices.NAME] 的 input 与 output，以每百万词元计",
                ));
            }
            let contract = &project.contract;
            let has_unit_steps = || contract.steps.iter().any(|step| step.each == Each::Unit);
            if contract.units.is_empty() && has_unit_steps() {
                answer = answer.say(match contract.language {
                    Language::En => {
                        "no units (such as chapters) are declared yet, so their steps are not in \
                         this total; once they are planned, ask again"
                    }
                    Language::Zh => {
                        "尚未声明任何单元（如章节），其步骤不在合计之内；规划之后请再看一次"
                    }
                });
            }
            // The run itself would refuse such an agent before it begins a job.
            if let Err(failure) = by.open(self.model.as_deref(), &project) {
                answer = answer.say(match contract.language {
                    Language::En => format!("this run could not begin:\n{}", failure.render()),
                    Language::Zh => format!(
                        "这次运行无法开始：\n{}",
                        failure.in_language(Language::Zh).render()
                    ),
                });
            }
            return Ok(answer);
        }
        if self.by.is_empty() {
            return Err(unnamed(Self::NAME));
        }
        let done = carry_out(
            session,
            &project,
            choice,
            LeaveRule::default(),
            &by,
            self.model.as_deref(),
        )?;
        let mut answer = done.answer;
        if done.stopped {
            answer = answer.say(in_language(
                project.contract.language,
                "stopped; run the same command again to continue",
                "已停止；再次执行同一命令即可继续",
            ));
        } else if done.rules_changed {
            answer = answer.say(in_language(
                project.contract.language,
                "the contract has changed; run the same command again to continue under the new one",
                "契约有变；再次执行同一命令，按新的契约继续",
            ));
        }
        let idle = done.idle.filter(|_| !done.stopped);
        if let Some(idle) = &idle {
            answer.json["idle"] = json!({"why": idle.lines, "next": idle.remedy});
            answer = answer.say(idle.lines.join("\n"));
            if let Some(remedy) = &idle.remedy {
                answer = answer.say(format!("  help  {remedy}"));
            }
        }
        let is_by_choice = idle.is_some_and(|idle| idle.is_by_choice);
        answer.exit = match () {
            () if done.failed => exit::AGENT,
            () if done.stopped || done.stuck || is_by_choice => exit::NO,
            () => exit::FINE,
        };
        Ok(answer)
    }
}

/// The result of a run, for the caller that reports its end.
pub struct Done {
    pub answer: Answer,
    pub stopped: bool,
    pub failed: bool,
    pub stuck: bool,
    pub rules_changed: bool,
    /// Whether all requested jobs are done.
    pub complete: bool,
    /// Why a restricted run began no job.
    pub idle: Option<Idle>,
}

/// Works on the flow of a project for as long as requested, then reports its status.
pub fn carry_out(
    session: &Session,
    project: &Project,
    choice: Choice,
    leave_rule: LeaveRule,
    by: &By,
    model: Option<&str>,
) -> Result<Done, Failure> {
    let cast = by.open(model, project)?;
    let Some(agent) = cast.rest() else {
        return Err(unnamed(Run::NAME));
    };
    let stop = crate::signals::stop_on_signals()?;
    let progress = Progress::new(session.json, project.contract.language);
    // Only agents that count tokens are compared with the estimate.
    let estimate = if by.names().any(counts_tokens) {
        Some(estimate_flow(project, &choice, Counter::default())?)
    } else {
        None
    };
    let attempts = Mutex::new(Vec::new());
    let has_begun = AtomicBool::new(false);
    let listen = |event: &Event| {
        if !matches!(event, Event::Released { .. } | Event::Pruned { .. }) {
            has_begun.store(true, Ordering::Relaxed);
        }
        if let Event::Accepted {
            job,
            usage: Some(usage),
            ..
        }
        | Event::Failed {
            job,
            usage: Some(usage),
            ..
        } = event
        {
            attempts
                .lock()
                .unwrap_or_else(PoisonError::into_inner)
                .push((job.clone(), *usage));
        }
        progress.tell(event);
    };
    let memory = FlowCache::default();
    let asked = choice.clone();
    let drawing = Drawing::of(&project.contract, project.store.root());
    let publisher = BookPublisher {
        draw: drawing.as_ref().map(|drawing| drawing as &dyn Draw),
    };
    let engine = Engine {
        project,
        agent,
        agents: cast.agents(),
        publisher: Some(&publisher),
        registration: project
            .store
            .register_worker(Some(&cast.names()), choice.jobs)?,
        choice,
        leave_rule,
        stop,
        listen: &listen,
        memory: memory.clone(),
    };
    let summary = progress.during(|| engine.run())?;
    drop(engine);
    let (flow, _) = flow_now(project, &memory)?;
    let left = json!(
        flow.statuses
            .iter()
            .filter(|s| !matches!(s.state, State::Done | State::Skipped | State::Pending))
            .collect::<Vec<_>>()
    );
    let attempts = attempts
        .into_inner()
        .unwrap_or_else(PoisonError::into_inner);
    let compared = estimate
        .map(|estimate| estimate.compare(&attempts))
        .filter(|steps| !steps.is_empty());
    let mut answer = Answer::new(
        json!({"event": "ended", "summary": summary, "status": left}),
        render_plans(project, &flow)? + &render_flow(project, &flow),
    );
    answer.compact = true;
    let (accepted, failed) = (summary.accepted, summary.failed);
    answer = answer.say(in_language(
        project.contract.language,
        format!(
            "{} accepted, {}",
            count(accepted, "job"),
            count(failed, "failure")
        ),
        format!("接受 {accepted} 项工作，失败 {failed} 次"),
    ));
    if summary.usage != Usage::default() {
        answer = answer.say(render_usage(project.contract.language, summary.usage));
    }
    if let Some(compared) = compared {
        answer.json["steps"] = json!(compared);
        answer = answer.say(render_compared(project.contract.language, &compared).trim_end());
    }
    let of_ours: Vec<State> = flow
        .statuses
        .iter()
        .filter(|s| asked.allows(project, &s.job))
        .map(|s| s.state)
        .collect();
    let idle = match has_begun.into_inner() {
        true => None,
        false => explain_idle(project, &flow, &asked),
    };
    Ok(Done {
        answer,
        idle,
        stopped: summary.stopped,
        failed: of_ours.contains(&State::Failed) || !summary.failing.is_empty(),
        stuck: !summary.stuck.is_empty(),
        rules_changed: summary.rules_changed,
        complete: of_ours
            .iter()
            .all(|s| matches!(s, State::Done | State::Skipped | State::Stale)),
    })
}

/// Returns the steps and units of a run or a worker, and the names of the agents that perform them.
pub fn choose(
    session: &Session,
    contract: &Contract,
    steps: &[String],
    until: Option<&String>,
    by: &By,
) -> Result<Choice, Failure> {
    for step in steps
        .iter()
        .chain(until)
        .filter(|_| !contract.steps.is_empty())
    {
        if contract.step(step).is_none() {
            let what = unknown("step", step, contract.steps.iter().map(|s| s.name.as_str()));
            return Err(Failure::new(
                exit::NOT_FOUND,
                what,
                "quipu contract show     (lists the steps)",
            ));
        }
    }
    if contract.steps.is_empty() {
        return Err(Failure::new(
            exit::NOT_FOUND,
            "the contract has no steps",
            "declare [[steps]] in quipu.toml or in a profile",
        ));
    }
    let units = match session.actor.unit() {
        None => Vec::new(),
        Some(unit) => units(contract, unit)?,
    };
    let choice = Choice {
        steps: steps.to_vec(),
        units,
        until: until.cloned(),
        agent: by.rest()?,
        agents: by.agents()?,
        jobs: JOBS,
        ..Choice::default()
    };
    by.check(contract, &choice)?;
    Ok(choice)
}

/// Parses `ch05`, `ch01-ch05`, `all`.
fn units(contract: &Contract, asked: &UnitId) -> Result<Vec<UnitId>, Failure> {
    let all: Vec<UnitId> = contract.units.iter().map(|u| u.id.clone()).collect();
    if all.contains(asked) {
        return Ok(vec![asked.clone()]);
    }
    if asked.as_str() == "all" {
        return Ok(all);
    }
    let place = |id: &str| all.iter().position(|u| u.as_str() == id);
    for (at, _) in asked.as_str().match_indices('-') {
        let (first, last) = (&asked.as_str()[..at], &asked.as_str()[at + 1..]);
        if let (Some(first), Some(last)) = (place(first), place(last))
            && first <= last
        {
            return Ok(all[first..=last].to_vec());
        }
    }
    let known = all
        .iter()
        .map(UnitId::as_str)
        .collect::<Vec<_>>()
        .join(", ");
    let near = did_you_mean(asked.as_str(), all.iter().map(UnitId::as_str));
    let what = format!("`{asked}` is neither a unit nor a range of units{near}");
    Err(Failure::new(
        exit::NOT_FOUND,
        what,
        if known.is_empty() {
            "declare [units.ID] in quipu.toml".into()
        } else {
            format!("use --unit UNIT, --unit FIRST-LAST or --unit all, of {known}")
        },
    ))
}
