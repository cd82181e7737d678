//! Time, tokens and cost of attempts, by step, unit and agent; and the estimate beside them.

use std::collections::BTreeMap;

use quipu_protocol::flow::{AttemptFact, AttemptResult, Usage, attempts_under_way};
use quipu_web::axum::extract::{Query, State};
use quipu_web::axum::response::Response;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use super::reply::reply;
use super::{Page, Shared};
use crate::answer::Failure;
use crate::session::{Names, Session};
use crate::table::TABLE;

/// Maximum number of attempts on the timeline: the newest ones.
const MOST: usize = 1_500;
/// The beginning of an attempt's name is the time when it began: `20261115T140000123`.
const STAMP: usize = 18;

/// The total time, tokens and cost of attempts.
#[derive(Default, Serialize)]
struct Effort {
    attempts: usize,
    failed: usize,
    seconds: f64,
    input: u64,
    output: u64,
    cost: Option<f64>,
}

impl Effort {
    fn add(&mut self, fact: &AttemptFact, seconds: Option<f64>) {
        self.attempts += 1;
        self.failed += usize::from(fact.note.ruling == AttemptResult::Failed);
        self.seconds += seconds.unwrap_or(0.0);
        if let Some(usage) = fact.note.usage {
            let mut sum = Usage {
                input: self.input,
                output: self.output,
                cost: self.cost,
            };
            sum.add(usage);
            (self.input, self.output, self.cost) = (sum.input, sum.output, sum.cost);
        }
    }
}

#[derive(Debug, Deserialize)]
pub struct Wanted {
    /// Attempts to list, at most.
    most: Option<usize>,
}

pub async fn effort(State(page): Shared, Query(wanted): Query<Wanted>) -> Response {
    reply(move || {
        let project = page.session().project()?;
        let noted = project.store.noted(0)?.into_iter();
        let facts: Vec<AttemptFact> = noted
            .filter_map(AttemptFact::of)
            // A decision of a person takes no time and no tokens.
            .filter(|fact| {
                matches!(
                    fact.note.ruling,
                    AttemptResult::Accepted | AttemptResult::Failed
                )
            })
            .collect();
        let mut by: [BTreeMap<String, Effort>; 3] = Default::default();
        let mut all = Effort::default();
        let mut shown = Vec::new();
        let most = wanted.most.unwrap_or(MOST).min(MOST);
        for (at, fact) in facts.iter().enumerate() {
            let note = &fact.note;
            let begun = begun(&note.attempt);
            let seconds = begun.as_deref().and_then(|begun| seconds(begun, &fact.at));
            let agent = note.agent.clone().unwrap_or_default();
            let names = [
                note.step.clone(),
                note.unit.clone().unwrap_or_default(),
                agent.clone(),
            ];
            for (group, name) in by.iter_mut().zip(names) {
                group.entry(name).or_default().add(fact, seconds);
            }
            all.add(fact, seconds);
            if facts.len() - at <= most {
                shown.push(json!({
                    "attempt": note.attempt, "step": note.step, "unit": note.unit, "agent": agent, "begun": begun, "ended": fact.at,
                    "ruling": note.ruling, "seq": fact.seq, "usage": note.usage,
                }));
            }
        }
        let [steps, units, agents] = by;
        Ok::<Value, Failure>(json!({
            "attempts": shown,
            "attempts_all": facts.len(),
            "running": attempts_under_way(project.store.root()),
            "all": all,
            "steps": steps,
            "units": units,
            "agents": agents,
        }))
    })
    .await
}

/// Returns the time in an attempt's name as ISO 8601.
fn begun(attempt: &str) -> Option<String> {
    let stamp = attempt.get(..STAMP)?;
    let is_stamp = stamp.char_indices().all(|(at, c)| match at {
        8 => c == 'T',
        _ => c.is_ascii_digit(),
    });
    let part = |from: usize, to: usize| &stamp[from..to];
    is_stamp.then(|| {
        format!(
            "{}-{}-{}T{}:{}:{}.{}Z",
            part(0, 4),
            part(4, 6),
            part(6, 8),
            part(9, 11),
            part(11, 13),
            part(13, 15),
            part(15, 18)
        )
    })
}

fn seconds(from: &str, to: &str) -> Option<f64> {
    let parse = |text: &str| text.parse::<jiff::Timestamp>().ok();
    let took = parse(to)?.duration_since(parse(from)?);
    Some(took.as_secs_f64().max(0.0))
}

#[derive(Debug, Deserialize)]
pub struct Asked {
    /// The agent whose prices apply.
    by: Option<String>,
    step: Option<String>,
    unit: Option<String>,
    /// Also counts what is done.
    #[serde(default)]
    again: bool,
}

/// Returns what `quipu run --dry-run` prints for the same choice.
pub async fn estimate(State(page): Shared, Query(asked): Query<Asked>) -> Response {
    reply(move || estimate_of(&page, &asked)).await
}

fn estimate_of(page: &Page, asked: &Asked) -> Result<Value, Failure> {
    let session = page.session();
    let steps: Vec<String> = match &asked.step {
        Some(step) => vec![step.clone()],
        None if asked.again => {
            let project = session.project()?;
            let steps = project.contract.steps.iter();
            steps.map(|step| step.name.clone()).collect()
        }
        None => Vec::new(),
    };
    let mut words = vec!["--dry-run".to_owned()];
    words.extend(asked.again.then(|| "--again".to_owned()));
    words.extend(steps.iter().map(|step| format!("--step={step}")));
    words.extend(asked.by.iter().map(|by| format!("--by={by}")));
    let row = TABLE.iter().find(|row| row.name == "run");
    let row = row.expect("the table has the command run");
    let matches =
        crate::mcp::schema::matches(row, &words).map_err(|what| Failure::usage(what, ""))?;
    let names = Names {
        unit: asked.unit.clone().filter(|unit| !unit.is_empty()),
        ..Names::default()
    };
    let caller = Session::new(session.folder, names, Names::default())?;
    (row.call)(&matches, &caller).map(|answer| answer.json)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_name_of_an_attempt_says_when_it_began() {
        let found = begun("20261115T140000123-write-ch05").unwrap();
        assert_eq!(found, "2026-11-15T14:00:00.123Z");
        assert_eq!(seconds(&found, "2026-11-15T14:01:00.123Z"), Some(60.0));
        assert_eq!(begun("write-ch05"), None);
        assert_eq!(begun("20261115 140000123-write"), None);
    }
}
