//! Records decisions. Entries are only appended, never edited.
//!
//! `entry.rs` parses them.

use quipu_contract::{
    Actor, Form, Language, ProjectPath, check_one_line, did_you_mean, is_line_break,
};
use quipu_store::{LeaseToken, Receipt};
use serde::{Deserialize, Serialize};

use super::entry::{Decision, parse_decisions};
use crate::files::edit::{Draft, Made, Terms, revise};
use crate::files::quote::as_entry_value;
use crate::project::forms::resolve_form;
use crate::project::ids::{find_name, fresh_name};
use crate::project::open::Project;
use crate::project::times::{now, render_date};
use crate::session::error::{WorkError, in_language};
use crate::session::finish::{Closing, Closure};

/// The fields of a new decision.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct NewDecision {
    pub title: String,
    #[serde(default)]
    pub id: Option<String>,
    /// The circumstances that required a choice.
    #[serde(default)]
    pub context: Option<String>,
    /// The choice.
    #[serde(default)]
    pub decision: Option<String>,
    #[serde(default)]
    pub why: Option<String>,
    #[serde(default)]
    pub alternatives: Option<String>,
    #[serde(default)]
    pub consequences: Option<String>,
    #[serde(default)]
    pub status: Option<String>,
    #[serde(default)]
    pub supersedes: Vec<String>,
    /// The person or agent that decided.
    #[serde(default)]
    pub by: Option<String>,
}

/// Appends a decision and returns its id.
pub fn decide(
    project: &Project,
    actor: &Actor,
    lease: Option<&LeaseToken>,
    new: &NewDecision,
) -> Result<(String, Receipt), WorkError> {
    let path = resolve_form(project, actor, Form::Decisions)?;
    revise(project, actor, |draft| {
        let id = draft_decision(draft, &path, new)?;
        Ok((
            id.clone(),
            Terms {
                why: format!("decide {id}: {}", new.title),
                lease: lease.cloned(),
                ends: None,
            },
        ))
    })
}

pub(crate) fn close_decisions(
    draft: &mut Draft<'_>,
    closing: &Closing<'_>,
) -> Result<Closure, WorkError> {
    let path = resolve_form(draft.project, draft.actor, Form::Decisions)?;
    for new in &closing.material.decisions {
        draft_decision(draft, &path, new)?;
    }
    Ok(Closure::Left)
}

fn draft_decision(
    draft: &mut Draft<'_>,
    path: &ProjectPath,
    new: &NewDecision,
) -> Result<String, WorkError> {
    let known = parse_decisions(&draft.text(path)?);
    let (moment, language) = (now(&draft.project.store), draft.project.contract.language);
    if new.title.trim().is_empty() || new.title.contains(is_line_break) {
        let what = in_language(
            language,
            "a decision needs a title of one line",
            "决策需要一行标题",
        );
        return Err(WorkError::usage(what, "quipu decide \"title\" --why \"…\""));
    }
    let is_taken = |name: &str| known.iter().any(|d| d.id.eq_ignore_ascii_case(name));
    let id = match &new.id {
        Some(id) if is_taken(id) => {
            let what = in_language(
                language,
                format!("decision `{id}` already exists, and decisions are never edited"),
                format!("决策 `{id}` 已存在，决策不可修改"),
            );
            return Err(WorkError::refused(
                what,
                format!("quipu decide \"…\" --supersedes {id}"),
            ));
        }
        Some(id)
            if id.is_empty() || id.contains([':', '：']) || id.contains(char::is_whitespace) =>
        {
            let what = in_language(
                language,
                format!("`{id}` is not a valid id"),
                format!("`{id}` 不是有效编号：编号须为一个词"),
            );
            return Err(WorkError::usage(what, "--id ADR-007     (one word)"));
        }
        Some(id) => id.clone(),
        None => fresh_name("ADR", moment, is_taken),
    };
    let mut supersedes = Vec::new();
    for asked in &new.supersedes {
        supersedes.push(find_superseded(&known, asked, language)?.id.clone());
    }
    if let Some(status) = &new.status {
        check_one_line("a status", status)
            .map_err(|error| WorkError::usage(error.to_string(), "--status Accepted"))?;
    }
    let text = render(new, &id, &supersedes, &render_date(moment), language);
    draft.append(path, &text)?;
    draft.made.push(Made {
        form: Form::Decisions,
        id: id.clone(),
        title: new.title.trim().to_owned(),
    });
    Ok(id)
}

fn find_superseded<'d>(
    known: &'d [Decision],
    asked: &str,
    language: Language,
) -> Result<&'d Decision, WorkError> {
    let found = find_name(known.iter().map(|d| d.id.as_str()), asked)
        .and_then(|id| known.iter().rfind(|d| d.id == id));
    let old = found.ok_or_else(|| {
        let near = did_you_mean(asked, known.iter().map(|d| d.id.as_str()));
        WorkError::not_found(
            in_language(
                language,
                format!("unknown decision `{asked}`{near}"),
                format!("没有决策 `{asked}`{near}"),
            ),
            "quipu decisions",
        )
    })?;
    match &old.superseded_by {
        Some(newer) => {
            let old = &old.id;
            let what = in_language(
                language,
                format!("`{old}` is already superseded by `{newer}`"),
                format!("`{old}` 已被 `{newer}` 取代"),
            );
            Err(WorkError::refused(
                what,
                format!("quipu decide \"…\" --supersedes {newer}"),
            ))
        }
        None => Ok(old),
    }
}

fn render(
    new: &NewDecision,
    id: &str,
    supersedes: &[String],
    date: &str,
    language: Language,
) -> String {
    let colon = if language == Language::Zh {
        "："
    } else {
        ": "
    };
    let status = new.status.clone().unwrap_or_else(|| {
        if language == Language::Zh {
            "已采纳".into()
        } else {
            "Accepted".into()
        }
    });
    let joined = supersedes.join(if language == Language::Zh {
        "、"
    } else {
        ", "
    });
    let fields: [(&str, &str, Option<&str>); 9] = [
        ("Date", "日期", Some(date)),
        ("Status", "状态", Some(&status)),
        ("Decided by", "决定者", new.by.as_deref()),
        ("Supersedes", "取代", Some(&joined)),
        ("Context", "背景", new.context.as_deref()),
        ("Decision", "决策", new.decision.as_deref()),
        ("Why", "理由", new.why.as_deref()),
        ("Alternatives", "备选", new.alternatives.as_deref()),
        ("Consequences", "影响", new.consequences.as_deref()),
    ];
    let mut text = format!("\n## {id}{colon}{}\n", new.title.trim());
    for (en, zh, value) in fields {
        let Some(value) = value.map(str::trim).filter(|v| !v.is_empty()) else {
            continue;
        };
        let key = if language == Language::Zh { zh } else { en };
        // Indent the lines of a multi-line value so that it stays one list item.
        text.push_str(&format!("- {key}{colon}{}\n", as_entry_value(value)));
    }
    text
}
