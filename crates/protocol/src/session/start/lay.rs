//! Creates missing files from the profiles' templates. Existing files are never changed.
//!
//! A file that the journal knows is not created again: a person must decide.

use std::collections::BTreeMap;

use quipu_contract::Actor;
use quipu_store::{Change, Expect, Op, StoreError};

use crate::project::init::plan_files;
use crate::project::open::Project;
use crate::session::error::WorkError;

/// The prefix of the reason of commits that only create the contract's files.
pub(crate) const LAID_OUT: &str = "created by quipu";

/// Creates the missing files that the contract declares. Returns their names.
pub(super) fn lay_missing(project: &Project) -> Result<Vec<String>, WorkError> {
    let root = project.store.root();
    let is_missing = |rule: &&quipu_contract::FileRule| {
        rule.create
            && rule
                .path
                .as_literal()
                .is_some_and(|p| !root.join(p).exists())
    };
    if project.store.is_read_only() || !project.contract.files.iter().any(|r| is_missing(&r)) {
        return Ok(Vec::new());
    }
    let mut change = Change::by(&Actor::Runtime).why(format!("{LAID_OUT} start"));
    let mut made = Vec::new();
    for (path, class, text) in plan_files(&project.contract, &project.library, &BTreeMap::new())? {
        // A file with journal events was removed or lost: a person must decide what to do.
        if root.join(path.as_str()).exists() || !project.store.events(&path)?.is_empty() {
            continue;
        }
        made.push(path.as_str().to_owned());
        change = match class {
            quipu_contract::Class::Derived => change.op(Op::Derive {
                path,
                bytes: text.into_bytes(),
                expect: Expect::Any,
            }),
            _ => change.create(&path, text),
        };
    }
    if made.is_empty() {
        return Ok(made);
    }
    match project.validate(change).and_then(|judged| judged.publish()) {
        Ok(_) => Ok(made),
        // Another agent that starts at the same time has created them.
        Err(StoreError::Refused(_)) if made.iter().any(|p| root.join(p).exists()) => Ok(Vec::new()),
        Err(error) => Err(error.into()),
    }
}
