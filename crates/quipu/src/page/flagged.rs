//! A flagged file, and which of the operations that fix it would be accepted.

use quipu_contract::{Actor, ProjectPath};
use quipu_protocol::Project;
use quipu_store::{Change, FileStatus, Op, StoreError};
use quipu_web::axum::extract::{Query, State};
use quipu_web::axum::response::Response;
use serde::Deserialize;
use serde_json::{Value, json};

use super::reply::reply;
use super::{Page, Shared};
use crate::answer::Failure;
use crate::session::Session;

#[derive(Debug, Deserialize)]
pub struct Parameters {
    path: String,
}

pub async fn flagged(State(page): Shared, Query(asked): Query<Parameters>) -> Response {
    reply(move || {
        let project = page.session().project()?;
        let path = Session::path(&asked.path)?;
        Ok::<Value, Failure>(json!({"path": path, "flag": find(&page, &project, &path)?}))
    })
    .await
}

/// Returns a file's flag with what fixes it, or null.
pub fn find(page: &Page, project: &Project, path: &ProjectPath) -> Result<Value, Failure> {
    let found = match project.store.is_read_only() {
        // Only a scan compares the files of a project that cannot be written.
        true => {
            let scan = page.kept.scan(project)?;
            scan.flagged().find(|f| f.path == path.as_str()).cloned()
        }
        false => project.store.flagged(path)?,
    };
    Ok(found.map_or(Value::Null, |file| to_json(project, path, &file)))
}

fn to_json(project: &Project, path: &ProjectPath, file: &FileStatus) -> Value {
    // The rules are asked, not repeated: the operation is validated and dropped.
    let accepts = |change: Result<Change, StoreError>| {
        change
            .and_then(|change| project.validate(change).map(drop))
            .is_ok()
    };
    let person = || Change::by(&Actor::Person);
    let amend = Op::Amend {
        path: path.clone(),
        bytes: None,
    };
    json!({
        "what": file.flag.as_ref().map(|flag| &flag.what),
        "line": file.flag.as_ref().and_then(|flag| flag.line),
        "remedy": file.remedy(),
        "version": file.version,
        "restore": accepts(project.store.restoring(person(), path, None)),
        "accept": accepts(Ok(person().why("accepted").op(amend))),
    })
}
