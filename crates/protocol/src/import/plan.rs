//! Decides what happens to each piece of an import, and commits all of them at once.
//!
//! A file that was changed after its import is never overwritten.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use quipu_contract::{Act as Deed, Actor, ProjectPath, find_credentials};
use quipu_store::{Change, Expect, LeaseToken, Receipt, Version};
use serde::Serialize;
use serde_json::{Value, json};

use super::error::ImportError;
use super::provenance::with_provenance;
use super::source::{ImportSource, Piece};
use crate::files::read::may_read_whole;
use crate::files::source_file::Sources;
use crate::project::open::Project;

#[derive(Debug)]
pub struct Import<'a> {
    pub source: ImportSource,
    pub place: &'a Path,
    /// The source as the caller wrote it, for the journal.
    pub told: &'a str,
    /// The target folder in the project.
    pub into: &'a str,
    pub dry_run: bool,
    /// Import even if a text looks like a placeholder.
    pub force: bool,
    pub lease: Option<LeaseToken>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Act {
    /// The file did not exist.
    New,
    /// The source has changed and the copy has not: the copy is replaced.
    Renewed,
    /// It was imported before, or the same text already exists.
    Known,
    /// Another text exists at its path, or the contract keeps the older one: nothing is written.
    Differs,
}

/// A file of the source and its path in the project.
#[derive(Debug, Clone, Serialize)]
pub struct ImportedFile {
    pub act: Act,
    pub from: String,
    pub path: ProjectPath,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub why: Option<String>,
}

/// A file of the source that is not memory or cannot be imported.
#[derive(Debug, Clone, Serialize)]
pub struct LeftOut {
    pub from: String,
    pub why: String,
}

/// The result of an import or of a dry run.
#[derive(Debug, Serialize)]
pub struct Imported {
    pub files: Vec<ImportedFile>,
    pub left_out: Vec<LeftOut>,
    /// None if nothing was written.
    pub receipt: Option<Receipt>,
}

/// The result of an earlier import of a piece.
struct Earlier {
    hash: String,
    path: String,
    version: Option<Version>,
}

/// Imports a source in one commit.
pub fn import(project: &Project, actor: &Actor, asked: &Import) -> Result<Imported, ImportError> {
    let into = ProjectPath::parse(asked.into.trim_end_matches('/'))?;
    let except = project.store.root().join(into.as_str());
    let mut taken = asked.source.take(
        asked.place,
        &except,
        Sources::of(actor, project.store.root()),
    )?;
    give_each_its_place(&mut taken.pieces);
    let earlier = earlier_imports(project, asked.source, &into)?;
    let mut change = Change::by(actor).why(format!("imported from {}", asked.source.name()));
    (change.lease, change.force, change.new_name) = (asked.lease.clone(), asked.force, asked.force);
    let (mut files, mut noted, mut secrets) = (Vec::new(), Vec::new(), Vec::new());
    for piece in &taken.pieces {
        let path = ProjectPath::parse(&format!("{into}/{}", piece.to))?;
        let hash = Version::of(&piece.original);
        let bytes = rendered(piece, asked.source, hash.as_str());
        let (act, why, expect) = judge_piece(
            project,
            actor,
            &path,
            &bytes,
            hash.as_str(),
            earlier.get(&piece.from),
        )?;
        let path = match (act, earlier.get(&piece.from)) {
            (Act::Known, Some(past)) => ProjectPath::parse(&past.path)?,
            _ => path,
        };
        if matches!(act, Act::New | Act::Renewed) {
            if let Some(found) = secret_in(project, &path, piece) {
                secrets.push(found);
            }
            noted.push(json!({"from": piece.from, "path": path, "hash": hash.as_str()}));
            // `create` does not overwrite a file that appears in the meantime.
            change = if act == Act::New {
                change.create(&path, bytes)
            } else {
                change.write(&path, bytes, expect)
            };
        }
        files.push(ImportedFile {
            act,
            from: piece.from.clone(),
            path,
            why,
        });
    }
    if !secrets.is_empty() {
        return Err(ImportError::Credentials(secrets));
    }
    let mut imported = Imported {
        files,
        left_out: taken.left_out,
        receipt: None,
    };
    if change.ops.is_empty() {
        return Ok(imported);
    }
    let note = json!({"import": {"source": asked.source.name(), "place": asked.told, "into": into, "files": noted}});
    let judged = project.validate(change.note(note))?;
    if !asked.dry_run {
        imported.receipt = Some(judged.publish()?);
    }
    Ok(imported)
}

/// Gives different paths to names that some file system treats as equal.
fn give_each_its_place(pieces: &mut [Piece]) {
    let mut taken = BTreeSet::new();
    // The next number of each name, by the name in lower case.
    let mut next: BTreeMap<String, usize> = BTreeMap::new();
    for piece in pieces {
        let (stem, ending) = piece
            .to
            .rsplit_once('.')
            .map_or((piece.to.clone(), String::new()), |(s, e)| {
                (s.to_owned(), format!(".{e}"))
            });
        let named = |number: usize| {
            if number < 2 {
                piece.to.clone()
            } else {
                format!("{stem}-{number}{ending}")
            }
        };
        let next = next.entry(piece.to.to_lowercase()).or_insert(1);
        if let Some(number) = (*next..).find(|number| taken.insert(named(*number).to_lowercase())) {
            *next = number + 1;
            piece.to = named(number);
        }
    }
}

/// Reads the journal's notes about earlier imports of the same kind into the same folder, by the
/// name of the piece.
fn earlier_imports(
    project: &Project,
    source: ImportSource,
    into: &ProjectPath,
) -> Result<BTreeMap<String, Earlier>, ImportError> {
    let mut earlier = BTreeMap::new();
    for noted in project.store.noted(0)? {
        let note = &noted.note["import"];
        if note["source"] != source.name() || note["into"] != into.as_str() {
            continue;
        }
        for file in note["files"].as_array().into_iter().flatten() {
            let word = |key: &str| {
                file.get(key)
                    .and_then(Value::as_str)
                    .unwrap_or_default()
                    .to_owned()
            };
            let path = word("path");
            let version = noted
                .files
                .iter()
                .find(|f| f.path == path)
                .map(|f| f.version.clone());
            earlier.insert(
                word("from"),
                Earlier {
                    hash: word("hash"),
                    path,
                    version,
                },
            );
        }
    }
    Ok(earlier)
}

fn rendered(piece: &Piece, source: ImportSource, hash: &str) -> Vec<u8> {
    match std::str::from_utf8(&piece.bytes) {
        Ok(text) if piece.is_markdown() => {
            with_provenance(text, &format!("{}: {}", source.name(), piece.from), hash).into_bytes()
        }
        // Other files stay unchanged; the journal records their origin.
        _ => piece.bytes.clone(),
    }
}

type Verdict = (Act, Option<String>, Expect);

fn judge_piece(
    project: &Project,
    actor: &Actor,
    path: &ProjectPath,
    bytes: &[u8],
    hash: &str,
    past: Option<&Earlier>,
) -> Result<Verdict, ImportError> {
    if past.is_some_and(|past| past.hash == hash) {
        return Ok((Act::Known, None, Expect::Any));
    }
    let differs = |why: &str| Ok((Act::Differs, Some(why.to_owned()), Expect::Any));
    // An actor that may not read the file gets the same answer for every text, and for none: the
    // commit is refused if the file is there.
    if may_read_whole(project, actor, path).is_err() {
        return Ok((Act::New, None, Expect::Any));
    }
    let (now, version) = match (project.store.read(path)?, past) {
        (Some(there), _) => there,
        (None, None) => return Ok((Act::New, None, Expect::Any)),
        (None, Some(_)) => return differs("it was moved or removed here"),
    };
    if now == bytes {
        return Ok((Act::Known, None, Expect::Any));
    }
    if past.and_then(|past| past.version.as_ref()) != Some(&version) {
        return differs("a different text exists there");
    }
    match project
        .contract
        .class(path)
        .allows(Deed::Replace { expected: true }, actor, true)
    {
        Ok(()) => Ok((Act::Renewed, None, Expect::Version(version))),
        Err(refusal) => differs(refusal.what),
    }
}

/// Finds a credential in the text to be written, with its line in the source.
fn secret_in(project: &Project, path: &ProjectPath, piece: &Piece) -> Option<String> {
    let rules = &project.contract.guards;
    if rules
        .credentials_in
        .iter()
        .any(|pattern| pattern.matches(path.as_str()).is_some())
    {
        return None;
    }
    let found = find_credentials(rules, &String::from_utf8_lossy(&piece.original))?;
    Some(format!("{}:{} {}", piece.from, found.line, found.what))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Takes minutes if each name is counted from 1.
    #[test]
    fn many_names_that_differ_in_case_get_places_of_their_own() {
        let mut pieces: Vec<Piece> = (0..30_000)
            .map(|n| Piece::of_file(if n % 2 == 0 { "Note.md" } else { "note.md" }, Vec::new()))
            .collect();
        pieces.push(Piece::of_file("note-2.md", Vec::new()));
        give_each_its_place(&mut pieces);
        let places: Vec<&str> = pieces.iter().map(|piece| piece.to.as_str()).collect();
        assert_eq!(places[..3], ["Note.md", "note-2.md", "Note-3.md"]);
        assert_eq!(places[29_999..], ["note-30000.md", "note-2-2.md"]);
    }
}
