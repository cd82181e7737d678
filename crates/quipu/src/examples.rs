//! Examples for each command, shown by its help and by the message for a wrong call.
//!
//! A test parses all of them.

/// The commands of the table with their examples, the simplest first.
const EXAMPLES: &[(&str, &[&str])] = &[
    (
        "init",
        &[
            "quipu init --profile relay",
            "quipu init notes --profile novel --lang zh",
        ],
    ),
    ("start", &["quipu start --as main", "quipu start --peek"]),
    (
        "finish",
        &[
            "quipu finish --file finish.md",
            r#"quipu finish --did "wrote the parser" --next "test it on real files" --none decisions"#,
            "quipu finish --dry-run",
        ],
    ),
    (
        "todo add",
        &[
            r#"quipu todo add "Fix the login form""#,
            r#"quipu todo add "Fix the login form" --priority high --description "fails on Safari 17""#,
        ],
    ),
    (
        "todo edit",
        &[
            r#"quipu todo edit TODO-001 --note "the form works, the test is missing""#,
            r#"quipu todo edit TODO-001 --title "Fix the login""#,
        ],
    ),
    ("todo start", &["quipu todo start TODO-001"]),
    (
        "todo block",
        &[r#"quipu todo block TODO-001 --reason "waits for the test server""#],
    ),
    ("todo unblock", &["quipu todo unblock TODO-001"]),
    (
        "todo done",
        &[r#"quipu todo done TODO-001 --note "cargo test passes""#],
    ),
    (
        "todo cancel",
        &[r#"quipu todo cancel TODO-001 --reason "no longer wanted""#],
    ),
    (
        "todo list",
        &["quipu todo list", "quipu todo list --all --tag release"],
    ),
    ("todo show", &["quipu todo show TODO-001"]),
    ("todo review", &["quipu todo review"]),
    (
        "decide",
        &[
            r#"quipu decide "SQLite, not PostgreSQL" --context "one machine, no server" --decision "SQLite in WAL mode""#,
        ],
    ),
    ("decisions", &["quipu decisions --current"]),
    (
        "note",
        &[
            r#"quipu note "ask Mira whether digits count as words""#,
            "quipu note --remove 2",
        ],
    ),
    (
        "fact",
        &[
            r#"quipu fact "Mira owns the stop list format""#,
            "quipu fact --remove Mira",
        ],
    ),
    ("state get", &["quipu state get /progress/next_steps"]),
    ("state set", &["quipu state set /phase testing"]),
    (
        "state merge",
        &[r#"quipu state merge --text '{"phase": "testing"}'"#],
    ),
    (
        "delegate",
        &[
            r#"quipu delegate --task "List every call of parse()" --expect "a table in calls.md" --input src/parse.rs"#,
        ],
    ),
    (
        "report",
        &[r#"quipu report --delegation DEL-001 --result done --output "calls.md has 14 calls""#],
    ),
    ("collect", &["quipu collect"]),
    (
        "capture",
        &[
            "quipu capture show",
            "quipu capture off",
            "quipu capture purge",
        ],
    ),
    ("status", &["quipu status", "quipu status --files"]),
    (
        "view",
        &[
            "quipu view writer --unit ch01",
            "quipu view writer --unit ch01 --explain",
        ],
    ),
    ("brief", &["quipu brief writer --unit ch01"]),
    (
        "run",
        &[
            "quipu run --by rehearse",
            "quipu run --by claude --unit ch01",
            "quipu run --dry-run",
        ],
    ),
    ("worker", &["quipu worker --by claude --jobs 2"]),
    ("fleet status", &["quipu fleet status"]),
    (
        "approve",
        &[
            "quipu approve approve-outline",
            "quipu approve approve-draft --unit ch01",
        ],
    ),
    (
        "reject",
        &[r#"quipu reject approve-outline --why "chapter 3 repeats chapter 1""#],
    ),
    (
        "replay",
        &[
            "quipu replay write/ch01",
            "quipu replay drafts/ch01-draft.md --brief",
        ],
    ),
    ("review status", &["quipu review status"]),
    (
        "review revise",
        &[
            "quipu review revise revised.md",
            "quipu review revise revised.md --reply reply.md",
        ],
    ),
    ("review letter", &["quipu review letter"]),
    (
        "read",
        &[
            "quipu read decisions.md",
            "quipu read 'outline.md#ch01' --at ~1",
        ],
    ),
    (
        "recall",
        &[
            r#"quipu recall "why did we choose SQLite?""#,
            r#"quipu recall "login" -k 3 --in 'docs/**'"#,
            r#"quipu recall "what did we decide last week?" --as-of 2026-01-31"#,
        ],
    ),
    (
        "task start",
        &[r#"quipu task start "NameError in subtract" --type debug"#],
    ),
    (
        "task todo",
        &[
            r#"quipu task todo add "run all tests""#,
            "quipu task todo done 1",
        ],
    ),
    (
        "task note",
        &[r#"quipu task note "the name was changed in March""#],
    ),
    ("task status", &["quipu task status"]),
    ("world get", &["quipu world get python"]),
    ("world set", &["quipu world set python 3.12"]),
    (
        "world note",
        &[r#"quipu world note Environment "the build machine has no network""#],
    ),
    (
        "knowledge show",
        &[r#"quipu knowledge show "Undefined variable""#],
    ),
    (
        "knowledge pattern",
        &[r#"quipu knowledge pattern "Undefined variable" --situation "NameError after a rename""#],
    ),
    (
        "knowledge lesson",
        &[r#"quipu knowledge lesson "look at the last commit first""#],
    ),
    ("sessions list", &["quipu sessions list -k 5"]),
    (
        "sessions search",
        &[r#"quipu sessions search "slow pages""#],
    ),
    ("metrics", &["quipu metrics --of all"]),
    (
        "ask",
        &[
            r#"quipu ask notes.md "Who owns the parser?""#,
            r#"quipu ask notes.md "Who owns the parser?" --by claude"#,
        ],
    ),
    (
        "check",
        &[
            "quipu check outline.md#ch01",
            r#"quipu check --claim "Mara has never seen the sea""#,
        ],
    ),
    (
        "waive",
        &[
            "quipu waive --list",
            r#"quipu waive 3f2a9c --why "she lies here""#,
        ],
    ),
    (
        "learn",
        &[r#"quipu learn "How old is Mara?" --to 'characters.md#mara'"#],
    ),
    (
        "links",
        &["quipu links --broken", "quipu links characters.md --in"],
    ),
    ("threads", &["quipu threads --at ch05"]),
    (
        "story sheet",
        &["quipu story sheet Mara", "quipu story sheet 奥托 --at ch05"],
    ),
    ("story progression", &["quipu story progression Mara where"]),
    ("story timeline", &["quipu story timeline --of Mara"]),
    (
        "story knows",
        &["quipu story knows", "quipu story knows Mara --at ch05"],
    ),
    ("story met", &["quipu story met Mara Otto"]),
    (
        "story relations",
        &[
            "quipu story relations --at ch05",
            "quipu story relations --format mermaid",
        ],
    ),
    ("story report", &["quipu story report"]),
    ("tension", &["quipu tension --chapter ch05"]),
    ("lint", &["quipu lint"]),
    (
        "append",
        &[r#"quipu append notes.md --text "- the cache is off in tests""#],
    ),
    (
        "write",
        &[
            r#"quipu write notes.md --text "Notes of the week""#,
            "quipu write notes.md --file draft.md",
        ],
    ),
    ("commit", &["quipu commit --file change.json --dry-run"]),
    (
        "amend",
        &[
            r#"quipu amend outline-final.md --file outline.md --why "the reviewer found a gap in chapter 3""#,
        ],
    ),
    (
        "restore",
        &[
            "quipu restore decisions.md",
            "quipu restore decisions.md --at ~2",
        ],
    ),
    (
        "remove",
        &[r#"quipu remove notes.md --why "merged into decisions.md""#],
    ),
    ("publish", &["quipu publish"]),
    ("move", &["quipu move notes.md docs/notes.md"]),
    ("split", &["quipu split characters.md --now"]),
    ("log", &["quipu log", "quipu log decisions.md"]),
    ("show", &["quipu show decisions.md --at ~1"]),
    (
        "diff",
        &[
            "quipu diff decisions.md",
            "quipu diff decisions.md --from ~2 --to ~1",
        ],
    ),
    ("blame", &["quipu blame decisions.md"]),
    ("verify", &["quipu verify"]),
    ("head", &["quipu head --sign"]),
    ("key new", &["quipu key new"]),
    ("key show", &["quipu key show"]),
    ("doctor", &["quipu doctor"]),
    (
        "capture",
        &["quipu capture", "quipu capture off", "quipu capture purge"],
    ),
    (
        "history prune",
        &[r#"quipu history prune --keep "180 days" --dry-run"#],
    ),
    (
        "contract show",
        &["quipu contract show", "quipu contract show --role main"],
    ),
    ("contract schema", &["quipu contract schema --profile"]),
    ("profile list", &["quipu profile list"]),
    ("profile show", &["quipu profile show relay"]),
    ("profile eject", &["quipu profile eject relay"]),
    (
        "lease take",
        &["quipu lease take drafts/ch01-draft.md --for 600"],
    ),
    ("lease renew", &["quipu lease renew L1:7 --for 600"]),
    ("lease release", &["quipu lease release L1"]),
    ("lease list", &["quipu lease list"]),
    ("trust", &["quipu trust --show", "quipu trust --yes"]),
    ("git setup", &["quipu git setup"]),
    (
        "git merge",
        &["quipu git merge BASE OURS THEIRS decisions.md"],
    ),
    ("sync", &["quipu sync", "quipu sync --follow"]),
    (
        "checkout",
        &["quipu checkout postgres://quipu@db.example/memory copy --project notes"],
    ),
    (
        "store push",
        &["quipu store push postgres://quipu@db.example/memory"],
    ),
    ("store pull", &["quipu store pull"]),
    ("store status", &["quipu store status"]),
    ("store migrate", &["quipu store migrate"]),
    (
        "store roles",
        &["quipu store roles --grant postgres://admin@db.example/memory"],
    ),
    (
        "import",
        &["quipu import markdown ../old-notes --into notes --dry-run"],
    ),
    (
        "integrate",
        &["quipu integrate", "quipu integrate claude --dry-run"],
    ),
    (
        "eject",
        &[
            "quipu eject --dry-run",
            "quipu eject --keep-journal ../journal.tar",
        ],
    ),
    ("self check", &["quipu self check"]),
    ("serve", &["quipu serve --open"]),
    ("mcp", &["quipu mcp --as main --agent claude"]),
    ("hook", &["quipu hook session-start --agent claude"]),
    ("memory-tool", &["quipu memory-tool --under memories"]),
    ("completions", &["quipu completions bash"]),
    ("man", &["quipu man man1"]),
    ("demo", &["quipu demo", "quipu demo book"]),
];

pub fn examples(name: &str) -> &'static [&'static str] {
    EXAMPLES
        .iter()
        .find(|(command, _)| *command == name)
        .map_or(&[], |(_, examples)| *examples)
}

pub fn first_example(name: &str) -> Option<&'static str> {
    examples(name).first().copied()
}

/// Returns the examples section of a command's help.
pub fn render_examples(name: &str) -> String {
    let lines: Vec<String> = examples(name)
        .iter()
        .map(|example| format!("  {example}"))
        .collect();
    if lines.is_empty() {
        String::new()
    } else {
        format!("Examples:\n{}", lines.join("\n"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::agents::split_words;
    use crate::cli::command;
    use crate::table::TABLE;

    #[test]
    fn every_command_has_examples_that_parse() {
        for operation in TABLE {
            assert!(
                !examples(operation.name).is_empty(),
                "no example for `{}`",
                operation.name
            );
            for example in examples(operation.name) {
                assert!(
                    example.starts_with(&format!("quipu {}", operation.name)),
                    "{example}"
                );
                let parsed = command().try_get_matches_from(split_words(example));
                assert!(parsed.is_ok(), "{example}: {}", parsed.unwrap_err());
            }
        }
    }

    #[test]
    fn no_example_is_for_a_command_that_does_not_exist() {
        for (name, _) in EXAMPLES {
            assert!(
                TABLE.iter().any(|operation| operation.name == *name),
                "{name}"
            );
        }
    }
}
