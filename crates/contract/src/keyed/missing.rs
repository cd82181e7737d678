//! Facts of one text that another lacks, compared by section and key.

use std::collections::BTreeMap;

use super::edit::Fact;
use super::parse::{Part, fold, parse};

/// A fact by the folded titles above it and its folded key.
type Name = (Vec<String>, String);

/// The current facts of `before` that `after` no longer has, in order. A fact that moved to another
/// section, or of which only an older value is left in a history, is missing. If several lines have
/// one key, as many must remain as there are different values.
pub(crate) fn missing_facts(before: &str, after: &str) -> Vec<Fact> {
    let (before, after) = (parse(before), parse(after));
    // The only title of a document may be renamed.
    let titled = [&before, &after]
        .iter()
        .any(|parts| parts.iter().filter(|part| part.level == 1).count() > 1);
    let mut left: BTreeMap<Name, usize> = BTreeMap::new();
    for (name, _) in current_facts(&after, titled) {
        *left.entry(name).or_default() += 1;
    }
    let mut values: BTreeMap<Name, Vec<String>> = BTreeMap::new();
    let mut missing = Vec::new();
    for (name, fact) in current_facts(&before, titled) {
        let seen = values.entry(name.clone()).or_default();
        if seen.contains(&fact.value) {
            continue;
        }
        seen.push(fact.value.clone());
        match left.get_mut(&name).filter(|count| **count > 0) {
            Some(count) => *count -= 1,
            None => missing.push(fact),
        }
    }
    missing
}

fn current_facts(parts: &[Part], titled: bool) -> Vec<(Name, Fact)> {
    let mut found = Vec::new();
    let mut document_titles = 0;
    for part in parts {
        if part.level == 1 && !titled {
            document_titles = 1;
        }
        if part.is_history() {
            continue;
        }
        let titles: Vec<String> = part
            .titles
            .iter()
            .skip(document_titles)
            .map(|title| fold(title))
            .collect();
        for unit in &part.units {
            let Some(key) = unit.key() else { continue };
            let fact = Fact {
                section: part.title().to_owned(),
                key: key.to_owned(),
                value: unit.value(),
                line: unit.line,
                older: false,
            };
            found.push(((titles.clone(), fold(key)), fact));
        }
    }
    found
}
