//! Session records: their names and their content.
//!
//! Headings of both languages are accepted. Other content is ignored when reading. A record is
//! written once and never rewritten.

use quipu_contract::Language;
use quipu_text::{Document, Section};
use serde::{Deserialize, Serialize};

use super::names::{self, number, said, split_keywords, split_list};
use super::raw::{guarded, one_line, raw_items, unguarded};

#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Outcome {
    /// Solved. Also the default for a record without an outcome.
    #[default]
    Done,
    Failed,
    Abandoned,
}

impl Outcome {
    pub fn parse(text: &str) -> Option<Outcome> {
        let text = text.to_lowercase();
        let has = |words: &[&str]| words.iter().any(|word| text.contains(word));
        if has(&["abandon", "given up", "放弃"]) {
            Some(Outcome::Abandoned)
        } else if has(&["fail", "unsolved", "not solved", "失败", "未解决", "未完成"]) {
            Some(Outcome::Failed)
        } else {
            has(&["done", "success", "solved", "ok", "成功", "完成", "解决"])
                .then_some(Outcome::Done)
        }
    }

    pub fn in_language(self, language: Language) -> &'static str {
        match (self, language) {
            (Outcome::Done, Language::En) => "done",
            (Outcome::Failed, Language::En) => "failed",
            (Outcome::Abandoned, Language::En) => "abandoned",
            (Outcome::Done, Language::Zh) => "完成",
            (Outcome::Failed, Language::Zh) => "失败",
            (Outcome::Abandoned, Language::Zh) => "放弃",
        }
    }
}

/// The content of a record.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct Session {
    /// The file name without its extension.
    pub name: String,
    pub date: String,
    #[serde(rename = "type")]
    pub kind: String,
    pub keywords: Vec<String>,
    pub time: Option<String>,
    pub agent: Option<String>,
    pub problem: String,
    pub solution: String,
    /// The known pattern that was used.
    pub pattern: Option<String>,
    pub rounds: Option<u32>,
    pub seconds: Option<u32>,
    pub outcome: Outcome,
    pub steps: Vec<String>,
    /// The pattern that was recognised, improved or created.
    pub learnt: Option<String>,
    pub experience: Option<String>,
    /// What was wrong, and what mended it: what a later task can use.
    #[serde(default)]
    pub cause: Option<String>,
    #[serde(default)]
    pub cure: Option<String>,
    pub improvement: Option<String>,
    pub world: Vec<String>,
    /// The plan and the notes of the task process, as they were written.
    #[serde(default)]
    pub archive: String,
    /// The line of the problem, for citations.
    pub line: usize,
}

/// The parts of `{date}_{type}_{keywords}`, and the number of a repeated name (`-2`).
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SessionName {
    pub date: String,
    pub kind: String,
    pub keywords: Vec<String>,
    pub nth: u32,
}

/// Parses a file name without its extension.
pub fn parse_session_name(stem: &str) -> Option<SessionName> {
    let mut pieces = stem.splitn(3, '_');
    let date = pieces.next().filter(|date| is_date(date))?.to_owned();
    let kind = pieces.next()?.to_owned();
    let mut words = pieces.next().unwrap_or_default();
    let mut nth = 1;
    if let Some((before, digits)) = words.rsplit_once('-')
        && let Ok(number) = digits.parse()
    {
        (words, nth) = (before, number);
    }
    Some(SessionName {
        date,
        kind,
        keywords: split_list(words, &['_']),
        nth,
    })
}

fn is_date(text: &str) -> bool {
    text.len() == 10
        && text.bytes().enumerate().all(|(at, b)| {
            if at == 4 || at == 7 {
                b == b'-'
            } else {
                b.is_ascii_digit()
            }
        })
}

/// Builds `{date}_{type}_{keywords}` from letters, digits and underscores only, so that it is valid
/// on all file systems. A keyword keeps its underscores: `__init__`.
pub fn session_stem(date: &str, kind: &str, keywords: &[String]) -> String {
    let plain = |text: &str| -> String {
        text.to_lowercase()
            .split(|c: char| !c.is_alphanumeric() && c != '_')
            .filter(|piece| !piece.is_empty())
            .collect::<Vec<_>>()
            .join("_")
    };
    let words = keywords
        .iter()
        .map(|word| plain(word))
        .filter(|word| !word.is_empty())
        .collect::<Vec<_>>()
        .join("_");
    let words: String = words.chars().take(60).collect();
    let kind = plain(kind).replace('_', "-");
    let kind = match kind.trim_matches('-') {
        "" => "task",
        kind => kind,
    };
    if words.chars().all(|c| c == '_') {
        format!("{date}_{kind}")
    } else {
        format!("{date}_{kind}_{words}")
    }
}

/// The `nth` name for a stem: the second one ends in `-2`.
pub fn nth_name(stem: &str, nth: u32) -> String {
    if nth < 2 {
        stem.to_owned()
    } else {
        format!("{stem}-{nth}")
    }
}

/// Chooses up to four words of the description as keywords.
pub fn plan_keywords(description: &str) -> Vec<String> {
    let mut found: Vec<String> = Vec::new();
    for run in description.split(|c: char| !c.is_alphanumeric() && c != '_') {
        let chinese = run.chars().any(|c| matches!(c, '\u{3400}'..='\u{9fff}'));
        let word: String = if chinese {
            run.chars().take(12).collect()
        } else {
            run.to_lowercase()
        };
        let tells = chinese || !crate::view::words(&word).is_empty();
        if tells && !found.contains(&word) {
            found.push(word);
        }
        if found.len() == 4 {
            break;
        }
    }
    found
}

/// Parses a record, even an incomplete one.
pub fn read_session(stem: &str, text: &str) -> Session {
    let document = Document::parse(text);
    let named = parse_session_name(stem);
    let mut session = Session {
        name: stem.to_owned(),
        line: 1,
        ..Session::default()
    };
    if let Some(named) = named {
        (session.date, session.kind, session.keywords) = (named.date, named.kind, named.keywords);
    }
    let own = |value: Option<&str>| value.map(str::to_owned);
    if let Some(task) = names::TASK.section(&document) {
        session.time = own(names::TIME.value(&document, task));
        session.agent = own(names::AGENT.value(&document, task));
        if let Some(kind) = names::TYPE.value(&document, task) {
            session.kind = kind.to_owned();
        }
        if let Some(words) = names::KEYWORDS.value(&document, task) {
            session.keywords = split_keywords(words);
        }
    }
    if session.date.is_empty()
        && let Some(date) = session
            .time
            .as_deref()
            .and_then(|time| time.get(..10))
            .filter(|date| is_date(date))
    {
        session.date = date.to_owned();
    }
    if let Some(problem) = names::PROBLEM.section(&document) {
        session.line = problem.line;
        session.problem = prose(&document, problem);
    }
    session.solution = names::SOLUTION
        .section(&document)
        .map(|section| prose(&document, section))
        .unwrap_or_default();
    if let Some(execution) = names::EXECUTION.section(&document) {
        session.pattern = own(names::PATTERN_USED.value(&document, execution));
        session.rounds = names::ROUNDS.value(&document, execution).and_then(number);
        session.seconds = names::DURATION.value(&document, execution).and_then(number);
        session.outcome = names::OUTCOME
            .value(&document, execution)
            .and_then(Outcome::parse)
            .unwrap_or_default();
        session.steps = names::steps(&document, execution);
    }
    if session.steps.is_empty()
        && let Some(steps) = names::STEPS.section(&document)
    {
        session.steps = raw_items(&document, steps);
    }
    if let Some(learnt) = names::LEARNT.section(&document) {
        session.learnt = own(names::PATTERN_LEARNT.value(&document, learnt));
        session.experience = own(names::EXPERIENCE.value(&document, learnt));
        session.cause = own(names::CAUSE.value(&document, learnt));
        session.cure = own(names::CURE.value(&document, learnt));
        session.improvement = own(names::IMPROVEMENT.value(&document, learnt));
    }
    if let Some(world) = names::WORLD_CHANGES.section(&document) {
        session.world = raw_items(&document, world);
    }
    session.archive = names::ARCHIVE
        .section(&document)
        .map(|section| prose(&document, section))
        .unwrap_or_default();
    session
}

/// The text of a section with its subsections, byte for byte; empty for a template placeholder.
fn prose(document: &Document<'_>, section: &Section) -> String {
    let text = document.slice(&(section.body.start..section.range.end));
    unguarded(said(text).unwrap_or_default())
}

pub fn render_session(language: Language, session: &Session) -> String {
    let none = match language {
        Language::En => "none",
        Language::Zh => "无",
    };
    let colon = match language {
        Language::En => ": ",
        Language::Zh => "：",
    };
    let mut text = format!("# Session: {}\n", session.name);
    let heading = |text: &mut String, name: &names::Name| {
        text.push_str(&format!("\n## {}\n\n", name.in_language(language)))
    };
    let line = |text: &mut String, name: &names::Name, value: &str| {
        let value = one_line(value);
        text.push_str(&format!(
            "- {}{colon}{}\n",
            name.in_language(language),
            if value.is_empty() { none } else { &value }
        ));
    };
    let or_none = |value: &Option<String>| value.clone().unwrap_or_else(|| none.to_owned());
    heading(&mut text, &names::TASK);
    line(
        &mut text,
        &names::TIME,
        session.time.as_deref().unwrap_or(&session.date),
    );
    line(&mut text, &names::AGENT, &or_none(&session.agent));
    line(&mut text, &names::TYPE, &session.kind);
    line(
        &mut text,
        &names::KEYWORDS,
        &session.keywords.join(if language == Language::En {
            ", "
        } else {
            "、"
        }),
    );
    heading(&mut text, &names::PROBLEM);
    text.push_str(&format!("{}\n", guarded(session.problem.trim())));
    heading(&mut text, &names::SOLUTION);
    text.push_str(&format!(
        "{}\n",
        guarded(if session.solution.is_empty() {
            none
        } else {
            session.solution.trim()
        })
    ));
    heading(&mut text, &names::EXECUTION);
    line(&mut text, &names::PATTERN_USED, &or_none(&session.pattern));
    let rounds = session.rounds.map_or_else(
        || none.to_owned(),
        |n| {
            if language == Language::En {
                n.to_string()
            } else {
                format!("{n} 轮")
            }
        },
    );
    line(&mut text, &names::ROUNDS, &rounds);
    let seconds = session.seconds.map_or_else(
        || none.to_owned(),
        |n| {
            if language == Language::En {
                format!("{n} s")
            } else {
                format!("{n} 秒")
            }
        },
    );
    line(&mut text, &names::DURATION, &seconds);
    line(
        &mut text,
        &names::OUTCOME,
        session.outcome.in_language(language),
    );
    let steps = match names::render_steps(language, &session.steps) {
        list if list.starts_with('\n') => format!("{}{list}", colon.trim_end()),
        steps if steps.is_empty() => format!("{colon}{none}"),
        steps => format!("{colon}{steps}"),
    };
    text.push_str(&format!(
        "- {}{steps}\n",
        names::STEPS.in_language(language)
    ));
    heading(&mut text, &names::LEARNT);
    line(&mut text, &names::PATTERN_LEARNT, &or_none(&session.learnt));
    for (name, value) in [
        (&names::CAUSE, &session.cause),
        (&names::CURE, &session.cure),
    ] {
        if let Some(value) = value {
            line(&mut text, name, value);
        }
    }
    line(&mut text, &names::EXPERIENCE, &or_none(&session.experience));
    line(
        &mut text,
        &names::IMPROVEMENT,
        &or_none(&session.improvement),
    );
    if !session.world.is_empty() {
        heading(&mut text, &names::WORLD_CHANGES);
        session
            .world
            .iter()
            .for_each(|change| text.push_str(&format!("- {change}\n")));
    }
    if !session.archive.is_empty() {
        heading(&mut text, &names::ARCHIVE);
        text.push_str(&format!("{}\n", guarded(session.archive.trim())));
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_read_and_made() {
        let name = parse_session_name("2024-01-20_debug_undefined_var_add-2").unwrap();
        assert_eq!((name.kind.as_str(), name.nth), ("debug", 2));
        assert_eq!(name.keywords, ["undefined", "var", "add"]);
        assert_eq!(parse_session_name("notes"), None);
        assert_eq!(
            session_stem(
                "2026-01-02",
                "Debug",
                &["Undefined var".into(), "a/b".into()]
            ),
            "2026-01-02_debug_undefined_var_a_b"
        );
        assert_eq!(
            session_stem("2026-01-02", "修复", &["未定义变量".into()]),
            "2026-01-02_修复_未定义变量"
        );
        assert_eq!(
            session_stem("2026-01-02", "debug", &["__init__".into(), "a_b".into()]),
            "2026-01-02_debug___init___a_b"
        );
        assert_eq!(nth_name("x", 3), "x-3");
        assert_eq!(
            plan_keywords("Fix the undefined variable in add()"),
            ["fix", "undefined", "variable", "add"]
        );
        assert_eq!(
            plan_keywords("修复 add 函数的未定义变量"),
            ["修复", "add", "函数的未定义变量"]
        );
    }

    #[test]
    fn what_is_written_is_read_again_in_both_languages() {
        let session = Session {
            name: "2026-01-02_debug_x".into(),
            date: "2026-01-02".into(),
            kind: "debug".into(),
            keywords: vec!["undefined_var".into(), "变量".into()],
            time: Some("2026-01-02T10:00:00Z".into()),
            agent: Some("otto".into()),
            problem: "NameError: x\n\n```\n# trace  of f(**kwargs)\n```\n\n### More\n\n__init__"
                .into(),
            solution: "# Vec<T>\n---\nremoved a<b>c [x](y) *args".into(),
            pattern: Some("Undefined variable".into()),
            rounds: Some(3),
            seconds: Some(40),
            outcome: Outcome::Failed,
            steps: vec!["find for (i; j)".into(), "remove __init__".into()],
            learnt: None,
            experience: Some("__init__".into()),
            cause: Some("Vec<T> was *moved".into()),
            cure: Some("clone it: x  = y".into()),
            improvement: None,
            world: vec!["Environment / python: *args  of [x](y)".into()],
            archive: "- [x] find __init__ → f(**kwargs)\n- [x] ~~drop it~~ (why)\n- seen: a<b>c"
                .into(),
            line: 10,
        };
        for language in Language::ALL {
            let text = render_session(language, &session);
            assert_eq!(read_session(&session.name, &text), session, "{text}");
        }
    }

    #[test]
    fn a_record_by_hand_is_read_as_far_as_it_goes() {
        let text = "# Session: x\n\n前言。\n\n## 任务信息\n- 时间：2024-12-19T10:00:00\n- Agent：小明\n\n## 问题描述\nadd 函数报错\n\n## 执行过程\n- 模式识别：是，未定义变量\n- 执行轮数：5轮\n\n## 学习要点\n- 模式：[识别或创建的模式]\n- 经验：先看提交\n\n## 附录\n自由文字\n";
        let session = read_session("2024-12-19_debug_undefined_var_add", text);
        assert_eq!(
            (
                session.agent.as_deref(),
                session.rounds,
                session.learnt.as_deref()
            ),
            (Some("小明"), Some(5), None)
        );
        assert_eq!(
            (session.problem.as_str(), session.outcome),
            ("add 函数报错", Outcome::Done)
        );
        assert_eq!(read_session("odd", "no headings at all").problem, "");
    }
}
