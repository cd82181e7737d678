//! Tests that every command that Quipu prints to agents works in the project that prints it: in the
//! text of `start`, in CLAUDE.md and the skill, and as the alternative to a command of another
//! profile.

use std::path::Path;
use std::process::{Command, Stdio};

use quipu_protocol::{Library, Project};

/// Placeholders for the caller's values, and the values of the test.
const STANDINS: [(&str, &str); 13] = [
    // There is no decision to replace.
    (" --supersedes ID", ""),
    ("……", "some words"),
    ("…", "some words"),
    ("PATH#SECTION", "notes.md#part"),
    ("PATH#小节", "notes.md#part"),
    ("PATH", "notes.md"),
    ("FILE", "notes.md"),
    ("DRAFT", "notes.md"),
    ("COMMAND", "start"),
    ("NAME", "rehearse"),
    ("Section/key", "Environment/key"),
    ("小节/键", "环境/键"),
    (" N ", " 1 "),
];

fn run(folder: &Path, actor: &[(&str, String)], line: &str) -> (i32, String) {
    let path = Path::new(env!("CARGO_BIN_EXE_quipu")).parent().unwrap();
    let mut shell = Command::new("sh");
    shell
        .args(["-c", line])
        .current_dir(folder)
        .stdin(Stdio::null())
        .env_remove("HOME");
    shell.env(
        "PATH",
        format!(
            "{}:{}",
            path.display(),
            std::env::var("PATH").unwrap_or_default()
        ),
    );
    shell.env("XDG_STATE_HOME", folder.join("../state"));
    for name in [
        "QUIPU_ROLE",
        "QUIPU_AGENT",
        "QUIPU_UNIT",
        "QUIPU_SESSION",
        "QUIPU_LEASE",
        "QUIPU_STORE",
    ] {
        shell.env_remove(name);
    }
    shell.env("QUIPU_ROLE", "person");
    shell.envs(actor.iter().map(|(name, value)| (name, value)));
    let output = shell.output().unwrap();
    let told = [output.stdout, output.stderr]
        .map(|bytes| String::from_utf8_lossy(&bytes).into_owned())
        .concat();
    (output.status.code().unwrap_or(-1), told)
}

/// Extracts the commands of a text: from `quipu WORD` to the end of the line, the code or the
/// sentence.
fn commands(text: &str) -> Vec<String> {
    let mut found = Vec::new();
    for (at, _) in text.match_indices("quipu ") {
        let rest = &text[at..];
        if text[..at].ends_with(['/', '_', ':', '-'])
            || !rest["quipu ".len()..].starts_with(|c: char| c.is_ascii_lowercase() || c == 'C')
        {
            continue;
        }
        let mut quoted = false;
        let end = rest.char_indices().find(|(here, c)| {
            quoted ^= *c == '"';
            let behind = &rest[here + c.len_utf8()..];
            let ends = matches!(
                c,
                '`' | '\n' | ';' | '；' | '，' | '。' | '、' | '(' | '（' | '<'
            );
            !quoted
                && (ends
                    || *c == ' ' && behind.starts_with(' ')
                    || matches!(c, '.' | ',') && behind.starts_with([' ', '\n']))
        });
        let command = rest[..end.map_or(rest.len(), |(here, _)| here)]
            .trim()
            .trim_end_matches([')', ':', ',', '.']);
        found.push(command.to_owned());
    }
    found.sort();
    found.dedup();
    found
}

#[test]
fn every_printed_command_is_one_of_the_project() {
    for profile in Library::built_in() {
        for language in ["en", "zh"] {
            let temp = tempfile::tempdir().unwrap();
            let project = temp.path().join("project");
            std::fs::create_dir(&project).unwrap();
            let person = |line: &str| {
                let (code, told) = run(&project, &[], line);
                assert_eq!(code, 0, "{profile} {language}: {line}\n{told}");
                told
            };
            person(&format!(
                "quipu init --profile {profile} --lang {language} --no-integrate && quipu integrate claude"
            ));
            // Journal lines report past actions; they are not suggestions.
            let start = person("quipu start --peek")
                .lines()
                .filter(|line| !line.starts_with("- @"))
                .collect::<Vec<_>>()
                .join("\n");
            let contract = Project::load_contract(&project).unwrap();
            let mut actor = vec![("QUIPU_AGENT", "claude".to_owned())];
            actor.extend(
                contract
                    .session_role()
                    .map(|role| ("QUIPU_ROLE", role.to_owned())),
            );
            person(
                "printf '# Notes\\n\\n## part\\n\\nA text.\\n' > notes.md; quipu write notes.md --file notes.md; quipu append notes.md --text more",
            );
            // Does the steps that an agent would have done before it uses these commands.
            let has = |form| contract.of_form(form).next().is_some();
            let mut id = String::new();
            if has(quipu_contract::Form::Todos) {
                let (_, told) = run(&project, &actor, "quipu todo add 'A thing' --json");
                id = told
                    .split('"')
                    .skip_while(|part| *part != "id")
                    .nth(2)
                    .unwrap_or_default()
                    .to_owned();
            }
            let mut texts = vec![start];
            for file in ["CLAUDE.md", ".claude/skills/quipu/SKILL.md"] {
                texts.push(std::fs::read_to_string(project.join(file)).unwrap());
            }
            let instead = &contract.profiles[0].instead;
            let mut all = commands(&texts.join("\n"));
            assert!(all.len() > 4, "{profile} {language}: {all:?}");
            all.extend(instead.values().cloned());
            for command in all {
                let line = STANDINS
                    .iter()
                    .fold(format!("{command} "), |line, (sign, said)| {
                        line.replace(sign, said)
                    });
                let line = if id.is_empty() {
                    line
                } else {
                    line.replace(" ID ", &format!(" {id} "))
                };
                if has(quipu_contract::Form::Task) {
                    run(
                        &project,
                        &actor,
                        "quipu task start 'A thing'; quipu task todo add 'A step'",
                    );
                }
                let (code, told) = run(&project, &actor, &line);
                assert!(
                    ![2, 5].contains(&code),
                    "{profile} {language}: `{command}` exits {code}\n{line}\n{told}"
                );
            }
        }
    }
}

#[test]
fn commands_are_found_in_prose_and_code() {
    let text = "1. Look: quipu recall \"…\"; quipu threads\nRun `quipu status`. Ask quipu status. (or: quipu todo done ID)\n`quipu finish <<'EOF'` with";
    assert_eq!(
        commands(text),
        [
            "quipu finish",
            "quipu recall \"…\"",
            "quipu status",
            "quipu threads",
            "quipu todo done ID"
        ]
    );
}
