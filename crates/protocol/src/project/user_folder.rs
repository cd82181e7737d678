//! The user's folder for data that Quipu stores outside projects: `$XDG_STATE_HOME/quipu`, or
//! `~/.local/state/quipu`.

use std::io;
use std::path::PathBuf;

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
