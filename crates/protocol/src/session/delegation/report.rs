//! Appends a child's report to its order file.
//!
//! The order above it is never changed. `order.rs` parses the file.

use quipu_contract::{Actor, Form, Language};
use quipu_store::{LeaseToken, Receipt, Who};

use super::order::{child_of, load_delegation};
use crate::files::edit::{Terms, revise};
use crate::files::quote::as_entry_value;
use crate::project::forms::{label, resolve_unit_form};
use crate::project::open::Project;
use crate::project::times::{now, render_moment};
use crate::session::error::WorkError;

/// The report of a child.
#[derive(Debug, Clone, Default)]
pub struct Report {
    pub id: String,
    /// `done`, `partly` or `failed`.
    pub result: String,
    pub output: String,
    pub evidence: Option<String>,
    pub decisions: Option<String>,
    pub undone: Option<String>,
}

/// Appends the report and ends the child's session in the same commit. Returns the number of the
/// report: further reports are kept and numbered.
pub fn report(
    project: &Project,
    actor: &Actor,
    lease: Option<&LeaseToken>,
    said: &Report,
) -> Result<(usize, Receipt), WorkError> {
    const RESULTS: [&str; 3] = ["done", "partly", "failed"];
    if !RESULTS.contains(&said.result.as_str()) {
        return Err(WorkError::usage(
            format!("`{}` is not a valid result", said.result),
            "use --result done, partly or failed",
        ));
    }
    if said.output.trim().is_empty() {
        return Err(WorkError::usage(
            "a report needs an output: what exists now, or the answer itself",
            "quipu report --result done --output \"…\"",
        ));
    }
    let actor = &child_of(&project.contract, actor, &said.id)?;
    let (moment, mine) = (now(&project.store), Who::from(actor));
    revise(project, actor, |draft| {
        let path = resolve_unit_form(project, Form::Delegation, &said.id)?;
        let order = load_delegation(project, actor, &said.id, moment)?;
        let number = order.reports.len() + 1;
        let marker = project.contract.rule(&path).and_then(|r| r.marker.clone());
        let mut text = render(
            said,
            number,
            &render_moment(moment),
            &label(actor),
            project.contract.language,
        );
        if let Some(marker) = marker.as_deref().and_then(|m| m.split('|').next()) {
            text.push_str(&format!("\n<!-- {} -->\n", marker.trim()));
        }
        draft.append(&path, &text)?;
        let session = project
            .store
            .sessions()?
            .into_iter()
            .rfind(|s| s.who == mine && s.who.unit.as_deref() == Some(&said.id));
        let terms = Terms {
            why: format!("report {}: {}", said.id, said.result),
            lease: lease.cloned(),
            ends: session.map(|s| s.id),
        };
        Ok((number, terms))
    })
}

fn render(said: &Report, number: usize, at: &str, by: &str, language: Language) -> String {
    let zh = language == Language::Zh;
    let result = match (said.result.as_str(), zh) {
        ("done", true) => "完成",
        ("partly", true) => "部分完成",
        ("failed", true) => "失败",
        (other, _) => other,
    };
    let again = match (number, zh) {
        (1, _) => None,
        (_, false) => Some(format!(
            "{} report(s) already existed when this one was submitted",
            number - 1
        )),
        (_, true) => Some(format!("提交本报告时，此处已有 {} 份报告", number - 1)),
    };
    let title = if zh { "报告" } else { "Report" };
    let numbered = if number > 1 {
        format!("{title} {number}")
    } else {
        title.to_owned()
    };
    let fields = [
        ("Result", "结果", Some(result)),
        ("Output", "产出", Some(said.output.as_str())),
        ("Evidence", "依据", said.evidence.as_deref()),
        (
            "Decisions for the parent",
            "待父会话决定",
            said.decisions.as_deref(),
        ),
        ("Left undone", "未完成", said.undone.as_deref()),
        ("Note", "注", again.as_deref()),
    ];
    let (colon, from) = if zh {
        ("：", format!("- 报告者：{by}，{at}\n"))
    } else {
        (": ", format!("- By: {by}, {at}\n"))
    };
    let mut text = format!("\n## {numbered}\n\n");
    for (en, han, value) in fields {
        if let Some(value) = value.map(str::trim).filter(|v| !v.is_empty()) {
            text.push_str(&format!(
                "- {}{colon}{}\n",
                if zh { han } else { en },
                as_entry_value(value)
            ));
        }
    }
    text + &from
}
