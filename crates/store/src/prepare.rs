//! The checks of a change that do not depend on other writers.
//!
//! They run before the append lock is taken, because all other writers wait while it is held. A
//! check that fails here runs again under the lock, so that errors are reported in a fixed order
//! (`judge.rs`).

use quipu_contract::{
    Actor, Binding, Class, Contract, FileRule, Grant, ProjectPath, Readable,
    may_continue_credential,
};

use crate::change::{Change, Op};
use crate::error::{Result, StoreError};
use crate::guarding::{Writing, guard, may_hold_credentials, refused_by};
use crate::lease::denied;
use crate::store::Store;
use crate::version::Version;

/// The results of the checks of one operation before the lock.
#[derive(Default)]
pub(crate) struct Prepared<'s> {
    pub rule: Option<&'s FileRule>,
    /// The contract permits the operation; true if the file belongs to the contract. If it does
    /// not, the judge checks again, because other errors come first.
    pub permitted: Option<bool>,
    /// The guards accept the text. If they do not, the judge runs them again for the same reason.
    pub guarded: bool,
    /// The operation is an append, and its text cannot complete a credential that begins in the
    /// line before it, or the file may hold credentials.
    pub whole: bool,
    /// The version of the text, if it is the whole file.
    pub version: Option<Version>,
}

impl Store {
    /// Refuses an operation that the contract forbids its actor for any content of the file.
    /// Callers check this before they read the file, so that their answer does not depend on it.
    pub fn permit(&self, actor: &Actor, op: &Op) -> Result<()> {
        let grant = self
            .contract
            .grant(actor)
            .map_err(|what| StoreError::refused(what, "quipu contract show"))?;
        let binding = self.contract.actor_binding(actor);
        let rule = self.contract.rule(op.path());
        permit(&self.contract, &grant, &binding, rule, (op, actor)).map(|_| ())
    }

    /// Runs the checks of each operation that need no lock.
    pub(crate) fn prepare<'s>(&'s self, change: &Change) -> Vec<Prepared<'s>> {
        let grant = self.contract.grant(&change.actor).ok();
        let binding = self.contract.actor_binding(&change.actor);
        let of = |(op, actor): (&Op, &Actor)| {
            let rule = self.contract.rule(op.path());
            let permitted = grant
                .as_ref()
                .and_then(|grant| permit(&self.contract, grant, &binding, rule, (op, actor)).ok());
            let unread = Prepared {
                rule,
                permitted,
                ..Prepared::default()
            };
            let (Op::Append { path, bytes, .. }
            | Op::Write { path, bytes, .. }
            | Op::Create { path, bytes, .. }
            | Op::Amend {
                path,
                bytes: Some(bytes),
            }) = op
            else {
                return unread;
            };
            let class = rule.map_or(Class::Free, |r| r.class);
            let writing = Writing {
                path,
                rule,
                op,
                class,
                bytes,
                force: change.force,
            };
            let guarded = guard(&self.contract.guards, &writing).is_ok();
            match op {
                Op::Append { .. } => Prepared {
                    guarded,
                    whole: may_hold_credentials(&self.contract.guards, path)
                        || !may_continue_credential(bytes),
                    ..unread
                },
                _ => Prepared {
                    guarded,
                    version: Some(Version::of(bytes)),
                    ..unread
                },
            }
        };
        each_op(change).map(of).collect()
    }
}

/// The operations of a change, each with its actor.
pub(crate) fn each_op(change: &Change) -> impl Iterator<Item = (&Op, &Actor)> {
    let own = change.ops.iter().map(|op| (op, &change.actor));
    own.chain(change.beside.iter().map(|op| (op, &Actor::Runtime)))
}

/// The refusal of a new file with a name that is probably a misspelling of one in the contract.
pub(crate) fn did_you_mean(path: &ProjectPath, meant: &FileRule) -> StoreError {
    let what = format!("no rule names `{path}`: did you mean `{}`?", meant.path);
    let remedy = format!(
        "the same command with `{}`; a person who means a new file: quipu write {path} --force --file FILE",
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

/// Checks whether the contract permits an operation for any content of the file. True if the file
/// belongs to the contract.
pub(crate) fn permit(
    contract: &Contract,
    grant: &Grant<'_>,
    binding: &Binding,
    rule: Option<&FileRule>,
    (op, actor): (&Op, &Actor),
) -> Result<bool> {
    let path = op.path();
    if rule.is_none()
        && let Some(meant) = contract.look_alike(path)
    {
        return Err(refused_by(
            format!(
                "`{path}` looks like `{}` but is not spelled like it",
                meant.path
            ),
            Some(meant),
            match meant.path.as_literal() {
                Some(literal) => format!("quipu read {literal}"),
                None => format!("a name that is spelled like `{}`", meant.path),
            },
        ));
    }
    let of_people = rule.is_some_and(|r| r.people_only) || path.begins_a_project();
    if of_people && *actor != Actor::Person {
        let what = match rule {
            Some(rule) if rule.people_only => {
                format!("`{path}` is the contract: only a person may change it")
            }
            _ => format!("`{path}` would be a contract of its own: only a person may make one"),
        };
        return Err(refused_by(what, rule, "ask a person".into()));
    }
    if path.sets_up_hosts() && matches!(actor, Actor::Agent { .. }) {
        let what = format!(
            "`{path}` sets up the host, and with it what holds agents to the contract: only a person may change it"
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
    // Restoring the newest version of a gate's file decides nothing. For a sealed file, the class
    // decides about amend and restore.
    let is_sealed = rule.is_some_and(|rule| rule.class == Class::Sealed);
    if matches!(actor, Actor::Agent { .. })
        && !matches!(op, Op::Restore { older: false, .. })
        && !(is_sealed && matches!(op, Op::Amend { .. } | Op::Restore { .. }))
        && let Some(gate) = contract.gate_that_makes(path)
    {
        let what = format!(
            "`{path}` is what the gate `{}` makes: only a person passes a gate",
            gate.name
        );
        return Err(refused_by(
            what,
            rule,
            format!("ask a person: quipu approve {}", gate.name),
        ));
    }
    Ok(of_people)
}
