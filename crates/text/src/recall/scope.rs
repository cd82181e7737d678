//! The sections a question is asked of: those of visible files, indexed or fresh, and no others.
//!
//! Counts are taken within the scope, so an answer over some files is the answer that a project of
//! only these files would give, and hidden files cannot be sensed through scores. Sections are
//! named by slots; nothing that ranks may depend on the order of slots, only on path and ordinal.

use std::borrow::Cow;

use super::manifest::{Catalogue, Entry};
use super::segment::Segment;
use super::terms::Term;
use super::{Damage, Visible};

/// The number of a section within one scope.
pub type Slot = u32;

/// Slots that share an entry in the table that leads to their runs.
const STRIDE: usize = 32;

/// Sections of one file that lie side by side.
#[derive(Debug, Clone, Copy)]
pub struct Run {
    /// The slot of the first.
    pub start: Slot,
    /// How many.
    pub count: u32,
    /// The number of their file.
    pub owner: u32,
    /// Which section of the file the first is.
    ordinal: u32,
}

impl Run {
    /// The first slot behind.
    #[inline(always)]
    pub fn end(&self) -> Slot {
        self.start + self.count
    }

    /// The file of a slot of the run, and which section of the file it is.
    #[inline(always)]
    pub fn place(&self, slot: Slot) -> (u32, u32) {
        (self.owner, self.ordinal + slot - self.start)
    }
}

/// Which sections are where: all that a scope knows besides the files' bytes. One over all files is
/// kept with the index.
///
/// It holds something for each run and nothing for each section: memory that a fresh process
/// touches for the first time costs more than what is done with it.
#[derive(Debug, Clone, Default)]
pub struct Layout {
    /// The first slot of each segment, and the end.
    bases: Vec<Slot>,
    /// Layer and number of each file, in the order of paths.
    files: Vec<(u8, u32)>,
    /// All runs in the order of slots, and for every `STRIDE` slots how many of them start before.
    runs: Vec<Run>,
    before: Vec<u32>,
    /// The runs of all files, each file's in its own order, and where those of each file begin.
    order: Vec<u32>,
    starts: Vec<u32>,
    sections: u32,
    terms: u64,
}

/// An index, or what is laid over it: what it covers, and the segments that hold it.
pub type Layer<'i> = (&'i Catalogue, &'i [Segment]);

impl Layout {
    /// The layout of the files that are visible and not hidden.
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
        // Each layer is in order already.
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

    /// Brings the runs into the order of slots.
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

    /// The run of a slot, if it is alive and visible.
    #[inline(always)]
    fn run(&self, slot: Slot) -> Option<&Run> {
        let block = slot as usize / STRIDE;
        let (from, to) = (self.before[block] as usize, self.before[block + 1] as usize);
        let behind = from + self.runs[from..to].partition_point(|run| run.start <= slot);
        self.runs[..behind].last().filter(|run| slot < run.end())
    }

    /// The runs of a file, in its order.
    fn runs_of(&self, owner: u32) -> impl Iterator<Item = &Run> {
        let places = &self.order
            [self.starts[owner as usize] as usize..self.starts[owner as usize + 1] as usize];
        places.iter().map(|place| &self.runs[*place as usize])
    }
}

/// Segments and files that a question sees.
#[derive(Debug)]
pub struct Scope<'i> {
    layers: Vec<Layer<'i>>,
    segments: Vec<&'i Segment>,
    layout: Cow<'i, Layout>,
}

/// One section's occurrence of a term.
#[derive(Debug, Clone, Copy)]
pub struct Posting {
    /// Where.
    pub slot: Slot,
    /// How many terms the text holds there.
    pub length: u16,
    /// How often it occurs in the text.
    pub times: u8,
    /// Whether in the heading path.
    pub in_heading: bool,
}

impl<'i> Scope<'i> {
    /// The scope over some layers, as laid out.
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

    /// How many sections are in it.
    pub fn sections(&self) -> u32 {
        self.layout.sections
    }

    /// How many files are in it.
    pub fn files(&self) -> usize {
        self.layout.files.len()
    }

    /// How many slots there are, dead and hidden ones included.
    pub fn slots(&self) -> usize {
        self.layout.bases.last().map_or(0, |end| *end as usize)
    }

    /// Whether every slot is alive and visible.
    pub fn is_whole(&self) -> bool {
        self.sections() as usize == self.slots()
    }

    /// Whether a slot is alive and visible.
    #[inline(always)]
    pub fn is_alive(&self, slot: Slot) -> bool {
        self.layout.run(slot).is_some()
    }

    /// The run of a slot, if it is alive and visible.
    #[inline(always)]
    pub fn run(&self, slot: Slot) -> Option<&Run> {
        self.layout.run(slot)
    }

    /// Whether a run is all there is of its file.
    #[inline(always)]
    pub fn is_whole_file(&self, run: &Run) -> bool {
        self.layout.starts[run.owner as usize + 1] - self.layout.starts[run.owner as usize] == 1
    }

    /// All runs, in the order of slots.
    pub fn runs(&self) -> &[Run] {
        &self.layout.runs
    }

    /// The mean number of terms of a section.
    pub fn mean_length(&self) -> f32 {
        (self.layout.terms.max(1) as f64 / f64::from(self.sections().max(1))) as f32
    }

    /// The file of a living slot.
    pub fn file(&self, slot: Slot) -> Option<Entry<'i>> {
        let (layer, number) = self.layout.files[self.layout.run(slot)?.owner as usize];
        Some(self.layers[usize::from(layer)].0.entry(number as usize))
    }

    /// File number and ordinal of a slot: an order that does not depend on how it was indexed.
    pub fn position(&self, slot: Slot) -> (usize, u32) {
        match self.layout.run(slot) {
            Some(run) => (run.owner as usize, run.ordinal + slot - run.start),
            None => (usize::MAX, slot),
        }
    }

    /// The sections at some distances in the same file.
    pub fn neighbours<const N: usize>(&self, slot: Slot, away: [i32; N]) -> [Option<Slot>; N] {
        let Some(own) = self.layout.run(slot) else {
            return [None; N];
        };
        let mut found = [None; N];
        for (found, away) in found.iter_mut().zip(away) {
            // Sections of one run lie side by side, which is nearly always all there is to know.
            let beside = slot.wrapping_add_signed(away);
            *found = if (own.start..own.end()).contains(&beside) {
                Some(beside)
            } else {
                self.beyond(own, slot, away)
            };
        }
        found
    }

    /// The section at some distance from another, in another run of the same file.
    #[cold]
    fn beyond(&self, own: &Run, slot: Slot, away: i32) -> Option<Slot> {
        let ordinal = (own.ordinal + slot - own.start).checked_add_signed(away)?;
        let mut runs = self.layout.runs_of(own.owner);
        let run = runs.find(|run| (run.ordinal..run.ordinal + run.count).contains(&ordinal))?;
        Some(run.start + ordinal - run.ordinal)
    }

    /// The segment of a slot and the section's number there.
    pub fn place(&self, slot: Slot) -> (usize, &'i Segment, u32) {
        // There are few segments; those without a section share their base with the next.
        let bases = &self.layout.bases[..self.segments.len()];
        let at = bases.iter().take_while(|base| **base <= slot).count() - 1;
        (at, self.segments[at], slot - bases[at])
    }

    /// Slots in as few pieces as they lie in. They ascend.
    pub fn side_by_side<'s>(&self, slots: &'s [Slot]) -> impl Iterator<Item = &'s [Slot]> {
        let begins = |slot: Slot| self.layout.bases.contains(&slot);
        slots.chunk_by(move |a, b| a + 1 == *b && !begins(*b))
    }

    /// Every place of a term within the scope.
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

    /// The first slot of a segment.
    pub fn base(&self, segment: usize) -> Slot {
        self.layout.bases[segment]
    }

    /// All living sections in as few pieces as they lie in: segment, first section there, count,
    /// first slot.
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
