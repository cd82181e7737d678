//! Actors: a person, an agent, or Quipu itself.
//!
//! A caller that names neither a role nor an agent is a person. Every other caller is bound by its
//! role's pointers and is refused actions reserved to people.

use std::fmt;

use serde::{Deserialize, Serialize};
use thiserror::Error;

use crate::characters::{is_invisible, quotable};
use crate::unit::UnitId;

/// The name of a role or an agent: a single plain path component, so that it can be part of a path.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(transparent)]
pub struct ActorName(String);

#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum BadName {
    #[error(
        "`{0}` is not a valid name: use letters, digits, `-` and `_`, at most 64, starting with a \
         letter or digit"
    )]
    Odd(String),
    #[error("`{0}` is a reserved name: the journal uses it for another kind of actor")]
    Taken(String),
}

impl ActorName {
    pub fn parse(text: &str) -> Result<ActorName, BadName> {
        // Hangul fillers are letters without a glyph.
        let plain = |c: char| (c.is_alphanumeric() && !is_invisible(c)) || c == '-' || c == '_';
        let good = text.chars().next().is_some_and(char::is_alphanumeric)
            && text.chars().all(plain)
            && text.chars().count() <= 64
            && unicode_normalization::is_nfc(text);
        if good {
            Ok(ActorName(text.to_owned()))
        } else {
            Err(BadName::Odd(quotable(text)))
        }
    }

    /// Parses a name given by a caller or a contract. Names that the journal uses for people, for
    /// Quipu and for external edits are refused.
    pub fn parse_given(text: &str) -> Result<ActorName, BadName> {
        let name = ActorName::parse(text)?;
        if is_taken(text) {
            Err(BadName::Taken(text.to_owned()))
        } else {
            Ok(name)
        }
    }

    pub fn as_str(&self) -> &str {
        &self.0
    }
}

/// Whether a name is reserved for an actor that is not an agent, in any letter case.
pub fn is_taken(name: &str) -> bool {
    const TAKEN: [&str; 6] = ["person", "quipu", "external", "人", "用户", "外部"];
    TAKEN.contains(&name.to_lowercase().as_str())
}

impl fmt::Display for ActorName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// The actor of a read or write.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Actor {
    /// A person at a keyboard: no role, no agent name.
    Person,
    /// An agent, with or without a role and a unit.
    Agent {
        role: Option<ActorName>,
        unit: Option<UnitId>,
        agent: Option<ActorName>,
    },
    /// Quipu itself, for derived files.
    Runtime,
}

impl Actor {
    pub fn role(&self) -> Option<&ActorName> {
        match self {
            Actor::Agent { role, .. } => role.as_ref(),
            _ => None,
        }
    }

    pub fn unit(&self) -> Option<&UnitId> {
        match self {
            Actor::Agent { unit, .. } => unit.as_ref(),
            _ => None,
        }
    }

    pub fn agent(&self) -> Option<&ActorName> {
        match self {
            Actor::Agent { agent, .. } => agent.as_ref(),
            _ => None,
        }
    }
}

/// `writer/ch05 (otto)`, `person`, `quipu`.
impl fmt::Display for Actor {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Actor::Person => f.write_str("person"),
            Actor::Runtime => f.write_str("quipu"),
            Actor::Agent { role, unit, agent } => {
                match (role, agent) {
                    (Some(role), _) => write!(f, "{role}")?,
                    (None, Some(agent)) => write!(f, "{agent}")?,
                    (None, None) => f.write_str("agent")?,
                }
                if let Some(unit) = unit {
                    write!(f, "/{unit}")?;
                }
                match (role, agent) {
                    (Some(_), Some(agent)) => write!(f, " ({agent})"),
                    _ => Ok(()),
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_agent_is_named_like_someone_else() {
        for taken in ["person", "Person", "quipu", "external"] {
            assert!(
                ActorName::parse_given(taken).is_err() && ActorName::parse(taken).is_ok(),
                "{taken}"
            );
        }
        assert!(ActorName::parse_given("personal").is_ok());
    }

    #[test]
    fn a_name_is_one_plain_path_part() {
        for good in ["writer", "r1", "otto-2", "作者"] {
            assert!(ActorName::parse(good).is_ok(), "{good}");
        }
        for bad in [
            "",
            "../x",
            "a/b",
            ".hidden",
            "a b",
            "-x",
            "a\u{200b}",
            "\u{3164}",
            "a\u{115f}",
        ] {
            assert!(ActorName::parse(bad).is_err(), "{bad:?}");
        }
    }
}
