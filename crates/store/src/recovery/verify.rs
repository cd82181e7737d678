//! Verification: checks the journal against itself, the files against the journal, and the leases.
//!
//! It reads everything and trusts no cache, neither file stats nor the file index. It applies
//! pending records first, and clears a file stat that hides an edit.

use std::collections::{BTreeMap, BTreeSet};

use quipu_contract::{Class, Outside, ProjectPath};
use serde::Serialize;

use crate::clock::{AHEAD_US, parse_time, render_second};
use crate::error::{Result, StoreError};
use crate::history::prune::MissingTexts;
use crate::index::file_index::FileHead;
use crate::journal::chain::{Chain, healed_by};
use crate::journal::record::Record;
use crate::journal::segments::{Line, Position, Seen};
use crate::replica::working_copy::held_back;
use crate::rules::flag::Flag;
use crate::store::Store;
use crate::worktree::external_edit::Comparison;

/// A problem that `verify` found.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Problem {
    /// `.quipu/journal/00000001.jsonl:12` or the path of a file.
    pub place: String,
    pub what: String,
    pub remedy: String,
}

/// The counts of checked items, and the problems.
#[derive(Debug, Clone, Default, Serialize)]
pub struct Verification {
    pub records: u64,
    pub files: u64,
    pub leases: u64,
    pub problems: Vec<Problem>,
    /// Old texts that `quipu history prune` has dropped.
    pub dropped: u64,
    /// Files with remnants of unacknowledged records after a power cut. Not a problem, but a person
    /// may want to look.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub torn: Vec<String>,
    /// Damage that `doctor` has repaired: everything that could be saved is journalled again.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub healed: Vec<String>,
    /// Notices that are not problems.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub notices: Vec<String>,
}

/// The state of a scan along the hash chain.
struct ChainCheck {
    chain: Chain,
    texts: MissingTexts,
    /// Damage by its name, until a later record says that it was repaired.
    damaged: Vec<(String, Problem)>,
    healed_names: BTreeMap<String, u64>,
    /// Records with a time in the future.
    ahead: Vec<(u64, String)>,
    now_us: i64,
}

impl ChainCheck {
    fn new(now_us: i64) -> ChainCheck {
        ChainCheck {
            chain: Chain::new(),
            texts: MissingTexts::default(),
            damaged: Vec::new(),
            healed_names: BTreeMap::new(),
            ahead: Vec::new(),
            now_us,
        }
    }

    fn see(
        &mut self,
        store: &Store,
        Seen {
            at, number, line, ..
        }: Seen,
        newest: &mut BTreeMap<String, FileHead>,
        verification: &mut Verification,
    ) {
        let segment = format!(".quipu/journal/{:08}.jsonl", at.segment);
        let (place, byte) = match number {
            0 => (segment, String::new()),
            number => (
                format!("{segment}:{number}"),
                format!(" (byte {} of the segment)", at.offset),
            ),
        };
        match line {
            Line::OtherFormat(other) => {
                let problem = in_journal(place, other.to_string());
                verification.problems.push(problem);
                self.chain.is_cut = true;
            }
            Line::Damaged(damage) => {
                let problem = in_journal(place, format!("{}{byte}", damage.what));
                self.damaged.push((damage.name(), problem));
                let salvaged = store.index.salvage(&damage, newest, self.chain.seq);
                newest.extend(salvaged.file_index);
                self.chain.is_cut = true;
            }
            Line::Record(record) => {
                verification.records += 1;
                let held = held_back(&record).map(|why| held_notice(record.seq, why));
                verification.notices.extend(held);
                self.see_record(place, at, &record, verification);
                for op in record.changes() {
                    newest.insert(op.path.clone(), FileHead::after(op, at, record.seq));
                }
            }
        }
    }

    fn see_record(
        &mut self,
        place: String,
        at: Position,
        record: &Record,
        verification: &mut Verification,
    ) {
        let is_ahead = |at: i64| at.saturating_sub(self.now_us) > AHEAD_US;
        if parse_time(&record.at).is_some_and(is_ahead) {
            self.ahead.push((record.seq, record.at.clone()));
        }
        if let Some(gap) = self.chain.follow(at, record) {
            self.damaged.push((gap.name(), in_journal(place, gap.what)));
        }
        self.texts.see(at, record);
        for name in healed_by(record) {
            self.healed_names.insert(name.clone(), record.seq);
            let known = self.damaged.extract_if(.., |(damage, _)| *damage == name);
            let healed = known.map(|(_, p)| healed_line(&p.place, &p.what, record.seq));
            verification.healed.extend(healed);
        }
    }

    /// Reports what the scan found, and returns the end of the chain.
    fn finish(self, verification: &mut Verification) -> Chain {
        let (dropped, missing) = self.texts.validate();
        verification.dropped = dropped;
        for damage in missing {
            let Position { segment, offset } = damage.at;
            let place = format!(".quipu/journal/{segment:08}.jsonl (byte {offset})");
            match self.healed_names.get(&damage.name()) {
                Some(seq) => {
                    let line = healed_line(&place, &damage.what, *seq);
                    verification.healed.push(line);
                }
                None => verification.problems.push(in_journal(place, damage.what)),
            }
        }
        let damaged = self.damaged.into_iter().map(|(_, problem)| problem);
        verification.problems.extend(damaged);
        if let Some((first, at)) = self.ahead.first() {
            let several = match self.ahead.len() {
                1 => String::new(),
                count => format!(" and {} more", count - 1),
            };
            verification.notices.push(format!(
                "commit @{first}{several}: the time {at} is in the future; this machine's clock \
                 says {}. If the clock is wrong now, set it. If it was wrong at the time of the \
                 commit, nothing needs to be done: commits are ordered by number",
                render_second(self.now_us)
            ));
        }
        self.chain
    }
}

impl Store {
    pub fn verify(&self) -> Result<Verification> {
        self.index.sound(|| self.verify_once())
    }

    fn verify_once(&self) -> Result<Verification> {
        let mut verification = Verification::default();
        match self.settle() {
            // Missing parts are listed below, as far as they are known.
            Err(damage @ StoreError::Damaged { .. }) => verification.problems.push(Problem {
                place: ".quipu/journal".into(),
                what: damage.to_string(),
                remedy:
                    "quipu doctor     (starts a new journal after the remaining part, with the \
                     files on disk)"
                        .into(),
            }),
            other => other?,
        }
        let mut newest: BTreeMap<String, FileHead> = BTreeMap::new();
        let bound = self.verify_chain(&mut verification, &mut newest)?;
        self.verify_files(&mut verification, &mut newest, bound)?;
        self.verify_leases(&mut verification)?;
        self.find_torn(&mut verification)?;
        for name in self.unrescued()? {
            verification.problems.push(Problem {
                place: format!(".quipu/tmp/{name}"),
                what: "is an edit that a killed program had moved away".into(),
                remedy: "quipu status     (journals it and shows where)".into(),
            });
        }
        Ok(verification)
    }

    /// Checks the hash chain. Returns how far the journal was read.
    fn verify_chain(
        &self,
        verification: &mut Verification,
        newest: &mut BTreeMap<String, FileHead>,
    ) -> Result<Position> {
        // Read both at once: the journal grows while it is scanned.
        let tail = self
            .journal
            .watermarks()
            .ok()
            .and_then(|watermarks| watermarks.tail());
        let bound = match &tail {
            Some(tail) => tail.at,
            None => self.journal.bound()?,
        };
        let mut checked = ChainCheck::new(self.now().wall_us);
        self.journal
            .scan(Position::START, Some(bound), &mut |seen| {
                checked.see(self, seen, newest, verification);
            })?;
        let chain = checked.finish(verification);
        if let Some(tail) = tail
            && tail.seq != chain.seq
            && !chain.is_cut
        {
            verification.problems.push(Problem {
                place: ".quipu/watermarks".into(),
                what: format!(
                    "records that the journal ends at record {}, but it ends at {}",
                    tail.seq, chain.seq
                ),
                remedy: "quipu doctor".into(),
            });
        }
        Ok(bound)
    }

    fn verify_files(
        &self,
        verification: &mut Verification,
        newest: &mut BTreeMap<String, FileHead>,
        bound: Position,
    ) -> Result<()> {
        let file_index: BTreeMap<String, FileHead> =
            self.index.open()?.all()?.into_iter().collect();
        let mut suspects = BTreeSet::new();
        let mut problems = Vec::new();
        for (text, head) in &*newest {
            verification.files += u64::from(!head.gone);
            let found = self.verify_file(text, head, file_index.get(text))?;
            if !found.is_empty() {
                suspects.insert(text.clone());
                problems.extend(found);
            }
        }
        if !suspects.is_empty() && !self.is_read_only() && !self.is_unruled() {
            // Other processes may write meanwhile. Real problems remain when checked under the
            // lock.
            match self.verify_at_rest(&suspects, newest, bound) {
                Ok((lasting, conflict_copies)) => {
                    problems = lasting;
                    if conflict_copies {
                        self.journal_conflict_copies()?;
                    }
                }
                // Missing parts of the journal are listed above.
                Err(StoreError::Damaged { .. }) => {}
                Err(other) => return Err(other),
            }
        }
        verification.problems.extend(problems);
        self.verify_new_files(verification, newest)
    }

    /// Checks some files while nobody can commit. True if conflict copies were made and have to be
    /// journalled.
    fn verify_at_rest(
        &self,
        suspects: &BTreeSet<String>,
        newest: &mut BTreeMap<String, FileHead>,
        bound: Position,
    ) -> Result<(Vec<Problem>, bool)> {
        let _held = self.journal.lock()?;
        let tail = self.snapshot()?.tail;
        self.journal.sync_to(tail.at)?;
        let conflict_copies = match self.applier.apply_files(tail.at) {
            Err(error) if error.is_of_one_file() && self.index.open()?.applied()?.at >= tail.at => {
                true
            }
            other => other?,
        };
        self.journal.scan(bound, Some(tail.at), &mut |seen| {
            if let Line::Record(record) = seen.line {
                let ops = record.changes();
                newest.extend(
                    ops.map(|op| (op.path.clone(), FileHead::after(op, seen.at, record.seq))),
                );
            }
        })?;
        let mut problems = Vec::new();
        for text in suspects {
            if let Some(head) = newest.get(text) {
                let indexed = self.index.open()?.head(text)?;
                problems.extend(self.verify_file(text, head, indexed.as_ref())?);
            }
        }
        Ok((problems, conflict_copies))
    }

    /// The problems of one file: on disk, and in the file index, which must match the journal.
    fn verify_file(
        &self,
        text: &str,
        head: &FileHead,
        indexed: Option<&FileHead>,
    ) -> Result<Vec<Problem>> {
        // The index may have a record that is no longer readable.
        let unread = |indexed: &&FileHead| {
            indexed.at > head.at
                && matches!(
                    self.journal.read_record(indexed.at),
                    Err(StoreError::Damaged { .. })
                )
        };
        let head = indexed.filter(unread).unwrap_or(head);
        let mut problems = Vec::new();
        if indexed.is_none_or(|h| h.version != head.version || h.gone != head.gone) {
            problems.push(Problem {
                place: ".quipu/index.db".into(),
                what: format!("disagrees with the journal on `{text}`"),
                remedy: "quipu doctor".into(),
            });
        }
        if let Ok(path) = ProjectPath::parse(text) {
            let fault = self.verify_on_disk(&path, head, indexed)?;
            problems.extend(fault.map(|(what, remedy)| Problem {
                place: text.to_owned(),
                what,
                remedy,
            }));
        }
        Ok(problems)
    }

    /// The fault of a file on disk, and its remedy.
    fn verify_on_disk(
        &self,
        path: &ProjectPath,
        head: &FileHead,
        indexed: Option<&FileHead>,
    ) -> Result<Option<(String, String)>> {
        let read = match self.tree.read(path) {
            // A file below something that is not a folder is not merely absent.
            Ok(None) => self.tree.file_stat(path).map(|_| None),
            other => other,
        };
        let (found, file_stat) = match read {
            Ok(found) => found.unzip(),
            Err(error) => return Ok(Some(self.unreadable(path, error, head, indexed))),
        };
        let class = if self.is_unruled() {
            head.class
        } else {
            self.contract().class(path)
        };
        if head.gone {
            let is_back = found.is_some() && class != Class::Free;
            let what = "was removed, but exists again";
            return Ok(is_back.then(|| (what.into(), "quipu status".into())));
        }
        let before = match self.texts.content_from_journal(path, head) {
            // The records are complete but do not give the text, so no line of the journal is
            // reported for it.
            Err(damage @ StoreError::Damaged { segment: 0, .. }) => {
                let remedy = "quipu doctor     (journals the file on disk)";
                return Ok(Some((damage.to_string(), remedy.into())));
            }
            // The damage itself is reported above; the file on disk is the only copy.
            Err(StoreError::Damaged { .. }) => return Ok(None),
            other => other?,
        };
        if found.as_deref() == Some(&before) {
            let flag = match class {
                Class::Derived => None,
                _ => self.worktree.committed_flag(path, head)?,
            };
            return Ok(flag.map(|flag| describe(&flag, path, class, true)));
        }
        // An edit may have the file stat of the text before it. Without the stat, the next status
        // scan compares the bytes.
        if let Some(indexed) = indexed.filter(|i| i.file_stat.is_some() && i.file_stat == file_stat)
            && !self.is_read_only()
        {
            let index = self.index.open()?;
            index.set_stat(path.as_str(), &indexed.version, None)?;
        }
        let unwritten = indexed.and_then(|indexed| {
            self.worktree
                .still_unwritten(path, indexed, &before, found.as_deref())
        });
        if let Some(flag) = unwritten {
            return Ok(Some((
                flag.what.clone(),
                flag.remedy(path.as_str(), class, true),
            )));
        }
        let found = found.as_deref();
        let edit = self
            .worktree
            .validate_edit(path, class, Some(head), Some(&before), found);
        Ok(Some(self.describe_edit(path, class, edit)))
    }

    /// The fault of a file that cannot be read.
    fn unreadable(
        &self,
        path: &ProjectPath,
        error: std::io::Error,
        head: &FileHead,
        indexed: Option<&FileHead>,
    ) -> (String, String) {
        // The error of `file_stat` describes best what is at the path.
        let error = self.tree.file_stat(path).err().unwrap_or(error);
        let unwritten = indexed
            .and_then(|indexed| indexed.flag.clone())
            .map(|(flag, _)| flag)
            .filter(Flag::is_unwritten);
        match unwritten.or_else(|| Flag::of_unreadable(path, &error)) {
            Some(flag) => (
                flag.what.clone(),
                flag.remedy(path.as_str(), head.class, true),
            ),
            None => (format!("cannot be read: {error}"), "check the disk".into()),
        }
    }

    fn describe_edit(&self, path: &ProjectPath, class: Class, edit: Outside) -> (String, String) {
        match edit {
            Outside::Flagged { what, line } => {
                let what = what.into_owned();
                describe(&Flag { what, line }, path, class, true)
            }
            // Only a contract decides whether the edit is allowed.
            _ if self.is_unruled() => (
                "differs from the journal".into(),
                format!("fix it, or: quipu restore {path}"),
            ),
            Outside::Grew { .. } | Outside::Replaced | Outside::Removed => (
                "differs from the journal; the contract allows the edit".into(),
                "quipu status     (adopts it)".into(),
            ),
        }
    }

    /// Checks files that a rule names and no record mentions: some are never adopted.
    fn verify_new_files(
        &self,
        verification: &mut Verification,
        newest: &BTreeMap<String, FileHead>,
    ) -> Result<()> {
        for (text, _) in self.worktree.walk_files()?.files {
            let Ok(path) = ProjectPath::parse(&text) else {
                continue;
            };
            let class = self.contract().class(&path);
            if class == Class::Free || newest.contains_key(&text) {
                continue;
            }
            if let Comparison::Flagged(flag, _) = self.worktree.compare_file(&path, class, None)? {
                let (what, remedy) = describe(&flag, &path, class, false);
                verification.problems.push(Problem {
                    place: text,
                    what,
                    remedy,
                });
            }
        }
        Ok(())
    }

    /// Lists remnants of unacknowledged records after a power cut. They are harmless, but a person
    /// should know.
    fn find_torn(&self, verification: &mut Verification) -> Result<()> {
        for entry in std::fs::read_dir(self.quipu())
            .map_err(StoreError::io("cannot list `.quipu`"))?
            .flatten()
        {
            let name = entry.file_name().to_string_lossy().into_owned();
            if name.starts_with("torn-") {
                verification.torn.push(format!(".quipu/{name}"));
            }
        }
        verification.torn.sort_unstable();
        Ok(())
    }

    /// A notice if the newest record has a time in the future; cheap.
    pub fn clock_notice(&self) -> Result<Option<String>> {
        let newest = if self.is_read_only() {
            None
        } else {
            self.journal.watermarks_now()?.tail()
        };
        let now_us = self.now().wall_us;
        let ahead = newest.filter(|tail| tail.wall_us.saturating_sub(now_us) > AHEAD_US);
        Ok(ahead.map(|tail| {
            let (then, now) = (render_second(tail.wall_us), render_second(now_us));
            let what = format!(
                "the newest commit @{} has the time {then}, and this machine's clock says {now}",
                tail.seq
            );
            format!(
                "{what}: if the clock is wrong now, set it; if it was wrong at the time of \
                the commit, nothing needs to be done, because commits are ordered by number"
            )
        }))
    }

    fn verify_leases(&self, verification: &mut Verification) -> Result<()> {
        let leases = self.index.open()?.leases()?;
        let now = self.replica.lease_now();
        for lease in leases.iter().filter(|l| !l.is_session()) {
            if lease.is_over(now, &self.settings.boot) {
                continue;
            }
            verification.leases += 1;
            for other in leases
                .iter()
                .filter(|o| o.id > lease.id && !o.is_over(now, &self.settings.boot))
            {
                if other.overlaps(lease) {
                    verification.problems.push(Problem {
                        place: format!("lease {}", lease.id),
                        what: format!("overlaps lease {}", other.id),
                        remedy: format!("quipu lease release {}", other.id),
                    });
                }
            }
        }
        Ok(())
    }
}

/// The notice for a record of the shared log that only a note replaces.
pub fn held_notice(seq: u64, why: &str) -> String {
    format!(
        "commit @{seq} of the shared commit log was held back: {why}. Nothing needs to be done \
         here; a keeper checks which login wrote it"
    )
}

/// A flag as a problem, and its remedy.
fn describe(flag: &Flag, path: &ProjectPath, class: Class, has_history: bool) -> (String, String) {
    let line = flag.line.map(|l| format!(", line {l}")).unwrap_or_default();
    let remedy = flag.remedy(path.as_str(), class, has_history);
    (format!("{}{line}", flag.what), remedy)
}

fn healed_line(place: &str, what: &str, seq: u64) -> String {
    format!("{place}: {what}; handled in commit @{seq}")
}

fn in_journal(place: String, what: String) -> Problem {
    Problem {
        place,
        what,
        remedy: "quipu doctor     (journals the files again where possible and records the \
                 damage; keep the segment)"
            .into(),
    }
}
