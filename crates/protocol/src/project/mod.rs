//! A project: its root, contract, profiles, templates and trust.

pub(crate) mod eject;
pub(crate) mod foreign;
pub(crate) mod forms;
pub(crate) mod ids;
pub(crate) mod init;
pub(crate) mod json_cache;
pub(crate) mod kept;
pub(crate) mod library;
pub(crate) mod open;
pub(crate) mod repository;
pub(crate) mod rules;
pub(crate) mod template;
pub(crate) mod times;
pub(crate) mod trust;
pub(crate) mod untrusted_git;
pub(crate) mod user_folder;
