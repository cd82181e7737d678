//! Imports a folder of notes or a single file, each file unchanged.
//!
//! Hidden files, links, contracts and files over 8 MiB are left out, each with a reason.

use std::fs;
use std::path::Path;

use quipu_contract::ProjectPath;

use super::error::ImportError;
use super::source::{Piece, Taken};
use crate::files::source_file::Sources;

/// Larger files are data, not memory.
pub(super) const LARGEST: u64 = 8 << 20;

/// The reason why a `quipu.toml` is not imported.
const CONTRACT: &str = "a contract: its rules would replace the rules of this project";

pub(super) fn take(
    place: &Path,
    except: &Path,
    sources: Sources<'_>,
) -> Result<Taken, ImportError> {
    let mut taken = Taken::default();
    sources.check_absent(place)?;
    let kind = fs::metadata(place).map_err(ImportError::unreadable(place))?;
    if kind.is_file() {
        let name = place
            .file_name()
            .and_then(|n| n.to_str())
            .unwrap_or("note.md");
        if ProjectPath::parse(name).is_ok_and(|path| path.begins_a_project()) {
            taken.leave_out(name.to_owned(), CONTRACT);
            return Ok(taken);
        }
        taken
            .pieces
            .push(Piece::of_file(name, sources.read(place, place)?));
        return Ok(taken);
    }
    below(place, "", except, sources, &mut taken)?;
    Ok(taken)
}

/// Visits files in the order of names, so that the same folder always gives the same pieces.
pub(super) fn below(
    folder: &Path,
    prefix: &str,
    except: &Path,
    sources: Sources<'_>,
    taken: &mut Taken,
) -> Result<(), ImportError> {
    let entries = fs::read_dir(folder).map_err(ImportError::unreadable(folder))?;
    let mut entries: Vec<_> = entries
        .collect::<Result<_, _>>()
        .map_err(ImportError::unreadable(folder))?;
    entries.sort_by_key(fs::DirEntry::file_name);
    for entry in entries {
        let path = entry.path();
        let told = entry.file_name();
        let name = format!("{prefix}{}", told.to_string_lossy());
        let kind = entry.file_type().map_err(ImportError::unreadable(&path))?;
        if told.to_str().is_none() {
            taken.leave_out(name, "its name is not valid UTF-8");
        } else if told.to_string_lossy().starts_with('.') {
            taken.leave_out(name, "hidden: settings, not memory");
        } else if kind.is_symlink() {
            taken.leave_out(name, "a link");
        } else if kind.is_dir() {
            if fs::canonicalize(&path).is_ok_and(|real| real == except) {
                taken.leave_out(name, "the target folder of this import");
            } else {
                below(&path, &format!("{name}/"), except, sources, taken)?;
            }
        } else if ProjectPath::parse(&name).is_ok_and(|path| path.begins_a_project()) {
            taken.leave_out(name, CONTRACT);
        } else if !kind.is_file() {
            taken.leave_out(name, "not a file");
        } else if !sources.sees(&path)? {
            // Nor is its name for the caller.
        } else if entry
            .metadata()
            .map_err(ImportError::unreadable(&path))?
            .len()
            > LARGEST
        {
            taken.leave_out(name, "larger than 8 MiB");
        } else {
            taken
                .pieces
                .push(Piece::of_file(&name, sources.read(&path, &path)?));
        }
    }
    Ok(())
}
