//! Implements the commands of the memory tool on the files of a project. The store applies the
//! contract to every write.

use std::fs::{DirEntry, FileType};
use std::path::{Path, PathBuf};

use quipu_contract::{Actor, ProjectPath};
use quipu_protocol::{Project, ReadError, may_read_whole};
use quipu_store::{Change, Expect, LeaseToken, Op, StoreError, Version};
use serde::Deserialize;

use super::place::resolve;
use super::text::{line_at, numbered, places, size, snippet};
use crate::answer::Failure;
use crate::hook::follow_links;

/// Largest line number that the tool can print.
const MOST_LINES: usize = 999_999;
/// Maximum depth of a folder listing.
const DEEPEST: usize = 2;

#[derive(Debug, Deserialize)]
#[serde(tag = "command", rename_all = "snake_case")]
pub enum Command {
    View {
        path: String,
        #[serde(default)]
        view_range: Option<Vec<i64>>,
    },
    Create {
        path: String,
        file_text: String,
    },
    StrReplace {
        path: String,
        old_str: String,
        #[serde(default)]
        new_str: String,
    },
    Insert {
        path: String,
        insert_line: i64,
        insert_text: String,
    },
    Delete {
        path: String,
    },
    Rename {
        old_path: String,
        new_path: String,
    },
}

/// The error text that the model receives.
#[derive(Debug)]
pub struct ToolError(pub String);

impl From<StoreError> for ToolError {
    fn from(error: StoreError) -> ToolError {
        ToolError(Failure::from(error).render())
    }
}

type ToolResult = Result<String, ToolError>;

/// Executes a command in a folder of a project.
pub fn perform(
    project: &Project,
    actor: &Actor,
    lease: Option<&LeaseToken>,
    folder: &ProjectPath,
    command: &Command,
) -> ToolResult {
    let memory = Memory {
        project,
        actor,
        lease,
        folder,
    };
    match command {
        Command::View { path, view_range } => memory.view(path, view_range.as_deref()),
        Command::Create { path, file_text } => memory.create(path, file_text),
        Command::StrReplace {
            path,
            old_str,
            new_str,
        } => memory.replace(path, old_str, new_str),
        Command::Insert {
            path,
            insert_line,
            insert_text,
        } => memory.insert(path, *insert_line, insert_text),
        Command::Delete { path } => memory.delete(path),
        Command::Rename { old_path, new_path } => memory.rename(old_path, new_path),
    }
}

struct Memory<'m> {
    project: &'m Project,
    actor: &'m Actor,
    lease: Option<&'m LeaseToken>,
    folder: &'m ProjectPath,
}

fn fail<T>(text: String) -> Result<T, ToolError> {
    Err(ToolError(text))
}

impl Memory<'_> {
    fn on_disk(&self, place: Option<&ProjectPath>) -> PathBuf {
        self.project
            .store
            .root()
            .join(place.unwrap_or(self.folder).as_str())
    }

    /// Resolves a path to a place that no link leads to. A link within the folder is followed for
    /// reading; one that leaves it is an error.
    fn follow(&self, path: &str) -> Result<Option<ProjectPath>, ToolError> {
        let Some(place) = resolve(self.folder, path)? else {
            return Ok(None);
        };
        let disk = self.on_disk(Some(&place));
        let real = follow_links(&disk);
        if real == disk {
            return Ok(Some(place));
        }
        let memories = self.on_disk(None);
        let Ok(inside) = real.strip_prefix(&memories) else {
            return fail(format!("Path {path} would escape /memories directory"));
        };
        let inside = inside.to_string_lossy();
        resolve(self.folder, &format!("/memories/{inside}"))
    }

    /// Resolves a path that a command changes. It must not lead through a link.
    fn locate(&self, path: &str) -> Result<Option<ProjectPath>, ToolError> {
        let place = resolve(self.folder, path)?;
        let real = self.follow(path)?;
        if place == real {
            return Ok(place);
        }
        let below = |place: ProjectPath| {
            let below = place.as_str().strip_prefix(self.folder.as_str());
            below.unwrap_or_default().to_owned()
        };
        let real = real.map(below).unwrap_or_default();
        fail(format!("{path} is a symlink. Use /memories{real} instead."))
    }

    /// Returns the kind of file at a place. No link is followed on the way, and a link itself
    /// counts as neither a file nor a folder.
    fn kind(&self, place: &ProjectPath) -> Option<FileType> {
        let mut path = self.project.store.root().to_owned();
        let mut kind = None;
        for part in place.as_str().split('/') {
            if kind.is_some_and(|kind: FileType| !kind.is_dir()) {
                return None;
            }
            path.push(part);
            kind = Some(std::fs::symlink_metadata(&path).ok()?.file_type());
        }
        kind
    }

    /// Whether a place is a folder that the role sees. Any other folder gets the answer for a
    /// missing file.
    fn is_folder(&self, place: &ProjectPath) -> bool {
        self.kind(place).is_some_and(|kind| kind.is_dir())
            && self.sees_into(&self.on_disk(Some(place)))
    }

    fn view(&self, path: &str, range: Option<&[i64]>) -> ToolResult {
        let place = self.follow(path)?;
        let disk = self.on_disk(place.as_ref());
        // The folder itself always exists for the model, even before the first memory.
        let is_folder = self.is_folder(place.as_ref().unwrap_or(self.folder));
        if is_folder || place.is_none() {
            let bytes = if is_folder { length(&disk) } else { 0 };
            let mut lines = vec![format!("{}\t{path}", size(bytes))];
            if is_folder {
                self.list(&disk, path, 1, &mut lines);
            }
            let head = format!(
                "Here're the files and directories up to 2 levels deep in {path}, excluding hidden items:"
            );
            return Ok(format!("{head}\n{}", lines.join("\n")));
        }
        let (text, _) = self.read(path, place)?;
        let lines: Vec<&str> = text.split('\n').collect();
        if lines.len() > MOST_LINES {
            return fail(format!(
                "File {path} exceeds maximum line limit of 999,999 lines."
            ));
        }
        let (first, last) = match range {
            Some([first, last]) => {
                let first = usize::try_from(*first).unwrap_or(0).max(1) - 1;
                let last = match last {
                    -1 => lines.len(),
                    last if *last < 0 => lines
                        .len()
                        .saturating_sub(usize::try_from(last.unsigned_abs()).unwrap_or(usize::MAX)),
                    last => usize::try_from(*last)
                        .unwrap_or(usize::MAX)
                        .min(lines.len()),
                };
                (first, last)
            }
            _ => (0, lines.len()),
        };
        let shown = lines.get(first..last).unwrap_or_default();
        Ok(format!(
            "Here's the content of {path} with line numbers:\n{}",
            numbered(first + 1, shown)
        ))
    }

    fn list(&self, folder: &Path, shown: &str, depth: usize, lines: &mut Vec<String>) {
        let mut entries: Vec<_> = std::fs::read_dir(folder)
            .into_iter()
            .flatten()
            .flatten()
            .collect();
        entries.sort_by_key(std::fs::DirEntry::file_name);
        for entry in entries {
            let name = entry.file_name().to_string_lossy().into_owned();
            let shown = format!("{shown}/{name}");
            if name.starts_with('.') {
                continue;
            }
            // A link is shown as what it leads to, if that is in the folder.
            let place = follow_links(&entry.path());
            let Ok(kind) = std::fs::symlink_metadata(&place).map(|found| found.file_type()) else {
                continue;
            };
            if !place.starts_with(self.on_disk(None)) {
                continue;
            }
            if kind.is_dir() {
                if !self.sees_into(&place) {
                    continue;
                }
                lines.push(format!("{}\t{shown}/", size(length(&place))));
                if depth < DEEPEST {
                    self.list(&place, &shown, depth + 1, lines);
                }
            } else if kind.is_file() && self.may_see(&place) {
                lines.push(format!("{}\t{shown}", size(length(&place))));
            }
        }
    }

    /// Whether a folder is empty, or has a file that the role may read. The names of other folders
    /// would reveal too much.
    fn sees_into(&self, folder: &Path) -> bool {
        let entries: Vec<_> = std::fs::read_dir(folder)
            .into_iter()
            .flatten()
            .flatten()
            .collect();
        let sees = |entry: &DirEntry| {
            if is_folder(entry) {
                self.sees_into(&entry.path())
            } else {
                self.may_see(&entry.path())
            }
        };
        entries.is_empty() || entries.iter().any(sees)
    }

    /// Whether the role may read a file. Files it may not read are hidden from it.
    fn may_see(&self, file: &Path) -> bool {
        let relative = file
            .strip_prefix(self.project.store.root())
            .ok()
            .and_then(Path::to_str);
        let path = relative.and_then(|p| ProjectPath::parse(p).ok());
        path.is_some_and(|path| may_read_whole(self.project, self.actor, &path).is_ok())
    }

    fn read(&self, path: &str, place: Option<ProjectPath>) -> Result<(String, Version), ToolError> {
        let missing = || {
            ToolError(format!(
                "The path {path} does not exist. Please provide a valid path."
            ))
        };
        let Some(place) = place.filter(|place| !self.is_folder(place)) else {
            return fail(format!("The path {path} is not a file."));
        };
        self.check_reading(&place)?;
        if self.kind(&place).is_some_and(|kind| kind.is_dir()) {
            return Err(missing());
        }
        let (bytes, version) = self.project.store.read(&place)?.ok_or_else(missing)?;
        let text = String::from_utf8(bytes)
            .map_err(|_| ToolError(format!("Unsupported file type for {path}")))?;
        Ok((text, version))
    }

    fn check_reading(&self, place: &ProjectPath) -> Result<(), ToolError> {
        may_read_whole(self.project, self.actor, place)
            .map_err(|error: ReadError| ToolError(Failure::from(error).render()))
    }

    fn create(&self, path: &str, text: &str) -> ToolResult {
        let exists = || ToolError(format!("File {path} already exists"));
        let op = Op::Create {
            path: self.locate(path)?.ok_or_else(exists)?,
            bytes: text.as_bytes().to_vec(),
        };
        self.permit(&op)?;
        if self.kind(op.path()).is_some() {
            return Err(exists());
        }
        self.commit("memory: create", vec![op])?;
        Ok(format!("File created successfully at: {path}"))
    }

    fn replace(&self, path: &str, old: &str, new: &str) -> ToolResult {
        let (text, version) = self.read(path, self.locate(path)?)?;
        let found = places(&text, old);
        let count = if old.is_empty() {
            found.len()
        } else {
            text.matches(old).count()
        };
        if count == 0 {
            return fail(format!(
                "No replacement was performed, old_str `{old}` did not appear verbatim in {path}."
            ));
        }
        if count > 1 {
            let lines = found
                .iter()
                .map(|at| line_at(&text, *at).to_string())
                .collect::<Vec<_>>()
                .join(", ");
            let what = format!(
                "No replacement was performed. Multiple occurrences of old_str `{old}` in lines: {lines}."
            );
            return fail(format!("{what} Please ensure it is unique"));
        }
        let after = text.replace(old, new);
        self.put(path, &text, &after, version)?;
        let told = "The memory file has been edited. Here is the snippet showing the change (with line numbers):";
        Ok(format!(
            "{told}\n{}",
            snippet(&after, line_at(&text, found[0]))
        ))
    }

    fn insert(&self, path: &str, at: i64, new: &str) -> ToolResult {
        let (text, version) = self.read(path, self.locate(path)?)?;
        let mut lines: Vec<&str> = text.split('\n').collect();
        if lines.last() == Some(&"") {
            lines.pop();
        }
        let Some(index) = usize::try_from(at).ok().filter(|at| *at <= lines.len()) else {
            return fail(format!(
                "Invalid `insert_line` parameter: {at}. It should be within the range [0, {}].",
                lines.len()
            ));
        };
        lines.insert(index, new.trim_end_matches('\n'));
        let mut after = lines.join("\n");
        if !after.ends_with('\n') {
            after.push('\n');
        }
        self.put(path, &text, &after, version)?;
        Ok(format!("The file {path} has been edited."))
    }

    fn delete(&self, path: &str) -> ToolResult {
        let Some(place) = self.locate(path)? else {
            return fail("Cannot delete the /memories directory itself".into());
        };
        let remove = |path: &ProjectPath| Op::Remove {
            path: path.clone(),
            expect: Expect::Any,
        };
        let ops: Vec<Op> = self.files(&place)?.iter().map(remove).collect();
        self.permit_all(&place, path, &ops)?;
        if !self.is_file_or_folder(&place) {
            return fail(format!("The path {path} does not exist"));
        }
        self.commit("memory: delete", ops)?;
        self.clear(&place);
        Ok(format!("Successfully deleted {path}"))
    }

    fn rename(&self, old: &str, new: &str) -> ToolResult {
        let Some(from) = self.locate(old)? else {
            return fail("Cannot rename the /memories directory itself".into());
        };
        let exists = || ToolError(format!("The destination {new} already exists"));
        let to = self.locate(new)?.ok_or_else(exists)?;
        let moved = self.moved(&from, &to)?;
        let create = |path: &ProjectPath| Op::Create {
            path: path.clone(),
            bytes: Vec::new(),
        };
        let remove = |path: &ProjectPath| Op::Remove {
            path: path.clone(),
            expect: Expect::Any,
        };
        let removals: Vec<Op> = moved.iter().map(|(path, _)| remove(path)).collect();
        self.permit_all(&from, old, &removals)?;
        for (path, target) in &moved {
            self.check_reading(path)
                .map_err(|error| self.unnamed(&from, old, path, error))?;
            self.permit(&create(target))?;
        }
        if moved.is_empty() {
            self.permit(&create(&to))?;
        }
        if self.kind(&to).is_some() {
            return Err(exists());
        }
        if !self.is_file_or_folder(&from) {
            return fail(format!("The path {old} does not exist"));
        }
        let mut ops = Vec::new();
        for (path, target) in moved {
            let Some((bytes, version)) = self.project.store.read(&path)? else {
                continue;
            };
            ops.push(Op::Create {
                path: target,
                bytes,
            });
            // Text that another actor adds meanwhile must not be removed unread.
            ops.push(Op::Remove {
                path,
                expect: Expect::Version(version),
            });
        }
        self.commit("memory: rename", ops)?;
        self.clear(&from);
        Ok(format!("Successfully renamed {old} to {new}"))
    }

    /// Returns each file at a place, with its path below another place.
    fn moved(
        &self,
        from: &ProjectPath,
        to: &ProjectPath,
    ) -> Result<Vec<(ProjectPath, ProjectPath)>, ToolError> {
        let target = |path: &ProjectPath| {
            let below = path.as_str().strip_prefix(from.as_str());
            ProjectPath::parse(&format!("{to}{}", below.unwrap_or_default()))
                .map_err(|e| ToolError(e.to_string()))
        };
        let files = self.files(from)?.into_iter();
        files
            .map(|path| {
                let target = target(&path)?;
                Ok((path, target))
            })
            .collect()
    }

    /// Refuses a forbidden operation before any answer reveals whether the file exists.
    fn permit(&self, op: &Op) -> Result<(), ToolError> {
        Ok(self.project.store.permit(self.actor, op)?)
    }

    /// Like `permit`, for all files of a folder; the role may see only some of them.
    fn permit_all(&self, place: &ProjectPath, path: &str, ops: &[Op]) -> Result<(), ToolError> {
        for op in ops {
            self.permit(op)
                .map_err(|error| self.unnamed(place, path, op.path(), error))?;
        }
        Ok(())
    }

    /// Refuses because of one file of a folder, without naming a file that the role does not see.
    fn unnamed(
        &self,
        place: &ProjectPath,
        path: &str,
        file: &ProjectPath,
        error: ToolError,
    ) -> ToolError {
        if file == place || self.check_reading(file).is_ok() {
            return error;
        }
        ToolError(format!(
            "The directory {path} also contains files that you may not change"
        ))
    }

    fn is_file_or_folder(&self, place: &ProjectPath) -> bool {
        self.kind(place).is_some_and(|kind| kind.is_file()) || self.is_folder(place)
    }

    /// Removes empty folders.
    fn clear(&self, place: &ProjectPath) {
        if self.is_folder(place) {
            remove_empty(&self.on_disk(Some(place)));
        }
    }

    /// Returns the file, or every file of the folder.
    fn files(&self, place: &ProjectPath) -> Result<Vec<ProjectPath>, ToolError> {
        if !self.is_folder(place) {
            return Ok(vec![place.clone()]);
        }
        let below = format!("{place}/");
        Ok(self
            .project
            .store
            .list()?
            .into_iter()
            .filter(|path| path.as_str().starts_with(&below))
            .collect())
    }

    /// Writes a text: as an append if it only grows and the store accepts that, otherwise as a
    /// replacement.
    fn put(
        &self,
        path: &str,
        before: &str,
        after: &str,
        version: Version,
    ) -> Result<(), ToolError> {
        let Some(place) = self.locate(path)? else {
            return Ok(());
        };
        if let Some(added) = after.strip_prefix(before).filter(|added| !added.is_empty()) {
            let bytes = added.as_bytes().to_vec();
            if self
                .commit(
                    "memory: add",
                    vec![Op::Append {
                        path: place.clone(),
                        bytes,
                        apart: false,
                    }],
                )
                .is_ok()
            {
                return Ok(());
            }
        }
        let bytes = after.as_bytes().to_vec();
        self.commit(
            "memory: edit",
            vec![Op::Write {
                path: place,
                bytes,
                expect: Expect::Version(version),
            }],
        )
    }

    fn commit(&self, why: &str, ops: Vec<Op>) -> Result<(), ToolError> {
        let mut change = Change::by(self.actor).why(why);
        // The tool has no way to confirm a loss, so the write is forced; every older version is
        // kept.
        (change.ops, change.lease, change.force) = (ops, self.lease.cloned(), true);
        if change.ops.is_empty() {
            return Ok(());
        }
        self.project.validate(change)?.publish()?;
        Ok(())
    }
}

fn length(path: &Path) -> u64 {
    std::fs::metadata(path).map_or(0, |found| found.len())
}

/// Whether an entry is a folder, and not a link to one.
fn is_folder(entry: &DirEntry) -> bool {
    entry.file_type().is_ok_and(|kind| kind.is_dir())
}

fn remove_empty(folder: &Path) {
    for entry in std::fs::read_dir(folder)
        .into_iter()
        .flatten()
        .flatten()
        .filter(is_folder)
    {
        remove_empty(&entry.path());
    }
    let _ = std::fs::remove_dir(folder);
}
