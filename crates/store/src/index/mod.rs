//! The file index: a rebuildable database with the newest version and file stat of every file.

pub(crate) mod disk_space;
pub(crate) mod file_index;
pub(crate) mod fill;
pub(crate) mod shared_index;
pub(crate) mod table;
