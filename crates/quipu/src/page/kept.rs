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
/// The same for a status scan. It is what shows an external edit, so it may take a fifth of a core
/// while a page is open.
const SCAN_PATIENCE: u32 = 4;

#[derive(Default)]
pub struct Kept {
    scan: Mutex<Option<Found<StatusScan>>>,
    links: Mutex<Option<Found<LinkMap>>>,
    story: Mutex<Option<Found<StoryConcerns>>>,
}

struct Found<T> {
    seq: u64,
    until: Instant,
    /// Computing it again before this would take too much of the server's work.
    costly_until: Instant,
    what: Arc<T>,
}

/// A result that may be outdated, and how long it is kept although it is.
pub type Lately<T> = (Arc<T>, Duration);

impl Kept {
    /// Returns the status scan of every file. Concurrent callers wait for the same scan.
    pub fn scan(&self, project: &Project) -> Result<Arc<StatusScan>, Failure> {
        kept(&self.scan, project, (SURVEY_LASTS, SCAN_PATIENCE), || {
            Ok(project.store.scan_status()?)
        })
    }

    pub fn links(&self, project: &Project) -> Result<Arc<LinkMap>, Failure> {
        kept(&self.links, project, (LINKS_LAST, PATIENCE), || {
            read_links(project)
        })
    }

    /// Like `links`, for a view that asks after every commit.
    pub fn links_lately(&self, project: &Project) -> Result<Lately<LinkMap>, Failure> {
        lately(&self.links, project, || read_links(project))
    }

    pub fn story_lately(&self, project: &Project) -> Result<Lately<StoryConcerns>, Failure> {
        lately(&self.story, project, || StoryConcerns::read(project))
    }
}

fn read_links(project: &Project) -> Result<LinkMap, Failure> {
    Ok(map_links(project, &Actor::Person)?)
}

/// Returns an outdated result while computing it again would dominate the server's work.
fn lately<T>(
    slot: &Mutex<Option<Found<T>>>,
    project: &Project,
    look: impl Fn() -> Result<T, Failure>,
) -> Result<Lately<T>, Failure> {
    if let Some(found) = &*slot.lock().unwrap_or_else(PoisonError::into_inner) {
        let left = found.costly_until.saturating_duration_since(Instant::now());
        if !left.is_zero() && found.seq != project.store.pulse()? {
            return Ok((Arc::clone(&found.what), left));
        }
    }
    Ok((
        kept(slot, project, (LINKS_LAST, PATIENCE), look)?,
        Duration::ZERO,
    ))
}

fn kept<T>(
    slot: &Mutex<Option<Found<T>>>,
    project: &Project,
    (lasts, patience): (Duration, u32),
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
    let costly = begun.elapsed() * patience;
    let now = Instant::now();
    // The scan itself may have adopted an edit.
    *slot = Some(Found {
        seq: project.store.pulse()?,
        until: now + lasts.max(costly),
        costly_until: now + costly,
        what: Arc::clone(&what),
    });
    Ok(what)
}
