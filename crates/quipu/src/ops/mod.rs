//! The operations, a file each. They hold no rules: they ask the contract and the store.

pub mod amend;
pub mod append;
pub mod blame;
pub mod brief;
pub mod commit;
pub mod contract;
pub mod demo;
pub mod diff;
pub mod doctor;
pub mod git;
pub mod init;
pub mod lease;
pub mod links;
pub mod log;
pub mod move_file;
pub mod profile;
pub mod read;
pub mod recall;
pub mod remove;
pub mod restore;
pub mod show;
pub mod status;
pub mod verify;
pub mod view;
pub mod write;

mod asked;
mod input;
mod picture;
mod receipt;
