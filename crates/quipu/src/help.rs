//! `quipu --help`: the commands by section, session commands first. Only commands that this
//! project's contract uses are shown.

use std::ffi::OsString;
use std::path::{Path, PathBuf};

use clap::Command;
use quipu_contract::{Contract, Form};
use quipu_protocol::Project;

use crate::table::{GROUPS, TABLE};
use crate::uses::has_what_it_needs;

const TITLE: &str = "Quipu: memory for AI agents in plain files, with rules that are enforced";

/// Shown with a description, if the project uses them.
const FIRST: &[&str] = &[
    "start", "finish", "recall", "todo", "decide", "task", "world", "run", "approve", "review",
    "check", "threads", "status",
];

/// Shown by name alone.
const SHORT: &[(&str, &[&str])] = &[
    (
        "more",
        &[
            "decisions",
            "note",
            "fact",
            "state",
            "delegate",
            "report",
            "collect",
            "knowledge",
            "sessions",
            "view",
            "brief",
            "replay",
        ],
    ),
    (
        "files",
        &[
            "read", "write", "append", "commit", "move", "remove", "amend",
        ],
    ),
    ("history", &["log", "show", "diff", "blame", "restore"]),
    (
        "project",
        &["init", "integrate", "contract", "verify", "doctor", "serve"],
    ),
];

/// Commands shown outside a project.
const BEGIN: &[&str] = &["init", "integrate", "profile list", "demo"];

/// Every command, for `--help --all`.
const SECTIONS: &[(&str, &[&str])] = &[
    (
        "Sessions",
        &[
            "start",
            "finish",
            "recall",
            "todo",
            "decide",
            "decisions",
            "note",
            "fact",
            "state",
            "delegate",
            "report",
            "collect",
        ],
    ),
    (
        "Tasks of one agent",
        &["task", "world", "knowledge", "sessions", "metrics"],
    ),
    (
        "Flows",
        &[
            "run", "worker", "fleet", "approve", "reject", "replay", "review", "view", "brief",
            "publish",
        ],
    ),
    (
        "Manuscripts",
        &[
            "check", "waive", "learn", "threads", "tension", "story", "links", "lint", "split",
            "ask",
        ],
    ),
    (
        "Files",
        &[
            "status", "read", "write", "append", "commit", "amend", "remove", "move", "lease",
        ],
    ),
    (
        "History",
        &[
            "log", "show", "diff", "blame", "restore", "verify", "doctor", "history", "capture",
            "head", "key",
        ],
    ),
    (
        "Project",
        &[
            "init",
            "integrate",
            "import",
            "contract",
            "profile",
            "trust",
            "eject",
            "self",
            "demo",
        ],
    ),
    ("Other machines", &["git", "sync", "checkout", "store"]),
    (
        "Programs",
        &["serve", "mcp", "hook", "memory-tool", "completions", "man"],
    ),
];

/// Flags of `finish` that matter only for some forms.
const FINISH_FLAGS: [(Form, &[&str]); 2] = [
    (
        Form::Session,
        &[
            "problem",
            "solution",
            "pattern",
            "learnt",
            "lesson",
            "cause",
            "cure",
            "improvement",
            "outcome",
        ],
    ),
    (Form::World, &["world", "replaces"]),
];

/// Hides the flags that this project does not use, when help is requested.
pub fn hide_unused(command: Command, arguments: &[OsString]) -> Command {
    let folder = arguments
        .iter()
        .skip_while(|word| *word != "-C")
        .nth(1)
        .map_or_else(|| PathBuf::from("."), PathBuf::from);
    if !arguments
        .iter()
        .any(|word| word == "--help" || word == "-h")
        || command.find_subcommand("finish").is_none()
    {
        return command;
    }
    let Found::Contract(contract) = load_contract(&folder) else {
        return command;
    };
    let unused = FINISH_FLAGS
        .iter()
        .filter(|(form, _)| contract.of_form(*form).next().is_none())
        .flat_map(|(_, flags)| flags.iter());
    let hide = |finish: Command| {
        unused.fold(finish, |finish, flag| {
            finish.mut_arg(flag, |arg| arg.hide(true))
        })
    };
    command.mut_subcommand("finish", hide)
}

/// A request for the overview: `quipu`, `quipu --help`, `quipu help`, with or without `--all`.
pub struct Overview {
    folder: PathBuf,
    all: bool,
    /// The call had no arguments: the overview is printed, and the call counts as a usage error.
    pub is_reminder: bool,
}

impl Overview {
    /// Returns `None` if the command line is another request.
    pub fn asked(arguments: &[OsString]) -> Option<Overview> {
        let mut overview = Overview {
            folder: PathBuf::from("."),
            all: false,
            is_reminder: true,
        };
        let mut words = arguments.iter().skip(1);
        while let Some(word) = words.next() {
            match word.to_str()? {
                "-h" | "--help" | "help" => overview.is_reminder = false,
                "--all" => overview.all = true,
                "-C" => overview.folder = PathBuf::from(words.next()?),
                _ => return None,
            }
        }
        (!overview.all || !overview.is_reminder).then_some(overview)
    }

    pub fn render(&self) -> String {
        match (self.all, load_contract(&self.folder)) {
            (true, _) => render_all(),
            (false, Found::Nothing) => render_beginning(),
            (false, Found::Contract(contract)) => {
                render_short(&|command| is_used(command, &contract))
            }
            (false, Found::Unreadable) => render_short(&|_| true),
        }
    }
}

enum Found {
    Nothing,
    Contract(Box<Contract>),
    /// A project with a faulty contract: all commands are shown.
    Unreadable,
}

fn load_contract(folder: &Path) -> Found {
    let Ok(root) = Project::find_root(folder) else {
        return Found::Nothing;
    };
    Project::load_contract(&root).map_or(Found::Unreadable, |contract| {
        Found::Contract(Box::new(contract))
    })
}

/// Whether a command, or a group of commands, is useful under this contract.
pub fn is_used(command: &str, contract: &Contract) -> bool {
    let has = |form: Form| contract.of_form(form).next().is_some();
    // The overview also omits commands that work everywhere but are seldom useful.
    has_what_it_needs(contract, command)
        && match command {
            "metrics" => has(Form::Session),
            "note" | "fact" => has(Form::State),
            "replay" => !contract.steps.is_empty(),
            "view" | "brief" => {
                contract.roles.values().any(|role| !role.reads.is_empty())
                    && !contract.steps.is_empty()
            }
            "tension" => has(Form::Threads),
            "check" | "waive" => has(Form::Waivers) || has(Form::Threads) || has(Form::Facts),
            _ => true,
        }
}

fn about(command: &str) -> &'static str {
    let row = TABLE
        .iter()
        .find(|row| row.name == command)
        .map(|row| row.about);
    row.or_else(|| {
        GROUPS
            .iter()
            .find(|(name, _)| *name == command)
            .map(|(_, about)| *about)
    })
    .unwrap_or_default()
}

fn line(command: &str) -> String {
    format!("  {command:<13} {}\n", about(command))
}

fn render_short(used: &dyn Fn(&str) -> bool) -> String {
    let mut text = format!("{TITLE}\n\n");
    FIRST
        .iter()
        .filter(|command| used(command))
        .for_each(|command| text.push_str(&line(command)));
    for (name, commands) in SHORT {
        let commands: Vec<&str> = commands
            .iter()
            .copied()
            .filter(|command| used(command))
            .collect();
        if !commands.is_empty() {
            text.push_str(&format!("  {name:<13} {}\n", commands.join(" ")));
        }
    }
    text + "\nquipu COMMAND --help explains a command; quipu --help --all lists all of them\n"
}

fn render_beginning() -> String {
    let mut text = format!("{TITLE}\n\nThis folder is not in a project. To create one:\n");
    BEGIN
        .iter()
        .for_each(|command| text.push_str(&line(command)));
    text + "\nquipu COMMAND --help explains a command; quipu --help --all lists all of them\n"
}

fn render_all() -> String {
    let mut text = format!("{TITLE}\n\nUsage: quipu [OPTIONS] COMMAND\n");
    for (name, commands) in SECTIONS {
        text.push_str(&format!("\n{name}:\n"));
        commands
            .iter()
            .for_each(|command| text.push_str(&line(command)));
    }
    let other: Vec<&str> = words()
        .into_iter()
        .filter(|word| !SECTIONS.iter().any(|(_, commands)| commands.contains(word)))
        .collect();
    if !other.is_empty() {
        text.push_str("\nOther:\n");
        other
            .iter()
            .for_each(|command| text.push_str(&line(command)));
    }
    text.push_str("\nOptions of every command:\n");
    for argument in crate::cli::common() {
        let name = argument
            .get_long()
            .map_or_else(|| "-C".to_owned(), |long| format!("--{long}"));
        let value = argument
            .get_value_names()
            .and_then(|names| names.first())
            .map(|name| format!(" {name}"))
            .unwrap_or_default();
        let help = argument
            .get_help()
            .map(ToString::to_string)
            .unwrap_or_default();
        text.push_str(&format!("  {:<18} {help}\n", name + &value));
    }
    text
}

/// Returns the first word of every command, without duplicates.
fn words() -> Vec<&'static str> {
    let mut words: Vec<&str> = TABLE
        .iter()
        .map(|row| row.name.split(' ').next().unwrap_or_default())
        .collect();
    words.sort_unstable();
    words.dedup();
    words
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_section_lists_commands_that_exist_and_all_lists_each_once() {
        let named = FIRST
            .iter()
            .chain(
                SHORT
                    .iter()
                    .chain(SECTIONS)
                    .flat_map(|(_, commands)| commands.iter()),
            )
            .chain(BEGIN);
        for command in named {
            assert!(!about(command).is_empty(), "{command}");
        }
        let all = render_all();
        for word in words() {
            assert_eq!(
                all.lines()
                    .filter(|l| l.starts_with(&format!("  {word} ")))
                    .count(),
                1,
                "{word}"
            );
        }
    }

    #[test]
    fn the_overview_is_asked_for_without_a_command() {
        let asked =
            |line: &[&str]| Overview::asked(&line.iter().map(OsString::from).collect::<Vec<_>>());
        assert!(asked(&["quipu"]).is_some_and(|o| o.is_reminder));
        assert!(asked(&["quipu", "--help", "--all"]).is_some_and(|o| o.all && !o.is_reminder));
        assert!(asked(&["quipu", "-C", "x", "-h"]).is_some_and(|o| o.folder == Path::new("x")));
        for line in [
            &["quipu", "--all"][..],
            &["quipu", "todo", "--help"],
            &["quipu", "help", "todo"],
            &["quipu", "--version"],
        ] {
            assert!(asked(line).is_none(), "{line:?}");
        }
    }
}
