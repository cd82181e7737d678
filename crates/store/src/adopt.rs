//! Detects external edits.
//!
//! If a file has the recorded file stat, it is unchanged. Otherwise the store compares the bytes,
//! and the contract decides whether the edit is adopted (in a record of its own) or flagged. This
//! file undoes nothing and changes no byte on disk.

use quipu_contract::{Class, Listing, Outside, ProjectPath, is_loss, judge_outside};
use serde::Serialize;

use crate::body::Body;
use crate::error::{Result, StoreError, Unwritable};
use crate::form_fault::{COMMITTED, CONFLICT, INVALID, NO_VERSION};
use crate::heads::Head;
use crate::record::{Kind, OpKind, RecordOp};
use crate::store::Store;
use crate::tree::Stamp;
use crate::version::Version;

/// Larger files are not journalled: they are not memory, and the journal keeps every version.
const LARGEST: u64 = 256 << 20;

/// An edit is compared with this many earlier versions, so that detecting it does not cost the
/// file's whole history.
const EARLIER: usize = 500;

/// The command that repairs all state files that lost something.
pub fn mend_losses(paths: &[&str]) -> String {
    let paths = paths.join(" ");
    format!("quipu restore {paths}     (or keep the edit: quipu amend {paths} --why \"…\")")
}

/// An external edit that the contract does not allow.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Flag {
    /// Completes the sentence "`path` …".
    pub what: String,
    pub line: Option<usize>,
}

/// The flag of a file if its newest text cannot be read from the journal.
const UNTOLD: &str = "cannot be compared with the journal: a record about it is damaged";
/// The flags of files that could not be read or written.
const UNREAD: &str = "cannot be read: ";
const UNWRITTEN: &str = "could not be written: ";
const BLOCKED: &str = ", which is in its way";
const NO_ROOM: &str = "is not written yet: the disk is full";
const DISK_FAILS: &str = "is not written yet: the disk fails";
/// The flags of paths that something else occupies, at the path itself or at a folder above it.
const IN_THE_WAY: &str = ", where a file belongs";
const ON_THE_WAY: &str = ", where a folder belongs";

impl Flag {
    /// The commit is journalled, but this file could not be written.
    pub(crate) fn unwritten(error: &std::io::Error) -> Flag {
        let blocked = if error.kind() == std::io::ErrorKind::PermissionDenied {
            ""
        } else {
            BLOCKED
        };
        Flag {
            what: format!("{UNWRITTEN}{error}{blocked}"),
            line: None,
        }
    }

    /// Something else occupies the path or a folder above it. A user did this; the disk did not
    /// fail.
    fn obstacle(path: &ProjectPath, error: &std::io::Error) -> Flag {
        let what = error.to_string();
        let what = match what
            .strip_prefix(&format!("`{path}` "))
            .filter(|what| what.starts_with("is "))
        {
            Some(what) => format!("{what}{IN_THE_WAY}"),
            None => format!("cannot be reached: {what}{ON_THE_WAY}"),
        };
        Flag { what, line: None }
    }

    /// The flag for a file that could not be read, if the error concerns only this file.
    pub(crate) fn of_look(path: &ProjectPath, error: &std::io::Error) -> Option<Flag> {
        match error.kind() {
            std::io::ErrorKind::InvalidInput => Some(Self::obstacle(path, error)),
            std::io::ErrorKind::PermissionDenied => Some(Flag {
                what: format!("{UNREAD}{error}"),
                line: None,
            }),
            _ => None,
        }
    }

    /// Whether the flag says that the file could not be read, and not that its content is wrong.
    fn is_of_look(&self) -> bool {
        self.what.starts_with(UNREAD)
            || self.what.ends_with(IN_THE_WAY)
            || self.what.ends_with(ON_THE_WAY)
    }

    /// Whether a state file lost something, and one command repairs all such files.
    pub fn is_loss(&self) -> bool {
        is_loss(&self.what)
    }

    /// Whether the text is invalid in the form that the contract requires.
    pub fn is_invalid(&self) -> bool {
        self.what.starts_with(INVALID) || self.what.starts_with(COMMITTED)
    }

    pub(crate) fn is_unwritten(&self) -> bool {
        self.what.starts_with(UNWRITTEN)
    }

    /// The command that fixes it.
    pub fn remedy(&self, path: &str, class: Class, has_history: bool) -> String {
        if self.what == UNTOLD {
            return "quipu doctor".into();
        }
        if self.what.starts_with(UNREAD) {
            return "give permission to read it".into();
        }
        if self.what == NO_ROOM {
            return "make room, then: quipu doctor".into();
        }
        if self.what == DISK_FAILS {
            return "repair the disk, then: quipu doctor".into();
        }
        if self.what.ends_with(BLOCKED) {
            return "move away what stands there, then: quipu doctor".into();
        }
        if self.is_unwritten() {
            return format!("give permission to write it, then: quipu restore {path}");
        }
        if self.what.ends_with(IN_THE_WAY) || self.what.ends_with(ON_THE_WAY) {
            return if has_history {
                format!("move it away, then: quipu restore {path}")
            } else {
                "move it away".into()
            };
        }
        if is_loss(&self.what) {
            return mend_losses(&[path]);
        }
        if self.what.ends_with(CONFLICT) {
            return format!(
                "quipu git setup && git checkout --merge {path}     (joins both sides; or solve it in an editor)"
            );
        }
        if self.is_invalid() {
            // A restore may undo more than the fault, so it is named second if a value is wrong.
            let is_committed = self.what.starts_with(COMMITTED);
            return match has_history && !self.what.ends_with(NO_VERSION) {
                true if is_committed => {
                    format!(
                        "correct it in an editor: a valid text is adopted; or go back to the newest valid version: quipu restore {path}"
                    )
                }
                true => format!(
                    "quipu restore {path}     (or correct it in an editor: a valid text is adopted)"
                ),
                false => "correct it in an editor: a valid text is adopted".into(),
            };
        }
        if !has_history {
            return format!("fix `{path}` in an editor: there is no version of it to bring back");
        }
        let keep = if class == Class::Sealed && !self.what.starts_with("was removed") {
            format!("; or keep it: quipu amend {path} --why \"…\"")
        } else {
            String::new()
        };
        format!("quipu diff {path}; then quipu restore {path}{keep}")
    }
}

/// An external edit that was adopted.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Adopted {
    pub path: String,
    pub version: Version,
    /// `grew`, `changed`, `new` or `removed`.
    pub how: &'static str,
}

/// The result of comparing one file on disk.
pub(crate) enum Noticed {
    /// As journalled.
    Same,
    /// As journalled, but with another file stat: only touched.
    Touched(Option<Stamp>),
    /// Allowed: the operation to journal.
    Adopt {
        op: Box<RecordOp>,
        how: &'static str,
    },
    Flagged(Flag, Option<Stamp>),
}

impl Store {
    /// Compares a file on disk with its index entry. `class` is the current class in the contract.
    pub(crate) fn notice(
        &self,
        path: &ProjectPath,
        class: Class,
        head: Option<&Head>,
    ) -> Result<Noticed> {
        let stamp = match self.tree.stamp(path) {
            Err(error) => {
                return look_failed(path, head, &error, None)
                    .ok_or_else(|| StoreError::io(format!("cannot look at `{path}`"))(error));
            }
            Ok(stamp) => stamp,
        };
        self.notice_stamp(path, class, head, stamp)
    }

    pub(crate) fn notice_stamp(
        &self,
        path: &ProjectPath,
        class: Class,
        head: Option<&Head>,
        stamp: Option<Stamp>,
    ) -> Result<Noticed> {
        let known = head.filter(|h| !h.gone);
        match (known, stamp) {
            (None, None) => return Ok(Noticed::Same),
            (Some(head), Some(stamp)) if head.stamp == Some(stamp) => return Ok(Noticed::Same),
            // Whether a text is valid also depends on the contract, which may have changed.
            (
                Some(Head {
                    flag: Some((flag, seen)),
                    ..
                }),
                stamp,
            ) if *seen == stamp && !flag.is_of_look() && !flag.is_invalid() => {
                return Ok(Noticed::Flagged(flag.clone(), stamp));
            }
            _ => {}
        }
        if let Some(stamp) = stamp.filter(|s| s.size > LARGEST) {
            let what = format!(
                "has {} bytes, more than a memory file may have ({LARGEST})",
                stamp.size
            );
            return Ok(Noticed::Flagged(Flag { what, line: None }, Some(stamp)));
        }
        let found = match self.tree.read(path) {
            Err(error) => {
                return look_failed(path, head, &error, stamp)
                    .ok_or_else(|| StoreError::io(format!("cannot read `{path}`"))(error));
            }
            Ok(found) => found,
        };
        let before = match known.map(|head| self.content(path, head)).transpose() {
            // The damage concerns only this file.
            Err(StoreError::Damaged { .. }) => {
                return Ok(Noticed::Flagged(
                    Flag {
                        what: UNTOLD.into(),
                        line: None,
                    },
                    stamp,
                ));
            }
            other => other?,
        };
        if let (Some(before), Some((found, stamp))) = (&before, &found)
            && before == found
        {
            return Ok(Noticed::Touched(Some(*stamp)));
        }
        let (found, stamp) =
            found.map_or((None, None), |(bytes, stamp)| (Some(bytes), Some(stamp)));
        if let (Some(head), Some(newest)) = (known, &before)
            && let Some(flag) = self.still_unwritten(path, head, newest, found.as_deref())
        {
            return Ok(Noticed::Flagged(flag, stamp));
        }
        let after = found;
        if before.as_ref().is_none_or(|before| !before.is_empty())
            && after
                .as_ref()
                .is_some_and(|after| !after.is_empty() && after.iter().all(|b| *b == 0))
        {
            return Ok(Noticed::Flagged(
                Flag {
                    what: "holds nothing but zero bytes, as a power cut leaves them".into(),
                    line: None,
                },
                stamp,
            ));
        }
        let base = known.map(|h| h.version.clone());
        let new_op = |op, version, len| RecordOp {
            op,
            path: path.as_str().to_owned(),
            class: class.as_str().into(),
            base: base.clone(),
            version,
            len,
            last: head.map(|h| h.at.text()),
            deltas: 0,
            hash: None,
            body: Body::None,
        };
        let judged = match (&before, &after) {
            // The text before the rows of an index belongs to its readers.
            (Some(before), Some(after))
                if self.contract.index_path().as_ref() == Some(path)
                    && same_rows(before, after) =>
            {
                Outside::Replaced
            }
            _ => self.judge_edit(path, class, known, before.as_deref(), after.as_deref()),
        };
        Ok(match judged {
            Outside::Flagged { what, line } => Noticed::Flagged(
                Flag {
                    what: what.into_owned(),
                    line,
                },
                stamp,
            ),
            Outside::Grew { from } => {
                let after = after.expect("a file that grew is there");
                let tail = after[from..].to_vec();
                let version = base
                    .clone()
                    .expect("a file that grew was there")
                    .extended(&tail);
                Noticed::Adopt {
                    op: Box::new(
                        new_op(OpKind::Append, version, after.len() as u64).with_bytes(tail),
                    ),
                    how: "grew",
                }
            }
            Outside::Replaced => {
                let after = after.expect("a file that was replaced is there");
                let how = if before.is_some() { "changed" } else { "new" };
                let delta = self.delta(path, known, before, &after);
                let op = new_op(OpKind::Write, Version::of(&after), after.len() as u64)
                    .with_text(after, delta);
                Noticed::Adopt {
                    op: Box::new(op),
                    how,
                }
            }
            Outside::Removed => Noticed::Adopt {
                op: Box::new(new_op(OpKind::Remove, Version::of(b""), 0)),
                how: "removed",
            },
        })
    }

    /// Judges an external edit of a file by its class and its form.
    pub(crate) fn judge_edit(
        &self,
        path: &ProjectPath,
        class: Class,
        head: Option<&Head>,
        before: Option<&[u8]>,
        after: Option<&[u8]>,
    ) -> Outside {
        let earlier = || {
            head.zip(after)
                .and_then(|(head, after)| self.commit_with(path, head, after))
        };
        let judged = judge_outside(class, path.as_str(), before, after, &earlier);
        let (rule, after) = (self.contract.rule(path), after.unwrap_or_default());
        let fault = match &judged {
            Outside::Grew { from } => self.growth_fault(path, rule, after, *from),
            Outside::Replaced => self.form_fault(path, rule, after),
            // The form check gives a more precise reason.
            Outside::Flagged { what, .. } if what.ends_with("valid JSON") => {
                self.form_fault(path, rule, after)
            }
            _ => None,
        };
        let fault = fault.or_else(|| self.hiding_fault(path, rule, before, &judged, after));
        fault.map_or(judged, |fault| {
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
    fn commit_with(&self, path: &ProjectPath, head: &Head, bytes: &[u8]) -> Option<u64> {
        let wanted = Version::of(bytes);
        let (mut found, mut through_quipu, mut left) = (None, false, EARLIER);
        let walked = self.walk(path, head.at, &mut |record, op| {
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
        head: &Head,
        newest: &[u8],
        found: Option<&[u8]>,
    ) -> Option<Flag> {
        let was_version =
            || found.is_some_and(|found| self.was_version(path, head, found).unwrap_or(false));
        if let Some(why) = &self.looks {
            let what = if matches!(why, Unwritable::Full(_)) {
                NO_ROOM
            } else {
                DISK_FAILS
            };
            let is_part = found.is_none_or(|found| newest.starts_with(found));
            return (is_part || was_version()).then(|| Flag {
                what: what.into(),
                line: None,
            });
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

/// The result for a file that could not be read, if the error concerns only this file. An unwritten
/// file stays flagged as unwritten.
fn look_failed(
    path: &ProjectPath,
    head: Option<&Head>,
    error: &std::io::Error,
    stamp: Option<Stamp>,
) -> Option<Noticed> {
    let unwritten = head
        .and_then(|head| head.flag.clone())
        .filter(|(flag, _)| flag.is_unwritten());
    match unwritten {
        // The obstacle may be a different one now.
        Some((_, seen)) if error.kind() == std::io::ErrorKind::InvalidInput => {
            Some(Noticed::Flagged(Flag::unwritten(error), seen))
        }
        Some((flag, seen)) => Some(Noticed::Flagged(flag, seen)),
        None => Flag::of_look(path, error).map(|flag| Noticed::Flagged(flag, stamp)),
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
