//! Stands in for the encoder in a build without the feature `model`: there is none.

/// Numbers of a vector.
pub const DIMENSIONS: usize = 192;

/// What an encoder remembers of pieces: nothing.
#[derive(Default)]
pub struct Met;

/// Never made.
pub struct Encoder(std::convert::Infallible);

impl Encoder {
    /// Whether this build carries an encoder at all.
    pub const IS_BUILT_IN: bool = false;

    /// There is no built-in encoder.
    #[must_use]
    pub fn built_in() -> Option<&'static Self> {
        None
    }

    /// Never called.
    #[must_use]
    pub fn encode(&self, _: &str) -> Vec<f32> {
        match self.0 {}
    }

    /// Never called.
    #[must_use]
    pub fn encode_all(&self, _: &[&str], _: &mut Met) -> Vec<f32> {
        match self.0 {}
    }
}

/// No model has this name.
#[must_use]
pub fn identity() -> [u8; 16] {
    [0; 16]
}
