//! The cold start: one bounded text that brings an agent without memory up to date.
//!
//! A scene of the contract defines the paragraphs and their order. Each paragraph has a provider
//! that reads only the files that it shows. An unreadable file costs its own paragraph and no
//! other. Content that does not fit the budget is named with the command that shows it (`fit.rs`).

mod around;
mod fit;
mod flow;
mod gather;
mod git;
mod lay;
mod news;
mod now;
mod others;
mod relay;
mod state;
mod story;
mod unfinished;
mod wake;
mod worldlog;

use std::cell::OnceCell;

use quipu_contract::{Actor, Form, Language, Paragraph, ProjectPath};
use quipu_store::{LogEntry, OpenSession};
use serde::Serialize;
use serde_json::Value;

pub use around::{Surroundings, look_around};
pub use wake::{Awake, StartRequest, start};

use crate::project::forms::resolve_form;
use crate::project::open::Project;
use crate::session::capture::Captured;
use crate::session::error::WorkError;
use crate::worldlog::PastSession;

/// The arguments of a provider.
pub struct Waking<'w> {
    pub project: &'w Project,
    pub actor: &'w Actor,
    pub language: Language,
    pub now: jiff::Timestamp,
    /// Sessions that were still open when this one began.
    pub sessions: &'w [OpenSession],
    /// The caller's own session, if its agent has lost its context.
    pub forgotten: Option<(&'w OpenSession, &'w Captured)>,
    /// The newest records of the journal, newest first.
    pub recent: &'w [LogEntry],
    /// The journal record of this agent's last visit.
    pub last_here: Option<u64>,
    /// The order given to a child.
    pub delegation: Option<&'w str>,
    /// The task stated by the caller.
    pub task: Option<&'w str>,
    /// The cause that the caller suspects.
    pub suspect: Option<&'w str>,
    newest: OnceCell<Vec<PastSession>>,
}

impl Waking<'_> {
    /// Chooses the text in the project's language.
    pub fn say<'t>(&self, en: &'t str, zh: &'t str) -> &'t str {
        Waking::said(self.language, en, zh)
    }

    fn said<'t>(language: Language, en: &'t str, zh: &'t str) -> &'t str {
        match language {
            Language::En => en,
            Language::Zh => zh,
        }
    }

    /// The single file of a form, if it exists and the caller's role reads it.
    pub(crate) fn readable(&self, form: Form) -> Option<ProjectPath> {
        resolve_form(self.project, self.actor, form)
            .ok()
            .filter(|_| self.may_see(form))
    }

    /// Whether the caller's role reads files of a form. If two profiles share a scene, not every
    /// role reads all of it.
    pub(crate) fn may_see(&self, form: Form) -> bool {
        let contract = &self.project.contract;
        let binding = contract.actor_binding(self.actor);
        let Ok(grant) = contract.grant(self.actor) else {
            return false;
        };
        contract.of_form(form).any(|rule| {
            let path = rule.path.fill(&binding).stand_in();
            ProjectPath::parse(&path).is_ok_and(|path| grant.may_read(&path, &binding).is_ok())
        })
    }
}

/// A paragraph: a title and entries. The last entries may be omitted.
#[derive(Debug, Clone, Serialize)]
pub struct Block {
    pub name: &'static str,
    pub title: String,
    pub entries: Vec<String>,
    /// A short form of each entry for a small budget; empty if there is none.
    #[serde(skip)]
    pub short: Vec<String>,
    /// The command that shows the whole paragraph.
    pub more: String,
    pub data: Value,
    /// How many entries are shown.
    pub shown: usize,
    #[serde(skip)]
    pub is_short: bool,
}

impl Block {
    pub fn new(paragraph: Paragraph, title: impl Into<String>, more: impl Into<String>) -> Block {
        Block {
            name: paragraph.as_str(),
            title: title.into(),
            entries: Vec::new(),
            short: Vec::new(),
            more: more.into(),
            data: Value::Null,
            shown: 0,
            is_short: false,
        }
    }

    /// Adds an entry with its short form.
    pub fn push(&mut self, entry: String, short: String) {
        self.entries.push(entry);
        self.short.push(short);
    }
}

/// Renders a paragraph; None if it has no content.
pub(crate) type Provider = fn(&Waking<'_>) -> Result<Option<Block>, WorkError>;

pub(crate) const PROVIDERS: &[(Paragraph, Provider)] = &[
    (Paragraph::Identity, relay::identity),
    (Paragraph::State, state::state),
    (Paragraph::Unfinished, unfinished::unfinished),
    (Paragraph::Others, others::others),
    (Paragraph::Todos, relay::todos),
    (Paragraph::Decisions, relay::decisions),
    (Paragraph::Facts, state::facts),
    (Paragraph::Notes, state::notes),
    (Paragraph::Delegations, relay::delegations),
    (Paragraph::Delegation, relay::delegation),
    (Paragraph::World, worldlog::world),
    (Paragraph::Knowledge, worldlog::knowledge),
    (Paragraph::Task, worldlog::task),
    (Paragraph::Matches, worldlog::matches),
    (Paragraph::Sessions, worldlog::sessions),
    (Paragraph::Flow, flow::flow),
    (Paragraph::Threads, story::threads),
    (Paragraph::Index, story::index),
    (Paragraph::Finished, story::finished),
];
