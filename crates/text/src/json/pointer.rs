//! JSON pointers (RFC 6901): `/progress/next_steps/0`.
//!
//! `-` is the position after the last item of a list. This module parses and prints pointers;
//! `parse` resolves them.

use thiserror::Error;

/// A location in a JSON text.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct JsonPointer(Vec<String>);

#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[error(
    "`{0}` is not a JSON pointer: write /progress/next_steps/0, `~1` for a slash and `~0` for a \
     tilde in a name"
)]
pub struct BadPointer(String);

impl JsonPointer {
    /// Parses a pointer. `""` is the whole text. The leading slash is optional: `phase` is
    /// `/phase`.
    pub fn parse(text: &str) -> Result<JsonPointer, BadPointer> {
        if text.is_empty() || text == "/" {
            return Ok(JsonPointer::default());
        }
        let mut parts = Vec::new();
        for part in text.strip_prefix('/').unwrap_or(text).split('/') {
            let mut rest = part;
            while let Some(at) = rest.find('~') {
                if !rest[at + 1..].starts_with(['0', '1']) {
                    return Err(BadPointer(text.to_owned()));
                }
                rest = &rest[at + 2..];
            }
            parts.push(part.replace("~1", "/").replace("~0", "~"));
        }
        Ok(JsonPointer(parts))
    }

    pub fn parts(&self) -> &[String] {
        &self.0
    }

    /// Returns the pointer to a member or item of this value.
    pub fn child(&self, name: impl ToString) -> JsonPointer {
        let mut parts = self.0.clone();
        parts.push(name.to_string());
        JsonPointer(parts)
    }
}

impl std::fmt::Display for JsonPointer {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        for part in &self.0 {
            write!(f, "/{}", part.replace('~', "~0").replace('/', "~1"))?;
        }
        Ok(())
    }
}
