//! The steps that Quipu does itself. Each makes the change; the engine commits it.

pub mod derive;
pub mod entries;
pub mod merge;
pub mod remember;

use quipu_contract::ProjectPath;
use quipu_store::{Op, Version};

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

/// What a press printed.
#[derive(Debug, Default)]
pub struct Printed {
    /// Every path that the step writes, with its bytes.
    pub files: Vec<(ProjectPath, Vec<u8>)>,
    /// Files that it was made from and that no step can name beforehand: images, cited sources.
    pub reads: Vec<(ProjectPath, Version)>,
}

/// Makes the published form of a book. The program plugs in what it has.
pub trait Press: Sync {
    /// The files of a step.
    fn print(
        &self,
        project: &crate::Project,
        step: &quipu_contract::Step,
        unit: Option<&quipu_contract::UnitId>,
    ) -> Result<Printed, String>;
}
