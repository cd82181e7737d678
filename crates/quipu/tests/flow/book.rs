//! Tests of the book flow: completion, the loop of objections, batches, staleness.

use quipu_contract::Actor;
use quipu_protocol::flow::{AttemptResult, Choice, Event, State, decide_gate};
use quipu_store::{Change, Op};
use quipu_testkit::{draft, new_items, page};

use crate::stage::{Stage, job};

/// The merge step of the book profile, with no round to answer an objection.
const NO_ROUNDS: &str = "\n[[steps]]\nname = \"merge-checks\"\nbuiltin = \"merge\"\neach = \"unit\"\nafter = [\"check-code\", \"check-content\"]\nobjection = { sign = \"❌\" }\nback = [\"revise\"]\nrounds = 0\nreads = [\"reviews/{unit}-r1-check.md\"]\nwrites = [\"reviews/{unit}-check.md\"]\nmarker = \"REVIEW_COMPLETE\"\nmerge = { parts = [{ title = \"Must\", signs = [\"❌\"] }] }\n";

#[test]
fn a_whole_book_is_written_to_its_end() {
    let stage = Stage::book(4, "");
    let first = stage.play(Choice::default());
    assert_eq!(stage.state("approve-outline", None).0, State::Waiting);
    assert_eq!(first.summary.failed, 0, "{:#?}", first.events);
    assert_eq!(stage.in_state(State::Failed), [""; 0]);

    stage.reject("approve-outline", "chapters are missing");
    assert_eq!(
        stage.state("outline", None).0,
        State::Ready,
        "{}",
        stage.state("outline", None).1
    );
    stage.script.put(
        "outline-draft.md.round1",
        &stage
            .text("outline-draft.md")
            .replace("The goal", "The better goal"),
    );
    let second = stage.play(Choice::default());
    // Readers and reviewer run in parallel, so either may finish first.
    let mut accepted = second.accepted();
    accepted.sort();
    assert_eq!(
        accepted,
        ["outline", "outline-content", "outline-readers"],
        "{:#?}",
        second.events
    );
    stage.approve("approve-outline", None);
    assert!(stage.text("outline-final.md").contains("The better goal"));

    let third = stage.play(Choice::default());
    assert_eq!(
        stage.in_state(State::Done).len() + 4,
        stage.with_flow(|f| f.jobs.len()),
        "all but R3's four checks, which nobody needs: {:#?}\n{:#?}",
        third.events,
        stage.with_flow(|f| f.statuses.clone())
    );
    for unit in ["ch01", "ch02", "ch03", "ch04"] {
        assert!(
            stage
                .text(&format!("chapters/{unit}.md"))
                .ends_with("<!-- CHAPTER_FINAL -->\n")
        );
        assert!(
            stage
                .text("meta/glossary.md")
                .contains(&format!("| term-{unit} |"))
        );
    }
    // Chapters stay in order, and no job of the fourth starts before the first three have passed.
    let order: Vec<String> = stage
        .text("meta/chapter-summaries.md")
        .lines()
        .filter(|l| l.starts_with("## ch0"))
        .map(str::to_owned)
        .collect();
    assert_eq!(
        order[order.len() - 4..],
        ["## ch01", "## ch02", "## ch03", "## ch04"]
    );
    let jobs = third.accepted();
    let at = |job: &str| jobs.iter().position(|t| t == job).unwrap();
    assert!(at("remember/ch03") < at("research/ch04"));
    assert!(at("merge-readers/ch03") < at("remember/ch01"));
    assert!(at("remember/ch04") < at("audit"));

    assert_eq!(
        stage.play(Choice::default()).accepted(),
        [""; 0],
        "what is complete is not repeated"
    );
}

/// Returns the briefs of a step's attempts, oldest first.
fn briefs(stage: &Stage, step: &str) -> Vec<String> {
    let runs = std::fs::read_dir(stage.root.join(".quipu/attempts"))
        .unwrap()
        .map(|entry| entry.unwrap().path());
    let mut of_step: Vec<_> = runs
        .filter(|path| path.to_str().unwrap().contains(&format!("-{step}-")))
        .collect();
    of_step.sort();
    of_step
        .iter()
        .map(|path| std::fs::read_to_string(path.join("brief.md")).unwrap())
        .collect()
}

/// Returns the jobs in the order of the journal, starting at one note. A built-in step may be noted
/// before the agent that wrote its report.
fn noted_order(stage: &Stage, from: usize) -> Vec<String> {
    let name = |part: &serde_json::Value| part.as_str().map(str::to_owned);
    let noted = stage.open().store.noted(0).unwrap().split_off(from);
    let job = |note: &serde_json::Value| {
        [name(&note["step"]), name(&note["unit"])]
            .into_iter()
            .flatten()
            .collect::<Vec<_>>()
            .join("/")
    };
    noted.iter().map(|noted| job(&noted.note)).collect()
}

const R1_OBJECTS: &str =
    "# R1\n\n- ❌ `knit()` does not exist\n\n<!-- R1_CODE_REVIEW_COMPLETE -->\n";

#[test]
fn one_revision_answers_reviewers_and_readers_and_memory_learns_the_final_text() {
    let stage = Stage::book(1, "");
    stage.script.put("reviews/ch01-r1-code.md", R1_OBJECTS);
    let played = stage.play_all();
    assert_eq!(
        played
            .accepted()
            .iter()
            .filter(|job| *job == "write/ch01")
            .count(),
        1,
        "the draft is not written again"
    );
    assert_eq!(
        stage.state("check-content", Some("ch01")).0,
        State::Skipped,
        "R3 had no objection"
    );
    let order = noted_order(&stage, 0);
    let at = |job: &str| {
        order
            .iter()
            .position(|t| t == job)
            .unwrap_or_else(|| panic!("no {job}: {order:?}"))
    };
    for (before, after) in [
        ("merge-readers/ch01", "revise/ch01"),
        ("revise/ch01", "check-code/ch01"),
        ("merge-checks/ch01", "list-items/ch01"),
        ("list-items/ch01", "remember/ch01"),
    ] {
        assert!(at(before) < at(after), "{before} {after}");
    }
    let view = |step: &str, path: &str| {
        let mut runs: Vec<_> = std::fs::read_dir(stage.root.join(".quipu/attempts"))
            .unwrap()
            .map(|e| e.unwrap().path())
            .collect();
        runs.retain(|run| run.to_str().unwrap().contains(&format!("-{step}-")));
        std::fs::read_to_string(runs[0].join("view").join(path))
            .unwrap_or_else(|e| panic!("{step} {path}: {e}"))
    };
    let review = view("revise", "reviews/ch01-review.md");
    assert!(
        review.contains("## Must fix\n\n- ❌ **r1** `knit()` does not exist")
            && review.contains("## Should fix\n\n- ⚠️"),
        "{review}"
    );
    assert!(view("revise", "reader-feedback/ch01-panel.md").contains("It worked."));
    assert!(view("check-code", "reviews/ch01-r1-code.md").contains("`knit()` does not exist"));
    let brief = &briefs(&stage, "check-code")[0];
    assert!(
        brief.contains("-This is the first draft of ch01")
            && brief.contains("+This is the revised draft of ch01"),
        "{brief}"
    );
    assert!(view("list-items", "drafts/ch01-revised.md").contains("revised draft"));
    assert!(
        !briefs(&stage, "list-items")[0].contains("drafts/ch01-draft.md"),
        "R2 lists items from the final text alone"
    );
    assert!(stage.text("chapters/ch01.md").contains("revised draft"));
}

#[test]
fn only_those_who_objected_check_again_with_their_report_and_the_difference() {
    let stage = Stage::book(1, "");
    stage.script.put(
        "reviews/ch01-r3-content.md",
        "# R3\n\n- ❌ libel\n\n<!-- R3_CONTENT_REVIEW_COMPLETE -->\n",
    );
    stage.script.put("reviews/ch01-r1-check.md", R1_OBJECTS);
    stage
        .script
        .put("drafts/ch01-revised.md.round1", &draft("ch01", "second"));
    let until = |step: &str| Choice {
        until: Some(step.into()),
        ..Choice::default()
    };
    stage.play(Choice::default());
    stage.approve("approve-outline", None);
    stage.play(until("check-content"));
    stage.play(Choice {
        steps: vec!["check-code".into(), "merge-checks".into()],
        ..Choice::default()
    });
    let (state, why) = stage.state("merge-checks", Some("ch01"));
    assert_eq!(state, State::Pending, "{why}");
    assert!(why.contains("sent back to revise/ch01"), "{why}");
    assert!(
        stage
            .text("reviews/ch01-check.md")
            .contains("- ❌ **r1-check** `knit()` does not exist")
    );

    stage.script.put(
        "reviews/ch01-r1-check.md",
        "# R1\n\npass\n\n<!-- R1_CODE_REVIEW_COMPLETE -->\n",
    );
    let played = stage.play(until("merge-checks"));
    // A job that depends on a report may finish before the report's job is noted.
    let mut accepted = played.accepted();
    accepted.sort();
    assert_eq!(
        accepted,
        ["check-code/ch01", "merge-checks/ch01", "revise/ch01"],
        "{:#?}",
        played.events
    );
    assert!(
        stage
            .text("drafts/ch01-revised.md")
            .contains("second draft")
    );
    let revised = briefs(&stage, "revise");
    assert!(
        revised[1].contains("Sent back") && revised[1].contains("`knit()` does not exist"),
        "{}",
        revised[1]
    );
    let checked = &briefs(&stage, "check-code")[1];
    for part in [
        "**Done again** (round 2), because `drafts/ch01-revised.md` changed",
        "<earlier path=\"reviews/ch01-r1-check.md\">\n# R1\n\n- ❌ `knit()` does not exist",
        "-This is the revised draft of ch01",
        "+This is the second draft of ch01",
    ] {
        assert!(checked.contains(part), "{part}\n{checked}");
    }
}

#[test]
fn a_redo_says_why_and_shows_the_old_text() {
    let stage = Stage::book(1, "");
    stage.play(Choice::default());
    stage.approve("approve-outline", None);
    stage.play(Choice {
        until: Some("write".into()),
        ..Choice::default()
    });
    let path = quipu_contract::ProjectPath::parse("outline-final.md").unwrap();
    let text = stage
        .text("outline-final.md")
        .replace("The goal of chapter 1", "Another goal of chapter 1");
    let change = Change::by(&Actor::Person).why("scope").op(Op::Amend {
        path,
        bytes: Some(text.into_bytes()),
    });
    stage.open().validate(change).unwrap().publish().unwrap();
    stage
        .script
        .put("drafts/ch01-draft.md", &draft("ch01", "other"));
    stage.play(Choice {
        stale: true,
        until: Some("write".into()),
        ..Choice::default()
    });
    let brief = briefs(&stage, "write").pop().unwrap();
    for part in [
        "`outline-final.md#ch01` changed",
        "-The goal of chapter 1.",
        "+Another goal of chapter 1.",
        "This is the first draft of ch01",
    ] {
        assert!(brief.contains(part), "{part}\n{brief}");
    }
}

#[test]
fn a_count_of_objections_is_none_and_a_stray_sign_goes_back_to_its_reviewer() {
    let stage = Stage::book(1, "");
    let report = |verdict: &str| {
        format!("# R1\n\n## Verdict\n\n{verdict}\n\n<!-- R1_CODE_REVIEW_COMPLETE -->\n")
    };
    stage
        .script
        .put("reviews/ch01-r1-code.md", &report("**Block**: 2 ❌, 1 💡."));
    stage.script.put(
        "reviews/ch01-r1-code.md.again",
        &report("Pass. 0 ❌, 1 💡."),
    );
    let played = stage.play_all();
    let fault = played.sent_back().join("\n");
    assert!(
        fault.contains("`reviews/ch01-r1-code.md` has ❌ in \"**Block**: 2 ❌, 1 💡.\" but no item that says what is wrong"),
        "{fault}"
    );
    assert_eq!(
        played
            .accepted()
            .iter()
            .filter(|job| *job == "write/ch01")
            .count(),
        1,
        "the writer has nothing to fix"
    );
    assert_eq!(stage.state("merge-reviews", Some("ch01")).0, State::Done);
}

#[test]
fn after_two_rounds_a_person_is_asked_and_the_others_go_on() {
    let stage = Stage::book(3, "\n[units.ch03]\nneeds = [\"ch01\"]\n");
    stage.script.put(
        "reviews/ch01-r3-content.md",
        "# R3\n\n- ❌ libel\n\n<!-- R3_CONTENT_REVIEW_COMPLETE -->\n",
    );
    stage.script.put(
        "reviews/ch01-r3-check.md",
        "# R3\n\n- ❌ libel\n\n<!-- R3_CONTENT_REVIEW_COMPLETE -->\n",
    );
    stage
        .script
        .put("drafts/ch01-revised.md.round1", &draft("ch01", "fixed"));
    let played = stage.play_all();
    // The script plays one fixed text. The second time it is unchanged, which is a failure of its
    // own.
    let (state, why) = stage.state("merge-checks", Some("ch01"));
    assert!(
        matches!(state, State::Failed | State::Blocked),
        "{state:?} {why} {:#?}",
        played.events
    );
    assert_eq!(stage.state("remember", Some("ch02")).0, State::Done);
    assert_eq!(
        stage.state("write", Some("ch03")).0,
        State::Blocked,
        "{}",
        stage.state("write", Some("ch03")).1
    );
    let log = stage.text("audit-log.md");
    assert!(
        log.contains("ch01 NEEDS_HUMAN_REVIEW") && log.contains("ch03 is BLOCKED"),
        "{log}"
    );
}

#[test]
fn a_person_may_overrule_an_objection() {
    let stage = Stage::book(1, NO_ROUNDS);
    stage.script.put(
        "reviews/ch01-r1-check.md",
        "# R1\n\n- ❌ wrong\n\n<!-- R1_CODE_REVIEW_COMPLETE -->\n",
    );
    stage.play_all();
    let (state, why) = stage.state("merge-checks", Some("ch01"));
    assert_eq!(state, State::Failed, "{why}");
    assert_eq!(stage.state("remember", Some("ch01")).0, State::Blocked);
    stage.approve("merge-checks", Some("ch01"));
    stage.play(Choice::default());
    assert_eq!(stage.state("remember", Some("ch01")).0, State::Done);
    let log = stage.text("audit-log.md");
    assert!(
        log.contains("ch01 RESOLVED") && log.contains("merge-checks/ch01: approved by a person"),
        "{log}"
    );
}

#[test]
fn an_amendment_makes_stale_what_had_read_it_and_what_rests_on_that() {
    let stage = Stage::book(2, "");
    stage.play_all();
    assert_eq!(stage.in_state(State::Stale), [""; 0]);
    let project = stage.open();
    let path = quipu_contract::ProjectPath::parse("outline-final.md").unwrap();
    let text = stage
        .text("outline-final.md")
        .replace("The goal of chapter 2", "Another goal of chapter 2");
    project
        .validate(Change::by(&Actor::Person).why("scope").op(Op::Amend {
            path,
            bytes: Some(text.into_bytes()),
        }))
        .unwrap()
        .publish()
        .unwrap();
    let stale = stage.in_state(State::Stale);
    assert!(
        stale.contains(&"research/ch02".to_owned()) && stale.contains(&"remember/ch02".to_owned()),
        "{stale:?}"
    );
    assert!(
        !stale.iter().any(|t| t.ends_with("/ch01")
            && !t.starts_with("inspect")
            && !t.starts_with("typeset")),
        "{stale:?}"
    );
    assert!(
        stage
            .state("research", Some("ch02"))
            .1
            .contains("`outline-final.md#ch02` changed")
    );
    assert!(
        stage
            .state("review-code", Some("ch02"))
            .1
            .contains("through write/ch02")
    );

    assert_eq!(
        stage.play(Choice::default()).accepted(),
        [""; 0],
        "what is stale is redone only when asked for"
    );
    stage.script.put(
        "research/ch02-research.md",
        "# Research ch02\n\nOther facts.\n\n<!-- RESEARCH_COMPLETE -->\n",
    );
    let redone = stage.play(Choice {
        stale: true,
        ..Choice::default()
    });
    assert!(
        redone.accepted().contains(&"research/ch02".to_owned())
            && !redone.accepted().contains(&"research/ch01".to_owned()),
        "{:?}",
        redone.accepted()
    );
    assert!(redone.accepted().contains(&"write/ch02".to_owned()));
    assert_eq!(
        stage.in_state(State::Stale),
        [""; 0],
        "{:#?}",
        redone.events
    );
    assert_eq!(stage.in_state(State::Ready), [""; 0]);
    assert_eq!(
        stage
            .text("meta/glossary.md")
            .matches("| term-ch02 |")
            .count(),
        1,
        "nothing is remembered twice"
    );
}

#[test]
fn what_is_published_follows_an_amended_chapter_and_nothing_is_final_before_its_reviews() {
    for jobs in [1, 5] {
        let stage = Stage::book(2, "");
        stage.play_all();
        let path = quipu_contract::ProjectPath::parse("outline-final.md").unwrap();
        let text = stage
            .text("outline-final.md")
            .replace("The goal of chapter 2", "Another goal of chapter 2");
        let change = Change::by(&Actor::Person).why("scope").op(Op::Amend {
            path,
            bytes: Some(text.into_bytes()),
        });
        stage.open().validate(change).unwrap().publish().unwrap();
        stage.script.put(
            "research/ch02-research.md",
            "# Research ch02\n\nOther facts.\n\n<!-- RESEARCH_COMPLETE -->\n",
        );
        stage
            .script
            .put("drafts/ch02-draft.md", &draft("ch02", "amended"));
        stage
            .script
            .put("drafts/ch02-revised.md", &draft("ch02", "amended"));
        stage.script.put("reviews/ch02-r1-check.md", R1_OBJECTS);
        stage.play(Choice {
            stale: true,
            jobs,
            until: Some("check-code".into()),
            ..Choice::default()
        });
        stage.play(Choice {
            steps: vec!["remember".into()],
            ..Choice::default()
        });
        assert!(stage.text("drafts/ch02-revised.md").contains("amended"));
        assert!(
            !stage.text("chapters/ch02.md").contains("amended"),
            "R1 refuses it"
        );
        stage.script.put(
            "reviews/ch02-r1-check.md",
            "# R1\n\nPass. 0 ❌, 1 💡.\n\n<!-- R1_CODE_REVIEW_COMPLETE -->\n",
        );
        stage
            .script
            .put("drafts/ch02-revised.md.round1", &draft("ch02", "fixed"));
        let begun = stage.open().store.noted(0).unwrap().len();
        stage.play(Choice {
            stale: true,
            jobs,
            ..Choice::default()
        });
        let order = noted_order(&stage, begun);
        let at = |job: &str| {
            order
                .iter()
                .position(|t| t == job)
                .unwrap_or_else(|| panic!("no {job} in {order:?}"))
        };
        assert!(
            stage.text("chapters/ch02.md").contains("fixed draft"),
            "{order:?}"
        );
        assert!(
            at("check-code/ch02") < at("list-items/ch02")
                && at("list-items/ch02") < at("remember/ch02"),
            "{order:?}"
        );
        assert!(
            at("remember/ch02") < at("audit")
                && at("typeset/ch02") < at("publish")
                && at("publish") < at("inspect/ch02"),
            "{order:?}"
        );
        assert_eq!(
            order.iter().filter(|job| *job == "typeset/ch02").count(),
            1,
            "{order:?}"
        );
        let left = stage.with_flow(|f| f.jobs.len()) - stage.in_state(State::Done).len();
        assert_eq!(
            left,
            stage.in_state(State::Skipped).len(),
            "only what R3 need not check"
        );
    }
}

#[test]
fn jobs_behind_a_sealed_file_are_not_done_again_unasked() {
    let stage = Stage::book(1, "");
    stage.play_all();
    std::fs::write(
        stage.root.join("source/lib.rs"),
        "//! Other knots.\npub fn knot() {}\n",
    )
    .unwrap();
    std::fs::remove_file(stage.root.join("outline-r3-review.md")).unwrap();
    assert_eq!(
        stage.state("outline", None).0,
        State::Done,
        "the outline is sealed"
    );
    assert_eq!(stage.state("outline-content", None).0, State::Skipped);
    assert_eq!(stage.state("research", Some("ch01")).0, State::Stale);
    // On request the step runs again, and the person decides again.
    stage.play(Choice {
        steps: vec!["outline".into()],
        again: true,
        ..Choice::default()
    });
    assert_eq!(stage.state("outline", None).0, State::Done);
}

#[test]
fn a_wrong_output_goes_back_once_with_its_fault_and_then_counts_as_failure() {
    let stage = Stage::book(1, "");
    stage.script.put(
        "outline-reader-feedback.md.acts",
        "nothing first\nstray notes/todo.md first\n",
    );
    stage.script.put("outline-r3-review.md.acts", "nothing\n");
    let played = stage.play(Choice::default());
    assert!(
        played
            .sent_back()
            .iter()
            .any(|f| f == "`outline-reader-feedback.md` was not written"),
        "{:#?}",
        played.events
    );
    let dropped = played
        .events
        .iter()
        .any(|e| matches!(e, Event::Accepted { dropped, .. } if dropped == &["notes/todo.md"]));
    assert!(dropped, "{:#?}", played.events);
    let failures = played
        .events
        .iter()
        .filter(|e| matches!(e, Event::Failed { .. }))
        .count();
    assert_eq!(failures, 3);
    assert_eq!(stage.state("outline-content", None).0, State::Failed);
    assert_eq!(stage.state("approve-outline", None).0, State::Blocked);
    assert!(
        stage
            .text("audit-log.md")
            .contains("outline-content NEEDS_HUMAN_REVIEW")
    );
    assert!(!stage.root.join("notes/todo.md").exists());

    // After a person has acted, a step requested by name is retried.
    stage.script.remove("outline-r3-review.md.acts");
    stage.play(Choice {
        steps: vec!["outline-content".into()],
        ..Choice::default()
    });
    assert_eq!(stage.state("outline-content", None).0, State::Done);
    let log = stage.text("audit-log.md");
    let closed = log.split("NEEDS_HUMAN_REVIEW").nth(1).unwrap_or_default();
    assert!(
        closed.contains("outline-content RESOLVED") && closed.contains("outline-content: accepted"),
        "{log}"
    );
}

#[test]
fn failures_under_an_earlier_contract_do_not_stop_a_job() {
    let stage = Stage::book(1, "");
    let more: Vec<String> = (0..400).map(|n| format!("cord{n}")).collect();
    let long = draft("ch01", "plain").replacen("plain", &more.join(" "), 1);
    stage.script.put("drafts/ch01-draft.md", &long);
    stage.play_all();
    let (state, why) = stage.state("write", Some("ch01"));
    assert_eq!(state, State::Failed, "{why}");
    assert!(why.contains("words"), "{why}");

    let toml = stage.text("quipu.toml");
    let words = long.split_whitespace().count();
    let toml = toml.replace("words = \"120\"", &format!("words = \"{words}\""));
    std::fs::write(stage.root.join("quipu.toml"), toml).unwrap();
    let (state, why) = stage.state("write", Some("ch01"));
    assert_eq!(state, State::Ready, "{why}");
    stage.play(Choice::default());
    let (state, why) = stage.state("write", Some("ch01"));
    assert_eq!(state, State::Done, "{why}");
    assert!(stage.text("audit-log.md").contains("ch01 RESOLVED"));
}

#[test]
fn the_outline_needs_no_reviews_if_the_contract_says_so() {
    let stage = Stage::book(1, "");
    let toml = stage.text("quipu.toml");
    let toml = toml.replace("[vars]\n", "[vars]\noutline_reviews = \"none\"\n");
    std::fs::write(stage.root.join("quipu.toml"), toml).unwrap();
    stage.play(Choice::default());
    for step in ["outline-readers", "outline-content"] {
        let (state, why) = stage.state(step, None);
        assert_eq!(state, State::Skipped, "{why}");
        assert_eq!(why, "outline_reviews = none");
    }
    assert_eq!(stage.state("approve-outline", None).0, State::Waiting);
    stage.approve("approve-outline", None);
    stage.play(Choice::default());
    assert_eq!(stage.state("write", Some("ch01")).0, State::Done);
}

#[test]
fn length_and_form_are_checked() {
    let stage = Stage::book(1, "");
    let short = "# A\n\n## One\n\nshort\n\n#### Deep\n\n<!-- DRAFT_COMPLETE -->\n";
    stage.script.put("drafts/ch01-draft.md", short);
    stage
        .script
        .put("drafts/ch01-draft.md.again", &draft("ch01", "expanded"));
    let played = stage.play_all();
    let fault = played.sent_back().join("\n");
    assert!(
        fault.contains(
            "`drafts/ch01-draft.md` has 4 words; 96 to 144 are required. Expand it by at least 92"
        ),
        "{fault}"
    );
    assert!(
        fault.contains("has 1 headings of level 2 (lines 3); 3 to 6 are required"),
        "{fault}"
    );
    assert!(
        fault.contains("has 1 headings of level 4 (lines 7); 0 are required"),
        "{fault}"
    );
    assert!(
        stage
            .text("drafts/ch01-draft.md")
            .contains("expanded draft")
    );
}

#[test]
fn an_explorer_s_last_message_is_its_file() {
    let stage = Stage::book(1, "");
    stage
        .script
        .put("research/ch01-research.md.acts", "message\n");
    stage.play_all();
    let text = stage.text("research/ch01-research.md");
    assert!(
        text.starts_with("# Research ch01\n\nFacts.\n")
            && text.ends_with("<!-- RESEARCH_COMPLETE -->\n"),
        "{text}"
    );
}

#[test]
fn an_agent_that_hangs_is_overdue() {
    let stage = Stage::book(
        1,
        "\n[[steps]]\nname = \"outline-readers\"\nrole = \"advocate\"\nafter = [\"outline\"]\ndeadline = \"1s\"\nretries = 1\n",
    );
    stage
        .script
        .put("outline-reader-feedback.md.acts", "hang\n");
    let played = stage.play(Choice::default());
    let overdue = played.events.iter().any(|e| matches!(e, Event::Failed { why, .. } if why.contains("it was stopped after 1 seconds")));
    assert!(overdue, "{:#?}", played.events);
}

#[test]
fn two_chapters_that_define_a_term_differently_leave_it_to_a_person() {
    let stage = Stage::book(2, "");
    stage.script.put(
        "reviews/ch02-r2-items.md",
        &new_items("ch02", "other", "picture")
            .replace("term-ch02", "term-ch01")
            .replace("picture of ch02", "picture of ch01"),
    );
    stage.play_all();
    let glossary = stage.text("meta/glossary.md");
    assert!(
        glossary.contains("| term-ch01 | what it is in ch01 | ch01 |")
            && !glossary.contains("other in ch02"),
        "{glossary}"
    );
    assert!(
        !stage
            .text("meta/metaphor-registry.md")
            .contains("concept-ch02"),
        "one metaphor serves one concept"
    );
    assert_eq!(
        stage.text("audit-log.md").matches("ch02 CONFLICT").count(),
        2
    );
    assert_eq!(stage.state("remember", Some("ch02")).0, State::Done);
}

#[test]
fn the_panel_reads_only_the_chapters_it_is_given() {
    let stage = Stage::book(2, "");
    let manifest = stage
        .text("quipu.toml")
        .replace("[vars]\n", "[vars]\npanel = \"ch02\"\n");
    std::fs::write(stage.root.join("quipu.toml"), manifest).unwrap();
    let played = stage.play_all();
    for (step, unit, expected) in [
        ("read-student", "ch01", State::Skipped),
        ("merge-readers", "ch01", State::Skipped),
        ("read-student", "ch02", State::Done),
        ("remember", "ch01", State::Done),
    ] {
        let (state, why) = stage.state(step, Some(unit));
        assert_eq!(
            state, expected,
            "{step}/{unit}: {why}\n{:#?}\n{:#?}",
            played.summary, played.events
        );
    }
}

/// A typesetting step that an agent performs.
const TYPESETTER: &str = "\n[[steps]]\nname = \"typeset\"\nrole = \"typesetter\"\neach = \"unit\"\nafter = [\"audit\"]\n";

#[test]
fn an_agent_s_stylesheet_stays_its_own() {
    let stage = Stage::book(1, TYPESETTER);
    stage.script.put("publish/style.css", "p { color: #123 }\n");
    stage.play_all();
    assert_eq!(stage.text("publish/style.css"), "p { color: #123 }\n");
    assert_eq!(stage.state("publish", None).0, State::Done);
    let built_in = Stage::book(1, "");
    built_in.play_all();
    assert!(
        built_in.text("publish/style.css").contains("HTML_COMPLETE"),
        "the press of these tests writes nothing else"
    );
}

#[test]
fn what_quipu_set_itself_is_not_set_again_for_an_inspector() {
    let stage = Stage::book(1, "");
    stage.script.put(
        "qa/ch01-qa.md",
        "# QA\n\n- the page has no title: typesetter\n\n<!-- QA_FAILED -->\n",
    );
    let played = stage.play_all();
    assert_eq!(
        played
            .accepted()
            .iter()
            .filter(|job| *job == "typeset/ch01")
            .count(),
        1,
        "{:#?}",
        played.events
    );
    assert_eq!(stage.state("inspect", Some("ch01")).0, State::Failed);
}

#[test]
fn a_failed_inspection_goes_back_to_whom_it_names() {
    let stage = Stage::book(1, TYPESETTER);
    stage.script.put(
        "qa/ch01-qa.md",
        "# QA\n\n- the page has no title: typesetter\n\n<!-- QA_FAILED -->\n",
    );
    stage.script.put(
        "publish/ch01.html.round1",
        &page(&draft("ch01", "revised")).replace("A page", "A title"),
    );
    stage.script.put("qa/ch01-qa.md.acts", "");
    let played = stage.play_all();
    let jobs = played.accepted();
    assert_eq!(
        jobs.iter().filter(|t| *t == "typeset/ch01").count(),
        3,
        "{:#?}",
        played.events
    );
    let (state, why) = stage.state("inspect", Some("ch01"));
    assert_eq!(state, State::Failed, "{why}");
    assert!(
        why.contains("after round 2") && why.contains("quipu approve inspect --unit ch01"),
        "{why}"
    );
    assert_eq!(
        stage
            .text("audit-log.md")
            .matches("ch01 NEEDS_HUMAN_REVIEW")
            .count(),
        1
    );
}

#[test]
fn an_objection_counts_wherever_it_stands() {
    let stage = Stage::book(1, NO_ROUNDS);
    stage.script.put(
        "reviews/ch01-r1-check.md",
        "# R1\n\n- **❌ add does not exist**\n- sub\n  - ❌ 签名有误\n\n❌ Line 3 is wrong.\n\n| | what |\n|---|---|\n| ❌ | `mul` |\n\n`❌` is a sign.\n\n<!-- R1_CODE_REVIEW_COMPLETE -->\n",
    );
    stage.play_all();
    let (state, why) = stage.state("merge-checks", Some("ch01"));
    assert_eq!(state, State::Failed, "{why}");
    let merged = stage.text("reviews/ch01-check.md");
    let items: Vec<&str> = merged.lines().filter(|l| l.starts_with("- ")).collect();
    assert_eq!(
        items,
        [
            "- ❌ **r1-check** **add does not exist**",
            "- ❌ **r1-check** 签名有误 (sub)",
            "- ❌ **r1-check** Line 3 is wrong.",
            "- ❌ **r1-check** `mul`"
        ],
        "{merged}"
    );
}

#[test]
fn an_audit_that_passes_may_hold_no_objection_in_any_form() {
    for (text, first) in [
        ("- **❌ leaks a secret**", "**❌ leaks a secret**"),
        ("第三章泄露了密钥 ❌。", "第三章泄露了密钥 ❌。"),
    ] {
        let stage = Stage::book(1, "");
        stage.script.put(
            "final-audit-report.md",
            &format!("# Audit\n\n{text}\n\n<!-- QA_PASSED -->\n"),
        );
        let played = stage.play_all();
        let fault = played.sent_back().join("\n");
        assert!(
            fault.contains("ends with <!-- QA_PASSED --> and contains 1 items with ❌")
                && fault.contains(first),
            "{fault}"
        );
        assert_eq!(stage.state("audit", None).0, State::Failed);
    }
}

#[test]
fn a_mend_that_was_cut_short_is_not_accepted() {
    let stage = Stage::book(
        1,
        "\n[[steps]]\nname = \"outline\"\nrole = \"architect\"\ndeadline = \"1s\"\nretries = 1\n",
    );
    stage.play(Choice::default());
    stage.reject("approve-outline", "chapters are missing");
    stage.script.put("outline-draft.md.acts", "half\nhang\n");
    let played = stage.play(Choice::default());
    let why = played.events.iter().find_map(|e| match e {
        Event::Failed { why, .. } => Some(why.clone()),
        _ => None,
    });
    let why = why.unwrap_or_else(|| panic!("{:#?}", played.events));
    assert!(
        why.contains("does not end with <!-- ARCHITECTURE_COMPLETE -->")
            && why.contains("it was stopped after 1 seconds"),
        "{why}"
    );
    assert!(!stage.text("outline-draft.md").contains("Half a fix."));
}

#[test]
fn how_an_agent_ended_is_told_though_its_work_is_accepted() {
    let stage = Stage::book(1, "");
    stage
        .script
        .put("outline-reader-feedback.md.acts", "fail\n");
    let played = stage.play(Choice::default());
    let told = played.events.iter().find_map(|e| match e {
        Event::Accepted { ended, job, .. } if job.step == "outline-readers" => ended.clone(),
        _ => None,
    });
    assert_eq!(
        told.as_deref(),
        Some("the agent reports: the script says so"),
        "{:#?}",
        played.events
    );
    let noted = quipu_protocol::flow::replay(&stage.open(), "outline-readers")
        .unwrap()
        .fact
        .note;
    assert_eq!(noted.ended, told);
}

#[test]
fn new_items_that_cannot_be_remembered_go_back() {
    let stage = Stage::book(1, "");
    let path = "reviews/ch01-r2-items.md";
    let whole = new_items("ch01", "what it is", "picture");
    let bullets = whole
        .replace(
            "| term | definition | chapter | supersedes |\n|---|---|---|---|\n| term-ch01 | what it is in ch01 | ch01 | |",
            "- term-ch01: what it is",
        )
        .replace("### Cross-references\n\nnone", "### Cross-references\n\nIt builds on ch00.");
    stage.script.put(path, &bullets);
    stage.script.put(&format!("{path}.again"), &whole);
    let played = stage.play_all();
    let fault = played.sent_back().join("\n");
    for part in ["### Glossary", "### Cross-references"] {
        assert!(
            fault.contains(&format!("has a part `{part}` without a row")),
            "{fault}"
        );
    }
    assert!(
        fault.contains("if there are no entries, write `none` or `无`")
            && !fault.contains("### Metaphors"),
        "{fault}"
    );
    assert!(stage.text("meta/glossary.md").contains("| term-ch01 |"));
}

#[test]
fn a_summary_may_not_swallow_what_is_remembered_behind_it() {
    let stage = Stage::book(1, "");
    let path = "reviews/ch01-r2-items.md";
    let whole = new_items("ch01", "what it is", "picture");
    let (head, tail) = whole.split_once("### Summary\n").unwrap();
    let (_, tail) = tail.split_once("### Glossary").unwrap();
    let (parts, marker) = tail.split_once("<!--").unwrap();
    stage.script.put(
        path,
        &format!(
            "{head}### Glossary{parts}### Summary\n\nIt tells.\n\n<pre>\none thing\n\n<!--{marker}"
        ),
    );
    stage.script.put(&format!("{path}.again"), &whole);
    let played = stage.play_all();
    let fault = played.sent_back().join("\n");
    assert!(
        fault.contains(
            "has a part `### Summary` that hides what follows it in `meta/chapter-summaries.md`"
        ),
        "{fault}"
    );
    assert!(!stage.text("meta/chapter-summaries.md").contains("<pre>"));
}

#[test]
fn what_was_accepted_and_cannot_be_remembered_is_told() {
    let stage = Stage::book(1, "");
    stage.play(Choice::default());
    stage.approve("approve-outline", None);
    stage.play(Choice {
        until: Some("list-items".into()),
        ..Choice::default()
    });
    let path = "reviews/ch01-r2-items.md";
    let text = stage.text(path).replace(
        "### Cross-references\n\nnone",
        "### Cross-references\n\nIt builds on ch00.",
    );
    std::fs::write(stage.root.join(path), text).unwrap();
    let played = stage.play(Choice {
        steps: vec!["remember".into()],
        ..Choice::default()
    });
    let stuck = format!("{:?}", played.summary.stuck);
    assert!(
        stuck.contains("has a part `### Cross-references` without a row"),
        "{stuck} {:#?}",
        played.events
    );
    assert!(!stage.text("meta/glossary.md").contains("| term-ch01 |"));
}

#[test]
fn a_section_behind_the_last_one_leaves_that_one_alone() {
    let stage = Stage::book(1, "");
    stage.play_all();
    assert_eq!(stage.in_state(State::Stale), [""; 0]);
    let text = stage.text("outline-final.md");
    let (body, marker) = text.rsplit_once("<!--").unwrap();
    let text = format!("{body}## ch02\n\nMore.\n\n<!--{marker}");
    let path = quipu_contract::ProjectPath::parse("outline-final.md").unwrap();
    let change = Change::by(&Actor::Person).why("scope").op(Op::Amend {
        path,
        bytes: Some(text.into_bytes()),
    });
    stage.open().validate(change).unwrap().publish().unwrap();
    assert_eq!(
        stage.in_state(State::Stale),
        ["audit"],
        "only what reads the whole outline"
    );
}

#[test]
fn approving_what_nobody_reviewed_is_told() {
    let stage = Stage::book(1, "");
    stage.play(Choice::default());
    let approve = || {
        decide_gate(
            &stage.open(),
            &Actor::Person,
            &job("approve-outline", None),
            AttemptResult::Approved,
            None,
        )
        .unwrap()
    };
    let draft = stage
        .text("outline-draft.md")
        .replace("The goal", "Another goal");
    std::fs::write(stage.root.join("outline-draft.md"), draft).unwrap();
    let names = |jobs: &[quipu_protocol::flow::Job]| {
        jobs.iter().map(ToString::to_string).collect::<Vec<_>>()
    };
    assert_eq!(
        names(&approve().stale),
        ["outline-readers", "outline-content"]
    );
    let fresh = Stage::book(1, "");
    fresh.play(Choice::default());
    let decided = decide_gate(
        &fresh.open(),
        &Actor::Person,
        &job("approve-outline", None),
        AttemptResult::Approved,
        None,
    )
    .unwrap();
    assert_eq!(names(&decided.stale), [""; 0]);
}
