//! The part of a panel's state that the agents who report on it see: every number once. The agent
//! that weighs the panel also sees every open comment, in few words.
//!
//! Pure: the text of the state in, its extract out. The reports have nothing more, so a view does
//! not repeat them.

use std::collections::BTreeSet;

use quipu_contract::PanelPart;
use serde_json::{Map, Value, json};

use super::comment::Status;
use super::passage::shorten;

/// The characters that are left of a comment that was weighed before.
const KNOWN: usize = 100;
/// The characters that are left of a new comment of a later round: its gist, to be placed by.
const NEW: usize = 160;
/// The characters that are left of a quotation.
const QUOTED: usize = 80;

/// The round of a state, from 1.
pub(crate) fn round_of(state: &str) -> u64 {
    let state: Option<Value> = serde_json::from_str(state).ok();
    state.and_then(|state| state["round"].as_u64()).unwrap_or(1)
}

/// The extract of a state. None if the text is no state.
pub(crate) fn extract_state(state: &str, part: PanelPart) -> Option<String> {
    let state: Value = serde_json::from_str(state).ok()?;
    let comments = state["comments"].as_array()?;
    let round = state["round"].as_u64().unwrap_or(1);
    let alone: Vec<&Value> = comments
        .iter()
        .filter(|c| c["joined_to"].is_null())
        .collect();
    let open: Vec<&Value> = alone.iter().copied().filter(|c| is_open(c)).collect();
    let mut fields = vec![
        ("round", state["round"].clone()),
        ("review_progress", progress(&state["review_progress"])),
        (
            "aggregates",
            aggregates(&state["aggregates"], part, round > 1),
        ),
        ("open_comments", state["open_comments"].clone()),
        ("resolved_comments", resolved(&alone)),
        ("verdict", state["verdict"].clone()),
    ];
    let mut lists = Vec::new();
    match part {
        PanelPart::Weigh if round > 1 => {
            let summary = &state["agent_outputs_summary"];
            fields.push(("scores", scores(summary, &open)));
            lists.extend(later_round(&state, round, &alone, &open));
        }
        PanelPart::Weigh => {
            lists.push(("reports", reports(&state["agent_outputs_summary"])));
            let entries = open.iter().map(|comment| render(comment, Shown::Whole));
            lists.push(("comments", entries.collect()));
        }
        // The issues are in the report that weighs the panel.
        PanelPart::SumUp => fields.push(("agents", titles(&state["agent_outputs_summary"]))),
    }
    let fields = fields
        .iter()
        .map(|(name, value)| format!("  {}: {value}", json!(name)));
    let lists = lists.iter().map(|(name, entries): &(&str, Vec<String>)| {
        let entries: Vec<String> = entries
            .iter()
            .map(|e| format!("\n    {}", json!(e)))
            .collect();
        let end = if entries.is_empty() { "" } else { "\n  " };
        format!("  {}: [{}{end}]", json!(name), entries.join(","))
    });
    let all: Vec<String> = fields.chain(lists).collect();
    Some(format!("{{\n{}\n}}\n", all.join(",\n")))
}

/// The task of the agent that weighs the panel in a later round: the new comments in the order
/// of the text, each with the others on its passage; what this round resolved; and of the open
/// comments that are placed already the grave ones and those that a new one may repeat.
fn later_round(
    state: &Value,
    round: u64,
    alone: &[&Value],
    open: &[&Value],
) -> Vec<(&'static str, Vec<String>)> {
    let is_new = |c: &Value| c["round"].as_u64() == Some(round);
    let shared = state["aggregates"]["shared"].as_array();
    let beside = |comment: &Value| -> Vec<String> {
        let groups = shared.into_iter().flatten();
        let groups = groups.filter_map(|group| group["comments"].as_array());
        let own = groups.filter(|ids| ids.contains(&comment["id"]));
        own.flatten()
            .filter(|id| **id != comment["id"])
            .filter_map(|id| id.as_str().map(str::to_owned))
            .collect()
    };
    let mut new: Vec<&Value> = open.iter().copied().filter(|c| is_new(c)).collect();
    new.sort_by_key(|c| c["line"].as_u64());
    let repeated: BTreeSet<String> = new.iter().flat_map(|c| beside(c)).collect();
    let is_shown = |c: &Value| {
        let id = c["id"].as_str().unwrap_or_default();
        !is_new(c) && (c["severity"] != "minor" || repeated.contains(id))
    };
    let is_resolved =
        |c: &Value| !is_open(c) && c["answer"]["round"].as_u64() == Some(round) && !is_new(c);
    let known = |c: &&Value| render(c, Shown::Known);
    let shown = open.iter().filter(|c| is_shown(c)).map(known);
    let resolved = alone.iter().filter(|c| is_resolved(c)).map(known);
    vec![
        (
            "comments",
            new.iter()
                .map(|c| render(c, Shown::New(&beside(c))))
                .collect(),
        ),
        ("earlier", shown.collect()),
        ("resolved", resolved.collect()),
    ]
}

fn is_open(comment: &Value) -> bool {
    let status = comment["status"].as_str().unwrap_or_default();
    Status::OPEN
        .iter()
        .any(|open| json!(open).as_str() == Some(status))
}

/// The agents that have not reported. Those that have follow from the reports.
fn progress(progress: &Value) -> Value {
    let missing = ["failed_agents", "not_applicable_agents", "excused_agents"];
    let named = missing.map(|name| (name.to_owned(), progress[name].clone()));
    Value::Object(Map::from_iter(named))
}

/// The numbers. Comments on one passage are named by their ids: the words are in the comments.
fn aggregates(sum: &Value, part: PanelPart, is_later: bool) -> Value {
    let mut sum = sum.clone();
    let Some(fields) = sum.as_object_mut() else {
        return sum;
    };
    fields.remove("open");
    if is_later {
        fields.remove("shared");
    }
    match (part, fields.get_mut("shared").and_then(Value::as_array_mut)) {
        (PanelPart::Weigh, Some(shared)) => {
            for passage in shared.iter_mut().filter_map(Value::as_object_mut) {
                passage.remove("quote");
            }
        }
        (PanelPart::Weigh, None) => {}
        (PanelPart::SumUp, _) => {
            fields.remove("shared");
            fields.remove("conflicts");
        }
    }
    sum
}

/// The number of comments of each status that are no longer open.
fn resolved(comments: &[&Value]) -> Value {
    let mut counts: Map<String, Value> = Map::new();
    for comment in comments.iter().filter(|c| !is_open(c)) {
        let status = comment["status"].as_str().unwrap_or_default();
        let before = counts.get(status).and_then(Value::as_u64).unwrap_or(0);
        counts.insert(status.to_owned(), json!(before + 1));
    }
    Value::Object(counts)
}

/// The titles of the agents by id.
fn titles(summary: &Value) -> Value {
    let agents = summary.as_object().into_iter().flatten();
    let scored = agents.filter(|(_, agent)| agent["overall_score"].is_u64());
    let title = |(id, agent): (&String, &Value)| (id.clone(), agent["title"].clone());
    Value::Object(scored.map(title).collect())
}

/// The score, the confidence and the open comments of each agent that has reported, in one line.
fn scores(summary: &Value, open: &[&Value]) -> Value {
    let agents = summary.as_object().into_iter().flatten();
    let scored = agents.filter(|(_, agent)| agent["overall_score"].is_u64());
    let line = |(id, agent): (&String, &Value)| {
        let own = open.iter().filter(|c| c["agent"] == json!(id));
        let (score, confidence) = (&agent["overall_score"], &agent["confidence"]);
        format!("{id} {score}, {confidence}, {} open", own.count())
    };
    json!(scored.map(line).collect::<Vec<_>>().join("; "))
}

/// A line for each agent that has reported.
fn reports(summary: &Value) -> Vec<String> {
    let agents = summary.as_object().into_iter().flatten();
    let scored = agents.filter(|(_, agent)| agent["overall_score"].is_u64());
    let line = |(id, agent): (&String, &Value)| {
        format!(
            "{id} {}: score {}, confidence {}: {}",
            agent["title"].as_str().unwrap_or_default(),
            agent["overall_score"],
            agent["confidence"],
            agent["summary"].as_str().unwrap_or_default()
        )
    };
    scored.map(line).collect()
}

/// How much of a comment is shown.
#[derive(Clone, Copy)]
enum Shown<'b> {
    Whole,
    /// A new comment of a later round, with the others on its passage.
    New(&'b [String]),
    /// One that is placed already.
    Known,
}

/// A comment as an entry of a report has it: `s6.1 [important] L103 "words": what is wrong`. An answer is
/// shown if a part of it was done.
fn render(comment: &Value, shown: Shown<'_>) -> String {
    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    let answer = &comment["answer"];
    let status = match answer.is_object() {
        true => format!(", {}", text(&comment["status"]).replace('-', " ")),
        false => String::new(),
    };
    let path = match comment["path"].as_str() {
        Some(path) => format!("{path} "),
        None => String::new(),
    };
    let (beside, limit) = match shown {
        Shown::Whole => (&[][..], None),
        Shown::New(beside) => (beside, Some(NEW)),
        Shown::Known => (&[][..], Some(KNOWN)),
    };
    let quote = match shown {
        Shown::Known => String::new(),
        _ => format!(" \"{}\"", shorten(&text(&comment["quote"]), QUOTED)),
    };
    let cut = |text: String| match limit {
        Some(limit) => shorten(&text, limit),
        None => text,
    };
    let answered = match answer["text"].as_str() {
        Some(said) if comment["status"] != "not-addressed" => {
            format!(" → {}", cut(said.to_owned()))
        }
        _ => String::new(),
    };
    let beside = match beside.is_empty() {
        true => String::new(),
        false => format!(" (passage of {})", beside.join(", ")),
    };
    // Comments that were joined are named by what the panel said of all of them.
    let matter = &comment["matter"];
    let said = match matter["text"].is_string() {
        true => &matter["text"],
        false => &comment["text"],
    };
    format!(
        "{} [{}{status}] {path}L{}{beside}{quote}: {}{answered}",
        text(&comment["id"]),
        text(&comment["severity"]),
        comment["line"],
        cut(text(said)),
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    fn state(round: u64) -> String {
        let comment = |id: &str, severity: &str, status: &str, of: u64| {
            json!({"id": id, "agent": "s1", "severity": severity, "line": 3, "quote": "a knot", "status": status,
                "text": "It is vague.", "round": of,
                "answer": (status != "open").then(|| json!({"round": round, "text": "Still so."}))})
        };
        let comments = [
            comment("s1.1", "minor", "not-addressed", 1),
            comment("s1.2", "critical", "open", round),
            comment("s1.3", "important", "withdrawn", 1),
            comment("s1.4", "important", "partly", 1),
            comment("s1.5", "minor", "not-addressed", 1),
        ];
        let state = json!({"round": round, "comments": comments, "verdict": null,
            "review_progress": {"failed_agents": ["s3"], "completed_agents": ["s1"]},
            "aggregates": {"overall": 3.5, "shared": [{"line": 3, "quote": "a knot", "comments": ["s1.1", "s1.2"]}]},
            "open_comments": {"critical": 1},
            "agent_outputs_summary": {
                "s1": {"title": "Title", "overall_score": 4, "confidence": 3, "summary": "Fine."},
                "s3": {"title": "Introduction", "overall_score": null}}});
        state.to_string()
    }

    #[test]
    fn the_agent_that_weighs_sees_each_open_comment_once() {
        let extract = extract_state(&state(1), PanelPart::Weigh).unwrap();
        let read: Value = serde_json::from_str(&extract).unwrap();
        assert_eq!(
            read["reports"],
            json!(["s1 Title: score 4, confidence 3: Fine."])
        );
        assert_eq!(read["comments"].as_array().unwrap().len(), 4);
        assert_eq!(
            read["comments"][1],
            "s1.2 [critical] L3 \"a knot\": It is vague."
        );
        assert_eq!(read["resolved_comments"], json!({"withdrawn": 1}));
        assert_eq!(read["review_progress"]["failed_agents"], json!(["s3"]));
        let shared = json!([{"line": 3, "comments": ["s1.1", "s1.2"]}]);
        assert_eq!(read["aggregates"]["shared"], shared);
    }

    #[test]
    fn in_a_later_round_it_sees_what_is_new_and_the_grave_comments_that_are_placed() {
        let extract = extract_state(&state(2), PanelPart::Weigh).unwrap();
        let read: Value = serde_json::from_str(&extract).unwrap();
        let new = json!(["s1.2 [critical] L3 (passage of s1.1) \"a knot\": It is vague."]);
        assert_eq!(read["comments"], new);
        // A minor one is shown if a new comment may repeat it.
        let earlier = json!([
            "s1.1 [minor, not addressed] L3: It is vague.",
            "s1.4 [important, partly] L3: It is vague. → Still so."
        ]);
        assert_eq!(read["earlier"], earlier);
        let resolved = json!(["s1.3 [important, withdrawn] L3: It is vague. → Still so."]);
        assert_eq!(read["resolved"], resolved);
        assert_eq!(read["scores"], "s1 4, 3, 4 open");
        assert!(read["aggregates"]["shared"].is_null() && read["reports"].is_null());
    }

    #[test]
    fn the_agent_that_sums_up_sees_the_numbers_and_who_reported() {
        let extract = extract_state(&state(1), PanelPart::SumUp).unwrap();
        let read: Value = serde_json::from_str(&extract).unwrap();
        assert_eq!(read["agents"], json!({"s1": "Title"}));
        assert_eq!(read["open_comments"], json!({"critical": 1}));
        assert!(read["comments"].is_null() && read["reports"].is_null());
        assert!(extract_state("no state", PanelPart::SumUp).is_none());
    }
}
