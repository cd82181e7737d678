//! Decides which commands a project can use. A command that needs files of a form, or a flow, is
//! refused if the profiles have none. The refusal names the profiles that have it and the command
//! to use instead.

use quipu_contract::{Contract, Form, ProfileFile, Source};
use quipu_protocol::{Library, Project};

use crate::answer::{Failure, exit};
use crate::session::Session;

/// The requirement of a command on the contract.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Need {
    Form(Form),
    /// Steps.
    Flow,
}

/// Commands by their first word. All others work in every project.
const NEEDS: [(&str, Need); 21] = [
    ("todo", Need::Form(Form::Todos)),
    ("state", Need::Form(Form::State)),
    ("decide", Need::Form(Form::Decisions)),
    ("decisions", Need::Form(Form::Decisions)),
    ("delegate", Need::Form(Form::Delegation)),
    ("report", Need::Form(Form::Delegation)),
    ("collect", Need::Form(Form::Delegation)),
    ("task", Need::Form(Form::Task)),
    ("world", Need::Form(Form::World)),
    ("knowledge", Need::Form(Form::Knowledge)),
    ("sessions", Need::Form(Form::Session)),
    ("threads", Need::Form(Form::Threads)),
    ("story", Need::Form(Form::Chronicle)),
    ("learn", Need::Form(Form::Facts)),
    ("publish", Need::Form(Form::Chapter)),
    ("review", Need::Form(Form::Panel)),
    ("run", Need::Flow),
    ("worker", Need::Flow),
    ("fleet", Need::Flow),
    ("approve", Need::Flow),
    ("reject", Need::Flow),
];

/// The refusal of a command that a project's profiles do not use.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Alternative {
    /// The command without its arguments: `task`.
    pub command: &'static str,
    /// The built-in profiles that use it.
    pub profiles: Vec<String>,
    /// The replacement here, if the project's profiles name one.
    pub here: Option<String>,
}

fn need_of(operation: &str) -> Option<(&'static str, Need)> {
    let first = operation.split(' ').next().unwrap_or_default();
    NEEDS.into_iter().find(|(command, _)| *command == first)
}

/// Whether a contract meets the requirement of an operation.
pub fn has_what_it_needs(contract: &Contract, operation: &str) -> bool {
    match need_of(operation) {
        Some((_, Need::Form(form))) => contract.of_form(form).next().is_some(),
        Some((_, Need::Flow)) => !contract.steps.is_empty(),
        None => true,
    }
}

/// Whether a project uses an operation of the table; if not, returns the alternative.
pub fn is_used(contract: &Contract, operation: &str) -> Result<(), Alternative> {
    let Some((command, need)) =
        need_of(operation).filter(|_| !has_what_it_needs(contract, operation))
    else {
        return Ok(());
    };
    let here = contract
        .profiles
        .iter()
        .find_map(|profile| profile.instead.get(command).cloned());
    Err(Alternative {
        command,
        profiles: profiles_with(need),
        here,
    })
}

/// Refuses an operation that the project of the call does not use. Without a project, or with a
/// faulty contract, the operation itself reports the problem.
pub fn refuse_foreign(operation: &str, session: &Session) -> Result<(), Failure> {
    if need_of(operation).is_none() {
        return Ok(());
    }
    let Ok(root) = Project::find_root(&session.folder) else {
        return Ok(());
    };
    let Ok(contract) = Project::load_contract(&root) else {
        return Ok(());
    };
    is_used(&contract, operation).map_err(|alternative| alternative.into_failure(&contract))
}

impl Alternative {
    fn into_failure(self, contract: &Contract) -> Failure {
        let command = self.command;
        let own = contract
            .profiles
            .iter()
            .map(|profile| profile.name.as_str())
            .collect::<Vec<_>>()
            .join(", ");
        let here = if own.is_empty() {
            "this project has no profile".to_owned()
        } else {
            format!("this project is {own}")
        };
        let what = match self.profiles.is_empty() {
            true => format!("`quipu {command}` is not used here: {here}"),
            false => format!(
                "`quipu {command}` belongs to {}; {here}",
                self.profiles.join(", ")
            ),
        };
        Failure::new(
            exit::NOT_FOUND,
            what,
            self.here.unwrap_or_else(|| {
                "quipu start --peek     (shows what to do in this project)".to_owned()
            }),
        )
    }
}

/// Returns the built-in profiles that declare a file of a form, or steps.
fn profiles_with(need: Need) -> Vec<String> {
    let has_it = |file: &ProfileFile| match need {
        Need::Form(form) => file
            .files
            .iter()
            .any(|rule| rule.get_ref().form == Some(form)),
        Need::Flow => !file.steps.is_empty(),
    };
    let library = Library::of(std::path::Path::new("."));
    let parts = |name: &String| -> Vec<ProfileFile> {
        let files = Library::files(name)
            .into_iter()
            .filter(|(file, _)| file.ends_with(".toml") && !file.contains('/'));
        files
            .filter_map(|(file, _)| {
                library
                    .load(name, &file)
                    .ok()
                    .and_then(|source: Source| source.parse().ok())
            })
            .collect()
    };
    Library::built_in()
        .into_iter()
        .filter(|name| parts(name).iter().any(has_it))
        .collect()
}

#[cfg(test)]
mod tests {
    use quipu_contract::Language;

    use super::*;
    use crate::table::TABLE;

    fn contract(profile: &str) -> Contract {
        let library = Library::of(std::path::Path::new("."));
        let source = Source::new(
            "quipu.toml",
            format!("quipu = 1\nprofiles = [\"{profile}\"]\n"),
        );
        quipu_contract::resolve_contract(&source, &|name, file| library.load(name, file)).unwrap()
    }

    #[test]
    fn every_command_of_the_list_is_an_operation_and_belongs_to_a_profile() {
        for (command, need) in NEEDS {
            assert!(
                TABLE
                    .iter()
                    .any(|operation| operation.name.split(' ').next() == Some(command)),
                "{command}"
            );
            assert!(!profiles_with(need).is_empty(), "{command}");
        }
    }

    #[test]
    fn a_command_of_another_profile_is_named_with_what_to_use_here() {
        assert_eq!(is_used(&contract("relay"), "todo add"), Ok(()));
        let alternative = is_used(&contract("relay"), "task start").unwrap_err();
        assert_eq!(
            (alternative.command, alternative.profiles.as_slice()),
            ("task", &["worldlog".to_owned()][..])
        );
        assert_eq!(alternative.here.as_deref(), Some("quipu todo add \"…\""));
        for profile in Library::built_in() {
            let contract = contract(&profile);
            for alternative in NEEDS
                .iter()
                .filter_map(|(command, _)| is_used(&contract, command).err())
            {
                assert!(
                    alternative.here.is_some(),
                    "{profile} does not say what to use for `{}`",
                    alternative.command
                );
            }
            let named = contract.profiles[0].instead.keys();
            named.for_each(|command| {
                assert!(
                    is_used(&contract, command).is_err(),
                    "{profile}: `{command}` is used there"
                )
            });
            assert!(
                !contract.profiles[0]
                    .guide
                    .in_language(Language::Zh)
                    .is_empty(),
                "{profile} has no guide"
            );
        }
    }
}
