//! The commands for the knowledge of one agent.

use clap::Args;
use quipu_contract::{Form, Language};
use quipu_protocol::worldlog::{
    ErrorPattern, Knowledge, Pattern, Proposal, add_idea, add_lesson, count_pattern, own_sessions,
    pattern_after, propose, put_error, put_pattern, read_knowledge, recount,
};
use quipu_protocol::{change_formed, load_formed};
use serde_json::json;

use super::receipt;
use crate::answer::{Answer, Failure, exit, in_language};
use crate::session::Session;
use crate::table::Operate;

#[derive(Debug, Args)]
pub struct KnowledgeShow {
    /// Show only this pattern
    pattern: Option<String>,
}

impl Operate for KnowledgeShow {
    const NAME: &'static str = "knowledge show";
    const ABOUT: &'static str = "Show what you have learnt, with numbers from your sessions";

    fn operate(self, session: &Session) -> Result<Answer, Failure> {
        let project = session.project()?;
        let formed = load_formed(&project, &session.actor, Form::Knowledge)?;
        let sessions = own_sessions(&project, &session.actor)?;
        let mut knowledge = read_knowledge(&recount(
            &formed.text,
            project.contract.language,
            &sessions,
        )?);
        if let Some(name) = &self.pattern {
            knowledge
                .patterns
                .retain(|pattern| pattern.name.to_lowercase() == name.trim().to_lowercase());
            if knowledge.patterns.is_empty() {
                return Err(Failure::new(
                    exit::NOT_FOUND,
                    format!("you have no pattern `{name}`"),
                    "quipu knowledge show",
                ));
            }
        }
        let language = project.contract.language;
        let text = match &self.pattern {
            Some(_) => knowledge
                .patterns
                .iter()
                .map(|pattern| render_pattern(language, pattern))
                .collect(),
            None => render(language, &knowledge),
        };
        Ok(Answer::new(
            json!({"path": formed.path, "knowledge": knowledge}),
            text,
        ))
    }
}

fn render(language: Language, knowledge: &Knowledge) -> String {
    let number = |n: Option<u32>| n.unwrap_or(0);
    let mean = knowledge.mean_rounds.as_deref().unwrap_or("0");
    let (tasks, rounds) = (number(knowledge.tasks), number(knowledge.rounds));
    let mut text = in_language(
        language,
        format!("tasks {tasks}, rounds {rounds}, mean {mean}\n"),
        format!("任务 {tasks} 项，轮数 {rounds}，平均 {mean}\n"),
    );
    for pattern in &knowledge.patterns {
        let (used, first, best) = (
            number(pattern.frequency),
            number(pattern.first_rounds),
            number(pattern.best_rounds),
        );
        let success = pattern.success.as_deref().unwrap_or("0%");
        let name = &pattern.name;
        text.push_str(&in_language(
            language,
            format!(
                "pattern  {name}  used {used}, success {success}, rounds first {first}, best \
                 {best}\n"
            ),
            format!(
                "模式  {name}  用过 {used} 次，成功率 {success}，轮数：首次 {first}，最少 {best}\n"
            ),
        ));
    }
    let say = |en: &'static str, zh: &'static str| in_language(language, en, zh);
    let (error, lesson, idea) = (
        say("error  ", "错误"),
        say("lesson ", "经验"),
        say("idea   ", "想法"),
    );
    let listed = knowledge.errors.iter().map(|e| (error, &e.name));
    let listed = listed
        .chain(knowledge.lessons.iter().map(|l| (lesson, l)))
        .chain(knowledge.ideas.iter().map(|i| (idea, i)));
    for (kind, what) in listed {
        text.push_str(&format!("{kind}  {what}\n"));
    }
    text
}

fn render_pattern(language: Language, pattern: &Pattern) -> String {
    let say = |en: &'static str, zh: &'static str| in_language(language, en, zh);
    let mut text = format!("{}\n", pattern.name);
    let number = |n: Option<u32>| n.map(|n| n.to_string());
    let told = [
        (say("description", "描述"), pattern.description.clone()),
        (say("situation", "情形"), pattern.situation.clone()),
        (
            say("steps", "步骤"),
            (!pattern.steps.is_empty()).then(|| pattern.steps.join("; ")),
        ),
        (say("used", "用过"), number(pattern.frequency)),
        (say("success", "成功率"), pattern.success.clone()),
        (
            say("first rounds", "首次轮数"),
            number(pattern.first_rounds),
        ),
        (say("best rounds", "最少轮数"), number(pattern.best_rounds)),
    ];
    for (name, value) in told {
        if let Some(value) = value {
            text.push_str(&format!("  {name}{}{value}\n", say(": ", "：")));
        }
    }
    text
}

#[derive(Debug, Args)]
pub struct KnowledgePattern {
    /// The name of the pattern; without it, list candidates from past sessions
    name: Option<String>,
    /// A description of the pattern
    #[arg(long, value_name = "TEXT")]
    description: Option<String>,
    /// The situation in which the pattern applies
    #[arg(long, value_name = "TEXT")]
    situation: Option<String>,
    /// The steps, in order: "a; b; c"
    #[arg(long, value_name = "STEPS")]
    steps: Option<String>,
    /// Accept the candidate with this number
    #[arg(long, value_name = "N")]
    take: Option<usize>,
}

impl Operate for KnowledgePattern {
    const NAME: &'static str = "knowledge pattern";
    const ABOUT: &'static str = "Add or improve a pattern, or list candidates";

    fn operate(self, session: &Session) -> Result<Answer, Failure> {
        let project = session.project()?;
        let formed = load_formed(&project, &session.actor, Form::Knowledge)?;
        let sessions = own_sessions(&project, &session.actor)?;
        let after = pattern_after(&project.contract);
        let proposals = propose(&sessions, &read_knowledge(&formed.text).patterns, after);
        let mut pattern = Pattern::default();
        if let Some(number) = self.take {
            let Some(taken) = proposals.get(number.wrapping_sub(1)) else {
                let what = format!("unknown proposal {number}; there are {}", proposals.len());
                return Err(Failure::new(
                    exit::NOT_FOUND,
                    what,
                    "quipu knowledge pattern",
                ));
            };
            pattern = Pattern {
                name: taken.name.clone(),
                situation: Some(taken.situation.clone()).filter(|s| !s.is_empty()),
                steps: taken.steps.clone(),
                sessions: taken.sessions.clone(),
                ..pattern
            };
        } else if self.name.is_none() {
            return Ok(tell_proposals(project.contract.language, &proposals, after));
        }
        if let Some(name) = self.name {
            pattern.name = name.trim().to_owned();
        }
        pattern.description = self.description.or(pattern.description);
        pattern.situation = self.situation.or(pattern.situation);
        if let Some(steps) = &self.steps {
            pattern.steps = steps
                .split([';', '；'])
                .map(|step| step.trim().to_owned())
                .filter(|step| !step.is_empty())
                .collect();
        }
        let language = project.contract.language;
        let terms = session.terms(format!("knowledge pattern: {}", pattern.name));
        let (committed, formed) =
            change_formed(&project, &session.actor, &terms, Form::Knowledge, |text| {
                let text = put_pattern(text, language, &pattern)?;
                Ok(recount(&text, language, &sessions)?)
            })?;
        let written = read_knowledge(&formed.text)
            .patterns
            .into_iter()
            .find(|p| p.name.to_lowercase() == pattern.name.to_lowercase());
        let counted = written
            .as_ref()
            .map(|written| count_pattern(written, &sessions));
        let text = written.as_ref();
        let text = text.map(|pattern| render_pattern(language, pattern));
        let text = text.unwrap_or_default();
        Ok(receipt::beside(
            project.contract.language,
            &committed,
            json!({"path": formed.path, "pattern": written, "counted": counted}),
            text,
        ))
    }
}

fn tell_proposals(language: Language, proposals: &[Proposal], after: usize) -> Answer {
    let mut text = String::new();
    for (index, proposal) in proposals.iter().enumerate() {
        let number = |n: Option<u32>| n.map_or_else(|| "–".to_owned(), |n| n.to_string());
        let (first, best) = (number(proposal.first_rounds), number(proposal.best_rounds));
        let (nth, name, times) = (index + 1, &proposal.name, proposal.sessions.len());
        let (situation, steps, sessions) = (
            &proposal.situation,
            proposal.steps.join("; "),
            proposal.sessions.join(", "),
        );
        text.push_str(&in_language(
            language,
            format!(
                "{nth}  {name}  done {times} times, rounds first {first}, best {best}\n   \
                 situation: {situation}\n   steps: {steps}\n   sessions: {sessions}\n"
            ),
            format!(
                "{nth}  {name}  做过 {times} 次，轮数：首次 {first}，最少 {best}\n   \
                 情形：{situation}\n   步骤：{steps}\n   会话：{sessions}\n"
            ),
        ));
    }
    let mut answer = Answer::new(json!({"after": after, "proposals": proposals}), text);
    answer = match proposals {
        [] => answer.say(in_language(
            language,
            format!("nothing was done more than {after} times in the same way"),
            format!("没有一件事以同样的做法做过 {after} 次以上"),
        )),
        _ => answer.say("to accept one: quipu knowledge pattern [NAME] --take N"),
    };
    answer
}

#[derive(Debug, Args)]
pub struct KnowledgeLesson {
    /// The lesson, in one line
    text: Option<String>,
    /// A session that the lesson comes from; repeatable
    #[arg(long = "session", value_name = "NAME")]
    sessions: Vec<String>,
    /// Record the text as an idea to try
    #[arg(long, conflicts_with_all = ["error", "sessions"])]
    idea: bool,
    /// Record a repeated mistake under this name
    #[arg(long, value_name = "NAME")]
    error: Option<String>,
    /// With --error: how the mistake shows itself
    #[arg(long, value_name = "TEXT", requires = "error")]
    symptom: Option<String>,
    /// With --error: its cause
    #[arg(long, value_name = "TEXT", requires = "error")]
    cause: Option<String>,
    /// With --error: how to fix it
    #[arg(long, value_name = "TEXT", requires = "error")]
    cure: Option<String>,
    /// With --error: how to prevent it
    #[arg(long, value_name = "TEXT", requires = "error")]
    prevention: Option<String>,
}

impl Operate for KnowledgeLesson {
    const NAME: &'static str = "knowledge lesson";
    const ABOUT: &'static str = "Add a lesson, an idea or a repeated mistake";

    fn operate(self, session: &Session) -> Result<Answer, Failure> {
        if self.text.is_none() && self.error.is_none() {
            return Err(Failure::usage(
                "the text is missing",
                "quipu knowledge lesson \"…\"     (or --error NAME --cure \"…\")",
            ));
        }
        let project = session.project()?;
        let language = project.contract.language;
        let error = self.error.as_ref().map(|name| ErrorPattern {
            name: name.trim().to_owned(),
            symptom: self.symptom.clone(),
            cause: self.cause.clone(),
            cure: self.cure.clone(),
            prevention: self.prevention.clone(),
        });
        let terms = session.terms("knowledge lesson");
        let (committed, formed) =
            change_formed(&project, &session.actor, &terms, Form::Knowledge, |text| {
                let mut text = text.to_owned();
                if let Some(error) = &error {
                    text = put_error(&text, language, error)?;
                }
                if let Some(lesson) = &self.text {
                    text = if self.idea {
                        add_idea(&text, language, lesson)?
                    } else {
                        add_lesson(&text, language, lesson, &self.sessions)?
                    };
                }
                Ok(text)
            })?;
        let knowledge = read_knowledge(&formed.text);
        let told = json!({"path": formed.path, "lessons": knowledge.lessons, "ideas": knowledge.ideas, "errors": knowledge.errors});
        Ok(receipt::beside(
            project.contract.language,
            &committed,
            told,
            "",
        ))
    }
}
