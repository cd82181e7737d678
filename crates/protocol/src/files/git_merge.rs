//! The merge driver that git calls for append and state files.
//!
//! Git writes the three versions of a file to temporary files in the top folder of the work tree,
//! runs the driver there, and takes the result from the second one. The driver reads and writes
//! only these files, so that it cannot be used to replace a file past the contract.

use std::fs::File;
use std::io::{self, Read, Seek, Write};
use std::path::{Path, PathBuf};

use quipu_contract::{Actor, BadPath, Class, Form, Merged, ProjectPath, Way, merge_branches};
use quipu_store::{OpenFolder, Options, Store, StoreError, validate_merge};
use thiserror::Error;

use crate::project::open::{Project, ProjectError};

/// The prefix of git's temporary files; six letters or digits follow (`ll-merge.c`, `mkstemp`).
const TEMPORARY: &str = ".merge_file_";
const RANDOM_PART: usize = 6;

#[derive(Debug, Error)]
pub enum MergeError {
    #[error("agents may not use the merge driver: it would bypass the rules of their roles")]
    Agent,
    #[error("`{}` is not the top folder of a git work tree", .0.display())]
    NotTop(PathBuf),
    #[error("`{}` is not a temporary file of a git merge: {why}", file.display())]
    NotGits { file: PathBuf, why: String },
    #[error("`{path}` has class {}: the merge driver is for append and state files", class.as_str())]
    WrongClass { path: ProjectPath, class: Class },
    #[error(transparent)]
    Path(#[from] BadPath),
    #[error("cannot merge `{path}`: {source}")]
    Io { path: String, source: io::Error },
    #[error(transparent)]
    Project(#[from] ProjectError),
    #[error(transparent)]
    Store(#[from] StoreError),
}

/// The arguments of a merge driver: `%O %A %B %P`.
#[derive(Debug, Clone, Copy)]
pub struct MergeCall<'c> {
    /// The folder in which git runs the driver: the top of the work tree.
    pub top: &'c Path,
    pub base: &'c Path,
    /// Our version; the result replaces it.
    pub ours: &'c Path,
    pub theirs: &'c Path,
    /// The file's path from the top of the work tree.
    pub path: &'c str,
    pub now: &'c str,
}

/// Merges one file for git and writes the result to git's temporary file. On an error, nothing is
/// written, and git reports a conflict.
pub fn merge_for_git(
    actor: &Actor,
    call: MergeCall<'_>,
    theirs_is_newer: impl Fn(&Path) -> bool,
) -> Result<Merged, MergeError> {
    if *actor != Actor::Person {
        return Err(MergeError::Agent);
    }
    let in_repository = ProjectPath::parse(call.path)?;
    let top = call.top.canonicalize().map_err(|source| MergeError::Io {
        path: call.path.to_owned(),
        source,
    })?;
    if top.join(".git").symlink_metadata().is_err() {
        return Err(MergeError::NotTop(top));
    }
    let [mut base, mut ours, mut theirs] =
        open_temporary_files(&top, [call.base, call.ours, call.theirs])?;

    let root = Project::find_root(&nearest_folder(&top, &in_repository))?;
    let contract = Project::load_contract(&root)?;
    let prefix = root
        .strip_prefix(&top)
        .map_err(|_| MergeError::NotTop(top.clone()))?;
    let path = Path::new(call.path)
        .strip_prefix(prefix)
        .ok()
        .and_then(Path::to_str)
        .unwrap_or(call.path);
    let path = ProjectPath::parse(path)?;
    let class = contract.class(&path);
    if !matches!(class, Class::Append | Class::State) {
        return Err(MergeError::WrongClass { path, class });
    }

    let io = |source| MergeError::Io {
        path: call.path.to_owned(),
        source,
    };
    let read = |file: &mut File| -> io::Result<String> {
        let mut text = String::new();
        file.read_to_string(&mut text).map(|_| text)
    };
    let (base, our_text, their_text) = (
        read(&mut base).map_err(io)?,
        read(&mut ours).map_err(io)?,
        read(&mut theirs).map_err(io)?,
    );
    let form = contract.rule(&path).and_then(|rule| rule.form);
    // Only a world file depends on which branch is newer.
    let theirs_is_newer = form == Some(Form::World) && theirs_is_newer(&root);
    let way = Way {
        class,
        form,
        path: path.as_str(),
        now: call.now,
        theirs_is_newer,
    };
    let merged = merge_branches(way, &base, &our_text, &their_text);

    validate_merge(
        &contract,
        &path,
        our_text.as_bytes(),
        merged.text.as_bytes(),
    )?;
    if Store::has_history(&root) {
        Project::open(&root, Options::default())?
            .store
            .check_lease_of(&path)?;
    }
    replace_text(&mut ours, &merged.text).map_err(io)?;
    Ok(merged)
}

/// The folder of the file, or its nearest existing ancestor.
fn nearest_folder(top: &Path, path: &ProjectPath) -> PathBuf {
    let file = top.join(path.as_str());
    let folder = file
        .ancestors()
        .skip(1)
        .find(|folder| folder.is_dir())
        .unwrap_or(top);
    folder.to_owned()
}

fn open_temporary_files(top: &Path, names: [&Path; 3]) -> Result<[File; 3], MergeError> {
    let refuse = |file: &Path, why: String| MergeError::NotGits {
        file: file.to_owned(),
        why,
    };
    let folder = OpenFolder::open(top)
        .ok()
        .flatten()
        .ok_or_else(|| MergeError::NotTop(top.to_owned()))?;
    let open = |named: &Path| {
        let name = named.to_str().filter(|name| is_temporary_name(name));
        let name = name.ok_or_else(|| {
            refuse(
                named,
                format!("its name must be {TEMPORARY}XXXXXX, without a folder"),
            )
        })?;
        folder
            .open_single(name)
            .map_err(|error| refuse(named, error.to_string()))
    };
    let [base, ours, theirs] = names;
    if base == ours || ours == theirs {
        return Err(refuse(ours, "git passes three different files".into()));
    }
    Ok([open(base)?, open(ours)?, open(theirs)?])
}

fn is_temporary_name(name: &str) -> bool {
    name.strip_prefix(TEMPORARY).is_some_and(|rest| {
        rest.len() == RANDOM_PART && rest.bytes().all(|b| b.is_ascii_alphanumeric())
    })
}

/// Writes through the open file, so that no other file can take its place between the check and the
/// write.
fn replace_text(file: &mut File, text: &str) -> io::Result<()> {
    file.rewind()?;
    file.set_len(0)?;
    file.write_all(text.as_bytes())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_names_that_git_makes() {
        assert!(is_temporary_name(".merge_file_aB3xYz"));
        for other in [
            ".merge_file_",
            ".merge_file_x",
            ".merge_file_abcdefg",
            ".merge_file_a/b.cd",
            "a/.merge_file_aB3xYz",
            "quipu.toml",
        ] {
            assert!(!is_temporary_name(other), "{other}");
        }
    }
}
