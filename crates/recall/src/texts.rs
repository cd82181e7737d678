//! Encodes texts for callers that compare a few of them directly, without an index.
//!
//! The vectors are normalised, so a dot product is the cosine similarity.

use super::encoder::{DIMENSIONS, Encoder, Met, identity};

/// Returns the vector of each text. Returns nothing if this build has no encoder.
#[must_use]
pub fn encode_texts(texts: &[&str]) -> Vec<Vec<f32>> {
    let Some(encoder) = Encoder::built_in() else {
        return Vec::new();
    };
    let all = encoder.encode_all(texts, &mut Met::default());
    all.chunks_exact(DIMENSIONS).map(<[f32]>::to_vec).collect()
}

/// Names the encoder of this build. Vectors of another encoder do not compare with its vectors.
#[must_use]
pub fn encoder_name() -> String {
    String::from_utf8_lossy(&identity()).into_owned()
}
