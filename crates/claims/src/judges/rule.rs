//! Judges hard rules: a sentence must not contain the words after `must not:`.
//!
//! Negated, hypothetical and quoted occurrences are ignored.

use super::{Finding, Sentence};
use crate::words::{find_all, has_han, is_negated, is_quoted, is_unreal, stem, words};

/// Finds a pattern in a text, ignoring word endings. `*` matches one word.
fn find(text: &str, pattern: &str) -> Option<usize> {
    if has_han(pattern) {
        return text.find(pattern);
    }
    if let Some(range) = find_all(text, pattern, true).first() {
        return Some(range.start);
    }
    let wanted: Vec<String> = pattern
        .split_whitespace()
        .map(|word| {
            if word == "*" {
                "*".into()
            } else {
                stem(&word.to_lowercase()).to_owned()
            }
        })
        .collect();
    let said = words(text);
    // A single word must be inflected to match by its stem: `radioed` does not ban the radio.
    let ended =
        |word: &crate::words::Word| wanted.len() > 1 || stem(&word.lower).len() < word.lower.len();
    let same = |word: &crate::words::Word, want: &str| {
        want == "*" || stem(&word.lower) == want && ended(word)
    };
    let at = said
        .windows(wanted.len().max(1))
        .find(|run| run.iter().zip(&wanted).all(|(word, want)| same(word, want)))?;
    at.first().map(|word| word.range.start)
}

pub fn judge(sentence: &Sentence<'_>, findings: &mut Vec<Finding>) {
    let text = sentence.text;
    for rule in &sentence.memory.rules {
        let Some((at, pattern)) = rule
            .patterns
            .iter()
            .find_map(|pattern| find(text, pattern).map(|at| (at, pattern)))
        else {
            continue;
        };
        if is_negated(&sentence.bare, at) || is_unreal(&sentence.bare) || is_quoted(text, at) {
            continue;
        }
        findings.push(Finding {
            judge: "rule",
            conflict: true,
            confidence: 0.9,
            why: sentence.why(
                format!("`{pattern}` must not happen here"),
                format!("`{pattern}` 不得出现"),
            ),
            at: rule.at.clone(),
            evidence: rule.text.clone(),
            level: rule.level,
        });
    }
}

#[cfg(test)]
mod tests {
    use crate::judges::bench::expect;

    #[test]
    fn hard_rules_hold() {
        let memory = "# W\n\n## Hard rules\n- [premise] No radio within nine miles. must not: radioed, call by radio, flew * machine\n- 礁石九里之内无线电不通。must not：电台、无线电呼叫\n";
        expect(
            memory,
            &[
                ("The keeper radioed the shore.", &["rule!"]),
                ("She called by radio for a doctor.", &["rule!"]),
                ("They flew the machine home.", &["rule!"]),
                ("Nobody radioed the shore.", &[]),
                ("If she radioed, no one would hear.", &[]),
                ("The radio stood dusty on its shelf.", &[]),
                ("她打开电台求救。", &["rule!"]),
                ("这里没有电台。", &[]),
            ],
        );
    }
}
