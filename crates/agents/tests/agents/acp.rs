//! The `acp` adapter with a scripted host.

use crate::desk::{Desk, STAGE};
use quipu_agents::{Confinement, Ending, Event, Usage, collect};
use std::time::Duration;

fn desk_with(script: &[&str]) -> Desk {
    let mut desk = Desk::new();
    let script: Vec<String> = script.iter().map(|word| format!("{word:?}")).collect();
    desk.host(&format!(
        "via = \"acp\"\nprogram = {STAGE:?}\nargs = [\"acp\", {}]",
        script.join(", ")
    ));
    desk
}

#[test]
fn a_host_works_through_its_client_in_one_session() {
    let mut desk = desk_with(&["work"]);
    desk.assignment.mcp = Some(vec!["/bin/true".to_string(), "mcp".to_string()]);
    let (first, again) = desk.turns(|turns| {
        let first = turns.first();
        assert_eq!(
            desk.output("drafts/ch01.md").as_deref(),
            Some("# Outline\n"),
            "{:?}",
            first.ending
        );
        (first, turns.again("the marker is missing"))
    });
    assert_eq!(first.ending, Ending::Finished { exit: None });
    assert_eq!(
        first.final_message.as_deref(),
        Some("turn 1 done"),
        "what was said before a tool is not the end"
    );
    assert_eq!(
        first.usage,
        Usage {
            input: Some(11),
            output: Some(7)
        }
    );
    assert!(
        matches!(first.confinement, Confinement::Kernel { .. }),
        "{:?}",
        first.confinement
    );
    assert_eq!(
        again.final_message.as_deref(),
        Some("turn 2 done"),
        "the same session"
    );
    assert_eq!(
        desk.output("drafts/ch01.md").as_deref(),
        Some("# Outline\n<!-- DONE -->\n")
    );
    let events = desk.events.lock().unwrap();
    assert!(events.contains(&Event::Progress("writes the draft".to_string())));
    let servers = events
        .iter()
        .any(|event| matches!(event, Event::Progress(line) if line.contains("/bin/true")));
    assert!(servers, "the MCP server is handed over: {events:?}");
}

#[test]
fn a_host_gets_no_files_and_no_permission_outside_its_room() {
    let desk = Desk::new();
    let denied = desk.path("denied.md");
    let mut desk = desk;
    desk.host(&format!("via = \"acp\"\nprogram = {STAGE:?}\nargs = [\"acp\", \"escape\", {denied:?}, \"../../../denied.md\"]"));
    let outcome = desk.run();
    assert_eq!(
        outcome.final_message.as_deref(),
        Some("5 refused, own read false"),
        "{}",
        desk.said("err")
    );
    desk.assert_untouched();
    let by = |who: &str| outcome.denied.iter().filter(|one| one.by == who).count();
    assert_eq!(
        by("adapter"),
        6,
        "five files and one permission: {:?}",
        outcome.denied
    );
    assert!(
        outcome
            .denied
            .iter()
            .any(|one| one.by == "kernel" && one.path == denied),
        "{:?}",
        outcome.denied
    );
}

#[test]
fn failures_of_a_host_are_told_apart() {
    let ending = |script: &str| desk_with(&[script]).run().ending;
    let unauthorised = ending("unauthorised");
    assert!(
        matches!(&unauthorised, Ending::Refused { why, .. } if why.contains("401")),
        "{unauthorised:?}"
    );
    let fails = ending("fails");
    assert!(
        matches!(&fails, Ending::Broken { why } if why.contains("500")),
        "{fails:?}"
    );
    let die = ending("die");
    assert!(
        matches!(&die, Ending::Broken { why } if why.contains("exit code 3") && why.contains("connection refused")),
        "{die:?}"
    );
    let garbage = ending("garbage");
    assert!(
        matches!(&garbage, Ending::Broken { why } if why.contains("does not support")),
        "{garbage:?}"
    );
    assert!(matches!(ending("limit"), Ending::TooLong { .. }));
}

#[test]
fn a_host_that_ends_its_turn_without_work_is_told_as_it_is() {
    let desk = desk_with(&["silent"]);
    let outcome = desk.run();
    assert_eq!(
        (outcome.ending, outcome.final_message),
        (Ending::Finished { exit: None }, None)
    );
    assert_eq!(collect(&desk.assignment).missing, ["drafts/ch01.md"]);
}

#[test]
fn a_message_beyond_the_bound_is_too_long() {
    let mut desk = desk_with(&["long"]);
    desk.assignment.bounds.message = 100_000;
    assert_eq!(
        desk.run().ending,
        Ending::TooLong {
            what: "the final message".to_string()
        }
    );
}

#[test]
fn a_host_that_hangs_is_ended_and_can_be_stopped() {
    let mut desk = desk_with(&["hang"]);
    desk.assignment.deadline = Duration::from_millis(1500);
    let again = desk.turns(|turns| {
        assert_eq!(turns.first().ending, Ending::Deadline);
        turns.again("late")
    });
    assert_eq!(again.ending, Ending::Deadline);
    desk.assignment.deadline = Duration::from_secs(120);
    desk.stop.stop();
    assert_eq!(desk.run().ending, Ending::Stopped);
}

#[test]
fn a_host_that_reads_no_answers_is_ended() {
    let mut desk = desk_with(&["flood"]);
    desk.assignment.deadline = Duration::from_secs(120);
    let ending = desk.run().ending;
    assert!(
        matches!(&ending, Ending::Broken { why } if why.contains("does not read")),
        "{ending:?}"
    );
}

#[test]
fn refused_attempts_are_listed_and_then_counted() {
    let outcome = desk_with(&["probe"]).run();
    let denied: Vec<_> = outcome
        .denied
        .iter()
        .filter(|one| one.by == "adapter")
        .collect();
    let (more, longest) = (
        denied.last().unwrap(),
        denied.iter().map(|one| one.path.len()).max().unwrap(),
    );
    assert_eq!(
        (denied.len(), more.act.as_str(), more.times),
        (101, "more", 200),
        "{:?}",
        outcome.ending
    );
    assert!(longest <= 4096, "{longest}");
}

#[test]
fn a_host_that_is_not_there_could_not_start() {
    let mut desk = Desk::new();
    desk.host("via = \"acp\"\nprogram = \"no-such-host\"");
    assert!(
        matches!(desk.run().ending, Ending::NotStarted { why } if why.contains("no-such-host"))
    );
}
