//! The constraint query in a flow: a step with `check` receives the conflicts of a draft and the
//! evidence about it in its brief, and its report must answer each conflict.
//!
//! The findings are those of the deterministic judges, and what models found earlier in the same
//! scenes. The agent judges the rest; its report is kept as that agent's judgement.

use std::collections::BTreeSet;

use quipu_claims::Evidence;
use quipu_contract::{Actor, ProjectPath};

use super::attempt::{AttemptError, ChosenJob};
use super::check::Collected;
use super::engine::Engine;
use super::job::fill_path;
use super::messages;
use crate::novel::check::{CheckError, CheckRequest, Checking, Draft, check_draft, find_open};

/// Evidence for one claim.
const EVIDENCE: usize = 4;

impl Engine<'_> {
    /// Renders the conflicts and the evidence for the file that the step checks.
    pub(super) fn render_checked(
        &self,
        chosen: &ChosenJob<'_>,
        actor: &Actor,
    ) -> Result<String, AttemptError> {
        let Some(path) = checked_file(chosen) else {
            return Ok(String::new());
        };
        let request = CheckRequest {
            k: EVIDENCE,
            ..CheckRequest::conflicts_of(Draft::File(path.as_str()))
        };
        let checking = check_draft(self.project, actor, &request).map_err(cannot_check(&path))?;
        // Who rewrites the text needs the conflicts; the evidence is for who judges it.
        let mut outputs = chosen.planned.required();
        let rewrites = outputs.any(|output| self.project.contract.checks_conflicts(&output.path));
        let evidence = (!rewrites).then(|| render_evidence(&checking));
        Ok(messages::findings(
            self.project.contract.language,
            path.as_str(),
            &render_conflicts(&checking),
            evidence.as_deref(),
        ))
    }

    /// Compares the outputs of a step with the open conflicts of the file that it checks. A report
    /// must name each of them; in a new text, each that is left is a warning.
    pub(super) fn find_unanswered(
        &self,
        chosen: &ChosenJob<'_>,
        actor: &Actor,
        collected: &Collected,
    ) -> Result<(Vec<String>, Vec<String>), AttemptError> {
        let (mut faults, mut warnings) = (Vec::new(), Vec::new());
        let checked = checked_file(chosen);
        let is_text = |path: &ProjectPath| self.project.contract.checks_conflicts(path);
        for (output, bytes) in &collected.files {
            let text = String::from_utf8_lossy(bytes);
            if is_text(&output.path) && !self.project.contract.blocks_conflicts(&output.path) {
                let open = find_open(self.project, actor, &output.path, &text)
                    .map_err(cannot_check(&output.path))?;
                let open = open.into_iter().filter(|conflict| !conflict.old);
                warnings.extend(open.map(|conflict| conflict.fault));
            }
        }
        let writes_text = collected
            .files
            .iter()
            .any(|(output, _)| is_text(&output.path));
        if let Some(path) = checked.filter(|_| !writes_text) {
            let open = match self.project.store.read(&path)? {
                Some((bytes, _)) => {
                    let text = String::from_utf8_lossy(&bytes);
                    find_open(self.project, actor, &path, &text).map_err(cannot_check(&path))?
                }
                None => Vec::new(),
            };
            for (output, bytes) in &collected.files {
                let report = String::from_utf8_lossy(bytes);
                // Earlier findings of a report that this one replaces are open again.
                let by_rules = open.iter().filter(|conflict| conflict.kept.is_none());
                let silent = by_rules.filter(|conflict| {
                    !conflict.against.is_empty() && !report.contains(&conflict.against)
                });
                faults.extend(silent.map(|conflict| {
                    format!(
                        "`{}` does not mention a conflict that Quipu found: {}. Report it with \
                         both places; if you judge it to be none, list it with the reason",
                        output.path, conflict.fault
                    )
                }));
            }
        }
        Ok((faults, warnings))
    }
}

fn checked_file(chosen: &ChosenJob<'_>) -> Option<ProjectPath> {
    let check = chosen.planned.step.check.as_ref()?;
    fill_path(check, &chosen.planned.binding)
}

fn cannot_check(path: &ProjectPath) -> impl FnOnce(CheckError) -> AttemptError + '_ {
    move |error| AttemptError::Obstacle {
        what: format!("`{path}` cannot be checked: {error}"),
        remedy: format!("quipu check {path}"),
    }
}

pub(super) fn render_conflicts(checking: &Checking) -> String {
    let line = |conflict: &crate::novel::check::Unwaived| {
        format!(
            "- {} ⇄ {}: \"{}\" / \"{}\": {}\n",
            conflict.at, conflict.against, conflict.claim, conflict.evidence, conflict.why
        )
    };
    checking.conflicts.iter().map(line).collect()
}

/// Renders what is written about everyone and everything in the text: once for all its scenes, with
/// the lines that a report cites.
pub(super) fn render_evidence(checking: &Checking) -> String {
    let scenes = checking.scenes.iter();
    let mut all: Vec<Evidence> = scenes.flat_map(|found| found.evidence.clone()).collect();
    all.sort_by(|a, b| a.at.cmp(&b.at));
    let mut seen = BTreeSet::new();
    all.retain(|one| seen.insert((one.at.clone(), one.text.clone())));
    quipu_claims::render_evidence_by_line(&all)
}
