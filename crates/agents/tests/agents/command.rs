//! The `command` adapter with a scripted program.

use crate::desk::{Desk, STAGE};
use quipu_agents::{Bounds, Ending, Event, Unfit, collect};
use std::time::Duration;

#[test]
fn a_program_reads_its_view_and_writes_its_output() {
    let mut desk = Desk::new();
    let outcome = desk
        .script(&[
            "write:drafts/ch01.md=draft",
            "copy:outline.md=note.md",
            "say:all done",
        ])
        .run();
    assert!(
        outcome.ending.is_finished(),
        "{:?} {}",
        outcome.ending,
        desk.said("err")
    );
    assert_eq!(outcome.final_message.as_deref(), Some("all done"));
    let collected = collect(&desk.assignment);
    assert_eq!(
        collected.files,
        [("drafts/ch01.md".to_string(), b"draft\n".to_vec())]
    );
    assert_eq!(collected.strays, ["note.md"]);
    assert!(desk.said("brief").contains("drafts/ch01.md"));
    assert!(
        desk.events
            .lock()
            .unwrap()
            .contains(&Event::Progress("all done".to_string()))
    );
}

#[test]
fn the_environment_holds_only_what_is_named() {
    let mut desk = Desk::new();
    desk.host(&format!(
        "via = \"command\"\nprogram = {STAGE:?}\nargs = [\"agent\", \"environment\"]\npass = [\"CARGO_PKG_NAME\", \"NO_SUCH\"]\nset = {{ TOLD = \"{{{{role}}}}\" }}"
    ));
    let outcome = desk.run();
    let said = outcome.final_message.unwrap();
    let names: Vec<&str> = said
        .lines()
        .filter_map(|line| line.split('=').next())
        .collect();
    for wanted in [
        "QUIPU_ROLE",
        "QUIPU_UNIT",
        "QUIPU_AGENT",
        "QUIPU_ATTEMPT",
        "HOME",
        "TMPDIR",
        "PATH",
        "CARGO_PKG_NAME",
        "TOLD",
    ] {
        assert!(names.contains(&wanted), "{wanted} in {names:?}");
    }
    for line in [
        "QUIPU_ROLE=writer",
        "QUIPU_UNIT=ch01",
        "QUIPU_AGENT=one",
        "QUIPU_ATTEMPT=r1",
        "TOLD=writer",
    ] {
        assert!(said.contains(line), "{line} in {said}");
    }
    for unwanted in ["CARGO_MANIFEST_DIR", "CARGO", "NO_SUCH", "OLDPWD"] {
        assert!(!names.contains(&unwanted), "{unwanted} in {names:?}");
    }
    let home = std::env::home_dir().unwrap();
    assert!(!said.contains(&format!("HOME={}\n", home.display())));
}

#[test]
fn a_fault_goes_back_word_for_word_and_is_mended() {
    let mut desk = Desk::new();
    desk.assignment.outputs = vec!["ch01.md".to_string()];
    desk.script(&["remedy:`<!-- DONE -->`@ch01.md"]);
    let (first, again) = desk.turns(|turns| {
        let first = turns.first();
        assert_eq!(desk.output("ch01.md").unwrap(), "text\n");
        (
            first,
            turns.again("ch01.md:1: the last line is not `<!-- DONE -->`"),
        )
    });
    assert!(first.ending.is_finished() && again.ending.is_finished());
    assert_eq!(desk.output("ch01.md").unwrap(), "text\n<!-- DONE -->\n");
    let brief = desk.said("brief");
    assert_eq!(
        brief.matches("Write the draft of ch01.").count(),
        2,
        "a new call has the brief and the fault"
    );
    assert_eq!(
        brief
            .matches("ch01.md:1: the last line is not `<!-- DONE -->`")
            .count(),
        1
    );
}

#[test]
fn a_host_with_a_session_gets_the_fault_alone() {
    let mut desk = Desk::new();
    desk.host(&format!(
        "via = \"command\"\nprogram = {STAGE:?}\nargs = [\"agent\", \"say:first\"]\nagain = [\"agent\", \"stdin\"]\nstdin = \"{{{{whole_brief}}}}\""
    ));
    let again = desk.turns(|turns| {
        turns.first();
        turns.again("no marker")
    });
    let heard = again.final_message.unwrap();
    assert!(
        heard.contains("no marker") && !heard.contains("Write the draft"),
        "{heard}"
    );
}

#[test]
fn an_adapter_speaks_the_language_of_the_brief() {
    let mut desk = Desk::new();
    desk.assignment.language = quipu_agents::Language::Chinese;
    desk.assignment.brief = "写第一章的草稿。".to_string();
    desk.script(&[]);
    desk.turns(|turns| {
        turns.first();
        turns.again("第一行没有标记")
    });
    let brief = desk.said("brief");
    for words in [
        "写第一章的草稿。",
        "要读的文件都在这个文件夹下",
        "第一行没有标记",
        "请只修正这一点",
    ] {
        assert!(brief.contains(words), "{words} in {brief}");
    }
}

#[test]
fn exit_0_with_no_output_is_told_as_it_is() {
    let mut desk = Desk::new();
    let outcome = desk.script(&[]).run();
    assert_eq!(outcome.ending, Ending::Finished { exit: Some(0) });
    assert_eq!(outcome.final_message, None);
    assert_eq!(collect(&desk.assignment).missing, ["drafts/ch01.md"]);
}

#[test]
fn an_exit_code_is_told_and_a_crash_too() {
    let mut desk = Desk::new();
    let outcome = desk.script(&["exit:7"]).run();
    assert_eq!(outcome.ending, Ending::Finished { exit: Some(7) });
    assert!(!outcome.ending.is_finished());
    let ending = desk
        .script(&["complain:401 Unauthorized", "exit:1"])
        .run()
        .ending;
    assert_eq!(
        ending,
        Ending::Broken {
            why: "exit code 1: 401 Unauthorized".to_string()
        }
    );
    desk.host("via = \"command\"\nprogram = \"/bin/sh\"\nargs = [\"-c\", \"kill -SEGV $$\"]");
    assert!(matches!(desk.run().ending, Ending::Broken { why } if why.contains("SIGSEGV")));
}

#[test]
fn a_program_that_hangs_is_ended_at_its_deadline() {
    let mut desk = Desk::new();
    desk.assignment.deadline = Duration::from_millis(800);
    let outcome = desk.script(&["say:thinking", "hang"]).run();
    assert_eq!(outcome.ending, Ending::Deadline);
    let again = desk.turns(|turns| {
        turns.first();
        turns.again("late")
    });
    assert_eq!(again.ending, Ending::Deadline);
}

#[test]
fn the_caller_stops_a_program() {
    let mut desk = Desk::new();
    desk.script(&["say:thinking", "hang"]);
    let stop = desk.stop.clone();
    std::thread::scope(|scope| {
        scope.spawn(|| {
            while !desk
                .events
                .lock()
                .unwrap()
                .contains(&Event::Progress("thinking".to_string()))
            {
                std::thread::sleep(Duration::from_millis(5));
            }
            stop.stop();
        });
        assert_eq!(desk.run().ending, Ending::Stopped);
    });
}

#[test]
fn garbage_is_heard_and_not_kept() {
    let mut desk = Desk::new();
    desk.assignment.bounds = Bounds {
        transcript: 100_000,
        message: 100_000,
        ..Bounds::default()
    };
    let outcome = desk
        .script(&["garbage:200", "write:drafts/ch01.md=x"])
        .run();
    assert_eq!(
        outcome.ending,
        Ending::TooLong {
            what: "the final message".to_string()
        }
    );
    let kept = std::fs::metadata(&outcome.transcript).unwrap().len();
    assert!(kept < 110_000, "{kept} bytes of 13 million");
    assert_eq!(
        desk.output("drafts/ch01.md").unwrap(),
        "x\n",
        "it was heard to its end"
    );
}

#[test]
fn an_output_that_is_too_long_is_stopped_by_the_kernel() {
    let mut desk = Desk::new();
    desk.assignment.bounds.file = 1 << 20;
    let outcome = desk.script(&["fill:long=3000000"]).run();
    assert!(!outcome.ending.is_finished(), "{:?}", outcome.ending);
    assert_eq!(desk.output("long").unwrap().len(), 1 << 20);
    desk.assignment.outputs = vec!["long".to_string()];
    desk.assignment.bounds.file = 1 << 19;
    let collected = collect(&desk.assignment);
    assert!(
        collected.unfit[0].why.contains("more than 524288 bytes"),
        "{collected:?}"
    );
}

#[test]
fn an_out_folder_that_grows_too_large_ends_the_run() {
    let mut desk = Desk::new();
    desk.assignment.bounds.out = 1 << 20;
    let outcome = desk
        .script(&["fill:a=900000", "fill:b=900000", "hang"])
        .run();
    assert!(
        matches!(outcome.ending, Ending::TooLong { .. }),
        "{:?}",
        outcome.ending
    );
}

#[test]
fn a_link_in_place_of_an_output_is_not_followed() {
    let mut desk = Desk::new();
    desk.assignment.outputs = vec![
        "link".to_string(),
        "dir/ch01.md".to_string(),
        "fifo".to_string(),
    ];
    let denied = desk.path("denied.md");
    desk.script(&[&format!("through-symlink:{denied}")]).run();
    std::os::unix::fs::symlink(&desk.project, desk.assignment.out.join("dir")).unwrap();
    rustix::fs::mknodat(
        rustix::fs::CWD,
        desk.assignment.out.join("fifo"),
        rustix::fs::FileType::Fifo,
        rustix::fs::Mode::from_raw_mode(0o600),
        0,
    )
    .unwrap();
    let collected = collect(&desk.assignment);
    assert_eq!(collected.files, []);
    let link = |path: &str| Unfit {
        path: path.to_string(),
        why: "is reached through a link".to_string(),
    };
    assert_eq!(collected.unfit, [link("link"), link("dir/ch01.md")]);
    assert_eq!(collected.missing, ["fifo"]);
}

#[test]
fn a_program_that_is_not_there_could_not_start() {
    let mut desk = Desk::new();
    desk.host("via = \"command\"\nprogram = \"no-such-agent\"");
    assert!(
        matches!(desk.run().ending, Ending::NotStarted { why } if why.contains("no-such-agent"))
    );
    let text = desk.project.join("not-a-program");
    std::fs::write(&text, "words").unwrap();
    desk.host(&format!(
        "via = \"command\"\nprogram = {:?}",
        text.display()
    ));
    assert!(
        matches!(desk.run().ending, Ending::NotStarted { why } if why.contains("not-a-program"))
    );
}

#[test]
fn what_a_host_hides_behind_exit_0_is_found_in_its_words() {
    let mut desk = Desk::new();
    desk.host(&format!(
        "via = \"command\"\nprogram = {STAGE:?}\nargs = [\"agent\", \"complain:litellm.AuthenticationError: 401\"]\nlies = [\"AuthenticationError\"]"
    ));
    let ending = desk.run().ending;
    assert!(
        matches!(&ending, Ending::Refused { why, .. } if why.contains("401")),
        "{ending:?}"
    );
}

#[test]
fn a_brief_too_long_for_an_argument_goes_into_a_file() {
    let mut desk = Desk::new();
    desk.assignment.brief = "word ".repeat(60_000);
    desk.host(
        "via = \"command\"\nprogram = \"/bin/sh\"\nargs = [\"-c\", 'echo \"$1\"; wc -c < \"$HOME/brief.md\"', \"sh\", \"{{brief}}\"]",
    );
    let message = desk.run().final_message.unwrap();
    assert!(message.contains("Your task is in the file"), "{message}");
    let counted: usize = message.lines().last().unwrap().trim().parse().unwrap();
    assert!(counted > 299_000, "{counted}");
}

#[test]
fn an_mcp_server_is_handed_over_as_the_host_wants_it() {
    let mut desk = Desk::new();
    desk.assignment.mcp = Some(vec![
        "/bin/true".to_string(),
        "--as".to_string(),
        "writer \"x\"".to_string(),
    ]);
    desk.hosts
        .add("[test]\nlike = \"claude\"\nprogram = \"/bin/sh\"\nargs = [\"-c\", 'echo \"$@\"; cat \"$HOME/mcp.json\"', \"sh\"]\nanswer = { lines = false }")
        .unwrap();
    let outcome = desk.run();
    let message = outcome.final_message.unwrap_or_else(|| desk.said("out"));
    let message = if message.is_empty() {
        desk.said("out")
    } else {
        message
    };
    assert!(message.contains("--strict-mcp-config"), "{message}");
    let file = message.lines().find(|line| line.starts_with('{')).unwrap();
    let file: serde_json::Value = serde_json::from_str(file).unwrap();
    assert_eq!(
        file["mcpServers"]["quipu"]["args"],
        serde_json::json!(["--as", "writer \"x\""])
    );
}
