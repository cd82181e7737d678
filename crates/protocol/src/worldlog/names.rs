//! Headings and keys in both languages: both are read, the project's own is written.

use quipu_contract::Language;
use quipu_text::{Document, Section};

use super::raw::{one_line, raw_item};

/// A heading or key: its written forms, and synonyms accepted when reading.
pub(crate) struct Name {
    en: &'static str,
    zh: &'static str,
    also: &'static [&'static str],
}

const fn name(en: &'static str, zh: &'static str, also: &'static [&'static str]) -> Name {
    Name { en, zh, also }
}

impl Name {
    pub fn in_language(&self, language: Language) -> &'static str {
        match language {
            Language::En => self.en,
            Language::Zh => self.zh,
        }
    }

    /// Whether a heading or key matches. A remark in brackets after it is ignored.
    pub fn is(&self, text: &str) -> bool {
        let text = text.split(['(', '（']).next().unwrap_or_default();
        // Compare the first byte before allocating: a file is searched for many names, and most
        // differ there.
        let first = text.trim_start().bytes().next().unwrap_or_default();
        let begins_alike = |name: &str| {
            name.bytes().next().is_some_and(|b| {
                !b.is_ascii() || !first.is_ascii() || b.eq_ignore_ascii_case(&first)
            })
        };
        let same = |name: &str| {
            begins_alike(name) && name.chars().flat_map(char::to_lowercase).eq(folded(text))
        };
        [self.en, self.zh]
            .iter()
            .chain(self.also)
            .any(|name| same(name))
    }

    /// The section with this heading. The written form is preferred to a synonym.
    pub fn section<'d>(&self, document: &'d Document<'_>) -> Option<&'d Section> {
        self.find(document, 1)
    }

    /// The same, below the title of the file.
    pub fn section_below<'d>(&self, document: &'d Document<'_>) -> Option<&'d Section> {
        self.find(document, 2)
    }

    fn find<'d>(&self, document: &'d Document<'_>, level: u8) -> Option<&'d Section> {
        let find = |name: &Name| {
            document
                .sections()
                .iter()
                .find(|section| section.level >= level && name.is(&section.title))
        };
        find(&name(self.en, self.zh, &[])).or_else(|| find(self))
    }

    /// The value of this key directly below a section, if it has content.
    pub fn value<'t>(&self, document: &Document<'t>, section: &Section) -> Option<&'t str> {
        let line = document
            .keyed_in(&section.body)
            .iter()
            .find(|line| self.is(&line.key))?;
        said(document.slice(&line.value))
    }

    /// The spelling of this key directly below a section, or the form of the language.
    pub fn key_in(&self, document: &Document<'_>, section: &Section, language: Language) -> String {
        let known = document
            .keyed_in(&section.body)
            .iter()
            .find(|line| self.is(&line.key));
        known.map_or_else(
            || self.in_language(language).to_owned(),
            |line| line.key.clone(),
        )
    }
}

/// Normalises a name for comparison: lower case, single spaces.
pub(crate) fn fold(text: &str) -> String {
    folded(text).collect()
}

fn folded(text: &str) -> impl Iterator<Item = char> {
    let blank = |at: usize| (at > 0).then_some(' ').into_iter();
    text.split_whitespace()
        .enumerate()
        .flat_map(move |(at, word)| blank(at).chain(word.chars().flat_map(char::to_lowercase)))
}

/// A value with content: not a template placeholder and not a word for "none".
pub(crate) fn said(value: &str) -> Option<&str> {
    let value = value.trim();
    let nothing = ["none", "no", "n/a", "-", "无", "否", "没有", "无匹配"];
    let empty =
        value.is_empty() || is_placeholder(value) || nothing.contains(&fold(value).as_str());
    (!empty).then_some(value)
}

/// Whether a value is a remark of a template: words in italics (`_what was done_`) or in brackets
/// (`[具体问题描述]`). Code in the same signs is a value: `__init__`, `_private`, `[0]`, `[x, y]`.
fn is_placeholder(value: &str) -> bool {
    let inside = |open: char, close: char| {
        let inner = value.strip_prefix(open)?.strip_suffix(close)?;
        (!inner.contains([open, close])).then_some(inner)
    };
    let is_wide = |text: &str| text.chars().any(|c| c > '\u{2e7f}');
    let italics = inside('_', '_').is_some_and(|inner| {
        PLACEHOLDERS.contains(&value) || is_wide(inner) || inner.contains(' ')
    });
    let brackets =
        inside('[', ']').is_some_and(|inner| PLACEHOLDERS.contains(&value) || is_wide(inner));
    italics || brackets
}

/// Placeholders of templates that could be code by their form.
const PLACEHOLDERS: [&str; 5] = [
    "_name_",
    "_N_",
    "_date_type_keywords_",
    "[ISO timestamp]",
    "[agent_name]",
];

/// The first integer of a value: `12 轮`, `about 40 s`.
pub(crate) fn number(value: &str) -> Option<u32> {
    let start = value.find(|c: char| c.is_ascii_digit())?;
    let digits = &value[start..];
    let end = digits
        .find(|c: char| !c.is_ascii_digit())
        .unwrap_or(digits.len());
    digits[..end].parse().ok()
}

/// Steps on one line, or one item each below their key.
pub(super) fn steps(document: &Document<'_>, section: &Section) -> Vec<String> {
    let Some(line) = document
        .keyed_in(&section.body)
        .iter()
        .find(|line| STEPS.is(&line.key))
    else {
        return Vec::new();
    };
    let value = document.slice(&line.value);
    if !value.trim().is_empty() {
        return said(value)
            .map(|value| split_list(value, STEPS_APART))
            .unwrap_or_default();
    }
    let rest = line.range.end..section.body.end;
    document
        .items_in(&rest)
        .iter()
        .take_while(|item| item.depth > 0)
        .filter(|item| item.line > line.line)
        .map(|item| raw_item(document, item))
        .collect()
}

/// A step without the result that followed it.
pub(super) fn bare_step(step: &str) -> &str {
    step.split_once(" → ").map_or(step, |(step, _)| step)
}

/// The value of the key for steps: one line, or a list if a step contains the separator.
pub(super) fn render_steps(language: Language, steps: &[String]) -> String {
    let apart = match language {
        Language::En => "; ",
        Language::Zh => "；",
    };
    if steps.iter().any(|step| step.contains(STEPS_APART)) {
        steps
            .iter()
            .map(|step| format!("\n  - {}", one_line(step)))
            .collect()
    } else {
        steps.join(apart)
    }
}

/// Splits a list on one line: `a; b; c`, `甲；乙`.
pub(crate) fn split_list(value: &str, between: &[char]) -> Vec<String> {
    value
        .split(between)
        .map(str::trim)
        .filter(|piece| !piece.is_empty())
        .map(str::to_owned)
        .collect()
}

pub(crate) const STEPS_APART: &[char] = &[';', '；'];

/// Splits keywords. Without a comma, spaces separate them. Underscores belong to the word.
pub(crate) fn split_keywords(value: &str) -> Vec<String> {
    let commas: &[char] = &[',', '，', '、', ';', '；'];
    if value.contains(commas) {
        split_list(value, commas)
    } else {
        split_list(value, &[' '])
    }
}

// A session.
pub(crate) const TASK: Name = name(
    "Task",
    "任务信息",
    &["任务", "task info", "当前任务", "current task"],
);
pub(crate) const PROBLEM: Name = name("Problem", "问题描述", &["问题", "problem description"]);
pub(crate) const SOLUTION: Name = name("Solution", "解决方案", &["方案"]);
pub(crate) const EXECUTION: Name = name("Execution", "执行过程", &["过程", "process"]);
pub(crate) const LEARNT: Name = name("Lessons", "学习要点", &["经验", "经验教训", "要点"]);
pub(crate) const WORLD_CHANGES: Name = name(
    "World changes",
    "世界变化",
    &["世界状态变化", "changes to the world"],
);
pub(crate) const TIME: Name = name("Time", "时间", &["date", "日期"]);
pub(crate) const AGENT: Name = name("Agent", "Agent", &["代理", "智能体"]);
pub(crate) const TYPE: Name = name("Type", "类型", &["kind"]);
pub(crate) const KEYWORDS: Name = name("Keywords", "关键词", &["关键字"]);
pub(crate) const PATTERN_USED: Name =
    name("Pattern", "模式识别", &["模式", "pattern used", "使用模式"]);
pub(crate) const ROUNDS: Name = name("Rounds", "执行轮数", &["轮数", "轮次", "总轮数"]);
pub(crate) const DURATION: Name = name("Duration", "耗时", &["用时"]);
pub(crate) const OUTCOME: Name = name("Outcome", "结果", &["result", "成败"]);
pub(crate) const STEPS: Name = name("Steps", "步骤", &["做法"]);
pub(crate) const ARCHIVE: Name = name("Plan and notes", "计划与笔记", &[]);
pub(crate) const PATTERN_LEARNT: Name = name("Pattern", "模式", &["new pattern", "新模式"]);
pub(crate) const EXPERIENCE: Name = name("Experience", "经验", &["lesson"]);
pub(crate) const IMPROVEMENT: Name = name("Improvement", "改进", &["next time"]);

// Knowledge.
pub(crate) const STATISTICS: Name = name("Statistics", "统计", &["任务统计", "统计信息"]);
pub(crate) const TASKS: Name = name("Tasks", "任务数", &["task count", "任务总数", "总任务数"]);
pub(crate) const ALL_ROUNDS: Name = name("Rounds", "总轮数", &["total rounds", "轮数"]);
pub(crate) const MEAN_ROUNDS: Name = name("Mean rounds", "平均轮数", &["average rounds"]);
pub(crate) const PATTERNS: Name = name(
    "Patterns",
    "模式",
    &["模式库", "known patterns", "已知模式"],
);
pub(crate) const DESCRIPTION: Name = name("Description", "描述", &["说明"]);
pub(crate) const SITUATION: Name = name("Situation", "适用情境", &["情境", "场景", "适用场景"]);
pub(crate) const FREQUENCY: Name = name("Frequency", "频次", &["频率", "使用次数", "次数"]);
pub(crate) const SUCCESS: Name = name("Success rate", "成功率", &[]);
pub(crate) const FIRST_ROUNDS: Name = name("First rounds", "首次轮数", &[]);
pub(crate) const BEST_ROUNDS: Name = name("Best rounds", "最佳轮数", &["最少轮数"]);
pub(crate) const FROM_SESSIONS: Name = name("Sessions", "会话", &["来源", "sources"]);
pub(crate) const ERRORS: Name = name("Error patterns", "错误模式", &["错误"]);
pub(crate) const SYMPTOM: Name = name("Symptom", "症状", &[]);
pub(crate) const CAUSE: Name = name("Cause", "原因", &["根因"]);
pub(crate) const CURE: Name = name("Cure", "解法", &["解决", "治法"]);
pub(crate) const PREVENTION: Name = name("Prevention", "预防", &[]);
pub(crate) const LESSONS: Name = name("Lessons", "经验", &["经验教训", "learnings"]);
pub(crate) const IDEAS: Name = name("Ideas", "想法", &["点子"]);

// The current task.
pub(crate) const CURRENT: Name = name("Task", "任务", &["当前任务", "current task", "任务信息"]);
pub(crate) const BEFORE: Name = name("Before starting", "开始前检查", &[]);
pub(crate) const PLAN: Name = name("Plan", "执行计划", &["todo", "todos", "计划", "初始todo"]);
pub(crate) const RESULTS: Name = name("Results", "中间结果", &["notes", "笔记", "结果"]);
pub(crate) const CLOSING: Name = name("Closing", "收尾步骤", &["收尾"]);
pub(crate) const STARTED: Name = name("Started", "开始", &["开始时间", "start"]);
pub(crate) const SUSPECT: Name = name("Suspected cause", "怀疑的原因", &["suspect"]);
