//! The status scan: compares all files with the file index, adopts or flags external edits, and
//! lists files that no rule names.
//!
//! If neither the files nor the journal have changed, a running process returns its last result.
//! `adopt.rs` compares one file, and `walk.rs` lists them.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::PoisonError;

use quipu_contract::{Class, ProjectPath};
use serde::Serialize;

use crate::adopt::{Adopted, Flag, Noticed};
use crate::error::{Result, StoreError};
use crate::heads::Head;
use crate::publish::Published;
use crate::record::{Kind, RecordOp, Who};
use crate::restore::Kept;
use crate::store::Store;
use crate::tree::Stamp;
use crate::version::Version;
use crate::walk::Sight;

/// The limits of one record of adoptions, so that adopting a large folder stays readable.
const ADOPT_OPS: usize = 256;
const ADOPT_BYTES: usize = 4 << 20;

/// The status of one file.
#[derive(Debug, Clone, Serialize)]
pub struct Standing {
    pub path: String,
    pub class: Class,
    pub version: Option<Version>,
    pub len: u64,
    pub seq: u64,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub flag: Option<Flag>,
}

/// The result of a status scan.
#[derive(Debug, Clone, Default, Serialize)]
pub struct Survey {
    /// Files that a rule names.
    pub files: Vec<Standing>,
    pub adopted: Vec<Adopted>,
    /// Files that no rule names.
    pub free: Vec<String>,
    /// Files of `free` that have a history and are unchanged.
    #[serde(skip)]
    pub free_journalled: Vec<Standing>,
    /// Files with names that the contract cannot hold, with the reason.
    pub strange: Vec<(String, String)>,
    /// Allowed edits that wait for the shared store, because it does not answer or another owner
    /// holds a lease.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub waiting: Vec<String>,
    /// Edits that a commit or a recovery replaced, as conflict copies. Reported once.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub kept: Vec<Kept>,
}

impl Standing {
    /// The command that fixes the flag.
    pub fn remedy(&self) -> String {
        self.flag
            .as_ref()
            .map(|flag| flag.remedy(&self.path, self.class, self.version.is_some()))
            .unwrap_or_default()
    }
}

impl Survey {
    pub fn flagged(&self) -> impl Iterator<Item = &Standing> {
        self.files.iter().filter(|f| f.flag.is_some())
    }
}

/// The last status scan of a running process. It is valid while neither files nor journal change.
pub(crate) struct Surveyed {
    sight: Sight,
    survey: Survey,
}

/// The result of comparing the files with changed stats.
#[derive(Default)]
struct NoticedAll {
    adopted: Vec<Adopted>,
    /// Flagged files without history.
    unknown: Vec<(ProjectPath, Flag)>,
    waiting: Vec<String>,
}

/// How often a batch of edits is compared again after other commits came first.
const TRIES: usize = 8;

impl Store {
    /// Compares some paths before a command reads them. Adopts allowed edits and returns them.
    pub fn take_notice(&self, paths: &[ProjectPath]) -> Result<Vec<Adopted>> {
        self.with_sound_heads(|| self.take_notice_once(paths))
    }

    fn take_notice_once(&self, paths: &[ProjectPath]) -> Result<Vec<Adopted>> {
        self.settle()?;
        // Without a contract no edit is allowed: the edit stays in the file, and the newest version
        // stays the newest.
        if self.is_read_only() || self.is_unruled() {
            return Ok(Vec::new());
        }
        let mut changed = Vec::new();
        let heads = self
            .heads()?
            .heads_of(paths.iter().map(ProjectPath::as_str))?;
        for (path, head) in paths.iter().zip(heads) {
            let class = self.contract.class(path);
            // The journal does not track a free file that was never written through Quipu.
            if head.is_none() && class == Class::Free {
                continue;
            }
            let stamp = match self.tree.stamp(path) {
                Err(_) if self.tree.obstacle(path).is_some() => {
                    changed.push((path.clone(), None));
                    continue;
                }
                other => other.map_err(StoreError::io(format!("cannot look at `{path}`")))?,
            };
            let known = head.as_ref().filter(|h| !h.gone);
            let same = match (known, stamp) {
                (Some(head), Some(stamp)) => head.stamp == Some(stamp),
                (None, None) => true,
                _ => false,
            };
            if !same {
                changed.push((path.clone(), stamp));
            }
        }
        if changed.is_empty() {
            Ok(Vec::new())
        } else {
            Ok(self.notice_all(changed)?.adopted)
        }
    }

    /// Adopts or flags files with changed stats. Also returns flagged files without history,
    /// because they have no index entry for the flag.
    fn notice_all(&self, changed: Vec<(ProjectPath, Option<Stamp>)>) -> Result<NoticedAll> {
        let mut noticed = NoticedAll::default();
        let paths: Vec<ProjectPath> = changed.into_iter().map(|(path, _)| path).collect();
        let (mut next, mut tries) = (0, 0);
        while next < paths.len() {
            let held = self.append_lock.acquire()?;
            let look = self.look()?;
            let mut ops: Vec<RecordOp> = Vec::new();
            let (mut adopted, mut bytes, mut seen) = (Vec::new(), 0, next);
            while ops.len() < ADOPT_OPS && bytes < ADOPT_BYTES {
                let Some(path) = paths.get(seen) else { break };
                seen += 1;
                let (head, pending) = look.head(self, path)?;
                if pending {
                    continue;
                }
                match self.notice(path, self.contract.class(path), head.as_ref())? {
                    Noticed::Same => {}
                    Noticed::Touched(stamp) => {
                        if let Some(head) = head {
                            self.heads()?
                                .set_stamp(path.as_str(), &head.version, stamp)?;
                        }
                    }
                    Noticed::Flagged(flag, stamp) => match head.filter(|h| !h.gone) {
                        Some(head) => {
                            self.heads()?
                                .set_flag(path.as_str(), &head.version, &flag, stamp)?
                        }
                        None => noticed.unknown.push((path.clone(), flag)),
                    },
                    Noticed::Adopt { op, how } => {
                        bytes += usize::try_from(op.len).unwrap_or(usize::MAX);
                        adopted.push(Adopted {
                            path: op.path.clone(),
                            version: op.version.clone(),
                            how,
                        });
                        ops.push(*op);
                    }
                }
            }
            if !ops.is_empty() {
                let mut record = look.next_record(self, Kind::Adopt, Who::outside());
                record.ops = ops;
                match self.publish_records(held, look, vec![record]) {
                    Ok(Published::Done) => {}
                    Ok(Published::Overtaken) if tries < TRIES => {
                        tries += 1;
                        continue; // the same files again, in their current state
                    }
                    // The edit stays in its file, and readers continue.
                    Ok(Published::Overtaken)
                    | Err(StoreError::Unreachable { .. } | StoreError::LeaseLost { .. }) => {
                        noticed.waiting.extend(adopted.drain(..).map(|a| a.path));
                    }
                    Err(StoreError::Refused(_)) if self.order.is_some() => {
                        noticed.waiting.extend(adopted.drain(..).map(|a| a.path))
                    }
                    Err(error) => return Err(error),
                }
            }
            noticed.adopted.append(&mut adopted);
            next = seen;
        }
        Ok(noticed)
    }

    /// Compares every file, adopts allowed edits and flags the others.
    pub fn survey(&self) -> Result<Survey> {
        Ok(self.survey_and_sight()?.0)
    }

    /// A status scan, and the tree fingerprint that it is valid for; none if something was just
    /// adopted.
    pub fn survey_and_sight(&self) -> Result<(Survey, Option<Sight>)> {
        self.with_sound_heads(|| self.survey_once())
    }

    fn survey_once(&self) -> Result<(Survey, Option<Sight>)> {
        self.settle()?;
        self.rescue_leftovers()?;
        let found = self.look_through()?;
        self.forget_deleted_heads();
        let sight = Sight::of(found.sum, &self.heads()?.applied()?);
        let kept = std::mem::take(&mut *self.kept.lock().unwrap_or_else(PoisonError::into_inner));
        if let Some(last) = &*self.surveyed.lock().unwrap_or_else(PoisonError::into_inner)
            && last.sight == sight
            && kept.is_empty()
        {
            return Ok((last.survey.clone(), Some(sight)));
        }
        let mut survey = self.survey_of(&found.files, found.odd)?;
        survey.kept = kept;
        // Adoptions and conflict copies are reported once, so this result is not cached.
        let holds =
            (survey.adopted.is_empty() && survey.waiting.is_empty() && survey.kept.is_empty())
                .then_some(sight);
        let last = holds.map(|sight| Surveyed {
            sight,
            survey: survey.clone(),
        });
        *self.surveyed.lock().unwrap_or_else(PoisonError::into_inner) = last;
        Ok((survey, holds))
    }

    /// Folders at paths that a rule names as a file.
    fn folders_for_files(&self, found: &[(String, Stamp)]) -> Vec<(String, String)> {
        let named = self
            .contract
            .files
            .iter()
            .filter_map(|rule| rule.path.as_literal());
        let missing = named.filter(|path| {
            found
                .binary_search_by(|(text, _)| text.as_str().cmp(path))
                .is_err()
        });
        let is_folder = |path: &&str| {
            let is_open = |path| {
                self.tree
                    .open_at(
                        path,
                        rustix::fs::OFlags::DIRECTORY | rustix::fs::OFlags::RDONLY,
                    )
                    .is_ok()
            };
            !path.ends_with('/') && is_open(path)
        };
        missing
            .filter(is_folder)
            .map(|path| {
                (
                    path.to_owned(),
                    "is a folder: a rule names a file here".to_owned(),
                )
            })
            .collect()
    }

    fn survey_of(&self, found: &[(String, Stamp)], mut odd: Vec<String>) -> Result<Survey> {
        let mut heads = self.heads()?.all()?;
        let mut survey = Survey::default();
        // A link at the path of a folder hides every file that the rules name below it.
        let hides = |text: &str| {
            self.contract.files.iter().any(|r| {
                r.path
                    .as_str()
                    .strip_prefix(text)
                    .is_some_and(|p| p.starts_with('/'))
            })
        };
        odd.retain(|text| {
            hides(text)
                || ProjectPath::parse(text).is_ok_and(|path| self.contract.rule(&path).is_some())
        });
        survey.strange = odd
            .into_iter()
            .map(|text| {
                (
                    text,
                    "is a link or no file at all: it is never followed".to_owned(),
                )
            })
            .collect();
        survey.strange.extend(self.folders_for_files(found));
        let (mut changed, mut fixed) = (Vec::new(), Vec::new());
        // Both lists are sorted by path, so one pass compares them.
        let mut known = heads.iter().peekable();
        for (text, stamp) in found {
            while let Some((gone, head)) = known.next_if(|(path, _)| path < text) {
                missing(gone, head, &mut changed);
            }
            let head = known
                .next_if(|(path, _)| path == text)
                .map(|(_, head)| head)
                .filter(|h| !h.gone);
            if let Some(head) = head.filter(|h| h.stamp == Some(*stamp)) {
                if head.flag.is_some() {
                    fixed.push((text.clone(), head.version.clone(), *stamp));
                }
                continue;
            }
            let path = match ProjectPath::parse(text) {
                Ok(path) => path,
                Err(error) => {
                    survey.strange.push((text.clone(), error.to_string()));
                    continue;
                }
            };
            if head.is_none() && self.contract.class(&path) == Class::Free {
                if let Some(rule) = self.contract.look_alike(&path) {
                    survey.strange.push((
                        text.clone(),
                        format!("looks like `{}` but is not spelled like it", rule.path),
                    ));
                } else if let Some(rule) = self.contract.near_name(&path) {
                    survey.strange.push((
                        text.clone(),
                        format!("no rule names it: did you mean `{}`?", rule.path),
                    ));
                } else {
                    survey.free.push(text.clone());
                }
                continue;
            }
            changed.push((path, Some(*stamp)));
        }
        known.for_each(|(gone, head)| missing(gone, head, &mut changed));
        // These files match again, so their flags are cleared.
        for (text, version, stamp) in &fixed {
            self.heads()?.set_stamp(text, version, Some(*stamp))?;
        }
        if changed.is_empty() && !fixed.is_empty() {
            heads = self.heads()?.all()?;
        }
        if !changed.is_empty() {
            if self.is_read_only() {
                let heads: BTreeMap<&str, &Head> = heads
                    .iter()
                    .map(|(path, head)| (path.as_str(), head))
                    .collect();
                for (path, stamp) in changed {
                    let head = heads.get(path.as_str()).copied();
                    if let Noticed::Flagged(flag, _) =
                        self.notice_stamp(&path, self.contract.class(&path), head, stamp)?
                    {
                        survey.files.push(standing(
                            path.as_str(),
                            self.contract.class(&path),
                            head,
                            Some(flag),
                        ));
                    }
                }
            } else {
                let noticed = self.notice_all(changed)?;
                survey.adopted = noticed.adopted;
                survey.waiting = noticed.waiting;
                survey
                    .files
                    .extend(noticed.unknown.into_iter().map(|(path, flag)| {
                        standing(path.as_str(), self.contract.class(&path), None, Some(flag))
                    }));
            }
            heads = self.heads()?.all()?;
        }
        let told: BTreeSet<String> = survey.files.iter().map(|f| f.path.clone()).collect();
        for (text, head) in heads.iter().filter(|(_, head)| !head.gone) {
            let class = ProjectPath::parse(text).map_or(Class::Free, |p| self.contract.class(&p));
            if class == Class::Free {
                survey.free.push(text.clone());
            }
            if !told.contains(text) {
                survey.files.push(standing(
                    text,
                    class,
                    Some(head),
                    head.flag.as_ref().map(|(flag, _)| flag.clone()),
                ));
            }
        }
        let (files, free): (Vec<_>, Vec<_>) = survey
            .files
            .into_iter()
            .partition(|f| f.class != Class::Free || f.flag.is_some());
        (survey.files, survey.free_journalled) = (files, free);
        // Do not report a flagged file twice.
        let flagged: BTreeSet<&str> = survey
            .files
            .iter()
            .filter(|f| f.flag.is_some())
            .map(|f| f.path.as_str())
            .collect();
        survey
            .strange
            .retain(|(path, _)| !flagged.contains(path.as_str()));
        survey.free.sort_unstable();
        survey.free.dedup();
        Ok(survey)
    }
}

/// A file that the index has and the disk does not.
fn missing(path: &str, head: &Head, changed: &mut Vec<(ProjectPath, Option<Stamp>)>) {
    if let (false, Ok(path)) = (head.gone, ProjectPath::parse(path)) {
        changed.push((path, None));
    }
}

pub(crate) fn standing(
    path: &str,
    class: Class,
    head: Option<&Head>,
    flag: Option<Flag>,
) -> Standing {
    Standing {
        path: path.to_owned(),
        class,
        version: head.map(|h| h.version.clone()),
        len: head.map_or(0, |h| h.len),
        seq: head.map_or(0, |h| h.seq),
        flag,
    }
}
