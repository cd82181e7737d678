//! The `capture` setting: how much of a host's conversation the journal records automatically.

use serde::{Deserialize, Serialize};

/// The parts of a conversation that the journal records. They are never stored in memory files.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Default, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(rename_all = "lowercase")]
pub enum Capture {
    /// No texts. The journal records that something changed, but not what.
    Off,
    /// The user's requests.
    Requests,
    /// The user's requests, the names of the files that the agent changed, and its last message.
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
