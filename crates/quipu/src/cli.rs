//! The command line: parses arguments, prints data to stdout and messages to stderr, and sets the
//! exit code.

use std::env::VarError;
use std::ffi::{OsStr, OsString};
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use clap::{Arg, ArgAction, ArgMatches, Command};
use quipu_protocol::chinese;
use serde_json::Value;

use crate::answer::{Answer, Failure, exit};
use crate::examples::render_examples;
use crate::help::{Overview, hide_unused};
use crate::hook::{DENIED, UNJUDGED};
use crate::parse::parse;
use crate::session::{Names, Session, language_at};
use crate::table::{GROUPS, Operation, TABLE};
use crate::terminal;
use crate::usage_errors::misuse;

/// Operations that a host calls with the names of its agent.
const CALLED_BY_PROGRAMS: [&str; 2] = ["hook", "mcp"];

pub fn run(arguments: impl IntoIterator<Item = OsString>) -> ExitCode {
    let arguments: Vec<OsString> = arguments.into_iter().collect();
    if let Some(overview) = Overview::asked(&arguments) {
        return ExitCode::from(print_overview(&overview));
    }
    let word = first_word(&arguments);
    let command = match asks_version(&arguments) {
        true => command_with(&|_| false),
        false => command_of(word),
    };
    let matches = match parse(hide_unused(command, &arguments), &arguments) {
        Ok(matches) => matches,
        Err(error) => {
            return ExitCode::from(never_a_denial(
                word == Some("hook"),
                print_misuse(&error, &arguments),
            ));
        }
    };
    let (operation, inner) = called(&matches);
    let json = inner.get_flag("json");
    let language = || language_at(&folder_of(inner));
    let result = session(inner, operation.name).and_then(|session| {
        let session = Session { json, ..session };
        let result = (operation.call)(inner, &session);
        // An agent that makes no progress gets a notice beside the answer of this call.
        let told = session
            .watched
            .get()
            .map(|watched| watched.take(operation.name, &arguments, &result))
            .unwrap_or_default();
        told.into_iter().for_each(|warning| {
            let warning = format!("warning: {warning}");
            terminal::say(&chinese::in_language(language(), warning));
        });
        let refused = result.as_ref().err();
        let host = refused.and_then(|failure| session.explain_host(failure));
        let host = host.map(|told| chinese::in_language(language(), told));
        host.iter().for_each(|told| terminal::say(told));
        // An edit that this command replaced is always reported.
        let conflict_notice = session
            .conflict_notice
            .get()
            .and_then(|conflict_notice| conflict_notice.render(&result, json));
        let notices = conflict_notice.iter().flat_map(|told| told.lines());
        notices.for_each(|told| {
            terminal::say(&chinese::in_language(language(), told.to_owned()));
        });
        // A failure already reports the offline store.
        let offline = session.offline.get().filter(|_| result.is_ok());
        offline.iter().for_each(|told| terminal::say(told));
        result
    });
    // A caller that is refused before its operation begins has no session.
    let result = result.map_err(|failure| failure.in_language(language()));
    // A hook prints its own verdict. A failure before that must not count as a denial.
    let failed_early = operation.name == "hook" && result.is_err();
    ExitCode::from(never_a_denial(failed_early, print(result, json)))
}

/// Agent hosts treat exit 2 of a hook as a denial, so a hook with wrong arguments must not exit
/// with 2.
fn never_a_denial(hook_failed: bool, code: u8) -> u8 {
    if hook_failed && code == DENIED {
        UNJUDGED
    } else {
        code
    }
}

/// Returns true for `quipu --version`, which needs no subcommand.
fn asks_version(arguments: &[OsString]) -> bool {
    let [_, flag] = arguments else { return false };
    flag == "--version" || flag == "-V"
}

/// Returns the first word of a command line that is neither a flag nor a flag's value: the
/// operation or its group.
fn first_word(arguments: &[OsString]) -> Option<&str> {
    let mut words = arguments.iter().skip(1);
    while let Some(word) = words.next() {
        match word.to_str() {
            Some("-C" | "--as" | "--unit" | "--agent" | "--lease") => drop(words.next()),
            Some(flag) if flag.starts_with('-') => {}
            first => return first,
        }
    }
    None
}

/// Builds the whole command line from the table of operations.
pub fn command() -> Command {
    command_with(&|_| true)
}

/// Builds only the part of the command line for this operation or group, or all of it if the word
/// is unknown. Building all commands would take most of the time of a short one.
fn command_of(word: Option<&str>) -> Command {
    let known = TABLE
        .iter()
        .map(first_of)
        .find(|first| Some(*first) == word);
    known.map_or_else(command, |known| command_with(&|first| first == known))
}

fn first_of(operation: &Operation) -> &'static str {
    operation
        .name
        .split_once(' ')
        .map_or(operation.name, |(group, _)| group)
}

fn command_with(wanted: &dyn Fn(&str) -> bool) -> Command {
    let mut root = Command::new("quipu")
        .about("Memory for AI agents in plain files, with rules that are enforced")
        .version(env!("CARGO_PKG_VERSION"))
        .subcommand_required(true)
        .arg_required_else_help(true)
        .args(common());
    let mut groups: Vec<Command> = GROUPS
        .iter()
        .filter(|(name, _)| wanted(name))
        .map(|(name, about)| {
            Command::new(*name)
                .about(*about)
                .subcommand_required(true)
                .arg_required_else_help(true)
        })
        .collect();
    for operation in TABLE.iter().filter(|operation| wanted(first_of(operation))) {
        match operation.name.split_once(' ') {
            None => {
                root = root.subcommand((operation.augment)(
                    Command::new(operation.name)
                        .about(operation.about)
                        .after_help(render_examples(operation.name)),
                ))
            }
            Some((group, name)) => {
                for command in groups.iter_mut().filter(|g| g.get_name() == group) {
                    let inner = (operation.augment)(
                        Command::new(name)
                            .about(operation.about)
                            .after_help(render_examples(operation.name)),
                    );
                    *command = std::mem::take(command).subcommand(inner);
                }
            }
        }
    }
    groups.into_iter().fold(root, Command::subcommand)
}

/// Flags that every operation takes.
pub fn common() -> Vec<Arg> {
    let heading = "Everywhere";
    let text = |name: &'static str, value: &'static str, help: &'static str| {
        Arg::new(name)
            .long(name)
            .value_name(value)
            .help(help)
            .global(true)
            .help_heading(heading)
    };
    vec![
        Arg::new("json")
            .long("json")
            .action(ArgAction::SetTrue)
            .global(true)
            .help("Print data as JSON")
            .help_heading(heading),
        Arg::new("folder")
            .short('C')
            .value_name("DIR")
            .value_parser(clap::value_parser!(PathBuf))
            .global(true)
            .help("Run as if started in this folder")
            .help_heading(heading),
        text(
            "as",
            "ROLE",
            "Act as this role, or as a person [env: QUIPU_ROLE]",
        ),
        text("unit", "UNIT", "Act for this unit [env: QUIPU_UNIT]"),
        text(
            "agent",
            "NAME",
            "Act as the agent with this name [env: QUIPU_AGENT]",
        ),
        text("lease", "ID:FENCE", "Use this lease [env: QUIPU_LEASE]"),
    ]
}

fn called(matches: &ArgMatches) -> (&'static Operation, &ArgMatches) {
    let (first, inner) = matches.subcommand().expect("a subcommand is required");
    let (name, inner) = match inner.subcommand() {
        Some((second, inner)) => (format!("{first} {second}"), inner),
        None => (first.to_owned(), inner),
    };
    (
        TABLE
            .iter()
            .find(|o| o.name == name)
            .expect("every command comes from the table"),
        inner,
    )
}

fn folder_of(matches: &ArgMatches) -> PathBuf {
    let folder = matches.get_one::<PathBuf>("folder").cloned();
    folder.unwrap_or_else(|| PathBuf::from("."))
}

fn session(matches: &ArgMatches, operation: &str) -> Result<Session, Failure> {
    let flag = |name: &str| matches.get_one::<String>(name).cloned();
    let folder = folder_of(matches);
    if !folder.is_dir() {
        return Err(Failure::new(
            exit::NOT_FOUND,
            format!("folder `{}` does not exist", folder.display()),
            "",
        ));
    }
    let flags = Names {
        role: flag("as"),
        unit: flag("unit"),
        agent: flag("agent"),
        lease: flag("lease"),
        session: None,
    };
    // A name that is not UTF-8 still marks the caller as an agent, not a person.
    let variable = |name: &str| match std::env::var(name) {
        Err(VarError::NotUnicode(_)) => Err(Failure::usage(
            format!("{name} is not UTF-8"),
            format!("set {name} to a name, or unset it"),
        )),
        other => Ok(other.ok()),
    };
    let environment = Names {
        role: variable("QUIPU_ROLE")?,
        unit: variable("QUIPU_UNIT")?,
        agent: variable("QUIPU_AGENT")?,
        lease: variable("QUIPU_LEASE")?,
        session: variable("QUIPU_SESSION")?,
    };
    if !CALLED_BY_PROGRAMS.contains(&operation) {
        return Ok(Session::new(folder, flags, environment)?.with_names_of_host());
    }
    // The flags of a host's hooks and MCP server are its defaults; the environment overrides them
    // for a particular task.
    let environment = environment.without_person();
    Session::new(folder, flags.unless(&environment), environment)
}

fn print_overview(overview: &Overview) -> u8 {
    let text = overview.render();
    match overview.is_reminder {
        true => {
            terminal::say(text.trim_end());
            exit::USAGE
        }
        false => print(Ok(Answer::new(Value::Null, text)), false),
    }
}

/// Prints the requested help, or the error in the command line.
fn print_misuse(error: &clap::Error, arguments: &[OsString]) -> u8 {
    match misuse(error, arguments) {
        Some(failure) => {
            let at = arguments.iter().position(|word| word == "-C");
            let folder = at.and_then(|at| arguments.get(at + 1));
            let language = language_at(Path::new(folder.map_or(OsStr::new("."), OsString::as_ref)));
            let json = arguments.iter().any(|word| word == "--json");
            print(Err(failure.in_language(language)), json)
        }
        // Help does not repeat the user's input, so clap may print it with colours.
        None => {
            let _ = error.print();
            if error.use_stderr() {
                exit::USAGE
            } else {
                exit::FINE
            }
        }
    }
}

/// Prints an answer. A closed pipe is not an error: the reader has all it wanted.
fn print(result: Result<Answer, Failure>, json: bool) -> u8 {
    match result {
        Ok(answer) => {
            answer.talk.iter().for_each(|line| terminal::say(line));
            let written = match (json, answer.raw) {
                (true, _) if answer.compact => terminal::show_json(&answer.json.to_string()),
                (true, _) => terminal::show_json(&format!("{:#}", answer.json)),
                (false, Some(raw)) => terminal::show_bytes(&raw),
                (false, None) if answer.text.is_empty() || answer.text.ends_with('\n') => {
                    terminal::show_text(&answer.text)
                }
                (false, None) => terminal::show_text(&format!("{}\n", answer.text)),
            };
            match written {
                Err(error) if error.kind() != std::io::ErrorKind::BrokenPipe => {
                    terminal::say(&format!("quipu: cannot write the answer: {error}"));
                    exit::IO
                }
                _ => answer.exit,
            }
        }
        Err(failure) => {
            if json {
                let _ = terminal::show_json(&format!("{:#}", failure.json()));
            } else {
                terminal::say(&failure.render());
            }
            failure.exit
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_command_line_is_sound() {
        command().debug_assert();
    }

    #[test]
    fn every_row_of_the_table_can_be_called() {
        let command = command();
        for operation in TABLE {
            let mut found = Some(&command);
            for word in operation.name.split(' ') {
                found = found.and_then(|c| c.find_subcommand(word));
            }
            assert!(found.is_some(), "{}", operation.name);
        }
    }

    #[test]
    fn a_part_of_the_command_line_says_what_the_whole_says() {
        let said = |command: Command, line: &[&str]| {
            command
                .try_get_matches_from(line)
                .map(|_| ())
                .map_err(|error| error.to_string())
        };
        for flag in ["--version", "-V"] {
            let line = ["quipu", flag];
            assert!(asks_version(&line.map(OsString::from)));
            let version = said(command_with(&|_| false), &line);
            assert_eq!(version, said(command(), &line));
            assert!(version.is_err_and(|text| text.starts_with("quipu ")));
        }
        for operation in TABLE {
            for tail in [&["--help"][..], &["--no-such-flag"], &[], &["no-such-word"]] {
                let line: Vec<&str> = ["quipu", "-C", "."]
                    .into_iter()
                    .chain(operation.name.split(' '))
                    .chain(tail.iter().copied())
                    .collect();
                let arguments: Vec<OsString> = line.iter().map(OsString::from).collect();
                assert_eq!(
                    said(command_of(first_word(&arguments)), &line),
                    said(command(), &line),
                    "{line:?}"
                );
            }
        }
    }
}
