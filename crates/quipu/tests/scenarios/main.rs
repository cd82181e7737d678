//! Scenarios: files before, a transcript of commands with their output, and files after.
//!
//! ```text
//! tests/scenarios/<profile>/<name>/before/      files, optional
//! |                                /transcript   commands and their output
//! |                                /after/       the files that the scenario is about; without
//! |                                              it, the files of `before/` must not change
//! ```
//!
//! `QUIPU_RECORD=1 cargo test -p quipu --test scenarios` rewrites the recordings; reviewers read
//! the diff. `QUIPU_SCENARIO=book/` runs only the scenarios with a matching name. With
//! `QUIPU_TEST_STORE=postgres` every project of a scenario is a working copy of one in PostgreSQL,
//! and its output and files must be the same.
//!
//! trycmd was tried for this. It starts only registered programs and no shell, so it cannot do
//! external edits (`echo … >>`), pipes that close early, or a lease in a variable for the next
//! command. Hence this small runner, with `similar` for the differences.

#![allow(clippy::unwrap_used)]

mod agents;
mod documents;
mod guides;
mod http;
mod page;
mod printed;
mod redact;
mod run;
mod transcript;
mod tree;
mod trust;

use std::path::{Path, PathBuf};
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};

fn folder_of_scenarios() -> PathBuf {
    Path::new(&std::env::var("CARGO_MANIFEST_DIR").unwrap())
        .join("../../tests/scenarios")
        .canonicalize()
        .unwrap()
}

/// Whether projects are working copies of shared ones.
fn is_shared() -> bool {
    std::env::var_os("QUIPU_TEST_STORE").is_some_and(|kind| kind == "postgres")
}

/// Scenarios that differ on a shared store, with the reason.
const OTHERWISE_SHARED: [(&str, &str); 59] = [
    (
        "relay/opencode-idle",
        "hooks contact no shared store, so they journal nothing",
    ),
    (
        "review/carried",
        "copies the project, and both copies share the store",
    ),
    (
        "review/answers",
        "makes a project without `init`, which no store has",
    ),
    (
        "relay/nobody-in-a-host",
        "hooks contact no shared store, so they journal nothing",
    ),
    (
        "relay/delegates-without-hooks",
        "hooks contact no shared store, so they journal nothing",
    ),
    (
        "relay/enforcement-lost",
        "deletes `.quipu`, and with it the address of the store",
    ),
    (
        "relay/hooks-of-hosts",
        "hooks contact no shared store, so they journal nothing",
    ),
    (
        "relay/after-compaction",
        "hooks contact no shared store, so they journal nothing",
    ),
    (
        "relay/demo",
        "hooks contact no shared store, so they journal nothing",
    ),
    (
        "relay/subagents-and-windows",
        "hooks contact no shared store, so they journal nothing",
    ),
    (
        "relay/eject",
        "the shared store keeps the history, so nothing is lost",
    ),
    (
        "review/rounds",
        "`verify` prints other numbers for a working copy",
    ),
    (
        "book/damaged-records",
        "throws the journal away, which comes back from the store",
    ),
    (
        "book/guide",
        "throws `.quipu` away, and with it the tie to the store",
    ),
    (
        "book/overwrite",
        "a text that came too late lies in `.quipu/conflicts`, and `status` lists it",
    ),
    (
        "book/verify-and-doctor",
        "throws `.quipu` away, and with it the tie to the store",
    ),
    (
        "novel/judge-by-agent",
        "edits the contract by hand, which is adopted before the next commit: numbers differ",
    ),
    (
        "novel/state",
        "a text that came too late lies in `.quipu/conflicts`, and `status` lists it",
    ),
    (
        "custom-contract/hooks-judge-every-deed",
        "hooks contact no shared store, so they journal nothing",
    ),
    (
        "custom-contract/a-doubled-journal-line",
        "doubles a line of the journal, which comes back from the store",
    ),
    (
        "custom-contract/an-edit-after-a-kill",
        "throws `.quipu` away, and with it the tie to the store",
    ),
    (
        "custom-contract/flows-end",
        "makes a project without `init`, which no store has",
    ),
    (
        "custom-contract/history-prune",
        "is refused there: a shared store keeps the whole history",
    ),
    (
        "custom-contract/lines-gone-from-journal",
        "takes lines out of the journal, which come back from the store",
    ),
    (
        "custom-contract/lines-moved-in-journal",
        "exchanges lines of the journal, which come back from the store",
    ),
    (
        "custom-contract/links-lead-nowhere",
        "a refused `init` keeps `.quipu` with the tie to the store",
    ),
    (
        "custom-contract/named-store",
        "is tied to no store, and says so",
    ),
    (
        "custom-contract/what-a-role-is-told",
        "hooks contact no shared store, so they journal nothing",
    ),
    (
        "custom-contract/trust",
        "trusts one setting after another; the address of the store is one more",
    ),
    (
        "relay/a-cut-off-session-is-recorded",
        "hooks contact no shared store, so they note no session",
    ),
    ("relay/capture", "a shared store captures nothing"),
    (
        "relay/no-entry-is-hidden",
        "a shared store captures nothing, and a project is made without `init`",
    ),
    (
        "relay/forged-lines",
        "hooks contact no shared store, so they journal nothing",
    ),
    (
        "relay/gate",
        "hooks contact no shared store, so they note no session and hold no stop",
    ),
    (
        "relay/hooks-after",
        "hooks contact no shared store, so an edit waits instead of being adopted",
    ),
    (
        "relay/hooks-damaged-record",
        "damages the journal, which comes back from the store",
    ),
    (
        "relay/heads",
        "exchanges the journal, which comes back from the store",
    ),
    (
        "relay/git-conflict",
        "two clones of a project that is tied to no store",
    ),
    (
        "relay/hooks",
        "hooks contact no shared store, so they note no session and hold no stop",
    ),
    (
        "relay/hooks-fields",
        "hooks contact no shared store, so they note no session and hold no stop",
    ),
    (
        "relay/hooks-zh",
        "hooks contact no shared store, so they note no session and hold no stop",
    ),
    (
        "relay/import",
        "edits the contract by hand, which is adopted before the next commit: numbers differ",
    ),
    (
        "relay/an-order-is-its-authors",
        "edits a file by hand, which is adopted before the next commit",
    ),
    (
        "relay/pipes-in-place-of-files",
        "puts something else in the place of the tie to the store",
    ),
    (
        "relay/one-conversation-one-session",
        "hooks contact no shared store, so they note no session",
    ),
    (
        "relay/purge-keeps-work",
        "hooks contact no shared store, so they note no session and hold no stop",
    ),
    (
        "relay/state",
        "a text that came too late lies in `.quipu/conflicts`, and `status` lists it",
    ),
    (
        "relay/unfinished-work",
        "hooks contact no shared store, so they capture nothing",
    ),
    (
        "relay/unfinished-work-zh",
        "hooks contact no shared store, so they capture nothing",
    ),
    (
        "relay/whose-it-is",
        "hooks contact no shared store, so they note no session and hold no stop",
    ),
    (
        "worldlog/finish",
        "edits the contract by hand, which is adopted before the next commit: numbers differ",
    ),
    (
        "worldlog/hooks",
        "hooks contact no shared store, so they note no compaction",
    ),
    (
        "book/run-by",
        "no `init`: it runs in a folder that has not been put into the store",
    ),
    (
        "book/style-guide",
        "no `init`: it runs in folders that have not been put into the store",
    ),
    (
        "custom-contract/no-door-tells-more",
        "no `init`: it runs in folders that have not been put into the store",
    ),
    (
        "custom-contract/verdicts",
        "no `init`: it runs in a folder that has not been put into the store",
    ),
    (
        "relay/init-readme-zh",
        "makes two projects of one name, of which a store has one",
    ),
    (
        "relay/not-valid",
        "hooks contact no shared store, so they adopt nothing before the edits that follow",
    ),
    (
        "worldlog/guide",
        "a picture of sessions that fall into one second, or do not",
    ),
];

#[test]
fn scenarios() {
    let root = folder_of_scenarios();
    let record = std::env::var_os("QUIPU_RECORD").is_some();
    let only = std::env::var("QUIPU_SCENARIO").unwrap_or_default();
    let mut folders = Vec::new();
    for profile in tree::subfolders(&root).unwrap() {
        folders.extend(tree::subfolders(&profile).unwrap());
    }
    folders.retain(|f| {
        let name = f.strip_prefix(&root).unwrap_or(f);
        name.to_string_lossy().contains(&only)
    });
    if is_shared() {
        folders.retain(|f| !OTHERWISE_SHARED.iter().any(|(name, _)| f.ends_with(name)));
    }
    assert!(!folders.is_empty(), "no scenario is named `{only}`");

    let (next, failures) = (AtomicUsize::new(0), Mutex::new(Vec::new()));
    std::thread::scope(|scope| {
        for _ in 0..std::thread::available_parallelism().map_or(2, usize::from) {
            scope.spawn(|| {
                while let Some(folder) = folders.get(next.fetch_add(1, Ordering::Relaxed)) {
                    if let Err(what) = run::run(folder, record) {
                        let name = folder.strip_prefix(&root).unwrap().display();
                        failures.lock().unwrap().push(format!("── {name}\n{what}"));
                    }
                }
            });
        }
    });
    let mut failures = failures.into_inner().unwrap();
    failures.sort();
    let advice = "read the differences; if they are meant: QUIPU_RECORD=1 cargo test -p quipu --test scenarios";
    assert!(
        failures.is_empty(),
        "\n{}\n{} of {} scenarios failed; {advice}",
        failures.join("\n"),
        failures.len(),
        folders.len()
    );
}

/// Tests of the runner itself: the errors it must detect.
mod runner {
    use super::*;

    fn scenario(files: &[(&str, &str)]) -> tempfile::TempDir {
        let folder = tempfile::tempdir().unwrap();
        for (path, text) in files {
            let path = folder.path().join(path);
            std::fs::create_dir_all(path.parent().unwrap()).unwrap();
            std::fs::write(path, text).unwrap();
        }
        folder
    }

    fn fails_with(files: &[(&str, &str)], what: &str) {
        let error = run::run(scenario(files).path(), false).unwrap_err();
        assert!(error.contains(what), "{error}");
    }

    #[test]
    fn a_malformed_scenario_fails() {
        fails_with(&[("before/a", "")], "`transcript` does not exist");
        fails_with(
            &[("transcript", "// nothing is done\n")],
            "no line begins with `$ `",
        );
        fails_with(
            &[("transcript", "stray\n$ true\n")],
            "line 1: output before the first command",
        );
        fails_with(
            &[("transcript", "$ true\n"), ("befor/a", "")],
            "`befor` is neither",
        );
    }

    #[test]
    fn what_differs_is_shown() {
        fails_with(&[("transcript", "$ echo a\nb\n")], "-b\n+a\n");
        fails_with(&[("transcript", "$ echo a >&2\na\n")], "-a\n+! a\n");
        fails_with(&[("transcript", "$ false\n")], "+[exit 1]");
        fails_with(&[("transcript", "$ true\n[exit 3]\n")], "-[exit 3]");
        fails_with(
            &[
                ("transcript", "$ echo b > f\n"),
                ("before/f", "a\n"),
                ("after/f", "a\n"),
            ],
            "-a\n+b\n",
        );
        fails_with(
            &[("transcript", "$ true\n"), ("after/f", "a\n")],
            "`f` is missing",
        );
        fails_with(
            &[("transcript", "$ rm f\n"), ("before/f", "a\n")],
            "`f` is missing",
        );
    }

    #[test]
    fn recording_makes_it_pass() {
        let folder = scenario(&[
            (
                "transcript",
                "// A note.\n$ cat <<'END' > f; sh -c 'exit 4'\n> one\n> END\n$ cat f\n",
            ),
            ("after/old", ""),
            ("after/f", ""),
        ]);
        run::run(folder.path(), true).unwrap();
        run::run(folder.path(), false).unwrap();
        let told = std::fs::read_to_string(folder.path().join("transcript")).unwrap();
        assert_eq!(
            told,
            "// A note.\n$ cat <<'END' > f; sh -c 'exit 4'\n> one\n> END\n[exit 4]\n\n$ cat f\none\n"
        );
        assert_eq!(
            std::fs::read_to_string(folder.path().join("after/f")).unwrap(),
            "one\n"
        );
        assert!(!folder.path().join("after/old").exists());
    }
}
