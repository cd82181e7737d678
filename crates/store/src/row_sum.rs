//! The checksum of one row of the file index (`heads.rs`).
//!
//! It detects accidental damage. It does not protect against deliberate changes.

/// Hashes the fields of a row. Lengths are included, so that no byte can move from one field to the
/// next undetected.
#[derive(Default)]
pub(crate) struct RowSum(flate2::Crc);

impl RowSum {
    pub fn number(mut self, number: i64) -> RowSum {
        self.0.update(&number.to_le_bytes());
        self
    }

    pub fn text(self, text: &str) -> RowSum {
        let mut sum = self.number(i64::try_from(text.len()).unwrap_or(i64::MAX));
        sum.0.update(text.as_bytes());
        sum
    }

    pub fn maybe_text(self, text: Option<&str>) -> RowSum {
        match text {
            Some(text) => self.number(1).text(text),
            None => self.number(0),
        }
    }

    pub fn finish(self) -> i64 {
        self.0.sum().into()
    }
}
