//! Answers MCP messages, and runs the loop over stdio: each line is a message, and each request
//! gets one answer.

use std::io::{BufRead, Write};

use quipu_contract::{Actor, ActorName};
use serde_json::{Value, json};

use super::wire::{
    Fault, HANDSHAKES, Request, STATELESS, render_fault, render_result, server_info,
};
use super::{RoomDoor, brief, files, tools};
use crate::answer::Failure;
use crate::session::Session;

/// Longest accepted line.
const MOST_BYTES: u64 = 16 << 20;

const INSTRUCTIONS: &str = "Quipu keeps this project's memory in plain files under a contract: some files only grow, some are sealed, \
some belong to a role. Call `start` first: it tells where things stand and what to do next. Look things up with `recall` before you assume \
them, and `read` what it names. Write with `append` (glossaries, logs, decisions) and `write` (drafts, state: pass the version from `read` as \
`expect`). Track work with `todo`, record choices with `decide`. Call `finish` before you stop: it says what is still missing. \
A refusal names the rule and the way to do it; `quipu append X --text …` in an answer means the tool `append` with path X and that text. \
Do not edit these files with other tools: what the contract forbids is seen and undone.";

/// The connection of one client to the table of operations.
pub struct Door<'s> {
    session: &'s Session,
    /// The client's name from the handshake.
    client: Option<String>,
    /// The session that `start` began on this connection. A client without hooks does not know its
    /// id, so later calls use this one.
    begun: Option<String>,
}

impl<'s> Door<'s> {
    pub fn new(session: &'s Session) -> Door<'s> {
        Door {
            session,
            client: None,
            begun: None,
        }
    }

    /// Creates a connection for a client that gave its name earlier.
    pub fn known(session: &'s Session, client: Option<String>) -> Door<'s> {
        Door {
            session,
            client,
            begun: None,
        }
    }

    /// Answers a message; `None` for a notification.
    pub fn answer(&mut self, line: &str) -> Option<Value> {
        match Request::parse(line) {
            Ok(request) => self.answer_to(&request),
            Err(told) => Some(render_fault(&told.0, told.1)),
        }
    }

    /// Answers a message that is already parsed.
    pub fn answer_to(&mut self, request: &Request) -> Option<Value> {
        let result = |request: &Request| {
            let result = self.result(request);
            #[cfg(feature = "fixture-door")]
            let result = result.map(|mut list| {
                super::fixture::extend(&request.method, &mut list);
                list
            });
            result
        };
        answer_to(request, result)
    }

    fn result(&mut self, request: &Request) -> Result<Value, Fault> {
        let failed = |failure: Failure| Fault::new(Fault::PARAMS, failure.render());
        #[cfg(feature = "fixture-door")]
        if let Some(result) = super::fixture::result(request) {
            return result;
        }
        // Stateless requests have no methods of the handshake.
        let stateless = request.revision().is_some();
        match request.method.as_str() {
            "initialize" if !stateless => {
                self.client = request.client().map(str::to_owned);
                let asked = request
                    .params
                    .get("protocolVersion")
                    .and_then(Value::as_str)
                    .unwrap_or_default();
                let spoken = HANDSHAKES
                    .into_iter()
                    .find(|v| *v == asked)
                    .unwrap_or(HANDSHAKES[0]);
                let (capabilities, info) = (capabilities(), server_info());
                Ok(
                    json!({"protocolVersion": spoken, "capabilities": capabilities, "serverInfo": info, "instructions": INSTRUCTIONS}),
                )
            }
            "server/discover" => Ok(
                json!({"supportedVersions": [STATELESS], "capabilities": capabilities(), "instructions": INSTRUCTIONS}),
            ),
            "ping" if !stateless => Ok(json!({})),
            "tools/list" => Ok(tools::list()),
            "tools/call" => {
                let result = tools::call(&self.caller(request), &request.params)?;
                if request.params.get("name").and_then(Value::as_str) == Some("start") {
                    let begun = result["structuredContent"]["session"]["id"].as_str();
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
            other => Err(Fault::new(
                Fault::METHOD,
                format!("there is no method `{other}`"),
            )),
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

fn answer_to(
    request: &Request,
    result: impl FnOnce(&Request) -> Result<Value, Fault>,
) -> Option<Value> {
    let id = request.id.as_ref()?;
    Some(match request.check().and_then(|()| result(request)) {
        Ok(result) => render_result(request, result),
        Err(fault) => render_fault(id, fault),
    })
}

fn capabilities() -> Value {
    let (fixed, files) = (
        json!({"listChanged": false}),
        json!({"subscribe": false, "listChanged": false}),
    );
    json!({"tools": fixed, "resources": files, "prompts": fixed, "completions": {}})
}

/// Serves the project until the client closes its end.
pub fn serve(session: &Session, input: impl BufRead, output: impl Write) -> std::io::Result<()> {
    let mut door = Door::new(session);
    serve_lines(input, output, |line| door.answer(line))
}

/// Serves the folders of an attempt until the client closes its end.
pub fn serve_room(door: &RoomDoor, input: impl BufRead, output: impl Write) -> std::io::Result<()> {
    serve_lines(input, output, |line| match Request::parse(line) {
        Ok(request) => answer_to(&request, |request| door.result(request)),
        Err(told) => Some(render_fault(&told.0, told.1)),
    })
}

fn serve_lines(
    mut input: impl BufRead,
    mut output: impl Write,
    mut answer: impl FnMut(&str) -> Option<Value>,
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
        if let Some(answer) = answer(text.trim()) {
            writeln!(output, "{answer}")?;
            output.flush()?;
        }
    }
}

#[cfg(test)]
mod tests {
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
