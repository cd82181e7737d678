//! Checks a file against the contract's `shape`: headings, length, and the checks of the sibling
//! modules.
//!
//! It only collects findings; the caller decides whether the outputs are accepted.

use std::collections::BTreeMap;

use quipu_contract::{Language, Shape};
use quipu_publish::{Book, Chapter, Places, find_missing_text, publish};
use quipu_store::StoreError;
use quipu_text::{Document, count_words};

use super::places::Sources;
use super::sections::{check_scores, check_sections};
use super::{Findings, places, repeated};
use crate::files::read_scope::ReadScope;
use crate::flow::job::{Output, PlannedJob, actor_of, fill_path};
use crate::flow::messages::wrong_length;
use crate::project::open::Project;

/// At most this many missing passages are named.
const NAMED: usize = 5;

pub fn check(
    project: &Project,
    job: &PlannedJob<'_>,
    output: &Output,
    text: &str,
    findings: &mut Findings,
) -> Result<(), StoreError> {
    let contract = &project.contract;
    let Some((rule, shape)) = contract
        .rule(&output.path)
        .and_then(|rule| Some((rule, rule.shape.as_ref()?)))
    else {
        return Ok(());
    };
    let path = output.path.as_str();
    let writer = actor_of(job.step, job.job.unit.as_ref(), None);
    findings
        .faults
        .extend(find_wrong_headings(shape, path, text));
    findings
        .faults
        .extend(find_wrong_length(shape, job, path, text, contract.language));
    check_sections(path, text, &shape.sections, contract.language, findings);
    if shape.scores {
        let metrics: Vec<&str> = job
            .role
            .iter()
            .flat_map(|role| &role.metrics)
            .map(|metric| metric.in_language(contract.language))
            .collect();
        check_scores(path, text, &metrics, findings);
    }
    if let Some(root) = shape
        .places
        .as_ref()
        .and_then(|root| fill_path(root, &job.binding))
    {
        places::check(
            path,
            text,
            &Sources::of(project, &writer, root.as_str())?,
            findings,
        );
    }
    if shape.distinct {
        repeated::check(project, rule, &output.path, text, findings)?;
    }
    if let Some(shown) = shape
        .shows
        .as_ref()
        .and_then(|shown| fill_path(shown, &job.binding))
        && let Some((bytes, _)) = project.store.read(&shown)?
    {
        let mut found = Findings::default();
        check_page(
            project,
            shown.as_str(),
            &String::from_utf8_lossy(&bytes),
            path,
            text,
            &mut found,
        );
        if ReadScope::of(project, &writer).reads(&shown) {
            findings.faults.extend(found.faults);
            findings.warnings.extend(found.warnings);
        } else if !found.faults.is_empty() {
            findings
                .faults
                .push(format!("`{path}` is missing words of `{shown}`"));
        }
    }
    Ok(())
}

fn find_wrong_headings(shape: &Shape, path: &str, text: &str) -> Vec<String> {
    let (document, mut faults) = (Document::parse(text), Vec::new());
    for (level, (least, most)) in &shape.headings {
        let lines: Vec<usize> = document
            .sections()
            .iter()
            .filter(|s| s.level == *level)
            .map(|s| s.line)
            .collect();
        let count = u32::try_from(lines.len()).unwrap_or(u32::MAX);
        if !(*least..=*most).contains(&count) {
            let wanted = if least == most {
                least.to_string()
            } else {
                format!("{least} to {most}")
            };
            let at = lines
                .iter()
                .map(ToString::to_string)
                .collect::<Vec<_>>()
                .join(", ");
            let at = if at.is_empty() {
                String::new()
            } else {
                format!(" (lines {at})")
            };
            faults.push(format!(
                "`{path}` has {count} headings of level {level}{at}; {wanted} are required"
            ));
        }
    }
    faults
}

fn find_wrong_length(
    shape: &Shape,
    job: &PlannedJob<'_>,
    path: &str,
    text: &str,
    language: Language,
) -> Option<String> {
    let number = |words: &String| {
        words
            .parse()
            .ok()
            .or_else(|| job.binding.get(words)?.trim().parse::<u32>().ok())
    };
    let wanted = shape.words.as_ref().and_then(number)?;
    let (least, most) = (
        f64::from(wanted) * (1.0 - shape.tolerance),
        f64::from(wanted) * (1.0 + shape.tolerance),
    );
    let required = least.round() as usize..=most.round() as usize;
    let count = count_words(text);
    (!required.contains(&count)).then(|| wrong_length(language, path, count, &required))
}

/// Checks that a page contains the words of its chapter.
fn check_page(
    project: &Project,
    shown: &str,
    chapter: &str,
    path: &str,
    page: &str,
    findings: &mut Findings,
) {
    let book = Book {
        title: String::new(),
        author: None,
        language: project.contract.language,
        chapters: vec![Chapter {
            id: "chapter".into(),
            number: 1,
            title: String::new(),
            path: shown.to_owned(),
            text: chapter.to_owned(),
            page: path.to_owned(),
        }],
        images: BTreeMap::new(),
        drawings: BTreeMap::new(),
        terms: Vec::new(),
        references: Vec::new(),
        source_root: String::new(),
        sources: BTreeMap::new(),
        withheld: BTreeMap::new(),
        places: Places::default(),
    };
    let expected = publish(&book).files.remove(path).unwrap_or_default();
    let missing = find_missing_text(&String::from_utf8_lossy(&expected), page);
    for passage in missing.absent.iter().take(NAMED) {
        findings.faults.push(format!(
            "`{path}` is missing these words of `{shown}`: \"{passage}\""
        ));
    }
    if missing.absent.len() > NAMED {
        findings.faults.push(format!(
            "`{path}` is missing {} more passages of `{shown}`",
            missing.absent.len() - NAMED
        ));
    }
    if let Some(passage) = missing.misplaced.first() {
        findings.warnings.push(format!(
            "`{path}` has this passage in a different order than `{shown}`: \"{passage}\""
        ));
    }
}
