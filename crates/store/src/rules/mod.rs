//! The contract's requirements on texts and paths: guards, forms, flags.

pub(crate) mod flag;
pub(crate) mod form_fault;
pub(crate) mod guards;
pub(crate) mod open_block;
pub(crate) mod rule_book;
