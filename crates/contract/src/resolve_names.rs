//! Checks the paths in a contract: a path that can match nothing is a fault.
//!
//! Paths that are filled while the contract is read are checked there. This module checks the paths
//! that stay text until a step runs, and the pointers that depend on a unit's variables.

use toml::Spanned;

use crate::contract::{ANY_ROLE, Contract};
use crate::fault::{Fault, Place, one_of};
use crate::flow::Step;
use crate::naming::NamesNothing;
use crate::path::ProjectPath;
use crate::pattern::{Binding, Pattern};
use crate::resolve::Resolver;
use crate::role::Role;
use crate::source::Source;
use crate::unit::Unit;

impl Resolver {
    /// Checks a folder that `init` creates.
    pub(crate) fn check_folder(&mut self, source: &Source, folder: &Spanned<String>) {
        let plain = folder.get_ref().trim_end_matches('/');
        let what = match ProjectPath::parse(plain) {
            Ok(path) if path.as_str() == plain => return,
            Ok(path) => {
                return self.fault(
                    source,
                    folder.span(),
                    format!("`{plain}` begins with `./`"),
                    format!("write `{path}`"),
                );
            }
            Err(bad) => bad.to_string(),
        };
        self.fault(
            source,
            folder.span(),
            what,
            "name a folder below the project root".into(),
        );
    }

    /// Checks that the roles of file rules exist, and that the paths of steps, and of pointers with
    /// a unit's variables, are valid for every unit.
    pub(crate) fn check_names(&mut self, contract: &Contract) {
        for rule in &contract.files {
            let is_unknown =
                |name: &&String| *name != ANY_ROLE && !contract.roles.contains_key(*name);
            let unknown = rule.roles.iter().flatten().find(is_unknown);
            if let Some(role) = unknown {
                self.found.push(Fault {
                    what: format!(
                        "`{}` is for role `{role}`, which is not declared",
                        rule.path
                    ),
                    place: rule.place.clone(),
                    other: None,
                    remedy: one_of(contract.roles.keys()),
                });
            }
        }
        let own = contract.binding();
        let units: Vec<&Unit> = contract
            .units
            .iter()
            .filter(|unit| !unit.vars.is_empty())
            .collect();
        for role in contract.roles.values() {
            for (pattern, place) in
                pointers(role).filter(|(pattern, _)| pattern.variables().next().is_some())
            {
                self.check_filled(place, pattern, &own, &units);
            }
        }
        for step in &contract.steps {
            for text in paths(step) {
                match Pattern::parse(text) {
                    Ok(pattern) => self.check_filled(&step.place, &pattern, &own, &units),
                    Err(what) => {
                        let remedy = format!("a path of step `{}`", step.name);
                        self.found.push(Fault {
                            place: step.place.clone(),
                            what,
                            other: None,
                            remedy,
                        });
                    }
                }
            }
        }
    }

    fn check_filled(&mut self, place: &Place, pattern: &Pattern, own: &Binding, units: &[&Unit]) {
        let speaks_of = units.iter().filter(|unit| {
            pattern
                .variables()
                .any(|variable| unit.vars.contains_key(variable))
        });
        let with_unit = speaks_of.map(|unit| pattern.fill(&unit.vars).fill(own));
        for filled in std::iter::once(pattern.fill(own)).chain(with_unit) {
            if let Err(nothing) = filled.can_name() {
                self.found
                    .push(fault(place.clone(), pattern, &filled, nothing));
                return;
            }
        }
    }
}

/// Builds the fault for a path that matches nothing, with its correction.
pub(crate) fn fault(
    place: Place,
    written: &Pattern,
    filled: &Pattern,
    nothing: NamesNothing,
) -> Fault {
    let bad = nothing.bad.to_string();
    let by_variable = written.as_str() != filled.as_str();
    let what = if by_variable {
        format!("{bad}: with its variables it is `{written}`")
    } else {
        bad
    };
    let remedy = match nothing.instead {
        Some(instead) if by_variable => {
            format!("change its variables, so that it becomes `{instead}`")
        }
        Some(instead) => format!("write `{instead}`"),
        None => "name a path below the project root".into(),
    };
    Fault {
        place,
        what,
        other: None,
        remedy,
    }
}

/// Returns every path that a role points to.
fn pointers(role: &Role) -> impl Iterator<Item = (&Pattern, &Place)> {
    let read = role
        .reads
        .iter()
        .chain(&role.denies)
        .map(|p| (&p.path, &p.place));
    let written = role.writes.iter().map(|p| (&p.path, &p.place));
    let asked = role.asks.iter().map(|p| (&p.path, &p.place));
    let rehearsed = role
        .rehearse
        .iter()
        .filter_map(|r| r.from.as_ref())
        .map(|from| (from, &role.place));
    read.chain(written).chain(asked).chain(rehearsed)
}

/// Returns every path that a step names.
fn paths(step: &Step) -> impl Iterator<Item = &String> {
    let remembered = step.remember.iter().flat_map(|remember| {
        let named = [
            Some(&remember.from),
            remember.text.as_ref(),
            remember.to.as_ref(),
        ];
        named
            .into_iter()
            .flatten()
            .chain(remember.items.iter().map(|item| &item.to))
    });
    let declared = step
        .declare
        .iter()
        .flat_map(|declare| std::iter::once(&declare.from).chain(&declare.map));
    step.reads
        .iter()
        .chain(&step.writes)
        .chain(&step.when.files)
        .chain(remembered)
        .chain(declared)
        .chain(&step.compare)
        .chain(&step.check)
}
