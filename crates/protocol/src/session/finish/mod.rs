//! The closing protocol: everything that a session records at its end, in one commit or not at all.
//!
//! Each form has a closer that turns the material into edits of a draft. The contract's checklist
//! is then checked against the draft. If nothing is missing, the draft is committed together with
//! the end of the session.

mod check;
mod close;
mod left_behind;
mod material;
mod text;

use quipu_contract::{Form, ProjectPath};
use quipu_store::{OpenSession, Who};

pub use check::Missing;
pub(crate) use check::may_write;
pub(crate) use close::FINISH;
pub use close::{Closed, Finish, finish, is_in_journal_only};
pub(crate) use left_behind::is_left_behind;
pub use material::{Material, parse_material};
pub use text::{FinishText, finish_template, parse_finish_text};

use crate::files::edit::Draft;
use crate::session::capture::Captured;
use crate::session::error::WorkError;
use crate::worldlog::{Lack, TASK_KEYS, WORLD_KEYS};

/// The arguments of a closer.
pub struct Closing<'c> {
    pub material: &'c Material,
    /// The reason, if the task is abandoned.
    pub abandoned: Option<String>,
    /// The calls since the task started, if they were counted.
    pub calls: Option<u32>,
    /// The session that ends, if one was begun.
    pub session: Option<&'c OpenSession>,
    /// Paths that this actor or an external edit changed since the session began.
    pub(crate) touched: Vec<String>,
    /// Everything that the host's hooks recorded for the session.
    pub(crate) captured: Captured,
}

impl Closing<'_> {
    /// Whether a file changed since the session began, or changes in this draft.
    pub fn has_changed(&self, draft: &Draft<'_>, path: &ProjectPath) -> Result<bool, WorkError> {
        if draft.changed().any(|p| p == path) || self.touched.iter().any(|p| p == path.as_str()) {
            return Ok(true);
        }
        let Some(session) = self.session else {
            return Ok(false);
        };
        let mine = Who::from(draft.actor);
        let events = draft.project.store.events_since(path, session.seq)?;
        Ok(events
            .iter()
            .any(|e| e.who == mine || e.who == Who::external()))
    }

    /// Whether a file of a form was created or changed, for forms with many files.
    pub fn has_created(&self, draft: &Draft<'_>, form: Form) -> bool {
        let contract = &draft.project.contract;
        let is_of_form =
            |path: &ProjectPath| contract.rule(path).is_some_and(|r| r.form == Some(form));
        draft.changed().any(is_of_form)
            || self
                .touched
                .iter()
                .filter_map(|p| ProjectPath::parse(p).ok())
                .any(|p| is_of_form(&p))
    }
}

/// The result of a closer.
pub(crate) enum Closure {
    /// The material was applied; the checklist decides whether it is sufficient.
    Left,
    /// The forms are closed, even if no bytes changed.
    Closed,
    /// Nothing was applied, for these reasons.
    Lacks(Vec<Lack>),
}

/// Closes the files of some forms.
pub(crate) struct Closer {
    /// The forms that it closes. It does nothing if the contract has no file of the first form.
    pub forms: &'static [Form],
    /// Keys of the material that this closer reads, besides the typed ones.
    pub keys: &'static [&'static str],
    /// Whether the material has content for these forms.
    pub is_said: fn(&Material) -> bool,
    pub close: fn(&mut Draft<'_>, &Closing<'_>) -> Result<Closure, WorkError>,
}

/// All closers, in the order in which they run.
pub(crate) const CLOSERS: &[Closer] = &[
    Closer {
        forms: &[Form::Decisions],
        keys: &[],
        is_said: Material::says_decisions,
        close: crate::session::decisions::close_decisions,
    },
    Closer {
        forms: &[Form::Todos],
        keys: &[],
        is_said: Material::says_todos,
        close: crate::session::todos::close_todos,
    },
    Closer {
        forms: &[Form::State],
        keys: &[],
        is_said: Material::says_state,
        close: crate::session::state::close_state,
    },
    Closer {
        forms: &[Form::Session, Form::Knowledge, Form::Task],
        keys: TASK_KEYS,
        is_said: |material| material.says_any(TASK_KEYS),
        close: crate::worldlog::close_task,
    },
    Closer {
        forms: &[Form::World],
        keys: WORLD_KEYS,
        is_said: |material| material.says_any(WORLD_KEYS),
        close: crate::worldlog::close_world,
    },
];
