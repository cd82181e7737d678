//! Detects external edits.
//!
//! If a file has the recorded file stat, it is unchanged. Otherwise the store compares the bytes,
//! and the contract decides whether the edit is adopted (in a record of its own) or flagged. This
//! file undoes nothing and changes no byte on disk.

use std::sync::Arc;

use quipu_contract::{Class, Listing, Outside, ProjectPath, judge_outside};
use serde::Serialize;

use crate::error::{Result, StoreError, Unwritable};
use crate::files::tree::{FileStat, Tree};
use crate::history::texts::Texts;
use crate::index::file_index::FileHead;
use crate::index::shared_index::Index;
use crate::journal::record::{Kind, OpKind, RecordOp};
use crate::rules::flag::{DISK_FAILS, Flag, NO_ROOM, NOT_COMPARED};
use crate::rules::rule_book::Rules;
use crate::settings::Settings;
use crate::version::Version;

/// Larger files are not journalled: they are not memory, and the journal keeps every version.
const LARGEST: u64 = 256 << 20;

/// An edit is compared with this many earlier versions, so that detecting it does not cost the
/// file's whole history.
const EARLIER: usize = 500;

/// An external edit that was adopted.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Adopted {
    pub path: String,
    pub version: Version,
    /// `grew`, `changed`, `new` or `removed`.
    pub how: &'static str,
}

impl Adopted {
    pub(crate) fn of(op: &RecordOp, how: &'static str) -> Adopted {
        Adopted {
            path: op.path.clone(),
            version: op.version.clone(),
            how,
        }
    }
}

/// The files on disk, compared with the index, the journal and the contract.
pub(crate) struct WorkTree {
    pub settings: Arc<Settings>,
    pub rules: Arc<Rules>,
    pub tree: Arc<Tree>,
    pub index: Arc<Index>,
    pub texts: Arc<Texts>,
}

/// The result of comparing one file on disk.
pub(crate) enum Comparison {
    /// As journalled.
    Same,
    /// As journalled, but with another file stat: only touched.
    Touched(Option<FileStat>),
    /// Allowed: the operation to journal.
    Adopt {
        op: Box<RecordOp>,
        how: &'static str,
    },
    Flagged(Flag, Option<FileStat>),
}

/// A file whose bytes differ from the newest version.
struct Edited<'e> {
    path: &'e ProjectPath,
    class: Class,
    head: Option<&'e FileHead>,
    before: Option<Vec<u8>>,
    after: Option<Vec<u8>>,
}

/// The result for a file that need not be read.
fn compare_known(known: Option<&FileHead>, file_stat: Option<FileStat>) -> Option<Comparison> {
    match (known, file_stat) {
        (None, None) => return Some(Comparison::Same),
        (Some(head), Some(file_stat)) if head.file_stat == Some(file_stat) => {
            return Some(Comparison::Same);
        }
        _ => {}
    }
    // Whether a text is valid also depends on the contract, which may have changed.
    if let Some((flag, seen)) = known.and_then(|head| head.flag.as_ref())
        && *seen == file_stat
        && !flag.is_of_unreadable()
        && !flag.is_invalid()
    {
        return Some(Comparison::Flagged(flag.clone(), file_stat));
    }
    let size = file_stat.map_or(0, |file_stat| file_stat.size);
    (size > LARGEST).then(|| {
        let what = format!("has {size} bytes, but a memory file may have at most {LARGEST}");
        Comparison::Flagged(Flag::new(what), file_stat)
    })
}

/// The result for a file that could not be read, if the error concerns only this file. An unwritten
/// file stays flagged as unwritten.
fn stat_failed(
    path: &ProjectPath,
    head: Option<&FileHead>,
    error: &std::io::Error,
    file_stat: Option<FileStat>,
) -> Option<Comparison> {
    let unwritten = head
        .and_then(|head| head.flag.clone())
        .filter(|(flag, _)| flag.is_unwritten());
    match unwritten {
        // The obstacle may be a different one now.
        Some((_, seen)) if error.kind() == std::io::ErrorKind::InvalidInput => {
            Some(Comparison::Flagged(Flag::unwritten(error), seen))
        }
        Some((flag, seen)) => Some(Comparison::Flagged(flag, seen)),
        None => Flag::of_unreadable(path, error).map(|flag| Comparison::Flagged(flag, file_stat)),
    }
}

/// Whether two texts of an index differ only before the rows.
fn same_rows(before: &[u8], after: &[u8]) -> bool {
    match (std::str::from_utf8(before), std::str::from_utf8(after)) {
        (Ok(before), Ok(after)) => {
            Listing::from_first_row(before) == Listing::from_first_row(after)
        }
        _ => false,
    }
}

impl WorkTree {
    /// Compares a file on disk with its index entry. `class` is the current class in the contract.
    pub(crate) fn compare_file(
        &self,
        path: &ProjectPath,
        class: Class,
        head: Option<&FileHead>,
    ) -> Result<Comparison> {
        let file_stat = match self.tree.file_stat(path) {
            Err(error) => {
                return stat_failed(path, head, &error, None)
                    .ok_or_else(|| StoreError::io(format!("cannot check `{path}`"))(error));
            }
            Ok(file_stat) => file_stat,
        };
        self.compare_stat(path, class, head, file_stat)
    }

    /// Compares a file with its index entry if its stat is known.
    pub(crate) fn compare_stat(
        &self,
        path: &ProjectPath,
        class: Class,
        head: Option<&FileHead>,
        file_stat: Option<FileStat>,
    ) -> Result<Comparison> {
        let known = head.filter(|h| !h.gone);
        if let Some(comparison) = compare_known(known, file_stat) {
            return Ok(comparison);
        }
        let found = match self.tree.read(path) {
            Err(error) => {
                return stat_failed(path, head, &error, file_stat)
                    .ok_or_else(|| StoreError::io(format!("cannot read `{path}`"))(error));
            }
            Ok(found) => found,
        };
        let before = match known.map(|head| self.texts.content(path, head)).transpose() {
            // The damage concerns only this file.
            Err(StoreError::Damaged { .. }) => {
                return Ok(Comparison::Flagged(Flag::new(NOT_COMPARED), file_stat));
            }
            other => other?,
        };
        let (found, file_stat) = found.unzip();
        if before.is_some() && before == found {
            return Ok(Comparison::Touched(file_stat));
        }
        if let (Some(head), Some(newest)) = (known, &before)
            && let Some(flag) = self.still_unwritten(path, head, newest, found.as_deref())
        {
            return Ok(Comparison::Flagged(flag, file_stat));
        }
        let had_text = before.as_ref().is_none_or(|before| !before.is_empty());
        let is_zeros = |after: &Vec<u8>| !after.is_empty() && after.iter().all(|b| *b == 0);
        if had_text && found.as_ref().is_some_and(is_zeros) {
            let flag = Flag::new("contains only zero bytes, as after a power failure");
            return Ok(Comparison::Flagged(flag, file_stat));
        }
        let edit = Edited {
            path,
            class,
            head,
            before,
            after: found,
        };
        Ok(match self.judge(&edit) {
            Outside::Flagged { what, line } => {
                let what = what.into_owned();
                Comparison::Flagged(Flag { what, line }, file_stat)
            }
            allowed => self.adoption(edit, &allowed),
        })
    }

    fn judge(&self, edit: &Edited<'_>) -> Outside {
        let known = edit.head.filter(|h| !h.gone);
        match (&edit.before, &edit.after) {
            // The text before the rows of an index belongs to its readers.
            (Some(before), Some(after))
                if self.rules.contract().index_path().as_ref() == Some(edit.path)
                    && same_rows(before, after) =>
            {
                Outside::Replaced
            }
            (before, after) => self.validate_edit(
                edit.path,
                edit.class,
                known,
                before.as_deref(),
                after.as_deref(),
            ),
        }
    }

    /// The operation that adopts an allowed edit.
    fn adoption(&self, edit: Edited<'_>, allowed: &Outside) -> Comparison {
        let known = edit.head.filter(|h| !h.gone);
        let base = known.map(|head| head.version.clone());
        let new_op = |op, version, len| RecordOp {
            base: base.clone(),
            last: edit.head.map(|h| h.at.text()),
            ..RecordOp::new(op, edit.path.as_str(), edit.class.as_str(), version, len)
        };
        let after = edit.after.unwrap_or_default();
        let len = after.len() as u64;
        let (op, how) = match allowed {
            Outside::Grew { from } => {
                let tail = after[*from..].to_vec();
                let base = base.as_ref().expect("a file that grew was there");
                let op = new_op(OpKind::Append, base.extended(&tail), len);
                (op.with_bytes(tail), "grew")
            }
            Outside::Removed => (new_op(OpKind::Remove, Version::of(b""), 0), "removed"),
            Outside::Replaced | Outside::Flagged { .. } => {
                let how = if edit.before.is_some() {
                    "changed"
                } else {
                    "new"
                };
                let delta = self.texts.delta(edit.path, known, edit.before, &after);
                let op = new_op(OpKind::Write, Version::of(&after), len);
                (op.with_text(after, delta), how)
            }
        };
        let op = Box::new(op);
        Comparison::Adopt { op, how }
    }

    /// Validates an external edit of a file by its class and its form.
    pub(crate) fn validate_edit(
        &self,
        path: &ProjectPath,
        class: Class,
        head: Option<&FileHead>,
        before: Option<&[u8]>,
        after: Option<&[u8]>,
    ) -> Outside {
        let earlier = || {
            head.zip(after)
                .and_then(|(head, after)| self.commit_with(path, head, after))
        };
        let validated = judge_outside(class, path.as_str(), before, after, &earlier);
        let (rule, after) = (self.rules.contract().rule(path), after.unwrap_or_default());
        let fault = match &validated {
            Outside::Grew { from } => self.rules.growth_fault(path, rule, after, *from),
            Outside::Replaced => self.rules.form_fault(path, rule, after),
            // The form check gives a more precise reason.
            Outside::Flagged { what, .. } if what.ends_with("valid JSON") => {
                self.rules.form_fault(path, rule, after)
            }
            _ => None,
        };
        let fault = fault.or_else(|| {
            self.rules
                .hiding_fault(path, rule, before, &validated, after)
        });
        fault.map_or(validated, |fault| {
            let Flag { what, line } = fault.flag();
            Outside::Flagged {
                what: what.into(),
                line,
            }
        })
    }

    /// The newest of the last commits after which the file had these bytes, if a commit through
    /// Quipu has changed it since. If a user undoes only external edits by hand, nothing else is
    /// reverted.
    fn commit_with(&self, path: &ProjectPath, head: &FileHead, bytes: &[u8]) -> Option<u64> {
        let wanted = Version::of(bytes);
        let (mut found, mut through_quipu, mut left) = (None, false, EARLIER);
        let walked = self.texts.walk(path, head.at, &mut |record, op| {
            left -= 1;
            if op.version == wanted && op.op != OpKind::Remove {
                found = Some(record.seq);
            } else {
                through_quipu |= record.kind != Kind::Adopt;
            }
            found.is_none() && left > 0
        });
        walked.ok().and(found).filter(|_| through_quipu)
    }

    /// The flag of a file that could not be written and still holds an earlier version. It may have
    /// been touched, but it was not edited.
    pub(crate) fn still_unwritten(
        &self,
        path: &ProjectPath,
        head: &FileHead,
        newest: &[u8],
        found: Option<&[u8]>,
    ) -> Option<Flag> {
        let was_version = || {
            found.is_some_and(|found| self.texts.was_version(path, head, found).unwrap_or(false))
        };
        if let Some(why) = &self.settings.unwritable {
            let what = if matches!(why, Unwritable::Full(_)) {
                NO_ROOM
            } else {
                DISK_FAILS
            };
            let is_part = found.is_none_or(|found| newest.starts_with(found));
            return (is_part || was_version()).then(|| Flag::new(what));
        }
        let (flag, seen) = head.flag.as_ref().filter(|(flag, _)| flag.is_unwritten())?;
        let is_as_it_was = if found.is_some() {
            was_version()
        } else {
            seen.is_none()
        };
        is_as_it_was.then(|| flag.clone())
    }
}
