//! The fixtures of the MCP conformance suite: the tools, prompts and resources that it requests by
//! name, beside Quipu's own.
//!
//! Compiled only with the feature `fixture-door`, for `scripts/test-conformance`. They let the
//! suite test how this server transports images, sounds, resources and errors, which a project's
//! memory does not contain.

use serde_json::{Value, json};

use super::wire::{Fault, Request};

/// One red pixel.
const PNG: &str = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mP8z8DwHwAFBQIAX8jx0gAAAABJRU5ErkJggg==";
/// A WAV file without samples.
const WAV: &str = "UklGRiQAAABXQVZFZm10IBAAAAABAAEAQB8AAIA+AAACABAAZGF0YQAAAAA=";

/// Adds the fixtures to a list.
pub fn extend(method: &str, list: &mut Value) {
    let (key, more) = match method {
        "tools/list" => ("tools", tools()),
        "prompts/list" => ("prompts", prompts()),
        "resources/list" => ("resources", resources()),
        "resources/templates/list" => (
            "resourceTemplates",
            vec![json!({"uriTemplate": "test://template/{id}/data", "name": "template"})],
        ),
        _ => return,
    };
    if let Some(all) = list[key].as_array_mut() {
        all.extend(more);
    }
}

fn tools() -> Vec<Value> {
    let names = [
        "test_simple_text",
        "test_image_content",
        "test_audio_content",
        "test_embedded_resource",
        "test_multiple_content_types",
        "test_error_handling",
        "test_logging_tool",
    ];
    let plain = names.map(
        |name| json!({"name": name, "description": "A fixture", "inputSchema": {"type": "object"}}),
    );
    let schema = json!({
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "type": "object",
        "$defs": {"address": {
            "$anchor": "addressDef", "type": "object", "properties": {"street": {"type": "string"}, "city": {"type": "string"}},
        }},
        "properties": {
            "name": {"type": "string"},
            "address": {"$ref": "#/$defs/address"},
            "contactMethod": {"type": "string", "enum": ["phone", "email"]},
            "phone": {"type": "string"},
            "email": {"type": "string"},
        },
        "allOf": [{"anyOf": [{"required": ["phone"]}, {"required": ["email"]}]}],
        "if": {"properties": {"contactMethod": {"const": "phone"}}, "required": ["contactMethod"]},
        "then": {"required": ["phone"]},
        "else": {"required": ["email"]},
        "additionalProperties": false,
    });
    let mut all = plain.to_vec();
    all.push(json!({"name": "json_schema_2020_12_tool", "description": "A fixture", "inputSchema": schema}));
    all
}

fn prompts() -> Vec<Value> {
    let with = |names: &[&str]| {
        names
            .iter()
            .map(|name| json!({"name": name, "required": true}))
            .collect::<Vec<_>>()
    };
    let prompt = |name: &str, arguments: &[&str]| json!({"name": name, "description": "A fixture", "arguments": with(arguments)});
    vec![
        prompt("test_simple_prompt", &[]),
        prompt("test_prompt_with_arguments", &["arg1", "arg2"]),
        prompt("test_prompt_with_embedded_resource", &["resourceUri"]),
        prompt("test_prompt_with_image", &[]),
    ]
}

fn resources() -> Vec<Value> {
    let resource = |uri: &str, kind: &str| json!({"uri": uri, "name": uri, "mimeType": kind});
    vec![
        resource("test://static-text", "text/plain"),
        resource("test://static-binary", "image/png"),
    ]
}

/// Answers a request that names a fixture; `None` for all others.
pub fn result(request: &Request) -> Option<Result<Value, Fault>> {
    let argument = |name: &str| {
        request
            .params
            .get("arguments")
            .and_then(|a| a.get(name))
            .and_then(Value::as_str)
            .unwrap_or_default()
    };
    let subject = request.subject().unwrap_or_default();
    let answer = match request.method.as_str() {
        "tools/call" => {
            json!({"content": tool(subject)?, "isError": subject == "test_error_handling"})
        }
        "prompts/get" => json!({"messages": prompt(subject, argument)?}),
        "resources/read" => json!({"contents": [resource(subject)?]}),
        _ => return None,
    };
    Some(Ok(answer))
}

fn text(said: &str) -> Value {
    json!({"type": "text", "text": said})
}

fn tool(name: &str) -> Option<Vec<Value>> {
    let image = json!({"type": "image", "data": PNG, "mimeType": "image/png"});
    let embedded = |uri: &str, kind: &str, said: &str| json!({"type": "resource", "resource": {"uri": uri, "mimeType": kind, "text": said}});
    Some(match name {
        "test_simple_text" => vec![text("This is a simple text response for testing.")],
        "test_image_content" => vec![image],
        "test_audio_content" => {
            vec![json!({"type": "audio", "data": WAV, "mimeType": "audio/wav"})]
        }
        "test_embedded_resource" => vec![embedded(
            "test://embedded-resource",
            "text/plain",
            "This is an embedded resource content.",
        )],
        "test_multiple_content_types" => vec![
            text("Multiple content types test:"),
            image,
            embedded(
                "test://mixed-content-resource",
                "application/json",
                r#"{"test":"data","value":123}"#,
            ),
        ],
        "test_error_handling" => vec![text("This tool intentionally returns an error for testing")],
        "json_schema_2020_12_tool" | "test_logging_tool" => vec![text("fine")],
        _ => return None,
    })
}

fn prompt<'a>(name: &str, argument: impl Fn(&str) -> &'a str) -> Option<Vec<Value>> {
    let says = |content: Value| json!({"role": "user", "content": content});
    Some(match name {
        "test_simple_prompt" => vec![says(text("This is a simple prompt for testing."))],
        "test_prompt_with_arguments" => {
            vec![says(text(&format!(
                "Prompt with arguments: arg1='{}', arg2='{}'",
                argument("arg1"),
                argument("arg2")
            )))]
        }
        "test_prompt_with_embedded_resource" => {
            let inner = json!({"uri": argument("resourceUri"), "mimeType": "text/plain", "text": "Embedded resource content for testing."});
            vec![
                says(json!({"type": "resource", "resource": inner})),
                says(text("Please process the embedded resource above.")),
            ]
        }
        "test_prompt_with_image" => {
            vec![
                says(json!({"type": "image", "data": PNG, "mimeType": "image/png"})),
                says(text("Please analyze the image above.")),
            ]
        }
        _ => return None,
    })
}

fn resource(uri: &str) -> Option<Value> {
    if let Some(id) = uri
        .strip_prefix("test://template/")
        .and_then(|rest| rest.strip_suffix("/data"))
    {
        let said = json!({"id": id, "templateTest": true, "data": format!("Data for ID: {id}")});
        return Some(json!({"uri": uri, "mimeType": "application/json", "text": said.to_string()}));
    }
    match uri {
        "test://static-text" => Some(
            json!({"uri": uri, "mimeType": "text/plain", "text": "This is the content of the static text resource."}),
        ),
        "test://static-binary" => Some(json!({"uri": uri, "mimeType": "image/png", "blob": PNG})),
        _ => None,
    }
}
