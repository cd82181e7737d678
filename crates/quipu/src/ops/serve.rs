//! The `serve` command: shows the project in a browser. The server is in `crate::page`.

use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::process::{Command, Stdio};

use clap::Args;
use quipu_contract::Privilege;
use quipu_protocol::make_state_folder;
use quipu_web::{Plan, Policy, ServeError, Token, serve};
use serde_json::json;

use crate::answer::{Answer, Failure, exit};
use crate::page::{Entry, site};
use crate::session::Session;
use crate::table::Operate;
use crate::terminal;

#[derive(Debug, Args)]
pub struct Serve {
    /// The port on loopback; 0 selects a free port
    #[arg(long, value_name = "N", default_value_t = 0)]
    port: u16,
    /// Open the page in a browser
    #[arg(long)]
    open: bool,
}

fn random() -> Result<Token, Failure> {
    Token::random().map_err(|e| {
        let what = format!("the system returned no random bytes for a token: {e}");
        Failure::new(exit::IO, what, "")
    })
}

impl Operate for Serve {
    const NAME: &'static str = "serve";
    const ABOUT: &'static str = "Show the project in a browser, live; people only";

    fn operate(self, session: &Session) -> Result<Answer, Failure> {
        session.actor.may(Privilege::SeeAll)?;
        session.actor.may(Privilege::Decide)?;
        quipu_postgres::keep_connections();
        let root = session.project()?.store.root().to_owned();
        // Each server has a new token. A page keeps sending its token to the port after the server
        // has ended, and another program that listens there later must not be able to use it.
        let token = random()?;
        let book_key = random()?;
        let entry = Entry::new(token.clone()).map_err(|e| {
            Failure::new(exit::IO, format!("cannot create a one-time code: {e}"), "")
        })?;
        let address = SocketAddr::new(IpAddr::V4(Ipv4Addr::LOCALHOST), self.port);
        let shown = token.clone();
        let ready = |address: SocketAddr| {
            // The fragment stays in the browser: it appears in no request and in no log.
            let url = format!("http://{address}/#token={}", shown.as_str());
            say(session.json, &url);
            if self.open {
                open(&entry, address);
            }
        };
        let site = site(
            Session {
                folder: root,
                ..session.clone()
            },
            &entry,
            book_key,
        );
        serve(
            Plan {
                address,
                site,
                policy: Policy::new(token),
            },
            ready,
        )
        .map_err(|error| match error {
            ServeError::Taken { .. } => Failure::new(
                exit::IO,
                error.to_string(),
                "quipu serve     (without --port it selects a free port)",
            ),
            _ => Failure::new(exit::IO, error.to_string(), ""),
        })?;
        Ok(Answer {
            compact: true,
            ..Answer::new(json!({"event": "ended"}), "")
        })
    }
}

/// Prints the address as data, long before the server ends. A closed pipe is not an error.
fn say(as_json: bool, url: &str) {
    if as_json {
        let _ = terminal::show_json(&json!({"event": "serving", "url": url}).to_string());
    } else {
        let _ = terminal::show_text(&format!("{url}\n"));
        terminal::say("anyone with this address can read and write as you; press Ctrl-C to stop");
    }
}

/// Asks the desktop to open the page through a private file. If that fails, the person can use the
/// printed address.
fn open(entry: &Entry, address: SocketAddr) {
    let file = make_state_folder("page").map_err(|error| error.to_string());
    let file = file.and_then(|folder| {
        entry
            .write_file(&folder, address)
            .map_err(|error| error.to_string())
    });
    let started = file.and_then(|file| {
        let program = if cfg!(target_os = "macos") {
            "open"
        } else {
            "xdg-open"
        };
        let mut command = Command::new(program);
        command
            .arg(file)
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::null());
        command
            .spawn()
            .map_err(|error| format!("{program}: {error}"))
    });
    if let Err(what) = started {
        terminal::say(&format!(
            "could not start a browser ({what}); open the printed address yourself"
        ));
    }
}
