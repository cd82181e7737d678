//! Token counts.
//!
//! A counter in another crate defines a token; this type only adds and compares.

use std::fmt;
use std::iter::Sum;
use std::ops::{Add, AddAssign};

use serde::{Deserialize, Serialize};

#[derive(
    Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize,
)]
#[serde(transparent)]
pub struct Tokens(pub u64);

impl Tokens {
    pub const ZERO: Self = Self(0);

    /// Subtracts, stopping at zero.
    pub fn saturating_sub(self, other: Self) -> Self {
        Self(self.0.saturating_sub(other.0))
    }
}

impl Add for Tokens {
    type Output = Self;

    fn add(self, other: Self) -> Self {
        Self(self.0.saturating_add(other.0))
    }
}

impl AddAssign for Tokens {
    fn add_assign(&mut self, other: Self) {
        *self = *self + other;
    }
}

impl Sum for Tokens {
    fn sum<I: Iterator<Item = Self>>(parts: I) -> Self {
        parts.fold(Self::ZERO, Add::add)
    }
}

impl fmt::Display for Tokens {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tokens_never_wrap() {
        assert_eq!(Tokens(3).saturating_sub(Tokens(5)), Tokens::ZERO);
        assert_eq!(Tokens(u64::MAX) + Tokens(1), Tokens(u64::MAX));
        assert_eq!(
            [Tokens(1), Tokens(2)].into_iter().sum::<Tokens>(),
            Tokens(3)
        );
        assert_eq!(serde_json::to_string(&Tokens(7)).unwrap(), "7");
    }
}
