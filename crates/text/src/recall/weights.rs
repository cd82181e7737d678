//! How much each reason counts.
//!
//! Fitted by `scripts/fit-ranking` (a listwise logistic regression) on one half of the groups of
//! three public sets at once, so that no set's wording decides; the figures for both halves are in
//! `docs/performance-recall.md`. One set of weights for words alone, one with the encoder.

use super::rank::Features;

/// Without the encoder.
pub const WORDS: Features = [
    0.131, 0.731, 1.684, 1.165, 0.165, 0.127, 0.321, -1.155, 1.737, 1.533, 0.0, 0.294, 0.0, 0.0,
    0.0, 0.0,
];

/// With the encoder.
pub const MEANING: Features = [
    0.145, -0.632, 1.833, 1.391, 0.125, 0.097, 0.298, -1.213, 1.72, 1.836, 0.0, 0.25, 3.431, 3.806,
    4.02, 0.0,
];
