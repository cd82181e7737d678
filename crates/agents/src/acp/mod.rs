//! The `acp` adapter: drives a host over the Agent Client Protocol, with one session for all turns.
//!
//! The protocol is JSON-RPC, one message per line, in both directions. The host sends requests too.
//! `serve` answers permission requests by policy and serves files from the view and the out folder
//! only. A host may also use its own file tools, so the kernel sandbox remains the boundary.

mod serve;
mod wire;

use crate::adapter::{Adapter, Limit, Turns, Watch};
use crate::assignment::Assignment;
use crate::command::{conclude, not_started, plan_places, prepare_home};
use crate::host::Host;
use crate::outcome::{Attempt, Ending, Event, Outcome, Usage};
use crate::program::{Launch, PrivateHome, find_program};
use crate::sandbox::Sandbox;
use crate::transcript::Transcript;
use serde_json::{Value, json};
use wire::{Fault, Wire};

/// The protocol version of this client.
const VERSION: u64 = 1;

/// A host that speaks ACP.
pub struct AcpAgent {
    pub name: String,
    pub host: Host,
    pub model: Option<String>,
    pub sandbox: Sandbox,
}

impl Adapter for AcpAgent {
    fn name(&self) -> &str {
        &self.name
    }

    fn ready(&self) -> Result<(), String> {
        find_program(&self.host)
    }

    fn open<'a>(&'a self, assignment: &'a Assignment, watch: Watch<'a>) -> Box<dyn Turns + 'a> {
        Box::new(AcpTurns {
            agent: self,
            assignment,
            watch,
            limit: Limit::after(assignment.deadline),
            live: None,
            turn: 0,
            home: None,
        })
    }
}

struct AcpTurns<'a> {
    agent: &'a AcpAgent,
    assignment: &'a Assignment,
    watch: Watch<'a>,
    limit: Limit,
    // Declared before the home, so that the program has ended when its home is removed.
    live: Option<Live>,
    turn: u32,
    home: Option<PrivateHome>,
}

/// A running host with its session.
struct Live {
    wire: Wire,
    session: String,
}

/// The messages received during one turn.
#[derive(Default)]
struct Heard {
    message: String,
    usage: Usage,
    denied: Vec<Attempt>,
    too_long: bool,
}

impl Turns for AcpTurns<'_> {
    fn first(&mut self) -> Outcome {
        self.take_turn(&self.placed_brief())
    }

    fn again(&mut self, fault: &str) -> Outcome {
        let returned = self.assignment.returned(fault);
        if self.live.is_some() {
            self.take_turn(&returned)
        } else {
            // The host has exited, and its session is lost.
            self.take_turn(&format!("{}\n\n{returned}", self.placed_brief()))
        }
    }
}

impl AcpTurns<'_> {
    fn take_turn(&mut self, prompt: &str) -> Outcome {
        let record = &self.assignment.record;
        let mut transcript = match Transcript::open(record, self.assignment.bounds.transcript) {
            Ok(transcript) => transcript,
            Err(why) => {
                return not_started(
                    record.join("transcript.jsonl"),
                    format!("{}: {why}", record.display()),
                );
            }
        };
        transcript.say("brief", prompt);
        let mut heard = Heard::default();
        let ending = match self.converse(prompt, &mut heard, &mut transcript) {
            Ok(ending) => ending,
            Err(fault) => self.judge_fault(fault),
        };
        transcript.say("note", &ending.to_string());
        let report = match (&mut self.live, ending.is_finished()) {
            (Some(live), true) => live.wire.report(),
            // The session is reused only after a finished turn; its state after any other ending is
            // unknown.
            (Some(_), false) => self
                .live
                .take()
                .map(|live| live.wire.close())
                .unwrap_or_default(),
            (None, _) => Default::default(),
        };
        let message = heard.message.trim();
        let message = (!message.is_empty()).then(|| message.to_string());
        let mut outcome = match (&ending, report.confinement.is_none()) {
            (Ending::NotStarted { why }, true) => {
                not_started(transcript.path().to_path_buf(), why.clone())
            }
            _ => conclude(ending, message, heard.usage, report, &transcript),
        };
        for attempt in &outcome.denied {
            (self.watch.events)(Event::Denied(attempt.clone()));
        }
        outcome.denied.extend(heard.denied);
        outcome
    }

    fn converse(
        &mut self,
        prompt: &str,
        heard: &mut Heard,
        transcript: &mut Transcript,
    ) -> Result<Ending, Fault> {
        if self.live.is_none() {
            let wire = self.start()?;
            let session = self.assignment_session();
            // Stored at once, so that the host's report is read and the host is closed even if a
            // later step fails.
            let live = self.live.insert(Live {
                wire,
                session: String::new(),
            });
            let mut serve = serve::Desk::new(self.assignment, self.watch, heard);
            let files = !self.agent.host.own_files;
            let hello = json!({
                "protocolVersion": VERSION,
                "clientCapabilities": { "fs": { "readTextFile": files, "writeTextFile": files }, "terminal": false },
                "clientInfo": { "name": "quipu", "version": env!("CARGO_PKG_VERSION") },
            });
            live.wire
                .request("initialize", hello, &mut serve, transcript)?;
            let opened = live
                .wire
                .request("session/new", session, &mut serve, transcript)?;
            live.session = opened
                .get("sessionId")
                .and_then(Value::as_str)
                .unwrap_or_default()
                .to_string();
        }
        let Some(live) = &mut self.live else {
            return Err(Fault::Broken("the host has exited".to_string()));
        };
        let ask =
            json!({ "sessionId": live.session, "prompt": [{ "type": "text", "text": prompt }] });
        let mut serve = serve::Desk::new(self.assignment, self.watch, heard);
        let answer = live
            .wire
            .request("session/prompt", ask, &mut serve, transcript)?;
        if heard.too_long {
            return Ok(Ending::TooLong {
                what: "the final message".to_string(),
            });
        }
        // A usage total in the answer takes precedence over the sum of the updates.
        let told = answer
            .get("usage")
            .or_else(|| answer.pointer("/_meta/quota/token_count"));
        if let Some(usage) = serve::read_usage(told) {
            heard.usage = usage;
        }
        Ok(
            match answer
                .get("stopReason")
                .and_then(Value::as_str)
                .unwrap_or_default()
            {
                "end_turn" => Ending::Finished { exit: None },
                "max_tokens" | "max_turn_requests" => Ending::TooLong {
                    what: "the host's own limit was reached".to_string(),
                },
                "refusal" => Ending::Refused {
                    status: None,
                    why: "the model refused".to_string(),
                },
                "cancelled" => Ending::Stopped,
                other => Ending::Broken {
                    why: format!("an unknown stop reason `{other}`"),
                },
            },
        )
    }

    fn start(&mut self) -> Result<Wire, Fault> {
        self.turn += 1;
        let host = &self.agent.host;
        let not_started = Fault::NotStarted;
        if self.home.is_none() {
            self.home = Some(prepare_home(host, &self.assignment.bounds).map_err(not_started)?);
        }
        let Some(home) = &self.home else {
            return Err(Fault::NotStarted("no private home folder".to_string()));
        };
        let model = self.agent.model.as_deref();
        let places =
            plan_places(self.assignment, home, model, "", host).map_err(Fault::NotStarted)?;
        let mut args = places.fill_all(&host.args);
        if model.is_some() {
            args.extend(places.fill_all(&host.model_args));
        }
        let launch = Launch {
            sandbox: &self.agent.sandbox,
            host,
            assignment: self.assignment,
            home,
            places: &places,
            turn: self.turn,
        };
        let running = launch.start(args).map_err(Fault::NotStarted)?;
        Wire::new(
            running,
            self.limit,
            self.watch.stop.clone(),
            host.lies.clone(),
        )
        .map_err(Fault::NotStarted)
    }

    fn placed_brief(&self) -> String {
        match self.assignment.mcp {
            Some(_) => self
                .assignment
                .placed_brief(&crate::questions::told(self.assignment)),
            None => self.assignment.placed_brief(""),
        }
    }

    /// Returns the parameters of `session/new`, including the MCP server.
    fn assignment_session(&self) -> Value {
        let servers: Vec<Value> = match self.assignment.mcp.as_deref() {
            Some([command, args @ ..]) => {
                vec![json!({ "name": "quipu", "command": command, "args": args, "env": [] })]
            }
            _ => Vec::new(),
        };
        json!({ "cwd": self.assignment.out, "mcpServers": servers })
    }

    fn judge_fault(&mut self, fault: Fault) -> Ending {
        if let (Fault::Stopped | Fault::Deadline, Some(live)) = (&fault, &mut self.live) {
            live.wire
                .notify("session/cancel", json!({ "sessionId": live.session }));
        }
        match fault {
            Fault::Stopped => Ending::Stopped,
            Fault::Deadline => Ending::Deadline,
            Fault::NotStarted(why) => Ending::NotStarted { why },
            Fault::Refused(why) => Ending::Refused { status: None, why },
            Fault::TooLong(what) => Ending::TooLong { what },
            Fault::Broken(why) => Ending::Broken { why },
        }
    }
}
