//! The sections a question is asked of: those of visible files, indexed or fresh, and no others.
//!
//! Counts are taken within the scope, so an answer over some files is the answer that a project of
//! only these files would give, and hidden files cannot be sensed through scores. Sections are named
//! by slots; nothing that ranks may depend on the order of slots, only on path and ordinal.

use super::manifest::{Covered, Extent, Manifest};
use super::segment::Segment;
use super::terms::Term;
use super::{Damage, Tier, Visible};

/// The number of a section within one scope.
pub type Slot = u32;

/// The owner of a slot that is dead or hidden.
pub const NOBODY: u32 = u32::MAX;

/// A file within the scope.
#[derive(Debug)]
pub struct Member<'i> {
    /// Its path.
    pub path: &'i str,
    /// The version searched.
    pub version: &'i str,
    /// Its tier.
    pub tier: Tier,
    /// Runs of slots, in the order of the file.
    runs: Vec<(Slot, u32)>,
}

/// Segments and files that a question sees.
#[derive(Debug)]
pub struct Scope<'i> {
    segments: Vec<&'i Segment>,
    bases: Vec<Slot>,
    files: Vec<Member<'i>>,
    owners: Vec<u32>,
    sections: u32,
    terms: u64,
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
    /// The scope over an index and the files that are fresher than it.
    pub fn new(
        layers: &[(&'i Manifest, &'i [Segment])],
        hidden: &dyn Fn(usize, &str) -> bool,
        visible: Option<Visible>,
    ) -> Result<Self, Damage> {
        let mut scope = Self { segments: Vec::new(), bases: Vec::new(), files: Vec::new(), owners: Vec::new(), sections: 0, terms: 0 };
        let mut end = 0;
        for (layer, (manifest, segments)) in layers.iter().enumerate() {
            let first = scope.segments.len();
            for segment in *segments {
                scope.segments.push(segment);
                scope.bases.push(end);
                end += segment.sections();
            }
            for (path, covered) in &manifest.files {
                let seen = visible.is_none_or(|visible| visible(path, covered.tier));
                if seen && !hidden(layer, path) {
                    scope.admit(manifest, first, path, covered)?;
                }
            }
        }
        scope.files.sort_by(|a, b| a.path.cmp(b.path));
        scope.owners = vec![NOBODY; end as usize];
        for (number, file) in scope.files.iter().enumerate() {
            for (start, count) in &file.runs {
                let run = *start as usize..(*start + *count) as usize;
                scope.owners.get_mut(run).ok_or(Damage::Short)?.fill(number as u32);
            }
        }
        Ok(scope)
    }

    fn admit(&mut self, manifest: &'i Manifest, first: usize, path: &'i str, covered: &'i Covered) -> Result<(), Damage> {
        let place = |extent: &Extent| {
            let position = manifest.segments.iter().position(|named| named.id == extent.segment);
            let at = first + position.ok_or(Damage::Short)?;
            Ok((self.bases[at] + extent.first, extent.count))
        };
        let runs = covered.extents.iter().map(place).collect::<Result<_, _>>()?;
        self.sections += covered.sections();
        self.terms += covered.terms;
        let (version, tier) = (covered.version.as_str(), covered.tier);
        self.files.push(Member { path, version, tier, runs });
        Ok(())
    }

    /// How many sections are in it.
    pub fn sections(&self) -> u32 {
        self.sections
    }

    /// How many files are in it.
    pub fn files(&self) -> usize {
        self.files.len()
    }

    /// How many slots there are, dead and hidden ones included.
    pub fn slots(&self) -> usize {
        self.owners.len()
    }

    /// The mean number of terms of a section.
    pub fn mean_length(&self) -> f32 {
        (self.terms.max(1) as f64 / f64::from(self.sections.max(1))) as f32
    }

    /// The number of the file that a living slot belongs to; numbers follow the order of paths.
    pub fn owner(&self, slot: Slot) -> Option<usize> {
        Some(self.owners[slot as usize]).filter(|owner| *owner != NOBODY).map(|owner| owner as usize)
    }

    /// The file of a living slot.
    pub fn file(&self, slot: Slot) -> Option<&Member<'i>> {
        self.owner(slot).map(|owner| &self.files[owner])
    }

    /// File number and ordinal of a slot: an order that does not depend on how it was indexed.
    pub fn position(&self, slot: Slot) -> (usize, u32) {
        let Some(owner) = self.owner(slot) else {
            return (usize::MAX, slot);
        };
        let mut before = 0;
        for (start, count) in &self.files[owner].runs {
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
        let there = u32::try_from(i64::from(slot) + away).ok();
        let runs = &self.files[owner].runs;
        if let [(start, count)] = runs[..] {
            return there.filter(|there| (start..start + count).contains(there));
        }
        let mut ordinal = i64::from(self.position(slot).1) + away;
        for (start, count) in runs {
            if (0..i64::from(*count)).contains(&ordinal) {
                return Some(start + ordinal as u32);
            }
            ordinal -= i64::from(*count);
        }
        None
    }

    /// The segment of a slot and the section's number there.
    pub fn place(&self, slot: Slot) -> (usize, &'i Segment, u32) {
        let at = self.bases.partition_point(|base| *base <= slot) - 1;
        (at, self.segments[at], slot - self.bases[at])
    }

    /// Whether two slots lie in one segment.
    pub fn side_by_side(&self, a: Slot, b: Slot) -> bool {
        self.place(a).0 == self.place(b).0
    }

    /// Every place of a term within the scope.
    pub fn find(&self, term: Term) -> Result<Vec<Posting>, Damage> {
        let mut found = Vec::new();
        for (segment, base) in self.segments.iter().zip(&self.bases) {
            let lengths = segment.lengths();
            segment.find(term, |number, times, in_heading| {
                let slot = base + number;
                if self.owners[slot as usize] != NOBODY {
                    let length = lengths[number as usize];
                    found.push(Posting { slot, length, times, in_heading });
                }
            })?;
        }
        Ok(found)
    }

    /// The owners of all slots.
    pub fn owners(&self) -> &[u32] {
        &self.owners
    }

    /// The slots of one segment.
    pub fn slots_of(&self, segment: usize) -> std::ops::Range<usize> {
        let start = self.bases[segment] as usize;
        start..start + self.segments[segment].sections() as usize
    }

    /// Every run of living sections: segment, first section there, count, first slot.
    pub fn runs(&self) -> impl Iterator<Item = (usize, u32, u32, Slot)> {
        let runs = self.files.iter().flat_map(|file| file.runs.iter());
        runs.filter(|(_, count)| *count > 0).map(|(start, count)| {
            let (at, _, number) = self.place(*start);
            (at, number, *count, *start)
        })
    }
}
