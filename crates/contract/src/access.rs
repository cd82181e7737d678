//! The read and write rights of a role.
//!
//! A role reads what its read pointers name and what it writes itself; it writes what its write
//! pointers name, and nothing else; the rule of a file may keep roles out whatever their pointers
//! name. `{unit}` and `{agent}` stand for the actor's own. A session's role also changes the project
//! itself: files that neither a profile nor a role names.
//!
//! An agent without a role writes no file whose rule names its roles. Where sessions work in a role,
//! it writes what some role may write, but nothing of another agent; a profile's other files are for
//! people.

use crate::actor::Actor;
use crate::class::Class;
use crate::contract::{ANY_ROLE, Contract, FileRule};
use crate::fault::Place;
use crate::nearest::{nearest, unknown};
use crate::path::ProjectPath;
use crate::pattern::{Binding, Pattern};
use crate::pointer::AskPointer;
use crate::role::Role;

/// Why a role may not.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Denial {
    /// Empty where the agent has no role.
    pub role: String,
    pub what: String,
    pub place: Place,
    /// The key of the file's rule that keeps roles out, whatever their pointers name.
    pub kept_by: Option<String>,
}

/// Records and lists that are not about one file and not for everyone.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Privilege {
    /// Making the contract, and setting up what holds agents to it.
    MakeRules,
    /// Opening or closing a gate.
    Decide,
    /// Dropping old texts from the history.
    DropHistory,
    /// Looking at everything: all files, all commits, what others saw and scored.
    SeeAll,
    /// Running a flow.
    RunFlow,
}

/// Why an actor has not a privilege, and what it can do instead.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Withheld {
    pub what: String,
    pub remedy: String,
}

impl Actor {
    /// People have every privilege. An agent never makes rules nor decides; in a role it sees its
    /// own pointers and does its own step, nothing else.
    pub fn may(&self, privilege: Privilege) -> Result<(), Withheld> {
        let withheld = |what: String, remedy: String| Err(Withheld { what, remedy });
        match (privilege, self.role()) {
            (Privilege::MakeRules, _) if *self != Actor::Person => withheld(
                "only people may change the contract and the settings that enforce it".into(),
                "ask a person".into(),
            ),
            (Privilege::Decide, _) if *self != Actor::Person => {
                withheld("only people may pass a gate".into(), "ask a person".into())
            }
            (Privilege::DropHistory, _) if *self != Actor::Person => withheld(
                "only people may delete versions from the history".into(),
                "ask a person".into(),
            ),
            (Privilege::SeeAll, Some(role)) => withheld(
                format!(
                    "this shows the whole project, but role `{role}` may read only a part of \
                    it"
                ),
                format!(
                    "quipu status --as {role}     (shows the part that the role may read; `quipu \
                     log` likewise)"
                ),
            ),
            (Privilege::RunFlow, Some(role)) => withheld(
                format!("role `{role}` performs one step of a flow and may not run the flow"),
                "omit --as".into(),
            ),
            _ => Ok(()),
        }
    }
}

/// How much of a file a role may read.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Readable {
    Whole,
    /// Only these sections, by their anchors.
    Sections(Vec<String>),
}

/// The role whose pointers apply to an actor; none for people.
#[derive(Debug, Clone, Copy)]
pub struct Grant<'c> {
    pub role: Option<&'c Role>,
    contract: &'c Contract,
    is_agent: bool,
    /// The role of a session, which changes the project's own files as well.
    is_session: bool,
}

/// The reason why an agent may not change a file, whatever its class allows.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Closed {
    /// Only people change it.
    ToAgents,
    /// Other roles change it.
    ToRole,
}

impl Contract {
    /// Why an actor may not change a file, whatever its class allows. None if it may, and for
    /// people.
    pub fn closed_to(&self, actor: &Actor, path: &ProjectPath) -> Option<Closed> {
        if !matches!(actor, Actor::Agent { .. }) {
            return None;
        }
        let rule = self.rule(path);
        let is_of_people = rule.is_some_and(|rule| rule.people_only)
            || path.sets_up_hosts()
            || self.gate_that_makes(path).is_some();
        let grant = self.grant(actor).ok()?;
        let is_denied = grant.may_write(path, &self.actor_binding(actor)).is_err();
        let is_derived = rule.is_some_and(|rule| rule.class == Class::Derived);
        if is_of_people || is_denied && !is_derived && !self.has_writer(path) {
            return Some(Closed::ToAgents);
        }
        is_denied.then_some(Closed::ToRole)
    }

    /// The actor's role, or who is missing from the contract.
    pub fn grant(&self, actor: &Actor) -> Result<Grant<'_>, String> {
        if let Some(unit) = actor.unit()
            && !self.knows_unit(unit)
        {
            let units = || self.units.iter().map(|known| known.id.as_str());
            let shapes = self
                .profiles
                .iter()
                .filter_map(|p| p.unit.as_ref())
                .map(|k| k.id.as_str());
            return Err(match nearest(unit.as_str(), units()) {
                Some(near) => unknown("unit", unit.as_str(), [near]),
                None => unknown("unit", unit.as_str(), shapes),
            });
        }
        let Some(name) = actor.role() else {
            return Ok(Grant {
                role: None,
                contract: self,
                is_agent: matches!(actor, Actor::Agent { .. }),
                is_session: false,
            });
        };
        match self.roles.get(name.as_str()) {
            Some(role) => Ok(Grant {
                role: Some(role),
                contract: self,
                is_agent: true,
                is_session: self.wakes_session(name.as_str()),
            }),
            None => Err(unknown(
                "role",
                name.as_str(),
                self.roles.keys().map(String::as_str),
            )),
        }
    }

    /// The variables of pointers, filled for one actor.
    pub fn actor_binding(&self, actor: &Actor) -> Binding {
        let mut binding = self.binding();
        if let Some(unit) = actor.unit() {
            if let Some(declared) = self.unit(unit) {
                binding.extend(declared.vars.clone());
            }
            binding.insert("unit".into(), unit.as_str().to_owned());
        }
        if let Some(agent) = actor.agent() {
            binding.insert("agent".into(), agent.as_str().to_owned());
        }
        binding
    }
}

impl Grant<'_> {
    pub fn may_write(&self, path: &ProjectPath, binding: &Binding) -> Result<(), Denial> {
        let Some(role) = self.role else {
            return self.may_write_without_role(path, binding);
        };
        let rule = self.contract.rule(path);
        let is_own = || rule.is_none() || self.contract.is_projects_own(path);
        if role.writes.iter().any(|w| is_bound(&w.path, path, binding))
            || self.is_session && is_own()
        {
            return match rule.filter(|rule| !rule.is_open_to(role)) {
                Some(rule) => Err(kept(rule, path)),
                None => Ok(()),
            };
        }
        let own: Vec<String> = role
            .writes
            .iter()
            .map(|w| w.path.fill(binding).as_str().to_owned())
            .collect();
        let what = match own.as_slice() {
            [] => format!(
                "role `{}` may not write any file, including `{path}`",
                role.name
            ),
            own => format!("role `{}` may write {}, not `{path}`", role.name, join(own)),
        };
        let hint = unsaid(role.writes.iter().map(|w| &w.path), path, binding);
        Err(Denial {
            role: role.name.clone(),
            what: what + &hint,
            place: role.place.clone(),
            kept_by: None,
        })
    }

    fn may_write_without_role(&self, path: &ProjectPath, binding: &Binding) -> Result<(), Denial> {
        let is_agent = self.is_agent;
        let Some(rule) = self.contract.rule(path).filter(|_| is_agent) else {
            return Ok(());
        };
        if rule.roles.is_some() {
            return Err(kept(rule, path));
        }
        // The class decides who writes a derived file. A profile's roles cannot name files that
        // the project's own contract gives a class.
        let is_free = rule.class == Class::Derived || rule.profile.is_none();
        if is_free || self.contract.session_role().is_none() {
            return Ok(());
        }
        let mut writers = self.contract.writers(path).peekable();
        let what = match writers.peek() {
            Some(_) => format!("`{path}` belongs to another agent"),
            None => format!("no role may write `{path}`: only people may"),
        };
        let is_own = |found: Binding| {
            let agent = found.get("agent");
            agent.is_none() || agent == binding.get("agent")
        };
        if writers.any(is_own) {
            return Ok(());
        }
        Err(Denial {
            role: String::new(),
            what,
            place: rule.place.clone(),
            kept_by: None,
        })
    }

    /// The part of a file that the actor may read. A pointer that names the exact path takes
    /// precedence over the role's deny list; a pointer with a wildcard does not.
    pub fn may_read(&self, path: &ProjectPath, binding: &Binding) -> Result<Readable, Denial> {
        let Some(role) = self.role else {
            return Ok(Readable::Whole);
        };
        let deny = role
            .denies
            .iter()
            .find(|d| is_named(&d.path, path, binding));
        let stands = |pattern: &Pattern| {
            is_bound(pattern, path, binding)
                && (deny.is_none() || pattern.fill(binding).as_literal().is_some())
        };
        if role.writes.iter().any(|w| stands(&w.path)) {
            return Ok(Readable::Whole);
        }
        let mut sections = Vec::new();
        for read in role.reads.iter().filter(|r| stands(&r.path)) {
            match &read.section {
                None => return Ok(Readable::Whole),
                Some(section) => {
                    sections.extend(fill_text(section, binding).split('|').map(str::to_owned))
                }
            }
        }
        if !sections.is_empty() {
            return Ok(Readable::Sections(sections));
        }
        if let Some(deny) = deny {
            let why = deny.why.in_language(self.contract.language);
            let what = format!("role `{}` may not read `{path}`: {why}", role.name);
            return Err(Denial {
                role: role.name.clone(),
                what,
                place: deny.place.clone(),
                kept_by: None,
            });
        }
        let pointers = role
            .reads
            .iter()
            .map(|r| &r.path)
            .chain(role.writes.iter().map(|w| &w.path));
        let what = format!("no pointer of role `{}` names `{path}`", role.name)
            + &unsaid(pointers, path, binding);
        Err(Denial {
            role: role.name.clone(),
            what,
            place: role.place.clone(),
            kept_by: None,
        })
    }
}

/// The denial of a file whose rule keeps roles out.
fn kept(rule: &FileRule, path: &ProjectPath) -> Denial {
    let names = rule.roles.as_deref().unwrap_or_default();
    let what = match names {
        [] => format!("no role may write `{path}`, whatever its pointers name: only people may"),
        [any] if any == ANY_ROLE => format!("only an agent in a role may write `{path}`"),
        names => format!(
            "only {} may write `{path}`, whatever other pointers name",
            names
                .iter()
                .map(|name| format!("role `{name}`"))
                .collect::<Vec<_>>()
                .join(" or ")
        ),
    };
    let names: Vec<String> = names.iter().map(|name| format!("\"{name}\"")).collect();
    Denial {
        role: String::new(),
        what,
        place: rule.place.clone(),
        kept_by: Some(format!("roles = [{}]", names.join(", "))),
    }
}

impl<'c> Grant<'c> {
    /// The pointer by which the actor may ask a text that it does not read.
    pub fn may_ask(&self, path: &ProjectPath, binding: &Binding) -> Option<&'c AskPointer> {
        self.role?
            .asks
            .iter()
            .find(|ask| is_bound(&ask.path, path, binding))
    }
}

/// A section's name with the actor's variables filled.
fn fill_text(text: &str, binding: &Binding) -> String {
    binding.iter().fold(text.to_owned(), |text, (name, value)| {
        text.replace(&format!("{{{name}}}"), value)
    })
}

/// Whether a pointer names a path once the actor's variables are filled. A variable that stays open (a role
/// without a unit) names nothing: it must not become a wildcard.
fn is_bound(pattern: &Pattern, path: &ProjectPath, binding: &Binding) -> bool {
    pattern
        .variables()
        .all(|variable| binding.contains_key(variable))
        && is_named(pattern, path, binding)
}

/// Whether a pattern names a path once the actor's variables are filled. Most do not begin like the
/// path, and are filled for nothing.
fn is_named(pattern: &Pattern, path: &ProjectPath, binding: &Binding) -> bool {
    pattern.begins_like(path.as_str()) && pattern.fill(binding).matches(path.as_str()).is_some()
}

/// The value (unit or agent) that the actor did not give, if a pointer would name the path with it.
fn unsaid<'p>(
    pointers: impl Iterator<Item = &'p Pattern>,
    path: &ProjectPath,
    binding: &Binding,
) -> String {
    let open = pointers
        .map(|p| p.fill(binding))
        .find(|p| p.variables().next().is_some() && p.matches(path.as_str()).is_some());
    let flags: Vec<String> = open
        .iter()
        .flat_map(|p| p.variables().map(|variable| format!("--{variable}")))
        .collect();
    if flags.is_empty() {
        String::new()
    } else {
        format!(": name one with {}", flags.join(" and "))
    }
}

fn join(paths: &[String]) -> String {
    paths
        .iter()
        .map(|p| format!("`{p}`"))
        .collect::<Vec<_>>()
        .join(", ")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::actor::ActorName;
    use crate::unit::UnitId;

    #[test]
    fn privileges_by_who_asks() {
        use Privilege::{Decide, DropHistory, MakeRules, RunFlow, SeeAll};
        let name = |text: &str| ActorName::parse(text).ok();
        let unit_only = Actor::Agent {
            role: None,
            unit: UnitId::parse("ch01").ok(),
            agent: None,
        };
        let nameless = Actor::Agent {
            role: None,
            unit: None,
            agent: None,
        };
        let agent = Actor::Agent {
            role: None,
            unit: None,
            agent: name("otto"),
        };
        let role = Actor::Agent {
            role: name("writer"),
            unit: None,
            agent: name("otto"),
        };
        for (actor, allowed) in [
            (
                Actor::Person,
                vec![MakeRules, Decide, DropHistory, SeeAll, RunFlow],
            ),
            (unit_only, vec![SeeAll, RunFlow]),
            (nameless, vec![SeeAll, RunFlow]),
            (agent, vec![SeeAll, RunFlow]),
            (role, vec![]),
        ] {
            for privilege in [MakeRules, Decide, DropHistory, SeeAll, RunFlow] {
                assert_eq!(
                    actor.may(privilege).is_ok(),
                    allowed.contains(&privilege),
                    "{actor:?} {privilege:?}"
                );
            }
        }
    }
}
