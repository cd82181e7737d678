//! Additions to the brief of a job that is redone: the round, the reason, the earlier output, and
//! the changes of its inputs since then.
//!
//! For a job that reviews a revision, the addition is the diff of two texts.

use quipu_contract::{Class, ProjectPath, Readable};
use quipu_store::{At, StoreError};

use super::attempt::{AttemptError, ChosenJob};
use super::engine::{Engine, FlowError};
use super::job::{actor_of, fill_path};
use super::messages;
use super::note::{AttemptResult, ReadNote};
use super::snapshot::unmarked;
use crate::files::difference::render_difference;
use crate::files::read::may_read;
use crate::view::brief::fence;
use crate::view::slice_section;

/// A longer earlier text or diff is left out: the brief must leave room for the work.
const LONGEST_EARLIER: usize = 60_000;
/// A diff up to this size is shown even if the text itself is shorter.
const SHORT_DIFFERENCE: usize = 4_000;

impl Engine<'_> {
    pub(super) fn render_redo(&self, chosen: &ChosenJob<'_>) -> Result<String, AttemptError> {
        if chosen.status.sent_back.is_some() {
            // The objections give the reason, and the earlier text is in the out folder.
            return self.render_compared(chosen);
        }
        let facts = self.memory.facts(self.project).map_err(FlowError::from)?;
        let of_job = |fact: &&super::note::AttemptFact| {
            fact.note.ruling == AttemptResult::Accepted && fact.note.job() == chosen.planned.job
        };
        let Some(last) = facts.iter().rev().find(of_job) else {
            return self.render_compared(chosen);
        };
        let language = self.project.contract.language;
        let mut text = String::new();
        let round = facts.iter().filter(of_job).count() + 1;
        text.push_str(&messages::again(language, round, &chosen.status.why));
        for output in chosen.planned.required() {
            let Some((bytes, _)) = self.project.store.read(&output.path)? else {
                continue;
            };
            let earlier = String::from_utf8_lossy(&bytes);
            if earlier.len() <= LONGEST_EARLIER {
                let path = output.path.as_str();
                text.push_str(&messages::earlier(
                    language,
                    &fence("earlier", path, unmarked(path, &earlier).trim_end()),
                ));
            }
        }
        for read in &last.note.reads {
            if let Some(difference) = self.render_changed(chosen, read)? {
                text.push_str(&messages::difference(
                    language,
                    &fence("difference", &read.path, difference.trim_end()),
                ));
            }
        }
        Ok(text)
    }

    /// Renders the diff of the two files that the step names, the first time that it is done.
    /// Later, the agent has seen that diff, and only changes since then are shown.
    fn render_compared(&self, chosen: &ChosenJob<'_>) -> Result<String, AttemptError> {
        let paths: Vec<ProjectPath> = chosen
            .planned
            .step
            .compare
            .iter()
            .filter_map(|path| fill_path(path, &chosen.planned.binding))
            .collect();
        let [older, newer] = paths.as_slice() else {
            return Ok(String::new());
        };
        let read = |path: &ProjectPath| -> Result<Option<String>, StoreError> {
            let found = self.project.store.read(path)?;
            Ok(found.map(|(bytes, _)| {
                unmarked(path.as_str(), &String::from_utf8_lossy(&bytes)).to_owned()
            }))
        };
        let (Some(old), Some(new)) = (read(older)?, read(newer)?) else {
            return Ok(String::new());
        };
        let difference = render_difference(older.as_str(), &old, newer.as_str(), &new);
        let language = self.project.contract.language;
        if difference.len() > new.len().max(SHORT_DIFFERENCE) {
            return Ok(messages::rewritten(language, newer.as_str()));
        }
        let between = format!("{older} → {newer}");
        Ok(messages::difference(
            language,
            &fence("difference", &between, difference.trim_end()),
        ))
    }

    /// Renders the changes of a text since it was read. None if it is unchanged or append-only, if
    /// the journal lacks the old text, or if the role no longer reads it.
    fn render_changed(
        &self,
        chosen: &ChosenJob<'_>,
        read: &ReadNote,
    ) -> Result<Option<String>, AttemptError> {
        let Ok(path) = ProjectPath::parse(&read.path) else {
            return Ok(None);
        };
        let actor = actor_of(chosen.planned.step, chosen.planned.job.unit.as_ref(), None);
        let may_see = match may_read(self.project, &actor, &path) {
            Ok(Readable::Whole) => true,
            Ok(Readable::Sections(sections)) => read
                .section
                .as_ref()
                .is_some_and(|section| sections.contains(section)),
            Err(_) => false,
        };
        if !may_see {
            return Ok(None);
        }
        if matches!(
            self.project.contract.class(&path),
            Class::Append | Class::Record | Class::Derived
        ) {
            return Ok(None);
        }
        let Some((now, version)) = self.project.store.read(&path)? else {
            return Ok(None);
        };
        if version == read.version {
            return Ok(None);
        }
        let Ok((then, _)) = self
            .project
            .store
            .text_at(&path, &At::Version(read.version.as_str().to_owned()))
        else {
            return Ok(None);
        };
        let part = |bytes: &[u8]| {
            let text = String::from_utf8_lossy(bytes).into_owned();
            read.section
                .as_ref()
                .map_or(Some(text.clone()), |section| slice_section(&text, section))
        };
        let (Some(then), Some(now)) = (part(&then), part(&now)) else {
            return Ok(None);
        };
        let difference = render_difference(&read.path, &then, &read.path, &now);
        let longest = now.len().clamp(SHORT_DIFFERENCE, LONGEST_EARLIER);
        Ok(Some(difference)
            .filter(|difference| !difference.is_empty() && difference.len() <= longest))
    }
}
