//! The method `quipu/command`: any command of the table, for a program that keeps the connection
//! open.
//!
//! Tools are shaped for models: few, with few arguments, and answered as text. A program wants every
//! command, its exit code and its data, and none of that costs it tokens. The words and the data are
//! those of the command line; who calls is fixed for the whole connection. Only the server on stdin
//! and stdout has this method: its client may start `quipu` as well.

use std::ffi::OsString;
use std::sync::{Arc, OnceLock};

use serde_json::{Map, Value, json};

use super::schema::command_of;
use super::wire::Fault;
use crate::answer::{Answer, Failure};
use crate::parse::parse;
use crate::session::Session;
use crate::table::{Operation, TABLE};

pub const METHOD: &str = "quipu/command";

/// Commands that own stdin and stdout, or run for as long as a person wants.
const NOT_OFFERED: [&str; 6] = ["mcp", "serve", "hook", "run", "worker", "demo"];

/// Answers `{"words": ["todo", "add", "…"], "input": "…"}`. A failure of the command is a result.
pub fn call(session: &Session, params: &Map<String, Value>) -> Result<Value, Fault> {
    let bad = || Fault::new(Fault::PARAMS, "`words` must be a list of strings");
    let words = params.get("words").and_then(Value::as_array);
    let words: Option<Vec<String>> = words
        .ok_or_else(bad)?
        .iter()
        .map(|word| word.as_str().map(str::to_owned))
        .collect();
    let words = words.ok_or_else(bad)?;
    let input = params.get("input").and_then(Value::as_str);
    // Each call is a separate caller; what it would read from stdin is part of the message.
    let session = Session {
        watched: OnceLock::new(),
        panel: OnceLock::new(),
        conflict_notice: OnceLock::new(),
        input: Some(Arc::from(input.unwrap_or_default())),
        json: true,
        // The unit of the connection identifies the caller: it is no person who selects a gate.
        means_unit: false,
        ..session.clone()
    };
    Ok(render(session.in_language(perform(&words, &session))))
}

fn perform(words: &[String], session: &Session) -> Result<Answer, Failure> {
    let operation = find(words).ok_or_else(|| {
        Failure::usage(
            format!("there is no command `{}` here", words.join(" ")),
            "quipu --help --all     (lists the commands)",
        )
    })?;
    let count = operation.name.split(' ').count();
    let arguments: Vec<OsString> = words[count..].iter().map(OsString::from).collect();
    let matches = parse(command_of(operation), &arguments).map_err(|error| {
        let told = error.to_string();
        let first = told.lines().next().unwrap_or_default();
        let what = first.strip_prefix("error: ").unwrap_or(first);
        Failure::usage(what, format!("quipu {} --help", operation.name))
    })?;
    let result = (operation.call)(&matches, session);
    let line: Vec<OsString> = words.iter().map(OsString::from).collect();
    let watched = session.watched.get();
    let warnings = watched.map(|watched| watched.take(operation.name, &line, &result));
    let notice = session.conflict_notice.get();
    let notice = notice.and_then(|notice| notice.render(&result, true));
    let warnings = warnings.unwrap_or_default().into_iter();
    let said = warnings.map(|warning| format!("warning: {warning}"));
    result.map(|answer| said.chain(notice).fold(answer, Answer::say))
}

/// The row of the table with the longest name that the words begin with.
fn find(words: &[String]) -> Option<&'static Operation> {
    TABLE
        .iter()
        .filter(|row| !NOT_OFFERED.contains(&row.name))
        .filter(|row| {
            let mut names = row.name.split(' ').zip(words);
            row.name.split(' ').count() <= words.len() && names.all(|(name, word)| name == word)
        })
        .max_by_key(|row| row.name.len())
}

fn render(result: Result<Answer, Failure>) -> Value {
    match result {
        Ok(answer) => {
            json!({"exit": answer.exit, "data": answer.json, "text": answer.text, "notes": answer.talk})
        }
        Err(failure) => json!({"exit": failure.exit, "failure": failure.json()}),
    }
}

#[cfg(test)]
mod tests {
    use super::super::serve::{Answers, Door};
    use super::*;
    use crate::session::Names;

    /// Sends one command over a connection in `folder`.
    fn sent(door: &mut Door<'_>, words: &[&str], input: Option<&str>) -> Value {
        let request = json!({"jsonrpc": "2.0", "id": 1, "method": METHOD, "params": {"words": words, "input": input}});
        door.answer(&request.to_string()).unwrap()["result"].take()
    }

    fn session(folder: &std::path::Path) -> Session {
        let agent = Names {
            agent: Some("ada".into()),
            role: Some("main".into()),
            ..Names::default()
        };
        Session::new(folder.to_owned(), agent, Names::default()).unwrap()
    }

    #[test]
    fn a_program_gets_every_command_with_its_data_and_exit_code() {
        let folder = quipu_testkit::temp_folder();
        let person =
            Session::new(folder.path().to_owned(), Names::default(), Names::default()).unwrap();
        let words = ["init", "--profile", "relay", "--no-integrate"].map(str::to_owned);
        perform(&words, &person).unwrap();
        let session = session(folder.path());
        let mut door = Door::new(&session).with_commands();

        let added = sent(
            &mut door,
            &["todo", "add", "--priority", "high", "--", "- x"],
            None,
        );
        assert_eq!(added["exit"], 0, "{added}");
        let todos = sent(&mut door, &["todo", "list"], None);
        assert_eq!(todos["data"]["todos"][0]["title"], "- x");

        let change = r#"{"ops": [{"op": "append", "path": "decisions.md", "text": "- y\n"}]}"#;
        let saved = sent(&mut door, &["commit"], Some(change));
        assert_eq!(saved["exit"], 0, "{saved}");
        let refused = sent(
            &mut door,
            &["write", "decisions.md", "--file", "-"],
            Some("gone"),
        );
        assert_eq!(refused["exit"], 3);
        assert!(refused["failure"]["rule"]["place"].is_string(), "{refused}");
        // Without an input there is nothing to read, and the protocol's stdin is not touched.
        assert_eq!(sent(&mut door, &["commit"], None)["exit"], 2);
    }

    #[test]
    fn a_connection_for_a_unit_decides_nothing() {
        let folder = quipu_testkit::temp_folder();
        let person =
            Session::new(folder.path().to_owned(), Names::default(), Names::default()).unwrap();
        let words = ["init", "--profile", "novel", "--no-integrate"].map(str::to_owned);
        perform(&words, &person).unwrap();
        let unit = Names {
            unit: Some("ch01".into()),
            ..Names::default()
        };
        let session = Session::new(folder.path().to_owned(), unit, Names::default()).unwrap();
        let mut door = Door::new(&session).with_commands();
        let refused = sent(&mut door, &["approve", "final"], None);
        assert_eq!(refused["exit"], 3, "{refused}");
        let what = refused["failure"]["error"].as_str().unwrap();
        assert!(what.contains("only people may pass a gate"), "{what}");
    }

    #[test]
    fn a_command_cannot_name_another_caller_or_take_the_connection() {
        let folder = quipu_testkit::temp_folder();
        let session = session(folder.path());
        let mut door = Door::new(&session).with_commands();
        for words in [
            &["status", "--agent", "bob"][..],
            &["status", "-C", "/"],
            &["mcp"],
            &["serve"],
            &["todo"],
            &[],
        ] {
            assert_eq!(sent(&mut door, words, None)["exit"], 2, "{words:?}");
        }
        let over_http = sent(&mut Door::new(&session), &["status"], None);
        assert!(over_http.is_null());
    }
}
