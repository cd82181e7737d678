//! Tests of the MCP server over HTTP as a separate process: access control, and answers in
//! handshake and stateless revisions.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::path::Path;
use std::process::{Child, Command, Stdio};

use serde_json::{Value, json};

const TOKEN: &str = "a-token-of-the-test";

/// A server on a free port, stopped with the test.
struct Served {
    child: Child,
    address: String,
}

impl Served {
    fn start(root: &Path, arguments: &[&str]) -> Served {
        let mut child = Command::new(env!("CARGO_BIN_EXE_quipu"))
            .current_dir(root)
            .env_clear()
            .env("QUIPU_TOKEN", TOKEN)
            .args(["mcp", "--http", "0"])
            .args(arguments)
            .stdin(Stdio::null())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        let mut line = String::new();
        BufReader::new(child.stderr.take().unwrap())
            .read_line(&mut line)
            .unwrap();
        let address = line
            .trim()
            .strip_prefix("http://")
            .and_then(|rest| rest.strip_suffix("/mcp"))
            .unwrap_or_else(|| panic!("{line}"));
        Served {
            address: address.to_owned(),
            child,
        }
    }

    /// Returns status, headers and body of the answer to a message.
    fn post(&self, headers: &[(&str, &str)], body: &str) -> (u16, String, Value) {
        let mut all = vec![
            ("Host", self.address.as_str()),
            ("Authorization", "Bearer a-token-of-the-test"),
            ("Content-Type", "application/json"),
            ("Accept", "application/json, text/event-stream"),
            ("Connection", "close"),
        ];
        for (name, value) in headers {
            all.retain(|(known, _)| !known.eq_ignore_ascii_case(name));
            if !value.is_empty() {
                all.push((name, value));
            }
        }
        let told: String = all
            .iter()
            .map(|(name, value)| format!("{name}: {value}\r\n"))
            .collect();
        let mut stream = TcpStream::connect(&self.address).unwrap();
        write!(
            stream,
            "POST /mcp HTTP/1.1\r\n{told}Content-Length: {}\r\n\r\n{body}",
            body.len()
        )
        .unwrap();
        let mut answer = String::new();
        stream.read_to_string(&mut answer).unwrap();
        let (head, body) = answer.split_once("\r\n\r\n").unwrap();
        let status = head.split(' ').nth(1).unwrap().parse().unwrap();
        (
            status,
            head.to_lowercase(),
            serde_json::from_str(body).unwrap_or(Value::Null),
        )
    }

    fn stateless(&self, method: &str, name: &str, mut params: Value) -> (u16, Value) {
        params["_meta"] = json!({
            "io.modelcontextprotocol/protocolVersion": "2026-07-28",
            "io.modelcontextprotocol/clientCapabilities": {},
        });
        let body =
            json!({"jsonrpc": "2.0", "id": 7, "method": method, "params": params}).to_string();
        let (status, _, told) = self.post(
            &[
                ("MCP-Protocol-Version", "2026-07-28"),
                ("Mcp-Method", method),
                ("Mcp-Name", name),
            ],
            &body,
        );
        (status, told)
    }
}

impl Drop for Served {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

fn project(profile: &str) -> tempfile::TempDir {
    let root = tempfile::tempdir().unwrap();
    let laid = Command::new(env!("CARGO_BIN_EXE_quipu"))
        .current_dir(root.path())
        .args(["init", "--profile", profile])
        .output()
        .unwrap();
    assert!(laid.status.success());
    root
}

const HANDSHAKE: &str = r#"{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-06-18","clientInfo":{"name":"ada"}}}"#;

#[test]
fn only_who_belongs_here_is_answered_over_http() {
    let root = project("relay");
    let served = Served::start(root.path(), &["--most-bytes", "2000"]);
    let status = |headers: &[(&str, &str)], body: &str| served.post(headers, body).0;
    assert_eq!(status(&[], HANDSHAKE), 200);
    assert_eq!(status(&[("Authorization", "")], HANDSHAKE), 401);
    assert_eq!(
        status(
            &[("Authorization", "Bearer a-token-of-the-tesT")],
            HANDSHAKE
        ),
        401
    );
    assert_eq!(status(&[("Host", "evil.example")], HANDSHAKE), 421);
    assert_eq!(status(&[("Origin", "http://evil.example")], HANDSHAKE), 403);
    assert_eq!(
        status(
            &[("Origin", &format!("http://{}", served.address))],
            HANDSHAKE
        ),
        200
    );
    assert_eq!(status(&[("Content-Type", "text/plain")], HANDSHAKE), 415);
    assert_eq!(status(&[("Accept", "text/html")], HANDSHAKE), 406);
    assert_eq!(
        status(&[("MCP-Protocol-Version", "1999-01-01")], HANDSHAKE),
        400
    );
    assert_eq!(status(&[], "{"), 400);
    assert_eq!(
        status(&[], &format!("{HANDSHAKE}{}", " ".repeat(2000))),
        413
    );
    assert_eq!(
        status(
            &[],
            r#"{"jsonrpc":"2.0","method":"notifications/initialized"}"#
        ),
        202
    );
}

#[test]
fn both_eras_work_over_http() {
    let root = project("relay");
    let served = Served::start(root.path(), &[]);
    let (_, head, told) = served.post(&[], HANDSHAKE);
    assert_eq!(told["result"]["protocolVersion"], "2025-06-18");
    let session = head
        .lines()
        .find_map(|line| line.strip_prefix("mcp-session-id: "))
        .unwrap();
    let append = r#"{"jsonrpc":"2.0","id":2,"method":"tools/call","params":{"name":"append","arguments":{"path":"decisions.md","text":"- one"}}}"#;
    let (status, _, told) = served.post(&[("Mcp-Session-Id", session)], append);
    assert_eq!(
        (status, &told["result"]["isError"]),
        (200, &json!(false)),
        "{told}"
    );

    let (status, told) = served.stateless("server/discover", "", json!({}));
    assert_eq!(
        (status, &told["result"]["supportedVersions"][0]),
        (200, &json!("2026-07-28"))
    );
    let (_, told) = served.stateless(
        "tools/call",
        "write",
        json!({"name": "write", "arguments": {"path": "decisions.md", "text": "gone"}}),
    );
    assert_eq!(told["result"]["isError"], true);
    assert_eq!(served.stateless("initialize", "", json!({})).0, 404);
    assert_eq!(
        served
            .stateless("tools/call", "read", json!({"name": "write"}))
            .1["error"]["code"],
        -32020
    );
    let complete = json!({"ref": {"type": "ref/prompt", "name": "brief-main"}, "argument": {"name": "unit", "value": ""}});
    assert!(
        served.stateless("completion/complete", "", complete).1["result"]["completion"]["values"]
            .is_array()
    );

    let decisions = std::fs::read_to_string(root.path().join("decisions.md")).unwrap();
    assert!(decisions.ends_with("- one\n"));
    // The session carries the client's name, so the journal records the writer.
    let log = Command::new(env!("CARGO_BIN_EXE_quipu"))
        .current_dir(root.path())
        .args(["log", "--json"])
        .output()
        .unwrap();
    assert!(
        String::from_utf8_lossy(&log.stdout).contains(r#""agent": "ada""#),
        "{}",
        String::from_utf8_lossy(&log.stdout)
    );
}

#[test]
fn a_role_sees_its_own_over_http() {
    let root = project("book");
    let served = Served::start(root.path(), &["--as", "writer", "--unit", "ch01"]);
    let (_, told) = served.stateless(
        "resources/read",
        "quipu:///audit-log.md",
        json!({"uri": "quipu:///audit-log.md"}),
    );
    assert_eq!(told["error"]["code"], -32602, "{told}");
    let (_, told) = served.stateless(
        "tools/call",
        "status",
        json!({"name": "status", "arguments": {"files": true}}),
    );
    assert!(
        told["result"]["isError"] == false && told.to_string().contains("meta/glossary.md"),
        "{told}"
    );
    assert!(
        !told.to_string().contains("audit-log.md"),
        "a role is shown what it reads: {told}"
    );
    let (_, told) = served.stateless("prompts/list", "", json!({}));
    assert_eq!(told["result"]["prompts"].as_array().unwrap().len(), 1);
}
