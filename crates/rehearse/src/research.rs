//! Reports the contents of a unit's source in six parts.
//!
//! Every statement names its location. `draft` parses this report, so both must agree on its form.

use quipu_contract::Language;
use quipu_text::first_sentence;

use crate::sheet::{Sheet, code, quoted, say};
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
        for (at, line) in seen.text.lines().enumerate() {
            let comment = ["///", "//!", "//", "#"]
                .iter()
                .find_map(|mark| line.trim().strip_prefix(mark))
                .map(str::trim);
            let Some(comment) = comment.filter(|comment| comment.chars().count() > 12) else {
                continue;
            };
            if signs
                .iter()
                .any(|sign| comment.to_lowercase().contains(sign))
                && !comment.starts_with('[')
            {
                let place = if module.cut {
                    module.path.clone()
                } else {
                    format!("{}:{}", module.path, at + 1)
                };
                found.push(format!(
                    "{}: {} ({})",
                    code(&place),
                    ended(&quoted(comment), l),
                    say(l, "the comment's own words", "注释原文")
                ));
            }
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
