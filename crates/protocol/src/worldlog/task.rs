//! One agent's working memory: the current task, its plan, its results, its rounds.
//!
//! Every function takes the text and returns it with one change. Unknown sections, and prose in
//! known sections, stay unchanged, even when the task is cleared.

use quipu_contract::Language;
use quipu_text::{Document, Item, Place, Section, Splice, SpliceError, Strike, splice_all};
use serde::Serialize;
use thiserror::Error;

use super::names::{self, Name, said, split_keywords};
use super::raw::{guarded, one_line as raw_line, raw_items, raw_title, raw_todo, unguarded};

/// The status of a plan item.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Standing {
    Open,
    Done,
    Struck,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Todo {
    pub number: usize,
    pub text: String,
    pub standing: Standing,
    pub line: usize,
}

#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize)]
pub struct Task {
    pub description: String,
    pub started: Option<String>,
    #[serde(rename = "type")]
    pub kind: Option<String>,
    pub keywords: Vec<String>,
    pub pattern: Option<String>,
    /// The cause that the agent suspected when it started.
    pub suspect: Option<String>,
    pub todos: Vec<Todo>,
    pub notes: Vec<String>,
}

#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum TaskError {
    #[error("there is already a current task: {0}")]
    UnderWay(String),
    #[error("there is no current task")]
    NoTask,
    #[error("the plan has no item {number}; it has {count} items")]
    NoItem { number: usize, count: usize },
    #[error(transparent)]
    Edit(#[from] SpliceError),
}

/// Parses the current task. None if the file is cleared.
pub fn read_task(text: &str) -> Option<Task> {
    let document = Document::parse(text);
    let section = names::CURRENT.section_below(&document);
    let description = match section {
        Some(section) => description(&document, section)?,
        // A file written by hand may contain only a plan; its title is the description.
        None if plan_items(&document).is_empty() => return None,
        None => document
            .sections()
            .iter()
            .find(|section| section.level == 1)
            .map(|section| raw_title(&document, section))
            .unwrap_or_default(),
    };
    let value = |name: &Name| {
        section
            .and_then(|section| name.value(&document, section))
            .map(str::to_owned)
    };
    let todos = plan_items(&document)
        .iter()
        .enumerate()
        .map(|(index, item)| todo(&document, index + 1, item))
        .collect();
    let notes = names::RESULTS
        .section(&document)
        .map(|results| raw_items(&document, results));
    Some(Task {
        description,
        started: value(&names::STARTED),
        kind: value(&names::TYPE),
        keywords: value(&names::KEYWORDS)
            .map(|words| split_keywords(&words))
            .unwrap_or_default(),
        pattern: value(&names::PATTERN_USED),
        suspect: value(&names::SUSPECT),
        todos,
        notes: notes.unwrap_or_default(),
    })
}

/// What is asked: the text above the keys that `start_task` writes. In a file written by hand, the
/// first paragraph that is neither a template placeholder nor a list.
fn description(document: &Document<'_>, section: &Section) -> Option<String> {
    let lines = document.keyed_in(&section.body);
    let keys = lines.iter().find(|line| names::STARTED.is(&line.key));
    if let Some(started) = keys {
        let end = line_start(document.text(), started.range.start);
        let text = unguarded(&document.text()[section.body.start..end]);
        return said(&text).map(str::to_owned);
    }
    let body = document.slice(&section.body);
    let mut found: Vec<&str> = Vec::new();
    for line in body.lines().map(str::trim) {
        let plain = said(line).filter(|line| {
            !["- ", "* ", "<!--", "|"]
                .iter()
                .any(|sign| line.starts_with(sign))
        });
        match plain {
            Some(line) => found.push(line),
            None if !found.is_empty() => break,
            None => {}
        }
    }
    (!found.is_empty()).then(|| found.join("\n"))
}

fn plan_items<'d>(document: &'d Document<'_>) -> Vec<&'d Item> {
    let Some(plan) = names::PLAN.section_below(document) else {
        return Vec::new();
    };
    document
        .items_in(&plan.range)
        .iter()
        .filter(|item| item.depth == 0)
        .collect()
}

fn todo(document: &Document<'_>, number: usize, item: &Item) -> Todo {
    let standing = match (item.strike, item.task) {
        (Strike::Whole | Strike::Lead, _) => Standing::Struck,
        (_, Some(quipu_text::Task::Done)) => Standing::Done,
        _ => Standing::Open,
    };
    Todo {
        number,
        text: raw_todo(document, item),
        standing,
        line: item.line,
    }
}

#[derive(Debug, Clone, Default)]
pub struct NewTask {
    pub description: String,
    pub kind: String,
    pub keywords: Vec<String>,
    pub pattern: Option<String>,
    pub suspect: Option<String>,
    pub todos: Vec<String>,
    pub now: String,
}

/// Begins a task in the text. A current task is not replaced.
pub fn start_task(text: &str, language: Language, new: &NewTask) -> Result<String, TaskError> {
    if let Some(task) = read_task(text) {
        return Err(TaskError::UnderWay(task.description));
    }
    let colon = if language == Language::Zh {
        "："
    } else {
        ": "
    };
    let none = if language == Language::Zh {
        "无"
    } else {
        "none"
    };
    let mut body = format!("{}\n\n", guarded(new.description.trim()));
    let keywords = new.keywords.join(if language == Language::Zh {
        "、"
    } else {
        ", "
    });
    let lines = [
        (&names::STARTED, new.now.as_str()),
        (&names::TYPE, new.kind.as_str()),
        (&names::KEYWORDS, keywords.as_str()),
        (&names::PATTERN_USED, new.pattern.as_deref().unwrap_or(none)),
    ];
    let suspect = new.suspect.as_deref().map(raw_line);
    let suspect = suspect.as_deref().map(|cause| (&names::SUSPECT, cause));
    for (name, value) in lines.into_iter().chain(suspect) {
        body.push_str(&format!("- {}{colon}{value}\n", name.in_language(language)));
    }
    let mut text = with_section(text, &names::CURRENT, language)?;
    let document = Document::parse(&text);
    if let Some(section) = names::CURRENT.section_below(&document) {
        text = document.replace_body(section, &body)?;
    }
    for item in &new.todos {
        text = add_todo(&text, language, item, None)?;
    }
    Ok(text)
}

fn with_section(text: &str, name: &Name, language: Language) -> Result<String, SpliceError> {
    let document = Document::parse(text);
    if name.section_below(&document).is_some() {
        return Ok(text.to_owned());
    }
    // The closing steps stay last.
    let place = names::CLOSING
        .section_below(&document)
        .map_or(Place::End, |closing| Place::Before(closing.id));
    document.insert_section(place, 2, name.in_language(language), "")
}

/// Adds an item to the plan, at the end or as number `at`.
pub fn add_todo(
    text: &str,
    language: Language,
    item: &str,
    at: Option<usize>,
) -> Result<String, TaskError> {
    let item = one_line(item)?;
    let text = with_section(text, &names::PLAN, language)?;
    let document = Document::parse(&text);
    let items = plan_items(&document);
    if let Some(before) = at.and_then(|at| items.get(at.saturating_sub(1))) {
        let start = line_start(&text, before.range.start);
        let line = Splice {
            range: start..start,
            text: format!("- [ ] {item}\n"),
        };
        return Ok(line.apply(&text));
    }
    match (items.last(), names::PLAN.section_below(&document)) {
        (Some(last), _) => {
            let end = last.range.start + document.slice(&last.range).trim_end().len();
            Ok(Splice {
                range: end..end,
                text: format!("\n- [ ] {item}"),
            }
            .apply(&text))
        }
        (None, Some(plan)) => Ok(document.append_entry(plan, &format!("- [ ] {item}"))?),
        (None, None) => Ok(text.clone()),
    }
}

/// Checks an item off and adds its result.
pub fn finish_todo(text: &str, number: usize, result: Option<&str>) -> Result<String, TaskError> {
    change_item(text, number, |document, item| {
        let mut splices = vec![tick(item)];
        if let Some(result) = result {
            let end = item.content.start + document.slice(&item.content).trim_end().len();
            splices.push(Splice {
                range: end..end,
                text: format!(" → {}", one_line(result)?),
            });
        }
        Ok(splices)
    })
}

/// Strikes an item out and adds the reason.
pub fn strike_todo(
    text: &str,
    language: Language,
    number: usize,
    why: &str,
) -> Result<String, TaskError> {
    change_item(text, number, |document, item| {
        let why = one_line(why)?;
        let why = if language == Language::Zh {
            format!("（{why}）")
        } else {
            format!(" ({why})")
        };
        let content = document.slice(&item.content).trim_end();
        let end = item.content.start + content.len();
        if matches!(item.strike, Strike::Whole | Strike::Lead) {
            return Ok(vec![Splice {
                range: end..end,
                text: why,
            }]);
        }
        Ok(vec![
            tick(item),
            Splice {
                range: item.content.start..end,
                text: format!("~~{content}~~{why}"),
            },
        ])
    })
}

fn tick(item: &Item) -> Splice {
    match &item.task_mark {
        Some(mark) => Splice {
            range: mark.clone(),
            text: "[x]".into(),
        },
        None => Splice {
            range: item.content.start..item.content.start,
            text: "[x] ".into(),
        },
    }
}

fn change_item(
    text: &str,
    number: usize,
    plan: impl Fn(&Document<'_>, &Item) -> Result<Vec<Splice>, TaskError>,
) -> Result<String, TaskError> {
    let document = Document::parse(text);
    let items = plan_items(&document);
    let item = item_at(&items, number)?;
    let splices = plan(&document, item)?;
    // A missing checkbox is inserted before the replacement of the text after it.
    match splices.as_slice() {
        [box_, rest] if box_.range.is_empty() && box_.range.start == rest.range.start => {
            Ok(Splice {
                range: rest.range.clone(),
                text: format!("{}{}", box_.text, rest.text),
            }
            .apply(text))
        }
        _ => Ok(splice_all(text, &splices)?),
    }
}

fn item_at<'i>(items: &[&'i Item], number: usize) -> Result<&'i Item, TaskError> {
    items
        .get(number.wrapping_sub(1))
        .copied()
        .ok_or(TaskError::NoItem {
            number,
            count: items.len(),
        })
}

/// Moves a plan item to another position.
pub fn move_todo(text: &str, number: usize, to: usize) -> Result<String, TaskError> {
    let document = Document::parse(text);
    let items = plan_items(&document);
    let (item, target) = (item_at(&items, number)?, item_at(&items, to)?);
    if number == to {
        return Ok(text.to_owned());
    }
    let whole = |item: &Item| {
        let start = line_start(text, item.range.start);
        let end = item.range.start + document.slice(&item.range).trim_end().len();
        start..end
    };
    let (from, to_lines) = (whole(item), whole(target));
    let lines = text[from.clone()].to_owned();
    let after = from.end + text[from.end..].find('\n').map_or(0, |at| at + 1);
    let cut = Splice {
        range: from.start..after,
        text: String::new(),
    };
    let paste = match number < to {
        true => Splice {
            range: to_lines.end..to_lines.end,
            text: format!("\n{lines}"),
        },
        false => Splice {
            range: to_lines.start..to_lines.start,
            text: format!("{lines}\n"),
        },
    };
    Ok(splice_all(text, &[cut, paste])?)
}

/// Records a result.
pub fn note(text: &str, language: Language, note: &str) -> Result<String, TaskError> {
    read_task(text).ok_or(TaskError::NoTask)?;
    let note = one_line(note)?;
    let text = with_section(text, &names::RESULTS, language)?;
    let document = Document::parse(&text);
    match names::RESULTS.section_below(&document) {
        Some(results) => Ok(document.append_entry(results, &format!("- {note}"))?),
        None => Ok(text),
    }
}

/// The plan and the notes, as they are written in the file.
pub fn archive(text: &str) -> String {
    let document = Document::parse(text);
    let results = names::RESULTS.section_below(&document);
    let notes = results.map(|section| document.items_in(&section.body));
    let notes = notes
        .unwrap_or_default()
        .iter()
        .filter(|item| item.depth == 0);
    let lines: Vec<&str> = plan_items(&document)
        .into_iter()
        .chain(notes)
        .map(|item| {
            let start = line_start(text, item.range.start);
            let end = item.range.start + document.slice(&item.range).trim_end().len();
            &text[start..end]
        })
        .collect();
    lines.join("\n")
}

/// Removes the task: known sections are reset to `template`, all others stay.
pub fn clear_task(text: &str, template: &str) -> Result<String, SpliceError> {
    let fresh = Document::parse(template);
    let mut text = text.to_owned();
    for name in [
        &names::CURRENT,
        &names::BEFORE,
        &names::PLAN,
        &names::RESULTS,
        &names::CLOSING,
    ] {
        let document = Document::parse(&text);
        let Some(section) = name.section_below(&document) else {
            continue;
        };
        let body = name
            .section_below(&fresh)
            .map_or("", |section| fresh.slice(&section.body));
        text = document.replace_body(section, body)?;
    }
    Ok(text)
}

fn line_start(text: &str, at: usize) -> usize {
    text[..at].rfind('\n').map_or(0, |newline| newline + 1)
}

fn one_line(text: &str) -> Result<&str, SpliceError> {
    let trimmed = text.trim();
    if trimmed.contains(['\n', '\r']) {
        Err(SpliceError::NotOneLine {
            text: text.to_owned(),
        })
    } else {
        Ok(trimmed)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const ZH: &str =
        include_str!("../../../../profiles/worldlog/templates/zh/.notes/{agent}/task_process.md");
    const EN: &str =
        include_str!("../../../../profiles/worldlog/templates/en/.notes/{agent}/task_process.md");

    fn begin(text: &str, language: Language) -> String {
        let new = NewTask {
            description: "修复 add 函数".into(),
            kind: "debug".into(),
            keywords: vec!["add".into()],
            todos: vec!["分析".into(), "修复".into()],
            now: "2026-01-02T10:00:00Z".into(),
            ..NewTask::default()
        };
        start_task(text, language, &new).unwrap()
    }

    #[test]
    fn a_fresh_template_holds_no_task() {
        assert_eq!(
            (read_task(ZH), read_task(EN), read_task("")),
            (None, None, None)
        );
    }

    #[test]
    fn a_task_is_begun_worked_on_and_cleared() {
        for (template, language) in [(ZH, Language::Zh), (EN, Language::En)] {
            let mine = template.replacen("\n\n## ", "\n\n## 我的小节\n\n  保留  \n\n## ", 1);
            let text = begin(&mine, language);
            let text = add_todo(&text, language, "测试", None).unwrap();
            let text = add_todo(&text, language, "先看提交", Some(1)).unwrap();
            let text = finish_todo(&text, 1, Some("找到了")).unwrap();
            let text = strike_todo(&text, language, 2, "已知模式").unwrap();
            let text = move_todo(&text, 4, 3).unwrap();
            let text = note(&text, language, "x 从未定义").unwrap();
            let task = read_task(&text).unwrap();
            let told: Vec<_> = task
                .todos
                .iter()
                .map(|t| (t.text.as_str(), t.standing))
                .collect();
            assert_eq!(told[0], ("先看提交 → 找到了", Standing::Done), "{text}");
            assert_eq!(told[1].1, Standing::Struck);
            assert_eq!((told[2].0, told[3].0), ("测试", "修复"), "{text}");
            assert_eq!(task.notes, ["x 从未定义"], "{text}");
            let why = match language {
                Language::Zh => "（已知模式）",
                Language::En => " (已知模式)",
            };
            assert_eq!(
                archive(&text),
                format!(
                    "- [x] 先看提交 → 找到了\n- [x] ~~分析~~{why}\n- [ ] 测试\n- [ ] 修复\n\
                     - x 从未定义"
                )
            );
            assert_eq!(task.description, "修复 add 函数");
            assert!(matches!(
                start_task(&text, language, &NewTask::default()),
                Err(TaskError::UnderWay(_))
            ));
            assert_eq!(clear_task(&text, template).unwrap(), mine);
        }
    }

    #[test]
    fn items_are_moved_both_ways_with_what_is_below_them() {
        let text = "## Plan\n\n- [ ] a\n  more\n- [ ] b\n- [ ] c\n\nProse.\n";
        assert_eq!(
            move_todo(text, 1, 3).unwrap(),
            "## Plan\n\n- [ ] b\n- [ ] c\n- [ ] a\n  more\n\nProse.\n"
        );
        assert_eq!(
            move_todo(text, 3, 1).unwrap(),
            "## Plan\n\n- [ ] c\n- [ ] a\n  more\n- [ ] b\n\nProse.\n"
        );
        assert!(matches!(
            move_todo(text, 4, 1),
            Err(TaskError::NoItem {
                number: 4,
                count: 3
            })
        ));
    }

    #[test]
    fn a_file_by_hand_after_the_seed_is_continued() {
        let text = "# 任务\n\n## 执行计划（已知模式）\n- [x] 识别模式：未定义变量错误\n- [ ] 应用已知解决方案\n\n## 收尾步骤（强制执行）\n- [ ] 清理\n";
        let edited = finish_todo(
            &add_todo(text, Language::Zh, "验证", None).unwrap(),
            2,
            None,
        )
        .unwrap();
        assert_eq!(
            read_task(&edited).map(|task| (task.description, task.todos.len())),
            Some(("任务".into(), 3))
        );
        assert_eq!(
            edited,
            text.replace(
                "- [ ] 应用已知解决方案\n",
                "- [x] 应用已知解决方案\n- [ ] 验证\n"
            )
        );
    }
}
