//! The steps that Quipu does itself. Each makes the change; the engine commits it.

pub mod derive;
pub mod filing;
pub mod merge;
pub mod remember;

use quipu_contract::ProjectPath;
use quipu_store::Op;

use super::note::ReadNote;

/// What a built-in step wants to commit.
#[derive(Debug, Default)]
pub struct Made {
    pub ops: Vec<Op>,
    pub reads: Vec<ReadNote>,
    /// Sections for the audit log.
    pub audits: Vec<String>,
    /// In words, for whoever watches.
    pub told: String,
}

/// Makes the published form of a book. The program plugs in what it has.
pub trait Press: Sync {
    /// The files of a step with their bytes: every path that the step writes.
    fn print(
        &self,
        project: &crate::Project,
        step: &quipu_contract::Step,
        unit: Option<&quipu_contract::UnitId>,
    ) -> Result<Vec<(ProjectPath, Vec<u8>)>, String>;
}
