//! Whether the contract permits an operation for its actor, for any content of the file.

use quipu_contract::{Actor, Binding, Class, Contract, FileRule, Grant, ProjectPath, Readable};

use crate::change::{Change, Op};
use crate::error::{Result, StoreError};
use crate::rules::guards::{denied, refused_by};
use crate::store::Store;

/// A permitted operation, by what it changes.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Permitted {
    OfMemory,
    /// The file belongs to the contract.
    OfContract,
}

impl Store {
    /// Refuses an operation that the contract forbids its actor for any content of the file.
    /// Callers check this before they read the file, so that their answer does not depend on it.
    pub fn permit(&self, actor: &Actor, op: &Op) -> Result<()> {
        let grant = self
            .contract()
            .grant(actor)
            .map_err(|what| StoreError::refused(what, "quipu contract show"))?;
        let binding = self.contract().actor_binding(actor);
        let rule = self.contract().rule(op.path());
        let asked = Asked {
            op,
            actor,
            at_finish: false,
        };
        permit(self.contract(), &grant, &binding, rule, &asked).map(|_| ())
    }
}

/// The operations of a change, each with its actor.
pub(crate) fn each_op(change: &Change) -> impl Iterator<Item = (&Op, &Actor)> {
    let own = change.ops.iter().map(|op| (op, &change.actor));
    own.chain(change.beside.iter().map(|op| (op, &Actor::Runtime)))
}

/// The refusal of a new file with a name that is probably a misspelling of one in the contract.
pub(crate) fn did_you_mean(path: &ProjectPath, meant: &FileRule) -> StoreError {
    let what = format!(
        "`{path}` is not in the contract: did you mean `{}`?",
        meant.path
    );
    let remedy = format!(
        "run the same command with `{}`; to create a new file anyway, a person runs: quipu write \
         {path} --force --file FILE",
        meant.path
    );
    refused_by(what, Some(meant), remedy)
}

/// Whether an actor may read a whole file, so that its version reveals nothing new.
pub(crate) fn reads_whole(contract: &Contract, actor: &Actor, path: &ProjectPath) -> bool {
    let binding = contract.actor_binding(actor);
    contract
        .grant(actor)
        .is_ok_and(|grant| matches!(grant.may_read(path, &binding), Ok(Readable::Whole)))
}

/// An operation with its actor.
pub(crate) struct Asked<'o> {
    pub op: &'o Op,
    pub actor: &'o Actor,
    /// It is part of a finish.
    pub at_finish: bool,
}

/// Checks whether the contract permits an operation for any content of the file.
pub(crate) fn permit(
    contract: &Contract,
    grant: &Grant<'_>,
    binding: &Binding,
    rule: Option<&FileRule>,
    asked: &Asked<'_>,
) -> Result<Permitted> {
    let Asked { op, actor, .. } = *asked;
    let path = op.path();
    check_spelling(contract, rule, path)?;
    let of_people = rule.is_some_and(|r| r.people_only) || path.begins_a_project();
    if of_people && *actor != Actor::Person {
        let what = match rule {
            Some(rule) if rule.people_only => {
                format!("`{path}` is the contract: only a person may change it")
            }
            _ => format!("`{path}` would be another contract: only a person may create one"),
        };
        return Err(refused_by(what, rule, "ask a person".into()));
    }
    if path.sets_up_hosts() && matches!(actor, Actor::Agent { .. }) {
        let what = format!(
            "`{path}` configures the agent host, which enforces the contract: only a person may \
             change it"
        );
        return Err(refused_by(what, rule, "ask a person".into()));
    }
    if *actor != Actor::Runtime {
        grant.may_write(path, binding).map_err(|denial| {
            if let Some(meant) = contract.near_name(path) {
                return did_you_mean(path, meant);
            }
            let role = grant.role.map_or("NAME", |r| r.name.as_str());
            denied(denial, &format!("quipu contract show --role {role}"))
        })?;
    }
    only_at_finish(contract, rule, asked)?;
    // Restoring the newest version of a gate's file decides nothing. For a sealed file, the class
    // decides about amend and restore.
    let is_sealed = rule.is_some_and(|rule| rule.class == Class::Sealed);
    if matches!(actor, Actor::Agent { .. })
        && !matches!(op, Op::Restore { older: false, .. })
        && !(is_sealed && matches!(op, Op::Amend { .. } | Op::Restore { .. }))
        && let Some(gate) = contract.gate_that_makes(path)
    {
        let what = format!(
            "`{path}` is the output of the gate `{}`: only a person may pass a gate",
            gate.name
        );
        return Err(refused_by(
            what,
            rule,
            format!("ask a person to run: quipu approve {}", gate.name),
        ));
    }
    Ok(if of_people {
        Permitted::OfContract
    } else {
        Permitted::OfMemory
    })
}

/// Refuses a change by an agent of a file that changes only in a finish. Restoring its newest
/// version changes nothing that was committed.
fn only_at_finish(contract: &Contract, rule: Option<&FileRule>, asked: &Asked<'_>) -> Result<()> {
    let Some(rule) = rule.filter(|rule| rule.at_finish && !asked.at_finish) else {
        return Ok(());
    };
    let is_exempt = !matches!(asked.actor, Actor::Agent { .. })
        || matches!(asked.op, Op::Restore { older: false, .. });
    if is_exempt {
        return Ok(());
    }
    let item = contract
        .finish
        .iter()
        .find(|item| Some(item.form) == rule.form);
    let remedy = item.map_or_else(|| "quipu finish".to_owned(), |item| item.supply.clone());
    let what = format!("`{}` changes only when a task is finished", asked.op.path());
    Err(refused_by(what, Some(rule), remedy))
}

/// Refuses a path that looks like one in the contract.
fn check_spelling(contract: &Contract, rule: Option<&FileRule>, path: &ProjectPath) -> Result<()> {
    let Some(meant) = contract.look_alike(path).filter(|_| rule.is_none()) else {
        return Ok(());
    };
    let what = format!(
        "`{path}` looks like `{}` but is spelled differently",
        meant.path
    );
    let remedy = match meant.path.as_literal() {
        Some(literal) => format!("quipu read {literal}"),
        None => format!("use a name that is spelled like `{}`", meant.path),
    };
    Err(refused_by(what, Some(meant), remedy))
}
