//! Verification: the journal against itself, the files against the journal, the leases.
//!
//! Reads everything and believes nothing: no stamp, no heads. Writes nothing.

use std::collections::BTreeMap;

use quipu_contract::{Class, Outside, ProjectPath, judge_outside};
use serde::Serialize;

use crate::adopt::Noticed;
use crate::error::{Result, StoreError};
use crate::heads::Head;
use crate::journal::{Line, Position, Seen};
use crate::record::{OpKind, ROOT_SUM};
use crate::store::Store;

/// Something that is off.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Problem {
    /// `.quipu/journal/00000001.jsonl:12` or the path of a file.
    pub place: String,
    pub what: String,
    pub mend: String,
}

/// What was looked at, and what is off.
#[derive(Debug, Clone, Default, Serialize)]
pub struct Verification {
    pub records: u64,
    pub files: u64,
    pub leases: u64,
    pub problems: Vec<Problem>,
    /// Files with what a power cut left of unacknowledged records: nothing is wrong, a person may look.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub torn: Vec<String>,
}

impl Store {
    pub fn verify(&self) -> Result<Verification> {
        self.with_sound_heads(|| self.verify_once())
    }

    fn verify_once(&self) -> Result<Verification> {
        let mut verification = Verification::default();
        match self.settle() {
            // What is missing is named below, as far as it can be told.
            Err(damage @ StoreError::Damaged { .. }) => verification.problems.push(Problem {
                place: ".quipu/journal".into(),
                what: damage.to_string(),
                mend: "quipu doctor     (begins anew behind what is left, with the files as they are)".into(),
            }),
            other => other?,
        }
        let mut newest: BTreeMap<String, Head> = BTreeMap::new();
        self.verify_chain(&mut verification, &mut newest)?;
        self.verify_files(&mut verification, &newest)?;
        self.verify_leases(&mut verification)?;
        self.find_torn(&mut verification)?;
        for name in self.unrescued()? {
            verification.problems.push(Problem {
                place: format!(".quipu/tmp/{name}"),
                what: "is someone's edit, which a killed program had taken out of its place".into(),
                mend: "quipu status     (journals it and says where)".into(),
            });
        }
        Ok(verification)
    }

    fn verify_chain(&self, verification: &mut Verification, newest: &mut BTreeMap<String, Head>) -> Result<()> {
        let mut sum = ROOT_SUM.to_owned();
        let mut seq = 0;
        let mut after_damage = false;
        let mut problems = Vec::new();
        let mut records = 0;
        let bound = self.bound()?;
        self.journal.scan(Position::START, Some(bound), &mut |Seen { at, number, line, .. }| {
            let counted = if number > 0 { format!(":{number}") } else { String::new() };
            let place = format!(".quipu/journal/{:08}.jsonl{counted}", at.segment);
            let mut off = |what: String| problems.push(Problem { place: place.clone(), what, mend: mend_journal() });
            match line {
                Line::Later(what) => {
                    off(what);
                    after_damage = true;
                }
                Line::Damaged(damage) => {
                    let byte = if number > 0 { format!(" (byte {} of the segment)", at.offset) } else { String::new() };
                    off(format!("{}{byte}", damage.what));
                    after_damage = true;
                }
                Line::Record(record) => {
                    records += 1;
                    // Behind damage the chain is picked up again: the record names its predecessor's sum.
                    if !after_damage {
                        if record.prev != sum {
                            off(format!("record {} does not follow the one before it", record.seq));
                        } else if record.seq != seq + 1 {
                            off(format!("record {} follows record {seq}", record.seq));
                        }
                    }
                    after_damage = false;
                    sum = record.sum.clone();
                    seq = record.seq;
                    for op in record.ops.iter().filter(|o| o.op != OpKind::Keep) {
                        newest.insert(op.path.clone(), Head::after(op, at, record.seq));
                    }
                }
            }
        })?;
        verification.records = records;
        verification.problems.extend(problems);
        if let Some(tail) = self.live().ok().and_then(|live| live.tail())
            && tail.seq != seq
            && !after_damage
        {
            verification.problems.push(Problem {
                place: ".quipu/live".into(),
                what: format!("says the journal ends at record {}, it ends at {seq}", tail.seq),
                mend: "quipu doctor".into(),
            });
        }
        Ok(())
    }

    fn verify_files(&self, verification: &mut Verification, newest: &BTreeMap<String, Head>) -> Result<()> {
        for (text, head) in newest {
            let Ok(path) = ProjectPath::parse(text) else { continue };
            let found = self.tree.read(&path);
            let mut off = |what: String, mend: String| verification.problems.push(Problem { place: text.clone(), what, mend });
            let found = match found {
                Ok(found) => found.map(|(bytes, _)| bytes),
                Err(error) => {
                    off(format!("cannot be read: {error}"), "look at its permissions".into());
                    continue;
                }
            };
            let class = if self.unruled { head.class } else { self.contract.class(&path) };
            if head.gone {
                if found.is_some() && class != Class::Free {
                    off("was removed, but is there again".into(), "quipu status".into());
                }
                continue;
            }
            verification.files += 1;
            let before = match self.content_from_journal(&path, head) {
                Ok(before) => before,
                Err(StoreError::Damaged { .. }) => {
                    // The damage itself is reported above; the file on disk is the only copy.
                    continue;
                }
                Err(error) => return Err(error),
            };
            if found.as_deref() == Some(&before) {
                continue;
            }
            match judge_outside(class, text, Some(&before), found.as_deref()) {
                Outside::Flagged { what, line } => {
                    let line = line.map(|l| format!(", line {l}")).unwrap_or_default();
                    off(format!("{what}{line}"), format!("quipu diff {text}; then quipu restore {text}"));
                }
                // Whether it is allowed, only a contract could tell.
                _ if self.unruled => off("differs from the journal".into(), format!("mend it, or: quipu restore {text}")),
                Outside::Grew { .. } | Outside::Replaced | Outside::Removed => {
                    off("differs from the journal; the contract allows the edit".into(), "quipu status     (adopts it)".into());
                }
            }
        }
        self.verify_new_files(verification, newest)?;
        // What the heads say must be what the journal says.
        let heads: BTreeMap<String, Head> = self.heads()?.all()?.into_iter().collect();
        for (text, head) in newest {
            if heads.get(text).is_none_or(|h| h.version != head.version || h.gone != head.gone) {
                verification.problems.push(Problem {
                    place: ".quipu/heads.db".into(),
                    what: format!("disagrees with the journal on `{text}`"),
                    mend: "quipu doctor".into(),
                });
            }
        }
        Ok(())
    }

    /// Files that a rule names and no record does: they may be such that they are never taken over.
    fn verify_new_files(&self, verification: &mut Verification, newest: &BTreeMap<String, Head>) -> Result<()> {
        for (text, _) in self.look_through()?.files {
            let Ok(path) = ProjectPath::parse(&text) else { continue };
            let class = self.contract.class(&path);
            if class == Class::Free || newest.contains_key(&text) {
                continue;
            }
            if let Noticed::Flagged(flag, _) = self.notice(&path, class, None)? {
                let line = flag.line.map(|l| format!(", line {l}")).unwrap_or_default();
                let (what, mend) = (format!("{}{line}", flag.what), flag.mend(&text, class, false));
                verification.problems.push(Problem { place: text, what, mend });
            }
        }
        Ok(())
    }

    /// What a power cut left of records that no one was told of. Harmless, but someone should know.
    fn find_torn(&self, verification: &mut Verification) -> Result<()> {
        for entry in std::fs::read_dir(self.quipu()).map_err(StoreError::io("cannot list `.quipu`"))?.flatten() {
            let name = entry.file_name().to_string_lossy().into_owned();
            if name.starts_with("torn-") {
                verification.torn.push(format!(".quipu/{name}"));
            }
        }
        verification.torn.sort_unstable();
        Ok(())
    }

    fn verify_leases(&self, verification: &mut Verification) -> Result<()> {
        let leases = self.heads()?.leases()?;
        let now = self.lease_now();
        for lease in leases.iter().filter(|l| !l.is_session()) {
            if lease.is_over(now, &self.boot) {
                continue;
            }
            verification.leases += 1;
            for other in leases.iter().filter(|o| o.id > lease.id && !o.is_over(now, &self.boot)) {
                if other.overlaps(lease) {
                    verification.problems.push(Problem {
                        place: format!("lease {}", lease.id),
                        what: format!("overlaps lease {}", other.id),
                        mend: format!("quipu lease release {}", other.id),
                    });
                }
            }
        }
        Ok(())
    }
}

fn mend_journal() -> String {
    "keep the segment; the files on disk are whole: `quipu status` says whether they still agree".into()
}
