//! Suggestions: finds the known name closest to a mistyped one. Every "did you mean" comes from
//! this module.

/// Returns the known name nearest to `typed`, if it is close enough for a typo. The comparison
/// ignores case, and a truncated name is close. Names that differ only in their numbers are
/// different names: `ch05` is not suggested for `ch06`.
pub fn nearest<'k>(typed: &str, known: impl IntoIterator<Item = &'k str>) -> Option<&'k str> {
    let wanted = typed.to_lowercase();
    let distance = |name: &str| {
        let name = name.to_lowercase();
        let far = strsim::osa_distance(&wanted, &name);
        let is_cut_short = wanted.chars().count() >= 3 && name.starts_with(&wanted);
        let length = wanted.chars().count().max(name.chars().count());
        let slip = far <= allowed_edits(length) && !differ_in_number(&wanted, &name);
        if is_cut_short {
            Some(far.min(1))
        } else {
            slip.then_some(far)
        }
    };
    known
        .into_iter()
        .filter_map(|name| Some((distance(name)?, name)))
        .min_by_key(|(far, _)| *far)
        .map(|(_, name)| name)
}

/// Returns `: did you mean `claude`?`, to append to a message; empty if no name is close.
pub fn did_you_mean<'k>(typed: &str, known: impl IntoIterator<Item = &'k str>) -> String {
    nearest(typed, known)
        .map(|name| format!(": did you mean `{name}`?"))
        .unwrap_or_default()
}

/// Returns `unknown role `writter`: did you mean `writer`?`; if no name is close, lists the known
/// names.
pub fn unknown<'k>(kind: &str, typed: &str, known: impl IntoIterator<Item = &'k str>) -> String {
    let known: Vec<&str> = known.into_iter().collect();
    match nearest(typed, known.iter().copied()) {
        Some(name) => format!("unknown {kind} `{typed}`: did you mean `{name}`?"),
        None if known.is_empty() => format!("unknown {kind} `{typed}`: this project has none"),
        None => format!("unknown {kind} `{typed}`: there are {}", known.join(", ")),
    }
}

fn allowed_edits(length: usize) -> usize {
    match length {
        0..=2 => 0,
        3..=4 => 1,
        5..=9 => 2,
        _ => 3,
    }
}

/// Whether two names have the same words but different numbers.
fn differ_in_number(one: &str, other: &str) -> bool {
    let words = |name: &str| {
        name.chars()
            .filter(|c| !c.is_ascii_digit())
            .collect::<String>()
    };
    let numbers = |name: &str| -> Vec<String> {
        let runs = name
            .split(|c: char| !c.is_ascii_digit())
            .filter(|run| !run.is_empty());
        runs.map(|run| run.trim_start_matches('0').to_owned())
            .collect()
    };
    words(one) == words(other) && numbers(one) != numbers(other)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn slips_are_recognised() {
        let near = |typed: &str, known: &[&'static str]| nearest(typed, known.iter().copied());
        assert_eq!(
            near("cladue", &["codex", "claude", "claude-acp"]),
            Some("claude")
        );
        assert_eq!(near("relai", &["relay", "review"]), Some("relay"));
        assert_eq!(near("Writer", &["writer"]), Some("writer"));
        assert_eq!(
            near("decisons.md", &["decisions.md", "state.json"]),
            Some("decisions.md")
        );
        assert_eq!(near("ch1", &["ch01", "ch11"]), Some("ch01"));
        assert_eq!(near("integ", &["init", "integrate"]), Some("integrate"));
        assert_eq!(near("作着", &["作者们"]), None);
    }

    #[test]
    fn other_names_are_not_suggested() {
        assert_eq!(nearest("banana", ["relay", "novel"]), None);
        assert_eq!(nearest("ch06", ["ch05"]), None);
        assert_eq!(nearest("TODO-012", ["TODO-001"]), None);
        assert_eq!(nearest("x", ["y"]), None);
        assert_eq!(did_you_mean("x", ["y"]), "");
        assert_eq!(
            unknown("role", "x", ["editor", "writer"]),
            "unknown role `x`: there are editor, writer"
        );
        assert_eq!(
            did_you_mean("claud", ["claude"]),
            ": did you mean `claude`?"
        );
    }
}
