//! Follows `docs/guide/fleet.md` literally on a fresh server: runs every `console` block as the
//! person or host named in the comment above it, over TLS and with passwords. Only the server's
//! name differs.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use quipu_testkit::postgres::{as_plain_user, free_port, owned};
use tempfile::TempDir;

use crate::rehearsal::Desk;

/// A block of the guide: the user that runs it, and its commands with the shown output.
struct Block {
    who: String,
    steps: Vec<(String, Vec<String>)>,
}

fn blocks(guide: &str) -> Vec<Block> {
    let mut blocks: Vec<Block> = Vec::new();
    let (mut who, mut inside) = (None, false);
    for line in guide.lines() {
        if let Some(named) = line.strip_prefix("<!-- as: ") {
            who = Some(named.trim_end_matches(" -->").to_owned());
        } else if line.starts_with("```console") {
            let who = who.take().expect("every console block says who runs it");
            blocks.push(Block {
                who,
                steps: Vec::new(),
            });
            inside = true;
        } else if line == "```" {
            inside = false;
        } else if inside {
            let steps = &mut blocks.last_mut().unwrap().steps;
            match line.strip_prefix("$ ") {
                Some(command) => steps.push((command.to_owned(), Vec::new())),
                None => steps.last_mut().unwrap().1.push(line.to_owned()),
            }
        }
    }
    blocks
}

/// A server as a package installs it: running, with access for its own user on a socket.
struct Server {
    folder: PathBuf,
    port: u16,
}

impl Server {
    fn start() -> Server {
        let server = Server {
            folder: owned(quipu_testkit::temp_folder().keep()),
            port: free_port(),
        };
        let data = server.folder.join("data");
        server.run(
            "initdb",
            &[
                "--auth-local=peer",
                "--auth-host=scram-sha-256",
                "--no-sync",
                "-E",
                "UTF8",
                "-D",
                data.to_str().unwrap(),
            ],
        );
        let options = format!(
            "-k {} -p {} -c unix_socket_permissions=0700",
            server.folder.display(),
            server.port
        );
        let log = server.folder.join("log");
        server.run(
            "pg_ctl",
            &[
                "-s",
                "-w",
                "-D",
                data.to_str().unwrap(),
                "-o",
                &options,
                "-l",
                log.to_str().unwrap(),
                "start",
            ],
        );
        server
    }

    fn run(&self, program: &str, arguments: &[&str]) {
        let (status, told) = told(as_plain_user(program).args(arguments));
        assert!(status, "{program} {arguments:?}\n{told}");
    }
}

/// Runs a command and returns its output. The output goes to a file, because a server started on
/// the way would keep a pipe open.
fn told(command: &mut Command) -> (bool, String) {
    let file = tempfile::NamedTempFile::new().unwrap();
    let append = || {
        Stdio::from(
            std::fs::File::options()
                .append(true)
                .open(file.path())
                .unwrap(),
        )
    };
    let status = command
        .stdin(Stdio::null())
        .stdout(append())
        .stderr(append())
        .status()
        .unwrap();
    (
        status.success(),
        String::from_utf8_lossy(&std::fs::read(file.path()).unwrap()).into_owned(),
    )
}

impl Drop for Server {
    fn drop(&mut self) {
        let data = self.folder.join("data");
        let _ = told(
            as_plain_user("pg_ctl")
                .args(["-s", "-m", "immediate", "-D"])
                .arg(data)
                .arg("stop"),
        );
    }
}

#[test]
fn the_guide_of_the_fleet_is_followed_literally() {
    let guide = std::fs::read_to_string(
        Path::new(&std::env::var("CARGO_MANIFEST_DIR").unwrap()).join("../../docs/guide/fleet.md"),
    )
    .unwrap();
    let blocks = blocks(&guide);
    assert!(blocks.len() >= 8, "the guide has {} blocks", blocks.len());
    let server = Server::start();
    // In a folder from which the server's own user can start it, too.
    let programs = owned(quipu_testkit::temp_folder().keep());
    std::fs::copy(env!("CARGO_BIN_EXE_quipu"), programs.join("quipu")).unwrap();
    let book = Desk::sourced_book_of(2);
    let homes: BTreeMap<&str, TempDir> = ["ann", "host1", "host2"]
        .map(|name| (name, quipu_testkit::temp_folder()))
        .into();
    std::fs::rename(&book.root, homes["ann"].path().join("book")).unwrap();
    let mut said = String::new();
    for block in &blocks {
        let mut folder = homes
            .get(block.who.as_str())
            .map_or(server.folder.join("data"), |home| home.path().to_owned());
        if block.who != "postgres" {
            let pem = std::fs::read(server.folder.join("data/authority.pem")).unwrap();
            std::fs::write(folder.join("authority.pem"), pem).unwrap();
        }
        for (command, shown) in &block.steps {
            if let Some(inner) = command.strip_prefix("cd ") {
                folder = folder.join(inner);
                continue;
            }
            let command = command
                .replace("db.example.org:5432", &format!("localhost:{}", server.port))
                .replace("db.example.org", "localhost")
                .replace(
                    "%2Fvar%2Frun%2Fpostgresql",
                    &format!(
                        "{}:{}",
                        server.folder.display().to_string().replace('/', "%2F"),
                        server.port
                    ),
                );
            let mut shell = match block.who.as_str() {
                "postgres" => as_plain_user("sh"),
                _ => Command::new("sh"),
            };
            let path = format!(
                "{}:{}:{}",
                programs.display(),
                quipu_testkit::postgres::bin().display(),
                std::env::var("PATH").unwrap()
            );
            shell
                .args(["-c", &format!("cd '{}' && {command}", folder.display())])
                .env("PATH", path);
            match homes.get(block.who.as_str()) {
                Some(home) => shell.env("HOME", home.path()),
                None => shell
                    .env("PGHOST", &server.folder)
                    .env("PGPORT", server.port.to_string())
                    .env("PGDATA", server.folder.join("data")),
            };
            for name in [
                "QUIPU_ROLE",
                "QUIPU_UNIT",
                "QUIPU_AGENT",
                "QUIPU_LEASE",
                "QUIPU_STORE",
                "PGPASSWORD",
                "PGUSER",
                "USER",
            ] {
                shell.env_remove(name);
            }
            shell.env("QUIPU_ROLE", "person");
            if block.who == "postgres" {
                shell.env(
                    "USER",
                    quipu_testkit::postgres::plain_user()
                        .unwrap_or_else(|| std::env::var("USER").unwrap_or_default()),
                );
            }
            let (fine, told) = told(&mut shell);
            said.push_str(&format!("{}$ {command}\n{told}", block.who));
            assert!(fine, "{said}");
            for line in shown.iter().filter(|line| *line != "…") {
                assert!(
                    told.contains(line.as_str()),
                    "`{line}` is shown and was not said\n{said}"
                );
            }
        }
    }
    // The host's login cannot rewrite history with any SQL.
    for sql in [
        "DELETE FROM quipu.log",
        "UPDATE quipu.log SET body = ''",
        "TRUNCATE quipu.log CASCADE",
        "SELECT quipu.keep()",
    ] {
        let mut psql = Command::new("psql");
        psql.args([
            "-h",
            "localhost",
            "-p",
            &server.port.to_string(),
            "-U",
            "host1",
            "-d",
            "quipu",
            "-c",
            sql,
        ]);
        let output = psql.env("PGPASSWORD", "one-change-me").output().unwrap();
        assert!(
            String::from_utf8_lossy(&output.stderr).contains("permission denied"),
            "{sql}: {output:?}"
        );
    }
    let index = homes["ann"].path().join("book/publish/index.html");
    assert!(
        index.exists(),
        "the book was made on the other hosts, and is here\n{said}"
    );
    if std::env::var_os("QUIPU_SHOW").is_some() {
        eprintln!("{said}");
    }
}
