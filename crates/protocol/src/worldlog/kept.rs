//! `.quipu/sessions.jsonl`: a cache of parsed session records, so that a command reads only new
//! ones.
//!
//! A line is a checksum and a batch: parsed records, and the commit up to which this and earlier
//! batches are complete. Each checksum covers that of the previous line, so lines after a damaged
//! one are ignored. A command appends a batch; the file is rewritten when there are many batches.
//! Without the cache, all records are read again.

use std::collections::{BTreeMap, BTreeSet};
use std::io::Write;
use std::path::PathBuf;

use quipu_store::Version;
use serde::{Deserialize, Serialize};

use super::session::Session;
use crate::project::open::Project;

const FILE: &str = ".quipu/sessions.jsonl";
/// The format of a batch. A file with another format is rebuilt.
const FORM: u32 = 5;
/// With more batches, the file is rewritten as one.
const MOST_BATCHES: usize = 500;

/// A commit: its sequence number, and its id, which differs in another journal.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Cursor {
    pub seq: u64,
    pub id: String,
}

/// A record with its file stat: inode, size, time.
pub type KeptSession = (String, Session);

#[derive(Serialize, Deserialize)]
struct Batch {
    form: u32,
    cursor: Option<Cursor>,
    sessions: BTreeMap<String, KeptSession>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    removed: Vec<String>,
}

#[derive(Default)]
pub struct Kept {
    file: PathBuf,
    pub sessions: BTreeMap<String, KeptSession>,
    pub cursor: Option<Cursor>,
    batches: usize,
    /// The checksum of the last line.
    sum: String,
    is_sound: bool,
}

fn sum_of(before: &str, json: &str) -> String {
    Version::of(format!("{before}\n{json}").as_bytes())
        .as_str()
        .to_owned()
}

impl Kept {
    pub fn load(project: &Project) -> Kept {
        let mut kept = Kept {
            file: project.store.root().join(FILE),
            is_sound: true,
            ..Kept::default()
        };
        let Ok(text) = std::fs::read_to_string(&kept.file) else {
            kept.is_sound = false;
            return kept;
        };
        for line in text.lines() {
            let parsed = line
                .split_once(' ')
                .filter(|(sum, json)| sum_of(&kept.sum, json) == *sum);
            let batch = parsed
                .and_then(|(sum, json)| Some((sum, serde_json::from_str::<Batch>(json).ok()?)));
            let Some((sum, batch)) = batch.filter(|(_, batch)| batch.form == FORM) else {
                kept.is_sound = false;
                break;
            };
            kept.sum = sum.to_owned();
            kept.batches += 1;
            kept.cursor = batch.cursor;
            batch
                .removed
                .iter()
                .for_each(|path| drop(kept.sessions.remove(path)));
            kept.sessions.extend(batch.sessions);
        }
        // An incomplete last line.
        kept.is_sound &= text.ends_with('\n');
        kept
    }

    /// The paths that commits since the last batch changed. None if the tail of the journal does
    /// not show them.
    pub fn changed_since(&self, project: &Project) -> Option<BTreeSet<String>> {
        let cursor = self.cursor.as_ref()?;
        let entries = project
            .store
            .recent_until(usize::MAX, &mut |entry| entry.seq <= cursor.seq)
            .ok()?;
        let (first, last) = (entries.first()?, entries.last()?);
        let is_whole = entries
            .windows(2)
            .all(|pair| pair[0].seq == pair[1].seq + 1);
        let is_known = is_whole
            && last.seq == cursor.seq
            && last.id == cursor.id
            && project.store.pulse().ok()? == first.seq;
        is_known.then(|| {
            entries[..entries.len() - 1]
                .iter()
                .flat_map(|entry| entry.paths.iter().cloned())
                .collect()
        })
    }

    /// Appends newly read records, up to a commit. `all` has all known records. On failure, they
    /// are read again next time.
    pub fn add(
        &self,
        cursor: Option<Cursor>,
        fresh: BTreeMap<String, KeptSession>,
        removed: Vec<String>,
        all: &BTreeMap<String, KeptSession>,
    ) {
        if !self.is_sound || self.batches >= MOST_BATCHES {
            // Borrow, to avoid copying thousands of records.
            let json =
                serde_json::json!({"form": FORM, "cursor": cursor, "sessions": all}).to_string();
            let _ = super::past::write_derived(
                &self.file,
                format!("{} {json}\n", sum_of("", &json)).as_bytes(),
            );
            return;
        }
        let Ok(json) = serde_json::to_string(&Batch {
            form: FORM,
            cursor,
            sessions: fresh,
            removed,
        }) else {
            return;
        };
        let line = format!("{} {json}\n", sum_of(&self.sum, &json));
        let _ = std::fs::OpenOptions::new()
            .append(true)
            .open(&self.file)
            .and_then(|mut file| file.write_all(line.as_bytes()));
    }
}

/// The newest commit, if the tail of the journal shows it.
pub fn newest(project: &Project) -> Option<Cursor> {
    let entry = project.store.recent(1).ok()?.pop()?;
    Some(Cursor {
        seq: entry.seq,
        id: entry.id,
    })
}
