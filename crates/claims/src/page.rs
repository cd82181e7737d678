//! A page: one text of a memory, as the caller may see it.

use std::fmt;

use quipu_contract::Form;
use quipu_text::recall::Tier;
use serde::Serialize;

/// A text with its place in the memory. Parts that the reader may not see are blank lines, so that
/// line numbers hold.
#[derive(Debug, Clone)]
pub struct Page {
    pub path: String,
    pub tier: Tier,
    /// Whether a rule gives it a tier, or none names it at all: work in progress has none.
    pub is_memory: bool,
    pub form: Option<Form>,
    pub text: String,
}

/// A line of a page.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Place {
    pub path: String,
    pub line: usize,
}

impl Place {
    pub fn new(path: &str, line: usize) -> Place {
        Place {
            path: path.to_owned(),
            line,
        }
    }
}

impl fmt::Display for Place {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}", self.path, self.line)
    }
}

impl Serialize for Place {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}
