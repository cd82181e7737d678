//! Making what is missing, from the profiles' templates. Nothing that is there is touched.

use std::collections::BTreeMap;

use quipu_contract::Actor;
use quipu_store::{Change, Expect, Op, StoreError};

use crate::init::plan_files;
use crate::project::Project;
use crate::work::WorkError;

/// How the reason of a commit begins that only makes the files of the contract.
pub(crate) const LAID_OUT: &str = "laid out by quipu";

/// Makes the files that the contract creates and that are not there; says which.
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
        // A file that the journal knows was removed or lost: that is for a person to decide.
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
    match project.judge(change).and_then(|judged| judged.publish()) {
        Ok(_) => Ok(made),
        // Another agent that starts at this moment has made them.
        Err(StoreError::Refused(_)) if made.iter().any(|p| root.join(p).exists()) => Ok(Vec::new()),
        Err(error) => Err(error.into()),
    }
}
