//! Tests `serve --open` as a process: which data other programs can see, and the exchange of the
//! code.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

use serde_json::{Value, json};

/// Replaces the desktop's program: records its arguments, and keeps a copy of the file to open.
const OPENER: &str = "#!/bin/sh\ncp \"$1\" \"$NOTES/page.html\"\nstat -c %a \"$1\" > \"$NOTES/mode\"\nprintf '%s\\n' \"$@\" > \"$NOTES/part\"\nmv \"$NOTES/part\" \"$NOTES/argv\"\n";

struct Served {
    child: Child,
    address: String,
    token: String,
}

impl Drop for Served {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

impl Served {
    fn post(&self, path: &str, bearer: Option<&str>, body: &Value) -> (u16, Value) {
        let (body, address) = (body.to_string(), &self.address);
        let bearer = bearer
            .map(|token| format!("Authorization: Bearer {token}\r\n"))
            .unwrap_or_default();
        let mut stream = TcpStream::connect(address).unwrap();
        let head = format!(
            "POST {path} HTTP/1.1\r\nHost: {address}\r\nContent-Type: application/json\r\nConnection: close\r\n{bearer}"
        );
        write!(stream, "{head}Content-Length: {}\r\n\r\n{body}", body.len()).unwrap();
        let mut answer = String::new();
        stream.read_to_string(&mut answer).unwrap();
        let (head, body) = answer.split_once("\r\n\r\n").unwrap();
        (
            head.split(' ').nth(1).unwrap().parse().unwrap(),
            serde_json::from_str(body).unwrap_or(Value::Null),
        )
    }
}

fn quipu(root: &Path, arguments: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_quipu"));
    let path = format!(
        "{}:{}",
        root.join("bin").display(),
        std::env::var("PATH").unwrap_or_default()
    );
    command
        .current_dir(root.join("project"))
        .env_clear()
        .env("PATH", path)
        .env("NOTES", root);
    command
        .env("XDG_STATE_HOME", root.join("state"))
        .args(arguments)
        .stdin(Stdio::null());
    command
}

fn run(root: &Path, arguments: &[&str]) -> String {
    let output = quipu(root, arguments).output().unwrap();
    assert!(
        output.status.success(),
        "{arguments:?}: {}",
        String::from_utf8_lossy(&output.stderr)
    );
    String::from_utf8(output.stdout).unwrap()
}

/// Creates a folder with a project and an opener, and starts a server with `--open`.
fn serve_open() -> (tempfile::TempDir, Served) {
    let folder = tempfile::tempdir().unwrap();
    let root = folder.path();
    ["project", "bin"]
        .iter()
        .for_each(|name| std::fs::create_dir(root.join(name)).unwrap());
    let opener = root.join("bin/xdg-open");
    std::fs::write(&opener, OPENER).unwrap();
    std::fs::set_permissions(&opener, PermissionsExt::from_mode(0o755)).unwrap();
    run(
        root,
        &["init", "--profile", "relay", "--var", "project=Knots"],
    );
    let mut child = quipu(root, &["serve", "--open", "--json"])
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let mut line = String::new();
    BufReader::new(child.stdout.take().unwrap())
        .read_line(&mut line)
        .unwrap();
    let url = serde_json::from_str::<Value>(&line).unwrap()["url"]
        .as_str()
        .unwrap()
        .to_owned();
    let (address, token) = url
        .strip_prefix("http://")
        .unwrap()
        .split_once("/#token=")
        .unwrap();
    let served = Served {
        child,
        address: address.to_owned(),
        token: token.to_owned(),
    };
    while !root.join("argv").exists() {
        std::thread::yield_now();
    }
    (folder, served)
}

#[test]
fn serve_open_shows_no_secret_on_a_command_line_and_its_code_works_once() {
    let (folder, served) = serve_open();
    let read = |name: &str| std::fs::read_to_string(folder.path().join(name)).unwrap();
    let (argv, page) = (read("argv"), read("page.html"));
    let file = PathBuf::from(argv.trim());
    assert!(file.starts_with(folder.path().join("state")), "{argv}");
    assert_eq!(read("mode").trim(), "600");
    assert!(!argv.contains(&served.token) && !page.contains(&served.token));
    let code = page
        .split_once("/#code=")
        .unwrap()
        .1
        .split('"')
        .next()
        .unwrap();
    assert!(!argv.contains(code), "{argv}");

    assert_eq!(
        served
            .post("/api/code", None, &json!({"code": "0123456789abcdef0123"}))
            .0,
        401
    );
    let (status, told) = served.post("/api/code", None, &json!({"code": code}));
    assert_eq!(
        (status, told["token"].as_str()),
        (200, Some(served.token.as_str()))
    );
    assert!(!file.exists(), "the file goes with the code");
    assert_eq!(
        served.post("/api/code", None, &json!({"code": code})).0,
        401,
        "it works once"
    );
}

#[test]
fn each_server_has_a_token_of_its_own() {
    let folder = tempfile::tempdir().unwrap();
    std::fs::create_dir(folder.path().join("project")).unwrap();
    run(
        folder.path(),
        &["init", "--profile", "relay", "--var", "project=Knots"],
    );
    let fixed = "0123456789abcdef0123";
    let mut child = quipu(folder.path(), &["serve", "--json"])
        .env("QUIPU_TOKEN", fixed)
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    let mut line = String::new();
    BufReader::new(child.stdout.take().unwrap())
        .read_line(&mut line)
        .unwrap();
    let _ = (child.kill(), child.wait());
    assert!(line.contains("#token=") && !line.contains(fixed), "{line}");
}

#[test]
fn what_a_person_does_in_the_page_is_noted_as_such() {
    let (folder, served) = serve_open();
    let call = json!({"operation": "todo add", "arguments": {"title": "Tie the last knot"}});
    let (status, told) = served.post("/api/call", Some(&served.token), &call);
    assert_eq!(status, 200, "{told}");
    run(folder.path(), &["todo", "add", "Untie it"]);
    let log: Vec<Value> = serde_json::from_str(&run(folder.path(), &["log", "--json"])).unwrap();
    let doors: Vec<&Value> = log.iter().map(|entry| &entry["who"]).collect();
    assert_eq!(
        (doors[0]["kind"].as_str(), doors[0].get("via")),
        (Some("person"), None)
    );
    assert_eq!(
        (doors[1]["kind"].as_str(), doors[1]["via"].as_str()),
        (Some("person"), Some("page"))
    );
}
