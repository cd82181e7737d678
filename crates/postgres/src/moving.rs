//! Moves a project between backends, with its complete history.
//!
//! Every move ends with a comparison of all records, one by one.

use std::path::Path;
use std::sync::Arc;

use quipu_contract::{Contract, Source, resolve_contract};
use quipu_store::{CommitLog, LogCursor, Options, Record, Store, StoreError, WaitPolicy};
use serde::Serialize;

use crate::address::Address;
use crate::attach::Attachment;
use crate::commit_log::Postgres;
use crate::wire;

/// One call of `load` sends about this much.
const PAGE_RECORDS: usize = 200;
const PAGE_BYTES: usize = 4 << 20;

/// The result of a move.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Moved {
    pub address: String,
    pub project: String,
    pub records: u64,
}

/// Copies a local project to a shared store; the folder becomes the first working copy. Continues
/// an earlier push that did not finish.
pub fn push(store: &Store, address: &Address, name: &str) -> Result<Moved, StoreError> {
    if store
        .commit_log()
        .is_some_and(|_| matches!(Attachment::load(store.root()), Ok(Some(_))))
    {
        return Err(StoreError::refused(
            "this is already a working copy of a shared store",
            "quipu store status",
        ));
    }
    store.scan_status()?;
    let postgres = Postgres::at(address);
    postgres.migrate()?;
    let (id, there) = match postgres.locate(name)? {
        Some(seen) if seen.rev > 0 => (seen.id, seen.rev),
        _ => (postgres.found(name)?, 0),
    };
    let commit_log = Postgres::of(address, name.to_owned(), Some(id.clone()), None);
    compare(store, &commit_log, there).map_err(|_| {
        let what = format!("{address} already has a project `{name}`, with another history");
        StoreError::refused(
            what,
            "quipu checkout ADDRESS --project NAME     (to work in it), or \
            use another name: --project NAME",
        )
    })?;
    let (mut page, mut bytes, mut at) = (Vec::new(), 0, there);
    let send = |page: &mut Vec<Record>, at: &mut u64| -> Result<(), StoreError> {
        if page.is_empty() {
            return Ok(());
        }
        let reached = postgres.load(&id, *at, page)?;
        if reached != *at + page.len() as u64 {
            return Err(StoreError::refused(
                format!("another client is writing to `{name}` at {address}"),
                "run again: quipu store push",
            ));
        }
        *at = reached;
        page.clear();
        Ok(())
    };
    store.each_record(&mut |record| {
        if record.seq <= there {
            return Ok(());
        }
        bytes += record.ops.iter().map(|o| o.body.size()).sum::<usize>();
        page.push(record.clone());
        if page.len() >= PAGE_RECORDS || bytes > PAGE_BYTES {
            bytes = 0;
            send(&mut page, &mut at)?;
        }
        Ok(())
    })?;
    send(&mut page, &mut at)?;
    compare(store, &commit_log, at)?;
    store.change_allegiance(|newest| {
        if newest != at {
            return Err(StoreError::refused(
                "the project changed during the push",
                "quipu store push     (run again: it continues where it stopped)",
            ));
        }
        Attachment {
            address: address.shown().to_owned(),
            project: name.to_owned(),
            id: id.clone(),
        }
        .save(store.root())
    })?;
    Ok(Moved {
        address: address.shown().to_owned(),
        project: name.to_owned(),
        records: at,
    })
}

/// Turns a working copy into a local project, with the complete history. The shared store keeps its
/// copy.
pub fn detach(store: &Store) -> Result<Moved, StoreError> {
    let Some(attached) = Attachment::load(store.root())? else {
        return Err(StoreError::refused(
            "this is not a working copy of a shared store",
            "quipu store push ADDRESS",
        ));
    };
    store.scan_status()?;
    let synced = store.sync()?;
    let commit_log = store.commit_log().ok_or_else(|| {
        StoreError::refused(
            "this is not a working copy of a shared store",
            "quipu store status",
        )
    })?;
    compare(store, commit_log, synced.to)?;
    store.change_allegiance(|newest| {
        if newest != synced.to {
            return Err(StoreError::refused(
                "the project changed during the pull",
                "run again: quipu store pull",
            ));
        }
        Attachment::forget(store.root())
    })?;
    Ok(Moved {
        address: attached.address,
        project: attached.project,
        records: synced.to,
    })
}

/// Creates a working copy in a folder that is empty or does not exist.
pub fn checkout(address: &Address, name: &str, folder: &Path) -> Result<Moved, StoreError> {
    let io = |what: String| move |source| StoreError::Io { what, source };
    let postgres = Postgres::at(address);
    let Some(seen) = postgres.locate(name)? else {
        let names: Vec<String> = postgres.projects()?.into_iter().map(|p| p.name).collect();
        let there = if names.is_empty() {
            "there are no projects yet".into()
        } else {
            format!("the projects are: {}", names.join(", "))
        };
        return Err(StoreError::NotFound {
            what: format!("{address} has no project `{name}`; {there}"),
            remedy: "--project NAME".into(),
        });
    };
    std::fs::create_dir_all(folder).map_err(io(format!("cannot create `{}`", folder.display())))?;
    let mut entries =
        std::fs::read_dir(folder).map_err(io(format!("cannot read `{}`", folder.display())))?;
    let unfinished = Attachment::load(folder)?.is_some_and(|a| a.id == seen.id);
    if entries.next().is_some() && !unfinished {
        return Err(StoreError::refused(
            format!("`{}` is not empty", folder.display()),
            "name a folder that does not exist yet",
        ));
    }
    let attachment = Attachment {
        address: address.shown().to_owned(),
        project: name.to_owned(),
        id: seen.id.clone(),
    };
    attachment.save(folder)?;
    Store::init(folder)?;
    let commit_log: Arc<dyn CommitLog> = Arc::new(Postgres::of(
        address,
        name.to_owned(),
        Some(seen.id),
        Some(folder),
    ));
    // The records bring the files, including the project's own contract.
    let store = Store::open(
        folder,
        bare_contract(),
        Options {
            commit_log: Some(Arc::clone(&commit_log)),
            ..Options::default()
        },
    )?;
    let synced = store.sync()?;
    compare(&store, &*commit_log, synced.to)?;
    Ok(Moved {
        address: attachment.address,
        project: attachment.project,
        records: synced.to,
    })
}

fn bare_contract() -> Arc<Contract> {
    let source = Source::new("quipu.toml", "quipu = 1\n");
    Arc::new(
        resolve_contract(&source, &|name, _| Err(format!("unknown profile `{name}`")))
            .expect("an empty contract is sound"),
    )
}

/// Compares the first records of a journal with those of the log, one by one.
fn compare(store: &Store, commit_log: &dyn CommitLog, until: u64) -> Result<(), StoreError> {
    let mut theirs = Vec::new().into_iter();
    let mut cursor = LogCursor::default();
    store.each_record(&mut |record| {
        if record.seq > until {
            return Ok(());
        }
        let other = match theirs.next() {
            Some(other) => Some(other),
            None => {
                theirs = commit_log
                    .after(&cursor, WaitPolicy::Retry)?
                    .records
                    .into_iter();
                theirs.next()
            }
        };
        let differs = |what: String| {
            Err(StoreError::refused(
                what,
                "keep both and compare them: quipu log; quipu store status",
            ))
        };
        match other {
            Some(other) if wire::same(record, &other) => {
                cursor = LogCursor {
                    rev: other.seq,
                    id: other.id,
                };
                Ok(())
            }
            Some(other) => differs(format!(
                "record {} differs: {} here, {} there",
                record.seq, record.id, other.id
            )),
            None => differs(format!("record {} is not in the shared store", record.seq)),
        }
    })?;
    if cursor.rev == until {
        return Ok(());
    }
    Err(StoreError::refused(
        format!(
            "the journal ends at {}, the shared store at {until}",
            cursor.rev
        ),
        "quipu verify",
    ))
}
