//! Whole flows with a scripted performer: to the end, through objections and failures, killed and started again.

#![allow(clippy::unwrap_used)]

mod book;
mod disasters;
mod killed;
mod review;
mod stage;
