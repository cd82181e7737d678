//! The store, tested from outside: classes, history, external edits, crashes, many processes.
//!
//! With `QUIPU_TEST_STORE=postgres` every `Playground::new()` is a working copy of a fresh project
//! in PostgreSQL. Tests that damage, copy or outlive a journal of its own, or turn its clock, say
//! `Playground::local()`; their like for working copies is in `shared/`.

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
mod retention;
mod ruins;
mod shared;
