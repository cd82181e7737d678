//! Refuses a text that an agent calls complete and that its job would not accept.
//!
//! A run checks the outputs of an attempt. An agent that writes the same file itself ends it with the
//! same marker, and the flow goes on behind it.

use quipu_contract::{Actor, Language, ProjectPath};
use quipu_store::{Change, Refused, StoreError};

use super::collect::Collected;
use super::find_faults;
use crate::flow::job::plan_jobs;
use crate::flow::snapshot::marker_of;
use crate::project::open::Project;

impl Project {
    /// People may end a file as they like, and the commit of an attempt, which has a note, was
    /// checked.
    pub(crate) fn refuse_false_end(&self, change: &Change) -> Result<(), StoreError> {
        let is_agent = matches!(change.actor, Actor::Agent { .. });
        if !is_agent || change.note.is_some() || self.contract.steps.is_empty() {
            return Ok(());
        }
        // The store refuses what the actor may not write, and a fault would tell about it.
        let binding = self.contract.actor_binding(&change.actor);
        let grant = self.contract.grant(&change.actor).ok();
        let may_write =
            |path: &ProjectPath| grant.is_some_and(|grant| grant.may_write(path, &binding).is_ok());
        let mut texts = self.resulting_texts(change, may_write)?;
        texts.retain(|path, bytes| {
            marker_of(path.as_str(), &String::from_utf8_lossy(bytes)).is_some()
        });
        if texts.is_empty() {
            return Ok(());
        }
        let is_output = |path: &ProjectPath| texts.contains_key(path);
        for mut job in plan_jobs(&self.contract) {
            job.outputs.retain(|output| is_output(&output.path));
            for output in job.outputs.clone() {
                let bytes = texts[&output.path].to_vec();
                let marker = marker_of(output.path.as_str(), &String::from_utf8_lossy(&bytes));
                let Some(marker) = marker.filter(|found| output.markers.contains(found)) else {
                    continue;
                };
                job.outputs = vec![output.clone()];
                let collected = Collected {
                    files: vec![(output.clone(), bytes)],
                    ..Collected::default()
                };
                let found = find_faults(self, &job, &collected, &[])?;
                if !found.faults.is_empty() {
                    return Err(self.false_end(found.faults.join("\n"), &output.path, &marker));
                }
            }
        }
        Ok(())
    }

    fn false_end(&self, what: String, path: &ProjectPath, marker: &str) -> StoreError {
        let rule = self.contract.rule(path);
        let remedy = match self.contract.language {
            Language::En => format!("fix it, or leave out <!-- {marker} --> until it is complete"),
            Language::Zh => format!("改正；尚未写完就先不要写 <!-- {marker} -->"),
        };
        StoreError::Refused(Refused {
            what,
            rule: rule.map(|rule| (rule.place.clone(), format!("marker = \"{marker}\""))),
            remedy,
        })
    }
}
