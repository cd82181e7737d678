//! The `person` adapter.

use crate::desk::Desk;
use quipu_agents::{Confinement, Ending, Event};
use std::time::Duration;

#[test]
fn a_person_is_shown_the_brief_and_waited_for() {
    let mut desk = Desk::new();
    desk.host("via = \"person\"");
    desk.assignment.outputs = vec!["ch01.md".to_string()];
    let file = desk.assignment.out.join("ch01.md");
    let shown = || {
        desk.events
            .lock()
            .unwrap()
            .iter()
            .filter(|event| matches!(event, Event::Progress(_)))
            .count()
    };
    std::thread::scope(|scope| {
        scope.spawn(|| {
            while shown() == 0 {
                std::thread::sleep(Duration::from_millis(5));
            }
            std::fs::write(&file, "text\n").unwrap();
        });
        let (first, again) = desk.turns(|turns| {
            let first = turns.first();
            let seen = shown();
            scope.spawn({
                let (shown, file) = (&shown, &file);
                move || {
                    while shown() == seen {
                        std::thread::sleep(Duration::from_millis(5));
                    }
                    std::fs::write(file, "text\n<!-- DONE -->\n").unwrap();
                }
            });
            (first, turns.again("the marker is missing"))
        });
        assert_eq!(first.ending, Ending::Finished { exit: None });
        assert_eq!(again.ending, Ending::Finished { exit: None });
        assert_eq!(first.confinement, Confinement::Person);
    });
    assert_eq!(desk.output("ch01.md").unwrap(), "text\n<!-- DONE -->\n");
    assert!(desk.said("brief").contains("the marker is missing"));
}

#[test]
fn a_person_who_never_answers_meets_the_deadline_and_can_be_stopped() {
    let mut desk = Desk::new();
    desk.host("via = \"person\"");
    desk.assignment.deadline = Duration::from_millis(300);
    assert_eq!(desk.run().ending, Ending::Deadline);
    desk.stop.stop();
    assert_eq!(desk.run().ending, Ending::Stopped);
}

#[test]
fn a_person_needs_a_file_to_answer_with() {
    let mut desk = Desk::new();
    desk.host("via = \"person\"");
    desk.assignment.outputs.clear();
    assert!(matches!(desk.run().ending, Ending::NotStarted { .. }));
}

/// A file under a wrong name is named, with what is missing, instead of being waited for in silence.
#[test]
fn a_file_that_the_step_does_not_take_is_named() {
    let mut desk = Desk::new();
    desk.host("via = \"person\"");
    desk.assignment.outputs = vec!["ch01-draft.md".into()];
    let ended = std::thread::scope(|scope| {
        scope.spawn(|| {
            write_when(&desk, 1, ".ch01.md.swp", "x");
            write_when(&desk, 1, "ch01.md", "text\n");
            write_when(&desk, 2, "ch01-draft.md", "text\n");
        });
        desk.run().ending
    });
    assert_eq!(ended, Ending::Finished { exit: None });
    let events = desk.events.lock().unwrap();
    let told: Vec<&String> = events
        .iter()
        .filter_map(|event| match event {
            Event::Progress(text) => Some(text),
            _ => None,
        })
        .collect();
    assert_eq!(told.len(), 2, "{told:?}");
    assert!(told[1].contains("`ch01.md` was saved") && told[1].contains("`ch01-draft.md`"));
}

/// Waits until so much was shown, then writes.
fn write_when(desk: &Desk, shown: usize, file: &str, text: &str) {
    let count = || {
        desk.events
            .lock()
            .unwrap()
            .iter()
            .filter(|event| matches!(event, Event::Progress(_)))
            .count()
    };
    while count() < shown {
        std::thread::sleep(Duration::from_millis(5));
    }
    std::fs::write(desk.assignment.out.join(file), text).unwrap();
}

#[test]
fn what_was_sent_back_is_no_answer_and_a_saved_file_is_none_before_its_last_line() {
    let mut desk = Desk::new();
    desk.host("via = \"person\"");
    desk.assignment.outputs = vec!["plan.md".into(), "map.md".into()];
    desk.assignment.last_lines = desk
        .assignment
        .outputs
        .iter()
        .map(|o| (o.clone(), vec!["<!-- DONE -->".to_owned()]))
        .collect();
    std::fs::create_dir_all(&desk.assignment.out).unwrap();
    for file in ["plan.md", "map.md"] {
        std::fs::write(desk.assignment.out.join(file), "old\n").unwrap();
    }
    let outcome = std::thread::scope(|scope| {
        scope.spawn(|| {
            write_when(&desk, 1, "plan.md", "half\n");
            // The half is not taken, and it is said why.
            write_when(&desk, 2, "plan.md", "whole\n<!-- DONE -->\n");
            // The other one is still as it was sent back.
            std::thread::sleep(Duration::from_millis(900));
            write_when(&desk, 2, "map.md", "map\n<!-- DONE -->\n");
        });
        desk.turns(|turns| turns.first())
    });
    assert_eq!(outcome.ending, Ending::Finished { exit: None });
    assert_eq!(desk.output("plan.md").unwrap(), "whole\n<!-- DONE -->\n");
    assert_eq!(desk.output("map.md").unwrap(), "map\n<!-- DONE -->\n");
}
