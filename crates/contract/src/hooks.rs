//! The `hooks` setting: the decision on a host's edit that cannot be judged.

use serde::{Deserialize, Serialize};

/// What happens to an edit that Quipu was asked about and could not judge.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(rename_all = "lowercase")]
pub enum Fail {
    /// It goes ahead; `status` and `verify` look at it afterwards.
    #[default]
    Open,
    /// It is denied until a person has looked.
    Closed,
}

impl Fail {
    /// Reads the setting from a `quipu.toml` that is not a valid contract, so that an error
    /// elsewhere in the file does not turn `closed` into `open`.
    pub fn told_by(text: &str) -> Fail {
        let mut inside = false;
        for line in text.lines().map(str::trim) {
            if line.starts_with('[') {
                inside = line
                    .trim_start_matches('[')
                    .trim_start()
                    .starts_with("hooks");
            }
            let bare: String = line
                .split('#')
                .next()
                .unwrap_or_default()
                .chars()
                .filter(|c| !c.is_whitespace())
                .collect();
            let is_said = bare == "fail=\"closed\"" || bare == "fail='closed'";
            if (inside && is_said)
                || bare.starts_with("hooks={fail=\"closed\"")
                || bare == "hooks.fail=\"closed\""
            {
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
            Fail::told_by("quipu = \n[hooks]\nfail = \"closed\" # until fixed\n"),
            Fail::Closed
        );
        assert_eq!(
            Fail::told_by("hooks = { fail = \"closed\" }\nx"),
            Fail::Closed
        );
        assert_eq!(Fail::told_by("[hooks]\nfail = \"open\"\n"), Fail::Open);
        assert_eq!(
            Fail::told_by("[vars]\nfail = \"closed\"\n[hooks]\n"),
            Fail::Open
        );
    }
}
