//! Reports the contents of a unit's source in six parts.
//!
//! Every statement names its location. `draft` parses this report, so both must agree on its form.

use quipu_contract::Language;
use quipu_text::first_sentence;

use crate::review::sentences;
use crate::sheet::{Sheet, code, is_han, quoted, say};
use crate::source::{Item, ItemKind, Module};
use crate::survey::StatusScan;
use crate::task::RehearseTask;
use crate::view::View;

const TYPES: usize = 24;
const FUNCTIONS: usize = 48;
const STEPS: usize = 12;
const EXCERPTS: usize = 4;
const EXCERPT_LINES: usize = 25;

pub(crate) fn research(view: &View, survey: &StatusScan, task: &RehearseTask) -> Sheet {
    let l = task.language;
    let title = task
        .unit
        .as_ref()
        .map_or(task.project.as_str(), |unit| &unit.title);
    let mut sheet = Sheet::titled(title);
    overview(&mut sheet, survey, task);
    sheet.h2(say(l, "Core data structures", "核心数据结构"));
    let types = survey.ranked(ItemKind::Type);
    sheet.items(
        &types
            .iter()
            .take(TYPES)
            .map(|(module, item)| entry(module, item, l))
            .collect::<Vec<_>>(),
        say(l, "none found", "未发现"),
    );
    sheet.h2(say(l, "Core functions", "核心函数"));
    let functions = survey.ranked(ItemKind::Function);
    sheet.items(
        &functions
            .iter()
            .take(FUNCTIONS)
            .map(|(module, item)| entry(module, item, l))
            .collect::<Vec<_>>(),
        say(l, "none found", "未发现"),
    );
    flow(&mut sheet, survey, l);
    decisions(&mut sheet, view, survey, task);
    material(&mut sheet, view, survey, &types, &functions, l);
    sheet
}

fn overview(sheet: &mut Sheet, survey: &StatusScan, task: &RehearseTask) {
    let l = task.language;
    sheet.h2(say(l, "Module overview", "模块概览"));
    let modules: Vec<String> = survey
        .modules
        .iter()
        .map(|module| {
            let counts = (
                module.of_kind(ItemKind::Type).count(),
                module.of_kind(ItemKind::Function).count(),
            );
            let doc = if module.doc.is_empty() {
                say(l, "no opening comment", "没有文件注释").to_owned()
            } else {
                ended(&quoted(&module.doc), l)
            };
            let place = if module.cut {
                module.path.clone()
            } else {
                format!("{}:1", module.path)
            };
            let size = match l {
                Language::En => format!(
                    "{} lines, {} types, {} functions",
                    module.lines, counts.0, counts.1
                ),
                Language::Zh => format!(
                    "{} 行，{} 个类型，{} 个函数",
                    module.lines, counts.0, counts.1
                ),
            };
            format!(
                "**{}** {} ({size}): {doc}",
                code(stem(&module.path)),
                code(&place)
            )
        })
        .collect();
    sheet.items(
        &modules,
        say(l, "no source that can be parsed", "没有可以解析的源码"),
    );
}

fn stem(path: &str) -> &str {
    path.rsplit('/').next().unwrap_or(path)
}

/// Adds a full stop if the text has no final punctuation.
pub(crate) fn ended(text: &str, language: Language) -> String {
    match text.ends_with(['.', '。', '!', '！', '?', '？', ':', '：', '…']) {
        true => text.to_owned(),
        false => format!("{text}{}", say(language, ".", "。")),
    }
}

/// Writes one item on one line: name, kind, location, documentation, signature and members.
fn entry(module: &Module, item: &Item, l: Language) -> String {
    let mut text = format!(
        "**{}** ({}) {}: ",
        code(&item.full_name()),
        item.word,
        code(&module.place(item))
    );
    match item.doc.is_empty() {
        true => text.push_str(say(l, "not documented.", "没有注释。")),
        false => text.push_str(&ended(&quoted(&item.doc), l)),
    }
    let signature = code(&quoted(&item.signature));
    text.push_str(&match l {
        Language::En => format!(" Signature: {signature}."),
        Language::Zh => format!(" 签名：{signature}。"),
    });
    if !item.members.is_empty() {
        let members = item
            .members
            .iter()
            .map(|member| code(&quoted(member)))
            .collect::<Vec<_>>()
            .join(say(l, ", ", "、"));
        text.push_str(&match l {
            Language::En => format!(" Made of: {members}."),
            Language::Zh => format!(" 组成：{members}。"),
        });
    }
    text
}

/// Lists the functions reachable from a function without callers, in breadth-first order. Chooses
/// the start with the longest list.
fn flow(sheet: &mut Sheet, survey: &StatusScan, l: Language) {
    sheet.h2(say(l, "Execution flow", "执行流程"));
    let functions = survey.functions();
    let called = |name: &str| {
        functions
            .values()
            .any(|(_, item)| item.name != name && item.calls.iter().any(|call| call == name))
    };
    let mut ways: Vec<Vec<&str>> = Vec::new();
    for name in functions.keys().filter(|name| !called(name)) {
        let mut way = vec![*name];
        let mut at = 0;
        while at < way.len() && way.len() < STEPS {
            let (_, item) = functions[way[at]];
            for call in &item.calls {
                if let Some((known, _)) = functions
                    .get_key_value(call.as_str())
                    .filter(|(known, _)| !way.contains(known))
                    && way.len() < STEPS
                {
                    way.push(known);
                }
            }
            at += 1;
        }
        ways.push(way);
    }
    ways.sort_by_key(|way| std::cmp::Reverse(way.len()));
    let Some(way) = ways.first().filter(|way| way.len() > 1) else {
        sheet.line(&format!(
            "- {}",
            say(
                l,
                "no function here calls another",
                "这里没有互相调用的函数"
            )
        ));
        return;
    };
    for (number, name) in way.iter().enumerate() {
        let (module, item) = functions[name];
        let next: Vec<String> = item
            .calls
            .iter()
            .filter(|call| functions.contains_key(call.as_str()))
            .map(|call| code(call))
            .collect();
        let gist = first_sentence(&item.doc);
        let gist = if gist.is_empty() {
            String::new()
        } else {
            format!(": {}", quoted(gist))
        };
        let calls = match (next.is_empty(), l) {
            (true, _) => String::new(),
            (false, Language::En) => format!(" It calls {}.", next.join(", ")),
            (false, Language::Zh) => format!(" 它调用 {}。", next.join("、")),
        };
        sheet.line(&format!(
            "{}. **{}** {}{}{calls}",
            number + 1,
            code(&item.full_name()),
            code(&module.place(item)),
            ended(&gist, l)
        ));
    }
}

/// Lists comments that give reasons. A parser cannot find other design decisions.
fn decisions(sheet: &mut Sheet, view: &View, survey: &StatusScan, task: &RehearseTask) {
    let l = task.language;
    sheet.h2(say(l, "Design decisions", "设计决策"));
    let signs = [
        "because",
        "so that",
        "instead of",
        "rather than",
        "otherwise",
        "must not",
        "never",
        "invariant",
        "因为",
        "以便",
        "否则",
        "不能",
        "不得",
        "而不是",
    ];
    let mut found = Vec::new();
    for module in &survey.modules {
        let Some(seen) = view.texts.get(&module.path) else {
            continue;
        };
        for (line, sentence) in comment_sentences(&seen.text) {
            let lower = sentence.to_lowercase();
            if !signs.iter().any(|sign| lower.contains(sign)) {
                continue;
            }
            let place = if module.cut {
                module.path.clone()
            } else {
                format!("{}:{line}", module.path)
            };
            found.push(format!(
                "{}: {} ({})",
                code(&place),
                ended(&quoted(&sentence), l),
                say(l, "the comment's own words", "注释原文")
            ));
        }
    }
    found.truncate(10);
    sheet.items(
        &found,
        say(
            l,
            "no comment gives a reason; nothing is inferred",
            "注释没有说明理由；不作推断",
        ),
    );
}

/// Returns the sentences of the comments, each with the line on which it begins. A sentence may go
/// on over several lines; a blank comment line or a line of code ends it.
fn comment_sentences(text: &str) -> Vec<(usize, String)> {
    let mut found = Vec::new();
    let mut paragraph = Paragraph::default();
    for (at, line) in text.lines().enumerate() {
        let comment = COMMENT_MARKS
            .iter()
            .find_map(|mark| Some((*mark, line.trim().strip_prefix(mark)?.trim())));
        // An attribute of Rust and the first line of a script are no comments.
        let is_code = |(mark, words): &(&str, &str)| *mark == "#" && words.starts_with(['[', '!']);
        match comment.filter(|it| !it.1.is_empty() && !is_code(it)) {
            Some((mark, words)) => {
                if paragraph.mark != mark {
                    paragraph.end(&mut found);
                }
                paragraph.mark = mark;
                paragraph.add(at + 1, words);
            }
            None => paragraph.end(&mut found),
        }
    }
    paragraph.end(&mut found);
    found
}

/// Longer marks first: `//` is the beginning of all others.
const COMMENT_MARKS: [&str; 4] = ["///", "//!", "//", "#"];

/// Comment lines that belong together, joined, and the lines at which they begin.
#[derive(Default)]
struct Paragraph {
    mark: &'static str,
    text: String,
    /// Offsets in `text`, with the number of the line that begins there.
    lines: Vec<(usize, usize)>,
}

impl Paragraph {
    fn add(&mut self, line: usize, words: &str) {
        // Chinese is written without blanks, also where a line ends.
        let is_joined = self.text.ends_with(is_wide) && words.starts_with(is_wide);
        if !self.text.is_empty() && !is_joined {
            self.text.push(' ');
        }
        self.lines.push((self.text.len(), line));
        self.text.push_str(words);
    }

    fn end(&mut self, found: &mut Vec<(usize, String)>) {
        let whole = std::mem::take(self);
        let mut from = 0;
        for sentence in sentences(&whole.text) {
            let at = whole.text[from..].find(sentence).unwrap_or_default() + from;
            from = at + sentence.len();
            let line = whole.lines.iter().rfind(|(offset, _)| *offset <= at);
            if let Some((_, line)) = line {
                found.push((*line, sentence.to_owned()));
            }
        }
    }
}

/// Whether a character is a Han character or Chinese punctuation.
fn is_wide(c: char) -> bool {
    is_han(c) || matches!(c, '\u{3000}'..='\u{303f}' | '\u{ff00}'..='\u{ffef}')
}

fn material(
    sheet: &mut Sheet,
    view: &View,
    survey: &StatusScan,
    types: &[(&Module, &Item)],
    functions: &[(&Module, &Item)],
    l: Language,
) {
    sheet.h2(say(l, "Material for the writer", "写作素材"));
    let mut chosen = 0;
    // Prefer functions of four or more lines to trivial ones.
    let mut candidates: Vec<&(&Module, &Item)> = functions.iter().chain(types).collect();
    candidates.sort_by_key(|(_, item)| !(4..EXCERPT_LINES).contains(&(item.end - item.line)));
    for (module, item) in candidates {
        if chosen == EXCERPTS || item.end - item.line < 2 {
            continue;
        }
        let lines: Vec<&str> = item.code.lines().collect();
        if lines.len() > EXCERPT_LINES || item.code.contains("<!--") {
            continue;
        }
        sheet.paragraph(&code(&module.place(item)));
        sheet.block(module.language.name(), &item.code);
        chosen += 1;
    }
    let mut open: Vec<String> = Vec::new();
    for module in &survey.modules {
        if module.broken {
            open.push(format!(
                "{}: {}",
                code(&module.path),
                say(l, "parts of it could not be parsed", "有一部分无法解析")
            ));
        }
        if module.cut {
            open.push(format!(
                "{}: {}",
                code(&module.path),
                say(
                    l,
                    "only parts of it were in view, so its lines are not cited",
                    "只看到其中一部分，因此不标行号"
                )
            ));
        }
    }
    open.extend(view.unread.iter().map(|path| {
        format!(
            "{}: {}",
            code(path),
            say(l, "is no text, or too large", "不是文本，或太大")
        )
    }));
    open.extend(survey.others.iter().map(|(path, lines)| {
        format!(
            "{}: {lines} {}",
            code(path),
            say(l, "lines, not parsed", "行，未解析")
        )
    }));
    sheet.paragraph(say(l, "Not established:", "没能弄清的："));
    sheet.line("");
    sheet.items(&open, say(l, "nothing", "无"));
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_sentence_of_several_comment_lines_is_whole() {
        let text = "//! Written by hand, because two patterns must be\n//! compared. It is small.\n\
            //!\n//! Another\nfn f() {} // because\n    # one\n    # two.\n";
        let expected = [
            (1, "Written by hand, because two patterns must be compared."),
            (2, "It is small."),
            (4, "Another"),
            (6, "one two."),
        ];
        let expected: Vec<_> = expected.map(|(line, text)| (line, text.to_owned())).into();
        assert_eq!(comment_sentences(text), expected);
    }

    #[test]
    fn chinese_lines_are_joined_without_a_blank() {
        let text = "// 手写，因为两个模式必须\n// 互相比较。很小。\n";
        let expected = vec![
            (1, "手写，因为两个模式必须互相比较。".to_owned()),
            (2, "很小。".to_owned()),
        ];
        assert_eq!(comment_sentences(text), expected);
    }
}
