//! Additions to the brief of a reviewer in a later round of a review: its open comments, the
//! passages that concern it, and what the authors answer it.

use quipu_contract::{Form, PanelPart, ProjectPath};
use quipu_store::StoreError;

use super::attempt::{AttemptError, ChosenJob};
use super::engine::Engine;
use super::messages;
use crate::review::{Rounds, answers_to, changed_passages, load_earlier, marked_text, reply_path};
use crate::view::View;
use crate::view::brief::fence;

/// The part that a later round adds to a brief.
#[derive(Default)]
pub(super) struct LaterRound {
    pub text: String,
    /// Whether a later round asks for the report: what the agent wrote in the round before is no
    /// text to be changed.
    pub is_new: bool,
    /// Whether the text has the passages that the agent needs, so that the brief need not show the
    /// whole manuscript.
    pub shows_passages: bool,
}

impl Engine<'_> {
    /// `fits` says whether the whole text fits into one view.
    pub(super) fn render_round(
        &self,
        chosen: &ChosenJob<'_>,
        fits: bool,
    ) -> Result<LaterRound, AttemptError> {
        let (contract, step) = (&self.project.contract, chosen.planned.step);
        let read = |path: &ProjectPath| self.text_of(path);
        let rounds = Rounds::load(contract, &read);
        let round = rounds.number();
        if step.domain.is_none() || step.panel.is_some() {
            return Ok(LaterRound {
                is_new: round > 1 && step.panel.is_some(),
                ..LaterRound::default()
            });
        }
        let Some(path) = rounds.manuscript.as_ref().filter(|_| round > 1) else {
            return Ok(LaterRound::default());
        };
        let Some(earlier) = load_earlier(contract, &chosen.planned, &read) else {
            return Ok(LaterRound::default());
        };
        let open: Vec<String> = earlier
            .comments
            .iter()
            .filter(|comment| comment.is_open())
            .map(crate::review::Comment::render)
            .collect();
        let language = contract.language;
        let mut text = messages::review_round(language, round, &open);
        if let Some(report) = &earlier.report {
            text.push_str(&messages::earlier_scores(language, report));
        }
        let (old, new) = (rounds.text(round - 1), rounds.text(round));
        let passages = changed_passages(old, new, &earlier.comments);
        // A text that does not fit into one view is read in parts.
        let shows_passages = passages.len() <= new.len() || fits;
        text.push_str(&if passages.len() <= new.len() {
            let fenced = fence("passages", path.as_str(), passages.trim_end());
            messages::passages(language, path.as_str(), &fenced)
        } else if fits {
            let marked = marked_text(old, new);
            let fenced = fence("manuscript", path.as_str(), marked.trim_end());
            messages::marked(language, path.as_str(), &fenced)
        } else {
            messages::rewritten(language, path.as_str())
        });
        if let Some(reply) = reply_path(&rounds).and_then(|path| read(&path)) {
            let answers = answers_to(&reply, &earlier.comments);
            if !answers.is_empty() {
                let fenced = fence("reply", "reply.md", &answers);
                text.push_str(&messages::reply(language, &fenced));
            }
        }
        Ok(LaterRound {
            text,
            is_new: true,
            shows_passages,
        })
    }

    /// Leaves reports out of a view that were weighed in the round before: the revision did not
    /// concern them, so they have no open comment.
    pub(super) fn leave_out_known(
        &self,
        chosen: &ChosenJob<'_>,
        view: &mut View,
    ) -> Result<(), StoreError> {
        let contract = &self.project.contract;
        if chosen.planned.step.panel != Some(PanelPart::Weigh) {
            return Ok(());
        }
        let read = |path: &ProjectPath| self.text_of(path);
        let rounds = Rounds::load(contract, &read);
        let is_report = |path: &ProjectPath| {
            contract.rule(path).and_then(|rule| rule.form) == Some(Form::Report)
        };
        let is_known = |path: &ProjectPath| {
            let before = rounds.number().checked_sub(1);
            let before = before.and_then(|round| rounds.path(round, path));
            is_report(path) && before.and_then(|path| read(&path)) == read(path)
        };
        for stage in &mut view.stages {
            stage.files.retain(|file| !is_known(&file.path));
        }
        Ok(())
    }

    fn text_of(&self, path: &ProjectPath) -> Option<String> {
        let found = self.project.store.read(path).ok().flatten();
        found.map(|(bytes, _)| String::from_utf8_lossy(&bytes).into_owned())
    }

    /// Whether a job has a complete output of its own.
    pub(super) fn has_output(&self, chosen: &ChosenJob<'_>) -> Result<bool, StoreError> {
        for output in chosen.planned.required() {
            if self.project.store.read(&output.path)?.is_none() {
                return Ok(false);
            }
        }
        Ok(true)
    }
}
