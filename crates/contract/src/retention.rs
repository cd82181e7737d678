//! Retention: how many old versions the history keeps.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Deserializer, Serialize, Serializer};

/// The old versions of each file that the history keeps: `50` versions, or those of `180 days`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Keep {
    Versions(u32),
    Days(u32),
}

impl Keep {
    /// The accepted forms, for messages.
    pub const FORMS: &'static str =
        "a number of versions (50) or of days (\"180 days\"), at least 1";
}

/// The error for a text in none of the accepted forms.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct NoKeep;

impl fmt::Display for NoKeep {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "expected {}", Keep::FORMS)
    }
}

impl std::error::Error for NoKeep {}

impl FromStr for Keep {
    type Err = NoKeep;

    fn from_str(text: &str) -> Result<Keep, NoKeep> {
        let text = text.trim();
        let digits = text
            .find(|c: char| !c.is_ascii_digit())
            .unwrap_or(text.len());
        let (number, unit) = text.split_at(digits);
        let number = number
            .parse()
            .ok()
            .filter(|number| *number > 0)
            .ok_or(NoKeep)?;
        match unit.trim_start() {
            "" | "version" | "versions" => Ok(Keep::Versions(number)),
            "day" | "days" => Ok(Keep::Days(number)),
            _ => Err(NoKeep),
        }
    }
}

/// `1 version`, `50 versions`, `180 days`: [`Keep::from_str`] reads all of these.
impl fmt::Display for Keep {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (number, unit) = match self {
            Keep::Versions(number) => (number, "version"),
            Keep::Days(number) => (number, "day"),
        };
        write!(f, "{number} {unit}{}", if *number == 1 { "" } else { "s" })
    }
}

impl Serialize for Keep {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl<'de> Deserialize<'de> for Keep {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Keep, D::Error> {
        struct Reader;
        impl serde::de::Visitor<'_> for Reader {
            type Value = Keep;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str(Keep::FORMS)
            }

            fn visit_i64<E: serde::de::Error>(self, number: i64) -> Result<Keep, E> {
                let versions = u32::try_from(number).ok().filter(|number| *number > 0);
                versions
                    .map(Keep::Versions)
                    .ok_or_else(|| E::invalid_value(serde::de::Unexpected::Signed(number), &self))
            }

            fn visit_str<E: serde::de::Error>(self, text: &str) -> Result<Keep, E> {
                text.parse()
                    .map_err(|_| E::invalid_value(serde::de::Unexpected::Str(text), &self))
            }
        }
        deserializer.deserialize_any(Reader)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_versions_and_days_are_named() {
        for (text, keep) in [
            ("50", Keep::Versions(50)),
            ("1 version", Keep::Versions(1)),
            ("180 days", Keep::Days(180)),
        ] {
            assert_eq!(text.parse(), Ok(keep));
            assert_eq!(keep.to_string().parse(), Ok(keep));
        }
        for text in ["", "0", "0 days", "-1", "days", "3 weeks", "99999999999"] {
            assert_eq!(text.parse::<Keep>(), Err(NoKeep), "{text}");
        }
    }
}
