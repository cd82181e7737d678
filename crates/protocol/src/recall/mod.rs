//! Recall over a project: finds the sections that answer a question in the current files.
//!
//! The index in `.quipu/recall` is derived. Before every answer, the files are checked. If their
//! fingerprint is the one for which the index was last found complete, the index is used unchanged.
//! Otherwise the versions in the index are compared with the files, and changed files are read
//! again. If the index cannot be written, fresh text is overlaid on it. An answer therefore always
//! reflects the current files. A damaged index is rebuilt.

mod files;
mod kept;
mod kind;
mod shown;
#[cfg(test)]
mod tests;

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::sync::Arc;

pub(crate) use files::without_template;
use files::{Current, covers, current_files, is_not_searched, load, version_of};
use jiff::civil::Date;
use jiff::tz::TimeZone;
pub(crate) use kept::KeptIndex;
pub use kind::Kind;
use quipu_contract::{Actor, Pattern, ProjectPath, Readable};
use quipu_recall::{Answer, Error, FileText, Index, Options, Overlay, Tier, Writer, has_words};
use quipu_store::{StoreError, TreeFingerprint};
pub use shown::{ANSWER_TOKENS, CANDIDATES, Shown, shown_hits};
use thiserror::Error;

use crate::files::read::ReadError;
use crate::project::open::Project;
use crate::project::times::now;

/// The encoder reads at most this many new sections before one answer, to limit the delay.
const ENCODE_AT_ONCE: usize = 256;

/// A question.
#[derive(Debug, Clone)]
pub struct Ask<'a> {
    pub question: &'a str,
    pub k: usize,
    /// Search only matching paths.
    pub within: Option<Pattern>,
    /// Search only files of this kind.
    pub kind: Option<Kind>,
    pub use_model: bool,
    /// Let the encoder read everything first, regardless of the time.
    pub complete: bool,
    /// The day of the question, for "last week"; today if `None`.
    pub as_of: Option<Date>,
}

#[derive(Debug, Error)]
pub enum RecallError {
    #[error("`{0}` has no words to search for")]
    NoWords(String),
    #[error(transparent)]
    Store(#[from] StoreError),
    #[error(transparent)]
    Read(#[from] ReadError),
    #[error(transparent)]
    Index(#[from] Error),
}

/// An answer and its coverage.
#[derive(Debug)]
pub struct Recalled {
    pub answer: Answer,
    /// Files that had changed since the last indexing and were read for this answer.
    pub read_anew: usize,
    /// Requested files that could not be searched: not UTF-8, or too large.
    pub not_searched: Vec<String>,
}

/// The folder of a project's index.
pub(crate) fn index_folder(project: &Project) -> PathBuf {
    project.store.root().join(".quipu/recall")
}

/// Returns today's date, in UTC.
fn today(project: &Project) -> Date {
    now(&project.store).to_zoned(TimeZone::UTC).date()
}

/// Finds the sections that answer a question, among those that the actor may read.
pub fn recall(project: &Project, actor: &Actor, ask: &Ask<'_>) -> Result<Recalled, RecallError> {
    Asking {
        project,
        actor,
        ask,
    }
    .recall()
}

/// A question with its actor and project.
struct Asking<'a> {
    project: &'a Project,
    actor: &'a Actor,
    ask: &'a Ask<'a>,
}

impl Asking<'_> {
    fn recall(&self) -> Result<Recalled, RecallError> {
        let Self { project, ask, .. } = *self;
        if !has_words(ask.question) {
            return Err(RecallError::NoWords(ask.question.to_owned()));
        }
        if !ask.complete
            && let Some(recalled) = self.recall_as_covered()?
        {
            return Ok(recalled);
        }
        let (current, sight) = current_files(project)?;
        match self.answer(bring_up_to_date(project, &current, sight, ask, false)?) {
            // Damage may become visible only when a query reads it.
            Err(RecallError::Index(error)) if error.needs_rebuild() => {
                self.answer(bring_up_to_date(project, &current, sight, ask, true)?)
            }
            other => other,
        }
    }

    /// Answers from the existing index, if it is known to cover exactly the current files.
    fn recall_as_covered(&self) -> Result<Option<Recalled>, RecallError> {
        let project = self.project;
        let folder = index_folder(project);
        let as_it_is = |index: &Arc<Index>| {
            self.answer(UpToDate {
                index: Arc::clone(index),
                fresh: Vec::new(),
                gone: Vec::new(),
                read_anew: Vec::new(),
            })
        };
        let covers = |index: &Index, sight: TreeFingerprint| {
            project
                .index
                .is_complete(&folder, index, sight, project.contract.mark)
        };
        let answered = if KeptIndex::is_large(&folder) {
            // With thousands of files, check them in parallel with the query. The answer is valid
            // if nothing has changed.
            let (sight, asked) = project.store.fingerprint_while(|| {
                project
                    .index
                    .open(&folder)
                    .ok()
                    .map(|index| (as_it_is(&index), index))
            });
            let Some((answered, index)) = asked else {
                return Ok(None);
            };
            if !covers(&index, sight?) {
                return Ok(None);
            }
            answered
        } else {
            let Ok(index) = project.index.open(&folder) else {
                return Ok(None);
            };
            if !covers(&index, project.store.tree_fingerprint()?) {
                return Ok(None);
            }
            as_it_is(&index)
        };
        match answered {
            Err(RecallError::Index(error)) if error.needs_rebuild() => Ok(None),
            other => other.map(Some),
        }
    }

    fn answer(&self, up_to_date: UpToDate) -> Result<Recalled, RecallError> {
        let Self {
            project,
            actor,
            ask,
        } = *self;
        let folder = index_folder(project);
        let UpToDate {
            index,
            mut fresh,
            gone,
            read_anew,
        } = up_to_date;
        let readable = readable(project, actor, &index, &mut fresh)?;
        let visible = |path: &str, tier: Tier| {
            readable
                .as_ref()
                .is_none_or(|readable| readable.contains(path))
                && ask
                    .kind
                    .is_none_or(|wanted| wanted == Kind::of(&project.contract, path, tier))
                && ask
                    .within
                    .as_ref()
                    .is_none_or(|pattern| pattern.matches(path).is_some())
        };
        let all = readable.is_none() && ask.kind.is_none() && ask.within.is_none();
        let mut overlay = Overlay::new(&fresh, &gone).map_err(|damage| Error::Damaged {
            folder: folder.clone(),
            damage,
        })?;
        if ask.use_model && !fresh.is_empty() {
            overlay
                .encode(ENCODE_AT_ONCE)
                .map_err(|damage| Error::Damaged {
                    folder: folder.clone(),
                    damage,
                })?;
        }
        let options = Options {
            k: ask.k,
            visible: (!all).then_some(&visible),
            use_model: ask.use_model,
            as_of: Some(ask.as_of.unwrap_or_else(|| today(project))),
        };
        let mut answer = index.recall_with(&overlay, ask.question, &options)?;
        // The encoder reads sections that were indexed only by words when it is first used.
        if ask.use_model
            && answer.encoded < answer.sections
            && read_anew.is_empty()
            && let Ok(index) = write(project, &folder, &[], &[], ask, false)
        {
            answer = index.recall_with(&overlay, ask.question, &options)?;
        }
        // Files that the actor may not read are not counted either.
        let read_anew = read_anew
            .iter()
            .filter(|path| {
                readable
                    .as_ref()
                    .is_none_or(|readable| readable.contains(*path))
            })
            .count();
        let covered = index.files().filter(|(path, ..)| {
            !fresh.iter().any(|file| file.path == *path) && !gone.iter().any(|gone| gone == path)
        });
        let noted = covered.chain(
            fresh
                .iter()
                .map(|file| (file.path.as_str(), file.version.as_str(), file.tier)),
        );
        let not_searched: Vec<String> = noted
            .filter(|(path, version, tier)| is_not_searched(version) && visible(path, *tier))
            .map(|(path, ..)| path.to_owned())
            .collect();
        answer.files -= not_searched.len().min(answer.files);
        answer
            .hits
            .iter_mut()
            .for_each(|hit| hit.version.truncate(version_of(&hit.version).len()));
        Ok(Recalled {
            answer,
            read_anew,
            not_searched,
        })
    }
}

/// The files that an actor may read; None if there is no restriction. If a role reads only a
/// section of a file, only that section is searched, as fresh text.
fn readable(
    project: &Project,
    actor: &Actor,
    index: &Index,
    fresh: &mut Vec<FileText>,
) -> Result<Option<BTreeSet<String>>, RecallError> {
    let grant = project
        .contract
        .grant(actor)
        .map_err(ReadError::UnknownActor)?;
    if grant.role.is_none() {
        return Ok(None);
    }
    let binding = project.contract.actor_binding(actor);
    let mut files: BTreeMap<String, Current> = BTreeMap::new();
    for (path, version, tier) in index.files() {
        files.insert(
            path.to_owned(),
            Current {
                tier,
                version: version_of(version).to_owned(),
            },
        );
    }
    for file in fresh.iter() {
        files.insert(
            file.path.clone(),
            Current {
                tier: file.tier,
                version: version_of(&file.version).to_owned(),
            },
        );
    }
    let mut readable = BTreeSet::new();
    for (path, current) in files {
        let Ok(parsed) = ProjectPath::parse(&path) else {
            continue;
        };
        match grant.may_read(&parsed, &binding) {
            Ok(Readable::Whole) => drop(readable.insert(path)),
            Ok(Readable::Sections(sections)) => {
                fresh.retain(|file| file.path != path);
                if let Some(file) = load(project, &path, &current, Some(&sections))? {
                    readable.insert(path);
                    fresh.push(file);
                }
            }
            Err(_) => {}
        }
    }
    Ok(Some(readable))
}

/// The index over the current files. Changes that could not be written to it are in `fresh` or
/// `gone`.
struct UpToDate {
    index: Arc<Index>,
    fresh: Vec<FileText>,
    gone: Vec<String>,
    /// Paths of the files that were read.
    read_anew: Vec<String>,
}

fn bring_up_to_date(
    project: &Project,
    current: &BTreeMap<String, Current>,
    sight: Option<TreeFingerprint>,
    ask: &Ask<'_>,
    anew: bool,
) -> Result<UpToDate, RecallError> {
    let folder = &index_folder(project);
    let opened = match project.index.open(folder) {
        Ok(index) if !anew => Some(index),
        Ok(_) => None,
        Err(error) if error.needs_rebuild() => None,
        Err(error) => return Err(error.into()),
    };
    let (texts, gone) = match &opened {
        Some(index) => beyond(project, index, current)?,
        None => beyond(project, &Index::empty(), current)?,
    };
    let covered = |index: &Index| {
        if let Some(sight) = sight {
            project
                .index
                .set_complete(folder, index, sight, project.contract.mark);
        }
    };
    if let Some(index) = opened
        && texts.is_empty()
        && gone.is_empty()
        && !ask.complete
    {
        covered(&index);
        return Ok(UpToDate {
            index,
            fresh: Vec::new(),
            gone: Vec::new(),
            read_anew: Vec::new(),
        });
    }
    let read_anew: Vec<String> = texts.iter().map(|file| file.path.clone()).collect();
    match write(project, folder, &texts, &gone, ask, anew) {
        Ok(index) => {
            // Another process may have written an index of an earlier state in the meantime.
            // Overlay the current files on it.
            let (fresh, gone) = beyond(project, &index, current)?;
            if fresh.is_empty() && gone.is_empty() {
                covered(&index);
            }
            Ok(UpToDate {
                index,
                fresh,
                gone,
                read_anew,
            })
        }
        // If the folder cannot be written, search anyway, with new text overlaid on the index.
        Err(Error::Io(_)) if anew => Ok(UpToDate {
            index: Arc::new(Index::empty()),
            fresh: texts,
            gone,
            read_anew,
        }),
        Err(Error::Io(_)) => {
            let index = project
                .index
                .open(folder)
                .unwrap_or_else(|_| Arc::new(Index::empty()));
            Ok(UpToDate {
                index,
                fresh: texts,
                gone,
                read_anew,
            })
        }
        Err(error) => Err(error.into()),
    }
}

/// Returns the files that the index does not cover at their current version, and the indexed files
/// that no longer exist. Both lists are sorted by path, so one pass is sufficient.
fn compare<'c>(
    index: &Index,
    current: &'c BTreeMap<String, Current>,
) -> (Vec<&'c str>, Vec<String>) {
    let (mut stale, mut gone) = (Vec::new(), Vec::new());
    let mut covered = index.files().peekable();
    for (path, file) in current {
        while let Some((other, ..)) = covered.next_if(|(other, ..)| *other < path.as_str()) {
            gone.push(other.to_owned());
        }
        match covered.next_if(|(other, ..)| other == path) {
            Some((_, noted, tier)) if covers(noted, &file.version) && tier == file.tier => {}
            _ => stale.push(path.as_str()),
        }
    }
    gone.extend(covered.map(|(path, ..)| path.to_owned()));
    (stale, gone)
}

/// Like `compare`, but also reads the uncovered files.
fn beyond(
    project: &Project,
    index: &Index,
    current: &BTreeMap<String, Current>,
) -> Result<(Vec<FileText>, Vec<String>), StoreError> {
    let (stale, mut gone) = compare(index, current);
    let mut fresh = Vec::new();
    for path in stale {
        match load(project, path, &current[path], None)? {
            Some(file) => fresh.push(file),
            None => gone.push(path.to_owned()),
        }
    }
    Ok((fresh, gone))
}

fn write(
    project: &Project,
    folder: &Path,
    texts: &[FileText],
    gone: &[String],
    ask: &Ask<'_>,
    anew: bool,
) -> Result<Arc<Index>, Error> {
    let opened = if anew {
        Writer::create(folder)
    } else {
        Writer::open(folder)
    };
    let mut writer = match opened {
        Err(error) if error.needs_rebuild() => Writer::create(folder)?,
        other => other?,
    };
    writer.encode_at_most(match (ask.use_model, ask.complete) {
        (false, _) => 0,
        (true, false) => ENCODE_AT_ONCE,
        (true, true) => usize::MAX,
    });
    for file in texts {
        writer.replace(file)?;
    }
    for path in gone {
        writer.remove(path);
    }
    writer.publish()?;
    project.index.open(folder)
}
