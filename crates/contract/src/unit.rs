//! Units of work: chapters, sessions, tasks, reviewing agents.

use std::collections::BTreeMap;
use std::fmt;

use serde::{Deserialize, Serialize};

use crate::actor::{ActorName, BadName};
use crate::fault::Place;
use crate::language::Said;

/// The id of a unit, one plain path part: `ch05`.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(transparent)]
pub struct UnitId(ActorName);

impl UnitId {
    pub fn parse(text: &str) -> Result<UnitId, BadName> {
        ActorName::parse(text).map(UnitId)
    }

    pub fn as_str(&self) -> &str {
        self.0.as_str()
    }
}

impl fmt::Display for UnitId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

/// What a profile's units are called and how their ids look: `ch##` means `ch` and digits.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct UnitKind {
    pub name: Said,
    pub id: String,
    pub place: Place,
}

impl UnitKind {
    /// Whether an id has this kind's shape. A run of `#` stands for at least that many digits.
    pub fn accepts(&self, unit: &UnitId) -> bool {
        if self.id == "*" {
            return true;
        }
        let mut text = unit.as_str();
        let mut shape = self.id.as_str();
        while !shape.is_empty() {
            let hashes = shape.len() - shape.trim_start_matches('#').len();
            if hashes > 0 {
                let digits = text.len() - text.trim_start_matches(|c: char| c.is_ascii_digit()).len();
                if digits < hashes {
                    return false;
                }
                text = &text[digits..];
                shape = &shape[hashes..];
            } else {
                let literal = shape.split('#').next().unwrap_or_default();
                let Some(rest) = text.strip_prefix(literal) else {
                    return false;
                };
                text = rest;
                shape = &shape[literal.len()..];
            }
        }
        text.is_empty()
    }
}

/// A unit that `quipu.toml` or a profile declares.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Unit {
    pub id: UnitId,
    pub title: Said,
    /// Units that must be done first.
    pub needs: Vec<UnitId>,
    /// Variables that hold for this unit only.
    pub vars: BTreeMap<String, String>,
    pub place: Place,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hashes_stand_for_digits() {
        let kind = UnitKind { name: Said::default(), id: "ch##".into(), place: Place { file: "p".into(), line: 1 } };
        for (id, yes) in [("ch05", true), ("ch123", true), ("ch5", false), ("ch", false), ("xch05", false), ("ch05a", false)] {
            assert_eq!(kind.accepts(&UnitId::parse(id).unwrap()), yes, "{id}");
        }
    }
}
