//! The steps that Quipu performs itself. Each step builds a change; the engine commits it.

pub mod derive;
pub mod entries;
pub mod merge;
pub mod remember;

use quipu_contract::ProjectPath;
use quipu_store::{Op, Version};

use super::note::ReadNote;

/// The change of a built-in step.
#[derive(Debug, Default)]
pub struct Made {
    pub ops: Vec<Op>,
    pub reads: Vec<ReadNote>,
    /// Sections for the audit log.
    pub audits: Vec<String>,
    /// A description for the user.
    pub told: String,
}

/// The output of a `Publisher`.
#[derive(Debug, Default)]
pub struct Printed {
    /// Every path that the step writes, with its bytes.
    pub files: Vec<(ProjectPath, Vec<u8>)>,
    /// Source files that no step can name in advance: images, cited sources.
    pub reads: Vec<(ProjectPath, Version)>,
}

/// Publishes a book. The program provides the implementation.
pub trait Publisher: Sync {
    /// Returns the files of a step.
    fn print(
        &self,
        project: &crate::Project,
        step: &quipu_contract::Step,
        unit: Option<&quipu_contract::UnitId>,
    ) -> Result<Printed, String>;
}
