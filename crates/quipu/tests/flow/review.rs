//! Tests of the review flow: it reaches a verdict, with only the reviewers that the manuscript
//! needs.

use quipu_contract::ProjectPath;
use quipu_protocol::flow::{Choice, State};
use serde_json::Value;

use crate::stage::Stage;

const PLAIN: &str = "# On knots\n\nA knot is a thought that stays.\n";

fn state(stage: &Stage) -> Value {
    serde_json::from_str(&stage.text("system_state.json")).unwrap()
}

/// Puts a comment into a report of the script.
fn comment(stage: &Stage, id: &str, comment: &str) -> String {
    let path = format!("agent_outputs/{id}.md");
    let text = std::fs::read_to_string(stage.script.folder.join(&path)).unwrap();
    let text = text.replacen("- None", &format!("- {comment}"), 1);
    stage.script.put(&path, &text);
    text
}

/// Puts the issues and rulings of quality control into its report.
fn place(stage: &Stage, issues: &str) {
    let text = std::fs::read_to_string(stage.script.folder.join("agent_outputs/qc.md")).unwrap();
    let (before, _) = text.split_once("\n## 6.").unwrap_or((&text, ""));
    let (before, verdict) = match before.split_once("\n## 8.") {
        Some((before, verdict)) => (before, verdict.to_owned()),
        None => (before, text.split_once("\n## 8.").unwrap().1.to_owned()),
    };
    stage.script.put(
        "agent_outputs/qc.md",
        &format!("{before}\n## 6. Issues by Severity\n{issues}\n## 8.{verdict}"),
    );
}

const CONFLICT: &str = "### Important\n- s5.1: It is vague.\n### Minor\n- r5.1: It is long.\n\n\
                        ## 7. Conflicts\n- s5.1 | r5.1: s5.1 holds: it has the words.\n";

#[test]
fn a_review_ends_with_a_verdict_and_its_state_agrees_with_its_reports() {
    let stage = Stage::review(PLAIN, "full");
    let low = comment(
        &stage,
        "s5",
        "[important] L3 \"a thought that stays\": Expand it.",
    )
    .replace(":** 4", ":** 2")
    .replace("Confidence:** 2", "Confidence:** 4");
    stage.script.put("agent_outputs/s5.md", &low);
    let short = "[minor] L3 \"A knot is a thought\": Shorten it, against s5.1.";
    comment(&stage, "r5", short);
    place(&stage, CONFLICT);
    let played = stage.play(Choice {
        jobs: 4,
        ..Choice::default()
    });
    assert_eq!(played.summary.failed, 0, "{:#?}", played.events);
    for step in ["s10", "r3", "r4"] {
        assert_eq!(stage.state(step, None).0, State::Skipped, "{step}");
    }
    assert_eq!(stage.state("es", None).0, State::Done);
    let json = state(&stage);
    assert_eq!(json["agent_outputs_summary"]["s5"]["overall_score"], 2);
    assert_eq!(
        json["agent_outputs_summary"]["r3"]["status"],
        "not_applicable"
    );
    assert_eq!(
        json["review_progress"]["completed_agents"]
            .as_array()
            .unwrap()
            .len(),
        23
    );
    assert_eq!(json["review_progress"]["current_phase"], "done");
    assert_eq!(json["aggregates"]["domains"][0]["mean"], 3.8);
    assert_eq!(json["aggregates"]["overall"], 3.9);
    assert_eq!(json["aggregates"]["verdict"], "needs revision");
    assert_eq!(json["verdict"], "needs revision");
    assert_eq!(json["round"], 1);
    assert_eq!(json["open_comments"]["important"], 1);
    assert_eq!(json["manuscript_context"]["title"], "On knots");
    assert_eq!(json["last_action"], "es completed with score 4.");
    let shared = &json["aggregates"]["shared"][0];
    assert_eq!(shared["comments"], serde_json::json!(["s5.1", "r5.1"]));
    let conflict = &json["aggregates"]["conflicts"][0];
    assert_eq!(conflict["comments"], serde_json::json!(["r5.1", "s5.1"]));
    assert_eq!(conflict["ruling"], "s5.1 holds: it has the words.");
    assert_eq!(stage.play(Choice::default()).accepted(), [""; 0]);
}

/// A revision: only agents with open comments, and those whose section has changed, report again.
#[test]
fn a_revision_opens_a_round_for_the_agents_that_it_concerns() {
    let stage = Stage::review(PLAIN, "full");
    comment(
        &stage,
        "s5",
        "[important] L3 \"a thought that stays\": Say which.",
    );
    comment(
        &stage,
        "r5",
        "[minor] L3 \"A knot\": Shorten it, against s5.1.",
    );
    place(&stage, CONFLICT);
    stage.play(Choice::default());
    let before = stage.text("agent_outputs/s3.md");
    let project = stage.open();
    let revision = |text: &str| quipu_protocol::review::Revision {
        bibliography: None,
        text: text.into(),
        reply: Some(b"We say which thought.\n".to_vec()),
        why: None,
    };
    let person = quipu_contract::Actor::Person;
    let new = "# On wet knots\n\nA knot is a thought that a cord keeps.\n";
    let revised = quipu_protocol::review::revise(&project, &person, revision(new)).unwrap();
    // s1 judges the title, r7 the whole text.
    assert_eq!(revised.again, ["s1", "s5", "r5", "r7"]);
    assert_eq!(revised.round, 2);
    drop(project);
    let json = state(&stage);
    assert_eq!(
        (&json["round"], &json["verdict"]),
        (&2.into(), &Value::Null)
    );
    assert_eq!(json["open_comments"]["important"], 1);
    assert_eq!(stage.text("agent_outputs/round-1/manuscript.md"), PLAIN);
    assert_eq!(
        stage.text("agent_outputs/round-1/reply.md"),
        "We say which thought.\n"
    );
    assert_eq!(stage.in_state(State::Stale), [""; 0]);
    // s5 repeats its report of round 1 and is asked again; r5 withdraws its comment.
    let answer = |id: &str, answer: &str| {
        let fresh = quipu_testkit::report(id, &format!("{id} Reviewer"), &[], 4);
        let scores = stage.text(&format!("agent_outputs/round-1/{id}.md"));
        let scores = scores.split_once("## 3.").unwrap().1.to_owned();
        let head = fresh.split_once("## 3.").unwrap().0.to_owned();
        let text = format!("{head}## 3.{scores}");
        text.replace(
            "\n<!--",
            &format!("\n## 4. Earlier Comments\n- {answer}\n\n<!--"),
        )
    };
    let with = answer(
        "s5",
        "s5.1 [addressed] L3 \"that a cord keeps\": It says which.",
    );
    stage.script.put("agent_outputs/s5.md.again", &with);
    let with = answer("r5", "r5.1 [withdrawn]: It is short now.");
    stage.script.put("agent_outputs/r5.md", &with);
    place(&stage, "### Minor\n- None\n");
    let played = stage.play(Choice::default());
    let mut accepted = played.accepted();
    accepted.sort();
    assert_eq!(
        accepted,
        ["es", "qc", "r5", "r7", "s1", "s5"],
        "{:#?}",
        played.events
    );
    let sent_back = played.sent_back();
    assert!(
        sent_back.len() == 1
            && sent_back[0].contains("s5.1 of an earlier round is not answered")
            && sent_back[0].contains("\"a thought that stays\" is not in the text"),
        "{sent_back:#?}"
    );
    assert_eq!(stage.text("agent_outputs/s3.md"), before);
    let json = state(&stage);
    assert_eq!(json["comments"][0]["id"], "s5.1");
    assert_eq!(json["comments"][0]["status"], "addressed");
    assert_eq!(json["comments"][1]["status"], "withdrawn");
    assert_eq!(json["aggregates"]["verdict"], "ready");
    // Nothing is open: a change outside the sections of others concerns only r7.
    let project = stage.open();
    let new = new.replace("# On wet knots\n", "# On wet knots\n\nAfter all.\n");
    let revised = quipu_protocol::review::revise(&project, &person, revision(&new)).unwrap();
    assert_eq!((revised.again, revised.round), (vec!["r7".to_owned()], 3));
    assert!(quipu_protocol::review::revise(&project, &person, revision(&new)).is_err());
    drop(project);
    // A report that was kept once is not excused when a later revision calls for it.
    let mut accepted = stage.play(Choice::default()).accepted();
    accepted.sort();
    assert_eq!(accepted, ["es", "qc", "r7"]);
    let new = new.replace("# On wet", "# On dry");
    let revised = quipu_protocol::review::revise(&stage.open(), &person, revision(&new)).unwrap();
    assert_eq!(revised.again, ["s1", "r7"]);
    let mut accepted = stage.play(Choice::default()).accepted();
    accepted.sort();
    assert_eq!(accepted, ["es", "qc", "r7", "s1"]);
}

#[test]
fn the_manuscript_calls_its_reviewers() {
    let stage = Stage::review(
        "# A trial\n\nAll participants gave consent. The dataset is on Zenodo.\n",
        "full",
    );
    std::fs::create_dir_all(stage.root.join("supplementary")).unwrap();
    std::fs::write(stage.root.join("supplementary/data.csv"), "a,b\n").unwrap();
    for step in ["s10", "r3", "r4"] {
        assert_ne!(stage.state(step, None).0, State::Skipped, "{step}");
    }
    let manifest = stage
        .text("quipu.toml")
        .replace("[vars]\n", "[vars]\nactivate_r3 = \"no\"\n");
    std::fs::write(stage.root.join("quipu.toml"), manifest).unwrap();
    assert_eq!(stage.state("r3", None).0, State::Skipped);
}

#[test]
fn the_lite_mode_has_three_reviewers() {
    let stage = Stage::review(PLAIN, "lite");
    let played = stage.play(Choice::default());
    let mut accepted = played.accepted();
    accepted.sort();
    assert_eq!(
        accepted,
        ["es", "qc", "r", "s", "w"],
        "{:#?}",
        played.events
    );
    assert_eq!(state(&stage)["aggregates"]["overall"], 4.0);
}

#[test]
fn a_report_out_of_form_goes_back_with_its_line() {
    let stage = Stage::review(PLAIN, "lite");
    let path = stage.script.folder.join("agent_outputs/s.md");
    let good = std::fs::read_to_string(&path).unwrap();
    stage.script.put(
        "agent_outputs/s.md",
        &good.replace("**Score:** 4", "**Score:** 4.5"),
    );
    stage.script.put("agent_outputs/s.md.again", &good);
    let played = stage.play(Choice::default());
    assert_eq!(
        played.sent_back(),
        ["`agent_outputs/s.md` line 4: **Score:** is `4.5`; it must be a whole number from 1 to 5"]
    );
    let failing = Stage::review(PLAIN, "lite");
    failing.script.put("agent_outputs/w.md.acts", "nothing\n");
    failing.play(Choice::default());
    let json = state(&failing);
    assert_eq!(json["agent_outputs_summary"]["w"]["status"], "failed");
    assert_eq!(json["review_progress"]["failed_agents"][0], "w");
    assert_eq!(failing.state("qc", None).0, State::Blocked);
}

#[test]
fn a_failed_reviewer_is_excused_and_enters_no_average() {
    let json = excuse("full", "w1");
    assert_eq!(json["aggregates"]["domains"].as_array().unwrap().len(), 3);
    assert_eq!(json["aggregates"]["verdict"], "ready");
    assert_eq!(json["verdict"], "needs revision");
}

/// The only reviewer of a domain: no report of it exists for the agents that weigh the reports.
#[test]
fn the_only_reviewer_of_a_domain_may_be_excused() {
    let json = excuse("lite", "w");
    assert_eq!(json["aggregates"]["domains"].as_array().unwrap().len(), 2);
}

/// Plays a panel whose reviewer `id` fails and is excused; returns the state at the end.
fn excuse(mode: &str, id: &str) -> serde_json::Value {
    let stage = Stage::review(PLAIN, mode);
    stage
        .script
        .put(&format!("agent_outputs/{id}.md.acts"), "nothing\n");
    stage.play(Choice::default());
    let project = stage.open();
    let job = quipu_protocol::flow::Job {
        step: id.into(),
        unit: None,
    };
    let decided = quipu_protocol::flow::decide_gate(
        &project,
        &quipu_contract::Actor::Person,
        &job,
        quipu_protocol::flow::AttemptResult::Approved,
        Some("its host is down"),
    )
    .unwrap();
    assert!(decided.excused);
    drop(project);
    // qc has to name it.
    let qc = std::fs::read_to_string(stage.script.folder.join("agent_outputs/qc.md")).unwrap();
    let named = qc.replace("qc has read it.", &format!("qc has read all; {id} failed."));
    stage.script.put("agent_outputs/qc.md.again", &named);
    let played = stage.play(Choice::default());
    assert_eq!(
        played.sent_back(),
        [format!(
            "`agent_outputs/qc.md` line 1: {id} failed and is not counted: name it in the summary \
             or the findings"
        )]
    );
    assert_eq!(
        stage.state("es", None).0,
        State::Done,
        "{:#?}",
        played.events
    );
    let json = state(&stage);
    assert_eq!(json["agent_outputs_summary"][id]["status"], "failed");
    assert_eq!(json["review_progress"]["excused_agents"][0], id);
    assert_eq!(json["review_progress"]["current_phase"], "done");
    json
}

#[test]
fn a_verdict_waits_for_all_reports() {
    let stage = Stage::review(PLAIN, "lite");
    stage.play(Choice {
        steps: vec!["s".into()],
        ..Choice::default()
    });
    let json = state(&stage);
    assert_eq!(json["agent_outputs_summary"]["s"]["status"], "completed");
    assert_eq!(json["aggregates"]["verdict"], Value::Null);
    assert_eq!(json["verdict"], Value::Null);
    stage.play(Choice::default());
    assert_eq!(state(&stage)["verdict"], "needs revision");
}

#[test]
fn a_report_written_by_hand_is_in_the_state_at_the_next_look() {
    let stage = Stage::review(PLAIN, "lite");
    let text = std::fs::read_to_string(stage.script.folder.join("agent_outputs/s.md")).unwrap();
    std::fs::create_dir_all(stage.root.join("agent_outputs")).unwrap();
    std::fs::write(stage.root.join("agent_outputs/s.md"), text).unwrap();
    let project = stage.open();
    assert!(
        quipu_protocol::flow::refresh_panel(&project, &quipu_protocol::flow::FlowCache::default())
            .unwrap()
    );
    assert_eq!(
        state(&stage)["agent_outputs_summary"]["s"]["status"],
        "completed"
    );
    assert!(
        project
            .store
            .read(&ProjectPath::parse("system_state.json").unwrap())
            .unwrap()
            .is_some()
    );
}
