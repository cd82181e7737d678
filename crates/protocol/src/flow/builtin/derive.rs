//! The derive step: creates missing files from their templates. Existing files are left unchanged.

use quipu_contract::{Class, ProjectPath};
use quipu_store::{Expect, Op};

use super::Made;
use crate::flow::job::PlannedJob;
use crate::project::library::Library;
use crate::project::open::{Project, ProjectError};
use crate::project::template::{TemplateError, render_template, template_values};

#[derive(Debug, thiserror::Error)]
pub enum DeriveError {
    #[error(transparent)]
    Project(#[from] ProjectError),
    #[error(transparent)]
    Store(#[from] quipu_store::StoreError),
    #[error(transparent)]
    Template(#[from] TemplateError),
    #[error("`{0}` does not exist, and the profile has no template for it")]
    NoTemplate(ProjectPath),
}

/// Returns the missing files of a step.
pub fn derive(project: &Project, job: &PlannedJob<'_>) -> Result<Made, DeriveError> {
    let contract = &project.contract;
    let values = template_values(&contract.binding(), jiff::Timestamp::now());
    let mut made = Made::default();
    for output in job.required() {
        if project.store.read(&output.path)?.is_some() {
            continue;
        }
        let rule = contract.rule(&output.path);
        let template = contract.template_path(contract.language, output.path.as_str());
        let profile = rule.and_then(|r| r.profile.as_deref());
        let text = profile.and_then(|p| {
            project
                .library
                .read(p, &template)
                .map(|t| (Library::shown(p, &template), t))
        });
        let (file, text) = text.ok_or_else(|| DeriveError::NoTemplate(output.path.clone()))?;
        let bytes = render_template(&file, &text, &values)?.into_bytes();
        let path = output.path.clone();
        made.told = format!(
            "{}{}{path}",
            made.told,
            if made.told.is_empty() {
                "created "
            } else {
                ", "
            }
        );
        made.ops.push(match contract.class(&path) {
            Class::Derived => Op::Derive {
                path,
                bytes,
                expect: Expect::Any,
            },
            _ => Op::Create { path, bytes },
        });
    }
    Ok(made)
}
