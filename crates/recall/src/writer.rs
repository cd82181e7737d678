//! Changes the index: one writer at a time, with concurrent readers.
//!
//! New sections go into a new segment. The manifest that names it is renamed into place last, so a
//! reader sees all of an update or none. A file that only grew keeps its indexed sections. Nothing
//! is synced: a checksum detects data torn by a crash, and the index is then rebuilt.

use std::collections::HashMap;
use std::fs::{self, File};
use std::path::{Path, PathBuf};

use super::bytes::Source;
use super::dialogue::reads_like_dialogue;
use super::encoder::Encoder;
use super::index::{MANIFEST, load, open_vectors, segment_path, vectors_path};
use super::manifest::{Covered, Extent, Manifest, Named};
use super::segment::{Builder, Segment, whole_hash};
use super::terms::Reader;
use super::vectors::{self, Block, Vectors};
use super::{Damage, Error, FileText};

/// The number of segments of similar size that are merged into one.
const FAN: usize = 8;
/// Larger segments are not merged, because that would delay an update by seconds.
const LARGEST: u64 = 48 << 20;
/// The approximate size at which a batch is split into segments.
const BATCH: usize = 24 << 20;

#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Receipt {
    /// Sections that were read and indexed.
    pub indexed: usize,
    /// Sections that were kept because they did not change.
    pub kept: usize,
    /// Segments that were merged into larger ones.
    pub merged: usize,
    /// Sections that are not encoded yet. A later update continues with them.
    pub unencoded: usize,
}

/// Holds the lock of an index folder and collects changes until `publish`.
#[derive(Debug)]
#[must_use = "publish or drop"]
pub struct Writer {
    folder: PathBuf,
    manifest: Manifest,
    segments: HashMap<u64, Segment>,
    builder: Builder,
    reader: Reader,
    receipt: Receipt,
    /// Vectors of the sections of replaced files, by the hash of their text.
    carried: HashMap<u64, Block>,
    encode_at_most: usize,
    /// Deleted from the folder once the manifest no longer names them.
    old: Vec<u64>,
    _lock: File,
}

impl std::fmt::Debug for Builder {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Builder({})", self.sections())
    }
}

impl std::fmt::Debug for Reader {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Reader")
    }
}

impl Writer {
    /// Opens the index in `folder` for changes. Waits for another writer to finish.
    pub fn open(folder: &Path) -> Result<Self, Error> {
        let lock = lock(folder)?;
        let (catalogue, segments) = load(folder)?;
        let fits = |(place, first, count): (usize, u32, u32)| {
            first
                .checked_add(count)
                .is_some_and(|end: u32| end <= segments[place].sections())
        };
        if !catalogue.entries().all(|entry| entry.extents().all(fits)) {
            return Err(Error::Damaged {
                folder: folder.to_owned(),
                damage: Damage::Short,
            });
        }
        let manifest = catalogue.to_manifest();
        let ids = manifest.segments.iter().map(|named| named.id);
        let segments = ids.zip(segments).collect();
        Ok(Self::new(folder, manifest, segments, lock))
    }

    /// Starts an empty index in `folder`. `publish` replaces the previous contents.
    pub fn create(folder: &Path) -> Result<Self, Error> {
        fs::create_dir_all(folder)?;
        let lock = lock(folder)?;
        let mut old = Vec::new();
        let mut next = 0;
        for entry in fs::read_dir(folder)? {
            let name = entry?.file_name();
            let id = name
                .to_str()
                .and_then(|name| name.strip_suffix(".seg")?.parse::<u64>().ok());
            if let Some(id) = id {
                old.push(id);
                next = next.max(id + 1);
            }
        }
        let mut writer = Self::new(folder, Manifest::default(), HashMap::new(), lock);
        writer.manifest.next = next;
        writer.old = old;
        Ok(writer)
    }

    fn new(folder: &Path, manifest: Manifest, segments: HashMap<u64, Segment>, lock: File) -> Self {
        Self {
            folder: folder.to_owned(),
            manifest,
            segments,
            builder: Builder::default(),
            reader: Reader::new(),
            receipt: Receipt::default(),
            carried: HashMap::new(),
            encode_at_most: usize::MAX,
            old: Vec::new(),
            _lock: lock,
        }
    }

    /// Limits the number of sections to encode in this update. Zero disables the encoder.
    pub fn encode_at_most(&mut self, sections: usize) {
        self.encode_at_most = sections;
    }

    /// Returns the indexed version of a file, if any.
    #[must_use]
    pub fn version(&self, path: &str) -> Option<&str> {
        self.manifest.file(path).map(|file| file.version.as_str())
    }

    /// Returns the paths of all covered files.
    pub fn paths(&self) -> impl Iterator<Item = &str> {
        self.manifest.files.iter().map(|(path, _)| path.as_str())
    }

    /// Indexes this version of a file. Keeps sections that did not change.
    pub fn replace(&mut self, file: &FileText) -> Result<(), Error> {
        let mut covered = Covered {
            version: file.version.clone(),
            tier: file.tier,
            terms: 0,
            extents: Vec::new(),
        };
        let is_turn = reads_like_dialogue(&file.sections);
        let kept = self.keep(file, is_turn, &mut covered)?;
        self.receipt.kept += kept;
        let mut rest = &file.sections[kept..];
        while !rest.is_empty() {
            let extent = Extent {
                segment: self.manifest.next,
                first: self.builder.sections(),
                count: 0,
            };
            let mut count = 0;
            for section in rest {
                let (path, reader) = (&file.path, &mut self.reader);
                covered.terms += u64::from(self.builder.add(path, section, is_turn, reader));
                count += 1;
                if self.builder.size() > BATCH {
                    break;
                }
            }
            covered.extents.push(Extent { count, ..extent });
            self.receipt.indexed += count as usize;
            rest = &rest[count as usize..];
            if self.builder.size() > BATCH {
                self.flush()?;
            }
        }
        self.manifest.set(&file.path, covered);
        Ok(())
    }

    /// Removes a file. Returns true if it was covered.
    pub fn remove(&mut self, path: &str) -> bool {
        self.manifest.remove(path)
    }

    /// Keeps the leading sections of the file that the index already has.
    fn keep(
        &mut self,
        file: &FileText,
        is_turn: bool,
        covered: &mut Covered,
    ) -> Result<usize, Error> {
        let Some(known) = self.manifest.file(&file.path).cloned() else {
            return Ok(0);
        };
        let (mut kept, mut same_so_far) = (0, true);
        for extent in &known.extents {
            // Sections that are still in the builder have no rows to compare yet.
            let Some(segment) = self.segments.get(&extent.segment) else {
                break;
            };
            let damaged = |damage| Error::Damaged {
                folder: self.folder.clone(),
                damage,
            };
            let rows = segment.rows(extent.first, extent.count).map_err(damaged)?;
            let same = rows
                .iter()
                .zip(&file.sections[kept..])
                .take_while(|(row, section)| {
                    same_so_far && row.whole == whole_hash(section, is_turn)
                });
            let mut count = 0;
            for (row, _) in same {
                covered.terms += u64::from(row.length);
                count += 1;
            }
            if count > 0 {
                covered.extents.push(Extent { count, ..*extent });
            }
            kept += count as usize;
            same_so_far &= count == extent.count;
            if count < extent.count
                && let Some(vectors) = self.open_vectors(extent.segment)
            {
                for (number, row) in (extent.first..).zip(&rows).skip(count as usize) {
                    if vectors.has(number) {
                        self.carried
                            .insert(row.text, vectors.block(number).map_err(damaged)?);
                    }
                }
            }
        }
        Ok(kept)
    }

    /// Writes the collected sections as a segment.
    fn flush(&mut self) -> Result<(), Error> {
        if self.builder.sections() == 0 {
            return Ok(());
        }
        let bytes = std::mem::take(&mut self.builder).finish();
        self.add_segment(bytes)?;
        Ok(())
    }

    fn add_segment(&mut self, bytes: Vec<u8>) -> Result<u64, Error> {
        let id = self.manifest.next;
        self.manifest.next += 1;
        let path = segment_path(&self.folder, id);
        fs::write(&path, &bytes)?;
        drop(bytes);
        let source = Source::open(&path)?;
        let segment = Segment::open(source).map_err(|damage| self.damaged(damage))?;
        self.manifest.segments.push(Named {
            id,
            stamp: segment.stamp(),
        });
        self.segments.insert(id, segment);
        Ok(id)
    }

    /// Makes the changes visible to readers.
    pub fn publish(mut self) -> Result<Receipt, Error> {
        self.flush()?;
        self.drop_dead();
        while let Some(group) = self.mergeable() {
            self.merge(&group)?;
        }
        self.encode()?;
        let bytes = self.manifest.render();
        let fresh = self.folder.join("manifest.new");
        fs::write(&fresh, bytes)?;
        fs::rename(&fresh, self.folder.join(MANIFEST))?;
        for id in &self.old {
            // Readers with an open file can still read it. A file left behind does no harm.
            let _ = fs::remove_file(segment_path(&self.folder, *id));
            let _ = fs::remove_file(vectors_path(&self.folder, *id));
        }
        Ok(self.receipt)
    }

    fn open_vectors(&self, id: u64) -> Option<Vectors> {
        open_vectors(&self.folder, id, self.segments.get(&id)?.stamp())
    }

    fn write_vectors(&self, id: u64, blocks: &[Block]) -> Result<(), Error> {
        let bytes = vectors::render(self.segments[&id].stamp(), blocks);
        let fresh = self.folder.join("vectors.new");
        fs::write(&fresh, bytes)?;
        Ok(fs::rename(&fresh, vectors_path(&self.folder, id))?)
    }

    /// Encodes live sections that have no vectors.
    fn encode(&mut self) -> Result<(), Error> {
        if !Encoder::IS_BUILT_IN {
            return Ok(());
        }
        let mut alive: HashMap<u64, Vec<(u32, u32)>> = HashMap::new();
        for extent in self
            .manifest
            .files
            .iter()
            .flat_map(|(_, file)| &file.extents)
        {
            alive
                .entry(extent.segment)
                .or_default()
                .push((extent.first, extent.count));
        }
        let mut limit = self.encode_at_most;
        let mut known = std::mem::take(&mut self.carried);
        for Named { id, .. } in &self.manifest.segments {
            let runs = alive.get(id).map_or(&[][..], Vec::as_slice);
            let has = self.open_vectors(*id);
            let lacks = |vectors: &Vectors| {
                let mut numbers = runs.iter().flat_map(|(first, count)| *first..first + count);
                numbers.any(|number| !vectors.has(number))
            };
            if has.as_ref().is_some_and(|vectors| !lacks(vectors)) {
                continue;
            }
            if limit == 0 && known.is_empty() {
                let numbers = runs.iter().flat_map(|(first, count)| *first..first + count);
                self.receipt.unencoded += numbers
                    .filter(|number| has.as_ref().is_none_or(|has| !has.has(*number)))
                    .count();
                continue;
            }
            let mut living = vec![false; self.segments[id].sections() as usize];
            for (first, count) in runs {
                living[*first as usize..(first + count) as usize].fill(true);
            }
            let alive = |number: u32| living[number as usize];
            let (blocks, without) = vectors::complete(
                &self.segments[id],
                has.as_ref(),
                &mut known,
                &alive,
                &mut limit,
            )
            .map_err(|damage| self.damaged(damage))?;
            self.receipt.unencoded += without;
            self.write_vectors(*id, &blocks)?;
        }
        Ok(())
    }

    fn living(&self) -> HashMap<u64, u32> {
        let mut living = HashMap::new();
        for extent in self
            .manifest
            .files
            .iter()
            .flat_map(|(_, file)| &file.extents)
        {
            *living.entry(extent.segment).or_default() += extent.count;
        }
        living
    }

    fn drop_dead(&mut self) {
        let living = self.living();
        let (used, dead): (Vec<_>, Vec<_>) = self
            .manifest
            .segments
            .iter()
            .partition(|named| living.contains_key(&named.id));
        self.manifest.segments = used;
        for named in dead {
            self.segments.remove(&named.id);
            self.old.push(named.id);
        }
    }

    /// Returns segments that are worth merging: several of similar size, or one that is mostly
    /// dead.
    fn mergeable(&self) -> Option<Vec<u64>> {
        let living = self.living();
        let mut classes: HashMap<u32, Vec<u64>> = HashMap::new();
        for (id, segment) in &self.segments {
            let alive = living.get(id).copied().unwrap_or(0);
            if alive * 2 < segment.sections() && segment.size() < LARGEST {
                return Some(vec![*id]);
            }
            let size = segment.size() * u64::from(alive) / u64::from(segment.sections().max(1));
            if size < LARGEST / 2 {
                classes
                    .entry(size.max(1 << 15).ilog2() / 3)
                    .or_default()
                    .push(*id);
            }
        }
        let mut group = classes.into_values().find(|group| group.len() >= FAN)?;
        group.sort_unstable();
        Some(group)
    }

    fn merge(&mut self, ids: &[u64]) -> Result<(), Error> {
        let segments: Vec<&Segment> = ids.iter().map(|id| &self.segments[id]).collect();
        let mut keep = Vec::new();
        let next = self.manifest.next;
        for (_, file) in &mut self.manifest.files {
            let mut extents: Vec<Extent> = Vec::with_capacity(file.extents.len());
            for extent in &file.extents {
                let Some(from) = ids.iter().position(|id| *id == extent.segment) else {
                    extents.push(*extent);
                    continue;
                };
                let first = keep.len() as u32;
                keep.extend((extent.first..extent.first + extent.count).map(|n| (from, n)));
                match extents.last_mut() {
                    Some(last) if last.segment == next && last.first + last.count == first => {
                        last.count += extent.count;
                    }
                    _ => extents.push(Extent {
                        segment: next,
                        first,
                        count: extent.count,
                    }),
                }
            }
            file.extents = extents;
        }
        let joined = Builder::merge(&segments, &keep).map_err(|damage| self.damaged(damage))?;
        let id = self.add_segment(joined.finish())?;
        let vectors: Vec<_> = ids.iter().map(|id| self.open_vectors(*id)).collect();
        if vectors.iter().any(Option::is_some) {
            let block = |(from, number): &(usize, u32)| match &vectors[*from] {
                Some(vectors) => vectors.block(*number),
                None => Ok(Block::new()),
            };
            let blocks: Result<Vec<_>, _> = keep.iter().map(block).collect();
            self.write_vectors(id, &blocks.map_err(|damage| self.damaged(damage))?)?;
        }
        self.receipt.merged += ids.len();
        self.manifest
            .segments
            .retain(|named| !ids.contains(&named.id));
        for id in ids {
            self.segments.remove(id);
            self.old.push(*id);
        }
        Ok(())
    }

    fn damaged(&self, damage: Damage) -> Error {
        Error::Damaged {
            folder: self.folder.clone(),
            damage,
        }
    }
}

/// Takes the writer lock. The kernel releases it when the process ends.
fn lock(folder: &Path) -> Result<File, Error> {
    if !folder.is_dir() {
        return Err(Error::Missing(folder.to_owned()));
    }
    let file = File::create(folder.join("lock"))?;
    file.lock()?;
    Ok(file)
}
