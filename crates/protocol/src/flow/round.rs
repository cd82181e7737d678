//! Additions to the brief of a reviewer in a later round of a review: its open comments, the
//! passages that concern it, and what the authors answer it.

use std::collections::BTreeSet;

use quipu_contract::{Form, ProjectPath};
use quipu_store::StoreError;

use super::attempt::ChosenJob;
use super::engine::Engine;
use super::job::PlannedJob;
use super::messages::{self, OwnComments};
use crate::project::open::Project;
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
    /// The number of its comments that it answers.
    pub answers: usize,
    /// The report on the panel of the round before.
    pub last: Option<String>,
}

impl LaterRound {
    /// `fits` says whether the whole text fits into one view.
    pub fn of(project: &Project, planned: &PlannedJob<'_>, fits: bool) -> LaterRound {
        let (contract, step) = (&project.contract, planned.step);
        let read = |path: &ProjectPath| text_of(project, path);
        let rounds = Rounds::load(contract, &read);
        let round = rounds.number();
        if step.panel.is_some() {
            let output = planned.required().next();
            let last = output.and_then(|output| rounds.path(round.checked_sub(1)?, &output.path));
            return LaterRound {
                is_new: round > 1,
                last: last.and_then(|path| read(&path)),
                ..LaterRound::default()
            };
        }
        let Some(path) = rounds.manuscript.as_ref().filter(|_| round > 1) else {
            return LaterRound::default();
        };
        let earlier = step.domain.as_ref();
        let Some(earlier) = earlier.and_then(|_| load_earlier(contract, planned, &read)) else {
            return LaterRound::default();
        };
        let language = contract.language;
        let asked = || earlier.comments.iter().filter(|c| c.needs_answer());
        let carried = earlier
            .comments
            .iter()
            .filter(|c| c.is_asked() && c.carried);
        let joined = earlier.comments.iter().filter(|c| c.is_open());
        let own = OwnComments {
            asked: asked().map(|c| c.render(language)).collect(),
            carried: carried.map(Comment::render_short).collect(),
            joined: joined
                .filter(|c| c.joined_to.is_some())
                .map(Comment::render_short)
                .collect(),
        };
        let mut text = messages::review_round(language, round, &own);
        text.push_str(&messages::earlier_scores(language, &earlier.report));
        let ids: Vec<&str> = asked().map(|c| c.id.as_str()).collect();
        let reply = reply_path(&rounds).and_then(|path| read(&path));
        let reply = reply.unwrap_or_default();
        let (old, new) = (rounds.text(round - 1), rounds.text(round));
        let is_by_comment = is_by_comment(&reply);
        let by_comment = answers_to(&reply, &ids, &BTreeSet::new());
        let concern = Concern {
            comments: &earlier.comments,
            words: &step.passages,
            // A reply to all reviewers names the lines of all changes.
            answers: if is_by_comment { &by_comment } else { "" },
        };
        let changes = changed_passages(old, new, &concern);
        let lines: BTreeSet<usize> = asked()
            .flat_map(|c| [c.written_line, c.line])
            .chain(changes.lines())
            .collect();
        let answers = answers_to(&reply, &ids, &lines);
        // A text that does not fit into one view is read in parts.
        let shows_passages = fits || changes.text.len() <= new.len() / 2;
        text.push_str(&if shows_passages {
            let fenced = fence("passages", path.as_str(), changes.text.trim_end());
            messages::passages(language, path.as_str(), &fenced, &changes.elsewhere)
        } else {
            messages::rewritten(language, path.as_str())
        });
        for path in bibliographies(project, planned) {
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
        LaterRound {
            text,
            is_new: true,
            shows_passages,
            answers: asked().count(),
            last: None,
        }
    }
}

/// The bibliographies that an agent reads.
fn bibliographies(project: &Project, planned: &PlannedJob<'_>) -> Vec<ProjectPath> {
    let contract = &project.contract;
    let reads = planned.role.into_iter().flat_map(|role| &role.reads);
    let reads: Vec<_> = reads.map(|read| &read.path).collect();
    let all = project.store.list().unwrap_or_default();
    all.into_iter()
        .filter(|path| {
            contract.rule(path).and_then(|rule| rule.form) == Some(Form::Bibliography)
                && reads
                    .iter()
                    .any(|read| read.matches(path.as_str()).is_some())
        })
        .collect()
}

fn text_of(project: &Project, path: &ProjectPath) -> Option<String> {
    let found = project.store.read(path).ok().flatten();
    found.map(|(bytes, _)| String::from_utf8_lossy(&bytes).into_owned())
}

impl Engine<'_> {
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
