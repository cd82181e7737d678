//! The files of a project beside the journal: external edits, the status scan, listings.

pub(crate) mod create;
pub(crate) mod external_edit;
pub(crate) mod list;
pub(crate) mod repaired;
pub(crate) mod scan_result;
pub(crate) mod status_scan;
pub(crate) mod walk;
