//! Checks the rules of a project, and its files with a form, in the state that a change would
//! leave.
//!
//! The store calls it as its `RuleBook` before a commit, so that no commit leaves rules that cannot
//! be resolved.

use std::path::{Path, PathBuf};

use quipu_contract::{Contract, Faults, Form, MANIFEST, ProjectPath, Source, resolve_contract};
use quipu_store::{Changed, FormFault, RuleBook};
use quipu_text::{covered_line, hidden_line, may_open_block, open_block};

use crate::project::library::Library;
use crate::project::open::{not_utf8, read_manifest};
use crate::session::error::WorkError;
use crate::session::state::check_state;
use crate::session::todos::parse_todos;

/// The rules of the project in a folder.
pub(crate) struct Rules {
    root: PathBuf,
}

impl Rules {
    pub(crate) fn of(root: &Path) -> Rules {
        Rules {
            root: root.to_owned(),
        }
    }
}

impl RuleBook for Rules {
    fn check(&self, changed: &Changed) -> Result<(), Faults> {
        let library = Library::of(&self.root);
        let text = match changed.get(MANIFEST) {
            Some(text) => text.clone().unwrap_or_default(),
            None => read_manifest(&self.root).unwrap_or_default(),
        };
        let text = String::from_utf8(text).map_err(|error| not_utf8(MANIFEST, &error))?;
        let load = |name: &str, file: &str| {
            let shown = Library::shown(name, file);
            match changed
                .get(shown.as_str())
                .filter(|_| Library::is_folder(name))
            {
                Some(Some(text)) => Ok(Source::new(
                    shown,
                    String::from_utf8_lossy(text).into_owned(),
                )),
                Some(None) => Err(format!("no file `{shown}`")),
                None => library.load(name, file),
            }
        };
        resolve_contract(&Source::new(MANIFEST, text), &load).map(|_| ())
    }

    fn form_fault(
        &self,
        contract: &Contract,
        path: &ProjectPath,
        form: Form,
        text: &str,
    ) -> Option<FormFault> {
        let checked = match form {
            Form::State => check_state(contract, path, text),
            Form::Todos => parse_todos(path, text).map(drop),
            _ => Ok(()),
        };
        match checked {
            Err(WorkError::Malformed {
                line,
                what,
                allowed,
                ..
            }) => Some(FormFault {
                line,
                what,
                allowed,
            }),
            _ => None,
        }
    }

    fn open_block(&self, text: &str) -> Option<(usize, String)> {
        open_block(text).map(|open| (open.line, open.close))
    }

    fn may_open_block(&self, text: &str) -> bool {
        may_open_block(text)
    }

    fn hidden_line(&self, before: &str, after: &str) -> Option<usize> {
        hidden_line(before, after)
    }

    fn covered_line(&self, before: &str, after: &str) -> Option<usize> {
        covered_line(before, after)
    }
}

/// Whether a path belongs to the rules of a project with an unreadable contract: its `quipu.toml`,
/// and the profile folders that this file still names.
pub fn is_of_faulty_rules(root: &Path, path: &ProjectPath) -> bool {
    let text = read_manifest(root).unwrap_or_default();
    let table: toml::Table = String::from_utf8_lossy(&text).parse().unwrap_or_default();
    let named = table
        .get("profiles")
        .and_then(|p| p.as_array())
        .into_iter()
        .flatten()
        .filter_map(|p| p.as_str());
    let mut folders = named
        .filter(|name| Library::is_folder(name))
        .map(|name| Library::shown(name, ""));
    path.as_str() == MANIFEST || folders.any(|folder| path.as_str().starts_with(&folder))
}

/// An empty contract, for callers that need only the history.
pub(crate) fn no_rules() -> Result<quipu_contract::Contract, Faults> {
    resolve_contract(&Source::new(MANIFEST, "quipu = 1\n"), &|name, _| {
        Err(format!("unknown profile `{name}`"))
    })
}
