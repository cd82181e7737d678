//! Programs of agents: their private homes, start, output and end.

mod answer;
mod home;
mod launch;
mod running;

pub(crate) use answer::Reading;
pub(crate) use home::PrivateHome;
pub(crate) use launch::{Launch, find_program};
pub(crate) use running::{Heard, Running};
