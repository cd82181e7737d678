//! The state of a project with sessions, and the delegations that are under way.

use quipu_contract::{Actor, Form};
use quipu_protocol::{get_state, resolve_form, survey_delegations};
use quipu_web::axum::extract::State;
use quipu_web::axum::response::Response;
use serde_json::{Value, json};

use super::Shared;
use super::reply::reply;
use crate::answer::Failure;

/// Maximum number of delegations listed: the newest ones.
const MOST: usize = 30;

pub async fn standing(State(page): Shared) -> Response {
    reply(move || {
        let project = page.session().project()?;
        let person = Actor::Person;
        let has = |form: Form| project.contract.of_form(form).next().is_some();
        let path = has(Form::State).then(|| resolve_form(&project, &person, Form::State).ok());
        let state = path.iter().flatten().next();
        let value = state.and_then(|_| get_state(&project, &person, "").ok());
        let orders = match has(Form::Delegation) && !project.store.is_read_only() {
            true => survey_delegations(&project, &person)?,
            false => Vec::new(),
        };
        let shown: Vec<_> = orders.iter().rev().take(MOST).collect();
        Ok::<Value, Failure>(json!({
            "path": state, "state": value, "delegations": shown, "delegations_all": orders.len(),
        }))
    })
    .await
}
