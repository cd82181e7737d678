//! Generates the reference of the command line, `docs/cli.md`, from the table of operations.
//!
//! `QUIPU_RECORD=1 cargo test -p quipu reference` rewrites it.

use std::path::{Path, PathBuf};

use clap::{Arg, ArgAction, Command};

use crate::answer::exit;
use crate::cli::command;
use crate::table::TABLE;

const HEAD: &str =
    "<!-- Written from the table of operations: QUIPU_RECORD=1 cargo test -p quipu reference -->

# The command line

Data is written to stdout, messages to stderr. Paths are relative to the project root, not to the
current folder. An error message states the problem, the file, the rule and the command that fixes it:

```text
error: `meta/glossary.md` is append-only: existing bytes never change
  rule  profiles/book/profile.toml:135  path = \"meta/glossary.md\" class = \"append\"
  help  quipu append meta/glossary.md --text \"…\"     (a correction supersedes, it does not edit)
```
";

fn render() -> String {
    let root = command();
    let mut text = String::from(HEAD);
    text.push_str("\n## Exit codes\n\n| code | meaning |\n|---|---|\n");
    for (code, meaning) in exit::MEANINGS {
        text.push_str(&format!("| {code} | {meaning} |\n"));
    }
    text.push_str(
        "\nWith `--json` an error is an object on stdout, `{\"error\", \"rule\", \
        \"do\", \"exit\"}`, with the same code;\nan invalid contract adds `\"faults\"`.\n",
    );
    text.push_str("\n## Global options\n\nEvery command accepts these options.\n\n");
    text.push_str(&arguments(root.get_arguments()));
    text.push_str("\n## Commands\n\n| command | what it does |\n|---|---|\n");
    for operation in TABLE {
        text.push_str(&format!(
            "| [`{}`](#quipu-{}) | {} |\n",
            operation.name,
            operation.name.replace(' ', "-"),
            cell(operation.about)
        ));
    }
    for operation in TABLE {
        let found = operation
            .name
            .split(' ')
            .try_fold(&root, |command, word| command.find_subcommand(word));
        let found = found.expect("every row of the table is a command");
        text.push_str(&format!(
            "\n### quipu {}\n\n{}.\n\n```text\n{}\n```\n",
            operation.name,
            operation.about,
            usage(operation.name, found)
        ));
        let own = arguments(found.get_arguments());
        if !own.is_empty() {
            text.push_str(&format!("\n{own}"));
        }
    }
    text
}

fn usage(name: &str, command: &Command) -> String {
    let mut words = vec![format!("quipu {name}")];
    for argument in command.get_arguments().filter(|a| a.is_positional()) {
        let mut word = shown(argument);
        if argument.get_action().takes_values()
            && argument.get_num_args().is_some_and(|n| n.max_values() > 1)
        {
            word.push('…');
        }
        words.push(if argument.is_required_set() {
            word
        } else {
            format!("[{word}]")
        });
    }
    for argument in command.get_arguments().filter(|a| !a.is_positional()) {
        words.push(if argument.is_required_set() {
            shown(argument)
        } else {
            format!("[{}]", shown(argument))
        });
    }
    words.join(" ")
}

/// Formats `PATH`, `--at VERSION`, `-n N`.
fn shown(argument: &Arg) -> String {
    let value = argument
        .get_value_names()
        .and_then(|names| names.first())
        .map_or_else(
            || argument.get_id().as_str().to_uppercase(),
            ToString::to_string,
        );
    let name = match (argument.get_short(), argument.get_long()) {
        (_, Some(long)) => format!("--{long}"),
        (Some(short), None) => format!("-{short}"),
        (None, None) => return value,
    };
    if matches!(argument.get_action(), ArgAction::SetTrue) {
        name
    } else {
        format!("{name} {value}")
    }
}

fn arguments<'a>(arguments: impl Iterator<Item = &'a Arg>) -> String {
    let mut text = String::new();
    for argument in arguments.filter(|a| !a.is_hide_set()) {
        let short = argument
            .get_short()
            .filter(|_| argument.get_long().is_some())
            .map(|s| format!("`-{s}`, "))
            .unwrap_or_default();
        let help = argument
            .get_help()
            .map(ToString::to_string)
            .unwrap_or_default();
        let default = argument
            .get_default_values()
            .first()
            .map(|d| format!(" (default `{}`)", d.to_string_lossy()))
            .unwrap_or_default();
        let default = if matches!(argument.get_action(), ArgAction::SetTrue) {
            String::new()
        } else {
            default
        };
        text.push_str(&format!(
            "| {short}`{}` | {}{default} |\n",
            cell(&shown(argument)),
            cell(&help)
        ));
    }
    if text.is_empty() {
        text
    } else {
        format!("| argument | meaning |\n|---|---|\n{text}")
    }
}

fn cell(text: &str) -> String {
    text.replace('|', "\\|").replace('\n', " ")
}

fn repository() -> PathBuf {
    Path::new(&std::env::var("CARGO_MANIFEST_DIR").unwrap()).join("../..")
}

#[test]
fn the_reference_is_up_to_date() {
    let (file, wanted) = (repository().join("docs/cli.md"), render());
    if std::env::var_os("QUIPU_RECORD").is_some() {
        std::fs::create_dir_all(file.parent().unwrap()).unwrap();
        std::fs::write(&file, &wanted).unwrap();
    }
    let found = std::fs::read_to_string(&file).unwrap_or_default();
    let advice = "docs/cli.md is out of date: QUIPU_RECORD=1 cargo test -p quipu reference";
    assert!(
        found == wanted,
        "{advice}\n{}",
        quipu_protocol::render_difference("docs/cli.md", &found, "the table", &wanted)
    );
}

#[test]
fn every_argument_says_what_it_is() {
    for operation in TABLE {
        let command = (operation.augment)(Command::new("x"));
        for argument in command.get_arguments() {
            assert!(
                argument.get_help().is_some(),
                "{} {}",
                operation.name,
                argument.get_id()
            );
        }
    }
}

/// Planned commands that profiles may already name.
const COMING: [&str; 1] = ["ask"];

/// Returns the commands that a line of text suggests to type.
fn named(line: &str) -> impl Iterator<Item = &str> {
    line.match_indices("quipu ").filter_map(|(at, quipu)| {
        let typed = line[..at]
            .chars()
            .next_back()
            .is_none_or(|c| !c.is_alphanumeric() && !"/._-".contains(c));
        let rest = &line[at + quipu.len()..];
        let word = &rest[..rest
            .find(|c: char| !c.is_ascii_lowercase())
            .unwrap_or(rest.len())];
        (typed && !word.is_empty()).then_some(word)
    })
}

fn exists(command: &Command, word: &str) -> bool {
    command.find_subcommand(word).is_some() || COMING.contains(&word)
}

/// Every command in a profile's text must exist.
#[test]
fn profiles_name_commands_that_exist() {
    let root = command();
    let mut wrong = Vec::new();
    for name in quipu_protocol::Library::built_in() {
        for (file, text) in quipu_protocol::Library::files(&name) {
            for (number, line) in text.lines().enumerate() {
                let unknown = named(line).filter(|word| !exists(&root, word));
                wrong
                    .extend(unknown.map(|word| {
                        format!("profiles/{name}/{file}:{}: quipu {word}", number + 1)
                    }));
            }
        }
    }
    assert!(wrong.is_empty(), "{wrong:#?}");
}

fn transcripts() -> Vec<String> {
    let mut texts = Vec::new();
    for profile in std::fs::read_dir(repository().join("tests/scenarios")).unwrap() {
        for scenario in std::fs::read_dir(profile.unwrap().path()).unwrap() {
            texts.push(
                std::fs::read_to_string(scenario.unwrap().path().join("transcript")).unwrap(),
            );
        }
    }
    texts
}

/// Every command in a message must exist.
#[test]
fn messages_name_commands_that_exist() {
    let root = command();
    let mut told = 0;
    for line in transcripts()
        .iter()
        .flat_map(|t| t.lines())
        .filter(|l| l.trim_start_matches('!').trim_start().starts_with("help  "))
    {
        for word in named(line) {
            assert!(exists(&root, word), "{line}");
            told += 1;
        }
    }
    assert!(told > 50, "the scenarios show {told} such messages");
}

#[test]
fn every_operation_is_in_a_scenario() {
    let texts = transcripts();
    for operation in TABLE {
        let call = format!("quipu {}", operation.name);
        let mut commands = texts
            .iter()
            .flat_map(|t| t.lines())
            .filter(|l| l.starts_with("$ "));
        assert!(
            commands.any(|l| l.contains(&call)),
            "no scenario runs `{call}`"
        );
    }
}
