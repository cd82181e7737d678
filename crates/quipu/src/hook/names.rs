//! Judges shell commands that are only partly known: files that a pattern may name, files that git
//! lists, and unknown targets.
//!
//! If the set of files is unknown, every file that may be in it is checked. `verdict.rs` judges
//! each single file.

use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::rc::Rc;

use quipu_contract::{Fail, ProjectPath, RESERVED};
use quipu_protocol::{Project, UntrustedRepository};

use super::shell::{How, Piece, Word, shown};
use super::verdict::{Judge, judged_files, resolve};
use crate::answer::{Failure, exit};

impl Judge<'_> {
    /// Checks every existing file that the word may name.
    pub(super) fn refusal_of_name(
        &mut self,
        cwd: &Path,
        how: How,
        name: &Word,
    ) -> Result<Option<Failure>, Failure> {
        if let Some(text) = name.text() {
            return match std::fs::symlink_metadata(cwd.join(&text)) {
                Ok(found) if !found.is_dir() || how == How::Remove => {
                    self.refusal(cwd, &how.to(text.into()))
                }
                _ => Ok(None),
            };
        }
        let word = shown(name);
        let name = absolute(cwd, name);
        let Ok(root) =
            Project::find_root(cwd).or_else(|_| Project::find_root(Path::new(&folder_of(&name))))
        else {
            return Ok(None);
        };
        let root = std::fs::canonicalize(&root).unwrap_or(root);
        let own = root.join(RESERVED[0]);
        let reserved = || Ok(ProjectPath::parse(RESERVED[0]).err().map(Failure::from));
        if names_folder(&name, RESERVED[0]) || Path::new(&folder_of(&name)).starts_with(&own) {
            return reserved();
        }
        let removes_project =
            || root.ancestors().any(|place| name.matches(place)) && !name.0.contains(&Piece::Any);
        if how == How::Remove && removes_project() {
            return reserved();
        }
        // An unknown value may be anything. Only a known file name, or a folder of the project,
        // shows that memory is the target.
        let is_inside = resolve(Path::new(&folder_of(&name)))
            .strip_prefix(&root)
            .is_ok_and(|rest| !rest.as_os_str().is_empty());
        if !name.tells_a_name() && !is_inside {
            return self.refusal_of_unknown(cwd, &word);
        }
        if how == How::Remove && name.matches(&own) {
            return reserved();
        }
        for path in self.files_of(&root)?.iter() {
            let place = root.join(path.as_str());
            // Removing a folder removes the files in it.
            let is_meant = match how {
                How::Remove => place
                    .ancestors()
                    .take_while(|place| *place != root)
                    .any(|place| name.matches(place)),
                _ => name.matches(&place),
            };
            if is_meant && let Some(refusal) = self.refusal(cwd, &how.to(place))? {
                return Ok(Some(refusal));
            }
        }
        Ok(None)
    }

    fn files_of(&mut self, root: &Path) -> Result<Rc<Vec<ProjectPath>>, Failure> {
        if let Some(files) = self.files.get(root) {
            return Ok(files.clone());
        }
        let files = Rc::new(judged_files(&*self.project(root)?)?);
        self.files.insert(root.to_owned(), files.clone());
        Ok(files)
    }

    /// Checks the files that a git command would change or remove. If git cannot list them, checks
    /// all files.
    pub(super) fn refusal_of_listed(
        &mut self,
        folder: &Path,
        how: How,
        listing: &[String],
    ) -> Result<Option<Failure>, Failure> {
        let Ok(root) = Project::find_root(folder) else {
            return Ok(None);
        };
        let repository = UntrustedRepository::find(folder);
        let is_bare = folder
            .ancestors()
            .take_while(|above| above.starts_with(&root))
            .any(is_bare_repository);
        if repository.is_none() && !is_bare {
            return Ok(None);
        }
        let places = match repository
            .filter(|_| !is_bare)
            .and_then(|repository| listed(&repository, folder, listing))
        {
            Some(places) => places,
            None => self
                .files_of(&root)?
                .iter()
                .map(|path| root.join(path.as_str()))
                .filter(|place| place.is_file())
                .collect(),
        };
        for place in places {
            if let Some(refusal) = self.refusal(folder, &how.to(place))? {
                return Ok(Some(refusal));
            }
        }
        Ok(None)
    }

    /// Denies a command that is too complex to judge. No ordinary command is like this, and it may
    /// hide something.
    pub(super) fn refusal_of_too_much(&self, cwd: &Path, what: &str) -> Option<Failure> {
        Project::find_root(cwd)
            .or_else(|_| Project::find_root(&self.session.folder))
            .ok()?;
        Some(Failure::new(
            exit::REFUSED,
            format!("this call cannot be checked: {what}"),
            "split it into smaller commands",
        ))
    }

    /// Allows an unknown target, unless the contract requires that every target is known
    /// beforehand.
    pub(super) fn refusal_of_unknown(
        &mut self,
        cwd: &Path,
        word: &str,
    ) -> Result<Option<Failure>, Failure> {
        let Ok(root) = Project::find_root(cwd) else {
            return Ok(None);
        };
        let what = format!(
            "the command does not show which file `{word}` is, and the contract says: hooks fail \
             = \"closed\""
        );
        let is_closed = self.project(&root)?.contract.hook_fail == Fail::Closed;
        Ok(is_closed.then(|| {
            Failure::new(
                exit::REFUSED,
                what,
                "name the file literally in the command",
            )
        }))
    }
}

fn listed(
    repository: &UntrustedRepository,
    folder: &Path,
    listing: &[String],
) -> Option<Vec<PathBuf>> {
    let (command, rest) = listing.split_first()?;
    let mut arguments = vec![command.as_str()];
    match command.as_str() {
        // Without this option, it prints paths relative to the folder.
        "ls-files" => arguments.push("--full-name"),
        // Otherwise it would run a process in each submodule that reads the submodule's
        // configuration.
        "diff" => arguments.push("--ignore-submodules=all"),
        _ => {}
    }
    arguments.extend(rest.iter().map(String::as_str));
    let listed = repository.stand_in()?.read(folder, &arguments)?;
    let files = listed
        .split(|byte| *byte == 0)
        .filter(|file| !file.is_empty());
    Some(
        files
            .map(|file| repository.top().join(OsStr::from_bytes(file)))
            .collect(),
    )
}

/// Whether git would treat a folder as a repository without a `.git`. Its configuration may name
/// any work tree.
fn is_bare_repository(folder: &Path) -> bool {
    folder.join("HEAD").is_file() && folder.join("objects").is_dir()
}

/// The word as an absolute path, with its known part resolved.
fn absolute(cwd: &Path, name: &Word) -> Word {
    let name = name.within(&Word::plain(&cwd.to_string_lossy()));
    let folder = folder_of(&name);
    let rest = name.0[folder.chars().count()..].to_vec();
    // `..` after an unknown part may lead anywhere.
    if rest
        .windows(3)
        .any(|three| three == [Piece::Char('/'), Piece::Char('.'), Piece::Char('.')])
    {
        let last = name.file_name();
        return Word([&[Piece::Any, Piece::Char('/')], &last.0[..]].concat());
    }
    let rest: Vec<Piece> = rest
        .into_iter()
        .skip_while(|piece| *piece == Piece::Char('/'))
        .collect();
    if name.0.first() == Some(&Piece::Any) {
        return name;
    }
    let real = resolve(Path::new(&folder));
    let mut pieces = Word::plain(real.to_string_lossy().trim_end_matches('/')).0;
    pieces.push(Piece::Char('/'));
    pieces.extend(rest);
    Word(pieces)
}

/// The folder in the known beginning of a path.
fn folder_of(name: &Word) -> String {
    let text = name.beginning();
    text.rfind('/')
        .map_or_else(String::new, |slash| text[..slash].to_owned())
}

/// Whether the path contains a folder of this name.
fn names_folder(name: &Word, folder: &str) -> bool {
    name.0
        .split(|piece| *piece == Piece::Char('/'))
        .any(|part| Word(part.to_vec()).text().as_deref() == Some(folder))
}
