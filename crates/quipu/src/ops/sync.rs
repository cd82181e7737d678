//! The `sync` command: updates a working copy from its shared store, once or continuously.

use std::time::{Duration, Instant};

use clap::Args;
use quipu_store::{Store, StoreError, Synced};
use serde_json::json;

use crate::answer::{Answer, Failure};
use crate::conflict_notice::told_conflicts;
use crate::session::Session;
use crate::table::Operate;
use crate::terminal;

#[derive(Debug, Args)]
pub struct Sync {
    /// Keep running and apply commits of other working copies as they arrive
    #[arg(long)]
    follow: bool,
    /// With --follow: stop after this number of seconds
    #[arg(long = "for", value_name = "SECONDS", requires = "follow")]
    seconds: Option<u64>,
}

/// How long one call listens to the shared store.
const LISTEN: Duration = Duration::from_secs(5);
/// Pause between two connection attempts.
const PAUSE: Duration = Duration::from_secs(1);

impl Operate for Sync {
    const NAME: &'static str = "sync";
    const ABOUT: &'static str = "Update this working copy from its shared store";

    fn operate(self, session: &Session) -> Result<Answer, Failure> {
        let project = session.project()?;
        let Some(order) = project.store.commit_log() else {
            return Ok(Answer::new(
                json!({"shared": false}),
                "a local project: there is no shared store to update from\n",
            ));
        };
        let about = order.describe();
        let sent = project.store.unanswered();
        let scan = project.store.scan_status()?;
        let mut synced = project.store.sync()?;
        if self.follow {
            let leave_at = self
                .seconds
                .map(|seconds| Instant::now() + Duration::from_secs(seconds));
            follow(&project.store, leave_at, &mut synced, session.json)?;
        }
        let mut text = match synced.to - synced.from {
            0 => format!("at revision {}, the newest\n", synced.to),
            count => format!("at revision {} ({count} newer)\n", synced.to),
        };
        if !sent.is_empty() {
            let arrived = project.store.log(
                usize::try_from(synced.to.saturating_sub(synced.from)).unwrap_or(usize::MAX),
            )?;
            let found = arrived
                .iter()
                .find(|entry| sent.contains(&entry.id))
                .map(|entry| entry.seq);
            text.push_str(&match found {
                Some(seq) => format!("the commit without an answer was accepted: @{seq}\n"),
                None => "the commit without an answer was not accepted\n".to_owned(),
            });
        }
        let mut answer = Answer::new(
            json!({"shared": true, "address": about.address, "project": about.project, "from": synced.from, "to": synced.to,
                   "adopted": scan.adopted, "waiting": scan.waiting, "conflicts": synced.conflicts}),
            text,
        );
        if let Some(told) = told_conflicts(&project.store, &synced.conflicts) {
            answer = answer.say(told);
        }
        for path in &scan.waiting {
            answer = answer.say(format!("{path}: edited here and not yet accepted"));
        }
        Ok(answer)
    }
}

/// Applies the commits of others until it is stopped, and reports each time. Waits for a server
/// that is down.
fn follow(
    store: &Store,
    leave_at: Option<Instant>,
    synced: &mut Synced,
    json: bool,
) -> Result<(), Failure> {
    tell(
        json,
        "following",
        synced,
        &format!("at revision {}; following", synced.to),
    );
    let mut away = false;
    loop {
        let left = leave_at.map_or(LISTEN, |at| at.saturating_duration_since(Instant::now()));
        if left.is_zero() {
            return Ok(());
        }
        match store.wait(left.min(LISTEN)).and_then(|newer| {
            if newer {
                store.sync().map(Some)
            } else {
                Ok(None)
            }
        }) {
            Ok(None) => away = false,
            Ok(Some(more)) => {
                away = false;
                synced.to = more.to;
                synced.conflicts.extend(more.conflicts.iter().cloned());
                let told = told_conflicts(store, &more.conflicts)
                    .map(|told| format!("; {told}"))
                    .unwrap_or_default();
                tell(
                    json,
                    "synced",
                    &more,
                    &format!("at revision {}{told}", more.to),
                );
            }
            Err(StoreError::Unreachable { what, .. }) => {
                if !std::mem::replace(&mut away, true) {
                    tell(json, "waiting", synced, &what);
                }
                std::thread::sleep(PAUSE.min(left));
            }
            Err(error) => return Err(error.into()),
        }
    }
}

/// Prints events as data on stdout and text as messages on stderr. A closed pipe does not stop the
/// sync.
fn tell(json: bool, event: &str, synced: &Synced, words: &str) {
    if json {
        let event = json!({"event": event, "from": synced.from, "to": synced.to, "conflicts": synced.conflicts, "what": words});
        let _ = terminal::show_json(&event.to_string());
    } else {
        terminal::say(words);
    }
}
