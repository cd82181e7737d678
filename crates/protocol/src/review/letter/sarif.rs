//! The open comments as SARIF 2.1.0, which pages that host code show beside the lines.

use serde_json::{Value, json};

use super::Letter;
use crate::review::comment::Severity;
use crate::review::rounds::Comment;

const SCHEMA: &str = "https://json.schemastore.org/sarif-2.1.0.json";

pub fn render(letter: &Letter<'_>) -> String {
    let rules: Vec<Value> = Severity::ALL
        .iter()
        .map(|severity| {
            json!({
                "id": severity.as_str(),
                "shortDescription": {"text": letter.severity(*severity)},
                "defaultConfiguration": {"level": level(*severity)},
            })
        })
        .collect();
    let open = letter.panel.comments.iter().filter(|c| c.is_open());
    let results: Vec<Value> = open.map(|comment| result(letter, comment)).collect();
    let log = json!({
        "$schema": SCHEMA,
        "version": "2.1.0",
        "runs": [{
            "tool": {"driver": {
                "name": "quipu review",
                "semanticVersion": env!("CARGO_PKG_VERSION"),
                "rules": rules,
            }},
            "results": results,
        }],
    });
    format!("{log:#}\n")
}

const fn level(severity: Severity) -> &'static str {
    match severity {
        Severity::Critical => "error",
        Severity::Important => "warning",
        Severity::Minor => "note",
    }
}

fn result(letter: &Letter<'_>, comment: &Comment) -> Value {
    let path = comment.path.as_deref().unwrap_or(&letter.manuscript);
    json!({
        "ruleId": comment.severity.as_str(),
        "level": level(comment.severity),
        "message": {"text": format!("{} ({}, {})", comment.text, letter.agent(comment), comment.id)},
        "locations": [{
            "physicalLocation": {
                "artifactLocation": {"uri": encoded(path)},
                "region": {
                    "startLine": comment.line,
                    "endLine": comment.last_line,
                    "snippet": {"text": comment.shown_quote()},
                },
            },
        }],
        "partialFingerprints": {"comment/v1": comment.id},
    })
}

/// A relative path as a URI: SARIF allows no other characters.
fn encoded(path: &str) -> String {
    path.bytes()
        .map(|byte| match byte {
            b'A'..=b'Z' | b'a'..=b'z' | b'0'..=b'9' | b'-' | b'_' | b'.' | b'~' | b'/' => {
                char::from(byte).to_string()
            }
            other => format!("%{other:02X}"),
        })
        .collect()
}
