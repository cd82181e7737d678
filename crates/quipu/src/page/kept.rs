//! What is dear to find out and asked for again and again: kept while the journal stands still.

use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use quipu_contract::Actor;
use quipu_protocol::{LinkMap, Project, map_links};
use quipu_store::Survey;

use crate::answer::Failure;

/// External edits are in no journal: so long they may stay unseen, or longer where looking
/// takes long.
const SURVEY_LASTS: Duration = Duration::from_secs(2);
const LINKS_LAST: Duration = Duration::from_secs(20);
/// What took a second to find is kept for so many: looking is never most of what a server does.
const PATIENCE: u32 = 20;

#[derive(Default)]
pub struct Kept {
    survey: Mutex<Option<Found<Survey>>>,
    links: Mutex<Option<Found<LinkMap>>>,
}

struct Found<T> {
    seq: u64,
    until: Instant,
    what: Arc<T>,
}

impl Kept {
    /// How every file stands. Whoever asks meanwhile waits for the same look.
    pub fn survey(&self, project: &Project) -> Result<Arc<Survey>, Failure> {
        kept(&self.survey, project, SURVEY_LASTS, || {
            Ok(project.store.survey()?)
        })
    }

    /// The newest survey there is, however old: for what is nice to know.
    pub fn last_survey(&self) -> Option<Arc<Survey>> {
        let slot = self.survey.lock().unwrap_or_else(PoisonError::into_inner);
        slot.as_ref().map(|found| Arc::clone(&found.what))
    }

    pub fn links(&self, project: &Project) -> Result<Arc<LinkMap>, Failure> {
        kept(&self.links, project, LINKS_LAST, || {
            Ok(map_links(project, &Actor::Person)?)
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
    // The look itself may have adopted something.
    *slot = Some(Found {
        seq: project.store.pulse()?,
        until,
        what: Arc::clone(&what),
    });
    Ok(what)
}
