//! The ladder of cuts.
//!
//! A plan starts with everything whole. Cuts are made one at a time, in an order that does not
//! depend on the budget, and the plan is the first rung that fits. A larger budget therefore stops
//! at the same rung or an earlier one and never shows less.
//!
//! The rungs, from the top: (1) older pieces to one sentence, down to the declared `recent(n)`; (2)
//! pieces of low relevance out of `relevant` pointers; (3) `stage` pointers in stages; (4)
//! `if-room` pointers, piece by piece and (5) then whole; (6) the `must` pointers below their
//! declaration, as far as they may shrink; (7) `auto` pointers in stages. `auto` takes part in 1
//! and 2 too. It goes to stages last because each stage costs a whole attempt, which should not be
//! spent without request while a cheaper cut is left. Within a rung, `if-room` is cut before
//! `must`, starting with the pointer that shows most; from rung 4 on, with the pointer that shows
//! the largest fraction of itself.

use std::collections::VecDeque;

use super::overflow::{Overflow, plan_overflow};
use super::stages::{pack_stages, packed_shares};
use super::{AUTO_RECENT, Ask, MATTERS, Plan, Share, Shown, Stage, Strategy};
use crate::class::Class;
use crate::pointer::{Need, Shrink};
use crate::tokens::Tokens;

/// Plans a view of `asks` within `budget`.
pub fn plan_view(asks: &[Ask], budget: Tokens) -> Result<Plan, Overflow> {
    let mut ladder = Ladder::new(asks);
    loop {
        if let Some(stages) = ladder.fits(budget) {
            return Ok(Plan { budget, stages });
        }
        if !ladder.descend() {
            return Err(plan_overflow(&ladder, budget));
        }
    }
}

/// The part that a pointer takes in the plan.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Part {
    InEvery,
    Staged,
    Dropped,
}

/// One cut that a pointer can make.
#[derive(Debug, Clone, Copy)]
struct Cut {
    at: (usize, usize),
    to: Shown,
}

#[derive(Debug, Clone)]
struct FileState {
    pieces: Vec<Shown>,
    frames: Tokens,
    entries: Tokens,
    visible: usize,
    cut: usize,
}

pub(super) struct Ladder<'a> {
    pub asks: &'a [Ask],
    pub parts: Vec<Part>,
    files: Vec<Vec<FileState>>,
    costs: Vec<Tokens>,
    wholes: Vec<Tokens>,
    rung: usize,
    /// The remaining cuts of this rung, for each pointer.
    queues: Vec<VecDeque<Cut>>,
}

/// The rungs after the top one.
const RUNGS: usize = 7;

impl<'a> Ladder<'a> {
    pub fn new(asks: &'a [Ask]) -> Self {
        let files: Vec<Vec<FileState>> = asks
            .iter()
            .map(|ask| ask.files.iter().map(FileState::whole).collect())
            .collect();
        Ladder {
            asks,
            parts: vec![Part::InEvery; asks.len()],
            files,
            costs: asks.iter().map(Ask::whole).collect(),
            wholes: asks.iter().map(Ask::whole).collect(),
            rung: 0,
            queues: vec![VecDeque::new(); asks.len()],
        }
    }

    /// Makes the next cut. Returns false at the bottom.
    fn descend(&mut self) -> bool {
        loop {
            let next = (0..self.asks.len())
                .filter(|i| !self.queues[*i].is_empty() && self.parts[*i] == Part::InEvery)
                .max_by_key(|i| (self.asks[*i].need == Need::IfRoom, self.weight(*i), *i));
            if let Some(ask) = next {
                if let Some(cut) = self.queues[ask].pop_front() {
                    self.make(ask, cut);
                }
                return true;
            }
            if self.rung == RUNGS {
                return false;
            }
            self.rung += 1;
            if self.begin_rung() {
                return true;
            }
        }
    }

    /// Returns the priority for the next cut: the tokens shown, and from rung 4 on the fraction of
    /// the pointer's own text.
    fn weight(&self, ask: usize) -> u64 {
        let Tokens(shown) = self.costs[ask];
        if self.rung < 4 {
            return shown;
        }
        shown.saturating_mul(1000) / self.wholes[ask].0.max(1)
    }

    /// Fills the queues of a rung. A rung with a single step is applied at once, and the result is
    /// true.
    fn begin_rung(&mut self) -> bool {
        match self.rung {
            1 => self.fill(Self::cuts_to_recent),
            2 => self.fill(Self::cuts_of_irrelevant),
            3 => return self.stage(|ask| ask.shrink == Shrink::Stage),
            4 => self.fill(|ladder, i| {
                if ladder.asks[i].need == Need::IfRoom {
                    ladder.cuts_to_floor(i)
                } else {
                    Vec::new()
                }
            }),
            5 => {
                // Drops one pointer per step; the rung repeats until none is left.
                if self.drop_one() {
                    self.rung -= 1;
                    self.queues.iter_mut().for_each(VecDeque::clear);
                    return true;
                }
            }
            6 => self.fill(|ladder, i| {
                if ladder.asks[i].need == Need::Must {
                    ladder.cuts_to_floor(i)
                } else {
                    Vec::new()
                }
            }),
            _ => return self.stage(|ask| ask.shrink == Shrink::Auto),
        }
        false
    }

    fn fill(&mut self, cuts: impl Fn(&Self, usize) -> Vec<Cut>) {
        self.queues = (0..self.asks.len()).map(|i| cuts(self, i).into()).collect();
    }

    /// Returns the pieces still shown, oldest first.
    fn by_age(&self, ask: usize) -> Vec<(usize, usize)> {
        let mut entries = self.seen(ask);
        entries.sort_by_key(|at| (std::cmp::Reverse(self.asks[ask].piece(*at).age), *at));
        entries
    }

    /// Returns the pieces still shown, least relevant first.
    fn by_score(&self, ask: usize) -> Vec<(usize, usize)> {
        let mut entries = self.by_age(ask);
        entries.sort_by_key(|at| self.asks[ask].piece(*at).score);
        entries
    }

    fn seen(&self, ask: usize) -> Vec<(usize, usize)> {
        self.asks[ask]
            .entries()
            .filter(|(f, p)| self.files[ask][*f].pieces[*p] != Shown::Hidden)
            .collect()
    }

    fn to_overview(&self, ask: usize, at: (usize, usize)) -> Option<Cut> {
        let piece = self.asks[ask].piece(at);
        match piece.overview {
            Some(overview) if overview >= piece.tokens => None,
            Some(_) => Some(Cut {
                at,
                to: Shown::Overview,
            }),
            None => Some(Cut {
                at,
                to: Shown::Hidden,
            }),
        }
    }

    fn cuts_to_recent(&self, ask: usize) -> Vec<Cut> {
        let keep = match (self.asks[ask].shrink, self.asks[ask].class) {
            (Shrink::Recent(n), _) => n,
            (Shrink::Auto, Class::Append | Class::Record) => AUTO_RECENT,
            _ => return Vec::new(),
        };
        let entries = self.by_age(ask);
        let older = entries
            .len()
            .saturating_sub(usize::try_from(keep.max(1)).unwrap_or(usize::MAX));
        entries[..older]
            .iter()
            .filter_map(|at| self.to_overview(ask, *at))
            .collect()
    }

    fn cuts_of_irrelevant(&self, ask: usize) -> Vec<Cut> {
        if !matches!(self.asks[ask].shrink, Shrink::Relevant | Shrink::Auto) {
            return Vec::new();
        }
        let entries = self.by_score(ask);
        let all_but_best = &entries[..entries.len().saturating_sub(1)];
        let best = entries
            .last()
            .map_or(0, |at| self.asks[ask].piece(*at).score);
        let useless = all_but_best
            .iter()
            .filter(|at| self.asks[ask].piece(**at).score < best.div_ceil(MATTERS).max(1));
        useless
            .map(|at| Cut {
                at: *at,
                to: Shown::Hidden,
            })
            .collect()
    }

    /// Returns all cuts of a pointer that keep at least one piece.
    fn cuts_to_floor(&self, ask: usize) -> Vec<Cut> {
        let hide = |entries: Vec<(usize, usize)>| -> Vec<Cut> {
            let rest = entries.len().saturating_sub(1);
            entries[..rest]
                .iter()
                .map(|at| Cut {
                    at: *at,
                    to: Shown::Hidden,
                })
                .collect()
        };
        let spare = self.asks[ask].need == Need::IfRoom;
        match self.asks[ask].shrink {
            Shrink::Recent(_) => {
                let entries = self.by_age(ask);
                let whole = entries
                    .iter()
                    .filter(|(f, p)| self.files[ask][*f].pieces[*p] == Shown::Whole);
                // The last piece may shrink to a sentence but must not vanish.
                let mut cuts: Vec<Cut> = whole
                    .filter_map(|at| self.to_overview(ask, *at))
                    .filter(|cut| cut.to == Shown::Overview || Some(&cut.at) != entries.last())
                    .collect();
                cuts.extend(hide(entries));
                cuts
            }
            Shrink::Relevant => hide(self.by_score(ask)),
            Shrink::Head => {
                let mut entries = self.seen(ask);
                entries.reverse();
                hide(entries)
            }
            Shrink::Auto | Shrink::Stage if spare => hide(self.by_score(ask)),
            Shrink::Auto | Shrink::Stage | Shrink::Section | Shrink::Never => Vec::new(),
        }
    }

    fn make(&mut self, ask: usize, cut: Cut) {
        let (f, p) = cut.at;
        let piece = self.asks[ask].piece(cut.at);
        let before = self.file_cost(ask, f);
        let state = &mut self.files[ask][f];
        let worth = |shown: Shown| match shown {
            Shown::Whole => piece.tokens,
            Shown::Overview => piece.overview.unwrap_or(piece.tokens),
            Shown::Hidden => Tokens::ZERO,
        };
        let was = state.pieces[p];
        if was == cut.to || was == Shown::Hidden {
            return;
        }
        state.entries = state.entries.saturating_sub(worth(was)) + worth(cut.to);
        state.cut += usize::from(was == Shown::Whole);
        state.visible -= usize::from(cut.to == Shown::Hidden);
        state.pieces[p] = cut.to;
        self.costs[ask] = self.costs[ask].saturating_sub(before) + self.file_cost(ask, f);
    }

    /// Returns the fixed cost of showing any part of a file: its frame, and the note about the
    /// part.
    pub fn opening_cost(&self, ask: usize, file: usize) -> Tokens {
        self.files[ask][file].frames + self.asks[ask].files[file].note
    }

    fn partial_cost(&self, ask: usize, file: usize) -> Tokens {
        self.opening_cost(ask, file) + self.files[ask][file].entries
    }

    /// Whether the whole file is shown. A cut that saves nothing counts as whole.
    pub fn is_whole(&self, ask: usize, file: usize) -> bool {
        let state = &self.files[ask][file];
        state.cut == 0
            || (state.visible > 0
                && self.partial_cost(ask, file) >= self.asks[ask].files[file].whole)
    }

    fn file_cost(&self, ask: usize, file: usize) -> Tokens {
        if self.is_whole(ask, file) {
            return self.asks[ask].files[file].whole;
        }
        match self.files[ask][file].visible {
            0 => Tokens::ZERO,
            _ => self.partial_cost(ask, file),
        }
    }

    fn stage(&mut self, which: impl Fn(&Ask) -> bool) -> bool {
        let mut any = false;
        for (i, ask) in self.asks.iter().enumerate() {
            if ask.need != Need::Must || !which(ask) {
                continue;
            }
            // A part with its frame and note may be larger than the whole; then splitting is
            // useless.
            let largest = self
                .seen(i)
                .iter()
                .map(|(f, p)| ask.files[*f].pieces[*p].tokens + self.opening_cost(i, *f))
                .max();
            if largest.is_some_and(|part| part < self.costs[i]) {
                self.parts[i] = Part::Staged;
                any = true;
            }
        }
        any
    }

    /// Drops the `if-room` pointer with the lowest relevance.
    fn drop_one(&mut self) -> bool {
        let best = |ask: &Ask| {
            ask.entries()
                .map(|at| ask.piece(at).score)
                .max()
                .unwrap_or(0)
        };
        let next = (0..self.asks.len())
            .filter(|i| self.asks[*i].need == Need::IfRoom && self.parts[*i] != Part::Dropped)
            .min_by_key(|i| (best(&self.asks[*i]), std::cmp::Reverse(*i)));
        if let Some(ask) = next {
            self.parts[ask] = Part::Dropped;
        }
        next.is_some()
    }

    /// Returns how a pointer's pieces are shown on this rung.
    pub fn shown(&self, ask: usize) -> Vec<Vec<Shown>> {
        let files = self.files[ask].iter().enumerate();
        files
            .map(|(f, state)| {
                if self.parts[ask] == Part::Dropped
                    || (!self.is_whole(ask, f) && state.visible == 0)
                {
                    return vec![Shown::Hidden; state.pieces.len()];
                }
                if self.is_whole(ask, f) {
                    vec![Shown::Whole; state.pieces.len()]
                } else {
                    state.pieces.clone()
                }
            })
            .collect()
    }

    pub fn cost(&self, ask: usize) -> Tokens {
        self.costs[ask]
    }

    /// Returns the tokens of the parts that every stage shows.
    pub fn shared(&self) -> Tokens {
        (0..self.asks.len())
            .filter(|i| self.parts[*i] == Part::InEvery)
            .map(|i| self.costs[i])
            .sum()
    }

    fn fits(&self, budget: Tokens) -> Option<Vec<Stage>> {
        let shared = self.shared();
        if shared > budget {
            return None;
        }
        if !self.parts.contains(&Part::Staged) {
            let shares = (0..self.asks.len()).map(|i| self.share(i)).collect();
            return Some(vec![Stage {
                shares,
                tokens: shared,
            }]);
        }
        let packed = pack_stages(self, budget.saturating_sub(shared))?;
        Some(packed_shares(self, &packed))
    }

    /// Returns the share of a pointer that every stage shows.
    pub fn share(&self, ask: usize) -> Share {
        let files = self.shown(ask);
        let shown = if self.parts[ask] == Part::Dropped {
            Tokens::ZERO
        } else {
            self.costs[ask]
        };
        Share {
            strategy: self.strategy(ask, &files),
            whole: self.asks[ask].whole(),
            shown,
            files,
        }
    }

    fn strategy(&self, index: usize, files: &[Vec<Shown>]) -> Strategy {
        let ask = &self.asks[index];
        if self.parts[index] == Part::Dropped {
            return Strategy::Trimmed;
        }
        let count = |what: Shown| ask.entries().filter(|(f, p)| files[*f][*p] == what).count();
        let (whole, overview, hidden) = (
            count(Shown::Whole),
            count(Shown::Overview),
            count(Shown::Hidden),
        );
        let of = whole + overview + hidden;
        match ask.shrink {
            Shrink::Section => Strategy::Section,
            _ if whole == of => Strategy::Whole,
            Shrink::Head => Strategy::Head { shown: whole, of },
            Shrink::Recent(_) => Strategy::Recent {
                whole,
                overview,
                hidden,
            },
            _ if overview > 0 => Strategy::Recent {
                whole,
                overview,
                hidden,
            },
            _ => Strategy::Relevant { shown: whole, of },
        }
    }
}

impl FileState {
    fn whole(file: &super::AskFile) -> FileState {
        let entries: Tokens = file.entries().map(|p| file.pieces[p].tokens).sum();
        FileState {
            pieces: vec![Shown::Whole; file.pieces.len()],
            frames: file
                .pieces
                .iter()
                .map(|p| p.tokens)
                .sum::<Tokens>()
                .saturating_sub(entries),
            entries,
            visible: file.entries().count(),
            cut: 0,
        }
    }
}
