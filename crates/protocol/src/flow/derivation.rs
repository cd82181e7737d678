//! Deriving the state of every turn: complete, sent back, changed under it, waiting for others.

mod order;

use std::cell::RefCell;
use std::collections::{BTreeMap, BTreeSet};
use std::rc::Rc;
use std::sync::Arc;

use quipu_contract::{Builtin, Class, Contract, Pattern, ProjectPath, UnitId};
use quipu_store::Version;

use super::note::{ReadNote, Ruling, RunFact};
use super::state::{Now, SentBack, Standing, State, render_turn};
use super::turn::{Planned, Turn, fill_path};

/// What the journal knows of one turn.
#[derive(Debug, Clone, Default)]
struct Known {
    /// The newest run whose outputs were accepted.
    accepted: Option<usize>,
    /// Failures since then.
    failures: u32,
    failed_why: Option<String>,
    approved: Option<usize>,
    rejected: Option<usize>,
}

/// A version of a file: made from which, which, and by which run.
type Made<'a> = (Option<&'a Version>, &'a Version, usize);

pub struct Derivation<'a, 'c> {
    contract: &'c Contract,
    turns: &'a [Planned<'c>],
    now: &'a dyn Now,
    facts: &'a [RunFact],
    known: Vec<Known>,
    /// Where each turn is.
    index: BTreeMap<&'a Turn, usize>,
    /// For each step the turns that may send work back to it, by the unit that they are for.
    senders: BTreeMap<(&'a str, Option<&'a UnitId>), Vec<usize>>,
    /// Who made which version of a path, from which, oldest first.
    makers: BTreeMap<&'a str, Vec<Made<'a>>>,
    memo: RefCell<Vec<Option<Standing>>>,
    open: RefCell<Vec<Option<Arc<BTreeSet<usize>>>>>,
    /// Which jobs only led to a file that is sealed by now.
    behind_seal: Vec<bool>,
    classes: RefCell<BTreeMap<String, Class>>,
    named: RefCell<BTreeMap<String, Rc<Vec<ProjectPath>>>>,
}

/// What changed under a finished turn.
#[derive(Debug, Default)]
struct Changed {
    /// By a later run of the flow: it must be done again for the flow to go on.
    by_flow: Vec<String>,
    /// By hand: it is done again when someone asks for it.
    by_hand: Vec<String>,
}

impl<'a, 'c> Derivation<'a, 'c> {
    pub fn new(
        contract: &'c Contract,
        turns: &'a [Planned<'c>],
        now: &'a dyn Now,
        facts: &'a [RunFact],
    ) -> Self {
        let index: BTreeMap<&Turn, usize> = turns
            .iter()
            .enumerate()
            .map(|(i, t)| (&t.turn, i))
            .collect();
        let mut senders: BTreeMap<(&str, Option<&UnitId>), Vec<usize>> = BTreeMap::new();
        for (number, turn) in turns.iter().enumerate() {
            let unit = turn.turn.unit.as_ref();
            turn.step
                .back
                .iter()
                .for_each(|step| senders.entry((step, unit)).or_default().push(number));
        }
        let mut known = vec![Known::default(); turns.len()];
        let mut makers: BTreeMap<&str, Vec<_>> = BTreeMap::new();
        for (number, fact) in facts.iter().enumerate() {
            for file in &fact.files {
                makers.entry(file.path.as_str()).or_default().push((
                    file.base.as_ref(),
                    &file.version,
                    number,
                ));
            }
            let Some(&at) = index.get(&fact.note.turn()) else {
                continue;
            };
            let known = &mut known[at];
            match fact.note.ruling {
                Ruling::Accepted => {
                    *known = Known {
                        accepted: Some(number),
                        approved: known.approved,
                        rejected: known.rejected,
                        ..Known::default()
                    }
                }
                Ruling::Failed => {
                    known.failures += 1;
                    known.failed_why.clone_from(&fact.note.why);
                }
                Ruling::Approved => {
                    known.approved = Some(number);
                    known.failures = 0;
                }
                Ruling::Rejected => known.rejected = Some(number),
            }
        }
        let (memo, open) = (
            RefCell::new(vec![None; turns.len()]),
            RefCell::new(vec![None; turns.len()]),
        );
        let (classes, named) = (RefCell::default(), RefCell::default());
        let behind_seal = Vec::new();
        let mut derivation = Derivation {
            contract,
            turns,
            now,
            facts,
            known,
            index,
            senders,
            makers,
            memo,
            open,
            behind_seal,
            classes,
            named,
        };
        derivation.behind_seal = derivation.find_behind_seals();
        derivation
    }

    /// Derives a turn, if that was not done yet.
    pub fn derive(&self, index: usize) {
        self.state(index);
        self.open_before(index);
    }

    /// How a turn stands, in one word.
    fn state(&self, index: usize) -> State {
        let known = self.memo.borrow()[index]
            .as_ref()
            .map(|standing| standing.state);
        known.unwrap_or_else(|| self.standing(index).state)
    }

    fn class(&self, path: &ProjectPath) -> Class {
        if let Some(class) = self.classes.borrow().get(path.as_str()) {
            return *class;
        }
        let class = self.contract.class(path);
        self.classes.borrow_mut().insert(path.to_string(), class);
        class
    }

    pub fn standing(&self, index: usize) -> Standing {
        if let Some(known) = &self.memo.borrow()[index] {
            return known.clone();
        }
        let standing = self.decide(index);
        self.memo.borrow_mut()[index] = Some(standing.clone());
        standing
    }

    fn seq(&self, fact: Option<usize>) -> u64 {
        fact.map_or(0, |number| self.facts[number].seq)
    }

    fn decide(&self, index: usize) -> Standing {
        let turn = &self.turns[index];
        let known = &self.known[index];
        let mut standing = Standing {
            turn: turn.turn.clone(),
            state: State::Pending,
            why: Vec::new(),
            through: Vec::new(),
            sent_back: None,
            objects: false,
            failures: known.failures,
            known: known.accepted.is_some() || known.approved.is_some(),
            warnings: known
                .accepted
                .map(|n| self.facts[n].note.warnings.clone())
                .unwrap_or_default(),
            seq: known.accepted.or(known.approved).map(|n| self.facts[n].seq),
        };
        if let Some(why) = super::when::why_not(self.contract, turn, self.now) {
            return Standing {
                state: State::Skipped,
                why: vec![why],
                ..standing
            };
        }
        if !turn.is_builtin(Builtin::Derive) && turn.required().any(|o| self.now.is_leased(&o.path))
        {
            return Standing {
                state: State::Running,
                ..standing
            };
        }
        if turn.is_builtin(Builtin::Gate) {
            return self.decide_gate(index, standing);
        }
        let incomplete = self.incomplete(turn);
        // Laying out missing files costs nothing, and other jobs may read them.
        if !incomplete.is_empty() && self.behind_seal[index] && !turn.is_builtin(Builtin::Derive) {
            let why = "what it led to is sealed already".to_owned();
            return Standing {
                state: State::Skipped,
                why: vec![why],
                ..standing
            };
        }
        if !incomplete.is_empty() {
            standing.why = incomplete;
            return self.begin(index, standing);
        }
        if known.accepted.is_none()
            && turn
                .step
                .remember
                .as_ref()
                .is_some_and(|remember| remember.entries)
        {
            // It has no file of its own: that memory is there says nothing of whether it grew.
            return self.begin(index, standing);
        }
        if turn.is_builtin(Builtin::Derive) {
            // It leaves no trace of its own: it is done when it could be done and its files are
            // there.
            let begun = self.begin(index, standing);
            let done = begun.state == State::Ready
                || begun.state == State::Pending && self.is_only_stale_before(index);
            return if done {
                Standing {
                    state: State::Done,
                    why: Vec::new(),
                    through: Vec::new(),
                    ..begun
                }
            } else {
                begun
            };
        }
        let changed = known
            .accepted
            .map(|fact| self.changed(index, fact))
            .unwrap_or_default();
        if let Some(mut sent_back) = self.sent_back_to(index) {
            if !changed.by_flow.is_empty() || !changed.by_hand.is_empty() {
                // It will answer more than the objections: everyone looks again.
                let sender = self.contract.step(&sent_back.by);
                sent_back.objectors = sender
                    .filter(|s| s.role.is_none())
                    .map_or(sent_back.objectors, |s| s.after.clone());
            }
            standing.why = vec![format!(
                "sent back by {} (round {})",
                sent_back.by, sent_back.round
            )];
            standing.sent_back = Some(sent_back);
            return self.begin(index, standing);
        }
        if self.objects(index) && self.seq(known.approved) <= self.seq(known.accepted) {
            return self.decide_objection(index, standing, &changed);
        }
        if !changed.by_flow.is_empty() {
            standing.why = changed.by_flow;
            return self.begin(index, standing);
        }
        if !changed.by_hand.is_empty() {
            return Standing {
                state: State::Stale,
                why: changed.by_hand,
                ..standing
            };
        }
        Standing {
            state: State::Done,
            ..standing
        }
    }

    /// A turn that has to be done, now or again: whether it can begin.
    fn begin(&self, index: usize, mut standing: Standing) -> Standing {
        let (turn, known) = (&self.turns[index], &self.known[index]);
        if known.failures >= turn.step.retries {
            let why = known.failed_why.clone().unwrap_or_default();
            return Standing {
                state: State::Failed,
                why: vec![format!("{} failures in a row: {why}", known.failures)],
                ..standing
            };
        }
        if let Some(step) = turn.without.first() {
            let gate = self
                .contract
                .steps
                .iter()
                .find(|gate| gate.declare.is_some());
            let how = gate.map_or_else(
                || "[units.ID] in quipu.toml".to_owned(),
                |gate| format!("approving {} declares them", gate.name),
            );
            return Standing {
                state: State::Pending,
                why: vec![format!("waits for {step}, which has no unit yet: {how}")],
                ..standing
            };
        }
        let (stopped, open): (Vec<usize>, Vec<usize>) = self
            .open_before(index)
            .iter()
            .partition(|i| matches!(self.state(**i), State::Failed | State::Blocked));
        let stale = open.iter().all(|i| self.state(*i) == State::Stale);
        let names = |list: &[usize]| -> Vec<Turn> {
            list.iter().map(|i| self.turns[*i].turn.clone()).collect()
        };
        let said = |list: &[Turn]| {
            list.iter()
                .map(ToString::to_string)
                .collect::<Vec<_>>()
                .join(", ")
        };
        if !stopped.is_empty() {
            standing.through = names(&stopped);
            standing.why = vec![format!(
                "waits for {}, which needs a person",
                said(&standing.through)
            )];
            standing.state = State::Blocked;
        } else if !open.is_empty() {
            standing.through = names(&open);
            let stale = if stale { ", which is stale" } else { "" };
            standing.why = vec![format!("waits for {}{stale}", said(&standing.through))];
            standing.state = State::Pending;
        } else {
            standing.state = State::Ready;
        }
        standing
    }

    fn decide_gate(&self, index: usize, mut standing: Standing) -> Standing {
        let (turn, known) = (&self.turns[index], &self.known[index]);
        let complete = self.incomplete(turn).is_empty();
        let name = match &turn.turn.unit {
            Some(unit) => format!("{} --unit {unit}", turn.turn.step),
            None => turn.turn.step.clone(),
        };
        if complete
            && known.approved.is_none()
            && known.rejected.is_none()
            && !turn.outputs.is_empty()
        {
            // Someone put the file there, or the journal is gone: the marker is believed.
            return Standing {
                state: State::Done,
                ..standing
            };
        }
        if complete && self.seq(known.approved) > self.seq(known.rejected) {
            let changed = known
                .approved
                .map(|fact| self.changed(index, fact))
                .unwrap_or_default();
            if changed.by_flow.is_empty() {
                let state = if changed.by_hand.is_empty() {
                    State::Done
                } else {
                    State::Stale
                };
                return Standing {
                    state,
                    why: changed.by_hand,
                    ..standing
                };
            }
            standing.why = changed.by_flow;
        }
        let why = std::mem::take(&mut standing.why);
        let begun = self.begin(index, standing);
        // A person may pass over reviews that are stale, and is told of them.
        let passable = begun.state == State::Pending && self.is_only_stale_before(index);
        if begun.state != State::Ready && !passable {
            return begun;
        }
        let rejected = known
            .rejected
            .filter(|_| self.seq(known.rejected) > self.seq(known.approved));
        let owing = |fact: usize| {
            let same: Vec<usize> = match turn.turn.unit {
                Some(_) => turn
                    .step
                    .back
                    .iter()
                    .filter_map(|step| self.turn_of(step, index))
                    .collect(),
                None => (0..self.turns.len())
                    .filter(|t| turn.step.back.contains(&self.turns[*t].turn.step))
                    .collect(),
            };
            same.into_iter()
                .filter(|t| self.seq(self.known[*t].accepted) < self.facts[fact].seq)
                .collect::<Vec<_>>()
        };
        if let Some((fact, owing)) = rejected
            .map(|fact| (fact, owing(fact)))
            .filter(|(_, owing)| !owing.is_empty())
        {
            let stopped = owing.iter().any(|t| self.state(*t) == State::Failed);
            let state = if stopped {
                State::Blocked
            } else {
                State::Pending
            };
            let why = self.facts[fact].note.why.clone().unwrap_or_default();
            return Standing {
                state,
                why: vec![format!("rejected: {why}")],
                ..begun
            };
        }
        let mut told = vec![format!(
            "quipu approve {name}     (or: quipu reject {name} --why \"…\")"
        )];
        told.extend(why);
        Standing {
            state: State::Waiting,
            why: told,
            through: Vec::new(),
            ..begun
        }
    }

    /// A finished turn that objects is not done: the work goes back, or a person is asked.
    fn decide_objection(
        &self,
        index: usize,
        mut standing: Standing,
        changed: &Changed,
    ) -> Standing {
        let (turn, known) = (&self.turns[index], &self.known[index]);
        let items = self.own_objections(index);
        standing.objects = true;
        let told = match items.as_slice() {
            [] => "an objection stands".to_owned(),
            [first, rest @ ..] => format!(
                "{} objection{}: {first}",
                items.len(),
                if rest.is_empty() { "" } else { "s" }
            ),
        };
        let asked = |what: String| {
            vec![
                what,
                format!(
                    "mend it by hand, or overrule it: quipu approve {}",
                    render_turn(&turn.turn)
                ),
            ]
        };
        let Some(target) = self.target(index) else {
            if !changed.by_flow.is_empty() {
                standing.why.clone_from(&changed.by_flow);
                return self.begin(index, standing);
            }
            return Standing {
                state: State::Failed,
                why: asked(told),
                ..standing
            };
        };
        let answered = self.seq(self.known[target].accepted) > self.seq(known.accepted);
        if answered || !changed.by_flow.is_empty() {
            standing.why = vec![format!("{} was mended", self.turns[target].turn)];
            return self.begin(index, standing);
        }
        let rounds = turn.step.rounds.unwrap_or(0);
        if self.round(target, &turn.turn.step) >= rounds {
            return Standing {
                state: State::Failed,
                why: asked(format!("{told} (after round {rounds})")),
                ..standing
            };
        }
        let state = match self.state(target) {
            State::Failed | State::Blocked => State::Blocked,
            _ => State::Pending,
        };
        standing.through = vec![self.turns[target].turn.clone()];
        standing.why = vec![format!("{told}; sent back to {}", self.turns[target].turn)];
        Standing { state, ..standing }
    }

    /// How often the newest run of a turn has answered the objections of a step already.
    fn round(&self, index: usize, by: &str) -> u32 {
        let note = self.known[index]
            .accepted
            .map(|fact| &self.facts[fact].note);
        note.filter(|note| note.sent_by.as_deref() == Some(by))
            .map_or(0, |note| note.round)
    }

    /// The turn of another step that belongs to the same unit.
    fn turn_of(&self, step: &str, index: usize) -> Option<usize> {
        let find = |unit| {
            self.index
                .get(&Turn {
                    step: step.to_owned(),
                    unit,
                })
                .copied()
        };
        find(self.turns[index].turn.unit.clone()).or_else(|| find(None))
    }

    fn own_objections(&self, index: usize) -> Vec<String> {
        let turn = &self.turns[index];
        let Some(objection) = &turn.step.objection else {
            return Vec::new();
        };
        let sign = objection.sign.as_deref();
        turn.required()
            .flat_map(|o| {
                sign.map(|sign| self.now.items(o.path.as_str(), sign))
                    .unwrap_or_default()
            })
            .collect()
    }

    /// Whether what a finished turn wrote is an objection.
    fn objects(&self, index: usize) -> bool {
        let turn = &self.turns[index];
        let Some(objection) = &turn.step.objection else {
            return false;
        };
        let marked = objection.marker.as_ref().is_some_and(|m| {
            turn.required()
                .any(|o| self.now.marker(o.path.as_str()).as_ref() == Some(m))
        });
        marked || !self.own_objections(index).is_empty()
    }

    /// To whom the objection of a turn goes: the first step whose role it names, else the first.
    /// What Quipu does itself comes out the same again, so a person has to look.
    fn target(&self, index: usize) -> Option<usize> {
        self.addressee(index)
            .filter(|target| self.turns[*target].role.is_some())
    }

    fn addressee(&self, index: usize) -> Option<usize> {
        let turn = &self.turns[index];
        let objection = turn.step.objection.as_ref()?;
        let candidates: Vec<usize> = turn
            .step
            .back
            .iter()
            .filter_map(|step| self.turn_of(step, index))
            .collect();
        if candidates.len() < 2 {
            return candidates.first().copied();
        }
        let sign = objection.sign.as_deref().unwrap_or("");
        let items: Vec<String> = turn
            .required()
            .flat_map(|o| self.now.items(o.path.as_str(), sign))
            .collect();
        let named = |candidate: &&usize| {
            let role = self.turns[**candidate].role;
            // A role with two jobs has a name for each: `writer`, `writer-revision`.
            let base = |name: &str| name.split('-').next().unwrap_or_default().to_owned();
            let names = role.into_iter().flat_map(|r| {
                [
                    base(&r.name),
                    r.title.in_language(self.contract.language).to_owned(),
                ]
            });
            names.into_iter().any(|name| {
                items
                    .iter()
                    .any(|item| item.to_lowercase().contains(&name.to_lowercase()))
            })
        };
        candidates
            .iter()
            .find(named)
            .or(candidates.first())
            .copied()
    }

    /// The objection that waits for this turn, if any.
    fn sent_back_to(&self, index: usize) -> Option<SentBack> {
        let Turn { step, unit } = &self.turns[index].turn;
        let of_whole = self.senders.get(&(step.as_str(), None));
        let of_unit = unit
            .as_ref()
            .and_then(|unit| self.senders.get(&(step.as_str(), Some(unit))));
        let mut senders: Vec<usize> = of_whole
            .into_iter()
            .chain(of_unit)
            .flatten()
            .copied()
            .collect();
        senders.sort_unstable();
        for other in senders {
            let turn = &self.turns[other];
            let known = &self.known[other];
            let own = self.seq(self.known[index].accepted);
            if turn.is_builtin(Builtin::Gate) {
                let Some(fact) = known
                    .rejected
                    .filter(|f| self.facts[*f].seq > self.seq(known.approved).max(own))
                else {
                    continue;
                };
                let why = self.facts[fact].note.why.clone().unwrap_or_default();
                return Some(SentBack {
                    by: turn.turn.step.clone(),
                    round: self.round(index, &turn.turn.step) + 1,
                    objectors: vec![turn.turn.step.clone()],
                    items: vec![why],
                });
            }
            let waived = self.seq(known.approved) > self.seq(known.accepted);
            if waived
                || !self.incomplete(turn).is_empty()
                || !self.objects(other)
                || self.target(other) != Some(index)
            {
                continue;
            }
            if own > self.seq(known.accepted)
                || self.round(index, &turn.turn.step) >= turn.step.rounds.unwrap_or(0)
            {
                continue;
            }
            let mut items = self.own_objections(other);
            if items.is_empty() {
                items = turn
                    .required()
                    .flat_map(|o| self.now.items(o.path.as_str(), ""))
                    .collect();
            }
            return Some(SentBack {
                by: turn.turn.step.clone(),
                round: self.round(index, &turn.turn.step) + 1,
                objectors: self.objectors(other),
                items,
            });
        }
        None
    }

    /// Whose objections a merge carries: the steps before it whose own outputs hold the sign; else
    /// the step itself.
    fn objectors(&self, index: usize) -> Vec<String> {
        let turn = &self.turns[index];
        let sign = turn.step.objection.as_ref().and_then(|o| o.sign.as_deref());
        let before = turn.step.after.iter().filter(|step| {
            let Some((other, sign)) = self.turn_of(step, index).zip(sign) else {
                return false;
            };
            self.turns[other]
                .required()
                .any(|o| !self.now.items(o.path.as_str(), sign).is_empty())
        });
        let found: Vec<String> = before.cloned().collect();
        if found.is_empty() || turn.step.role.is_some() {
            vec![turn.turn.step.clone()]
        } else {
            found
        }
    }

    /// What a turn lacks to be complete.
    fn incomplete(&self, turn: &Planned<'_>) -> Vec<String> {
        self.lacks(turn, |_| true).collect()
    }

    /// The same, for those of its files that are asked about.
    fn lacks<'t>(
        &'t self,
        turn: &'t Planned<'_>,
        asked: impl Fn(&ProjectPath) -> bool + 't,
    ) -> impl Iterator<Item = String> + 't {
        turn.required()
            .filter(move |o| asked(&o.path))
            .filter_map(|output| {
                let path = output.path.as_str();
                if self.now.version(path).is_none() {
                    return Some(format!("`{path}` is not there"));
                }
                let marked = output.markers.is_empty()
                    || self
                        .now
                        .marker(path)
                        .is_some_and(|m| output.markers.contains(&m));
                (!marked)
                    .then(|| format!("`{path}` does not end with {}", output.markers.join(" or ")))
            })
    }

    /// What changed since a run, and by whom.
    fn changed(&self, index: usize, fact: usize) -> Changed {
        let turn = &self.turns[index];
        let since = &self.facts[fact];
        let mut changed = Changed::default();
        for read in &since.note.reads {
            if self.is_as_read(turn, read) {
                continue;
            }
            let name = match &read.section {
                Some(section) => format!("{}#{section}", read.path),
                None => read.path.clone(),
            };
            let what = if self.now.version(&read.path).is_some() {
                "changed"
            } else {
                "is gone"
            };
            self.tell(
                &mut changed,
                index,
                &read.path,
                since.seq,
                format!("`{name}` {what}"),
            );
        }
        let read: BTreeSet<&str> = since.note.reads.iter().map(|r| r.path.as_str()).collect();
        for path in self.named_by_wildcards(turn) {
            if !read.contains(path.as_str()) {
                self.tell(
                    &mut changed,
                    index,
                    path.as_str(),
                    since.seq,
                    format!("`{path}` is new"),
                );
            }
        }
        changed
    }

    fn tell(&self, changed: &mut Changed, index: usize, path: &str, since: u64, what: String) {
        let version = self.now.version(path);
        let made = self
            .makers
            .get(path)
            .into_iter()
            .flatten()
            .rev()
            .find(|(_, made, _)| Some(*made) == version.as_ref());
        let maker = made
            .map(|(_, _, number)| &self.facts[*number])
            .filter(|fact| fact.seq > since);
        // Behind a seal nothing is done again, unless someone asked for a job there and others rest
        // on it.
        let asked = |fact: &RunFact| {
            self.index
                .get(&fact.note.turn())
                .is_some_and(|maker| self.behind_seal[*maker])
        };
        if self.behind_seal[index] && !maker.is_some_and(asked) {
            return;
        }
        if maker.is_some() {
            changed.by_flow.push(what)
        } else {
            changed.by_hand.push(what)
        }
    }

    fn is_as_read(&self, turn: &Planned<'_>, read: &ReadNote) -> bool {
        let now = self.now.version(&read.path);
        if now.as_ref() == Some(&read.version) {
            return true;
        }
        let Ok(path) = ProjectPath::parse(&read.path) else {
            return true;
        };
        if turn.outputs.iter().any(|o| o.path == path) {
            return true;
        }
        // What is published follows whatever it was made from, memory included.
        if turn.step.builtin == Some(Builtin::Publish) {
            return false;
        }
        // Derived files follow others, and what only grows still holds what was read.
        if matches!(
            self.class(&path),
            Class::Derived | Class::Append | Class::Record
        ) {
            return true;
        }
        if let (Some(section), Some(text)) = (&read.section, &read.text)
            && self.now.section(&read.path, section).as_ref() == Some(text)
        {
            return true;
        }
        self.is_excused(turn, read, now.as_ref())
    }

    /// A text that was mended for others' objections need not be looked at again by those who had
    /// none. And memory that grew when something was remembered makes nothing stale that was
    /// written before: it grows from what was written.
    fn is_excused(&self, turn: &Planned<'_>, read: &ReadNote, now: Option<&Version>) -> bool {
        let Some(makers) = self.makers.get(read.path.as_str()) else {
            return false;
        };
        let (mut at, mut steps) = (Some(&read.version), 0);
        while at != now {
            let next = makers.iter().rev().find(|(base, _, _)| *base == at);
            let Some((_, made, number)) = next else {
                return false;
            };
            let note = &self.facts[*number].note;
            let merge = note
                .sent_by
                .as_deref()
                .and_then(|name| self.contract.step(name));
            // What was remembered since is no reason to write anew what memory learnt from. The
            // final text is no memory.
            let remembers = |maker: usize| {
                let Planned { step, binding, .. } = &self.turns[maker];
                let text = step
                    .remember
                    .as_ref()
                    .and_then(|r| fill_path(r.to.as_ref()?, binding));
                step.builtin == Some(Builtin::Remember)
                    && text.is_none_or(|text| text.as_str() != read.path)
            };
            let remembered = self
                .index
                .get(&note.turn())
                .is_some_and(|maker| remembers(*maker));
            let fellow = merge.is_some_and(|m| {
                m.builtin == Some(Builtin::Merge) && m.after.contains(&turn.turn.step)
            });
            if !remembered && (!fellow || note.mends.contains(&turn.turn.step)) {
                return false;
            }
            at = Some(*made);
            steps += 1;
            if steps > makers.len() {
                return false;
            }
        }
        true
    }

    /// Files that a turn's wildcards name now. Free files and what is read only if there is room do
    /// not count.
    fn named_by_wildcards(&self, turn: &Planned<'_>) -> Vec<ProjectPath> {
        let mut found = Vec::new();
        for pattern in &turn.wild {
            let named = self.named_by(pattern);
            let open = named.iter().filter(|path| {
                !turn
                    .denies
                    .iter()
                    .any(|d| d.matches(path.as_str()).is_some())
                    && !turn.outputs.iter().any(|o| o.path == **path)
            });
            found.extend(open.cloned());
        }
        found
    }

    /// The ruled files that a pattern names; many turns have the same patterns.
    fn named_by(&self, pattern: &Pattern) -> Rc<Vec<ProjectPath>> {
        if let Some(named) = self.named.borrow().get(pattern.as_str()) {
            return Rc::clone(named);
        }
        let mut named = self.now.matching(pattern);
        named.retain(|path| !matches!(self.class(path), Class::Free | Class::Derived));
        let named = Rc::new(named);
        self.named
            .borrow_mut()
            .insert(pattern.as_str().to_owned(), Rc::clone(&named));
        named
    }
}

/// What rests on something stale is stale through it, until that is redone.
pub fn spread_staleness(
    turns: &[Planned<'_>],
    standings: &mut [Standing],
    derivation: &Derivation<'_, '_>,
) {
    let mut stale: BTreeMap<&str, usize> = BTreeMap::new();
    for (index, turn) in turns.iter().enumerate() {
        if standings[index].state == State::Done
            && !turn.is_builtin(Builtin::Derive)
            && !derivation.behind_seal[index]
        {
            let fact = derivation.known[index]
                .accepted
                .or(derivation.known[index].approved);
            let reads = fact
                .map(|f| derivation.facts[f].note.reads.as_slice())
                .unwrap_or_default();
            let through: BTreeSet<usize> = reads
                .iter()
                .filter_map(|r| stale.get(r.path.as_str()).copied())
                .collect();
            if !through.is_empty() {
                let names: Vec<Turn> = through.iter().map(|i| turns[*i].turn.clone()).collect();
                let said = names
                    .iter()
                    .map(ToString::to_string)
                    .collect::<Vec<_>>()
                    .join(", ");
                let standing = &mut standings[index];
                standing.state = State::Stale;
                standing.why = vec![format!("through {said}")];
                standing.through = names;
            }
        }
        if standings[index].state == State::Stale {
            let rewritten = turn.outputs.iter().map(|o| &o.path);
            let rewritten = rewritten.filter(|p| {
                !matches!(
                    derivation.contract.class(p),
                    Class::Append | Class::Record | Class::Derived | Class::Sealed
                )
            });
            stale.extend(rewritten.map(|p| (p.as_str(), index)));
        }
    }
}
