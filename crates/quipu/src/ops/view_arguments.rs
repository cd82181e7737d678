//! Arguments shared by `view` and `brief`: role, unit, agent and budget.

use clap::Args;
use quipu_contract::{ActorName, Language, Tokens};
use quipu_protocol::ViewRequest;
use quipu_text::Counter;

use crate::answer::{Failure, exit};
use crate::session::Session;

#[derive(Debug, Args)]
pub struct ViewArguments {
    /// The role; by default your own
    role: Option<String>,
    /// The token budget for reading; by default window − system prompt − reserve
    #[arg(long, value_name = "N", value_parser = parse_tokens)]
    budget: Option<u64>,
    /// The size of the agent's context window, in tokens
    #[arg(long, value_name = "N", value_parser = parse_tokens, conflicts_with = "budget")]
    window: Option<u64>,
    /// Tokens to reserve for the agent's output
    #[arg(long, value_name = "N", value_parser = parse_tokens, conflicts_with = "budget")]
    reserve: Option<u64>,
    /// The token counter: o200k (exact) or estimate
    #[arg(long, value_name = "NAME", default_value = "o200k")]
    counter: String,
    /// Continue without required (`must`) files that do not exist yet
    #[arg(long)]
    partial: bool,
}

/// Parses a number of tokens: `21000`, `21_000`, `21k`.
pub fn parse_tokens(text: &str) -> Result<u64, String> {
    let plain = text.replace(['_', ','], "");
    let (digits, times) = match plain.strip_suffix(['k', 'K']) {
        Some(digits) => (digits, 1000),
        None => (plain.as_str(), 1),
    };
    let number = digits
        .parse::<u64>()
        .ok()
        .and_then(|n| n.checked_mul(times));
    number.ok_or_else(|| "give a number of tokens: 21000 or 21k".into())
}

impl ViewArguments {
    pub fn request(
        &self,
        session: &Session,
        language: Option<&str>,
    ) -> Result<ViewRequest, Failure> {
        let own = session.actor.role();
        let role = match (&self.role, own) {
            (Some(asked), Some(own)) if asked != own.as_str() => {
                return Err(Failure::new(
                    exit::REFUSED,
                    format!(
                        "role `{own}` may only ask for its own view, not for the view of \
                        `{asked}`"
                    ),
                    format!("quipu view {own}"),
                ));
            }
            (Some(asked), _) => ActorName::parse(asked)
                .map_err(|e| Failure::usage(e.to_string(), "quipu contract show"))?,
            (None, Some(own)) => own.clone(),
            (None, None) => {
                return Err(Failure::usage(
                    "the role is missing",
                    "quipu contract show     (lists the roles)",
                ));
            }
        };
        let language = match language {
            None => None,
            Some(text) => Some(Language::parse(text).ok_or_else(|| {
                Failure::usage(format!("unknown language `{text}`"), "--lang en or zh")
            })?),
        };
        Ok(ViewRequest {
            role,
            unit: session.actor.unit().cloned(),
            agent: session.actor.agent().cloned(),
            budget: self.budget.map(Tokens),
            window: self.window.map(Tokens),
            reserve: self.reserve.map(Tokens),
            counter: Counter::parse(&self.counter)
                .map_err(|e| Failure::usage(e.to_string(), "--counter o200k"))?,
            language,
            partial: self.partial,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_of_tokens_are_read() {
        for (text, number) in [
            ("21000", 21_000),
            ("21k", 21_000),
            ("21_000", 21_000),
            ("200K", 200_000),
        ] {
            assert_eq!(parse_tokens(text), Ok(number));
        }
        for bad in ["", "k", "-1", "many", "99999999999999999999k"] {
            assert!(parse_tokens(bad).is_err(), "{bad}");
        }
    }
}
