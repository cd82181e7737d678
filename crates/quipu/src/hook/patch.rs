//! Patches in Codex's format: `*** Update File: …`, then hunks of kept, removed and added lines.
//! Also the effects of unified diffs.
//!
//! This file only parses and applies texts. `verdict.rs` judges the deeds.

use super::call::Deed;

/// A block of lines, and the lines that replace it.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Hunk {
    before: Vec<String>,
    after: Vec<String>,
}

/// The effects of a patch, file by file.
pub fn deeds(patch: &str) -> Vec<Deed> {
    let mut deeds = Vec::new();
    for line in patch.lines() {
        // Codex accepts a marker after blanks, but not within the hunks of a file, where it is a
        // kept line. Only the file shows which it is, so both are assumed, and the effect on the
        // file before it is unknown from here on.
        let is_mark = line.trim_start().starts_with("*** ");
        if is_mark
            && line.starts_with(char::is_whitespace)
            && let Some(Deed::Patch { path, .. }) = deeds.last()
        {
            let path = path.clone();
            deeds.push(Deed::Change { path });
        }
        let named = |mark: &str| {
            line.trim_start()
                .strip_prefix(mark)
                .map(|path| path.trim().into())
        };
        if let Some(path) = named("*** Add File: ") {
            deeds.push(Deed::Put {
                path,
                text: String::new(),
            });
        } else if let Some(path) = named("*** Delete File: ") {
            deeds.push(Deed::Remove { path });
        } else if let Some(path) = named("*** Update File: ") {
            deeds.push(Deed::Patch {
                path,
                hunks: vec![Hunk::default()],
            });
        } else if let Some(path) = named("*** Move to: ") {
            // Without a file before it, the marker moves nothing known but still creates a file.
            let from = deeds.iter().rev().find_map(|deed| match deed {
                Deed::Patch { path, .. } => Some(path.clone()),
                _ => None,
            });
            deeds.extend(from.map(|path| Deed::Remove { path }));
            deeds.push(Deed::Change { path });
        } else {
            match deeds.last_mut() {
                Some(Deed::Put { text, .. }) => {
                    if let Some(added) = line.strip_prefix('+') {
                        text.push_str(added);
                        text.push('\n');
                    }
                }
                Some(Deed::Patch { hunks, .. }) => take(hunks, line),
                _ => {}
            }
        }
    }
    deeds
}

/// The effect of a unified diff, file by file. The resulting lines are unknown: git and `patch`
/// locate hunks in their own ways.
pub fn deeds_of_diff(diff: &str) -> Vec<Deed> {
    // git puts a letter before each side: `a/`, `b/`, or one that shows what is compared.
    let plain = |name: &str| match name.split_once('/') {
        Some(("a" | "b" | "c" | "i" | "o" | "w", rest)) => rest.into(),
        _ => name.into(),
    };
    let name = |line: &str, mark: &str| {
        let name = line.strip_prefix(mark)?.split('\t').next()?.trim();
        (name != "/dev/null").then(|| plain(name))
    };
    let lines: Vec<&str> = diff.lines().collect();
    let heads = lines.windows(3).filter(|lines| {
        lines[0].starts_with("--- ") && lines[1].starts_with("+++ ") && lines[2].starts_with("@@")
    });
    let mut deeds: Vec<Deed> = heads
        .flat_map(
            |lines| match (name(lines[0], "--- "), name(lines[1], "+++ ")) {
                (Some(old), None) => vec![Deed::Remove { path: old }],
                (Some(old), Some(new)) if old != new => {
                    vec![Deed::Remove { path: old }, Deed::Change { path: new }]
                }
                (_, Some(new)) => vec![Deed::Change { path: new }],
                (None, None) => Vec::new(),
            },
        )
        .collect();
    // A diff may remove or rename a file without a hunk.
    for lines in lines.windows(2) {
        if let (Some(old), Some(new)) = (
            lines[0].strip_prefix("rename from "),
            lines[1].strip_prefix("rename to "),
        ) {
            deeds.extend([
                Deed::Remove { path: old.into() },
                Deed::Change { path: new.into() },
            ]);
        } else if let Some((_, old)) = lines[0]
            .strip_prefix("diff --git ")
            .and_then(|names| names.rsplit_once(' '))
            && lines[1].starts_with("deleted file mode")
        {
            deeds.push(Deed::Remove { path: plain(old) });
        }
    }
    deeds
}

fn take(hunks: &mut Vec<Hunk>, line: &str) {
    if line.starts_with("@@") {
        hunks.push(Hunk::default());
        return;
    }
    let Some(hunk) = hunks.last_mut() else { return };
    let (mark, rest) = line.split_at_checked(1).unwrap_or((" ", ""));
    match mark {
        "+" => hunk.after.push(rest.to_owned()),
        "-" => hunk.before.push(rest.to_owned()),
        " " => {
            hunk.before.push(rest.to_owned());
            hunk.after.push(rest.to_owned());
        }
        _ => {}
    }
}

/// The text after the hunks; none if one of them does not match.
pub fn patched(text: &str, hunks: &[Hunk]) -> Option<String> {
    let mut lines: Vec<String> = text.lines().map(str::to_owned).collect();
    let mut from = 0;
    for hunk in hunks.iter().filter(|h| **h != Hunk::default()) {
        let at = if hunk.before.is_empty() {
            lines.len()
        } else {
            let fits = |at: &usize| lines[*at..].starts_with(&hunk.before);
            (from..lines.len()).find(fits)?
        };
        lines.splice(at..at + hunk.before.len(), hunk.after.iter().cloned());
        from = at + hunk.after.len();
    }
    Some(lines.into_iter().map(|line| line + "\n").collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_patch_is_read_file_by_file() {
        let patch = "*** Begin Patch\n*** Update File: a.md\n@@\n one\n+two\n*** Delete File: b.md\n*** Add File: c.md\n+new\n*** End Patch\n";
        let deeds = deeds(patch);
        let Deed::Patch { path, hunks } = &deeds[0] else {
            panic!("{deeds:?}")
        };
        assert_eq!(
            (path.to_str(), patched("zero\none\n", hunks)),
            (Some("a.md"), Some("zero\none\ntwo\n".into()))
        );
        assert_eq!(patched("nothing\n", hunks), None);
        assert_eq!(
            deeds[1..],
            [
                Deed::Remove {
                    path: "b.md".into()
                },
                Deed::Put {
                    path: "c.md".into(),
                    text: "new\n".into()
                }
            ]
        );
    }

    #[test]
    fn a_line_that_looks_like_a_mark_hides_nothing() {
        let change = |path: &str| Deed::Change { path: path.into() };
        let hidden = deeds(
            "*** Begin Patch\n*** Update File: a.md\n@@\n *** Add File: z\n-old\n+new\n*** End Patch\n",
        );
        assert!(hidden.contains(&change("a.md")), "{hidden:?}");
        let moved = deeds(
            "*** Begin Patch\n*** Update File: a.md\n*** Move to: b.md\n@@\n-old\n+new\n *** Move to: z\n*** End Patch\n",
        );
        assert!(
            moved.contains(&Deed::Remove {
                path: "a.md".into()
            }) && moved.contains(&change("b.md")),
            "{moved:?}"
        );
        let deleted =
            deeds("*** Begin Patch\n*** Delete File: a.md\n*** Move to: z\n*** End Patch\n");
        assert!(
            deleted.contains(&Deed::Remove {
                path: "a.md".into()
            }),
            "{deleted:?}"
        );
    }
}
