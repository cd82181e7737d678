//! How much each reason counts.
//!
//! Fitted by `scripts/fit-ranking` (a listwise logistic regression) on one half of the groups of
//! three public sets at once, so that no set's wording decides; the figures for both halves are in
//! `docs/performance-recall.md`. One set of weights for words alone, one with the encoder.

use super::rank::Features;

/// Without the encoder.
pub const WORDS: Features = [
    0.129, 1.366, 1.821, 1.127, 0.147, 0.095, 0.291, -1.207, 1.847, 2.365, 0.150, 0.384, 0.0, 0.0,
    0.0, 0.0,
];

/// With the encoder.
pub const MEANING: Features = [
    0.120, 0.374, 2.131, 1.334, 0.128, 0.089, 0.278, -1.314, 1.719, 2.492, 0.106, 0.0, 2.942,
    3.694, 3.963, -1.356,
];
