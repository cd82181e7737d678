//! Tool calls with fields that nobody here knows: what they say they do, and the files that they name.
//!
//! A tool that says so by its name, or by a field such as `command` or `type`, writes. Then every field that names a file which is there is
//! taken for one that it writes. A tool that says nothing of the kind reads: a rule that took it for a writer would refuse searches.

use std::path::Path;

use serde_json::Value;

use crate::mcp::is_tool;

/// What a tool says that it does to the files it names.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Intent {
    Change,
    Grow,
    Remove,
}

const REMOVES: [&str; 3] = ["delete", "remove", "unlink"];
const CHANGES: [&str; 18] = [
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
    "rename",
    "move",
    "undo",
    "revert",
    "put",
];

/// Fields with the name of what is done.
const OPERATIONS: [&str; 7] = ["command", "operation", "op", "action", "type", "mode", "kind"];

/// A name of a file is not longer.
const LONGEST_NAME: usize = 4096;

/// What a call says that it does: by the tool's name, or by a field of this value.
pub fn intent_of(tool: &str, input: &Value) -> Option<Intent> {
    let small = tool.to_lowercase();
    // An editor of several commands is called `str_replace_editor` also where it only shows a file.
    let is_editor = ["editor", "edit_tool"].iter().any(|name| small.contains(name));
    // Cursor names no server: such a tool may be Quipu's own, which is judged when it acts.
    let is_own = small.strip_prefix("mcp:").is_some_and(is_tool);
    // `mcp__server__tool`: the server's name says nothing of the tool.
    let name = tool.rsplit("__").next().filter(|_| !is_editor && !is_own);
    let fields = OPERATIONS.iter().filter_map(|field| input.get(*field)?.as_str()).filter(|name| !name.contains(char::is_whitespace));
    let words: Vec<String> = name.into_iter().chain(fields).flat_map(words).collect();
    let says = |verbs: &[&str]| words.iter().any(|word| verbs.contains(&word.as_str()));
    if says(&REMOVES) || !is_editor && REMOVES.iter().any(|verb| small.contains(verb)) {
        Some(Intent::Remove)
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

/// The texts of a value that are names of files which are there, but for those in some fields.
pub fn files_in<'v>(value: &'v Value, cwd: &Path, except: impl Fn(&str) -> bool) -> Vec<&'v str> {
    let texts: Vec<&str> = match value {
        Value::Object(fields) => fields.iter().filter(|(name, _)| !except(name)).filter_map(|(_, value)| value.as_str()).collect(),
        Value::Array(items) => items.iter().filter_map(Value::as_str).collect(),
        Value::String(text) => vec![text],
        _ => Vec::new(),
    };
    let is_name = |text: &&str| !text.is_empty() && text.len() <= LONGEST_NAME && !text.contains(['\n', '\0']);
    texts.into_iter().filter(is_name).map(without_scheme).filter(|name| cwd.join(name).is_file()).collect()
}

/// A path that may be written as an address.
pub fn without_scheme(path: &str) -> &str {
    path.strip_prefix("file://").unwrap_or(path)
}
