//! Earlier versions: log, blame, restore and retention.

pub(crate) mod blame;
pub(crate) mod capture;
pub(crate) mod events;
pub(crate) mod head;
pub(crate) mod log;
pub(crate) mod prune;
pub(crate) mod restore;
pub(crate) mod texts;
