//! The cold start: one bounded text that tells an agent without memory where things stand.
//!
//! A scene of the contract says what is shown, and in which order. Each paragraph has a provider
//! that reads only the files it shows; a file that cannot be read costs its own paragraph and no
//! other. What the budget leaves no room for is named with the command that shows it (`fit.rs`).

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

use crate::capture::Captured;
use crate::forms::resolve_form;
use crate::project::Project;
use crate::work::WorkError;
use crate::worldlog::PastSession;

/// What a provider is given.
pub struct Waking<'w> {
    pub project: &'w Project,
    pub actor: &'w Actor,
    pub language: Language,
    pub now: jiff::Timestamp,
    /// Sessions that had not ended before this one began.
    pub sessions: &'w [OpenSession],
    /// The caller's own session, if its agent has forgotten what it did in it.
    pub forgotten: Option<(&'w OpenSession, &'w Captured)>,
    /// The newest records of the journal, newest first.
    pub recent: &'w [LogEntry],
    /// The record with which this agent was last here.
    pub last_here: Option<u64>,
    /// The order that a child was given.
    pub delegation: Option<&'w str>,
    /// What the caller says it came for.
    pub task: Option<&'w str>,
    near: OnceCell<Vec<PastSession>>,
}

impl Waking<'_> {
    /// The text in the project's language.
    pub fn say<'t>(&self, en: &'t str, zh: &'t str) -> &'t str {
        Waking::said(self.language, en, zh)
    }

    fn said<'t>(language: Language, en: &'t str, zh: &'t str) -> &'t str {
        match language {
            Language::En => en,
            Language::Zh => zh,
        }
    }

    /// The one file of a form, if there is one and the caller's role reads it.
    pub(crate) fn readable(&self, form: Form) -> Option<ProjectPath> {
        resolve_form(self.project, self.actor, form)
            .ok()
            .filter(|_| self.may_see(form))
    }

    /// Whether the caller's role reads files of a form: where two profiles show one scene, not
    /// every role reads all of it.
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

/// A paragraph: a title and entries, of which the last may have to be left out.
#[derive(Debug, Clone, Serialize)]
pub struct Block {
    pub name: &'static str,
    pub title: String,
    pub entries: Vec<String>,
    /// A shorter form of each entry, for a small budget; empty where there is none.
    #[serde(skip)]
    pub short: Vec<String>,
    /// The command that shows all of it.
    pub more: String,
    pub data: Value,
    /// How many entries are shown, and whether in their short form.
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

    /// Adds an entry with a shorter form of it.
    pub fn push(&mut self, entry: String, short: String) {
        self.entries.push(entry);
        self.short.push(short);
    }
}

/// Who tells a paragraph; none where there is nothing to tell.
pub(crate) type Provider = fn(&Waking<'_>) -> Result<Option<Block>, WorkError>;

/// Every provider.
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
