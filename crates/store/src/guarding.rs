//! The guards of the contract, asked for one operation on one file.

use std::borrow::Cow;

use quipu_contract::{Class, FileRule, GuardRules, ProjectPath, find_credentials, find_placeholder, find_shrink};

use crate::change::Op;
use crate::error::{Refused, Result, StoreError};

#[allow(clippy::too_many_arguments, reason = "one guard, all that it needs to know")]
pub(crate) fn guard(
    rules: &GuardRules,
    path: &ProjectPath,
    rule: Option<&FileRule>,
    op: &Op,
    class: Class,
    exists: bool,
    before_len: u64,
    bytes: &[u8],
    force: bool,
) -> Result<()> {
    // Nearly all text is whole; asking that first costs a fraction of mending what is not.
    let text = std::str::from_utf8(bytes).map_or_else(|_| String::from_utf8_lossy(bytes), Cow::Borrowed);
    if class == Class::State
        && path.as_str().ends_with(".json")
        && let Err(error) = serde_json::from_slice::<serde::de::IgnoredAny>(bytes)
    {
        let what = format!("`{path}` would no longer be JSON: line {}: {error}", error.line());
        return Err(refused_by(what, rule, format!("quipu write {path}     (with valid JSON)")));
    }
    let replaces = matches!(op, Op::Write { .. } | Op::Amend { .. }) && exists;
    if replaces
        && !force
        && let Some(what) = find_shrink(rules, usize::try_from(before_len).unwrap_or(usize::MAX), bytes.len())
    {
        return Err(refused_by(format!("`{path}` {what}"), rule, "the same command with --force, if the loss is meant".into()));
    }
    if matches!(op, Op::Write { .. } | Op::Create { .. } | Op::Amend { .. })
        && !force
        && let Some(found) = find_placeholder(&text)
    {
        let what = format!("`{path}`, line {}: {}", found.line, found.what);
        return Err(refused_by(what, rule, "write the whole text, or use --force if these words are meant".into()));
    }
    if rules.credentials_in.iter().any(|p| p.matches(path.as_str()).is_some()) {
        return Ok(());
    }
    if let Some(found) = find_credentials(rules, &text) {
        let what = format!("`{path}`, line {} of the new text {}: memory is no place for it", found.line, found.what);
        return Err(refused_by(what, rule, "remove it; or allow it in quipu.toml: [guards] credentials_in = [\"PATH\"]".into()));
    }
    Ok(())
}

/// A reason stays in the journal like any text.
pub(crate) fn guard_why(rules: &GuardRules, why: &str) -> Result<()> {
    match find_credentials(rules, why) {
        Some(found) => Err(StoreError::refused(
            format!("the reason, line {}, {}: the journal is no place for it", found.line, found.what),
            "the same command with another --why",
        )),
        None => Ok(()),
    }
}

pub(crate) fn refused_by(what: String, rule: Option<&FileRule>, mend: String) -> StoreError {
    let rule = rule.map(|r| (r.place.clone(), format!("path = \"{}\" class = \"{}\"", r.path, r.class.as_str())));
    StoreError::Refused(Refused { what, rule, mend })
}
