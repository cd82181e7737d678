//! The scripts that pages may have, and their hashes.
//!
//! Every page has the same small script, which adds the choice of a theme and the buttons that copy
//! code and print; the search page has a second one. The content security policy of a page names
//! the hashes of its scripts and forbids all others.

use quipu_contract::Language;

use crate::search;
use crate::words::words;

const SCRIPT: &str = include_str!("page.js");
/// The hash of `SCRIPT`. A test checks it.
pub(crate) const HASH: &str = "sha256-uqAiK8ZjzIRDhuD31fJ/scj7KV4/eV1L2MDzBiHFrr0=";
/// The hashes of all scripts of a book, in the form of a content security policy.
pub const SCRIPT_HASHES: [&str; 2] = [HASH, search::SCRIPT_HASH];

/// Returns the script element that `publish` writes into every page of a book in this language.
pub fn own_script(language: Language) -> String {
    let said = words(language);
    let [theme, auto, light, dark] = said.themes;
    format!(
        "<script data-theme=\"{theme}\" data-auto=\"{auto}\" data-light=\"{light}\" data-dark=\"{dark}\" \
         data-copy=\"{}\" data-copied=\"{}\" data-print=\"{}\">{SCRIPT}</script>\n",
        said.copy, said.copied, said.print
    )
}

#[cfg(test)]
mod tests {
    use base64::Engine as _;
    use sha2::Digest as _;

    use super::*;

    #[test]
    fn the_policy_names_each_script() {
        for (script, known) in [(SCRIPT, HASH), (search::SCRIPT, search::SCRIPT_HASH)] {
            let hash = base64::engine::general_purpose::STANDARD
                .encode(sha2::Sha256::digest(script.as_bytes()));
            assert_eq!(known, format!("sha256-{hash}"));
            assert!(!script.contains("</") && !script.contains("<!--"));
        }
    }
}
