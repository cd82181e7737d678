//! Converts an operation's command line to a JSON schema, and a call's arguments back to a command
//! line.

use std::any::TypeId;

use clap::error::{ContextKind, ContextValue, ErrorKind};
use clap::parser::ValueSource;
use clap::{Arg, ArgAction, ArgMatches, Command};
use serde_json::{Map, Value, json};

use crate::table::Operation;

/// The operation's own arguments.
pub fn command_of(operation: &Operation) -> Command {
    (operation.augment)(
        Command::new(operation.name)
            .about(operation.about)
            .no_binary_name(true)
            .disable_help_flag(true),
    )
}

/// Returns `in_progress` for `--in-progress`; for a positional argument, its value name.
pub fn property_name(argument: &Arg) -> String {
    argument
        .get_long()
        .map_or_else(|| argument.get_id().to_string(), str::to_owned)
        .replace('-', "_")
}

/// Returns an operation's arguments as properties of an object, and the required ones.
pub fn properties(operation: &Operation, left_out: &[&str]) -> (Map<String, Value>, Vec<String>) {
    let (mut properties, mut needed) = (Map::new(), Vec::new());
    for argument in command_of(operation).get_arguments() {
        let name = property_name(argument);
        if left_out.contains(&name.as_str()) {
            continue;
        }
        if argument.is_required_set() {
            needed.push(name.clone());
        }
        properties.insert(name, property(argument));
    }
    (properties, needed)
}

fn property(argument: &Arg) -> Value {
    let parser = argument.get_value_parser();
    let is_number = [
        TypeId::of::<u64>(),
        TypeId::of::<u32>(),
        TypeId::of::<usize>(),
    ]
    .iter()
    .any(|t| parser.type_id() == *t);
    let kind = match argument.get_action() {
        ArgAction::SetTrue => "boolean",
        _ if is_number => "integer",
        _ => "string",
    };
    let mut one = json!({"type": kind});
    let choices: Vec<String> = argument
        .get_possible_values()
        .iter()
        .map(|v| v.get_name().to_owned())
        .collect();
    if kind == "string" && !choices.is_empty() {
        one["enum"] = json!(choices);
    }
    let mut value = match argument.get_action() {
        ArgAction::Append => json!({"type": "array", "items": one}),
        _ => one,
    };
    if let Some(help) = argument.get_help() {
        value["description"] = json!(help.to_string());
    }
    value
}

/// Why a call does not fit its schema.
#[derive(Debug)]
pub struct Slip {
    pub what: String,
    /// The arguments that are missing or have no valid value.
    pub wrong: Vec<String>,
}

/// Parses the arguments of a call. Also returns them as words of a command line.
pub fn parse_call(
    operation: &Operation,
    given: &Map<String, Value>,
    left_out: &[&str],
) -> Result<(Vec<String>, ArgMatches), Slip> {
    let command = command_of(operation);
    let wrong = Vec::new();
    let words = words(&command, given, left_out).map_err(|what| Slip { what, wrong })?;
    let matches = command
        .clone()
        .try_get_matches_from(&words)
        .map_err(|error| slip_of(&command, &error))?;
    Ok((words, matches))
}

/// Describes an error of the command line by the names of the schema.
fn slip_of(command: &Command, error: &clap::Error) -> Slip {
    let mut command = command.clone();
    command.build();
    let name_of = |shown: &String| {
        let shown_by = |a: &&Arg| a.to_string() == *shown;
        command.get_arguments().find(shown_by).map(property_name)
    };
    let context = |kind| error.get(kind);
    match (error.kind(), context(ContextKind::InvalidArg)) {
        (ErrorKind::MissingRequiredArgument, Some(ContextValue::Strings(shown))) => {
            let wrong: Vec<String> = shown.iter().filter_map(name_of).collect();
            let named: Vec<String> = wrong.iter().map(|name| format!("`{name}`")).collect();
            let is = if named.len() == 1 { "is" } else { "are" };
            let what = format!("{} {is} missing", named.join(" and "));
            Slip { what, wrong }
        }
        (ErrorKind::InvalidValue, Some(ContextValue::String(shown))) => {
            let name = name_of(shown).unwrap_or_else(|| shown.clone());
            let wrong = vec![name.clone()];
            let what = match context(ContextKind::ValidValue) {
                Some(ContextValue::Strings(known)) if !known.is_empty() => {
                    format!("`{name}` must be one of {}", known.join(", "))
                }
                _ => format!("`{name}` has no valid value"),
            };
            Slip { what, wrong }
        }
        _ => {
            let wrong = Vec::new();
            let what = first_lines(error);
            Slip { what, wrong }
        }
    }
}

/// Converts words of a command line to the arguments of a call. None if they are not a valid call.
/// The words of an open command lack arguments.
pub fn arguments_of(
    operation: &Operation,
    words: &[String],
    left_out: &[&str],
    is_open: bool,
) -> Option<Map<String, Value>> {
    let command = command_of(operation).ignore_errors(is_open);
    let matches = parse(command.clone(), words).ok()?;
    let mut given = Map::new();
    for argument in command.get_arguments() {
        let (id, name) = (argument.get_id().as_str(), property_name(argument));
        if matches.value_source(id) != Some(ValueSource::CommandLine) {
            continue;
        }
        if left_out.contains(&name.as_str()) {
            return None;
        }
        let values = matches.get_raw(id).into_iter().flatten();
        let mut values: Vec<Value> = values.map(|v| json!(v.to_string_lossy())).collect();
        let value = match argument.get_action() {
            ArgAction::SetTrue => json!(true),
            ArgAction::Append => Value::Array(values),
            _ => values.pop()?,
        };
        given.insert(name, value);
    }
    Some(given)
}

/// Converts the arguments of a call to words of a command line.
fn words(
    command: &Command,
    given: &Map<String, Value>,
    left_out: &[&str],
) -> Result<Vec<String>, String> {
    let (mut words, mut alone) = (Vec::new(), Vec::new());
    for (name, value) in given {
        let argument = command
            .get_arguments()
            .find(|a| property_name(a) == *name)
            .filter(|_| !left_out.contains(&name.as_str()));
        let Some(argument) = argument else {
            let known: Vec<String> = command
                .get_arguments()
                .map(property_name)
                .filter(|n| !left_out.contains(&n.as_str()))
                .collect();
            return Err(format!(
                "unknown argument `{name}`; the arguments are {}",
                known.join(", ")
            ));
        };
        let values: Vec<&Value> = match value {
            Value::Array(values) => values.iter().collect(),
            Value::Null => continue,
            one => vec![one],
        };
        for value in values {
            let text = match value {
                Value::String(text) => text.clone(),
                Value::Bool(_) | Value::Number(_) => value.to_string(),
                _ => {
                    return Err(format!(
                        "`{name}` must be a text, a number or a list of them"
                    ));
                }
            };
            match (
                argument.get_action(),
                argument.get_long(),
                argument.get_short(),
            ) {
                (ArgAction::SetTrue, Some(long), _) if text == "true" => {
                    words.push(format!("--{long}"))
                }
                (ArgAction::SetTrue, ..) => {}
                (_, Some(long), _) => words.push(format!("--{long}={text}")),
                (_, None, Some(short)) => words.push(format!("-{short}={text}")),
                (_, None, None) => alone.push((argument.get_index().unwrap_or(usize::MAX), text)),
            }
        }
    }
    alone.sort_by_key(|(index, _)| *index);
    if !alone.is_empty() {
        words.push("--".to_owned());
        words.extend(alone.into_iter().map(|(_, text)| text));
    }
    Ok(words)
}

/// Parses the words for an operation, or returns the error.
pub fn matches(operation: &Operation, words: &[String]) -> Result<ArgMatches, String> {
    parse(command_of(operation), words)
}

fn parse(command: Command, words: &[String]) -> Result<ArgMatches, String> {
    command
        .try_get_matches_from(words)
        .map_err(|error| first_lines(&error))
}

fn first_lines(error: &clap::Error) -> String {
    let text = error.render().to_string();
    let first = text.split("\n\n").next().unwrap_or_default();
    first.trim_start_matches("error: ").trim_end().to_owned()
}
