//! The agents that `--by` names: `--by NAME` for all steps, `--by ROLE=NAME` for one role or step.

use std::collections::{BTreeMap, BTreeSet};

use quipu_contract::{ActorName, Contract, unknown};
use quipu_protocol::Project;
use quipu_protocol::flow::{Agent, Choice};

use super::{actor_name, agent};
use crate::answer::{Failure, exit};

/// Which agent performs what, as asked for on the command line.
#[derive(Debug, Default)]
pub struct By {
    /// The agent of every role that `single` does not name.
    rest: Option<String>,
    single: BTreeMap<String, String>,
}

impl By {
    pub fn parse(contract: &Contract, asked: &[String]) -> Result<By, Failure> {
        let mut by = By::default();
        for one in asked {
            let twice = |what: &str| {
                Failure::usage(
                    format!("`--by` names two agents for {what}"),
                    "--by NAME     (for all steps), --by ROLE=NAME     (for one role or step)",
                )
            };
            // The text of `command:…` and `http:…` may contain an equals sign.
            match one.split_once('=').filter(|(key, _)| !key.contains(':')) {
                None if by.rest.is_some() => return Err(twice("all steps")),
                None => by.rest = Some(one.clone()),
                Some((key, name)) => {
                    check_key(contract, key)?;
                    if by.single.insert(key.to_owned(), name.to_owned()).is_some() {
                        return Err(twice(&format!("`{key}`")));
                    }
                }
            }
        }
        Ok(by)
    }

    pub fn rest(&self) -> Result<Option<ActorName>, Failure> {
        self.rest.as_deref().map(actor_name).transpose()
    }

    pub fn agents(&self) -> Result<BTreeMap<String, ActorName>, Failure> {
        let entries = self.single.iter();
        entries
            .map(|(key, name)| Ok((key.clone(), actor_name(name)?)))
            .collect()
    }

    /// The names as given.
    pub fn names(&self) -> impl Iterator<Item = &str> {
        self.rest
            .iter()
            .chain(self.single.values())
            .map(String::as_str)
    }

    /// Refuses a choice with a role that has no agent, if others have one.
    pub fn check(&self, contract: &Contract, choice: &Choice) -> Result<(), Failure> {
        let without = contract.steps.iter().find(|step| {
            step.role.is_some()
                && choice.allows_step(contract, step)
                && choice.agent_of(step).is_none()
        });
        match without.filter(|_| !self.single.is_empty()) {
            None => Ok(()),
            Some(step) => Err(Failure::usage(
                format!("`--by` names no agent for the step `{}`", step.name),
                "add --by NAME for all other steps, or choose steps with --step or --until",
            )),
        }
    }

    /// Opens the agents. `--model` belongs to the agent that is named without a role.
    pub fn open<'c>(&self, model: Option<&str>, project: &'c Project) -> Result<Cast<'c>, Failure> {
        if model.is_some() && self.rest.is_none() {
            return Err(Failure::usage(
                "`--model` belongs to the agent that `--by` names without a role",
                "--by NAME --model MODEL; for others: [agents.NAME] in quipu.toml",
            ));
        }
        let open = |name: &str, model| agent(name, model, &project.contract, project.store.root());
        Ok(Cast {
            rest: self
                .rest
                .as_deref()
                .map(|name| open(name, model))
                .transpose()?,
            single: self
                .single
                .iter()
                .map(|(key, name)| Ok((key.clone(), open(name, None)?)))
                .collect::<Result<_, Failure>>()?,
        })
    }
}

fn check_key(contract: &Contract, key: &str) -> Result<(), Failure> {
    if contract.step(key).is_some() || contract.roles.contains_key(key) {
        return Ok(());
    }
    let roles: BTreeSet<&str> = contract
        .steps
        .iter()
        .filter_map(|s| s.role.as_deref())
        .collect();
    let steps = contract.steps.iter().map(|step| step.name.as_str());
    let what = unknown("role or step", key, roles.into_iter().chain(steps));
    Err(Failure::new(
        exit::NOT_FOUND,
        what,
        "quipu contract show     (lists roles and steps)",
    ))
}

/// The opened agents.
pub struct Cast<'c> {
    rest: Option<Box<dyn Agent + 'c>>,
    single: BTreeMap<String, Box<dyn Agent + 'c>>,
}

impl Cast<'_> {
    /// The agent of all other steps. If every chosen step has an agent of its own, none is left to
    /// it, so any will do.
    pub fn rest(&self) -> Option<&dyn Agent> {
        self.rest
            .as_deref()
            .or(self.single.values().next().map(Box::as_ref))
    }

    pub fn agents(&self) -> BTreeMap<String, &dyn Agent> {
        let entries = self.single.iter();
        entries
            .map(|(key, agent)| (key.clone(), agent.as_ref()))
            .collect()
    }

    /// All names, for the registration of the worker.
    pub fn names(&self) -> String {
        let agents = self.rest.iter().chain(self.single.values());
        let names: BTreeSet<&str> = agents.map(|agent| agent.name()).collect();
        names.into_iter().collect::<Vec<_>>().join(", ")
    }
}
