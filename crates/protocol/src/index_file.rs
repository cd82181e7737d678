//! The derived index, brought up to date with what is on disk.
//!
//! A commit keeps its own rows (see `store`). Files that came, went or changed behind Quipu's back are found
//! here, when someone is about to read the index.

use quipu_contract::{Actor, Listing, first_line};
use quipu_store::{Change, Op, StoreError};

use crate::project::Project;

/// Writes the index anew if it does not say what the files say. Does nothing where the contract has none.
pub fn refresh_index(project: &Project) -> Result<(), StoreError> {
    let Some(path) = project.contract.index_path() else { return Ok(()) };
    if project.store.is_read_only() {
        return Ok(());
    }
    let mut rows = Vec::new();
    for file in project.store.list()?.into_iter().filter(|file| project.contract.is_listed(file)) {
        if let Some((bytes, _)) = project.store.read(&file)? {
            rows.push((file.as_str().to_owned(), first_line(&String::from_utf8_lossy(&bytes))));
        }
    }
    let now = project.store.read(&path)?.map(|(bytes, _)| String::from_utf8_lossy(&bytes).into_owned());
    let listing = Listing::parse(now.as_deref().unwrap_or_default()).with_rows(rows);
    let text = listing.render();
    let edited = project.store.on_disk(&path)?.is_some_and(|bytes| bytes != text.as_bytes());
    if now.as_deref() != Some(text.as_str()) || edited {
        project
            .store
            .judge(Change::by(&Actor::Runtime).op(Op::Derive { path, bytes: text.into_bytes(), expect: quipu_store::Expect::Any }))?
            .publish()?;
    }
    Ok(())
}
