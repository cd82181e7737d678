//! The part of a panel's state that the agents who report on it see: every number once. The agent
//! that weighs the panel also sees every open comment, in few words.
//!
//! Pure: the text of the state in, its extract out. The reports have nothing more, so a view does
//! not repeat them.

use quipu_contract::PanelPart;
use serde_json::{Map, Value, json};

use super::comment::Status;
use super::passage::shorten;

/// The characters that are left of a comment that was weighed before.
const KNOWN: usize = 120;
/// The characters that are left of a quotation.
const QUOTED: usize = 80;

/// The extract of a state. None if the text is no state.
pub(crate) fn extract_state(state: &str, part: PanelPart) -> Option<String> {
    let state: Value = serde_json::from_str(state).ok()?;
    let comments = state["comments"].as_array()?;
    let is_later = state["round"].as_u64().unwrap_or(1) > 1;
    let alone: Vec<&Value> = comments
        .iter()
        .filter(|c| c["joined_to"].is_null())
        .collect();
    let open: Vec<&Value> = alone.iter().copied().filter(|c| is_open(c)).collect();
    let mut fields = vec![
        ("round", state["round"].clone()),
        ("review_progress", progress(&state["review_progress"])),
        ("aggregates", aggregates(&state["aggregates"], part)),
        ("open_comments", state["open_comments"].clone()),
        ("resolved_comments", resolved(&alone)),
        ("verdict", state["verdict"].clone()),
    ];
    let mut lists = Vec::new();
    match part {
        PanelPart::Weigh => {
            lists.push(("reports", reports(&state["agent_outputs_summary"])));
            // A new comment of a later round is shown whole.
            let is_known = |comment: &Value| is_later && comment["answer"].is_object();
            let entry = |comment: &&Value| render(comment, is_known(comment).then_some(KNOWN));
            lists.push(("comments", open.iter().map(entry).collect()));
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
fn aggregates(sum: &Value, part: PanelPart) -> Value {
    let mut sum = sum.clone();
    let Some(fields) = sum.as_object_mut() else {
        return sum;
    };
    fields.remove("open");
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

/// A comment as an entry of a report has it: `s6.1 [important] L103 "words": what is wrong`. With a
/// limit, its words are left out, and its text and newest answer are cut.
fn render(comment: &Value, limit: Option<usize>) -> String {
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
    let quote = match limit {
        Some(_) => String::new(),
        None => format!(" \"{}\"", shorten(&text(&comment["quote"]), QUOTED)),
    };
    let cut = |text: String| match limit {
        Some(limit) => shorten(&text, limit),
        None => text,
    };
    let answered = match answer["text"].as_str() {
        Some(said) => format!(" → {}", cut(said.to_owned())),
        None => String::new(),
    };
    // Comments that were joined are named by what the panel said of all of them.
    let matter = &comment["matter"];
    let (with, said) = match matter["with"].as_array() {
        Some(with) => {
            let with: Vec<String> = with.iter().map(text).collect();
            (format!(" (with {})", with.join(", ")), &matter["text"])
        }
        None => (String::new(), &comment["text"]),
    };
    format!(
        "{}{with} [{}{status}] {path}L{}{quote}: {}{answered}",
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
        let comment = |id: &str, severity: &str, status: &str| {
            json!({"id": id, "severity": severity, "line": 3, "quote": "a knot", "status": status,
                "text": "It is vague.", "answer": (status != "open").then(|| json!({"text": "Still so."}))})
        };
        let many = (4..20).map(|n| comment(&format!("s1.{n}"), "minor", "open"));
        let comments: Vec<Value> = [
            comment("s1.1", "minor", "not-addressed"),
            comment("s1.2", "critical", "open"),
            comment("s1.3", "important", "withdrawn"),
        ]
        .into_iter()
        .chain(many)
        .collect();
        let state = json!({"round": round, "comments": comments, "verdict": null,
            "review_progress": {"failed_agents": ["s3"], "completed_agents": ["s1"]},
            "aggregates": {"overall": 3.5, "shared": [{"line": 3, "quote": "a knot", "comments": ["s1.1", "r1.1"]}]},
            "open_comments": {"critical": 1},
            "agent_outputs_summary": {
                "s1": {"title": "Title", "overall_score": 4, "confidence": 3, "summary": "Fine."},
                "s3": {"title": "Introduction", "overall_score": null}}});
        state.to_string()
    }

    #[test]
    fn the_agent_that_weighs_sees_each_open_comment_once() {
        let extract = extract_state(&state(2), PanelPart::Weigh).unwrap();
        let read: Value = serde_json::from_str(&extract).unwrap();
        assert_eq!(
            read["reports"],
            json!(["s1 Title: score 4, confidence 3: Fine."])
        );
        assert_eq!(read["comments"].as_array().unwrap().len(), 18);
        let first = "s1.1 [minor, not addressed] L3: It is vague. → Still so.";
        assert_eq!(read["comments"][0], first);
        assert_eq!(
            read["comments"][1],
            "s1.2 [critical] L3 \"a knot\": It is vague."
        );
        assert_eq!(read["resolved_comments"], json!({"withdrawn": 1}));
        assert_eq!(read["review_progress"]["failed_agents"], json!(["s3"]));
        let shared = json!([{"line": 3, "comments": ["s1.1", "r1.1"]}]);
        assert_eq!(read["aggregates"]["shared"], shared);
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
