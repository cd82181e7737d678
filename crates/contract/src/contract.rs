//! The resolved contract and what it can be asked.

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

/// A rule over files, with the place it came from.
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
    #[serde(skip_serializing_if = "Option::is_none")]
    pub shape: Option<Shape>,
    /// Whether a text that contradicts memory is refused: `warn`, `block`, or a variable that says
    /// which.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub conflicts: Option<String>,
    /// Whether agents are kept from it whatever their pointers: the contract itself.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub people_only: bool,
    /// The profile that says so; none for `quipu.toml`.
    pub profile: Option<String>,
    pub place: Place,
}

/// Endings of files that are text where no form says what they are.
const TEXT_ENDINGS: [&str; 5] = [".md", ".markdown", ".json", ".toml", ".txt"];

impl FileRule {
    /// Whether a file under this rule is text, and so UTF-8.
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

/// A profile that the contract takes.
#[derive(Debug, Clone, Serialize)]
pub struct Profile {
    pub name: String,
    pub about: Localized,
    #[serde(skip)]
    pub welcome: Localized,
    /// What agents are told about it: which commands to use, and when.
    #[serde(skip)]
    pub guide: Localized,
    /// By the command of another profile: what to use here.
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
    /// A profile names it. Others are the project's own.
    #[serde(skip)]
    pub declared: bool,
}

/// Everything a project's files and actors must obey.
#[derive(Debug, Clone, Serialize)]
pub struct Contract {
    pub language: Language,
    /// The folder that every path of the profiles is below, if it is not the project's own.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub dir: Option<String>,
    pub profiles: Vec<Profile>,
    pub vars: BTreeMap<String, Var>,
    /// In natural order, one for each id.
    pub units: Vec<Unit>,
    pub files: Vec<FileRule>,
    pub roles: BTreeMap<String, Role>,
    pub steps: Vec<Step>,
    /// What must be so before anyone may say "done", in order.
    pub finish: Vec<FinishItem>,
    /// The ways to wake up.
    pub scenes: BTreeMap<String, Scene>,
    /// Whether a finish makes a git commit of the memory files.
    pub git_at_finish: bool,
    /// What the journal records of a host's conversations.
    pub capture: Capture,
    /// What happens to a host's edit that cannot be judged.
    pub hook_fail: Fail,
    pub budgets: Budgets,
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub prices: BTreeMap<String, Price>,
    /// How long the folders of attempts are kept.
    #[serde(skip)]
    pub attempts: AttemptsKept,
    /// Which old texts `quipu history prune` keeps; all without it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub history_keep: Option<Keep>,
    /// Tables of agents, as they stand in `quipu.toml`: whoever starts agents reads them.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub agents: BTreeMap<String, toml::Table>,
    /// Where the project's order is kept, if not in the project itself.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub store: Option<String>,
    #[serde(skip)]
    pub guards: GuardRules,
    /// What is left out when the files are looked through.
    #[serde(skip_serializing_if = "Vec::is_empty", serialize_with = "as_texts")]
    pub ignore: Vec<Pattern>,
    /// A number that two contracts with different texts do not share.
    #[serde(skip)]
    pub mark: u64,
}

impl Contract {
    /// The rule that names a path: the first that matches, `quipu.toml` before the profiles.
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

    /// Whether a text that contradicts memory is refused at this path.
    pub fn blocks_conflicts(&self, path: &ProjectPath) -> bool {
        let said = self.rule(path).and_then(|rule| rule.conflicts.as_deref());
        let value = |said: &str| {
            self.vars
                .get(said)
                .map_or(Some(said.to_owned()), |var| var.value.clone())
        };
        said.and_then(value).as_deref() == Some("block")
    }

    /// The rules whose files have a form, in order.
    pub fn of_form(&self, form: Form) -> impl Iterator<Item = &FileRule> {
        self.files
            .iter()
            .filter(move |rule| rule.form == Some(form))
    }

    /// The rule that a path pretends to be named by: other letter case, other Unicode form.
    /// Such a path would be free here and the ruled file itself on another file system.
    pub fn look_alike(&self, path: &ProjectPath) -> Option<&FileRule> {
        if self.rule(path).is_some() {
            return None;
        }
        // A path that a pattern names but whose unit is unknown is spelled right: it is merely
        // free.
        let folded = fold(path.as_str());
        self.files.iter().find(|rule| {
            rule.path.looks_like(&folded) && rule.path.matches(path.as_str()).is_none()
        })
    }

    /// The declared unit with this id.
    pub fn unit(&self, id: &UnitId) -> Option<&Unit> {
        // Units are in natural order: `resolve` sorts them.
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

    /// The units that a step is done for, in natural order: those of its own profile.
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

    /// Whether a write pointer of any role names a path, for whatever unit and agent.
    pub fn has_writer(&self, path: &ProjectPath) -> bool {
        self.roles
            .values()
            .flat_map(|role| &role.writes)
            .any(|write| self.may_name(&write.path, path))
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

    /// Whether neither a profile nor a role names a path: it is free, or the project gave it a
    /// class itself.
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

    /// The gate that makes a file: whoever writes that file has passed the gate.
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

    /// What a million tokens cost with an agent, if the contract says.
    pub fn price(&self, agent: &str) -> Option<Price> {
        self.prices
            .get(agent)
            .or_else(|| self.prices.get("default"))
            .copied()
    }

    /// Where a profile keeps the template of a file: under the path that the profile itself writes.
    pub fn template_path(&self, language: Language, path: &str) -> String {
        let below = self
            .dir
            .as_deref()
            .and_then(|dir| path.strip_prefix(dir)?.strip_prefix('/'));
        format!("templates/{}/{}", language.as_str(), below.unwrap_or(path))
    }

    /// The role in which a session of an agent works, if the profiles give it one: that of the
    /// scene `main`. Where profiles share the scene, the role that is the others as well.
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

    /// Every role that the scene `main` wakes, the profiles in order.
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

    /// Whether sessions work in a role. Such a role works on the project itself; one of a flow or
    /// of a delegation writes what its pointers name and nothing else.
    pub(crate) fn wakes_session(&self, role: &str) -> bool {
        self.session_roles().contains(&role)
    }

    /// The variables with a value, for filling patterns and templates.
    pub fn binding(&self) -> Binding {
        self.vars
            .iter()
            .filter_map(|(name, var)| Some((name.clone(), var.value.clone()?)))
            .collect()
    }
}
