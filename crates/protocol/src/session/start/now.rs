//! The first line of a start, and its last part: the steps that apply now.

use quipu_contract::{Actor, Language, Moment, Next, Paragraph, Scene};
use serde_json::Value;

use super::{Block, Waking};
use crate::project::open::Project;
use crate::project::template::{render_template, template_values};
use crate::project::times::now;
use crate::session::error::WorkError;

/// Explains the text to a reader who has never seen one.
pub(super) fn opening(project: &Project) -> String {
    let name = project.contract.binding().get("project").cloned();
    let folder = || {
        project
            .store
            .root()
            .file_name()
            .map(|name| name.to_string_lossy().into_owned())
            .unwrap_or_default()
    };
    let name = name
        .filter(|name| !name.trim().is_empty())
        .unwrap_or_else(folder);
    let name = quipu_contract::in_one_line(&name).into_owned();
    match project.contract.language {
        Language::En => {
            format!(
                "This is the memory of {name}, kept by Quipu. Earlier sessions wrote it for \
                 agents that have no memory of them.\n\n"
            )
        }
        Language::Zh => {
            format!("这是 {name} 的记忆，由 Quipu 保存，由之前的会话写给不了解前情的 Agent。\n\n")
        }
    }
}

/// Renders the next steps: the scene's steps that apply now, in their short form if the budget is
/// small.
pub(super) fn render_next(
    project: &Project,
    actor: &Actor,
    scene: &Scene,
    delegation: Option<&str>,
    blocks: &[Block],
    is_short: bool,
) -> Result<String, WorkError> {
    let mut values = template_values(&project.contract.binding(), now(&project.store));
    values.insert(
        "delegation".into(),
        delegation.unwrap_or_default().to_owned(),
    );
    // If two profiles share a scene, each lists the steps of its own role.
    let roles = &project.contract.roles;
    let is_one = |role: &str, name: &str| {
        role == name
            || roles
                .get(role)
                .is_some_and(|r| r.also.iter().any(|a| a == name))
    };
    let has_several = scene
        .next
        .iter()
        .any(|next| next.role != scene.next[0].role);
    let is_for = |next: &&Next| match (actor.role(), &next.role) {
        (Some(role), Some(name)) if roles.contains_key(name) && has_several => {
            is_one(role.as_str(), name)
        }
        _ => true,
    };
    let mut steps: Vec<String> = Vec::new();
    for said in scene
        .next
        .iter()
        .filter(is_for)
        .filter(|next| applies(next.when, blocks))
    {
        let text = said
            .short
            .as_ref()
            .filter(|_| is_short)
            .unwrap_or(&said.text)
            .in_language(project.contract.language);
        steps.push(
            render_template(&scene.place.file, text, &values)?
                .trim()
                .to_owned(),
        );
    }
    if steps.is_empty() {
        steps.push(
            Waking::said(
                project.contract.language,
                "Before you stop: quipu finish",
                "停下之前：quipu finish",
            )
            .to_owned(),
        );
    }
    let is_list = steps.iter().all(|step| step.starts_with("- "));
    Ok(steps.join(if is_list { "\n" } else { "\n\n" }))
}

/// Whether a step applies, based on the gathered paragraphs.
fn applies(when: Moment, blocks: &[Block]) -> bool {
    let shown = |paragraph: Paragraph| blocks.iter().find(|block| block.name == paragraph.as_str());
    match when {
        Moment::Always => true,
        // An agent that may still be working needs no successor.
        Moment::Unfinished => shown(Paragraph::Unfinished).is_some_and(|block| {
            block.data["lost"]
                .as_array()
                .is_none_or(|lost| !lost.is_empty())
        }),
        Moment::Delegations => shown(Paragraph::Delegations).is_some(),
        Moment::ReviewDue => {
            shown(Paragraph::Todos).is_some_and(|block| !block.data["review_due"].is_null())
        }
        Moment::NothingOpen => {
            let next = shown(Paragraph::State).map(|block| &block.data["progress"]["next_steps"]);
            let has_next = next
                .and_then(Value::as_array)
                .is_some_and(|steps| !steps.is_empty());
            shown(Paragraph::Unfinished).is_none() && shown(Paragraph::Todos).is_none() && !has_next
        }
    }
}
