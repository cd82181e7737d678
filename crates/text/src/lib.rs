//! text

#![cfg_attr(test, allow(clippy::unwrap_used))]

pub mod recall;
