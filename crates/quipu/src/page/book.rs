//! The published book, as the browser opens it.
//!
//! A link cannot carry the token, so the address has a random folder that only the page knows. Agents
//! may write pages of a book. Their text comes from the journal, and a content security policy lets
//! no script run but those of the publisher.

use quipu_contract::{Contract, Form, ProjectPath};
use quipu_protocol::Project;
use quipu_store::StatusScan;
use quipu_web::Token;
use quipu_web::axum::Router;
use quipu_web::axum::extract::{Path, State};
use quipu_web::axum::http::header::{CONTENT_SECURITY_POLICY, CONTENT_TYPE};
use quipu_web::axum::response::{IntoResponse, Response};
use quipu_web::axum::routing::get;
use quipu_web::blocking;
use serde_json::{Value, json};

use super::reply::reply;
use super::{Page, Shared};
use crate::answer::{Failure, exit};
use crate::session::Session;

/// The forms of the files of a book.
const PARTS: [Form; 9] = [
    Form::Page,
    Form::Contents,
    Form::Stylesheet,
    Form::Media,
    Form::Ebook,
    Form::GlossaryPage,
    Form::SearchPage,
    Form::PrintPage,
    Form::SourcePage,
];

const KINDS: [(&str, &str); 8] = [
    ("html", "text/html; charset=utf-8"),
    ("css", "text/css; charset=utf-8"),
    ("epub", "application/epub+zip"),
    ("svg", "image/svg+xml"),
    ("png", "image/png"),
    ("jpg", "image/jpeg"),
    ("jpeg", "image/jpeg"),
    ("gif", "image/gif"),
];

pub fn router() -> Router<std::sync::Arc<Page>> {
    Router::new().route("/book/{key}/{*path}", get(part))
}

fn policy() -> String {
    let scripts: Vec<String> = quipu_publish::SCRIPT_HASHES
        .iter()
        .map(|hash| format!("'{hash}'"))
        .collect();
    format!(
        "default-src 'none'; script-src {}; style-src 'self'; img-src 'self' data:; font-src 'self'; base-uri 'none'; \
         form-action 'self'; frame-ancestors 'none'",
        scripts.join(" ")
    )
}

fn is_part(contract: &Contract, path: &ProjectPath) -> bool {
    let form = contract.rule(path).and_then(|rule| rule.form);
    form.is_some_and(|form| PARTS.contains(&form))
}

async fn part(State(page): Shared, Path((key, path)): Path<(String, String)>) -> Response {
    let work = move || {
        let unknown = || {
            Failure::new(
                exit::NOT_FOUND,
                "nothing is served at this address",
                "open the book on the page",
            )
        };
        if !page.book_key.is(&key) {
            return Err(unknown());
        }
        let project = page.session().project()?;
        let path = Session::path(&path)?;
        if !is_part(&project.contract, &path) {
            return Err(unknown());
        }
        let (bytes, _) = project.store.read(&path)?.ok_or_else(unknown)?;
        let ending = path
            .as_str()
            .rsplit('.')
            .next()
            .unwrap_or_default()
            .to_ascii_lowercase();
        let kind = KINDS.iter().find(|(known, _)| *known == ending);
        Ok((
            kind.map_or("text/plain; charset=utf-8", |(_, kind)| *kind),
            bytes,
        ))
    };
    match blocking(work).await {
        Some(Ok((kind, bytes))) => {
            let policy = policy();
            (
                [
                    (CONTENT_TYPE, kind),
                    (CONTENT_SECURITY_POLICY, policy.as_str()),
                ],
                bytes,
            )
                .into_response()
        }
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

/// The addresses of the book, the EPUB, and the chapters that are final. Null for a project without
/// chapters.
pub fn to_json(project: &Project, scan: &StatusScan, key: &Token) -> Value {
    let contract = &project.contract;
    if contract.of_form(Form::Chapter).next().is_none() {
        return Value::Null;
    }
    let of = |form: Form| {
        let files = scan.files.iter().filter(move |file| {
            ProjectPath::parse(&file.path)
                .is_ok_and(|path| contract.rule(&path).and_then(|rule| rule.form) == Some(form))
        });
        files.map(|file| file.path.as_str())
    };
    let address = |path: &str| format!("/book/{}/{path}", key.as_str());
    json!({
        "contents": of(Form::Contents).next().map(address),
        "ebook": of(Form::Ebook).next().map(address),
        "chapters": of(Form::Chapter).collect::<Vec<_>>(),
    })
}
