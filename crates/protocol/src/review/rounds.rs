//! The rounds of a review: the manuscript of each, the reports on it, and what became of each
//! comment.
//!
//! A revision moves the manuscript and the reports of the round that it ends to a folder of their
//! own. Ids of comments follow from the order of comments in these reports, so they never change.

use std::collections::BTreeSet;

use quipu_contract::{Contract, FileRule, Form, ProjectPath};
use serde::Serialize;

use super::comment::{Cited, Severity, Status, WrittenComment};
use super::passage::{Passage, Passages};
use super::report::{Report, ReportFault};

/// Reads a file of the project.
pub type Read<'r> = &'r dyn Fn(&ProjectPath) -> Option<String>;

/// A comment with what became of it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Comment {
    /// The agent and the number of the comment in order: `s6.1`.
    pub id: String,
    pub agent: String,
    pub severity: Severity,
    /// The round in which it was written.
    pub round: usize,
    /// Another file than the manuscript.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub path: Option<String>,
    /// The first line of its words, in the current text if they are still there.
    pub line: usize,
    #[serde(skip)]
    pub last_line: usize,
    pub quote: String,
    pub text: String,
    pub status: Status,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub answer: Option<Answer>,
    /// The place of its words, or of those of its answer, in the current text.
    #[serde(skip)]
    pub passage: Option<Passage>,
}

/// The answer of the newest round to a comment.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Answer {
    pub round: usize,
    pub line: Option<usize>,
    pub quote: Option<String>,
    pub text: String,
}

impl Comment {
    pub(super) fn new(id: String, agent: &str, round: usize, written: &WrittenComment) -> Comment {
        Comment {
            id,
            agent: agent.to_owned(),
            severity: written.severity,
            round,
            path: written.cited.path.clone(),
            line: written.cited.lines.0,
            last_line: written.cited.lines.1,
            quote: written.cited.quote.clone(),
            text: written.text.clone(),
            status: Status::Open,
            answer: None,
            passage: None,
        }
    }

    pub const fn is_open(&self) -> bool {
        self.status.is_open()
    }

    /// The words that the newest entry about it cites.
    pub fn last_quote(&self) -> &str {
        let answer = self.answer.as_ref().and_then(|a| a.quote.as_deref());
        answer.unwrap_or(&self.quote)
    }

    /// The words to look at: those of the newest answer while it is open.
    pub fn shown_quote(&self) -> &str {
        if self.is_open() {
            self.last_quote()
        } else {
            &self.quote
        }
    }

    /// The comment as an item of a list, with its newest answer.
    pub fn render(&self) -> String {
        let path = self.path.as_ref().map(|path| format!("`{path}` "));
        let answer = self.answer.as_ref().map(|answer| {
            let status = self.status.as_str();
            format!(" (round {}, {status}: {})", answer.round, answer.text)
        });
        format!(
            "{} [{}] {}L{} \"{}\": {}{}",
            self.id,
            self.severity.as_str(),
            path.unwrap_or_default(),
            self.line,
            self.last_quote(),
            self.text,
            answer.unwrap_or_default()
        )
    }
}

/// The manuscript of each round.
pub struct Rounds<'c> {
    contract: &'c Contract,
    folder: Option<&'c FileRule>,
    pub manuscript: Option<ProjectPath>,
    /// The texts of the manuscript, the current one last.
    texts: Vec<String>,
}

/// The report of an agent in one round.
pub struct RoundReport {
    pub round: usize,
    pub text: String,
}

impl<'c> Rounds<'c> {
    pub fn load(contract: &'c Contract, read: Read<'_>) -> Rounds<'c> {
        let binding = contract.binding();
        let manuscript = contract.of_form(Form::Manuscript).find_map(|rule| {
            let path = rule.path.fill(&binding);
            ProjectPath::parse(path.as_literal()?).ok()
        });
        let mut rounds = Rounds {
            contract,
            folder: contract.of_form(Form::Rounds).next(),
            manuscript: manuscript.clone(),
            texts: Vec::new(),
        };
        if let Some(path) = &manuscript {
            let earlier = (1..).map_while(|number| read(&rounds.path(number, path)?));
            rounds.texts = earlier.collect();
            rounds.texts.extend(read(path));
        }
        rounds
    }

    /// The number of the current round, from 1.
    pub fn number(&self) -> usize {
        self.texts.len().max(1)
    }

    /// The manuscript of a round.
    pub fn text(&self, round: usize) -> &str {
        let at = round.saturating_sub(1);
        self.texts.get(at).map_or("", String::as_str)
    }

    /// The path to which the file of a finished round is moved: `agent_outputs/round-1/s6.md`.
    pub fn path(&self, round: usize, file: &ProjectPath) -> Option<ProjectPath> {
        let (before, _) = self.folder?.path.as_str().split_once('*')?;
        let name = file.as_str().rsplit('/').next()?;
        ProjectPath::parse(&format!("{before}{round}/{name}")).ok()
    }

    /// The reports of an agent by round, oldest first.
    pub fn reports(
        &self,
        output: &ProjectPath,
        current: Option<&str>,
        read: Read<'_>,
    ) -> Vec<RoundReport> {
        let text = |round: usize| {
            if round == self.number() {
                current.map(str::to_owned)
            } else {
                self.path(round, output).and_then(|path| read(&path))
            }
        };
        (1..=self.number())
            .filter_map(|round| {
                let text = text(round)?;
                Some(RoundReport { round, text })
            })
            .collect()
    }

    /// Finds the words that an entry of a report rests on.
    fn locate(&self, round: usize, cited: &Cited, read: Read<'_>) -> Result<Passage, String> {
        let Some(name) = &cited.path else {
            return Passages::of(self.text(round)).locate(cited.lines, &cited.quote);
        };
        let path = ProjectPath::parse(name).ok();
        let is_sealed = |path: &ProjectPath| {
            self.contract.class(path) == quipu_contract::Class::Sealed
                && self.contract.rule(path).and_then(|r| r.form) != Some(Form::Rounds)
        };
        match path.filter(is_sealed).and_then(|path| read(&path)) {
            Some(text) => Passages::of(&text).locate(cited.lines, &cited.quote),
            None => Err(format!(
                "`{name}` is not a sealed file of this review: cite the manuscript by its line \
                 alone, `L103 \"words\"`"
            )),
        }
    }

    /// Finds the faults of a reviewer's report: words that are not in the text, and comments that
    /// it has not answered. `earlier` are the agent's comments before this report.
    pub fn find_faults(
        &self,
        round: usize,
        report: &Report,
        earlier: &[Comment],
        read: Read<'_>,
    ) -> Vec<ReportFault> {
        let mut faults = Vec::new();
        let mut fault = |line: usize, what: String| faults.push(ReportFault { line, what });
        for comment in &report.comments {
            if let Err(what) = self.locate(round, &comment.cited, read) {
                fault(comment.line, what);
            }
        }
        let mut answered = BTreeSet::new();
        for answer in &report.answers {
            let id = answer.id.as_str();
            match earlier.iter().find(|c| c.id == id) {
                None => fault(answer.line, format!("`{id}` is not a comment of yours")),
                Some(comment) if !comment.is_open() => {
                    let status = comment.status.as_str();
                    fault(answer.line, format!("`{id}` is already {status}"));
                }
                Some(_) if !answered.insert(id) => {
                    fault(answer.line, format!("`{id}` is answered twice"));
                }
                Some(_) => {}
            }
            let located = answer.cited.as_ref().map(|c| self.locate(round, c, read));
            if let Some(Err(what)) = located {
                fault(answer.line, what);
            }
        }
        let open = earlier.iter().filter(|c| c.is_open());
        let missing: Vec<&str> = open
            .map(|c| c.id.as_str())
            .filter(|id| !answered.contains(id))
            .collect();
        if !missing.is_empty() {
            fault(
                report.lines.score,
                format!(
                    "{} of an earlier round {} not answered: write `## 4. Earlier Comments` with \
                     an entry for each, `- {} [addressed|partly|not addressed|withdrawn] L103 \
                     \"words of the new text\": why`",
                    missing.join(", "),
                    if missing.len() == 1 { "is" } else { "are" },
                    missing[0]
                ),
            );
        }
        faults
    }

    /// Adds the answers and the comments of a report to those of earlier reports.
    pub fn add(&self, agent: &str, round: usize, report: &Report, comments: &mut Vec<Comment>) {
        for answer in &report.answers {
            let Some(comment) = comments.iter_mut().find(|c| c.id == answer.id) else {
                continue;
            };
            comment.status = answer.status;
            comment.answer = Some(Answer {
                round,
                line: answer.cited.as_ref().map(|c| c.lines.0),
                quote: answer.cited.as_ref().map(|c| c.quote.clone()),
                text: answer.text.clone(),
            });
        }
        for written in &report.comments {
            let id = format!("{agent}.{}", comments.len() + 1);
            comments.push(Comment::new(id, agent, round, written));
        }
    }

    /// Looks up the words of comments in the current manuscript.
    pub fn place(&self, comments: &mut [Comment]) {
        let passages = Passages::of(self.text(self.number()));
        for comment in comments.iter_mut().filter(|c| c.path.is_none()) {
            let answer = comment.answer.as_ref();
            let line = answer.and_then(|a| a.line).unwrap_or(comment.line);
            let quote = comment.last_quote();
            let found = passages.find(quote);
            comment.passage = found
                .into_iter()
                .min_by_key(|passage| passage.first.abs_diff(line));
            if let Some(passage) = &comment.passage {
                (comment.line, comment.last_line) = (passage.first, passage.last);
            }
        }
    }
}
