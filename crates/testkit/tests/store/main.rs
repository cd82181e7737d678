//! Tests of the store through its public interface: classes, history, external edits, crashes, many
//! processes.
//!
//! With `QUIPU_TEST_STORE=postgres` every `Playground::new()` is a working copy of a new project in
//! PostgreSQL. Tests that damage or copy a local journal, or set its clock, use
//! `Playground::local()`; the corresponding tests for working copies are in `shared/`.

#![allow(clippy::unwrap_used)]

mod caches;
mod classes;
mod crash;
mod damage;
mod finish;
mod guards;
mod history;
mod ignore;
mod leases;
mod many;
mod outside;
mod paths;
mod powercut;
mod properties;
mod recover;
mod repeated;
mod restored;
mod retention;
mod ruins;
mod shared;
