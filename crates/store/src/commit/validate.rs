//! Validates a change: every rule, for every operation, under the append lock.
//!
//! Validation sees one state: the file index, the records that are journalled but not yet applied,
//! and the earlier operations of this change. It writes nothing. `permit.rs` checks the rights of the
//! actor, `operation.rs` validates one operation, and `publish.rs` commits the result.

use std::collections::BTreeMap;
use std::ops::Bound;

use quipu_contract::{
    Actor, Class, Contract, FileRule, Listing, MANIFEST, ProjectPath, first_line,
};

use crate::change::{Change, Expect, Op};
use crate::commit::file_state::FileState;
use crate::commit::operation::Operation;
use crate::commit::permit::{Asked, Permitted, each_op, permit};
use crate::commit::publish::{Outcome, Receipt, Snapshot, Validated, Work};
use crate::error::{Result, StoreError};
use crate::journal::lease::Lease;
use crate::journal::record::{Kind, LeaseEvent, OpKind, Record, RecordOp, Who};
use crate::lock::Held;
use crate::rules::guards::{guard_actor, guard_loss, guard_words, refused_by};
use crate::rules::rule_book::Changed;
use crate::rules::rule_book::check_rules;
use crate::store::Store;
use crate::worktree::external_edit::{Adopted, Comparison};

/// The files of a change. Values are boxed, because a node of the map reserves space for eleven of
/// them.
type Files = BTreeMap<ProjectPath, Box<FileState>>;

impl Store {
    /// Validates a change by the contract and the newest state. Nothing is written before the result
    /// is published.
    pub fn validate(&self, change: Change) -> Result<Validated<'_>> {
        if self.commit_log().is_none() {
            return Ok(self.validate_here(&change)?.shown_to(&change.actor));
        }
        let validated = self.validate_newest(&change)?.shown_to(&change.actor);
        Ok(validated.remembering(change))
    }

    /// Validates by the state of this copy alone.
    pub(crate) fn validate_here(&self, change: &Change) -> Result<Validated<'_>> {
        self.index.sound(|| {
            // Open the index before taking the append lock, so that other writers do not wait for
            // it.
            drop(self.index.open()?);
            let held = self.journal.lock()?;
            let snapshot = self.snapshot()?;
            self.validate_held(held, snapshot, change)
        })
    }

    /// Validates for a caller that holds the append lock and has a snapshot.
    pub(crate) fn validate_held(
        &self,
        held: Held,
        snapshot: Snapshot,
        change: &Change,
    ) -> Result<Validated<'_>> {
        check_words(self.contract(), change)?;
        if let Some(receipt) = self.find_repeated(&snapshot, change)? {
            return Ok(Validated::new(self, Work::Done(receipt)));
        }
        let (leases, _) = snapshot.leases(self)?;
        if let Some(token) = &change.lease {
            self.check_token(&leases, &change.actor, token)?;
        }
        let mut validation = Validation::new(self, change, &snapshot);
        let touches_contract = validation.validate_ops(&leases)?;
        if change.with_rules {
            validation.note_rules();
        }
        validation.guard_losses()?;
        if touches_contract {
            validation.check_rules()?;
        }
        validation.list_changed()?;
        let ending = match &change.ends {
            Some(id) => self.ending_of(&leases, id, &change.actor)?,
            None => None,
        };
        let outcome = validation.outcome(ending);
        let work = Work::Publish(held, Box::new(snapshot), outcome);
        Ok(Validated::new(self, work))
    }

    /// The receipt of the commit that was made under the key of this change.
    fn find_repeated(&self, snapshot: &Snapshot, change: &Change) -> Result<Option<Receipt>> {
        let Some(key) = &change.key else {
            return Ok(None);
        };
        let Some(record) = snapshot.find_key(self, key)? else {
            return Ok(None);
        };
        let index = self.contract().index_path();
        let is_requested = |op: &RecordOp| {
            each_op(change).any(|(o, _)| o.path().as_str() == op.path)
                || index.as_ref().is_some_and(|i| i.as_str() == op.path)
        };
        // Compare the original request, if the journal stores it; otherwise compare at least its
        // files.
        let same = match &record.request {
            Some(request) => *request == change.digest(),
            None => record.ops.iter().all(is_requested),
        };
        if record.who != Who::from(&change.actor) || !same {
            let what = format!(
                "key `{key}` was already used for a different change, commit @{}",
                record.seq
            );
            return Err(StoreError::refused(what, "use a new key for each change"));
        }
        Ok(Some(Receipt::of(&record, Vec::new(), true)))
    }
}

/// Checks the actor of a change, and its words that stay in the journal.
fn check_words(contract: &Contract, change: &Change) -> Result<()> {
    contract
        .grant(&change.actor)
        .map_err(|what| StoreError::refused(what, "quipu contract show"))?;
    guard_actor(&contract.guards, &change.actor)?;
    for (words, are, flag) in [
        (&change.why, "reason", "--why"),
        (&change.key, "key", "--key"),
    ] {
        if let Some(words) = words {
            guard_words(&contract.guards, words, are, flag)?;
        }
    }
    Ok(())
}

/// A change while it is validated.
struct Validation<'v> {
    store: &'v Store,
    change: &'v Change,
    snapshot: &'v Snapshot,
    files: Files,
    /// Operations of the change, to be journalled.
    ops: Vec<RecordOp>,
    /// External edits that the change replaces.
    kept: Vec<RecordOp>,
    adoptions: Vec<(RecordOp, Adopted)>,
    outcome: Outcome,
    kind: Kind,
}

impl<'v> Validation<'v> {
    fn new(store: &'v Store, change: &'v Change, snapshot: &'v Snapshot) -> Validation<'v> {
        Validation {
            store,
            change,
            snapshot,
            files: Files::new(),
            ops: Vec::with_capacity(change.ops.len() + change.beside.len()),
            kept: Vec::new(),
            adoptions: Vec::new(),
            outcome: Outcome::default(),
            kind: Kind::Commit,
        }
    }

    /// Validates each operation on the state that the earlier ones leave. True if one of the files
    /// belongs to the contract.
    fn validate_ops(&mut self, leases: &[Lease]) -> Result<bool> {
        let contract = self.store.contract();
        let grant = contract
            .grant(&self.change.actor)
            .map_err(|what| StoreError::refused(what, "quipu contract show"))?;
        let binding = contract.actor_binding(&self.change.actor);
        let mut touches_contract = false;
        for (op, actor) in each_op(self.change) {
            let rule = contract.rule(op.path());
            let asked = Asked {
                op,
                actor,
                at_finish: self.change.at_finish,
            };
            let permitted = permit(contract, &grant, &binding, rule, &asked)?;
            touches_contract |= permitted == Permitted::OfContract;
            self.store
                .check_lease(leases, op.path(), self.change.lease.as_ref())?;
            self.load_file(op.path(), rule)?;
            match op {
                Op::Amend { .. } => self.kind = Kind::Amend,
                Op::Restore { .. } => self.kind = Kind::Restore,
                _ => {}
            }
            let operation = Operation {
                store: self.store,
                change: self.change,
                op,
                actor,
                rule,
            };
            let state = self.files.get_mut(op.path()).expect("it was just loaded");
            self.ops.extend(operation.validate(state, &mut self.kept)?);
        }
        Ok(touches_contract)
    }

    /// Loads the current state of a file, unless an earlier operation has.
    fn load_file(&mut self, path: &ProjectPath, rule: Option<&FileRule>) -> Result<()> {
        if let Some(other) = above_or_below(&self.files, path) {
            return Err(refused_by(
                format!("`{path}` and `{other}` cannot both be files"),
                rule,
                "use two names, neither below the other".into(),
            ));
        }
        if !self.files.contains_key(path) {
            let class = rule.map_or(Class::Free, |r| r.class);
            let state = self.current_file(path, class)?;
            self.files.insert(path.clone(), Box::new(state));
        }
        Ok(())
    }

    /// The newest state of a file. An allowed external edit becomes part of it.
    fn current_file(&mut self, path: &ProjectPath, class: Class) -> Result<FileState> {
        let (head, pending) = self.snapshot.head(self.store, path)?;
        if pending {
            // A pending record will write this file, so its current bytes mean nothing.
            return Ok(FileState::new(class, head));
        }
        let compared = self
            .store
            .worktree
            .compare_file(path, class, head.as_ref())?;
        let state = FileState::new(class, head);
        Ok(match compared {
            Comparison::Same => state,
            Comparison::Touched(file_stat) => {
                if let Some(head) = &state.head {
                    let touched = (path.clone(), head.version.clone(), file_stat);
                    self.outcome.touched.push(touched);
                }
                state
            }
            Comparison::Flagged(flag, file_stat) => FileState {
                flagged: Some((flag, file_stat)),
                ..state
            },
            Comparison::Adopt { op, how } => {
                let content = match op.op {
                    OpKind::Write => Some(op.content().to_vec()),
                    _ => {
                        let found = self.store.on_disk(path)?;
                        let length = usize::try_from(op.len).unwrap_or(usize::MAX);
                        found.map(|bytes| bytes.into_iter().take(length).collect())
                    }
                };
                let state = state.adopted(&op, content);
                let adopted = Adopted::of(&op, how);
                self.adoptions.push((*op, adopted));
                state
            }
        })
    }

    /// Adopts an external edit of `quipu.toml`, so that the journal holds the rules that a change
    /// is validated by. Otherwise nobody could restore them.
    fn note_rules(&mut self) {
        let Ok(manifest) = ProjectPath::parse(MANIFEST) else {
            return;
        };
        if self.store.is_unruled() || self.files.contains_key(&manifest) {
            return;
        }
        // A fault of the file is reported to commands that use it.
        let _ = self.current_file(&manifest, self.store.contract().class(&manifest));
        self.adoptions
            .retain(|(op, _)| op.op != OpKind::Remove || op.path != MANIFEST);
    }

    /// Refuses a change that loses much of a file as a whole.
    fn guard_losses(&self) -> Result<()> {
        let replaced = self
            .files
            .iter()
            .filter(|(_, state)| state.replaced && state.exists() && !self.change.force);
        for (path, state) in replaced {
            let after = state.head.as_ref().map_or(0, |h| h.len);
            guard_loss(self.store.contract(), path, state.len_before, after)?;
        }
        Ok(())
    }

    /// Refuses a change after which the contract would be invalid.
    fn check_rules(&mut self) -> Result<()> {
        if self.ops.is_empty() {
            return Ok(());
        }
        let mut changed = Changed::new();
        for (path, state) in &mut self.files {
            changed.insert(path.clone(), state.text_if_any(self.store, path)?);
        }
        check_rules(self.store.rules.book(), &changed)
    }

    /// Adds the write of the index file, if the project has one and this change alters a row of it.
    fn list_changed(&mut self) -> Result<()> {
        let contract = self.store.contract();
        let Some(path) = contract
            .index_path()
            .filter(|path| !self.files.contains_key(path))
        else {
            return Ok(());
        };
        let changed = self.adoptions.iter().map(|(op, _)| op).chain(&self.ops);
        let rows = changed_rows(contract, changed);
        if rows.is_empty() {
            return Ok(());
        }
        let mut state = self.current_file(&path, Class::Derived)?;
        let Some(text) = state.text_if_any(self.store, &path)? else {
            return Ok(());
        };
        let text = String::from_utf8_lossy(&text).into_owned();
        let mut listing = Listing::parse(&text);
        rows.into_iter()
            .for_each(|(path, first)| listing.set(&path, first));
        let bytes = listing.render().into_bytes();
        if bytes == text.as_bytes() {
            return Ok(());
        }
        let rule = contract.rule(&path);
        let operation = Operation {
            store: self.store,
            change: &Change::by(&Actor::Runtime),
            op: &Op::Derive {
                path,
                bytes,
                expect: Expect::Any,
            },
            actor: &Actor::Runtime,
            rule,
        };
        let listed = operation.validate(&mut state, &mut self.kept)?;
        self.ops.extend(listed);
        Ok(())
    }

    /// The records to write: adopted edits, replaced edits, and the change itself.
    fn outcome(self, ending: Option<LeaseEvent>) -> Outcome {
        let Validation {
            store,
            change,
            snapshot,
            mut outcome,
            ..
        } = self;
        let record = |kind, who| snapshot.next_record(store, kind, who);
        let (adopted_ops, adopted): (Vec<_>, Vec<_>) = self.adoptions.into_iter().unzip();
        if !adopted_ops.is_empty() {
            outcome.records.push(Record {
                ops: adopted_ops,
                ..record(Kind::Adopt, Who::external())
            });
        }
        if !self.kept.is_empty() {
            let why = "an external edit that the contract does not allow, saved before it was \
                       replaced";
            outcome.records.push(Record {
                ops: self.kept,
                why: Some(why.into()),
                ..record(Kind::ConflictCopy, Who::external())
            });
        }
        // Store the key even if nothing changes: a retry must be recognised even if it would change
        // something by then.
        let has_effect = !self.ops.is_empty() || ending.is_some();
        if has_effect || change.note.is_some() || change.key.is_some() {
            let kind = if has_effect { self.kind } else { Kind::Note };
            outcome.records.push(Record {
                why: change.why.clone(),
                key: change.key.clone(),
                request: change.key.as_ref().map(|_| change.digest()),
                note: change.note.clone(),
                ops: self.ops,
                lease: ending,
                ..record(kind, Who::from(&change.actor))
            });
        }
        outcome.adopted = adopted;
        let merged = self.files.iter().filter(|(_, state)| state.merged);
        outcome.merged = merged.map(|(path, _)| path.to_string()).collect();
        outcome
    }
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
) -> Vec<(String, Option<String>)> {
    let listed =
        ops.filter(|op| ProjectPath::parse(&op.path).is_ok_and(|path| contract.is_listed(&path)));
    let row = |op: &RecordOp| match op.op {
        OpKind::Write => {
            let first = first_line(&String::from_utf8_lossy(op.content()));
            Some((op.path.clone(), Some(first)))
        }
        OpKind::Remove => Some((op.path.clone(), None)),
        // An append does not change the first line of a file.
        OpKind::Append | OpKind::Keep => None,
    };
    listed.filter_map(row).collect()
}
