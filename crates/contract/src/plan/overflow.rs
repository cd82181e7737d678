//! The error of a plan that cannot fit, with the pointers in the way.

use serde::Serialize;
use thiserror::Error;

use super::ladder::{Ladder, Part};
use super::stages::least_room;
use crate::pointer::{Need, Shrink};
use crate::tokens::Tokens;

/// The `must` pointers do not fit even at their smallest.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Error)]
#[error(
    "{} cannot fit: at least {least} tokens are needed, and the budget is {budget}",
    render(stuck)
)]
pub struct Overflow {
    pub budget: Tokens,
    /// The smallest sufficient budget.
    pub least: Tokens,
    /// The pointers in the way, largest first: without them the rest would fit.
    pub stuck: Vec<Stuck>,
}

/// A pointer in the way.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Stuck {
    /// Its index among the pointers.
    pub index: usize,
    pub name: String,
    pub whole: Tokens,
    /// Its smallest size.
    pub least: Tokens,
    pub shrink: Shrink,
}

fn render(stuck: &[Stuck]) -> String {
    stuck
        .iter()
        .map(|s| format!("`{}`", s.name))
        .collect::<Vec<_>>()
        .join(", ")
}

pub(super) fn plan_overflow(ladder: &Ladder<'_>, budget: Tokens) -> Overflow {
    let staged = ladder.parts.contains(&Part::Staged);
    let room = if staged {
        least_room(ladder)
    } else {
        Tokens::ZERO
    };
    let mut musts: Vec<Stuck> = (0..ladder.asks.len())
        .filter(|i| ladder.asks[*i].need == Need::Must)
        .map(|index| Stuck {
            index,
            name: ladder.asks[index].name.clone(),
            whole: ladder.asks[index].whole(),
            least: if ladder.parts[index] == Part::Staged {
                room
            } else {
                ladder.cost(index)
            },
            shrink: ladder.asks[index].shrink,
        })
        .collect();
    musts.sort_by_key(|s| (std::cmp::Reverse(s.least), s.index));
    let least = ladder.shared() + room;
    let mut rest = least;
    let mut stuck = Vec::new();
    for must in musts {
        if rest <= budget {
            break;
        }
        rest = rest.saturating_sub(must.least);
        stuck.push(must);
    }
    Overflow {
        budget,
        least,
        stuck,
    }
}
