//! The merge step: combines several reports into one, most severe items first.
//!
//! The step drops nothing and judges nothing again.

use quipu_contract::{Contract, Language, Merge, ProjectPath};
use quipu_text::{Document, marker, render_marker};

use crate::flow::job::PlannedJob;
use crate::flow::snapshot::{items_with, plain, top_items};

/// A report to be merged.
pub struct Source {
    pub path: ProjectPath,
    pub text: String,
}

/// Renders the merged report.
pub fn merge(contract: &Contract, job: &PlannedJob<'_>, sources: &[Source]) -> String {
    let language = contract.language;
    let plan = job.step.merge.clone().unwrap_or_default();
    let roles: Vec<(String, String)> = sources
        .iter()
        .map(|s| writer(contract, job, &s.path, language))
        .collect();
    let title = job.binding.iter().fold(
        plan.title.in_language(language).to_owned(),
        |t, (name, value)| t.replace(&format!("{{{name}}}"), value),
    );
    let mut text = if title.is_empty() {
        String::new()
    } else {
        format!("# {title}\n")
    };
    if plan.parts.is_empty() {
        text.push_str(&joined(&plan, sources, &roles, language));
    } else {
        text.push_str(&sorted(&plan, job, sources, &roles, language));
    }
    if let Some(name) = &job.step.marker {
        text.push_str(&format!("\n{}\n", render_marker(name)));
    }
    text
}

/// The role that writes a path: name and title.
fn writer(
    contract: &Contract,
    job: &PlannedJob<'_>,
    path: &ProjectPath,
    language: Language,
) -> (String, String) {
    let steps = job
        .step
        .after
        .iter()
        .filter_map(|name| contract.step(name)?.role.as_ref())
        .filter_map(|name| contract.roles.get(name));
    let mut found = steps.filter(|r| {
        r.writes
            .iter()
            .any(|w| w.path.fill(&job.binding).matches(path.as_str()).is_some())
    });
    found.next().map_or_else(
        || (path.to_string(), path.to_string()),
        |r| (r.name.clone(), r.title.in_language(language).to_owned()),
    )
}

struct Item {
    sign: String,
    roles: Vec<String>,
    text: String,
}

/// Groups the items of all reports by part.
fn sorted(
    plan: &Merge,
    job: &PlannedJob<'_>,
    sources: &[Source],
    roles: &[(String, String)],
    language: Language,
) -> String {
    let mut items: Vec<Item> = Vec::new();
    for sign in plan.parts.iter().flat_map(|p| &p.signs) {
        for (source, (role, _)) in sources.iter().zip(roles) {
            for line in items_with(&source.text, sign) {
                let text = without_lead(&line, &plain(sign));
                // Identical items of two reviewers appear once, with both names.
                match items.iter_mut().find(|i| i.sign == *sign && i.text == text) {
                    Some(same) => same.roles.push(role.clone()),
                    None => items.push(Item {
                        sign: sign.clone(),
                        roles: vec![role.clone()],
                        text,
                    }),
                }
            }
        }
    }
    let gravity = |item: &Item| {
        let own = |place: &String| {
            let (role, sign) = place.rsplit_once(' ').unwrap_or(("", place));
            plain(sign) == plain(&item.sign)
                && (role.is_empty() || item.roles.iter().any(|r| r == role))
        };
        plan.order.iter().position(own).unwrap_or(plan.order.len())
    };
    items.sort_by_key(gravity);
    let objection = job.step.objection.as_ref().and_then(|o| o.sign.as_ref());
    let blocked = objection.is_some_and(|sign| items.iter().any(|i| plain(&i.sign) == plain(sign)));
    let mut text = String::new();
    let verdict = plan.verdict.in_language(language);
    if !verdict.is_empty() {
        let said = if blocked {
            plan.back.in_language(language)
        } else {
            plan.on.in_language(language)
        };
        let counts = plan.parts.iter().map(|part| {
            format!(
                "{} {}",
                part.title.in_language(language),
                of_part(&items, &part.signs).count()
            )
        });
        text.push_str(&format!(
            "\n## {verdict}\n\n{said}. {}.\n",
            counts.collect::<Vec<_>>().join(", ")
        ));
    }
    for part in &plan.parts {
        text.push_str(&format!("\n## {}\n\n", part.title.in_language(language)));
        let mut any = false;
        for item in of_part(&items, &part.signs) {
            text.push_str(&format!(
                "- {} **{}** {}\n",
                item.sign,
                item.roles.join(", "),
                item.text
            ));
            any = true;
        }
        if !any {
            text.push_str(&format!("{}\n", plan.none.in_language(language)));
        }
    }
    text
}

/// Removes the leading severity sign from an item, because the merged list prints it.
fn without_lead(line: &str, sign: &str) -> String {
    let lead = line
        .split_once(sign)
        .filter(|(before, _)| before.chars().all(|c| matches!(c, '*' | '_')));
    let Some((emphasis, rest)) = lead else {
        return line.to_owned();
    };
    let rest = rest.trim_start_matches(['|', ' ']);
    // Drop emphasis that enclosed only the sign.
    rest.strip_prefix(emphasis).map_or_else(
        || format!("{emphasis}{rest}"),
        |rest| rest.trim().to_owned(),
    )
}

fn of_part<'i>(items: &'i [Item], signs: &'i [String]) -> impl Iterator<Item = &'i Item> {
    items.iter().filter(|i| signs.contains(&i.sign))
}

/// Concatenates the reports under the titles of their roles, with a table of their scores.
fn joined(
    plan: &Merge,
    sources: &[Source],
    roles: &[(String, String)],
    language: Language,
) -> String {
    let mut text = String::new();
    let heading = plan.scores.in_language(language);
    let rows: Vec<String> = sources
        .iter()
        .zip(roles)
        .flat_map(|(source, (_, title))| scores(&source.text, title))
        .collect();
    if !heading.is_empty() && !rows.is_empty() {
        let head = match language {
            Language::En => "| reader | what | score |",
            Language::Zh => "| 读者 | 项目 | 分数 |",
        };
        text.push_str(&format!(
            "\n## {heading}\n\n{head}\n|---|---|---|\n{}",
            rows.concat()
        ));
    }
    for (source, (_, title)) in sources.iter().zip(roles) {
        text.push_str(&format!("\n## {title}\n\n{}\n", lowered(&source.text)));
    }
    text
}

/// Builds table rows from lines such as `- **Name:** 4: the reason`.
fn scores(text: &str, title: &str) -> Vec<String> {
    let keyed = top_items(text).into_iter().filter_map(|line| {
        let (name, value) = line.strip_prefix("**")?.split_once("**")?;
        let value = value.trim_start_matches([':', '：', ' ']);
        let score = value.chars().next().filter(|c| ('1'..='5').contains(c))?;
        let alone = value
            .chars()
            .nth(1)
            .is_none_or(|c| !c.is_ascii_digit() && c != '.');
        alone.then(|| {
            format!(
                "| {title} | {} | {score} |\n",
                name.trim_end_matches([':', '：'])
            )
        })
    });
    keyed.collect()
}

/// Removes title and marker from a report and lowers its headings by one level.
fn lowered(text: &str) -> String {
    let body = marker(text).map_or(text, |m| &text[..m.start]);
    let document = Document::parse(body);
    let mut lowered = String::new();
    let mut at = 0;
    for section in document.sections().iter().filter(|s| s.level > 0) {
        lowered.push_str(&body[at..section.heading.start]);
        at = if section.level == 1 {
            section.heading.end
        } else {
            lowered.push('#');
            section.heading.start
        };
    }
    lowered.push_str(&body[at..]);
    lowered.trim().to_owned()
}
