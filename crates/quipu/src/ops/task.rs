//! The `task` commands: begin, plan, note and show the current task.

use clap::{Args, ValueEnum};
use quipu_contract::{Form, Language};
use quipu_protocol::worldlog::{
    Match, MatchKind, NewTask, Standing, Task, add_todo, begin_task, find_matches, finish_todo,
    move_todo, names_pattern, note, read_knowledge, read_task, strike_todo,
};
use quipu_protocol::{WorkError, change_formed, load_formed};
use serde_json::json;

use super::receipt;
use crate::answer::{Answer, Failure, exit, in_language};
use crate::session::Session;
use crate::table::Operate;

#[derive(Debug, Args)]
pub struct TaskStart {
    /// A description of the task
    description: String,
    /// The type of task: debug, fix, optimize, refactor, feature …
    #[arg(long = "type", value_name = "TYPE", default_value = "task")]
    kind: String,
    /// Keywords to find this task again later, separated by commas; by default words of the
    /// description
    #[arg(long, value_name = "A,B", value_delimiter = ',')]
    keywords: Vec<String>,
    /// The cause that you suspect; it is compared with the causes that earlier tasks found
    #[arg(long, value_name = "TEXT", allow_hyphen_values = true)]
    suspect: Option<String>,
    /// Use this pattern: its steps become the plan
    #[arg(long, value_name = "NAME")]
    pattern: Option<String>,
    /// An item of the plan; repeatable
    #[arg(long = "todo", value_name = "TEXT")]
    todos: Vec<String>,
}

impl Operate for TaskStart {
    const NAME: &'static str = "task start";
    const ABOUT: &'static str = "Start a task and show what is known about such tasks";

    fn operate(self, session: &Session) -> Result<Answer, Failure> {
        let project = session.project()?;
        let knowledge = load_formed(&project, &session.actor, Form::Knowledge)?;
        let patterns = read_knowledge(&knowledge.text).patterns;
        let mut todos = Vec::new();
        let mut chosen = None;
        if let Some(name) = &self.pattern {
            let Some(pattern) = patterns
                .iter()
                .find(|pattern| names_pattern(name, &pattern.name))
            else {
                let known = patterns
                    .iter()
                    .map(|p| format!("`{}`", p.name))
                    .collect::<Vec<_>>()
                    .join(", ");
                let known = if known.is_empty() {
                    "none".to_owned()
                } else {
                    known
                };
                return Err(Failure::new(
                    exit::NOT_FOUND,
                    format!("you have no pattern `{name}`; you have {known}"),
                    "quipu knowledge show",
                ));
            };
            todos.clone_from(&pattern.steps);
            chosen = Some(pattern.name.clone());
        }
        todos.extend(self.todos);
        let matches = find_matches(
            &project,
            &session.actor,
            &self.description,
            self.suspect.as_deref(),
        )?;
        let terms = session.terms(format!("task start: {}", self.description));
        let new = NewTask {
            description: self.description,
            kind: self.kind,
            keywords: self.keywords,
            pattern: chosen,
            suspect: self.suspect,
            todos,
            now: String::new(),
        };
        let (committed, formed) = begin_task(&project, &session.actor, &terms, new)?;
        let task = read_task(&formed.text).unwrap_or_default();
        let language = project.contract.language;
        let text = format!(
            "{}{}",
            render_task(language, &task),
            render_matches(language, &matches)
        );
        Ok(receipt::beside(
            project.contract.language,
            &committed,
            json!({"path": formed.path, "task": task, "matches": matches}),
            text,
        ))
    }
}

fn render_matches(language: Language, matches: &[Match]) -> String {
    let say = |en: &'static str, zh: &'static str| in_language(language, en, zh);
    let mut text = String::new();
    for found in matches {
        let kind = match found.kind {
            MatchKind::Pattern => say("pattern", "模式"),
            MatchKind::Session => say("session", "会话"),
        };
        text.push_str(&format!(
            "{} {:>3}  {kind}  {}  {}  ({})\n",
            say("known", "已知"),
            found.score,
            found.name,
            found.source,
            found.why
        ));
        if let Some(lesson) = &found.lesson {
            text.push_str(&format!(
                "           {}{lesson}\n",
                say("learnt: ", "经验：")
            ));
        }
    }
    if matches.is_empty() {
        say("known: no similar task\n", "已知：没有类似的任务\n").to_owned()
    } else {
        text
    }
}

fn render_task(language: Language, task: &Task) -> String {
    let say = |en: &'static str, zh: &'static str| in_language(language, en, zh);
    let colon = say(": ", "：");
    let mut text = format!("{}{colon}{}\n", say("task", "任务"), task.description);
    let told = [
        (say("type", "类型"), task.kind.clone().unwrap_or_default()),
        (say("keywords", "关键词"), task.keywords.join(", ")),
        (
            say("pattern", "模式"),
            task.pattern.clone().unwrap_or_default(),
        ),
        (
            say("started", "开始"),
            task.started.clone().unwrap_or_default(),
        ),
        (
            say("suspected cause", "怀疑的原因"),
            task.suspect.clone().unwrap_or_default(),
        ),
    ];
    for (name, value) in told.iter().filter(|(_, value)| !value.is_empty()) {
        text.push_str(&format!("{name}{colon}{value}\n"));
    }
    text.push_str(&render_plan(task));
    for note in &task.notes {
        text.push_str(&format!("{}{colon}{note}\n", say("note", "笔记")));
    }
    text
}

fn render_plan(task: &Task) -> String {
    let mut text = String::new();
    for todo in &task.todos {
        let sign = match todo.standing {
            Standing::Open => ' ',
            Standing::Done => 'x',
            Standing::Struck => '~',
        };
        text.push_str(&format!("{:>3} [{sign}] {}\n", todo.number, todo.text));
    }
    text
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Act {
    Add,
    Done,
    Strike,
    Move,
}

#[derive(Debug, Args)]
pub struct TaskTodo {
    /// The action
    #[arg(value_enum)]
    act: Act,
    /// The new item's text, or the number of an item
    #[arg(value_name = "TEXT|N")]
    item: String,
    /// With add: insert before this item
    #[arg(long, value_name = "N")]
    at: Option<usize>,
    /// With done: the result
    #[arg(long, value_name = "TEXT")]
    result: Option<String>,
    /// With strike: the reason
    #[arg(long, value_name = "WHY", allow_hyphen_values = true)]
    why: Option<String>,
    /// With move: the new position
    #[arg(long, value_name = "N")]
    to: Option<usize>,
}

impl Operate for TaskTodo {
    const NAME: &'static str = "task todo";
    const ABOUT: &'static str = "Change the plan: add, complete, strike or move an item";

    fn operate(self, session: &Session) -> Result<Answer, Failure> {
        let project = session.project()?;
        let language = project.contract.language;
        let missing = |flag: &str, example: &str| {
            Failure::usage(format!("`{flag}` is missing"), example.to_owned())
        };
        let number = match self.act {
            Act::Add => 0,
            _ => self.item.parse().map_err(|_| {
                Failure::usage(
                    format!("`{}` is not the number of an item", self.item),
                    "quipu task status",
                )
            })?,
        };
        if self.act == Act::Strike && self.why.is_none() {
            return Err(missing("--why", "quipu task todo strike N --why \"…\""));
        }
        if self.act == Act::Move && self.to.is_none() {
            return Err(missing("--to", "quipu task todo move N --to M"));
        }
        let edit = |text: &str| -> Result<String, WorkError> {
            Ok(match self.act {
                Act::Add => add_todo(text, language, &self.item, self.at)?,
                Act::Done => finish_todo(text, number, self.result.as_deref())?,
                Act::Strike => strike_todo(
                    text,
                    language,
                    number,
                    self.why.as_deref().unwrap_or_default(),
                )?,
                Act::Move => move_todo(text, number, self.to.unwrap_or_default())?,
            })
        };
        let act = self
            .act
            .to_possible_value()
            .map(|value| value.get_name().to_owned())
            .unwrap_or_default();
        let terms = session.terms(format!("task todo {act}: {}", self.item));
        let (committed, formed) =
            change_formed(&project, &session.actor, &terms, Form::Task, edit)?;
        let task = read_task(&formed.text).unwrap_or_default();
        let text = render_plan(&task);
        Ok(receipt::beside(
            project.contract.language,
            &committed,
            json!({"path": formed.path, "todos": task.todos}),
            text,
        ))
    }
}

#[derive(Debug, Args)]
pub struct TaskNote {
    /// The result, in one line
    text: String,
}

impl Operate for TaskNote {
    const NAME: &'static str = "task note";
    const ABOUT: &'static str = "Note a result of the current task";

    fn operate(self, session: &Session) -> Result<Answer, Failure> {
        let project = session.project()?;
        let language = project.contract.language;
        let terms = session.terms("task note");
        let (committed, formed) =
            change_formed(&project, &session.actor, &terms, Form::Task, |text| {
                Ok(note(text, language, &self.text)?)
            })?;
        Ok(receipt::beside(
            project.contract.language,
            &committed,
            json!({"path": formed.path}),
            "",
        ))
    }
}

#[derive(Debug, Args)]
pub struct TaskStatus {}

impl Operate for TaskStatus {
    const NAME: &'static str = "task status";
    const ABOUT: &'static str = "Show the current task: plan and notes";

    fn operate(self, session: &Session) -> Result<Answer, Failure> {
        let project = session.project()?;
        let formed = load_formed(&project, &session.actor, Form::Task)?;
        match read_task(&formed.text) {
            Some(task) => Ok(Answer::new(
                json!({"path": formed.path, "task": task}),
                render_task(project.contract.language, &task),
            )),
            None => {
                let mut answer = Answer::new(json!({"path": formed.path, "task": null}), "")
                    .say("no current task");
                answer.exit = exit::NO;
                Ok(answer)
            }
        }
    }
}
