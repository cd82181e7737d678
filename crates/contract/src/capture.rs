//! The `capture` setting: how much of a host's conversation the journal records automatically.

use serde::{Deserialize, Serialize};

/// What is recorded of a conversation. Never in memory files.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Default, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(rename_all = "lowercase")]
pub enum Capture {
    /// No texts. That something was changed is noted, without saying what.
    Off,
    /// What the user asked for.
    Requests,
    /// What the user asked for, the names of the files that the agent changed, and its last
    /// message.
    #[default]
    Full,
}

impl Capture {
    pub const ALL: [Capture; 3] = [Capture::Off, Capture::Requests, Capture::Full];

    pub fn as_str(self) -> &'static str {
        match self {
            Capture::Off => "off",
            Capture::Requests => "requests",
            Capture::Full => "full",
        }
    }
}
