//! The status scan: compares all files with the file index, adopts or flags external edits, and
//! lists files that no rule names.
//!
//! If neither the files nor the journal have changed, a running process returns its last result.
//! `external_edit.rs` compares one file, and `walk.rs` lists them.

use std::collections::BTreeSet;

use quipu_contract::{Class, ProjectPath};

use crate::commit::publish::{Published, Snapshot};
use crate::error::{Result, StoreError};
use crate::files::tree::FileStat;
use crate::index::file_index::FileHead;
use crate::journal::record::{Kind, RecordOp, Who};
use crate::rules::flag::Flag;
use crate::store::Store;
use crate::version::Version;
use crate::worktree::external_edit::{Adopted, Comparison};
use crate::worktree::scan_result::{FileStatus, StatusScan, file_status};
use crate::worktree::walk::TreeFingerprint;

/// The limits of one record of adoptions, so that adopting a large folder stays readable.
const ADOPT_OPS: usize = 256;
const ADOPT_BYTES: usize = 4 << 20;

/// The result of comparing the files with changed stats.
#[derive(Default)]
struct ComparedFiles {
    adopted: Vec<Adopted>,
    /// Flagged files without history.
    unknown: Vec<(ProjectPath, Flag)>,
    waiting: Vec<String>,
}

/// The files of a scan that differ from the index.
#[derive(Default)]
struct Sorted {
    changed: Vec<(ProjectPath, Option<FileStat>)>,
    /// Flagged files that have the recorded file stat again.
    fixed: Vec<(String, Version, FileStat)>,
}

/// How often a batch of edits is compared again after other commits came first.
const TRIES: usize = 8;

impl Store {
    /// Compares some paths before a command reads them. Adopts allowed edits and returns them.
    pub fn adopt_edits(&self, paths: &[ProjectPath]) -> Result<Vec<Adopted>> {
        self.index.sound(|| self.adopt_edits_once(paths))
    }

    fn adopt_edits_once(&self, paths: &[ProjectPath]) -> Result<Vec<Adopted>> {
        self.settle()?;
        // Without a contract no edit is allowed: the edit stays in the file, and the newest version
        // stays the newest.
        if self.is_read_only() || self.is_unruled() {
            return Ok(Vec::new());
        }
        let mut changed = Vec::new();
        let file_index = self
            .index
            .open()?
            .heads_of(paths.iter().map(ProjectPath::as_str))?;
        for (path, head) in paths.iter().zip(file_index) {
            let class = self.contract().class(path);
            // The journal does not track a free file that was never written through Quipu.
            if head.is_none() && class == Class::Free {
                continue;
            }
            let file_stat = match self.tree.file_stat(path) {
                Err(_) if self.tree.obstacle(path).is_some() => {
                    changed.push((path.clone(), None));
                    continue;
                }
                other => other.map_err(StoreError::io(format!("cannot check `{path}`")))?,
            };
            let known = head.as_ref().filter(|h| !h.gone);
            let same = match (known, file_stat) {
                (Some(head), Some(file_stat)) => head.file_stat == Some(file_stat),
                (None, None) => true,
                _ => false,
            };
            if !same {
                changed.push((path.clone(), file_stat));
            }
        }
        if changed.is_empty() {
            Ok(Vec::new())
        } else {
            Ok(self.compare_files(changed)?.adopted)
        }
    }

    /// Adopts or flags files with changed stats. Also returns flagged files without history,
    /// because they have no index entry for the flag.
    fn compare_files(
        &self,
        changed: Vec<(ProjectPath, Option<FileStat>)>,
    ) -> Result<ComparedFiles> {
        let mut noticed = ComparedFiles::default();
        let paths: Vec<ProjectPath> = changed.into_iter().map(|(path, _)| path).collect();
        let (mut next, mut tries) = (0, 0);
        while next < paths.len() {
            let held = self.journal.lock()?;
            let snapshot = self.snapshot()?;
            let mut ops: Vec<RecordOp> = Vec::new();
            let (mut adopted, mut bytes, mut seen) = (Vec::new(), 0, next);
            while ops.len() < ADOPT_OPS && bytes < ADOPT_BYTES && seen < paths.len() {
                let compared = self.compare_one(&snapshot, &paths[seen], &mut noticed)?;
                seen += 1;
                if let Some((op, how)) = compared {
                    bytes += usize::try_from(op.len).unwrap_or(usize::MAX);
                    adopted.push(Adopted::of(&op, how));
                    ops.push(*op);
                }
            }
            if !ops.is_empty() {
                let mut record = snapshot.next_record(self, Kind::Adopt, Who::external());
                record.ops = ops;
                match self.publish_records(held, snapshot, vec![record]) {
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
                    Err(StoreError::Refused(_)) if self.commit_log().is_some() => {
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

    /// Compares one file. Returns the operation that adopts an edit, and notes any other result.
    fn compare_one(
        &self,
        snapshot: &Snapshot,
        path: &ProjectPath,
        noticed: &mut ComparedFiles,
    ) -> Result<Option<(Box<RecordOp>, &'static str)>> {
        let (head, pending) = snapshot.head(self, path)?;
        if pending {
            return Ok(None);
        }
        let class = self.contract().class(path);
        let compared = self.worktree.compare_file(path, class, head.as_ref())?;
        match compared {
            Comparison::Same => {}
            Comparison::Touched(file_stat) => {
                if let Some(head) = head {
                    let index = self.index.open()?;
                    index.set_stat(path.as_str(), &head.version, file_stat)?;
                }
            }
            Comparison::Flagged(flag, file_stat) => match head.filter(|h| !h.gone) {
                Some(head) => {
                    let index = self.index.open()?;
                    index.set_flag(path.as_str(), &head.version, &flag, file_stat)?;
                }
                None => noticed.unknown.push((path.clone(), flag)),
            },
            Comparison::Adopt { op, how } => return Ok(Some((op, how))),
        }
        Ok(None)
    }

    /// Compares every file, adopts allowed edits and flags the others.
    pub fn scan_status(&self) -> Result<StatusScan> {
        Ok(self.scan_with_fingerprint()?.0)
    }

    /// A status scan, and the tree fingerprint that it is valid for; none if something was just
    /// adopted.
    pub fn scan_with_fingerprint(&self) -> Result<(StatusScan, Option<TreeFingerprint>)> {
        self.index.sound(|| self.scan_once())
    }

    /// The flagged files of a status scan. The other files are compared and not listed.
    pub fn scan_flagged(&self) -> Result<Vec<FileStatus>> {
        self.index.sound(|| {
            self.settle()?;
            self.rescue_leftovers()?;
            let found = self.worktree.walk_files()?;
            self.index.forget_deleted();
            let mut scan = StatusScan::default();
            let mut heads = self.compare_found(&found.files, &mut scan)?;
            heads.retain(|(_, head)| head.flag.is_some());
            self.list_files(&heads, &mut scan);
            scan.files.retain(|file| file.flag.is_some());
            Ok(scan.files)
        })
    }

    fn scan_once(&self) -> Result<(StatusScan, Option<TreeFingerprint>)> {
        self.settle()?;
        self.rescue_leftovers()?;
        let found = self.worktree.walk_files()?;
        self.index.forget_deleted();
        let tree_fingerprint = found.fingerprint(&self.index.open()?.applied()?);
        let kept = self.copies.take_unreported();
        if let Some(scan) = self.last_scan.find(tree_fingerprint)
            && kept.is_empty()
        {
            return Ok((scan, Some(tree_fingerprint)));
        }
        let mut scan = self.scan_of(&found.files, found.odd)?;
        scan.kept = kept;
        // Adoptions and conflict copies are reported once, so this result is not cached.
        let holds = (scan.adopted.is_empty() && scan.waiting.is_empty() && scan.kept.is_empty())
            .then_some(tree_fingerprint);
        self.last_scan.set(holds, &scan);
        Ok((scan, holds))
    }

    fn scan_of(&self, found: &[(String, FileStat)], odd: Vec<String>) -> Result<StatusScan> {
        let mut scan = StatusScan {
            strange: self.list_strange(found, odd),
            ..StatusScan::default()
        };
        let heads = self.compare_found(found, &mut scan)?;
        self.list_files(&heads, &mut scan);
        Ok(scan)
    }

    /// Compares the files on disk with the index, adopts or flags changed ones, and returns the index
    /// after that.
    fn compare_found(
        &self,
        found: &[(String, FileStat)],
        scan: &mut StatusScan,
    ) -> Result<Vec<(String, FileHead)>> {
        let heads = self.index.open()?.all()?;
        let Sorted { changed, fixed } = self.sort_found(found, &heads, scan);
        // These files match again, so their flags are cleared.
        for (text, version, file_stat) in &fixed {
            self.index
                .open()?
                .set_stat(text, version, Some(*file_stat))?;
        }
        let is_index_changed = !changed.is_empty() || !fixed.is_empty();
        if !changed.is_empty() {
            self.scan_changed(changed, &heads, scan)?;
        }
        if is_index_changed {
            return self.index.open()?.all();
        }
        Ok(heads)
    }

    /// Links, special files and folders at paths of files.
    fn list_strange(
        &self,
        found: &[(String, FileStat)],
        odd: Vec<String>,
    ) -> Vec<(String, String)> {
        // A link at the path of a folder hides every file that the rules name below it.
        let hides = |text: &str| {
            self.contract().files.iter().any(|rule| {
                let below = rule.path.as_str().strip_prefix(text);
                below.is_some_and(|below| below.starts_with('/'))
            })
        };
        let is_named = |text: &str| {
            ProjectPath::parse(text).is_ok_and(|path| self.contract().rule(&path).is_some())
        };
        let what = "is a link or not a regular file; Quipu does not follow it";
        let mut strange: Vec<(String, String)> = odd
            .into_iter()
            .filter(|text| hides(text) || is_named(text))
            .map(|text| (text, what.to_owned()))
            .collect();
        strange.extend(self.worktree.folders_for_files(found));
        strange
    }

    /// Sorts the files on disk into unchanged, changed and free ones.
    fn sort_found(
        &self,
        found: &[(String, FileStat)],
        heads: &[(String, FileHead)],
        scan: &mut StatusScan,
    ) -> Sorted {
        let mut sorted = Sorted::default();
        // Both lists are sorted by path, so one pass compares them.
        let mut known = heads.iter().peekable();
        for (text, file_stat) in found {
            while let Some((gone, head)) = known.next_if(|(path, _)| path < text) {
                missing(gone, head, &mut sorted.changed);
            }
            let head = known
                .next_if(|(path, _)| path == text)
                .map(|(_, head)| head)
                .filter(|h| !h.gone);
            if let Some(head) = head.filter(|h| h.file_stat == Some(*file_stat)) {
                if head.flag.is_some() {
                    let fixed = (text.clone(), head.version.clone(), *file_stat);
                    sorted.fixed.push(fixed);
                }
                continue;
            }
            match ProjectPath::parse(text) {
                Err(error) => scan.strange.push((text.clone(), error.to_string())),
                Ok(path) if head.is_none() && self.contract().class(&path) == Class::Free => {
                    self.sort_free(&path, scan);
                }
                Ok(path) => sorted.changed.push((path, Some(*file_stat))),
            }
        }
        known.for_each(|(gone, head)| missing(gone, head, &mut sorted.changed));
        sorted
    }

    /// A file that no rule names and no commit wrote.
    fn sort_free(&self, path: &ProjectPath, scan: &mut StatusScan) {
        let text = path.as_str().to_owned();
        if let Some(rule) = self.contract().look_alike(path) {
            let what = format!("looks like `{}` but is spelled differently", rule.path);
            scan.strange.push((text, what));
        } else if let Some(rule) = self.contract().near_name(path) {
            let what = format!("is not in the contract: did you mean `{}`?", rule.path);
            scan.strange.push((text, what));
        } else {
            scan.free.push(text);
        }
    }

    /// Adopts or flags changed files. A project that cannot be written only flags them.
    fn scan_changed(
        &self,
        changed: Vec<(ProjectPath, Option<FileStat>)>,
        heads: &[(String, FileHead)],
        scan: &mut StatusScan,
    ) -> Result<()> {
        if !self.is_read_only() {
            let noticed = self.compare_files(changed)?;
            scan.adopted = noticed.adopted;
            scan.waiting = noticed.waiting;
            let status = |(path, flag): (ProjectPath, Flag)| {
                file_status(
                    path.as_str(),
                    self.contract().class(&path),
                    None,
                    Some(flag),
                )
            };
            scan.files.extend(noticed.unknown.into_iter().map(status));
            return Ok(());
        }
        for (path, file_stat) in changed {
            let class = self.contract().class(&path);
            let at = heads.binary_search_by(|(text, _)| text.as_str().cmp(path.as_str()));
            let head = at.ok().map(|at| &heads[at].1);
            let compared = self.worktree.compare_stat(&path, class, head, file_stat)?;
            if let Comparison::Flagged(flag, _) = compared {
                scan.files
                    .push(file_status(path.as_str(), class, head, Some(flag)));
            }
        }
        Ok(())
    }

    /// Lists the files of the index, and sorts the lists.
    fn list_files(&self, heads: &[(String, FileHead)], scan: &mut StatusScan) {
        let listed: BTreeSet<String> = scan.files.iter().map(|f| f.path.clone()).collect();
        for (text, head) in heads.iter().filter(|(_, head)| !head.gone) {
            let class = ProjectPath::parse(text).map_or(Class::Free, |p| self.contract().class(&p));
            if class == Class::Free {
                scan.free.push(text.clone());
            }
            if !listed.contains(text) {
                let flag = head.flag.as_ref().map(|(flag, _)| flag.clone());
                scan.files.push(file_status(text, class, Some(head), flag));
            }
        }
        let (files, free): (Vec<_>, Vec<_>) = std::mem::take(&mut scan.files)
            .into_iter()
            .partition(|f| f.class != Class::Free || f.flag.is_some());
        (scan.files, scan.free_journalled) = (files, free);
        // Do not report a flagged file twice.
        let flagged: BTreeSet<&str> = scan
            .files
            .iter()
            .filter(|f| f.flag.is_some())
            .map(|f| f.path.as_str())
            .collect();
        scan.strange
            .retain(|(path, _)| !flagged.contains(path.as_str()));
        scan.free.sort_unstable();
        scan.free.dedup();
    }
}

/// A file that the index has and the disk does not.
fn missing(path: &str, head: &FileHead, changed: &mut Vec<(ProjectPath, Option<FileStat>)>) {
    if let (false, Ok(path)) = (head.gone, ProjectPath::parse(path)) {
        changed.push((path, None));
    }
}

impl Store {
    /// A file with a fault: an external edit that was not adopted, or an invalid newest version.
    pub fn flagged(&self, path: &ProjectPath) -> Result<Option<FileStatus>> {
        self.adopt_edits(std::slice::from_ref(path))?;
        let class = self.contract().class(path);
        let head = self
            .index
            .open()?
            .head(path.as_str())?
            .filter(|head| !head.gone);
        let Some(head) = head else {
            let flagged = match self.worktree.compare_file(path, class, None)? {
                Comparison::Flagged(flag, _) if class != Class::Free => {
                    Some(file_status(path.as_str(), class, None, Some(flag)))
                }
                _ => None,
            };
            return Ok(flagged);
        };
        let flag = match &head.flag {
            Some((flag, _)) => Some(flag.clone()),
            None => self.worktree.committed_flag(path, &head)?,
        };
        Ok(flag.map(|flag| file_status(path.as_str(), class, Some(&head), Some(flag))))
    }

    /// Flags each file that a rule names by its path and that has an invalid newest version.
    pub fn flag_invalid(&self, scan: &mut StatusScan) -> Result<()> {
        for rule in self
            .contract()
            .files
            .iter()
            .filter(|rule| rule.class != Class::Derived)
        {
            let Some(path) = rule
                .path
                .as_literal()
                .and_then(|literal| ProjectPath::parse(literal).ok())
            else {
                continue;
            };
            let Some(file) = scan
                .files
                .iter_mut()
                .find(|file| file.path == path.as_str() && file.flag.is_none())
            else {
                continue;
            };
            // Do not hold the index here: reading a text uses it as well.
            let head = self
                .index
                .open()?
                .head(path.as_str())?
                .filter(|head| !head.gone);
            file.flag = head.map_or(Ok(None), |head| self.worktree.committed_flag(&path, &head))?;
        }
        Ok(())
    }

    /// The flag that a file would get if an editor left this text in it.
    pub fn validate_external(&self, path: &ProjectPath, after: &[u8]) -> Result<Option<Flag>> {
        let head = self
            .index
            .open()?
            .head(path.as_str())?
            .filter(|head| !head.gone);
        let before = head
            .as_ref()
            .map(|head| self.texts.content(path, head))
            .transpose()?;
        if before.as_deref() == Some(after) {
            return Ok(None);
        }
        match self.worktree.validate_edit(
            path,
            self.contract().class(path),
            head.as_ref(),
            before.as_deref(),
            Some(after),
        ) {
            quipu_contract::Outside::Flagged { what, line } => Ok(Some(Flag {
                what: what.into_owned(),
                line,
            })),
            _ => Ok(None),
        }
    }

    /// The current tree fingerprint. Adopts and flags nothing.
    pub fn tree_fingerprint(&self) -> Result<TreeFingerprint> {
        self.index.sound(|| {
            self.settle()?;
            let found = self.worktree.walk_files()?;
            self.index.forget_deleted();
            Ok(found.fingerprint(&self.index.open()?.applied()?))
        })
    }

    /// Computes the fingerprint in a second thread while `work` runs.
    pub fn fingerprint_while<T>(&self, work: impl FnOnce() -> T) -> (Result<TreeFingerprint>, T) {
        std::thread::scope(|threads| {
            let walk = threads.spawn(|| self.tree_fingerprint());
            let done = work();
            // A walk that panicked is repeated here, where the panic has a caller.
            let fingerprint = walk.join().unwrap_or_else(|_| self.tree_fingerprint());
            (fingerprint, done)
        })
    }
}
