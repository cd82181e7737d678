//! Estimates the length of texts that a flow has not written yet.
//!
//! A text is expected to be as long as the same text of other units, else as long as the contract
//! says.

use std::cell::RefCell;
use std::collections::{BTreeMap, BTreeSet};

use quipu_contract::{Builtin, Pattern, ProjectPath, Tokens};
use quipu_text::Counter;

use super::job::{Output, PlannedJob, fill_path};
use super::state::{Flow, State};
use crate::project::open::Project;
use crate::view::usual_length::usual_tokens;

/// The usual length of a report without a length in the contract.
const REPORT: Tokens = Tokens(800);
/// The overhead of a page besides its text, and the size of a contents page or a stylesheet.
const FRAME: Tokens = Tokens(1500);

/// The texts of a flow, written or expected.
pub(super) struct Expected<'e, 'c> {
    project: &'e Project,
    flow: &'e Flow<'c>,
    counter: Counter,
    known: RefCell<BTreeMap<ProjectPath, Tokens>>,
}

impl<'e, 'c> Expected<'e, 'c> {
    pub fn new(project: &'e Project, flow: &'e Flow<'c>, counter: Counter) -> Self {
        Expected {
            project,
            flow,
            counter,
            known: RefCell::default(),
        }
    }

    /// The expected output of a job.
    pub fn written(&self, planned: &PlannedJob<'_>) -> Tokens {
        planned
            .required()
            .map(|output| self.of(planned, output))
            .sum()
    }

    /// The expected input of a job that earlier jobs have not written yet.
    pub fn read_later(&self, index: usize) -> Tokens {
        let planned = &self.flow.jobs[index];
        let before = self.before(index);
        let units = self.project.contract.units.len().max(1) as u64;
        let read: Tokens = planned
            .role
            .iter()
            .flat_map(|role| &role.reads)
            .map(|pointer| {
                let whole = self.to_come(&before, &pointer.path.fill(&planned.binding));
                // The job reads one section of a text that has one per unit.
                if pointer.section.is_some() {
                    Tokens(whole.0 / units)
                } else {
                    whole
                }
            })
            .sum();
        // A diff of two texts has about half the length of one.
        let newer = planned
            .step
            .compare
            .last()
            .and_then(|newer| fill_path(newer, &planned.binding));
        let difference = Tokens(newer.map_or(0, |newer| self.file(&newer).0 / 2));
        // A job that is redone sees its earlier output.
        let earlier: Tokens = planned
            .required()
            .filter_map(|output| self.now(&output.path))
            .sum();
        read + difference + earlier
    }

    /// The files that a pattern will match after these jobs, besides those that it matches now.
    fn to_come(&self, before: &BTreeSet<usize>, pattern: &Pattern) -> Tokens {
        let (mut seen, mut sum) = (BTreeSet::new(), Tokens::ZERO);
        for planned in before.iter().map(|index| &self.flow.jobs[*index]) {
            for output in planned
                .required()
                .filter(|output| pattern.matches(output.path.as_str()).is_some())
            {
                if let Some(grows) = self.grows(planned, output) {
                    sum += grows;
                } else if seen.insert(&output.path) && self.now(&output.path).is_none() {
                    sum += self.of(planned, output);
                }
            }
        }
        sum
    }

    /// The open jobs that a job waits for, directly or through others.
    fn before(&self, index: usize) -> BTreeSet<usize> {
        let (mut open, mut seen) = (vec![index], BTreeSet::new());
        while let Some(index) = open.pop() {
            open.extend(
                self.flow.jobs[index]
                    .waits
                    .iter()
                    .map(|(before, _)| *before)
                    .filter(|before| seen.insert(*before)),
            );
        }
        seen.retain(|before| {
            !matches!(
                self.flow.statuses[*before].state,
                State::Done | State::Skipped
            )
        });
        seen
    }

    /// The growth of a shared file when a unit is remembered: its part of the items.
    fn grows(&self, planned: &PlannedJob<'_>, output: &Output) -> Option<Tokens> {
        let remember = planned.step.remember.as_ref()?;
        if !remember
            .items
            .iter()
            .any(|item| item.to == output.path.as_str())
        {
            return None;
        }
        let items = fill_path(&remember.from, &planned.binding)
            .map(|from| self.file(&from))
            .unwrap_or_default();
        Some(Tokens(items.0 / remember.items.len() as u64))
    }

    /// The length of a file: its current length, or the expected one.
    fn file(&self, path: &ProjectPath) -> Tokens {
        let writer = || {
            self.flow.jobs.iter().find_map(|planned| {
                Some((planned, planned.outputs.iter().find(|o| o.path == *path)?))
            })
        };
        self.now(path)
            .or_else(|| writer().map(|(planned, output)| self.of(planned, output)))
            .unwrap_or_default()
    }

    fn of(&self, planned: &PlannedJob<'_>, output: &Output) -> Tokens {
        if let Some(known) = self.known.borrow().get(&output.path) {
            return *known;
        }
        // A file that depends on itself adds nothing.
        self.known
            .borrow_mut()
            .insert(output.path.clone(), Tokens::ZERO);
        let written = self
            .now(&output.path)
            .or_else(|| self.mean_of_others(planned, output));
        let tokens = written.unwrap_or_else(|| self.declared(planned, output));
        self.known.borrow_mut().insert(output.path.clone(), tokens);
        tokens
    }

    fn now(&self, path: &ProjectPath) -> Option<Tokens> {
        let (bytes, _) = self.project.store.read(path).ok()??;
        Some(self.counter.count(&String::from_utf8_lossy(&bytes)))
    }

    /// The mean length of the same output for other units.
    fn mean_of_others(&self, planned: &PlannedJob<'_>, output: &Output) -> Option<Tokens> {
        let place = planned
            .outputs
            .iter()
            .position(|own| own.path == output.path)?;
        let others = self.flow.jobs.iter().filter(|other| {
            other.job.step == planned.job.step && other.job.unit != planned.job.unit
        });
        let written: Vec<Tokens> = others
            .filter_map(|other| self.now(&other.outputs.get(place)?.path))
            .collect();
        let count = u64::try_from(written.len())
            .ok()
            .filter(|count| *count > 0)?;
        Some(Tokens(written.into_iter().sum::<Tokens>().0 / count))
    }

    fn declared(&self, planned: &PlannedJob<'_>, output: &Output) -> Tokens {
        let reads: Vec<ProjectPath> = planned
            .step
            .reads
            .iter()
            .filter_map(|read| fill_path(read, &planned.binding))
            .collect();
        let usual = || {
            usual_tokens(
                &self.project.contract,
                planned.role,
                &planned.binding,
                &output.path,
            )
        };
        match planned.step.builtin {
            Some(Builtin::Merge) => {
                let whole: Tokens = reads.iter().map(|read| self.file(read)).sum();
                // A merged report with parts takes only the items of each report: about two thirds.
                let in_parts = planned
                    .step
                    .merge
                    .as_ref()
                    .is_some_and(|merge| !merge.parts.is_empty());
                Tokens(if in_parts { whole.0 * 2 / 3 } else { whole.0 })
            }
            Some(Builtin::Remember) => {
                let text = planned
                    .step
                    .remember
                    .as_ref()
                    .and_then(|remember| remember.text.as_ref());
                text.and_then(|text| fill_path(text, &planned.binding))
                    .map(|text| self.file(&text))
                    .unwrap_or_default()
            }
            // A gate copies its drafts to its outputs, in order.
            Some(Builtin::Gate) => {
                let place = planned
                    .outputs
                    .iter()
                    .position(|own| own.path == output.path);
                place
                    .and_then(|place| reads.get(place))
                    .map(|draft| self.file(draft))
                    .unwrap_or_default()
            }
            Some(Builtin::Publish) => FRAME + self.page_text(planned),
            Some(Builtin::Derive) => Tokens::ZERO,
            None => usual().unwrap_or(REPORT),
        }
    }

    /// The text of a page: its unit's chapter plus HTML tags.
    fn page_text(&self, planned: &PlannedJob<'_>) -> Tokens {
        let Some(unit) = &planned.job.unit else {
            return Tokens::ZERO;
        };
        let of_unit = self.flow.jobs.iter().filter(|other| {
            other.job.unit.as_ref() == Some(unit) && other.is_builtin(Builtin::Remember)
        });
        let chapter = of_unit
            .filter_map(|other| {
                fill_path(other.step.remember.as_ref()?.to.as_ref()?, &other.binding)
            })
            .next();
        Tokens(chapter.map_or(0, |chapter| self.file(&chapter).0 * 2))
    }
}
