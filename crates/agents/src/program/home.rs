//! The private home of an agent: `HOME` and `TMPDIR` of its program, deleted when the work is over.
//!
//! Quipu writes here for a host's table, from outside the sandbox, and the agent controls the
//! folder between two turns. So every path stays below the home, no link is followed, and every
//! file is written as a new file.

use crate::beneath::{self, Unread, parse_relative};
use rustix::fs::{Mode, OFlags};
use rustix::io::Errno;
use serde_json::Value;
use std::fs::{File, OpenOptions, Permissions};
use std::io::{self, Read};
use std::os::unix::fs::{DirBuilderExt, MetadataExt, OpenOptionsExt, PermissionsExt};
use std::path::{Path, PathBuf};
use tempfile::TempDir;

/// Largest file of the agent's home that Quipu reads back, to merge a host's settings into it.
const LARGEST_SETTINGS: u64 = 16 << 20;

/// Prefix of private homes in the folder for temporary files.
const PREFIX: &str = "quipu-run-";
/// The lock file in such a folder, held while the agent runs.
const LOCK: &str = "lock";

/// A home that only one agent uses.
pub struct PrivateHome {
    root: TempDir,
    // Held as long as this process uses the home; the kernel releases it if the process is killed.
    _lock: File,
    home: PathBuf,
    tmp: PathBuf,
}

impl PrivateHome {
    pub fn make() -> io::Result<Self> {
        Self::make_in(&std::env::temp_dir())
    }

    fn make_in(folder: &Path) -> io::Result<Self> {
        delete_abandoned(folder);
        let private = Permissions::from_mode(0o700);
        let root = tempfile::Builder::new()
            .prefix(PREFIX)
            .permissions(private)
            .tempdir_in(folder)?;
        // The sandbox rules and the program must use the same real path.
        let real = root.path().canonicalize()?;
        let (home, tmp) = (real.join("home"), real.join("tmp"));
        for folder in [&home, &tmp] {
            std::fs::DirBuilder::new().mode(0o700).create(folder)?;
        }
        // The lock gets its name only after it is held, because an unlocked lock file marks an
        // abandoned home.
        let lock = File::create_new(real.join("starting"))?;
        lock.lock()?;
        std::fs::rename(real.join("starting"), real.join(LOCK))?;
        Ok(PrivateHome {
            root,
            _lock: lock,
            home,
            tmp,
        })
    }

    /// The folder that holds both the home and the temporary files.
    pub fn root(&self) -> &Path {
        self.root.path()
    }

    pub fn home(&self) -> &Path {
        &self.home
    }

    pub fn tmp(&self) -> &Path {
        &self.tmp
    }

    /// Copies files and folders from the caller's home, at most `bound` bytes. Missing ones are
    /// skipped.
    pub fn bring(&self, from: &Path, paths: &[String], bound: u64) -> io::Result<()> {
        let mut left = bound;
        for path in paths {
            let relative = parse_relative(Path::new(path)).ok_or_else(|| leaves_home(path))?;
            let named = |why: io::Error| io::Error::new(why.kind(), format!("`{path}`: {why}"));
            self.copy(&from.join(&relative), &relative, &mut left)
                .map_err(named)?;
        }
        Ok(())
    }

    /// Copies one file or folder. Links to files are followed. A link to a folder inside a folder
    /// is skipped, because it may lead back.
    fn copy(&self, from: &Path, to: &Path, left: &mut u64) -> io::Result<()> {
        let meta = match std::fs::metadata(from) {
            Ok(meta) => meta,
            Err(why) if why.kind() == io::ErrorKind::NotFound => return Ok(()),
            Err(why) => return Err(why),
        };
        if meta.is_file() {
            return self.copy_file(from, to, left);
        }
        if !meta.is_dir() {
            return Ok(());
        }
        if self.home.starts_with(from.canonicalize()?) {
            return Err(io::Error::other(
                "the folder contains the private home that it would be copied into; name single \
                 files in it instead",
            ));
        }
        for entry in std::fs::read_dir(from)? {
            let entry = entry?;
            let link_to_folder = entry.file_type()?.is_symlink() && entry.path().is_dir();
            if !link_to_folder {
                self.copy(&entry.path(), &to.join(entry.file_name()), left)?;
            }
        }
        Ok(())
    }

    /// Copies to a new file, so the target cannot be the source. An existing target is kept.
    fn copy_file(&self, from: &Path, to: &Path, left: &mut u64) -> io::Result<()> {
        // Without NONBLOCK, a fifo that replaced the file meanwhile would block this call forever.
        let source = OpenOptions::new()
            .read(true)
            .custom_flags(OFlags::NONBLOCK.bits() as i32)
            .open(from)?;
        let meta = source.metadata()?;
        if !meta.is_file() {
            return Ok(());
        }
        let mode = Mode::from_raw_mode(meta.permissions().mode() as _) & Mode::RWXU;
        let mut target: File =
            match beneath::create_new(&self.home, to, mode | Mode::RUSR | Mode::WUSR) {
                Err(Errno::EXIST) => return Ok(()),
                other => other.map_err(|why| beneath::explain(why.into()))?,
            };
        let copied = io::copy(&mut source.take(left.saturating_add(1)), &mut target)?;
        *left = left.checked_sub(copied).ok_or_else(|| {
            io::Error::other("more than the private home may contain (`home_mib`)")
        })?;
        Ok(())
    }

    /// Writes a file below the home. JSON is merged into existing JSON: the host's settings into
    /// the user's.
    pub fn write(&self, path: &str, text: &str) -> io::Result<PathBuf> {
        let relative = parse_relative(Path::new(path)).ok_or_else(|| leaves_home(path))?;
        let joined = self
            .read(&relative)?
            .and_then(|below| join_json(&below, text));
        let text = joined.as_deref().unwrap_or(text);
        beneath::replace(
            &self.home,
            &relative,
            text.as_bytes(),
            Mode::RUSR | Mode::WUSR,
        )
        .map_err(beneath::explain)?;
        Ok(self.home.join(relative))
    }

    fn read(&self, relative: &Path) -> io::Result<Option<String>> {
        let file = match beneath::open(&self.home, relative, OFlags::RDONLY, Mode::empty()) {
            Ok(file) => file,
            Err(Errno::NOENT) => return Ok(None),
            // The kernel also answers this for a link on the way; the later write reports the link.
            Err(Errno::NOTDIR) => return Ok(None),
            Err(why) => return Err(beneath::explain(why.into())),
        };
        match beneath::read(file, LARGEST_SETTINGS) {
            Ok(bytes) => Ok(String::from_utf8(bytes).ok()),
            Err(Unread::NotAFile) => Err(io::Error::other("it is no longer a regular file")),
            Err(Unread::TooLong) => Err(io::Error::other(format!(
                "it has more than {LARGEST_SETTINGS} bytes"
            ))),
            Err(Unread::Io(why)) => Err(why),
        }
    }
}

/// Deletes the home, which may hold a copy of a login, even if the agent removed its own
/// permissions.
impl Drop for PrivateHome {
    fn drop(&mut self) {
        delete(self.root.path());
    }
}

/// Deletes the homes left by killed processes.
fn delete_abandoned(folder: &Path) {
    let own = rustix::process::geteuid().as_raw();
    for entry in std::fs::read_dir(folder).into_iter().flatten().flatten() {
        let is_home = entry
            .file_name()
            .as_encoded_bytes()
            .starts_with(PREFIX.as_bytes());
        // Checks the entry itself, not a link's target, because other users can create files here.
        if !is_home
            || !entry
                .metadata()
                .is_ok_and(|meta| meta.is_dir() && meta.uid() == own)
        {
            continue;
        }
        let Ok(lock) = beneath::open(
            &entry.path(),
            Path::new(LOCK),
            OFlags::RDONLY,
            Mode::empty(),
        ) else {
            continue;
        };
        let lock = File::from(lock);
        if lock.try_lock().is_ok() {
            delete(&entry.path());
        }
    }
}

/// Deletes a home. Its lock file goes last, so that a later call finds a home that could not be
/// deleted now.
fn delete(root: &Path) {
    for folder in [root.join("home"), root.join("tmp"), root.to_path_buf()] {
        if std::fs::remove_dir_all(&folder).is_err() && folder.exists() {
            open_up(&folder);
            if std::fs::remove_dir_all(&folder).is_err() {
                return;
            }
        }
    }
}

/// Gives the owner permission to list and empty the folders. No process of the agent is left to
/// swap one.
fn open_up(folder: &Path) {
    let _ = std::fs::set_permissions(folder, Permissions::from_mode(0o700));
    for entry in std::fs::read_dir(folder).into_iter().flatten().flatten() {
        if entry.file_type().is_ok_and(|kind| kind.is_dir()) {
            open_up(&entry.path());
        }
    }
}

fn leaves_home(path: &str) -> io::Error {
    io::Error::other(format!("`{path}` is not a relative path without `..`"))
}

/// Merges one JSON object over another; `None` if either is not JSON.
fn join_json(below: &str, above: &str) -> Option<String> {
    let mut whole: Value = serde_json::from_str(below).ok()?;
    overlay(&mut whole, serde_json::from_str(above).ok()?);
    Some(whole.to_string())
}

fn overlay(below: &mut Value, above: Value) {
    match (below, above) {
        (Value::Object(known), Value::Object(more)) => {
            for (key, value) in more {
                overlay(known.entry(key).or_insert(Value::Null), value);
            }
        }
        (below, above) => *below = above,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::symlink;

    /// Creates a user's home with a login, and a private home beside or below it.
    fn homes(below: bool) -> (TempDir, PrivateHome) {
        let user = TempDir::new().unwrap();
        std::fs::create_dir_all(user.path().join(".host/deep")).unwrap();
        std::fs::write(user.path().join(".host/login"), "secret").unwrap();
        std::fs::set_permissions(
            user.path().join(".host/login"),
            Permissions::from_mode(0o644),
        )
        .unwrap();
        let home = if below {
            PrivateHome::make_in(user.path())
        } else {
            PrivateHome::make()
        };
        (user, home.unwrap())
    }

    fn bring(user: &TempDir, home: &PrivateHome, path: &str, bound: u64) -> Result<(), String> {
        let brought = home
            .bring(user.path(), &[path.to_string()], bound)
            .map_err(|why| why.to_string());
        assert_eq!(
            std::fs::read(user.path().join(".host/login")).unwrap(),
            b"secret"
        );
        assert_eq!(
            std::fs::metadata(user.path().join(".host/login"))
                .unwrap()
                .permissions()
                .mode()
                & 0o777,
            0o644
        );
        brought
    }

    #[test]
    fn a_login_is_copied_for_its_user_alone() {
        let (user, home) = homes(false);
        bring(&user, &home, ".host/login", 100).unwrap();
        bring(&user, &home, "no-such-file", 100).unwrap();
        let copied = home.home().join(".host/login");
        assert_eq!(std::fs::read(&copied).unwrap(), b"secret");
        assert_eq!(
            std::fs::metadata(&copied).unwrap().permissions().mode() & 0o777,
            0o600
        );
    }

    #[test]
    fn paths_that_leave_the_home_are_not_brought() {
        let (user, home) = homes(false);
        let whole = user.path().join(".host/login").display().to_string();
        for path in [whole.as_str(), "../x", ".host/../../x", ".", ""] {
            assert!(
                bring(&user, &home, path, 100)
                    .unwrap_err()
                    .contains("relative"),
                "{path}"
            );
        }
    }

    #[test]
    fn a_folder_is_copied_once_and_not_into_itself() {
        let (user, home) = homes(true);
        symlink(user.path(), user.path().join(".host/loop")).unwrap();
        symlink("../login", user.path().join(".host/deep/also")).unwrap();
        rustix::fs::mkfifoat(
            rustix::fs::CWD,
            user.path().join(".host/pipe"),
            Mode::RUSR | Mode::WUSR,
        )
        .unwrap();
        bring(&user, &home, ".host", 100).unwrap();
        bring(&user, &home, ".host/login", 100).unwrap();
        assert_eq!(
            std::fs::read(home.home().join(".host/deep/also")).unwrap(),
            b"secret"
        );
        assert!(
            !home.home().join(".host/loop").exists() && !home.home().join(".host/pipe").exists()
        );
        let holds = home
            .home()
            .parent()
            .unwrap()
            .file_name()
            .unwrap()
            .to_str()
            .unwrap()
            .to_string();
        assert!(
            bring(&user, &home, &holds, 1 << 20)
                .unwrap_err()
                .contains("contains the private home")
        );
    }

    #[test]
    fn more_than_the_home_may_hold_is_not_brought() {
        let (user, home) = homes(false);
        assert!(
            bring(&user, &home, ".host/login", 5)
                .unwrap_err()
                .contains("home_mib")
        );
    }

    #[test]
    fn homes_of_killed_runs_are_deleted_by_the_next() {
        let folder = TempDir::new().unwrap();
        let kept = TempDir::new().unwrap();
        let make = |name: &str, lock: bool| {
            let root = folder.path().join(format!("{PREFIX}{name}"));
            std::fs::create_dir_all(root.join("home/.host")).unwrap();
            std::fs::write(root.join("home/.host/login"), "secret").unwrap();
            if lock {
                std::fs::write(root.join(LOCK), "").unwrap();
            }
            root
        };
        let (abandoned, starting) = (make("abandoned", true), make("starting", false));
        std::fs::write(kept.path().join(LOCK), "").unwrap();
        symlink(kept.path(), folder.path().join(format!("{PREFIX}link"))).unwrap();
        let first = PrivateHome::make_in(folder.path()).unwrap();
        let second = PrivateHome::make_in(folder.path()).unwrap();
        assert!(!abandoned.exists());
        for live in [
            &starting,
            first.home(),
            second.home(),
            &kept.path().join(LOCK),
        ] {
            assert!(live.exists(), "{}", live.display());
        }
    }
}
