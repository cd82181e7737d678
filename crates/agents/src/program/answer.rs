//! Reads a host's answer from the lines of its standard output, by the host's own data.

use crate::host::{Answer, Pick};
use crate::outcome::Usage;
use serde_json::Value;
use std::collections::BTreeMap;

/// What was read so far.
pub struct Reading<'a> {
    answer: &'a Answer,
    lies: &'a [String],
    message: String,
    joining: bool,
    bound: usize,
    pub too_long: bool,
    pub fault: Option<String>,
    pub usage: Usage,
}

/// What one line amounts to for those who look on.
#[derive(Default)]
pub struct Told {
    pub progress: Option<String>,
    pub usage: Option<Usage>,
}

impl<'a> Reading<'a> {
    pub fn new(answer: &'a Answer, lies: &'a [String], bound: usize) -> Self {
        Reading { answer, lies, message: String::new(), joining: false, bound, too_long: false, fault: None, usage: Usage::default() }
    }

    /// Takes a line of standard output.
    pub fn out(&mut self, line: &str) -> Told {
        self.suspect(line);
        if !self.answer.lines {
            self.extend(line, true);
            return Told { progress: short(line), usage: None };
        }
        let Ok(value) = serde_json::from_str::<Value>(line) else { return Told::default() };
        self.json(&value)
    }

    /// Takes a line of standard error.
    pub fn err(&mut self, line: &str) {
        self.suspect(line);
    }

    /// The final message, if there was one.
    pub fn message(&self) -> Option<String> {
        let text = self.message.trim();
        (!text.is_empty()).then(|| text.to_string())
    }

    fn suspect(&mut self, line: &str) {
        if self.fault.is_none() && self.lies.iter().any(|lie| line.contains(lie.as_str())) {
            self.fault = short(line);
        }
    }

    fn json(&mut self, value: &Value) -> Told {
        let mut told = Told::default();
        let mut joined = false;
        for pick in &self.answer.message {
            let Some(text) = picked(pick, value) else { continue };
            if !(pick.join && self.joining) {
                self.message.clear();
            }
            joined |= pick.join;
            self.extend(&text, false);
            told.progress = short(&text);
        }
        // A line of another kind ends a message that came in pieces.
        self.joining = joined;
        if let Some(fault) = self.answer.fault.iter().find_map(|pick| picked(pick, value)) {
            self.fault = short(&fault).or(Some("an error without words".to_string()));
        }
        if let Some(text) = self.answer.progress.iter().find_map(|pick| picked(pick, value)) {
            told.progress = short(&text);
        }
        for pick in self.answer.usage.iter().filter(|pick| matches(&pick.when, value)) {
            let used = Usage { input: sum(&pick.input, value), output: sum(&pick.output, value) };
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
        // Content in parts, as several hosts have it.
        Value::Array(parts) => {
            let texts: Vec<&str> = parts.iter().filter_map(|part| part.get("text")?.as_str()).collect();
            (!texts.is_empty()).then(|| texts.concat())
        }
        other => Some(other.to_string()),
    }
}

fn matches(when: &BTreeMap<String, String>, value: &Value) -> bool {
    when.iter().all(|(pointer, wanted)| match value.pointer(pointer) {
        Some(Value::String(text)) => text == wanted,
        Some(Value::Bool(truth)) => wanted.parse() == Ok(*truth),
        Some(Value::Number(number)) => number.as_i64().is_some_and(|number| wanted.parse() == Ok(number)),
        _ => false,
    })
}

fn sum(pointers: &[String], value: &Value) -> Option<u64> {
    let found: Vec<u64> = pointers.iter().filter_map(|pointer| value.pointer(pointer)?.as_u64()).collect();
    (!found.is_empty()).then(|| found.iter().sum())
}

/// The first words of a text, as one line.
fn short(text: &str) -> Option<String> {
    let line = text.lines().find(|line| !line.trim().is_empty())?.trim();
    Some(crate::transcript::cut(line, 300).to_string())
}
