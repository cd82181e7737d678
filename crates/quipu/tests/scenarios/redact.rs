//! Replaces values that change from run to run: times, dates, the temporary root, generated ids.

use std::path::Path;
use std::sync::LazyLock;

use jiff::{Timestamp, ToSpan, tz::TimeZone};
use regex::{Captures, Regex};

static TIME: LazyLock<Regex> =
    LazyLock::new(|| Regex::new(r"(\d{4}-\d\d-\d\d)(T\d\d:\d\d:\d\d(?:\.\d+)?Z?)?").unwrap());
/// Both are cut from a time-ordered UUID, which starts with digits of the clock.
static LEASE: LazyLock<Regex> = LazyLock::new(|| Regex::new(r"\b[0-9a-f]{12}\b").unwrap());
/// The duration of a task.
static DURATION: LazyLock<Regex> =
    LazyLock::new(|| Regex::new(r"((?:Duration: |耗时：))\d+( s| 秒)").unwrap());
/// Generated ids of todos, decisions and delegations, and of sessions.
static NAME: LazyLock<Regex> =
    LazyLock::new(|| Regex::new(r"\b(TODO|ADR|D)-\d{6}-[0-9a-z]{5}\b").unwrap());
/// Attempts are named by their start time.
static RUN: LazyLock<Regex> = LazyLock::new(|| Regex::new(r"\b20\d{6}T\d{9}\b").unwrap());
static ID: LazyLock<Regex> = LazyLock::new(|| {
    Regex::new(
        r"\b01[0-9a-f]{6}-[0-9a-f]{4}-7[0-9a-f]{3}-[0-9a-f]{4}-[0-9a-f]{12}\b|\b01[0-9a-f]{30}\b",
    )
    .unwrap()
});

/// The head of a journal. Record hashes depend on the time. In a commit the name of the journal
/// follows.
static HEAD: LazyLock<Regex> =
    LazyLock::new(|| Regex::new(r"\b(\d+):[0-9a-f]{32}\b( [0-9a-f]{16}\b)?").unwrap());

/// Dates in a scenario's own files are kept: only dates around today come from the clock.
pub fn redact(text: &str, root: &Path) -> String {
    let today = Timestamp::now().to_zoned(TimeZone::UTC).date();
    let days = [
        today.yesterday().unwrap(),
        today,
        today.checked_add(1.day()).unwrap(),
    ]
    .map(|d| d.to_string());
    let text = text.replace(&root.display().to_string(), "[ROOT]");
    let text = HEAD.replace_all(&text, "$1:[HEAD]").into_owned();
    let text = TIME.replace_all(&text, |found: &Captures| {
        match (days.iter().any(|d| *d == found[1]), found.get(2)) {
            (true, Some(_)) => "[TIME]".to_owned(),
            (true, None) => "[DATE]".to_owned(),
            (false, _) => found[0].to_owned(),
        }
    });
    let text = DURATION.replace_all(&text, "$1[N]$2");
    let text = NAME.replace_all(&text, "$1-[ID]").into_owned();
    let text = endings(root, &text)
        .into_iter()
        .fold(text, |text, ending| text.replace(&ending, "[ID]"));
    let text = RUN.replace_all(&text, "[MOMENT]");
    LEASE
        .replace_all(&ID.replace_all(&text, "[ID]"), "[LEASE]")
        .into_owned()
}

/// Returns the suffixes of generated ids in memory files below the root that the text shows,
/// because a short id is such a suffix.
fn endings(root: &Path, text: &str) -> Vec<String> {
    let mut found = Vec::new();
    let mut folders = vec![root.to_owned()];
    while let Some(folder) = folders.pop() {
        for entry in std::fs::read_dir(folder).into_iter().flatten().flatten() {
            let (path, name) = (
                entry.path(),
                entry.file_name().to_string_lossy().into_owned(),
            );
            let is_memory = ["todos.json", "decisions.md", "state.json"].contains(&name.as_str());
            match entry.file_type().is_ok_and(|kind| kind.is_dir()) {
                true if !name.starts_with('.')
                    && path.components().count() < root.components().count() + 3 =>
                {
                    folders.push(path)
                }
                false if is_memory || NAME.is_match(&name) => {
                    let held = std::fs::read_to_string(&path).unwrap_or_default() + &name;
                    found.extend(
                        NAME.find_iter(&held)
                            .map(|made| made.as_str()[made.as_str().len() - 5..].to_owned()),
                    );
                }
                _ => {}
            }
        }
    }
    found.retain(|ending| text.contains(ending.as_str()));
    found
}

static NAMED: LazyLock<Regex> = LazyLock::new(|| {
    Regex::new(
        r"\[TIME\]|\d{4}-\d\d-\d\dT[0-9:]{8}Z|\[DATE\]|\d{4}-\d\d-\d\d|s-\[LEASE\]|s-[0-9a-f]{12}",
    )
    .unwrap()
});

/// Normalizes times and lines of rules, because a guide shows a sample and a transcript a
/// placeholder.
pub fn without_times(text: &str) -> String {
    NAMED
        .replace_all(&without_rule_lines(text), "[…]")
        .into_owned()
}

static RULE_LINE: LazyLock<Regex> = LazyLock::new(|| {
    Regex::new(r"(\bprofiles/(?:book|novel|relay|review|worldlog)/[a-z]+\.toml):\d+").unwrap()
});

/// Replaces the lines of rules in built-in profiles, so that an added rule does not change every
/// transcript that cites a later one.
pub fn without_rule_lines(text: &str) -> String {
    RULE_LINE.replace_all(text, "$1:[LINE]").into_owned()
}

static KEPT: LazyLock<Regex> =
    LazyLock::new(|| Regex::new(r"; your text is in `\.quipu/conflicts/[^`]*`").unwrap());

static STANDS: LazyLock<Regex> = LazyLock::new(|| {
    Regex::new(r#"(?m)^revision \d+ of `[^`]*` at postgres://.*\n|,\n  "shared": \{[^}]*\}"#)
        .unwrap()
});

/// Also removes the place of a conflict copy and the position of a working copy, which a local
/// project does not have.
pub fn without_places(text: &str) -> String {
    STANDS
        .replace_all(&KEPT.replace_all(text, ""), "")
        .into_owned()
}

static VERSION: LazyLock<Regex> = LazyLock::new(|| Regex::new(r"\b[0-9a-f]{16}\b").unwrap());

/// Also removes versions of files that contain the time.
pub fn without_versions(text: &str) -> String {
    VERSION.replace_all(text, "[VERSION]").into_owned()
}
