//! A project from a stranger: no server in its settings is contacted before a person agrees, and
//! hooks never wait for one.

use std::io::ErrorKind;
use std::io::Write;
use std::net::TcpListener;
use std::path::Path;
use std::process::{Command, Output, Stdio};

use serde_json::json;

/// A folder with a project and, as its store, a server that accepts connections and never answers.
struct Stranger {
    folder: tempfile::TempDir,
    server: TcpListener,
}

impl Stranger {
    fn new() -> Stranger {
        let folder = tempfile::tempdir().unwrap();
        let server = TcpListener::bind("127.0.0.1:0").unwrap();
        server.set_nonblocking(true).unwrap();
        let stranger = Stranger { folder, server };
        stranger.put("quipu.toml", &stranger.manifest());
        stranger.put("log.md", "# Log\n");
        stranger
    }

    fn manifest(&self) -> String {
        let address = format!(
            "postgres://ann@{}/books?sslmode=disable&wait=1",
            self.server.local_addr().unwrap()
        );
        format!(
            "quipu = 1\nstore = \"{address}\"\n\n[[files]]\npath = \"log.md\"\nclass = \"append\"\n"
        )
    }

    fn root(&self) -> &Path {
        self.folder.path()
    }

    fn put(&self, name: &str, text: &str) {
        std::fs::create_dir_all(self.root().join("project")).unwrap();
        std::fs::write(self.root().join("project").join(name), text).unwrap();
    }

    fn quipu(&self, arguments: &[&str], input: &str) -> Output {
        let mut command = Command::new(env!("CARGO_BIN_EXE_quipu"));
        command
            .current_dir(self.root().join("project"))
            .env_clear()
            .env("PATH", std::env::var_os("PATH").unwrap_or_default());
        command
            .env("XDG_STATE_HOME", self.root().join("state"))
            .args(arguments);
        let mut child = command
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        let _ = child.stdin.take().unwrap().write_all(input.as_bytes());
        child.wait_with_output().unwrap()
    }

    fn hook(&self, event: &str) -> Output {
        let folder = self.root().join("project");
        let said = json!({
            "hook_event_name": "PreToolUse", "tool_name": "Write", "cwd": &folder, "stop_hook_active": false,
            "tool_input": {"file_path": folder.join("log.md"), "content": "nothing is left\n"},
        });
        self.quipu(&["hook", event], &said.to_string())
    }

    /// Whether a client has connected since the last call.
    fn was_contacted(&self) -> bool {
        match self.server.accept() {
            Ok(_) => true,
            Err(error) if error.kind() == ErrorKind::WouldBlock => false,
            Err(error) => panic!("{error}"),
        }
    }
}

fn told(output: &Output) -> String {
    format!(
        "{}{}",
        String::from_utf8_lossy(&output.stdout),
        String::from_utf8_lossy(&output.stderr)
    )
}

const EVENTS: [&str; 4] = ["session-start", "pre-tool", "pre-compact", "stop"];

#[test]
fn hooks_never_contact_a_shared_store() {
    let stranger = Stranger::new();
    for trusted in [false, true] {
        if trusted {
            let output = stranger.quipu(&["trust", "--yes"], "");
            assert!(output.status.success(), "{}", told(&output));
        }
        for event in EVENTS {
            let output = stranger.hook(event);
            assert!(
                !stranger.was_contacted(),
                "{event}, trusted: {trusted}: {}",
                told(&output)
            );
            // Exit 1 would mean that the hook could not judge; 2 denies the edit, which the class
            // forbids.
            let wanted = if event == "pre-tool" { 2 } else { 0 };
            assert_eq!(
                output.status.code(),
                Some(wanted),
                "{event}, trusted: {trusted}: {}",
                told(&output)
            );
        }
    }
}

#[test]
fn a_store_that_nobody_trusts_is_not_contacted() {
    let stranger = Stranger::new();
    for arguments in [
        &["status"][..],
        &["read", "log.md"],
        &["log"],
        &["doctor"],
        &["store", "status"],
    ] {
        let output = stranger.quipu(arguments, "");
        assert!(
            !stranger.was_contacted(),
            "{arguments:?}: {}",
            told(&output)
        );
        assert!(
            output.status.code().is_some_and(|code| code <= 1),
            "{arguments:?}: {}",
            told(&output)
        );
        assert!(
            told(&output).contains("was not contacted: this setting of the project is not trusted"),
            "{arguments:?}: {}",
            told(&output)
        );
        assert!(
            told(&output).contains("quipu trust"),
            "{arguments:?}: {}",
            told(&output)
        );
    }
    for arguments in [
        &["append", "log.md", "--text", "x"][..],
        &["sync"],
        &["start"],
        &["store", "push"],
        &["store", "pull"],
    ] {
        let output = stranger.quipu(arguments, "");
        assert!(
            !stranger.was_contacted(),
            "{arguments:?}: {}",
            told(&output)
        );
        assert_eq!(
            output.status.code(),
            Some(3),
            "{arguments:?}: {}",
            told(&output)
        );
        assert!(
            told(&output).contains("quipu trust") || arguments[1..] == ["pull"],
            "{arguments:?}: {}",
            told(&output)
        );
    }
    // The remedy works: now the server is contacted. Another address needs trust again.
    assert!(stranger.quipu(&["trust", "--yes"], "").status.success());
    stranger.quipu(&["status"], "");
    assert!(stranger.was_contacted());
    while stranger.was_contacted() {}
    stranger.put("quipu.toml", &stranger.manifest().replace("ann@", "eve@"));
    stranger.quipu(&["status"], "");
    assert!(!stranger.was_contacted());
}

#[test]
fn an_address_among_quipus_own_files_is_not_contacted_either() {
    let stranger = Stranger::new();
    let address = format!(
        "postgres://ann@{}/books?sslmode=disable",
        stranger.server.local_addr().unwrap()
    );
    stranger.put("quipu.toml", "quipu = 1\n");
    std::fs::create_dir(stranger.root().join("project/.quipu")).unwrap();
    let attached =
        json!({"address": address, "project": "p", "id": "018f0000-0000-7000-8000-000000000001"});
    stranger.put(".quipu/shared", &attached.to_string());
    let output = stranger.quipu(&["status"], "");
    assert!(
        !stranger.was_contacted() && told(&output).contains("is not trusted"),
        "{}",
        told(&output)
    );
    let output = stranger.quipu(&["trust"], "");
    assert_eq!(output.status.code(), Some(1), "{}", told(&output));
    assert!(told(&output).contains(&address), "{}", told(&output));
}
