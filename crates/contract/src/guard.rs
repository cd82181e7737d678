//! Guards on writes: lost text here, placeholders for text in `placeholder`, credentials in
//! `credential`.
//!
//! Each finding names its line. A person or agent confirms the write with `--force` (shrink and
//! placeholder) or in the contract (credentials). The scanners use word tables instead of regular
//! expressions, because they run on every write and must cost microseconds.

use serde::Serialize;

use crate::pattern::Pattern;

/// A reason to refuse a write.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Finding {
    pub line: usize,
    /// The finding in words. It never contains the secret itself.
    pub what: String,
}

/// A number that should be from 0 to 1.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Fraction(pub f64);

impl<'de> serde::Deserialize<'de> for Fraction {
    fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Fraction, D::Error> {
        struct Reader;
        impl serde::de::Visitor<'_> for Reader {
            type Value = Fraction;

            fn expecting(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                f.write_str("a number from 0 to 1")
            }

            fn visit_f64<E: serde::de::Error>(self, number: f64) -> Result<Fraction, E> {
                Ok(Fraction(number))
            }

            fn visit_i64<E: serde::de::Error>(self, number: i64) -> Result<Fraction, E> {
                Ok(Fraction(number as f64))
            }
        }
        deserializer.deserialize_f64(Reader)
    }
}

/// The contract's settings for the guards.
#[derive(Debug, Clone)]
pub struct GuardRules {
    /// Replacing a file by less than this fraction of its size needs `--force`.
    pub shrink_below: f64,
    /// Files shorter than this may shrink freely.
    pub shrink_from_bytes: usize,
    /// Paths that may contain text that looks like a credential.
    pub credentials_in: Vec<Pattern>,
    /// Allowed literal texts that only look like credentials.
    pub credentials: Vec<String>,
}

impl Default for GuardRules {
    fn default() -> Self {
        GuardRules {
            shrink_below: 0.5,
            shrink_from_bytes: 400,
            credentials_in: Vec::new(),
            credentials: Vec::new(),
        }
    }
}

/// Whether replacing `before` by `after` loses too much text.
pub fn find_shrink(rules: &GuardRules, before: usize, after: usize) -> Option<String> {
    let lost =
        before >= rules.shrink_from_bytes && (after as f64) < before as f64 * rules.shrink_below;
    lost.then(|| format!("would shrink from {before} to {after} bytes"))
}

/// Whether a text is empty, a word for text to come ("TODO"), or a bracketed placeholder left by a
/// template.
pub fn says_nothing(text: &str) -> bool {
    const TO_COME: [&str; 13] = [
        "todo",
        "tbd",
        "tba",
        "fixme",
        "wip",
        "xxx",
        "placeholder",
        "待办",
        "待定",
        "待补",
        "待补充",
        "待填",
        "待续",
    ];
    let text = text.trim();
    let inner = text
        .strip_prefix(['[', '<', '［', '【'])
        .and_then(|rest| rest.strip_suffix([']', '>', '］', '】']));
    // A link, or text with further brackets inside, was written by someone.
    let bracketed = inner.is_some_and(|inner| !inner.contains(['[', ']', '<', '>', '→', '/', ':']))
        || text.starts_with('_') && text.ends_with('_');
    let bare = text
        .trim_matches(|c: char| !c.is_alphanumeric())
        .to_lowercase();
    bracketed || bare.is_empty() || TO_COME.contains(&bare.as_str())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_stand_in_says_nothing() {
        for text in [
            "",
            "  ",
            "TODO",
            "- tbd.",
            "…",
            "...",
            "?",
            "[next step]",
            "<what>",
            "_say it_",
            "待定",
            "待补充。",
        ] {
            assert!(says_nothing(text), "{text}");
        }
        for text in [
            "TODO: write the test",
            "write it",
            "待办清单要整理",
            "无",
            "[x] done",
            "0",
            "[→ a.md#x]",
            "<https://a.b>",
        ] {
            assert!(!says_nothing(text), "{text}");
        }
    }

    #[test]
    fn only_large_losses_of_large_files_count() {
        let rules = GuardRules::default();
        assert!(find_shrink(&rules, 1000, 400).is_some());
        assert!(find_shrink(&rules, 1000, 600).is_none());
        assert!(find_shrink(&rules, 300, 0).is_none());
    }
}
