//! A working copy: the journal as a replica of a shared log.
//!
//! Records are judged here, accepted there, and only then written to the journal, in the log's
//! order. Order of a commit, and what a crash leaves at each point:
//! 1. `.quipu/mark` notes what is about to be sent;
//! 2. the order accepts it in one round trip: from here on nothing is lost. A crash leaves a record
//!    that is in the log and not here; the note tells the next command to look;
//! 3. the records go into the journal and the files, as everywhere else.

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

/// So often a change is judged again because others were quicker, before its writer asks for a
/// turn.
const QUICK_TRIES: usize = 2;
/// And so often altogether.
const TRIES: usize = 8;

/// The room of a note of the mark: most fit, and one that does not makes the file longer.
const MARK: usize = 256;

const CONTRACT: &str = "quipu.toml";

/// The key of a note that stands for a record of the shared log which this working copy cannot take
/// over.
pub const HELD_BACK: &str = "held_back";

const CONFLICTS: &str = ".quipu/conflicts/";

/// Where an edit of a file is kept.
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

/// The edits that lie in the folder of conflicts of `.quipu`, by their places from the root of the
/// project.
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

/// Why a record is only a note of one that could not be taken over from the shared log.
pub(crate) fn held_back(record: &Record) -> Option<&str> {
    let note = record
        .note
        .as_ref()
        .filter(|_| record.kind == Kind::Note && record.ops.is_empty())?;
    note.get(HELD_BACK)?.as_str()
}

/// What a sync did.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
pub struct Synced {
    pub from: u64,
    pub to: u64,
    /// Edits that were in the way and lie in `.quipu/conflicts` now.
    pub conflicts: Vec<String>,
}

/// An edit that was in the way of a newer commit.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Conflict {
    /// Where it lies now, from the root of the project.
    pub kept: String,
    /// The file that was edited, if that can be told.
    pub path: Option<String>,
}

/// Under which terms records are handed in.
pub(crate) struct Terms {
    /// The lease that is shown.
    pub lease: Option<LeaseToken>,
    /// Leases that would do as well as the one in the record.
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

/// What `.quipu/mark` says.
struct NotedMark {
    mark: Mark,
    /// A process, and the ids that it has sent without an answer yet.
    sent: Option<(u32, Vec<String>)>,
}

/// How records that were handed in fared.
pub(crate) enum Submitted {
    /// They are in the log and in the journal, up to this end; these are they, as the order
    /// numbered them.
    Accepted(Vec<Record>, Tail),
    /// Others were quicker. What they did is in the journal now.
    Moved(String),
}

impl Store {
    /// The shared order that this working copy follows; none for a project of its own.
    pub fn order(&self) -> Option<&dyn Order> {
        self.order.as_deref()
    }

    /// How far this working copy knows the shared log.
    pub fn mark(&self) -> Result<Mark> {
        self.settle()?;
        let _held = self.append_lock.acquire()?;
        let look = self.look()?;
        self.mark_of(&look.tail)
    }

    /// The time by which leases end: of the order, if there is one.
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

    /// Does what makes a project a working copy, or one of its own again, while nobody writes.
    /// Processes that took it for the other have to look again. The work is told the newest number.
    pub fn change_allegiance(&self, work: impl FnOnce(u64) -> Result<()>) -> Result<()> {
        self.settle()?;
        let _held = self.append_lock.acquire()?;
        let tail = self.look()?.tail;
        self.sync_to(tail.at)?;
        work(tail.seq)?;
        self.live()?.forget(&self.disk)
    }

    /// A process that was started before the project was moved must not write to the side that it
    /// was moved from.
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

    /// Takes over what others have committed since, and puts it into the files. Nothing to do in a
    /// project of its own.
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

    /// Waits until the shared log holds something that is not here; false if nothing came in that
    /// time.
    pub fn wait(&self, most: Duration) -> Result<bool> {
        match &self.order {
            Some(order) => order.wait(self.pulse()?, most),
            None => Ok(false),
        }
    }

    /// Takes one of several leases, the first that nobody holds: the index of its paths, and the
    /// lease. None if all are held.
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

    /// Pulls all that is newer. Returns how many records came.
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

    /// Hands in records that were judged at this look.
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
                // Only where the answer never came it may have been accepted all the same.
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
            // It is accepted: whatever fails from here on must not be told as if nothing had
            // happened.
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

    /// Writes records of the shared log behind the end of the journal. Only under the append lock.
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

    /// The versions of the contract's own files, as this judge knew them.
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
                // Judged by the contract that was read when the store was opened, whatever stands
                // there now.
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

    /// `.quipu/mark`: the end of the replica, and what may have been accepted without being here:
    /// process and ids.
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

    /// A note and no more: what it says is compared with the journal, and without it the journal is
    /// read. Twice for each commit, so it is written over and not cut off first: a file system may
    /// want to see that on the disk at once.
    fn note_mark(&self, mark: &Mark, sent: &[String]) {
        let mut text = format!("{} {}\n", mark.rev, mark.id);
        if !sent.is_empty() {
            text.push_str(&format!("{} {}\n", std::process::id(), sent.join(" ")));
        }
        // An empty line ends it, whatever an older note left behind.
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

    /// Looks whether what a dead process has sent was accepted. Without the server, reading goes
    /// on.
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

    /// What was sent and never answered: not known to be accepted.
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

    /// A refusal that rests on a copy which may be old is looked at again on a new one.
    pub(crate) fn judge_newest(&self, change: &Change) -> Result<Judged<'_>> {
        let judged = self.judge_here(change);
        let Some(order) = &self.order else {
            return judged;
        };
        match judged {
            Err(error) if is_answer(&error) => match self.pull(&**order, Patience::Little) {
                // Now the order's clock is known, too: what seemed to be leased may not be.
                Ok(0) if !matches!(error, StoreError::LeaseLost { .. }) => Err(error),
                Err(StoreError::Unreachable { .. }) => Err(error),
                Ok(_) => self.judge_here(change),
                Err(other) => Err(other),
            },
            other => other,
        }
        .map_err(|error| self.keep_loser(change, error))
    }

    /// Publishes a judged change through the order; judged again on the newest state while others
    /// are quicker.
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

    /// The contract that this process judges by is not the newest. If that is an edit of this very
    /// disk, it becomes the newest.
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

    /// Judges while nobody else gets anything accepted.
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

    /// A text that came too late is kept where its writer finds it.
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

    /// Puts bytes under `.quipu/conflicts` and returns where.
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

    /// Records of the shared log that could not be taken over, as far as the newest records tell:
    /// number and reason.
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

    /// The edits that lie in `.quipu/conflicts`.
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

    /// Visits every record of the journal in order; a damaged line is an error.
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

    /// What is known to be wrong with the shared log, as this working copy sees it.
    pub fn examine_order(&self) -> Result<Vec<(String, String)>> {
        match &self.order {
            Some(order) => order.examine(&self.mark()?),
            None => Ok(Vec::new()),
        }
    }
}

/// Errors that are an answer of the judge, and not a failure on the way to one.
fn is_answer(error: &StoreError) -> bool {
    matches!(
        error,
        StoreError::Stale { .. }
            | StoreError::LeaseLost { .. }
            | StoreError::Refused(_)
            | StoreError::NotFound { .. }
    )
}
