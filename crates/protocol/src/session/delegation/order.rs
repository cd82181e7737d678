//! Parses a delegation file and decides which inputs its child may read.
//!
//! Grants come from the first version of the file by its author: later text in the file can never
//! extend them.

use jiff::Timestamp;
use quipu_contract::{Actor, ActorName, Contract, Form, Paragraph, ProjectPath, UnitId};
use quipu_store::{At, OpKind, OpenSession, PathEvent, Who};
use quipu_text::{Document, Section};
use serde::Serialize;

use crate::files::edit::Draft;
use crate::files::quote::unquoted;
use crate::project::forms::resolve_unit_form;
use crate::project::open::Project;
use crate::project::times::parse_moment;
use crate::session::error::WorkError;

/// The progress of an order.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Progress {
    /// No child has begun it.
    Open,
    /// A child is working on it.
    Running,
    /// A child began it long ago and has neither reported nor finished.
    Dead,
    /// Its deadline has passed without a report.
    Overdue,
    Reported,
    /// More than one report: the first and later ones.
    ReportedTwice,
}

impl Progress {
    pub const fn as_str(self) -> &'static str {
        match self {
            Progress::Open => "open",
            Progress::Running => "running",
            Progress::Dead => "dead",
            Progress::Overdue => "overdue",
            Progress::Reported => "reported",
            Progress::ReportedTwice => "reported_twice",
        }
    }
}

/// One order with its reports.
#[derive(Debug, Clone, Serialize)]
pub struct Delegation {
    pub id: String,
    pub path: String,
    pub task: String,
    pub expect: String,
    /// The inputs for the child, as the parent wrote them.
    pub inputs: Vec<String>,
    /// The author of the order. Set only when an order is loaded for its child.
    #[serde(skip)]
    pub author: Actor,
    pub deadline: Option<String>,
    /// How often it was handed out.
    pub rounds: usize,
    pub progress: Progress,
    /// The reports as written in the file, oldest first.
    pub reports: Vec<String>,
}

const TASK: [&str; 2] = ["task", "任务"];
const EXPECT: [&str; 2] = ["expected output", "预期产出"];
const INPUTS: [&str; 2] = ["inputs", "输入"];
const DEADLINE: [&str; 2] = ["deadline", "期限"];
const REPORT: [&str; 2] = ["report", "报告"];
const AGAIN: [&str; 2] = ["handed out again", "重新派出"];

pub fn load_delegation(
    project: &Project,
    actor: &Actor,
    id: &str,
    now: Timestamp,
) -> Result<Delegation, WorkError> {
    let path = resolve_unit_form(project, Form::Delegation, id)?;
    let mut draft = Draft::new(project, actor);
    if !draft.exists(&path)? {
        return Err(WorkError::not_found(
            format!("unknown delegation `{id}`: `{path}` does not exist"),
            "quipu collect",
        ));
    }
    let text = draft.text(&path)?;
    let sessions = project.store.sessions()?;
    let given = given_inputs(project, actor, &path)?;
    Ok(Delegation {
        inputs: given.inputs,
        author: given.author,
        ..parse_delegation(id, &path, &text, &sessions, now)
    })
}

/// The inputs of a child and the actor that granted them.
struct Given {
    inputs: Vec<String>,
    author: Actor,
}

/// Returns the inputs that the order's author gave to the child. Only the first version counts: the
/// child appends to the same file and must not grant itself more.
fn given_inputs(project: &Project, actor: &Actor, path: &ProjectPath) -> Result<Given, WorkError> {
    let events = events_of(project, path)?;
    let Some(first) = events.last() else {
        return Ok(Given {
            inputs: Vec::new(),
            author: Actor::Person,
        });
    };
    let (bytes, _) = project.store.text_at(path, &At::Seq(first.seq))?;
    let text = String::from_utf8_lossy(&bytes);
    Ok(Given {
        inputs: inputs_of(&Document::parse(&text)),
        author: author_of(&first.who, actor),
    })
}

/// The events of the file since it was last created, newest first.
pub(super) fn events_of(
    project: &Project,
    path: &ProjectPath,
) -> Result<Vec<PathEvent>, WorkError> {
    let events = project
        .store
        .events(path)?
        .into_iter()
        .take_while(|e| e.op != OpKind::Remove);
    Ok(events.filter(|e| e.op != OpKind::Keep).collect())
}

/// The author of a record as an actor. An external edit may have been made by the reader itself, so
/// it grants nothing beyond the reader's own rights.
fn author_of(who: &Who, reader: &Actor) -> Actor {
    match who.kind.as_str() {
        "agent" => {}
        "external" => return reader.clone(),
        _ => return Actor::Person,
    }
    let name = |name: &Option<String>| name.as_deref().and_then(|name| ActorName::parse(name).ok());
    let unit = who
        .unit
        .as_deref()
        .and_then(|unit| UnitId::parse(unit).ok());
    Actor::Agent {
        role: name(&who.role),
        unit,
        agent: name(&who.agent),
    }
}

/// The path, with or without a section, at the beginning of an input.
pub(crate) fn pointer_of(input: &str) -> &str {
    input
        .split([' ', '：'])
        .next()
        .unwrap_or_default()
        .trim_end_matches(':')
        .trim_matches('`')
}

/// Whether an input names a file of the project rather than free text: by its spelling alone,
/// because the author of an order does not learn whether a file exists that it may not read.
pub(crate) fn names_a_file(project: &Project, pointer: &str) -> bool {
    let path = pointer.split('#').next().unwrap_or_default();
    let is_spelled_so = path
        .rsplit_once('/')
        .is_some_and(|(_, name)| name.contains('.'));
    ProjectPath::parse(path)
        .is_ok_and(|path| is_spelled_so || project.contract.rule(&path).is_some())
}

fn inputs_of(document: &Document<'_>) -> Vec<String> {
    let section = document.sections().iter().find(|s| is_named(s, INPUTS));
    let body = section.map(|s| document.slice(&s.body)).unwrap_or_default();
    body.lines()
        .filter_map(|line| line.strip_prefix("- "))
        .map(|line| line.trim().to_owned())
        .collect()
}

pub(super) fn parse_delegation(
    id: &str,
    path: &ProjectPath,
    text: &str,
    sessions: &[OpenSession],
    now: Timestamp,
) -> Delegation {
    let document = Document::parse(text);
    let of = |names: [&'static str; 2]| {
        document
            .sections()
            .iter()
            .filter(move |s| is_named(s, names))
    };
    let body = |names| {
        of(names)
            .next()
            .map(|s| unquoted(document.slice(&s.body).trim()))
            .unwrap_or_default()
    };
    let reports: Vec<String> = of(REPORT)
        .map(|s| without_markers(document.slice(&s.range)))
        .collect();
    // The newest deadline applies: an order may be handed out again with another one.
    let again = of(AGAIN).filter_map(|s| find_moment(deadline_line(document.slice(&s.body))));
    let deadline = of(DEADLINE)
        .filter_map(|s| find_moment(document.slice(&s.body)))
        .chain(again)
        .last();
    let session = sessions.iter().rfind(|s| s.who.unit.as_deref() == Some(id));
    let late = deadline
        .as_deref()
        .and_then(parse_moment)
        .is_some_and(|d| d < now);
    let progress = match (reports.len(), session) {
        (1, _) => Progress::Reported,
        (2.., _) => Progress::ReportedTwice,
        _ if late => Progress::Overdue,
        (_, Some(session)) if session.over => Progress::Dead,
        (_, Some(_)) => Progress::Running,
        (_, None) => Progress::Open,
    };
    Delegation {
        id: id.to_owned(),
        path: path.as_str().to_owned(),
        task: body(TASK),
        expect: body(EXPECT),
        inputs: inputs_of(&document),
        author: Actor::Person,
        deadline,
        rounds: 1 + of(AGAIN).count(),
        progress,
        reports,
    }
}

/// Matches `## Report`, `## Report 2`, `## 报告`.
fn is_named(section: &Section, names: [&str; 2]) -> bool {
    let title = section
        .title
        .trim()
        .trim_end_matches(|c: char| c.is_ascii_digit() || c == ' ')
        .to_lowercase();
    section.level == 2 && names.contains(&title.as_str())
}

fn without_markers(text: &str) -> String {
    let kept = text
        .lines()
        .filter(|l| !(l.trim().starts_with("<!--") && l.trim().ends_with("-->")));
    kept.collect::<Vec<_>>().join("\n").trim().to_owned()
}

/// Finds the list item with the deadline.
fn deadline_line(text: &str) -> &str {
    let is_told = |line: &&str| {
        DEADLINE.iter().any(|name| {
            line.trim_start_matches(['-', ' '])
                .to_lowercase()
                .starts_with(name)
        })
    };
    text.lines().find(is_told).unwrap_or_default()
}

fn find_moment(text: &str) -> Option<String> {
    let words = text.split(|c: char| c.is_whitespace() || matches!(c, '：' | '。' | '，' | '`'));
    words
        .filter(|w| w.contains('-'))
        .find(|w| parse_moment(w.trim_end_matches([',', '.'])).is_some())
        .map(|w| w.trim_end_matches([',', '.']).to_owned())
}

/// Returns the actor that works on an order. A caller without a role acts in the role for orders,
/// with the order as its unit. An actor that works on one order has no access to another.
pub(crate) fn child_of(contract: &Contract, actor: &Actor, id: &str) -> Result<Actor, WorkError> {
    let scene = contract
        .scenes
        .values()
        .find(|s| s.show.contains(&Paragraph::Delegation));
    let role = scene.and_then(|s| ActorName::parse(s.role.as_deref()?).ok());
    if let (Some(own), Some(role)) = (actor.role(), &role)
        && own != role
    {
        let what = format!("role `{own}` delegates tasks; role `{role}` works on them");
        return Err(WorkError::refused(what, format!("--as {role} --unit {id}")));
    }
    // The role's pointers name the file of one order. Without a unit, they match no file.
    if let (Some(own), None) = (actor.role(), actor.unit()) {
        let what = format!("role `{own}` works on one delegation, but no unit names it");
        return Err(WorkError::refused(what, format!("--as {own} --unit {id}")));
    }
    if let Some(own) = actor.unit().filter(|own| own.as_str() != id) {
        let what = format!("`{own}` works on its own delegation; `{id}` belongs to another");
        return Err(WorkError::refused(what, format!("--delegation {own}")));
    }
    let unit = UnitId::parse(id).map_err(|e| WorkError::usage(e.to_string(), "quipu collect"))?;
    Ok(Actor::Agent {
        role: role.or_else(|| actor.role().cloned()),
        unit: Some(unit),
        agent: actor.agent().cloned(),
    })
}
