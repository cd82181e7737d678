//! Whether a project's rules would still be rules after a change, and whether a text is valid in
//! its form.
//!
//! The store keeps the files of a contract like any others and cannot read them, nor files with a
//! form: whoever opens it brings someone along who can.

use std::collections::BTreeMap;

use quipu_contract::{Contract, Faults, Form, MANIFEST, ProjectPath};

use crate::error::{Result, StoreError};
use crate::form_fault::FormFault;

/// The files of a change as they would be; none where one goes.
pub type Changed = BTreeMap<ProjectPath, Option<Vec<u8>>>;

/// Someone who reads contracts, and files with a form.
pub trait RuleBook: Send + Sync {
    /// Everything that would be wrong with the contract after a change.
    fn check(&self, changed: &Changed) -> std::result::Result<(), Faults>;

    /// What is wrong with the text of a file that has a form.
    fn form_fault(
        &self,
        contract: &Contract,
        path: &ProjectPath,
        form: Form,
        text: &str,
    ) -> Option<FormFault>;

    /// The comment or code fence that is still open at the end of a Markdown text: its line and what
    /// closes it.
    fn open_block(&self, text: &str) -> Option<(usize, String)>;

    /// Whether a text can leave such a block open where it is added.
    fn may_open_block(&self, text: &str) -> bool;

    /// The first line that readers of one Markdown text see and readers of the next do not.
    fn hidden_line(&self, before: &str, after: &str) -> Option<usize>;
    /// The first line of `before` that is still in `after`, but only inside a block that hides it.
    fn covered_line(&self, before: &str, after: &str) -> Option<usize>;
}

/// Refuses a change after which no command would find the project, or understand its contract.
pub(crate) fn check_rules(book: Option<&dyn RuleBook>, changed: &Changed) -> Result<()> {
    if let Some(None) = changed.get(MANIFEST) {
        let what =
            format!("`{MANIFEST}` makes this folder a project: it is neither moved nor removed");
        return Err(StoreError::refused(
            what,
            format!("quipu write {MANIFEST}     (with the rules that shall hold)"),
        ));
    }
    match book.map_or(Ok(()), |book| book.check(changed)) {
        Ok(()) => Ok(()),
        // Each fault says what fixes it.
        Err(faults) => Err(StoreError::refused(
            format!("the contract would be faulty\n{faults}"),
            "",
        )),
    }
}
