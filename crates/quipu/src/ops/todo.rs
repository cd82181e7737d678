//! The `todo` commands: add, move, list and review todos.

use clap::Args;
use quipu_contract::{Form, Language, in_one_line};
use quipu_protocol::{LATER, Move, NewTodo, Priority, Status, Todo, TodoEdit, Todos};
use quipu_protocol::{add_todo, edit_todo, load_todos, move_todo, review_todos, short_name};
use serde_json::json;

use super::flagged::with_flag_of;
use super::receipt;
use crate::answer::{Answer, Failure};
use crate::session::Session;
use crate::table::Operate;

#[derive(Debug, Args)]
pub struct TodoAdd {
    /// The title, one line
    title: String,
    /// The priority: critical, high, medium, low or later
    #[arg(long, value_name = "P", default_value = "medium", value_parser = ["critical", "high", "medium", "low", "later"])]
    priority: String,
    /// A description for the agent who will do it
    #[arg(long, value_name = "TEXT")]
    description: Option<String>,
    /// The category of work
    #[arg(long, value_name = "TEXT")]
    category: Option<String>,
    /// A tag; repeatable
    #[arg(long, value_name = "TAG")]
    tag: Vec<String>,
    /// The due date or time
    #[arg(long, value_name = "WHEN")]
    due: Option<String>,
    /// The name of the assignee
    #[arg(long, value_name = "NAME")]
    assignee: Option<String>,
    /// A todo that must be done first; repeatable
    #[arg(long, value_name = "ID")]
    after: Vec<String>,
    /// Other notes
    #[arg(long, value_name = "TEXT")]
    notes: Option<String>,
    /// The id; by default a new unique one
    #[arg(long, value_name = "ID")]
    id: Option<String>,
}

impl Operate for TodoAdd {
    const NAME: &'static str = "todo add";
    const ABOUT: &'static str = "Add a todo and print its id";

    fn operate(self, session: &Session) -> Result<Answer, Failure> {
        let project = session.project()?;
        let is_later = self.priority == LATER;
        let priority = if is_later {
            Priority::Low
        } else {
            Priority::parse(&self.priority).unwrap_or_default()
        };
        let later = is_later.then(|| LATER.to_owned());
        let new = NewTodo {
            title: self.title,
            id: self.id,
            description: self.description,
            priority,
            category: self.category,
            tags: self.tag.into_iter().chain(later).collect(),
            due: self.due,
            assignee: self.assignee,
            blocked_by: self.after,
            notes: self.notes,
        };
        let (id, receipt) = add_todo(&project, &session.actor, session.lease.as_ref(), &new)?;
        let list = load_todos(&project, &session.actor)?;
        let short = short_name(list.todos.iter().map(|t| t.id.as_str()), &id).to_owned();
        let added = list.todos.iter().find(|todo| todo.id == id);
        let saved = added.map(|todo| line(&list, todo));
        Ok(receipt::with(
            project.contract.language,
            &receipt,
            json!({"id": id, "short": short, "saved": saved}),
            short,
        ))
    }
}

fn moved(session: &Session, id: &str, step: &Move) -> Result<Answer, Failure> {
    let project = session.project()?;
    let (todo, receipt) = move_todo(&project, &session.actor, session.lease.as_ref(), id, step)?;
    let list = load_todos(&project, &session.actor)?;
    Ok(receipt::with(
        project.contract.language,
        &receipt,
        json!({"todo": todo}),
        line(&list, &todo),
    ))
}

#[derive(Debug, Args)]
pub struct TodoChange {
    /// The id of the todo, or its last characters
    id: String,
    /// A new title, one line
    #[arg(long, value_name = "TEXT", allow_hyphen_values = true)]
    title: Option<String>,
    /// A new description
    #[arg(long, value_name = "TEXT", allow_hyphen_values = true)]
    description: Option<String>,
    /// A new priority
    #[arg(long, value_name = "P", value_parser = ["critical", "high", "medium", "low"])]
    priority: Option<String>,
    /// Add a note about progress
    #[arg(long, value_name = "TEXT", allow_hyphen_values = true)]
    note: Option<String>,
}

impl Operate for TodoChange {
    const NAME: &'static str = "todo edit";
    const ABOUT: &'static str =
        "Change the title, description or priority of a todo, or add a note";

    fn operate(self, session: &Session) -> Result<Answer, Failure> {
        let project = session.project()?;
        let priority = self.priority.as_deref().and_then(Priority::parse);
        let note = self.note.clone();
        let edit = TodoEdit {
            title: self.title,
            description: self.description,
            priority,
            note: self.note,
        };
        let (todo, receipt) = edit_todo(
            &project,
            &session.actor,
            session.lease.as_ref(),
            &self.id,
            &edit,
        )?;
        let list = load_todos(&project, &session.actor)?;
        let note = note.map(|note| format!("\n  + {}", in_one_line(note.trim())));
        Ok(receipt::with(
            project.contract.language,
            &receipt,
            json!({"todo": todo}),
            line(&list, &todo) + &note.unwrap_or_default(),
        ))
    }
}

#[derive(Debug, Args)]
pub struct TodoStart {
    /// The id of the todo, or its last characters
    id: String,
}

impl Operate for TodoStart {
    const NAME: &'static str = "todo start";
    const ABOUT: &'static str = "Start a todo: it is in progress and assigned to you";

    fn operate(self, session: &Session) -> Result<Answer, Failure> {
        moved(session, &self.id, &Move::Start)
    }
}

#[derive(Debug, Args)]
pub struct TodoBlock {
    /// The id of the todo, or its last characters
    id: String,
    /// The reason
    #[arg(long, value_name = "WHY", allow_hyphen_values = true)]
    reason: String,
    /// A todo that must be done first; repeatable
    #[arg(long, value_name = "ID")]
    by: Vec<String>,
}

impl Operate for TodoBlock {
    const NAME: &'static str = "todo block";
    const ABOUT: &'static str = "Mark a todo as blocked, with the reason";

    fn operate(self, session: &Session) -> Result<Answer, Failure> {
        moved(
            session,
            &self.id,
            &Move::Block {
                reason: self.reason,
                by: self.by,
            },
        )
    }
}

#[derive(Debug, Args)]
pub struct TodoUnblock {
    /// The id of the todo, or its last characters
    id: String,
}

impl Operate for TodoUnblock {
    const NAME: &'static str = "todo unblock";
    const ABOUT: &'static str = "Unblock a todo: it is pending again";

    fn operate(self, session: &Session) -> Result<Answer, Failure> {
        moved(session, &self.id, &Move::Unblock)
    }
}

#[derive(Debug, Args)]
pub struct TodoDone {
    /// The id of the todo, or its last characters
    id: String,
    /// How the result was checked, or where it is
    #[arg(long, value_name = "TEXT", allow_hyphen_values = true)]
    note: Option<String>,
}

impl Operate for TodoDone {
    const NAME: &'static str = "todo done";
    const ABOUT: &'static str = "Complete a todo";

    fn operate(self, session: &Session) -> Result<Answer, Failure> {
        moved(session, &self.id, &Move::Done { note: self.note })
    }
}

#[derive(Debug, Args)]
pub struct TodoCancel {
    /// The id of the todo, or its last characters
    id: String,
    /// The reason
    #[arg(long, value_name = "WHY", allow_hyphen_values = true)]
    reason: Option<String>,
}

impl Operate for TodoCancel {
    const NAME: &'static str = "todo cancel";
    const ABOUT: &'static str = "Cancel a todo";

    fn operate(self, session: &Session) -> Result<Answer, Failure> {
        moved(
            session,
            &self.id,
            &Move::Cancel {
                reason: self.reason,
            },
        )
    }
}

#[derive(Debug, Args)]
pub struct TodoList {
    /// List completed and cancelled todos too
    #[arg(long)]
    all: bool,
    /// List only todos with this status
    #[arg(long, value_name = "S", value_parser = ["pending", "in_progress", "blocked", "completed", "cancelled"])]
    status: Option<String>,
    /// List only todos with this tag
    #[arg(long, value_name = "TAG")]
    tag: Option<String>,
}

impl Operate for TodoList {
    const NAME: &'static str = "todo list";
    const ABOUT: &'static str = "List open todos, most important first";

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
        let text = shown
            .iter()
            .map(|t| line(&list, t) + "\n")
            .collect::<String>();
        let json = json!({
            "todos": shown,
            "last_review": list.last_review,
            "total_created": list.total_created,
            "total_completed": list.total_completed,
        });
        let answer = Answer::new(json, text);
        let answer = if shown.is_empty() {
            answer.say(match project.contract.language {
                Language::En => "no todos",
                Language::Zh => "没有待办",
            })
        } else {
            answer
        };
        with_flag_of(answer, &project, &session.actor, Form::Todos)
    }
}

#[derive(Debug, Args)]
pub struct TodoShow {
    /// The id of the todo, or its last characters
    id: String,
}

impl Operate for TodoShow {
    const NAME: &'static str = "todo show";
    const ABOUT: &'static str = "Show one todo";

    fn operate(self, session: &Session) -> Result<Answer, Failure> {
        let project = session.project()?;
        let list = load_todos(&project, &session.actor)?;
        let todo = list.find(&self.id, project.contract.language)?;
        let value = json!(todo);
        let mut text = line(&list, todo) + "\n";
        for (key, value) in value.as_object().into_iter().flatten() {
            let told = match value {
                serde_json::Value::String(text) => text.replace('\n', "\n               "),
                serde_json::Value::Array(items) if !items.is_empty() => items
                    .iter()
                    .filter_map(|i| i.as_str())
                    .collect::<Vec<_>>()
                    .join(", "),
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
    const ABOUT: &'static str = "Record that all todos were reviewed, and list them";

    fn operate(self, session: &Session) -> Result<Answer, Failure> {
        let project = session.project()?;
        let receipt = review_todos(&project, &session.actor, session.lease.as_ref())?;
        let list = load_todos(&project, &session.actor)?;
        let text = list
            .open()
            .iter()
            .map(|t| line(&list, t) + "\n")
            .collect::<String>();
        Ok(receipt::with(
            project.contract.language,
            &receipt,
            json!({"open": list.open(), "last_review": list.last_review}),
            text,
        ))
    }
}

/// Formats one todo on one line.
fn line(list: &Todos, todo: &Todo) -> String {
    let id = short_name(list.todos.iter().map(|t| t.id.as_str()), &todo.id);
    let (status, _) = list.standing(todo);
    let who = todo
        .assignee
        .as_ref()
        .filter(|a| !a.is_empty())
        .map(|a| format!(" @{a}"))
        .unwrap_or_default();
    let due = todo
        .due
        .as_ref()
        .map(|d| format!("  due {d}"))
        .unwrap_or_default();
    let tags = todo
        .tags
        .iter()
        .map(|t| format!(" #{t}"))
        .collect::<String>();
    let line = format!(
        "{id}  {:<8}  {:<11}  {}{who}{tags}{due}",
        todo.priority.as_str(),
        status.as_str(),
        todo.title
    );
    in_one_line(&line).into_owned()
}
