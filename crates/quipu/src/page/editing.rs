//! The text of a file for a person who edits it, and the operation that saves it.

use quipu_contract::{Act, Actor, ProjectPath};
use quipu_protocol::{Project, read_pointer};
use quipu_web::axum::extract::{Query, State};
use quipu_web::axum::response::Response;
use serde::Deserialize;
use serde_json::{Value, json};

use super::Shared;
use super::reply::reply;
use crate::answer::{Failure, exit};
use crate::session::Session;

/// A longer text is not edited in a browser.
const BYTES: usize = 256 << 10;

/// Returns the operation with which a person changes a file of this class; none if nothing may.
pub fn operation(project: &Project, path: &ProjectPath) -> Option<&'static str> {
    let class = project.contract.class(path);
    let allows = |act| class.allows(act, &Actor::Person, true).is_ok();
    let found = [
        ("write", Act::Replace { expected: true }),
        ("append", Act::Append),
        ("amend", Act::Amend),
    ];
    let found = found.into_iter().find(|(_, act)| allows(*act));
    found
        .map(|(name, _)| name)
        .filter(|_| !project.store.is_read_only())
}

#[derive(Debug, Deserialize)]
pub struct Parameters {
    path: String,
}

/// Returns the newest text and its version, on which an edit is based.
pub async fn text(State(page): Shared, Query(asked): Query<Parameters>) -> Response {
    reply(move || {
        let session = page.session();
        let project = session.project()?;
        let path = Session::path(&asked.path)?;
        let reading = read_pointer(&project, &session.actor, path.as_str(), None)?;
        let text = String::from_utf8(reading.bytes).ok();
        let Some(text) = text.filter(|text| text.len() <= BYTES) else {
            return Err(Failure::new(
                exit::REFUSED,
                format!("`{path}` is not text, or longer than {BYTES} bytes"),
                format!("quipu write {path} --file FILE"),
            ));
        };
        Ok::<Value, Failure>(json!({"text": text, "version": reading.version}))
    })
    .await
}
