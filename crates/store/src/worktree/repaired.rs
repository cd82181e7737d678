//! Committed texts that are invalid in their form, and what `restore` replaces them by.

use quipu_contract::ProjectPath;

use crate::error::{Result, StoreError};
use crate::index::file_index::FileHead;
use crate::rules::flag::Flag;
use crate::rules::form_fault::COMMITTED;
use crate::rules::form_fault::{INVALID, NO_VERSION};
use crate::rules::guards::refused_by;
use crate::worktree::external_edit::WorkTree;

impl WorkTree {
    /// The replacement for an invalid newest version: the same text with `�` for each byte that is
    /// not UTF-8, or, if that is invalid too, the newest valid earlier version. None if the newest
    /// version is valid.
    pub(crate) fn repaired(&self, path: &ProjectPath, head: &FileHead) -> Result<Option<Vec<u8>>> {
        let rule = self.rules.contract().rule(path);
        let newest = self.texts.content_from_journal(path, head)?;
        let Some(fault) = self.rules.form_fault(path, rule, &newest) else {
            return Ok(None);
        };
        let is_valid = |bytes: &[u8]| self.rules.form_fault(path, rule, bytes).is_none();
        let readable = String::from_utf8_lossy(&newest).into_owned().into_bytes();
        if is_valid(&readable) {
            return Ok(Some(readable));
        }
        match self.texts.newest_version_that(path, head, &is_valid)? {
            Some(earlier) => Ok(Some(earlier)),
            None => {
                let what = format!(
                    "`{path}`, line {}: {}; no earlier version is valid",
                    fault.line, fault.what
                );
                Err(refused_by(
                    what,
                    rule,
                    "correct it in an editor; Quipu adopts the valid text".into(),
                ))
            }
        }
    }

    /// The flag of an invalid newest version.
    pub(crate) fn committed_flag(
        &self,
        path: &ProjectPath,
        head: &FileHead,
    ) -> Result<Option<Flag>> {
        let text = match self.texts.content(path, head) {
            // Damage is reported separately.
            Err(StoreError::Damaged { .. }) => return Ok(None),
            other => other?,
        };
        let Some(fault) = self
            .rules
            .form_fault(path, self.rules.contract().rule(path), &text)
        else {
            return Ok(None);
        };
        let Flag { what, line } = fault.flag();
        let wrong_value = |end: &str| Flag {
            what: format!("{COMMITTED}{}{end}", what.trim_start_matches(INVALID)),
            line,
        };
        Ok(Some(match self.repaired(path, head) {
            Ok(Some(repaired)) if repaired == String::from_utf8_lossy(&text).as_bytes() => {
                Flag { what, line }
            }
            Ok(_) => wrong_value(""),
            Err(_) => wrong_value(NO_VERSION),
        }))
    }
}
