//! Starts a session: chooses the scene, records the session, gathers the paragraphs and fits them
//! into the budget.
//!
//! A start by a person, or with `peek`, records nothing.

use std::cell::OnceCell;

use quipu_contract::{Actor, ActorName, Form, Paragraph, Scene, Tokens};
use quipu_store::{OpenSession, Who};
use quipu_text::Counter;
use serde::Serialize;
use serde_json::json;

use super::fit::render_blocks;
use super::gather::gather;
use super::lay::lay_missing;
use super::news::tell_news;
use super::now::{opening, render_next};
use super::{Block, Waking};
use crate::files::edit::Terms;
use crate::project::open::Project;
use crate::project::times::now;
use crate::session::capture::{load_captured, record_note};
use crate::session::conversation::{Caller, begin_or_continue, find_session};
use crate::session::delegation::child_of;
use crate::session::error::WorkError;
use crate::session::finish::may_write;
use crate::session::subagent::{find_parent, subagent_text};
use crate::worldlog::{NewTask, begin_task, has_task};

/// Below this budget, the steps at the end use their short form: memory matters more than
/// instructions for saving it.
const SMALL_BUDGET: u64 = 800;
/// How many journal records are searched for commits by others.
const LOOK_BACK: usize = 2_000;

/// The scene of a start that states a task: it shows only what serves this task.
const WITH_TASK: &str = "task";

#[derive(Debug, Clone)]
pub struct StartRequest {
    pub budget: Tokens,
    pub scene: Option<String>,
    pub delegation: Option<String>,
    /// The caller's task: patterns and past sessions are matched against it. It becomes the current
    /// task, unless there is one.
    pub task: Option<String>,
    /// The cause that the caller suspects.
    pub suspect: Option<String>,
    /// Do not record anything. This always applies to a person.
    pub peek: bool,
    /// Show everything, even to an agent that has already received a full start.
    pub full: bool,
    /// Lines that come first, whatever the budget.
    pub notices: Vec<String>,
    pub caller: Caller,
}

/// The result of a start.
#[derive(Debug, Clone, Serialize)]
pub struct Awake {
    pub scene: String,
    pub session: Option<OpenSession>,
    /// The session was already open and continues.
    pub continues: bool,
    /// Whether the stated task became the current one.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub begun: bool,
    /// Missing files that were created.
    pub created: Vec<String>,
    pub blocks: Vec<Block>,
    pub next: String,
    pub tokens: u64,
    /// The minimum size of the text, if it exceeds the budget.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub least: Option<u64>,
    #[serde(skip)]
    pub text: String,
    /// The resolved actor: a child is identified by its order.
    #[serde(skip)]
    pub actor: Actor,
}

/// Starts an actor: returns one text, and records that the actor is working.
pub fn start(project: &Project, actor: &Actor, request: &StartRequest) -> Result<Awake, WorkError> {
    let scene = choose_scene(project, actor, request)?;
    let actor = match &request.delegation {
        Some(id) => child_of(&project.contract, actor, id)?,
        None => actor.clone(),
    };
    project
        .contract
        .grant(&actor)
        .map_err(|what| WorkError::refused(what, "quipu contract show"))?;
    let delegation = request.delegation.clone().or_else(|| {
        actor
            .unit()
            .filter(|_| shows_one_order(&scene))
            .map(ToString::to_string)
    });
    if shows_one_order(&scene) && delegation.is_none() {
        return Err(WorkError::usage(
            "a subagent needs its delegation",
            "quipu start --delegation ID",
        ));
    }
    if request.delegation.is_none() && find_parent(project, &actor)?.is_some() {
        return Ok(awake_subagent(project, actor, scene));
    }
    let is_looking = request.peek || actor == Actor::Person || project.store.is_read_only();
    let created = if request.peek {
        Vec::new()
    } else {
        lay_missing(project)?
    };
    let mine = Who::from(&actor);
    // A child with an order begins a session of its own.
    let caller = if request.delegation.is_some() {
        Caller::default()
    } else {
        request.caller.clone()
    };
    let current = find_session(project, &actor, &caller)?;
    let own = current
        .as_ref()
        .map(|session| load_captured(project, session))
        .transpose()?;
    let mut sessions = project.store.sessions()?;
    sessions.retain(|session| {
        current
            .as_ref()
            .is_none_or(|current| current.id != session.id)
    });
    // Read back to this actor's last visit and to the beginning of every unfinished session.
    let oldest = sessions
        .iter()
        .map(|session| session.seq)
        .min()
        .unwrap_or(u64::MAX);
    let mut was_here = false;
    let recent = project.store.recent_until(LOOK_BACK, &mut |entry| {
        was_here |= entry.who == mine;
        was_here && entry.seq <= oldest
    })?;
    let language = project.contract.language;
    let waking = Waking {
        project,
        actor: &actor,
        language,
        now: now(&project.store),
        sessions: &sessions,
        forgotten: current
            .as_ref()
            .zip(own.as_ref())
            .filter(|_| caller.has_forgotten || request.full),
        recent: &recent,
        last_here: own
            .as_ref()
            .and_then(|own| own.told)
            .or_else(|| recent.iter().find(|e| e.who == mine).map(|e| e.seq)),
        delegation: delegation.as_deref(),
        task: request.task.as_deref(),
        suspect: request.suspect.as_deref(),
        newest: OnceCell::new(),
    };
    if let (Some(session), Some(own)) = (&current, &own)
        && own.told.is_some()
        && !(request.full || caller.has_forgotten)
    {
        let notices = render_notices(request);
        let news = tell_news(&waking, &scene, session, request.budget)?;
        if !is_looking {
            let session = begin_or_continue(project, &actor, &caller, Some(session.clone()))?;
            if !news.blocks.is_empty() {
                record_note(
                    project,
                    &actor,
                    &session,
                    "showed what is new",
                    json!({"told": true}),
                )?;
            }
        }
        let begun = !is_looking && begin_stated(project, &actor, request)?;
        return Ok(Awake {
            begun,
            created,
            actor,
            text: notices + &news.text,
            ..news
        });
    }
    let mut blocks = gather(&waking, &scene)?;
    let is_short = request.budget.0 < SMALL_BUDGET;
    let next = render_next(
        project,
        &actor,
        &scene,
        delegation.as_deref(),
        &blocks,
        is_short,
    )?;
    // A child's order must exist before its session is recorded.
    let continues = current.is_some();
    let session = match is_looking {
        true => current.clone(),
        false => match begin_or_continue(project, &actor, &caller, current.clone()) {
            // A full disk does not prevent reading.
            Err(WorkError::Store(error)) if error.is_full_disk() => None,
            begun => Some(begun?),
        },
    };
    if let (Some(session), true, true) = (
        &session,
        continues && !is_looking,
        own.as_ref().is_some_and(|own| own.is_hosted),
    ) {
        record_note(
            project,
            &actor,
            session,
            "showed the state of the project",
            json!({"told": true}),
        )?;
    }
    let begun = !is_looking && begin_stated(project, &actor, request)?;
    let counter = Counter::O200k;
    let ending = format!(
        "## {}\n\n{}\n",
        waking.say("Now", "接下来"),
        next.trim_end()
    );
    let Tokens(budget) = request.budget;
    let opening = opening(project) + &render_notices(request);
    let mut room = budget.saturating_sub(counter.count(&ending).0 + counter.count(&opening).0);
    let (text, tokens) = loop {
        let text = format!(
            "{opening}{}{ending}",
            render_blocks(&mut blocks, Tokens(room), counter, language)
        );
        let tokens = counter.count(&text).0;
        // A joined text may cost one token more. The next steps are always shown, so the loop ends
        // with only them at the latest.
        if tokens <= budget || room == 0 {
            break (text, tokens);
        }
        room = room.saturating_sub(tokens - budget);
    };
    let least = (tokens > budget).then_some(tokens);
    Ok(Awake {
        scene: scene.name,
        session,
        continues,
        begun,
        created,
        blocks,
        next,
        tokens,
        least,
        text,
        actor,
    })
}

fn render_notices(request: &StartRequest) -> String {
    let lines = request.notices.iter().map(|line| format!("{line}\n"));
    let text: String = lines.collect();
    if text.is_empty() { text } else { text + "\n" }
}

/// The start of a subagent: it works in the session of the agent that started it.
fn awake_subagent(project: &Project, actor: Actor, scene: Scene) -> Awake {
    let text = subagent_text(project, &actor);
    Awake {
        scene: scene.name,
        session: None,
        begun: false,
        continues: true,
        created: Vec::new(),
        blocks: Vec::new(),
        next: String::new(),
        tokens: Counter::O200k.count(&text).0,
        least: None,
        text,
        actor,
    }
}

/// Starts the task that the caller states, if its role keeps one and none is under way.
fn begin_stated(
    project: &Project,
    actor: &Actor,
    request: &StartRequest,
) -> Result<bool, WorkError> {
    let Some(description) = request.task.clone() else {
        return Ok(false);
    };
    let is_kept = project.contract.of_form(Form::Task).next().is_some();
    if !is_kept || !may_write(project, actor, Form::Task) || has_task(project, actor)? {
        return Ok(false);
    }
    let terms = Terms {
        why: format!("task start: {description}"),
        ..Terms::default()
    };
    let new = NewTask {
        description,
        kind: "task".into(),
        suspect: request.suspect.clone(),
        ..NewTask::default()
    };
    begin_task(project, actor, &terms, new)?;
    Ok(true)
}

fn shows_one_order(scene: &Scene) -> bool {
    scene.show.contains(&Paragraph::Delegation)
}

fn choose_scene(
    project: &Project,
    actor: &Actor,
    request: &StartRequest,
) -> Result<Scene, WorkError> {
    let scenes = &project.contract.scenes;
    let known = || scenes.keys().cloned().collect::<Vec<_>>().join(", ");
    if let Some(name) = &request.scene {
        let found = scenes.get(name).cloned();
        return found.ok_or_else(|| {
            WorkError::not_found(
                format!("unknown scene `{name}`: the scenes are {}", known()),
                "quipu contract show",
            )
        });
    }
    let of_role = |role: &ActorName| {
        let mut own = scenes
            .values()
            .filter(|s| s.role.as_deref() == Some(role.as_str()));
        let with_task = request.task.is_some().then(|| scenes.get(WITH_TASK));
        let with_task = with_task
            .flatten()
            .filter(|s| s.role.as_deref() == Some(role.as_str()));
        with_task.or_else(|| own.find(|s| s.name != WITH_TASK))
    };
    let found = match (&request.delegation, actor.role()) {
        (Some(_), _) => scenes.values().find(|s| shows_one_order(s)),
        (None, Some(role)) => of_role(role),
        (None, None) => None,
    };
    let first = || {
        scenes.get("main").or_else(|| {
            scenes
                .values()
                .find(|s| !shows_one_order(s) && s.name != WITH_TASK)
        })
    };
    // A project without declared scenes uses all available paragraphs.
    Ok(found.or_else(first).cloned().unwrap_or_else(|| Scene {
        name: "main".into(),
        role: None,
        show: Paragraph::ALL
            .into_iter()
            .filter(|p| *p != Paragraph::Delegation)
            .collect(),
        next: Vec::new(),
        place: quipu_contract::Place {
            file: "quipu.toml".into(),
            line: 1,
        },
    }))
}
