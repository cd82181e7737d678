//! A look at all files: what is where, what changed outside, what no rule names.

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

/// A record of adoptions holds at most this much, so that joining a large folder stays readable.
const ADOPT_OPS: usize = 256;
const ADOPT_BYTES: usize = 4 << 20;

/// How one file stands.
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

/// How everything stands.
#[derive(Debug, Clone, Default, Serialize)]
pub struct Survey {
    /// Files that a rule names.
    pub files: Vec<Standing>,
    pub adopted: Vec<Adopted>,
    /// Files that no rule names.
    pub free: Vec<String>,
    /// Those of them that have a history and stand as recorded.
    #[serde(skip)]
    pub free_journalled: Vec<Standing>,
    /// Files whose names the contract cannot hold, with the reason.
    pub strange: Vec<(String, String)>,
    /// Edits that are allowed and wait for the shared store: it does not answer, or someone holds a
    /// lease.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub waiting: Vec<String>,
    /// Edits that had to give way to a commit or to a recovery, and where they are kept. Told once.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub kept: Vec<Kept>,
}

impl Standing {
    /// The command that fixes what is flagged.
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

/// What a running process saw last: as long as neither files nor journal have changed, it would see
/// the same.
pub(crate) struct Surveyed {
    sight: Sight,
    survey: Survey,
}

/// What a look at files that do not look as recorded found.
#[derive(Default)]
struct NoticedAll {
    adopted: Vec<Adopted>,
    /// Files that are flagged and have no history yet.
    unknown: Vec<(ProjectPath, Flag)>,
    waiting: Vec<String>,
}

/// So often a batch of edits is looked at again because others were quicker.
const TRIES: usize = 8;

impl Store {
    /// Looks at some paths before a command reads them; adopts what is allowed and returns it.
    pub fn take_notice(&self, paths: &[ProjectPath]) -> Result<Vec<Adopted>> {
        self.with_sound_heads(|| self.take_notice_once(paths))
    }

    fn take_notice_once(&self, paths: &[ProjectPath]) -> Result<Vec<Adopted>> {
        self.settle()?;
        // Without rules nothing can be allowed: what stands there stays an edit, and the newest
        // version the one before it.
        if self.is_read_only() || self.is_unruled() {
            return Ok(Vec::new());
        }
        let mut changed = Vec::new();
        let heads = self
            .heads()?
            .heads_of(paths.iter().map(ProjectPath::as_str))?;
        for (path, head) in paths.iter().zip(heads) {
            let class = self.contract.class(path);
            // A free file that was never written through Quipu is none of the journal's business.
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

    /// Adopts or flags files that do not look as recorded. Also returns what is flagged and has no
    /// history yet, and so no head to note it in.
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
                        continue; // the same files again, as they are now
                    }
                    // The edit stays in its file, and whoever reads reads on.
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

    /// Looks at every file, adopts what the contract allows and flags the rest.
    pub fn survey(&self) -> Result<Survey> {
        Ok(self.survey_and_sight()?.0)
    }

    /// The same, and the sight for which it holds; none if something was adopted just now.
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
        // What was adopted or had to give way just now is told once.
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

    /// Folders that stand where a rule names one file.
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
        // A link in the place of a folder hides all that the rules name below it.
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
        // Both lists are in the order of the paths: they are walked side by side.
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
        // What was wrong with them is right again.
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
        // What is flagged is told once.
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

/// A file that the journal knows and the disk does not.
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
