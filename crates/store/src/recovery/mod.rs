//! Repairs after a crash, a power cut or damage.

pub(crate) mod find_end;
pub(crate) mod heal;
pub(crate) mod leftover;
pub(crate) mod rebuild;
pub(crate) mod verify;
