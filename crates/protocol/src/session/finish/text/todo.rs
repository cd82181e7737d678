//! Parses one line about todos: a step for an existing todo, or a new todo.
//!
//! Lines with an unknown id are refused instead of being added as new todos.

use quipu_contract::Language;

use super::blocks::Item;
use super::none::normalised;
use super::{Reader, say};
use crate::project::ids::{find_name, short_name};
use crate::project::times::parse_moment;
use crate::session::todos::{LATER, NewTodo, Priority, Status, Todo, TodoBlock};

/// The action that a line applies to an existing todo.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Verb {
    Done,
    Start,
    Block,
    Unblock,
    Cancel,
    Leave,
}

impl Verb {
    /// The word that templates show.
    pub(super) const fn word(self, language: Language) -> &'static str {
        let [en, zh] = match self {
            Verb::Done => ["done", "完成"],
            Verb::Start => ["start", "开始"],
            Verb::Block => ["block", "阻塞"],
            Verb::Unblock => ["unblock", "解除"],
            Verb::Cancel => ["cancel", "取消"],
            Verb::Leave => ["leave", "保留"],
        };
        match language {
            Language::En => en,
            Language::Zh => zh,
        }
    }
}

/// The words for each verb. A longer word precedes its own prefixes.
const VERBS: &[(Verb, &[&str])] = &[
    (
        Verb::Done,
        &[
            "done with",
            "done",
            "finished",
            "finish",
            "completed",
            "complete",
            "closed",
            "close",
            "resolved",
            "已完成",
            "完成",
            "✅",
            "✓",
        ],
    ),
    (
        Verb::Start,
        &[
            "started",
            "start",
            "begun",
            "begin",
            "in progress",
            "in_progress",
            "wip",
            "开始",
            "进行中",
        ],
    ),
    (
        Verb::Unblock,
        &[
            "unblocked",
            "unblock",
            "no longer blocked",
            "解除阻塞",
            "解除",
        ],
    ),
    (Verb::Block, &["blocked", "block", "阻塞", "受阻"]),
    (
        Verb::Cancel,
        &[
            "cancelled",
            "canceled",
            "cancel",
            "dropped",
            "drop",
            "won't do",
            "wontfix",
            "取消",
            "已取消",
        ],
    ),
    (
        Verb::Leave,
        &[
            "leave",
            "left",
            "keep open",
            "keep",
            "still open",
            "still pending",
            "pending",
            "open",
            "carry over",
            "continue",
            "保留",
            "留待",
            "留给下次",
            "继续",
        ],
    ),
];

/// Parses one item of the todos.
pub(super) fn read_todo(reader: &mut Reader<'_>, item: &Item, later: bool) {
    let text = item.text.trim();
    if matches!(
        normalised(text).as_str(),
        "reviewed" | "all reviewed" | "review done" | "已检视" | "全部已检视" | "已全部检视"
    ) {
        reader.material.todos.reviewed = true;
        return;
    }
    let group = item.group.as_deref().map(normalised);
    let group_verb = group.as_deref().and_then(whole_verb);
    let boxed = match item.checked {
        Some('x' | '*') => Some(Verb::Done),
        Some('-') => Some(Verb::Cancel),
        Some('~' | '/' | '>') => Some(Verb::Start),
        Some(' ') => Some(Verb::Leave),
        _ => None,
    };
    if let Some((verb, ids, note)) = find_step(reader, text) {
        let verb = verb.or(boxed).or(group_verb).unwrap_or(Verb::Leave);
        let below = item
            .body
            .iter()
            .map(|(_, line)| line.trim())
            .collect::<Vec<_>>()
            .join(" ");
        let note = [note.as_str(), below.as_str()]
            .into_iter()
            .filter(|part| !part.is_empty())
            .collect::<Vec<_>>()
            .join(" ");
        for id in ids {
            step(reader, item, verb, id, &note);
        }
        return;
    }
    if let Some((verb, named)) = unknown_id(text, boxed.or(group_verb)) {
        return reader.unknown_todo(item, verb, &named);
    }
    match boxed.or(group_verb).or_else(|| done_of_none(text)) {
        // A completed item without a todo is recorded as completed work.
        Some(Verb::Done) => {
            let whole = item.whole();
            let told = whole
                .strip_prefix("done ")
                .or_else(|| whole.strip_prefix("Done "))
                .unwrap_or(&whole)
                .trim_start_matches([':', ' ']);
            reader.tell(
                item.line,
                "no todo of this name: saved under Done",
                "没有这个名称的待办：已记入“完成”",
            );
            reader.material.did.push(told.to_owned());
        }
        Some(Verb::Cancel) => reader.unknown_todo(item, Verb::Cancel, text),
        _ => {
            let later = later
                || group
                    .as_deref()
                    .is_some_and(|g| priority_of(g).is_some_and(|(_, later)| later));
            let from_group = group.as_deref().and_then(priority_of);
            if let Some(mut new) = parse_new(reader, item) {
                if let Some((priority, _)) =
                    from_group.filter(|_| new.priority == Priority::default())
                {
                    new.priority = priority;
                }
                if later && !new.tags.iter().any(|t| t == LATER) {
                    new.priority = Priority::Low;
                    new.tags.push(LATER.into());
                }
                reader.material.todos.add.push(new);
            }
        }
    }
}

fn step(reader: &mut Reader<'_>, item: &Item, verb: Verb, id: String, note: &str) {
    let todos = &mut reader.material.todos;
    match verb {
        Verb::Done => {
            if !note.is_empty() {
                todos.comments.insert(id.clone(), note.to_owned());
            }
            todos.done.push(id);
        }
        Verb::Cancel => {
            if !note.is_empty() {
                todos.comments.insert(id.clone(), note.to_owned());
            }
            todos.cancel.push(id);
        }
        Verb::Start | Verb::Unblock => {
            if !note.is_empty() {
                todos.comments.insert(id.clone(), note.to_owned());
            }
            match verb {
                Verb::Start => todos.start.push(id),
                _ => todos.unblock.push(id),
            }
        }
        Verb::Leave => {
            if !note.is_empty() {
                todos.comments.insert(id.clone(), note.to_owned());
            }
            todos.leave.push(id.clone());
            let status = reader
                .todos
                .iter()
                .find(|todo| todo.id == id)
                .map(|todo| todo.status);
            if let Some(status) = status.filter(|status| *status != Status::InProgress) {
                let (status, id) = (
                    status.as_str(),
                    short_name(reader.todos.iter().map(|t| t.id.as_str()), &id).to_owned(),
                );
                reader.tell(
                    item.line,
                    &format!("{id} is {status}, not in progress: its status does not change"),
                    &format!("{id} 是 {status}，不在进行中：状态不变"),
                );
            }
        }
        Verb::Block if note.is_empty() => {
            let fix = format!(
                "- {} {id}{}",
                Verb::Block.word(reader.language),
                say(reader.language, ": what it is waiting for", "：在等什么")
            );
            reader.fault(item.line, "a block needs a reason", "阻塞需要写明原因", fix);
        }
        Verb::Block => todos.block.push(TodoBlock {
            id,
            reason: note.to_owned(),
        }),
    }
}

/// The verb that names a whole group.
fn whole_verb(name: &str) -> Option<Verb> {
    VERBS
        .iter()
        .find(|(_, words)| words.contains(&name))
        .map(|(verb, _)| *verb)
}

/// Parses `done k7q2m`, `k7q2m: done`, `done: Write the tests` or `k7q2m` into the verb (if
/// present), the todos and the rest.
fn find_step(reader: &Reader<'_>, text: &str) -> Option<(Option<Verb>, Vec<String>, String)> {
    let text = text.trim().trim_matches('`');
    for (verb, rest) in leading_verbs(text) {
        if let Some((ids, note)) = named(reader, rest) {
            return Some((Some(verb), ids, note));
        }
    }
    let (ids, rest) = named(reader, text)?;
    // Skip the text that `start` printed after the id.
    let rest = skip_marks(&rest);
    let title = reader
        .todos
        .iter()
        .find(|t| t.id == ids[0])
        .map_or("", |t| t.title.trim());
    let rest = rest
        .get(..title.len())
        .filter(|head| head.eq_ignore_ascii_case(title))
        .map_or(rest, |head| trim_mark(&rest[head.len()..]));
    match leading_verbs(rest).next() {
        Some((verb, note)) => Some((Some(verb), ids, trim_mark(note).to_owned())),
        None => Some((None, ids, String::new())),
    }
}

/// All verbs that a text begins with, each with the remaining text.
fn leading_verbs(text: &str) -> impl Iterator<Item = (Verb, &str)> {
    let text = text.trim_start_matches(['(', '[', '→', '-', '—', ' ', ':', '：']);
    VERBS.iter().flat_map(move |(verb, words)| {
        words.iter().filter_map(move |word| {
            let head = text
                .get(..word.len())
                .filter(|head| head.eq_ignore_ascii_case(word))?;
            let rest = &text[head.len()..];
            let ends = rest.is_empty()
                || !word.is_ascii()
                || rest.starts_with(|c: char| !c.is_alphanumeric() && c != '-' && c != '\'');
            ends.then(|| {
                (
                    *verb,
                    rest.trim_start_matches([')', ']'])
                        .trim_start_matches([':', '：', ' ']),
                )
            })
        })
    })
}

/// The todos named at the beginning of a text, by id or by title, and the remaining text.
fn named(reader: &Reader<'_>, text: &str) -> Option<(Vec<String>, String)> {
    let text = text.trim();
    let ids = || reader.todos.iter().map(|t| t.id.as_str());
    let mut found = Vec::new();
    let mut rest = text;
    loop {
        let end = rest
            .find(|c: char| {
                c.is_whitespace() || matches!(c, ',' | ':' | '：' | '、' | '，' | ';' | ')')
            })
            .unwrap_or(rest.len());
        let word = rest[..end].trim_matches(['`', '(', ')', '[', ']', '.', '#', '"']);
        let Some(id) = find_name(ids(), word) else {
            break;
        };
        found.push(id.to_owned());
        let behind = rest[end..].trim_start();
        let more = behind
            .strip_prefix([',', '、', '，', '&'])
            .or_else(|| behind.strip_prefix("and "))
            .or_else(|| behind.strip_prefix('和'));
        rest = more.unwrap_or(behind).trim_start();
        if more.is_none() {
            break;
        }
    }
    if !found.is_empty() {
        return Some((found, trim_mark(rest).to_owned()));
    }
    let title_of = |todo: &&Todo| {
        let title = todo.title.trim();
        let head = text
            .get(..title.len())
            .filter(|head| head.eq_ignore_ascii_case(title));
        head.is_some()
            && text[title.len()..]
                .chars()
                .next()
                .is_none_or(|c| !c.is_alphanumeric())
    };
    let open = reader
        .todos
        .iter()
        .filter(|t| t.status.is_open())
        .chain(reader.todos.iter().filter(|t| !t.status.is_open()));
    let todo = open.filter(title_of).max_by_key(|t| t.title.len())?;
    Some((
        vec![todo.id.clone()],
        trim_mark(&text[todo.title.trim().len()..]).to_owned(),
    ))
}

fn trim_mark(text: &str) -> &str {
    text.trim()
        .trim_start_matches([':', '：', '-', '—', '–', ',', '，', ')', ']', ';'])
        .trim()
}

/// The text after `[high, pending]`.
fn skip_marks(text: &str) -> &str {
    let inner = text.strip_prefix('[').and_then(|rest| rest.split_once(']'));
    match inner {
        Some((marks, rest))
            if marks.split(',').any(|m| {
                Status::parse(&m.trim().replace(' ', "_")).is_some() || priority_of(m).is_some()
            }) =>
        {
            if marks.contains(',') {
                rest.trim()
            } else {
                text
            }
        }
        _ => text,
    }
}

/// Finds a step for a word that looks like an id but matches no todo.
fn unknown_id(text: &str, boxed: Option<Verb>) -> Option<(Verb, String)> {
    let looks_like = |word: &str| {
        let word = word.trim_matches(['`', '"', '.', ',']);
        let generated = word.len() == 5
            && word
                .chars()
                .all(|c| c.is_ascii_lowercase() || c.is_ascii_digit())
            && word.chars().any(|c| c.is_ascii_digit());
        let prefixed = word.split_once('-').is_some_and(|(head, tail)| {
            head.len() >= 2
                && head.chars().all(|c| c.is_ascii_uppercase())
                && tail.chars().any(|c| c.is_ascii_digit())
        });
        (generated || prefixed).then(|| word.to_owned())
    };
    let first = |text: &str| {
        text.split([' ', ':', '：', ','])
            .next()
            .and_then(looks_like)
    };
    if let Some(verb) = boxed
        && let Some(id) = first(text)
    {
        return Some((verb, id));
    }
    // `done` plus a single word cannot be a title.
    let of_done = ["done ", "Done ", "完成 "]
        .iter()
        .find_map(|word| text.strip_prefix(word))
        .map(|word| word.trim_matches('`'));
    let of_done = of_done.filter(|word| {
        word.chars().all(|c| c.is_ascii_alphanumeric() || c == '-') && !word.is_empty()
    });
    let said = leading_verbs(text).find_map(|(verb, rest)| Some((verb, first(rest)?)));
    said.or_else(|| of_done.map(|word| (Verb::Done, word.to_owned())))
        .or_else(|| misspelt(text, &looks_like))
}

/// Recognises `don k7q2m`: a word one edit away from a verb that `start` shows, followed by an id.
fn misspelt(text: &str, looks_like: &dyn Fn(&str) -> Option<String>) -> Option<(Verb, String)> {
    let (word, id) = text
        .split_once(' ')
        .filter(|(_, rest)| !rest.contains(' '))?;
    let shown = [
        Verb::Done,
        Verb::Leave,
        Verb::Cancel,
        Verb::Block,
        Verb::Start,
    ];
    let is_near = |verb: &Verb| {
        strsim::damerau_levenshtein(verb.word(Language::En), &word.to_lowercase()) == 1
    };
    let verb = shown.into_iter().find(is_near)?;
    Some((verb, looks_like(id)?))
}

/// Recognises `done: …` about something that is not a todo.
fn done_of_none(text: &str) -> Option<Verb> {
    let head = text
        .split([':', '：'])
        .next()
        .filter(|head| head.len() < text.len())?;
    (whole_verb(&normalised(head)) == Some(Verb::Done)).then_some(Verb::Done)
}

/// The priority that a word names, and whether the todo is postponed.
fn priority_of(word: &str) -> Option<(Priority, bool)> {
    let word = normalised(word);
    let word = word
        .strip_suffix(" priority")
        .or_else(|| word.strip_suffix("优先级"))
        .or_else(|| word.strip_suffix("优先"))
        .unwrap_or(&word);
    Some(match word {
        "critical" | "urgent" | "p0" | "紧急" => (Priority::Critical, false),
        "high" | "important" | "p1" | "高" | "重要" => (Priority::High, false),
        "medium" | "normal" | "p2" | "中" => (Priority::Medium, false),
        "low" | "p3" | "低" => (Priority::Low, false),
        "later" | "not now" | "someday" | "以后" | "稍后" | "暂不" | "以后再做" => {
            (Priority::Low, true)
        }
        _ => return None,
    })
}

/// Parses `title (high, due 2026-12-12, @mira): description`.
fn parse_new(reader: &mut Reader<'_>, item: &Item) -> Option<NewTodo> {
    let mut new = NewTodo::default();
    let mut text = item.text.trim().to_owned();
    for word in ["add:", "new:", "todo:", "新增：", "新增:", "添加："] {
        if text
            .get(..word.len())
            .is_some_and(|head| head.eq_ignore_ascii_case(word))
        {
            text = text[word.len()..].trim().to_owned();
        }
    }
    text = leading_mark(reader, item, &mut new, &text);
    let mut description = String::new();
    if let Some((title, marks, behind)) = find_marks(reader, &text) {
        for part in marks.split([',', '，', ';', '、']) {
            take_mark(reader, item, &mut new, part.trim());
        }
        description = trim_mark(&behind).to_owned();
        text = title;
    } else if let Some((title, behind)) = split_title(&text) {
        description = behind.trim().to_owned();
        text = title.trim().to_owned();
    }
    // Trailing `@mira` and `#tag`.
    while let Some((head, last)) = text.rsplit_once(' ')
        && last.len() > 1
        && last.starts_with(['@', '#'])
        && !last[1..].contains(|c: char| !c.is_alphanumeric() && !matches!(c, '-' | '_' | '.'))
        && last[1..].starts_with(char::is_alphabetic)
    {
        take_mark(reader, item, &mut new, last);
        text = head.trim().to_owned();
    }
    for (_, line) in &item.body {
        description.push_str(if description.is_empty() { "" } else { "\n" });
        description.push_str(line.trim());
    }
    new.title = text.trim().trim_end_matches(['.', '。']).to_owned();
    new.description = Some(description).filter(|d| !d.is_empty());
    new.category = item
        .group
        .clone()
        .filter(|g| priority_of(g).is_none() && whole_verb(&normalised(g)).is_none());
    (!new.title.is_empty()).then_some(new)
}

/// Splits at the first colon outside brackets into title and description.
fn split_title(text: &str) -> Option<(&str, &str)> {
    let mut open = 0_i32;
    for (at, c) in text.char_indices() {
        match c {
            '(' | '（' | '[' => open += 1,
            ')' | '）' | ']' => open -= 1,
            ':' | '：' if open <= 0 && (c == '：' || text[at + 1..].starts_with(' ')) => {
                return Some((&text[..at], &text[at + c.len_utf8()..]));
            }
            _ => {}
        }
    }
    None
}

/// Parses a leading `[high] title`, `high: title` or `(later) title`.
fn leading_mark(reader: &mut Reader<'_>, item: &Item, new: &mut NewTodo, text: &str) -> String {
    let bracketed = text
        .strip_prefix(['[', '(', '（', '【'])
        .and_then(|rest| rest.split_once([']', ')', '）', '】']));
    let split = bracketed.or_else(|| {
        text.split_once([':', '：'])
            .filter(|(word, _)| priority_of(word).is_some())
    });
    match split {
        Some((marks, rest))
            if marks
                .split([',', '，'])
                .all(|part| is_mark(reader, part.trim()))
                && !rest.trim().is_empty() =>
        {
            for part in marks.split([',', '，']) {
                take_mark(reader, item, new, part.trim());
            }
            // `--since` belongs to the title; the dash of `- since` does not.
            let rest = rest.trim().trim_start_matches([':', '：']).trim_start();
            rest.strip_prefix("- ")
                .or_else(|| rest.strip_prefix("— "))
                .unwrap_or(rest)
                .trim_start()
                .to_owned()
        }
        _ => text.to_owned(),
    }
}

/// Finds the first group in brackets that contains only attributes. Returns the text before it, the
/// attributes and the text after it.
fn find_marks(reader: &Reader<'_>, text: &str) -> Option<(String, String, String)> {
    for (at, open) in text.match_indices(['(', '（', '[']) {
        let inner = &text[at + open.len()..];
        let Some(end) = inner.find([')', '）', ']']) else {
            continue;
        };
        let marks = &inner[..end];
        if at > 0
            && marks
                .split([',', '，', ';', '、'])
                .all(|part| is_mark(reader, part.trim()))
        {
            let close = inner[end..].chars().next().map_or(1, char::len_utf8);
            return Some((
                text[..at].trim().to_owned(),
                marks.to_owned(),
                inner[end + close..].to_owned(),
            ));
        }
    }
    None
}

/// Words before a date. After `DUE`, up to four words count as a date; after `BY`, only a date or
/// words with a digit.
const DUE: &[&str] = &["due ", "due:", "期限", "截止", "到期"];
const BY: &[&str] = &["until ", "by ", "before "];
const AFTER: &[&str] = &[
    "after ",
    "blocked by ",
    "needs ",
    "depends on ",
    "依赖",
    "等待",
];

fn behind<'t>(words: &[&str], part: &'t str) -> Option<&'t str> {
    words.iter().find_map(|word| {
        let head = part
            .get(..word.len())
            .filter(|head| head.eq_ignore_ascii_case(word))?;
        Some(
            part[head.len()..]
                .trim_start_matches([':', '：', ' '])
                .trim(),
        )
    })
}

fn is_mark(reader: &Reader<'_>, part: &str) -> bool {
    let date = |text: &str| parse_moment(text).is_some();
    let has_digit = |text: &str| text.contains(|c: char| c.is_ascii_digit());
    priority_of(part).is_some()
        || part.len() > 1 && part.starts_with(['@', '#']) && !part.contains(' ')
        || date(part)
        || behind(DUE, part).is_some_and(|when| when.split(' ').count() <= 4)
        || behind(BY, part)
            .is_some_and(|when| date(when) || has_digit(when) && when.split(' ').count() <= 4)
        || behind(AFTER, part)
            .is_some_and(|id| find_name(reader.todos.iter().map(|t| t.id.as_str()), id).is_some())
        || behind(&["tag ", "tag:", "标签"], part).is_some()
}

fn take_mark(reader: &mut Reader<'_>, item: &Item, new: &mut NewTodo, part: &str) {
    if let Some((priority, later)) = priority_of(part) {
        new.priority = priority;
        if later && !new.tags.iter().any(|t| t == LATER) {
            new.tags.push(LATER.into());
        }
    } else if let Some(name) = part.strip_prefix('@') {
        new.assignee = Some(name.to_owned());
    } else if let Some(tag) = part
        .strip_prefix('#')
        .or_else(|| behind(&["tag ", "tag:", "标签"], part))
    {
        new.tags.push(tag.to_owned());
    } else if let Some(id) = behind(AFTER, part) {
        let found = find_name(reader.todos.iter().map(|t| t.id.as_str()), id).map(str::to_owned);
        new.blocked_by.push(found.unwrap_or_else(|| id.to_owned()));
    } else {
        let when = behind(DUE, part)
            .or_else(|| behind(BY, part))
            .unwrap_or(part);
        if parse_moment(when).is_some() {
            new.due = Some(when.to_owned());
        } else {
            let fix = item.text.replace(
                part,
                say(reader.language, "due YYYY-MM-DD", "期限 YYYY-MM-DD"),
            );
            reader.fault(
                item.line,
                &format!("`{when}` is not a date: write it as YYYY-MM-DD"),
                &format!("“{when}”不是日期：请写成 YYYY-MM-DD"),
                format!("- {fix}"),
            );
        }
    }
}
