//! Paragraphs about identity, state, todos, decisions and delegations.

use quipu_contract::{Actor, Form, Paragraph, ProjectPath, in_one_line};
use quipu_text::Document;
use quipu_text::json::parse_json;
use serde_json::{Value, json};

use super::{Block, Waking};
use crate::brief::fence;
use crate::decisions::load_decisions;
use crate::delegation::{Progress, load_delegation, names_a_file, pointer_of, survey_delegations};
use crate::draft::Draft;
use crate::forms::resolve_unit_form;
use crate::moment::parse_moment;
use crate::quoting::{as_entry_value, below, headline, quoted, unquoted};
use crate::reading::{ReadError, read_pointer};
use crate::todos::{Todo, is_review_due, load_todos};
use crate::work::WorkError;

/// So many decisions are told, and so many completed steps.
const DECISIONS_TOLD: usize = 7;
const COMPLETED_TOLD: usize = 5;

/// Who we are, section by section; the stand-ins of a template are left out.
pub(super) fn identity(waking: &Waking<'_>) -> Result<Option<Block>, WorkError> {
    let Some(path) = waking.readable(Form::Identity) else { return Ok(None) };
    let text = Draft::new(waking.project, waking.actor).text(&path)?;
    let document = Document::parse(&text);
    let title = document.sections().iter().find(|s| s.level == 1).map_or_else(|| path.to_string(), |s| s.title.clone());
    let mut block = Block::new(
        Paragraph::Identity,
        format!("{}{}", waking.say("Who we are: ", "我是谁："), in_one_line(&title)),
        format!("quipu read {path}"),
    );
    block.entries.extend(flagged_line(waking, &path)?);
    for section in document.sections() {
        let body = plain(document.slice(&section.body));
        if !body.is_empty() {
            block.entries.push(below(if section.level > 1 { &section.title } else { "" }, &body));
        }
    }
    if block.entries.is_empty() {
        let said = waking.say("Nothing is filled in yet: a person should edit it.", "尚未填写：请由人来编辑。");
        block.entries.push(format!("{said} ({path})"));
    }
    block.data = json!({"path": path, "title": title, "text": text});
    Ok(Some(block))
}

/// The text without remarks in italics, comments and items that were never filled in.
pub(super) fn plain(text: &str) -> String {
    let mut in_comment = false;
    let kept = text.lines().filter(|line| {
        let line = line.trim();
        let opens = line.starts_with("<!--");
        let skip = in_comment
            || opens
            || (line.starts_with('_') && line.ends_with('_'))
            || (line.starts_with("- ") && line.ends_with([':', '：']));
        in_comment = (in_comment || opens) && !line.ends_with("-->");
        !skip
    });
    kept.collect::<Vec<_>>().join("\n").trim_end().trim_start_matches('\n').to_owned()
}

/// Where things stand.
pub(super) fn state(waking: &Waking<'_>) -> Result<Option<Block>, WorkError> {
    let Some(path) = waking.readable(Form::State) else { return Ok(None) };
    let mut block = Block::new(Paragraph::State, waking.say("Where things stand", "当前状态"), "quipu state get");
    block.entries.extend(flagged_line(waking, &path)?);
    let text = Draft::new(waking.project, waking.actor).text(&path)?;
    if text.trim().is_empty() && block.entries.is_empty() {
        return Ok(None);
    }
    let Ok(root) = parse_json(&text) else {
        block.entries.push(quoted(&text));
        return Ok(Some(block));
    };
    let value = root.to_value();
    block.entries.extend(state_lines(waking, &value));
    block.data = value;
    Ok(Some(block))
}

/// What is wrong with a file and how it is repaired. Waking up does not fail because of it.
fn flagged_line(waking: &Waking<'_>, path: &ProjectPath) -> Result<Option<String>, WorkError> {
    let Some(file) = waking.project.store.flagged(path)? else { return Ok(None) };
    let (what, line) = file.flag.as_ref().map_or(("", None), |flag| (flag.what.as_str(), flag.line));
    let line = line.map(|line| format!(", {} {line}", waking.say("line", "行"))).unwrap_or_default();
    let shown = waking.say("the last committed version is shown", "以下是上次提交的版本");
    Ok(Some(format!("⚠ {path} {what}{line}; {shown}. {}", file.mend())))
}

fn state_lines(waking: &Waking<'_>, value: &Value) -> Vec<String> {
    let mut lines = Vec::new();
    let mut put = |key: &str, value: &Value| {
        let text = told(value);
        if !text.is_empty() {
            lines.push(format!("- {}: {text}", in_one_line(key)));
        }
    };
    let progress = &value["progress"];
    put("phase", &value["phase"]);
    put("current_task", &value["current_task"]);
    put("in_progress", &progress["in_progress"]);
    for block in progress["blocked"].as_array().into_iter().flatten() {
        put("blocked", &json!(blocked(block)));
    }
    for step in progress["next_steps"].as_array().into_iter().flatten() {
        put("next", step);
    }
    put("notes", &value["notes"]);
    let done = progress["completed"].as_array().map(Vec::as_slice).unwrap_or_default();
    let earlier = done.len().saturating_sub(COMPLETED_TOLD);
    let newest = done[earlier..].iter().map(told).collect::<Vec<_>>().join("; ");
    if !done.is_empty() {
        let before = if earlier > 0 { format!(" (+{earlier} {})", waking.say("earlier", "项更早")) } else { String::new() };
        put("completed", &json!(format!("{newest}{before}")));
    }
    put("last_update", &value["last_update"]);
    const KNOWN: [&str; 8] = ["phase", "current_task", "progress", "notes", "last_update", "last_session", "session_id", "delegations"];
    for (key, other) in value.as_object().into_iter().flatten().filter(|(key, _)| !KNOWN.contains(&key.as_str())) {
        put(key, other);
    }
    lines
}

fn blocked(block: &Value) -> String {
    match block {
        Value::String(text) => text.clone(),
        block => {
            let part = |key: &str| block[key].as_str().unwrap_or_default();
            let since = part("since").get(..10).unwrap_or_default();
            format!("{} ({}{}{since})", part("item"), part("reason"), if since.is_empty() { "" } else { ", " })
        }
    }
}

fn told(value: &Value) -> String {
    match value {
        Value::Null => String::new(),
        Value::String(text) => as_entry_value(text.trim()),
        Value::Array(items) if items.is_empty() => String::new(),
        Value::Object(keys) if keys.is_empty() => String::new(),
        Value::Array(items) if items.iter().all(Value::is_string) => items.iter().map(told).collect::<Vec<_>>().join("; "),
        other => other.to_string(),
    }
}

/// Open todos, and whether they are due for a review.
pub(super) fn todos(waking: &Waking<'_>) -> Result<Option<Block>, WorkError> {
    let Some(path) = waking.readable(Form::Todos) else { return Ok(None) };
    let mut block = Block::new(Paragraph::Todos, waking.say("Open todos", "未完成的待办"), "quipu todo list");
    block.entries.extend(flagged_line(waking, &path)?);
    let list = match load_todos(waking.project, waking.actor) {
        // The line above says it.
        Err(WorkError::Malformed { .. }) => return Ok(Some(block)),
        other => other?,
    };
    let open = list.open();
    if open.is_empty() && block.entries.is_empty() {
        return Ok(None);
    }
    if let Some(hours) = is_review_due(waking.project, &list, waking.now) {
        let since = match (list.last_review.is_some(), waking.say("en", "zh")) {
            (true, "zh") => format!("距上次检视已 {hours} 小时"),
            (true, _) => format!("last review {hours} h ago"),
            (false, "zh") => "从未检视".into(),
            (false, _) => "never reviewed".into(),
        };
        block.entries.push(format!("{}{since}{}quipu todo review", waking.say("Review due: ", "应当检视："), waking.say(". ", "。")));
    }
    block.entries.extend(open.iter().map(|t| todo_line(waking, t)));
    block.data = json!({"open": open, "last_review": list.last_review});
    Ok(Some(block))
}

fn todo_line(waking: &Waking<'_>, todo: &Todo) -> String {
    let mut marks = vec![todo.priority.as_str().to_owned(), todo.status.as_str().to_owned()];
    marks.extend(todo.assignee.as_ref().filter(|a| !a.is_empty()).map(|a| format!("@{a}")));
    if let Some(due) = &todo.due {
        let late = parse_moment(due).is_some_and(|d| d < waking.now);
        let word = if late { waking.say("overdue since", "已逾期，应于") } else { waking.say("due", "期限") };
        marks.push(format!("{word} {due}"));
    }
    let by = if todo.blocked_by.is_empty() { String::new() } else { format!(" ← {}", todo.blocked_by.join(", ")) };
    let note = todo
        .notes
        .as_ref()
        .and_then(|n| n.lines().rfind(|l| !l.trim().is_empty()))
        .map(|n| format!(" — {}", in_one_line(n)))
        .unwrap_or_default();
    let (id, marks) = (in_one_line(&todo.id), marks.join(", "));
    format!("- {id} [{}] {}{}{note}", in_one_line(&marks), in_one_line(&todo.title), in_one_line(&by))
}

/// Decisions that hold, the newest first.
pub(super) fn decisions(waking: &Waking<'_>) -> Result<Option<Block>, WorkError> {
    let Some(path) = waking.readable(Form::Decisions) else { return Ok(None) };
    let flagged = flagged_line(waking, &path)?;
    let all = load_decisions(waking.project, waking.actor)?;
    let mut standing: Vec<_> = all.into_iter().filter(|d| d.superseded_by.is_none()).collect();
    if standing.is_empty() && flagged.is_none() {
        return Ok(None);
    }
    standing.reverse();
    standing.truncate(DECISIONS_TOLD);
    let mut block = Block::new(Paragraph::Decisions, waking.say("Recent decisions", "最近的决策"), "quipu decisions");
    block.entries.extend(flagged);
    for decision in &standing {
        let chosen = decision.decision.as_ref().map(|d| format!(": {}", in_one_line(&d.replace('\n', " ")))).unwrap_or_default();
        let old = if decision.supersedes.is_empty() {
            String::new()
        } else {
            format!(" ({} {})", waking.say("supersedes", "取代"), decision.supersedes.join(", "))
        };
        block.entries.push(format!("- {} {}{old}{chosen}", in_one_line(&decision.id), in_one_line(&decision.title)));
    }
    block.data = json!(standing);
    Ok(Some(block))
}

/// What was handed out and has not been settled.
pub(super) fn delegations(waking: &Waking<'_>) -> Result<Option<Block>, WorkError> {
    if !waking.may_see(Form::Delegation) {
        return Ok(None);
    }
    let all = survey_delegations(waking.project, waking.actor)?;
    let settled = settled_in_state(waking)?;
    let open: Vec<_> = all.into_iter().filter(|d| !settled.contains(&(d.id.clone(), d.progress.as_str().to_owned()))).collect();
    if open.is_empty() {
        return Ok(None);
    }
    let mut block = Block::new(Paragraph::Delegations, waking.say("Delegations", "委派"), "quipu collect");
    for order in &open {
        let word = match order.progress {
            Progress::Open => waking.say("not begun", "尚未开始"),
            Progress::Running => waking.say("running", "进行中"),
            Progress::Dead => waking.say("its child is gone; quipu delegate --again", "子 Agent 已失联；quipu delegate --again"),
            Progress::Overdue => waking.say("OVERDUE, no report; quipu delegate --again", "已超期，没有报告；quipu delegate --again"),
            Progress::Reported => waking.say("reported, not collected; quipu collect", "已报告，未收取；quipu collect"),
            Progress::ReportedTwice => waking.say("reported more than once; quipu collect", "有不止一份报告；quipu collect"),
        };
        let until = order.deadline.as_ref().map(|d| format!(", {} {d}", waking.say("until", "期限"))).unwrap_or_default();
        block.entries.push(format!("- {} [{word}{until}] {}", order.id, headline(&order.task)));
    }
    block.data = json!(open);
    Ok(Some(block))
}

/// Orders whose report the state has noted already.
fn settled_in_state(waking: &Waking<'_>) -> Result<Vec<(String, String)>, WorkError> {
    let Some(path) = waking.readable(Form::State) else { return Ok(Vec::new()) };
    let text = Draft::new(waking.project, waking.actor).text(&path)?;
    let entries = parse_json(&text).map(|root| root.to_value()["delegations"].clone()).unwrap_or_default();
    let told = |e: &Value| Some((e["id"].as_str()?.to_owned(), e["status"].as_str()?.to_owned()));
    let is_report = |(_, status): &(String, String)| status.starts_with("reported");
    Ok(entries.as_array().into_iter().flatten().filter_map(told).filter(is_report).collect())
}

/// A child's own order, whole.
pub(super) fn delegation(waking: &Waking<'_>) -> Result<Option<Block>, WorkError> {
    let Some(id) = waking.delegation else { return Ok(None) };
    let path = resolve_unit_form(waking.project, Form::Delegation, id)?;
    let order = load_delegation(waking.project, waking.actor, id, waking.now)?;
    let text = Draft::new(waking.project, waking.actor).text(&path)?;
    let title = format!("{} {id}", waking.say("Your order", "你的任务单"));
    let mut block = Block::new(Paragraph::Delegation, title, format!("quipu read {path}"));
    let document = Document::parse(&text);
    for section in document.sections().iter().filter(|s| s.level != 1) {
        let body = plain(document.slice(&section.body));
        if !body.is_empty() {
            block.entries.push(format!("{}\n", below(&section.title, &unquoted(&body))));
        }
    }
    for input in &order.inputs {
        block.entries.push(show_input(waking, &order.author, input));
    }
    match order.progress {
        Progress::Overdue => {
            block.entries.push(waking.say("⚠ The deadline has passed: report what there is.", "⚠ 已过期限：有什么就报告什么。").into())
        }
        Progress::Reported | Progress::ReportedTwice => block.entries.push(
            waking.say("⚠ A report is there already; yours is kept beside it and marked.", "⚠ 已有一份报告；你的会并列保留并注明。").into(),
        ),
        _ => {}
    }
    block.data = json!(order);
    Ok(Some(block))
}

/// What an input names, whole. The order itself grants it, as far as its author may read it.
fn show_input(waking: &Waking<'_>, author: &Actor, input: &str) -> String {
    let pointer = pointer_of(input);
    match read_pointer(waking.project, author, pointer, None) {
        Ok(reading) => fence("input", pointer, String::from_utf8_lossy(&reading.bytes).trim_end()),
        Err(ReadError::Denied(_) | ReadError::OnlySections { .. } | ReadError::UnknownActor(_))
            if names_a_file(waking.project, pointer) =>
        {
            format!("({} `{pointer}`)", waking.say("not for whoever wrote this order to give:", "写任务单者无权给出："))
        }
        Err(_) => format!("({} `{pointer}`)", waking.say("not in this project's memory:", "不在本项目的记忆中：")),
    }
}
