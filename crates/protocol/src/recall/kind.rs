//! The kind of a searched file: what an answer from it is worth.

use quipu_contract::{Contract, ProjectPath};
use quipu_recall::Tier;

/// The kind of a file, for the reader of an answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// The list of files.
    Index,
    /// Facts that hold.
    Memory,
    /// Intentions, which are no memory.
    Plan,
    /// The texts that memory is distilled from.
    Manuscript,
}

impl Kind {
    pub fn of(contract: &Contract, path: &str, tier: Tier) -> Kind {
        let is_plan = || ProjectPath::parse(path).is_ok_and(|path| contract.is_plan(&path));
        match tier {
            Tier::L0 => Kind::Index,
            Tier::L2 => Kind::Manuscript,
            Tier::L1 if is_plan() => Kind::Plan,
            Tier::L1 => Kind::Memory,
        }
    }

    pub fn as_str(self) -> &'static str {
        match self {
            Kind::Index => "index",
            Kind::Memory => "memory",
            Kind::Plan => "plan",
            Kind::Manuscript => "manuscript",
        }
    }
}
