//! Which files there are.

use quipu_contract::ProjectPath;

use crate::error::Result;
use crate::store::Store;

impl Store {
    /// Every file whose name the contract can hold, in order. Looks at names only: nothing is adopted or flagged.
    pub fn list(&self) -> Result<Vec<ProjectPath>> {
        self.settle()?;
        Ok(self.look_through()?.files.iter().filter_map(|(text, _)| ProjectPath::parse(text).ok()).collect())
    }
}
