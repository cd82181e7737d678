//! Decimal numbers as a text writes them.

/// A number with its decimals. It stands for every value that rounds to it.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Written {
    pub value: f64,
    pub decimals: usize,
}

/// Room for the error of binary fractions.
const EPSILON: f64 = 1e-9;

impl Written {
    /// Parses `.05`, `0.05`, `1,234` or `-3`.
    pub fn parse(text: &str) -> Option<Written> {
        let digits = text.trim().replace(',', "");
        let decimals = digits.split_once('.').map_or(0, |(_, after)| after.len());
        Some(Written {
            value: digits.parse().ok()?,
            decimals,
        })
    }

    /// One unit of its last digit.
    pub fn unit(self) -> f64 {
        10_f64.powi(-i32::try_from(self.decimals).unwrap_or(9))
    }

    /// Whether a computed value gives this number when it is rounded or truncated.
    pub fn covers(self, computed: f64) -> bool {
        let apart = computed - self.value;
        apart >= -self.unit() / 2.0 - EPSILON && apart < self.unit() - EPSILON
    }

    /// Whether it is another, more precise number rounded to fewer digits, or the same number.
    pub fn rounds(self, other: Written) -> bool {
        other.decimals >= self.decimals && self.covers(other.value)
    }

    /// The number of its digits without leading zeros.
    pub fn digits(self) -> usize {
        let shown = format!("{:.*}", self.decimals, self.value.abs());
        let digits = shown.chars().filter(char::is_ascii_digit);
        digits.skip_while(|c| *c == '0').count()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_number_covers_what_rounds_or_truncates_to_it() {
        let number = Written::parse("0.33").unwrap();
        assert!(number.covers(1.0 / 3.0) && number.covers(0.3299) && number.covers(0.3399));
        assert!(!number.covers(0.324) && !number.covers(0.341));
        assert_eq!(Written::parse("1,234").unwrap().value, 1234.0);
        assert_eq!(Written::parse("0.0350").unwrap().digits(), 3);
    }
}
