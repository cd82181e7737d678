//! Whether a project's rules would still be rules after a change.
//!
//! The store keeps the files of a contract like any others and cannot read them: whoever opens it brings someone along who can.

use std::collections::BTreeMap;

use quipu_contract::{Faults, MANIFEST, ProjectPath};

use crate::error::{Result, StoreError};

/// The files of a change as they would be; none where one goes.
pub type Changed = BTreeMap<ProjectPath, Option<Vec<u8>>>;

/// Someone who reads contracts.
pub trait RuleBook: Send + Sync {
    /// Everything that would be wrong with the contract after a change.
    fn check(&self, changed: &Changed) -> std::result::Result<(), Faults>;
}

/// Refuses a change after which no command would find the project, or understand its contract.
pub(crate) fn check_rules(book: Option<&dyn RuleBook>, changed: &Changed) -> Result<()> {
    if let Some(None) = changed.get(MANIFEST) {
        let what = format!("`{MANIFEST}` makes this folder a project: it is neither moved nor removed");
        return Err(StoreError::refused(what, format!("quipu write {MANIFEST}     (with the rules that shall hold)")));
    }
    match book.map_or(Ok(()), |book| book.check(changed)) {
        Ok(()) => Ok(()),
        // Each fault says what mends it.
        Err(faults) => Err(StoreError::refused(format!("the contract would be faulty\n{faults}"), "")),
    }
}
