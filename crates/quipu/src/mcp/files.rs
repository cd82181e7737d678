//! MCP resources: the files that a caller may read, by URI.

use std::collections::BTreeSet;

use quipu_contract::Readable;
use quipu_protocol::read_pointer;
use serde_json::{Map, Value, json};

use super::wire::Fault;
use crate::answer::Failure;
use crate::session::Session;

const SCHEME: &str = "quipu:///";
/// Maximum number of listed files; `recall` finds the others.
const MOST_FILES: usize = 1_000;

/// Lists the files under the contract that the caller may read; for some only a section.
pub fn list(session: &Session) -> Result<Value, Failure> {
    let project = session.project()?;
    let contract = &project.contract;
    let grant = contract
        .grant(&session.actor)
        .map_err(|what| Failure::usage(what, "quipu contract show"))?;
    let binding = contract.actor_binding(&session.actor);
    let mut resources = Vec::new();
    for path in project.store.list()? {
        let Some(rule) = contract.rule(&path) else {
            continue;
        };
        let sections = match grant.may_read(&path, &binding) {
            Err(_) => continue,
            Ok(Readable::Whole) => BTreeSet::from([String::new()]),
            Ok(Readable::Sections(sections)) => sections.into_iter().collect(),
        };
        for section in sections {
            let name = if section.is_empty() {
                path.to_string()
            } else {
                format!("{path}#{section}")
            };
            let mut resource =
                json!({"uri": address(&name), "name": name, "mimeType": kind(path.as_str())});
            let about = rule.about.in_language(contract.language);
            if !about.is_empty() {
                resource["description"] = json!(about);
            }
            resources.push(resource);
        }
        if resources.len() >= MOST_FILES {
            break;
        }
    }
    Ok(json!({"resources": resources}))
}

pub fn read(session: &Session, params: &Map<String, Value>) -> Result<Value, Fault> {
    let uri = params
        .get("uri")
        .and_then(Value::as_str)
        .unwrap_or_default();
    let absent = |what: String| Fault {
        data: Some(Box::new(json!({"uri": uri}))),
        ..Fault::new(Fault::RESOURCE, what)
    };
    let Some(name) = uri.strip_prefix(SCHEME).and_then(plain) else {
        return Err(absent(format!(
            "unknown address `{uri}`: addresses begin with {SCHEME}, and resources/list names them"
        )));
    };
    let reading = session
        .project()
        .and_then(|project| Ok(read_pointer(&project, &session.actor, &name, None)?));
    let reading =
        reading.map_err(|failure| absent(failure.in_language(session.language()).render()))?;
    let text = String::from_utf8_lossy(&reading.bytes);
    Ok(json!({"contents": [{"uri": uri, "mimeType": kind(reading.path.as_str()), "text": text}]}))
}

fn kind(path: &str) -> &'static str {
    match path.rsplit('.').next() {
        Some("md") => "text/markdown",
        Some("json") => "application/json",
        Some("html") => "text/html",
        _ => "text/plain",
    }
}

/// Percent-encodes a name for a URI.
fn address(name: &str) -> String {
    let mut text = SCHEME.to_owned();
    for byte in name.bytes() {
        match byte {
            b'A'..=b'Z' | b'a'..=b'z' | b'0'..=b'9' | b'-' | b'_' | b'.' | b'~' | b'/' | b'#' => {
                text.push(char::from(byte))
            }
            other => text.push_str(&format!("%{other:02X}")),
        }
    }
    text
}

fn plain(text: &str) -> Option<String> {
    let mut bytes = Vec::new();
    let mut rest = text.as_bytes();
    while let Some((first, more)) = rest.split_first() {
        rest = more;
        if *first == b'%' {
            let (digits, more) = rest.split_at_checked(2)?;
            bytes.push(u8::from_str_radix(std::str::from_utf8(digits).ok()?, 16).ok()?);
            rest = more;
        } else {
            bytes.push(*first);
        }
    }
    String::from_utf8(bytes).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_address_leads_back_to_its_name() {
        for name in ["meta/glossary.md", "手稿/第一章.md#开头", "a b%.md"] {
            assert_eq!(
                plain(address(name).strip_prefix(SCHEME).unwrap()).as_deref(),
                Some(name)
            );
        }
        assert_eq!(plain("%4"), None);
        assert_eq!(plain("%é"), None);
    }
}
