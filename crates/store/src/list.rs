//! Which files there are.

use quipu_contract::ProjectPath;

use crate::error::{Result, StoreError};
use crate::store::Store;

impl Store {
    /// Every file whose name the contract can hold, in order. Looks at names only: nothing is adopted or flagged.
    pub fn list(&self) -> Result<Vec<ProjectPath>> {
        self.settle()?;
        let found = self.tree.walk(&mut Vec::new()).map_err(StoreError::io("cannot walk the project"))?;
        Ok(found.iter().filter_map(|(text, _)| ProjectPath::parse(text).ok()).collect())
    }
}
