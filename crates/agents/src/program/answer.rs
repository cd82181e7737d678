//! Reads a host's answer from the lines of its standard output, by the rules of the host's table.

use crate::host::{Answer, Pick};
use crate::outcome::Usage;
use serde_json::Value;
use std::collections::BTreeMap;

/// The state of reading one answer.
pub struct Reading<'a> {
    answer: &'a Answer,
    lies: &'a [String],
    message: String,
    joining: bool,
    bound: usize,
    pub too_long: bool,
    pub fault: Option<String>,
    /// The last error text it printed.
    pub complaint: Option<String>,
    pub usage: Usage,
}

/// The progress and usage that one line reports.
#[derive(Default)]
pub struct Parsed {
    pub progress: Option<String>,
    pub usage: Option<Usage>,
}

impl<'a> Reading<'a> {
    pub fn new(answer: &'a Answer, lies: &'a [String], bound: usize) -> Self {
        Reading {
            answer,
            lies,
            message: String::new(),
            joining: false,
            bound,
            too_long: false,
            fault: None,
            complaint: None,
            usage: Usage::default(),
        }
    }

    /// Takes a line of standard output.
    pub fn out(&mut self, line: &str) -> Parsed {
        self.suspect(line);
        if !self.answer.lines {
            self.extend(line, true);
            return Parsed {
                progress: short(line),
                usage: None,
            };
        }
        let Ok(value) = serde_json::from_str::<Value>(line) else {
            return Parsed::default();
        };
        self.json(&value)
    }

    /// Takes a line of standard error.
    pub fn err(&mut self, line: &str) {
        self.suspect(line);
        self.complaint = short(line).or(self.complaint.take());
    }

    /// Returns the final message, if any.
    pub fn message(&self) -> Option<String> {
        let text = self.message.trim();
        (!text.is_empty()).then(|| text.to_string())
    }

    fn suspect(&mut self, line: &str) {
        if self.fault.is_none() && self.lies.iter().any(|lie| line.contains(lie.as_str())) {
            self.fault = short(line);
        }
    }

    fn json(&mut self, value: &Value) -> Parsed {
        let mut told = Parsed::default();
        let mut joined = false;
        for pick in &self.answer.message {
            let Some(text) = picked(pick, value) else {
                continue;
            };
            if !(pick.join && self.joining) {
                self.message.clear();
            }
            joined |= pick.join;
            self.extend(&text, false);
            told.progress = short(&text);
        }
        // A line of another kind ends a message that came in pieces.
        self.joining = joined;
        if let Some(fault) = self
            .answer
            .fault
            .iter()
            .find_map(|pick| picked(pick, value))
        {
            self.fault = short(&fault).or(Some("an error without a message".to_string()));
        }
        if let Some(text) = self
            .answer
            .progress
            .iter()
            .find_map(|pick| picked(pick, value))
        {
            told.progress = short(&text);
        }
        for pick in self
            .answer
            .usage
            .iter()
            .filter(|pick| matches(&pick.when, value))
        {
            let used = Usage {
                input: sum(&pick.input, value),
                output: sum(&pick.output, value),
            };
            if pick.each {
                self.usage.add(used);
            } else {
                self.usage = used;
            }
            told.usage = Some(self.usage);
        }
        told
    }

    fn extend(&mut self, text: &str, line: bool) {
        if self.message.len() + text.len() > self.bound {
            self.too_long = true;
            return;
        }
        self.message.push_str(text);
        if line {
            self.message.push('\n');
        }
    }
}

fn picked(pick: &Pick, value: &Value) -> Option<String> {
    if !matches(&pick.when, value) {
        return None;
    }
    match value.pointer(&pick.text)? {
        Value::String(text) => Some(text.clone()),
        Value::Null => None,
        // Several hosts split content into parts.
        Value::Array(parts) => {
            let texts: Vec<&str> = parts
                .iter()
                .filter_map(|part| part.get("text")?.as_str())
                .collect();
            (!texts.is_empty()).then(|| texts.concat())
        }
        other => Some(other.to_string()),
    }
}

fn matches(when: &BTreeMap<String, String>, value: &Value) -> bool {
    when.iter()
        .all(|(pointer, wanted)| match value.pointer(pointer) {
            Some(Value::String(text)) => text == wanted,
            Some(Value::Bool(truth)) => wanted.parse() == Ok(*truth),
            Some(Value::Number(number)) => number
                .as_i64()
                .is_some_and(|number| wanted.parse() == Ok(number)),
            _ => false,
        })
}

fn sum(pointers: &[String], value: &Value) -> Option<u64> {
    let found: Vec<u64> = pointers
        .iter()
        .filter_map(|pointer| value.pointer(pointer)?.as_u64())
        .collect();
    (!found.is_empty()).then(|| found.iter().sum())
}

/// Returns the first nonempty line of a text, shortened.
fn short(text: &str) -> Option<String> {
    let line = text.lines().find(|line| !line.trim().is_empty())?.trim();
    Some(crate::transcript::cut(line, 300).to_string())
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Reads lines by rules in TOML.
    fn read(rules: &str, lines: &[&str]) -> (Option<String>, Option<String>, Usage) {
        let answer: Answer = toml::from_str(rules).unwrap();
        let mut reading = Reading::new(&answer, &[], 1000);
        for line in lines {
            reading.out(line);
        }
        (reading.message(), reading.fault, reading.usage)
    }

    #[test]
    fn the_last_message_wins_unless_pieces_join() {
        let rules =
            "lines = true\nmessage = [{ when = { \"/type\" = \"text\" }, text = \"/part/text\" }]";
        let lines = [
            r#"{"type":"text","part":{"text":"first"}}"#,
            "garbage",
            r#"{"type":"text","part":{"text":"last"}}"#,
        ];
        assert_eq!(read(rules, &lines).0.as_deref(), Some("last"));

        let rules = "lines = true\nmessage = [{ when = { \"/role\" = \"assistant\" }, text = \"/content\", join = true }]";
        let lines = [
            r#"{"role":"assistant","content":"I will look."}"#,
            r#"{"type":"tool_use"}"#,
            r#"{"role":"assistant","content":"All "}"#,
            r#"{"role":"assistant","content":"完成"}"#,
        ];
        assert_eq!(read(rules, &lines).0.as_deref(), Some("All 完成"));
    }

    #[test]
    fn content_in_parts_is_joined_and_nothing_is_no_message() {
        let rules = "lines = true\nmessage = [{ text = \"/content\" }]";
        let parts = r#"{"content":[{"type":"text","text":"a"},{"type":"image"},{"type":"text","text":"b"}]}"#;
        assert_eq!(read(rules, &[parts]).0.as_deref(), Some("ab"));
        assert_eq!(
            read(
                rules,
                &[
                    r#"{"content":null}"#,
                    r#"{"content":[]}"#,
                    r#"{"content":"  "}"#
                ]
            )
            .0,
            None
        );
    }

    #[test]
    fn faults_and_tokens_are_found_by_their_rules() {
        let rules = r#"
            lines = true
            fault = [{ when = { "/type" = "result", "/is_error" = "true" }, text = "/result" }]
            usage = [{ when = { "/type" = "step" }, input = ["/in", "/cached"], output = ["/out"], each = true }]
        "#;
        let lines = [
            r#"{"type":"step","in":10,"cached":5,"out":2}"#,
            r#"{"type":"step","in":1,"out":1}"#,
            r#"{"type":"result","is_error":true,"result":"401\nmore"}"#,
        ];
        let (_, fault, usage) = read(rules, &lines);
        assert_eq!(fault.as_deref(), Some("401"));
        assert_eq!(
            usage,
            Usage {
                input: Some(16),
                output: Some(3)
            }
        );
        assert_eq!(
            read(
                rules,
                &[r#"{"type":"result","is_error":false,"result":"fine"}"#]
            )
            .1,
            None
        );
    }
}
