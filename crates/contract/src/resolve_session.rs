//! Resolves the session parts of a contract: scenes and the finish checklist.

use std::collections::BTreeMap;

use toml::Spanned;

use super::Resolver;
use crate::contract::Contract;
use crate::fault::{Fault, one_of};
use crate::finish::{Condition, FinishItem, Occasion};
use crate::language::Localized;
use crate::manifest::{FinishTable, NextTable, SceneTable};
use crate::role::Role;
use crate::scene::{Moment, Next, Scene};
use crate::source::Source;

impl Resolver {
    pub(super) fn finish_item(
        &mut self,
        source: &Source,
        item: &Spanned<FinishTable>,
    ) -> Option<FinishItem> {
        let table = item.get_ref();
        let Some(need) = Condition::parse(table.need.get_ref()) else {
            let what = format!("unknown condition `{}`", table.need.get_ref());
            self.fault(
                source,
                table.need.span(),
                what,
                format!("use one of {}", Condition::KNOWN),
            );
            return None;
        };
        Some(FinishItem {
            name: table.name.get_ref().clone(),
            text: table.text.clone(),
            form: table.form,
            need,
            when: table.when,
            roles: table.roles.clone(),
            supply: table.supply.clone(),
            place: source.place(table.name.span()),
        })
    }

    /// Checks that the role of each scene exists.
    pub(super) fn check_scenes(&mut self, contract: &Contract) {
        for scene in contract.scenes.values() {
            if let Some(role) = scene
                .role
                .as_ref()
                .filter(|r| !contract.roles.contains_key(*r))
            {
                self.found.push(Fault {
                    what: format!(
                        "scene `{}` starts role `{role}`, which is not declared",
                        scene.name
                    ),
                    place: scene.place.clone(),
                    other: None,
                    remedy: one_of(contract.roles.keys()),
                });
            }
        }
        for form in contract
            .finish
            .iter()
            .filter(|i| i.when != Occasion::Never && contract.of_form(i.form).next().is_none())
        {
            self.found.push(Fault {
                what: format!(
                    "finish item `{}` needs a file of form `{}`, and the contract has none",
                    form.name, form.form
                ),
                place: form.place.clone(),
                other: None,
                remedy: format!(
                    "add [[files]] path = \"…\" form = \"{}\", or set when = \"never\"",
                    form.form
                ),
            });
        }
    }
}

/// Adds the pointers of the roles in `also` to a role's own.
pub(super) fn join_roles(roles: &mut BTreeMap<String, Role>) {
    let alone = roles.clone();
    for role in roles.values_mut() {
        role.also
            .retain(|name| alone.contains_key(name) && *name != role.name);
        for other in role.also.iter().filter_map(|name| alone.get(name)) {
            role.reads.extend(other.reads.iter().cloned());
            role.writes.extend(other.writes.iter().cloned());
            role.denies.extend(other.denies.iter().cloned());
            role.asks.extend(other.asks.iter().cloned());
            role.standards.extend(other.standards.iter().cloned());
        }
    }
}

pub(super) fn scene(source: &Source, name: &str, table: &Spanned<SceneTable>) -> Scene {
    let SceneTable { role, show, next } = table.get_ref();
    let step = |when: Moment, text: &Localized, short: Option<&Localized>| Next {
        role: role.as_ref().map(|r| r.get_ref().clone()),
        when,
        text: text.clone(),
        short: short.cloned(),
    };
    Scene {
        name: name.to_owned(),
        role: role.as_ref().map(|r| r.get_ref().clone()),
        show: show.clone(),
        next: match next {
            None => Vec::new(),
            Some(NextTable::Text(text)) => vec![step(Moment::Always, text, None)],
            Some(NextTable::Steps(steps)) => steps
                .iter()
                .map(|said| step(said.when, &said.text, said.short.as_ref()))
                .collect(),
        },
        place: source.header_place(&format!("scenes.{name}"), table.span()),
    }
}
