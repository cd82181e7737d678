//! The weights of the ranking features, and the limit below which a hit is weak.
//!
//! `scripts/fit-ranking` fits them on one half of the groups of public data sets at once, in several
//! layouts, so that they do not overfit the wording or the files of one set. The figures for both
//! halves are in `docs/performance-recall.md`. There is one set of weights for words alone and one
//! with the encoder.

use super::rank::Features;

/// The weights of the features.
pub struct Weights {
    any: Features,
    /// Added for turns of a dialogue.
    turn: Features,
}

impl Weights {
    pub fn score(&self, features: &Features, is_turn: bool) -> f32 {
        let any = weighted(features, &self.any);
        if is_turn {
            any + weighted(features, &self.turn)
        } else {
            any
        }
    }
}

/// Separates right first hits from the first hits for questions that nothing answers.
pub struct Confidence {
    weights: Features,
    /// The weights of the share of the question's words that occur, and of its products with the
    /// first three features.
    known: [f32; 4],
    /// A hit with a smaller sum is weak.
    least: f32,
    /// The same if question and text are in different scripts, where only the encoder compares.
    least_foreign: f32,
}

impl Confidence {
    pub fn is_weak(&self, features: &Features, known: f32, foreign: bool) -> bool {
        let [share, words, window, coverage] = self.known;
        let with_known =
            share + words * features[0] + window * features[1] + coverage * features[2];
        let sum = weighted(features, &self.weights) + known * with_known;
        sum < if foreign {
            self.least_foreign
        } else {
            self.least
        }
    }
}

fn weighted(features: &Features, weights: &Features) -> f32 {
    let products = features.iter().zip(weights);
    products.map(|(value, weight)| value * weight).sum()
}

/// Without the encoder.
pub const WORDS: Weights = Weights {
    any: [
        2.010, 3.818, 4.090, 4.397, 1.200, -3.796, 2.429, -1.075, 2.738, 1.942, 0.143, 2.655,
        0.000, 0.000, 0.000, 0.000, 0.000, 0.000, 0.000,
    ],
    turn: [
        1.059, -3.480, -0.806, 4.341, 0.000, 5.122, 0.000, 0.000, 0.000, 0.000, 0.222, 0.000,
        0.000, 0.000, 0.000, 0.000, 0.000, 0.000, 0.000,
    ],
};

/// With the encoder.
pub const MEANING: Weights = Weights {
    any: [
        1.906, 1.239, 5.802, 6.643, 1.089, -3.787, 2.360, -1.683, 2.021, 1.891, -0.008, 0.000,
        4.165, 3.350, -1.054, -1.004, 8.407, 11.647, -0.793,
    ],
    turn: [
        1.794, -2.240, -1.558, 6.013, 0.000, 5.096, 0.000, 0.000, 0.000, 0.000, 0.190, 0.000,
        -2.846, 1.587, 0.781, -1.701, 0.000, 0.000, 0.000,
    ],
};

/// For sections without vectors.
pub const SURE_BY_WORDS: Confidence = Confidence {
    weights: [
        2.058, 3.765, -1.490, 0.392, -0.923, -4.262, 0.496, 1.046, -0.921, 1.849, -0.184, 0.053,
        0.000, 0.000, 0.000, 0.000, 0.000, 0.000, 0.000,
    ],
    known: [0.338, 0.004, 4.750, 6.148],
    least: 3.564,
    least_foreign: 3.564,
};

/// For sections that the encoder compared.
pub const SURE_BY_MEANING: Confidence = Confidence {
    weights: [
        2.280, 1.417, -0.263, 2.898, -2.723, -6.366, 1.817, -1.612, -0.334, 2.610, 0.020, 0.000,
        1.152, 8.067, -0.491, -2.778, 16.549, -2.940, -1.571,
    ],
    known: [-0.153, -1.627, 6.733, 9.169],
    least: 7.612,
    least_foreign: 5.834,
};
