//! The built-in rehearsal agent: offline, deterministic and extractive.
//!
//! The agent reads only the folder of its view and writes the outputs of its task. The same view
//! gives the same bytes. It invents nothing: it quotes, counts or lists, and names the location of
//! each statement. It knows kinds of work ([`Rehearsal`]), never the name of a role or a profile;
//! the profile maps each role to a kind.
//!
//! Internal to Quipu: programs use `quipu-memory`.

#![cfg_attr(test, allow(clippy::unwrap_used))]

mod chapter;
mod draft;
mod measure;
mod outline;
mod pages;
mod panel;
mod parse;
mod research;
mod review;
mod sheet;
mod source;
mod survey;
mod task;
mod view;
mod whole;

use std::path::Path;

use quipu_contract::Language;
use thiserror::Error;

pub use quipu_contract::Rehearsal;
pub use sheet::count_words;
pub use task::{Output, RehearseTask, TaskUnit};

use crate::sheet::{Sheet, say};
use crate::survey::StatusScan;
use crate::view::View;

#[derive(Debug, Error)]
pub enum RehearseError {
    #[error("cannot read the view `{path}`: {source}")]
    View {
        path: String,
        source: std::io::Error,
    },
    #[error("cannot write `{path}`: {source}")]
    Write {
        path: String,
        source: std::io::Error,
    },
    #[error("the view of `{role}` holds nothing that it works on ({subject})")]
    NoSubject { role: String, subject: String },
}

/// Plays a role: reads the view and writes the outputs below `out`. Returns their project paths,
/// sorted.
pub fn rehearse(
    view: &Path,
    out: &Path,
    task: &RehearseTask,
) -> Result<Vec<String>, RehearseError> {
    let view = View::read(view)?;
    let mut paths = Vec::new();
    for (path, bytes) in play(&view, task)? {
        let place = out.join(&path);
        let fail = |source| RehearseError::Write {
            path: path.clone(),
            source,
        };
        if let Some(folder) = place.parent() {
            std::fs::create_dir_all(folder).map_err(fail)?;
        }
        std::fs::write(&place, bytes).map_err(fail)?;
        paths.push(path);
    }
    paths.sort();
    Ok(paths)
}

/// Returns the outputs of a task, in memory.
fn play(view: &View, task: &RehearseTask) -> Result<Vec<(String, Vec<u8>)>, RehearseError> {
    let subjects: Vec<(&str, &str)> = task
        .subject
        .iter()
        .flat_map(|subject| view.matching(subject))
        .map(|(path, seen)| (path, seen.text.as_str()))
        .collect();
    let subject = || {
        let fault = || RehearseError::NoSubject {
            role: task.role.clone(),
            subject: task
                .subject
                .as_ref()
                .map(ToString::to_string)
                .unwrap_or_default(),
        };
        subjects.first().copied().ok_or_else(fault)
    };
    let survey = || StatusScan::of(view, task);
    let sheet = match task.kind {
        Rehearsal::Outline => {
            let survey = survey();
            // The plan is the first output and the source map the second.
            let sheets = [outline::outline(&survey, task), outline::map(&survey, task)];
            let outputs = task.outputs.iter().zip(sheets);
            return Ok(outputs
                .map(|(output, sheet)| (output.path.clone(), finished(task, output, sheet, true)))
                .collect());
        }
        Rehearsal::Typeset => {
            let (path, text) = subject()?;
            return Ok(pages::typeset(path, text, task));
        }
        Rehearsal::Audit => {
            let (sheet, well) = whole::audit(view, task);
            return Ok(written(task, sheet, well));
        }
        Rehearsal::Inspect => {
            let (path, html) = subject()?;
            let (sheet, well) = pages::inspect(view, path, html, task);
            return Ok(written(task, sheet, well));
        }
        Rehearsal::Edit => {
            let (_, text) = subject()?;
            return Ok(chapter::edit(text, task));
        }
        Rehearsal::Check => {
            let (path, text) = subject()?;
            chapter::check(view, path, text, task)
        }
        Rehearsal::Retell => chapter::retell(subject()?.1, task),
        Rehearsal::ReviewOutline => whole::on_outline(subject()?.1, task),
        Rehearsal::Research => research::research(view, &survey().for_unit(view, task), task),
        Rehearsal::Draft => draft::draft(view, subject()?.1, task),
        Rehearsal::ReviewCode => review::against_source(view, subject()?.1, task),
        Rehearsal::ReviewMemory => review::against_memory(view, subject()?.1, task),
        Rehearsal::ReviewText => review::as_text(view, subject()?.1, task),
        Rehearsal::Read => panel::read(subject()?.1, task),
        Rehearsal::Score => {
            let (path, _) = subject()?;
            panel::score(&view.texts[path], task)
        }
        Rehearsal::Weigh => panel::weigh(view, task),
        Rehearsal::SumUp => panel::sum_up(subject()?.1, task),
        Rehearsal::Extract => chapter::extract(view, &subjects, task),
        Rehearsal::Report => whole::report(view, task),
    };
    let mut outputs = written(task, sheet, true);
    // Every other required output with a marker is a report on the files that were read.
    let first = outputs.first().map(|(path, _)| path.clone());
    for other in task
        .outputs
        .iter()
        .filter(|o| o.marker.is_some() && !o.optional && Some(&o.path) != first.as_ref())
    {
        outputs.push((
            other.path.clone(),
            finished(task, other, whole::report(view, task), true),
        ));
    }
    Ok(outputs)
}

/// Writes the sheet to the first output with a marker, or to the first output if none has one.
/// Outputs without a marker beside others with one are only for trouble and stay unchanged.
fn written(task: &RehearseTask, sheet: Sheet, well: bool) -> Vec<(String, Vec<u8>)> {
    let output = task
        .outputs
        .iter()
        .find(|output| output.marker.is_some())
        .or_else(|| task.outputs.first());
    output
        .map(|output| (output.path.clone(), finished(task, output, sheet, well)))
        .into_iter()
        .collect()
}

/// Adds the marker to a sheet. For each required section that this agent cannot write, adds one
/// that says so.
fn finished(task: &RehearseTask, output: &Output, mut sheet: Sheet, well: bool) -> Vec<u8> {
    let l = task.language;
    let asked = task
        .rule(&output.path)
        .and_then(|rule| rule.shape.as_ref())
        .map(|shape| shape.sections.as_slice())
        .unwrap_or_default();
    for names in asked {
        let headings: Vec<String> = sheet
            .text()
            .lines()
            .filter(|line| line.starts_with('#'))
            .map(str::to_lowercase)
            .collect();
        let there = names.iter().any(|name| {
            headings
                .iter()
                .any(|heading| heading.contains(&name.to_lowercase()))
        });
        let name = names.get(usize::from(l == Language::Zh)).or(names.first());
        if let Some(name) = name.filter(|_| !there) {
            sheet.h2(name);
            sheet.line(&format!(
                "- {}",
                say(
                    l,
                    "not judged: a rehearsal does not understand what it reads",
                    "未判断：预演并不理解所读内容"
                )
            ));
        }
    }
    sheet.finish(output.marker.as_deref(), well).into_bytes()
}
