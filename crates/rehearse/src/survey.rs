//! Collects the source files of a view, parses them, and selects those that belong to a unit.
//!
//! Files in other languages are listed with their line counts.

use std::collections::BTreeMap;

use quipu_text::Document;

use crate::outline::{named_in, shared_folders, title_words};
use crate::source::{Item, ItemKind, Module};
use crate::task::RehearseTask;
use crate::view::View;

/// The readable part of the source tree.
pub(crate) struct StatusScan {
    pub modules: Vec<Module>,
    /// Files that are not parsed, with their line counts.
    pub others: Vec<(String, usize)>,
}

impl StatusScan {
    /// Reads the files that match the task's subject.
    pub fn of(view: &View, task: &RehearseTask) -> StatusScan {
        let mut survey = StatusScan {
            modules: Vec::new(),
            others: Vec::new(),
        };
        let Some(subject) = &task.subject else {
            return survey;
        };
        for (path, seen) in view.matching(subject) {
            match Module::read(path, seen) {
                Some(module) => survey.modules.push(module),
                None => survey
                    .others
                    .push((path.to_owned(), seen.text.lines().count())),
            }
        }
        survey
    }

    /// Keeps only the modules that a source map in the view assigns to the task's unit. Keeps all
    /// modules if the view has no such map.
    pub fn for_unit(mut self, view: &View, task: &RehearseTask) -> StatusScan {
        let mapped = task
            .unit
            .as_ref()
            .map(|unit| mapped_paths(view, &unit.id))
            .unwrap_or_default();
        let named = |path: &str| {
            mapped.iter().any(|known| {
                path == known
                    || path
                        .strip_prefix(known.trim_end_matches("/**").trim_end_matches('/'))
                        .is_some_and(|rest| rest.starts_with('/'))
            })
        };
        if self.modules.iter().any(|module| named(&module.path)) {
            self.modules.retain(|module| named(&module.path));
            self.others.retain(|(path, _)| named(path));
        }
        let title = task
            .unit
            .as_ref()
            .map(|unit| title_words(&unit.title))
            .unwrap_or_default();
        let shared = shared_folders(self.modules.iter().map(|module| module.path.as_str()));
        for module in &mut self.modules {
            module.focus = named_in(&title, &module.path, shared) > (0, 0);
        }
        self.modules.sort_by_key(|module| !module.focus);
        self
    }

    /// Returns the items of a kind with their modules, the most important first.
    pub fn ranked(&self, kind: ItemKind) -> Vec<(&Module, &Item)> {
        let mut mentions: BTreeMap<&str, usize> = BTreeMap::new();
        for item in self.modules.iter().flat_map(|module| &module.items) {
            for call in &item.calls {
                *mentions.entry(call).or_default() += 1;
            }
        }
        let mut found: Vec<(&Module, &Item)> = self
            .modules
            .iter()
            .flat_map(|module| module.of_kind(kind).map(move |item| (module, item)))
            .collect();
        let weight = |module: &Module, item: &Item| {
            let documented = usize::from(!item.doc.is_empty()) * 4 + usize::from(item.public) * 4;
            documented
                + usize::from(module.focus) * 6
                + mentions
                    .get(item.name.as_str())
                    .copied()
                    .unwrap_or_default()
                    .min(6)
                + item.members.len().min(3)
        };
        // The sort is stable: items of equal weight keep the order of the source.
        found.sort_by_key(|(module, item)| std::cmp::Reverse(weight(module, item)));
        found
    }

    /// Returns every function by name. If several share a name, the first one counts.
    pub fn functions(&self) -> BTreeMap<&str, (&Module, &Item)> {
        let mut found = BTreeMap::new();
        for module in &self.modules {
            for item in module.of_kind(ItemKind::Function) {
                found.entry(item.name.as_str()).or_insert((module, item));
            }
        }
        found
    }
}

/// Returns the paths in the first column of the tables in a unit's section, from any file with such
/// a section.
fn mapped_paths(view: &View, unit: &str) -> Vec<String> {
    let mut paths = Vec::new();
    for seen in view.texts.values() {
        let document = Document::parse(&seen.text);
        let headed = |title: &str| {
            title == unit
                || title
                    .strip_prefix(unit)
                    .is_some_and(|rest| rest.starts_with(|c: char| !c.is_alphanumeric()))
        };
        for section in document
            .sections()
            .iter()
            .filter(|section| headed(&section.title))
        {
            for row in document.rows_in(&section.range) {
                let path = row
                    .cells
                    .first()
                    .map(|cell| cell.text.trim().trim_matches('`').to_owned())
                    .unwrap_or_default();
                if path.contains(['/', '.']) {
                    paths.push(path);
                }
            }
        }
    }
    paths
}
