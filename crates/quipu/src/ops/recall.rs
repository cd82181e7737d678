//! The `recall` command: finds the sections that answer a question. The search is in the protocol
//! crate.

use clap::Args;
use clap::builder::PossibleValue;
use quipu_claims::{Asked, cut_claims};
use quipu_contract::{FileRule, Form, Language, Pattern};
use quipu_protocol::{
    ANSWER_TOKENS, Ask, CANDIDATES, Kind, KnownLine, PosedQuestion, Project, RecallError, Recalled,
    Shown, Tier, note_asked, question_of, recall, shown_hits,
};
use quipu_recall::{Date, Hit, date_of};
use quipu_text::json::JsonPointer;
use serde_json::{Value, json};

use crate::answer::{Answer, Failure, count, exit, in_language};
use crate::session::Session;
use crate::table::Operate;

#[derive(Debug, Args)]
pub struct Recall {
    /// The question
    question: String,
    /// The maximum number of sections to show, weak ones too, instead of the good ones that fit the
    /// token budget
    #[arg(short = 'k', value_name = "N")]
    most: Option<usize>,
    /// The token budget for the sections shown (default: 600)
    #[arg(long, value_name = "N")]
    tokens: Option<usize>,
    /// Search only files that match
    #[arg(long = "in", value_name = "GLOB")]
    within: Option<String>,
    /// Search only this tier: index, memory, plan or manuscript
    #[arg(long, value_name = "TIER", value_parser = [
        PossibleValue::new("index").alias("L0"),
        PossibleValue::new("memory").alias("L1"),
        PossibleValue::new("plan"),
        PossibleValue::new("manuscript").alias("L2"),
    ])]
    tier: Option<String>,
    /// The date of the question, for words like "last week" (default: today)
    #[arg(long, value_name = "DATE")]
    as_of: Option<String>,
    /// Search by words only, without the sentence encoder
    #[arg(long)]
    no_model: bool,
    /// Encode every section before searching; this can take long
    #[arg(long, conflicts_with = "no_model")]
    complete: bool,
}

impl Operate for Recall {
    const NAME: &'static str = "recall";
    const ABOUT: &'static str = "Find the sections that answer a question";

    fn operate(self, session: &Session) -> Result<Answer, Failure> {
        let project = session.project()?;
        let ask = Ask {
            question: &self.question,
            k: self.most.unwrap_or(CANDIDATES),
            within: self.within()?,
            kind: self.kind(),
            use_model: !self.no_model,
            complete: self.complete,
            as_of: self.as_of.as_deref().map(date).transpose()?,
        };
        let recalled = match recall(&project, &session.actor, &ask) {
            Err(RecallError::NoWords(_)) => {
                return Ok(nothing_asked(project.contract.language));
            }
            recalled => recalled?,
        };
        let answer = &recalled.answer;
        let tokens = match self.most {
            Some(_) => self.tokens,
            None => Some(self.tokens.unwrap_or(ANSWER_TOKENS)),
        };
        let shown = shown_hits(answer, ask.k, tokens, self.most.is_some());
        let language = project.contract.language;
        let kind = |shown: &Shown| Kind::of(&project.contract, &shown.hit.path, shown.hit.tier);
        let hits: Vec<_> = shown.iter().map(|hit| in_json(hit, kind(hit))).collect();
        let mut told = Answer::new(
            json!({"hits": hits, "weak": answer.is_weak(), "covers": {"current": true, "files": answer.files, "sections": answer.sections,
                   "encoded": answer.encoded, "read_anew": recalled.read_anew, "not_searched": recalled.not_searched}}),
            shown
                .iter()
                .map(|hit| in_text(language, hit, kind(hit)))
                .collect::<String>(),
        );
        told = self.say_coverage(project.contract.language, told, &recalled);
        if answer.hits.is_empty() {
            told.exit = exit::NO;
        }
        // Manuscripts are the files that memory is distilled from. Other files of the lowest tier,
        // such as delegations and records of sessions, are not manuscripts.
        let is_record =
            |rule: &FileRule| matches!(rule.form, Some(Form::Delegation | Form::Session));
        let is_manuscript =
            |rule: &FileRule| rule.tier.as_deref() == Some("L2") && !is_record(rule);
        let leaves = project.contract.files.iter().any(is_manuscript);
        if leaves && ask.kind.is_none() {
            let asked = question_of(&project, &session.actor, &self.question)?;
            told = count_tiers(told, &project, &asked, &answer.hits);
        }
        if answer.is_weak() && told.json["memory"].is_null() {
            let zh = project.contract.language == Language::Zh;
            told = told.say(nothing_matches(zh, leaves, !shown.is_empty()));
        }
        Ok(told)
    }
}

impl Recall {
    fn within(&self) -> Result<Option<Pattern>, Failure> {
        let Some(glob) = &self.within else {
            return Ok(None);
        };
        let pattern =
            Pattern::parse(glob).map_err(|what| Failure::usage(what, "--in 'meta/**'"))?;
        if let Some(name) = pattern.variables().next() {
            return Err(Failure::usage(
                format!("`{glob}`: the variable `{{{name}}}` has no value here"),
                "--in 'meta/**'",
            ));
        }
        Ok(Some(pattern))
    }

    fn kind(&self) -> Option<Kind> {
        match self.tier.as_deref() {
            Some("index" | "L0") => Some(Kind::Index),
            Some("memory" | "L1") => Some(Kind::Memory),
            Some("plan") => Some(Kind::Plan),
            Some("manuscript" | "L2") => Some(Kind::Manuscript),
            _ => None,
        }
    }

    fn say_coverage(&self, language: Language, mut told: Answer, recalled: &Recalled) -> Answer {
        let answer = &recalled.answer;
        let (sections, encoded) = (answer.sections, answer.encoded);
        let files = count(answer.files, "file");
        told = told.say(match language {
            Language::En => {
                format!("searched {sections} sections of {files}, all at their current versions")
            }
            Language::Zh => format!(
                "搜索了 {} 个文件的 {sections} 节，均为最新版本",
                answer.files
            ),
        });
        if !recalled.not_searched.is_empty() {
            let left = recalled.not_searched.join(", ");
            told = told.say(match language {
                Language::En => format!("not searched (larger than 8 MB or not UTF-8): {left}"),
                Language::Zh => format!("未搜索（大于 8 MB，或不是 UTF-8）：{left}"),
            });
        }
        if !self.no_model && encoded < sections {
            told = told.say(match language {
                Language::En => format!(
                    "{encoded} of them are encoded; to encode the rest: quipu recall QUESTION \
                     --complete"
                ),
                Language::Zh => {
                    format!("其中 {encoded} 节已编码；编码其余各节：quipu recall 问题 --complete")
                }
            });
        }
        told
    }
}

/// The answer to a question without words.
fn nothing_asked(language: Language) -> Answer {
    let what = match language {
        Language::En => "the question has no words: nothing was searched",
        Language::Zh => "问题中没有词语：未搜索",
    };
    let mut told = Answer::new(json!({"hits": [], "weak": true}), "").say(what);
    told.exit = exit::NO;
    told
}

fn date(text: &str) -> Result<Date, Failure> {
    let what = || format!("`{text}` is not a date with year, month and day");
    date_of(text).ok_or_else(|| Failure::usage(what(), "--as-of 2026-01-31"))
}

/// Counts whether memory or only a manuscript has good hits. A plan answers nothing.
fn count_tiers(
    mut told: Answer,
    project: &Project,
    asked: &PosedQuestion<'_>,
    hits: &[Hit],
) -> Answer {
    let answers = |hit: &Hit| {
        let heading = hit.heading_path.last().map_or("", String::as_str);
        let mut lines = cut_claims(&hit.snippet).into_iter();
        !hit.weak && lines.any(|line| asked.question.is_answered_by(&line.text, heading))
    };
    let knows = |kind: Kind| {
        let mut of_kind = hits
            .iter()
            .filter(|hit| Kind::of(&project.contract, &hit.path, hit.tier) == kind);
        of_kind.any(answers)
    };
    let is_shown = knows(Kind::Memory);
    let known = match is_shown {
        true => None,
        false => asked.find_in_memory(),
    };
    let (l1, l2) = match (is_shown || known.is_some(), knows(Kind::Manuscript)) {
        (true, _) => (Asked::Hit, Asked::No),
        (false, true) => (Asked::Miss, Asked::Hit),
        (false, false) => (Asked::Miss, Asked::Miss),
    };
    note_asked(project, &[(l1, l2)]);
    told.json["tiers"] = json!({"L1": l1, "L2": l2});
    if let Some(KnownLine { text, of, at }) = known {
        told.json["memory"] = json!({"at": at, "of": of, "text": text});
        told = told.say(match project.contract.language {
            Language::En => format!("memory answers it: {at}  {of}: {text}"),
            Language::Zh => format!("记忆里有答案：{at}  {of}：{text}"),
        });
    }
    if (l1, l2) == (Asked::Miss, Asked::Hit) {
        told = told.say("found in manuscripts, not in memory; to add it: quipu learn QUESTION --to PATH#SECTION");
    }
    told
}

/// Says that no hit is good. Manuscripts are named if the project has any.
fn nothing_matches(zh: bool, manuscripts: bool, near: bool) -> String {
    let (place, rest) = match (zh, manuscripts) {
        (true, true) => ("记忆和正文里没有相符的内容", "；下面是最接近的段落"),
        (true, false) => ("记忆里没有相符的内容", "；下面是最接近的段落"),
        (false, true) => (
            "nothing in memory or manuscripts matches well",
            "; the nearest sections are shown",
        ),
        (false, false) => (
            "nothing in memory matches well",
            "; the nearest sections are shown",
        ),
    };
    format!("{place}{}", if near { rest } else { "" })
}

fn in_json(shown: &Shown, kind: Kind) -> Value {
    let hit = &shown.hit;
    let also = shown.also.iter();
    let also: Vec<Value> = also
        .map(|(path, line)| json!({"path": path, "line": line}))
        .collect();
    json!({
        "path": hit.path,
        "line": hit.line,
        "place": place(hit),
        "heading_path": hit.heading_path,
        "tier": name(hit.tier),
        "kind": kind.as_str(),
        "score": hit.score,
        "weak": hit.weak,
        "snippet": hit.snippet,
        "version": hit.version,
        "also": also,
    })
}

/// The place that `read` takes: a line, or a value of a JSON file, which may be all on one line.
fn place(hit: &Hit) -> String {
    if hit.path.ends_with(".json") && !hit.heading_path.is_empty() {
        let pointer = hit
            .heading_path
            .iter()
            .fold(JsonPointer::default(), |above, part| above.child(part));
        format!(
            "{}#{}",
            hit.path,
            pointer.to_string().trim_start_matches('/')
        )
    } else {
        format!("{}:{}", hit.path, hit.line)
    }
}

fn in_text(language: Language, shown: &Shown, kind: Kind) -> String {
    let say = |en: &'static str, zh: &'static str| in_language(language, en, zh);
    let hit = &shown.hit;
    let mut text = format!(
        "{}  {}  {:.2}  {}{}\n    {}\n",
        place(hit),
        say(kind.as_str(), in_chinese(kind)),
        hit.score,
        if hit.weak { say("weak  ", "弱  ") } else { "" },
        hit.heading_path.join(" › "),
        hit.snippet.split_whitespace().collect::<Vec<_>>().join(" ")
    );
    if !shown.also.is_empty() {
        let places = shown
            .also
            .iter()
            .map(|(path, line)| format!("{path}:{line}"));
        let places: Vec<String> = places.collect();
        let same = say("the same in", "同样的内容在");
        text.push_str(&format!("    {same} {}\n", places.join(", ")));
    }
    text
}

fn in_chinese(kind: Kind) -> &'static str {
    match kind {
        Kind::Index => "索引",
        Kind::Memory => "记忆",
        Kind::Plan => "计划",
        Kind::Manuscript => "书稿",
    }
}

fn name(tier: Tier) -> &'static str {
    match tier {
        Tier::L0 => "L0",
        Tier::L1 => "L1",
        Tier::L2 => "L2",
    }
}
