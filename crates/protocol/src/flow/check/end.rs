//! Refuses a text that an agent calls complete and that its job would not accept.
//!
//! A run checks the outputs of an attempt. An agent that writes the same file itself ends it with the
//! same marker, and the flow goes on behind it.

use quipu_contract::{Actor, Language, ProjectPath};
use quipu_store::{Change, Refused, StoreError};

use super::collect::Collected;
use super::find_faults;
use crate::flow::job::{Output, plan_jobs};
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
        let jobs = plan_jobs(&self.contract);
        let has_role = change.actor.role().is_some();
        for (path, bytes) in &texts {
            let text = String::from_utf8_lossy(bytes);
            let Some(marker) = marker_of(path.as_str(), &text) else {
                continue;
            };
            let is_ended =
                |output: &Output| output.path == **path && output.markers.contains(&marker);
            let faults = match jobs.iter().find(|job| job.outputs.iter().any(is_ended)) {
                Some(job) => {
                    let mut job = job.clone();
                    job.outputs.retain(is_ended);
                    let files = job.outputs.iter().cloned();
                    let collected = Collected {
                        files: files.map(|output| (output, bytes.to_vec())).collect(),
                        ..Collected::default()
                    };
                    find_faults(self, &job, &collected, &[])?.faults
                }
                None if !has_role && self.ends_job_of_no_unit(path, &marker) => {
                    vec![match self.contract.language {
                        Language::En => format!("no unit of the flow has `{path}` yet"),
                        Language::Zh => format!("流程里还没有哪个单元写 `{path}`"),
                    }]
                }
                None => Vec::new(),
            };
            if !faults.is_empty() {
                return Err(self.false_end(faults.join("\n"), path, &marker));
            }
        }
        Ok(())
    }

    /// Whether a step writes such files, but not for a unit that exists: once the unit is declared,
    /// the marker would count.
    fn ends_job_of_no_unit(&self, path: &ProjectPath, marker: &str) -> bool {
        let contract = &self.contract;
        let ruled = contract.rule(path).and_then(|rule| rule.marker.as_ref());
        let roles = contract.steps.iter().filter_map(|step| step.role.as_ref());
        roles
            .filter_map(|role| contract.roles.get(role))
            .flat_map(|role| &role.writes)
            .filter(|write| write.path.matches(path.as_str()).is_some())
            .filter_map(|write| write.marker.as_ref().or(ruled))
            .any(|markers| markers.split('|').any(|known| known.trim() == marker))
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
