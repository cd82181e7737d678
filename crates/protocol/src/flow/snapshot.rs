//! A snapshot of the project for a flow: versions, markers, sections and leases, each read once.
//!
//! Files and notes must be of the same moment, so they are read again if a commit comes between.

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, OnceLock, PoisonError};

use quipu_contract::{Pattern, ProjectPath};
use quipu_store::{At, Lease, StatusScan, Version};
use quipu_text::{Document, find_stray_sign, marker, passages_with};

use super::note::AttemptFact;
use super::state::CurrentFiles;
use crate::project::open::{Project, ProjectError};
use crate::view::slice_section;

/// How often a snapshot is retried because other commits interfere. A snapshot and a commit each
/// take milliseconds.
const TRIES: usize = 200;

/// A cache of unchanged texts and notes, shared by the snapshots of one process.
#[derive(Debug, Clone, Default)]
pub struct FlowCache(Arc<Mutex<Remembered>>);

#[derive(Debug, Default)]
struct Remembered {
    texts: BTreeMap<String, (Version, Arc<Text>)>,
    free: BTreeMap<String, (String, Version)>,
    facts: Arc<Vec<AttemptFact>>,
}

impl FlowCache {
    /// The notes of attempts in the journal, oldest first.
    pub fn facts(&self, project: &Project) -> Result<Arc<Vec<AttemptFact>>, ProjectError> {
        let mut known = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let newest = known.facts.last().map_or(0, |f| f.seq);
        let newer = project.store.noted(newest)?;
        let newer: Vec<AttemptFact> = newer.into_iter().filter_map(AttemptFact::of).collect();
        if !newer.is_empty() {
            Arc::make_mut(&mut known.facts).extend(newer);
        }
        Ok(Arc::clone(&known.facts))
    }
}

/// A text with cached results, because a flow repeats the same queries.
#[derive(Debug)]
struct Text {
    text: String,
    marker: OnceLock<Option<String>>,
    items: Mutex<BTreeMap<String, Vec<String>>>,
    words: Mutex<BTreeMap<Vec<String>, bool>>,
}

/// The files at one moment.
pub struct Snapshot<'p> {
    project: &'p Project,
    versions: BTreeMap<String, Version>,
    paths: Vec<ProjectPath>,
    leases: Vec<Lease>,
    memory: FlowCache,
    /// Files without a rule, as first read by this snapshot.
    free: RefCell<BTreeMap<String, Option<Version>>>,
    pub scan: StatusScan,
    pub facts: Arc<Vec<AttemptFact>>,
}

impl<'p> Snapshot<'p> {
    /// Takes files and notes of one moment. A commit between the two reads would show an old text
    /// beside the note that accepted the new one, and a job would be done twice. In that case both
    /// are read again.
    pub fn take(project: &'p Project, memory: &FlowCache) -> Result<Snapshot<'p>, ProjectError> {
        for _ in 1..TRIES {
            let seen = project.store.pulse()?;
            let snapshot = Self::take_once(project, memory)?;
            if project.store.pulse()? == seen {
                return Ok(snapshot);
            }
        }
        Self::take_once(project, memory)
    }

    fn take_once(project: &'p Project, memory: &FlowCache) -> Result<Snapshot<'p>, ProjectError> {
        let scan = project.store.scan_status()?;
        let versions = scan
            .files
            .iter()
            .filter_map(|f| Some((f.path.clone(), f.version.clone()?)))
            .collect();
        let leases = if project.store.is_read_only() {
            Vec::new()
        } else {
            project.store.leases()?
        };
        let facts = memory.facts(project)?;
        let mut paths = project.store.list()?;
        paths.sort_unstable_by(|a, b| a.as_str().cmp(b.as_str()));
        Ok(Snapshot {
            project,
            versions,
            paths,
            leases,
            memory: memory.clone(),
            free: RefCell::default(),
            scan,
            facts,
        })
    }

    /// Ignores one lease.
    pub fn look_past(&mut self, lease: Option<&str>) {
        self.leases.retain(|l| Some(l.id.as_str()) != lease);
    }

    fn text(&self, path: &str) -> Option<Arc<Text>> {
        let version = self.version(path)?;
        if let Some((kept, text)) = self
            .memory
            .0
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .texts
            .get(path)
            && *kept == version
        {
            return Some(Arc::clone(text));
        }
        let parsed = ProjectPath::parse(path).ok()?;
        let (mut bytes, read) = self.project.store.read(&parsed).ok()??;
        if read != version {
            // The file was written since; the journal has the text of this snapshot.
            let then = self
                .project
                .store
                .text_at(&parsed, &At::Version(version.as_str().to_owned()));
            bytes = then.map_or(bytes, |(then, _)| then);
        }
        let text = Arc::new(Text {
            text: String::from_utf8(bytes).ok()?,
            marker: OnceLock::new(),
            items: Mutex::default(),
            words: Mutex::default(),
        });
        self.memory
            .0
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .texts
            .insert(path.to_owned(), (version, Arc::clone(&text)));
        Some(text)
    }

    /// The version of a file without a rule, cached by its file stat.
    fn free_version(&self, path: &str) -> Option<Version> {
        let parsed = ProjectPath::parse(path).ok()?;
        let look = self.project.store.stat_text(&parsed).ok()??;
        let mut known = self.memory.0.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some((kept, version)) = known.free.get(path)
            && *kept == look
        {
            return Some(version.clone());
        }
        let (_, version) = self.project.store.read(&parsed).ok()??;
        known.free.insert(path.to_owned(), (look, version.clone()));
        Some(version)
    }
}

impl CurrentFiles for Snapshot<'_> {
    fn version(&self, path: &str) -> Option<Version> {
        if let Some(version) = self.versions.get(path) {
            return Some(version.clone());
        }
        if let Some(version) = self.free.borrow().get(path) {
            return version.clone();
        }
        // `paths` is sorted. A path that is not in it does not exist.
        let listed = self
            .paths
            .binary_search_by(|listed| listed.as_str().cmp(path))
            .is_ok();
        let version = listed.then(|| self.free_version(path)).flatten();
        self.free
            .borrow_mut()
            .insert(path.to_owned(), version.clone());
        version
    }

    fn section(&self, path: &str, section: &str) -> Option<Version> {
        slice_section(&self.text(path)?.text, section).map(|text| Version::of(text.as_bytes()))
    }

    fn marker(&self, path: &str) -> Option<String> {
        let text = self.text(path)?;
        text.marker
            .get_or_init(|| marker_of(path, &text.text))
            .clone()
    }

    fn items(&self, path: &str, sign: &str) -> Vec<String> {
        let Some(text) = self.text(path) else {
            return Vec::new();
        };
        let mut known = text.items.lock().unwrap_or_else(PoisonError::into_inner);
        known
            .entry(sign.to_owned())
            .or_insert_with(|| items_with(&text.text, sign))
            .clone()
    }

    fn matching(&self, pattern: &Pattern) -> Vec<ProjectPath> {
        if let Some(literal) = pattern.as_literal() {
            let at = self
                .paths
                .binary_search_by(|listed| listed.as_str().cmp(literal));
            return at.into_iter().map(|at| self.paths[at].clone()).collect();
        }
        self.paths
            .iter()
            .filter(|p| pattern.matches(p.as_str()).is_some())
            .cloned()
            .collect()
    }

    fn holds_word(&self, path: &str, words: &[String]) -> bool {
        let Some(text) = self.text(path) else {
            return false;
        };
        let mut known = text.words.lock().unwrap_or_else(PoisonError::into_inner);
        *known
            .entry(words.to_vec())
            .or_insert_with(|| holds_word(&text.text, words))
    }

    fn is_leased(&self, path: &ProjectPath) -> bool {
        self.leases.iter().any(|l| l.covers(path))
    }

    fn rules_since(&self) -> u64 {
        let rules = &self.project.contract.files;
        let of_contract: Vec<&Pattern> = rules
            .iter()
            .filter(|rule| rule.people_only)
            .map(|rule| &rule.path)
            .collect();
        let is_contract = |path: &str| of_contract.iter().any(|rule| rule.matches(path).is_some());
        let changes = self
            .scan
            .files
            .iter()
            .filter(|file| is_contract(&file.path));
        changes.map(|file| file.seq).max().unwrap_or(0)
    }
}

/// The marker of an HTML page: its last line. A Markdown parser would treat it as part of the page.
fn html_marker(text: &str) -> Option<String> {
    let line = text.trim_end().lines().next_back()?;
    marker(line).map(|m| m.name.to_owned())
}

/// The marker at the end of a text. The format depends on the path.
pub fn marker_of(path: &str, text: &str) -> Option<String> {
    if path.ends_with(".html") {
        html_marker(text)
    } else {
        marker(text).map(|m| m.name.to_owned())
    }
}

/// The text without its final marker.
pub fn unmarked<'t>(path: &str, text: &'t str) -> &'t str {
    let end = text.trim_end();
    match marker_of(path, text) {
        Some(_) if path.ends_with(".html") => &end[..end.rfind("<!--").unwrap_or(end.len())],
        Some(_) => marker(text).map_or(text, |m| &text[..m.start]),
        None => text,
    }
}

/// Finds a sign outside any item that could be answered: a count, or a verdict alone.
pub fn stray_sign(text: &str, sign: &str) -> Option<String> {
    find_stray_sign(&text.replace(SELECTOR, ""), &plain(sign))
}

/// The passages with a sign anywhere outside code, one line each. The empty sign selects all
/// top-level list items.
pub fn items_with(text: &str, sign: &str) -> Vec<String> {
    if sign.is_empty() {
        top_items(text)
    } else {
        passages_with(&text.replace(SELECTOR, ""), &plain(sign))
    }
}

/// The top-level list items, one line each.
pub fn top_items(text: &str) -> Vec<String> {
    let document = Document::parse(text);
    let lines = document.items().iter().filter(|i| i.depth == 0).map(|i| {
        let line = document
            .slice(&i.content)
            .split_whitespace()
            .collect::<Vec<_>>()
            .join(" ");
        plain(&line)
    });
    lines.collect()
}

/// The variation selector, which only affects how the preceding sign is drawn.
const SELECTOR: char = '\u{fe0f}';

/// Removes variation selectors.
pub fn plain(text: &str) -> String {
    text.replace(SELECTOR, "").trim().to_owned()
}

/// Whether a text contains one of the words. Latin words must be whole words; others may be part of
/// a longer run.
fn holds_word(text: &str, words: &[String]) -> bool {
    let text = text.to_lowercase();
    words.iter().any(|word| {
        let word = word.to_lowercase();
        let latin = word.is_ascii();
        text.match_indices(&word).any(|(at, _)| {
            let apart = |c: Option<char>| c.is_none_or(|c| !c.is_alphanumeric());
            !latin
                || (apart(text[..at].chars().next_back())
                    && apart(text[at + word.len()..].chars().next()))
        })
    })
}
