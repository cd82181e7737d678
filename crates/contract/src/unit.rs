//! Units of work: chapters, sessions, tasks, reviewing agents.

use std::collections::BTreeMap;
use std::fmt;

use serde::{Deserialize, Serialize};

use crate::actor::{ActorName, BadName};
use crate::fault::Place;
use crate::language::Localized;

/// The id of a unit, a single plain path component: `ch05`.
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

    /// Compares in natural order: `s2` before `s10`.
    pub fn natural_cmp(&self, other: &UnitId) -> std::cmp::Ordering {
        natural_parts(self.as_str())
            .cmp(&natural_parts(other.as_str()))
            .then_with(|| self.cmp(other))
    }
}

/// Splits a text into runs of digits and other text. A longer number is greater, so numbers of any
/// length compare correctly.
fn natural_parts(text: &str) -> Vec<(&str, usize, &str)> {
    let mut parts = Vec::new();
    let mut rest = text;
    while !rest.is_empty() {
        let word = rest
            .find(|c: char| c.is_ascii_digit())
            .unwrap_or(rest.len());
        let end = rest[word..]
            .find(|c: char| !c.is_ascii_digit())
            .map_or(rest.len(), |at| word + at);
        let digits = rest[word..end].trim_start_matches('0');
        parts.push((&rest[..word], digits.len(), digits));
        rest = &rest[end..];
    }
    parts
}

impl fmt::Display for UnitId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

/// The name of a profile's units and the shape of their ids: `ch##` means `ch` and digits.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct UnitKind {
    pub name: Localized,
    pub id: String,
    pub place: Place,
}

impl UnitKind {
    /// Whether an id has this kind's shape. A run of `#` matches at least that many digits.
    pub fn accepts(&self, unit: &UnitId) -> bool {
        if self.id == "*" {
            return true;
        }
        let mut text = unit.as_str();
        let mut shape = self.id.as_str();
        while !shape.is_empty() {
            let hashes = shape.len() - shape.trim_start_matches('#').len();
            if hashes > 0 {
                let digits =
                    text.len() - text.trim_start_matches(|c: char| c.is_ascii_digit()).len();
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
    pub title: Localized,
    /// Units that must be done first.
    pub needs: Vec<UnitId>,
    /// Variables that hold for this unit only.
    pub vars: BTreeMap<String, String>,
    /// The profile that declares it; none for `quipu.toml`.
    #[serde(skip)]
    pub profile: Option<String>,
    pub place: Place,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn units_are_in_the_order_that_people_count() {
        let mut ids: Vec<UnitId> = ["s10", "s2", "w1", "s1", "ch100", "ch09", "s", "ch9"]
            .map(|id| UnitId::parse(id).unwrap())
            .into();
        ids.sort_by(UnitId::natural_cmp);
        assert_eq!(
            ids.iter().map(UnitId::as_str).collect::<Vec<_>>(),
            ["ch09", "ch9", "ch100", "s", "s1", "s2", "s10", "w1"]
        );
    }

    #[test]
    fn hashes_stand_for_digits() {
        let kind = UnitKind {
            name: Localized::default(),
            id: "ch##".into(),
            place: Place {
                file: "p".into(),
                line: 1,
            },
        };
        for (id, yes) in [
            ("ch05", true),
            ("ch123", true),
            ("ch5", false),
            ("ch", false),
            ("xch05", false),
            ("ch05a", false),
        ] {
            assert_eq!(kind.accepts(&UnitId::parse(id).unwrap()), yes, "{id}");
        }
    }
}
