//! Streamable HTTP: one message per request, one answer, no streams and no state.
//!
//! The guard in front (`quipu-web`) has already checked Host, Origin, token, size and time. A
//! handshake gets a session id that holds only the client's name. The server stores no sessions, so
//! none can expire, leak or be stolen, and clients do not notice a restart.

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use quipu_web::axum::Router;
use quipu_web::axum::body::Bytes;
use quipu_web::axum::extract::State;
use quipu_web::axum::http::{HeaderMap, HeaderValue, StatusCode, header};
use quipu_web::axum::response::{IntoResponse, Response};
use quipu_web::axum::routing::post;
use quipu_web::{Plan, Policy, ServeError, Site, Token, blocking, serve};
use serde_json::Value;

use super::serve::{Answers, Door};
use super::wire::{Fault, HANDSHAKES, Request, STATELESS, render_fault};
use crate::session::Session;

/// The only path of the server.
pub const PATH: &str = "/mcp";

const VERSION: &str = "mcp-protocol-version";
const SESSION: &str = "mcp-session-id";
const METHOD: &str = "mcp-method";
const NAME: &str = "mcp-name";

/// The address and settings of the server.
#[derive(Debug)]
pub struct Opening {
    pub address: SocketAddr,
    pub token: Token,
    /// Host names it accepts besides those of loopback.
    pub hosts: Vec<String>,
    /// The longest message, in bytes.
    pub body: usize,
    pub deadline: Duration,
}

/// Serves until a signal ends it. `ready` receives the address.
pub fn open(
    session: &Session,
    opening: Opening,
    ready: impl FnOnce(SocketAddr),
) -> Result<(), ServeError> {
    let mut policy = Policy::new(opening.token);
    (policy.hosts, policy.body, policy.deadline) = (opening.hosts, opening.body, opening.deadline);
    let guarded = Router::new()
        .route(PATH, post(answer))
        .with_state(Arc::new(session.clone()));
    serve(
        Plan {
            address: opening.address,
            site: Site {
                guarded,
                ..Site::default()
            },
            policy,
        },
        ready,
    )
}

async fn answer(State(session): State<Arc<Session>>, headers: HeaderMap, body: Bytes) -> Response {
    if !says(&headers, header::CONTENT_TYPE, &["application/json"]) {
        return StatusCode::UNSUPPORTED_MEDIA_TYPE.into_response();
    }
    if headers.contains_key(header::ACCEPT)
        && !says(
            &headers,
            header::ACCEPT,
            &["application/json", "application/*", "*/*"],
        )
    {
        return StatusCode::NOT_ACCEPTABLE.into_response();
    }
    let request = match Request::parse(&String::from_utf8_lossy(&body)) {
        Ok(request) => request,
        // The server sends no requests, so an answer to one is an error.
        Err(told) => return told_as(StatusCode::BAD_REQUEST, &render_fault(&told.0, told.1)),
    };
    let stateless = request.revision().is_some() || word(&headers, VERSION) == Some(STATELESS);
    if let Err(fault) = if stateless {
        agrees(&headers, &request)
    } else {
        is_spoken(&headers)
    } {
        let id = request.id.clone().unwrap_or(Value::Null);
        return told_as(StatusCode::BAD_REQUEST, &render_fault(&id, fault));
    }
    let session_id = (request.method == "initialize")
        .then(|| session_id(request.client()))
        .flatten();
    let client = word(&headers, SESSION)
        .and_then(|id| id.rsplit_once('.'))
        .map(|(name, _)| name.to_owned());
    let Some(told) = blocking(move || Door::known(&session, client).answer_to(&request)).await
    else {
        return StatusCode::INTERNAL_SERVER_ERROR.into_response();
    };
    let Some(told) = told else {
        return StatusCode::ACCEPTED.into_response();
    };
    let status = match told["error"]["code"].as_i64() {
        Some(Fault::METHOD) if stateless => StatusCode::NOT_FOUND,
        Some(Fault::VERSION) => StatusCode::BAD_REQUEST,
        _ => StatusCode::OK,
    };
    let mut response = told_as(status, &told);
    if let Some(id) = session_id {
        response.headers_mut().insert(SESSION, id);
    }
    response
}

fn told_as(status: StatusCode, told: &Value) -> Response {
    (
        status,
        [(header::CONTENT_TYPE, "application/json")],
        told.to_string(),
    )
        .into_response()
}

fn word<'h>(headers: &'h HeaderMap, name: &str) -> Option<&'h str> {
    headers.get(name)?.to_str().ok().map(str::trim)
}

/// Whether a header lists one of these media types.
fn says(headers: &HeaderMap, name: header::HeaderName, kinds: &[&str]) -> bool {
    let listed = headers
        .get_all(name)
        .iter()
        .filter_map(|value| value.to_str().ok())
        .flat_map(|text| text.split(','));
    listed
        .map(|one| one.split(';').next().unwrap_or_default().trim())
        .any(|one| kinds.iter().any(|kind| kind.eq_ignore_ascii_case(one)))
}

/// After a handshake, the client sends the agreed revision; older clients send none.
fn is_spoken(headers: &HeaderMap) -> Result<(), Fault> {
    match word(headers, VERSION) {
        Some(version) if !HANDSHAKES.contains(&version) => Err(Fault::unspoken(version)),
        _ => Ok(()),
    }
}

/// A stateless request repeats parts of its body in headers, so that proxies can rely on them. The
/// two must agree.
fn agrees(headers: &HeaderMap, request: &Request) -> Result<(), Fault> {
    request.is_complete()?;
    says_the_same(headers, VERSION, request.revision())?;
    request.check()?;
    says_the_same(headers, METHOD, Some(&request.method))?;
    says_the_same(headers, NAME, request.subject())
}

fn says_the_same(headers: &HeaderMap, header: &str, body: Option<&str>) -> Result<(), Fault> {
    let Some(body) = body else { return Ok(()) };
    let said = word(headers, header);
    if said == Some(body) || said.and_then(decoded).as_deref() == Some(body) {
        return Ok(());
    }
    let said = said.map_or("is missing".to_owned(), |said| format!("is `{said}`"));
    Err(Fault::new(
        Fault::HEADER,
        format!("the header {header} {said}, but the message says `{body}`"),
    ))
}

/// `=?base64?…?=`: the encoding of header values that are not plain ASCII.
fn decoded(said: &str) -> Option<String> {
    let inner = said.strip_prefix("=?base64?")?.strip_suffix("?=")?;
    String::from_utf8(STANDARD.decode(inner).ok()?).ok()
}

/// Returns the client's name with a random suffix, so that ids are unique.
fn session_id(client: Option<&str>) -> Option<HeaderValue> {
    let name: String = client
        .unwrap_or("mcp")
        .chars()
        .filter(|c| c.is_ascii_graphic())
        .take(64)
        .collect();
    let chance = Token::random().ok()?;
    HeaderValue::from_str(&format!("{name}.{}", chance.as_str())).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn headers(pairs: &[(&'static str, &str)]) -> HeaderMap {
        pairs
            .iter()
            .map(|(name, value)| {
                (
                    header::HeaderName::from_static(name),
                    HeaderValue::from_str(value).unwrap(),
                )
            })
            .collect()
    }

    fn request(method: &str, params: &str) -> Request {
        let meta = r#""_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientCapabilities":{}}"#;
        Request::parse(&format!(
            r#"{{"jsonrpc":"2.0","id":1,"method":"{method}","params":{{{params}{meta}}}}}"#
        ))
        .unwrap()
    }

    #[test]
    fn headers_say_what_the_message_says() {
        let read = request("tools/call", r#""name":"读","#);
        let said = |name| {
            headers(&[
                (VERSION, "2026-07-28"),
                (METHOD, "tools/call"),
                (NAME, name),
            ])
        };
        assert!(agrees(&said("=?base64?6K+7?="), &read).is_ok());
        for wrong in ["=?base64?6K+7?", "=?base64?6K!7?=", "write"] {
            assert_eq!(
                agrees(&said(wrong), &read).unwrap_err().code,
                Fault::HEADER,
                "{wrong}"
            );
        }
        let list = request("tools/list", "");
        assert!(
            agrees(
                &headers(&[(VERSION, "2026-07-28"), (METHOD, "tools/list")]),
                &list
            )
            .is_ok()
        );
        assert_eq!(
            agrees(&headers(&[(VERSION, "2026-07-28")]), &list)
                .unwrap_err()
                .code,
            Fault::HEADER
        );
        assert_eq!(
            agrees(&headers(&[(METHOD, "tools/list")]), &list)
                .unwrap_err()
                .code,
            Fault::HEADER
        );
        assert!(
            is_spoken(&headers(&[(VERSION, "2025-06-18")])).is_ok()
                && is_spoken(&headers(&[])).is_ok()
        );
        assert_eq!(
            is_spoken(&headers(&[(VERSION, "1999-01-01")]))
                .unwrap_err()
                .code,
            Fault::VERSION
        );
    }

    #[test]
    fn a_session_is_a_name() {
        let id = session_id(Some("claude code")).unwrap();
        let (name, chance) = id.to_str().unwrap().rsplit_once('.').unwrap();
        assert_eq!((name, chance.len()), ("claudecode", 48));
    }
}
