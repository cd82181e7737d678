//! Waivers: conflicts that a person has reviewed and accepted.
//!
//! A waiver is keyed by the content of one sentence and one entry, not by their location. If either
//! is reworded, the conflict must be reviewed again. The file is append-only: a later line for the
//! same ID overrides an earlier one.

use std::collections::BTreeMap;

use serde::Serialize;

use crate::page::Place;
use crate::period::without_period;

#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Waiver {
    pub id: String,
    pub reason: String,
    /// A description of the conflict at the time of the waiver.
    pub about: String,
    pub at: Place,
}

/// Returns the ID of a conflict. Line breaks and other whitespace do not affect it.
pub fn finding_id(claim: &str, evidence: &str) -> String {
    let words = claim.split_whitespace().chain(["\0"]);
    format!(
        "w{:010x}",
        hash(words.chain(evidence.split_whitespace())) >> 24
    )
}

/// Returns the ID of a conflict between a sentence of a draft and a line of evidence. A line that has
/// got an end since then is the same line.
pub fn conflict_id(claim: &str, evidence: &str) -> String {
    finding_id(claim, &without_period(evidence))
}

/// Hashes texts by FNV-1a, which is short and portable. An ID need not be hard to forge.
pub(crate) fn hash<'t>(texts: impl Iterator<Item = &'t str>) -> u64 {
    let bytes = texts.flat_map(str::bytes);
    bytes.fold(0xcbf2_9ce4_8422_2325, |hash, byte| {
        (hash ^ u64::from(byte)).wrapping_mul(0x100_0000_01b3)
    })
}

/// Writes the line that waives a conflict.
pub fn render_waiver(id: &str, reason: &str, about: &str) -> String {
    format!(
        "- waived {id}: {} | {}\n",
        one_line(reason),
        one_line(about)
    )
}

/// Writes the line that revokes a waiver.
pub fn render_revocation(id: &str, reason: &str) -> String {
    format!("- revoked {id}: {}\n", one_line(reason))
}

fn one_line(text: &str) -> String {
    text.replace('|', "/")
        .split_whitespace()
        .collect::<Vec<_>>()
        .join(" ")
}

/// Returns the waivers in force, in file order.
pub fn read_waivers(path: &str, text: &str) -> Vec<Waiver> {
    let mut held: BTreeMap<String, Waiver> = BTreeMap::new();
    for (nth, line) in text.lines().enumerate() {
        if let Some((id, rest)) = line
            .strip_prefix("- waived ")
            .and_then(|rest| rest.split_once(": "))
        {
            let (reason, about) = rest.split_once(" | ").unwrap_or((rest, ""));
            let waiver = Waiver {
                id: id.to_owned(),
                reason: reason.to_owned(),
                about: about.to_owned(),
                at: Place::new(path, nth + 1),
            };
            held.insert(id.to_owned(), waiver);
        } else if let Some((id, _)) = line
            .strip_prefix("- revoked ")
            .and_then(|rest| rest.split_once(':'))
        {
            held.remove(id);
        }
    }
    let mut waivers: Vec<Waiver> = held.into_values().collect();
    waivers.sort_by_key(|waiver| waiver.at.line);
    waivers
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_waiver_holds_until_it_is_revoked() {
        let id = finding_id("Otto signed\nwith his right hand.", "handed: left");
        assert_eq!(
            id,
            finding_id("Otto signed with his right hand.", "handed: left")
        );
        assert_ne!(
            id,
            finding_id("Otto signed with his right hand!", "handed: left")
        );
        let dated = |evidence: &str| conflict_id("Otto signed.", evidence);
        assert_eq!(dated("handed: left"), dated("handed: left (until ch06)"));
        assert_ne!(dated("handed: left"), dated("handed: left, since birth"));
        let mut text = String::from("# Waivers\n\n");
        text.push_str(&render_waiver(
            &id,
            "he is\ntricking them",
            "drafts/ch06.md:4 ⇄ characters.md:5",
        ));
        let waivers = read_waivers("waivers.md", &text);
        assert_eq!(
            (waivers[0].reason.as_str(), waivers[0].at.line),
            ("he is tricking them", 3)
        );
        text.push_str(&render_revocation(&id, "no longer"));
        assert!(read_waivers("waivers.md", &text).is_empty());
    }
}
