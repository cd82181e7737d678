//! The store, tested from outside: classes, history, outside edits, crashes, many processes.

#![allow(clippy::unwrap_used)]

mod classes;
mod crash;
mod damage;
mod finish;
mod guards;
mod history;
mod leases;
mod many;
mod outside;
mod paths;
mod properties;
mod shared;
mod warm;
