//! Order: units and steps that wait for others must be able to begin.

use std::collections::{BTreeMap, BTreeSet};

use crate::contract::Contract;
use crate::fault::Fault;
use crate::unit::Unit;

pub(crate) fn check_units(found: &mut Vec<Fault>, units: &[Unit]) {
    let after = units.iter().map(|unit| (unit.id.as_str(), unit.needs.iter().map(|need| need.as_str()).collect())).collect();
    for unit in units {
        for need in &unit.needs {
            if !units.iter().any(|u| u.id == *need) {
                let known = units.iter().map(|u| u.id.as_str()).collect::<Vec<_>>().join(", ");
                found.push(Fault {
                    what: format!("unit `{}` needs `{need}`, which is not declared", unit.id),
                    place: unit.place.clone(),
                    other: None,
                    mend: format!("one of {known}"),
                });
            }
        }
        if let Some(round) = cycle_through(unit.id.as_str(), &after) {
            found.push(Fault {
                what: format!("units wait for each other: {}", round.join(" → ")),
                place: unit.place.clone(),
                other: None,
                mend: "drop one of these `needs`".into(),
            });
        }
    }
}

pub(crate) fn check_steps(found: &mut Vec<Fault>, contract: &Contract) {
    let steps = &contract.steps;
    let after = steps.iter().map(|step| (step.name.as_str(), step.after.iter().map(String::as_str).collect())).collect();
    for step in steps {
        let mut fault = |what: String, mend: String| {
            found.push(Fault { place: step.place.clone(), what, other: None, mend });
        };
        if let Some(role) = step.role.as_ref().filter(|r| !contract.roles.contains_key(*r)) {
            let known = contract.roles.keys().cloned().collect::<Vec<_>>().join(", ");
            fault(format!("step `{}` is for role `{role}`, which is not declared", step.name), format!("one of {known}"));
        }
        for earlier in &step.after {
            if !steps.iter().any(|s| s.name == *earlier) {
                let known = steps.iter().map(|s| s.name.as_str()).collect::<Vec<_>>().join(", ");
                fault(format!("step `{}` comes after `{earlier}`, which is not declared", step.name), format!("one of {known}"));
            }
        }
        for earlier in &step.back {
            match steps.iter().find(|s| s.name == *earlier) {
                None => {
                    let known = steps.iter().map(|s| s.name.as_str()).collect::<Vec<_>>().join(", ");
                    fault(format!("step `{}` sends back to `{earlier}`, which is not declared", step.name), format!("one of {known}"));
                }
                Some(target) if !comes_after(&step.name, &target.name, &after) => {
                    fault(
                        format!("step `{}` sends back to `{earlier}`, which does not come before it", step.name),
                        "an earlier step".into(),
                    );
                }
                Some(_) => {}
            }
        }
        for member in step.subjects.values().flatten().filter(|m| !steps.iter().any(|s| s.name == **m)) {
            fault(format!("step `{}` has a subject of `{member}`, which is not declared", step.name), "names of steps".into());
        }
        if let Some(round) = cycle_through(&step.name, &after) {
            fault(format!("steps wait for each other: {}", round.join(" → ")), "drop one of these `after`".into());
        }
    }
}

/// What each name waits for.
type After<'n> = BTreeMap<&'n str, Vec<&'n str>>;

/// Whether one step waits for another, directly or through others.
fn comes_after(step: &str, earlier: &str, after: &After<'_>) -> bool {
    let (mut open, mut seen) = (vec![step], BTreeSet::new());
    while let Some(name) = open.pop() {
        if name == earlier {
            return true;
        }
        if seen.insert(name) {
            open.extend(after.get(name).into_iter().flatten());
        }
    }
    false
}

/// A way from a name back to itself, if there is one.
fn cycle_through<'n>(start: &'n str, after: &After<'n>) -> Option<Vec<&'n str>> {
    // Each name with the one it was reached from: the way is read backwards.
    let mut reached: BTreeMap<&str, &str> = BTreeMap::new();
    let mut open = vec![start];
    while let Some(name) = open.pop() {
        for next in after.get(name).into_iter().flatten().copied() {
            if next == start {
                let back = std::iter::successors(Some(name), |name| (*name != start).then(|| reached[name]));
                let mut way: Vec<&str> = std::iter::once(start).chain(back).collect();
                way.reverse();
                return Some(way);
            }
            if let std::collections::btree_map::Entry::Vacant(new) = reached.entry(next) {
                new.insert(name);
                open.push(next);
            }
        }
    }
    None
}
