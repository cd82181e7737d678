//! The Anthropic messages API: builds its requests and assembles its streamed answers.

use super::DEFAULT_OUTPUT;
use super::call::Endpoint;
use super::talk::{Assembly, End, Reply, Said, Step, Tool, ToolCall};
use crate::host::Api;
use serde_json::{Map, Value, json};

/// The API version sent with each request.
const VERSION: &str = "2023-06-01";

pub fn endpoint(base: &str, key: Option<&str>) -> Endpoint {
    let mut headers = vec![("anthropic-version", VERSION.to_string())];
    headers.extend(key.map(|key| ("x-api-key", key.to_string())));
    Endpoint {
        api: Api::Anthropic,
        url: format!("{}/v1/messages", base.trim_end_matches('/')),
        headers,
        model: String::new(),
        max_output: None,
        extra: Map::new(),
    }
}

pub fn body(endpoint: &Endpoint, said: &[Said], tools: &[Tool]) -> Value {
    let messages: Vec<Value> = said
        .iter()
        .map(|one| match one {
            Said::User(text) => json!({ "role": "user", "content": text }),
            Said::Assistant { text, calls } => {
                let mut content = Vec::new();
                if !text.is_empty() {
                    content.push(json!({ "type": "text", "text": text }));
                }
                content.extend(calls.iter().map(|call| {
                    let input: Value = serde_json::from_str(&call.arguments).unwrap_or_else(|_| json!({}));
                    json!({ "type": "tool_use", "id": call.id, "name": call.name, "input": input })
                }));
                json!({ "role": "assistant", "content": content })
            }
            Said::Results(results) => {
                let content: Vec<Value> = results
                    .iter()
                    .map(|one| json!({ "type": "tool_result", "tool_use_id": one.id, "content": one.text, "is_error": one.failed }))
                    .collect();
                json!({ "role": "user", "content": content })
            }
        })
        .collect();
    let mut body = json!({
        "model": endpoint.model,
        "max_tokens": endpoint.max_output.unwrap_or(DEFAULT_OUTPUT),
        "messages": messages,
        "stream": true,
    });
    if !tools.is_empty() {
        let render = |tool: &Tool| json!({ "name": tool.name, "description": tool.about, "input_schema": tool.parameters });
        body["tools"] = tools.iter().map(render).collect();
    }
    body
}

/// An answer under assembly.
#[derive(Default)]
pub struct Stream {
    reply: Reply,
    /// Whether the current block is a tool call.
    in_call: bool,
}

impl Assembly for Stream {
    fn take(&mut self, data: &str) -> Step {
        let Ok(event) = serde_json::from_str::<Value>(data) else {
            return Step::Garbage;
        };
        let text = |pointer: &str| {
            event
                .pointer(pointer)
                .and_then(Value::as_str)
                .unwrap_or_default()
        };
        let count = |pointer: &str| event.pointer(pointer).and_then(Value::as_u64);
        match text("/type") {
            "message_start" => {
                // Tokens read from the cache count as input too.
                let parts = [
                    "input_tokens",
                    "cache_read_input_tokens",
                    "cache_creation_input_tokens",
                ];
                let parts: Vec<u64> = parts
                    .iter()
                    .filter_map(|name| count(&format!("/message/usage/{name}")))
                    .collect();
                self.reply.usage.input = (!parts.is_empty()).then(|| parts.iter().sum());
                self.reply.usage.output = count("/message/usage/output_tokens");
            }
            "content_block_start" => {
                self.in_call = text("/content_block/type") == "tool_use";
                if self.in_call {
                    let (id, name) = (
                        text("/content_block/id").to_string(),
                        text("/content_block/name").to_string(),
                    );
                    self.reply.calls.push(ToolCall {
                        id,
                        name,
                        arguments: String::new(),
                    });
                } else {
                    self.reply.text.push_str(text("/content_block/text"));
                }
            }
            "content_block_delta" => match text("/delta/type") {
                "text_delta" => self.reply.text.push_str(text("/delta/text")),
                "input_json_delta" if self.in_call => {
                    if let Some(call) = self.reply.calls.last_mut() {
                        call.arguments.push_str(text("/delta/partial_json"));
                    }
                }
                _ => {}
            },
            "message_delta" => {
                self.reply.usage.output = count("/usage/output_tokens").or(self.reply.usage.output);
                self.reply.end = match text("/delta/stop_reason") {
                    "max_tokens" | "model_context_window_exceeded" => End::Length,
                    "refusal" => End::Refusal,
                    _ => End::Turn,
                };
            }
            "message_stop" => return Step::Done,
            "error" => return Step::Failed(text("/error/message").to_string()),
            "content_block_stop" | "ping" => {}
            "" => return Step::Garbage,
            // The API may add event types; clients must ignore unknown ones.
            _ => {}
        }
        Step::More
    }

    /// This API marks the end of an answer, so a stream that stops earlier is cut off.
    fn is_whole(&self) -> bool {
        false
    }

    fn finish(self: Box<Self>) -> Reply {
        self.reply
    }
}
