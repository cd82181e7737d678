//! The input type of this crate: one text of a memory, as the actor may see it.
//!
//! The caller reads the files and hides the parts that the actor may not see.

use std::fmt;

use quipu_contract::Form;
use quipu_recall::Tier;
use serde::Serialize;

/// A text with its path and classification. Parts that the actor may not see are blank lines, so
/// line numbers match the file.
#[derive(Debug, Clone)]
pub struct Page {
    pub path: String,
    pub tier: Tier,
    /// True if a file rule gives the page a tier or makes it a glossary or a metaphor table, or if
    /// no rule matches it. False for work in progress.
    pub is_memory: bool,
    pub form: Option<Form>,
    pub text: String,
}

impl Page {
    /// Whether the page is memory that states facts. A plan states intentions, and work in progress
    /// is not true yet.
    pub fn states_facts(&self) -> bool {
        self.tier == Tier::L1 && self.is_memory && !self.form.is_some_and(Form::is_plan)
    }
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
