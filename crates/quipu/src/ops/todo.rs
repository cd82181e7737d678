//! `todo`: adding, moving, listing and reviewing what is to be done.

use clap::Args;
use quipu_contract::{Form, in_one_line};
use quipu_protocol::{Move, NewTodo, Priority, Status, Todo, add_todo, load_todos, move_todo, review_todos};
use serde_json::json;

use super::flagged::with_flag_of;
use super::receipt;
use crate::answer::{Answer, Failure};
use crate::session::Session;
use crate::table::Operate;

#[derive(Debug, Args)]
pub struct TodoAdd {
    /// What is to be done, one line
    title: String,
    /// critical, high, medium or low
    #[arg(long, value_name = "P", default_value = "medium", value_parser = ["critical", "high", "medium", "low"])]
    priority: String,
    /// What a stranger needs to know to do it
    #[arg(long, value_name = "TEXT")]
    description: Option<String>,
    /// What kind of work it is
    #[arg(long, value_name = "TEXT")]
    category: Option<String>,
    /// May be given several times
    #[arg(long, value_name = "TAG")]
    tag: Vec<String>,
    /// A date or a moment
    #[arg(long, value_name = "WHEN")]
    due: Option<String>,
    /// Whose it is
    #[arg(long, value_name = "NAME")]
    assignee: Option<String>,
    /// A todo that must be done first; may be given several times
    #[arg(long, value_name = "ID")]
    after: Vec<String>,
    /// Anything else
    #[arg(long, value_name = "TEXT")]
    notes: Option<String>,
    /// An id of your own; without it one that collides with no one's
    #[arg(long, value_name = "ID")]
    id: Option<String>,
}

impl Operate for TodoAdd {
    const NAME: &'static str = "todo add";
    const ABOUT: &'static str = "Add a todo; prints its id";

    fn operate(self, session: &Session) -> Result<Answer, Failure> {
        let project = session.project()?;
        let new = NewTodo {
            title: self.title,
            id: self.id,
            description: self.description,
            priority: Priority::parse(&self.priority).unwrap_or_default(),
            category: self.category,
            tags: self.tag,
            due: self.due,
            assignee: self.assignee,
            blocked_by: self.after,
            notes: self.notes,
        };
        let (id, receipt) = add_todo(&project, &session.actor, session.lease.as_ref(), &new)?;
        Ok(receipt::with(&receipt, json!({"id": id}), id))
    }
}

fn moved(session: &Session, id: &str, step: &Move) -> Result<Answer, Failure> {
    let project = session.project()?;
    let (todo, receipt) = move_todo(&project, &session.actor, session.lease.as_ref(), id, step)?;
    Ok(receipt::with(&receipt, json!({"todo": todo}), line(&todo)))
}

#[derive(Debug, Args)]
pub struct TodoStart {
    /// The todo, or the ending of its id
    id: String,
}

impl Operate for TodoStart {
    const NAME: &'static str = "todo start";
    const ABOUT: &'static str = "Begin a todo: it is in progress and yours";

    fn operate(self, session: &Session) -> Result<Answer, Failure> {
        moved(session, &self.id, &Move::Start)
    }
}

#[derive(Debug, Args)]
pub struct TodoBlock {
    /// The todo, or the ending of its id
    id: String,
    /// What keeps it from going on
    #[arg(long, value_name = "WHY", allow_hyphen_values = true)]
    reason: String,
    /// A todo that must be done first; may be given several times
    #[arg(long, value_name = "ID")]
    by: Vec<String>,
}

impl Operate for TodoBlock {
    const NAME: &'static str = "todo block";
    const ABOUT: &'static str = "Say that a todo cannot go on, and why";

    fn operate(self, session: &Session) -> Result<Answer, Failure> {
        moved(session, &self.id, &Move::Block { reason: self.reason, by: self.by })
    }
}

#[derive(Debug, Args)]
pub struct TodoUnblock {
    /// The todo, or the ending of its id
    id: String,
}

impl Operate for TodoUnblock {
    const NAME: &'static str = "todo unblock";
    const ABOUT: &'static str = "What kept a todo is gone: it is pending again";

    fn operate(self, session: &Session) -> Result<Answer, Failure> {
        moved(session, &self.id, &Move::Unblock)
    }
}

#[derive(Debug, Args)]
pub struct TodoDone {
    /// The todo, or the ending of its id
    id: String,
    /// How it was checked, or where the result is
    #[arg(long, value_name = "TEXT", allow_hyphen_values = true)]
    note: Option<String>,
}

impl Operate for TodoDone {
    const NAME: &'static str = "todo done";
    const ABOUT: &'static str = "Complete a todo that is in progress";

    fn operate(self, session: &Session) -> Result<Answer, Failure> {
        moved(session, &self.id, &Move::Done { note: self.note })
    }
}

#[derive(Debug, Args)]
pub struct TodoCancel {
    /// The todo, or the ending of its id
    id: String,
    /// Why it is no longer wanted
    #[arg(long, value_name = "WHY", allow_hyphen_values = true)]
    reason: Option<String>,
}

impl Operate for TodoCancel {
    const NAME: &'static str = "todo cancel";
    const ABOUT: &'static str = "A todo that is no longer wanted";

    fn operate(self, session: &Session) -> Result<Answer, Failure> {
        moved(session, &self.id, &Move::Cancel { reason: self.reason })
    }
}

#[derive(Debug, Args)]
pub struct TodoList {
    /// Completed and cancelled ones as well
    #[arg(long)]
    all: bool,
    /// Only those in this status
    #[arg(long, value_name = "S", value_parser = ["pending", "in_progress", "blocked", "completed", "cancelled"])]
    status: Option<String>,
    /// Only those with this tag
    #[arg(long, value_name = "TAG")]
    tag: Option<String>,
}

impl Operate for TodoList {
    const NAME: &'static str = "todo list";
    const ABOUT: &'static str = "The open todos, what matters most first";

    fn operate(self, session: &Session) -> Result<Answer, Failure> {
        let project = session.project()?;
        let list = load_todos(&project, &session.actor)?;
        let mut shown = match (self.all, &self.status) {
            (false, None) => list.open(),
            _ => list.todos.iter().collect(),
        };
        if let Some(status) = self.status.as_deref().and_then(Status::parse) {
            shown.retain(|t| t.status == status);
        }
        if let Some(tag) = &self.tag {
            shown.retain(|t| t.tags.contains(tag));
        }
        let text = shown.iter().map(|t| line(t) + "\n").collect::<String>();
        let json = json!({
            "todos": shown,
            "last_review": list.last_review,
            "total_created": list.total_created,
            "total_completed": list.total_completed,
        });
        let answer = Answer::new(json, text);
        let answer = if shown.is_empty() { answer.say("no todo") } else { answer };
        with_flag_of(answer, &project, &session.actor, Form::Todos)
    }
}

#[derive(Debug, Args)]
pub struct TodoShow {
    /// The todo, or the ending of its id
    id: String,
}

impl Operate for TodoShow {
    const NAME: &'static str = "todo show";
    const ABOUT: &'static str = "Everything about one todo";

    fn operate(self, session: &Session) -> Result<Answer, Failure> {
        let project = session.project()?;
        let list = load_todos(&project, &session.actor)?;
        let todo = list.find(&self.id)?;
        let value = json!(todo);
        let mut text = line(todo) + "\n";
        for (key, value) in value.as_object().into_iter().flatten() {
            let told = match value {
                serde_json::Value::String(text) => text.replace('\n', "\n               "),
                serde_json::Value::Array(items) if !items.is_empty() => {
                    items.iter().filter_map(|i| i.as_str()).collect::<Vec<_>>().join(", ")
                }
                _ => continue,
            };
            if !["id", "title", "priority", "status"].contains(&key.as_str()) && !told.is_empty() {
                text.push_str(&format!("  {key:<12} {told}\n"));
            }
        }
        Ok(Answer::new(value, text))
    }
}

#[derive(Debug, Args)]
pub struct TodoReview {}

impl Operate for TodoReview {
    const NAME: &'static str = "todo review";
    const ABOUT: &'static str = "Note that every todo was looked at; lists them once more";

    fn operate(self, session: &Session) -> Result<Answer, Failure> {
        let project = session.project()?;
        let receipt = review_todos(&project, &session.actor, session.lease.as_ref())?;
        let list = load_todos(&project, &session.actor)?;
        let text = list.open().iter().map(|t| line(t) + "\n").collect::<String>();
        Ok(receipt::with(&receipt, json!({"open": list.open(), "last_review": list.last_review}), text))
    }
}

/// One todo on one line.
fn line(todo: &Todo) -> String {
    let who = todo.assignee.as_ref().filter(|a| !a.is_empty()).map(|a| format!(" @{a}")).unwrap_or_default();
    let due = todo.due.as_ref().map(|d| format!("  due {d}")).unwrap_or_default();
    let tags = todo.tags.iter().map(|t| format!(" #{t}")).collect::<String>();
    let line = format!("{}  {:<8}  {:<11}  {}{who}{tags}{due}", todo.id, todo.priority.as_str(), todo.status.as_str(), todo.title);
    in_one_line(&line).into_owned()
}
