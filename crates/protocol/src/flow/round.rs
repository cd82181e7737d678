//! Additions to the brief of a reviewer in a later round of a review: its open comments, the
//! difference between the manuscripts, and the authors' reply.

use quipu_contract::ProjectPath;
use quipu_store::StoreError;

use super::attempt::{AttemptError, ChosenJob};
use super::engine::Engine;
use super::messages;
use crate::files::difference::render_difference;
use crate::review::{Rounds, earlier_comments, reply_path};
use crate::view::brief::fence;

/// A difference up to this size is shown even if the manuscript itself is shorter.
const SHORT_DIFFERENCE: usize = 4_000;

impl Engine<'_> {
    pub(super) fn render_round(&self, chosen: &ChosenJob<'_>) -> Result<String, AttemptError> {
        let (contract, step) = (&self.project.contract, chosen.planned.step);
        if step.domain.is_none() || step.panel.is_some() {
            return Ok(String::new());
        }
        let read = |path: &ProjectPath| {
            let found = self.project.store.read(path).ok().flatten();
            found.map(|(bytes, _)| String::from_utf8_lossy(&bytes).into_owned())
        };
        let rounds = Rounds::load(contract, &read);
        let round = rounds.number();
        let Some(path) = rounds.manuscript.as_ref().filter(|_| round > 1) else {
            return Ok(String::new());
        };
        let comments = earlier_comments(contract, &chosen.planned, &read);
        let Some(comments) = comments else {
            return Ok(String::new());
        };
        let open: Vec<String> = comments
            .iter()
            .filter(|comment| comment.is_open())
            .map(crate::review::Comment::render)
            .collect();
        let language = contract.language;
        let mut text = messages::review_round(language, round, &open);
        let (old, new) = (rounds.text(round - 1), rounds.text(round));
        let difference = render_difference(path.as_str(), old, path.as_str(), new);
        text.push_str(&if difference.len() > new.len().max(SHORT_DIFFERENCE) {
            messages::rewritten(language, path.as_str())
        } else {
            let fenced = fence("difference", path.as_str(), difference.trim_end());
            messages::difference(language, &fenced)
        });
        if let Some(reply) = reply_path(&rounds).and_then(|path| read(&path)) {
            let fenced = fence("reply", "reply.md", reply.trim_end());
            text.push_str(&messages::reply(language, &fenced));
        }
        Ok(text)
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
