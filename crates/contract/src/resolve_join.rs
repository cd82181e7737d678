//! Joins the parsed files of a contract: what the profiles declare, in their order, and what
//! `quipu.toml` overrides.
//!
//! Single tables (rules, roles, steps, budgets) are resolved in `resolve` and beside it. The order
//! of the phases matters where one reads what another has joined: steps need variables, and the
//! checks need everything.

use std::collections::{BTreeMap, BTreeSet};
use std::hash::{DefaultHasher, Hash, Hasher};

use super::{ACTOR_VARIABLES, Loaded, Resolver, Units, session};
use crate::below_dir;
use crate::budget::Budgets;
use crate::class::Class;
use crate::contract::{Contract, FileRule, Profile, Var};
use crate::fault::{Fault, Place};
use crate::finish::FinishItem;
use crate::guard::GuardRules;
use crate::language::{Language, Localized};
use crate::manifest::{Manifest, ProfileFile};
use crate::order::{check_steps, check_units};
use crate::pattern::{Binding, Pattern};
use crate::role::Role;
use crate::source::Source;
use crate::unit::UnitKind;

/// The variables that patterns may use, and the values that are filled in.
struct Scope {
    names: BTreeSet<String>,
    binding: Binding,
    /// The same for the pointers of roles, where a variable that units set stays open, even if it
    /// has a global value.
    role_names: BTreeSet<String>,
    role_binding: Binding,
}

impl Scope {
    fn new(contract: &Contract, of_units: &BTreeSet<String>) -> Scope {
        let binding = contract.binding();
        let declared = contract.vars.keys().cloned();
        let names: BTreeSet<String> = declared.chain(ACTOR_VARIABLES.map(str::to_owned)).collect();
        let is_global = |(name, _): &(String, String)| !of_units.contains(name);
        Scope {
            role_names: &names | of_units,
            role_binding: binding.clone().into_iter().filter(is_global).collect(),
            names,
            binding,
        }
    }
}

impl Resolver {
    pub(super) fn join(
        &mut self,
        manifest: &Source,
        parsed: Manifest,
        loaded: Vec<Loaded>,
    ) -> Contract {
        let mut vars = declared_vars(&loaded, parsed.language);
        self.set_vars(manifest, &parsed, &mut vars);
        self.of_units = vars_of_units(&parsed, &loaded);
        let mut contract = settings(manifest, &parsed, &loaded, vars);
        let scope = Scope::new(&contract, &self.of_units);
        let mut units = Units::new();

        let rules = Self::contract_files(manifest, &parsed);
        contract.files.extend(rules);
        for rule in &parsed.files {
            let rule = self.file_rule(manifest, rule, None, &scope.binding, &scope.names);
            contract.files.extend(rule);
        }
        let own = contract.files.len();
        for profile in &loaded {
            self.add_profile(profile, &scope, &mut contract, &mut units);
        }
        self.refuse_double_claims(&contract.files, own);
        for (name, role) in &parsed.roles {
            let (binding, names) = (&scope.role_binding, &scope.role_names);
            let role = self.role(manifest, name, role, "", binding, names);
            contract.roles.insert(name.clone(), role);
        }
        session::join_roles(&mut contract.roles);
        self.override_steps(manifest, &parsed, &mut contract);
        self.override_finish(manifest, &parsed, &mut contract);
        for (name, table) in &parsed.scenes {
            let scene = session::scene(manifest, name, table);
            contract.scenes.insert(name.clone(), scene);
        }
        self.check_scenes(&contract);
        self.units(manifest, None, &parsed.units, &mut units);
        contract.units = units.into_values().collect();
        contract.units.sort_by(|a, b| a.id.natural_cmp(&b.id));
        check_units(&mut self.found, &contract.units);
        check_steps(&mut self.found, &contract);
        self.check_names(&contract);
        self.join_costs(manifest, &parsed, &loaded, &mut contract);
        contract.guards = self.guards(manifest, &parsed.guards, &scope.binding, &scope.names);
        contract.ignore = parsed
            .ignore
            .iter()
            .filter_map(|text| self.ignored(manifest, text, &scope.binding, &scope.names))
            .collect();
        contract
    }

    /// Sets the variables of `[vars]` in `quipu.toml`.
    fn set_vars(&mut self, manifest: &Source, parsed: &Manifest, vars: &mut BTreeMap<String, Var>) {
        for (name, value) in &parsed.vars {
            if ACTOR_VARIABLES.contains(&name.as_str()) {
                self.fault(
                    manifest,
                    value.span(),
                    format!("`{name}` is set by the caller and cannot be a variable"),
                    String::new(),
                );
            }
            let undeclared = Var {
                value: None,
                about: Localized::default(),
                declared: false,
            };
            vars.entry(name.clone()).or_insert(undeclared).value = Some(value.get_ref().clone());
        }
    }

    /// Adds everything that a profile declares.
    fn add_profile(
        &mut self,
        profile: &Loaded,
        scope: &Scope,
        contract: &mut Contract,
        units: &mut Units,
    ) {
        for (source, file) in &profile.files {
            for folder in &file.folders {
                self.check_folder(source, folder);
            }
            for rule in &file.files {
                let name = Some(profile.name.as_str());
                let rule = self.file_rule(source, rule, name, &scope.binding, &scope.names);
                contract.files.extend(rule);
            }
            for (name, role) in &file.roles {
                let (binding, names) = (&scope.role_binding, &scope.role_names);
                let role = self.role(source, name, role, &profile.name, binding, names);
                self.add_role(name, role, &profile.name, contract);
            }
            for step in &file.steps {
                let step = self.step(source, step, &profile.name, &contract.vars);
                contract.steps.push(step);
            }
            let items = file.finish.iter();
            let items: Vec<FinishItem> = items
                .filter_map(|item| self.finish_item(source, item))
                .collect();
            contract.finish.extend(items);
            for (name, table) in &file.scenes {
                let scene = session::scene(source, name, table);
                match contract.scenes.get_mut(name) {
                    // If two profiles define the scene of one role, the scene shows both.
                    Some(first) => first.join(scene),
                    None => drop(contract.scenes.insert(name.clone(), scene)),
                }
            }
            self.units(source, Some(&profile.name), &file.units, units);
        }
        contract.profiles.push(described(profile));
    }

    fn add_role(&mut self, name: &str, role: Role, profile: &str, contract: &mut Contract) {
        if let Some(earlier) = contract.roles.get(name) {
            self.found.push(Fault {
                what: format!(
                    "role `{name}` is declared twice, by `{}` and by `{profile}`",
                    earlier.profile
                ),
                place: earlier.place.clone(),
                other: Some(role.place.clone()),
                remedy: format!(
                    "quipu profile eject {profile}     (rename the role there, and use \
                     \"./profiles/{profile}\" instead of \"{profile}\")"
                ),
            });
        }
        contract.roles.insert(name.to_owned(), role);
    }

    /// Adds the steps of `quipu.toml`. A step that replaces another takes its position, for the
    /// units of its profile.
    fn override_steps(&mut self, manifest: &Source, parsed: &Manifest, contract: &mut Contract) {
        let mut places = first_places(contract.steps.iter().map(|step| &step.name));
        for step in &parsed.steps {
            let mut step = self.step(manifest, step, "", &contract.vars);
            match places.get(&step.name) {
                Some(at) => {
                    step.profile.clone_from(&contract.steps[*at].profile);
                    contract.steps[*at] = step;
                }
                None => {
                    places.insert(step.name.clone(), contract.steps.len());
                    contract.steps.push(step);
                }
            }
        }
    }

    fn override_finish(&mut self, manifest: &Source, parsed: &Manifest, contract: &mut Contract) {
        let mut places = first_places(contract.finish.iter().map(|item| &item.name));
        for item in &parsed.finish {
            let Some(item) = self.finish_item(manifest, item) else {
                continue;
            };
            match places.get(&item.name) {
                Some(at) => contract.finish[*at] = item,
                None => {
                    places.insert(item.name.clone(), contract.finish.len());
                    contract.finish.push(item);
                }
            }
        }
    }

    /// Joins budgets and prices: the first profile overrides later ones, `quipu.toml` all of them.
    fn join_costs(
        &mut self,
        manifest: &Source,
        parsed: &Manifest,
        loaded: &[Loaded],
        contract: &mut Contract,
    ) {
        let last_first = || loaded.iter().rev().flat_map(|p| p.files.iter().rev());
        let budgets = last_first().map(|(source, file)| (source, &file.budget));
        for (source, table) in budgets.chain([(manifest, &parsed.budget)]) {
            if let Some(table) = table {
                self.budgets(source, table, &mut contract.budgets);
            }
        }
        let prices = last_first().map(|(_, file)| &file.prices);
        for (name, price) in prices.chain([&parsed.prices]).flatten() {
            contract.prices.insert(name.clone(), *price);
        }
    }

    /// Returns the rules for the contract's own files. An agent that could write them could change
    /// the rules.
    fn contract_files(manifest: &Source, parsed: &Manifest) -> Vec<FileRule> {
        let folders = parsed
            .profiles
            .iter()
            .map(|p| p.get_ref().as_str())
            .filter(|p| p.contains('/'));
        let below =
            folders.map(|f| Pattern::below(f.trim_start_matches("./").trim_end_matches('/')));
        Pattern::parse(&manifest.file)
            .into_iter()
            .chain(below)
            .map(|path| FileRule {
                path,
                class: Class::Overwrite,
                about: Localized::Each {
                    en: "the contract of this project".into(),
                    zh: "本项目的契约".into(),
                },
                tier: None,
                form: None,
                marker: None,
                create: false,
                at_finish: false,
                shape: None,
                conflicts: None,
                open: Vec::new(),
                roles: None,
                people_only: true,
                profile: None,
                place: Place {
                    file: manifest.file.clone(),
                    line: 1,
                },
            })
            .collect()
    }
}

/// The variables that profiles declare, with their defaults. The first declaration counts.
fn declared_vars(loaded: &[Loaded], language: Language) -> BTreeMap<String, Var> {
    let mut vars: BTreeMap<String, Var> = BTreeMap::new();
    for (name, table) in files(loaded).flat_map(|file| &file.vars) {
        let default = table.default.as_ref();
        vars.entry(name.clone()).or_insert(Var {
            value: default.map(|d| d.in_language(language).to_owned()),
            about: table.about.clone(),
            declared: true,
        });
    }
    vars
}

/// The names of the variables that units set.
fn vars_of_units(parsed: &Manifest, loaded: &[Loaded]) -> BTreeSet<String> {
    files(loaded)
        .flat_map(|file| file.units.values())
        .chain(parsed.units.values())
        .flat_map(|unit| unit.get_ref().vars.keys().cloned())
        .collect()
}

fn files(loaded: &[Loaded]) -> impl Iterator<Item = &ProfileFile> {
    loaded.iter().flat_map(|p| &p.files).map(|(_, file)| file)
}

/// A contract with the settings of `quipu.toml`, and without anything of the profiles.
fn settings(
    manifest: &Source,
    parsed: &Manifest,
    loaded: &[Loaded],
    vars: BTreeMap<String, Var>,
) -> Contract {
    let dir = parsed.dir.as_ref();
    Contract {
        language: parsed.language,
        dir: dir.and_then(|dir| below_dir::parse_dir(dir.get_ref()).ok()),
        profiles: Vec::new(),
        vars,
        units: Vec::new(),
        files: Vec::new(),
        roles: BTreeMap::new(),
        steps: Vec::new(),
        finish: Vec::new(),
        scenes: BTreeMap::new(),
        git_at_finish: parsed.git.finish,
        capture: parsed.capture,
        hook_fail: parsed.hooks.fail,
        budgets: Budgets::default(),
        prices: BTreeMap::new(),
        attempts: parsed.attempts,
        history_keep: parsed.history.keep,
        agents: parsed.agents.clone(),
        store: parsed.store.clone(),
        guards: GuardRules::default(),
        ignore: Vec::new(),
        mark: mark(manifest, loaded),
    }
}

/// The description that a profile gives of itself. A later file of the profile overrides an earlier one.
fn described(profile: &Loaded) -> Profile {
    let mut entry = Profile {
        name: profile.name.clone(),
        about: Localized::default(),
        welcome: Localized::default(),
        guide: Localized::default(),
        instead: BTreeMap::new(),
        unit: None,
        folders: Vec::new(),
    };
    for (source, file) in &profile.files {
        if let Some(about) = &file.about {
            entry.about = about.clone();
        }
        if let Some(welcome) = &file.welcome {
            entry.welcome = welcome.clone();
        }
        if let Some(guide) = &file.guide {
            entry.guide = guide.clone();
        }
        entry.instead.extend(file.instead.clone());
        if let Some(unit) = &file.unit {
            let table = unit.get_ref();
            entry.unit = Some(UnitKind {
                name: table.name.clone(),
                id: table.id.clone(),
                place: source.place(unit.span()),
            });
        }
        let folders = file.folders.iter().map(|f| f.get_ref().clone());
        entry.folders.extend(folders);
    }
    entry
}

/// Maps each name to its first position.
fn first_places<'n>(names: impl Iterator<Item = &'n String>) -> BTreeMap<String, usize> {
    let mut places = BTreeMap::new();
    for (at, name) in names.enumerate() {
        places.entry(name.clone()).or_insert(at);
    }
    places
}

/// Returns a hash of all texts read.
fn mark(manifest: &Source, loaded: &[Loaded]) -> u64 {
    let mut hash = DefaultHasher::new();
    manifest.text.hash(&mut hash);
    for profile in loaded {
        profile.name.hash(&mut hash);
        profile
            .files
            .iter()
            .for_each(|(source, _)| source.text.hash(&mut hash));
    }
    hash.finish()
}
