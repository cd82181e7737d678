//! The decisions about one file that wait for a person.

use quipu_contract::{Builtin, ProjectPath};
use quipu_protocol::flow::{JobStatus, PlannedJob, State as Stand, flow_now};
use quipu_web::axum::extract::{Query, State};
use quipu_web::axum::response::Response;
use serde::Deserialize;
use serde_json::{Value, json};

use super::Shared;
use super::flow::to_json;
use super::reply::reply;
use crate::answer::Failure;
use crate::session::Session;

#[derive(Debug, Deserialize)]
pub struct Parameters {
    path: String,
}

/// Returns the jobs that a person decides and that concern a file: gates that read it, and jobs with
/// it as an output that object or are stale.
pub async fn of_file(State(page): Shared, Query(asked): Query<Parameters>) -> Response {
    reply(move || {
        let project = page.session().project()?;
        let path = Session::path(&asked.path)?;
        if project.contract.steps.is_empty() {
            return Ok::<Value, Failure>(json!({"jobs": []}));
        }
        let (flow, _) = flow_now(&project, &page.memory)?;
        let found = flow.jobs.iter().zip(&flow.statuses);
        let found: Vec<Value> = found
            .filter(|(planned, status)| concerns(planned, status, &path))
            .map(|(planned, status)| to_json(&project.contract, planned, status))
            .collect();
        Ok(json!({"jobs": found}))
    })
    .await
}

fn concerns(planned: &PlannedJob<'_>, status: &JobStatus, path: &ProjectPath) -> bool {
    let writes = || planned.outputs.iter().any(|output| output.path == *path);
    let reads = || {
        let mut reads = planned.reads().into_iter();
        reads.any(|pattern| pattern.matches(path.as_str()).is_some())
    };
    match status.state {
        Stand::Waiting => planned.is_builtin(Builtin::Gate) && (reads() || writes()),
        Stand::Failed => status.objects && writes(),
        Stand::Stale => status.through.is_empty() && writes(),
        _ => false,
    }
}
