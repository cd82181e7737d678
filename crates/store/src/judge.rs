//! Judges a change: every rule, for every operation, under the append lock.
//!
//! The judge sees one state: the file index, the records that are journalled but not yet applied,
//! and the earlier operations of this change. It writes nothing. `prepare.rs` runs the checks that
//! do not need the lock, and `publish.rs` commits the result.

use std::collections::BTreeMap;
use std::ops::Bound;
use std::sync::atomic::Ordering;

use quipu_contract::{
    Act, Actor, Class, Contract, FileRule, Form, Listing, MANIFEST, ProjectPath, first_line,
    merge_keyed,
};
use smol_str::SmolStr;

use crate::adopt::{Adopted, Noticed};
use crate::body::Body;
use crate::change::{Change, Expect, Op};
use crate::clock::render_second;
use crate::delta::Delta;
use crate::error::{Result, StoreError};
use crate::guarding::{
    Writing, guard, guard_actor, guard_continued, guard_loss, guard_words, refused_by,
};
use crate::heads::Head;
use crate::journal::Position;
use crate::lock::Held;
use crate::merge::merge_object;
use crate::open_block::is_of_entries;
use crate::prepare::{Prepared, did_you_mean, each_op, permit, reads_whole};
use crate::publish::{Judged, Look, Receipt};
use crate::record::{Kind, OpKind, RecordOp, Who};
use crate::rulebook::{Changed, check_rules};
use crate::store::Store;
use crate::tree::Stamp;
use crate::version::Version;

/// The state of a file within this change.
struct Now {
    class: Class,
    head: Option<Head>,
    /// The newest journalled entry, before this change.
    journalled: Option<Head>,
    /// The whole text, if it was read or if this change wrote it.
    content: Option<Vec<u8>>,
    /// The text that this change appends to the journalled text; empty if `content` is set.
    appended: Vec<u8>,
    /// The flag of disallowed bytes on disk.
    flagged: Option<(crate::adopt::Flag, Option<Stamp>)>,
    /// A write based on an older version was merged into this one.
    merged: bool,
    /// The length before this change, including adopted edits.
    len_before: u64,
    /// This change replaced the text, so that some may be lost.
    replaced: bool,
}

/// The files of a change. Values are boxed, because a node of the map reserves space for eleven of
/// them.
type Files = BTreeMap<ProjectPath, Box<Now>>;

impl Now {
    fn of(class: Class, head: Option<Head>) -> Now {
        let len_before = length(head.as_ref());
        let journalled = head.clone();
        Now {
            class,
            journalled,
            head,
            content: None,
            appended: Vec::new(),
            flagged: None,
            merged: false,
            len_before,
            replaced: false,
        }
    }

    fn exists(&self) -> bool {
        self.head.as_ref().is_some_and(|h| !h.gone)
    }

    fn version(&self) -> Option<&Version> {
        self.head.as_ref().filter(|h| !h.gone).map(|h| &h.version)
    }
}

impl Store {
    /// Judges a change by the contract and the newest state. Nothing is written before the result
    /// is published.
    pub fn judge(&self, change: Change) -> Result<Judged<'_>> {
        if self.order.is_none() {
            return Ok(self.judge_here(&change)?.shown_to(&change.actor));
        }
        let judged = self.judge_newest(&change)?.shown_to(&change.actor);
        Ok(judged.remembering(change))
    }

    /// Judges by the state of this copy alone.
    pub(crate) fn judge_here(&self, change: &Change) -> Result<Judged<'_>> {
        let prepared = self.prepare(change);
        self.with_sound_heads(|| {
            // Open the index before taking the append lock, so that other writers do not wait for
            // it.
            drop(self.heads()?);
            let held = self.append_lock.acquire()?;
            let look = self.look()?;
            self.judge_prepared(held, look, change, &prepared)
        })
    }

    /// Judges for a caller that holds the append lock and has a snapshot.
    pub(crate) fn judge_held<'s>(
        &'s self,
        held: Held<'s>,
        look: Look,
        change: &Change,
    ) -> Result<Judged<'s>> {
        self.judge_prepared(held, look, change, &self.prepare(change))
    }

    fn judge_prepared<'s>(
        &'s self,
        held: Held<'s>,
        mut look: Look,
        change: &Change,
        prepared: &[Prepared<'_>],
    ) -> Result<Judged<'s>> {
        let contract = std::sync::Arc::clone(&self.contract);
        let grant = contract
            .grant(&change.actor)
            .map_err(|what| StoreError::refused(what, "quipu contract show"))?;
        guard_actor(&contract.guards, &change.actor)?;
        change.why.as_deref().map_or(Ok(()), |why| {
            guard_words(&contract.guards, why, "reason", "--why")
        })?;
        change.key.as_deref().map_or(Ok(()), |key| {
            guard_words(&contract.guards, key, "key", "--key")
        })?;
        if let Some(key) = &change.key
            && let Some(record) = look.find_key(self, key)?
        {
            let index = contract.index_path();
            let told = |op: &RecordOp| {
                change
                    .ops
                    .iter()
                    .chain(&change.beside)
                    .any(|o| o.path().as_str() == op.path)
                    || index.as_ref().is_some_and(|i| i.as_str() == op.path)
            };
            // Compare the original request, if the journal stores it; otherwise compare at least
            // its files.
            let same = match &record.asked {
                Some(asked) => *asked == change.asked(),
                None => record.ops.iter().all(told),
            };
            if record.who != Who::from(&change.actor) || !same {
                let what = format!(
                    "key `{key}` belongs to commit @{}, which was another change",
                    record.seq
                );
                return Err(StoreError::refused(
                    what,
                    "a key of its own for each change",
                ));
            }
            return Ok(Judged::repeated(
                self,
                Receipt::of(&record, Vec::new(), true),
            ));
        }
        let binding = contract.actor_binding(&change.actor);
        let (leases, _) = look.leases(self)?;
        if let Some(token) = &change.lease {
            self.check_token(&leases, &change.actor, token)?;
        }

        let _near = self.tree.stay_near();
        let mut files: Files = BTreeMap::new();
        let mut adoptions: Vec<(RecordOp, Adopted)> = Vec::new();
        let mut touched: Vec<(ProjectPath, Version, Option<Stamp>)> = Vec::new();
        let mut ops: Vec<RecordOp> = Vec::with_capacity(change.ops.len() + change.beside.len());
        let mut kept: Vec<RecordOp> = Vec::new();
        let mut kind = Kind::Commit;
        let mut rules_change = false;
        debug_assert_eq!(prepared.len(), each_op(change).count());
        for ((op, actor), prepared) in each_op(change).zip(prepared) {
            let path = op.path();
            let rule = prepared.rule;
            rules_change |= match prepared.permitted {
                Some(of_people) => of_people,
                None => permit(&contract, &grant, &binding, rule, (op, actor))?,
            };
            self.check_lease(&leases, &change.actor, path, change.lease.as_ref())?;
            if let Some(other) = above_or_below(&files, path) {
                return Err(refused_by(
                    format!("`{path}` and `{other}` cannot both be files"),
                    rule,
                    "two names, none below the other".into(),
                ));
            }
            if !files.contains_key(path) {
                let class = rule.map_or(Class::Free, |r| r.class);
                let now = self.look_at(&mut look, path, class, &mut adoptions, &mut touched)?;
                files.insert(path.clone(), Box::new(now));
            }
            let now = files.get_mut(path).expect("inserted above");
            match op {
                Op::Amend { .. } => kind = Kind::Amend,
                Op::Restore { .. } => kind = Kind::Restore,
                _ => {}
            }
            if let Some(record) =
                self.judge_op(&contract, change, (op, actor), prepared, now, &mut kept)?
            {
                ops.push(record);
            }
        }
        if change.with_rules {
            self.note_rules(&mut look, &files, &mut adoptions, &mut touched);
        }
        for (path, now) in files
            .iter()
            .filter(|(_, now)| now.replaced && now.exists() && !change.force)
        {
            guard_loss(
                &contract,
                path,
                now.len_before,
                now.head.as_ref().map_or(0, |h| h.len),
            )?;
        }
        if rules_change && !ops.is_empty() {
            let mut changed = Changed::new();
            for (path, now) in &mut files {
                let content = if now.exists() {
                    Some(self.now_content(path, now)?)
                } else {
                    None
                };
                changed.insert(path.clone(), content);
            }
            check_rules(self.rules.as_deref(), &changed)?;
        }
        if let Some(path) = contract
            .index_path()
            .filter(|path| !files.contains_key(path))
        {
            let noted = adoptions.iter().map(|(op, _)| op).chain(&ops);
            if let Some(rows) = changed_rows(&contract, noted) {
                let now = self.look_at(
                    &mut look,
                    &path,
                    Class::Derived,
                    &mut adoptions,
                    &mut touched,
                )?;
                ops.extend(self.listed(&contract, &path, now, rows, &mut kept)?);
            }
        }
        let mut records = Vec::with_capacity(1);
        let mut adopted = Vec::new();
        if !adoptions.is_empty() {
            let mut record = look.next_record(self, Kind::Adopt, Who::outside());
            for (op, told) in adoptions {
                record.ops.push(op);
                adopted.push(told);
            }
            records.push(record);
        }
        if !kept.is_empty() {
            let mut record = look.next_record(self, Kind::Aside, Who::outside());
            record.why = Some(
                "an external edit that the contract does not allow, kept before it was replaced"
                    .into(),
            );
            record.ops = kept;
            records.push(record);
        }
        let ending = match &change.ends {
            Some(id) => self.ending_of(&leases, id, &change.actor)?,
            None => None,
        };
        // Store the key even if nothing changes: a retry must be recognised even if it would change
        // something by then.
        if !ops.is_empty() || ending.is_some() || change.note.is_some() || change.key.is_some() {
            let kind = if ops.is_empty() && ending.is_none() {
                Kind::Note
            } else {
                kind
            };
            let mut record = look.next_record(self, kind, Who::from(&change.actor));
            record.lease = ending;
            record.note = change.note.clone();
            record.why = change.why.clone();
            record.key = change.key.clone();
            record.asked = change.key.as_ref().map(|_| change.asked());
            record.ops = ops;
            records.push(record);
        }
        let merged = files
            .iter()
            .filter(|(_, now)| now.merged)
            .map(|(path, _)| path.as_str().to_owned())
            .collect();
        Ok(Judged::new(
            self, held, look, records, adopted, merged, touched,
        ))
    }

    /// Adopts an external edit of `quipu.toml`, so that the journal holds the rules that a change
    /// is judged by. Otherwise nobody could restore them. Each process reads the rules once, and
    /// checks them here until they are as journalled.
    fn note_rules(
        &self,
        look: &mut Look,
        files: &Files,
        adoptions: &mut Vec<(RecordOp, Adopted)>,
        touched: &mut Vec<(ProjectPath, Version, Option<Stamp>)>,
    ) {
        let Ok(manifest) = ProjectPath::parse(MANIFEST) else {
            return;
        };
        if self.unruled || files.contains_key(&manifest) || self.rules_noted.load(Ordering::Relaxed)
        {
            return;
        }
        let before = adoptions.len();
        // A fault of the file is reported to commands that use it.
        let _ = self.look_at(
            look,
            &manifest,
            self.contract.class(&manifest),
            adoptions,
            touched,
        );
        adoptions.retain(|(op, _)| op.op != OpKind::Remove || op.path != MANIFEST);
        self.rules_noted
            .store(adoptions.len() == before, Ordering::Relaxed);
    }

    /// The newest state of a file. An allowed external edit becomes part of it.
    fn look_at(
        &self,
        look: &mut Look,
        path: &ProjectPath,
        class: Class,
        adoptions: &mut Vec<(RecordOp, Adopted)>,
        touched: &mut Vec<(ProjectPath, Version, Option<Stamp>)>,
    ) -> Result<Now> {
        let (head, pending) = look.head(self, path)?;
        if pending {
            // A pending record will write this file, so its current bytes mean nothing.
            return Ok(Now::of(class, head));
        }
        Ok(match self.notice(path, class, head.as_ref())? {
            Noticed::Same => Now::of(class, head),
            Noticed::Touched(stamp) => {
                if let Some(head) = &head {
                    touched.push((path.clone(), head.version.clone(), stamp));
                }
                Now::of(class, head)
            }
            Noticed::Flagged(flag, stamp) => Now {
                flagged: Some((flag, stamp)),
                ..Now::of(class, head)
            },
            Noticed::Adopt { op, how } => {
                adoptions.push((
                    *op.clone(),
                    Adopted {
                        path: path.as_str().into(),
                        version: op.version.clone(),
                        how,
                    },
                ));
                let adopted = Head {
                    class,
                    version: op.version.clone(),
                    len: op.len,
                    at: Position::START,
                    seq: 0,
                    gone: op.op == OpKind::Remove,
                    stamp: None,
                    flag: None,
                };
                let content = match op.op {
                    OpKind::Write => Some(op.content().to_vec()),
                    _ => {
                        let found = self
                            .tree
                            .read(path)
                            .map_err(StoreError::io_at(|| format!("cannot read `{path}`")))?;
                        let length = usize::try_from(op.len).unwrap_or(usize::MAX);
                        found.map(|(bytes, _)| bytes.into_iter().take(length).collect())
                    }
                };
                Now {
                    content,
                    len_before: length(Some(&adopted)),
                    head: Some(adopted),
                    ..Now::of(class, head)
                }
            }
        })
    }

    fn judge_op(
        &self,
        contract: &Contract,
        change: &Change,
        (op, actor): (&Op, &Actor),
        prepared: &Prepared<'_>,
        now: &mut Now,
        kept: &mut Vec<RecordOp>,
    ) -> Result<Option<RecordOp>> {
        let (path, rule) = (op.path(), prepared.rule);
        let repairs = matches!(
            op,
            Op::Restore { .. } | Op::Amend { .. } | Op::Derive { .. }
        );
        if let (Some((flag, _)), false) = (&now.flagged, repairs) {
            let line = flag
                .line
                .map(|l| format!(" (line {l})"))
                .unwrap_or_default();
            let remedy = match &now.head {
                Some(_) => flag.remedy(path.as_str(), now.class, true),
                None => "move it away or fix it in an editor: memory is plain files".into(),
            };
            let reads = contract
                .grant(actor)
                .is_ok_and(|grant| grant.may_read(path, &contract.actor_binding(actor)).is_ok());
            let what = if reads {
                format!("{}{line}", flag.what)
            } else {
                "was changed outside Quipu, and not as the contract allows".into()
            };
            return Err(refused_by(format!("`{path}` {what}"), rule, remedy));
        }
        let act = match op {
            Op::Append { .. } => Act::Append,
            Op::Write { expect, .. } => Act::Replace {
                expected: *expect != Expect::Any,
            },
            Op::Create { .. } => Act::Create,
            Op::Merge { .. } => Act::Merge,
            Op::Remove { .. } => Act::Remove,
            Op::Amend { bytes: None, .. }
                if now.flagged.as_ref().is_some_and(|(flag, _)| flag.is_loss()) =>
            {
                Act::Accept
            }
            Op::Amend { .. } => Act::Amend,
            Op::Derive { .. } => Act::Derive,
            Op::Restore {
                older: true, bytes, ..
            } if self.is_repair(path, now, bytes) => Act::Repair,
            Op::Restore { older: true, .. } => Act::RestoreOlder,
            // The edit that was just adopted is the newest version, so the requested one is older.
            Op::Restore { .. } if now.head != now.journalled => Act::RestoreOlder,
            Op::Restore { older: false, .. } => Act::RestoreHead,
        };
        now.class
            .allows(act, actor, now.exists())
            .map_err(|refusal| {
                refused_by(
                    format!("`{path}` {}", refusal.what),
                    rule,
                    refusal.remedy.replace("{path}", path.as_str()),
                )
            })?;
        if !now.exists() && !repairs && !matches!(op, Op::Remove { .. }) {
            check_name(contract, change, (op, actor))?;
        }
        if let Op::Write {
            expect: Expect::Version(expected),
            ..
        }
        | Op::Derive {
            expect: Expect::Version(expected),
            ..
        }
        | Op::Remove {
            expect: Expect::Version(expected),
            ..
        } = op
            && now.version() != expected.if_any()
        {
            if let Op::Write { bytes, .. } = op
                && let Some(merged) = self.merged_by_key(path, rule, now, expected, bytes)?
            {
                let op = Op::Write {
                    path: path.clone(),
                    bytes: merged,
                    expect: now.version().cloned().map_or(Expect::Any, Expect::Version),
                };
                now.merged = true;
                return self.judge_op(
                    contract,
                    change,
                    (&op, actor),
                    &Prepared {
                        rule,
                        ..Prepared::default()
                    },
                    now,
                    kept,
                );
            }
            let found = match now.version() {
                Some(version) if reads_whole(contract, actor, path) => version.clone(),
                Some(_) => Version::withheld(),
                None => Version::none(),
            };
            return Err(StoreError::Stale {
                path: path.as_str().into(),
                expected: expected.clone(),
                now: found,
                kept: None,
            });
        }
        if matches!(op, Op::Amend { .. }) && change.why.as_ref().is_none_or(|w| w.trim().is_empty())
        {
            return Err(StoreError::refused(
                "an amendment needs a reason",
                format!("quipu amend {path} --why \"…\""),
            ));
        }

        let (bytes, appends) = match op {
            Op::Append { bytes, apart, .. } => {
                let closes = *apart
                    && now.exists()
                    && !bytes.is_empty()
                    && bytes[0] != b'\n'
                    && !self.last_line_of(path, now)?.is_empty();
                (
                    if closes {
                        [b"\n", &bytes[..]].concat()
                    } else {
                        bytes.clone()
                    },
                    true,
                )
            }
            Op::Write { bytes, .. } | Op::Create { bytes, .. } | Op::Derive { bytes, .. } => {
                (bytes.clone(), false)
            }
            Op::Restore { bytes, older, .. } => (self.restored(path, now, bytes, *older)?, false),
            Op::Merge { value, .. } => (self.merged(path, now, value)?, false),
            Op::Amend {
                bytes: Some(bytes), ..
            } => (bytes.clone(), false),
            Op::Amend { bytes: None, .. } => match self
                .tree
                .read(path)
                .map_err(StoreError::io_at(|| format!("cannot read `{path}`")))?
            {
                Some((bytes, _)) => (bytes, false),
                None => {
                    return Err(StoreError::NotFound {
                        what: format!("`{path}` is not there"),
                        remedy: format!("quipu restore {path}"),
                    });
                }
            },
            Op::Remove { .. } => {
                if !now.exists() {
                    return Err(StoreError::NotFound {
                        what: format!("`{path}` is not there"),
                        remedy: "quipu status".into(),
                    });
                }
                return Ok(Some(now.advance(path, OpKind::Remove, Vec::new())));
            }
        };
        if !matches!(op, Op::Restore { .. } | Op::Derive { .. }) {
            let writing = Writing {
                path,
                rule,
                op,
                class: now.class,
                bytes: &bytes,
                force: change.force,
            };
            if !prepared.guarded {
                guard(&contract.guards, &writing)?;
            }
            if appends {
                guard_continued(
                    &contract.guards,
                    &writing,
                    &self.line_before(path, now, prepared)?,
                )?;
            }
        }
        if act != Act::RestoreHead {
            self.check_form(op, rule, &bytes, || {
                Ok(if now.exists() {
                    Some(self.now_content(path, now)?)
                } else {
                    None
                })
            })?;
            let continues = appends
                && rule.is_some_and(|rule| is_of_entries(rule, path))
                && now.exists()
                && bytes.first().is_some_and(|first| *first != b'\n')
                && !self.last_line_of(path, now)?.is_empty();
            self.check_closed(op, rule, &bytes, continues, || {
                Ok(if now.exists() {
                    self.now_content(path, now)?
                } else {
                    Vec::new()
                })
            })?;
        }
        // A writer who accepts the text on disk has seen the loss.
        now.replaced |= matches!(
            op,
            Op::Write { .. } | Op::Create { .. } | Op::Amend { .. } | Op::Merge { .. }
        ) && act != Act::Accept;
        if act == Act::RestoreHead && now.flagged.is_none() {
            return Ok(None); // the file is already as journalled
        }
        // Keep the external edit before it is replaced.
        if let Some((_, Some(_))) = now.flagged.take()
            && let Some((found, _)) = self
                .tree
                .read(path)
                .map_err(StoreError::io_at(|| format!("cannot read `{path}`")))?
            && found != bytes
        {
            kept.push(now.aside(path, found));
        }
        if appends && now.exists() {
            if bytes.is_empty() {
                return Ok(None);
            }
            return Ok(Some(now.advance(path, OpKind::Append, bytes)));
        }
        let written = prepared
            .version
            .clone()
            .unwrap_or_else(|| Version::of(&bytes));
        // A result of "unchanged" would confirm a guess about a text that the actor may not read.
        if now.exists()
            && !repairs
            && now.version() == Some(&written)
            && reads_whole(contract, actor, path)
        {
            return Ok(None);
        }
        let version = if act == Act::RestoreHead {
            now.version().cloned()
        } else {
            None
        };
        let delta = self.delta_of(path, now, &bytes);
        let mut record = now.advance_to(written, path, OpKind::Write, bytes, delta);
        // A restored text keeps its version.
        if let (Some(version), Some(head)) = (version, &mut now.head) {
            record.version.clone_from(&version);
            head.version = version;
        }
        Ok(Some(record))
    }

    /// The write of the index file with the rows of this change, if the project has an index file
    /// and a row differs.
    fn listed(
        &self,
        contract: &Contract,
        path: &ProjectPath,
        mut now: Now,
        rows: Vec<(String, Option<String>)>,
        kept: &mut Vec<RecordOp>,
    ) -> Result<Option<RecordOp>> {
        if !now.exists() {
            return Ok(None);
        }
        let text = String::from_utf8_lossy(&self.now_content(path, &mut now)?).into_owned();
        let mut listing = Listing::parse(&text);
        rows.into_iter()
            .for_each(|(path, first)| listing.set(&path, first));
        let bytes = listing.render().into_bytes();
        if bytes == text.as_bytes() {
            return Ok(None);
        }
        let op = Op::Derive {
            path: path.clone(),
            bytes,
            expect: Expect::Any,
        };
        let prepared = Prepared {
            rule: contract.rule(path),
            ..Prepared::default()
        };
        self.judge_op(
            contract,
            &Change::by(&Actor::Runtime),
            (&op, &Actor::Runtime),
            &prepared,
            &mut now,
            kept,
        )
    }

    /// The difference to the newest journalled text, if this change has not touched the file
    /// before.
    fn delta_of(&self, path: &ProjectPath, now: &mut Now, bytes: &[u8]) -> Option<Delta> {
        let head = now
            .head
            .clone()
            .filter(|head| now.journalled.as_ref() == Some(head))?;
        let known = self.content(path, &head).ok();
        self.delta(path, Some(&head), known, bytes)
    }

    fn now_content(&self, path: &ProjectPath, now: &mut Now) -> Result<Vec<u8>> {
        if now.content.is_none() {
            let mut content = match now.journalled.as_ref().filter(|h| !h.gone && now.exists()) {
                Some(head) => self.content(path, head)?,
                None => Vec::new(),
            };
            content.append(&mut now.appended);
            now.content = Some(content);
        }
        Ok(now.content.clone().unwrap_or_default())
    }

    /// The last line of a file, if an appended text may continue it.
    fn line_before(&self, path: &ProjectPath, now: &Now, text: &Prepared<'_>) -> Result<Vec<u8>> {
        // The text that this change wrote is in memory; for other text the disk has to be read.
        let is_at_hand = now.content.is_some() || !now.appended.is_empty();
        if is_at_hand || !text.whole {
            self.last_line_of(path, now)
        } else {
            Ok(Vec::new())
        }
    }

    /// The unterminated last line of a file: the text after its last newline, up to a limit.
    fn last_line_of(&self, path: &ProjectPath, now: &Now) -> Result<Vec<u8>> {
        let written = now.content.as_deref().unwrap_or(&now.appended);
        let line = last_line(written);
        let is_whole = now.content.is_some() || line.len() < written.len();
        let Some(head) = now.journalled.as_ref().filter(|h| !is_whole && !h.gone) else {
            return Ok(line.to_vec());
        };
        let found = self
            .tree
            .read_before(path, head.len, LAST_LINE)
            .map_err(StoreError::io_at(|| format!("cannot read `{path}`")))?;
        // A shorter file has not been written yet.
        let before = found.unwrap_or_else(|| self.line_in_journal(path, head));
        Ok([last_line(&before), line].concat())
    }

    /// The last line of a file from its newest records, as far as they are readable.
    fn line_in_journal(&self, path: &ProjectPath, head: &Head) -> Vec<u8> {
        let mut line = Vec::new();
        let mut next = Some(head.at);
        while let Some(at) = next.take() {
            let Ok(record) = self.journal.read_record(at) else {
                break;
            };
            for op in record.about(path.as_str()) {
                if !op.edit().is_start() && op.op == OpKind::Write {
                    let before = Head::after(op, at, record.seq);
                    let text = self.plain_content(path, &before).unwrap_or_default();
                    return [last_line(&text), &line].concat();
                }
                let bytes = op.content();
                let end = last_line(bytes);
                line = [end, &line].concat();
                if op.op != OpKind::Append
                    || end.len() < bytes.len()
                    || line.len() as u64 > LAST_LINE
                {
                    return line;
                }
                next = op
                    .last
                    .as_deref()
                    .and_then(Position::parse)
                    .filter(|last| *last < at);
            }
        }
        line
    }

    /// The text that a restore writes. It must be in the journal: otherwise a restore could bypass
    /// the class and the guards.
    fn restored(
        &self,
        path: &ProjectPath,
        now: &mut Now,
        bytes: &[u8],
        older: bool,
    ) -> Result<Vec<u8>> {
        if !older {
            // Another commit may have come since the request: restore the newest version.
            return match now.journalled.as_ref().filter(|h| !h.gone && h.seq > 0) {
                Some(head) => self.content_from_journal(path, head),
                None => Err(StoreError::NotFound {
                    what: format!("`{path}` has no version to bring back"),
                    remedy: format!("quipu log {path}"),
                }),
            };
        }
        match &now.journalled {
            Some(head)
                if head.seq > 0
                    && (self.is_repair(path, now, bytes)
                        || self.was_version(path, head, bytes)?) =>
            {
                Ok(bytes.to_vec())
            }
            _ => Err(StoreError::NotFound {
                what: format!("`{path}` never held these bytes"),
                remedy: format!("quipu log {path}"),
            }),
        }
    }

    /// Whether these bytes repair the newest journalled version.
    fn is_repair(&self, path: &ProjectPath, now: &Now, bytes: &[u8]) -> bool {
        let head = now
            .journalled
            .as_ref()
            .filter(|head| !head.gone && head.seq > 0);
        head.and_then(|head| self.repaired(path, head).ok().flatten())
            .is_some_and(|repaired| repaired == bytes)
    }

    /// Merges a stale write by section and by key: applies the changes that it made to the version
    /// it read to the newest version. None if the file has no such form or the version is unknown.
    fn merged_by_key(
        &self,
        path: &ProjectPath,
        rule: Option<&FileRule>,
        now: &mut Now,
        read: &Version,
        bytes: &[u8],
    ) -> Result<Option<Vec<u8>>> {
        let keyed = now.class == Class::State && rule.is_some_and(|r| r.form == Some(Form::World));
        let Some(head) = now
            .journalled
            .clone()
            .filter(|h| keyed && now.exists() && h.seq > 0)
        else {
            return Ok(None);
        };
        let Some(base) = self.version_bytes(path, &head, read)? else {
            return Ok(None);
        };
        let theirs = self.now_content(path, now)?;
        let (Ok(base), Ok(ours), Ok(theirs)) = (
            std::str::from_utf8(&base),
            std::str::from_utf8(bytes),
            std::str::from_utf8(&theirs),
        ) else {
            return Ok(None);
        };
        let until = render_second(self.clock.now().wall_us);
        Ok(Some(merge_keyed(base, ours, theirs, &until).into_bytes()))
    }

    /// A JSON file with an object merged into it key by key. Everything else stays as it was.
    fn merged(
        &self,
        path: &ProjectPath,
        now: &mut Now,
        value: &serde_json::Value,
    ) -> Result<Vec<u8>> {
        let serde_json::Value::Object(patch) = value else {
            let what = format!("`{path}`: only an object can be merged, key by key");
            return Err(StoreError::refused(
                what,
                "{\"op\": \"merge\", \"path\": \"…\", \"value\": {\"key\": \"value\"}}",
            ));
        };
        let text = self.now_content(path, now)?;
        merge_object(&text, patch).map_err(|e| {
            StoreError::refused(
                format!(
                    "`{path}` is no JSON object, so nothing can be merged: line {}: {e}",
                    e.line()
                ),
                format!("quipu read {path}"),
            )
        })
    }
}

/// How much of a file's last line is read: no credential is longer.
const LAST_LINE: u64 = 4096;

/// The text after the last newline.
fn last_line(text: &[u8]) -> &[u8] {
    &text[memchr::memrchr(b'\n', text).map_or(0, |newline| newline + 1)..]
}

/// Refuses a new file with a name that is probably a misspelling of one in the contract, unless a
/// person confirms it.
fn check_name(contract: &Contract, change: &Change, (op, actor): (&Op, &Actor)) -> Result<()> {
    let path = op.path();
    let is_meant = change.new_name && *actor == Actor::Person;
    let meant = contract
        .near_name(path)
        .or_else(|| contract.same_name_below(path))
        .filter(|_| !is_meant && *actor != Actor::Runtime);
    meant.map_or(Ok(()), |meant| Err(did_you_mean(path, meant)))
}

fn length(head: Option<&Head>) -> u64 {
    head.filter(|h| !h.gone).map_or(0, |h| h.len)
}

/// A file of the change that is below a path or above it.
fn above_or_below<'f>(files: &'f Files, path: &ProjectPath) -> Option<&'f ProjectPath> {
    let parents = path
        .as_str()
        .match_indices('/')
        .map(|(at, _)| &path.as_str()[..at]);
    let above = parents
        .filter_map(|parent| files.get_key_value(parent))
        .map(|(other, _)| other)
        .next();
    let folder = [path.as_str(), "/"].concat();
    let next = || {
        files
            .range::<str, _>((Bound::Included(folder.as_str()), Bound::Unbounded))
            .next()
    };
    above.or_else(|| {
        next()
            .map(|(other, _)| other)
            .filter(|other| other.as_str().starts_with(&folder))
    })
}

/// The rows of the index file that these operations change.
fn changed_rows<'o>(
    contract: &Contract,
    ops: impl Iterator<Item = &'o RecordOp>,
) -> Option<Vec<(String, Option<String>)>> {
    let mut rows = Vec::new();
    for op in ops {
        if !ProjectPath::parse(&op.path).is_ok_and(|path| contract.is_listed(&path)) {
            continue;
        }
        match op.op {
            OpKind::Write => rows.push((
                op.path.clone(),
                Some(first_line(&String::from_utf8_lossy(op.content()))),
            )),
            OpKind::Remove => rows.push((op.path.clone(), None)),
            // An append does not change the first line of a file.
            _ => {}
        }
    }
    (!rows.is_empty()).then_some(rows)
}

impl Now {
    /// The record of an operation; also updates this state to the one after it.
    fn advance(&mut self, path: &ProjectPath, op: OpKind, bytes: Vec<u8>) -> RecordOp {
        let version = match self.version() {
            Some(base) if op == OpKind::Append => base.extended(&bytes),
            _ => Version::of(&bytes),
        };
        self.advance_to(version, path, op, bytes, None)
    }

    fn advance_to(
        &mut self,
        version: Version,
        path: &ProjectPath,
        op: OpKind,
        bytes: Vec<u8>,
        delta: Option<Delta>,
    ) -> RecordOp {
        let base = self.head.as_ref().filter(|h| !h.gone);
        let kept = base
            .filter(|_| op == OpKind::Append)
            .map_or(0, |base| base.len);
        let len = kept + bytes.len() as u64;
        let record = RecordOp {
            op,
            path: path.as_str().to_owned(),
            class: SmolStr::new_static(self.class.as_str()),
            base: base.map(|b| b.version.clone()),
            version: version.clone(),
            len,
            last: self
                .head
                .as_ref()
                .filter(|h| h.seq > 0)
                .map(|h| h.at.text()),
            deltas: 0,
            hash: None,
            body: Body::None,
        };
        match (&mut self.content, op) {
            (Some(content), OpKind::Append) => content.extend_from_slice(&bytes),
            (None, OpKind::Append) => self.appended.extend_from_slice(&bytes),
            (slot, OpKind::Write) => *slot = Some(bytes.clone()),
            (slot, _) => *slot = Some(Vec::new()),
        }
        self.head = Some(Head {
            class: self.class,
            version,
            len,
            at: Position::START,
            seq: 0,
            gone: op == OpKind::Remove,
            stamp: None,
            flag: None,
        });
        if op == OpKind::Remove {
            record
        } else {
            record.with_text(bytes, delta)
        }
    }

    fn aside(&self, path: &ProjectPath, bytes: Vec<u8>) -> RecordOp {
        RecordOp {
            op: OpKind::Keep,
            path: path.as_str().to_owned(),
            class: SmolStr::new_static(self.class.as_str()),
            base: self.version().cloned(),
            version: Version::of(&bytes),
            len: bytes.len() as u64,
            last: None,
            deltas: 0,
            hash: None,
            body: Body::None,
        }
        .with_bytes(bytes)
    }
}
