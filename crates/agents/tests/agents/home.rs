//! The private home of a run: what a host's table may put there, and what a table cannot make Quipu
//! touch elsewhere.

use crate::desk::{Desk, STAGE, toml_string};
use quipu_agents::Ending;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;

/// A file outside every run, with a mode of its own.
fn precious(desk: &Desk, name: &str) -> std::path::PathBuf {
    let path = desk.project.parent().unwrap().join(name);
    std::fs::write(&path, "a login\n").unwrap();
    std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o640)).unwrap();
    path
}

fn assert_untouched(path: &Path) {
    assert_eq!(
        std::fs::read_to_string(path).unwrap(),
        "a login\n",
        "{}",
        path.display()
    );
    assert_eq!(
        std::fs::metadata(path).unwrap().permissions().mode() & 0o7777,
        0o640,
        "{}",
        path.display()
    );
}

/// The message of the error that a table causes. The table is also run, as if nobody had looked at
/// the error.
fn refusal(desk: &mut Desk, fields: &str) -> String {
    let table = format!(
        "[test]\nvia = \"command\"\nprogram = {STAGE:?}\nargs = [\"agent\", \"say:here\"]\n{fields}"
    );
    let added = desk.hosts.add(&table);
    if added.is_ok() {
        desk.run();
    }
    added.err().map(|why| why.to_string()).unwrap_or_default()
}

#[test]
fn a_login_file_named_by_its_whole_path_keeps_its_bytes_and_mode() {
    let mut desk = Desk::new();
    let login = precious(&desk, "login.json");
    let said = refusal(
        &mut desk,
        &format!(
            "credentials = [{}]",
            toml_string(&login.display().to_string())
        ),
    );
    assert_untouched(&login);
    assert!(
        said.contains("`credentials`") && said.contains("login.json") && said.contains("relative"),
        "{said}"
    );
}

#[test]
fn files_are_written_below_the_private_home_only() {
    let mut desk = Desk::new();
    let shell = precious(&desk, ".bashrc");
    let absolute = shell.display().to_string();
    let climbing = format!("../../../../../../../../..{absolute}");
    for path in [&absolute, &climbing, "a/../../x", "~/.bashrc", ".", ""] {
        let path = toml_string(path);
        for fields in [
            format!("files = {{ {path} = \"owned\" }}"),
            format!("mcp = {{ files = {{ {path} = \"owned\" }} }}"),
        ] {
            let said = refusal(&mut desk, &fields);
            assert!(
                said.contains("files`") && said.contains("relative"),
                "{fields}: {said}"
            );
        }
        let said = refusal(&mut desk, &format!("credentials = [{path}]"));
        assert!(said.contains("`credentials`"), "{path}: {said}");
    }
    assert_untouched(&shell);
}

#[test]
fn a_link_that_the_first_turn_left_in_the_home_is_not_written_through() {
    for (path, link) in [
        ("settings.json", "ln -sf \"$1\" \"$HOME/settings.json\""),
        ("dir/login", "ln -sfn \"${1%/*}\" \"$HOME/dir\""),
    ] {
        let mut desk = Desk::new();
        let login = precious(&desk, "login");
        let script = format!(
            "test -L \"$HOME/{}\" || {{ rm -rf \"$HOME/{path}\" \"$HOME/dir\"; {link}; }}",
            path.split('/').next().unwrap()
        );
        let args = ["-c", &script, "sh", &login.display().to_string()]
            .map(toml_string)
            .join(", ");
        desk.host(&format!("via = \"command\"\nprogram = \"/bin/sh\"\nargs = [{args}]\nfiles = {{ \"{path}\" = '{{\"owned\":1}}' }}"));
        let (first, again) = desk.turns(|turns| (turns.first(), turns.again("once more")));
        assert!(
            first.ending.is_finished(),
            "{:?} {}",
            first.ending,
            desk.said("err")
        );
        assert_untouched(&login);
        assert!(
            matches!(&again.ending, Ending::NotStarted { why } if why.contains(path) && why.contains("link")),
            "{:?}",
            again.ending
        );
    }
}

#[test]
fn a_long_brief_is_not_written_through_a_link_or_a_pipe() {
    for make in [
        "ln -sf \"$1\" \"$HOME/brief.md\"",
        "rm \"$HOME/brief.md\"; mkfifo \"$HOME/brief.md\"",
    ] {
        let mut desk = Desk::new();
        let login = precious(&desk, "login");
        desk.assignment.brief = "word ".repeat(60_000);
        let args = ["-c", make, "sh", &login.display().to_string(), "{{brief}}"]
            .map(toml_string)
            .join(", ");
        desk.host(&format!(
            "via = \"command\"\nprogram = \"/bin/sh\"\nargs = [{args}]"
        ));
        desk.turns(|turns| {
            turns.first();
            turns.again("once more")
        });
        assert_untouched(&login);
    }
}

#[test]
fn the_private_home_is_for_its_user_alone_and_gone_after_the_run() {
    let mut desk = Desk::new();
    let script = "stat -c '%a %n' \"$HOME\" \"$TMPDIR\" \"$HOME/..\" \"$HOME/a/b.json\" \"$HOME/a\"; mkdir -p \"$HOME/a/shut/in\"; chmod 0 \"$HOME/a/shut\"";
    let args = ["-c", script].map(toml_string).join(", ");
    desk.host(&format!("via = \"command\"\nprogram = \"/bin/sh\"\nargs = [{args}]\nfiles = {{ \"a/b.json\" = \"{{}}\" }}"));
    desk.run();
    let said = desk.said("out");
    let modes: Vec<&str> = said
        .lines()
        .map(|line| line.split(' ').next().unwrap())
        .collect();
    assert_eq!(modes, ["700", "700", "700", "600", "700"], "{said}");
    let home = said.lines().next().unwrap().split_once(' ').unwrap().1;
    assert!(
        !Path::new(home).parent().unwrap().exists(),
        "{home} is still there"
    );
}

/// Variables of a table are for the agent. Quipu's own processes, which stand outside the sandbox,
/// must not obey them: these two make the dynamic loader write a file wherever it may.
#[test]
fn variables_of_a_table_do_not_reach_the_sandbox_helper() {
    let mut desk = Desk::new();
    let trace = desk.project.join("trace");
    let trace = toml_string(&trace.display().to_string());
    desk.host(&format!(
        "via = \"command\"\nprogram = {STAGE:?}\nargs = [\"agent\", \"environment\"]\nset = {{ LD_DEBUG = \"files\", LD_DEBUG_OUTPUT = {trace}, QUIPU_SANDBOX_UNOBSERVED = \"1\" }}"
    ));
    let outcome = desk.run();
    let said = desk.said("out");
    assert!(
        said.contains("LD_DEBUG=files\n") && said.contains("QUIPU_SANDBOX_UNOBSERVED=1\n"),
        "{said}"
    );
    let written: Vec<_> = std::fs::read_dir(&desk.project)
        .unwrap()
        .flatten()
        .map(|entry| entry.file_name())
        .collect();
    assert!(
        !written
            .iter()
            .any(|name| name.to_string_lossy().starts_with("trace")),
        "{written:?}"
    );
    assert!(
        matches!(
            outcome.confinement,
            quipu_agents::Confinement::Kernel { observed: true, .. }
        ),
        "{:?}",
        outcome.confinement
    );
}

#[test]
fn a_private_home_that_grows_too_large_ends_the_run() {
    let grow = "for n in 1 2 3; do head -c 900000 /dev/zero > \"$1/$n\"; done; sleep 300";
    for folder in ["{{home}}", "{{tmp}}"] {
        let mut desk = Desk::new();
        let args = ["-c", grow, "sh", folder].map(toml_string).join(", ");
        desk.host(&format!(
            "via = \"command\"\nprogram = \"/bin/sh\"\nargs = [{args}]\nhome_mib = 2"
        ));
        let ending = desk.run().ending;
        assert!(
            matches!(&ending, Ending::TooLong { what } if what == "more than 2097152 bytes in the private home"),
            "{ending:?}"
        );
    }
}
