//! The memory files that facts are placed in: a new fact may close one in another file.
//!
//! Quipu reads all of memory for this, whoever accepts the fact. The store decides whether the actor
//! may write the changed files.

use std::collections::BTreeMap;

use quipu_claims::{ClosedFact, Page, PlaceError, place_fact};
use quipu_contract::{Actor, Form, ProjectPath};
use quipu_recall::Tier;
use quipu_store::{Expect, Op, Version};
use thiserror::Error;

use crate::files::read::ReadError;
use crate::novel::memory_check::is_checked_memory;
use crate::project::open::Project;
use crate::view::pages::gather;

#[derive(Debug, Error)]
pub enum MemoryError {
    #[error(transparent)]
    Place(#[from] PlaceError),
    #[error("`{0}` is not UTF-8: a fact cannot be added without changing its bytes")]
    NotText(ProjectPath),
    #[error(transparent)]
    Read(#[from] ReadError),
}

/// Memory with the facts placed so far, and the final chapters for their scenes.
pub(crate) struct MemoryFiles<'p> {
    project: &'p Project,
    pages: Vec<Page>,
    changed: BTreeMap<ProjectPath, Option<Version>>,
}

impl<'p> MemoryFiles<'p> {
    pub(crate) fn read(project: &'p Project) -> Result<MemoryFiles<'p>, MemoryError> {
        let mut pages = gather(project, &Actor::Person)?.pages;
        pages.retain(|page| {
            let is_memory = || {
                ProjectPath::parse(&page.path).is_ok_and(|path| is_checked_memory(project, &path))
            };
            page.tier == Tier::L2 || page.form == Some(Form::Threads) || is_memory()
        });
        Ok(MemoryFiles {
            project,
            pages,
            changed: BTreeMap::new(),
        })
    }

    /// The text of a file with the facts placed so far. None if it does not exist.
    pub(crate) fn text(&self, path: &ProjectPath) -> Option<&str> {
        let page = self.pages.iter().find(|page| page.path == path.as_str());
        page.map(|page| page.text.as_str())
    }

    /// Reads a file that takes facts and is no checked memory.
    pub(crate) fn include(&mut self, path: &ProjectPath) -> Result<(), MemoryError> {
        if self.text(path).is_some() {
            return Ok(());
        }
        let Some((bytes, _)) = self.project.store.read(path).map_err(ReadError::from)? else {
            return Ok(());
        };
        let text = String::from_utf8(bytes).map_err(|_| MemoryError::NotText(path.clone()))?;
        self.add(path, text);
        Ok(())
    }

    fn add(&mut self, path: &ProjectPath, text: String) {
        self.pages.push(Page {
            path: path.to_string(),
            tier: Tier::L1,
            is_memory: true,
            form: self.project.contract.rule(path).and_then(|rule| rule.form),
            text,
        });
    }

    /// Places a fact and closes what it follows. Returns the entries that it closed.
    pub(crate) fn place(
        &mut self,
        path: &ProjectPath,
        section: Option<&str>,
        entry: &str,
    ) -> Result<Vec<ClosedFact>, MemoryError> {
        self.include(path)?;
        let placed = place_fact(&self.pages, path.as_str(), section, entry)?;
        for (path, text) in placed.texts {
            let path = ProjectPath::parse(&path).map_err(ReadError::from)?;
            if !self.changed.contains_key(&path) {
                let found = self.project.store.read(&path).map_err(ReadError::from)?;
                self.changed
                    .insert(path.clone(), found.map(|(_, version)| version));
            }
            match self
                .pages
                .iter_mut()
                .find(|page| page.path == path.as_str())
            {
                Some(page) => page.text = text,
                None => self.add(&path, text),
            }
        }
        Ok(placed.closed)
    }

    /// The writes of the changed files.
    pub(crate) fn into_ops(mut self) -> Vec<Op> {
        let changed = std::mem::take(&mut self.changed).into_iter();
        changed
            .filter_map(|(path, version)| {
                let bytes = self.text(&path)?.as_bytes().to_vec();
                Some(match version {
                    Some(version) => Op::Write {
                        path,
                        bytes,
                        expect: Expect::Version(version),
                    },
                    None => Op::Create { path, bytes },
                })
            })
            .collect()
    }
}
