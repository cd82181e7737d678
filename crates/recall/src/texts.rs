//! Encodes texts for callers that compare a few of them directly, without an index.
//!
//! The vectors are normalised, so a dot product is the cosine similarity.

use super::encoder::{DIMENSIONS, Encoder, Met};

/// Returns the vector of each text. Returns nothing if this build has no encoder.
#[must_use]
pub fn encode_texts(texts: &[&str]) -> Vec<Vec<f32>> {
    let Some(encoder) = Encoder::built_in() else {
        return Vec::new();
    };
    let all = encoder.encode_all(texts, &mut Met::default());
    all.chunks_exact(DIMENSIONS).map(<[f32]>::to_vec).collect()
}
