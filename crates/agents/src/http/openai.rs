//! OpenAI-compatible chat completions: builds the requests and assembles the streamed answers.

use super::call::Endpoint;
use super::talk::{Assembly, End, Reply, Said, Step, Tool, ToolCall};
use crate::host::Api;
use crate::outcome::Usage;
use serde_json::{Map, Value, json};

pub fn endpoint(base: &str, key: Option<&str>) -> Endpoint {
    Endpoint {
        api: Api::Openai,
        url: format!("{}/chat/completions", base.trim_end_matches('/')),
        headers: key
            .map(|key| ("authorization", format!("Bearer {key}")))
            .into_iter()
            .collect(),
        model: String::new(),
        max_output: None,
        extra: Map::new(),
    }
}

pub fn body(endpoint: &Endpoint, said: &[Said], tools: &[Tool]) -> Value {
    let mut messages = Vec::new();
    for one in said {
        match one {
            Said::User(text) => messages.push(json!({ "role": "user", "content": text })),
            Said::Assistant { text, calls } => {
                let mut message = json!({ "role": "assistant", "content": text });
                if !calls.is_empty() {
                    message["tool_calls"] = calls.iter().map(render_call).collect();
                }
                messages.push(message);
            }
            Said::Results(results) => {
                messages.extend(results.iter().map(
                    |one| json!({ "role": "tool", "tool_call_id": one.id, "content": one.text }),
                ))
            }
        }
    }
    let mut body = json!({
        "model": endpoint.model,
        "messages": messages,
        "stream": true,
        "stream_options": { "include_usage": true },
    });
    if let Some(most) = endpoint.max_output {
        body["max_tokens"] = json!(most);
    }
    if !tools.is_empty() {
        body["tools"] = tools.iter().map(render_tool).collect();
    }
    body
}

fn render_call(call: &ToolCall) -> Value {
    json!({ "id": call.id, "type": "function", "function": { "name": call.name, "arguments": call.arguments } })
}

fn render_tool(tool: &Tool) -> Value {
    json!({
        "type": "function",
        "function": { "name": tool.name, "description": tool.about, "parameters": tool.parameters },
    })
}

/// An answer under assembly.
#[derive(Default)]
pub struct Stream {
    reply: Reply,
    ended: bool,
}

impl Assembly for Stream {
    fn take(&mut self, data: &str) -> Step {
        if data.trim() == "[DONE]" {
            // Some servers end every stream this way, even one without an answer.
            return if self.ended {
                Step::Done
            } else {
                Step::Failed("an answer without an end".to_string())
            };
        }
        let Ok(event) = serde_json::from_str::<Value>(data) else {
            return Step::Garbage;
        };
        if let Some(error) = event.get("error").filter(|error| !error.is_null()) {
            let text = error
                .get("message")
                .and_then(Value::as_str)
                .map(str::to_string);
            return Step::Failed(text.unwrap_or_else(|| error.to_string()));
        }
        if let Some(usage) = event.get("usage").filter(|usage| usage.is_object()) {
            let count = |name: &str| usage.get(name).and_then(Value::as_u64);
            self.reply.usage = Usage {
                input: count("prompt_tokens"),
                output: count("completion_tokens"),
            };
        }
        let Some(choices) = event.get("choices").and_then(Value::as_array) else {
            return Step::Garbage;
        };
        let Some(choice) = choices.first() else {
            return Step::More;
        };
        // A server that does not stream sends one whole message.
        let said = choice.get("delta").or_else(|| choice.get("message"));
        let said = said.unwrap_or(&Value::Null);
        if let Some(text) = said.get("content").and_then(Value::as_str) {
            self.reply.text.push_str(text);
        }
        let calls = said.get("tool_calls").and_then(Value::as_array);
        for (nth, piece) in (0..).zip(calls.into_iter().flatten()) {
            self.take_call(nth, piece);
        }
        match choice.get("finish_reason").and_then(Value::as_str) {
            None => return Step::More,
            Some("length") => self.reply.end = End::Length,
            Some("content_filter") => self.reply.end = End::Refusal,
            Some(_) => self.reply.end = End::Turn,
        }
        self.ended = true;
        Step::More
    }

    fn is_whole(&self) -> bool {
        self.ended
    }

    fn finish(self: Box<Self>) -> Reply {
        self.reply
    }
}

impl Stream {
    /// Highest index of a tool call in one answer. A larger index from the server is clamped to it.
    const MOST_CALLS: u64 = 128;

    fn take_call(&mut self, nth: u64, piece: &Value) {
        let index = piece
            .get("index")
            .and_then(Value::as_u64)
            .unwrap_or(nth)
            .min(Self::MOST_CALLS) as usize;
        if self.reply.calls.len() <= index {
            self.reply.calls.resize_with(index + 1, ToolCall::default);
        }
        let call = &mut self.reply.calls[index];
        let text = |pointer: &str| {
            piece
                .pointer(pointer)
                .and_then(Value::as_str)
                .unwrap_or_default()
        };
        if !text("/id").is_empty() {
            call.id = text("/id").to_string();
        }
        call.name.push_str(text("/function/name"));
        call.arguments.push_str(text("/function/arguments"));
    }
}
