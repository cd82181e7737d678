//! Calls of the page to rows of the table of operations.

use std::sync::Arc;

use quipu_web::axum::Json;
use quipu_web::axum::extract::State;
use quipu_web::axum::response::Response;
use serde::Deserialize;
use serde_json::{Map, Value, json};

use super::Shared;
use super::reply::reply;
use crate::answer::{Failure, exit};
use crate::mcp::schema::parse_call;
use crate::session::{Names, Session};
use crate::table::TABLE;

/// The rows that the page may call, each with the forbidden arguments: those that write files
/// outside the journal, read files outside the project, or start programs.
const OFFERED: &[(&str, &[&str])] = &[
    ("approve", &[]),
    ("reject", &[]),
    ("write", &["file", "force", "key"]),
    ("append", &["file", "key"]),
    ("amend", &["file", "force"]),
    ("waive", &[]),
    ("learn", &[]),
    ("todo add", &[]),
    ("todo edit", &[]),
    ("todo start", &[]),
    ("todo block", &[]),
    ("todo unblock", &[]),
    ("todo done", &[]),
    ("todo cancel", &[]),
    ("todo list", &[]),
    ("decisions", &[]),
    ("sessions list", &[]),
    ("metrics", &["svg"]),
    ("review status", &[]),
    ("recall", &[]),
    ("check", &["judge"]),
    ("threads", &[]),
    ("story sheet", &[]),
    ("story timeline", &[]),
    ("story knows", &[]),
    ("story met", &[]),
    ("story progression", &[]),
    ("story relations", &[]),
    ("story report", &[]),
    ("tension", &["svg"]),
    ("diff", &[]),
    ("restore", &[]),
    ("lease release", &[]),
    ("verify", &[]),
];

/// The rows that read stdin if no text is given. The server has none to read.
const WITH_TEXT: &[&str] = &["write", "append"];

#[derive(Debug, Deserialize)]
pub struct Call {
    operation: String,
    #[serde(default)]
    arguments: Map<String, Value>,
    #[serde(default)]
    unit: Option<String>,
}

pub async fn call(State(page): Shared, Json(call): Json<Call>) -> Response {
    reply(move || perform(&page.session(), &call)).await
}

fn perform(session: &Session, call: &Call) -> Result<Value, Failure> {
    let usage = |what: String| Failure::usage(what, "");
    let offered = OFFERED.iter().find(|(name, _)| *name == call.operation);
    let found = offered.and_then(|(name, left_out)| {
        Some((TABLE.iter().find(|row| row.name == *name)?, *left_out))
    });
    let Some((operation, left_out)) = found else {
        let what = format!(
            "the page does not support the operation `{}`",
            call.operation
        );
        return Err(Failure::new(
            exit::NOT_FOUND,
            what,
            "use the command line: quipu --help",
        ));
    };
    if WITH_TEXT.contains(&operation.name) && !call.arguments.contains_key("text") {
        return Err(usage("`text` is missing".to_owned()));
    }
    let (_, matches) =
        parse_call(operation, &call.arguments, left_out).map_err(|slip| usage(slip.what))?;
    // The caller is always a person, even if an agent started the server. The unit only selects the
    // target.
    let names = Names {
        unit: call.unit.clone(),
        ..Names::default()
    };
    let caller = Session::new(session.folder.clone(), names, Names::default())?;
    let answer = (operation.call)(
        &matches,
        &Session {
            kept: Arc::clone(&session.kept),
            door: session.door,
            ..caller
        },
    )?;
    Ok(json!({"data": answer.json, "exit": answer.exit, "talk": answer.talk}))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_offered_is_in_the_table() {
        for (name, left_out) in OFFERED {
            let row = TABLE.iter().find(|row| row.name == *name);
            let row = row.unwrap_or_else(|| panic!("{name}"));
            let (properties, _) = crate::mcp::schema::properties(row, &[]);
            assert!(
                left_out
                    .iter()
                    .all(|argument| properties.contains_key(*argument)),
                "{name}"
            );
        }
    }

    #[test]
    fn what_is_not_offered_is_not_called() {
        let session = Session::new(".".into(), Names::default(), Names::default()).unwrap();
        let call =
            |text: &str| perform(&session, &serde_json::from_str(text).unwrap()).unwrap_err();
        assert_eq!(call(r#"{"operation": "run"}"#).exit, exit::NOT_FOUND);
        assert_eq!(
            call(r#"{"operation": "check", "arguments": {"claim": "x", "judge": "command:sh"}}"#)
                .exit,
            exit::USAGE
        );
        for without_text in ["write", "append"] {
            let call = call(&format!(
                r#"{{"operation": "{without_text}", "arguments": {{"path": "a.md"}}}}"#
            ));
            assert_eq!(
                (call.exit, call.what.as_str()),
                (exit::USAGE, "`text` is missing")
            );
        }
        assert_eq!(
            call(r#"{"operation": "tension", "arguments": {"svg": "/tmp/x"}}"#).exit,
            exit::USAGE
        );
    }
}
