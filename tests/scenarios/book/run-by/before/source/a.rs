//! Knots.

/// Ties one.
pub fn tie() {}
