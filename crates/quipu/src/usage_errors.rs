//! Reports an invalid command line: the error, the probable intention, and a call that works.

use std::ffi::OsString;

use clap::error::{ContextKind, ContextValue, ErrorKind};
use clap::{Arg, Command};
use quipu_contract::{did_you_mean, nearest};

use crate::answer::Failure;
use crate::cli::common;
use crate::examples::first_example;
use crate::shell_word::shell_word;
use crate::table::{GROUPS, Operation, TABLE};

/// Returns the error of a command line; `None` if help or the version was requested.
pub fn misuse(error: &clap::Error, arguments: &[OsString]) -> Option<Failure> {
    use ErrorKind as Kind;
    let said = |kind: ContextKind| error.get(kind).map(ToString::to_string).unwrap_or_default();
    let called = called(arguments);
    let help = || help_for(called);
    Some(match error.kind() {
        Kind::DisplayHelp
        | Kind::DisplayVersion
        | Kind::DisplayHelpOnMissingArgumentOrSubcommand => return None,
        Kind::InvalidSubcommand => {
            unknown_command(&said(ContextKind::InvalidSubcommand), arguments)
        }
        Kind::UnknownArgument => {
            let word = said(ContextKind::InvalidArg);
            let known = flags_of(called);
            match word.starts_with('-') {
                true => Failure::usage(
                    format!(
                        "unknown flag `{word}`{}",
                        did_you_mean(&word, known.iter().map(String::as_str))
                    ),
                    help(),
                ),
                false => unexpected(&word, called, arguments).unwrap_or_else(|| {
                    Failure::usage(
                        format!(
                            "unexpected argument `{word}`: quote a text that has several words"
                        ),
                        help(),
                    )
                }),
            }
        }
        Kind::MissingRequiredArgument => {
            let missing = said(ContextKind::InvalidArg);
            // A required option is missing beside given ones; the usage line shows which belong
            // together.
            let usage = said(ContextKind::Usage)
                .trim_start_matches("Usage: ")
                .to_owned();
            let remedy = if missing.starts_with('-') && !usage.is_empty() {
                usage
            } else {
                help()
            };
            Failure::usage(format!("missing: {missing}"), remedy)
        }
        Kind::InvalidValue if said(ContextKind::InvalidValue).is_empty() => Failure::usage(
            format!("`{}` needs a value", said(ContextKind::InvalidArg)),
            help(),
        ),
        Kind::InvalidValue => {
            let (argument, value) = (
                said(ContextKind::InvalidArg),
                said(ContextKind::InvalidValue),
            );
            let allowed = match error.get(ContextKind::ValidValue) {
                Some(ContextValue::Strings(allowed)) => allowed.clone(),
                _ => Vec::new(),
            };
            let near = did_you_mean(&value, allowed.iter().map(String::as_str));
            let listed = if allowed.is_empty() {
                String::new()
            } else {
                format!(", which takes {}", allowed.join(", "))
            };
            Failure::usage(
                format!("`{value}` is not valid for `{argument}`{listed}{near}"),
                help(),
            )
        }
        _ => Failure::usage(first_paragraph(error), help()),
    })
}

/// A second file of a command that takes one.
fn unexpected(word: &str, called: Option<&Operation>, arguments: &[OsString]) -> Option<Failure> {
    let operation = called?;
    let command = (operation.augment)(Command::new(operation.name));
    let first = command.get_positionals().next()?;
    let takes_files = first
        .get_value_names()?
        .iter()
        .any(|name| name.contains("FILE") || name.contains("PATH"));
    let at = arguments.iter().position(|argument| argument == word)?;
    let before = arguments[at - 1].to_str()?;
    let is_file = !before.starts_with('-') && operation.name.split(' ').all(|one| one != before);
    (takes_files && is_file).then(|| {
        let name = operation.name;
        Failure::usage(
            format!("unexpected argument `{word}`: `quipu {name}` takes one file"),
            format!(
                "quipu {name} {}; quipu {name} {}",
                shell_word(before),
                shell_word(word)
            ),
        )
    })
}

/// Returns the operation that a command line names, as far as its words match.
fn called(arguments: &[OsString]) -> Option<&'static Operation> {
    let mut words = arguments.iter().skip(1).filter_map(|word| word.to_str());
    let first = words.find(|word| {
        TABLE
            .iter()
            .any(|row| row.name.split(' ').next() == Some(word))
    })?;
    let row = |name: &str| TABLE.iter().find(|row| row.name == name);
    row(first).or_else(|| row(&format!("{first} {}", words.next()?)))
}

/// Returns a call that works, and the command that explains the rest.
fn help_for(called: Option<&Operation>) -> String {
    match called {
        Some(operation) => {
            let how = format!("quipu {} --help", operation.name);
            first_example(operation.name)
                .map_or(how.clone(), |example| format!("{example}     ({how})"))
        }
        None => "quipu --help".to_owned(),
    }
}

fn unknown_command(word: &str, arguments: &[OsString]) -> Failure {
    let group = GROUPS
        .iter()
        .map(|(name, _)| *name)
        .find(|name| arguments.iter().any(|word| word == name));
    let known: Vec<&str> = match group {
        Some(group) => TABLE
            .iter()
            .filter_map(|row| row.name.strip_prefix(group)?.strip_prefix(' '))
            .collect(),
        None => TABLE
            .iter()
            .map(|row| row.name)
            .filter(|name| !name.contains(' '))
            .chain(GROUPS.map(|(name, _)| name))
            .collect(),
    };
    let prefix = group.map(|group| format!("{group} ")).unwrap_or_default();
    let near = nearest(word, known);
    let meant = near
        .map(|near| format!(": did you mean `{prefix}{near}`?"))
        .unwrap_or_default();
    let help = near.map_or_else(
        || format!("quipu {prefix}--help"),
        |near| format!("quipu {prefix}{near} --help"),
    );
    Failure::usage(format!("unknown command `{prefix}{word}`{meant}"), help)
}

/// Returns the flags of a command: its own and the common ones.
fn flags_of(called: Option<&Operation>) -> Vec<String> {
    let own = called.map(|operation| (operation.augment)(Command::new(operation.name)));
    let own: Vec<Arg> = own
        .iter()
        .flat_map(|command| command.get_arguments().cloned())
        .collect();
    own.into_iter()
        .chain(common())
        .filter_map(|argument| argument.get_long().map(|long| format!("--{long}")))
        .collect()
}

/// Returns the first paragraph of clap's message as one line, without its label.
fn first_paragraph(error: &clap::Error) -> String {
    let text = error.render().to_string();
    let first = text
        .split("\n\n")
        .next()
        .unwrap_or_default()
        .trim_start_matches("error: ");
    first.split_whitespace().collect::<Vec<_>>().join(" ")
}
