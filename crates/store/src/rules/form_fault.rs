//! Texts that are invalid in the form that the contract gives their file.
//!
//! Every file with a form is UTF-8. The `RuleBook` checks the other requirements, because the store
//! cannot parse forms. An invalid text is refused when it is written and flagged when an external
//! edit leaves it. An older program may still have journalled one, or the contract has changed
//! since. Such a text is reported, and `restore` repairs it.

use quipu_contract::{Class, FileRule, Form, ProjectPath, bad_line};

use crate::change::Op;
use crate::error::{Result, StoreError};
use crate::rules::flag::Flag;
use crate::rules::guards::refused_by;
use crate::rules::rule_book::Rules;

/// The fault of a text, its line, and what is allowed there.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FormFault {
    pub line: usize,
    pub what: String,
    /// Empty if `what` says it.
    pub allowed: String,
}

/// Prefixes of flags: for an invalid text, and for a committed text with an invalid value.
pub(crate) const INVALID: &str = "is not valid: ";
pub(crate) const COMMITTED: &str = "was committed although it is not valid: ";
/// The fault of a file in which git left a conflict.
pub(crate) const CONFLICT: &str = "git left conflict markers in it";
/// The suffix of a `COMMITTED` flag if no version can be restored.
pub(crate) const NO_VERSION: &str = "; no earlier version is valid";

impl FormFault {
    fn not_utf8(line: usize) -> FormFault {
        FormFault {
            line,
            what: "a byte is not UTF-8".into(),
            allowed: String::new(),
        }
    }

    /// A merge that git could not complete: the file holds both sides.
    fn conflict(text: &str) -> Option<FormFault> {
        let line = |cursor: &str| text.lines().position(|line| line.starts_with(cursor));
        let (begin, end) = (line("<<<<<<< ")?, line(">>>>>>> ")?);
        (begin < end).then(|| FormFault {
            line: begin + 1,
            what: CONFLICT.into(),
            allowed: String::new(),
        })
    }

    pub(crate) fn flag(&self) -> Flag {
        let allowed = if self.allowed.is_empty() {
            String::new()
        } else {
            format!(" (allowed: {})", self.allowed)
        };
        Flag {
            what: format!("{INVALID}{}{allowed}", self.what),
            line: Some(self.line),
        }
    }

    fn refused(&self, path: &ProjectPath, rule: Option<&FileRule>, of: &str) -> StoreError {
        let remedy = match self.allowed.as_str() {
            "" => "correct the text, then run the same command again".to_owned(),
            allowed => format!("allowed: {allowed}"),
        };
        refused_by(
            format!("`{path}`, line {}{of}: {}", self.line, self.what),
            rule,
            remedy,
        )
    }
}

/// Whether growth of such a file requires a check of the whole text, and not only of its end.
fn is_one_value(rule: &FileRule) -> bool {
    matches!(rule.form, Some(Form::State | Form::Todos))
}

impl Rules {
    /// The fault in the whole text of a file.
    pub(crate) fn form_fault(
        &self,
        path: &ProjectPath,
        rule: Option<&FileRule>,
        bytes: &[u8],
    ) -> Option<FormFault> {
        let rule = rule.filter(|rule| rule.is_text(path))?;
        match std::str::from_utf8(bytes) {
            Err(_) => bad_line(bytes).map(FormFault::not_utf8),
            Ok(text) => {
                let fault = self
                    .book
                    .as_ref()?
                    .form_fault(self.contract(), path, rule.form?, text);
                fault.map(|fault| FormFault::conflict(text).unwrap_or(fault))
            }
        }
    }

    /// The fault in a text that grew after `from`. An older fault is not blamed on the writer of
    /// the new text.
    pub(crate) fn growth_fault(
        &self,
        path: &ProjectPath,
        rule: Option<&FileRule>,
        whole: &[u8],
        from: usize,
    ) -> Option<FormFault> {
        if rule.is_some_and(is_one_value) {
            return self.form_fault(path, rule, whole);
        }
        rule.filter(|rule| rule.is_text(path))?;
        let lines_before = whole[..from].iter().filter(|byte| **byte == b'\n').count();
        bad_line(&whole[from..]).map(|line| FormFault::not_utf8(lines_before + line))
    }

    /// Refuses a text that would be invalid. `before` returns the text before an append, if it
    /// matters.
    pub(crate) fn check_form(
        &self,
        op: &Op,
        rule: Option<&FileRule>,
        bytes: &[u8],
        before: impl FnOnce() -> Result<Option<Vec<u8>>>,
    ) -> Result<()> {
        let path = op.path();
        let Some(rule) = rule.filter(|rule| rule.is_text(path) && rule.class != Class::Derived)
        else {
            return Ok(());
        };
        let fault = match op {
            Op::Append { .. } if !is_one_value(rule) => bad_line(bytes).map(FormFault::not_utf8),
            Op::Append { .. } => self.form_fault(
                path,
                Some(rule),
                &[before()?.unwrap_or_default(), bytes.to_vec()].concat(),
            ),
            _ => self.form_fault(path, Some(rule), bytes),
        };
        let of = if matches!(op, Op::Append { .. }) && !is_one_value(rule) {
            " of the new text"
        } else {
            ""
        };
        fault.map_or(Ok(()), |fault| Err(fault.refused(path, Some(rule), of)))
    }
}
