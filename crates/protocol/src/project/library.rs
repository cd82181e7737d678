//! The available profiles: built into the program, or in a folder of the project.
//!
//! In a profile folder of the project, no link is followed.

use std::borrow::Cow;
use std::path::{Path, PathBuf};

use include_dir::{Dir, include_dir};
use quipu_contract::{Language, ProfileFile, ProjectPath, Source, unknown};
use quipu_store::OpenFolder;

/// The contract files of built-in profiles, parsed at build time, by `PROFILE/FILE`.
static PRECOMPILED: &[(&str, &[u8])] = include!(concat!(env!("OUT_DIR"), "/precompiled.rs"));

static BUILT_IN: Dir<'_> = include_dir!("$CARGO_MANIFEST_DIR/../../profiles");

/// Finds profiles.
#[derive(Debug, Clone)]
pub struct Library {
    root: PathBuf,
}

/// A profile in a listing.
#[derive(Debug, Clone, serde::Serialize)]
pub struct ProfileSummary {
    pub name: String,
    pub about: String,
}

/// A file of a profile that exists but is not readable text.
#[derive(Debug, thiserror::Error)]
#[error("`{file}` {what}")]
pub struct Unreadable {
    pub file: String,
    pub what: String,
}

impl Library {
    /// Profiles with a `/` in their name are folders below `root`.
    pub fn of(root: &Path) -> Library {
        Library {
            root: root.to_owned(),
        }
    }

    pub fn built_in() -> Vec<String> {
        let mut names: Vec<String> = BUILT_IN
            .dirs()
            .filter_map(|d| d.path().file_name())
            .map(|n| n.to_string_lossy().into_owned())
            .collect();
        names.sort();
        names
    }

    pub fn is_folder(name: &str) -> bool {
        name.contains('/')
    }

    /// Loads a contract file of a profile, with the name that messages show.
    pub fn load(&self, name: &str, file: &str) -> Result<Source, String> {
        let text = match Self::is_folder(name) {
            true => self
                .find(name, file)
                .map_err(|unreadable| unreadable.to_string())?
                .map(Cow::Owned),
            false => built_in(name, file).map(Cow::Borrowed),
        };
        match text {
            Some(text) => Ok(Source::compiled(
                Self::shown(name, file),
                text,
                precompiled(name, file),
            )),
            None if Self::is_folder(name) => Err(format!("no file `{name}/{file}`")),
            None if Self::built_in().iter().any(|n| n == name) => {
                Err(format!("profile `{name}` has no file `{file}`"))
            }
            None => {
                let what = unknown("profile", name, Self::built_in().iter().map(String::as_str));
                let folder = if what.ends_with('?') {
                    ""
                } else {
                    "; write a folder as ./NAME"
                };
                Err(format!("{what}{folder}"))
            }
        }
    }

    /// The name of a profile's file in messages.
    pub(crate) fn shown(name: &str, file: &str) -> String {
        match Self::is_folder(name) {
            true => format!(
                "{}/{file}",
                name.trim_start_matches("./").trim_end_matches('/')
            ),
            false => format!("profiles/{name}/{file}"),
        }
    }

    /// Reads any file of a profile.
    pub fn read(&self, name: &str, file: &str) -> Option<String> {
        self.find(name, file).ok()?
    }

    /// Reads an optional file. A file that exists but cannot be read is an error.
    pub fn find(&self, name: &str, file: &str) -> Result<Option<String>, Unreadable> {
        if !Self::is_folder(name) {
            return Ok(built_in(name, file).map(str::to_owned));
        }
        let shown = Self::shown(name, file);
        let unreadable = |what: String| Unreadable {
            file: shown.clone(),
            what,
        };
        let path = ProjectPath::parse(&shown)
            .map_err(|error| unreadable(format!("is not a valid path in a profile: {error}")))?;
        // No link is followed, neither the folder nor its content.
        match OpenFolder::read_in(&self.root, path.as_str()) {
            Ok(Some(bytes)) => String::from_utf8(bytes)
                .map(Some)
                .map_err(|_| unreadable("is not UTF-8".to_owned())),
            Ok(None) => Ok(None),
            Err(error) => Err(unreadable(format!("cannot be read: {error}"))),
        }
    }

    pub fn files(name: &str) -> Vec<(String, String)> {
        fn walk(dir: &Dir<'_>, found: &mut Vec<(String, String)>, prefix: &str) {
            for file in dir.files() {
                if let (Ok(path), Some(text)) =
                    (file.path().strip_prefix(prefix), file.contents_utf8())
                {
                    found.push((path.to_string_lossy().into_owned(), text.to_owned()));
                }
            }
            dir.dirs().for_each(|d| walk(d, found, prefix));
        }
        let mut found = Vec::new();
        if let Some(dir) = BUILT_IN.get_dir(name) {
            walk(dir, &mut found, name);
        }
        found.sort();
        found
    }

    /// The built-in profiles with their descriptions.
    pub fn summaries(language: Language) -> Vec<ProfileSummary> {
        Self::built_in()
            .into_iter()
            .map(|name| {
                let file = Library {
                    root: PathBuf::new(),
                }
                .load(&name, "profile.toml")
                .ok()
                .and_then(|source| source.parse::<ProfileFile>().ok());
                let about = file.and_then(|file| file.about).unwrap_or_default();
                ProfileSummary {
                    name,
                    about: about.in_language(language).to_owned(),
                }
            })
            .collect()
    }
}

/// Finds a file from folder to folder. `Dir::get_file` compares the path with every file of every
/// profile, which every command would feel.
fn built_in(name: &str, file: &str) -> Option<&'static str> {
    let path = format!("{name}/{file}");
    let mut folder = &BUILT_IN;
    loop {
        let is_wanted = |at: &Path| at.as_os_str() == path.as_str();
        if let Some(found) = folder.files().find(|file| is_wanted(file.path())) {
            return found.contents_utf8();
        }
        let leads = |at: &Path| {
            let rest = at.to_str().and_then(|at| path.strip_prefix(at));
            rest.is_some_and(|rest| rest.starts_with('/'))
        };
        folder = folder.dirs().find(|dir| leads(dir.path()))?;
    }
}

fn precompiled(name: &str, file: &str) -> Option<&'static [u8]> {
    let found = PRECOMPILED
        .iter()
        .find(|(path, _)| path.split_once('/') == Some((name, file)))?;
    Some(found.1)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_precompiled_profile_says_what_its_text_says() {
        let library = Library::of(Path::new("."));
        for (path, _) in PRECOMPILED {
            let (name, file) = path.split_once('/').unwrap();
            let source = library.load(name, file).unwrap();
            assert!(source.precompiled.is_some());
            let (parsed, precompiled): (ProfileFile, ProfileFile) = (
                toml::from_str(&source.text).unwrap(),
                source.parse().unwrap(),
            );
            assert_eq!(
                format!("{precompiled:#?}"),
                format!("{parsed:#?}"),
                "{path}"
            );
        }
        let files: usize = Library::built_in()
            .iter()
            .map(|name| {
                Library::files(name)
                    .iter()
                    .filter(|(f, _)| f.ends_with(".toml"))
                    .count()
            })
            .sum();
        assert_eq!(
            PRECOMPILED.len(),
            files,
            "every contract file is precompiled"
        );
    }
}
