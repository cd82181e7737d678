//! The `mcp` command: serves the operations as tools of an MCP server.

use std::net::{SocketAddr, ToSocketAddrs};
use std::path::{Path, PathBuf};
use std::time::Duration;

use clap::Args;
use quipu_contract::{Actor, ActorName};
use quipu_protocol::Project;
use quipu_web::{ServeError, Token};
use serde_json::Value;

use crate::answer::{Answer, Failure, exit};
use crate::mcp::{Door, Opening, WorkspaceServer, open, serve};
use crate::session::Session;
use crate::table::Operate;
use crate::terminal;

#[derive(Debug, Args)]
pub struct Mcp {
    /// Serve this folder read-only instead of a project; `quipu run` uses this for agents
    #[arg(long, value_name = "DIR", requires = "out", conflicts_with = "http")]
    view: Option<PathBuf>,
    /// With --view: the folder that may be written to
    #[arg(long, value_name = "DIR", requires = "view")]
    out: Option<PathBuf>,
    /// With --out: a path that may be written; repeatable
    #[arg(long = "output", value_name = "PATH", requires = "out")]
    outputs: Vec<String>,
    /// With --out: a question that `quipu run` answers, ask or check; repeatable
    #[arg(long = "question", value_name = "NAME", requires = "out", hide = true)]
    questions: Vec<String>,
    /// Serve over HTTP at /mcp instead of stdin and stdout: a loopback port, or ADDRESS:PORT
    #[arg(long, value_name = "ADDR")]
    http: Option<String>,
    /// Over HTTP: a file with the bearer token, readable only by you; by default QUIPU_TOKEN, or a
    /// new token that is printed
    #[arg(long, value_name = "FILE", requires = "http")]
    token_file: Option<PathBuf>,
    /// Over HTTP: accept this host name in requests, in addition to loopback names; repeatable
    #[arg(long, value_name = "NAME", requires = "http")]
    allow_host: Vec<String>,
    /// Over HTTP: the maximum size of a message, in bytes
    #[arg(long, value_name = "BYTES", default_value_t = 4 << 20)]
    most_bytes: usize,
    /// Over HTTP: the timeout of a request, in seconds
    #[arg(long, value_name = "SECONDS", default_value_t = 60)]
    deadline: u64,
}

impl Operate for Mcp {
    const NAME: &'static str = "mcp";
    const ABOUT: &'static str = "Serve MCP on stdin and stdout, or over HTTP";

    fn operate(self, session: &Session) -> Result<Answer, Failure> {
        quipu_postgres::keep_connections();
        if let Some(http) = &self.http {
            let address = address(http)?;
            return self.over_http(address, session);
        }
        for folder in [&self.view, &self.out].into_iter().flatten() {
            refuse_project_folder(folder, session)?;
        }
        let (input, output) = (std::io::stdin().lock(), terminal::protocol_pipe());
        let served = match (self.view, self.out) {
            (Some(view), Some(out)) => {
                let (outputs, questions) = (self.outputs, self.questions);
                let mut server = WorkspaceServer {
                    view,
                    out,
                    outputs,
                    questions,
                };
                serve(&mut server, input, output)
            }
            _ => serve(&mut Door::new(session).with_commands(), input, output),
        };
        match served {
            // A client that closed the pipe is not an error.
            Err(error) if error.kind() != std::io::ErrorKind::BrokenPipe => Err(Failure::new(
                exit::IO,
                format!("the client's pipe failed: {error}"),
                "",
            )),
            _ => Ok(Answer::default()),
        }
    }
}

/// Refuses to serve a project as a plain folder, because an agent must use the contract. Only the
/// folders of its own attempt are served.
fn refuse_project_folder(folder: &Path, session: &Session) -> Result<(), Failure> {
    if session.actor == Actor::Person || is_of_own_run(&session.folder.join(folder), &session.actor)
    {
        return Ok(());
    }
    // A folder that does not exist yet would be created in its nearest existing ancestor.
    let place = session.folder.join(folder);
    match place
        .ancestors()
        .find(|folder| folder.exists())
        .map(Project::find_root)
    {
        None | Some(Err(_)) => Ok(()),
        Some(Ok(root)) => Err(Failure::new(
            exit::REFUSED,
            format!(
                "`{}` is in the project `{}`: agents read its files under the contract, not as a \
                 folder",
                folder.display(),
                root.display()
            ),
            "quipu mcp     (serves the files that the role may read and write)",
        )),
    }
}

/// Whether `quipu run` created a folder for this role and unit: `.quipu/attempts/ATTEMPT/view` or
/// `out`. Environment variables do not prove that. A caller that may not read the attempt's record
/// is inside its sandbox.
fn is_of_own_run(folder: &Path, actor: &Actor) -> bool {
    let Ok(folder) = folder.canonicalize() else {
        return false;
    };
    let names: Vec<_> = folder
        .iter()
        .rev()
        .take(4)
        .filter_map(|name| name.to_str())
        .collect();
    let ["view" | "out", _, "attempts", ".quipu"] = names[..] else {
        return false;
    };
    let [Some(run), Some(root)] = [1, 4].map(|above| folder.ancestors().nth(above)) else {
        return false;
    };
    let begun = match std::fs::read_to_string(run.join("begun.json")) {
        Ok(text) => serde_json::from_str::<Value>(&text).unwrap_or_default(),
        Err(error) => return error.kind() == std::io::ErrorKind::PermissionDenied,
    };
    let Ok(contract) = Project::load_contract(root) else {
        return false;
    };
    let role = begun["step"]
        .as_str()
        .and_then(|step| contract.step(step)?.role.clone());
    let unit = begun["unit"].as_str();
    role.is_some()
        && role.as_deref() == actor.role().map(ActorName::as_str)
        && unit == actor.unit().map(|unit| unit.as_str())
}

impl Mcp {
    fn over_http(self, address: SocketAddr, session: &Session) -> Result<Answer, Failure> {
        let given = given_token(self.token_file.as_deref())?;
        let made = given.is_none();
        let token = match given {
            Some(token) => token,
            None => Token::random().map_err(|e| {
                Failure::new(
                    exit::IO,
                    format!(
                        "the system returned no random bytes: \
                    {e}"
                    ),
                    "",
                )
            })?,
        };
        let shown = token.clone();
        let opening = Opening {
            address,
            token,
            hosts: self.allow_host,
            body: self.most_bytes,
            deadline: Duration::from_secs(self.deadline),
        };
        let ready = |address: SocketAddr| {
            terminal::say(&format!("http://{address}{}", crate::mcp::PATH));
            if made {
                terminal::say(&format!("Authorization: Bearer {}", shown.as_str()));
            }
        };
        open(session, opening, ready)?;
        Ok(Answer::default())
    }
}

/// Reads a token given by the user. It is never an argument, because every program of the machine
/// can read command lines.
fn given_token(file: Option<&Path>) -> Result<Option<Token>, Failure> {
    let (text, from) = match file {
        None => match std::env::var("QUIPU_TOKEN") {
            Ok(text) if !text.is_empty() => (text, "QUIPU_TOKEN".to_owned()),
            _ => return Ok(None),
        },
        Some(file) => (load_secret(file)?, file.display().to_string()),
    };
    Token::parse(text.trim())
        .map(Some)
        .map_err(|what| Failure::usage(format!("{from}: {what}"), ""))
}

fn load_secret(file: &Path) -> Result<String, Failure> {
    let unread = |e: std::io::Error| {
        Failure::new(
            exit::IO,
            format!("cannot read `{}`: {e}", file.display()),
            "",
        )
    };
    #[cfg(unix)]
    {
        use std::os::unix::fs::PermissionsExt;
        if std::fs::metadata(file)
            .map_err(unread)?
            .permissions()
            .mode()
            & 0o077
            != 0
        {
            let what = format!("other users can read `{}`", file.display());
            return Err(Failure::new(
                exit::REFUSED,
                what,
                format!("chmod 600 {}", file.display()),
            ));
        }
    }
    std::fs::read_to_string(file).map_err(unread)
}

/// Parses `8765`, `:8765`, `localhost:8765` or a full address. Without a host, the address is
/// loopback.
fn address(text: &str) -> Result<SocketAddr, Failure> {
    let full = match text.strip_prefix(':').unwrap_or(text).parse::<u16>() {
        Ok(port) => format!("127.0.0.1:{port}"),
        Err(_) => text.to_owned(),
    };
    let found = full.to_socket_addrs().ok().and_then(|mut all| all.next());
    found.ok_or_else(|| {
        Failure::usage(
            format!("`{text}` is not an address"),
            "quipu mcp --http 8765",
        )
    })
}

impl From<ServeError> for Failure {
    fn from(error: ServeError) -> Failure {
        let what = error.to_string();
        match error {
            ServeError::Exposed(_) => Failure::new(
                exit::REFUSED,
                what,
                "name the host that clients use: --allow-host NAME",
            ),
            ServeError::Taken { .. } => {
                Failure::new(exit::IO, what, "use another port; 0 selects a free one")
            }
            ServeError::Io(_) => Failure::new(exit::IO, what, ""),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_port_alone_is_loopback() {
        for text in ["8765", ":8765", "127.0.0.1:8765"] {
            assert_eq!(address(text).unwrap(), "127.0.0.1:8765".parse().unwrap());
        }
        assert_eq!(address("0.0.0.0:1").unwrap(), "0.0.0.0:1".parse().unwrap());
        assert!(address("nowhere").is_err() && address("").is_err());
    }
}
