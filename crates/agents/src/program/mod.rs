//! Programs of agents: where they live, how they are started and listened to, how they end.

mod answer;
mod home;
mod launch;
mod running;

pub(crate) use answer::Reading;
pub(crate) use home::PrivateHome;
pub(crate) use launch::Launch;
pub(crate) use running::{Heard, Running};
