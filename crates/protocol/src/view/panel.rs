//! The view of an agent that reports on a panel: the extract of the panel's state in place of the
//! reports, which say the same again.
//!
//! The files left out stay among those that the agent has read, so that its report is stale when
//! one of them changes.

use quipu_contract::plan::Strategy;
use quipu_contract::{Contract, Form, PanelPart, ProjectPath, Role, Tokens};

use super::StageView;
use super::counts::CountKeeper;
use crate::review::{extract_state, round_of, without_places};

/// The part that a role has in the report on a panel.
pub(super) fn part_of(contract: &Contract, role: &Role) -> Option<PanelPart> {
    let mut steps = contract.steps.iter();
    steps
        .find(|step| step.role.as_ref() == Some(&role.name))
        .and_then(|step| step.panel)
}

/// Replaces the state by its extract, and leaves out what is in it.
pub(super) fn extract(
    contract: &Contract,
    part: PanelPart,
    mut stages: Vec<StageView>,
    keeper: &CountKeeper,
) -> Vec<StageView> {
    let form = |path: &ProjectPath| contract.rule(path).and_then(|rule| rule.form);
    let mut files = stages.iter().flat_map(|stage| &stage.files);
    let is_later = files.any(|f| form(&f.path) == Some(Form::Panel) && round_of(&f.text) > 1);
    for stage in &mut stages {
        for file in &mut stage.files {
            let text = match form(&file.path) {
                Some(Form::Panel) => extract_state(&file.text, part),
                // The list of placed comments says nothing that the findings do not say.
                Some(Form::Report) if is_later && part == PanelPart::SumUp => {
                    Some(without_places(&file.text))
                }
                _ => None,
            };
            if let Some(text) = text {
                file.tokens = keeper.counter.count(&text);
                file.text = text;
                file.whole = false;
            }
        }
        // A conflict is settled with the manuscript; the agent may still read it.
        let is_known = |path: &ProjectPath| {
            matches!(
                form(path),
                Some(Form::Report | Form::Checks | Form::Manuscript)
            )
        };
        if part == PanelPart::Weigh {
            stage.files.retain(|file| !is_known(&file.path));
        }
        for (pointer, share) in stage.shares.iter_mut().enumerate() {
            let own = || stage.files.iter().filter(|file| file.pointer == pointer);
            share.shown = own().map(|file| file.tokens).sum();
            if own().next().is_none() {
                share.strategy = Strategy::Trimmed;
            }
        }
        stage.tokens = stage.files.iter().map(|file| file.tokens).sum::<Tokens>();
    }
    let mut number = 0;
    stages.retain(|stage| {
        number += 1;
        number == 1 || !stage.files.is_empty()
    });
    stages
}
