//! Parses the todo list. Every item is checked, and faults are reported with their line.
//!
//! Parsing changes nothing: `moves.rs` and `edit.rs` write.

use std::collections::HashMap;

use jiff::Timestamp;
use quipu_contract::{Actor, Form, Language, ProjectPath, did_you_mean};
use quipu_text::LineIndex;
use quipu_text::json::{Node, Shape, parse_json};
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::files::edit::Draft;
use crate::project::forms::resolve_form;
use crate::project::ids::find_name;
use crate::project::open::Project;
use crate::project::times::{hours_between, parse_moment};
use crate::session::error::{WorkError, in_language};

/// The tag of a postponed todo.
pub const LATER: &str = "later";

/// Priority, highest first.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, Default)]
#[serde(rename_all = "lowercase")]
pub enum Priority {
    Critical,
    High,
    #[default]
    Medium,
    Low,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, Default)]
#[serde(rename_all = "snake_case")]
pub enum Status {
    InProgress,
    #[default]
    Pending,
    Blocked,
    Completed,
    Cancelled,
}

impl Priority {
    pub const ALL: [Priority; 4] = [
        Priority::Critical,
        Priority::High,
        Priority::Medium,
        Priority::Low,
    ];

    pub const fn as_str(self) -> &'static str {
        match self {
            Priority::Critical => "critical",
            Priority::High => "high",
            Priority::Medium => "medium",
            Priority::Low => "low",
        }
    }

    pub fn parse(text: &str) -> Option<Priority> {
        Priority::ALL.into_iter().find(|p| p.as_str() == text)
    }
}

impl Status {
    pub const ALL: [Status; 5] = [
        Status::Pending,
        Status::InProgress,
        Status::Blocked,
        Status::Completed,
        Status::Cancelled,
    ];

    pub const fn as_str(self) -> &'static str {
        match self {
            Status::Pending => "pending",
            Status::InProgress => "in_progress",
            Status::Blocked => "blocked",
            Status::Completed => "completed",
            Status::Cancelled => "cancelled",
        }
    }

    pub fn parse(text: &str) -> Option<Status> {
        Status::ALL.into_iter().find(|s| s.as_str() == text)
    }

    /// Whether work is left to do.
    pub fn is_open(self) -> bool {
        !matches!(self, Status::Completed | Status::Cancelled)
    }
}

/// One todo. Unknown fields stay in the file.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Todo {
    pub id: String,
    pub title: String,
    pub description: Option<String>,
    pub priority: Priority,
    pub status: Status,
    pub category: Option<String>,
    pub tags: Vec<String>,
    pub created: Option<String>,
    pub updated: Option<String>,
    pub completed_at: Option<String>,
    pub due: Option<String>,
    pub assignee: Option<String>,
    pub blocked_by: Vec<String>,
    pub notes: Option<String>,
    /// Its index in the list; `line` is the line on which it begins.
    #[serde(skip)]
    pub index: usize,
    pub line: usize,
}

/// The fields of a new todo.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct NewTodo {
    pub title: String,
    #[serde(default)]
    pub id: Option<String>,
    #[serde(default)]
    pub description: Option<String>,
    #[serde(default)]
    pub priority: Priority,
    #[serde(default)]
    pub category: Option<String>,
    #[serde(default)]
    pub tags: Vec<String>,
    #[serde(default)]
    pub due: Option<String>,
    #[serde(default)]
    pub assignee: Option<String>,
    #[serde(default)]
    pub blocked_by: Vec<String>,
    #[serde(default)]
    pub notes: Option<String>,
}

/// The whole list with its counters.
#[derive(Debug, Clone, Default, Serialize)]
pub struct Todos {
    pub todos: Vec<Todo>,
    pub last_review: Option<String>,
    pub total_created: usize,
    pub total_completed: usize,
}

impl Todos {
    /// Finds a todo by its id, the end of its id, or its title. The error is in the project's
    /// language.
    pub fn find(&self, asked: &str, language: Language) -> Result<&Todo, WorkError> {
        let ids = || self.todos.iter().map(|t| t.id.as_str());
        let found = find_name(ids(), asked).and_then(|id| self.todos.iter().find(|t| t.id == id));
        // The title of a single open todo is accepted too.
        let mut titled = self
            .todos
            .iter()
            .filter(|t| t.status.is_open() && t.title.trim().eq_ignore_ascii_case(asked.trim()));
        let only = titled.next().filter(|_| titled.next().is_none());
        let missing = || {
            let near = did_you_mean(asked, ids());
            let what = in_language(
                language,
                format!("unknown todo `{asked}`{near}"),
                format!("没有待办 `{asked}`{near}"),
            );
            WorkError::not_found(what, "quipu todo list --all")
        };
        found.or(only).ok_or_else(missing)
    }

    /// The effective status of a todo, and the unfinished todos that block it. A todo that waits
    /// only for finished work is no longer blocked.
    pub fn standing<'t>(&self, todo: &'t Todo) -> (Status, Vec<&'t str>) {
        let is_over = |id: &str| {
            find_name(self.todos.iter().map(|t| t.id.as_str()), id).is_some_and(|name| {
                self.todos
                    .iter()
                    .any(|t| t.id == name && !t.status.is_open())
            })
        };
        let by: Vec<&str> = todo
            .blocked_by
            .iter()
            .map(String::as_str)
            .filter(|id| !is_over(id))
            .collect();
        let status = match todo.status {
            Status::Blocked if by.is_empty() && !todo.blocked_by.is_empty() => Status::Pending,
            Status::Pending if !by.is_empty() => Status::Blocked,
            status => status,
        };
        (status, by)
    }

    /// Open todos, highest priority first; among equals, the oldest first.
    pub fn open(&self) -> Vec<&Todo> {
        let mut open: Vec<&Todo> = self.todos.iter().filter(|t| t.status.is_open()).collect();
        let rank = |t: &Todo| (t.tags.iter().any(|tag| tag == LATER), t.priority, t.status);
        open.sort_by(|a, b| (rank(a), &a.created, a.index).cmp(&(rank(b), &b.created, b.index)));
        open
    }
}

/// The age of the last review in hours, if it exceeds the contract's variable `review_hours`.
pub(crate) fn is_review_due(project: &Project, todos: &Todos, now: Timestamp) -> Option<i64> {
    let limit: i64 = project
        .contract
        .vars
        .get("review_hours")
        .and_then(|v| v.value.as_ref()?.parse().ok())?;
    if !todos.todos.iter().any(|t| t.status.is_open()) {
        return None;
    }
    let last = todos
        .last_review
        .as_deref()
        .and_then(parse_moment)
        .unwrap_or(Timestamp::UNIX_EPOCH);
    let hours = hours_between(last, now);
    (hours >= limit).then_some(hours)
}

pub fn load_todos(project: &Project, actor: &Actor) -> Result<Todos, WorkError> {
    let path = resolve_form(project, actor, Form::Todos)?;
    let text = Draft::new(project, actor).text(&path)?;
    parse_todos(&path, &text)
}

/// Parses a list. A fault names its line and the allowed values.
pub fn parse_todos(path: &ProjectPath, text: &str) -> Result<Todos, WorkError> {
    if text.trim().is_empty() {
        return Ok(Todos::default());
    }
    let root = parse_json(text).map_err(WorkError::in_file(path))?;
    let reader = Reader {
        path,
        text,
        lines: LineIndex::new(text),
    };
    let Some(list) = root.get("todos") else {
        return Err(reader.fault(
            &root,
            "the list `todos` is missing",
            "{\"todos\": [], \"metadata\": {}}",
        ));
    };
    if !matches!(list.shape, Shape::List(_)) {
        return Err(reader.fault(list, "`todos` is not a list", "[{\"id\": …, \"title\": …}]"));
    }
    let mut todos: Vec<Todo> = Vec::new();
    let mut lines_by_id: HashMap<String, usize> = HashMap::new();
    for (index, node) in list.items().iter().enumerate() {
        let todo = reader.todo(node, index)?;
        if let Some(first) = lines_by_id.insert(todo.id.clone(), todo.line) {
            return Err(reader.fault(
                node,
                &format!("the id `{}` appears twice, first on line {first}", todo.id),
                "give each todo its own id",
            ));
        }
        todos.push(todo);
    }
    let metadata = root.get("metadata");
    // Older files have the time of the review at the top level.
    let review = metadata
        .and_then(|m| m.get("last_review"))
        .or_else(|| root.get("last_review"));
    let last_review = match review {
        Some(node) => reader.moment(node, "last_review")?,
        None => None,
    };
    let count = |key: &str| {
        metadata
            .and_then(|m| m.get(key))
            .and_then(|n| n.to_value().as_u64())
            .and_then(|n| usize::try_from(n).ok())
    };
    let done = todos
        .iter()
        .filter(|t| t.status == Status::Completed)
        .count();
    Ok(Todos {
        last_review,
        total_created: count("total_created").unwrap_or(0).max(todos.len()),
        total_completed: count("total_completed").unwrap_or(0).max(done),
        todos,
    })
}

struct Reader<'r> {
    path: &'r ProjectPath,
    text: &'r str,
    lines: LineIndex,
}

impl Reader<'_> {
    fn fault(&self, node: &Node, what: &str, allowed: &str) -> WorkError {
        WorkError::Malformed {
            path: self.path.clone(),
            line: node.line(self.text),
            what: what.into(),
            allowed: allowed.into(),
        }
    }

    fn todo(&self, node: &Node, index: usize) -> Result<Todo, WorkError> {
        if !matches!(node.shape, Shape::Object(_)) {
            return Err(self.fault(
                node,
                "a todo must be an object",
                "{\"id\": …, \"title\": …, \"status\": …}",
            ));
        }
        let required = |key: &str| {
            let text = self.text(node, key)?.filter(|t| !t.trim().is_empty());
            text.ok_or_else(|| self.fault(node, &format!("a todo has no `{key}`"), "a text"))
        };
        Ok(Todo {
            id: required("id")?,
            title: required("title")?,
            description: self.text(node, "description")?,
            priority: self
                .word(
                    node,
                    "priority",
                    Priority::parse,
                    &Priority::ALL.map(Priority::as_str),
                )?
                .unwrap_or_default(),
            status: self
                .word(
                    node,
                    "status",
                    Status::parse,
                    &Status::ALL.map(Status::as_str),
                )?
                .unwrap_or_default(),
            category: self.text(node, "category")?,
            tags: self.texts(node, "tags")?,
            created: self.moment_of(node, "created")?,
            updated: self.moment_of(node, "updated")?,
            completed_at: self.moment_of(node, "completed_at")?,
            due: self.moment_of(node, "due")?,
            assignee: self.text(node, "assignee")?,
            blocked_by: self.texts(node, "blocked_by")?,
            notes: self.notes(node)?,
            index,
            line: self.lines.line(node.span.start),
        })
    }

    fn text(&self, todo: &Node, key: &str) -> Result<Option<String>, WorkError> {
        match todo.get(key).map(|n| (n, &n.shape)) {
            None | Some((_, Shape::Plain(Value::Null))) => Ok(None),
            Some((_, Shape::Plain(Value::String(text)))) => Ok(Some(text.clone())),
            Some((_, Shape::Plain(Value::Number(number)))) if key == "id" => {
                Ok(Some(number.to_string()))
            }
            Some((node, _)) => {
                Err(self.fault(node, &format!("`{key}` is not a text"), "a text, or null"))
            }
        }
    }

    /// Notes may be a text or a list of texts.
    fn notes(&self, todo: &Node) -> Result<Option<String>, WorkError> {
        match todo.get("notes").map(|n| &n.shape) {
            Some(Shape::List(_)) => Ok(Some(self.texts(todo, "notes")?.join("\n"))),
            _ => self.text(todo, "notes"),
        }
    }

    fn texts(&self, todo: &Node, key: &str) -> Result<Vec<String>, WorkError> {
        let Some(node) = todo.get(key) else {
            return Ok(Vec::new());
        };
        let read = match node.to_value() {
            Value::Null => Some(Vec::new()),
            // Accept a single text in place of a list, as people write it by hand.
            Value::String(text) => Some(if text.is_empty() {
                Vec::new()
            } else {
                vec![text]
            }),
            Value::Array(items) => items
                .iter()
                .map(|i| i.as_str().map(str::to_owned))
                .collect(),
            _ => None,
        };
        read.ok_or_else(|| self.fault(node, &format!("`{key}` is not a list of texts"), "[\"…\"]"))
    }

    fn word<T>(
        &self,
        todo: &Node,
        key: &str,
        parse: fn(&str) -> Option<T>,
        known: &[&str],
    ) -> Result<Option<T>, WorkError> {
        let Some(text) = self.text(todo, key)? else {
            return Ok(None);
        };
        match parse(&text) {
            Some(word) => Ok(Some(word)),
            None => Err(self.fault(
                todo.get(key).unwrap_or(todo),
                &format!("unknown {key} `{text}`"),
                &known.join(", "),
            )),
        }
    }

    fn moment_of(&self, todo: &Node, key: &str) -> Result<Option<String>, WorkError> {
        todo.get(key)
            .map_or(Ok(None), |node| self.moment(node, key))
    }

    fn moment(&self, node: &Node, key: &str) -> Result<Option<String>, WorkError> {
        match node.to_value() {
            Value::Null => Ok(None),
            Value::String(text) if text.is_empty() => Ok(None),
            Value::String(text) if parse_moment(&text).is_some() => Ok(Some(text)),
            _ => Err(self.fault(
                node,
                &format!("`{key}` is not a date or a time"),
                "2026-01-31T12:00:00Z, a date, or null",
            )),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn list(count: usize) -> String {
        let item = |n: usize| {
            format!(
                "  {{\"id\": \"T-{n}\", \"title\": \"a title that fills the line to some length\"}}"
            )
        };
        format!(
            "{{\"todos\": [\n{}\n]}}\n",
            (0..count).map(item).collect::<Vec<_>>().join(",\n")
        )
    }

    #[test]
    fn each_item_of_a_long_list_has_its_line() {
        let todos = parse_todos(&ProjectPath::parse("todos.json").unwrap(), &list(2_000))
            .unwrap()
            .todos;
        assert_eq!(todos.len(), 2_000);
        assert!(todos.iter().zip(2..).all(|(todo, line)| todo.line == line));
    }

    #[test]
    fn an_id_is_there_once() {
        let path = ProjectPath::parse("todos.json").unwrap();
        let error = parse_todos(&path, &list(3).replace("T-2", "T-0")).unwrap_err();
        assert!(
            error
                .to_string()
                .contains("`T-0` appears twice, first on line 2"),
            "{error}"
        );
    }
}
