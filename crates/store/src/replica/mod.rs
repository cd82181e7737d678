//! A working copy of a shared commit log.

pub(crate) mod commit_log;
pub(crate) mod compare;
pub(crate) mod link;
pub(crate) mod working_copy;
