//! The `http` adapter with a scripted server, in both forms.

use crate::desk::Desk;
use crate::server::{Reply, Server};
use quipu_agents::{Confinement, Ending, Event, Usage, collect};
use serde_json::{Value, json};
use std::time::Duration;

/// Both forms of the interface, each as the server speaks it.
#[derive(Clone, Copy, Debug)]
enum Form {
    Openai,
    Anthropic,
}

const FORMS: [Form; 2] = [Form::Openai, Form::Anthropic];

impl Form {
    fn host(self, base: &str, more: &str) -> String {
        let api = format!("{self:?}").to_lowercase();
        let base = if matches!(self, Form::Openai) {
            format!("{base}/v1")
        } else {
            base.to_string()
        };
        // A variable that cargo sets stands for a key.
        format!(
            "via = \"http\"\napi = \"{api}\"\nbase = \"{base}\"\nkey = \"CARGO_PKG_VERSION\"\nretries = 1\n{more}"
        )
    }

    /// An answer in words.
    fn says(self, text: &str) -> Reply {
        self.ends(text, &[], false)
    }

    /// An answer with tool calls.
    fn calls(self, calls: &[(&str, Value)]) -> Reply {
        self.ends("", calls, false)
    }

    fn cut(self, text: &str) -> Reply {
        self.ends(text, &[], true)
    }

    fn ends(self, text: &str, calls: &[(&str, Value)], cut: bool) -> Reply {
        let mut events = self.begins(text);
        for (index, (name, input)) in calls.iter().enumerate() {
            let input = input.to_string();
            let id = format!("call{index}");
            // In two pieces, as servers do.
            let mut middle = input.len() / 2;
            while !input.is_char_boundary(middle) {
                middle += 1;
            }
            let (one, two) = input.split_at(middle);
            match self {
                Form::Openai => {
                    let delta = |call: Value| {
                        json!({ "choices": [{ "delta": { "tool_calls": [call] } }] }).to_string()
                    };
                    let first = json!({ "index": index, "id": id, "function": { "name": name, "arguments": one } });
                    events.push(delta(first));
                    events.push(delta(
                        json!({ "index": index, "function": { "arguments": two } }),
                    ));
                }
                Form::Anthropic => {
                    let block = json!({ "type": "tool_use", "id": id, "name": name, "input": {} });
                    events.push(json!({ "type": "content_block_start", "index": index + 1, "content_block": block }).to_string());
                    for part in [one, two] {
                        let delta = json!({ "type": "input_json_delta", "partial_json": part });
                        events.push(json!({ "type": "content_block_delta", "index": index + 1, "delta": delta }).to_string());
                    }
                    events.push(
                        json!({ "type": "content_block_stop", "index": index + 1 }).to_string(),
                    );
                }
            }
        }
        match self {
            Form::Openai => {
                let reason = if cut {
                    "length"
                } else if calls.is_empty() {
                    "stop"
                } else {
                    "tool_calls"
                };
                events.push(
                    json!({ "choices": [{ "delta": {}, "finish_reason": reason }] }).to_string(),
                );
                let usage = json!({ "prompt_tokens": 100, "completion_tokens": 10 });
                events.push(json!({ "choices": [], "usage": usage }).to_string());
                events.push("[DONE]".to_string());
            }
            Form::Anthropic => {
                let reason = if cut {
                    "max_tokens"
                } else if calls.is_empty() {
                    "end_turn"
                } else {
                    "tool_use"
                };
                let usage = json!({ "output_tokens": 10 });
                events.push(json!({ "type": "message_delta", "delta": { "stop_reason": reason }, "usage": usage }).to_string());
                events.push(json!({ "type": "message_stop" }).to_string());
            }
        }
        Reply::Events(events)
    }

    /// The beginning of an answer.
    fn begins(self, text: &str) -> Vec<String> {
        let letters: Vec<String> = text.chars().map(String::from).collect();
        match self {
            Form::Openai => letters
                .iter()
                .map(|one| json!({ "choices": [{ "delta": { "content": one } }] }).to_string())
                .collect(),
            Form::Anthropic => {
                let usage = json!({ "input_tokens": 60, "cache_read_input_tokens": 40, "output_tokens": 1 });
                let mut events = vec![
                    json!({ "type": "message_start", "message": { "usage": usage } }).to_string(),
                ];
                let block = json!({ "type": "text", "text": "" });
                events.push(
                    json!({ "type": "content_block_start", "index": 0, "content_block": block })
                        .to_string(),
                );
                events.push(json!({ "type": "ping" }).to_string());
                for one in letters {
                    let delta = json!({ "type": "text_delta", "text": one });
                    events.push(
                        json!({ "type": "content_block_delta", "index": 0, "delta": delta })
                            .to_string(),
                    );
                }
                events.push(json!({ "type": "content_block_stop", "index": 0 }).to_string());
                events
            }
        }
    }
}

fn desk_with(form: Form, server: &Server, more: &str) -> Desk {
    let mut desk = Desk::new();
    desk.host(&form.host(&server.base, more));
    desk
}

#[test]
fn a_model_lists_reads_writes_and_ends() {
    for form in FORMS {
        let server = Server::scripted(vec![
            form.calls(&[
                ("list_files", json!({})),
                ("read_file", json!({ "path": "outline.md" })),
            ]),
            form.calls(&[(
                "write_file",
                json!({ "path": "drafts/ch01.md", "content": "# 第一章\n" }),
            )]),
            form.says("I wrote ch01. 完成"),
        ]);
        let desk = desk_with(form, &server, "");
        let outcome = desk.run();
        assert_eq!(outcome.ending, Ending::Finished { exit: None }, "{form:?}");
        assert_eq!(outcome.final_message.as_deref(), Some("I wrote ch01. 完成"));
        assert_eq!(
            collect(&desk.assignment).files,
            [(
                "drafts/ch01.md".to_string(),
                "# 第一章\n".as_bytes().to_vec()
            )]
        );
        assert_eq!(
            outcome.usage,
            Usage {
                input: Some(300),
                output: Some(30)
            },
            "{form:?}"
        );
        assert_eq!(outcome.confinement, Confinement::ToolsOnly);
        let last = server.requests().pop().unwrap();
        let sent = last.body.to_string();
        assert!(
            sent.contains("outline.md") && sent.contains("ch01: the beginning"),
            "{sent}"
        );
        assert_eq!(last.body["model"], "mock-model");
        let (path, key) = match form {
            Form::Openai => ("/v1/chat/completions", last.header("authorization")),
            Form::Anthropic => ("/v1/messages", last.header("x-api-key")),
        };
        assert_eq!(last.path, path);
        assert!(key.unwrap().ends_with(env!("CARGO_PKG_VERSION")));
        let told = desk.events.lock().unwrap();
        assert!(
            told.contains(&Event::Usage(Usage {
                input: Some(200),
                output: Some(20)
            })),
            "{told:?}"
        );
        assert!(
            !desk.said("sent").contains(env!("CARGO_PKG_VERSION")),
            "no key in the record"
        );
    }
}

#[test]
fn a_server_that_does_not_stream_is_understood() {
    let whole = |message: Value, reason: &str| {
        let body = json!({
            "choices": [{ "index": 0, "message": message, "finish_reason": reason }],
            "usage": { "prompt_tokens": 100, "completion_tokens": 10 },
        });
        Reply::Json(body.to_string())
    };
    let call = |id: &str, name: &str, arguments: Value| json!({ "id": id, "type": "function", "function": { "name": name, "arguments": arguments.to_string() } });
    let server = Server::scripted(vec![
        whole(
            json!({ "role": "assistant", "content": null, "tool_calls": [
                call("a", "list_files", json!({})),
                call("b", "write_file", json!({ "path": "drafts/ch01.md", "content": "# 第一章\n" })),
            ] }),
            "tool_calls",
        ),
        whole(json!({ "role": "assistant", "content": "done" }), "stop"),
    ]);
    let desk = desk_with(Form::Openai, &server, "");
    let outcome = desk.run();
    assert_eq!(outcome.ending, Ending::Finished { exit: None });
    assert_eq!(outcome.final_message.as_deref(), Some("done"));
    assert_eq!(server.requests().len(), 2, "no answer was asked for again");
    let files = collect(&desk.assignment).files;
    assert_eq!(files[0].1, "# 第一章\n".as_bytes());
}

#[test]
fn tools_reach_nothing_outside_the_room() {
    for form in FORMS {
        let mut desk = Desk::new();
        let (denied, view) = (
            desk.path("denied.md"),
            desk.assignment.view.display().to_string(),
        );
        std::os::unix::fs::symlink(&desk.project, desk.assignment.out.join("drafts")).unwrap();
        let read = |path: &str| ("read_file", json!({ "path": path }));
        let write = |path: &str| ("write_file", json!({ "path": path, "content": "x" }));
        let server = Server::scripted(vec![
            form.calls(&[
                read(&denied),
                read("../../../../denied.md"),
                read(&format!("{view}/../../../../denied.md")),
                read("drafts/denied.md"),
                write("outline.md"),
                write("../record/x"),
                write("drafts/ch01.md"),
                write("/tmp/x"),
                ("run_shell", json!({ "command": "cat /etc/passwd" })),
                ("read_file", json!({ "file": "outline.md" })),
            ]),
            form.says("nothing worked"),
        ]);
        desk.host(&form.host(&server.base, ""));
        let outcome = desk.run();
        assert!(outcome.ending.is_finished(), "{:?}", outcome.ending);
        assert_eq!(outcome.denied.len(), 8, "{:?}", outcome.denied);
        assert!(outcome.denied.iter().all(|one| one.by == "adapter"));
        desk.assert_untouched();
        let sent = server.requests().pop().unwrap().body.to_string();
        assert!(!sent.contains("not for this role"), "{sent}");
        assert!(
            sent.contains("unknown tool `run_shell`")
                && sent.contains("does not take the arguments"),
            "{sent}"
        );
    }
}

#[test]
fn inline_sends_the_whole_view_and_no_tools() {
    for form in FORMS {
        let server = Server::scripted(vec![form.says("the draft")]);
        let desk = desk_with(
            form,
            &server,
            "material = \"inline\"\nbody = { temperature = 0.5 }",
        );
        let outcome = desk.run();
        assert_eq!(outcome.final_message.as_deref(), Some("the draft"));
        let body = &server.requests()[0].body;
        assert_eq!(
            (body.get("tools"), &body["temperature"]),
            (None, &json!(0.5))
        );
        assert!(body.to_string().contains("The outline: # Outline"));
    }
}

#[test]
fn a_fault_goes_back_into_the_same_conversation() {
    for form in FORMS {
        let write = |text: &str| {
            form.calls(&[(
                "write_file",
                json!({ "path": "drafts/ch01.md", "content": text }),
            )])
        };
        let server = Server::scripted(vec![
            write("text\n"),
            form.says("done"),
            write("text\n<!-- DONE -->\n"),
            form.says("now done"),
        ]);
        let desk = desk_with(form, &server, "");
        let again = desk.turns(|turns| {
            assert!(turns.first().ending.is_finished());
            assert_eq!(desk.output("drafts/ch01.md").unwrap(), "text\n");
            turns.again("drafts/ch01.md:1: the marker is missing")
        });
        assert_eq!(again.final_message.as_deref(), Some("now done"));
        assert_eq!(
            desk.output("drafts/ch01.md").unwrap(),
            "text\n<!-- DONE -->\n"
        );
        let messages = server.requests()[2].body["messages"].to_string();
        assert!(
            messages.contains("Write the draft of ch01.")
                && messages.contains("the marker is missing")
        );
        assert!(
            messages.contains("\"done\""),
            "the first turn is part of the conversation: {messages}"
        );
    }
}

#[test]
fn refusals_are_told_and_not_tried_again() {
    for form in FORMS {
        let body = json!({ "error": { "message": "invalid key" } }).to_string();
        let server = Server::scripted(vec![Reply::Status(401, "", body)]);
        let outcome = desk_with(form, &server, "").run();
        assert_eq!(
            outcome.ending,
            Ending::Refused {
                status: Some(401),
                why: "invalid key".to_string()
            }
        );
        assert_eq!(server.requests().len(), 1);
    }
}

#[test]
fn failures_of_the_moment_are_tried_again() {
    for form in FORMS {
        let busy = Reply::Status(429, "retry-after: 0", "{}".to_string());
        let server = Server::scripted(vec![
            busy,
            Reply::Status(529, "retry-after: 0", String::new()),
            form.says("there"),
        ]);
        let outcome = desk_with(form, &server, "").run();
        assert_eq!(
            outcome.ending,
            Ending::Refused {
                status: Some(529),
                why: "no reason given".to_string()
            },
            "one retry is allowed"
        );
        let desk = desk_with(form, &server, "");
        assert_eq!(desk.run().final_message.as_deref(), Some("there"));

        let torn = Server::scripted(vec![
            Reply::Torn(form.begins("half of it")),
            form.says("whole"),
        ]);
        let desk = desk_with(form, &torn, "");
        assert_eq!(desk.run().final_message.as_deref(), Some("whole"));
        let told = desk.events.lock().unwrap();
        let is_retry = |event: &Event| matches!(event, Event::Retry(_));
        assert!(told.iter().any(is_retry), "{told:?}");
    }
}

#[test]
fn a_server_error_that_stays_is_told() {
    for form in FORMS {
        let server = Server::scripted(vec![Reply::Status(
            500,
            "",
            "<html>oops</html>".to_string(),
        )]);
        let outcome = desk_with(form, &server, "").run();
        assert_eq!(
            outcome.ending,
            Ending::Refused {
                status: Some(500),
                why: "<html>oops</html>".to_string()
            }
        );
        assert_eq!(server.requests().len(), 2);
    }
}

#[test]
fn a_wait_longer_than_the_deadline_is_not_begun() {
    for form in FORMS {
        let server = Server::scripted(vec![Reply::Status(
            429,
            "retry-after: 3600",
            "{}".to_string(),
        )]);
        let outcome = desk_with(form, &server, "").run();
        assert!(
            matches!(
                outcome.ending,
                Ending::Refused {
                    status: Some(429),
                    ..
                }
            ),
            "{:?}",
            outcome.ending
        );
    }
}

#[test]
fn a_dead_port_is_told() {
    for form in FORMS {
        let mut desk = Desk::new();
        let port = std::net::TcpListener::bind("127.0.0.1:0")
            .unwrap()
            .local_addr()
            .unwrap()
            .port();
        desk.host(&form.host(&format!("http://127.0.0.1:{port}"), ""));
        let ending = desk.run().ending;
        assert!(
            matches!(&ending, Ending::Broken { why } if why.contains("refused")),
            "{ending:?}"
        );
    }
}

#[test]
fn a_silent_server_meets_the_deadline_and_the_stop() {
    for form in FORMS {
        let server = Server::scripted(vec![Reply::Hang]);
        let mut desk = desk_with(form, &server, "");
        desk.assignment.deadline = Duration::from_millis(300);
        assert_eq!(desk.run().ending, Ending::Deadline);
        desk.assignment.deadline = Duration::from_secs(120);
        desk.stop.stop();
        assert_eq!(desk.run().ending, Ending::Stopped);
    }
}

#[test]
fn garbage_is_told_as_such() {
    for form in FORMS {
        for garbage in [
            Reply::Garbage,
            Reply::Events(vec!["no json at all".to_string()]),
            Reply::Events(vec!["{\"x\": 1}".to_string()]),
            Reply::Json("<html>a portal</html>".to_string()),
        ] {
            let server = Server::scripted(vec![garbage.clone()]);
            let ending = desk_with(form, &server, "").run().ending;
            assert!(
                matches!(ending, Ending::Broken { .. }),
                "{form:?} {garbage:?}: {ending:?}"
            );
        }
    }
}

#[test]
fn an_empty_answer_and_one_that_was_cut_are_no_success() {
    for form in FORMS {
        let server = Server::scripted(vec![form.says("")]);
        assert!(matches!(
            desk_with(form, &server, "").run().ending,
            Ending::Broken { .. }
        ));
        let server = Server::scripted(vec![form.cut("half a dra")]);
        let outcome = desk_with(form, &server, "").run();
        assert!(
            matches!(outcome.ending, Ending::TooLong { .. }),
            "{:?}",
            outcome.ending
        );
        assert_eq!(outcome.final_message.as_deref(), Some("half a dra"));
    }
}

#[test]
fn an_answer_beyond_the_bound_is_too_long() {
    for form in FORMS {
        let server = Server::scripted(vec![form.says(&"long ".repeat(300))]);
        let mut desk = desk_with(form, &server, "");
        desk.assignment.bounds.message = 1000;
        assert!(matches!(desk.run().ending, Ending::TooLong { .. }));
        let server = Server::scripted(vec![form.calls(&[("list_files", json!({}))])]);
        let ending = desk_with(form, &server, "").run().ending;
        assert!(
            matches!(&ending, Ending::TooLong { what } if what.contains("rounds")),
            "{ending:?}"
        );
    }
}

#[test]
fn without_its_key_a_host_does_not_start() {
    let mut desk = Desk::new();
    desk.host("via = \"http\"\napi = \"openai\"\nbase = \"https://localhost\"\nkey = \"QUIPU_TEST_NO_SUCH_KEY\"");
    assert!(
        matches!(desk.run().ending, Ending::NotStarted { why } if why.contains("QUIPU_TEST_NO_SUCH_KEY"))
    );
    desk.host("via = \"http\"\napi = \"openai\"\nbase = \"http://models.example\"\nkey = \"CARGO_PKG_VERSION\"");
    assert!(
        matches!(desk.run().ending, Ending::NotStarted { why } if why.contains("is not encrypted"))
    );
}
