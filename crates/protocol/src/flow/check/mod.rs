//! Decides whether an agent's outputs can be accepted: marker, length, form, schema, and the
//! contract's `shape`.
//!
//! Each fault names the problem and its place, so that it can be sent back to the agent unchanged.
//! Suspicious findings are warnings; they are recorded with the job.

mod collect;
mod end;
mod places;
mod quotes;
mod repeated;
mod sections;
mod shape;

use quipu_contract::{Builtin, Contract, Form, ProjectPath, find_placeholder};
use quipu_store::StoreError;

pub use self::collect::{Collected, collect};
use super::builtin::entries::find_lost;
use super::engine::{FlowError, flow_now};
use super::job::{Output, PlannedJob, fill_path};
use super::messages::{missing_in_answer, unreadable_conflict};
use super::snapshot::{FlowCache, items_with, marker_of, stray_sign, unmarked};
use crate::project::open::Project;
use crate::review::{ReportFault, panel_view};
use crate::session::capture::cut;

/// At most this much of a faulty item is quoted, in bytes.
const SHOWN: usize = 120;

/// Larger outputs are refused.
const LARGEST_BYTES: usize = 4 << 20;

/// Faults and warnings about the outputs of an attempt.
#[derive(Debug, Default)]
pub struct Findings {
    pub faults: Vec<String>,
    pub warnings: Vec<String>,
}

/// Finds all faults of the collected outputs. `before` holds the texts that were sent back, if any.
pub fn find_faults(
    project: &Project,
    job: &PlannedJob<'_>,
    collected: &Collected,
    before: &[(String, Vec<u8>)],
) -> Result<Findings, StoreError> {
    let contract = &project.contract;
    let mut findings = Findings {
        faults: collected.faults.clone(),
        ..Findings::default()
    };
    let Findings { faults, .. } = &mut findings;
    for output in job.required() {
        if !collected.files.iter().any(|(o, _)| o.path == output.path) {
            let path = &output.path;
            faults.push(match (collected.answered, &collected.unfinished) {
                (true, _) => missing_in_answer(contract.language, path.as_str()),
                (false, None) => format!("`{path}` was not written"),
                (false, Some(marker)) => format!(
                    "`{path}` was not written, and the answer is not its whole text: the very last \
                     line must be <!-- {marker} -->"
                ),
            });
        }
    }
    for (output, bytes) in &collected.files {
        let path = output.path.as_str();
        if bytes.len() > LARGEST_BYTES {
            faults.push(format!(
                "`{path}` has {} bytes; at most {LARGEST_BYTES} are accepted",
                bytes.len()
            ));
            continue;
        }
        let Ok(text) = std::str::from_utf8(bytes) else {
            faults.push(format!("`{path}` is not UTF-8 text"));
            continue;
        };
        if text.trim().is_empty() && !output.optional {
            faults.push(format!("`{path}` is empty"));
            continue;
        }
        let found = marker_of(path, text);
        if !output.markers.is_empty() && !found.as_ref().is_some_and(|m| output.markers.contains(m))
        {
            let wanted = output
                .markers
                .iter()
                .map(|m| format!("<!-- {m} -->"))
                .collect::<Vec<_>>()
                .join(" or ");
            let instead = found
                .as_ref()
                .map(|m| format!(" but with <!-- {m} -->"))
                .unwrap_or_default();
            faults.push(format!(
                "`{path}` does not end with {wanted}{instead}: it must be the very last line"
            ));
        }
        if let Some(finding) = find_placeholder(text) {
            faults.push(format!(
                "`{path}` line {}: {}; the file must contain the whole text",
                finding.line, finding.what
            ));
        }
        faults.extend(find_contradiction(job, path, text, found.as_deref()));
        faults.extend(find_strays(contract, job, output, text));
        if contract.rule(&output.path).and_then(|r| r.form) == Some(Form::Report) {
            let found = find_report_faults(project, output, text)?;
            faults.extend(
                found
                    .iter()
                    .map(|f| format!("`{path}` line {}: {}", f.line, f.what)),
            );
        }
        if contract.rule(&output.path).and_then(|r| r.form) == Some(Form::Judgements) {
            let found = quipu_claims::find_unreadable(text).into_iter();
            faults.extend(found.map(|(line, item)| {
                unreadable_conflict(contract.language, path, line, &cut(&item, SHOWN))
            }));
        }
        faults.extend(find_missing_items(project, job, path, text)?);
    }
    let body = |path: &str, bytes: &[u8]| {
        unmarked(path, &String::from_utf8_lossy(bytes))
            .trim_end()
            .to_owned()
    };
    let is_same = |(path, old): &(String, Vec<u8>)| {
        collected
            .files
            .iter()
            .any(|(o, bytes)| o.path.as_str() == path && body(path, bytes) == body(path, old))
    };
    if let Some((path, _)) = before.first().filter(|_| before.iter().all(is_same)) {
        faults.push(format!("`{path}` is unchanged, although it was sent back"));
    }
    for (output, text) in collected
        .files
        .iter()
        .filter_map(|(output, bytes)| Some((output, std::str::from_utf8(bytes).ok()?)))
    {
        if !text.trim().is_empty() {
            shape::check(project, job, output, text, &mut findings)?;
        }
    }
    Ok(findings)
}

/// Finds the faults of a report: its form, and its agreement with the numbers of the panel.
fn find_report_faults(
    project: &Project,
    output: &Output,
    text: &str,
) -> Result<Vec<ReportFault>, StoreError> {
    let (flow, _) = match flow_now(project, &FlowCache::default()) {
        Ok(flow) => flow,
        Err(FlowError::Store(error)) => return Err(error),
        // The contract was resolved before the job began; the commit reports other errors.
        Err(_) => return Ok(Vec::new()),
    };
    let read = |path: &ProjectPath| {
        let found = project.store.read(path).ok().flatten();
        found.map(|(bytes, _)| String::from_utf8_lossy(&bytes).into_owned())
    };
    let fresh = [(output.path.clone(), text.to_owned())];
    let panel = panel_view(&project.contract, &flow, &read, &fresh);
    let member = panel.members.into_iter().find(|m| m.path == output.path);
    Ok(member.map(|member| member.faults).unwrap_or_default())
}

/// Finds a verdict that contradicts its own items: the marker says "passed", but an item objects.
fn find_contradiction(
    job: &PlannedJob<'_>,
    path: &str,
    text: &str,
    found: Option<&str>,
) -> Option<String> {
    let objection = job.step.objection.as_ref()?;
    let (sign, marker) = (objection.sign.as_ref()?, objection.marker.as_ref()?);
    let items = items_with(text, sign);
    match found {
        Some(found) if found != marker && !items.is_empty() => Some(format!(
            "`{path}` ends with <!-- {found} --> and contains {} items with {sign}: the first is \
             \"{}\"",
            items.len(),
            items[0]
        )),
        _ => None,
    }
}

/// Finds a sign that sends work back in a report without a matching item. The fault goes to the
/// reviewer, not to the writer.
fn find_strays(
    contract: &Contract,
    job: &PlannedJob<'_>,
    output: &Output,
    text: &str,
) -> Option<String> {
    let reads = |step: &quipu_contract::Step| {
        let mut read = step
            .reads
            .iter()
            .filter_map(|read| fill_path(read, &job.binding));
        step.name == job.job.step
            || step.builtin == Some(Builtin::Merge) && read.any(|path| path == output.path)
    };
    let steps = contract.steps.iter().filter(|step| reads(step));
    // A revision must answer the most severe part of a merged report, whether or not it sends work
    // back.
    let gravest = |step: &quipu_contract::Step| {
        let own = step.objection.as_ref().and_then(|o| o.sign.clone());
        own.or_else(|| step.merge.as_ref()?.parts.first()?.signs.first().cloned())
    };
    let (stray, sign) = steps
        .filter_map(gravest)
        .find_map(|sign| Some((stray_sign(text, &sign)?, sign)))?;
    Some(format!(
        "`{}` has {sign} in \"{stray}\" but no item that says what is wrong: begin a list item \
         with {sign} for each objection, or remove the sign",
        output.path
    ))
}

/// Checks that a report has every part that a later remember step takes from it, in the requested
/// length.
fn find_missing_items(
    project: &Project,
    job: &PlannedJob<'_>,
    path: &str,
    text: &str,
) -> Result<Vec<String>, StoreError> {
    let mut missing = Vec::new();
    for (step, remember) in project
        .contract
        .steps
        .iter()
        .filter_map(|step| Some((step, step.remember.as_ref()?)))
    {
        if fill_path(&remember.from, &job.binding).is_none_or(|from| from.as_str() != path) {
            continue;
        }
        if remember.entries {
            let lost = find_lost(&project.contract, step, &job.binding, text);
            missing.extend(lost.into_iter().map(|what| format!("`{path}` {what}")));
        }
        let whole = remember
            .text
            .as_ref()
            .and_then(|text| fill_path(text, &job.binding));
        let whole = whole
            .map(|path| project.store.read(&path))
            .transpose()?
            .flatten();
        let whole = whole.map(|(bytes, _)| String::from_utf8_lossy(&bytes).into_owned());
        let found = super::builtin::remember::find_missing(remember, text).into_iter();
        let found = found.chain(super::builtin::remember::find_wrong_length(
            remember,
            text,
            whole.as_deref(),
            project.contract.language,
        ));
        missing.extend(found.map(|what| format!("`{path}` {what}")));
    }
    Ok(missing)
}
