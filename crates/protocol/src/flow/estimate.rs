//! What a flow will cost: the views of its open turns, counted as they are now, and prices from the contract.

use quipu_contract::{ActorName, Tokens, UnitId};
use quipu_text::Counter;
use serde::Serialize;

use super::engine::{Choice, FlowError, flow_now};
use super::snapshot::Memory;
use super::state::State;
use super::turn::{Turn, comes_before, plan_batches};
use crate::brief::{BriefOptions, render_brief};
use crate::project::Project;
use crate::view::{Lexical, ViewRequest, make_view};

/// One open turn.
#[derive(Debug, Clone, Serialize)]
pub struct TurnEstimate {
    pub turn: Turn,
    pub state: State,
    /// The role, or what Quipu does itself.
    pub who: String,
    /// Tokens read: view and brief, over all stages.
    pub input: Tokens,
    /// Tokens kept free for writing: it writes no more than that.
    pub output: Tokens,
    /// Pointers that name nothing yet and so are not counted.
    pub absent: usize,
    /// At most, by the contract's prices.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cost: Option<f64>,
    /// Why its view cannot be made.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub fault: Option<String>,
}

/// All open turns.
#[derive(Debug, Clone, Serialize)]
pub struct Estimate {
    pub turns: Vec<TurnEstimate>,
    /// Units that are worked on at the same time, one batch after the other: what a batch leaves in memory is there for the next.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub batches: Vec<Vec<UnitId>>,
    pub input: Tokens,
    pub output: Tokens,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cost: Option<f64>,
}

/// Estimates what a choice of the flow will read, write and cost.
pub fn estimate_flow(project: &Project, choice: &Choice, agent: &str, counter: Counter) -> Result<Estimate, FlowError> {
    let (flow, _) = flow_now(project, &Memory::default())?;
    let price = project.contract.price(agent);
    let mut turns = Vec::new();
    for (planned, standing) in flow.turns.iter().zip(&flow.standings) {
        let open = match standing.state {
            State::Done | State::Skipped => choice.again && choice.steps.contains(&standing.turn.step),
            State::Stale => choice.stale,
            _ => !choice.stale,
        };
        let unit = choice.units.is_empty() || standing.turn.unit.as_ref().is_none_or(|u| choice.units.contains(u));
        let step = choice.steps.is_empty() || choice.steps.contains(&standing.turn.step);
        let until =
            choice.until.as_ref().is_none_or(|l| *l == standing.turn.step || comes_before(&project.contract, &standing.turn.step, l));
        if !(open && unit && step && until) {
            continue;
        }
        let mut estimate = TurnEstimate {
            turn: standing.turn.clone(),
            state: standing.state,
            who: String::new(),
            input: Tokens::ZERO,
            output: Tokens::ZERO,
            absent: 0,
            cost: None,
            fault: None,
        };
        match planned.role {
            None => {
                estimate.who =
                    planned.step.builtin.and_then(|b| serde_json::to_value(b).ok()?.as_str().map(str::to_owned)).unwrap_or_default()
            }
            Some(role) => {
                estimate.who.clone_from(&role.name);
                let request = ViewRequest {
                    role: ActorName::parse(&role.name).expect("the contract has checked the names of roles"),
                    unit: standing.turn.unit.clone(),
                    agent: choice.agent.clone(),
                    budget: None,
                    window: None,
                    reserve: None,
                    counter,
                    language: None,
                    partial: true,
                };
                match make_view(project, &request, &Lexical) {
                    Ok(view) => {
                        let stages = 1..=view.stages.len();
                        let briefs =
                            stages.filter_map(|stage| render_brief(project, &request, &view, BriefOptions { inline: false, stage }).ok());
                        let brief: Tokens = briefs.map(|b| counter.count(&b)).sum();
                        let shown: Tokens = view.stages.iter().map(|s| s.tokens).sum();
                        estimate.input = shown + brief;
                        estimate.output = view.window.map_or(Tokens::ZERO, |w| w.reserve);
                        estimate.absent = view.absent.len();
                    }
                    Err(error) => estimate.fault = Some(error.to_string()),
                }
                estimate.cost = price.map(|p| p.cost(estimate.input.0, estimate.output.0));
            }
        }
        turns.push(estimate);
    }
    let input = turns.iter().map(|t| t.input).sum();
    let output = turns.iter().map(|t| t.output).sum();
    let cost = price.map(|_| turns.iter().filter_map(|t| t.cost).sum());
    Ok(Estimate { batches: batches(project, &turns), turns, input, output, cost })
}

/// The batches of the units that are to be worked on, if these are more than one.
fn batches(project: &Project, turns: &[TurnEstimate]) -> Vec<Vec<UnitId>> {
    let Some((step, size)) = project.contract.steps.iter().find_map(|step| Some((step, step.batch?))) else { return Vec::new() };
    let mut batches = plan_batches(&project.contract.units_of(step), size);
    for batch in &mut batches {
        batch.retain(|unit| turns.iter().any(|turn| turn.turn.unit.as_ref() == Some(unit)));
    }
    batches.retain(|batch| !batch.is_empty());
    if batches.iter().map(Vec::len).sum::<usize>() > 1 { batches } else { Vec::new() }
}
