//! Attaches a project to a shared store.
//!
//! A project is a working copy if it has `.quipu/shared`, or an address in the environment or in
//! the contract. This file reads and writes that attachment and creates the project's commit log.
//! It opens no connection.

use std::path::Path;
use std::sync::{Arc, OnceLock};

use quipu_contract::Contract;
use quipu_store::{CommitLog, Offline, SHARED, StoreError, read_regular, register_commit_logs};
use serde::{Deserialize, Serialize};

use crate::address::Address;
use crate::commit_log::Postgres;

/// The shared store that a working copy belongs to. It never contains a password.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Attachment {
    pub address: String,
    pub project: String,
    pub id: String,
}

impl Attachment {
    pub fn load(root: &Path) -> Result<Option<Attachment>, StoreError> {
        let path = root.join(".quipu").join(SHARED);
        match read_regular(&path) {
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => Ok(None),
            Err(source) => Err(StoreError::Io {
                what: format!("cannot read `{}`", path.display()),
                source,
            }),
            Ok(text) => match serde_json::from_slice::<Attachment>(&text) {
                Ok(found) if is_uuid(&found.id) => Ok(Some(found)),
                other => {
                    let what = other
                        .err()
                        .map_or("its id is invalid".into(), |e| e.to_string());
                    Err(StoreError::refused(
                        format!("`.quipu/{SHARED}` was not written by Quipu: {what}"),
                        "quipu checkout ADDRESS DIR     (creates a new working copy)",
                    ))
                }
            },
        }
    }

    /// Durable when this returns: a copy without its attachment would start a history of its own.
    pub fn save(&self, root: &Path) -> Result<(), StoreError> {
        let io = |source| StoreError::Io {
            what: format!("cannot write `.quipu/{SHARED}`"),
            source,
        };
        let folder = root.join(".quipu");
        std::fs::create_dir_all(&folder).map_err(io)?;
        let text = serde_json::to_string_pretty(self).expect("three strings") + "\n";
        let part = folder.join(format!("{SHARED}.part"));
        let write = || -> std::io::Result<()> {
            std::fs::write(&part, text)?;
            std::fs::File::open(&part)?.sync_all()?;
            std::fs::rename(&part, folder.join(SHARED))?;
            std::fs::File::open(&folder)?.sync_all()
        };
        write().map_err(io)
    }

    pub fn forget(root: &Path) -> Result<(), StoreError> {
        let io = |source| StoreError::Io {
            what: format!("cannot remove `.quipu/{SHARED}`"),
            source,
        };
        std::fs::remove_file(root.join(".quipu").join(SHARED)).map_err(io)?;
        let _ = std::fs::remove_file(root.join(".quipu/sent"));
        std::fs::File::open(root.join(".quipu"))
            .and_then(|folder| folder.sync_all())
            .map_err(io)
    }
}

/// Returns whether the user agrees to contact an address that came with the project in a folder.
pub type MayContact = fn(&Path, &str) -> bool;

static MAY_CONTACT: OnceLock<MayContact> = OnceLock::new();

/// Registers this crate, so that this process can open working copies. `tell` reports to the user
/// that a call is waiting. If an address comes from a project and not from the user, it is
/// contacted only if `may_contact` returns true.
pub fn register(tell: fn(&str), may_contact: MayContact) {
    crate::link::tell_with(tell);
    let _ = MAY_CONTACT.set(may_contact);
    register_commit_logs(find);
}

fn find(root: &Path, contract: &Contract) -> Result<Option<Arc<dyn CommitLog>>, StoreError> {
    let Some(postgres) = find_postgres(root, contract.store.as_deref())? else {
        return Ok(None);
    };
    let may_contact = MAY_CONTACT.get().copied().unwrap_or(|_, _| false);
    let named = named_by_project(root, contract.store.as_deref())?;
    if named.is_none_or(|address| may_contact(root, &address)) {
        return Ok(Some(Arc::new(postgres)));
    }
    let offline = Offline::new(
        postgres.describe(),
        "this setting of the project is not trusted",
        Some("quipu trust"),
    );
    Ok(Some(Arc::new(offline)))
}

/// The address that the project itself names, unless the environment overrides it.
fn named_by_project(root: &Path, in_contract: Option<&str>) -> Result<Option<String>, StoreError> {
    if std::env::var("QUIPU_STORE").is_ok_and(|text| !text.is_empty()) {
        return Ok(None);
    }
    Ok(Attachment::load(root)?
        .map(|attached| attached.address)
        .or(in_contract.map(str::to_owned)))
}

/// The commit log of the project in a folder, if the folder is a working copy or will become one.
/// Does not connect yet.
fn find_postgres(root: &Path, in_contract: Option<&str>) -> Result<Option<Postgres>, StoreError> {
    let attached = Attachment::load(root)?;
    let said = std::env::var("QUIPU_STORE")
        .ok()
        .filter(|text| !text.is_empty());
    let address = match (&said, &attached, in_contract) {
        (Some(text), _, _) => Address::parse(text)?,
        (None, Some(attached), _) => Address::parse(&attached.address)?,
        (None, None, Some(text)) => Address::parse_given(text)?,
        (None, None, None) => return Ok(None),
    };
    if said.is_none()
        && in_contract
            .is_some_and(|text| Address::parse_given(text).is_ok_and(|a| a.has_password()))
    {
        return Err(StoreError::refused(
            "`store` in quipu.toml contains a password, and everyone can read quipu.toml",
            "remove it; put the password into ~/.pgpass",
        ));
    }
    let folder = || {
        let name = std::path::absolute(root)
            .ok()
            .and_then(|p| p.file_name().map(|n| n.to_string_lossy().into_owned()));
        name.unwrap_or_else(|| "project".into())
    };
    Ok(Some(match attached {
        Some(attached) => Postgres::of(&address, attached.project, Some(attached.id), Some(root)),
        None => Postgres::of(
            &address,
            address.project.clone().unwrap_or_else(folder),
            None,
            Some(root),
        ),
    }))
}

fn is_uuid(text: &str) -> bool {
    text.len() == 36 && text.bytes().all(|b| b.is_ascii_hexdigit() || b == b'-')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_contract_holds_no_password() {
        let nowhere = Path::new("/nonexistent");
        assert!(find_postgres(nowhere, None).unwrap().is_none());
        assert!(
            find_postgres(nowhere, Some("postgres://ann@db.example/books"))
                .unwrap()
                .is_some()
        );
        let error = find_postgres(nowhere, Some("postgres://ann:s3cret@db.example/books"))
            .err()
            .unwrap();
        assert!(
            error.to_string().contains("contains a password")
                && !error.to_string().contains("s3cret"),
            "{error}"
        );
    }

    #[test]
    fn only_an_id_is_an_id() {
        assert!(is_uuid("018f0000-0000-7000-8000-000000000001"));
        assert!(!is_uuid("'); DROP TABLE quipu.log; --"));
    }
}
