//! A working copy: the journal as a replica of a shared commit log.
//!
//! This copy judges records, the log accepts them, and only then are they written to the journal,
//! in the log's order. A commit has these steps; each one says what a crash leaves:
//! 1. `.quipu/mark` stores the ids that are about to be sent.
//! 2. The log accepts the request in one round trip. From here on nothing is lost. After a crash,
//!    the record is in the log and not here, and `mark` makes the next command ask for it.
//! 3. The records are written to the journal and applied to the files, as in a local project.

use std::sync::atomic::Ordering;
use std::time::Duration;

use quipu_contract::{Actor, ProjectPath};
use serde::Serialize;

use crate::change::{Change, Expect, Op};
use crate::clock::Instant;
use crate::error::{Result, StoreError};
use crate::lease::{Lease, LeaseToken};
use crate::live::Tail;
use crate::lock::Held;
use crate::order::{Bid, Mark, Order, Patience, Ruling, SHARED, Verdict};
use crate::publish::{Judged, Look, Receipt};
use crate::record::{Kind, OpKind, Record};
use crate::store::Store;
use crate::version::Version;

/// How often a stale change is judged again before the writer takes the exclusive lock.
const QUICK_TRIES: usize = 2;
/// How often a change is submitted in total.
const TRIES: usize = 8;

/// The size of `.quipu/mark`. Longer content makes the file longer.
const MARK: usize = 256;

const CONTRACT: &str = "quipu.toml";

/// The key of a note that replaces a record of the shared log which this working copy cannot take
/// over.
pub const HELD_BACK: &str = "held_back";

const CONFLICTS: &str = ".quipu/conflicts/";

/// The path of a conflict copy.
fn conflict_place(id: &str, path: &str) -> String {
    let name: String = format!("{id}-{}", path.replace('/', "-"))
        .chars()
        .take(120)
        .collect();
    format!("{CONFLICTS}{name}")
}

fn kept_id(place: &str) -> &str {
    let name = place.strip_prefix(CONFLICTS).unwrap_or(place);
    name.split('-').next().unwrap_or(name)
}

/// The conflict copies in `.quipu/conflicts`, as paths from the root of the project.
pub fn conflict_names(quipu: &std::path::Path) -> Vec<String> {
    let Ok(entries) = std::fs::read_dir(quipu.join("conflicts")) else {
        return Vec::new();
    };
    let mut names: Vec<String> = entries
        .flatten()
        .map(|e| format!("{CONFLICTS}{}", e.file_name().to_string_lossy()))
        .collect();
    names.sort_unstable();
    names
}

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

/// Options of a commit request.
pub(crate) struct Terms {
    /// The lease of the writer.
    pub lease: Option<LeaseToken>,
    /// Alternatives to the lease in the record.
    pub instead: Vec<(String, Vec<String>)>,
    pub patience: Patience,
}

impl Terms {
    pub fn plain(patience: Patience) -> Terms {
        Terms {
            lease: None,
            instead: Vec::new(),
            patience,
        }
    }
}

/// The content of `.quipu/mark`.
struct NotedMark {
    mark: Mark,
    /// A process, and the ids that it has sent without an answer so far.
    sent: Option<(u32, Vec<String>)>,
}

/// The result of a commit request.
pub(crate) enum Submitted {
    /// The records are in the log and in the journal, up to this tail. They have the numbers that
    /// the log assigned.
    Accepted(Vec<Record>, Tail),
    /// Other commits came first. They are in the journal now.
    Moved(String),
}

impl Store {
    /// The shared commit log of this working copy; none in a local project.
    pub fn order(&self) -> Option<&dyn Order> {
        self.order.as_deref()
    }

    /// How far this working copy has read the shared log.
    pub fn mark(&self) -> Result<Mark> {
        self.settle()?;
        let _held = self.append_lock.acquire()?;
        let look = self.look()?;
        self.mark_of(&look.tail)
    }

    /// The clock for the expiry of leases: the log's clock in a working copy.
    pub(crate) fn lease_now(&self) -> Instant {
        let now = self.clock.now();
        match self.order {
            Some(_) => Instant {
                wall_us: now.wall_us + self.skew_us.load(Ordering::Relaxed),
                ..now
            },
            None => now,
        }
    }

    /// Turns a project into a working copy or back into a local project, while nobody writes.
    /// `work` gets the newest number. Processes with the old state have to take a new snapshot.
    pub fn change_allegiance(&self, work: impl FnOnce(u64) -> Result<()>) -> Result<()> {
        self.settle()?;
        let _held = self.append_lock.acquire()?;
        let tail = self.look()?.tail;
        self.sync_to(tail.at)?;
        work(tail.seq)?;
        self.live()?.forget(&self.disk)
    }

    /// A process that started before the project was moved must not write to the old side.
    pub(crate) fn check_allegiance(&self) -> Result<()> {
        let follows = self.quipu().join(SHARED).exists();
        match (&self.order, follows) {
            (None, true) if !self.alone => Err(StoreError::refused(
                "this project has become a working copy of a shared store since this program was started",
                "start it again",
            )),
            _ => Ok(()),
        }
    }

    fn note_time(&self, ruling: &Ruling) {
        self.skew_us
            .store(ruling.now_us - self.clock.now().wall_us, Ordering::Relaxed);
    }

    /// Takes over the commits of others and applies them to the files. Does nothing in a local
    /// project.
    pub fn sync(&self) -> Result<Synced> {
        let Some(order) = &self.order else {
            let at = self.pulse()?;
            return Ok(Synced {
                from: at,
                to: at,
                conflicts: Vec::new(),
            });
        };
        self.settle()?;
        let before = self.conflict_names();
        let from = self.pulse()?;
        self.pull(&**order, Patience::Bounded)?;
        let conflicts = self
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
        match &self.order {
            Some(order) => order.wait(self.pulse()?, most),
            None => Ok(false),
        }
    }

    /// Takes the first of several leases that nobody holds: the index of its paths, and the lease.
    /// None if all are held.
    pub fn claim(
        &self,
        actor: &Actor,
        wishes: &[Vec<String>],
        seconds: u64,
    ) -> Result<Option<(usize, Lease)>> {
        if self.order.is_some() {
            return self.claim_shared(actor, wishes, seconds);
        }
        for (index, paths) in wishes.iter().enumerate() {
            match self.take_lease(actor, paths, seconds) {
                Ok(lease) => return Ok(Some((index, lease))),
                Err(StoreError::LeaseLost { .. }) => {}
                Err(error) => return Err(error),
            }
        }
        Ok(None)
    }

    fn claim_shared(
        &self,
        actor: &Actor,
        wishes: &[Vec<String>],
        seconds: u64,
    ) -> Result<Option<(usize, Lease)>> {
        let mut named = Vec::new();
        for paths in wishes {
            let patterns = self.check_leasable(actor, paths)?;
            named.push((crate::ident::short_id(), crate::lease::spelled(&patterns)));
        }
        let Some(((id, paths), others)) = named.split_first() else {
            return Ok(None);
        };
        let taken = self.lease_event_of(actor, others.to_vec(), None, |_, fence, now, boot| {
            Ok(crate::lease::event(
                "take",
                id,
                paths,
                fence + 1,
                seconds,
                now,
                boot,
            ))
        });
        match taken {
            Ok(lease) => Ok(named
                .iter()
                .position(|(id, _)| *id == lease.id)
                .map(|index| (index, lease))),
            Err(StoreError::LeaseLost { .. }) => Ok(None),
            Err(error) => Err(error),
        }
    }

    /// Pulls all newer records. Returns their number.
    pub(crate) fn pull(&self, order: &dyn Order, patience: Patience) -> Result<usize> {
        let mut count = 0;
        loop {
            let held = self.append_lock.acquire()?;
            let look = self.look()?;
            let mark = self.mark_of(&look.tail)?;
            let ruling = order.after(&mark, patience)?;
            self.note_time(&ruling);
            let (got, newest) = (ruling.records.len(), ruling.newest);
            if got == 0 {
                self.note_mark(&mark, &[]);
                return Ok(count);
            }
            let end = self.take_over(look, ruling.records, &[])?;
            drop(held);
            self.sync_to(end.at)?;
            self.apply_to(end.at)?;
            count += got;
            if end.seq >= newest {
                return Ok(count);
            }
        }
    }

    /// Submits records that were judged with this snapshot.
    pub(crate) fn submit(
        &self,
        order: &dyn Order,
        held: Held<'_>,
        look: Look,
        records: Vec<Record>,
        terms: Terms,
    ) -> Result<Submitted> {
        let Terms {
            lease,
            instead,
            patience,
        } = terms;
        let mark = self.mark_of(&look.tail)?;
        let ids: Vec<String> = records.iter().map(|r| r.id.clone()).collect();
        let relies = self.contract_versions(&look, &records)?;
        self.note_mark(&mark, &ids);
        let bid = Bid {
            mark: mark.clone(),
            records: &records,
            lease,
            relies,
            instead,
            patience,
        };
        let ruling = match order.rule(&bid) {
            Ok(ruling) => ruling,
            Err(error) => {
                // Only if no answer arrived may the request have been accepted.
                if !matches!(error, StoreError::Unreachable { sent: true, .. }) {
                    self.note_mark(&mark, &[]);
                }
                return Err(error);
            }
        };
        self.note_time(&ruling);
        let mut newer = ruling.records;
        let wanted = ids.last().cloned().unwrap_or_default();
        while ruling.verdict == Verdict::Accepted && !newer.iter().any(|r| r.id == wanted) {
            let mark = newer.last().map_or(mark.clone(), |r| Mark {
                rev: r.seq,
                id: r.id.clone(),
            });
            // The request was accepted. Later errors must not look as if nothing had happened.
            let more = order
                .after(&mark, Patience::Bounded)
                .map_err(|error| match error {
                    StoreError::Unreachable { what, remedy, .. } => StoreError::Unreachable {
                        what,
                        sent: true,
                        remedy,
                    },
                    other => other,
                });
            let more = more?.records;
            if more.is_empty() {
                return Err(StoreError::refused(
                    "the shared log accepted a commit and does not show it",
                    "quipu doctor",
                ));
            }
            newer.extend(more);
        }
        let ours: Vec<Record> = newer
            .iter()
            .filter(|r| ids.contains(&r.id))
            .cloned()
            .collect();
        let moved = !newer.is_empty();
        let seq = ours.last().map_or(0, |r| r.seq);
        let safe = |error: StoreError| match seq {
            0 => error,
            seq => StoreError::Unfinished {
                seq,
                path: ".quipu".into(),
                source: std::io::Error::other(error),
            },
        };
        let end = if moved {
            self.take_over(look, newer, &ids).map_err(safe)?
        } else {
            self.note_mark(&mark, &[]);
            look.tail
        };
        drop(held);
        if moved {
            self.sync_to(end.at).map_err(safe)?;
        }
        match ruling.verdict {
            Verdict::Accepted => Ok(Submitted::Accepted(ours, end)),
            verdict => {
                if moved {
                    self.apply_to(end.at)?;
                }
                match verdict {
                    Verdict::Held(what) if !moved => Err(StoreError::LeaseLost { what }),
                    Verdict::Refused { what, remedy } => Err(StoreError::refused(what, remedy)),
                    Verdict::Stale(what) | Verdict::Held(what) => Ok(Submitted::Moved(what)),
                    Verdict::Accepted => Ok(Submitted::Moved(String::new())),
                }
            }
        }
    }

    /// Appends records of the shared log to the journal. Requires the append lock.
    fn take_over(&self, look: Look, records: Vec<Record>, ours: &[String]) -> Result<Tail> {
        let mut expected = look.tail.seq;
        let mut replicated = Vec::with_capacity(records.len());
        for mut record in records {
            expected += 1;
            if record.seq != expected {
                return Err(StoreError::refused(
                    format!(
                        "the shared log goes on at revision {}, and this working copy ends at {}",
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
                        format!("the shared log names a file that may not be: {e}"),
                        "quipu doctor",
                    )
                })?;
                op.last = look
                    .head(self, &path)?
                    .0
                    .filter(|h| h.seq > 0)
                    .map(|h| h.at.text());
            }
            replicated.push(record);
        }
        let mark = replicated.last().map(|r| Mark {
            rev: r.seq,
            id: r.id.clone(),
        });
        let before = look.tail.at;
        let grown = self.grow(look, replicated);
        if grown.is_err() {
            let _ = self.journal.cut(before);
            let _ = self
                .live()
                .and_then(|live| live.set_doubt(&self.disk, true));
        }
        let end = grown?.end;
        if let Some(mark) = mark {
            self.note_mark(&mark, &[]);
        }
        Ok(end)
    }

    /// The versions of the contract's own files that the judge used.
    fn contract_versions(
        &self,
        look: &Look,
        records: &[Record],
    ) -> Result<Vec<(String, Option<Version>)>> {
        let changed = |path: &str| records.iter().any(|r| r.ops.iter().any(|o| o.path == path));
        let mut versions = Vec::new();
        for rule in self.contract.files.iter().filter(|r| r.people_only) {
            if let Some(path) = rule
                .path
                .as_literal()
                .filter(|path| !changed(path))
                .and_then(|path| ProjectPath::parse(path).ok())
            {
                let head = look.head(self, &path)?.0.filter(|h| !h.gone);
                // The judge used the contract that was read when the store was opened, not the
                // current file.
                let read = (path.as_str() == CONTRACT)
                    .then(|| self.contract_text.clone())
                    .flatten();
                versions.push((path.as_str().to_owned(), read.or(head.map(|h| h.version))));
            }
        }
        Ok(versions)
    }

    fn mark_of(&self, tail: &Tail) -> Result<Mark> {
        if tail.seq == 0 {
            return Ok(Mark::default());
        }
        if let Some(noted) = self.noted_mark().filter(|noted| noted.mark.rev == tail.seq) {
            return Ok(noted.mark);
        }
        let mut mark = Mark::default();
        self.each_newest_first(1, &mut |_, record| {
            mark = Mark {
                rev: record.seq,
                id: record.id.clone(),
            }
        })?;
        Ok(mark)
    }

    /// Reads `.quipu/mark`: the end of the replica, and a process with the ids that may have been
    /// accepted without being here.
    fn noted_mark(&self) -> Option<NotedMark> {
        let text = crate::regular::read_regular_text(&self.quipu().join("mark")).ok()?;
        let mut lines = text.lines();
        let (rev, id) = lines.next()?.split_once(' ')?;
        let sent = lines.next().and_then(|line| {
            let mut words = line.split(' ');
            Some((
                words.next()?.parse().ok()?,
                words.map(str::to_owned).collect(),
            ))
        });
        Some(NotedMark {
            mark: Mark {
                rev: rev.parse().ok()?,
                id: id.to_owned(),
            },
            sent,
        })
    }

    /// Writes `.quipu/mark`. It is only a hint: it is compared with the journal, and without it the
    /// journal is read. It is written twice per commit, so the file is overwritten and not
    /// truncated first: some file systems sync a truncation at once.
    fn note_mark(&self, mark: &Mark, sent: &[String]) {
        let mut text = format!("{} {}\n", mark.rev, mark.id);
        if !sent.is_empty() {
            text.push_str(&format!("{} {}\n", std::process::id(), sent.join(" ")));
        }
        // An empty line ends the content, in case older content was longer.
        text.extend(std::iter::repeat_n(
            '\n',
            MARK.saturating_sub(text.len()).max(1),
        ));
        let opened = std::fs::File::options()
            .create(true)
            .truncate(false)
            .write(true)
            .open(self.quipu().join("mark"));
        let _ = opened.and_then(|mut file| std::io::Write::write_all(&mut file, text.as_bytes()));
    }

    /// Checks whether requests of a dead process were accepted. If the server does not answer,
    /// reading continues.
    pub(crate) fn heal_sent(&self) -> Result<()> {
        let Some(order) = &self.order else {
            return Ok(());
        };
        let Some((process, _)) = self.noted_mark().and_then(|noted| noted.sent) else {
            return Ok(());
        };
        if process == std::process::id()
            || std::path::Path::new(&format!("/proc/{process}")).exists()
        {
            return Ok(());
        }
        match self.pull(&**order, Patience::Little) {
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
        self.noted_mark()
            .and_then(|noted| noted.sent)
            .filter(|(process, _)| dead(*process))
            .map(|(_, ids)| ids)
            .unwrap_or_default()
    }

    /// Judges a change. If the result is an error that may be based on an old copy, updates the
    /// copy and judges again.
    pub(crate) fn judge_newest(&self, change: &Change) -> Result<Judged<'_>> {
        let judged = self.judge_here(change);
        let Some(order) = &self.order else {
            return judged;
        };
        match judged {
            Err(error) if is_answer(&error) => match self.pull(&**order, Patience::Little) {
                // The log's clock is known now as well, so a lease may turn out to be expired.
                Ok(0) if !matches!(error, StoreError::LeaseLost { .. }) => Err(error),
                Err(StoreError::Unreachable { .. }) => Err(error),
                Ok(_) => self.judge_here(change),
                Err(other) => Err(other),
            },
            other => other,
        }
        .map_err(|error| self.keep_loser(change, error))
    }

    /// Publishes a judged change through the log. Judges it again on the newest state after each
    /// stale result.
    pub(crate) fn publish_shared<'s>(
        &'s self,
        order: &dyn Order,
        mut judged: Judged<'s>,
        change: &Change,
    ) -> Result<(Receipt, Option<Tail>)> {
        let mut moved = String::new();
        for attempt in 0..TRIES {
            let (held, look, records, told) =
                match judged.into_parts().inspect_err(|_| order.pass())? {
                    Ok(parts) => parts,
                    Err(done) => return Ok((done, None)),
                };
            match self.submit(
                order,
                held,
                look,
                records,
                Terms {
                    lease: change.lease.clone(),
                    ..Terms::plain(Patience::Bounded)
                },
            )? {
                Submitted::Accepted(ours, end) => {
                    let last = ours.last().ok_or_else(|| {
                        StoreError::refused("the shared log lost a commit", "quipu doctor")
                    })?;
                    return Ok((told.receipt(last), Some(end)));
                }
                Submitted::Moved(what) => {
                    if what == CONTRACT {
                        self.agree_on_contract()?;
                    }
                    moved = what;
                }
            }
            judged = if attempt < QUICK_TRIES {
                self.judge_newest(change)?
            } else {
                self.judge_in_turn(order, change)?
            };
        }
        Err(StoreError::LeaseLost {
            what: format!("others were quicker {TRIES} times: {moved} has moved on"),
        })
    }

    /// This process does not judge by the newest contract. If the difference is an external edit on
    /// this disk, it is adopted and becomes the newest.
    fn agree_on_contract(&self) -> Result<()> {
        let path = ProjectPath::parse(CONTRACT).expect("it is a plain name");
        let adopted = self.take_notice(std::slice::from_ref(&path))?;
        let head = self.heads()?.head(CONTRACT)?.map(|h| h.version);
        if adopted.iter().any(|a| a.path == CONTRACT) || head == self.contract_text {
            return Ok(());
        }
        let what = "the contract has changed since this command read it; nothing was written";
        Err(StoreError::refused(
            what,
            "the same command again: it is judged by the new contract",
        ))
    }

    /// Judges under the exclusive lock of the log.
    fn judge_in_turn(&self, order: &dyn Order, change: &Change) -> Result<Judged<'_>> {
        let judge = || -> Result<Judged<'_>> {
            let held = self.append_lock.acquire()?;
            let look = self.look()?;
            let mark = self.mark_of(&look.tail)?;
            let ruling = order.turn(&mark)?;
            self.note_time(&ruling);
            if ruling.records.is_empty() {
                return self.judge_held(held, look, change);
            }
            let end = self.take_over(look, ruling.records, &[])?;
            self.sync_to(end.at)?;
            self.apply_files(end.at)?;
            let look = self.look()?;
            self.judge_held(held, look, change)
        };
        match judge() {
            Ok(judged) if judged.records().is_empty() => {
                order.pass();
                Ok(judged)
            }
            Ok(judged) => Ok(judged),
            Err(error) => {
                order.pass();
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
        let kept = bytes.and_then(|bytes| self.keep_conflict(&path, bytes).ok());
        StoreError::Stale {
            path,
            expected,
            now,
            kept,
        }
    }

    /// Writes a conflict copy under `.quipu/conflicts` and returns its path.
    pub(crate) fn keep_conflict(&self, path: &str, bytes: &[u8]) -> std::io::Result<String> {
        let folder = self.quipu().join("conflicts");
        std::fs::create_dir_all(&folder)?;
        let place = conflict_place(&crate::ident::short_id(), path);
        let file = std::fs::File::create_new(
            folder.join(place.strip_prefix(CONFLICTS).unwrap_or(&place)),
        )?;
        std::io::Write::write_all(&mut &file, bytes)?;
        file.sync_all()?;
        Ok(place)
    }

    /// Records of the shared log that could not be taken over, among the newest records: number and
    /// reason.
    pub fn held_back(&self) -> Result<Vec<(u64, String)>> {
        let mut found = Vec::new();
        self.each_last_line(crate::history::RECENT_BYTES, &mut |line| {
            if memchr::memmem::find(line, HELD_BACK.as_bytes()).is_some()
                && let Ok(record) = Record::decode(line.strip_suffix(b"\n").unwrap_or(line))
            {
                found.extend(held_back(&record).map(|why| (record.seq, why.to_owned())));
            }
            true
        })?;
        found.reverse();
        Ok(found)
    }

    /// The conflict copies in `.quipu/conflicts`.
    pub fn conflicts(&self) -> Result<Vec<Conflict>> {
        let names = self.conflict_names();
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

    fn conflict_names(&self) -> Vec<String> {
        conflict_names(&self.quipu())
    }

    /// Visits every record of the journal in order. A damaged line is an error.
    pub fn each_record(&self, visit: &mut dyn FnMut(&Record) -> Result<()>) -> Result<()> {
        self.settle()?;
        let bound = self.bound()?;
        let mut result = Ok(());
        self.journal
            .scan(crate::journal::Position::START, Some(bound), &mut |seen| {
                if result.is_err() {
                    return;
                }
                result = match seen.line {
                    crate::journal::Line::Record(record) => visit(&record),
                    crate::journal::Line::Damaged(damage) => Err(StoreError::Damaged {
                        segment: seen.at.segment,
                        line: seen.number,
                        what: damage.what,
                    }),
                    crate::journal::Line::OtherFormat(other) => Err(other.refusal()),
                };
            })?;
        result
    }

    /// Problems of the shared log, as this working copy sees it.
    pub fn examine_order(&self) -> Result<Vec<(String, String)>> {
        match &self.order {
            Some(order) => order.examine(&self.mark()?),
            None => Ok(Vec::new()),
        }
    }
}

/// Whether an error is a decision of the judge, and not a failure on the way to one.
fn is_answer(error: &StoreError) -> bool {
    matches!(
        error,
        StoreError::Stale { .. }
            | StoreError::LeaseLost { .. }
            | StoreError::Refused(_)
            | StoreError::NotFound { .. }
    )
}
