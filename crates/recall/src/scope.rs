//! The scope of a question: the sections of visible files, indexed or in the overlay.
//!
//! Statistics are computed within the scope. An answer over some files is therefore the answer of a
//! project with only these files, and scores reveal nothing about hidden files. Sections are
//! identified by slots. Ranking must not depend on the order of slots, only on path and ordinal.

use std::borrow::Cow;

use super::manifest::{Catalogue, Entry};
use super::segment::Segment;
use super::terms::Term;
use super::{Damage, Visible};

/// The number of a section within one scope.
pub type Slot = u32;

/// The number of slots per entry of the lookup table for runs.
const STRIDE: usize = 32;

/// Consecutive sections of one file.
#[derive(Debug, Clone, Copy)]
pub struct Run {
    /// The slot of the first section.
    pub start: Slot,
    pub count: u32,
    /// The number of their file.
    pub owner: u32,
    /// The position of the first section in the file.
    ordinal: u32,
}

impl Run {
    /// Returns the slot after the last.
    #[inline(always)]
    pub fn end(&self) -> Slot {
        self.start + self.count
    }

    /// Returns the file of a slot in this run, and its position in the file.
    #[inline(always)]
    pub fn place(&self, slot: Slot) -> (u32, u32) {
        (self.owner, self.ordinal + slot - self.start)
    }
}

/// The location of all sections of a scope. The layout of all files is cached with the index.
///
/// It stores data per run, not per section, because a fresh process pays more for touching new
/// memory than for the work itself.
#[derive(Debug, Clone, Default)]
pub struct Layout {
    /// The first slot of each segment, and the end.
    bases: Vec<Slot>,
    /// The layer and number of each file, in path order.
    files: Vec<(u8, u32)>,
    /// All runs in slot order, and for every `STRIDE` slots the number of runs that start before.
    runs: Vec<Run>,
    before: Vec<u32>,
    /// The runs of each file in file order, and the start of each file's runs.
    order: Vec<u32>,
    starts: Vec<u32>,
    sections: u32,
    terms: u64,
}

/// The index or its overlay: a catalogue and its segments.
pub type Layer<'i> = (&'i Catalogue, &'i [Segment]);

impl Layout {
    /// Lays out the files that are visible and not hidden.
    pub fn new(
        layers: &[Layer<'_>],
        hidden: &dyn Fn(usize, &str) -> bool,
        visible: Option<Visible>,
    ) -> Result<Self, Damage> {
        let mut layout = Self::default();
        let mut end = 0;
        let mut first = Vec::new();
        for (number, (catalogue, segments)) in layers.iter().enumerate() {
            first.push(layout.bases.len());
            for segment in *segments {
                layout.bases.push(end);
                end += segment.sections();
            }
            layout.files.reserve(catalogue.len());
            for (at, entry) in (0..).zip(catalogue.entries()) {
                let seen = visible.is_none_or(|visible| visible(entry.path, entry.tier));
                if seen && !hidden(number, entry.path) {
                    layout.files.push((number as u8, at));
                }
            }
        }
        layout.bases.push(end);
        // Each layer is already sorted.
        if layers
            .iter()
            .filter(|(catalogue, _)| catalogue.len() > 0)
            .count()
            > 1
        {
            let path =
                |(layer, at): &(u8, u32)| layers[usize::from(*layer)].0.entry(*at as usize).path;
            layout.files.sort_by(|a, b| path(a).cmp(path(b)));
        }
        layout.starts.reserve(layout.files.len() + 1);
        layout.runs.reserve(layout.files.len());
        for (owner, (layer, at)) in (0..).zip(&layout.files) {
            let (catalogue, segments) = layers[usize::from(*layer)];
            let entry = catalogue.entry(*at as usize);
            layout.starts.push(layout.runs.len() as u32);
            layout.terms += entry.terms;
            let mut ordinal = 0;
            for (place, number, count) in entry.extents().filter(|(.., count)| *count > 0) {
                if number
                    .checked_add(count)
                    .is_none_or(|end| end > segments[place].sections())
                {
                    return Err(Damage::Short);
                }
                let start = layout.bases[first[usize::from(*layer)] + place] + number;
                layout.runs.push(Run {
                    start,
                    count,
                    owner,
                    ordinal,
                });
                ordinal += count;
                layout.sections += count;
            }
        }
        layout.starts.push(layout.runs.len() as u32);
        layout.sort_runs(end as usize);
        Ok(layout)
    }

    fn sort_runs(&mut self, slots: usize) {
        if self.runs.is_sorted_by_key(|run| run.start) {
            self.order = (0..self.runs.len() as u32).collect();
        } else {
            let mut places: Vec<u32> = (0..self.runs.len() as u32).collect();
            places.sort_unstable_by_key(|place| self.runs[*place as usize].start);
            self.order = vec![0; places.len()];
            for (sorted, place) in (0..).zip(&places) {
                self.order[*place as usize] = sorted;
            }
            self.runs = places
                .iter()
                .map(|place| self.runs[*place as usize])
                .collect();
        }
        let mut so_far = 0;
        self.before.reserve(slots / STRIDE + 2);
        for first in (0..).step_by(STRIDE).take(slots / STRIDE + 2) {
            while self.runs.get(so_far).is_some_and(|run| run.start < first) {
                so_far += 1;
            }
            self.before.push(so_far as u32);
        }
    }

    /// Returns the run of a slot, if the slot is live and visible.
    #[inline(always)]
    fn run(&self, slot: Slot) -> Option<&Run> {
        let block = slot as usize / STRIDE;
        let (from, to) = (self.before[block] as usize, self.before[block + 1] as usize);
        let behind = from + self.runs[from..to].partition_point(|run| run.start <= slot);
        self.runs[..behind].last().filter(|run| slot < run.end())
    }

    /// Returns the runs of a file, in file order.
    fn runs_of(&self, owner: u32) -> impl Iterator<Item = &Run> {
        let places = &self.order
            [self.starts[owner as usize] as usize..self.starts[owner as usize + 1] as usize];
        places.iter().map(|place| &self.runs[*place as usize])
    }
}

/// The segments and files that a question can see.
#[derive(Debug)]
pub struct Scope<'i> {
    layers: Vec<Layer<'i>>,
    segments: Vec<&'i Segment>,
    layout: Cow<'i, Layout>,
}

/// An occurrence of a term in one section.
#[derive(Debug, Clone, Copy)]
pub struct Posting {
    pub slot: Slot,
    /// The number of terms in the section's text.
    pub length: u16,
    /// The number of occurrences in the text.
    pub times: u8,
    /// True if the term is in the heading path.
    pub in_heading: bool,
}

impl<'i> Scope<'i> {
    /// Creates a scope from layers and their layout.
    pub fn new(layers: Vec<Layer<'i>>, layout: Cow<'i, Layout>) -> Self {
        let segments = layers
            .iter()
            .flat_map(|(_, segments)| segments.iter())
            .collect();
        Self {
            layers,
            segments,
            layout,
        }
    }

    pub fn sections(&self) -> u32 {
        self.layout.sections
    }

    pub fn files(&self) -> usize {
        self.layout.files.len()
    }

    /// Returns the number of slots, including dead and hidden ones.
    pub fn slots(&self) -> usize {
        self.layout.bases.last().map_or(0, |end| *end as usize)
    }

    /// Returns true if every slot is live and visible.
    pub fn is_whole(&self) -> bool {
        self.sections() as usize == self.slots()
    }

    /// Returns true if a slot is live and visible.
    #[inline(always)]
    pub fn is_alive(&self, slot: Slot) -> bool {
        self.layout.run(slot).is_some()
    }

    /// Returns the run of a slot, if the slot is live and visible.
    #[inline(always)]
    pub fn run(&self, slot: Slot) -> Option<&Run> {
        self.layout.run(slot)
    }

    /// Returns true if a run contains its whole file.
    #[inline(always)]
    pub fn is_whole_file(&self, run: &Run) -> bool {
        self.layout.starts[run.owner as usize + 1] - self.layout.starts[run.owner as usize] == 1
    }

    /// Returns all runs, in slot order.
    pub fn runs(&self) -> &[Run] {
        &self.layout.runs
    }

    /// Returns the mean number of terms per section.
    pub fn mean_length(&self) -> f32 {
        (self.layout.terms.max(1) as f64 / f64::from(self.sections().max(1))) as f32
    }

    /// Returns the file of a live slot.
    pub fn file(&self, slot: Slot) -> Option<Entry<'i>> {
        let (layer, number) = self.layout.files[self.layout.run(slot)?.owner as usize];
        Some(self.layers[usize::from(layer)].0.entry(number as usize))
    }

    /// Returns the file number and ordinal of a slot. This order does not depend on how the index
    /// was built.
    pub fn position(&self, slot: Slot) -> (usize, u32) {
        match self.layout.run(slot) {
            Some(run) => (run.owner as usize, run.ordinal + slot - run.start),
            None => (usize::MAX, slot),
        }
    }

    /// Returns the sections at the given distances in the same file.
    pub fn neighbours<const N: usize>(&self, slot: Slot, away: [i32; N]) -> [Option<Slot>; N] {
        let Some(own) = self.layout.run(slot) else {
            return [None; N];
        };
        let mut found = [None; N];
        for (found, away) in found.iter_mut().zip(away) {
            // Sections of one run are adjacent. This covers nearly all cases.
            let beside = slot.wrapping_add_signed(away);
            *found = if (own.start..own.end()).contains(&beside) {
                Some(beside)
            } else {
                self.beyond(own, slot, away)
            };
        }
        found
    }

    /// Returns the section at a distance from another, in another run of the same file.
    #[cold]
    fn beyond(&self, own: &Run, slot: Slot, away: i32) -> Option<Slot> {
        let ordinal = (own.ordinal + slot - own.start).checked_add_signed(away)?;
        let mut runs = self.layout.runs_of(own.owner);
        let run = runs.find(|run| (run.ordinal..run.ordinal + run.count).contains(&ordinal))?;
        Some(run.start + ordinal - run.ordinal)
    }

    /// Returns the segment of a slot, and the section's number in it.
    pub fn place(&self, slot: Slot) -> (usize, &'i Segment, u32) {
        // There are few segments. Empty ones share their base with the next.
        let bases = &self.layout.bases[..self.segments.len()];
        let at = bases.iter().take_while(|base| **base <= slot).count() - 1;
        (at, self.segments[at], slot - bases[at])
    }

    /// Splits ascending slots into pieces of consecutive slots within one segment.
    pub fn side_by_side<'s>(&self, slots: &'s [Slot]) -> impl Iterator<Item = &'s [Slot]> {
        let begins = |slot: Slot| self.layout.bases.contains(&slot);
        slots.chunk_by(move |a, b| a + 1 == *b && !begins(*b))
    }

    /// Returns all occurrences of a term within the scope.
    pub fn find(&self, term: Term) -> Result<Vec<Posting>, Damage> {
        let mut found = Vec::new();
        let whole = self.is_whole();
        for (segment, base) in self.segments.iter().zip(&self.layout.bases) {
            let lengths = segment.lengths();
            segment.find(term, |number, times, in_heading| {
                let slot = base + number;
                if whole || self.is_alive(slot) {
                    let length = u16::from_le_bytes(lengths[number as usize]);
                    found.push(Posting {
                        slot,
                        length,
                        times,
                        in_heading,
                    });
                }
            })?;
        }
        Ok(found)
    }

    /// Returns the first slot of a segment.
    pub fn base(&self, segment: usize) -> Slot {
        self.layout.bases[segment]
    }

    /// Returns all live sections as consecutive pieces: segment, first section, count, first slot.
    pub fn stretches(&self) -> Vec<(usize, u32, u32, Slot)> {
        let mut stretches: Vec<(usize, u32, u32, Slot)> = Vec::new();
        for run in self.runs() {
            let (at, _, number) = self.place(run.start);
            match stretches.last_mut() {
                Some((last, _, count, start)) if *last == at && *start + *count == run.start => {
                    *count += run.count
                }
                _ => stretches.push((at, number, run.count, run.start)),
            }
        }
        stretches
    }
}
