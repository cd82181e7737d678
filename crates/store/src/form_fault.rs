//! Texts that are invalid in the form that the contract gives their file.
//!
//! Every file with a form is UTF-8. The `RuleBook` checks the other requirements, because the store
//! cannot parse forms. An invalid text is refused when it is written and flagged when an external
//! edit leaves it. An older program may still have journalled one, or the contract has changed
//! since. Such a text is reported, and `restore` repairs it.

use quipu_contract::{Class, FileRule, Form, ProjectPath, bad_line};

use crate::adopt::{Flag, Noticed};
use crate::change::Op;
use crate::error::{Result, StoreError};
use crate::guarding::refused_by;
use crate::heads::Head;
use crate::store::Store;
use crate::survey::{Standing, Survey, standing};

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
pub(crate) const COMMITTED: &str = "was committed and is not valid: ";
/// The fault of a file in which git left a conflict.
pub(crate) const CONFLICT: &str = "git left both sides of a conflict in it";
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
        let line = |mark: &str| text.lines().position(|line| line.starts_with(mark));
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
            "" => "correct the text, then the same command again".to_owned(),
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

impl Store {
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
                    .rules
                    .as_ref()?
                    .form_fault(&self.contract, path, rule.form?, text);
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

    /// The replacement for an invalid newest version: the same text with `�` for each byte that is
    /// not UTF-8, or, if that is invalid too, the newest valid earlier version. None if the newest
    /// version is valid.
    pub(crate) fn repaired(&self, path: &ProjectPath, head: &Head) -> Result<Option<Vec<u8>>> {
        let rule = self.contract.rule(path);
        let newest = self.content_from_journal(path, head)?;
        let Some(fault) = self.form_fault(path, rule, &newest) else {
            return Ok(None);
        };
        let is_valid = |bytes: &[u8]| self.form_fault(path, rule, bytes).is_none();
        let readable = String::from_utf8_lossy(&newest).into_owned().into_bytes();
        if is_valid(&readable) {
            return Ok(Some(readable));
        }
        match self.newest_version_that(path, head, &is_valid)? {
            Some(earlier) => Ok(Some(earlier)),
            None => {
                let what = format!(
                    "`{path}`, line {}: {}; no earlier version is valid",
                    fault.line, fault.what
                );
                Err(refused_by(
                    what,
                    rule,
                    "correct it in an editor: a valid text is adopted".into(),
                ))
            }
        }
    }

    /// The flag of an invalid newest version.
    pub(crate) fn committed_flag(&self, path: &ProjectPath, head: &Head) -> Result<Option<Flag>> {
        let text = match self.content(path, head) {
            // Damage is reported separately.
            Err(StoreError::Damaged { .. }) => return Ok(None),
            other => other?,
        };
        let Some(fault) = self.form_fault(path, self.contract.rule(path), &text) else {
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

    /// A file with a fault: an external edit that was not adopted, or an invalid newest version.
    pub fn flagged(&self, path: &ProjectPath) -> Result<Option<Standing>> {
        self.take_notice(std::slice::from_ref(path))?;
        let class = self.contract.class(path);
        let head = self.heads()?.head(path.as_str())?.filter(|head| !head.gone);
        let Some(head) = head else {
            let flagged = match self.notice(path, class, None)? {
                Noticed::Flagged(flag, _) if class != Class::Free => {
                    Some(standing(path.as_str(), class, None, Some(flag)))
                }
                _ => None,
            };
            return Ok(flagged);
        };
        let flag = match &head.flag {
            Some((flag, _)) => Some(flag.clone()),
            None => self.committed_flag(path, &head)?,
        };
        Ok(flag.map(|flag| standing(path.as_str(), class, Some(&head), Some(flag))))
    }

    /// Flags each file that a rule names by its path and that has an invalid newest version.
    pub fn flag_invalid(&self, survey: &mut Survey) -> Result<()> {
        for rule in self
            .contract
            .files
            .iter()
            .filter(|rule| rule.class != Class::Derived)
        {
            let Some(path) = rule
                .path
                .as_literal()
                .and_then(|literal| ProjectPath::parse(literal).ok())
            else {
                continue;
            };
            let Some(file) = survey
                .files
                .iter_mut()
                .find(|file| file.path == path.as_str() && file.flag.is_none())
            else {
                continue;
            };
            // Do not hold the index here: reading a text uses it as well.
            let head = self.heads()?.head(path.as_str())?.filter(|head| !head.gone);
            file.flag = head.map_or(Ok(None), |head| self.committed_flag(&path, &head))?;
        }
        Ok(())
    }

    /// The flag that a file would get if an editor left this text in it.
    pub fn judge_external(&self, path: &ProjectPath, after: &[u8]) -> Result<Option<Flag>> {
        let head = self.heads()?.head(path.as_str())?.filter(|head| !head.gone);
        let before = head
            .as_ref()
            .map(|head| self.content(path, head))
            .transpose()?;
        if before.as_deref() == Some(after) {
            return Ok(None);
        }
        match self.judge_edit(
            path,
            self.contract.class(path),
            head.as_ref(),
            before.as_deref(),
            Some(after),
        ) {
            quipu_contract::Outside::Flagged { what, line } => Ok(Some(Flag {
                what: what.into_owned(),
                line,
            })),
            _ => Ok(None),
        }
    }
}
