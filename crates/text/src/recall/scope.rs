//! The sections a question is asked of: those of visible files, indexed or fresh, and no others.
//!
//! Counts are taken within the scope, so an answer over some files is the answer that a project of
//! only these files would give, and hidden files cannot be sensed through scores. Sections are named
//! by slots; nothing that ranks may depend on the order of slots, only on path and ordinal.

use std::borrow::Cow;

use super::manifest::{Catalogue, Entry};
use super::segment::Segment;
use super::terms::Term;
use super::{Damage, Visible};

/// The number of a section within one scope.
pub type Slot = u32;

/// The owner of a slot that is dead or hidden.
pub const NOBODY: u32 = u32::MAX;

/// Which sections are where: all that a scope knows besides the files' bytes. One over all files is kept with the index.
#[derive(Debug, Clone, Default)]
pub struct Layout {
    /// The first slot of each segment.
    bases: Vec<Slot>,
    /// Layer and number of each file, in the order of paths.
    files: Vec<(u8, u32)>,
    /// Runs of slots of all files, each file's in its own order, and where those of each file begin.
    runs: Vec<(Slot, u32)>,
    starts: Vec<u32>,
    owners: Vec<u32>,
    sections: u32,
    terms: u64,
}

/// An index, or what is laid over it: what it covers, and the segments that hold it.
pub type Layer<'i> = (&'i Catalogue, &'i [Segment]);

impl Layout {
    /// The layout of the files that are visible and not hidden.
    pub fn new(layers: &[Layer<'_>], hidden: &dyn Fn(usize, &str) -> bool, visible: Option<Visible>) -> Result<Self, Damage> {
        let mut layout = Self::default();
        let mut end = 0;
        let mut first = Vec::new();
        for (number, (catalogue, segments)) in layers.iter().enumerate() {
            first.push(layout.bases.len());
            for segment in *segments {
                layout.bases.push(end);
                end += segment.sections();
            }
            for (at, entry) in (0..).zip(catalogue.entries()) {
                let seen = visible.is_none_or(|visible| visible(entry.path, entry.tier));
                if seen && !hidden(number, entry.path) {
                    layout.files.push((number as u8, at));
                }
            }
        }
        // Each layer is in order already.
        if layers.iter().filter(|(catalogue, _)| catalogue.len() > 0).count() > 1 {
            let path = |(layer, at): &(u8, u32)| layers[usize::from(*layer)].0.entry(*at as usize).path;
            layout.files.sort_by(|a, b| path(a).cmp(path(b)));
        }
        layout.owners = vec![NOBODY; end as usize];
        layout.starts.reserve(layout.files.len() + 1);
        for (owner, (layer, at)) in (0..).zip(&layout.files) {
            let (catalogue, _) = layers[usize::from(*layer)];
            let entry = catalogue.entry(*at as usize);
            layout.starts.push(layout.runs.len() as u32);
            layout.terms += entry.terms;
            for extent in entry.extents {
                let position = catalogue.segments.iter().position(|named| named.id == extent.segment);
                let base = layout.bases[first[usize::from(*layer)] + position.ok_or(Damage::Short)?];
                let start = base + extent.first;
                layout.sections += extent.count;
                layout.runs.push((start, extent.count));
                let run = start as usize..start as usize + extent.count as usize;
                layout.owners.get_mut(run).ok_or(Damage::Short)?.fill(owner);
            }
        }
        layout.starts.push(layout.runs.len() as u32);
        Ok(layout)
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
        let segments = layers.iter().flat_map(|(_, segments)| segments.iter()).collect();
        Self { layers, segments, layout }
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
        self.layout.owners.len()
    }

    /// Whether every slot is alive and visible.
    pub fn is_whole(&self) -> bool {
        self.sections() as usize == self.slots()
    }

    /// The runs of slots of a file, in its order.
    pub fn runs_of(&self, owner: usize) -> &[(Slot, u32)] {
        &self.layout.runs[self.layout.starts[owner] as usize..self.layout.starts[owner + 1] as usize]
    }

    /// The mean number of terms of a section.
    pub fn mean_length(&self) -> f32 {
        (self.layout.terms.max(1) as f64 / f64::from(self.sections().max(1))) as f32
    }

    /// The number of the file that a living slot belongs to; numbers follow the order of paths.
    pub fn owner(&self, slot: Slot) -> Option<usize> {
        Some(self.layout.owners[slot as usize]).filter(|owner| *owner != NOBODY).map(|owner| owner as usize)
    }

    /// The file of a living slot.
    pub fn file(&self, slot: Slot) -> Option<Entry<'i>> {
        let (layer, number) = self.layout.files[self.owner(slot)?];
        Some(self.layers[usize::from(layer)].0.entry(number as usize))
    }

    /// File number and ordinal of a slot: an order that does not depend on how it was indexed.
    pub fn position(&self, slot: Slot) -> (usize, u32) {
        let Some(owner) = self.owner(slot) else {
            return (usize::MAX, slot);
        };
        let mut before = 0;
        for (start, count) in self.runs_of(owner) {
            if (*start..*start + *count).contains(&slot) {
                return (owner, before + slot - start);
            }
            before += count;
        }
        (owner, before)
    }

    /// The section so many places away in the same file.
    pub fn neighbour(&self, slot: Slot, away: i64) -> Option<Slot> {
        let owner = self.owner(slot)?;
        // Sections of one run lie side by side, which is nearly always all there is to know.
        if self.layout.starts[owner + 1] - self.layout.starts[owner] == 1 {
            let there = u32::try_from(i64::from(slot) + away).ok()?;
            return self.layout.owners.get(there as usize).filter(|other| **other as usize == owner).map(|_| there);
        }
        let mut ordinal = i64::from(self.position(slot).1) + away;
        for (start, count) in self.runs_of(owner) {
            if (0..i64::from(*count)).contains(&ordinal) {
                return Some(start + ordinal as u32);
            }
            ordinal -= i64::from(*count);
        }
        None
    }

    /// The segment of a slot and the section's number there.
    pub fn place(&self, slot: Slot) -> (usize, &'i Segment, u32) {
        let at = self.layout.bases.partition_point(|base| *base <= slot) - 1;
        (at, self.segments[at], slot - self.layout.bases[at])
    }

    /// Whether two slots lie in one segment.
    pub fn side_by_side(&self, a: Slot, b: Slot) -> bool {
        self.place(a).0 == self.place(b).0
    }

    /// Every place of a term within the scope.
    pub fn find(&self, term: Term) -> Result<Vec<Posting>, Damage> {
        let mut found = Vec::new();
        let whole = self.is_whole();
        for (segment, base) in self.segments.iter().zip(&self.layout.bases) {
            let lengths = segment.lengths();
            segment.find(term, |number, times, in_heading| {
                let slot = base + number;
                if whole || self.layout.owners[slot as usize] != NOBODY {
                    let length = u16::from_le_bytes(lengths[number as usize]);
                    found.push(Posting { slot, length, times, in_heading });
                }
            })?;
        }
        Ok(found)
    }

    /// The owners of all slots.
    pub fn owners(&self) -> &[u32] {
        &self.layout.owners
    }

    /// The slots of one segment.
    pub fn slots_of(&self, segment: usize) -> std::ops::Range<usize> {
        let start = self.layout.bases[segment] as usize;
        start..start + self.segments[segment].sections() as usize
    }

    /// Every run of living sections: segment, first section there, count, first slot.
    pub fn runs(&self) -> impl Iterator<Item = (usize, u32, u32, Slot)> {
        self.layout.runs.iter().filter(|(_, count)| *count > 0).map(|(start, count)| {
            let (at, _, number) = self.place(*start);
            (at, number, *count, *start)
        })
    }
}
