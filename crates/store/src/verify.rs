//! Verification: checks the journal against itself, the files against the journal, and the leases.
//!
//! It reads everything and trusts no cache, neither file stats nor the file index. It applies
//! pending records first, and clears a file stat that hides an edit.

use std::collections::{BTreeMap, BTreeSet};

use quipu_contract::{Class, Outside, ProjectPath};
use serde::Serialize;

use crate::adopt::{Flag, Noticed};
use crate::clock::{AHEAD_US, parse_time, render_second};
use crate::error::{Result, StoreError};
use crate::heads::Head;
use crate::journal::{Line, Position, Seen};
use crate::prune::MissingTexts;
use crate::record::OpKind;
use crate::replica::held_back;
use crate::salvage::{Chain, healed_by};
use crate::store::Store;

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

impl Store {
    pub fn verify(&self) -> Result<Verification> {
        self.with_sound_heads(|| self.verify_once())
    }

    fn verify_once(&self) -> Result<Verification> {
        let mut verification = Verification::default();
        match self.settle() {
            // Missing parts are listed below, as far as they are known.
            Err(damage @ StoreError::Damaged { .. }) => verification.problems.push(Problem {
                place: ".quipu/journal".into(),
                what: damage.to_string(),
                remedy:
                    "quipu doctor     (begins anew behind what is left, with the files as they are)"
                        .into(),
            }),
            other => other?,
        }
        let mut newest: BTreeMap<String, Head> = BTreeMap::new();
        let bound = self.verify_chain(&mut verification, &mut newest)?;
        self.verify_files(&mut verification, &mut newest, bound)?;
        self.verify_leases(&mut verification)?;
        self.find_torn(&mut verification)?;
        for name in self.unrescued()? {
            verification.problems.push(Problem {
                place: format!(".quipu/tmp/{name}"),
                what: "is someone's edit, which a killed program had taken out of its place".into(),
                remedy: "quipu status     (journals it and says where)".into(),
            });
        }
        Ok(verification)
    }

    /// Checks the hash chain. Returns how far the journal was read.
    fn verify_chain(
        &self,
        verification: &mut Verification,
        newest: &mut BTreeMap<String, Head>,
    ) -> Result<Position> {
        let mut chain = Chain::new();
        let mut problems = Vec::new();
        let mut damaged: Vec<(String, Problem)> = Vec::new();
        let mut healed = Vec::new();
        let (mut texts, mut healed_names) = (MissingTexts::default(), BTreeMap::new());
        let (mut ahead, now_us) = (Vec::new(), self.now().wall_us);
        let (mut records, mut held) = (0, Vec::new());
        // Read both at once: the journal grows while it is scanned.
        let tail = self.live().ok().and_then(|live| live.tail());
        let bound = tail
            .as_ref()
            .map_or_else(|| self.bound(), |tail| Ok(tail.at))?;
        self.journal.scan(
            Position::START,
            Some(bound),
            &mut |Seen {
                      at, number, line, ..
                  }| {
                let counted = if number > 0 {
                    format!(":{number}")
                } else {
                    String::new()
                };
                let place = format!(".quipu/journal/{:08}.jsonl{counted}", at.segment);
                match line {
                    Line::OtherFormat(other) => {
                        problems.push(Problem {
                            place,
                            what: other.to_string(),
                            remedy: journal_remedy(),
                        });
                        chain.is_cut = true;
                    }
                    Line::Damaged(damage) => {
                        let byte = if number > 0 {
                            format!(" (byte {} of the segment)", at.offset)
                        } else {
                            String::new()
                        };
                        let what = format!("{}{byte}", damage.what);
                        damaged.push((
                            damage.name(),
                            Problem {
                                place,
                                what,
                                remedy: journal_remedy(),
                            },
                        ));
                        newest.extend(self.salvage(&damage, newest, chain.seq).heads);
                        chain.is_cut = true;
                    }
                    Line::Record(record) => {
                        records += 1;
                        if parse_time(&record.at)
                            .is_some_and(|at| at.saturating_sub(now_us) > AHEAD_US)
                        {
                            ahead.push((record.seq, record.at.clone()));
                        }
                        held.extend(held_back(&record).map(|why| held_notice(record.seq, why)));
                        if let Some(gap) = chain.follow(at, &record) {
                            damaged.push((
                                gap.name(),
                                Problem {
                                    place,
                                    what: gap.what,
                                    remedy: journal_remedy(),
                                },
                            ));
                        }
                        let seq = record.seq;
                        texts.see(at, &record);
                        for name in healed_by(&record) {
                            healed_names.insert(name.clone(), seq);
                            let known = damaged.extract_if(.., |(damage, _)| *damage == name);
                            healed.extend(known.map(|(_, p)| {
                                format!("{}: {}; dealt with in commit @{seq}", p.place, p.what)
                            }));
                        }
                        for op in record.ops.iter().filter(|o| o.op != OpKind::Keep) {
                            newest.insert(op.path.clone(), Head::after(op, at, record.seq));
                        }
                    }
                }
            },
        )?;
        verification.records = records;
        verification.notices.extend(held);
        let (dropped, missing) = texts.judge();
        verification.dropped = dropped;
        for damage in missing {
            let place = format!(
                ".quipu/journal/{:08}.jsonl (byte {})",
                damage.at.segment, damage.at.offset
            );
            match healed_names.get(&damage.name()) {
                Some(seq) => healed.push(format!(
                    "{place}: {}; dealt with in commit @{seq}",
                    damage.what
                )),
                None => problems.push(Problem {
                    place,
                    what: damage.what,
                    remedy: journal_remedy(),
                }),
            }
        }
        problems.extend(damaged.into_iter().map(|(_, problem)| problem));
        verification.healed = healed;
        if let Some((first, at)) = ahead.first() {
            let several = if ahead.len() > 1 {
                format!(" and {} more", ahead.len() - 1)
            } else {
                String::new()
            };
            let what = format!(
                "commit @{first}{several}: the time {at} has not come yet; this machine's clock says {}",
                render_second(now_us)
            );
            verification.notices.push(format!(
                "{what}. If the clock is wrong now, set it. If it was wrong then, nothing is to be done: the order of commits is by number"
            ));
        }
        verification.problems.extend(problems);
        if let Some(tail) = tail
            && tail.seq != chain.seq
            && !chain.is_cut
        {
            verification.problems.push(Problem {
                place: ".quipu/live".into(),
                what: format!(
                    "says the journal ends at record {}, it ends at {}",
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
        newest: &mut BTreeMap<String, Head>,
        bound: Position,
    ) -> Result<()> {
        let heads: BTreeMap<String, Head> = self.heads()?.all()?.into_iter().collect();
        let mut suspects = BTreeSet::new();
        let mut problems = Vec::new();
        for (text, head) in &*newest {
            verification.files += u64::from(!head.gone);
            let found = self.verify_file(text, head, heads.get(text))?;
            if !found.is_empty() {
                suspects.insert(text.clone());
                problems.extend(found);
            }
        }
        if !suspects.is_empty() && !self.is_read_only() && !self.is_unruled() {
            // Other processes may write meanwhile. Real problems remain when checked under the
            // lock.
            match self.verify_at_rest(&suspects, newest, bound) {
                Ok((lasting, asides)) => {
                    problems = lasting;
                    if asides {
                        self.journal_asides()?;
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
        newest: &mut BTreeMap<String, Head>,
        bound: Position,
    ) -> Result<(Vec<Problem>, bool)> {
        let _held = self.append_lock.acquire()?;
        let tail = self.look()?.tail;
        self.sync_to(tail.at)?;
        let asides = match self.apply_files(tail.at) {
            Err(error) if error.is_of_one_file() && self.heads()?.applied()?.at >= tail.at => true,
            other => other?,
        };
        self.journal.scan(bound, Some(tail.at), &mut |seen| {
            if let Line::Record(record) = seen.line {
                let ops = record.ops.iter().filter(|o| o.op != OpKind::Keep);
                newest
                    .extend(ops.map(|op| (op.path.clone(), Head::after(op, seen.at, record.seq))));
            }
        })?;
        let mut problems = Vec::new();
        for text in suspects {
            if let Some(head) = newest.get(text) {
                let told = self.heads()?.head(text)?;
                problems.extend(self.verify_file(text, head, told.as_ref())?);
            }
        }
        Ok((problems, asides))
    }

    /// The problems of one file: on disk, and in the file index, which must match the journal.
    fn verify_file(&self, text: &str, head: &Head, told: Option<&Head>) -> Result<Vec<Problem>> {
        let mut problems = Vec::new();
        // The index may have a record that is no longer readable.
        let unread = |told: &&Head| {
            told.at > head.at
                && matches!(
                    self.journal.read_record(told.at),
                    Err(StoreError::Damaged { .. })
                )
        };
        let head = told.filter(unread).unwrap_or(head);
        if told.is_none_or(|h| h.version != head.version || h.gone != head.gone) {
            let what = format!("disagrees with the journal on `{text}`");
            problems.push(Problem {
                place: ".quipu/heads.db".into(),
                what,
                remedy: "quipu doctor".into(),
            });
        }
        let Ok(path) = ProjectPath::parse(text) else {
            return Ok(problems);
        };
        let mut off = |what: String, remedy: String| {
            problems.push(Problem {
                place: text.to_owned(),
                what,
                remedy,
            })
        };
        let read = match self.tree.read(&path) {
            // A file below something that is not a folder is not merely absent.
            Ok(None) => self.tree.stamp(&path).map(|_| None),
            other => other,
        };
        let (found, stamp) = match read {
            Ok(found) => found.unzip(),
            Err(error) => {
                // The error of `stamp` describes best what is at the path.
                let error = self.tree.stamp(&path).err().unwrap_or(error);
                let unwritten = told
                    .and_then(|told| told.flag.clone())
                    .map(|(flag, _)| flag)
                    .filter(Flag::is_unwritten);
                match unwritten.or_else(|| Flag::of_look(&path, &error)) {
                    Some(flag) => off(flag.what.clone(), flag.remedy(text, head.class, true)),
                    None => off(
                        format!("cannot be read: {error}"),
                        "look at the disk".into(),
                    ),
                }
                return Ok(problems);
            }
        };
        let class = if self.unruled {
            head.class
        } else {
            self.contract.class(&path)
        };
        if head.gone {
            if found.is_some() && class != Class::Free {
                off(
                    "was removed, but is there again".into(),
                    "quipu status".into(),
                );
            }
            return Ok(problems);
        }
        let before = match self.content_from_journal(&path, head) {
            // The records are complete but do not give the text, so no line of the journal is
            // reported for it.
            Err(damage @ StoreError::Damaged { segment: 0, .. }) => {
                off(
                    damage.to_string(),
                    "quipu doctor     (journals the file as it stands)".into(),
                );
                return Ok(problems);
            }
            // The damage itself is reported above; the file on disk is the only copy.
            Err(StoreError::Damaged { .. }) => return Ok(problems),
            other => other?,
        };
        if found.as_deref() == Some(&before) {
            if class != Class::Derived
                && let Some(flag) = self.committed_flag(&path, head)?
            {
                let line = flag.line.map(|l| format!(", line {l}")).unwrap_or_default();
                off(
                    format!("{}{line}", flag.what),
                    flag.remedy(text, class, true),
                );
            }
            return Ok(problems);
        }
        // An edit may have the file stat of the text before it. Without the stat, the next status
        // scan compares the bytes.
        if let Some(told) = told.filter(|told| told.stamp.is_some() && told.stamp == stamp)
            && !self.is_read_only()
        {
            self.heads()?.set_stamp(text, &told.version, None)?;
        }
        if let Some(told) = told
            && let Some(flag) = self.still_unwritten(&path, told, &before, found.as_deref())
        {
            off(flag.what.clone(), flag.remedy(text, class, true));
            return Ok(problems);
        }
        match self.judge_edit(&path, class, Some(head), Some(&before), found.as_deref()) {
            Outside::Flagged { what, line } => {
                let flag = Flag {
                    what: what.into_owned(),
                    line,
                };
                let line = line.map(|l| format!(", line {l}")).unwrap_or_default();
                off(
                    format!("{}{line}", flag.what),
                    flag.remedy(text, class, true),
                );
            }
            // Only a contract decides whether the edit is allowed.
            _ if self.unruled => off(
                "differs from the journal".into(),
                format!("fix it, or: quipu restore {text}"),
            ),
            Outside::Grew { .. } | Outside::Replaced | Outside::Removed => {
                off(
                    "differs from the journal; the contract allows the edit".into(),
                    "quipu status     (adopts it)".into(),
                );
            }
        }
        Ok(problems)
    }

    /// Checks files that a rule names and no record mentions: some are never adopted.
    fn verify_new_files(
        &self,
        verification: &mut Verification,
        newest: &BTreeMap<String, Head>,
    ) -> Result<()> {
        for (text, _) in self.look_through()?.files {
            let Ok(path) = ProjectPath::parse(&text) else {
                continue;
            };
            let class = self.contract.class(&path);
            if class == Class::Free || newest.contains_key(&text) {
                continue;
            }
            if let Noticed::Flagged(flag, _) = self.notice(&path, class, None)? {
                let line = flag.line.map(|l| format!(", line {l}")).unwrap_or_default();
                let (what, remedy) = (
                    format!("{}{line}", flag.what),
                    flag.remedy(&text, class, false),
                );
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
            self.live_now()?.tail()
        };
        let now_us = self.now().wall_us;
        let ahead = newest.filter(|tail| tail.wall_us.saturating_sub(now_us) > AHEAD_US);
        Ok(ahead.map(|tail| {
            let (then, now) = (render_second(tail.wall_us), render_second(now_us));
            let what = format!("the newest commit @{} has the time {then}, and this machine's clock says {now}", tail.seq);
            format!("{what}: if the clock is wrong now, set it; if it was wrong then, nothing is to be done, for the order of commits is by number")
        }))
    }

    fn verify_leases(&self, verification: &mut Verification) -> Result<()> {
        let leases = self.heads()?.leases()?;
        let now = self.lease_now();
        for lease in leases.iter().filter(|l| !l.is_session()) {
            if lease.is_over(now, &self.boot) {
                continue;
            }
            verification.leases += 1;
            for other in leases
                .iter()
                .filter(|o| o.id > lease.id && !o.is_over(now, &self.boot))
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
        "commit @{seq} of the shared log was held back: {why}. Nothing is to be done here; a keeper looks which login wrote it"
    )
}

fn journal_remedy() -> String {
    "quipu doctor     (journals anew what the files still tell, and notes the damage; keep the segment)".into()
}
