//! Paragraphs about identity, todos, decisions and delegations.
//!
//! Each paragraph uses only files that the caller's role reads. A child also sees the inputs that
//! its order grants.

use std::collections::BTreeSet;

use quipu_contract::{Actor, Form, Paragraph, ProjectPath, in_one_line};
use quipu_text::Document;
use quipu_text::json::parse_json;
use serde_json::{Value, json};

use super::{Block, Waking};
use crate::files::edit::Draft;
use crate::files::quote::{below, headline, unquoted};
use crate::files::read::{ReadError, read_pointer};
use crate::project::forms::{resolve_unit_form, template_of};
use crate::project::ids::short_name;
use crate::project::times::parse_moment;
use crate::session::decisions::{Decision, load_decisions};
use crate::session::delegation::{
    Part, Progress, load_delegation, names_a_file, parts_of, pointer_of, survey_delegations,
};
use crate::session::error::WorkError;
use crate::session::todos::{LATER, Status, Todo, Todos, is_review_due, load_todos};
use crate::view::brief::fence;

/// The identity of the project, section by section, without template text.
pub(super) fn identity(waking: &Waking<'_>) -> Result<Option<Block>, WorkError> {
    let Some(path) = waking.readable(Form::Identity) else {
        return Ok(None);
    };
    let text = Draft::new(waking.project, waking.actor).text(&path)?;
    let document = Document::parse(&text);
    let title = document
        .sections()
        .iter()
        .find(|s| s.level == 1)
        .map_or_else(|| path.to_string(), |s| s.title.clone());
    let heading = format!("{}{}", waking.say("About ", "关于 "), in_one_line(&title));
    let mut block = Block::new(Paragraph::Identity, heading, format!("quipu read {path}"));
    let boilerplate = boilerplate(waking, &path);
    block.entries.extend(flagged_line(waking, &path)?);
    for section in document.sections() {
        let body = plain(document.slice(&section.body));
        let own = body
            .lines()
            .filter(|line| line.trim().is_empty() || !boilerplate.contains(line.trim()))
            .collect::<Vec<_>>()
            .join("\n");
        let own = own.trim_end().trim_start_matches('\n');
        if !own.trim().is_empty() {
            block.entries.push(below(
                if section.level > 1 {
                    &section.title
                } else {
                    ""
                },
                &unquoted(own),
            ));
        }
    }
    // Entries are cut from the end, so put folder lists and long tables last, after sentences that
    // a session must not violate.
    block
        .entries
        .sort_by_key(|entry| (is_listing(entry), entry.lines().count() > SHORT_SECTION));
    if block.entries.is_empty() {
        let said = waking.say(
            "is not filled in yet; a person must do that.",
            "尚未填写；需要由人填写。",
        );
        block.entries.push(format!("{path} {said}"));
    }
    block.data = json!({"path": path, "title": title, "text": text});
    Ok(Some(block))
}

/// Longer sections of the identity are cut before shorter ones.
const SHORT_SECTION: usize = 6;

/// Whether an entry is a table or a list of folders. Both are visible in the project itself.
fn is_listing(entry: &str) -> bool {
    let is_row = |line: &str| {
        line.starts_with('|')
            || line.starts_with('/')
            || line.starts_with("```")
            || names_folder(line)
    };
    let lines: Vec<&str> = entry
        .lines()
        .map(|line| line.trim_start_matches(['>', ' ']).trim())
        .filter(|line| !line.is_empty())
        .collect();
    let rows = lines
        .iter()
        .filter(|line| !line.starts_with("**"))
        .collect::<Vec<_>>();
    !rows.is_empty() && rows.iter().all(|line| is_row(line))
}

/// Recognises `- src/: source code`.
fn names_folder(line: &str) -> bool {
    let first = line
        .strip_prefix("- ")
        .and_then(|line| line.split([' ', ':', '：']).next())
        .unwrap_or_default();
    first.trim_matches('`').ends_with('/')
}

/// Lines from the current template of a file and from templates of earlier releases.
fn boilerplate(waking: &Waking<'_>, path: &ProjectPath) -> BTreeSet<String> {
    const EARLIER: [&str; 14] = [
        "/src        source code",
        "/docs       documentation",
        "/tests      tests",
        "- Why things are as they are: [decisions.md](decisions.md) (append-only)",
        "- Where things stand: [state.json](state.json)",
        "- What is open: [todos.json](todos.json)",
        "- What children were asked: `delegations/`",
        "/src        源码",
        "/docs       文档",
        "/tests      测试",
        "- 为何如此：[decisions.md](decisions.md)（只追加）",
        "- 当前状态：[state.json](state.json)",
        "- 待办事项：[todos.json](todos.json)",
        "- 委派出去的任务：`delegations/`",
    ];
    // A template that cannot be rendered is reported elsewhere; the start continues.
    let now = template_of(waking.project, path).unwrap_or_default();
    now.lines()
        .map(|line| line.trim().to_owned())
        .chain(EARLIER.map(str::to_owned))
        .filter(|line| !line.is_empty())
        .collect()
}

/// Removes remarks in italics, comments and items without content.
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
    kept.collect::<Vec<_>>()
        .join("\n")
        .trim_end()
        .trim_start_matches('\n')
        .to_owned()
}

/// Describes the problem of a flagged file and its repair. The start does not fail because of it.
pub(super) fn flagged_line(
    waking: &Waking<'_>,
    path: &ProjectPath,
) -> Result<Option<String>, WorkError> {
    let Some(file) = waking.project.store.flagged(path)? else {
        return Ok(None);
    };
    let (what, line) = file
        .flag
        .as_ref()
        .map_or(("", None), |flag| (flag.what.as_str(), flag.line));
    let line = line
        .map(|line| format!(", {} {line}", waking.say("line", "行")))
        .unwrap_or_default();
    let shown = match file.version.is_some() {
        true => waking.say(
            "the last committed version is shown",
            "以下是上次提交的版本",
        ),
        false => waking.say("it was never committed", "它从未提交过"),
    };
    Ok(Some(format!(
        "⚠ {path} {what}{line}; {shown}. {}",
        file.remedy()
    )))
}

/// Open todos, most important first.
pub(super) fn todos(waking: &Waking<'_>) -> Result<Option<Block>, WorkError> {
    let Some(path) = waking.readable(Form::Todos) else {
        return Ok(None);
    };
    let mut block = Block::new(
        Paragraph::Todos,
        waking.say("Open todos", "未完成的待办"),
        "quipu todo list",
    );
    let flagged = flagged_line(waking, &path)?;
    let list = match load_todos(waking.project, waking.actor) {
        // The flagged line already reports it.
        Err(WorkError::Malformed { .. }) if flagged.is_some() => Todos::default(),
        other => other?,
    };
    block.entries.extend(flagged.clone());
    block.short.extend(flagged);
    let open = list.open();
    if open.is_empty() && block.entries.is_empty() {
        return Ok(None);
    }
    for todo in &open {
        let line = todo_line(waking, &list, todo);
        let detail = todo_detail(waking, todo, list.standing(todo).0);
        block.push(format!("{line}{detail}"), line);
    }
    block.data = json!({"open": open, "last_review": list.last_review, "review_due": is_review_due(waking.project, &list, waking.now)});
    Ok(Some(block))
}

/// Renders `- k7q2m [high, in progress, @main, due 2026-12-12] title`.
fn todo_line(waking: &Waking<'_>, list: &Todos, todo: &Todo) -> String {
    let ids = || list.todos.iter().map(|t| t.id.as_str());
    let (status, by) = list.standing(todo);
    let is_later = todo.tags.iter().any(|tag| tag == LATER);
    let priority = if is_later {
        waking.say("later", "以后")
    } else {
        todo.priority.as_str()
    };
    let mut marks = vec![priority.to_owned()];
    match status {
        Status::Pending => {}
        Status::Blocked if !by.is_empty() => {
            let by: Vec<&str> = by.iter().map(|id| short_name(ids(), id)).collect();
            marks.push(format!(
                "{} {}",
                waking.say("blocked by", "受阻于"),
                by.join(" ")
            ));
        }
        status => marks.push(status.as_str().replace('_', " ")),
    }
    marks.extend(
        todo.assignee
            .as_ref()
            .filter(|a| !a.is_empty())
            .map(|a| format!("@{a}")),
    );
    if let Some(due) = &todo.due {
        let late = parse_moment(due).is_some_and(|d| d < waking.now);
        let word = if late {
            waking.say("overdue since", "已逾期，应于")
        } else {
            waking.say("due", "期限")
        };
        marks.push(format!("{word} {due}"));
    }
    let (id, marks) = (short_name(ids(), &todo.id), marks.join(", "));
    format!(
        "- {} [{}] {}",
        in_one_line(id),
        in_one_line(&marks),
        in_one_line(&todo.title)
    )
}

/// Descriptions up to this length are shown with their todo.
const SHORT_DESCRIPTION: usize = 160;

/// The description if it is short, and the newest note.
fn todo_detail(waking: &Waking<'_>, todo: &Todo, status: Status) -> String {
    let said = todo
        .description
        .as_ref()
        .filter(|d| !d.trim().is_empty() && d.chars().count() <= SHORT_DESCRIPTION);
    let said = said
        .map(|d| {
            format!(
                "{}{}",
                waking.say(": ", "："),
                in_one_line(&d.trim().replace('\n', " "))
            )
        })
        .unwrap_or_default();
    // The reason for blocking is shown only while the todo is blocked.
    let is_news = |line: &&str| {
        !line.trim().is_empty() && (status == Status::Blocked || !line.contains(" blocked: "))
    };
    let note = todo
        .notes
        .as_ref()
        .and_then(|n| n.lines().rfind(|line| !line.trim().is_empty()))
        .filter(is_news);
    format!(
        "{said}{}",
        note.map(|n| format!(" — {}", in_one_line(n)))
            .unwrap_or_default()
    )
}

/// Decisions in force, newest first.
pub(super) fn decisions(waking: &Waking<'_>) -> Result<Option<Block>, WorkError> {
    let Some(path) = waking.readable(Form::Decisions) else {
        return Ok(None);
    };
    let flagged = flagged_line(waking, &path)?;
    let all = load_decisions(waking.project, waking.actor)?;
    let ids: Vec<&str> = all.iter().map(|d| d.id.as_str()).collect();
    let standing: Vec<&Decision> = all
        .iter()
        .rev()
        .filter(|d| d.superseded_by.is_none())
        .collect();
    if standing.is_empty() && flagged.is_none() {
        return Ok(None);
    }
    let mut block = Block::new(
        Paragraph::Decisions,
        waking.say("Decisions in force", "有效的决策"),
        "quipu decisions",
    );
    block.entries.extend(flagged.clone());
    block.short.extend(flagged);
    for decision in &standing {
        let (line, detail) = decision_line(waking, &ids, decision);
        block.push(format!("{line}{detail}"), line);
    }
    block.data = json!(standing);
    Ok(Some(block))
}

/// Renders `- k7q2m title (proposed)`, followed by the author, the date and the reason.
fn decision_line(waking: &Waking<'_>, ids: &[&str], decision: &Decision) -> (String, String) {
    let one_line = |text: &String| in_one_line(&text.trim().replace('\n', " ")).into_owned();
    let accepted = |status: &&String| {
        !matches!(
            status.trim().to_lowercase().as_str(),
            "" | "accepted" | "已采纳" | "采纳"
        )
    };
    let status = decision
        .status
        .as_ref()
        .filter(accepted)
        .map(|s| format!(" ({})", one_line(s).to_lowercase()))
        .unwrap_or_default();
    let title = if decision.title == decision.id {
        String::new()
    } else {
        format!(" {}", in_one_line(&decision.title))
    };
    let line = format!(
        "- {}{title}{status}",
        in_one_line(short_name(ids.iter().copied(), &decision.id))
    );
    let mut about: Vec<String> = decision.date.iter().map(one_line).collect();
    about.extend(
        decision
            .by
            .iter()
            .map(|by| format!("{} {}", waking.say("by", "决定者"), one_line(by))),
    );
    if !decision.supersedes.is_empty() {
        let old: Vec<&str> = decision
            .supersedes
            .iter()
            .map(|id| short_name(ids.iter().copied(), id))
            .collect();
        about.push(format!(
            "{} {}",
            waking.say("supersedes", "取代"),
            in_one_line(&old.join(" "))
        ));
    }
    let mut detail = if about.is_empty() {
        String::new()
    } else {
        format!(" [{}]", about.join(", "))
    };
    // Some write the title again as the decision, with or without a reason behind it.
    let choice = decision.decision.as_ref().and_then(|text| {
        let text = one_line(text);
        let rest = text.strip_prefix(decision.title.trim()).unwrap_or(&text);
        let rest = rest.trim_start_matches(['.', '。', ':', '：', ';', '；', ',', '，', ' ']);
        (!rest.is_empty()).then(|| rest.to_owned())
    });
    let fields = [
        ("", "", &choice),
        ("why: ", "理由：", &decision.why),
        ("context: ", "背景：", &decision.context),
        ("rejected: ", "否决：", &decision.alternatives),
    ];
    let said = fields.into_iter().filter_map(|(en, zh, text)| {
        Some(format!(
            "{}{}",
            waking.say(en, zh),
            one_line(text.as_ref()?)
        ))
    });
    let said: Vec<String> = said.collect();
    if !said.is_empty() {
        detail.push_str(&format!(
            "{}{}",
            waking.say(": ", "："),
            said.join(waking.say("; ", "；"))
        ));
    }
    (line, detail)
}

/// Delegations that are not settled.
pub(super) fn delegations(waking: &Waking<'_>) -> Result<Option<Block>, WorkError> {
    if !waking.may_see(Form::Delegation) {
        return Ok(None);
    }
    let all = survey_delegations(waking.project, waking.actor)?;
    let settled = settled_in_state(waking)?;
    let open: Vec<_> = all
        .into_iter()
        .filter(|d| !settled.contains(&(d.id.clone(), d.progress.as_str().to_owned())))
        .collect();
    if open.is_empty() {
        return Ok(None);
    }
    let mut block = Block::new(
        Paragraph::Delegations,
        waking.say("Delegations", "委派"),
        "quipu collect",
    );
    for order in &open {
        let word = match order.progress {
            Progress::Open => waking.say("not started", "尚未开始"),
            Progress::Running => waking.say("running", "进行中"),
            Progress::Dead => waking.say(
                "its subagent is no longer running; quipu delegate --again",
                "子 Agent 已不在运行；quipu delegate --again",
            ),
            Progress::Overdue => waking.say(
                "OVERDUE, no report; quipu delegate --again",
                "已超期，没有报告；quipu delegate --again",
            ),
            Progress::Reported => waking.say(
                "reported, not collected; quipu collect",
                "已报告，未收取；quipu collect",
            ),
            Progress::ReportedTwice => waking.say(
                "reported more than once; quipu collect",
                "有不止一份报告；quipu collect",
            ),
        };
        let until = order
            .deadline
            .as_ref()
            .map(|d| format!(", {} {d}", waking.say("until", "期限")))
            .unwrap_or_default();
        block.entries.push(format!(
            "- {} [{word}{until}] {}",
            order.id,
            headline(&order.task)
        ));
    }
    block.data = json!(open);
    Ok(Some(block))
}

/// Orders with a report that the state has already recorded.
fn settled_in_state(waking: &Waking<'_>) -> Result<Vec<(String, String)>, WorkError> {
    let Some(path) = waking.readable(Form::State) else {
        return Ok(Vec::new());
    };
    // An unreadable state is reported by its own paragraph.
    let text = Draft::new(waking.project, waking.actor)
        .text(&path)
        .unwrap_or_default();
    let entries = parse_json(&text)
        .map(|root| root.to_value()["delegations"].clone())
        .unwrap_or_default();
    let told = |e: &Value| {
        Some((
            e["id"].as_str()?.to_owned(),
            e["status"].as_str()?.to_owned(),
        ))
    };
    let is_report = |(_, status): &(String, String)| status.starts_with("reported");
    Ok(entries
        .as_array()
        .into_iter()
        .flatten()
        .filter_map(told)
        .filter(is_report)
        .collect())
}

/// A child's own order, in full.
pub(super) fn delegation(waking: &Waking<'_>) -> Result<Option<Block>, WorkError> {
    let Some(id) = waking.delegation else {
        return Ok(None);
    };
    let path = resolve_unit_form(waking.project, Form::Delegation, id)?;
    let order = load_delegation(waking.project, waking.actor, id, waking.now)?;
    let title = format!("{} {id}", waking.say("Your task", "你的任务单"));
    let mut block = Block::new(Paragraph::Delegation, title, format!("quipu read {path}"));
    let parts = parts_of(waking.project, &path)?;
    let order_text: String = parts
        .iter()
        .filter(|part| part.by.is_none())
        .map(|part| part.text.as_str())
        .collect();
    let document = Document::parse(&order_text);
    for section in document.sections().iter().filter(|s| s.level != 1) {
        let body = plain(document.slice(&section.body));
        if !body.is_empty() {
            block
                .entries
                .push(format!("{}\n", below(&section.title, &unquoted(&body))));
        }
    }
    // Text by earlier workers on the order must not be mistaken for the author's.
    for Part { text, by } in &parts {
        if let Some(by) = by.as_ref().filter(|_| !text.trim().is_empty()) {
            let said = waking.say(
                "Added to the file later, not part of the task; by",
                "后来写入文件，不属于任务单；写入者",
            );
            let by = if by == "external" {
                waking.say("an external edit", "Quipu 之外的编辑")
            } else {
                by
            };
            block.entries.push(format!(
                "{said} {by}:\n{}",
                fence("added", path.as_str(), text.trim())
            ));
        }
    }
    for input in &order.inputs {
        block.entries.push(show_input(waking, &order.author, input));
    }
    match order.progress {
        Progress::Overdue => block.entries.push(
            waking
                .say(
                    "⚠ The deadline has passed: report what you have.",
                    "⚠ 已过期限：请报告现有的结果。",
                )
                .into(),
        ),
        Progress::Reported | Progress::ReportedTwice => block.entries.push(
            waking
                .say(
                    "⚠ A report already exists; yours will be added beside it and marked.",
                    "⚠ 已有一份报告；你的报告会并列保留并注明。",
                )
                .into(),
        ),
        _ => {}
    }
    block.data = json!(order);
    Ok(Some(block))
}

/// The full text of an input. The order grants access to it, as far as its author may read it.
fn show_input(waking: &Waking<'_>, author: &Actor, input: &str) -> String {
    let pointer = pointer_of(input);
    match read_pointer(waking.project, author, pointer, None) {
        Ok(reading) => fence(
            "input",
            pointer,
            String::from_utf8_lossy(&reading.bytes).trim_end(),
        ),
        Err(ReadError::Denied(_) | ReadError::OnlySections { .. } | ReadError::UnknownActor(_))
            if names_a_file(waking.project, pointer) =>
        {
            format!(
                "({} `{pointer}`)",
                waking.say(
                    "may not be passed on by the author of this task:",
                    "任务单作者无权转交："
                )
            )
        }
        Err(_) => format!(
            "({} `{pointer}`)",
            waking.say("not in this project's memory:", "不在本项目的记忆中：")
        ),
    }
}
