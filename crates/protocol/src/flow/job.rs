//! Jobs: a step for one unit.
//!
//! The outputs and dependencies of a job follow from the contract alone; `state.rs` derives its
//! status.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet, BinaryHeap};
use std::fmt;
use std::rc::Rc;

use quipu_contract::{
    Actor, ActorName, Binding, Builtin, Contract, Each, Need, Pattern, ProjectPath, Role, Step,
    Unit, UnitId,
};
use serde::Serialize;

/// A step, with its unit if it is done once per unit.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
pub struct Job {
    pub step: String,
    pub unit: Option<UnitId>,
}

impl fmt::Display for Job {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.unit {
            Some(unit) => write!(f, "{}/{unit}", self.step),
            None => f.write_str(&self.step),
        }
    }
}

/// A file that a job writes.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Output {
    pub path: ProjectPath,
    /// Markers, any of which proves the file complete. If empty, the existence of the file is
    /// sufficient.
    pub markers: Vec<String>,
    /// The job is complete without it.
    pub optional: bool,
}

/// How a job waits for another.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Wait {
    /// The other job must be done.
    Strict,
    /// The other job must be done or given up: a batch continues without a unit that waits for a
    /// person.
    Settled,
}

/// A job with everything that the contract defines for it.
#[derive(Debug, Clone)]
pub struct PlannedJob<'c> {
    pub job: Job,
    pub step: &'c Step,
    pub role: Option<&'c Role>,
    pub binding: Binding,
    pub outputs: Vec<Output>,
    /// Required reads that may match more than one file; `denies` excludes files from them.
    pub wild: Vec<Pattern>,
    pub denies: Vec<Pattern>,
    /// Indexes of other jobs that it waits for.
    pub waits: Vec<(usize, Wait)>,
    /// Preceding steps that have no unit yet.
    pub without: Vec<String>,
}

impl PlannedJob<'_> {
    /// The files that must exist for the job to be complete.
    pub fn required(&self) -> impl Iterator<Item = &Output> {
        self.outputs.iter().filter(|o| !o.optional)
    }

    /// The filled read patterns of a built-in step.
    pub fn reads(&self) -> Vec<Pattern> {
        self.step
            .reads
            .iter()
            .filter_map(|text| fill(text, &self.binding))
            .collect()
    }

    pub fn is_builtin(&self, builtin: Builtin) -> bool {
        self.step.builtin == Some(builtin)
    }
}

/// Fills the variables of a step's path. None if a variable has no value.
pub fn fill(text: &str, binding: &Binding) -> Option<Pattern> {
    let pattern = Pattern::parse(text).ok()?.fill(binding);
    let open = pattern.variables().next().is_some();
    (!open).then_some(pattern)
}

pub fn fill_path(text: &str, binding: &Binding) -> Option<ProjectPath> {
    fill(text, binding).and_then(|p| p.as_literal().and_then(|p| ProjectPath::parse(p).ok()))
}

/// The actor of a job.
pub fn actor_of(step: &Step, unit: Option<&UnitId>, agent: Option<&ActorName>) -> Actor {
    match &step.role {
        None => Actor::Runtime,
        Some(role) => Actor::Agent {
            role: ActorName::parse(role).ok(),
            unit: unit.cloned(),
            agent: agent.cloned(),
        },
    }
}

/// All jobs of the contract's flow, in the order of steps and units.
pub fn plan_jobs(contract: &Contract) -> Vec<PlannedJob<'_>> {
    let mut jobs = Vec::new();
    for step in ordered(&contract.steps) {
        let units: Vec<Option<&Unit>> = match step.each {
            Each::Once => vec![None],
            Each::Unit => contract.units_of(step).into_iter().map(Some).collect(),
        };
        for unit in units {
            jobs.push(planned(contract, step, unit));
        }
    }
    let order = StepOrder::of(contract, &jobs);
    let waits: Vec<_> = jobs
        .iter()
        .map(|t| plan_waits(contract, t, &order))
        .collect();
    let begun: BTreeSet<String> = jobs.iter().map(|t| t.job.step.clone()).collect();
    for (job, waits) in jobs.iter_mut().zip(waits) {
        job.waits = waits;
        job.without = job
            .step
            .after
            .iter()
            .filter(|step| !begun.contains(*step))
            .cloned()
            .collect();
    }
    jobs
}

/// Sorts steps after those that they depend on; otherwise the declared order stays.
fn ordered(steps: &[Step]) -> Vec<&Step> {
    let mut done: BTreeSet<&str> = BTreeSet::new();
    let mut left: Vec<&Step> = steps.iter().collect();
    let mut order = Vec::new();
    // Contract validation excludes cycles. The loop ends because each round removes a step.
    while let Some(at) = left
        .iter()
        .position(|s| s.after.iter().all(|a| done.contains(a.as_str())))
    {
        let step = left.remove(at);
        done.insert(&step.name);
        order.push(step);
    }
    order
}

fn planned<'c>(contract: &'c Contract, step: &'c Step, unit: Option<&Unit>) -> PlannedJob<'c> {
    let role = step.role.as_ref().and_then(|name| contract.roles.get(name));
    // In a panel, each role is its own unit.
    let named_like_role = || contract.unit(&UnitId::parse(step.role.as_deref()?).ok()?);
    let actor = Actor::Agent {
        role: None,
        unit: unit.or_else(named_like_role).map(|u| u.id.clone()),
        agent: None,
    };
    let binding = contract.actor_binding(&actor);
    let mut outputs: Vec<Output> = Vec::new();
    let mut push = |path: &str, marker: Option<&String>, optional: bool| {
        let Some(path) = fill_path(path, &binding) else {
            return;
        };
        let ruled = contract.rule(&path).and_then(|rule| rule.marker.as_ref());
        let markers = marker
            .or(ruled)
            .map(|m| m.split('|').map(|n| n.trim().to_owned()).collect())
            .unwrap_or_default();
        if !outputs.iter().any(|o| o.path == path) {
            outputs.push(Output {
                path,
                markers,
                optional,
            });
        }
    };
    match role {
        Some(role) => role
            .writes
            .iter()
            .for_each(|w| push(w.path.as_str(), w.marker.as_ref(), w.optional)),
        None => step.writes.iter().for_each(|path| push(path, None, false)),
    }
    let job = Job {
        step: step.name.clone(),
        unit: unit.map(|u| u.id.clone()),
    };
    let mut wild: Vec<Pattern> = match role {
        // A map decides which of its files are read; the rest is only listed.
        Some(role) => role
            .reads
            .iter()
            .filter(|r| r.need == Need::Must && r.map.is_none())
            .map(|r| r.path.fill(&binding))
            .collect(),
        None => step
            .reads
            .iter()
            .filter_map(|text| fill(text, &binding))
            .collect(),
    };
    wild.retain(|p| p.as_literal().is_none() && p.variables().next().is_none());
    let denies = role
        .iter()
        .flat_map(|r| &r.denies)
        .map(|d| d.path.fill(&binding))
        .collect();
    PlannedJob {
        job,
        step,
        role,
        binding,
        outputs,
        wild,
        denies,
        waits: Vec::new(),
        without: Vec::new(),
    }
}

/// The jobs of one step.
#[derive(Default)]
struct OfStep {
    all: Vec<usize>,
    /// Jobs without a unit.
    whole: Vec<usize>,
    by_unit: BTreeMap<UnitId, Vec<usize>>,
}

/// Units processed at the same time, and the batch of each.
struct Batches {
    batches: Vec<Vec<UnitId>>,
    places: BTreeMap<UnitId, usize>,
}

impl Batches {
    fn of(units: &[&Unit], size: usize) -> Batches {
        let batches = plan_batches(units, size);
        let places = batches
            .iter()
            .enumerate()
            .flat_map(|(at, batch)| batch.iter().map(move |unit| (unit.clone(), at)))
            .collect();
        Batches { batches, places }
    }
}

/// Lookup tables for the dependencies of all jobs. Built once, because a flow has hundreds of jobs
/// and is derived after each of them.
struct StepOrder<'c> {
    by_step: BTreeMap<&'c str, OfStep>,
    /// For each step, the step that ends its batch, and the batches.
    endings: BTreeMap<&'c str, (&'c Step, Rc<Batches>)>,
}

impl<'c> StepOrder<'c> {
    fn of(contract: &'c Contract, jobs: &[PlannedJob<'c>]) -> StepOrder<'c> {
        let mut by_step: BTreeMap<&str, OfStep> = BTreeMap::new();
        for (index, planned) in jobs.iter().enumerate() {
            let of_step = by_step.entry(&planned.step.name).or_default();
            of_step.all.push(index);
            match &planned.job.unit {
                Some(unit) => of_step.by_unit.entry(unit.clone()).or_default().push(index),
                None => of_step.whole.push(index),
            }
        }
        let mut endings = BTreeMap::new();
        for ending in contract.steps.iter().filter(|s| s.batch.is_some()) {
            let batches = Rc::new(Batches::of(
                &contract.units_of(ending),
                ending.batch.unwrap_or(1),
            ));
            for step in &contract.steps {
                // Applies if this step precedes the step that ends the batch, or is that step.
                if step.name == ending.name || comes_before(contract, &step.name, &ending.name) {
                    endings
                        .entry(step.name.as_str())
                        .or_insert_with(|| (ending, Rc::clone(&batches)));
                }
            }
        }
        StepOrder { by_step, endings }
    }

    /// The jobs of a step that concern a unit: its own and those without a unit.
    fn find(&self, step: &str, unit: Option<&UnitId>) -> Vec<usize> {
        let of_step = self.by_step.get(step);
        let (whole, own) = match unit {
            Some(unit) => (
                of_step.map(|jobs| &jobs.whole),
                of_step.and_then(|jobs| jobs.by_unit.get(unit)),
            ),
            None => (of_step.map(|jobs| &jobs.all), None),
        };
        whole.into_iter().chain(own).flatten().copied().collect()
    }
}

fn plan_waits(
    contract: &Contract,
    job: &PlannedJob<'_>,
    order: &StepOrder<'_>,
) -> Vec<(usize, Wait)> {
    let mut waits: BTreeMap<usize, Wait> = BTreeMap::new();
    let find = |step: &str, unit: Option<&UnitId>| order.find(step, unit);
    for earlier in &job.step.after {
        waits.extend(
            find(earlier, job.job.unit.as_ref())
                .into_iter()
                .map(|i| (i, Wait::Strict)),
        );
    }
    let Some(unit) = &job.job.unit else {
        return waits.into_iter().collect();
    };
    let needs = contract
        .unit(unit)
        .map(|u| u.needs.as_slice())
        .unwrap_or_default();
    let Some((ending, batches)) = order.endings.get(job.step.name.as_str()) else {
        waits.extend(
            needs
                .iter()
                .flat_map(|need| find(&job.step.name, Some(need)))
                .map(|i| (i, Wait::Strict)),
        );
        return waits.into_iter().collect();
    };
    let at = batches.places.get(unit).copied().unwrap_or(0);
    let mut soft = Vec::new();
    if let Some(before) = at.checked_sub(1).and_then(|i| batches.batches.get(i)) {
        soft.extend(before.iter().flat_map(|u| find(&ending.name, Some(u))));
    }
    if ending.name == job.step.name {
        for other in batches.batches.get(at).into_iter().flatten() {
            soft.extend(
                ending
                    .after
                    .iter()
                    .flat_map(|earlier| find(earlier, Some(other))),
            );
            if other.natural_cmp(unit).is_lt() {
                soft.extend(find(&ending.name, Some(other)));
            }
        }
    }
    for index in soft {
        waits.entry(index).or_insert(Wait::Settled);
    }
    waits.extend(
        needs
            .iter()
            .flat_map(|need| find(&ending.name, Some(need)))
            .map(|i| (i, Wait::Strict)),
    );
    waits.into_iter().collect()
}

/// Sorts the jobs after those that they wait for. Deriving in this order keeps the recursion one
/// job deep, however long a chain of units is.
pub(super) fn waits_first(jobs: &[PlannedJob<'_>]) -> Vec<usize> {
    let mut order = Vec::with_capacity(jobs.len());
    let mut seen = vec![false; jobs.len()];
    // The stack: jobs with the number of dependencies already followed.
    let mut open: Vec<(usize, usize)> = Vec::new();
    for start in 0..jobs.len() {
        if !std::mem::replace(&mut seen[start], true) {
            open.push((start, 0));
        }
        while let Some((index, followed)) = open.last_mut() {
            let Some((next, _)) = jobs[*index].waits.get(*followed) else {
                order.push(*index);
                open.pop();
                continue;
            };
            *followed += 1;
            if !std::mem::replace(&mut seen[*next], true) {
                open.push((*next, 0));
            }
        }
    }
    order
}

/// Whether a later step waits for a step, directly or through others.
pub fn comes_before(contract: &Contract, step: &str, later: &str) -> bool {
    let (mut open, mut seen) = (vec![later], BTreeSet::new());
    while let Some(name) = open.pop() {
        for earlier in contract
            .step(name)
            .map(|s| s.after.as_slice())
            .unwrap_or_default()
        {
            if earlier == step {
                return true;
            }
            if seen.insert(earlier.as_str()) {
                open.push(earlier);
            }
        }
    }
    false
}

/// Groups units into batches so that no unit needs another of its batch. Each batch takes the first
/// units that can begin.
pub fn plan_batches(units: &[&Unit], size: usize) -> Vec<Vec<UnitId>> {
    let places: BTreeMap<&UnitId, usize> = units
        .iter()
        .enumerate()
        .map(|(at, unit)| (&unit.id, at))
        .collect();
    let mut missing = vec![0_usize; units.len()];
    let mut needed_by: Vec<Vec<usize>> = vec![Vec::new(); units.len()];
    for (at, unit) in units.iter().enumerate() {
        // Needs outside the given units are ignored.
        for need in unit.needs.iter().collect::<BTreeSet<_>>() {
            if let Some(&other) = places.get(need) {
                missing[at] += 1;
                needed_by[other].push(at);
            }
        }
    }
    let mut ready: BinaryHeap<Reverse<usize>> = (0..units.len())
        .filter(|at| missing[*at] == 0)
        .map(Reverse)
        .collect();
    let mut batches = Vec::new();
    // Contract validation excludes cycles, which would leave units over.
    while !ready.is_empty() {
        let batch: Vec<usize> = std::iter::from_fn(|| ready.pop())
            .map(|Reverse(at)| at)
            .take(size.max(1))
            .collect();
        for waiting in batch.iter().flat_map(|done| &needed_by[*done]) {
            missing[*waiting] -= 1;
            if missing[*waiting] == 0 {
                ready.push(Reverse(*waiting));
            }
        }
        batches.push(batch.iter().map(|at| units[*at].id.clone()).collect());
    }
    batches
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use quipu_contract::{Localized, Place};

    fn unit(id: &str, needs: &[&str]) -> Unit {
        let parse = |id: &str| UnitId::parse(id).unwrap();
        Unit {
            id: parse(id),
            title: Localized::default(),
            needs: needs.iter().map(|n| parse(n)).collect(),
            vars: BTreeMap::new(),
            profile: None,
            place: Place {
                file: String::new(),
                line: 1,
            },
        }
    }

    #[test]
    fn a_batch_holds_no_unit_and_what_it_needs() {
        let units = [
            unit("ch01", &[]),
            unit("ch02", &["ch01"]),
            unit("ch03", &[]),
            unit("ch04", &[]),
            unit("ch05", &["ch04"]),
            unit("ch06", &[]),
        ];
        let all: Vec<&Unit> = units.iter().collect();
        let named = |size| {
            plan_batches(&all, size)
                .iter()
                .map(|b| b.iter().map(UnitId::as_str).collect::<Vec<_>>().join(" "))
                .collect::<Vec<_>>()
        };
        assert_eq!(named(3), ["ch01 ch03 ch04", "ch02 ch05 ch06"]);
        assert_eq!(named(1), ["ch01", "ch02", "ch03", "ch04", "ch05", "ch06"]);
        assert_eq!(named(9), ["ch01 ch03 ch04 ch06", "ch02 ch05"]);
    }

    /// The batches by definition: in each round, the first units with all needs done.
    fn batches_by_definition(units: &[&Unit], size: usize) -> Vec<Vec<UnitId>> {
        let (mut done, mut batches): (Vec<UnitId>, Vec<Vec<UnitId>>) = (Vec::new(), Vec::new());
        loop {
            let known =
                |need: &UnitId| done.contains(need) || !units.iter().any(|unit| unit.id == *need);
            let can_begin =
                |unit: &&&Unit| !done.contains(&unit.id) && unit.needs.iter().all(known);
            let batch: Vec<UnitId> = units
                .iter()
                .filter(can_begin)
                .take(size)
                .map(|unit| unit.id.clone())
                .collect();
            if batch.is_empty() {
                return batches;
            }
            done.extend(batch.iter().cloned());
            batches.push(batch);
        }
    }

    proptest! {
        #[test]
        fn batches_are_as_defined(needs in prop::collection::vec(prop::collection::vec(0usize..12, 0..4), 0..10), size in 1usize..5) {
            let name = |n: usize| format!("u{n}");
            let units: Vec<Unit> = needs
                .iter()
                .enumerate()
                .map(|(nth, needs)| {
                    // Units also need later ones; 10 and 11 never exist. Cycles are excluded.
                    let needs: Vec<String> = needs.iter().filter(|need| **need > nth || **need >= 10).map(|need| name(*need)).collect();
                    unit(&name(nth), &needs.iter().map(String::as_str).collect::<Vec<_>>())
                })
                .collect();
            let units: Vec<&Unit> = units.iter().collect();
            prop_assert_eq!(plan_batches(&units, size), batches_by_definition(&units, size));
        }
    }
}
