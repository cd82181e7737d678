//! Tests that a book survives disasters: a truncated draft, a missing reviewer, damaged memory, a
//! lost `.quipu/`, a broken dependency, an adapter that panics.

use quipu_protocol::flow::{Agent, Choice, Ended, Event, Scripted, State, Task, Watch};
use quipu_testkit::{Restore as _, draft};

use crate::stage::Stage;

fn until(step: &str) -> Choice {
    Choice {
        until: Some(step.into()),
        ..Choice::default()
    }
}

fn begun(chapters: usize, step: &str) -> Stage {
    let stage = Stage::book(chapters, "");
    stage.play(Choice::default());
    stage.approve("approve-outline", None);
    stage.play(until(step));
    stage
}

#[test]
fn a_draft_cut_short_is_kept_aside_and_done_again() {
    let stage = begun(1, "write");
    let whole = stage.text("drafts/ch01-draft.md");
    let half = &whole[..whole.len() / 2];
    std::fs::write(stage.root.join("drafts/ch01-draft.md"), half).unwrap();
    assert_eq!(stage.state("write", Some("ch01")).0, State::Ready);
    let played = stage.play(until("write"));
    assert_eq!(played.accepted(), ["write/ch01"]);
    assert_eq!(stage.text("drafts/ch01-draft.md"), whole);
    let kept: Vec<_> = stage
        .tree()
        .into_iter()
        .filter(|(p, _)| p.starts_with("drafts/ch01-draft.md.bak."))
        .collect();
    assert_eq!(kept.len(), 1);
    assert_eq!(kept[0].1, half);
    assert!(
        stage
            .text("audit-log.md")
            .contains("drafts/ch01-draft.md INCOMPLETE")
    );

    // A few words are not worth keeping.
    std::fs::write(stage.root.join("drafts/ch01-draft.md"), "# Ch").unwrap();
    stage.play(until("write"));
    assert_eq!(
        stage.tree().keys().filter(|p| p.contains(".bak.")).count(),
        1
    );
}

#[test]
fn a_draft_cut_short_can_be_completed() {
    let stage = begun(1, "write");
    let whole = stage.text("drafts/ch01-draft.md");
    std::fs::write(
        stage.root.join("drafts/ch01-draft.md"),
        &whole[..whole.len() / 2],
    )
    .unwrap();
    stage
        .script
        .put("drafts/ch01-draft.md.round1", &draft("ch01", "completed"));
    stage.play(Choice {
        salvage: true,
        ..until("write")
    });
    assert!(
        stage
            .text("drafts/ch01-draft.md")
            .contains("completed draft")
    );
    assert_eq!(
        stage.tree().keys().filter(|p| p.contains(".bak.")).count(),
        0
    );
}

#[test]
fn a_missing_reviewer_is_asked_again_and_nothing_is_merged_around_it() {
    let stage = begun(1, "review-content");
    stage.play(until("review-code"));
    stage.play(until("review-consistency"));
    std::fs::remove_file(stage.root.join("reviews/ch01-r2-consistency.md")).unwrap();
    assert_eq!(stage.state("merge-reviews", Some("ch01")).0, State::Pending);
    let played = stage.play(until("merge-reviews"));
    assert_eq!(
        played.accepted(),
        ["review-consistency/ch01", "merge-reviews/ch01"],
        "{:#?}",
        played.events
    );
}

#[test]
fn damaged_memory_stops_what_would_write_it_until_it_is_restored() {
    let stage = begun(1, "merge-readers");
    let whole = stage.text("meta/glossary.md");
    std::fs::write(stage.root.join("meta/glossary.md"), "# Gone\n").unwrap();
    let played = stage.play(until("remember"));
    let stuck = played.events.iter().find_map(|e| match e {
        Event::Stuck { why, .. } => Some(why.clone()),
        _ => None,
    });
    assert!(
        stuck.as_ref().is_some_and(
            |w| w.contains("meta/glossary.md") && w.contains("quipu restore meta/glossary.md")
        ),
        "{:#?}",
        played.events
    );
    assert!(
        !stage.root.join("chapters/ch01.md").exists(),
        "all of it or nothing"
    );
    let project = stage.open();
    let path = quipu_contract::ProjectPath::parse("meta/glossary.md").unwrap();
    project
        .store
        .restore(&quipu_contract::Actor::Person, &path, None)
        .unwrap();
    assert_eq!(stage.text("meta/glossary.md"), whole);
    stage.play(until("remember"));
    assert_eq!(stage.state("remember", Some("ch01")).0, State::Done);
}

#[test]
fn without_its_journal_a_flow_goes_by_its_markers_and_says_so() {
    let stage = begun(2, "merge-reviews");
    let before = stage.tree();
    std::fs::remove_dir_all(stage.root.join(".quipu")).unwrap();
    let unknown = stage.with_flow(|flow| {
        flow.statuses
            .iter()
            .filter(|s| s.state == State::Done && !s.known)
            .count()
    });
    assert!(unknown >= 10, "{unknown}");
    assert_eq!(stage.tree(), before);
    let played = stage.play(Choice::default());
    assert!(
        !played
            .accepted()
            .iter()
            .any(|t| t.starts_with("write") || t.starts_with("review")),
        "{:?}",
        played.accepted()
    );
    assert_eq!(
        stage.state("audit", None).0,
        State::Done,
        "{:#?}",
        played.events
    );
}

#[test]
fn a_broken_dependency_blocks_what_needs_it_and_nothing_else() {
    let stage = Stage::book(
        4,
        "\n[units.ch03]\nneeds = [\"ch01\"]\n\n[units.ch04]\nneeds = [\"ch03\"]\n",
    );
    stage
        .script
        .put("research/ch01-research.md.acts", "nothing\n");
    stage.play_all();
    assert_eq!(stage.state("research", Some("ch01")).0, State::Failed);
    assert_eq!(stage.state("remember", Some("ch02")).0, State::Done);
    assert_eq!(stage.state("research", Some("ch03")).0, State::Blocked);
    assert_eq!(stage.state("research", Some("ch04")).0, State::Blocked);
    stage.script.remove("research/ch01-research.md.acts");
    stage.play(Choice {
        steps: vec!["research".into()],
        units: vec![quipu_contract::UnitId::parse("ch01").unwrap()],
        ..Choice::default()
    });
    let played = stage.play(Choice::default());
    assert_eq!(
        stage.state("inspect", Some("ch04")).0,
        State::Done,
        "{:#?}",
        played.events
    );
}

/// Panics at one job and performs the others.
struct Panicking(Scripted);

impl Agent for Panicking {
    fn name(&self) -> &str {
        "panicking"
    }

    fn perform(&self, task: &Task, watch: Watch<'_>) -> Ended {
        assert!(
            task.job.to_string() != "research/ch01",
            "no agent for {}",
            task.job
        );
        self.0.perform(task, watch)
    }
}

#[test]
fn an_attempt_that_panics_ends_the_run_with_its_words_and_holds_nothing() {
    let stage = Stage::book(2, "");
    stage.play(Choice::default());
    stage.approve("approve-outline", None);
    let played = stage.play_by(
        &Panicking(Scripted::of(&stage.script.folder)),
        Choice::default(),
    );
    let [(job, why)] = played.summary.stuck.as_slice() else {
        panic!("{:#?}", played.summary)
    };
    assert_eq!(job.to_string(), "research/ch01");
    assert!(why.contains("no agent for research/ch01"), "{why}");
    assert_eq!(stage.state("research", Some("ch01")).0, State::Ready);
    assert_eq!(stage.state("merge-readers", Some("ch02")).0, State::Done);
    assert_eq!(stage.open().store.leases().unwrap(), []);
    stage.play(Choice::default());
    assert_eq!(stage.state("inspect", Some("ch01")).0, State::Done);
}
