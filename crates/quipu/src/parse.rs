//! Parses a command line, with text that begins with a hyphen: `quipu todo add "--json is broken"`.
//!
//! A flag's name has letters, digits and hyphens. A word that begins with a hyphen and has anything
//! else before its first `=`, a blank for instance, is text. Clap takes every word that begins with
//! a hyphen for a flag unless an argument allows hyphens, and then a mistyped flag becomes the
//! argument. So a line with such text is parsed twice: first with the hyphens of the text removed,
//! which finds every other mistake, then with the text as it is and with arguments that allow
//! hyphens.

use std::ffi::{OsStr, OsString};

use clap::{Arg, ArgMatches, Command};

pub fn parse(command: Command, arguments: &[OsString]) -> Result<ArgMatches, clap::Error> {
    let options = arguments
        .iter()
        .position(|word| word == "--")
        .unwrap_or(arguments.len());
    if !arguments[..options].iter().any(|word| is_text(word)) {
        return command.try_get_matches_from(arguments);
    }
    // `-C"my folder"` contains a blank but is a flag with its value.
    if let Ok(matches) = command.clone().try_get_matches_from(arguments) {
        return Ok(matches);
    }
    command
        .clone()
        .try_get_matches_from(without_hyphens(arguments, options))?;
    let joined = join_values(&command, arguments, options);
    allow_hyphens(command).try_get_matches_from(joined)
}

fn is_text(word: &OsStr) -> bool {
    let Some(word) = word.to_str().filter(|word| word.starts_with('-')) else {
        return false;
    };
    let name = word.split('=').next().unwrap_or_default();
    !name
        .chars()
        .all(|c| c.is_ascii_alphanumeric() || c == '-' || c == '_')
}

/// Returns the command line with the hyphens of its texts removed.
fn without_hyphens(arguments: &[OsString], options: usize) -> Vec<OsString> {
    let bare = |(at, word): (usize, &OsString)| match word.to_str() {
        Some(text) if at < options && is_text(word) => {
            OsString::from(text.trim_start_matches('-').trim_start())
        }
        _ => word.clone(),
    };
    arguments.iter().enumerate().map(bare).collect()
}

/// Returns the command line with the text of each option joined to it: `--why=- so`.
fn join_values(command: &Command, arguments: &[OsString], options: usize) -> Vec<OsString> {
    let mut words: Vec<OsString> = Vec::with_capacity(arguments.len());
    for (at, word) in arguments.iter().enumerate() {
        match words.last_mut() {
            Some(option) if at < options && is_text(word) && takes_value(command, option) => {
                option.push("=");
                option.push(word);
            }
            _ => words.push(word.clone()),
        }
    }
    words
}

fn takes_value(command: &Command, option: &OsStr) -> bool {
    let is_it = |argument: &Arg| {
        argument
            .get_long()
            .is_some_and(|long| option.to_str() == Some(&format!("--{long}")))
    };
    let own = command
        .get_arguments()
        .any(|argument| is_it(argument) && argument.get_action().takes_values());
    own || command
        .get_subcommands()
        .any(|inner| takes_value(inner, option))
}

fn allow_hyphens(command: Command) -> Command {
    let allow = |argument: Arg| {
        if argument.is_positional() {
            argument.allow_hyphen_values(true)
        } else {
            argument
        }
    };
    command.mut_args(allow).mut_subcommands(allow_hyphens)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cli::command;

    fn parsed(line: &[&str]) -> Result<ArgMatches, clap::Error> {
        let line: Vec<OsString> = std::iter::once("quipu")
            .chain(line.iter().copied())
            .map(OsString::from)
            .collect();
        parse(command(), &line)
    }

    /// Returns the value that an argument of the innermost command got.
    fn value(line: &[&str], argument: &str) -> Option<String> {
        let matches = parsed(line).unwrap_or_else(|error| panic!("{line:?}: {error}"));
        let mut inner = &matches;
        while let Some((_, deeper)) = inner.subcommand() {
            inner = deeper;
        }
        inner
            .get_raw(argument)
            .and_then(|mut values| values.next())
            .map(|value| value.to_string_lossy().into_owned())
    }

    #[test]
    fn text_may_begin_with_hyphens() {
        let text = "--json is broken";
        for (line, argument) in [
            (&["todo", "add", text][..], "title"),
            (&["todo", "add", text, "--priority", "high"], "title"),
            (&["todo", "add", "--priority", "high", text], "title"),
            (
                &[
                    "todo",
                    "add",
                    "x",
                    "--description",
                    text,
                    "--priority",
                    "high",
                ],
                "description",
            ),
            (&["recall", text, "-k", "2"], "question"),
            (&["recall", "-k", "2", text], "question"),
            (&["decide", text, "--context", "x"], "title"),
            (&["decide", "x", "--context", text], "context"),
            (&["append", "a.md", "--text", text], "text"),
            (&["state", "set", "/phase", text], "value"),
            (&["delegate", "--task", text, "--expect", "x"], "task"),
            (&["delegate", "--task", "x", "--expect", text], "expect"),
            (&["report", "--result", "done", "--output", text], "output"),
            (&["finish", "--task", text, "--next", "x"], "task"),
            (&["ask", "a.md", text], "question"),
            (&["task", "start", text], "description"),
            (&["learn", text, "--to", "a.md#b"], "question"),
        ] {
            assert_eq!(value(line, argument).as_deref(), Some(text), "{line:?}");
        }
        assert_eq!(
            value(&["todo", "add", "- fix it"], "title").as_deref(),
            Some("- fix it")
        );
        assert_eq!(
            value(&["todo", "add", "--json坏了"], "title").as_deref(),
            Some("--json坏了")
        );
        assert_eq!(
            value(&["todo", "add", "--", "--json is broken"], "title").as_deref(),
            Some(text)
        );
        assert_eq!(
            value(&["todo", "add", "--", "--json"], "title").as_deref(),
            Some("--json")
        );
        assert_eq!(
            value(&["-Cmy folder", "todo", "add", "x"], "title").as_deref(),
            Some("x")
        );
    }

    #[test]
    fn flags_beside_text_are_still_flags() {
        let matches = parsed(&[
            "todo",
            "add",
            "--json is broken",
            "--priority",
            "high",
            "--json",
        ])
        .unwrap();
        let inner = matches
            .subcommand()
            .and_then(|(_, todo)| todo.subcommand())
            .map(|(_, add)| add)
            .unwrap();
        assert!(inner.get_flag("json"));
        assert_eq!(
            inner.get_one::<String>("priority").map(String::as_str),
            Some("high")
        );
    }

    #[test]
    fn mistyped_flags_are_mistakes() {
        for line in [
            &["todo", "add", "--priorty", "high", "x"][..],
            &["todo", "add", "--json is broken", "--priorty", "high"],
            &["todo", "add", "--priorty", "high", "--json is broken"],
            &["todo", "add", "--priorty=high", "--json is broken"],
            &["todo", "add", "--priorty"],
            &["recall", "--complet", "--json is broken"],
        ] {
            let error = parsed(line).map(|_| ()).unwrap_err();
            assert_eq!(
                error.kind(),
                clap::error::ErrorKind::UnknownArgument,
                "{line:?}: {error}"
            );
        }
    }
}
