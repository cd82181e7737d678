//! Middleware that checks every request (Host, Origin, token, size, time) and sets the security
//! headers of every response.
//!
//! A page of another site can make a browser send requests to loopback. It cannot make the browser
//! send our own name as Host after DNS rebinding, nor our own Origin, nor a header with a token
//! that it does not know. The server never sets a cookie, so a browser adds no credentials by
//! itself.

use std::sync::Arc;

use axum::Router;
use axum::body::Body;
use axum::extract::{DefaultBodyLimit, Request, State};
use axum::http::header::{
    AUTHORIZATION, CACHE_CONTROL, CONTENT_LENGTH, CONTENT_SECURITY_POLICY, CONTENT_TYPE, HOST,
    HeaderName, HeaderValue, ORIGIN, REFERRER_POLICY, WWW_AUTHENTICATE, X_CONTENT_TYPE_OPTIONS,
    X_FRAME_OPTIONS,
};
use axum::http::{HeaderMap, Method, StatusCode, Uri};
use axum::middleware::{Next, from_fn_with_state};
use axum::response::{IntoResponse, Response};
use serde_json::json;

use crate::host::Host;
use crate::policy::Policy;

/// The routes of a server.
#[derive(Debug, Default)]
pub struct Site {
    /// Routes that any local caller may fetch: files of the program itself, never project data.
    pub open: Router,
    /// Routes that need the token.
    pub guarded: Router,
}

/// Puts the checks in front of a site.
pub fn guard(site: Site, policy: &Policy) -> Router {
    let policy = Arc::new(policy.clone());
    let guarded = site
        .guarded
        .layer(from_fn_with_state(Arc::clone(&policy), shows_token));
    site.open
        .merge(guarded)
        .fallback(|| async {
            refusal(
                StatusCode::NOT_FOUND,
                "nothing is served at this address",
                "open the address that quipu printed",
            )
        })
        .layer(DefaultBodyLimit::max(policy.body))
        .layer(from_fn_with_state(Arc::clone(&policy), bounded))
        .layer(from_fn_with_state(Arc::clone(&policy), comes_from_here))
        .layer(from_fn_with_state(policy, with_headers))
}

/// Refuses callers that used a host name, or come from a page, that is not ours.
async fn comes_from_here(
    State(policy): State<Arc<Policy>>,
    request: Request,
    next: Next,
) -> Response {
    let Some(host) =
        called_as(request.headers(), request.uri()).filter(|host| is_ours(host, &policy.hosts))
    else {
        return refusal(
            StatusCode::MISDIRECTED_REQUEST,
            "this server does not answer to this host name",
            "open the address that quipu printed",
        );
    };
    if let Some(what) = foreign_origin(&request, &host) {
        return refusal(
            StatusCode::FORBIDDEN,
            what,
            "open the address that quipu printed",
        );
    }
    next.run(request).await
}

/// Returns the host that a request addresses. The request must have exactly one Host header, and an
/// absolute-form target must name the same host.
fn called_as(headers: &HeaderMap, uri: &Uri) -> Option<Host> {
    let mut hosts = headers.get_all(HOST).iter();
    let host = Host::parse(hosts.next()?.to_str().ok()?)?;
    let agrees = uri
        .authority()
        .is_none_or(|authority| authority.as_str().eq_ignore_ascii_case(&host.whole));
    (hosts.next().is_none() && agrees).then_some(host)
}

/// Accepts loopback under any port, because a tunnel may use its own, and any host that the policy
/// lists.
fn is_ours(host: &Host, listed: &[String]) -> bool {
    host.is_loopback()
        || listed.iter().any(|own| {
            own.eq_ignore_ascii_case(&host.whole) || own.eq_ignore_ascii_case(&host.name)
        })
}

/// Returns the reason to refuse the request's origin, if the browser sent one that is not ours.
fn foreign_origin(request: &Request, host: &Host) -> Option<&'static str> {
    let headers = request.headers();
    for origin in headers.get_all(ORIGIN) {
        let own = origin.to_str().ok().and_then(|text| {
            text.strip_prefix("http://")
                .or_else(|| text.strip_prefix("https://"))
        });
        if !own.is_some_and(|own| own.eq_ignore_ascii_case(&host.whole)) {
            return Some("the request comes from another site's page");
        }
    }
    let said = |name: &str| headers.get(name).map(HeaderValue::as_bytes);
    match said("sec-fetch-site") {
        // Browsers send `none` for an address that the user typed or opened from another program.
        None | Some(b"same-origin" | b"none") => None,
        // `serve --open` opens this page from a local file. The start page holds no project data,
        // and no frame may show it.
        Some(_)
            if is_start_page(request)
                && said("sec-fetch-mode") == Some(b"navigate")
                && said("sec-fetch-dest") == Some(b"document") =>
        {
            None
        }
        Some(_) => Some("the request comes from another site's page"),
    }
}

fn is_start_page(request: &Request) -> bool {
    request.method() == Method::GET
        && request.uri().path() == "/"
        && request.uri().query().is_none()
}

/// Refuses callers without the token.
async fn shows_token(State(policy): State<Arc<Policy>>, request: Request, next: Next) -> Response {
    let mut shown = request.headers().get_all(AUTHORIZATION).iter();
    let bearer = shown
        .next()
        .and_then(|value| value.to_str().ok())
        .and_then(|text| text.split_once(' '));
    let known = bearer.is_some_and(|(scheme, guess)| {
        scheme.eq_ignore_ascii_case("bearer") && policy.token.is(guess.trim())
    });
    if !known || shown.next().is_some() {
        let mut refused = refusal(
            StatusCode::UNAUTHORIZED,
            "the token is missing or wrong",
            "open the address that quipu printed",
        );
        refused
            .headers_mut()
            .insert(WWW_AUTHENTICATE, HeaderValue::from_static("Bearer"));
        return refused;
    }
    next.run(request).await
}

/// Refuses requests with a `Content-Length` over the limit before reading them, and times out slow
/// handlers.
async fn bounded(State(policy): State<Arc<Policy>>, request: Request, next: Next) -> Response {
    let said = request
        .headers()
        .get(CONTENT_LENGTH)
        .and_then(|value| value.to_str().ok())
        .and_then(|text| text.parse::<usize>().ok());
    if said.is_some_and(|said| said > policy.body) {
        return refusal(
            StatusCode::PAYLOAD_TOO_LARGE,
            &format!("a request may have at most {} bytes", policy.body),
            "send a smaller request",
        );
    }
    match tokio::time::timeout(policy.deadline, next.run(request)).await {
        Ok(response) => response,
        Err(_) => refusal(
            StatusCode::GATEWAY_TIMEOUT,
            &format!("no answer after {} seconds", policy.deadline.as_secs()),
            "request less at a time",
        ),
    }
}

/// Sets headers that restrict the browser, in case a response contains hostile content.
async fn with_headers(State(policy): State<Arc<Policy>>, request: Request, next: Next) -> Response {
    let mut response = next.run(request).await;
    let headers = response.headers_mut();
    // A route may have a policy of its own.
    headers
        .entry(CONTENT_SECURITY_POLICY)
        .or_insert(HeaderValue::from_static(policy.content));
    headers.insert(X_CONTENT_TYPE_OPTIONS, HeaderValue::from_static("nosniff"));
    headers.insert(X_FRAME_OPTIONS, HeaderValue::from_static("DENY"));
    headers.insert(REFERRER_POLICY, HeaderValue::from_static("no-referrer"));
    headers.insert(
        HeaderName::from_static("cross-origin-opener-policy"),
        HeaderValue::from_static("same-origin"),
    );
    headers.insert(
        HeaderName::from_static("cross-origin-resource-policy"),
        HeaderValue::from_static("same-origin"),
    );
    headers
        .entry(CACHE_CONTROL)
        .or_insert(HeaderValue::from_static("no-store"));
    response
}

/// Builds a refusal in the same JSON form as every other error.
fn refusal(status: StatusCode, what: &str, remedy: &str) -> Response {
    let body = json!({"error": what, "rule": null, "do": remedy, "exit": null}).to_string();
    (
        status,
        [(CONTENT_TYPE, "application/json")],
        Body::from(body),
    )
        .into_response()
}
