//! Budgets: how much text fits into an agent's context window.
//!
//! Room for reading is the window minus the system prompt minus the reserve for the answer.

use serde::Serialize;

use crate::role::AgentKind;
use crate::tokens::Tokens;

/// The parts of one agent's context window.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub struct Budget {
    /// Size of the context window.
    pub window: Tokens,
    /// The system prompt: the host's own, and the brief.
    pub system: Tokens,
    /// Reserved for the agent's answer.
    pub reserve: Tokens,
    /// Whether the contract states the reserve. Otherwise it is derived from the role's usual
    /// output.
    #[serde(skip)]
    pub reserve_is_stated: bool,
}

impl Budget {
    /// Returns the default budget of a kind. An agent that explores answers with a report; one that
    /// writes needs room for a chapter and for reasoning.
    pub fn of_kind(kind: AgentKind) -> Budget {
        let (window, reserve) = match kind {
            AgentKind::Explore => (128_000, 8_000),
            AgentKind::GeneralPurpose => (200_000, 16_000),
        };
        Budget {
            window: Tokens(window),
            system: Tokens(4_000),
            reserve: Tokens(reserve),
            reserve_is_stated: false,
        }
    }

    /// Returns the room for reading.
    pub fn room(&self) -> Tokens {
        self.window
            .saturating_sub(self.system)
            .saturating_sub(self.reserve)
    }
}

/// The budget of each kind of agent.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub struct Budgets {
    pub explore: Budget,
    pub general_purpose: Budget,
}

impl Budgets {
    pub fn of(&self, kind: AgentKind) -> Budget {
        match kind {
            AgentKind::Explore => self.explore,
            AgentKind::GeneralPurpose => self.general_purpose,
        }
    }
}

impl Default for Budgets {
    fn default() -> Self {
        Budgets {
            explore: Budget::of_kind(AgentKind::Explore),
            general_purpose: Budget::of_kind(AgentKind::GeneralPurpose),
        }
    }
}
