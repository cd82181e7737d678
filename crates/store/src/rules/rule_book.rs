//! The interface that parses contracts and files with a form.
//!
//! The store stores the files of a contract like any other file. It parses neither them nor files
//! with a form; the program that opens the store provides a [`RuleBook`] for that.

use std::collections::BTreeMap;
use std::sync::Arc;

use quipu_contract::{Contract, Faults, Form, MANIFEST, ProjectPath};

use crate::error::{Result, StoreError};
use crate::rules::form_fault::FormFault;

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
            format!("`{MANIFEST}` makes this folder a project: it cannot be moved or removed");
        return Err(StoreError::refused(
            what,
            format!("quipu write {MANIFEST}     (with the new rules)"),
        ));
    }
    match book.map_or(Ok(()), |book| book.check(changed)) {
        Ok(()) => Ok(()),
        // Each fault names its fix.
        Err(faults) => Err(StoreError::refused(
            format!("the contract would be invalid\n{faults}"),
            "",
        )),
    }
}

/// The contract that a store enforces, and what parses the forms of its files.
pub(crate) struct Rules {
    contract: Arc<Contract>,
    pub(super) book: Option<Arc<dyn RuleBook>>,
    unruled: bool,
}

impl Rules {
    pub fn new(contract: Arc<Contract>, book: Option<Arc<dyn RuleBook>>, unruled: bool) -> Rules {
        Rules {
            contract,
            book,
            unruled,
        }
    }

    pub fn contract(&self) -> &Contract {
        &self.contract
    }

    pub fn book(&self) -> Option<&dyn RuleBook> {
        self.book.as_deref()
    }

    /// Whether the contract could not be read, and files have the classes in the journal.
    pub fn is_unruled(&self) -> bool {
        self.unruled
    }
}
