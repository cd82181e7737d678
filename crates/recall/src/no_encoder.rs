//! A placeholder for the encoder in builds without the feature `model`.
//!
//! `built_in` always returns `None` and `Encoder` cannot be constructed, so recall ranks by words
//! alone.

/// The length of a vector.
pub const DIMENSIONS: usize = 192;

/// An empty piece cache.
#[derive(Default)]
pub struct Met;

/// Never constructed.
pub struct Encoder(std::convert::Infallible);

impl Encoder {
    /// True if this build contains an encoder.
    pub const IS_BUILT_IN: bool = false;

    /// Returns `None`: this build has no encoder.
    #[must_use]
    pub fn built_in() -> Option<&'static Self> {
        None
    }

    #[must_use]
    pub fn encode(&self, _: &str) -> Vec<f32> {
        match self.0 {}
    }

    #[must_use]
    pub fn encode_all(&self, _: &[&str], _: &mut Met) -> Vec<f32> {
        match self.0 {}
    }
}

/// Returns an ID that no model has.
#[must_use]
pub fn identity() -> [u8; 16] {
    [0; 16]
}
