//! What is dear to find out and asked for again and again: kept while the journal stands still.

use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use quipu_contract::Actor;
use quipu_protocol::{LinkMap, Project, map_links};
use quipu_store::Survey;

use crate::answer::Failure;

/// Edits behind Quipu's back are in no journal: so long they may stay unseen.
const SURVEY_LASTS: Duration = Duration::from_secs(2);
const LINKS_LAST: Duration = Duration::from_secs(20);

#[derive(Default)]
pub struct Kept {
    survey: Mutex<Option<Found<Survey>>>,
    links: Mutex<Option<Found<LinkMap>>>,
}

struct Found<T> {
    seq: u64,
    at: Instant,
    what: Arc<T>,
}

impl Kept {
    /// How every file stands. Whoever asks meanwhile waits for the same look.
    pub fn survey(&self, project: &Project) -> Result<Arc<Survey>, Failure> {
        kept(&self.survey, project, SURVEY_LASTS, || Ok(project.store.survey()?))
    }

    pub fn links(&self, project: &Project) -> Result<Arc<LinkMap>, Failure> {
        kept(&self.links, project, LINKS_LAST, || Ok(map_links(project, &Actor::Person)?))
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
    if let Some(found) = slot.as_ref().filter(|found| found.seq == seq && found.at.elapsed() < lasts) {
        return Ok(Arc::clone(&found.what));
    }
    let what = Arc::new(look()?);
    // The look itself may have adopted something.
    *slot = Some(Found { seq: project.store.pulse()?, at: Instant::now(), what: Arc::clone(&what) });
    Ok(what)
}
