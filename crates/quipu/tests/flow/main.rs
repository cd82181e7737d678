//! Whole flows with a scripted performer: to the end, through objections and failures, killed and started again.

#![allow(clippy::unwrap_used)]

mod book;
mod disasters;
mod escapes;
mod killed;
mod rehearsed;
mod review;
mod stage;
