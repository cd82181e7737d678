//! Validates one operation of a change, in phases: flag, class, name, expected version, new text,
//! guards and form. The result is the operation to journal.

use quipu_contract::{
    Act, Actor, Class, Contract, FileRule, Form, ProjectPath, may_continue_credential, merge_keyed,
};

use crate::change::{Change, Expect, Op};
use crate::clock::render_second;
use crate::commit::file_state::FileState;
use crate::commit::merge::merge_object;
use crate::commit::permit::{did_you_mean, reads_whole};
use crate::error::{Result, StoreError};
use crate::journal::record::RecordOp;
use crate::rules::guards::{Writing, guard, guard_continued, refused_by};
use crate::rules::open_block::is_of_entries;
use crate::store::Store;
use crate::version::Version;

/// One operation, with its actor and the rule of its file.
pub(crate) struct Operation<'o> {
    pub store: &'o Store,
    pub change: &'o Change,
    pub op: &'o Op,
    pub actor: &'o Actor,
    pub rule: Option<&'o FileRule>,
}

/// The text that an operation gives its file.
enum NewText {
    Appended(Vec<u8>),
    Whole(Vec<u8>),
    Removed,
}

impl Operation<'_> {
    /// The operation to journal; none if the file is already as requested. `kept` gets the external
    /// edit that it replaces.
    pub fn validate(
        &self,
        state: &mut FileState,
        kept: &mut Vec<RecordOp>,
    ) -> Result<Option<RecordOp>> {
        self.refuse_flagged(state)?;
        let act = self.act(state);
        self.check_class(act, state)?;
        if !state.exists() && !self.repairs() && !matches!(self.op, Op::Remove { .. }) {
            self.check_name()?;
        }
        if let Some(merged) = self.check_expected(state)? {
            state.merged = true;
            let merged = Operation {
                op: &merged,
                ..*self
            };
            return merged.validate(state, kept);
        }
        self.check_reason()?;
        let (bytes, appends) = match self.new_text(state)? {
            NewText::Appended(bytes) => (bytes, true),
            NewText::Whole(bytes) => (bytes, false),
            NewText::Removed => return Ok(Some(state.remove(self.op.path()))),
        };
        self.guard_text(&bytes, appends, state)?;
        if act != Act::RestoreHead {
            self.check_form(&bytes, appends, state)?;
        }
        // A writer who accepts the text on disk has seen the loss.
        state.replaced |= matches!(
            self.op,
            Op::Write { .. } | Op::Create { .. } | Op::Amend { .. } | Op::Merge { .. }
        ) && act != Act::Accept;
        if act == Act::RestoreHead && state.flagged.is_none() {
            return Ok(None); // the file is already as journalled
        }
        self.keep_flagged(&bytes, state, kept)?;
        if appends && state.exists() {
            let op = (!bytes.is_empty()).then(|| state.append(self.op.path(), bytes));
            return Ok(op);
        }
        Ok(self.write(act, bytes, state))
    }

    fn contract(&self) -> &Contract {
        self.store.contract()
    }

    /// Whether the operation may replace disallowed bytes on disk.
    fn repairs(&self) -> bool {
        matches!(
            self.op,
            Op::Restore { .. } | Op::Amend { .. } | Op::Derive { .. }
        )
    }

    fn refuse_flagged(&self, state: &FileState) -> Result<()> {
        let (Some((flag, _)), false) = (&state.flagged, self.repairs()) else {
            return Ok(());
        };
        let path = self.op.path();
        let remedy = match &state.head {
            Some(_) => flag.remedy(path.as_str(), state.class, true),
            None => {
                "move it away or fix it in an editor: a memory file must be a regular file".into()
            }
        };
        let binding = self.contract().actor_binding(self.actor);
        let reads = self
            .contract()
            .grant(self.actor)
            .is_ok_and(|grant| grant.may_read(path, &binding).is_ok());
        let what = if reads {
            let line = flag.line.map(|l| format!(" (line {l})"));
            format!("{}{}", flag.what, line.unwrap_or_default())
        } else {
            "was changed outside Quipu in a way that the contract does not allow".into()
        };
        Err(refused_by(format!("`{path}` {what}"), self.rule, remedy))
    }

    /// The effect of the operation on the file, for the class to judge.
    fn act(&self, state: &FileState) -> Act {
        let is_loss = || state.flagged.as_ref().is_some_and(|(f, _)| f.is_loss());
        match self.op {
            Op::Append { .. } => Act::Append,
            Op::Write { expect, .. } => Act::Replace {
                expected: *expect != Expect::Any,
            },
            Op::Create { .. } => Act::Create,
            Op::Merge { .. } => Act::Merge,
            Op::Remove { .. } => Act::Remove,
            Op::Amend { bytes: None, .. } if is_loss() => Act::Accept,
            Op::Amend { .. } => Act::Amend,
            Op::Derive { .. } => Act::Derive,
            Op::Restore {
                older: true, bytes, ..
            } if self.is_repair(state, bytes) => Act::Repair,
            Op::Restore { older: true, .. } => Act::RestoreOlder,
            // The edit that was just adopted is the newest version, so the requested one is older.
            Op::Restore { .. } if state.head != state.journalled => Act::RestoreOlder,
            Op::Restore { older: false, .. } => Act::RestoreHead,
        }
    }

    fn check_class(&self, act: Act, state: &FileState) -> Result<()> {
        let path = self.op.path();
        let allowed = state.class.allows(act, self.actor, state.exists());
        allowed.map_err(|refusal| {
            let remedy = refusal.remedy.replace("{path}", path.as_str());
            refused_by(format!("`{path}` {}", refusal.what), self.rule, remedy)
        })
    }

    /// Refuses a new file with a name that is probably a misspelling of one in the contract, unless
    /// a person confirms it.
    fn check_name(&self) -> Result<()> {
        let path = self.op.path();
        let is_meant = self.change.new_name && *self.actor == Actor::Person;
        let meant = self
            .contract()
            .near_name(path)
            .or_else(|| self.contract().same_name_below(path))
            .filter(|_| !is_meant && *self.actor != Actor::Runtime);
        meant.map_or(Ok(()), |meant| Err(did_you_mean(path, meant)))
    }

    /// Compares the expected version with the newest one. If a stale write can be merged, returns
    /// the operation that replaces it.
    fn check_expected(&self, state: &mut FileState) -> Result<Option<Op>> {
        let path = self.op.path();
        let expected = match self.op {
            Op::Write { expect, .. } | Op::Derive { expect, .. } | Op::Remove { expect, .. } => {
                match expect {
                    Expect::Version(expected) => expected,
                    Expect::Any => return Ok(None),
                }
            }
            _ => return Ok(None),
        };
        if state.version() == expected.if_any() {
            return Ok(None);
        }
        if let Op::Write { bytes, .. } = self.op
            && let Some(bytes) = self.merged_by_key(state, expected, bytes)?
        {
            let expect = state
                .version()
                .cloned()
                .map_or(Expect::Any, Expect::Version);
            let path = path.clone();
            return Ok(Some(Op::Write {
                path,
                bytes,
                expect,
            }));
        }
        let now = match state.version() {
            Some(version) if reads_whole(self.contract(), self.actor, path) => version.clone(),
            Some(_) => Version::withheld(),
            None => Version::none(),
        };
        Err(StoreError::Stale {
            path: path.as_str().into(),
            expected: expected.clone(),
            now,
            kept: None,
        })
    }

    fn check_reason(&self) -> Result<()> {
        let has_reason = self
            .change
            .why
            .as_ref()
            .is_some_and(|why| !why.trim().is_empty());
        if matches!(self.op, Op::Amend { .. }) && !has_reason {
            let remedy = format!("quipu amend {} --why \"…\"", self.op.path());
            return Err(StoreError::refused("an amendment needs a reason", remedy));
        }
        Ok(())
    }

    fn new_text(&self, state: &mut FileState) -> Result<NewText> {
        let path = self.op.path();
        let missing =
            |remedy: String| StoreError::not_found(format!("`{path}` does not exist"), remedy);
        Ok(match self.op {
            Op::Append { bytes, apart, .. } => {
                let continues = *apart && self.continues_line(bytes, state)?;
                let newline: &[u8] = if continues { b"\n" } else { b"" };
                NewText::Appended([newline, bytes].concat())
            }
            Op::Write { bytes, .. }
            | Op::Create { bytes, .. }
            | Op::Derive { bytes, .. }
            | Op::Amend {
                bytes: Some(bytes), ..
            } => NewText::Whole(bytes.clone()),
            Op::Restore { bytes, older, .. } => {
                NewText::Whole(self.restored(state, bytes, *older)?)
            }
            Op::Merge { value, .. } => NewText::Whole(self.merged(state, value)?),
            Op::Amend { bytes: None, .. } => match self.store.on_disk(path)? {
                Some(bytes) => NewText::Whole(bytes),
                None => return Err(missing(format!("quipu restore {path}"))),
            },
            Op::Remove { .. } if state.exists() => NewText::Removed,
            Op::Remove { .. } => return Err(missing("quipu status".into())),
        })
    }

    /// Whether an appended text would continue the last line of the file.
    fn continues_line(&self, bytes: &[u8], state: &FileState) -> Result<bool> {
        let may_continue = state.exists() && bytes.first().is_some_and(|first| *first != b'\n');
        Ok(may_continue && !state.last_line(self.store, self.op.path())?.is_empty())
    }

    fn guard_text(&self, bytes: &[u8], appends: bool, state: &FileState) -> Result<()> {
        if matches!(self.op, Op::Restore { .. } | Op::Derive { .. }) {
            return Ok(());
        }
        let rules = &self.contract().guards;
        let path = self.op.path();
        let writing = Writing {
            path,
            rule: self.rule,
            op: self.op,
            class: state.class,
            bytes,
            force: self.change.force,
        };
        guard(rules, &writing)?;
        if appends && (state.has_end() || may_continue_credential(bytes)) {
            guard_continued(rules, &writing, &state.last_line(self.store, path)?)?;
        }
        Ok(())
    }

    fn check_form(&self, bytes: &[u8], appends: bool, state: &mut FileState) -> Result<()> {
        let (path, rule) = (self.op.path(), self.rule);
        self.store
            .rules
            .check_form(self.op, rule, bytes, || state.text_if_any(self.store, path))?;
        let continues = appends
            && rule.is_some_and(|rule| is_of_entries(rule, path))
            && self.continues_line(bytes, state)?;
        self.store
            .rules
            .check_closed(self.op, rule, bytes, continues, || {
                Ok(state.text_if_any(self.store, path)?.unwrap_or_default())
            })
    }

    /// Keeps an external edit before it is replaced.
    fn keep_flagged(
        &self,
        bytes: &[u8],
        state: &mut FileState,
        kept: &mut Vec<RecordOp>,
    ) -> Result<()> {
        let path = self.op.path();
        if let Some((_, Some(_))) = state.flagged.take()
            && let Some(found) = self.store.on_disk(path)?
            && found != bytes
        {
            kept.push(state.keep(path, found));
        }
        Ok(())
    }

    /// The record of a whole text; none if the file already has it.
    fn write(&self, act: Act, bytes: Vec<u8>, state: &mut FileState) -> Option<RecordOp> {
        let path = self.op.path();
        let written = Version::of(&bytes);
        // A result of "unchanged" would confirm a guess about a text that the actor may not read.
        if state.exists()
            && !self.repairs()
            && state.version() == Some(&written)
            && reads_whole(self.contract(), self.actor, path)
        {
            return None;
        }
        // A restored text keeps its version.
        let restored = state.version().filter(|_| act == Act::RestoreHead).cloned();
        let delta = state.delta(self.store, path, &bytes);
        Some(state.write(path, restored.unwrap_or(written), bytes, delta))
    }

    /// The text that a restore writes. It must be in the journal: otherwise a restore could bypass
    /// the class and the guards.
    fn restored(&self, state: &FileState, bytes: &[u8], older: bool) -> Result<Vec<u8>> {
        let path = self.op.path();
        let missing = |what: String| StoreError::not_found(what, format!("quipu log {path}"));
        if !older {
            // Another commit may have come since the request: restore the newest version.
            return match state.newest_version() {
                Some(head) => self.store.texts.content_from_journal(path, head),
                None => Err(missing(format!("`{path}` has no version to restore"))),
            };
        }
        let journalled = state.journalled.as_ref().filter(|head| head.seq > 0);
        let was_there = match journalled {
            Some(head) => {
                self.is_repair(state, bytes) || self.store.texts.was_version(path, head, bytes)?
            }
            None => false,
        };
        if was_there {
            Ok(bytes.to_vec())
        } else {
            Err(missing(format!("`{path}` never had these contents")))
        }
    }

    /// Whether these bytes repair the newest journalled version.
    fn is_repair(&self, state: &FileState, bytes: &[u8]) -> bool {
        let repaired = |head| {
            self.store
                .worktree
                .repaired(self.op.path(), head)
                .ok()
                .flatten()
        };
        state
            .newest_version()
            .and_then(repaired)
            .is_some_and(|repaired| repaired == bytes)
    }

    /// Merges a stale write by section and by key: applies the changes that it made to the version
    /// it read to the newest version. None if the file has no such form or the version is unknown.
    fn merged_by_key(
        &self,
        state: &mut FileState,
        read: &Version,
        bytes: &[u8],
    ) -> Result<Option<Vec<u8>>> {
        let path = self.op.path();
        let form = self.rule.and_then(|rule| rule.form);
        if state.class != Class::State || form != Some(Form::World) || !state.exists() {
            return Ok(None);
        }
        let Some(head) = state.journalled.clone().filter(|h| h.seq > 0) else {
            return Ok(None);
        };
        let Some(base) = self.store.texts.version_bytes(path, &head, read)? else {
            return Ok(None);
        };
        let theirs = state.text(self.store, path)?;
        let (Ok(base), Ok(ours), Ok(theirs)) = (
            std::str::from_utf8(&base),
            std::str::from_utf8(bytes),
            std::str::from_utf8(&theirs),
        ) else {
            return Ok(None);
        };
        let until = render_second(self.store.now().wall_us);
        Ok(Some(merge_keyed(base, ours, theirs, &until).into_bytes()))
    }

    /// A JSON file with an object merged into it key by key. Everything else stays as it was.
    fn merged(&self, state: &mut FileState, value: &serde_json::Value) -> Result<Vec<u8>> {
        let path = self.op.path();
        let serde_json::Value::Object(patch) = value else {
            return Err(StoreError::refused(
                format!("`{path}`: only an object can be merged"),
                "{\"op\": \"merge\", \"path\": \"…\", \"value\": {\"key\": \"value\"}}",
            ));
        };
        merge_object(&state.text(self.store, path)?, patch)
            .map_err(|error| not_an_object(path, &error))
    }
}

fn not_an_object(path: &ProjectPath, error: &serde_json::Error) -> StoreError {
    let what = format!(
        "`{path}` is not a JSON object and cannot be merged: line {}: {error}",
        error.line()
    );
    StoreError::refused(what, format!("quipu read {path}"))
}
