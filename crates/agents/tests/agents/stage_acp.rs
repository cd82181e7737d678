//! A scripted host that speaks the Agent Client Protocol, and a smallest MCP server: both are
//! JSON-RPC by line.

use serde_json::{Value, json};
use std::io::Write;
use std::path::Path;

/// Speaks until its input ends. The script says how it behaves in a prompt; what follows it are its
/// arguments.
pub fn speak(script: &[String]) {
    let mut host = Host {
        lines: std::io::stdin().lines(),
        asked: 100,
        prompts: 0,
    };
    if script[0] == "garbage" {
        for number in 0..100_000 {
            println!("%$ this is no message {number}");
        }
        return;
    }
    println!("a banner that is no message");
    while let Some(message) = host.next() {
        let id = message["id"].clone();
        match message["method"].as_str().unwrap_or_default() {
            "initialize" => host.answer(
                &id,
                json!({ "protocolVersion": 1, "agentCapabilities": {} }),
            ),
            "session/new" if script[0] == "unauthorised" => {
                host.fail(&id, -32000, "Authentication required: 401");
            }
            "session/new" => {
                assert!(Path::new(message["params"]["cwd"].as_str().unwrap()).is_dir());
                host.say(
                    "tool_call",
                    json!({ "title": format!("servers {}", message["params"]["mcpServers"]) }),
                );
                host.answer(&id, json!({ "sessionId": "s1" }));
            }
            "session/prompt" => {
                host.prompts += 1;
                assert_eq!(message["params"]["sessionId"], "s1");
                let prompt = message["params"]["prompt"][0]["text"]
                    .as_str()
                    .unwrap()
                    .to_string();
                host.perform(script, &prompt, &id);
            }
            _ => {}
        }
    }
}

/// An MCP server with one tool, for hosts that are handed a server.
pub fn serve_a_tool() {
    for line in std::io::stdin().lines() {
        let message: Value = serde_json::from_str(&line.unwrap()).unwrap();
        let Some(id) = message.get("id") else {
            continue;
        };
        let result = match message["method"].as_str().unwrap_or_default() {
            "initialize" => json!({
                "protocolVersion": message["params"]["protocolVersion"],
                "capabilities": { "tools": {} },
                "serverInfo": { "name": "stage", "version": "1" },
            }),
            "tools/list" => {
                let schema = json!({ "type": "object", "properties": {} });
                json!({ "tools": [{ "name": "stage_door", "description": "a door", "inputSchema": schema }] })
            }
            "ping" => json!({}),
            _ => {
                println!(
                    "{}",
                    json!({ "jsonrpc": "2.0", "id": id, "error": { "code": -32601, "message": "unknown" } })
                );
                continue;
            }
        };
        println!(
            "{}",
            json!({ "jsonrpc": "2.0", "id": id, "result": result })
        );
    }
}

struct Host {
    lines: std::io::Lines<std::io::StdinLock<'static>>,
    asked: u64,
    prompts: u32,
}

impl Host {
    fn next(&mut self) -> Option<Value> {
        Some(serde_json::from_str(&self.lines.next()?.unwrap()).unwrap())
    }

    fn send(&self, message: Value) {
        println!("{message}");
        std::io::stdout().flush().unwrap();
    }

    fn answer(&self, id: &Value, result: Value) {
        self.send(json!({ "jsonrpc": "2.0", "id": id, "result": result }));
    }

    fn fail(&self, id: &Value, code: i64, why: &str) {
        self.send(json!({ "jsonrpc": "2.0", "id": id, "error": { "code": code, "message": why } }));
    }

    fn say(&self, kind: &str, mut update: Value) {
        update["sessionUpdate"] = json!(kind);
        self.send(json!({ "jsonrpc": "2.0", "method": "session/update", "params": { "sessionId": "s1", "update": update } }));
    }

    fn chunk(&self, text: &str) {
        self.say(
            "agent_message_chunk",
            json!({ "content": { "type": "text", "text": text } }),
        );
    }

    fn ask(&mut self, method: &str, params: Value) -> Value {
        self.asked += 1;
        self.send(
            json!({ "jsonrpc": "2.0", "id": self.asked, "method": method, "params": params }),
        );
        let answer = self.next().unwrap();
        assert_eq!(answer["id"], self.asked);
        answer
    }

    fn permission(&mut self, path: &str) -> String {
        let options = json!([
            { "optionId": "yes", "name": "Yes", "kind": "allow_once" },
            { "optionId": "no", "name": "No", "kind": "reject_once" },
        ]);
        let call = json!({ "toolCallId": "t", "kind": "edit", "locations": [{ "path": path }] });
        let answer = self.ask(
            "session/request_permission",
            json!({ "sessionId": "s1", "toolCall": call, "options": options }),
        );
        answer["result"]["outcome"]["optionId"]
            .as_str()
            .unwrap()
            .to_string()
    }

    fn perform(&mut self, script: &[String], prompt: &str, id: &Value) {
        let end = |reason: &str| json!({ "stopReason": reason, "usage": { "inputTokens": 11, "outputTokens": 7, "totalTokens": 18 } });
        let view = std::env::var("QUIPU_VIEW").unwrap();
        let out = std::env::var("QUIPU_OUT").unwrap();
        let read = |path: &str| json!({ "sessionId": "s1", "path": path });
        let write =
            |path: &str, text: &str| json!({ "sessionId": "s1", "path": path, "content": text });
        match script[0].as_str() {
            "work" => {
                self.chunk("thinking aloud");
                let part = json!({ "sessionId": "s1", "path": format!("{view}/outline.md"), "line": 1, "limit": 1 });
                let outline = self.ask("fs/read_text_file", part)["result"]["content"]
                    .as_str()
                    .unwrap()
                    .to_string();
                self.say("tool_call", json!({ "title": "writes the draft" }));
                let marker = if prompt.contains("marker") {
                    "<!-- DONE -->\n"
                } else {
                    ""
                };
                let path = format!("{out}/drafts/ch01.md");
                assert_eq!(self.permission(&path), "yes");
                self.ask(
                    "fs/write_text_file",
                    write(&path, &format!("{outline}{marker}")),
                );
                self.chunk(&format!("turn {} ", self.prompts));
                self.chunk("done");
                self.answer(id, end("end_turn"));
            }
            "escape" => {
                let secret = &script[1];
                let mut results = Vec::new();
                results.push(self.ask("fs/read_text_file", read(secret)));
                results.push(self.ask(
                    "fs/read_text_file",
                    read(&format!("{view}/../{}", script[2])),
                ));
                let link = format!("{out}/drafts");
                std::os::unix::fs::symlink(Path::new(secret).parent().unwrap(), &link).unwrap();
                let name = Path::new(secret).file_name().unwrap().to_str().unwrap();
                results.push(self.ask("fs/read_text_file", read(&format!("{link}/{name}"))));
                results
                    .push(self.ask("fs/write_text_file", write(&format!("{link}/ch01.md"), "x")));
                results.push(self.ask("fs/write_text_file", write(secret, "x")));
                assert_eq!(self.permission(secret), "no");
                let direct = std::fs::read(secret).is_ok();
                let refused = results
                    .iter()
                    .filter(|answer| answer.get("error").is_some())
                    .count();
                self.chunk(&format!("{refused} refused, own read {direct}"));
                self.answer(id, end("end_turn"));
            }
            "silent" => self.answer(id, end("end_turn")),
            "limit" => self.answer(id, end("max_tokens")),
            "fails" => self.fail(id, -32603, "Internal error: 500 from the model"),
            "long" => {
                let piece = "long ".repeat(2000);
                (0..100).for_each(|_| self.chunk(&piece));
                self.answer(id, end("end_turn"));
            }
            // Asks for a large file again and again, and reads no answer.
            "flood" => {
                let path = format!("{out}/drafts/ch01.md");
                std::fs::create_dir_all(format!("{out}/drafts")).unwrap();
                std::fs::write(&path, "x".repeat(1 << 20)).unwrap();
                (0..1000).for_each(|ask| {
                    self.send(json!({ "jsonrpc": "2.0", "id": ask, "method": "fs/read_text_file", "params": read(&path) }))
                });
                std::thread::sleep(std::time::Duration::from_secs(300));
            }
            "probe" => {
                (0..300).for_each(|n| {
                    drop(self.ask(
                        "fs/read_text_file",
                        read(&format!("/nowhere/{n}/{}", "x".repeat(10_000))),
                    ))
                });
                self.answer(id, end("end_turn"));
            }
            "hang" => std::thread::sleep(std::time::Duration::from_secs(300)),
            "die" => {
                eprintln!("the model cannot be reached: connection refused");
                std::process::exit(3);
            }
            other => panic!("no script `{other}`"),
        }
    }
}
