//! Converts answers and failures to HTTP responses. The body of a failure is the same JSON that
//! `--json` prints.

use quipu_contract::{Language, Localized};
use quipu_web::axum::Json;
use quipu_web::axum::http::StatusCode;
use quipu_web::axum::response::{IntoResponse, Response};
use quipu_web::blocking;
use serde_json::Value;

use crate::answer::{Failure, exit};

/// Runs blocking work and replies with its result.
pub async fn reply(work: impl FnOnce() -> Result<Value, Failure> + Send + 'static) -> Response {
    match blocking(work).await {
        Some(Ok(value)) => Json(value).into_response(),
        Some(Err(failure)) => (status(failure.exit), Json(failure.json())).into_response(),
        None => {
            let failure = Failure::new(
                exit::IO,
                "an internal error occurred",
                "report this \
                as a bug",
            );
            (StatusCode::INTERNAL_SERVER_ERROR, Json(failure.json())).into_response()
        }
    }
}

/// Returns a text of the contract in English and Chinese: the language of the page is the browser's.
pub fn both(text: &Localized) -> [&str; 2] {
    [Language::En, Language::Zh].map(|language| text.in_language(language))
}

fn status(code: u8) -> StatusCode {
    match code {
        exit::USAGE => StatusCode::BAD_REQUEST,
        exit::REFUSED => StatusCode::FORBIDDEN,
        exit::NOT_FOUND => StatusCode::NOT_FOUND,
        exit::STALE => StatusCode::CONFLICT,
        exit::AGENT => StatusCode::BAD_GATEWAY,
        _ => StatusCode::INTERNAL_SERVER_ERROR,
    }
}
