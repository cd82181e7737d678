//! Consults a judge for one claim, or a reader for one text. The judge is given that and nothing
//! else.
//!
//! `command:PROGRAM` gets JSON on stdin (see `command_agent`). Every other name is an agent of
//! `quipu-agents`, prompted in words in a separate folder outside the project. An answer is
//! accepted only in the requested form.

use std::path::{Path, PathBuf};
use std::time::Duration;

use quipu_agents::{Adapter, Assignment, Bounds, Names, Stop, Watch};
use quipu_claims::{Evidence, Verdict};
use quipu_contract::{Contract, Language};
use quipu_protocol::{ClaimJudge, Ruling};
use serde_json::{Value, json};

use crate::agents::{kept_out, open_adapter};
use crate::answer::Failure;
use crate::command_agent::CommandAgent;

/// Time limit of one question.
const PATIENCE: Duration = Duration::from_secs(300);

/// A program or an agent that answers questions.
pub enum JudgeClient {
    Program(CommandAgent),
    Agent {
        agent: Box<dyn Adapter>,
        name: String,
        root: PathBuf,
        language: Language,
    },
}

impl JudgeClient {
    pub fn of(name: &str, contract: &Contract, root: &Path) -> Result<JudgeClient, Failure> {
        match name {
            "rehearse" | "script" => Err(Failure::usage(
                format!("`{name}` has no opinion"),
                "an agent, or command:PROGRAM ARGUMENTS",
            )),
            _ if name.starts_with("command:") => {
                Ok(JudgeClient::Program(CommandAgent::parse(name)?))
            }
            _ => Ok(JudgeClient::Agent {
                agent: open_adapter(name, None, contract, root)?,
                name: name.to_owned(),
                root: root.to_owned(),
                language: contract.language,
            }),
        }
    }

    pub fn name(&self) -> &str {
        match self {
            JudgeClient::Program(program) => program.name(),
            JudgeClient::Agent { name, .. } => name,
        }
    }

    /// Asks a question: as JSON to a program, in words to an agent.
    fn answer(
        &self,
        question: &Value,
        words: impl Fn(Language) -> String,
    ) -> Result<Value, String> {
        match self {
            JudgeClient::Program(program) => program.call(question),
            JudgeClient::Agent {
                agent,
                name,
                root,
                language,
            } => consult(agent.as_ref(), name, root, *language, words(*language)),
        }
    }

    /// Asks for one sentence and its line.
    pub fn read(
        &self,
        text: &str,
        first_line: usize,
        question: &str,
    ) -> Result<(String, usize), String> {
        let asked = json!({"question": question, "first_line": first_line, "text": text});
        let answer = self.answer(&asked, |language| {
            reading_brief(language, text, first_line, question)
        })?;
        let said = answer["answer"]
            .as_str()
            .ok_or("its answer has no `answer`")?
            .to_owned();
        let line = answer["line"]
            .as_u64()
            .and_then(|line| usize::try_from(line).ok())
            .ok_or("its answer has no `line`")?;
        let last = first_line + text.lines().count();
        if !(first_line..=last).contains(&line) {
            return Err(format!("line {line} is not in what it was shown"));
        }
        Ok((said, line))
    }
}

impl ClaimJudge for JudgeClient {
    fn name(&self) -> &str {
        self.name()
    }

    fn rule(&self, claim: &str, evidence: &[Evidence]) -> Result<Ruling, String> {
        let asked = json!({"claim": claim, "evidence": evidence});
        let answer = self.answer(&asked, |language| judging_brief(language, claim, evidence))?;
        let verdict = match answer["verdict"].as_str() {
            Some("conflict") => Verdict::Conflict,
            Some("consistent") => Verdict::Consistent,
            Some("unknown") => Verdict::Unknown,
            _ => return Err("its `verdict` is none of conflict, consistent, unknown".into()),
        };
        let evidence = answer["evidence"]
            .as_u64()
            .and_then(|nth| usize::try_from(nth).ok())
            .filter(|nth| *nth < evidence.len());
        let reason = answer["reason"].as_str().unwrap_or_default().to_owned();
        #[allow(
            clippy::cast_possible_truncation,
            reason = "a confidence has two digits"
        )]
        let confidence = answer["confidence"].as_f64().unwrap_or(0.5).clamp(0.0, 1.0) as f32;
        Ok(Ruling {
            verdict,
            reason,
            evidence,
            confidence,
        })
    }
}

/// Asks an agent in a folder of its own. An answer that is not JSON is sent back once.
fn consult(
    agent: &dyn Adapter,
    name: &str,
    root: &Path,
    language: Language,
    brief: String,
) -> Result<Value, String> {
    let folder = tempfile::Builder::new()
        .prefix("quipu-ask-")
        .tempdir()
        .map_err(|e| format!("no folder for it: {e}"))?;
    let make = |part: &str| {
        let path = folder.path().join(part);
        std::fs::create_dir(&path)
            .and_then(|()| std::fs::canonicalize(&path))
            .map_err(|e| format!("no folder for it: {e}"))
    };
    let assignment = Assignment {
        inline: Some(brief.clone()),
        brief,
        view: make("view")?,
        out: make("out")?,
        outputs: Vec::new(),
        last_lines: std::collections::BTreeMap::new(),
        names: Names {
            role: "consulted".into(),
            unit: None,
            agent: Some(name.to_owned()),
            attempt: "ask".into(),
        },
        deadline: PATIENCE,
        record: make("record")?,
        mcp: None,
        keep_out: kept_out(root),
        language: match language {
            Language::En => quipu_agents::Language::English,
            Language::Zh => quipu_agents::Language::Chinese,
        },
        bounds: Bounds::default(),
    };
    let stop = Stop::default();
    let mut turns = agent.open(
        &assignment,
        Watch {
            events: &|_| {},
            stop: &stop,
        },
    );
    let mut outcome = turns.first();
    let mut found = outcome
        .final_message
        .as_deref()
        .map_or_else(|| Err("it said nothing".to_owned()), find_object);
    if let (Err(fault), true) = (&found, outcome.ending.is_finished()) {
        outcome = turns.again(fault);
        found = outcome
            .final_message
            .as_deref()
            .map_or_else(|| Err("it said nothing".to_owned()), find_object);
    }
    if !outcome.ending.is_finished() && found.is_err() {
        return Err(outcome.ending.to_string());
    }
    found
}

/// Extracts the JSON object from an answer with other text around it.
fn find_object(said: &str) -> Result<Value, String> {
    let inner = said
        .find('{')
        .zip(said.rfind('}'))
        .filter(|(open, close)| open < close)
        .map(|(open, close)| &said[open..=close]);
    let inner = inner.ok_or("its answer holds no JSON object")?;
    serde_json::from_str(inner).map_err(|e| format!("its answer is no JSON: {e}"))
}

fn judging_brief(language: Language, claim: &str, evidence: &[Evidence]) -> String {
    let listed: String = evidence
        .iter()
        .enumerate()
        .map(|(nth, one)| {
            format!(
                "{nth}. ({}) {}\n",
                one.at,
                one.text.split_whitespace().collect::<Vec<_>>().join(" ")
            )
        })
        .collect();
    match language {
        Language::En => format!(
            "Say whether a claim can stand beside the evidence. Use nothing but what is written here.\n\nClaim: {claim}\n\nEvidence:\n{listed}\n\
             conflict: both cannot be true. consistent: the evidence says the same. unknown: the evidence does not decide.\n\
             Answer with one JSON object and nothing else:\n\
             {{\"verdict\": \"conflict, consistent or unknown\", \"reason\": \"one sentence\", \"evidence\": 0, \"confidence\": 0.8}}\n"
        ),
        Language::Zh => format!(
            "判断一个说法能否与依据并存。只凭这里写出的内容。\n\n说法：{claim}\n\n依据：\n{listed}\n\
             conflict：两者不能同真。consistent：依据说的是同一回事。unknown：依据不足以判定。\n\
             只回答一个 JSON 对象，别的什么都不写：\n\
             {{\"verdict\": \"conflict、consistent 或 unknown\", \"reason\": \"一句话\", \"evidence\": 0, \"confidence\": 0.8}}\n"
        ),
    }
}

fn reading_brief(language: Language, text: &str, first_line: usize, question: &str) -> String {
    let numbered: String = text
        .lines()
        .enumerate()
        .map(|(nth, line)| format!("{}: {line}\n", nth + first_line))
        .collect();
    match language {
        Language::En => format!(
            "Answer one question from one text, in one sentence that can be understood without it.\n\nQuestion: {question}\n\nText, by lines:\n{numbered}\n\
             Answer with one JSON object and nothing else: {{\"answer\": \"one sentence\", \"line\": {first_line}}}, with the line that it rests on.\n"
        ),
        Language::Zh => format!(
            "只凭一篇文字，用一句不看原文也能懂的话回答一个问题。\n\n问题：{question}\n\n原文（带行号）：\n{numbered}\n\
             只回答一个 JSON 对象，别的什么都不写：{{\"answer\": \"一句话\", \"line\": {first_line}}}，line 为所据的行号。\n"
        ),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_object_is_found_in_talk() {
        assert_eq!(
            find_object("Sure:\n```json\n{\"verdict\": \"unknown\"}\n```").unwrap()["verdict"],
            "unknown"
        );
        assert!(find_object("conflict").is_err());
    }
}
