//! `.quipu/sessions.jsonl`: a cache of parsed session records, so that a command reads only new
//! ones.
//!
//! A batch is a header line with a checksum, and a line for each record: the record's path, file stat
//! and agent, a tab, and the parsed record. So a command that wants the records of one agent parses
//! only the beginnings of the other lines. The header has the commit up to which this and earlier
//! batches are complete. Each checksum covers that of the batch before it, so batches after a damaged
//! one are ignored. A command appends a batch; the file is rewritten when there are many. Without the
//! cache, all records are read again.

use std::borrow::Cow;
use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::io::Write;
use std::path::PathBuf;

use quipu_store::Version;
use serde::{Deserialize, Serialize};

use super::session::Session;
use crate::project::open::Project;

const FILE: &str = ".quipu/sessions.jsonl";
/// The format of a batch. A file with another format is rebuilt.
const FORM: u32 = 6;
/// With more batches, the file is rewritten as one.
const MOST_BATCHES: usize = 500;

/// A commit: its sequence number, and its id, which differs in another journal.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Cursor {
    pub seq: u64,
    pub id: String,
}

/// A record with its file stat: inode, size, time.
pub type ReadSession = (String, Session);

#[derive(Serialize, Deserialize)]
struct Header {
    form: u32,
    cursor: Option<Cursor>,
    /// The number of record lines, and their length.
    records: usize,
    bytes: usize,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    removed: Vec<String>,
}

/// The beginning of a record's line.
#[derive(Serialize, Deserialize)]
struct Head<'t> {
    #[serde(borrow)]
    path: Cow<'t, str>,
    #[serde(borrow)]
    stat: Cow<'t, str>,
    /// In lower case; empty without an agent.
    #[serde(borrow)]
    agent: Cow<'t, str>,
}

/// A record of the cache.
pub struct KeptSession<'t> {
    pub stat: Cow<'t, str>,
    agent: Cow<'t, str>,
    line: &'t str,
    json: &'t str,
    /// Whether a reader has found its file unchanged.
    pub is_seen: bool,
}

impl KeptSession<'_> {
    /// Whether an agent wrote it, by a name in lower case. None stands for all agents.
    pub fn is_of(&self, agent: Option<&str>) -> bool {
        agent.is_none_or(|agent| !agent.is_empty() && self.agent == agent)
    }

    pub fn session(&self) -> Option<Session> {
        serde_json::from_str(self.json).ok()
    }
}

/// The agent of a session as the cache compares it.
pub fn agent_key(agent: &str) -> String {
    agent.to_lowercase()
}

#[derive(Default)]
pub struct Kept<'t> {
    pub sessions: HashMap<Cow<'t, str>, KeptSession<'t>>,
    pub cursor: Option<Cursor>,
    batches: usize,
    /// The checksum of the last batch.
    sum: String,
    is_sound: bool,
}

/// The text of the cache; empty if there is none.
pub fn read_file(project: &Project) -> String {
    std::fs::read_to_string(file_of(project)).unwrap_or_default()
}

fn file_of(project: &Project) -> PathBuf {
    project.store.root().join(FILE)
}

fn sum_of(before: &str, header: &str, lines: &str) -> String {
    let lines = Version::of(lines.as_bytes());
    let sum = Version::of(format!("{before}\n{header}\n{lines}").as_bytes());
    sum.as_str().to_owned()
}

/// A batch as text. `before` is the checksum of the batch before it.
fn render_batch(
    before: &str,
    cursor: Option<Cursor>,
    removed: Vec<String>,
    lines: &str,
) -> Option<String> {
    let header = Header {
        form: FORM,
        cursor,
        records: lines.lines().count(),
        bytes: lines.len(),
        removed,
    };
    let header = serde_json::to_string(&header).ok()?;
    let sum = sum_of(before, &header, lines);
    Some(format!("{sum} {header}\n{lines}"))
}

fn render_lines(sessions: &BTreeMap<String, ReadSession>) -> Option<String> {
    let mut lines = String::new();
    for (path, (stat, session)) in sessions {
        let head = Head {
            path: path.into(),
            stat: stat.into(),
            agent: session
                .agent
                .as_deref()
                .map(agent_key)
                .unwrap_or_default()
                .into(),
        };
        lines.push_str(&serde_json::to_string(&head).ok()?);
        lines.push('\t');
        lines.push_str(&serde_json::to_string(session).ok()?);
        lines.push('\n');
    }
    Some(lines)
}

impl<'t> Kept<'t> {
    pub fn parse(text: &'t str) -> Kept<'t> {
        let mut kept = Kept::default();
        let mut rest = text;
        while let Some(after) = kept.take_batch(rest) {
            rest = after;
        }
        kept.is_sound = !text.is_empty() && rest.is_empty();
        kept
    }

    /// Takes a batch from the beginning of the text. None if it is incomplete or damaged.
    fn take_batch(&mut self, text: &'t str) -> Option<&'t str> {
        let (first, rest) = text.split_once('\n')?;
        let (sum, json) = first.split_once(' ')?;
        let header: Header = serde_json::from_str(json).ok()?;
        if header.form != FORM {
            return None;
        }
        let (lines, rest) = rest.split_at_checked(header.bytes)?;
        if sum_of(&self.sum, json, lines) != sum {
            return None;
        }
        for path in &header.removed {
            self.sessions.remove(path.as_str());
        }
        self.sessions.reserve(header.records.min(lines.len()));
        for line in lines.lines() {
            let (head, json) = line.split_once('\t')?;
            let head: Head<'t> = serde_json::from_str(head).ok()?;
            let session = KeptSession {
                stat: head.stat,
                agent: head.agent,
                line,
                json,
                is_seen: false,
            };
            self.sessions.insert(head.path, session);
        }
        self.sum = sum.to_owned();
        self.cursor = header.cursor;
        self.batches += 1;
        Some(rest)
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

    /// Appends newly read records, up to a commit. `removed` are paths without a record now. On
    /// failure, the records are read again next time.
    pub fn add(
        mut self,
        project: &Project,
        cursor: Option<Cursor>,
        fresh: &BTreeMap<String, ReadSession>,
        removed: Vec<String>,
    ) {
        let Some(mut lines) = render_lines(fresh) else {
            return;
        };
        let file = file_of(project);
        if self.is_sound && self.batches < MOST_BATCHES {
            if let Some(batch) = render_batch(&self.sum, cursor, removed, &lines) {
                let _ = std::fs::OpenOptions::new()
                    .append(true)
                    .open(&file)
                    .and_then(|mut file| file.write_all(batch.as_bytes()));
            }
            return;
        }
        let is_replaced =
            |path: &str| fresh.contains_key(path) || removed.iter().any(|r| r == path);
        self.sessions.retain(|path, _| !is_replaced(path));
        for kept in self.sessions.values() {
            lines.push_str(kept.line);
            lines.push('\n');
        }
        if let Some(batch) = render_batch("", cursor, Vec::new(), &lines) {
            let _ = super::past::write_derived(&file, batch.as_bytes());
        }
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
