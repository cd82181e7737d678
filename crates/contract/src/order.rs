//! Checks the dependencies between units and between steps: no cycle may keep one from starting.

use std::collections::{BTreeMap, BTreeSet};

use crate::contract::Contract;
use crate::fault::{Fault, one_of};
use crate::unit::Unit;

/// Maximum number of names shown for a cycle; the first names are enough to find it.
const ROUND_SHOWN: usize = 12;

/// More steps than this are a mistake, and each step may send work back to any other.
const MOST_STEPS: usize = 1_000;

pub(crate) fn check_units(found: &mut Vec<Fault>, units: &[Unit]) {
    let after: After<'_> = units
        .iter()
        .map(|unit| {
            (
                unit.id.as_str(),
                unit.needs.iter().map(|need| need.as_str()).collect(),
            )
        })
        .collect();
    let by_name: BTreeMap<&str, &Unit> =
        units.iter().map(|unit| (unit.id.as_str(), unit)).collect();
    for unit in units {
        for need in unit
            .needs
            .iter()
            .filter(|need| !after.contains_key(need.as_str()))
        {
            found.push(Fault {
                what: format!("unit `{}` needs `{need}`, which is not declared", unit.id),
                place: unit.place.clone(),
                other: None,
                remedy: one_of(units.iter().map(|u| &u.id)),
            });
        }
    }
    for round in find_cycles(units.iter().map(|unit| unit.id.as_str()), &after) {
        found.push(Fault {
            what: format!("units wait for each other: {}", render_round(&round)),
            place: by_name[round[0]].place.clone(),
            other: None,
            remedy: "remove one of these `needs`".into(),
        });
    }
}

pub(crate) fn check_steps(found: &mut Vec<Fault>, contract: &Contract) {
    let steps = &contract.steps;
    if let Some(step) = steps.get(MOST_STEPS) {
        found.push(Fault {
            what: format!(
                "step `{}` is one too many: a flow may have at most {MOST_STEPS} steps",
                step.name
            ),
            place: step.place.clone(),
            other: None,
            remedy: "use fewer steps; `each = \"unit\"` repeats one for every unit".into(),
        });
        return;
    }
    let after: After<'_> = steps
        .iter()
        .map(|step| {
            (
                step.name.as_str(),
                step.after.iter().map(String::as_str).collect(),
            )
        })
        .collect();
    let names = || steps.iter().map(|step| step.name.as_str());
    for step in steps {
        let mut fault = |what: String, remedy: String| {
            found.push(Fault {
                place: step.place.clone(),
                what,
                other: None,
                remedy,
            });
        };
        if let Some(role) = step
            .role
            .as_ref()
            .filter(|r| !contract.roles.contains_key(*r))
        {
            let known = one_of(contract.roles.keys());
            fault(
                format!(
                    "step `{}` is for role `{role}`, which is not declared",
                    step.name
                ),
                known,
            );
        }
        for earlier in step
            .after
            .iter()
            .filter(|earlier| !after.contains_key(earlier.as_str()))
        {
            fault(
                format!(
                    "step `{}` comes after `{earlier}`, which is not declared",
                    step.name
                ),
                one_of(names()),
            );
        }
        let before = if step.back.is_empty() {
            BTreeSet::new()
        } else {
            all_before(&step.name, &after)
        };
        for earlier in &step.back {
            if !after.contains_key(earlier.as_str()) {
                fault(
                    format!(
                        "step `{}` sends back to `{earlier}`, which is not declared",
                        step.name
                    ),
                    one_of(names()),
                );
            } else if !before.contains(earlier.as_str()) {
                let what = format!(
                    "step `{}` sends back to `{earlier}`, which does not come before it",
                    step.name
                );
                fault(what, "name an earlier step".into());
            }
        }
    }
    for round in find_cycles(names(), &after) {
        let place = steps
            .iter()
            .find(|step| step.name == round[0])
            .map(|step| step.place.clone());
        found.extend(place.map(|place| Fault {
            what: format!("steps wait for each other: {}", render_round(&round)),
            place,
            other: None,
            remedy: "remove one of these `after`".into(),
        }));
    }
}

/// The dependencies of each name.
type After<'n> = BTreeMap<&'n str, Vec<&'n str>>;

/// Returns a step and all its direct and indirect dependencies.
fn all_before<'n>(step: &'n str, after: &After<'n>) -> BTreeSet<&'n str> {
    let (mut open, mut seen) = (vec![step], BTreeSet::new());
    while let Some(name) = open.pop() {
        if seen.insert(name) {
            open.extend(after.get(name).into_iter().flatten());
        }
    }
    seen
}

/// A name on the current path of the depth-first search.
struct Open<'n> {
    name: &'n str,
    /// Number of its dependencies already visited.
    followed: usize,
    /// The highest position on the path, up to here, that belongs to a reported cycle.
    reported: Option<usize>,
}

/// Finds dependency cycles: `a`, `b` for a → b → a. The cycles are disjoint, and every strongly
/// connected group has at least one. Every name and dependency is visited once.
fn find_cycles<'n>(names: impl Iterator<Item = &'n str>, after: &After<'n>) -> Vec<Vec<&'n str>> {
    let mut rounds = Vec::new();
    // The position of a name on the current path; `None` after it was left.
    let mut seen: BTreeMap<&str, Option<usize>> = BTreeMap::new();
    let mut row: Vec<Open<'n>> = Vec::new();
    for start in names {
        let mut next = (!seen.contains_key(start)).then_some(start);
        loop {
            if let Some(name) = next.take() {
                seen.insert(name, Some(row.len()));
                row.push(Open {
                    name,
                    followed: 0,
                    reported: row.last().and_then(|above| above.reported),
                });
            }
            let Some(top) = row.last_mut() else { break };
            let Some(need) = after
                .get(top.name)
                .and_then(|needs| needs.get(top.followed))
                .copied()
            else {
                seen.insert(top.name, None);
                row.pop();
                continue;
            };
            top.followed += 1;
            match seen.get(need) {
                None => next = Some(need),
                Some(None) => {}
                Some(&Some(first)) if top.reported.is_none_or(|reported| reported < first) => {
                    rounds.push(row[first..].iter().map(|open| open.name).collect());
                    for (place, open) in row.iter_mut().enumerate().skip(first) {
                        open.reported = Some(place);
                    }
                }
                Some(Some(_)) => {}
            }
        }
    }
    rounds
}

/// Formats `a → b → a`.
fn render_round(round: &[&str]) -> String {
    let shown = round[..round.len().min(ROUND_SHOWN)].join(" → ");
    match round.len() {
        ..=ROUND_SHOWN => format!("{shown} → {}", round[0]),
        count => format!("{shown} → … → {} ({count} in all)", round[0]),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// Whether a name depends on itself, found by exhaustive search.
    fn is_in_a_round(start: &str, after: &After<'_>) -> bool {
        after
            .get(start)
            .into_iter()
            .flatten()
            .any(|next| all_before(next, after).contains(start))
    }

    #[test]
    fn a_round_is_cut_where_it_is_too_long_to_read() {
        assert_eq!(render_round(&["a", "b"]), "a → b → a");
        let names: Vec<String> = (0..20).map(|n| n.to_string()).collect();
        let names: Vec<&str> = names.iter().map(String::as_str).collect();
        assert_eq!(
            render_round(&names),
            "0 → 1 → 2 → 3 → 4 → 5 → 6 → 7 → 8 → 9 → 10 → 11 → … → 0 (20 in all)"
        );
    }

    proptest! {
        #[test]
        fn rounds_are_those_that_following_every_way_finds(needs in prop::collection::vec(prop::collection::vec(0usize..8, 0..4), 8)) {
            let names: Vec<String> = (0..8).map(|n| format!("n{n}")).collect();
            let after: After<'_> = needs
                .iter()
                .enumerate()
                .map(|(nth, needs)| (names[nth].as_str(), needs.iter().map(|need| names[*need].as_str()).collect()))
                .collect();
            let rounds = find_cycles(names.iter().map(String::as_str), &after);
            let mut told = BTreeSet::new();
            for round in &rounds {
                for (nth, name) in round.iter().enumerate() {
                    prop_assert!(told.insert(*name), "{name} is in two rounds: {rounds:?}");
                    prop_assert!(after[name].contains(&round[(nth + 1) % round.len()]), "{rounds:?}");
                }
            }
            for name in names.iter().filter(|name| is_in_a_round(name, &after)) {
                let group = all_before(name, &after);
                prop_assert!(rounds.iter().any(|round| group.contains(round[0])), "{name} is in no group of {rounds:?}");
            }
        }
    }
}
