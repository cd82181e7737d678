//! Judges terms: reports words that the glossary forbids.
//!
//! Unlike other judges it also checks quoted and hypothetical text, because the wording itself is
//! wrong.

use super::{Finding, Sentence};
use crate::words::find_all;

pub fn judge(sentence: &Sentence<'_>, findings: &mut Vec<Finding>) {
    let text = sentence.text;
    for term in &sentence.memory.terms {
        // A forbidden word may be part of the correct one: `灯塔` in `大灯塔`.
        let right = find_all(text, &term.name, true);
        let others: Vec<_> = sentence
            .memory
            .terms
            .iter()
            .filter(|other| other.name != term.name)
            .flat_map(|other| find_all(text, &other.name, true))
            .collect();
        for avoided in &term.avoid {
            let proper = avoided.starts_with(char::is_uppercase);
            let covered = |at: &std::ops::Range<usize>| {
                right
                    .iter()
                    .chain(&others)
                    .any(|range| range.start <= at.start && at.end <= range.end)
            };
            let mut found = find_all(text, avoided, !proper);
            if !crate::words::has_han(avoided) {
                for plural in ["s", "es"] {
                    found.extend(find_all(text, &format!("{avoided}{plural}"), !proper));
                }
            }
            if found.iter().any(|at| !covered(at)) {
                findings.push(Finding {
                    judge: "term",
                    conflict: true,
                    confidence: 0.9,
                    why: sentence.why(
                        format!("`{avoided}` must not be used for `{}`", term.name),
                        format!("不得用 `{avoided}` 称呼 `{}`", term.name),
                    ),
                    at: term.at.clone(),
                    evidence: term.text.clone(),
                    level: None,
                });
                break;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use crate::judges::bench::expect;

    #[test]
    fn forbidden_terms_are_found_as_words() {
        let memory = "| term | definition | avoid |\n|---|---|---|\n| lease | a right | lock, mutex |\n| lock file | another thing | |\n\n| 术语 | 定义 | 勿用 |\n|---|---|---|\n| 大灯塔 | 岛上的灯 | 灯塔、灯楼 |\n";
        expect(
            memory,
            &[
                ("The writer takes a lock for an hour.", &["term!"]),
                ("The writer takes a lease.", &[]),
                ("The clock ticked.", &[]),
                ("The lock file is there.", &[]),
                ("她登上灯楼。", &["term!"]),
                ("她登上大灯塔。", &[]),
                ("她登上灯塔。", &["term!"]),
            ],
        );
    }
}
