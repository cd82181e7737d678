//! Files and folders as the disk has them: opened without following links, replaced atomically.

pub(crate) mod disk;
pub(crate) mod open_folder;
pub(crate) mod quipu_folder;
pub(crate) mod regular_file;
pub(crate) mod tree;
