//! The `hooks` setting: the decision on a host's edit that cannot be judged.

use serde::{Deserialize, Serialize};

/// The treatment of an edit that Quipu could not check.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(rename_all = "lowercase")]
pub enum Fail {
    /// The edit is allowed; `status` and `verify` check it afterwards.
    #[default]
    Open,
    /// The edit is denied until a person has looked at it.
    Closed,
}

impl Fail {
    /// Reads the setting from a `quipu.toml` that is not a valid contract, so that an error
    /// elsewhere in the file does not turn `closed` into `open`.
    pub fn from_broken_text(text: &str) -> Fail {
        const CLOSED: &str = "fail=\"closed\"";
        let mut inside = false;
        for line in text.lines() {
            let bare: String = line
                .split('#')
                .next()
                .unwrap_or_default()
                .chars()
                .filter(|c| !c.is_whitespace())
                .map(|c| if c == '\'' { '"' } else { c })
                .collect();
            if bare.starts_with('[') {
                inside = bare == "[hooks]";
            }
            let is_inline = bare.starts_with("hooks={") && bare.contains(CLOSED);
            let is_dotted = bare.strip_prefix("hooks.") == Some(CLOSED);
            if (inside && bare == CLOSED) || is_inline || is_dotted {
                return Fail::Closed;
            }
        }
        Fail::Open
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_broken_contract_still_says_whether_it_closes() {
        assert_eq!(
            Fail::from_broken_text("quipu = \n[hooks]\nfail = \"closed\" # until fixed\n"),
            Fail::Closed
        );
        assert_eq!(
            Fail::from_broken_text("hooks = { fail = \"closed\" }\nx"),
            Fail::Closed
        );
        for text in [
            "hooks = { x = 1, fail = 'closed' }",
            "hooks.fail = 'closed'",
            "[ hooks ]\nfail = 'closed'",
        ] {
            assert_eq!(Fail::from_broken_text(text), Fail::Closed, "{text}");
        }
        assert_eq!(
            Fail::from_broken_text("[hooks2]\nfail = 'closed'"),
            Fail::Open
        );
        assert_eq!(
            Fail::from_broken_text("[hooks]\nfail = \"open\"\n"),
            Fail::Open
        );
        assert_eq!(
            Fail::from_broken_text("[vars]\nfail = \"closed\"\n[hooks]\n"),
            Fail::Open
        );
    }
}
