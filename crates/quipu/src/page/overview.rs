//! The project's identity, and which views of the page have content.

use quipu_contract::{Contract, Form};
use quipu_web::axum::extract::State;
use quipu_web::axum::response::Response;
use serde_json::{Value, json};

use super::Shared;
use super::reply::{both, reply};
use crate::answer::Failure;

pub async fn project(State(page): Shared) -> Response {
    reply(move || {
        let project = page.session().project()?;
        let contract = &project.contract;
        let profiles: Vec<Value> = contract
            .profiles
            .iter()
            .map(|p| json!({"name": p.name, "about": both(&p.about)}))
            .collect();
        let root = project.store.root();
        let named = contract
            .vars
            .get("project")
            .and_then(|var| var.value.clone());
        let folder = root
            .file_name()
            .map(|name| name.to_string_lossy().into_owned())
            .unwrap_or_default();
        Ok::<Value, Failure>(json!({
            "name": named.unwrap_or_else(|| folder.clone()),
            "folder": folder,
            "root": root,
            "language": contract.language.as_str(),
            "profiles": profiles,
            "has": has(contract),
            "read_only": project.store.is_read_only(),
            "version": env!("CARGO_PKG_VERSION"),
            "seq": project.store.pulse()?,
        }))
    })
    .await
}

/// Returns which views the contract has content for.
fn has(contract: &Contract) -> Value {
    let form = |form: Form| contract.of_form(form).next().is_some();
    json!({
        "flow": !contract.steps.is_empty(),
        "todos": form(Form::Todos),
        "decisions": form(Form::Decisions),
        "sessions": form(Form::Session),
        "reports": form(Form::Report),
        "threads": form(Form::Threads),
        "memory": contract.files.iter().any(|rule| rule.tier.is_some()),
    })
}
