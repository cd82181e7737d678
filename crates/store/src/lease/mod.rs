//! Leases, sessions and worker registrations.

pub(crate) mod leases;
pub(crate) mod session;
pub(crate) mod worker;
