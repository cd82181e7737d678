//! Where a flow stands: derived, never stored.
//!
//! A turn is complete if its outputs end with their markers. It is done if, besides, nothing that it had read has
//! changed since and no one objects. Everything is told from the files as they are now and from what runs noted in
//! the journal; where the journal knows nothing, a marker is believed and that is said. Pure: all I/O is behind [`Now`].

use std::cell::RefCell;
use std::collections::{BTreeMap, BTreeSet};

use quipu_contract::{Builtin, Class, Contract, Need, Pattern, ProjectPath};
use quipu_store::Version;
use serde::Serialize;

use super::note::{ReadNote, Ruling, RunFact};
use super::turn::{Planned, Turn, Wait, plan_turns};

/// The files as they are now.
pub trait Now {
    fn version(&self, path: &str) -> Option<Version>;
    /// A hash of one section.
    fn section(&self, path: &str, section: &str) -> Option<Version>;
    fn marker(&self, path: &str) -> Option<String>;
    /// List items that begin with a sign.
    fn items(&self, path: &str, sign: &str) -> Vec<String>;
    fn matching(&self, pattern: &Pattern) -> Vec<ProjectPath>;
    fn holds_word(&self, path: &str, words: &[String]) -> bool;
    /// Whether a running turn holds the right to write a path.
    fn is_leased(&self, path: &ProjectPath) -> bool;
}

/// How a turn stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum State {
    /// It waits for others.
    Pending,
    /// It can begin.
    Ready,
    /// Someone is at it.
    Running,
    Done,
    /// Something that it had read was changed by hand since.
    Stale,
    /// It needs a person.
    Failed,
    /// It waits for something that needs a person.
    Blocked,
    /// It is a person's turn.
    Waiting,
    /// It does not apply here.
    Skipped,
}

impl State {
    pub const ALL: [State; 9] = [
        State::Done,
        State::Running,
        State::Ready,
        State::Pending,
        State::Stale,
        State::Waiting,
        State::Failed,
        State::Blocked,
        State::Skipped,
    ];

    pub const fn as_str(self) -> &'static str {
        match self {
            State::Pending => "pending",
            State::Ready => "ready",
            State::Running => "running",
            State::Done => "done",
            State::Stale => "stale",
            State::Failed => "failed",
            State::Blocked => "blocked",
            State::Waiting => "waiting",
            State::Skipped => "skipped",
        }
    }

    /// Whether others may rest on it. What is stale was done: it is redone when asked for.
    fn is_satisfied(self) -> bool {
        matches!(self, State::Done | State::Stale | State::Skipped)
    }

    fn is_settled(self) -> bool {
        self.is_satisfied() || matches!(self, State::Failed | State::Blocked)
    }
}

/// Why work comes back to a turn.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct SentBack {
    /// The step that objects.
    pub by: String,
    /// Which answer this will be.
    pub round: u32,
    /// The steps whose objections they are.
    pub objectors: Vec<String>,
    pub items: Vec<String>,
}

/// A turn with its state.
#[derive(Debug, Clone, Serialize)]
pub struct Standing {
    pub turn: Turn,
    pub state: State,
    /// In words: what it waits for, what changed, what went wrong.
    pub why: Vec<String>,
    /// The turns that make it stale, pending or blocked.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub through: Vec<Turn>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub sent_back: Option<SentBack>,
    /// Failures in a row.
    pub failures: u32,
    /// What the run had read is on record.
    pub known: bool,
    /// The commit that made it so.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub seq: Option<u64>,
}

/// A whole flow.
#[derive(Debug, Clone)]
pub struct Flow<'c> {
    pub turns: Vec<Planned<'c>>,
    pub standings: Vec<Standing>,
}

impl Flow<'_> {
    pub fn find(&self, turn: &Turn) -> Option<usize> {
        self.turns.iter().position(|t| t.turn == *turn)
    }

    pub fn count(&self, state: State) -> usize {
        self.standings.iter().filter(|s| s.state == state).count()
    }
}

/// Derives a flow from the contract, the files and the journal's notes (oldest first).
pub fn derive_flow<'c>(contract: &'c Contract, now: &dyn Now, facts: &[RunFact]) -> Flow<'c> {
    let turns = plan_turns(contract);
    let derivation = Derivation::new(contract, &turns, now, facts);
    let mut standings: Vec<Standing> = (0..turns.len()).map(|i| derivation.standing(i)).collect();
    spread_staleness(&turns, &mut standings, &derivation);
    drop(derivation);
    Flow { turns, standings }
}

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

struct Derivation<'a, 'c> {
    contract: &'c Contract,
    turns: &'a [Planned<'c>],
    now: &'a dyn Now,
    facts: &'a [RunFact],
    known: Vec<Known>,
    /// Who made which version of a path, from which, oldest first.
    makers: BTreeMap<&'a str, Vec<(Option<&'a Version>, &'a Version, usize)>>,
    memo: RefCell<Vec<Option<Standing>>>,
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
    fn new(contract: &'c Contract, turns: &'a [Planned<'c>], now: &'a dyn Now, facts: &'a [RunFact]) -> Self {
        let index: BTreeMap<Turn, usize> = turns.iter().enumerate().map(|(i, t)| (t.turn.clone(), i)).collect();
        let mut known = vec![Known::default(); turns.len()];
        let mut makers: BTreeMap<&str, Vec<_>> = BTreeMap::new();
        for (number, fact) in facts.iter().enumerate() {
            for file in &fact.files {
                makers.entry(file.path.as_str()).or_default().push((file.base.as_ref(), &file.version, number));
            }
            let Some(&at) = index.get(&fact.note.turn()) else { continue };
            let known = &mut known[at];
            match fact.note.ruling {
                Ruling::Accepted => {
                    *known = Known { accepted: Some(number), approved: known.approved, rejected: known.rejected, ..Known::default() }
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
        Derivation { contract, turns, now, facts, known, makers, memo: RefCell::new(vec![None; turns.len()]) }
    }

    fn standing(&self, index: usize) -> Standing {
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
            failures: known.failures,
            known: known.accepted.is_some() || known.approved.is_some(),
            seq: known.accepted.or(known.approved).map(|n| self.facts[n].seq),
        };
        if let Some(why) = super::when::why_not(self.contract, turn, self.now) {
            return Standing { state: State::Skipped, why: vec![why], ..standing };
        }
        if !turn.is_builtin(Builtin::Derive) && turn.required().any(|o| self.now.is_leased(&o.path)) {
            return Standing { state: State::Running, ..standing };
        }
        if turn.is_builtin(Builtin::Gate) {
            return self.decide_gate(index, standing);
        }
        let incomplete = self.incomplete(turn);
        if !incomplete.is_empty() {
            standing.why = incomplete;
            return self.begin(index, standing);
        }
        if turn.is_builtin(Builtin::Derive) {
            // It leaves no trace of its own: it is done when it could be done and its files are there.
            let begun = self.begin(index, standing);
            return if begun.state == State::Ready { Standing { state: State::Done, why: Vec::new(), ..begun } } else { begun };
        }
        if let Some(sent_back) = self.sent_back_to(index) {
            standing.why = vec![format!("sent back by {} (round {})", sent_back.by, sent_back.round)];
            standing.sent_back = Some(sent_back);
            return self.begin(index, standing);
        }
        let changed = known.accepted.map(|fact| self.changed(index, fact)).unwrap_or_default();
        if self.objects(index) && self.seq(known.approved) <= self.seq(known.accepted) {
            return self.decide_objection(index, standing, &changed);
        }
        if !changed.by_flow.is_empty() {
            standing.why = changed.by_flow;
            return self.begin(index, standing);
        }
        if !changed.by_hand.is_empty() {
            return Standing { state: State::Stale, why: changed.by_hand, ..standing };
        }
        Standing { state: State::Done, ..standing }
    }

    /// A turn that has to be done, now or again: whether it can begin.
    fn begin(&self, index: usize, mut standing: Standing) -> Standing {
        let (turn, known) = (&self.turns[index], &self.known[index]);
        if known.failures >= turn.step.retries {
            let why = known.failed_why.clone().unwrap_or_default();
            return Standing { state: State::Failed, why: vec![format!("{} failures in a row: {why}", known.failures)], ..standing };
        }
        let (mut stopped, mut open) = (Vec::new(), Vec::new());
        for (other, wait) in &turn.waits {
            let state = self.standing(*other).state;
            match wait {
                Wait::Strict if matches!(state, State::Failed | State::Blocked) => stopped.push(*other),
                Wait::Strict if !state.is_satisfied() => open.push(*other),
                Wait::Settled if !state.is_settled() => open.push(*other),
                _ => {}
            }
        }
        let names = |list: &[usize]| -> Vec<Turn> { list.iter().map(|i| self.turns[*i].turn.clone()).collect() };
        let said = |list: &[Turn]| list.iter().map(ToString::to_string).collect::<Vec<_>>().join(", ");
        if !stopped.is_empty() {
            standing.through = names(&stopped);
            standing.why = vec![format!("waits for {}, which needs a person", said(&standing.through))];
            standing.state = State::Blocked;
        } else if !open.is_empty() {
            standing.through = names(&open);
            standing.why = vec![format!("waits for {}", said(&standing.through))];
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
        if complete && known.approved.is_none() && known.rejected.is_none() && !turn.outputs.is_empty() {
            // Someone put the file there, or the journal is gone: the marker is believed.
            return Standing { state: State::Done, ..standing };
        }
        if complete && self.seq(known.approved) > self.seq(known.rejected) {
            let changed = known.approved.map(|fact| self.changed(index, fact)).unwrap_or_default();
            if changed.by_flow.is_empty() {
                let state = if changed.by_hand.is_empty() { State::Done } else { State::Stale };
                return Standing { state, why: changed.by_hand, ..standing };
            }
            standing.why = changed.by_flow;
        }
        let why = std::mem::take(&mut standing.why);
        let begun = self.begin(index, standing);
        if begun.state != State::Ready {
            return begun;
        }
        let rejected = known.rejected.filter(|_| self.seq(known.rejected) > self.seq(known.approved));
        if let Some(fact) = rejected
            && turn
                .step
                .back
                .iter()
                .any(|back| self.turn_of(back, index).is_some_and(|t| self.seq(self.known[t].accepted) < self.facts[fact].seq))
        {
            let why = self.facts[fact].note.why.clone().unwrap_or_default();
            return Standing { state: State::Pending, why: vec![format!("rejected: {why}")], ..begun };
        }
        let mut told = vec![format!("quipu approve {name}     (or: quipu reject {name} --why \"…\")")];
        told.extend(why);
        Standing { state: State::Waiting, why: told, ..begun }
    }

    /// A finished turn that objects is not done: the work goes back, or a person is asked.
    fn decide_objection(&self, index: usize, mut standing: Standing, changed: &Changed) -> Standing {
        let (turn, known) = (&self.turns[index], &self.known[index]);
        let items = self.own_objections(index);
        let told = match items.as_slice() {
            [] => "an objection stands".to_owned(),
            [first, rest @ ..] => format!("{} objection{}: {first}", items.len(), if rest.is_empty() { "" } else { "s" }),
        };
        let asked = |what: String| vec![what, format!("mend it by hand, or overrule it: quipu approve {}", render_turn(&turn.turn))];
        let Some(target) = self.target(index) else {
            if !changed.by_flow.is_empty() {
                standing.why.clone_from(&changed.by_flow);
                return self.begin(index, standing);
            }
            return Standing { state: State::Failed, why: asked(told), ..standing };
        };
        let answered = self.seq(self.known[target].accepted) > self.seq(known.accepted);
        if answered || !changed.by_flow.is_empty() {
            standing.why = vec![format!("{} was mended", self.turns[target].turn)];
            return self.begin(index, standing);
        }
        let rounds = turn.step.rounds.unwrap_or(0);
        if self.round(target) >= rounds {
            return Standing { state: State::Failed, why: asked(format!("{told} (after {rounds} rounds)")), ..standing };
        }
        let state = match self.standing(target).state {
            State::Failed | State::Blocked => State::Blocked,
            _ => State::Pending,
        };
        standing.through = vec![self.turns[target].turn.clone()];
        standing.why = vec![format!("{told}; sent back to {}", self.turns[target].turn)];
        Standing { state, ..standing }
    }

    /// How often the newest run of a turn was an answer already.
    fn round(&self, index: usize) -> u32 {
        self.known[index].accepted.map_or(0, |fact| self.facts[fact].note.round)
    }

    /// The turn of another step that belongs to the same unit.
    fn turn_of(&self, step: &str, index: usize) -> Option<usize> {
        let unit = &self.turns[index].turn.unit;
        self.turns.iter().position(|t| t.turn.step == step && (t.turn.unit == *unit || t.turn.unit.is_none()))
    }

    fn own_objections(&self, index: usize) -> Vec<String> {
        let turn = &self.turns[index];
        let Some(objection) = &turn.step.objection else { return Vec::new() };
        let sign = objection.sign.as_deref();
        turn.required().flat_map(|o| sign.map(|sign| self.now.items(o.path.as_str(), sign)).unwrap_or_default()).collect()
    }

    /// Whether what a finished turn wrote is an objection.
    fn objects(&self, index: usize) -> bool {
        let turn = &self.turns[index];
        let Some(objection) = &turn.step.objection else { return false };
        let marked =
            objection.marker.as_ref().is_some_and(|m| turn.required().any(|o| self.now.marker(o.path.as_str()).as_ref() == Some(m)));
        marked || !self.own_objections(index).is_empty()
    }

    /// To whom the objection of a turn goes: the first step whose role it names, else the first.
    fn target(&self, index: usize) -> Option<usize> {
        let turn = &self.turns[index];
        let objection = turn.step.objection.as_ref()?;
        let candidates: Vec<usize> = turn.step.back.iter().filter_map(|step| self.turn_of(step, index)).collect();
        if candidates.len() < 2 {
            return candidates.first().copied();
        }
        let sign = objection.sign.as_deref().unwrap_or("");
        let items: Vec<String> = turn.required().flat_map(|o| self.now.items(o.path.as_str(), sign)).collect();
        let named = |candidate: &&usize| {
            let role = self.turns[**candidate].role;
            let names = role.into_iter().flat_map(|r| [r.name.clone(), r.title.in_language(self.contract.language).to_owned()]);
            names.into_iter().any(|name| items.iter().any(|item| item.to_lowercase().contains(&name.to_lowercase())))
        };
        candidates.iter().find(named).or(candidates.first()).copied()
    }

    /// The objection that waits for this turn, if any.
    fn sent_back_to(&self, index: usize) -> Option<SentBack> {
        for (other, turn) in self.turns.iter().enumerate() {
            if !turn.step.back.contains(&self.turns[index].turn.step)
                || (turn.turn.unit.is_some() && turn.turn.unit != self.turns[index].turn.unit)
            {
                continue;
            }
            let known = &self.known[other];
            let own = self.seq(self.known[index].accepted);
            if turn.is_builtin(Builtin::Gate) {
                let Some(fact) = known.rejected.filter(|f| self.facts[*f].seq > self.seq(known.approved).max(own)) else { continue };
                let why = self.facts[fact].note.why.clone().unwrap_or_default();
                return Some(SentBack {
                    by: turn.turn.step.clone(),
                    round: self.round(index) + 1,
                    objectors: vec![turn.turn.step.clone()],
                    items: vec![why],
                });
            }
            let waived = self.seq(known.approved) > self.seq(known.accepted);
            if waived || !self.incomplete(turn).is_empty() || !self.objects(other) || self.target(other) != Some(index) {
                continue;
            }
            if own > self.seq(known.accepted) || self.round(index) >= turn.step.rounds.unwrap_or(0) {
                continue;
            }
            let mut items = self.own_objections(other);
            if items.is_empty() {
                items = turn.required().flat_map(|o| self.now.items(o.path.as_str(), "")).collect();
            }
            return Some(SentBack { by: turn.turn.step.clone(), round: self.round(index) + 1, objectors: self.objectors(other), items });
        }
        None
    }

    /// Whose objections a merge carries: the steps before it whose own outputs hold the sign; else the step itself.
    fn objectors(&self, index: usize) -> Vec<String> {
        let turn = &self.turns[index];
        let sign = turn.step.objection.as_ref().and_then(|o| o.sign.as_deref());
        let before = turn.step.after.iter().filter(|step| {
            let Some((other, sign)) = self.turn_of(step, index).zip(sign) else { return false };
            self.turns[other].required().any(|o| !self.now.items(o.path.as_str(), sign).is_empty())
        });
        let found: Vec<String> = before.cloned().collect();
        if found.is_empty() || turn.step.role.is_some() { vec![turn.turn.step.clone()] } else { found }
    }

    /// What a turn lacks to be complete.
    fn incomplete(&self, turn: &Planned<'_>) -> Vec<String> {
        let mut lacking = Vec::new();
        for output in turn.required() {
            let path = output.path.as_str();
            if self.now.version(path).is_none() {
                lacking.push(format!("`{path}` is not there"));
            } else if !output.markers.is_empty() && !self.now.marker(path).is_some_and(|m| output.markers.contains(&m)) {
                lacking.push(format!("`{path}` does not end with {}", output.markers.join(" or ")));
            }
        }
        lacking
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
            let what = if self.now.version(&read.path).is_some() { "changed" } else { "is gone" };
            self.tell(&mut changed, &read.path, since.seq, format!("`{name}` {what}"));
        }
        let read: BTreeSet<&str> = since.note.reads.iter().map(|r| r.path.as_str()).collect();
        for path in self.named_by_wildcards(turn) {
            if !read.contains(path.as_str()) {
                self.tell(&mut changed, path.as_str(), since.seq, format!("`{path}` is new"));
            }
        }
        changed
    }

    fn tell(&self, changed: &mut Changed, path: &str, since: u64, what: String) {
        let version = self.now.version(path);
        let maker = self.makers.get(path).into_iter().flatten().rev().find(|(_, made, _)| Some(*made) == version.as_ref());
        if maker.is_some_and(|(_, _, number)| self.facts[*number].seq > since) {
            changed.by_flow.push(what)
        } else {
            changed.by_hand.push(what)
        }
    }

    fn is_as_read(&self, turn: &Planned<'_>, read: &ReadNote) -> bool {
        let Ok(path) = ProjectPath::parse(&read.path) else { return true };
        // Derived files follow others, and what only grows still holds what was read.
        if matches!(self.contract.class(&path), Class::Derived | Class::Append | Class::Record)
            || turn.outputs.iter().any(|o| o.path == path)
        {
            return true;
        }
        let now = self.now.version(&read.path);
        if now.as_ref() == Some(&read.version) {
            return true;
        }
        if let (Some(section), Some(text)) = (&read.section, &read.text)
            && self.now.section(&read.path, section).as_ref() == Some(text)
        {
            return true;
        }
        self.is_excused(turn, read, now.as_ref())
    }

    /// A text that was mended for others' objections need not be looked at again by those who had none.
    fn is_excused(&self, turn: &Planned<'_>, read: &ReadNote, now: Option<&Version>) -> bool {
        let Some(makers) = self.makers.get(read.path.as_str()) else { return false };
        let (mut at, mut steps) = (Some(&read.version), 0);
        while at != now {
            let next = makers.iter().rev().find(|(base, _, _)| *base == at);
            let Some((_, made, number)) = next else { return false };
            let note = &self.facts[*number].note;
            let merge = note.sent_by.as_deref().and_then(|name| self.contract.step(name));
            let fellow = merge.is_some_and(|m| m.role.is_none() && m.after.contains(&turn.turn.step));
            if !fellow || note.mends.contains(&turn.turn.step) {
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

    /// Files that a turn's wildcards name now. Free files and what is read only if there is room do not count.
    fn named_by_wildcards(&self, turn: &Planned<'_>) -> Vec<ProjectPath> {
        let patterns: Vec<Pattern> = match turn.role {
            Some(role) => role.reads.iter().filter(|r| r.need == Need::Must).map(|r| r.path.fill(&turn.binding)).collect(),
            None => turn.reads(),
        };
        let denies: Vec<Pattern> = turn.role.iter().flat_map(|r| &r.denies).map(|d| d.path.fill(&turn.binding)).collect();
        let wild = patterns.iter().filter(|p| p.as_literal().is_none() && p.holes().next().is_none());
        let mut found: Vec<ProjectPath> = wild.flat_map(|p| self.now.matching(p)).collect();
        found.retain(|path| {
            let class = self.contract.class(path);
            !matches!(class, Class::Free | Class::Derived)
                && !denies.iter().any(|d| d.matches(path.as_str()).is_some())
                && !turn.outputs.iter().any(|o| o.path == *path)
        });
        found
    }
}

/// What rests on something stale is stale through it, until that is redone.
fn spread_staleness(turns: &[Planned<'_>], standings: &mut [Standing], derivation: &Derivation<'_, '_>) {
    let mut stale: BTreeMap<&str, usize> = BTreeMap::new();
    for (index, turn) in turns.iter().enumerate() {
        if standings[index].state == State::Done && !turn.is_builtin(Builtin::Derive) {
            let fact = derivation.known[index].accepted.or(derivation.known[index].approved);
            let reads = fact.map(|f| derivation.facts[f].note.reads.as_slice()).unwrap_or_default();
            let through: BTreeSet<usize> = reads.iter().filter_map(|r| stale.get(r.path.as_str()).copied()).collect();
            if !through.is_empty() {
                let names: Vec<Turn> = through.iter().map(|i| turns[*i].turn.clone()).collect();
                let said = names.iter().map(ToString::to_string).collect::<Vec<_>>().join(", ");
                let standing = &mut standings[index];
                standing.state = State::Stale;
                standing.why = vec![format!("through {said}")];
                standing.through = names;
            }
        }
        if standings[index].state == State::Stale {
            let rewritten = turn.outputs.iter().map(|o| &o.path);
            let rewritten = rewritten
                .filter(|p| !matches!(derivation.contract.class(p), Class::Append | Class::Record | Class::Derived | Class::Sealed));
            stale.extend(rewritten.map(|p| (p.as_str(), index)));
        }
    }
}

pub(crate) fn render_turn(turn: &Turn) -> String {
    match &turn.unit {
        Some(unit) => format!("{} --unit {unit}", turn.step),
        None => turn.step.clone(),
    }
}
