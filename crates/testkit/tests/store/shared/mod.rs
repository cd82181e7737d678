//! Tests of working copies of one project in PostgreSQL: one commit log, many folders.

mod copies;
mod faults;
mod moves;
mod rights;
mod rules;

use quipu_contract::Actor;
use quipu_store::{Change, Expect, LeaseToken, Receipt, Store, StoreError, Version};
use quipu_testkit::Playground;

fn append(store: &Store, path: &str, text: &str) -> Result<Receipt, StoreError> {
    store
        .validate(Change::by(&Actor::Person).append(&Playground::path(path), text))?
        .publish()
}

fn write(
    store: &Store,
    path: &str,
    text: &str,
    on: Option<&Version>,
) -> Result<Receipt, StoreError> {
    let expect = on.map_or(Expect::Any, |version| Expect::Version(version.clone()));
    store
        .validate(Change::by(&Actor::Person).write(&Playground::path(path), text, expect))?
        .publish()
}

fn write_with(
    store: &Store,
    path: &str,
    text: &str,
    lease: LeaseToken,
) -> Result<Receipt, StoreError> {
    let change = Change::by(&Actor::Person).write(&Playground::path(path), text, Expect::Any);
    store
        .validate(Change {
            lease: Some(lease),
            ..change
        })?
        .publish()
}

fn lost<T: std::fmt::Debug>(result: Result<T, StoreError>) {
    assert!(
        matches!(result, Err(StoreError::LeaseLost { .. })),
        "{result:?}"
    );
}

/// The project's id in the database, as SQL.
fn id_of(play: &Playground) -> String {
    format!("'{}'", play.attachment().id)
}
