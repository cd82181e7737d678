//! Token counts.
//!
//! `O200k` is exact (OpenAI's o200k_base). `Estimate` is a calibrated estimate that costs almost
//! nothing. Both are deterministic and need no loading, because the tables are in the program's
//! read-only data. Special tokens in a text are counted as plain text. The contract defines
//! budgets.

mod estimate;
mod merge;
mod pieces;
mod table;

pub use quipu_contract::Tokens;

pub use estimate::{CLASSES, Comparison, UNIT, chunks, compare, pair_index, pair_indices};

#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash)]
pub enum Counter {
    /// Exact counts by o200k_base.
    #[default]
    O200k,
    /// A calibrated estimate of the same.
    Estimate,
}

#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("unknown token counter `{name}`; use `o200k` or `estimate`")]
pub struct UnknownCounter {
    pub name: String,
}

impl Counter {
    pub const ALL: [Self; 2] = [Self::O200k, Self::Estimate];

    pub fn parse(name: &str) -> Result<Self, UnknownCounter> {
        match name {
            "o200k" | "o200k_base" => Ok(Self::O200k),
            "estimate" => Ok(Self::Estimate),
            _ => Err(UnknownCounter {
                name: name.to_owned(),
            }),
        }
    }

    pub fn name(self) -> &'static str {
        match self {
            Self::O200k => "o200k",
            Self::Estimate => "estimate",
        }
    }

    pub fn count(self, text: &str) -> Tokens {
        Tokens(match self {
            Self::O200k => merge::count(text),
            Self::Estimate => estimate::estimate(text),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Compares with counts by `tiktoken-rs` 0.12, which uses OpenAI's own rank file.
    #[test]
    fn counts_are_those_of_the_reference() {
        for (text, expected) in [
            ("", 0),
            ("hello world", 2),
            ("The quick brown fox jumps over the lazy dog.", 10),
            ("I'll say it's HE'S they've", 6),
            ("他把车停在了路边。", 9),
            ("核心驱动力：对卡莲之死的愧疚 → 不惜一切代价复活她", 24),
            ("彩票彩神彩祥电脑电脳京京东微信", 11),
            ("1234567890 3.14159", 9),
            ("fn main() {\n    println!(\"{}\", x);\n}\n", 10),
            ("| a | b |\n|---|---|\n| 1 | 2 |\n", 17),
            ("   \t\n\n  x   ", 5),
            ("\r\n\r\n a\r\nb", 4),
            ("naïve café Ünïcödé ǅ ſ 'ſ", 15),
            ("日本語のテキスト、カタカナー", 11),
            ("안녕하세요 세계", 3),
            ("🚨🚨🚨 最高优先级规则 👩\u{200d}👩\u{200d}👧", 20),
            ("<|endoftext|>", 7),
            ("https://example.org/a/b?c=d#e", 11),
            ("snake_case_name camelCaseName HTTPServerError", 9),
            ("e\u{301} \u{301}abc !\u{301} \u{301}ABC", 10),
            ("\u{feff}BOM", 3),
            ("०१२ ①② ½", 7),
            ("----------------------------------------", 2),
            ("aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa", 7),
            ("ทดสอบภาษาไทย", 5),
            ("Привет, мир! Ёлка", 8),
            ("\u{3000}全角空格\u{3000}", 6),
            ("“走吧。”他说。", 6),
            ("<!-- R1_CODE_REVIEW_COMPLETE -->", 8),
        ] {
            assert_eq!(Counter::O200k.count(text), Tokens(expected), "{text:?}");
        }
    }

    #[test]
    fn counters_are_found_by_name() {
        for counter in Counter::ALL {
            assert_eq!(Counter::parse(counter.name()), Ok(counter));
        }
        let message = Counter::parse("claude").unwrap_err().to_string();
        assert_eq!(
            message,
            "unknown token counter `claude`; use `o200k` or `estimate`"
        );
    }
}
