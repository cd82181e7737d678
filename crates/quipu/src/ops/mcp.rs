//! `mcp`: the same operations as tools of an MCP server.

use clap::Args;

use crate::answer::{Answer, Failure, exit};
use crate::mcp::serve;
use crate::session::Session;
use crate::table::Operate;

#[derive(Debug, Args)]
pub struct Mcp {}

impl Operate for Mcp {
    const NAME: &'static str = "mcp";
    const ABOUT: &'static str = "Serve the Model Context Protocol on stdin and stdout, as the role and unit given";

    fn operate(self, session: &Session) -> Result<Answer, Failure> {
        match serve(session, std::io::stdin().lock(), std::io::stdout().lock()) {
            // A client that went away has what it wanted.
            Err(error) if error.kind() != std::io::ErrorKind::BrokenPipe => {
                Err(Failure::new(exit::IO, format!("the client's pipe failed: {error}"), ""))
            }
            _ => Ok(Answer::default()),
        }
    }
}
