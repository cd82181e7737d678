//! Who may have git merge a memory file. The driver runs in the environment of whoever called git: a person, or an agent in a role.

use std::path::Path;

use quipu_contract::{Actor, Contract, ProjectPath};
use quipu_store::{Refused, StoreError};

/// How git calls the files that it hands to a merge driver.
const GITS_OWN: &str = ".merge_file_";

/// A role may merge what it may write, into the file that git made for the result and into nothing else.
pub fn may_merge(contract: &Contract, actor: &Actor, path: &str, ours: &Path) -> Result<(), StoreError> {
    let grant = contract.grant(actor).map_err(|what| StoreError::refused(what, "quipu contract show"))?;
    let Some(role) = grant.role else { return Ok(()) };
    let refused = |what: String| {
        let rule = Some((role.place.clone(), "pointers of the role".to_owned()));
        StoreError::Refused(Refused { what, rule, mend: "leave the merge to a person".into() })
    };
    let place = ProjectPath::parse(path).map_err(|error| refused(error.to_string()))?;
    grant.may_write(&place, &contract.actor_binding(actor)).map_err(|denial| refused(denial.what))?;
    let is_named_so = ours.file_name().is_some_and(|name| name.to_string_lossy().starts_with(GITS_OWN));
    match is_named_so && std::fs::symlink_metadata(ours).is_ok_and(|found| found.is_file()) {
        true => Ok(()),
        false => Err(refused(format!("`{}` is no file that git made for a merge", ours.display()))),
    }
}
