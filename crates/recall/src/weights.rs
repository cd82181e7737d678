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
        2.572, 6.338, 2.715, 0.507, 0.675, -1.367, 2.518, -1.011, 1.993, 3.315, -0.178, 1.931,
        0.000, 0.000, 0.000, 0.000, 0.000, 0.000, 0.000, 1.056,
    ],
    turn: [
        1.015, -7.336, 0.215, 2.189, 0.000, 4.005, 0.000, 0.000, 0.000, 0.000, 0.555, 0.000, 0.000,
        0.000, 0.000, 0.000, 0.000, 0.000, 0.000, 0.000,
    ],
};

/// With the encoder.
pub const MEANING: Weights = Weights {
    any: [
        2.722, 3.293, 3.541, 2.515, 0.388, -2.610, 2.131, -1.334, 1.594, 2.720, -0.231, 0.000,
        5.659, 0.722, 1.355, -0.069, 7.548, 13.825, -3.840, 1.061,
    ],
    turn: [
        0.370, -4.641, -0.266, 1.059, 0.000, 4.864, 0.000, 0.000, 0.000, 0.000, 0.496, 0.000,
        -3.506, 3.067, -1.807, -2.008, 0.000, 0.000, 0.000, 0.000,
    ],
};

/// For sections without vectors.
pub const SURE_BY_WORDS: Confidence = Confidence {
    weights: [
        -1.098, 0.932, 1.867, 0.077, -0.135, -0.908, 1.080, -0.200, -0.153, 1.835, 0.000, 1.334,
        0.000, 0.000, 0.000, 0.000, 0.000, 0.000, 0.000, 0.263,
    ],
    known: [1.058, 5.117, 2.728, 1.786],
    least: 5.157,
    least_foreign: 5.157,
};

/// For sections that the encoder compared.
pub const SURE_BY_MEANING: Confidence = Confidence {
    weights: [
        2.581, -2.993, 2.332, 2.112, -2.984, -4.476, 2.471, -1.785, 0.172, 2.551, 0.000, 0.000,
        6.666, 8.796, -0.801, -5.065, 7.521, -4.921, 4.157, 0.298,
    ],
    known: [-3.272, 1.984, 7.017, 6.072],
    least: 6.418,
    least_foreign: 4.701,
};
