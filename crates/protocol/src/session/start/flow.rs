//! The paragraph about a flow: progress, next unit, jobs that wait for a person, failures, next
//! command.
//!
//! Only actors that may see all of the project get it.

use quipu_contract::{Language, Paragraph, Privilege, in_one_line};
use serde_json::json;

use super::{Block, Waking};
use crate::flow::{Flow, FlowCache, FlowError, JobStatus, State, flow_now, next_command};
use crate::session::error::WorkError;

/// At most this many jobs per state are listed; the rest are counted.
const TOLD: usize = 4;

/// Renders the status of the flow. None for a role that sees only its own files.
pub(super) fn flow(waking: &Waking<'_>) -> Result<Option<Block>, WorkError> {
    let contract = &waking.project.contract;
    if contract.steps.is_empty() || waking.actor.may(Privilege::SeeAll).is_err() {
        return Ok(None);
    }
    let (flow, _) = match flow_now(waking.project, &FlowCache::default()) {
        Ok(found) => found,
        Err(FlowError::Store(error)) => return Err(error.into()),
        Err(FlowError::Template(error)) => return Err(error.into()),
        // `quipu status` reports other errors.
        Err(_) => return Ok(None),
    };
    let mut block = Block::new(
        Paragraph::Flow,
        waking.say("Progress", "工作进展"),
        "quipu status",
    );
    if flow.jobs.is_empty() {
        block.entries.push(no_units(waking));
        return Ok(Some(block));
    }
    block.entries.push(counts(waking, &flow));
    block.entries.extend(next_unit(waking, &flow));
    for state in [State::Waiting, State::Failed, State::Blocked, State::Stale] {
        let found: Vec<&JobStatus> = flow
            .statuses
            .iter()
            .filter(|status| status.state == state)
            .collect();
        let name = name_of(state, waking.language);
        let why = |status: &JobStatus| {
            status
                .why
                .first()
                .map(|why| format!(": {}", in_one_line(why)))
                .unwrap_or_default()
        };
        block.entries.extend(
            found
                .iter()
                .take(TOLD)
                .map(|status| format!("- {name}: {}{}", status.job, why(status))),
        );
        if let Some(more) = found.len().checked_sub(TOLD).filter(|more| *more > 0) {
            block.entries.push(match waking.language {
                Language::En => format!("- {name}: and {more} more"),
                Language::Zh => format!("- {name}：另有 {more} 项"),
            });
        }
    }
    if let Some(next) = next_command(&flow) {
        block
            .entries
            .push(format!("- {}{next}", waking.say("next: ", "下一步：")));
    }
    block.data = json!(
        flow.statuses
            .iter()
            .filter(|s| !matches!(s.state, State::Done | State::Pending | State::Skipped))
            .collect::<Vec<_>>()
    );
    Ok(Some(block))
}

fn no_units(waking: &Waking<'_>) -> String {
    let kind = waking
        .project
        .contract
        .profiles
        .iter()
        .find_map(|profile| profile.unit.as_ref());
    let (name, id) = kind.map_or(("unit", "ID".to_owned()), |kind| {
        (
            kind.name.in_language(waking.language),
            kind.id.replace("##", "01"),
        )
    });
    match waking.language {
        Language::En => format!(
            "- No {name} is declared yet: a person must add [units.{id}] with a title to \
             quipu.toml."
        ),
        Language::Zh => {
            format!("- 尚未声明任何{name}：需要由人在 quipu.toml 中添加 [units.{id}] 和标题。")
        }
    }
}

fn counts(waking: &Waking<'_>, flow: &Flow<'_>) -> String {
    let of = |state: &State| {
        Some(flow.count(*state))
            .filter(|count| *count > 0)
            .map(|count| (count, name_of(*state, waking.language)))
    };
    let said: Vec<String> = State::ALL
        .iter()
        .filter_map(of)
        .map(|(count, name)| format!("{count} {name}"))
        .collect();
    match waking.language {
        Language::En => format!("- jobs: {}", said.join(", ")),
        Language::Zh => format!("- 各项工作：{}", said.join("，")),
    }
}

/// The first unit with open jobs, and those jobs.
fn next_unit(waking: &Waking<'_>, flow: &Flow<'_>) -> Option<String> {
    let contract = &waking.project.contract;
    let is_open = |status: &&JobStatus| !matches!(status.state, State::Done | State::Skipped);
    let unit = contract.units.iter().find(|unit| {
        flow.statuses
            .iter()
            .filter(is_open)
            .any(|status| status.job.unit.as_ref() == Some(&unit.id))
    })?;
    let of_unit = flow
        .statuses
        .iter()
        .filter(is_open)
        .filter(|status| status.job.unit.as_ref() == Some(&unit.id));
    let status = of_unit.min_by_key(|status| status.state == State::Pending)?;
    let title = in_one_line(unit.title.in_language(waking.language)).into_owned();
    let title = if title == unit.id.as_str() {
        String::new()
    } else {
        format!(" \"{title}\"")
    };
    let state = name_of(status.state, waking.language);
    Some(match waking.language {
        Language::En => format!(
            "- next unit: {}{title}, {} is {state}",
            unit.id, status.job.step
        ),
        Language::Zh => format!("- 下一个：{}{title}，{} {state}", unit.id, status.job.step),
    })
}

fn name_of(state: State, language: Language) -> &'static str {
    match (language, state) {
        (Language::En, State::Waiting) => "waits for a person",
        (Language::En, state) => state.as_str(),
        (Language::Zh, State::Pending) => "等前一步",
        (Language::Zh, State::Ready) => "可以开始",
        (Language::Zh, State::Running) => "进行中",
        (Language::Zh, State::Done) => "完成",
        (Language::Zh, State::Stale) => "已过时",
        (Language::Zh, State::Failed) => "失败",
        (Language::Zh, State::Blocked) => "受阻",
        (Language::Zh, State::Waiting) => "等人决定",
        (Language::Zh, State::Skipped) => "不适用",
    }
}
