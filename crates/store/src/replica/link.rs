//! The link of a working copy to its shared log: the log itself, its clock, and `.quipu/sent`.
//!
//! `sent` names the requests of a process that may have been accepted without being here. It is only
//! a hint: it is compared with the journal, and without it the journal is read.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicI64, Ordering};

use quipu_contract::MANIFEST;

use crate::clock::Instant;
use crate::error::{Result, StoreError};
use crate::journal::record::Record;
use crate::journal::watermarks::Tail;
use crate::replica::commit_log::{CommitLog, CommitResult, LogCursor, SHARED};
use crate::settings::Settings;
use crate::version::Version;

/// The size of `.quipu/sent`. Longer content makes the file longer.
const SENT: usize = 256;

/// The content of `.quipu/sent`.
pub(super) struct SentRequest {
    pub cursor: LogCursor,
    /// A process, and the ids that it has sent without an answer so far.
    pub sent: Option<(u32, Vec<String>)>,
}

/// The result of a commit request.
pub(crate) enum Submitted {
    /// The records are in the log and in the journal, up to this tail. They have the numbers that
    /// the log assigned.
    Accepted(Vec<Record>, Tail),
    /// Other commits came first. They are in the journal now.
    Moved(String),
}

/// In a local project, there is no log and every method is cheap.
pub(crate) struct Replica {
    settings: Arc<Settings>,
    commit_log: Option<Arc<dyn CommitLog>>,
    /// How far the log's clock is ahead of this one.
    skew_us: AtomicI64,
    /// Unanswered requests of a killed process were checked.
    is_sent_sought: AtomicBool,
    /// The version of the contract when the store was opened; only in a working copy.
    contract_text: Option<Version>,
}

impl Replica {
    pub fn new(settings: Arc<Settings>, commit_log: Option<Arc<dyn CommitLog>>) -> Replica {
        let contract_text = commit_log
            .as_ref()
            .and_then(|_| std::fs::read(settings.root.join(MANIFEST)).ok())
            .map(|text| Version::of(&text));
        Replica {
            settings,
            commit_log,
            skew_us: AtomicI64::new(0),
            is_sent_sought: AtomicBool::new(false),
            contract_text,
        }
    }

    pub fn commit_log(&self) -> Option<&dyn CommitLog> {
        self.commit_log.as_deref()
    }

    pub fn contract_text(&self) -> Option<&Version> {
        self.contract_text.as_ref()
    }

    /// Whether the requests of killed processes are not checked yet. The caller is about to.
    pub fn begin_search(&self) -> bool {
        self.commit_log.is_some() && !self.is_sent_sought.swap(true, Ordering::SeqCst)
    }

    /// The clock for the expiry of leases: the log's clock in a working copy.
    pub(crate) fn lease_now(&self) -> Instant {
        let now = self.settings.now();
        match self.commit_log {
            Some(_) => Instant {
                wall_us: now.wall_us + self.skew_us.load(Ordering::Relaxed),
                ..now
            },
            None => now,
        }
    }

    /// A process that started before the project was moved must not write to the old side.
    pub(crate) fn check_allegiance(&self) -> Result<()> {
        let follows = self.settings.quipu().join(SHARED).exists();
        match (&self.commit_log, follows) {
            (None, true) if !self.settings.alone => Err(StoreError::refused(
                "this project became a working copy of a shared store after this program started",
                "start the program again",
            )),
            _ => Ok(()),
        }
    }

    pub fn note_time(&self, commit_result: &CommitResult) {
        self.skew_us.store(
            commit_result.now_us - self.settings.now().wall_us,
            Ordering::Relaxed,
        );
    }

    /// Reads `.quipu/sent`: the end of the replica, and a process with the ids that may have been
    /// accepted without being here.
    pub(super) fn sent_request(&self) -> Option<SentRequest> {
        let text =
            crate::files::regular_file::read_regular_text(&self.settings.quipu().join("sent"))
                .ok()?;
        let mut lines = text.lines();
        let (rev, id) = lines.next()?.split_once(' ')?;
        let sent = lines.next().and_then(|line| {
            let mut words = line.split(' ');
            Some((
                words.next()?.parse().ok()?,
                words.map(str::to_owned).collect(),
            ))
        });
        Some(SentRequest {
            cursor: LogCursor {
                rev: rev.parse().ok()?,
                id: id.to_owned(),
            },
            sent,
        })
    }

    /// Writes `.quipu/sent`. It is only a hint: it is compared with the journal, and without it the
    /// journal is read. It is written twice per commit, so the file is overwritten and not
    /// truncated first: some file systems sync a truncation at once.
    pub fn note_request(&self, cursor: &LogCursor, sent: &[String]) {
        let mut text = format!("{} {}\n", cursor.rev, cursor.id);
        if !sent.is_empty() {
            text.push_str(&format!("{} {}\n", std::process::id(), sent.join(" ")));
        }
        // An empty line ends the content, in case older content was longer.
        text.extend(std::iter::repeat_n(
            '\n',
            SENT.saturating_sub(text.len()).max(1),
        ));
        let opened = std::fs::File::options()
            .create(true)
            .truncate(false)
            .write(true)
            .open(self.settings.quipu().join("sent"));
        let _ = opened.and_then(|mut file| std::io::Write::write_all(&mut file, text.as_bytes()));
    }
}
