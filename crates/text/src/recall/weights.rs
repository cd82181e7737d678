//! The weights of the ranking features.
//!
//! `scripts/fit-ranking` fits them (a listwise logistic regression) on one half of the groups of
//! three public data sets at once, so that they do not overfit the wording of one set. The figures
//! for both halves are in `docs/performance-recall.md`. There is one set of weights for words alone
//! and one with the encoder.

use super::rank::Features;

/// Without the encoder.
pub const WORDS: Features = [
    0.129, 1.366, 1.821, 1.127, 0.147, 0.095, 0.291, -1.207, 1.847, 2.365, 0.150, 0.384, 0.0, 0.0,
    0.0, 0.0,
];

/// With the encoder.
pub const MEANING: Features = [
    0.117, 0.673, 2.387, 1.320, 0.143, 0.078, 0.310, -1.306, 1.795, 2.473, 0.115, 0.0, 2.776,
    5.649, 2.424, -2.259,
];
