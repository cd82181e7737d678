//! A working copy: the journal as a replica of a shared commit log.
//!
//! This copy validates records, the log accepts them, and only then are they written to the journal,
//! in the log's order. A commit has these steps; each one says what a crash leaves:
//! 1. `.quipu/cursor` stores the ids that are about to be sent.
//! 2. The log accepts the request in one round trip. From here on nothing is lost. After a crash,
//!    the record is in the log and not here, and `cursor` makes the next command ask for it.
//! 3. The records are written to the journal and applied to the files, as in a local project.

use std::time::Duration;

use quipu_contract::ProjectPath;
use serde::Serialize;

use crate::apply::conflict_copies::{conflict_place, kept_id};
use crate::change::{Change, Expect, Op};
use crate::commit::publish::{Receipt, Snapshot, Validated, Work};
use crate::error::{Result, StoreError};
use crate::journal::lease::LeaseToken;
use crate::journal::record::{Kind, OpKind, Record};
use crate::journal::watermarks::Tail;
use crate::lock::Held;
use crate::replica::commit_log::{
    CommitLog, CommitRequest, CommitResult, LogCursor, Verdict, WaitPolicy,
};
use crate::replica::link::Submitted;
use crate::store::Store;
use crate::version::Version;

/// How often a stale change is validated again before the writer takes the exclusive lock.
const QUICK_TRIES: usize = 2;
/// How often a change is submitted in total.
const TRIES: usize = 8;

const CONTRACT: &str = "quipu.toml";

/// The key of a note that replaces a record of the shared log which this working copy cannot take
/// over.
pub const HELD_BACK: &str = "held_back";

/// The reason why a record is only a note for one that could not be taken over from the shared log.
pub(crate) fn held_back(record: &Record) -> Option<&str> {
    let note = record
        .note
        .as_ref()
        .filter(|_| record.kind == Kind::Note && record.ops.is_empty())?;
    note.get(HELD_BACK)?.as_str()
}

/// The result of a sync.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
pub struct Synced {
    pub from: u64,
    pub to: u64,
    /// Edits that were in the way and are now conflict copies in `.quipu/conflicts`.
    pub conflicts: Vec<String>,
}

/// A conflict copy: an edit that was in the way of a newer commit.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Conflict {
    /// Its path from the root of the project.
    pub kept: String,
    /// The edited file, if it can be determined.
    pub path: Option<String>,
}

impl Store {
    /// How far this working copy has read the shared log.
    pub fn cursor(&self) -> Result<LogCursor> {
        self.settle()?;
        let _held = self.journal.lock()?;
        let snapshot = self.snapshot()?;
        self.cursor_of(&snapshot.tail)
    }

    /// Turns a project into a working copy or back into a local project, while nobody writes.
    /// `work` gets the newest number. Processes with the old state have to take a new snapshot.
    pub fn change_allegiance(&self, work: impl FnOnce(u64) -> Result<()>) -> Result<()> {
        self.settle()?;
        let _held = self.journal.lock()?;
        let tail = self.snapshot()?.tail;
        self.journal.sync_to(tail.at)?;
        work(tail.seq)?;
        self.journal.watermarks()?.forget()
    }

    /// Takes over the commits of others and applies them to the files. Does nothing in a local
    /// project.
    pub fn sync(&self) -> Result<Synced> {
        let Some(commit_log) = self.commit_log() else {
            let at = self.pulse()?;
            return Ok(Synced {
                from: at,
                to: at,
                conflicts: Vec::new(),
            });
        };
        self.settle()?;
        let before = self.copies.conflict_names();
        let from = self.pulse()?;
        self.pull(commit_log, WaitPolicy::Retry)?;
        let conflicts = self
            .copies
            .conflict_names()
            .into_iter()
            .filter(|name| !before.contains(name))
            .collect();
        Ok(Synced {
            from,
            to: self.pulse()?,
            conflicts,
        })
    }

    /// Waits until the shared log has records that are not here; false on a timeout.
    pub fn wait(&self, most: Duration) -> Result<bool> {
        match self.commit_log() {
            Some(commit_log) => commit_log.wait(self.pulse()?, most),
            None => Ok(false),
        }
    }

    /// Pulls all newer records. Returns their number.
    pub(crate) fn pull(
        &self,
        commit_log: &dyn CommitLog,
        wait_policy: WaitPolicy,
    ) -> Result<usize> {
        let mut count = 0;
        loop {
            let held = self.journal.lock()?;
            let snapshot = self.snapshot()?;
            let cursor = self.cursor_of(&snapshot.tail)?;
            let commit_result = commit_log.after(&cursor, wait_policy)?;
            self.replica.note_time(&commit_result);
            let (got, newest) = (commit_result.records.len(), commit_result.newest);
            if got == 0 {
                self.replica.note_request(&cursor, &[]);
                return Ok(count);
            }
            let end = self.take_over(snapshot, commit_result.records, &[])?;
            drop(held);
            self.journal.sync_to(end.at)?;
            self.apply_to(end.at)?;
            count += got;
            if end.seq >= newest {
                return Ok(count);
            }
        }
    }

    /// Submits records that were validated with this snapshot.
    pub(crate) fn submit(
        &self,
        commit_log: &dyn CommitLog,
        held: Held,
        snapshot: Snapshot,
        records: Vec<Record>,
        lease: Option<LeaseToken>,
        wait_policy: WaitPolicy,
    ) -> Result<Submitted> {
        let cursor = self.cursor_of(&snapshot.tail)?;
        let ids: Vec<String> = records.iter().map(|r| r.id.clone()).collect();
        let relies = self.contract_versions(&snapshot, &records)?;
        self.replica.note_request(&cursor, &ids);
        let request = CommitRequest {
            cursor: cursor.clone(),
            records: &records,
            lease,
            relies,
            wait_policy,
        };
        let commit_result = commit_log.commit(&request).inspect_err(|error| {
            // Only if no answer arrived may the request have been accepted.
            if !matches!(error, StoreError::Unreachable { sent: true, .. }) {
                self.replica.note_request(&cursor, &[]);
            }
        })?;
        self.replica.note_time(&commit_result);
        let CommitResult {
            verdict,
            records: mut newer,
            ..
        } = commit_result;
        if verdict == Verdict::Accepted {
            fetch_accepted(commit_log, &cursor, &ids, &mut newer)?;
        }
        let is_ours = |record: &&Record| ids.contains(&record.id);
        let ours: Vec<Record> = newer.iter().filter(is_ours).cloned().collect();
        let seq = ours.last().map_or(0, |r| r.seq);
        // Once the log has the records, later errors must not look as if nothing had happened.
        let safe = |error: StoreError| match seq {
            0 => error,
            seq => StoreError::Unfinished {
                seq,
                path: ".quipu".into(),
                source: std::io::Error::other(error),
            },
        };
        let moved = !newer.is_empty();
        let end = if moved {
            self.take_over(snapshot, newer, &ids).map_err(safe)?
        } else {
            self.replica.note_request(&cursor, &[]);
            snapshot.tail
        };
        drop(held);
        if moved {
            self.journal.sync_to(end.at).map_err(safe)?;
        }
        if verdict == Verdict::Accepted {
            return Ok(Submitted::Accepted(ours, end));
        }
        if moved {
            self.apply_to(end.at)?;
        }
        not_accepted(verdict, moved)
    }

    /// Appends records of the shared log to the journal. Requires the append lock.
    fn take_over(&self, snapshot: Snapshot, records: Vec<Record>, ours: &[String]) -> Result<Tail> {
        let mut expected = snapshot.tail.seq;
        let mut replicated = Vec::with_capacity(records.len());
        for mut record in records {
            expected += 1;
            if record.seq != expected {
                return Err(StoreError::refused(
                    format!(
                        "the shared commit log continues at revision {}, but this working copy \
                         ends at {}",
                        record.seq,
                        expected - 1
                    ),
                    "quipu doctor",
                ));
            }
            record.elsewhere = !ours.contains(&record.id);
            for op in record.ops.iter_mut().filter(|o| o.op != OpKind::Keep) {
                let path = ProjectPath::parse(&op.path).map_err(|e| {
                    StoreError::refused(
                        format!("the shared commit log contains an invalid file name: {e}"),
                        "quipu doctor",
                    )
                })?;
                op.last = snapshot
                    .head(self, &path)?
                    .0
                    .filter(|h| h.seq > 0)
                    .map(|h| h.at.text());
            }
            replicated.push(record);
        }
        let cursor = replicated.last().map(|r| LogCursor {
            rev: r.seq,
            id: r.id.clone(),
        });
        let end = self.append_records(&snapshot, replicated)?.end;
        if let Some(cursor) = cursor {
            self.replica.note_request(&cursor, &[]);
        }
        Ok(end)
    }

    /// The versions of the contract's own files that validation used.
    fn contract_versions(
        &self,
        snapshot: &Snapshot,
        records: &[Record],
    ) -> Result<Vec<(String, Option<Version>)>> {
        let changed = |path: &str| records.iter().any(|r| r.ops.iter().any(|o| o.path == path));
        let mut versions = Vec::new();
        for rule in self.contract().files.iter().filter(|r| r.people_only) {
            if let Some(path) = rule
                .path
                .as_literal()
                .filter(|path| !changed(path))
                .and_then(|path| ProjectPath::parse(path).ok())
            {
                let head = snapshot.head(self, &path)?.0.filter(|h| !h.gone);
                // Validation used the contract that was read when the store was opened, not the
                // current file.
                let read = (path.as_str() == CONTRACT)
                    .then(|| self.replica.contract_text())
                    .flatten();
                versions.push((
                    path.as_str().to_owned(),
                    read.cloned().or(head.map(|h| h.version)),
                ));
            }
        }
        Ok(versions)
    }

    fn cursor_of(&self, tail: &Tail) -> Result<LogCursor> {
        if tail.seq == 0 {
            return Ok(LogCursor::default());
        }
        if let Some(noted) = self
            .replica
            .sent_request()
            .filter(|noted| noted.cursor.rev == tail.seq)
        {
            return Ok(noted.cursor);
        }
        let mut cursor = LogCursor::default();
        self.journal.each_newest_first(1, &mut |_, record| {
            cursor = LogCursor {
                rev: record.seq,
                id: record.id.clone(),
            }
        })?;
        Ok(cursor)
    }

    /// Checks whether requests of a dead process were accepted. If the server does not answer,
    /// reading continues.
    pub(crate) fn heal_sent(&self) -> Result<()> {
        let Some(commit_log) = self.commit_log() else {
            return Ok(());
        };
        let Some((process, _)) = self.replica.sent_request().and_then(|noted| noted.sent) else {
            return Ok(());
        };
        if process == std::process::id()
            || std::path::Path::new(&format!("/proc/{process}")).exists()
        {
            return Ok(());
        }
        match self.pull(commit_log, WaitPolicy::OneTry) {
            Err(StoreError::Unreachable { .. }) => Ok(()),
            other => other.map(|_| ()),
        }
    }

    /// The ids that were sent and never answered: it is unknown whether they were accepted.
    pub fn unanswered(&self) -> Vec<String> {
        let dead = |process: u32| {
            process == std::process::id()
                || !std::path::Path::new(&format!("/proc/{process}")).exists()
        };
        self.replica
            .sent_request()
            .and_then(|noted| noted.sent)
            .filter(|(process, _)| dead(*process))
            .map(|(_, ids)| ids)
            .unwrap_or_default()
    }

    /// Validates a change. If the result is an error that may be based on an old copy, updates the
    /// copy and validates again.
    pub(crate) fn validate_newest(&self, change: &Change) -> Result<Validated<'_>> {
        let validated = self.validate_here(change);
        let Some(commit_log) = self.commit_log() else {
            return validated;
        };
        match validated {
            Err(error) if is_answer(&error) => match self.pull(commit_log, WaitPolicy::OneTry) {
                // The log's clock is known now as well, so a lease may turn out to be expired.
                Ok(0) if !matches!(error, StoreError::LeaseLost { .. }) => Err(error),
                Err(StoreError::Unreachable { .. }) => Err(error),
                Ok(_) => self.validate_here(change),
                Err(other) => Err(other),
            },
            other => other,
        }
        .map_err(|error| self.keep_loser(change, error))
    }

    /// Publishes a validated change through the log. Validates it again on the newest state after each
    /// stale result.
    pub(crate) fn publish_shared<'s>(
        &'s self,
        commit_log: &dyn CommitLog,
        mut validated: Validated<'s>,
        change: &Change,
    ) -> Result<(Receipt, Option<Tail>)> {
        let mut moved = String::new();
        for attempt in 0..TRIES {
            let work = validated.into_work().inspect_err(|_| commit_log.unlock())?;
            let (held, snapshot, mut outcome) = match work {
                Work::Publish(held, snapshot, outcome) => (held, snapshot, outcome),
                Work::Done(receipt) => return Ok((receipt, None)),
            };
            let records = std::mem::take(&mut outcome.records);
            match self.submit(
                commit_log,
                held,
                *snapshot,
                records,
                change.lease.clone(),
                WaitPolicy::Retry,
            )? {
                Submitted::Accepted(ours, end) => {
                    let last = ours.last().ok_or_else(|| {
                        StoreError::refused("the shared commit log lost a commit", "quipu doctor")
                    })?;
                    return Ok((outcome.receipt(last), Some(end)));
                }
                Submitted::Moved(what) => {
                    if what == CONTRACT {
                        self.agree_on_contract()?;
                    }
                    moved = what;
                }
            }
            validated = if attempt < QUICK_TRIES {
                self.validate_newest(change)?
            } else {
                self.validate_exclusively(commit_log, change)?
            };
        }
        Err(StoreError::LeaseLost {
            what: format!("other commits came first {TRIES} times: {moved} has changed"),
        })
    }

    /// This process does not validate by the newest contract. If the difference is an external edit on
    /// this disk, it is adopted and becomes the newest.
    fn agree_on_contract(&self) -> Result<()> {
        let path = ProjectPath::parse(CONTRACT).expect("it is a plain name");
        let adopted = self.adopt_edits(std::slice::from_ref(&path))?;
        let head = self.index.open()?.head(CONTRACT)?.map(|h| h.version);
        if adopted.iter().any(|a| a.path == CONTRACT)
            || head.as_ref() == self.replica.contract_text()
        {
            return Ok(());
        }
        let what = "the contract has changed since this command read it; nothing was written";
        Err(StoreError::refused(
            what,
            "run the same command again: it is checked against the new contract",
        ))
    }

    /// Validates under the exclusive lock of the log.
    fn validate_exclusively(
        &self,
        commit_log: &dyn CommitLog,
        change: &Change,
    ) -> Result<Validated<'_>> {
        let validate = || -> Result<Validated<'_>> {
            let held = self.journal.lock()?;
            let snapshot = self.snapshot()?;
            let cursor = self.cursor_of(&snapshot.tail)?;
            let commit_result = commit_log.lock(&cursor)?;
            self.replica.note_time(&commit_result);
            if commit_result.records.is_empty() {
                return self.validate_held(held, snapshot, change);
            }
            let end = self.take_over(snapshot, commit_result.records, &[])?;
            self.journal.sync_to(end.at)?;
            self.applier.apply_files(end.at)?;
            let snapshot = self.snapshot()?;
            self.validate_held(held, snapshot, change)
        };
        match validate() {
            Ok(validated) if validated.records().is_empty() => {
                commit_log.unlock();
                Ok(validated)
            }
            Ok(validated) => Ok(validated),
            Err(error) => {
                commit_log.unlock();
                Err(self.keep_loser(change, error))
            }
        }
    }

    /// Keeps a stale text as a conflict copy, so that its writer finds it.
    fn keep_loser(&self, change: &Change, error: StoreError) -> StoreError {
        let StoreError::Stale {
            path,
            expected,
            now,
            kept: None,
        } = error
        else {
            return error;
        };
        let bytes = change.ops.iter().find_map(|op| match op {
            Op::Write {
                path: of,
                bytes,
                expect: Expect::Version(_),
            } if of.as_str() == path && !change.revised => Some(bytes),
            _ => None,
        });
        let kept = bytes.and_then(|bytes| self.copies.keep_conflict(&path, bytes).ok());
        StoreError::Stale {
            path,
            expected,
            now,
            kept,
        }
    }

    /// Records of the shared log that could not be taken over, among the newest records: number and
    /// reason.
    pub fn held_back(&self) -> Result<Vec<(u64, String)>> {
        let mut found = Vec::new();
        self.journal.each_line_newest_first(
            crate::journal::backwards::RECENT_BYTES,
            &mut |_, line| {
                if memchr::memmem::find(line, HELD_BACK.as_bytes()).is_some()
                    && let Ok(record) = Record::decode(line)
                {
                    found.extend(held_back(&record).map(|why| (record.seq, why.to_owned())));
                }
                true
            },
        )?;
        found.reverse();
        Ok(found)
    }

    /// The conflict copies in `.quipu/conflicts`.
    pub fn conflicts(&self) -> Result<Vec<Conflict>> {
        let names = self.copies.conflict_names();
        let files = if names.is_empty() {
            Vec::new()
        } else {
            self.list()?
        };
        let conflict = |kept: String| {
            let mut edited = files
                .iter()
                .filter(|path| kept == conflict_place(kept_id(&kept), path.as_str()));
            let path = edited
                .next()
                .filter(|_| edited.next().is_none())
                .map(ToString::to_string);
            Conflict { kept, path }
        };
        Ok(names.into_iter().map(conflict).collect())
    }

    /// Visits every record of the journal in order. A damaged line is an error.
    pub fn each_record(&self, visit: &mut dyn FnMut(&Record) -> Result<()>) -> Result<()> {
        self.settle()?;
        let bound = self.journal.bound()?;
        let mut result = Ok(());
        self.journal.scan(
            crate::journal::segments::Position::START,
            Some(bound),
            &mut |seen| {
                if result.is_err() {
                    return;
                }
                result = match seen.line {
                    crate::journal::segments::Line::Record(record) => visit(&record),
                    crate::journal::segments::Line::Damaged(damage) => Err(StoreError::Damaged {
                        segment: seen.at.segment,
                        line: seen.number,
                        what: damage.what,
                    }),
                    crate::journal::segments::Line::OtherFormat(other) => Err(other.refusal()),
                };
            },
        )?;
        result
    }

    /// Problems of the shared log, as this working copy sees it.
    pub fn examine_commit_log(&self) -> Result<Vec<(String, String)>> {
        match self.commit_log() {
            Some(commit_log) => commit_log.examine(&self.cursor()?),
            None => Ok(Vec::new()),
        }
    }
}

fn not_accepted(verdict: Verdict, moved: bool) -> Result<Submitted> {
    match verdict {
        Verdict::Held(what) if !moved => Err(StoreError::LeaseLost { what }),
        Verdict::Refused { what, remedy } => Err(StoreError::refused(what, remedy)),
        Verdict::Stale(what) | Verdict::Held(what) => Ok(Submitted::Moved(what)),
        Verdict::Accepted => Ok(Submitted::Moved(String::new())),
    }
}

/// Fetches records until the accepted ones are among them: an answer may not hold all.
fn fetch_accepted(
    commit_log: &dyn CommitLog,
    cursor: &LogCursor,
    ids: &[String],
    newer: &mut Vec<Record>,
) -> Result<()> {
    let wanted = ids.last().map(String::as_str).unwrap_or_default();
    while !newer.iter().any(|r| r.id == wanted) {
        let cursor = newer.last().map_or(cursor.clone(), |r| LogCursor {
            rev: r.seq,
            id: r.id.clone(),
        });
        // The request was accepted, so a lost connection must not look as if it was not sent.
        let more = commit_log
            .after(&cursor, WaitPolicy::Retry)
            .map_err(|error| match error {
                StoreError::Unreachable { what, remedy, .. } => StoreError::Unreachable {
                    what,
                    sent: true,
                    remedy,
                },
                other => other,
            })?;
        if more.records.is_empty() {
            return Err(StoreError::refused(
                "the shared commit log accepted a commit but does not return it",
                "quipu doctor",
            ));
        }
        newer.extend(more.records);
    }
    Ok(())
}

/// Whether an error is a decision of validation, and not a failure on the way to one.
fn is_answer(error: &StoreError) -> bool {
    matches!(
        error,
        StoreError::Stale { .. }
            | StoreError::LeaseLost { .. }
            | StoreError::Refused(_)
            | StoreError::NotFound { .. }
    )
}
