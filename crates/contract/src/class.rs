//! Classes: how a file may change.
//!
//! [`Class::allows`] is the one place where a class meets an act. The store asks it for every
//! operation of every change, whatever door the change came through.

use serde::{Deserialize, Serialize};

use crate::actor::Actor;

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(rename_all = "lowercase")]
pub enum Class {
    /// Written once; later changed only by a person, with a reason.
    Sealed,
    /// Append-only: existing bytes never change.
    Append,
    /// Created once under a new name, never changed.
    Record,
    /// Replaced as a whole by the holder of its lease.
    Overwrite,
    /// Replaced only on the version that was read, or merged by key.
    State,
    /// Written only by Quipu, from other files.
    Derived,
    /// Not named by any rule.
    Free,
}

/// The effect that an operation would have on one file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Act {
    Create,
    Append,
    /// Replace the whole; `expected` says whether the caller named the version it read.
    Replace {
        expected: bool,
    },
    /// Merge by key on the newest version.
    Merge,
    Remove,
    /// Change what is sealed, with a reason.
    Amend,
    /// Keep an external edit that took something out of a state file, with a reason.
    Accept,
    /// Bring back the newest journalled version after an external edit.
    RestoreHead,
    /// Bring back an older version.
    RestoreOlder,
    /// Replace a newest version that is not a valid text of its form by what is valid of it.
    Repair,
    /// Written by Quipu from other files.
    Derive,
}

/// Why a class refuses an act, and the command that does what was probably meant.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Refusal {
    /// Completes the sentence "`path` …".
    pub what: &'static str,
    /// A command with `{path}` in it.
    pub remedy: &'static str,
}

const AMEND: &str = "quipu amend {path} --why \"…\" --file FILE     (people only)";
const ADD: &str =
    "quipu append {path} --text \"…\"     (a correction supersedes, it does not edit)";
const REPLACE: &str = "quipu read {path} --json     (prints its version; then: quipu write {path} \
    --expect VERSION --file FILE)";

impl Class {
    /// The classes a contract may name.
    pub const NAMED: [Class; 6] = [
        Class::Sealed,
        Class::Append,
        Class::Record,
        Class::Overwrite,
        Class::State,
        Class::Derived,
    ];

    pub fn as_str(self) -> &'static str {
        match self {
            Class::Sealed => "sealed",
            Class::Append => "append",
            Class::Record => "record",
            Class::Overwrite => "overwrite",
            Class::State => "state",
            Class::Derived => "derived",
            Class::Free => "free",
        }
    }

    pub fn parse(text: &str) -> Option<Class> {
        Class::NAMED
            .into_iter()
            .chain([Class::Free])
            .find(|c| c.as_str() == text)
    }

    pub fn allows(self, act: Act, actor: &Actor, exists: bool) -> Result<(), Refusal> {
        let refuse = |what, remedy| Err(Refusal { what, remedy });
        match (self, act) {
            (_, Act::Create) if exists => refuse("already exists", "quipu read {path}"),
            (Class::Derived, Act::Derive) if *actor == Actor::Runtime => Ok(()),
            (Class::Derived, Act::RestoreHead) => Ok(()),
            (Class::Derived, _) => refuse(
                "is derived: only Quipu writes it, from other files",
                "quipu contract show     (change the files it is derived from instead)",
            ),
            (_, Act::Derive) => refuse("is not a derived file", "quipu contract show"),

            (_, Act::RestoreHead) => Ok(()),
            (Class::Sealed | Class::Record, Act::Repair) if *actor != Actor::Person => refuse(
                "must not change: only a person may repair it",
                "ask a person to run: quipu restore {path}",
            ),
            (_, Act::Repair) => Ok(()),
            (_, Act::Create) => Ok(()),
            (_, Act::Replace { .. }) if !exists => Ok(()),
            (Class::Append | Class::Overwrite | Class::Free | Class::Sealed, Act::Append)
                if !exists =>
            {
                Ok(())
            }

            (Class::Sealed, Act::Amend) if *actor == Actor::Person => Ok(()),
            (Class::Sealed, Act::RestoreOlder) if *actor == Actor::Person => Ok(()),
            (Class::Sealed, Act::Amend | Act::RestoreOlder) => refuse(
                "is sealed: only a person may amend it",
                "ask a person to run: quipu amend {path} --why \"…\" --file FILE",
            ),
            (Class::Sealed, Act::Remove) => {
                refuse("is sealed: it may be amended, but not removed", AMEND)
            }
            (Class::Sealed, _) => {
                refuse("is sealed: it was written once and must not change", AMEND)
            }

            (Class::Append, Act::Append) => Ok(()),
            (Class::Append, Act::Remove) => refuse("is append-only: it may not be removed", ADD),
            (Class::Append, _) => refuse("is append-only: existing bytes never change", ADD),

            (Class::Record, _) if exists => refuse(
                "is a record: created once, never changed",
                "quipu write NEW_NAME --file FILE     (this file is not changed)",
            ),
            (Class::Record, Act::Append) => Ok(()),
            (Class::Record, _) => refuse("does not exist", "quipu write {path} --file FILE"),

            (Class::State, Act::Accept) if *actor == Actor::Person => Ok(()),
            (Class::State, Act::Accept) => refuse(
                "lost content in an external edit: only a person may accept that",
                "quipu restore {path}     (or ask a person to run: quipu amend {path} --why \"…\")",
            ),
            (_, Act::Accept) => refuse(
                "is not sealed, so there is nothing to amend",
                "quipu write {path} --file FILE",
            ),
            (Class::State, Act::Amend) => {
                refuse("is not sealed, so there is nothing to amend", REPLACE)
            }
            (_, Act::Amend) => refuse(
                "is not sealed, so there is nothing to amend",
                "quipu write {path} --file FILE",
            ),

            (Class::State, Act::Replace { expected: true } | Act::Merge | Act::RestoreOlder) => {
                Ok(())
            }
            (Class::State, Act::Replace { expected: false }) => refuse(
                "is a state file: to replace it, pass the version that was read",
                REPLACE,
            ),
            (Class::State, Act::Append) => refuse(
                "is a state file: it is replaced or merged, not appended to",
                REPLACE,
            ),
            (Class::State, Act::Remove) if *actor == Actor::Person => Ok(()),
            (Class::State, Act::Remove) => refuse(
                "is a state file: only a person may remove it",
                "ask a person to run: quipu remove {path}",
            ),

            (Class::Overwrite | Class::Free, _) => Ok(()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The table of the classes, whole: each row is a class, each column an act on an existing
    /// file.
    #[test]
    fn every_class_meets_every_act() {
        let agent = Actor::Agent {
            role: None,
            unit: None,
            agent: None,
        };
        let acts = [
            Act::Create,
            Act::Append,
            Act::Replace { expected: false },
            Act::Replace { expected: true },
            Act::Merge,
            Act::Remove,
            Act::Amend,
            Act::RestoreHead,
            Act::RestoreOlder,
            Act::Repair,
            Act::Derive,
        ];
        let row = |class: Class, actor: &Actor| -> String {
            acts.iter()
                .map(|a| {
                    if class.allows(*a, actor, true).is_ok() {
                        'y'
                    } else {
                        '-'
                    }
                })
                .collect()
        };
        //                                               C A R E M D A H O F D
        assert_eq!(row(Class::Sealed, &Actor::Person), "------yyyy-");
        assert_eq!(row(Class::Sealed, &agent), "-------y---");
        assert_eq!(row(Class::Append, &Actor::Person), "-y-----y-y-");
        assert_eq!(row(Class::Append, &agent), "-y-----y-y-");
        assert_eq!(row(Class::Record, &Actor::Person), "-------y-y-");
        assert_eq!(row(Class::Overwrite, &agent), "-yyyyy-yyy-");
        assert_eq!(row(Class::State, &agent), "---yy--yyy-");
        assert_eq!(row(Class::State, &Actor::Person), "---yyy-yyy-");
        assert_eq!(row(Class::Derived, &Actor::Person), "-------y---");
        assert_eq!(row(Class::Derived, &Actor::Runtime), "-------y--y");
        assert_eq!(row(Class::Free, &agent), "-yyyyy-yyy-");
    }

    #[test]
    fn every_class_but_derived_may_be_created() {
        for class in Class::NAMED {
            assert_eq!(
                class.allows(Act::Create, &Actor::Person, false).is_ok(),
                class != Class::Derived
            );
        }
    }
}
