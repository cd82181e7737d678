//! Updates the derived index from the files on disk.
//!
//! A commit updates its own rows (see `store`). External edits are detected here, before the index
//! is read. Only files with a changed file stat are read; the stats are cached in a file that may
//! be deleted.

use std::collections::BTreeMap;

use quipu_contract::{Actor, Listing, ProjectPath, first_line};
use quipu_store::{Change, Op, StoreError};

use crate::project::open::Project;

/// The cached file stats of the listed files and of the index itself.
const LOOKS: &str = ".quipu/index-looks.json";

type Looks = BTreeMap<String, String>;

/// Rebuilds the index if it differs from the files. Does nothing if the contract has no index.
pub fn refresh_index(project: &Project) -> Result<(), StoreError> {
    let Some(path) = project.contract.index_path() else {
        return Ok(());
    };
    if project.store.is_read_only() {
        return Ok(());
    }
    let listed: Vec<ProjectPath> = project
        .store
        .list()?
        .into_iter()
        .filter(|file| project.contract.is_listed(file))
        .collect();
    let seen = look_at(project, &path, &listed)?;
    let known = load_looks(project);
    if seen == known {
        return Ok(());
    }
    let now = project
        .store
        .read(&path)?
        .map(|(bytes, _)| String::from_utf8_lossy(&bytes).into_owned());
    let listing = Listing::parse(now.as_deref().unwrap_or_default());
    let mut rows = Vec::new();
    for file in listed {
        let name = file.as_str().to_owned();
        let same = known.contains_key(&name) && known.get(&name) == seen.get(&name);
        match listing.first_line_of(&name).filter(|_| same) {
            Some(first) => rows.push((name, first.to_owned())),
            None => {
                if let Some((bytes, _)) = project.store.read(&file)? {
                    rows.push((name, first_line(&String::from_utf8_lossy(&bytes))));
                }
            }
        }
    }
    let listed: Vec<ProjectPath> = rows
        .iter()
        .filter_map(|(name, _)| ProjectPath::parse(name).ok())
        .collect();
    let text = listing.with_rows(rows).render();
    let edited = project
        .store
        .on_disk(&path)?
        .is_some_and(|bytes| bytes != text.as_bytes());
    if now.as_deref() != Some(text.as_str()) || edited {
        let op = Op::Derive {
            path: path.clone(),
            bytes: text.into_bytes(),
            expect: quipu_store::Expect::Any,
        };
        project
            .validate(Change::by(&Actor::Runtime).op(op))?
            .publish()?;
    }
    // Take the stats after reading, because reading may adopt an edit and rewrite the file. If the
    // cache cannot be written, only time is lost.
    let seen = look_at(project, &path, &listed)?;
    if let Ok(text) = serde_json::to_string(&seen) {
        let _ = std::fs::write(project.store.root().join(LOOKS), text);
    }
    Ok(())
}

fn look_at(
    project: &Project,
    index: &ProjectPath,
    listed: &[ProjectPath],
) -> Result<Looks, StoreError> {
    let mut looks = Looks::new();
    for path in listed.iter().chain([index]) {
        if let Some(look) = project.store.stat_text(path)? {
            looks.insert(path.as_str().to_owned(), look);
        }
    }
    Ok(looks)
}

fn load_looks(project: &Project) -> Looks {
    let text = std::fs::read_to_string(project.store.root().join(LOOKS)).unwrap_or_default();
    serde_json::from_str(&text).unwrap_or_default()
}
