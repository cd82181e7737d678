//! Consults a judge about one scene, or a reader about one text. The judge is given that and
//! nothing else.
//!
//! `command:PROGRAM` gets JSON on stdin (see `command_agent`). Every other name is an agent of
//! `quipu-agents`, prompted in words in a separate folder outside the project. An answer is
//! accepted only in the requested form; otherwise its fault is sent back once.

use std::path::{Path, PathBuf};
use std::time::Duration;

use quipu_agents::{Adapter, Assignment, Bounds, Names, Stop, Watch};
use quipu_claims::Ruling;
use quipu_contract::{Contract, Language};
use quipu_protocol::{Accept, SceneJudge};
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
                format!("`{name}` cannot act as a judge"),
                "use an agent, or command:PROGRAM ARGUMENTS",
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
            } => {
                let brief = words(*language);
                consult(agent.as_ref(), name, root, *language, brief, find_object)
            }
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
            return Err(format!("line {line} is not in the text it received"));
        }
        Ok((said, line))
    }
}

impl SceneJudge for JudgeClient {
    fn name(&self) -> &str {
        self.name()
    }

    fn judge(
        &self,
        scene: usize,
        prompt: &str,
        accept: Accept<'_>,
    ) -> Result<Option<Vec<Ruling>>, String> {
        let rulings = match self {
            JudgeClient::Program(program) => {
                let asked = json!({"scene": scene, "prompt": prompt});
                let answer = program.call_for_text(&asked)?;
                accept(&answer).or_else(|fault| {
                    let again = json!({
                        "scene": scene, "prompt": prompt, "answer": answer, "fault": fault
                    });
                    accept(&program.call_for_text(&again)?)
                })
            }
            JudgeClient::Agent {
                agent,
                name,
                root,
                language,
            } => consult(
                agent.as_ref(),
                name,
                root,
                *language,
                prompt.to_owned(),
                accept,
            ),
        };
        rulings.map(Some)
    }
}

/// Asks an agent in a folder of its own. An answer that is not accepted is sent back once.
fn consult<T>(
    agent: &dyn Adapter,
    name: &str,
    root: &Path,
    language: Language,
    brief: String,
    accept: impl Fn(&str) -> Result<T, String>,
) -> Result<T, String> {
    let folder = tempfile::Builder::new()
        .prefix("quipu-ask-")
        .tempdir()
        .map_err(|e| format!("cannot create its folder: {e}"))?;
    let make = |part: &str| {
        let path = folder.path().join(part);
        std::fs::create_dir(&path)
            .and_then(|()| std::fs::canonicalize(&path))
            .map_err(|e| format!("cannot create its folder: {e}"))
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
        questions: Vec::new(),
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
        .map_or_else(|| Err("it returned no text".to_owned()), &accept);
    if let (Err(fault), true) = (&found, outcome.ending.is_finished()) {
        outcome = turns.again(fault);
        found = outcome
            .final_message
            .as_deref()
            .map_or_else(|| Err("it returned no text".to_owned()), &accept);
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
    let inner = inner.ok_or("its answer contains no JSON object")?;
    serde_json::from_str(inner).map_err(|e| format!("its answer is not JSON: {e}"))
}

fn reading_brief(language: Language, text: &str, first_line: usize, question: &str) -> String {
    let numbered: String = text
        .lines()
        .enumerate()
        .map(|(nth, line)| format!("{}: {line}\n", nth + first_line))
        .collect();
    match language {
        Language::En => format!(
            "Answer one question from one text, in one sentence that can be understood without \
             it.\n\nQuestion: {question}\n\nText, by lines:\n{numbered}\nAnswer with one JSON \
             object and nothing else: {{\"answer\": \"one sentence\", \"line\": {first_line}}}, \
             where `line` is the line that supports the answer.\n"
        ),
        Language::Zh => format!(
            "只凭一篇文字，用一句不看原文也能懂的话回答一个问题。\n\n问题：{question}\n\n原文（带行号）：\n{numbered}\n只回答一个 \
             JSON 对象，别的什么都不写：{{\"answer\": \"一句话\", \"line\": {first_line}}}，line \
             是答案所依据的行号。\n"
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
