//! Answers MCP messages, and runs the loop over stdio: each line is a message, and each request
//! gets one answer.

use std::io::{BufRead, Write};

use quipu_contract::{Actor, ActorName};
use serde_json::{Value, json};

use super::wire::{Fault, Request, greet, render_fault, render_result};
use super::{brief, command, files, tools};
use crate::answer::Failure;
use crate::session::Session;

/// Longest accepted line.
const MOST_BYTES: u64 = 16 << 20;

const INSTRUCTIONS: &str = "Quipu keeps this project's memory in plain files under a contract: \
    some files are append-only, some are sealed, some belong to a role. Call `start` first: it \
    shows the current state and what to do next. Use `recall` before you assume something, and \
    `read` the files it names. Write with `append` (glossaries, logs, decisions) and `write` \
    (drafts, state: pass the version from `read` as `expect`). Track work with `todo`, record \
    choices with `decide`. Call `finish` before you stop: it reports what is still missing. A \
    refusal names the rule and the right way to do it; `quipu append X --text …` in an answer \
    means the tool `append` with path X and that text. Do not edit these files with other tools: \
    changes that the contract forbids are detected and reverted.";

/// A server that answers requests with results.
pub trait Answers {
    /// The result of a request that is well formed and names a supported revision.
    fn result(&mut self, request: &Request) -> Result<Value, Fault>;

    /// Answers a message; `None` for a notification.
    fn answer(&mut self, line: &str) -> Option<Value> {
        match Request::parse(line) {
            Ok(request) => self.answer_to(&request),
            Err(told) => Some(render_fault(&told.0, told.1)),
        }
    }

    /// Answers a message that is already parsed.
    fn answer_to(&mut self, request: &Request) -> Option<Value> {
        let id = request.id.as_ref()?;
        Some(match request.check().and_then(|()| self.result(request)) {
            Ok(result) => render_result(request, result),
            Err(fault) => render_fault(id, fault),
        })
    }
}

/// The connection of one client to the table of operations.
pub struct Door<'s> {
    session: &'s Session,
    /// The client's name from the handshake.
    client: Option<String>,
    /// The session that `start` began on this connection. A client without hooks does not know its
    /// id, so later calls use this one.
    begun: Option<String>,
    /// Whether the client may call any command. See [`command`].
    commands: bool,
}

impl<'s> Door<'s> {
    pub fn new(session: &'s Session) -> Door<'s> {
        Door {
            session,
            client: None,
            begun: None,
            commands: false,
        }
    }

    /// Offers every command of the table beside the tools: for a client that started this process.
    pub fn with_commands(self) -> Door<'s> {
        Door {
            commands: true,
            ..self
        }
    }

    /// Creates a connection for a client that gave its name earlier.
    pub fn known(session: &'s Session, client: Option<String>) -> Door<'s> {
        Door {
            session,
            client,
            begun: None,
            commands: false,
        }
    }

    /// Every caller on this connection is an agent: under the names that the server was started
    /// with, or the client's own.
    fn caller(&self, request: &Request) -> Session {
        let mut session = self.session.clone();
        session.conversation = session.conversation.or_else(|| self.begun.clone());
        if session.actor == Actor::Person {
            let name = request.client().or(self.client.as_deref()).unwrap_or("mcp");
            let plain: String = name
                .chars()
                .map(|c| if c.is_alphanumeric() { c } else { '-' })
                .take(64)
                .collect();
            let agent = ActorName::parse_given(plain.trim_matches('-'))
                .or_else(|_| ActorName::parse("mcp"))
                .ok();
            session.actor = Actor::Agent {
                role: None,
                unit: None,
                agent,
            };
        }
        session
    }
}

impl Answers for Door<'_> {
    fn result(&mut self, request: &Request) -> Result<Value, Fault> {
        #[cfg(feature = "fixture-door")]
        if let Some(result) = super::fixture::result(request) {
            return result;
        }
        let result = self.own_result(request);
        #[cfg(feature = "fixture-door")]
        let result = result.map(|mut list| {
            super::fixture::extend(&request.method, &mut list);
            list
        });
        result
    }
}

impl Door<'_> {
    fn own_result(&mut self, request: &Request) -> Result<Value, Fault> {
        let session = self.session;
        let failed = |failure: Failure| {
            let failure = failure.in_language(session.language());
            Fault::new(Fault::PARAMS, failure.render())
        };
        if let Some(greeting) = greet(request, capabilities(), INSTRUCTIONS) {
            if request.method == "initialize" {
                self.client = request.client().map(str::to_owned);
            }
            return Ok(greeting);
        }
        let stateless = request.revision().is_some();
        match request.method.as_str() {
            "tools/list" => Ok(tools::list(&self.caller(request))),
            "tools/call" => {
                let result = tools::call(&self.caller(request), &request.params)?;
                if request.params.get("name").and_then(Value::as_str) == Some("start") {
                    let begun = result["structuredContent"]["session"]["id"].as_str();
                    self.begun = begun.map(str::to_owned).or(self.begun.take());
                }
                Ok(result)
            }
            command::METHOD if self.commands => {
                let result = command::call(&self.caller(request), &request.params)?;
                if request.params["words"][0] == "start" {
                    let begun = result["data"]["session"]["id"].as_str();
                    self.begun = begun.map(str::to_owned).or(self.begun.take());
                }
                Ok(result)
            }
            "resources/list" => files::list(&self.caller(request)).map_err(failed),
            "resources/templates/list" => Ok(json!({"resourceTemplates": []})),
            "resources/read" => {
                files::read(&self.caller(request), &request.params).map_err(|fault| match stateless
                {
                    true => Fault {
                        code: Fault::PARAMS,
                        ..fault
                    },
                    false => fault,
                })
            }
            "prompts/list" => brief::list(&self.caller(request)).map_err(failed),
            "prompts/get" => brief::get(&self.caller(request), &request.params),
            "completion/complete" => {
                brief::complete(&self.caller(request), &request.params).map_err(failed)
            }
            other => Err(Fault::unknown_method(other)),
        }
    }
}

fn capabilities() -> Value {
    let (fixed, files) = (
        json!({"listChanged": false}),
        json!({"subscribe": false, "listChanged": false}),
    );
    json!({"tools": fixed, "resources": files, "prompts": fixed, "completions": {}})
}

/// Serves until the client closes its end.
pub fn serve(
    server: &mut impl Answers,
    mut input: impl BufRead,
    mut output: impl Write,
) -> std::io::Result<()> {
    loop {
        let mut line = Vec::new();
        let read = std::io::Read::take(&mut input, MOST_BYTES).read_until(b'\n', &mut line)?;
        if read == 0 {
            return Ok(());
        }
        let text = String::from_utf8_lossy(&line);
        if text.trim().is_empty() {
            continue;
        }
        if let Some(answer) = server.answer(text.trim()) {
            writeln!(output, "{answer}")?;
            output.flush()?;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::wire::STATELESS;
    use super::*;
    use crate::session::Names;

    fn session() -> Session {
        Session::new("/nowhere".into(), Names::default(), Names::default()).unwrap()
    }

    #[test]
    fn the_instructions_are_short() {
        assert!(INSTRUCTIONS.split_whitespace().count() < 200);
    }

    #[test]
    fn both_eras_are_answered_without_a_project() {
        let session = session();
        let mut door = Door::new(&session);
        for (asked, spoken) in [
            ("2025-06-18", "2025-06-18"),
            ("2025-11-25", "2025-11-25"),
            ("1999-01-01", "2025-11-25"),
        ] {
            let line = format!(
                r#"{{"jsonrpc":"2.0","id":1,"method":"initialize","params":{{"protocolVersion":"{asked}"}}}}"#
            );
            let answer = door.answer(&line).unwrap();
            assert_eq!(answer["result"]["protocolVersion"], spoken);
            assert!(answer["result"].get("resultType").is_none());
        }
        assert!(
            door.answer(r#"{"jsonrpc":"2.0","method":"notifications/initialized"}"#)
                .is_none()
        );
        let meta = |version: &str| {
            format!(r#""_meta":{{"io.modelcontextprotocol/protocolVersion":"{version}"}}"#)
        };
        let ask = |method: &str, version: &str| {
            format!(
                r#"{{"jsonrpc":"2.0","id":"a","method":"{method}","params":{{{}}}}}"#,
                meta(version)
            )
        };
        let found = door.answer(&ask("server/discover", STATELESS)).unwrap();
        assert_eq!(found["result"]["supportedVersions"][0], STATELESS);
        assert_eq!(
            (
                &found["result"]["resultType"],
                &found["result"]["cacheScope"]
            ),
            (&json!("complete"), &json!("private"))
        );
        assert_eq!(
            door.answer(&ask("tools/list", "2030-01-01")).unwrap()["error"]["code"],
            Fault::VERSION
        );
        assert!(
            door.answer(&ask("tools/list", STATELESS)).unwrap()["result"]["tools"]
                .as_array()
                .unwrap()
                .len()
                > 8
        );
    }

    #[test]
    fn what_is_no_message_is_told() {
        let session = session();
        let mut door = Door::new(&session);
        for (line, code) in [
            ("{", Fault::PARSE),
            ("[]", Fault::REQUEST),
            (r#"{"jsonrpc":"2.0","id":1,"method":"x"}"#, Fault::METHOD),
            (
                r#"{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"x"}}"#,
                Fault::PARAMS,
            ),
            (
                r#"{"jsonrpc":"2.0","id":1,"method":"tools/call","params":[]}"#,
                Fault::PARAMS,
            ),
        ] {
            assert_eq!(door.answer(line).unwrap()["error"]["code"], code, "{line}");
        }
    }
}
