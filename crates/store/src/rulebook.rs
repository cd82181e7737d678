//! The interface that parses contracts and files with a form.
//!
//! The store stores the files of a contract like any other file. It parses neither them nor files
//! with a form; the program that opens the store provides a [`RuleBook`] for that.

use std::collections::BTreeMap;

use quipu_contract::{Contract, Faults, Form, MANIFEST, ProjectPath};

use crate::error::{Result, StoreError};
use crate::form_fault::FormFault;

/// The files of a change with their new content; none for a deleted file.
pub type Changed = BTreeMap<ProjectPath, Option<Vec<u8>>>;

/// Parses contracts, and files with a form.
pub trait RuleBook: Send + Sync {
    /// All faults that the contract would have after a change.
    fn check(&self, changed: &Changed) -> std::result::Result<(), Faults>;

    /// The fault in the text of a file with a form.
    fn form_fault(
        &self,
        contract: &Contract,
        path: &ProjectPath,
        form: Form,
        text: &str,
    ) -> Option<FormFault>;

    /// The comment or code fence that is still open at the end of a Markdown text: its line and the
    /// text that closes it.
    fn open_block(&self, text: &str) -> Option<(usize, String)>;

    /// Whether a text can leave such a block open if it is appended.
    fn may_open_block(&self, text: &str) -> bool;

    /// The first line that readers of the Markdown text `before` see and readers of `after` do not.
    fn hidden_line(&self, before: &str, after: &str) -> Option<usize>;
    /// The first line of `before` that is still in `after`, but only inside a block that hides it.
    fn covered_line(&self, before: &str, after: &str) -> Option<usize>;
}

/// Refuses a change after which no command would find the project or understand its contract.
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
        // Each fault names its fix.
        Err(faults) => Err(StoreError::refused(
            format!("the contract would be faulty\n{faults}"),
            "",
        )),
    }
}
