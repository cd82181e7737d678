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

/// How much a question says, and how much of that is known.
#[derive(Debug, Clone, Copy)]
pub struct Said {
    /// The share of its words, by weight, that occur in the searched files.
    pub known: f32,
    /// The number of its words, each by its rarity in general language. The rarity in the files
    /// would depend on their number: no word is rare in a small project.
    pub weight: f32,
}

/// The inputs of the confidence: the share of the question that the hit covers, the weight of these
/// words, similarity alone and in context, the date, the known share of the question, its weight,
/// and the weight of the covered words where much is known.
///
/// A long question shares more words with any text, and a large project knows more of its words.
/// The last three take that into account, so that one limit serves short and long questions, small
/// and large projects.
const REASONS: usize = 8;

/// Separates right first hits from the first hits for questions that nothing answers.
pub struct Confidence {
    weights: [f32; REASONS],
    /// A hit with a smaller sum is weak.
    least: f32,
}

impl Confidence {
    pub fn is_weak(&self, features: &Features, said: Said) -> bool {
        self.sum(features, said) < self.least
    }

    fn sum(&self, features: &Features, said: Said) -> f32 {
        let share = said.known * features[2];
        let covered = (share * said.weight).ln_1p();
        let reasons: [f32; REASONS] = [
            share,
            covered,
            features[12],
            features[13],
            features[9],
            said.known,
            said.weight.ln_1p(),
            said.known * covered,
        ];
        let products = reasons.iter().zip(&self.weights);
        products.map(|(reason, weight)| reason * weight).sum()
    }
}

/// Returns true if the similarity is enough for a hit in another script than the question. They
/// hardly share a word.
pub fn is_near(features: &Features) -> bool {
    features[12] >= NEAR
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
    weights: [1.546, 7.635, 0.000, 0.000, 1.999, -1.657, -3.571, 1.235],
    least: 0.921,
};

/// For sections that the encoder compared.
pub const SURE_BY_MEANING: Confidence = Confidence {
    weights: [3.456, 5.943, 6.053, 3.356, 2.411, -2.536, -3.090, 1.106],
    least: 4.020,
};

/// The similarity that is enough across scripts.
const NEAR: f32 = 0.287;

#[cfg(test)]
mod tests {
    use super::super::rank::FEATURES;
    use super::*;

    /// A hit that has more of what speaks for it is not weaker, whatever else it has.
    #[test]
    fn another_reason_never_makes_a_hit_weaker() {
        let by_words = [0, 1, 2, 5, 9].as_slice();
        let by_meaning = [0, 1, 2, 5, 9, 12, 13, 15].as_slice();
        for (sure, reasons) in [(&SURE_BY_WORDS, by_words), (&SURE_BY_MEANING, by_meaning)] {
            for (known, weight) in [(0.2, 4.0), (0.5, 10.0), (1.0, 10.0), (1.0, 40.0)] {
                let said = Said { known, weight };
                for reason in reasons {
                    let mut features = [0.3; FEATURES.len()];
                    let before = sure.sum(&features, said);
                    features[*reason] = 0.6;
                    let name = FEATURES[*reason];
                    assert!(sure.sum(&features, said) >= before, "{name}: {said:?}");
                }
            }
        }
    }
}
