//! Estimates the cost of a flow.
//!
//! Counts the views of its open jobs as they are now, adds the expected outputs of other jobs, and
//! uses the contract's prices.

use std::collections::BTreeSet;

use quipu_contract::{ActorName, Builtin, Contract, PanelPart, ProjectPath, Step, Tokens, UnitId};
use quipu_text::Counter;
use serde::Serialize;

use super::engine::{Choice, FlowError, flow_now};
use super::expect::Expected;
use super::job::{Job, PlannedJob, plan_batches};
use super::note::Usage;
use super::round::LaterRound;
use super::snapshot::FlowCache;
use super::state::State;
use crate::project::open::Project;
use crate::view::brief::{BriefOptions, render_brief};
use crate::view::{Lexical, Seen, View, ViewRequest, make_view};

#[derive(Debug, Clone, Serialize)]
pub struct JobEstimate {
    pub job: Job,
    pub state: State,
    /// The role, or the built-in step.
    pub who: String,
    /// The agent, if the run has several.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub agent: Option<String>,
    /// The expected number of attempts: reviewed work is usually sent back once and reviewed again.
    pub times: u64,
    /// Tokens read in all attempts: view and brief over all stages, including the expected length
    /// of files not written yet.
    pub input: Tokens,
    /// Tokens expected to be written in all attempts.
    pub output: Tokens,
    /// Pointers that match no file yet.
    pub absent: usize,
    /// At the contract's prices.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cost: Option<f64>,
    /// The reason why its view cannot be built.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub fault: Option<String>,
}

#[derive(Debug, Clone, Serialize)]
pub struct Estimate {
    pub jobs: Vec<JobEstimate>,
    /// Units processed at the same time, one batch after the other. Each batch can use what the
    /// previous one added to memory.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub batches: Vec<Vec<UnitId>>,
    pub input: Tokens,
    pub output: Tokens,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cost: Option<f64>,
    /// The same for an agent that calls tools: each call is a request that reads everything again.
    pub with_tools: Usage,
}

/// How much more an agent with tools reads and writes than one request for each job, in percent:
/// measured on a novel of six chapters with 93 requests (docs/performance.md).
const WITH_TOOLS_READS: u64 = 522;
const WITH_TOOLS_WRITES: u64 = 145;

/// The length of an agent's text in a later round of a review, in tokens: a summary, and an answer to a comment;
/// measured in a review in two rounds (docs/performance.md).
const LATER_SUMMARY: u64 = 150;
const LATER_ANSWER: u64 = 60;
/// One in so many tokens of a later report is a new comment, which the agent that weighs the panel reads.
const NEW_COMMENTS: u64 = 4;

/// The expected output of a job in a later round.
fn written_again(round: &LaterRound, part: Option<PanelPart>, counter: Counter) -> Tokens {
    let last = round.last.as_ref().map(|last| counter.count(last).0);
    match (part, last) {
        (Some(PanelPart::Weigh), Some(last)) => Tokens(last / 2),
        (Some(PanelPart::SumUp), Some(last)) => Tokens(last),
        _ => Tokens(LATER_SUMMARY + LATER_ANSWER * round.answers as u64),
    }
}

/// The usage of a step's jobs in a run beside the estimate.
#[derive(Debug, Clone, Serialize)]
pub struct StepUsage {
    pub step: String,
    pub jobs: usize,
    pub used: Usage,
    pub estimated: Usage,
}

impl Estimate {
    /// Compares the usage of attempts with the estimate by step, in the order of their first
    /// completion.
    pub fn compare(&self, attempts: &[(Job, Usage)]) -> Vec<StepUsage> {
        let mut steps: Vec<&str> = Vec::new();
        attempts.iter().for_each(|(job, _)| {
            if !steps.contains(&job.step.as_str()) {
                steps.push(&job.step);
            }
        });
        let of_step = |step: &str| {
            let attempts = attempts.iter().filter(|(job, _)| job.step == step);
            let jobs: BTreeSet<&Job> = attempts.clone().map(|(job, _)| job).collect();
            let (mut used, mut estimated) = (Usage::default(), Usage::default());
            attempts.for_each(|(_, usage)| used.add(*usage));
            for job in self.jobs.iter().filter(|job| jobs.contains(&job.job)) {
                estimated.add(Usage {
                    input: job.input.0,
                    output: job.output.0,
                    cost: job.cost,
                });
            }
            StepUsage {
                step: step.to_owned(),
                jobs: jobs.len(),
                used,
                estimated,
            }
        };
        steps.into_iter().map(of_step).collect()
    }
}

/// Estimates the tokens and the cost of the selected jobs.
pub fn estimate_flow(
    project: &Project,
    choice: &Choice,
    counter: Counter,
) -> Result<Estimate, FlowError> {
    let (flow, _) = flow_now(project, &FlowCache::default())?;
    let mut with_tools = Usage::default();
    let expected = Expected::new(project, &flow, counter);
    let mut jobs = Vec::new();
    for (index, (planned, status)) in flow.jobs.iter().zip(&flow.statuses).enumerate() {
        let open = match status.state {
            State::Done | State::Skipped => choice.again && choice.steps.contains(&status.job.step),
            State::Stale => choice.stale,
            _ => !choice.stale,
        };
        if !(open && choice.allows(project, &status.job)) {
            continue;
        }
        let mut estimate = JobEstimate {
            job: status.job.clone(),
            state: status.state,
            who: String::new(),
            agent: None,
            times: if is_done_twice(&project.contract, planned.step) {
                2
            } else {
                1
            },
            input: Tokens::ZERO,
            output: Tokens::ZERO,
            absent: 0,
            cost: None,
            fault: None,
        };
        match planned.role {
            None => {
                estimate.who = planned
                    .step
                    .builtin
                    .and_then(|b| serde_json::to_value(b).ok()?.as_str().map(str::to_owned))
                    .unwrap_or_default()
            }
            Some(role) => {
                estimate.who.clone_from(&role.name);
                let agent = choice.agent_of(planned.step);
                estimate.agent = agent
                    .filter(|_| !choice.agents.is_empty())
                    .map(ToString::to_string);
                let price = project
                    .contract
                    .price(agent.map_or("default", ActorName::as_str));
                let request = ViewRequest {
                    role: ActorName::parse(&role.name)
                        .expect("the contract has checked the names of roles"),
                    unit: status.job.unit.clone(),
                    agent: agent.cloned(),
                    budget: None,
                    window: None,
                    reserve: None,
                    counter,
                    language: None,
                    partial: true,
                };
                let mut later = None;
                match make_view(project, &request, &Lexical) {
                    Ok(view) => {
                        let round = LaterRound::of(project, planned, view.stages.len() == 1);
                        let again =
                            round.shows_passages || round.is_new && planned.step.panel.is_some();
                        let stages = if round.shows_passages {
                            1
                        } else {
                            view.stages.len()
                        };
                        let briefs = (1..=stages).filter_map(|stage| {
                            let options = BriefOptions {
                                inline: false,
                                stage,
                                again,
                            };
                            render_brief(project, &request, &view, options).ok()
                        });
                        let brief: Tokens = briefs.map(|b| counter.count(&b)).sum();
                        let brief = brief + counter.count(&round.text);
                        let shown: Tokens = view.stages.iter().map(|s| s.tokens).sum();
                        let whole = || {
                            (shown + brief + expected.read_later(index))
                                .saturating_sub(unmapped(project, planned, &view))
                        };
                        let input = match planned.step.panel {
                            _ if round.shows_passages => brief,
                            Some(PanelPart::Weigh) if round.is_new => {
                                brief + shown + Tokens(expected.read_later(index).0 / NEW_COMMENTS)
                            }
                            _ => whole(),
                        };
                        estimate.input = Tokens(input.0 * estimate.times);
                        later = Some(round).filter(|round| round.is_new);
                        estimate.absent = view.absent.len();
                    }
                    Err(error) => estimate.fault = Some(error.to_string()),
                }
                let written = match &later {
                    Some(round) => written_again(round, planned.step.panel, counter),
                    None => expected.written(planned),
                };
                estimate.output = Tokens(written.0 * estimate.times);
                let (reads, writes) = (estimate.input.0, estimate.output.0);
                estimate.cost = price.map(|price| price.cost(reads, writes));
                if let Some(price) = price {
                    let (reads, writes) = (reads * WITH_TOOLS_READS, writes * WITH_TOOLS_WRITES);
                    *with_tools.cost.get_or_insert_default() += price.cost(reads, writes) / 100.0;
                }
            }
        }
        jobs.push(estimate);
    }
    let input: Tokens = jobs.iter().map(|t| t.input).sum();
    let output: Tokens = jobs.iter().map(|t| t.output).sum();
    let rest = choice.agent.as_ref().map_or("default", ActorName::as_str);
    let is_priced =
        project.contract.price(rest).is_some() || jobs.iter().any(|job| job.cost.is_some());
    let cost = is_priced.then(|| jobs.iter().filter_map(|job| job.cost).sum());
    with_tools.input = input.0 * WITH_TOOLS_READS / 100;
    with_tools.output = output.0 * WITH_TOOLS_WRITES / 100;
    Ok(Estimate {
        with_tools,
        batches: batches(project, &jobs),
        jobs,
        input,
        output,
        cost,
    })
}

/// Whether a step's work may be sent back by reviewers with merged reports, or the step is one of
/// the reviewers that always run.
fn is_done_twice(contract: &Contract, step: &Step) -> bool {
    let sends_back =
        |check: &&Step| check.builtin == Some(Builtin::Merge) && check.rounds.is_some();
    let concerns = |check: &Step| {
        check.back.contains(&step.name)
            || check.after.contains(&step.name) && step.when.files.is_none()
    };
    step.role.is_some() && contract.steps.iter().filter(sends_back).any(concerns)
}

/// The tokens to subtract for trees without a map: once the map exists, a unit sees only its share
/// and some shared files.
fn unmapped(project: &Project, planned: &PlannedJob<'_>, view: &View) -> Tokens {
    let units = project.contract.units.len().max(1) as u64;
    let is_absent = |map: &str| {
        ProjectPath::parse(map)
            .is_ok_and(|map| project.store.read(&map).is_ok_and(|found| found.is_none()))
    };
    let pointers = || planned.role.iter().flat_map(|role| &role.reads);
    let is_unmapped = |seen: &Seen| {
        pointers().any(|own| own.place == seen.place && own.map.as_deref().is_some_and(is_absent))
    };
    let wholes = view
        .pointers
        .iter()
        .enumerate()
        .filter(|(_, seen)| is_unmapped(seen));
    let shares = wholes.flat_map(|(at, _)| {
        view.stages
            .iter()
            .filter_map(move |stage| stage.shares.get(at))
    });
    let whole: u64 = shares.map(|share| share.shown.0).sum();
    // Files that many units need are the large ones: assume 2.5 times an even share.
    Tokens(whole.saturating_sub(whole * 5 / (2 * units)))
}

/// The batches of the selected units, if there is more than one.
fn batches(project: &Project, jobs: &[JobEstimate]) -> Vec<Vec<UnitId>> {
    let Some((step, size)) = project
        .contract
        .steps
        .iter()
        .find_map(|step| Some((step, step.batch?)))
    else {
        return Vec::new();
    };
    let mut batches = plan_batches(&project.contract.units_of(step), size);
    for batch in &mut batches {
        batch.retain(|unit| jobs.iter().any(|job| job.job.unit.as_ref() == Some(unit)));
    }
    batches.retain(|batch| !batch.is_empty());
    if batches.iter().map(Vec::len).sum::<usize>() > 1 {
        batches
    } else {
        Vec::new()
    }
}
