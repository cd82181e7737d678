//! `mcp`: the same operations as tools of an MCP server.

use std::path::PathBuf;

use clap::Args;

use crate::answer::{Answer, Failure, exit};
use crate::mcp::{RoomDoor, serve, serve_room};
use crate::session::Session;
use crate::table::Operate;

#[derive(Debug, Args)]
pub struct Mcp {
    /// Serve this folder for reading, and no project: what `quipu run` hands to agents
    #[arg(long, value_name = "DIR", requires = "out")]
    view: Option<PathBuf>,
    /// With --view: the folder for writing
    #[arg(long, value_name = "DIR", requires = "view")]
    out: Option<PathBuf>,
    /// With --out: a path that may be written there; may be given again
    #[arg(long = "output", value_name = "PATH", requires = "out")]
    outputs: Vec<String>,
}

impl Operate for Mcp {
    const NAME: &'static str = "mcp";
    const ABOUT: &'static str = "Serve the Model Context Protocol on stdin and stdout, as the role and unit given";

    fn operate(self, session: &Session) -> Result<Answer, Failure> {
        let (input, output) = (std::io::stdin().lock(), std::io::stdout().lock());
        let served = match (self.view, self.out) {
            (Some(view), Some(out)) => serve_room(&RoomDoor { view, out, outputs: self.outputs }, input, output),
            _ => serve(session, input, output),
        };
        match served {
            // A client that went away has what it wanted.
            Err(error) if error.kind() != std::io::ErrorKind::BrokenPipe => {
                Err(Failure::new(exit::IO, format!("the client's pipe failed: {error}"), ""))
            }
            _ => Ok(Answer::default()),
        }
    }
}
