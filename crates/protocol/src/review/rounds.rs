//! The rounds of a review: the manuscript of each, the reports on it, and what became of each
//! comment.
//!
//! A revision moves the manuscript and the reports of the round that it ends to a folder of their
//! own. Ids of comments follow from the order of comments in these reports, so they never change.

use std::collections::{BTreeMap, BTreeSet};
use std::ops::Range;

use quipu_contract::{Contract, FileRule, Form, Language, PanelPart, ProjectPath};
use serde::Serialize;
use similar::TextDiff;

use super::carried::News;
use super::checks::checks_of;
use super::comment::{Cited, Severity, Status, WrittenComment};
use super::matter::Matters;
use super::passage::{Passage, Passages, shorten};
use super::report::{Report, ReportFault, parse_comments, parse_issues};
use super::revise::REPLY;
use super::revised::answers_to;

/// The characters of a comment that its author recognises it by.
const SHOWN: usize = 45;
/// The characters of a comment beside the sentence about all that say the same.
const OF_MATTER: usize = 250;

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
    /// The line that the newest entry about it names, if that entry is about an earlier text and its
    /// words have moved.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub was: Option<usize>,
    /// Whether its words are not in the current text.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub gone: bool,
    #[serde(skip)]
    pub last_line: usize,
    /// The line that the newest entry about it names.
    #[serde(skip)]
    pub written_line: usize,
    pub quote: String,
    pub text: String,
    pub status: Status,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub answer: Option<Answer>,
    /// The comment that answers for it: the panel joined the two in an earlier round.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub joined_to: Option<String>,
    /// The comments for which it answers.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub matter: Option<Matter>,
    /// Whether the newest round has nothing new on it, so that its agent is not asked.
    #[serde(skip)]
    pub carried: bool,
    /// The place of its words, or of those of its answer, in the current text of its file.
    #[serde(skip)]
    pub passage: Option<Passage>,
}

/// Comments of several agents that say the same, as the report that weighed the panel joined them.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Matter {
    /// The ids of the other comments.
    pub with: Vec<String>,
    /// The report's sentence about all of them.
    pub text: String,
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
            was: None,
            gone: false,
            last_line: written.cited.lines.1,
            written_line: written.cited.lines.0,
            quote: written.cited.quote.clone(),
            text: written.text.clone(),
            status: Status::Open,
            answer: None,
            joined_to: None,
            matter: None,
            carried: false,
            passage: None,
        }
    }

    pub fn is_open(&self) -> bool {
        self.status.is_open()
    }

    /// Whether it is open and no other comment answers for it. Such comments are answered, placed
    /// and counted.
    pub fn is_asked(&self) -> bool {
        self.is_open() && self.joined_to.is_none()
    }

    /// Whether its agent must say what became of it.
    pub fn needs_answer(&self) -> bool {
        self.is_asked() && !self.carried
    }

    /// The place of its words in the manuscript.
    pub fn in_manuscript(&self) -> Option<&Passage> {
        self.passage.as_ref().filter(|_| self.path.is_none())
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

    /// Its place in the current text: `L110`, `L103, now L110`, `L103, passage changed`, with the
    /// file if it is not the manuscript.
    pub fn place(&self, language: Language) -> String {
        let line = self.line;
        let place = match (self.was, self.gone, language) {
            (_, true, Language::En) => format!("L{line}, passage changed"),
            (_, true, Language::Zh) => format!("L{line}（原文已改）"),
            (Some(was), _, Language::En) => format!("L{was}, now L{line}"),
            (Some(was), _, Language::Zh) => format!("L{was}（现 L{line}）"),
            _ => format!("L{line}"),
        };
        match &self.path {
            Some(path) => format!("{path} {place}"),
            None => place,
        }
    }

    /// The comment in few words, to be recognised by its author.
    pub fn render_short(&self) -> String {
        format!("{}: {}", self.id, shorten(&self.text, SHOWN))
    }

    /// The comment as an item of a list, with its newest answer.
    pub fn render(&self, language: Language) -> String {
        let answer = self.answer.as_ref().map(|answer| {
            let status = self.status.as_str();
            format!(" (round {}, {status}: {})", answer.round, answer.text)
        });
        // The panel's sentence about all of them has the gist.
        let said = match &self.matter {
            Some(_) => shorten(&self.text, OF_MATTER),
            None => self.text.clone(),
        };
        let matter = self.matter.as_ref().map(|matter| {
            let text = &matter.text;
            match language {
                Language::En => format!(" (for others too: {text})"),
                Language::Zh => format!("（一并代他人回应：{text}）"),
            }
        });
        format!(
            "{} [{}] {} \"{}\": {}{}{}",
            self.id,
            self.severity.in_language(language),
            self.place(language),
            self.last_quote(),
            said,
            matter.unwrap_or_default(),
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
    /// The comments that the panel joined in each earlier round.
    matters: Vec<Matters>,
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
            matters: Vec::new(),
        };
        if let Some(path) = &manuscript {
            let earlier = (1..).map_while(|number| read(&rounds.path(number, path)?));
            rounds.texts = earlier.collect();
            rounds.texts.extend(read(path));
        }
        let weighed = rounds.weighed_path();
        let checks = checks_of(contract).map_or_else(String::new, |checks| checks.id);
        for round in 1..rounds.number() {
            let path = weighed.as_ref().and_then(|path| rounds.path(round, path));
            let text = path.and_then(|path| read(&path)).unwrap_or_default();
            rounds
                .matters
                .push(Matters::of(&parse_issues(&text), &checks));
        }
        rounds
    }

    /// The report that weighs the panel.
    fn weighed_path(&self) -> Option<ProjectPath> {
        let mut steps = self.contract.steps.iter();
        let step = steps.find(|step| step.panel == Some(PanelPart::Weigh))?;
        self.report_path(&step.name)
    }

    /// The report of an agent.
    fn report_path(&self, agent: &str) -> Option<ProjectPath> {
        let mut binding = self.contract.binding();
        binding.insert("unit".into(), agent.to_owned());
        let rule = self.contract.of_form(Form::Report).next()?;
        ProjectPath::parse(rule.path.fill(&binding).as_literal()?).ok()
    }

    /// Takes over the work of some rounds on the earlier comments of an agent: at its end a round
    /// joins comments, and the next one may have nothing new on a comment. Then it is not
    /// addressed, or has the status that it had.
    pub(super) fn go_on(&self, rounds: Range<usize>, comments: &mut [Comment], read: Read<'_>) {
        for round in rounds {
            if let Some(matters) = self.matters.get(round - 1) {
                matters.join(comments);
            }
            for comment in comments.iter_mut() {
                comment.carried = comment.is_asked() && self.spares(round + 1, comment, read);
                if comment.carried && comment.status == Status::Open {
                    comment.status = Status::NotAddressed;
                    comment.answer = Some(Answer {
                        round: round + 1,
                        line: None,
                        quote: None,
                        text: nothing_new(self.contract.language).to_owned(),
                    });
                }
            }
        }
    }

    /// Whether a round has nothing new on an open comment of an earlier one.
    fn spares(&self, round: usize, comment: &Comment, read: Read<'_>) -> bool {
        let reply = ProjectPath::parse(REPLY).ok();
        let reply = reply.and_then(|reply| self.path(round - 1, &reply));
        let reply = reply.and_then(|path| read(&path)).unwrap_or_default();
        let with = comment.matter.iter().flat_map(|matter| &matter.with);
        let with: Option<Vec<Cited>> = with.map(|id| self.cited(id, read)).collect();
        let Some(with) = with else { return false };
        let is_beside = |cited: &&Cited| cited.path == comment.path;
        let (beside, others): (Vec<&Cited>, Vec<&Cited>) = with.iter().partition(is_beside);
        let news = |path: Option<&str>| {
            let (old, new) = (
                self.file(round - 1, path, read)?,
                self.file(round, path, read)?,
            );
            Some((old, new))
        };
        let Some((old, new)) = news(comment.path.as_deref()) else {
            return false;
        };
        let beside: Vec<Cited> = beside.into_iter().cloned().collect();
        // Comments of one matter on another file: that file must be as it was.
        let is_same = |cited: &&Cited| news(cited.path.as_deref()).is_some_and(|(a, b)| a == b);
        others.iter().all(is_same) && News::of(&old, &new, &reply).spares(comment, &beside)
    }

    /// A file, or the manuscript, as it was in a round: the copy that the first later revision of it
    /// kept, or the file itself.
    fn file(&self, round: usize, path: Option<&str>, read: Read<'_>) -> Option<String> {
        let Some(path) = path else {
            return Some(self.text(round).to_owned());
        };
        let path = ProjectPath::parse(path).ok()?;
        let mut kept = (round..self.number()).filter_map(|round| self.path(round, &path));
        kept.find_map(|path| read(&path)).or_else(|| read(&path))
    }

    /// The words that a comment of an earlier round rests on, by its id.
    fn cited(&self, id: &str, read: Read<'_>) -> Option<Cited> {
        let (agent, number) = id.rsplit_once('.')?;
        let number = number.parse::<usize>().ok()?.checked_sub(1)?;
        let path = self.report_path(agent)?;
        let mut texts: Vec<String> = (1..self.number())
            .filter_map(|round| read(&self.path(round, &path)?))
            .collect();
        // A report that still held was kept again.
        texts.dedup();
        let mut written = texts.iter().flat_map(|text| parse_comments(text));
        written.nth(number).map(|comment| comment.cited)
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

    /// Whether the words that a comment rests on are in the text of a round.
    fn has_words(&self, round: usize, comment: &Comment, read: Read<'_>) -> bool {
        let has = |text: &str| !Passages::of(text).find(comment.last_quote()).is_empty();
        match &comment.path {
            None => has(self.text(round)),
            Some(path) => {
                let path = ProjectPath::parse(path).ok();
                path.and_then(|path| read(&path))
                    .is_some_and(|text| has(&text))
            }
        }
    }

    /// Whether the authors' reply to the round before speaks of a comment.
    fn is_replied(&self, round: usize, id: &str, read: Read<'_>) -> bool {
        let path = ProjectPath::parse(REPLY).ok();
        let path = path.and_then(|reply| self.path(round.checked_sub(1)?, &reply));
        let reply = path.and_then(|path| read(&path)).unwrap_or_default();
        !answers_to(&reply, &[id], &BTreeSet::new()).is_empty()
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
            let own = earlier.iter().find(|c| c.id == id);
            match own {
                None => fault(answer.line, format!("`{id}` is not a comment of yours")),
                Some(comment) if !comment.is_open() => {
                    let status = comment.status.as_str();
                    fault(answer.line, format!("`{id}` is already {status}"));
                }
                Some(Comment {
                    joined_to: Some(other),
                    ..
                }) => fault(
                    answer.line,
                    format!(
                        "`{id}` is joined to `{other}`, which is answered for both: leave it out"
                    ),
                ),
                Some(Comment {
                    matter: Some(matter),
                    ..
                }) if answer.status == Status::Withdrawn => {
                    answered.insert(id);
                    fault(
                        answer.line,
                        format!(
                            "`{id}` answers for {} too, which other agents wrote: it cannot be \
                             withdrawn; set another status and say why",
                            matter.with.join(", ")
                        ),
                    );
                }
                Some(_) if !answered.insert(id) => {
                    fault(answer.line, format!("`{id}` is answered twice"));
                }
                Some(_) => {}
            }
            if answer.status == Status::Declined && !self.is_replied(round, &answer.id, read) {
                fault(
                    answer.line,
                    format!(
                        "`{id}` is declined, but the authors' reply does not speak of it: a comment \
                         is declined by its authors; set another status"
                    ),
                );
            }
            let located = answer.cited.as_ref().map(|cited| {
                let here = self.locate(round, cited, read);
                match own.filter(|_| cited.path.is_none() && here.is_err()) {
                    // Words of the file that the comment is about.
                    Some(Comment { path, .. }) if path.is_some() => {
                        let path = path.clone();
                        let cited = Cited {
                            path,
                            ..cited.clone()
                        };
                        self.locate(round, &cited, read)
                    }
                    _ => here,
                }
            });
            if let Some(Err(what)) = located {
                fault(answer.line, what);
            }
            let is_bare = answer.status == Status::NotAddressed && answer.cited.is_none();
            let comment = earlier.iter().find(|c| c.id == id && is_bare);
            if comment.is_some_and(|c| !self.has_words(round, c, read)) {
                fault(
                    answer.line,
                    format!(
                        "the words of `{id}` are no longer in the text: cite the new ones, `- {id} \
                         [not addressed] L103 \"words of the new text\": why`"
                    ),
                );
            }
        }
        let open = earlier.iter().filter(|c| c.needs_answer());
        let missing: Vec<&str> = open
            .map(|c| c.id.as_str())
            .filter(|id| !answered.contains(id))
            .collect();
        if !missing.is_empty() {
            fault(
                report.lines.score,
                format!(
                    "{} of an earlier round {} not answered: add an entry for each, `- {} \
                     [addressed|partly|not addressed] L103 \"words of the new text\": why`",
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
            comment.carried = false;
            if let Some(cited) = &answer.cited {
                comment.written_line = cited.lines.0;
            }
            let quote = answer.cited.as_ref().map(|c| c.quote.clone());
            // An answer without words rests on those of the answer before.
            let before = comment.answer.take().and_then(|answer| answer.quote);
            comment.answer = Some(Answer {
                round,
                line: answer.cited.as_ref().map(|c| c.lines.0),
                quote: quote.or(before.filter(|_| answer.status == Status::NotAddressed)),
                text: answer.text.clone(),
            });
        }
        for written in &report.comments {
            let id = format!("{agent}.{}", comments.len() + 1);
            comments.push(Comment::new(id, agent, round, written));
        }
    }

    /// Looks up the words of comments in the current texts, and the lines that comments on
    /// earlier texts mention.
    pub fn place(&self, comments: &mut [Comment], read: Read<'_>) {
        let current = self.number();
        let passages = Passages::of(self.text(current));
        let others: BTreeSet<String> = comments.iter().filter_map(|c| c.path.clone()).collect();
        let others: BTreeMap<String, String> = others
            .into_iter()
            .filter_map(|name| {
                let text = read(&ProjectPath::parse(&name).ok()?)?;
                Some((name, text))
            })
            .collect();
        let others: BTreeMap<&str, Passages<'_>> = others
            .iter()
            .map(|(name, text)| (name.as_str(), Passages::of(text)))
            .collect();
        let moved: Vec<LineMap> = (1..current)
            .map(|round| LineMap::between(self.text(round), self.text(current)))
            .collect();
        let language = self.contract.language;
        for comment in comments.iter_mut() {
            if let Some(moved) = moved.get(comment.round - 1) {
                comment.text = moved.renumber(&comment.text, language);
            }
            let answer = comment.answer.as_mut();
            if let Some(answer) = answer
                && let Some(moved) = moved.get(answer.round - 1)
            {
                answer.text = moved.renumber(&answer.text, language);
            }
        }
        for comment in comments.iter_mut() {
            let passages = match &comment.path {
                None => Some(&passages),
                Some(name) => others.get(name.as_str()),
            };
            let Some(passages) = passages else { continue };
            let line = comment.written_line;
            let found = passages.find(comment.last_quote());
            comment.passage = found
                .into_iter()
                .min_by_key(|passage| passage.first.abs_diff(line));
            let quoted = comment.answer.as_ref().filter(|a| a.quote.is_some());
            let is_earlier = quoted.map_or(comment.round, |a| a.round) < current;
            match &comment.passage {
                Some(passage) => {
                    (comment.line, comment.last_line) = (passage.first, passage.last);
                    comment.was = Some(line).filter(|line| is_earlier && *line != passage.first);
                }
                None => comment.gone = is_earlier,
            }
        }
    }
}

/// The reason why a comment is still open about which nobody was asked.
const fn nothing_new(language: Language) -> &'static str {
    match language {
        Language::En => "nothing in the revision or the reply concerns it (found by Quipu)",
        Language::Zh => "修改稿与答复都没有涉及此条（Quipu 查对）",
    }
}

/// The lines of an earlier text in the current one, counted from 1. Lines that were changed in place
/// keep their order.
struct LineMap(BTreeMap<usize, usize>);

impl LineMap {
    fn between(old: &str, new: &str) -> LineMap {
        let (old, new): (Vec<&str>, Vec<&str>) = (old.lines().collect(), new.lines().collect());
        let difference = TextDiff::from_slices(&old, &new);
        let mut lines = BTreeMap::new();
        for op in difference.ops() {
            let (old, new) = (op.old_range(), op.new_range());
            if old.len() == new.len() {
                lines.extend(old.zip(new).map(|(old, new)| (old + 1, new + 1)));
            }
        }
        LineMap(lines)
    }

    /// Adds to each line that a text mentions, `L45` or `第45行`, the line that it has now.
    fn renumber(&self, text: &str, language: Language) -> String {
        let mut result = String::new();
        let mut at = 0;
        while let Some(next) = text[at..].find(['L', '第']).map(|next| at + next) {
            let sign = text[next..].chars().next().map_or(1, char::len_utf8);
            let rest = &text[next + sign..];
            let digits = rest
                .find(|c: char| !c.is_ascii_digit())
                .unwrap_or(rest.len());
            let mut end = next + sign + digits;
            let starts_word = !text[..next].ends_with(|c: char| c.is_ascii_alphanumeric());
            let is_line = match sign {
                1 => !text[end..].starts_with(|c: char| c.is_ascii_alphanumeric()),
                _ => text[end..].starts_with('行'),
            };
            let line = rest[..digits].parse::<usize>().ok();
            if sign > 1 && is_line {
                end += '行'.len_utf8();
            }
            result.push_str(&text[at..end]);
            at = end;
            let Some(line) = line.filter(|_| starts_word && is_line) else {
                continue;
            };
            match (self.0.get(&line), language) {
                (Some(now), _) if *now == line => {}
                (Some(now), Language::En) => result.push_str(&format!(" (now L{now})")),
                (Some(now), Language::Zh) => result.push_str(&format!("（现 L{now}）")),
                (None, Language::En) => result.push_str(" (changed)"),
                (None, Language::Zh) => result.push_str("（已改）"),
            }
        }
        result + &text[at..]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_that_a_comment_mentions_get_their_number_of_now() {
        let moved = LineMap::between("a\nb\nc\nd\ne\n", "a\nnew\nb\nC\nd\n");
        let en = |text: &str| moved.renumber(text, Language::En);
        assert_eq!(
            en("See L1, L2, L3 and L5."),
            "See L1, L2 (now L3), L3 (now L4) and L5 (changed)."
        );
        assert_eq!(en("XL2, L2x, L and Lisp"), "XL2, L2x, L and Lisp");
        assert_eq!(
            moved.renumber("见第2行。", Language::Zh),
            "见第2行（现 L3）。"
        );
    }
}
