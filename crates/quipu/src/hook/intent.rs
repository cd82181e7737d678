//! Tool calls with unknown fields: their stated effect, and the files that they name.
//!
//! A tool writes if its name, or a field such as `command` or `type`, says so. Every field with the
//! name of an existing file then counts as written. A tool that does not say so counts as a reader:
//! otherwise searches would be refused.

use std::path::Path;

use serde_json::Value;

use crate::mcp::is_tool;

/// The effect of a tool on the files that it names, by its own description.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Intent {
    Change,
    Grow,
    Remove,
    /// The file gets another name.
    Move,
}

const REMOVES: [&str; 3] = ["delete", "remove", "unlink"];
/// Words that are too short to search for within others.
const SHORT_REMOVES: [&str; 2] = ["rm", "rmdir"];
const MOVES: [&str; 3] = ["rename", "move", "mv"];
const CHANGES: [&str; 17] = [
    "write",
    "edit",
    "replace",
    "insert",
    "prepend",
    "patch",
    "apply",
    "update",
    "modify",
    "overwrite",
    "rewrite",
    "truncate",
    "save",
    "clear",
    "undo",
    "revert",
    "put",
];

/// Fields that name the operation.
const OPERATIONS: [&str; 7] = [
    "command",
    "operation",
    "op",
    "action",
    "type",
    "mode",
    "kind",
];

/// Fields that name a tool, if its input is next to them. Elsewhere they can name anything.
const CALLED: [&str; 4] = ["tool", "name", "function", "method"];
pub const CALL_INPUTS: [&str; 6] = [
    "arguments",
    "parameters",
    "params",
    "args",
    "input",
    "payload",
];

/// Fields with the destination of a move.
const GOALS: [&str; 7] = [
    "to",
    "dest",
    "dst",
    "destination",
    "target",
    "new_path",
    "newPath",
];

/// Fields with the working folder of a tool, never with a folder that it changes.
const WORKING_FOLDERS: [&str; 6] = [
    "cwd",
    "workdir",
    "work_dir",
    "working_directory",
    "workingDirectory",
    "repo_path",
];

/// The longest path of a file.
const LONGEST_NAME: usize = 4096;

/// The effect that a call names: by the tool's name, or by a field of this value.
pub fn intent_of(tool: &str, input: &Value) -> Option<Intent> {
    let small = tool.to_lowercase();
    // An editor with several commands is called `str_replace_editor` even if it only shows a file.
    let is_editor = ["editor", "edit_tool"]
        .iter()
        .any(|name| small.contains(name));
    // Cursor names no server, so such a tool may be Quipu's own, which is judged when it runs.
    let is_own = small.strip_prefix("mcp:").is_some_and(is_tool);
    // `mcp__server__tool`: the server's name says nothing about the tool.
    let name = tool.rsplit("__").next().filter(|_| !is_editor && !is_own);
    let fields = OPERATIONS
        .iter()
        .filter_map(|field| input.get(*field)?.as_str())
        .filter(|name| !name.contains(char::is_whitespace));
    let is_call = CALL_INPUTS.iter().any(|field| input.get(*field).is_some());
    let called = CALLED
        .iter()
        .filter(|_| is_call)
        .filter_map(|field| input.get(*field)?.as_str());
    let words: Vec<String> = name
        .into_iter()
        .chain(fields)
        .chain(called)
        .flat_map(words)
        .collect();
    let says = |verbs: &[&str]| words.iter().any(|word| verbs.contains(&word.as_str()));
    if says(&REMOVES)
        || says(&SHORT_REMOVES)
        || !is_editor && REMOVES.iter().any(|verb| small.contains(verb))
    {
        Some(Intent::Remove)
    } else if says(&MOVES) {
        Some(Intent::Move)
    } else if says(&CHANGES) {
        Some(Intent::Change)
    } else {
        says(&["append"]).then_some(Intent::Grow)
    }
}

/// The words of a name: `undo_edit`, `deleteFile`, `TodoWrite`.
fn words(name: &str) -> Vec<String> {
    let mut words = vec![String::new()];
    let mut was_small = false;
    for c in name.chars() {
        if !c.is_alphanumeric() || c.is_uppercase() && was_small {
            words.push(String::new());
        }
        was_small = c.is_lowercase();
        if let Some(word) = words.last_mut().filter(|_| c.is_alphanumeric()) {
            word.extend(c.to_lowercase());
        }
    }
    words
}

/// The strings of a value that name existing files, except in some fields.
pub fn files_in(value: &Value, cwd: &Path, except: impl Fn(&str) -> bool) -> Vec<String> {
    named_in(value, except)
        .into_iter()
        .filter(|name| cwd.join(name).is_file())
        .collect()
}

/// The strings of a value that name existing folders, for a tool that removes or moves them. The
/// working folder and its parents are excluded: they only give the location.
pub fn folders_in(value: &Value, cwd: &Path, except: impl Fn(&str) -> bool) -> Vec<String> {
    let is_left_out =
        |field: &str| except(field) || GOALS.contains(&field) || WORKING_FOLDERS.contains(&field);
    let here = std::fs::canonicalize(cwd).unwrap_or_else(|_| cwd.to_owned());
    let is_below = |name: &String| {
        std::fs::canonicalize(cwd.join(name))
            .is_ok_and(|place| place.is_dir() && !here.starts_with(place))
    };
    named_in(value, is_left_out)
        .into_iter()
        .filter(is_below)
        .collect()
}

fn named_in(value: &Value, except: impl Fn(&str) -> bool) -> Vec<String> {
    let texts: Vec<&str> = match value {
        Value::Object(fields) => fields
            .iter()
            .filter(|(name, _)| !except(name))
            .filter_map(|(_, value)| value.as_str())
            .collect(),
        Value::Array(items) => items.iter().filter_map(Value::as_str).collect(),
        Value::String(text) => vec![text],
        _ => Vec::new(),
    };
    let is_name = |text: &&str| {
        !text.is_empty() && text.len() <= LONGEST_NAME && !text.contains(['\n', '\0'])
    };
    texts
        .into_iter()
        .filter(is_name)
        .map(without_scheme)
        .collect()
}

/// A path that may be written as an address: `file:///a%20b`, `file://localhost/a`, `file:/a`.
pub fn without_scheme(path: &str) -> String {
    let Some(rest) = path
        .get(..5)
        .filter(|scheme| scheme.eq_ignore_ascii_case("file:"))
        .map(|_| &path[5..])
    else {
        return path.to_owned();
    };
    let rest = rest.strip_prefix("//").unwrap_or(rest);
    let rest = rest
        .strip_prefix("localhost")
        .filter(|rest| rest.starts_with('/'))
        .unwrap_or(rest);
    let (mut bytes, mut at) = (Vec::new(), 0);
    while at < rest.len() {
        let code = rest
            .get(at + 1..at + 3)
            .filter(|_| rest.as_bytes()[at] == b'%')
            .and_then(|code| u8::from_str_radix(code, 16).ok());
        bytes.push(code.unwrap_or(rest.as_bytes()[at]));
        at += if code.is_some() { 3 } else { 1 };
    }
    String::from_utf8_lossy(&bytes).into_owned()
}
