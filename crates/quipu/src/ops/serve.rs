//! `serve`: the project in a browser.

use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::process::{Command, Stdio};

use clap::Args;
use quipu_contract::Privilege;
use quipu_web::{Plan, Policy, ServeError, Token, serve};
use serde_json::json;

use crate::answer::{Answer, Failure, exit};
use crate::page::site;
use crate::session::Session;
use crate::table::Operate;
use crate::terminal;

#[derive(Debug, Args)]
pub struct Serve {
    /// The port on loopback; without it one that is free
    #[arg(long, value_name = "N", default_value_t = 0)]
    port: u16,
    /// Open the page in the browser
    #[arg(long)]
    open: bool,
}

/// A token of one's own instead of a new one each time: for a page that is open for long.
const TOKEN: &str = "QUIPU_TOKEN";

impl Operate for Serve {
    const NAME: &'static str = "serve";
    const ABOUT: &'static str = "Show the project in a browser, live; on loopback, for whoever has the printed address; people only";

    fn operate(self, session: &Session) -> Result<Answer, Failure> {
        session.actor.may(Privilege::SeeAll)?;
        session.actor.may(Privilege::Decide)?;
        quipu_shared::keep_connections();
        let root = session.project()?.store.root().to_owned();
        let token = match std::env::var(TOKEN) {
            Ok(text) if !text.is_empty() => Token::parse(&text).map_err(|what| Failure::usage(format!("{TOKEN}: {what}"), ""))?,
            _ => Token::random().map_err(|e| Failure::new(exit::IO, format!("no chance for a token: {e}"), ""))?,
        };
        let address = SocketAddr::new(IpAddr::V4(Ipv4Addr::LOCALHOST), self.port);
        let shown = token.clone();
        let ready = |address: SocketAddr| {
            // The fragment stays in the browser: it is in no request and in no log.
            let url = format!("http://{address}/#token={}", shown.as_str());
            say(session.json, &url);
            if self.open {
                open(&url);
            }
        };
        let site = site(Session { folder: root, ..session.clone() });
        serve(Plan { address, site, policy: Policy::new(token) }, ready).map_err(|error| match error {
            ServeError::Taken { .. } => Failure::new(exit::IO, error.to_string(), "quipu serve     (without --port it takes a free one)"),
            _ => Failure::new(exit::IO, error.to_string(), ""),
        })?;
        Ok(Answer { compact: true, ..Answer::new(json!({"event": "ended"}), "") })
    }
}

/// The address is data, and wanted long before the server ends. A reader that closed the pipe has what it wanted.
fn say(as_json: bool, url: &str) {
    if as_json {
        let _ = terminal::show_json(&json!({"event": "serving", "url": url}).to_string());
    } else {
        let _ = terminal::show_text(&format!("{url}\n"));
        terminal::say("whoever has this address may read and write as you; Ctrl-C ends it");
    }
}

/// Asks the desktop to open an address; without one, the address was printed.
fn open(url: &str) {
    let program = if cfg!(target_os = "macos") { "open" } else { "xdg-open" };
    let _ = Command::new(program).arg(url).stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null()).spawn();
}
