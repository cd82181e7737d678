//! Caches expensive results that the page requests repeatedly. A result is valid while the journal
//! does not change.

use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use quipu_contract::Actor;
use quipu_protocol::{LinkMap, Project, map_links};
use quipu_store::StatusScan;

use super::concerns::StoryConcerns;
use crate::answer::Failure;

/// External edits are not in the journal. They may stay unseen for this long, or longer if a scan
/// is slow.
const SURVEY_LASTS: Duration = Duration::from_secs(1);
const LINKS_LAST: Duration = Duration::from_secs(20);
/// A result is cached for this many times the duration of its computation, so that scans never
/// dominate the server's work.
const PATIENCE: u32 = 20;

#[derive(Default)]
pub struct Kept {
    scan: Mutex<Option<Found<StatusScan>>>,
    links: Mutex<Option<Found<LinkMap>>>,
    story: Mutex<Option<Found<StoryConcerns>>>,
}

struct Found<T> {
    seq: u64,
    until: Instant,
    what: Arc<T>,
}

impl Kept {
    /// Returns the status scan of every file. Concurrent callers wait for the same scan.
    pub fn scan(&self, project: &Project) -> Result<Arc<StatusScan>, Failure> {
        kept(&self.scan, project, SURVEY_LASTS, || {
            Ok(project.store.scan_status()?)
        })
    }

    pub fn links(&self, project: &Project) -> Result<Arc<LinkMap>, Failure> {
        kept(&self.links, project, LINKS_LAST, || {
            Ok(map_links(project, &Actor::Person)?)
        })
    }

    pub fn story(&self, project: &Project) -> Result<Arc<StoryConcerns>, Failure> {
        kept(&self.story, project, LINKS_LAST, || {
            StoryConcerns::read(project)
        })
    }
}

fn kept<T>(
    slot: &Mutex<Option<Found<T>>>,
    project: &Project,
    lasts: Duration,
    look: impl Fn() -> Result<T, Failure>,
) -> Result<Arc<T>, Failure> {
    let mut slot = slot.lock().unwrap_or_else(PoisonError::into_inner);
    let seq = project.store.pulse()?;
    if let Some(found) = slot
        .as_ref()
        .filter(|found| found.seq == seq && Instant::now() < found.until)
    {
        return Ok(Arc::clone(&found.what));
    }
    let begun = Instant::now();
    let what = Arc::new(look()?);
    let until = Instant::now() + lasts.max(begun.elapsed() * PATIENCE);
    // The scan itself may have adopted an edit.
    *slot = Some(Found {
        seq: project.store.pulse()?,
        until,
        what: Arc::clone(&what),
    });
    Ok(what)
}
