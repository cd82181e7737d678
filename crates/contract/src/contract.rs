//! The resolved contract and its queries. `resolve.rs` builds it; the store enforces it.

use std::collections::BTreeMap;

use serde::Serialize;

use crate::budget::Budgets;
use crate::capture::Capture;
use crate::class::Class;
use crate::fault::Place;
use crate::finish::FinishItem;
use crate::flow::{AttemptsKept, Builtin, Price, Shape, Step};
use crate::form::Form;
use crate::guard::GuardRules;
use crate::hooks::Fail;
use crate::ignore::as_texts;
use crate::language::{Language, Localized};
use crate::path::{ProjectPath, fold};
use crate::pattern::{Binding, Pattern};
use crate::pointer::as_text;
use crate::retention::Keep;
use crate::role::Role;
use crate::scene::Scene;
use crate::unit::{Unit, UnitId, UnitKind};

/// A rule for files, with its source line.
#[derive(Debug, Clone, Serialize)]
pub struct FileRule {
    #[serde(serialize_with = "as_text")]
    pub path: Pattern,
    pub class: Class,
    pub about: Localized,
    pub tier: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub form: Option<Form>,
    pub marker: Option<String>,
    pub create: bool,
    /// Whether roles change it only in a finish. People may always change it.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub at_finish: bool,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub shape: Option<Shape>,
    /// Whether text that contradicts memory is refused: `warn`, `block`, or a variable with one of
    /// these values.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub conflicts: Option<String>,
    /// Headings of sections whose items a gate shows.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub open: Vec<String>,
    /// The roles that may write it, if their pointers name it; `*` is any role. None: also agents
    /// without a role.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub roles: Option<Vec<String>>,
    /// Whether agents are denied regardless of their pointers: the contract's own files.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub people_only: bool,
    /// The profile that states the rule; `None` for `quipu.toml`.
    pub profile: Option<String>,
    pub place: Place,
}

/// In the list of a rule's roles: any role whose pointers name the file, but no agent without a role.
pub(crate) const ANY_ROLE: &str = "*";

/// Extensions of text files, for rules without a form.
const TEXT_ENDINGS: [&str; 5] = [".md", ".markdown", ".json", ".toml", ".txt"];

impl FileRule {
    /// Whether a role may write a file under this rule, if its pointers name it.
    pub fn is_open_to(&self, role: &Role) -> bool {
        let is_role =
            |name: &String| name == ANY_ROLE || *name == role.name || role.also.contains(name);
        self.roles
            .as_ref()
            .is_none_or(|names| names.iter().any(is_role))
    }

    /// Whether a file under this rule is text, and therefore UTF-8.
    pub fn is_text(&self, path: &ProjectPath) -> bool {
        self.form.map_or_else(
            || {
                TEXT_ENDINGS
                    .iter()
                    .any(|ending| path.as_str().ends_with(ending))
            },
            Form::is_text,
        )
    }
}

/// A profile used by the contract.
#[derive(Debug, Clone, Serialize)]
pub struct Profile {
    pub name: String,
    pub about: Localized,
    #[serde(skip)]
    pub welcome: Localized,
    /// Instructions for agents: which commands to use, and when.
    #[serde(skip)]
    pub guide: Localized,
    /// Maps a command of another profile to its replacement here.
    #[serde(skip)]
    pub instead: BTreeMap<String, String>,
    pub unit: Option<UnitKind>,
    pub folders: Vec<String>,
}

/// A variable with its value, if it has one.
#[derive(Debug, Clone, Serialize)]
pub struct Var {
    pub value: Option<String>,
    pub about: Localized,
    /// Declared by a profile; otherwise the project's own.
    #[serde(skip)]
    pub declared: bool,
}

/// The rules for a project's files and actors.
#[derive(Debug, Clone, Serialize)]
pub struct Contract {
    pub language: Language,
    /// The folder above every path of the profiles, if it is not the project root.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub dir: Option<String>,
    pub profiles: Vec<Profile>,
    pub vars: BTreeMap<String, Var>,
    /// In natural order, one for each id.
    pub units: Vec<Unit>,
    pub files: Vec<FileRule>,
    pub roles: BTreeMap<String, Role>,
    pub steps: Vec<Step>,
    /// The checklist of `quipu finish`, in order.
    pub finish: Vec<FinishItem>,
    /// The scenes of `quipu start`.
    pub scenes: BTreeMap<String, Scene>,
    /// Whether `finish` commits the memory files to git.
    pub git_at_finish: bool,
    /// How much of a host's conversation the journal records.
    pub capture: Capture,
    /// The decision on a host's edit that cannot be judged.
    pub hook_fail: Fail,
    pub budgets: Budgets,
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub prices: BTreeMap<String, Price>,
    /// Retention of the folders of attempts.
    #[serde(skip)]
    pub attempts: AttemptsKept,
    /// The old versions that `quipu history prune` keeps; without a value, all.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub history_keep: Option<Keep>,
    /// Agent tables of `quipu.toml`, uninterpreted; the agents crate parses them.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub agents: BTreeMap<String, toml::Table>,
    /// The address of the shared store, if the project uses one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub store: Option<String>,
    #[serde(skip)]
    pub guards: GuardRules,
    /// Paths excluded from directory walks.
    #[serde(skip_serializing_if = "Vec::is_empty", serialize_with = "as_texts")]
    pub ignore: Vec<Pattern>,
    /// A hash of the contract's texts, to detect changes.
    #[serde(skip)]
    pub mark: u64,
}

impl Contract {
    /// Returns the rule for a path: the first match, `quipu.toml` before the profiles.
    pub fn rule(&self, path: &ProjectPath) -> Option<&FileRule> {
        self.files.iter().find(|rule| self.binds(rule, path))
    }

    fn binds(&self, rule: &FileRule, path: &ProjectPath) -> bool {
        let Some(binding) = rule.path.matches(path.as_str()) else {
            return false;
        };
        match (binding.get("unit"), &rule.profile) {
            (Some(unit), Some(profile)) => self.is_unit_of(profile, unit),
            _ => true,
        }
    }

    fn is_unit_of(&self, profile: &str, unit: &str) -> bool {
        let Ok(unit) = UnitId::parse(unit) else {
            return false;
        };
        self.unit(&unit).is_some()
            || self
                .profiles
                .iter()
                .find(|p| p.name == profile)
                .and_then(|p| p.unit.as_ref())
                .is_none_or(|k| k.accepts(&unit))
    }

    pub fn class(&self, path: &ProjectPath) -> Class {
        self.rule(path).map_or(Class::Free, |rule| rule.class)
    }

    /// Whether text that contradicts memory is refused at this path.
    pub fn blocks_conflicts(&self, path: &ProjectPath) -> bool {
        let said = self.rule(path).and_then(|rule| rule.conflicts.as_deref());
        let value = |said: &str| {
            self.vars
                .get(said)
                .map_or(Some(said.to_owned()), |var| var.value.clone())
        };
        said.and_then(value).as_deref() == Some("block")
    }

    /// Whether text at this path is checked against memory: a contradiction is reported or refused.
    pub fn checks_conflicts(&self, path: &ProjectPath) -> bool {
        self.rule(path).is_some_and(|rule| rule.conflicts.is_some())
    }

    /// Whether a file is work in progress: its profile sorts files into tiers, and this one has none.
    pub fn is_work_in_progress(&self, path: &ProjectPath) -> bool {
        let Some(rule) = self.rule(path).filter(|rule| rule.tier.is_none()) else {
            return false;
        };
        self.files
            .iter()
            .any(|other| other.tier.is_some() && other.profile == rule.profile)
    }

    /// Whether a file states intentions, which are no memory.
    pub fn is_plan(&self, path: &ProjectPath) -> bool {
        let form = self.rule(path).and_then(|rule| rule.form);
        form.is_some_and(Form::is_plan)
    }

    /// Returns the rules of a form, in order.
    pub fn of_form(&self, form: Form) -> impl Iterator<Item = &FileRule> {
        self.files
            .iter()
            .filter(move |rule| rule.form == Some(form))
    }

    /// Returns the rule that a path imitates with other letter case or another Unicode form. Such a
    /// path would be free here and the ruled file on another file system.
    pub fn look_alike(&self, path: &ProjectPath) -> Option<&FileRule> {
        if self.rule(path).is_some() {
            return None;
        }
        // A path that matches a pattern but has an unknown unit is spelled correctly, so it is
        // free.
        let folded = fold(path.as_str());
        self.files.iter().find(|rule| {
            rule.path.looks_like(&folded) && rule.path.matches(path.as_str()).is_none()
        })
    }

    /// Returns the declared unit with this id.
    pub fn unit(&self, id: &UnitId) -> Option<&Unit> {
        // `resolve` sorts the units in natural order.
        self.units
            .binary_search_by(|unit| unit.id.natural_cmp(id))
            .ok()
            .map(|at| &self.units[at])
    }

    /// Whether a unit is declared, or its id has the shape of a profile's units.
    pub fn knows_unit(&self, unit: &UnitId) -> bool {
        self.unit(unit).is_some()
            || self
                .profiles
                .iter()
                .filter_map(|p| p.unit.as_ref())
                .any(|k| k.accepts(unit))
    }

    /// Returns the units of a step's own profile, in natural order.
    pub fn units_of(&self, step: &Step) -> Vec<&Unit> {
        let kind = self
            .profiles
            .iter()
            .find(|p| p.name == step.profile)
            .and_then(|p| p.unit.as_ref());
        let belongs = |unit: &&Unit| match &unit.profile {
            Some(profile) => *profile == step.profile,
            None => kind.is_none_or(|kind| kind.accepts(&unit.id)),
        };
        self.units.iter().filter(belongs).collect()
    }

    /// Whether a write pointer of any role matches a path, for any unit and agent, and its rule is
    /// open to that role.
    pub fn has_writer(&self, path: &ProjectPath) -> bool {
        self.writers(path).next().is_some()
    }

    /// The unit and the agent that each such pointer finds in the path.
    pub(crate) fn writers(&self, path: &ProjectPath) -> impl Iterator<Item = Binding> {
        let rule = self.rule(path);
        self.roles
            .values()
            .filter(move |role| rule.is_none_or(|rule| rule.is_open_to(role)))
            .flat_map(|role| &role.writes)
            .filter(|write| write.path.begins_like(path.as_str()))
            .flat_map(|write| self.filled(&write.path))
            .filter_map(|pattern| pattern.matches(path.as_str()))
    }

    /// A pattern of a role or a step with its variables filled: by the project's values, and once
    /// more for each unit that has values of its own. `{unit}` and `{agent}` stay open.
    pub fn filled(&self, pattern: &Pattern) -> Vec<Pattern> {
        let is_open = |name: &str| matches!(name, "unit" | "agent");
        if pattern.variables().all(is_open) {
            return vec![pattern.clone()];
        }
        let binding = self.binding();
        let has_own = |unit: &&Unit| pattern.variables().any(|name| unit.vars.contains_key(name));
        let of_unit = |unit: &Unit| {
            let id = Binding::from([("unit".to_owned(), unit.id.as_str().to_owned())]);
            pattern.fill(&unit.vars).fill(&id).fill(&binding)
        };
        let mut filled = vec![pattern.fill(&binding)];
        filled.extend(self.units.iter().filter(has_own).map(of_unit));
        filled
    }

    /// Whether a pattern of a role or a step names a path for some unit and agent.
    fn may_name(&self, pattern: &Pattern, path: &ProjectPath) -> bool {
        pattern.begins_like(path.as_str())
            && self
                .filled(pattern)
                .iter()
                .any(|filled| filled.matches(path.as_str()).is_some())
    }

    /// Whether no profile and no role names a path: it is free, or the project itself gave it a
    /// class.
    pub fn is_projects_own(&self, path: &ProjectPath) -> bool {
        let pointed_at = |role: &Role| {
            let reads = role
                .reads
                .iter()
                .map(|read| &read.path)
                .chain(role.denies.iter().map(|deny| &deny.path));
            reads
                .chain(role.writes.iter().map(|write| &write.path))
                .any(|pattern| self.may_name(pattern, path))
        };
        self.rule(path)
            .is_none_or(|rule| rule.profile.is_none() && !rule.people_only)
            && !self.roles.values().any(pointed_at)
    }

    pub fn step(&self, name: &str) -> Option<&Step> {
        self.steps.iter().find(|s| s.name == name)
    }

    /// Returns the gate that produces a file. An actor that writes this file passes the gate.
    pub fn gate_that_makes(&self, path: &ProjectPath) -> Option<&Step> {
        let makes =
            |text: &String| Pattern::parse(text).is_ok_and(|pattern| self.may_name(&pattern, path));
        self.gates().find(|step| step.writes.iter().any(makes))
    }

    /// A file that a gate makes and that a pattern names too.
    pub fn made_by_gate(&self, pattern: &Pattern) -> Option<Pattern> {
        self.gates()
            .flat_map(|step| &step.writes)
            .filter_map(|text| Pattern::parse(text).ok())
            .flat_map(|made| self.filled(&made))
            .find(|made| made.overlaps(pattern))
    }

    fn gates(&self) -> impl Iterator<Item = &Step> {
        self.steps
            .iter()
            .filter(|step| step.builtin == Some(Builtin::Gate))
    }

    /// Returns the price of a million tokens with an agent, if the contract has one.
    pub fn price(&self, agent: &str) -> Option<Price> {
        self.prices
            .get(agent)
            .or_else(|| self.prices.get("default"))
            .copied()
    }

    /// Returns the template of a file in its profile, under the profile's own path (without `dir`).
    pub fn template_path(&self, language: Language, path: &str) -> String {
        let below = self
            .dir
            .as_deref()
            .and_then(|dir| path.strip_prefix(dir)?.strip_prefix('/'));
        format!("templates/{}/{}", language.as_str(), below.unwrap_or(path))
    }

    /// Returns the role of an agent's session, if the profiles define one: the role of the scene
    /// `main`. If profiles share the scene, it is the role that includes the others, or else the
    /// first.
    pub fn session_role(&self) -> Option<&str> {
        let named = self.session_roles();
        let is_all = |role: &&&str| {
            let also = |other: &&str| {
                self.roles
                    .get(**role)
                    .is_some_and(|role| role.also.iter().any(|name| name == other))
            };
            named.iter().all(|other| other == *role || also(other))
        };
        named.iter().find(is_all).or(named.first()).copied()
    }

    /// Returns every role of the scene `main`, in profile order.
    fn session_roles(&self) -> Vec<&str> {
        let scene = self.scenes.get("main");
        scene
            .into_iter()
            .flat_map(|scene| {
                scene
                    .role
                    .iter()
                    .chain(scene.next.iter().filter_map(|next| next.role.as_ref()))
            })
            .map(String::as_str)
            .collect()
    }

    /// Whether sessions use a role. A session role works on the whole project; a role of a flow or
    /// a delegation writes only the targets of its pointers.
    pub(crate) fn wakes_session(&self, role: &str) -> bool {
        self.session_roles().contains(&role)
    }

    /// Returns the variables with values, to fill patterns and templates.
    pub fn binding(&self) -> Binding {
        self.vars
            .iter()
            .filter_map(|(name, var)| Some((name.clone(), var.value.clone()?)))
            .collect()
    }
}
