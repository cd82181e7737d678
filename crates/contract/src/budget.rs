//! Budgets: how much text an agent's context window has room for.
//!
//! Room for reading is the window less the system prompt less what is kept free for the answer.

use serde::Serialize;

use crate::role::AgentKind;
use crate::tokens::Tokens;

/// The arithmetic of one agent's window.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub struct Budget {
    /// Everything the agent can hold at once.
    pub window: Tokens,
    /// The system prompt: the host's own, and the brief.
    pub system: Tokens,
    /// Kept free for what the agent writes.
    pub reserve: Tokens,
    /// Whether the contract states the reserve. Where it does not, it follows from what the role
    /// usually writes.
    #[serde(skip)]
    pub reserve_is_stated: bool,
}

impl Budget {
    /// What holds where the contract says nothing. An agent that explores answers with a report;
    /// one that writes needs room for a chapter and for thinking about it.
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

    /// The room for reading.
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
