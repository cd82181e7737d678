//! Additions to the brief of a reviewer in a later round of a review: its open comments, the
//! passages that concern it, and what the authors answer it.

use quipu_contract::{Form, ProjectPath};
use quipu_store::StoreError;

use super::attempt::{AttemptError, ChosenJob};
use super::engine::Engine;
use super::messages;
use crate::review::{
    Comment, Concern, Rounds, answers_to, changed_passages, is_by_comment, load_earlier, reply_path,
};
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
        let language = contract.language;
        let open: Vec<&Comment> = earlier.comments.iter().filter(|c| c.is_asked()).collect();
        let list: Vec<String> = open.iter().map(|c| c.render(language)).collect();
        let joined = earlier.comments.iter().filter(|c| c.is_open());
        let joined: Vec<String> = joined
            .filter_map(|c| Some(format!("{} ({})", c.id, c.joined_to.as_ref()?)))
            .collect();
        let mut text = messages::review_round(language, round, &list, &joined);
        if let Some(report) = &earlier.report {
            text.push_str(&messages::earlier_scores(language, report));
        }
        let ids: Vec<&str> = open.iter().map(|c| c.id.as_str()).collect();
        let reply = reply_path(&rounds).and_then(|path| read(&path));
        let reply = reply.unwrap_or_default();
        let answers = answers_to(&reply, &ids);
        let (old, new) = (rounds.text(round - 1), rounds.text(round));
        let concern = Concern {
            comments: &earlier.comments,
            words: &step.passages,
            // A reply to all reviewers names the lines of all changes.
            answers: if is_by_comment(&reply) { &answers } else { "" },
        };
        let changes = changed_passages(old, new, &concern);
        // A text that does not fit into one view is read in parts.
        let shows_passages = fits || changes.text.len() <= new.len() / 2;
        text.push_str(&if shows_passages {
            let fenced = fence("passages", path.as_str(), changes.text.trim_end());
            messages::passages(language, path.as_str(), &fenced, &changes.elsewhere)
        } else {
            messages::rewritten(language, path.as_str())
        });
        for path in self.bibliographies(chosen) {
            let before = rounds.path(round - 1, &path).and_then(|path| read(&path));
            let (Some(old), Some(new)) = (before, read(&path)) else {
                continue;
            };
            let changes = changed_passages(&old, &new, &Concern::whole());
            let fenced = fence("passages", path.as_str(), changes.text.trim_end());
            text.push_str(&messages::passages(language, path.as_str(), &fenced, &[]));
        }
        if !answers.is_empty() {
            let fenced = fence("reply", "reply.md", &answers);
            text.push_str(&messages::reply(language, &fenced));
        }
        Ok(LaterRound {
            text,
            is_new: true,
            shows_passages,
        })
    }

    /// The bibliographies that the agent reads.
    fn bibliographies(&self, chosen: &ChosenJob<'_>) -> Vec<ProjectPath> {
        let contract = &self.project.contract;
        let reads = chosen.planned.role.into_iter().flat_map(|role| &role.reads);
        let reads: Vec<_> = reads.map(|read| &read.path).collect();
        let all = self.project.store.list().unwrap_or_default();
        all.into_iter()
            .filter(|path| {
                contract.rule(path).and_then(|rule| rule.form) == Some(Form::Bibliography)
                    && reads
                        .iter()
                        .any(|read| read.matches(path.as_str()).is_some())
            })
            .collect()
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
