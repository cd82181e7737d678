//! One commit: a change is prepared, validated under the append lock, and published.

pub(crate) mod file_state;
pub(crate) mod merge;
pub(crate) mod operation;
pub(crate) mod permit;
pub(crate) mod publish;
pub(crate) mod settle;
pub(crate) mod validate;
