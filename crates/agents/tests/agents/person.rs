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
    let shown = || desk.events.lock().unwrap().iter().filter(|event| matches!(event, Event::Progress(_))).count();
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
