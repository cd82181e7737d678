//! The world at a finish: merges the facts that a task changed, after a check that no other session
//! has changed them since the task started.

use quipu_contract::{Actor, Fact, Form, Language, Occasion, ProjectPath, facts};
use quipu_store::{At, Expect, Op, Refused, StoreError};

use super::closing::{Lack, WorldChange, merge_world};
use super::ending::{own_file, read_said};
use super::task::{Task, read_task};
use crate::files::edit::Draft;
use crate::project::forms::{label, resolve_form};
use crate::project::open::Project;
use crate::project::times::{now, render_moment};
use crate::session::error::WorkError;
use crate::session::finish::{Closing, Closure};

/// Merges the task's changes into the world, with a line about this agent's last activity.
pub(crate) fn close_world(
    draft: &mut Draft<'_>,
    closing: &Closing<'_>,
) -> Result<Closure, WorkError> {
    let said = read_said(closing)?;
    let contract = std::sync::Arc::clone(&draft.project.contract);
    // The activity line must not pass for an answer to "what changed in the world?".
    let mut asked = contract
        .finish
        .iter()
        .filter(|item| item.form == Form::World && item.when != Occasion::Never);
    let is_answered =
        !said.world.is_empty() || asked.all(|item| closing.material.none.contains(&item.name));
    if !is_answered || own_file(draft, Form::World)?.is_none() {
        return Ok(Closure::Left);
    }
    let path = resolve_form(draft.project, draft.actor, Form::World)?;
    let is_record = |path: &&ProjectPath| {
        contract
            .rule(path)
            .is_some_and(|rule| rule.form == Some(Form::Session))
    };
    let record = draft
        .changed()
        .find(is_record)
        .map(|path| super::past::stem(path).to_owned());
    if said.world.is_empty() && record.is_none() {
        return Ok(Closure::Left);
    }
    let text = draft.text_or_template(&path)?;
    let changed = Changed {
        world: &text,
        replaces: &said.replaces,
        language: contract.language,
    };
    let lacks = changed.by_others(draft, closing, &path, &said.world)?;
    if !lacks.is_empty() {
        return Ok(Closure::Lacks(lacks));
    }
    let moment = render_moment(now(&draft.project.store));
    let merged = merge_world(
        &text,
        &said.world,
        &label(draft.actor),
        record.as_deref(),
        &moment,
        contract.language,
    )?;
    draft.replace(&path, merged)?;
    Ok(Closure::Closed)
}

/// The world as it is now, and the values in it that the caller knows.
struct Changed<'c> {
    world: &'c str,
    replaces: &'c [WorldChange],
    language: Language,
}

impl Changed<'_> {
    /// The facts of a finish that another session has changed since the task started, each with the
    /// argument that confirms the newer value.
    fn by_others(
        &self,
        draft: &Draft<'_>,
        closing: &Closing<'_>,
        path: &ProjectPath,
        wanted: &[WorldChange],
    ) -> Result<Vec<Lack>, WorkError> {
        let store = &draft.project.store;
        let Some(start) = start_of_task(draft, closing)?.filter(|_| !wanted.is_empty()) else {
            return Ok(Vec::new());
        };
        if store.events_since(path, start)?.is_empty() {
            return Ok(Vec::new());
        }
        let before = match store.text_at(path, &At::Seq(start)) {
            Ok((bytes, _)) => String::from_utf8_lossy(&bytes).into_owned(),
            // The world was recorded only after the start: what it was then is unknown.
            Err(StoreError::NotFound { .. }) => return Ok(Vec::new()),
            Err(error) => return Err(error.into()),
        };
        let (before, now) = (facts(&before), facts(self.world));
        let lack = |mine: &WorldChange| {
            let current = find_fact(&now, mine)?;
            let old = find_fact(&before, mine).map(|fact| fact.value.as_str());
            let is_known = self.replaces.iter().any(|known| {
                known.value == current.value && find_fact(&now, known).is_some_and(|k| k == current)
            });
            let is_same = old == Some(current.value.as_str()) || current.value == mine.value;
            (!is_same && !is_known).then(|| self.lack(old, current, mine))
        };
        Ok(wanted.iter().filter_map(lack).collect())
    }

    fn lack(&self, old: Option<&str>, current: &Fact, mine: &WorldChange) -> Lack {
        let place = match current.section.as_str() {
            "" => current.key.clone(),
            section => format!("{section}/{}", current.key),
        };
        let (new, own) = (&current.value, &mine.value);
        let what = match (self.language, old) {
            (Language::En, Some(old)) => format!(
                "Another session changed {place} from {old} to {new} since this task started, and \
                 you set {own}. Keep the newer value: leave {place} out. Replace it:"
            ),
            (Language::En, None) => format!(
                "Another session set {place} to {new} since this task started, and you set {own}. \
                 Keep the newer value: leave {place} out. Replace it:"
            ),
            (Language::Zh, Some(old)) => format!(
                "任务开始之后，别的会话把 {place} 从 {old} 改成了 {new}，你要写 {own}。保留新值：不写 \
                 {place}。以你的为准："
            ),
            (Language::Zh, None) => format!(
                "任务开始之后，别的会话写了 {place}：{new}，你要写 {own}。保留新值：不写 {place}。以你的\
                 为准："
            ),
        };
        Lack {
            item: "replaces",
            what,
            command: format!("quipu finish --replaces \"{place}={new}\""),
        }
    }
}

/// The current fact that a change means.
fn find_fact<'f>(facts: &'f [Fact], change: &WorldChange) -> Option<&'f Fact> {
    let same = |a: &str, b: &str| a.trim().to_lowercase() == b.trim().to_lowercase();
    facts.iter().find(|fact| {
        !fact.older
            && same(&fact.key, &change.key)
            && change
                .section
                .as_ref()
                .is_none_or(|section| same(section, &fact.section))
    })
}

/// The commit that started the current task; for a task that was never started, that of the session.
fn start_of_task(draft: &Draft<'_>, closing: &Closing<'_>) -> Result<Option<u64>, WorkError> {
    let of_session = closing.session.map(|session| session.seq);
    let Some(path) = own_file(draft, Form::Task)? else {
        return Ok(of_session);
    };
    let store = &draft.project.store;
    let task_in = |bytes: &[u8]| -> Option<Task> { read_task(&String::from_utf8_lossy(bytes)) };
    // The draft has cleared the task already.
    let Some(task) = store.read(&path)?.and_then(|(bytes, _)| task_in(&bytes)) else {
        return Ok(of_session);
    };
    let events = store.events(&path)?;
    let is_same = |seq: u64| {
        let text = store.text_at(&path, &At::Seq(seq));
        let found = text.ok().and_then(|(bytes, _)| task_in(&bytes));
        found.is_some_and(|f| f.started == task.started && f.description == task.description)
    };
    // The newest states are those of this task.
    let states = events.partition_point(|event| is_same(event.seq));
    Ok(states
        .checked_sub(1)
        .map(|first| events[first].seq)
        .or(of_session))
}

/// Refuses a direct change of the world by an actor that changes it only in a finish, and names the
/// argument that does it there.
pub fn refuse_before_finish(
    project: &Project,
    actor: &Actor,
    fact: Option<&str>,
) -> Result<(), WorkError> {
    let path = resolve_form(project, actor, Form::World)?;
    let op = Op::Write {
        path,
        bytes: Vec::new(),
        expect: Expect::Any,
    };
    let is_at_finish = |path| {
        project
            .contract
            .rule(path)
            .is_some_and(|rule| rule.at_finish)
    };
    match (project.store.permit(actor, &op), fact) {
        (Err(StoreError::Refused(refused)), Some(fact)) if is_at_finish(op.path()) => {
            Err(StoreError::Refused(Refused {
                remedy: format!("quipu finish --world \"{fact}\""),
                ..refused
            })
            .into())
        }
        (permitted, _) => Ok(permitted?),
    }
}
