//! Single files on behalf of an actor: read, edit, link, split, merge.

pub(crate) mod change_file;
pub(crate) mod difference;
pub(crate) mod edit;
pub(crate) mod git_merge;
pub(crate) mod index_file;
pub(crate) mod json_place;
pub(crate) mod links;
pub(crate) mod picture;
pub(crate) mod quote;
pub(crate) mod read;
pub(crate) mod read_scope;
pub(crate) mod source_file;
pub(crate) mod split_page;
