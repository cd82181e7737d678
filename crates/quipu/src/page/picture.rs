//! Pictures of the project. The page fetches them with its token and never from elsewhere.

use quipu_protocol::read_pointer;
use quipu_web::axum::extract::{Query, State};
use quipu_web::axum::http::header::{CONTENT_TYPE, X_CONTENT_TYPE_OPTIONS};
use quipu_web::axum::response::{IntoResponse, Response};
use quipu_web::blocking;
use serde::Deserialize;

use super::Shared;
use super::reply::reply;
use crate::answer::{Failure, exit};
use crate::session::Session;

/// Endings of pictures with their types. An SVG may hold scripts and references, so it is not one.
const KINDS: [(&str, &str); 6] = [
    ("png", "image/png"),
    ("jpg", "image/jpeg"),
    ("jpeg", "image/jpeg"),
    ("gif", "image/gif"),
    ("webp", "image/webp"),
    ("avif", "image/avif"),
];

fn kind(path: &str) -> Option<&'static str> {
    let ending = path.rsplit_once('.')?.1.to_ascii_lowercase();
    let found = KINDS.iter().find(|(known, _)| *known == ending);
    found.map(|(_, kind)| *kind)
}

/// Whether the page shows a file as a picture.
pub fn is_picture(path: &str) -> bool {
    kind(path).is_some()
}

#[derive(Debug, Deserialize)]
pub struct Parameters {
    path: String,
    at: Option<String>,
}

pub async fn picture(State(page): Shared, Query(asked): Query<Parameters>) -> Response {
    let work = move || {
        let session = page.session();
        let project = session.project()?;
        let path = Session::path(&asked.path)?;
        let Some(kind) = kind(path.as_str()) else {
            let what = format!("`{path}` is not a picture that the page shows");
            return Err(Failure::new(
                exit::REFUSED,
                what,
                "open it with another program",
            ));
        };
        let at = asked.at.as_deref().filter(|at| !at.is_empty());
        let reading = read_pointer(&project, &session.actor, path.as_str(), at)?;
        Ok((kind, reading.bytes))
    };
    match blocking(work).await {
        Some(Ok((kind, bytes))) => (
            [(CONTENT_TYPE, kind), (X_CONTENT_TYPE_OPTIONS, "nosniff")],
            bytes,
        )
            .into_response(),
        Some(Err(failure)) => reply(move || Err(failure)).await,
        None => {
            reply(|| {
                Err(Failure::new(
                    exit::IO,
                    "an internal error occurred",
                    "report this as a bug",
                ))
            })
            .await
        }
    }
}
