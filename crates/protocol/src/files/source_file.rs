//! Reads files that a caller names as the source of a text: `write --file`, `commit --file`,
//! `import`, stdin from a file.
//!
//! An agent must not copy a file that it may not read. Every operation with a source path reads it
//! here, so one rule applies to all: the caller must be allowed to read a file inside a project as
//! a whole, under the contract of that project. The check uses the opened file, not its name, so
//! links, `..` and `/proc` cannot bypass it.

use std::collections::BTreeSet;
use std::fs::File;
use std::io::{self, IsTerminal, Read};
use std::os::fd::AsRawFd;
use std::os::unix::fs::{DirEntryExt, FileTypeExt, MetadataExt};
use std::path::{Path, PathBuf};

use quipu_contract::{Actor, BadPath, Denial, ProjectPath, Readable};
use quipu_store::{Options, Store, StoreError};
use rustix::fs::{Mode, OFlags};
use thiserror::Error;

use crate::files::read::ReadError;
use crate::project::open::{Project, ProjectError};

#[derive(Debug, Error)]
pub enum SourceError {
    #[error("cannot read `{}`: {source}", file.display())]
    Unreadable { file: PathBuf, source: io::Error },
    /// The kernel does not report the path of the file, so no contract can be applied.
    #[error("cannot resolve the path of `{}`", .0.display())]
    NoPlace(PathBuf),
    /// A file of the project that no rule and no pointer covers.
    #[error("{}", .0.what)]
    NoRule(Denial),
    #[error(transparent)]
    Denied(#[from] ReadError),
    #[error(transparent)]
    Project(#[from] ProjectError),
    #[error(transparent)]
    Store(#[from] StoreError),
}

#[derive(Debug, Clone, Copy)]
pub struct Sources<'c> {
    actor: &'c Actor,
    /// A folder of the caller's project, to find hard links there.
    project: &'c Path,
}

impl<'c> Sources<'c> {
    pub fn of(actor: &'c Actor, project: &'c Path) -> Sources<'c> {
        Sources { actor, project }
    }

    /// Reads a file, if the caller may read it. `named` is used in messages.
    pub fn read(&self, place: &Path, named: &Path) -> Result<Vec<u8>, SourceError> {
        let unreadable = |source| SourceError::Unreadable {
            file: named.to_owned(),
            source,
        };
        // The error says whether there is a file, or a folder.
        let refused_or = |error| match self.check_name(place) {
            Err(refusal) => refusal,
            Ok(()) => unreadable(error),
        };
        let mut opened = open(place).map_err(refused_or)?;
        self.check(opened.as_raw_fd(), named)?;
        let mut bytes = Vec::new();
        match opened.read_to_end(&mut bytes) {
            Err(error) if error.kind() == io::ErrorKind::IsADirectory => Err(refused_or(error)),
            read => read.map(|_| bytes).map_err(unreadable),
        }
    }

    /// Whether the caller may have a file that it did not name itself. One that it may not have is
    /// passed over, as if it were not there.
    pub fn sees(&self, place: &Path) -> Result<bool, SourceError> {
        let opened = open(place).map_err(|source| SourceError::Unreadable {
            file: place.to_owned(),
            source,
        })?;
        match self.check(opened.as_raw_fd(), place) {
            Err(SourceError::Denied(_) | SourceError::NoRule(_)) => Ok(false),
            other => other.map(|()| true),
        }
    }

    /// Refuses a place where nothing is as it would refuse a file there: whether a file exists that
    /// the caller may not read is not said.
    pub fn check_absent(&self, place: &Path) -> Result<(), SourceError> {
        if place.symlink_metadata().is_ok() {
            return Ok(());
        }
        self.check_name(place)
    }

    /// Refuses a place as it would refuse a file there, without a look at it.
    fn check_name(&self, place: &Path) -> Result<(), SourceError> {
        if !matches!(self.actor, Actor::Agent { .. }) {
            return Ok(());
        }
        let mut above = place.ancestors().skip(1);
        let Some((folder, real)) =
            above.find_map(|folder| Some((folder, std::fs::canonicalize(folder).ok()?)))
        else {
            return Ok(());
        };
        let real = real.join(place.strip_prefix(folder).unwrap_or(place));
        for root in &roots_around(&real) {
            self.may_take(root, &real)?;
        }
        Ok(())
    }

    /// The bytes of stdin. The shell may have opened a file for it: `quipu write a.md < b.md`.
    pub fn read_stdin(&self) -> Result<Vec<u8>, SourceError> {
        let name = Path::new("stdin");
        let stdin = io::stdin().lock();
        self.check(stdin.as_raw_fd(), name)?;
        let mut bytes = Vec::new();
        let unreadable = |source| SourceError::Unreadable {
            file: name.to_owned(),
            source,
        };
        { stdin }.read_to_end(&mut bytes).map_err(unreadable)?;
        Ok(bytes)
    }

    /// Refuses a file, open under this descriptor, that the caller may not read. `named` is used in
    /// messages.
    fn check(&self, descriptor: i32, named: &Path) -> Result<(), SourceError> {
        if !matches!(self.actor, Actor::Agent { .. }) {
            return Ok(());
        }
        let unreadable = |source| SourceError::Unreadable {
            file: named.to_owned(),
            source,
        };
        let link = PathBuf::from(format!("/proc/self/fd/{descriptor}"));
        let found = std::fs::metadata(&link).map_err(unreadable)?;
        // A pipe or a terminal has no path, and a folder has no bytes.
        if !found.is_file() {
            return Ok(());
        }
        let real = std::fs::read_link(&link).map_err(unreadable)?;
        let real = if found.nlink() == 0 {
            without_deleted(&real)
        } else {
            real
        };
        if !real.is_absolute() {
            return Err(SourceError::NoPlace(named.to_owned()));
        }
        let mut roots = roots_around(&real);
        for root in &roots {
            self.may_take(root, &real)?;
        }
        if found.nlink() > 1 {
            roots.extend(Project::find_root(self.project));
            for root in &roots {
                for other in names_of(root, found.dev(), found.ino()) {
                    self.may_take(root, &other)?;
                }
            }
        }
        Ok(())
    }

    /// Whether the caller may read a whole file below a project's root.
    fn may_take(&self, root: &Path, real: &Path) -> Result<(), SourceError> {
        let inside = real.strip_prefix(root).unwrap_or(real).to_string_lossy();
        let contract = Project::load_contract(root)?;
        let grant = contract
            .grant(self.actor)
            .map_err(ReadError::UnknownActor)?;
        let path = match ProjectPath::parse(&inside) {
            Ok(path) => path,
            Err(error @ BadPath::Reserved { .. }) => {
                copied_file(root, &inside)?.ok_or(ReadError::Path(error))?
            }
            // No rule or pointer can name this path, so it is not memory. A role may still read
            // only what its pointers cover.
            Err(_) if grant.role.is_none() => return Ok(()),
            Err(error) => return Err(ReadError::Path(error).into()),
        };
        let denied = |denial: Denial| match contract.rule(&path) {
            Some(_) => ReadError::Denied(denial).into(),
            None => SourceError::NoRule(denial),
        };
        match grant
            .may_read(&path, &contract.actor_binding(self.actor))
            .map_err(denied)?
        {
            Readable::Whole => Ok(()),
            Readable::Sections(sections) => Err(ReadError::OnlySections { path, sections }.into()),
        }
    }
}

/// Opens a file that has an end. Reading a named pipe would wait for a writer, and a device may
/// never end. The pipe of a shell (`--file <(command)`) already has a writer.
fn open(place: &Path) -> io::Result<File> {
    let opened = File::from(rustix::fs::open(
        place,
        OFlags::RDONLY | OFlags::NONBLOCK | OFlags::CLOEXEC,
        Mode::empty(),
    )?);
    let found = opened.metadata()?;
    let kind = found.file_type();
    let is_named = || {
        std::fs::read_link(format!("/proc/self/fd/{}", opened.as_raw_fd()))
            .is_ok_and(|real| real.is_absolute())
    };
    let is_empty_device = found.rdev() == rustix::fs::makedev(1, 3);
    let what = match () {
        () if kind.is_fifo() && is_named() => "is a named pipe",
        () if kind.is_char_device() && !is_empty_device && !opened.is_terminal()
            || kind.is_block_device() =>
        {
            "is a device"
        }
        () => {
            rustix::fs::fcntl_setfl(&opened, OFlags::empty())?;
            return Ok(opened);
        }
    };
    Err(io::Error::new(
        io::ErrorKind::InvalidInput,
        format!("it {what}, not a file"),
    ))
}

/// The memory file of a conflict copy. `quipu status` offers the copy to actors that may read that
/// file.
fn copied_file(root: &Path, inside: &str) -> Result<Option<ProjectPath>, SourceError> {
    if !inside.starts_with(".quipu/conflicts/") {
        return Ok(None);
    }
    let conflicts = Project::open(root, Options::default())?.store.conflicts()?;
    let found = conflicts
        .into_iter()
        .find(|conflict| conflict.kept == inside);
    Ok(found.and_then(|conflict| ProjectPath::parse(&conflict.path?).ok()))
}

/// All projects that contain a file. There may be several: a contract in a subfolder must not
/// remove its files from the outer project.
fn roots_around(real: &Path) -> BTreeSet<PathBuf> {
    let is_root = |folder: &&Path| {
        folder.join("quipu.toml").symlink_metadata().is_ok() || Store::has_history(folder)
    };
    real.ancestors()
        .skip(1)
        .filter(is_root)
        .map(Path::to_owned)
        .collect()
}

/// Finds the hard links of a file below a folder. Symbolic links are not followed.
fn names_of(folder: &Path, device: u64, inode: u64) -> Vec<PathBuf> {
    let mut names = Vec::new();
    for entry in std::fs::read_dir(folder).into_iter().flatten().flatten() {
        let Ok(kind) = entry.file_type() else {
            continue;
        };
        if kind.is_dir() {
            names.extend(names_of(&entry.path(), device, inode));
        } else if entry.ino() == inode && entry.metadata().is_ok_and(|found| found.dev() == device)
        {
            names.push(entry.path());
        }
    }
    names
}

/// Removes the suffix that the kernel adds to the path of a deleted file.
fn without_deleted(path: &Path) -> PathBuf {
    path.to_str()
        .and_then(|text| text.strip_suffix(" (deleted)"))
        .map_or_else(|| path.to_owned(), PathBuf::from)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_never_ends_is_no_source() {
        let folder = tempfile::tempdir().unwrap();
        let (pipe, file) = (folder.path().join("pipe"), folder.path().join("file"));
        rustix::fs::mkfifoat(rustix::fs::CWD, &pipe, Mode::RUSR | Mode::WUSR).unwrap();
        std::fs::write(&file, "text").unwrap();
        std::os::unix::fs::symlink(&pipe, folder.path().join("link")).unwrap();
        let sources = Sources::of(&Actor::Person, folder.path());
        let read = |place: &Path| {
            sources
                .read(place, place)
                .map_err(|error| error.to_string())
        };
        assert_eq!(read(&file).unwrap(), b"text");
        assert_eq!(read(Path::new("/dev/null")).unwrap(), b"");
        for (place, what) in [
            (pipe.as_path(), "a named pipe"),
            (&folder.path().join("link"), "a named pipe"),
            (Path::new("/dev/zero"), "a device"),
        ] {
            assert!(
                read(place)
                    .unwrap_err()
                    .ends_with(&format!("it is {what}, not a file")),
                "{}",
                place.display()
            );
        }
        // The pipe of a shell has no name and is read to its end, even if its writer is slow.
        let mut child = std::process::Command::new("sh")
            .args(["-c", "sleep 0.1; echo late"])
            .stdout(std::process::Stdio::piped())
            .spawn()
            .unwrap();
        let pipe = child.stdout.take().unwrap();
        assert_eq!(
            read(Path::new(&format!("/dev/fd/{}", pipe.as_raw_fd()))).unwrap(),
            b"late\n"
        );
        child.wait().unwrap();
    }
}
