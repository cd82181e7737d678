//! The user's folder for data that Quipu stores outside projects: `$XDG_STATE_HOME/quipu`, or
//! `~/.local/state/quipu`.

use std::io::{self, Write};
use std::path::{Path, PathBuf};

use quipu_store::Version;
use serde::Serialize;

/// The path of the folder, whether or not it exists. None if the user has no home folder.
pub fn state_folder() -> Option<PathBuf> {
    let given = |name: &str| {
        std::env::var_os(name)
            .map(PathBuf::from)
            .filter(|path| path.is_absolute())
    };
    let state =
        given("XDG_STATE_HOME").or_else(|| given("HOME").map(|home| home.join(".local/state")))?;
    Some(state.join("quipu"))
}

/// Creates a subfolder that no other user can access.
pub fn make_state_folder(name: &str) -> io::Result<PathBuf> {
    let none = || {
        io::Error::new(
            io::ErrorKind::NotFound,
            "XDG_STATE_HOME and HOME are not set",
        )
    };
    let folder = state_folder().ok_or_else(none)?.join(name);
    let mut builder = std::fs::DirBuilder::new();
    builder.recursive(true);
    #[cfg(unix)]
    std::os::unix::fs::DirBuilderExt::mode(&mut builder, 0o700);
    builder.create(&folder)?;
    #[cfg(unix)]
    std::fs::set_permissions(&folder, std::os::unix::fs::PermissionsExt::from_mode(0o700))?;
    Ok(folder)
}

/// A project's real path, and its file in a subfolder of the state folder.
pub fn state_file(name: &str, root: &Path) -> io::Result<(PathBuf, PathBuf)> {
    let root = std::fs::canonicalize(root)?;
    let none = || {
        io::Error::new(
            io::ErrorKind::NotFound,
            "XDG_STATE_HOME and HOME are not set",
        )
    };
    let folder = state_folder().ok_or_else(none)?.join(name);
    let digest = Version::of(root.as_os_str().as_encoded_bytes());
    Ok((root, folder.join(format!("{digest}.json"))))
}

/// Writes a file of the state folder as JSON that no other user can read.
pub fn write_state(file: &Path, state: &impl Serialize) -> io::Result<()> {
    let text = serde_json::to_string_pretty(state).map_err(io::Error::other)? + "\n";
    let part = file.with_extension(format!("{}.part", std::process::id()));
    let mut options = std::fs::OpenOptions::new();
    options.write(true).create(true).truncate(true);
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
    let mut written = options.open(&part)?;
    written.write_all(text.as_bytes())?;
    written.sync_all()?;
    std::fs::rename(&part, file)
}
