//! Parses a host's hook message, and finds the deeds that a tool call would do.
//!
//! Hosts name the same things differently. The fields of the tool's input decide about a deed, and
//! not the tool's name, so that unknown tools are covered as well. `verdict.rs` judges the deeds;
//! nothing is judged here.

use std::borrow::Cow;
use std::collections::BTreeSet;
use std::fs::File;
use std::io::{BufRead, BufReader, Read};
use std::path::{Path, PathBuf};

use serde_json::Value;

use super::edit::Replacement;
use super::intent::{CALL_INPUTS, Intent, files_in, folders_in, intent_of, without_scheme};
use super::{patch, shell};
use crate::mcp::is_tool;

/// Fields that hold the path of a file.
const PATHS: [&str; 16] = [
    "file_path",
    "filePath",
    "path",
    "notebook_path",
    "absolute_path",
    "target_file",
    "targetFile",
    "TargetFile",
    "relative_path",
    "relativePath",
    "file",
    "filename",
    "file_name",
    "uri",
    "source",
    "old_path",
];

/// Fields that hold the working folder of a tool.
const FOLDERS: [&str; 8] = [
    "workdir",
    "work_dir",
    "cwd",
    "directory",
    "dir",
    "dir_path",
    "working_directory",
    "workingDirectory",
];

/// Fields that hold a text to replace, and its replacement.
const REPLACEMENTS: [(&str, &str); 5] = [
    ("old_string", "new_string"),
    ("oldString", "newString"),
    ("old_str", "new_str"),
    ("oldText", "newText"),
    ("old_text", "new_text"),
];

/// Fields that hold a shell command, or input for a running shell.
const COMMANDS: [&str; 6] = [
    "command",
    "cmd",
    "command_line",
    "script",
    "chars",
    SEVERAL_COMMANDS,
];

/// The field in which Cline lists complete commands. A list in another field is one command's words.
const SEVERAL_COMMANDS: &str = "commands";

/// Characters between the parts of a tool's name.
const JOINTS: [char; 5] = ['_', '.', ':', '-', '/'];

/// The tool of Gemini CLI that starts a subagent and waits for it.
const GEMINI_AGENT: &str = "invoke_agent";

/// How a line of a transcript begins that holds the whole conversation.
const REWRITE: &[u8] = br#"{"$set":{"messages":"#;

/// Maximum number of bytes read of a transcript; later compressions are not found.
const MOST_TRANSCRIPT: u64 = 256 << 20;

/// Fields that hold the text of a file.
const TEXTS: [&str; 18] = [
    "content",
    "contents",
    "new_content",
    "newContent",
    "file_text",
    "fileText",
    "old_string",
    "oldString",
    "old_str",
    "oldText",
    "old_text",
    "new_string",
    "newString",
    "new_str",
    "newText",
    "new_text",
    "insert_text",
    "new_source",
];

#[derive(Debug, Default)]
pub struct Call {
    /// The host's name for the event, if it expects JSON.
    pub event: Option<String>,
    /// Why a session starts: startup, resume, clear, compact.
    pub source: Option<String>,
    pub cwd: Option<PathBuf>,
    /// Whether a stop was already held; none if the host does not report it.
    pub again: Option<bool>,
    /// The user interrupted the agent.
    pub is_broken_off: bool,
    /// The host's own id of the conversation.
    pub conversation: Option<String>,
    /// The subagent that the event is about.
    pub subagent: Option<Subagent>,
    /// The user's request.
    pub prompt: Option<String>,
    /// The agent's last message.
    pub last_message: Option<String>,
    /// The path of the host's transcript.
    pub transcript: Option<PathBuf>,
    tool: String,
    input: Value,
}

/// An agent that another agent started within its conversation, as its host names it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Subagent {
    pub id: String,
    pub kind: Option<String>,
}

/// The effect of a tool call on one file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Deed {
    /// The file gets this text.
    Put {
        path: PathBuf,
        text: String,
    },
    /// Parts of the file are replaced.
    Edit {
        path: PathBuf,
        edits: Vec<Replacement>,
    },
    Patch {
        path: PathBuf,
        hunks: Vec<patch::Hunk>,
    },
    /// The file changes to a text that is unknown beforehand.
    Change {
        path: PathBuf,
    },
    /// The file grows by a text that is unknown beforehand.
    Grow {
        path: PathBuf,
    },
    Remove {
        path: PathBuf,
    },
    /// The effect applies to every file of the project that this word may name.
    Matching {
        how: shell::How,
        name: shell::Word,
    },
    /// The effect applies to the files that git lists in this folder.
    Listed {
        how: shell::How,
        folder: PathBuf,
        listing: Vec<String>,
    },
    /// The call does more than Quipu judges.
    TooMuch {
        what: String,
    },
}

impl Intent {
    fn deed(self, path: PathBuf) -> Deed {
        match self {
            Intent::Change | Intent::Move => Deed::Change { path },
            Intent::Grow => Deed::Grow { path },
            Intent::Remove => Deed::Remove { path },
        }
    }
}

/// Why a host's message cannot be parsed.
#[derive(Debug, PartialEq, Eq)]
pub enum Unread {
    Malformed(String),
    /// The message is about a tool, and the agent's input cannot be parsed. No tool needs such
    /// input, so it is not a fault of the host.
    Tool(String),
}

/// The fields that hold a tool's input.
const INPUTS: [&str; 8] = [
    "tool_input",
    "toolInput",
    "toolArgs",
    "tool_info",
    "parameters",
    "args",
    "input",
    "arguments",
];
/// The fields in which Cline nests what an event is about. `preToolUse` and `postToolUse` have every
/// value of the tool's input as a string, the first two have the input as the agent sent it.
const NESTED: [&str; 7] = [
    "tool_call",
    "tool_result",
    "preToolUse",
    "postToolUse",
    "userPromptSubmit",
    "taskStart",
    "taskResume",
];
/// Whether a host that names every agent says that this one has no parent.
fn is_main_agent(message: &Value) -> bool {
    ["parent_agent_id", "parentAgentId"]
        .iter()
        .any(|name| message.get(*name).is_some_and(Value::is_null))
}

/// The maximum nesting of a message.
const DEEPEST: usize = 120;

impl Call {
    pub fn parse(text: &str) -> Result<Call, Unread> {
        if text.trim().is_empty() {
            return Ok(Call::default());
        }
        if nests_too_deep(text) {
            return Err(too_deep());
        }
        let malformed = |e: serde_json::Error| {
            let what = format!("the host's JSON, line {}: {e}", e.line());
            if INPUTS
                .iter()
                .any(|name| text.contains(&format!("\"{name}\"")))
            {
                Unread::Tool(what)
            } else {
                Unread::Malformed(what)
            }
        };
        let value: Value = serde_json::from_str(&with_whole_characters(text)).map_err(malformed)?;
        if !value.is_object() {
            return Err(Unread::Malformed("the host's JSON is not an object".into()));
        }
        let nested = NESTED.iter().chain(&["tool_info"]);
        let places = std::iter::once(&value).chain(nested.filter_map(|n| value.get(*n)));
        let text = |names: &[&str]| {
            let found = |place: &Value| {
                names
                    .iter()
                    .find_map(|n| place.get(*n)?.as_str())
                    .map(str::to_owned)
            };
            places.clone().find_map(found)
        };
        let input = places
            .clone()
            .find_map(|place| INPUTS.iter().find_map(|n| place.get(*n)));
        let root = || {
            let roots = ["workspace_roots", "workspaceRoots"];
            let roots = roots.iter().find_map(|n| value.get(*n))?;
            roots.get(0)?.as_str().map(str::to_owned)
        };
        Ok(Call {
            event: text(&["hook_event_name", "hookEventName"]),
            source: text(&["source", "trigger"]),
            cwd: text(&["cwd", "workingDirectory", "directory", "workspace"])
                .or_else(root)
                .map(PathBuf::from),
            again: ["stop_hook_active", "stopHookActive"]
                .iter()
                .find_map(|n| value.get(*n)?.as_bool())
                .or_else(|| held_before(&value)),
            is_broken_off: is_broken_off(&value),
            conversation: text(&[
                "session_id",
                "sessionId",
                "sessionID",
                "conversation_id",
                "conversationId",
                "thread_id",
                "taskId",
                "trajectory_id",
            ]),
            subagent: text(&["agent_id", "agentId"])
                .filter(|_| !is_main_agent(&value))
                .map(|id| Subagent {
                    id,
                    kind: text(&["agent_type", "agentType"]),
                }),
            // goose calls it a message, and no other host uses that name for anything else here.
            prompt: text(&["prompt", "user_prompt", "userPrompt", "message"])
                .map(|text| without_context(&text).to_owned()),
            last_message: text(&[
                "last_assistant_message",
                "lastAssistantMessage",
                "prompt_response",
                "response",
            ]),
            transcript: text(&["transcript_path", "transcriptPath"]).map(PathBuf::from),
            tool: text(&["tool_name", "toolName", "mcp_tool_name", "tool"]).unwrap_or_default(),
            // Some hosts put a shell command next to the event itself.
            input: input
                .map_or_else(|| Ok(value.clone()), unwrapped)
                .map(with_inner_json)?,
        })
    }

    /// Whether it calls a tool that starts a subagent in a host whose hooks do not name agents.
    pub fn starts_nameless_subagent(&self) -> bool {
        self.subagent.is_none() && self.tool == GEMINI_AGENT
    }

    /// How often the host has written its whole conversation into its transcript. Gemini CLI does so
    /// when a conversation begins and after each compression; its hook for compressions comes with
    /// every request, also when nothing is compressed.
    pub fn rewrites(&self) -> Option<u64> {
        if !matches!(self.event.as_deref(), Some("AfterTool" | "BeforeAgent")) {
            return None;
        }
        let file = File::open(self.transcript.as_deref()?).ok()?;
        let is_file = file.metadata().is_ok_and(|found| found.is_file());
        let lines = BufReader::new(file.take(MOST_TRANSCRIPT)).split(b'\n');
        is_file.then(|| {
            lines
                .map_while(Result::ok)
                .filter(|line| line.starts_with(REWRITE))
                .count() as u64
        })
    }

    /// Whether it calls a tool of Quipu's own.
    pub fn is_own_tool(&self) -> bool {
        is_own_tool(&self.tool)
    }

    /// The commands of Quipu that it calls, as a tool or in a shell command, without their options:
    /// `finish`. A command that asks for help is left out.
    pub fn quipu_commands(&self, cwd: &Path) -> BTreeSet<String> {
        if self.is_own_tool() {
            let name = self.tool.rsplit_once("quipu").map(|(_, name)| name);
            return name
                .map(|name| name.trim_start_matches(JOINTS).to_owned())
                .into_iter()
                .collect();
        }
        self.quipu_lines()
            .iter()
            .flat_map(|line| shell::quipu_commands(line, cwd))
            .collect()
    }

    /// Whether it runs Quipu as a person, which only a person may do.
    pub fn claims_person(&self, cwd: &Path) -> bool {
        !self.is_own_tool()
            && self
                .quipu_lines()
                .iter()
                .any(|line| shell::claims_person(line, cwd))
    }

    /// The shell commands that mention Quipu.
    fn quipu_lines(&self) -> Vec<String> {
        let (mut lines, mut inputs) = (Vec::new(), vec![&self.input]);
        while let Some(input) = inputs.pop() {
            let texts = COMMANDS.iter().filter_map(|name| input.get(*name));
            let texts = texts.flat_map(|command| texts_in(command, |_| false));
            let texts = texts.map(|(_, text)| text.to_owned());
            lines.extend(texts.filter(|text| text.to_lowercase().contains("quipu")));
            match input {
                Value::Object(fields) => inputs.extend(fields.values()),
                Value::Array(items) => inputs.extend(items),
                _ => {}
            }
        }
        lines
    }

    /// Every effect on files that the call shows, in order. Quipu's own tools are judged when they
    /// run.
    pub fn deeds(&self, cwd: &Path) -> Vec<Deed> {
        if self.is_own_tool() {
            return Vec::new();
        }
        let mut deeds: Vec<Deed> = Vec::new();
        let mut files: Vec<(String, Intent)> = Vec::new();
        // A tool may take several files or commands at once, as a list of such inputs.
        let mut inputs: Vec<(&Value, Option<Intent>, bool)> = vec![(&self.input, None, false)];
        while let Some((input, outer, is_in_named)) = inputs.pop() {
            let intent = intent_of(&self.tool, input).or(outer);
            let paths = paths_in(input);
            // If a file is named, its text may quote a patch.
            let is_named = is_in_named || !paths.is_empty();
            let is_quoted = |name: &str| is_named && TEXTS.contains(&name);
            deeds.extend(
                texts_in(input, is_quoted)
                    .into_iter()
                    .flat_map(|(_, text)| patches(text))
                    .flat_map(patch::deeds),
            );
            let is_diff =
                |name: &str| matches!(name, "patch" | "diff") || !is_named && intent.is_some();
            deeds.extend(
                texts_in(input, is_quoted)
                    .iter()
                    .filter(|(name, _)| is_diff(name))
                    .flat_map(|(_, text)| patch::deeds_of_diff(text)),
            );
            deeds.extend(
                paths
                    .iter()
                    .flat_map(|path| file_deeds(Path::new(path), input, intent, cwd)),
            );
            deeds.extend(commands_in(input, cwd));
            let is_known = |name: &str| {
                TEXTS.contains(&name) || COMMANDS.contains(&name) || FOLDERS.contains(&name)
            };
            files.extend(intent.into_iter().flat_map(|intent| {
                files_in(input, cwd, is_known)
                    .into_iter()
                    .map(move |file| (file, intent))
            }));
            if matches!(intent, Some(Intent::Remove | Intent::Move)) {
                let is_known = |name: &str| TEXTS.contains(&name) || COMMANDS.contains(&name);
                deeds.extend(folders_in(input, cwd, is_known).into_iter().map(|folder| {
                    Deed::Remove {
                        path: folder.into(),
                    }
                }));
            }
            let nested: Vec<&Value> = match input {
                Value::Object(fields) => fields.values().collect(),
                Value::Array(items) => items.iter().collect(),
                _ => Vec::new(),
            };
            inputs.extend(
                nested
                    .into_iter()
                    .rev()
                    .filter(|value| value.is_object() || value.is_array())
                    .map(|value| (value, intent, is_named)),
            );
        }
        files.retain(|(file, _)| {
            !deeds.iter().any(|deed| {
                deed.path()
                    .is_some_and(|path| cwd.join(path) == cwd.join(file))
            })
        });
        deeds.extend(
            files
                .into_iter()
                .map(|(file, intent)| intent.deed(file.into())),
        );
        deeds
    }

    /// The folders that the tool may work in besides the host's own. A relative path is judged in
    /// each of them.
    pub fn folders(&self, cwd: &Path) -> Vec<PathBuf> {
        let mut folders = BTreeSet::new();
        let mut inputs = vec![&self.input];
        while let Some(input) = inputs.pop() {
            folders.extend(
                FOLDERS
                    .iter()
                    .filter_map(|name| input.get(*name)?.as_str())
                    .map(PathBuf::from),
            );
            // A patch is applied in the folder of the command that carries it.
            let commands = COMMANDS.iter().filter_map(|name| input.get(*name));
            let patches = commands
                .flat_map(|command| texts_in(command, |_| false))
                .filter_map(|(_, text)| patches(text));
            folders.extend(patches.flat_map(|command| shell::folders(command, cwd)));
            match input {
                Value::Object(fields) => inputs.extend(fields.values()),
                Value::Array(items) => inputs.extend(items),
                _ => {}
            }
        }
        folders.into_iter().collect()
    }
}

/// The possible effects of the fields on this file. A host reads some of the fields and ignores the
/// others, and it is unknown which: an agent may add fields that look harmless. Each interpretation
/// is therefore a deed of its own, and all are judged.
fn file_deeds(path: &Path, input: &Value, intent: Option<Intent>, cwd: &Path) -> Vec<Deed> {
    let texts = |names: &[&str]| {
        names
            .iter()
            .filter_map(|n| input.get(*n)?.as_str())
            .map(str::to_owned)
            .collect::<Vec<_>>()
    };
    let path = || path.to_owned();
    let mut deeds = Vec::new();
    for target in texts(&["destination", "new_path", "target"]) {
        deeds.extend([
            Deed::Remove { path: path() },
            Deed::Change {
                path: target.into(),
            },
        ]);
    }
    let edits = input
        .get("edits")
        .map(|edits| unwrapped(edits).unwrap_or_default())
        .unwrap_or_default();
    let listed = edits.as_array().map_or(&[][..], Vec::as_slice);
    for edits in [listed, std::slice::from_ref(input)]
        .into_iter()
        .flat_map(replacements)
    {
        deeds.push(Deed::Edit {
            path: path(),
            edits,
        });
    }
    let put = texts(&[
        "content",
        "contents",
        "new_content",
        "newContent",
        "file_text",
        "fileText",
    ]);
    deeds.extend(put.into_iter().map(|text| Deed::Put { path: path(), text }));
    if [
        "new_source",
        "insert_text",
        "insert_line",
        "patch",
        "diff",
        "code_edit",
    ]
    .iter()
    .any(|n| input.get(*n).is_some_and(|value| !value.is_null()))
    {
        deeds.push(Deed::Change { path: path() });
    }
    // A new text that replaces none is a whole file, or is inserted at a place that the host knows.
    for (old, new) in REPLACEMENTS {
        if let Some(text) = input.get(new).and_then(Value::as_str)
            && !input.get(old).is_some_and(Value::is_string)
        {
            deeds.push(match cwd.join(path()).exists() {
                true => Deed::Change { path: path() },
                false => Deed::Put {
                    path: path(),
                    text: text.to_owned(),
                },
            });
        }
    }
    // The fields may be about something else, so require a file that exists.
    if deeds.is_empty() && (intent == Some(Intent::Remove) || cwd.join(path()).exists()) {
        deeds.extend(intent.map(|intent| intent.deed(path())));
    }
    deeds
}

/// The files that the fields of a value name.
fn paths_in(input: &Value) -> BTreeSet<String> {
    PATHS
        .iter()
        .filter_map(|name| input.get(*name)?.as_str())
        .map(without_scheme)
        .collect()
}

/// The texts directly in a value, with their fields. The words of a list count as texts.
fn texts_in(input: &Value, is_left_out: impl Fn(&str) -> bool) -> Vec<(&str, &str)> {
    match input {
        Value::Object(fields) => {
            let kept = fields.iter().filter(|(name, _)| !is_left_out(name));
            kept.filter_map(|(name, value)| Some((name.as_str(), value.as_str()?)))
                .collect()
        }
        Value::Array(words) => words
            .iter()
            .filter_map(Value::as_str)
            .map(|text| ("", text))
            .collect(),
        Value::String(text) => vec![("", text)],
        _ => Vec::new(),
    }
}

/// The effects of the commands in the fields of a value.
fn commands_in(input: &Value, cwd: &Path) -> Vec<Deed> {
    let several = input.get(SEVERAL_COMMANDS).and_then(Value::as_array);
    let lines = several.into_iter().flatten().filter_map(Value::as_str);
    // A program with its arguments in a separate field.
    let words = input
        .get("args")
        .and_then(Value::as_array)
        .map(|words| words.iter().filter_map(Value::as_str));
    let deeds = |command: &Value| match command {
        Value::String(command) => {
            let words = words.clone().map(|words| {
                std::iter::once(command.as_str())
                    .chain(words)
                    .map(str::to_owned)
                    .collect::<Vec<_>>()
            });
            let mut deeds = shell::deeds(command, cwd);
            deeds.extend(
                words
                    .into_iter()
                    .flat_map(|words| shell::deeds_of_words(&words, cwd)),
            );
            deeds
        }
        Value::Array(words) => {
            let words: Vec<String> = words
                .iter()
                .filter_map(Value::as_str)
                .map(str::to_owned)
                .collect();
            shell::deeds_of_words(&words, cwd)
        }
        _ => Vec::new(),
    };
    COMMANDS
        .iter()
        .filter_map(|name| input.get(*name))
        .flat_map(deeds)
        .chain(lines.flat_map(|line| shell::deeds(line, cwd)))
        .collect()
}

/// Whether a tool is one of Quipu's own, in the spelling of the hosts: `mcp__quipu__write`,
/// `quipu_write`, `quipu.write`.
fn is_own_tool(tool: &str) -> bool {
    let Some((host, name)) = tool.rsplit_once("quipu") else {
        return false;
    };
    (host.is_empty() || host.ends_with(JOINTS))
        && name.starts_with(JOINTS)
        && is_tool(name.trim_start_matches(JOINTS))
}

/// The text, if it contains the first line of a patch.
fn patches(text: &str) -> Option<&str> {
    text.contains("*** Begin Patch").then_some(text)
}

/// A tool's input. Some hosts send it as JSON within a string.
fn unwrapped(input: &Value) -> Result<Value, Unread> {
    match input.as_str() {
        Some(text) if text.trim_start().starts_with(['{', '[']) => {
            if nests_too_deep(text) {
                return Err(too_deep());
            }
            serde_json::from_str(&with_whole_characters(text))
                .map_err(|e| Unread::Tool(format!("the tool's input is not JSON: {e}")))
        }
        _ => Ok(input.clone()),
    }
}

/// Parses inputs that are JSON within a string. A string that cannot be parsed stays a string.
fn with_inner_json(input: Value) -> Value {
    match input {
        Value::Object(fields) => {
            let inner = |(name, value): (String, Value)| {
                let is_input = value.is_string() && CALL_INPUTS.contains(&name.as_str());
                let value = if is_input {
                    unwrapped(&value).unwrap_or(value)
                } else {
                    value
                };
                (name, with_inner_json(value))
            };
            Value::Object(fields.into_iter().map(inner).collect())
        }
        Value::Array(items) => Value::Array(items.into_iter().map(with_inner_json).collect()),
        other => other,
    }
}

fn too_deep() -> Unread {
    Unread::Tool(format!(
        "the tool's input is nested deeper than {DEEPEST} levels"
    ))
}

/// Replaces each unpaired surrogate in the JSON. A truncated text has them, and the rest can still
/// be parsed.
fn with_whole_characters(text: &str) -> Cow<'_, str> {
    let unit = |at: usize| {
        let digits = text.get(at..at + 6)?.strip_prefix("\\u")?;
        u16::from_str_radix(digits, 16).ok()
    };
    let (mut whole, mut from, mut at) = (String::new(), 0, 0);
    while let Some(found) = text.get(at..).and_then(|rest| rest.find('\\')) {
        at += found;
        at += match (unit(at), unit(at + 6)) {
            (Some(0xd800..=0xdbff), Some(0xdc00..=0xdfff)) => 12,
            (Some(0xd800..=0xdfff), _) => {
                whole.push_str(&text[from..at]);
                whole.push_str("\\ufffd");
                from = at + 6;
                6
            }
            _ => 2,
        };
    }
    if from == 0 {
        Cow::Borrowed(text)
    } else {
        Cow::Owned(whole + &text[from..])
    }
}

/// Whether brackets outside of strings nest deeper than the limit. The text after a syntax error
/// does not count.
fn nests_too_deep(text: &str) -> bool {
    let (mut depth, mut is_text, mut bytes) = (0usize, false, text.bytes());
    while let Some(byte) = bytes.next() {
        match byte {
            b'\\' if is_text => drop(bytes.next()),
            b'"' => is_text = !is_text,
            b'{' | b'[' if !is_text => depth += 1,
            b'}' | b']' if !is_text => depth = depth.saturating_sub(1),
            _ => {}
        }
        if depth > DEEPEST {
            return true;
        }
    }
    false
}

/// Some hosts count how often a stop was answered with more work. An interrupted agent is not held
/// either.
fn held_before(value: &Value) -> Option<bool> {
    Some(value.get("loop_count")?.as_u64()? > 0 || is_broken_off(value))
}

/// The user's request without the text that a hook added. Gemini CLI puts that before the first
/// request.
fn without_context(prompt: &str) -> &str {
    match prompt
        .trim_start()
        .starts_with("<hook_context>")
        .then(|| prompt.rsplit_once("</hook_context>"))
        .flatten()
    {
        Some((_, asked)) => asked.trim_start(),
        None => prompt,
    }
}

fn is_broken_off(value: &Value) -> bool {
    value.get("loop_count").is_some()
        && value
            .get("status")
            .and_then(Value::as_str)
            .is_some_and(|status| status != "completed")
}

/// The replacements in some values, once for each spelling of the fields: a host knows one of them.
fn replacements(values: &[Value]) -> Vec<Vec<Replacement>> {
    let spelled = |(old, new): &(&str, &str)| {
        let replacement = |value: &Value| {
            let flag = |name: &str| value.get(name).and_then(Value::as_bool).unwrap_or(false);
            let many = value
                .get("expected_replacements")
                .and_then(Value::as_u64)
                .is_some_and(|n| n > 1);
            Some(Replacement {
                old: value.get(*old)?.as_str()?.to_owned(),
                new: value
                    .get(*new)
                    .and_then(Value::as_str)
                    .unwrap_or_default()
                    .to_owned(),
                all: flag("replace_all") || flag("replaceAll") || flag("allow_multiple") || many,
            })
        };
        values.iter().filter_map(replacement).collect::<Vec<_>>()
    };
    REPLACEMENTS
        .iter()
        .map(spelled)
        .filter(|edits| !edits.is_empty())
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn deeds(json: &str) -> Vec<Deed> {
        Call::parse(json).unwrap().deeds(Path::new("/nowhere"))
    }

    #[test]
    fn hosts_name_the_same_edit_differently() {
        let wanted = vec![Deed::Edit {
            path: "a.md".into(),
            edits: vec![Replacement {
                old: "x".into(),
                new: "y".into(),
                all: false,
            }],
        }];
        for json in [
            r#"{"tool_name":"Edit","tool_input":{"file_path":"a.md","old_string":"x","new_string":"y"}}"#,
            r#"{"tool_name":"replace","tool_input":{"file_path":"a.md","old_string":"x","new_string":"y"}}"#,
            r#"{"tool":"edit","args":{"filePath":"a.md","oldString":"x","newString":"y"}}"#,
            r#"{"tool_name":"developer__text_editor","tool_input":{"command":"str_replace","path":"a.md","old_str":"x","new_str":"y"}}"#,
            r#"{"tool_name":"mcp__fs__edit_file","tool_input":{"path":"a.md","edits":[{"oldText":"x","newText":"y"}]}}"#,
            r#"{"hook_event_name":"preToolUse","tool_name":"MCP:edit_file","tool_input":"{\"path\":\"a.md\",\"edits\":[{\"oldText\":\"x\",\"newText\":\"y\"}]}"}"#,
        ] {
            assert_eq!(deeds(json), wanted, "{json}");
        }
    }

    /// A host ignores fields that its tool does not have, and an agent may set them.
    #[test]
    fn fields_that_a_host_ignores_hide_nothing() {
        let put = Deed::Put {
            path: "a.md".into(),
            text: "gone".into(),
        };
        let edit = Deed::Edit {
            path: "a.md".into(),
            edits: vec![Replacement {
                old: "x".into(),
                new: "y".into(),
                all: false,
            }],
        };
        for (more, wanted) in [
            (
                r#""filePath":"a.md","content":"gone","file_path":"/tmp/x""#,
                &put,
            ),
            (r#""filePath":"a.md","content":"gone","edits":[]"#, &put),
            (
                r#""filePath":"a.md","content":"gone","old_string":"zzz""#,
                &put,
            ),
            (
                r#""filePath":"a.md","content":"gone","contents":"as it is""#,
                &put,
            ),
            (
                r#""filePath":"a.md","fileText":"gone","content":"as it is","target":"/tmp/x""#,
                &put,
            ),
            (
                r#""filePath":"a.md","oldString":"x","newString":"y","old_string":"zzz","content":"as it is""#,
                &edit,
            ),
            (
                r#""path":"a.md","edits":[{"oldText":"x","newText":"y","old_string":"zzz"}],"old_str":"zzz""#,
                &edit,
            ),
            (
                r#""cmd":"rm a.md","command":"ls""#,
                &Deed::Remove {
                    path: "a.md".into(),
                },
            ),
            (
                r#""files":[{"path":"b.md"},{"path":"a.md","content":"gone"}]"#,
                &put,
            ),
            (
                r#""path":"b.md","args":{"steps":[[{"path":"a.md","old_text":"x","new_text":"y"}]]}"#,
                &edit,
            ),
            (
                r#""commands":[{"command":["rm","a.md"]}]"#,
                &Deed::Remove {
                    path: "a.md".into(),
                },
            ),
        ] {
            let json = format!(r#"{{"tool_name":"write","tool_input":{{{more}}}}}"#);
            assert!(deeds(&json).contains(wanted), "{json}: {:?}", deeds(&json));
        }
    }

    #[test]
    fn a_request_is_what_the_user_typed() {
        let asked = |prompt: &str| {
            Call::parse(&serde_json::json!({ "prompt": prompt }).to_string())
                .unwrap()
                .prompt
                .unwrap()
        };
        assert_eq!(
            asked("<hook_context>## Now</hook_context>\n\nTie it."),
            "Tie it."
        );
        assert_eq!(asked("What is <hook_context>?"), "What is <hook_context>?");
    }

    #[test]
    fn reading_is_no_deed() {
        for json in [
            r#"{"tool_name":"Read","tool_input":{"file_path":"a.md"}}"#,
            r#"{"tool_name":"Grep","tool_input":{"pattern":"x","path":"."}}"#,
            r#"{"tool_name":"mcp__quipu__write","tool_input":{"path":"a.md","content":"x"}}"#,
            r#"{"tool_name":"Bash","tool_input":{"command":"cat a.md | sort"}}"#,
            "{}",
        ] {
            assert_eq!(deeds(json), [], "{json}");
        }
    }

    fn deeds_at(cwd: &Path, tool: &str, input: &str) -> Vec<Deed> {
        Call::parse(&format!(r#"{{"tool_name":"{tool}","tool_input":{input}}}"#))
            .unwrap()
            .deeds(cwd)
    }

    /// Tools with fields that no known host sends, but with names that describe their effect.
    #[test]
    fn a_tool_that_says_it_writes_is_judged_by_the_files_it_names() {
        let folder = tempfile::tempdir().unwrap();
        std::fs::write(folder.path().join("a.md"), "one\n").unwrap();
        std::fs::create_dir(folder.path().join("a.md.d")).unwrap();
        for (tool, input) in [
            ("memory", r#"{"command":"delete","path":"a.md"}"#),
            (
                "str_replace_editor",
                r#"{"command":"undo_edit","path":"a.md"}"#,
            ),
            (
                "batch",
                r#"{"operations":[{"type":"delete_file","path":"a.md"}]}"#,
            ),
            (
                "apply_patch",
                r#""*** Begin Patch\n*** Delete File: a.md\n*** End Patch""#,
            ),
            (
                "x",
                r#"{"args":{"input":"*** Begin Patch\n*** Delete File: a.md\n*** End Patch"}}"#,
            ),
            (
                "x",
                r#"{"diff":"--- a/a.md\n+++ b/a.md\n@@ -1 +1 @@\n-one\n+two\n"}"#,
            ),
            (
                "apply",
                r#"{"text":"--- a/a.md\n+++ /dev/null\n@@ -1 +0,0 @@\n-one\n"}"#,
            ),
            (
                "NotebookEdit",
                r#"{"notebook_path":"a.md","edit_mode":"delete","cell_id":"1"}"#,
            ),
            (
                "x",
                r#"{"path":"a.md","edits":"[{\"oldText\":\"one\",\"newText\":\"two\"}]"}"#,
            ),
            ("x", r#"{"uri":"file://a.md","new_content":"two"}"#),
            (
                "mcp__serena__replace_symbol_body",
                r#"{"relative_path":"a.md","name_path":"x","body":"two"}"#,
            ),
            (
                "mcp__serena__create_text_file",
                r#"{"relative_path":"a.md","content":"two"}"#,
            ),
            (
                "write_to_file",
                r#"{"TargetFile":"a.md","CodeContent":"two"}"#,
            ),
            ("delete_files", r#"{"paths":["b.md","a.md"]}"#),
            ("editor", r#"{"path":"a.md","new_text":"two"}"#),
            (
                "editor",
                r#"{"path":"a.md","new_text":"two","old_text":null}"#,
            ),
            (
                "editor",
                r#"{"path":"a.md","new_text":"two","insert_line":1}"#,
            ),
            ("run_commands", r#"{"commands":["ls","echo two > a.md"]}"#),
            ("saveFile", r#"{"where":"./a.md","data":"two"}"#),
            ("move", r#"{"from":"a.md","to":"b.md"}"#),
            ("rename_file", r#"{"src":"a.md","dst":"b.md"}"#),
            ("terminal", r#"{"command":"rm","args":["a.md"]}"#),
            (
                "apply_diff",
                r#"{"path":"/tmp/x","diff":"--- a/a.md\n+++ b/a.md\n@@ -1 +1 @@\n-one\n+two\n"}"#,
            ),
            (
                "apply",
                r#"{"diff":"--- i/a.md\n+++ w/a.md\n@@ -1 +1 @@\n-one\n+two\n"}"#,
            ),
            (
                "apply",
                r#"{"diff":"diff --git a/a.md b/b.md\nsimilarity index 100%\nrename from a.md\nrename to b.md\n"}"#,
            ),
            (
                "apply",
                r#"{"diff":"diff --git a/a.md b/a.md\ndeleted file mode 100644\nindex e69de29..0000000\n"}"#,
            ),
            (
                "batch",
                r#"{"calls":[{"tool":"delete_file","parameters":{"path":"a.md"}}]}"#,
            ),
            (
                "batch",
                r#"{"calls":[{"name":"rm","arguments":"{\"where\":\"a.md\"}"}]}"#,
            ),
            (
                "x",
                r#"{"arguments":"{\"path\":\"a.md\",\"content\":\"gone\"}"}"#,
            ),
            (
                "x",
                r#"{"params":"{\"path\":\"a.md\",\"content\":\"gone\"}"}"#,
            ),
            ("mv", r#"{"from":"a.md","to":"b.md"}"#),
            ("clear_file", r#"{"where":"a.md"}"#),
            ("write_stdin", r#"{"session_id":1,"chars":"rm a.md\n"}"#),
            ("write_file", r#"{"path":"file:a.md","content":"two"}"#),
            (
                "write_file",
                r#"{"path":"file://localhost/x/a.md","content":"two"}"#,
            ),
            (
                "write_file",
                r#"{"path":"file:///x/a%2emd","content":"two"}"#,
            ),
            // Folders
            ("delete", r#"{"folder":"a.md.d"}"#),
            ("delete_directory", r#"{"dir":"a.md.d"}"#),
            ("move", r#"{"from":"a.md.d","to":"x"}"#),
        ] {
            let deeds = deeds_at(folder.path(), tool, input);
            let is_seen = deeds.iter().any(|deed| {
                deed.path()
                    .is_some_and(|path| path.ends_with("a.md") || path.ends_with("a.md.d"))
            });
            assert!(is_seen, "{tool} {input}: {deeds:?}");
        }
    }

    #[test]
    fn a_tool_that_says_it_appends_lets_a_file_grow() {
        let folder = tempfile::tempdir().unwrap();
        std::fs::write(folder.path().join("a.md"), "one\n").unwrap();
        assert_eq!(
            deeds_at(
                folder.path(),
                "append_to_file",
                r#"{"name":"a.md","line":"two"}"#
            ),
            [Deed::Grow {
                path: "a.md".into()
            }]
        );
    }

    /// Tools of known hosts that change no file of the project, although they may name one.
    #[test]
    fn tools_of_hosts_that_write_no_file_are_not_judged() {
        let folder = tempfile::tempdir().unwrap();
        std::fs::write(folder.path().join("a.md"), "one\n").unwrap();
        for (tool, input) in [
            // Claude Code
            ("Read", r#"{"file_path":"a.md","offset":1,"limit":5}"#),
            ("Glob", r#"{"pattern":"**/*.md","path":"."}"#),
            (
                "Grep",
                r#"{"pattern":"replace","path":"a.md","glob":"a.md","output_mode":"content"}"#,
            ),
            ("LS", r#"{"path":"."}"#),
            ("NotebookRead", r#"{"notebook_path":"a.md"}"#),
            (
                "WebFetch",
                r#"{"url":"https://x.org/a.md","prompt":"What does a.md say?"}"#,
            ),
            ("WebSearch", r#"{"query":"a.md"}"#),
            (
                "TodoWrite",
                r#"{"todos":[{"content":"Update a.md","status":"pending","activeForm":"Updating a.md"}]}"#,
            ),
            (
                "Task",
                r#"{"description":"Review","prompt":"Read a.md","subagent_type":"general-purpose"}"#,
            ),
            ("ExitPlanMode", r#"{"plan":"Edit a.md"}"#),
            ("Skill", r#"{"skill":"a.md"}"#),
            ("BashOutput", r#"{"bash_id":"a.md"}"#),
            // Codex
            (
                "update_plan",
                r#"{"explanation":"a.md first","plan":[{"step":"Delete a.md","status":"in_progress"}]}"#,
            ),
            ("view_image", r#"{"path":"a.md"}"#),
            ("read_file", r#"{"file_path":"a.md","mode":"slice"}"#),
            ("list_dir", r#"{"dir_path":"."}"#),
            (
                "grep_files",
                r#"{"pattern":"one","include":"a.md","path":"."}"#,
            ),
            // Gemini CLI
            (
                "read_many_files",
                r#"{"include":["a.md"],"paths":["a.md"]}"#,
            ),
            (
                "search_file_content",
                r#"{"pattern":"one","include":"a.md"}"#,
            ),
            ("glob", r#"{"pattern":"a.md"}"#),
            ("google_web_search", r#"{"query":"a.md"}"#),
            ("web_fetch", r#"{"prompt":"Summarize a.md"}"#),
            ("save_memory", r#"{"fact":"The notes are in a.md"}"#),
            (
                "write_todos",
                r#"{"todos":[{"description":"Remove a.md","status":"pending"}]}"#,
            ),
            // opencode
            ("read", r#"{"filePath":"a.md"}"#),
            ("list", r#"{"path":"."}"#),
            (
                "todowrite",
                r#"{"todos":[{"content":"a.md: edit","status":"pending","priority":"high","id":"1"}]}"#,
            ),
            ("webfetch", r#"{"url":"https://x.org","format":"markdown"}"#),
            ("lsp", r#"{"operation":"hover","filePath":"a.md","line":1}"#),
            // Cursor
            (
                "codebase_search",
                r#"{"query":"a.md","target_directories":["."]}"#,
            ),
            ("read_lints", r#"{"paths":["a.md"]}"#),
            ("file_search", r#"{"query":"a.md"}"#),
            ("fetch_rules", r#"{"rule_names":["a.md"]}"#),
            // Editors with several commands, and servers of others
            (
                "str_replace_based_edit_tool",
                r#"{"command":"view","path":"a.md"}"#,
            ),
            ("str_replace_editor", r#"{"command":"view","path":"a.md"}"#),
            ("memory", r#"{"command":"view","path":"a.md"}"#),
            ("mcp__fs__read_text_file", r#"{"path":"a.md"}"#),
            ("mcp__fs__get_file_info", r#"{"path":"a.md"}"#),
            (
                "mcp__serena__find_symbol",
                r#"{"relative_path":"a.md","name_path":"x"}"#,
            ),
            (
                "mcp__memory__create_entities",
                r#"{"entities":[{"name":"a.md","entityType":"file"}]}"#,
            ),
            ("MCP:append", r#"{"path":"a.md","text":"x"}"#),
            ("mcp__git__git_status", r#"{"repo_path":"."}"#),
            (
                "mcp__git__delete_branch",
                r#"{"repo_path":".","directory":".","branch":"x"}"#,
            ),
            ("mcp__lsp__find", r#"{"name":"delete_file","path":"a.md"}"#),
        ] {
            assert_eq!(deeds_at(folder.path(), tool, input), [], "{tool} {input}");
        }
    }

    #[test]
    fn a_patch_that_is_quoted_hides_nothing() {
        let put = |text: &str| Deed::Put {
            path: "a.md".into(),
            text: text.into(),
        };
        assert_eq!(
            deeds(
                r#"{"tool_name":"Write","tool_input":{"file_path":"a.md","content":"*** Begin Patch\n"}}"#
            ),
            [put("*** Begin Patch\n")]
        );
        let edits = deeds(
            r#"{"tool_name":"MultiEdit","tool_input":{"file_path":"a.md","edits":[{"old_string":"x","new_string":"*** Begin Patch\n*** Delete File: b.md"}]}}"#,
        );
        assert!(matches!(edits[..], [Deed::Edit { .. }]), "{edits:?}");
        for json in [
            r#"{"tool_name":"Bash","tool_input":{"command":"rm a.md; echo '*** Begin Patch'"}}"#,
            r#"{"tool_name":"Bash","tool_input":{"command":"rm a.md","path":"."}}"#,
            r#"{"tool_name":"Bash","tool_input":{"command":"rm a.md","description":"*** Begin Patch"}}"#,
            r#"{"tool_name":"run_quipu_tests","tool_input":{"command":"rm a.md"}}"#,
            r#"{"tool_name":"apply_patch","tool_input":{"input":"*** Begin Patch\n*** Delete File: a.md\n*** End Patch"}}"#,
            r#"{"tool_name":"MultiEdit","tool_input":{"edits":[],"x":[{"input":"*** Begin Patch\n*** Delete File: a.md\n*** End Patch"}]}}"#,
            r#"{"tool_name":"shell","tool_input":{"command":["apply_patch","*** Begin Patch\n*** Delete File: a.md\n*** End Patch"]}}"#,
            r#"{"tool_name":"shell","tool_input":{"command":"apply_patch <<'E'\n*** Begin Patch\n*** Delete File: a.md\n*** End Patch\nE\n"}}"#,
        ] {
            assert_eq!(
                deeds(json),
                [Deed::Remove {
                    path: "a.md".into()
                }],
                "{json}"
            );
        }
    }

    #[test]
    fn tools_of_quipu_are_known_by_their_whole_name() {
        for tool in [
            "mcp__quipu__write",
            "quipu_write",
            "quipu.todo",
            "mcp_quipu_append",
            "MCP:quipu-finish",
        ] {
            assert!(is_own_tool(tool), "{tool}");
        }
        for tool in [
            "quipu",
            "run_quipu_tests",
            "unquipu_write",
            "quipuwrite",
            "mcp__quipu__rm",
            "write",
        ] {
            assert!(!is_own_tool(tool), "{tool}");
        }
    }

    #[test]
    fn nesting_is_told_from_a_message_that_is_cut_off() {
        let nested = |levels: usize| {
            format!(
                r#"{{"tool_input":{{"a":{}{}}}}}"#,
                "[".repeat(levels),
                "]".repeat(levels)
            )
        };
        assert!(Call::parse(&nested(DEEPEST - 2)).is_ok());
        assert_eq!(Call::parse(&nested(DEEPEST - 1)).err(), Some(too_deep()));
        assert_eq!(Call::parse(&nested(100_000)).err(), Some(too_deep()));
        let within = serde_json::json!({"tool_input": nested(200)}).to_string();
        assert_eq!(Call::parse(&within).err(), Some(too_deep()));
        let quoted = serde_json::json!({"tool_input": {"content": "[".repeat(1000)}}).to_string();
        assert!(Call::parse(&quoted).is_ok());
        assert!(matches!(
            Call::parse("{\"cwd\": {"),
            Err(Unread::Malformed(_))
        ));
    }

    #[test]
    fn what_cannot_be_read_of_a_tool_call_is_not_passed_over() {
        let removes = [Deed::Remove {
            path: "a.md".into(),
        }];
        for half in [
            "\\ud83d",
            "\\udc00",
            "\\ud83d\\ud83d\\ude00",
            "\\\\\\ud800 \\u0041",
        ] {
            let json = format!(
                r#"{{"tool_name":"Bash","tool_input":{{"command":"rm a.md","description":"x {half} y"}}}}"#
            );
            assert_eq!(deeds(&json), removes, "{half}");
            let within =
                serde_json::json!({"tool_name": "Bash", "tool_input": format!(r#"{{"command":"rm a.md","d":"{half}"}}"#)}).to_string();
            assert_eq!(deeds(&within), removes, "{half}");
        }
        for input in [
            r#"{"command":"rm a.md","timeout":1e999}"#,
            r#"{"command":"rm a.md","n":NaN}"#,
            r#"{"command":"rm a.md""#,
        ] {
            assert!(
                matches!(
                    Call::parse(&format!(r#"{{"tool_input":{input}}}"#)),
                    Err(Unread::Tool(_))
                ),
                "{input}"
            );
            let within = serde_json::json!({"tool_input": input}).to_string();
            assert!(
                matches!(Call::parse(&within), Err(Unread::Tool(_))),
                "{input}"
            );
        }
        // A surrogate pair is unchanged.
        assert_eq!(
            with_whole_characters(r#"{"a":"\ud83d\ude00"}"#),
            r#"{"a":"\ud83d\ude00"}"#
        );
    }

    #[test]
    fn a_shell_may_come_as_words() {
        let json =
            r#"{"tool_name":"shell","tool_input":{"command":["bash","-lc","echo x > a.md"]}}"#;
        assert_eq!(
            deeds(json),
            [Deed::Change {
                path: "a.md".into()
            }]
        );
    }
}
