//! Calls the contract's guards: for one operation on one file, for the change of a file as a whole,
//! and for the words of a command.
//!
//! The guards themselves are in `contract/src/guard.rs`. Validation decides when to call them.

use std::borrow::Cow;

use quipu_contract::{
    Actor, Class, Contract, FileRule, Finding, GuardRules, Outside, ProjectPath, check_one_line,
    find_credentials, find_placeholder, find_shrink, is_loss, judge_outside,
};

use crate::change::{Expect, Op};
use crate::error::{Refused, Result, StoreError};

/// The text that an operation would write, as the guards see it.
pub(crate) struct Writing<'w> {
    pub path: &'w ProjectPath,
    pub rule: Option<&'w FileRule>,
    pub op: &'w Op,
    pub class: Class,
    pub bytes: &'w [u8],
    pub force: bool,
}

pub(crate) fn guard(rules: &GuardRules, writing: &Writing<'_>) -> Result<()> {
    let Writing {
        path,
        rule,
        op,
        class,
        bytes,
        force,
    } = *writing;
    // Nearly all text is valid UTF-8, and the check costs a fraction of a conversion.
    let text =
        std::str::from_utf8(bytes).map_or_else(|_| String::from_utf8_lossy(bytes), Cow::Borrowed);
    if class == Class::State
        && path.as_str().ends_with(".json")
        && let Err(error) = serde_json::from_slice::<serde_json::Value>(bytes)
    {
        let what = format!(
            "`{path}` would no longer be JSON: line {}: {error}",
            error.line()
        );
        return Err(refused_by(
            what,
            rule,
            format!("quipu write {path}     (with valid JSON)"),
        ));
    }
    if matches!(op, Op::Write { .. } | Op::Create { .. } | Op::Amend { .. })
        && !force
        && let Some(found) = find_placeholder(&text)
    {
        let what = format!("`{path}`, line {}: {}", found.line, found.what);
        return Err(refused_by(
            what,
            rule,
            "write the whole text, or add --force if these words are intended".into(),
        ));
    }
    if may_hold_credentials(rules, path) {
        return Ok(());
    }
    // A name stays in the journal like any other text.
    if let Some(found) = find_credentials(rules, path.as_str()) {
        let what = format!(
            "the name of this file {}: credentials do not belong in memory",
            found.what
        );
        return Err(refused_by(what, rule, "give it another name".into()));
    }
    match find_credentials(rules, &text) {
        Some(found) => Err(refused_credential(path, rule, &found)),
        None => Ok(()),
    }
}

/// The guard of an append together with the line that it continues.
pub(crate) fn guard_continued(
    rules: &GuardRules,
    writing: &Writing<'_>,
    line_before: &[u8],
) -> Result<()> {
    let Writing {
        path, rule, bytes, ..
    } = *writing;
    match continued_credential(rules, bytes, line_before)
        .filter(|_| !may_hold_credentials(rules, path))
    {
        Some(found) => Err(refused_credential(path, rule, &found)),
        None => Ok(()),
    }
}

pub(crate) fn may_hold_credentials(rules: &GuardRules, path: &ProjectPath) -> bool {
    rules
        .credentials_in
        .iter()
        .any(|p| p.matches(path.as_str()).is_some())
}

fn refused_credential(path: &ProjectPath, rule: Option<&FileRule>, found: &Finding) -> StoreError {
    let what = format!(
        "`{path}`, line {} of the new text {}: credentials do not belong in memory",
        found.line, found.what
    );
    refused_by(
        what,
        rule,
        format!(
            "remove it; or allow it in quipu.toml: [guards] credentials_in = [\"{path}\"], or credentials = [\"the text itself\"]"
        ),
    )
}

/// A credential that begins in the line before a text and continues in the text.
fn continued_credential(rules: &GuardRules, bytes: &[u8], line_before: &[u8]) -> Option<Finding> {
    let begun = String::from_utf8_lossy(line_before);
    // A credential that was already there is not blamed on this writer.
    if begun.is_empty() || find_credentials(rules, &begun).is_some() {
        return None;
    }
    let first_line = &bytes[..memchr::memchr(b'\n', bytes).unwrap_or(bytes.len())];
    find_credentials(
        rules,
        &String::from_utf8_lossy(&[line_before, first_line].concat()),
    )
}

/// Validates the result of a merge for a person by class, guards and loss, like any other change of
/// the file. Text that our side already contains is not blamed on the merge.
pub fn validate_merge(
    contract: &Contract,
    path: &ProjectPath,
    ours: &[u8],
    merged: &[u8],
) -> Result<()> {
    let rule = contract.rule(path);
    let class = contract.class(path);
    // Text that one side deleted is deleted in the merge. The next comparison of the file decides
    // whether the deletion is accepted.
    if let Outside::Flagged { what, line } =
        judge_outside(class, path.as_str(), Some(ours), Some(merged), &|| None)
        && !is_loss(&what)
    {
        let line = line
            .map(|line| format!(", line {line}"))
            .unwrap_or_default();
        return Err(refused_by(
            format!("the merged `{path}` {what}{line}"),
            rule,
            "merge it in an editor".into(),
        ));
    }
    let guards = |bytes: &[u8]| {
        let op = Op::Write {
            path: path.clone(),
            bytes: bytes.to_vec(),
            expect: Expect::Any,
        };
        guard(
            &contract.guards,
            &Writing {
                path,
                rule,
                op: &op,
                class,
                bytes,
                force: false,
            },
        )
    };
    if guards(ours).is_ok() {
        guards(merged)?;
    }
    guard_loss(contract, path, ours.len() as u64, merged.len() as u64)
}

/// Refuses a change that loses much of a file as a whole, in any number of steps.
pub(crate) fn guard_loss(
    contract: &Contract,
    path: &ProjectPath,
    before: u64,
    after: u64,
) -> Result<()> {
    let bytes = |len: u64| usize::try_from(len).unwrap_or(usize::MAX);
    match find_shrink(&contract.guards, bytes(before), bytes(after)) {
        Some(what) => {
            let remedy = "run the same command with --force, if the loss is intended".into();
            Err(refused_by(
                format!("`{path}` {what}"),
                contract.rule(path),
                remedy,
            ))
        }
        None => Ok(()),
    }
}

/// Words of a command that stay in the journal: a reason, a key, a path. Each must be a single
/// line, so that it stays one entry in every list.
pub(crate) fn guard_words(rules: &GuardRules, words: &str, are: &str, flag: &str) -> Result<()> {
    check_one_line(&format!("the {are}"), words).map_err(|error| {
        StoreError::refused(
            error.to_string(),
            format!("run the same command with a single line ({flag})"),
        )
    })?;
    match find_credentials(rules, words) {
        Some(found) => Err(StoreError::refused(
            format!(
                "the {are}, line {}, {}: credentials do not belong in the journal",
                found.line, found.what
            ),
            format!("run the same command with other words ({flag})"),
        )),
        None => Ok(()),
    }
}

/// The name of the actor is journalled as well.
pub(crate) fn guard_actor(rules: &GuardRules, actor: &Actor) -> Result<()> {
    let agent = actor.agent().map_or(Ok(()), |agent| {
        guard_words(rules, agent.as_str(), "name of the agent", "--agent")
    });
    agent.and_then(|()| {
        actor.unit().map_or(Ok(()), |unit| {
            guard_words(rules, unit.as_str(), "unit", "--unit")
        })
    })
}

pub(crate) fn refused_by(what: String, rule: Option<&FileRule>, remedy: String) -> StoreError {
    let rule = rule.map(|r| {
        (
            r.place.clone(),
            format!("path = \"{}\" class = \"{}\"", r.path, r.class.as_str()),
        )
    });
    StoreError::Refused(Refused { what, rule, remedy })
}

/// The refusal of a path that a role may not write.
pub(crate) fn denied(denial: quipu_contract::Denial, remedy: &str) -> StoreError {
    let (rule, remedy) = match (&denial.kept_by, denial.role.is_empty()) {
        (Some(key), _) => (key.as_str(), "ask a person to change it"),
        (None, true) => ("no role may write it", "ask a person to change it"),
        (None, false) => ("pointers of the role", remedy),
    };
    StoreError::Refused(crate::error::Refused {
        what: denial.what,
        rule: Some((denial.place, rule.into())),
        remedy: remedy.into(),
    })
}
