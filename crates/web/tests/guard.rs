//! Every refusal of the guard, and what is let through.

#![allow(clippy::unwrap_used)]

use std::time::Duration;

use quipu_web::axum::Router;
use quipu_web::axum::body::{Body, Bytes, to_bytes};
use quipu_web::axum::http::{Request, Response, StatusCode};
use quipu_web::axum::routing::{get, post};
use quipu_web::{Plan, Policy, ServeError, Site, Token, guard, serve};
use tower::ServiceExt;

const SECRET: &str = "0123456789abcdef";

fn site() -> Site {
    Site {
        open: Router::new().route("/", get(|| async { "page" })),
        guarded: Router::new()
            .route("/api", get(|| async { "data" }))
            .route(
                "/api/write",
                post(|body: Bytes| async move { format!("{} bytes", body.len()) }),
            )
            .route("/api/slow", get(std::future::pending::<String>)),
    }
}

fn policy() -> Policy {
    let mut policy = Policy::new(Token::parse(SECRET).unwrap());
    (policy.body, policy.deadline) = (64, Duration::from_millis(20));
    policy
}

fn ask(policy: &Policy, path: &str, headers: &[(&str, &str)], body: Body) -> Response<Body> {
    let method = if path.ends_with("write") {
        "POST"
    } else {
        "GET"
    };
    let mut request = Request::builder().method(method).uri(path);
    for (name, value) in headers {
        request = request.header(*name, *value);
    }
    let runtime = runtime();
    runtime
        .block_on(guard(site(), policy).oneshot(request.body(body).unwrap()))
        .unwrap()
}

fn runtime() -> tokio::runtime::Runtime {
    tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .unwrap()
}

fn status(path: &str, headers: &[(&str, &str)]) -> u16 {
    ask(&policy(), path, headers, Body::empty())
        .status()
        .as_u16()
}

const HERE: (&str, &str) = ("host", "127.0.0.1:4545");
const BEARER: (&str, &str) = ("authorization", "Bearer 0123456789abcdef");

#[test]
fn the_page_needs_no_token_and_the_data_does() {
    assert_eq!(status("/", &[HERE]), 200);
    assert_eq!(status("/api", &[HERE]), 401);
    assert_eq!(status("/api", &[HERE, BEARER]), 200);
    assert_eq!(status("/api/write", &[HERE]), 401);
    assert_eq!(status("/api/write", &[HERE, BEARER]), 200);
}

#[test]
fn a_wrong_token_in_any_form_is_refused() {
    for wrong in [
        "Bearer 0123456789abcdeg",
        "Bearer 0123456789abcde",
        "Bearer ",
        "Bearer",
        "Basic 0123456789abcdef",
        "0123456789abcdef",
    ] {
        assert_eq!(
            status("/api", &[HERE, ("authorization", wrong)]),
            401,
            "{wrong}"
        );
    }
    assert_eq!(
        status("/api", &[HERE, ("cookie", "token=0123456789abcdef")]),
        401
    );
    assert_eq!(status("/api?token=0123456789abcdef", &[HERE]), 401);
    assert_eq!(
        status(
            "/api",
            &[HERE, BEARER, ("authorization", "Bearer wrong-wrong-wrong")]
        ),
        401
    );
}

#[test]
fn a_name_that_is_not_ours_is_refused_even_with_the_token() {
    for host in [
        "evil.example",
        "evil.example:4545",
        "127.0.0.1.evil.example",
        "localhost.evil.example",
        "10.0.0.1:4545",
        "[::2]:1",
        "[::1",
        "",
    ] {
        assert_eq!(status("/api", &[("host", host), BEARER]), 421, "{host}");
    }
    for odd in [
        "127.0.0.1:80@evil.com",
        "a@127.0.0.1",
        "localhost.",
        "localhost:",
        "[::1]@evil.com",
        "[::1]x",
        "127.0.0.1%00",
        "127.1",
    ] {
        assert_eq!(status("/api", &[("host", odd), BEARER]), 421, "{odd}");
    }
    for target in [
        "http://evil@127.0.0.1:4545/api",
        "http://127.0.0.1:4546/api",
        "http://localhost:4545/api",
    ] {
        assert_eq!(status(target, &[HERE, BEARER]), 421, "{target}");
    }
    assert_eq!(
        status("http://127.0.0.1:4545/api", &[HERE, BEARER]),
        200,
        "the same name in the request line"
    );
    assert_eq!(status("/api", &[BEARER]), 421, "no host at all");
    assert_eq!(
        status("/api", &[HERE, ("host", "localhost"), BEARER]),
        421,
        "two hosts"
    );
    assert_eq!(
        status("http://evil.example/api", &[HERE, BEARER]),
        421,
        "another name in the request line"
    );
    for host in [
        "localhost:9",
        "LOCALHOST",
        "127.0.0.1",
        "127.0.0.2:8080",
        "[::1]:4545",
    ] {
        assert_eq!(status("/api", &[("host", host), BEARER]), 200, "{host}");
    }
}

#[test]
fn a_listed_name_is_ours() {
    let mut policy = policy();
    policy.hosts = vec!["notes.lan".to_owned()];
    let answer = |host: &str| {
        ask(&policy, "/api", &[("host", host), BEARER], Body::empty())
            .status()
            .as_u16()
    };
    assert_eq!((answer("notes.lan:80"), answer("other.lan:80")), (200, 421));
}

#[test]
fn another_sites_page_is_refused_even_with_the_token() {
    for origin in [
        "https://evil.example",
        "null",
        "http://127.0.0.1:4546",
        "http://localhost:4545",
        "file://",
    ] {
        assert_eq!(
            status("/api", &[HERE, BEARER, ("origin", origin)]),
            403,
            "{origin}"
        );
    }
    assert_eq!(
        status("/api", &[HERE, BEARER, ("origin", "http://127.0.0.1:4545")]),
        200
    );
    assert_eq!(status("/", &[HERE, ("sec-fetch-site", "cross-site")]), 403);
    assert_eq!(status("/", &[HERE, ("sec-fetch-site", "same-site")]), 403);
    assert_eq!(status("/", &[HERE, ("sec-fetch-site", "none")]), 200);
    // A link that leads to the start page, and nothing but that.
    let link = [
        ("sec-fetch-site", "cross-site"),
        ("sec-fetch-mode", "navigate"),
        ("sec-fetch-dest", "document"),
    ];
    assert_eq!(status("/", &[&[HERE][..], &link].concat()), 200);
    assert_eq!(status("/api", &[&[HERE, BEARER][..], &link].concat()), 403);
    assert_eq!(
        status("/", &[HERE, link[0], link[1], ("sec-fetch-dest", "iframe")]),
        403
    );
    assert_eq!(
        status(
            "/",
            &[HERE, link[0], ("sec-fetch-mode", "no-cors"), link[2]]
        ),
        403
    );
    assert_eq!(status("/", &[HERE, ("sec-fetch-site", "same-origin")]), 200);
}

#[test]
fn too_much_is_refused_with_and_without_a_length() {
    let policy = policy();
    let send =
        |headers: &[(&str, &str)], body: Body| ask(&policy, "/api/write", headers, body).status();
    assert_eq!(
        send(&[HERE, BEARER], Body::from("x".repeat(64))),
        StatusCode::OK
    );
    assert_eq!(
        send(&[HERE, BEARER, ("content-length", "65")], Body::empty()),
        StatusCode::PAYLOAD_TOO_LARGE
    );
    assert_eq!(
        send(&[HERE, BEARER], Body::from("x".repeat(65))),
        StatusCode::PAYLOAD_TOO_LARGE
    );
}

#[test]
fn what_takes_too_long_is_given_up() {
    assert_eq!(status("/api/slow", &[HERE, BEARER]), 504);
}

#[test]
fn every_answer_and_every_refusal_is_strict() {
    for (path, headers) in [
        ("/", vec![HERE]),
        ("/api", vec![HERE]),
        ("/api", vec![("host", "evil.example")]),
        ("/nowhere", vec![HERE]),
    ] {
        let response = ask(&policy(), path, &headers, Body::empty());
        let header = |name: &str| {
            response
                .headers()
                .get(name)
                .unwrap()
                .to_str()
                .unwrap()
                .to_owned()
        };
        assert!(
            header("content-security-policy").starts_with("default-src 'none'"),
            "{path}"
        );
        assert!(!header("content-security-policy").contains("unsafe"));
        assert_eq!(header("x-content-type-options"), "nosniff");
        assert_eq!(header("x-frame-options"), "DENY");
        assert_eq!(header("referrer-policy"), "no-referrer");
        assert_eq!(header("cache-control"), "no-store");
        assert!(response.headers().get("set-cookie").is_none());
        assert!(
            response
                .headers()
                .get("access-control-allow-origin")
                .is_none()
        );
    }
}

#[test]
fn a_refusal_says_what_and_what_to_do() {
    let response = ask(&policy(), "/api", &[HERE], Body::empty());
    assert_eq!(response.headers()["www-authenticate"], "Bearer");
    let body = runtime()
        .block_on(to_bytes(response.into_body(), 4096))
        .unwrap();
    let body: serde_json::Value = serde_json::from_slice(&body).unwrap();
    assert_eq!(
        (body["error"].as_str(), body["do"].as_str()),
        (
            Some("the token is missing or wrong"),
            Some("open the address that quipu printed")
        )
    );
}

#[test]
fn it_listens_on_loopback_unless_hosts_are_named() {
    let plan = Plan {
        address: "0.0.0.0:0".parse().unwrap(),
        site: site(),
        policy: policy(),
    };
    assert!(matches!(
        serve(plan, |_| panic!("it must not listen")),
        Err(ServeError::Exposed(_))
    ));
}

#[test]
fn a_port_in_use_is_named() {
    let taken = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let plan = Plan {
        address: taken.local_addr().unwrap(),
        site: site(),
        policy: policy(),
    };
    assert!(matches!(
        serve(plan, |_| panic!("it must not listen")),
        Err(ServeError::Taken { .. })
    ));
}
