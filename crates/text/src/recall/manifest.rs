//! The table of contents of the index: which files it covers, at which version, and where.
//!
//! One small file, replaced whole by a rename. A section is alive exactly if an extent of a file
//! names it; all else in a segment is dead weight until the next merge.

use super::bytes::{Cursor, fingerprint, open_sealed, put, put_bytes, seal};
use super::{Damage, Tier};

const MAGIC: &[u8; 8] = b"QUIPUIDX";

/// A run of sections of one file inside one segment.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Extent {
    /// Which segment.
    pub segment: u64,
    /// The first section there.
    pub first: u32,
    /// How many follow.
    pub count: u32,
}

/// One file that the index covers.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Covered {
    /// The version of the file whose sections these are, as the caller named it.
    pub version: String,
    /// The tier of the file.
    pub tier: Tier,
    /// How many terms its sections hold together.
    pub terms: u64,
    /// Where its sections are, in the order of the file.
    pub extents: Vec<Extent>,
}

/// A segment file and the stamp its content must have.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Named {
    /// Its number, which is its name.
    pub id: u64,
    /// The stamp inside it.
    pub stamp: u64,
}

/// All of the index but its bulk.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Manifest {
    /// The number that the next segment gets.
    pub next: u64,
    /// The segments in use.
    pub segments: Vec<Named>,
    /// The files covered, sorted by path.
    pub files: Vec<(String, Covered)>,
}

impl Manifest {
    /// The file at `path`, if covered.
    #[must_use]
    pub fn file(&self, path: &str) -> Option<&Covered> {
        self.place(path).ok().map(|place| &self.files[place].1)
    }

    fn place(&self, path: &str) -> Result<usize, usize> {
        self.files.binary_search_by(|(known, _)| known.as_str().cmp(path))
    }

    /// Adds or replaces a file.
    pub fn set(&mut self, path: &str, covered: Covered) {
        match self.place(path) {
            Ok(place) => self.files[place].1 = covered,
            Err(place) => self.files.insert(place, (path.to_owned(), covered)),
        }
    }

    /// Forgets a file; says whether it was there.
    pub fn remove(&mut self, path: &str) -> bool {
        let place = self.place(path);
        if let Ok(place) = place {
            self.files.remove(place);
        }
        place.is_ok()
    }

    /// The bytes of the manifest file.
    #[must_use]
    pub fn render(&self) -> Vec<u8> {
        let mut out = MAGIC.to_vec();
        put(&mut out, u64::from(super::segment::FORMAT));
        put(&mut out, self.next);
        put(&mut out, self.segments.len() as u64);
        for segment in &self.segments {
            put(&mut out, segment.id);
            out.extend(segment.stamp.to_le_bytes());
        }
        put(&mut out, self.files.len() as u64);
        for (path, file) in &self.files {
            put_bytes(&mut out, path.as_bytes());
            put_bytes(&mut out, file.version.as_bytes());
            out.push(file.tier.number());
            put(&mut out, file.terms);
            put(&mut out, file.extents.len() as u64);
            for extent in &file.extents {
                put(&mut out, extent.segment);
                put(&mut out, u64::from(extent.first));
                put(&mut out, u64::from(extent.count));
            }
        }
        seal(&mut out, 0);
        out
    }
}

/// The same as it is read: one text and numbers, without an allocation for each file.
#[derive(Debug, Default)]
pub struct Catalogue {
    /// The segments in use.
    pub segments: Vec<Named>,
    next: u64,
    /// Paths and versions, one after the other.
    texts: String,
    files: Vec<Listed>,
    extents: Vec<Extent>,
    mark: u64,
}

/// Where things about one file stand in a catalogue.
#[derive(Debug, Clone, Copy)]
struct Listed {
    path: u32,
    version: u32,
    end: u32,
    tier: Tier,
    terms: u64,
    first: u32,
    count: u32,
}

/// One file of a catalogue.
#[derive(Debug, Clone, Copy)]
pub struct Entry<'c> {
    /// Its path.
    pub path: &'c str,
    /// The version covered.
    pub version: &'c str,
    /// Its tier.
    pub tier: Tier,
    /// How many terms its sections hold together.
    pub terms: u64,
    /// Where its sections are, in the order of the file.
    pub extents: &'c [Extent],
}

impl Catalogue {
    /// Reads what `render` wrote.
    pub fn parse(bytes: &[u8]) -> Result<Self, Damage> {
        let inside = open_sealed(bytes)?.strip_prefix(MAGIC).ok_or(Damage::Format)?;
        let mut cursor = Cursor(inside);
        if cursor.number()? != u64::from(super::segment::FORMAT) {
            return Err(Damage::Format);
        }
        let mut catalogue = Self { next: cursor.number()?, mark: fingerprint(bytes), ..Self::default() };
        for _ in 0..cursor.number()? {
            let id = cursor.number()?;
            let stamp = cursor.take(8)?.try_into().map_err(|_| Damage::Short)?;
            catalogue.segments.push(Named { id, stamp: u64::from_le_bytes(stamp) });
        }
        let small = |value| u32::try_from(value).map_err(|_| Damage::Short);
        let mut texts = Vec::with_capacity(inside.len());
        let count = cursor.size()?;
        catalogue.files.reserve(count.min(inside.len()));
        catalogue.extents.reserve(count.min(inside.len()));
        for _ in 0..count {
            let path = small(texts.len() as u64)?;
            texts.extend(cursor.bytes()?);
            let version = texts.len() as u32;
            texts.extend(cursor.bytes()?);
            let end = texts.len() as u32;
            let tier = Tier::of_number(cursor.take(1)?[0]).ok_or(Damage::Format)?;
            let terms = cursor.number()?;
            let first = catalogue.extents.len() as u32;
            let count = small(cursor.number()?)?;
            for _ in 0..count {
                let (segment, first, count) = (cursor.number()?, cursor.number()?, cursor.number()?);
                catalogue.extents.push(Extent { segment, first: small(first)?, count: small(count)? });
            }
            catalogue.files.push(Listed { path, version, end, tier, terms, first, count });
        }
        // All of it is checked at once, which is much faster, and then that no text begins or ends within a letter.
        catalogue.texts = String::from_utf8(texts).map_err(|_| Damage::Short)?;
        let begins = |at: u32| catalogue.texts.is_char_boundary(at as usize);
        let whole = catalogue.files.iter().all(|file| begins(file.path) && begins(file.version));
        if whole { Ok(catalogue) } else { Err(Damage::Short) }
    }

    /// How many files there are.
    #[must_use]
    pub fn len(&self) -> usize {
        self.files.len()
    }

    /// A file by its number; numbers follow the order of paths.
    #[must_use]
    pub fn entry(&self, number: usize) -> Entry<'_> {
        let Listed { path, version, end, tier, terms, first, count } = self.files[number];
        Entry {
            path: &self.texts[path as usize..version as usize],
            version: &self.texts[version as usize..end as usize],
            tier,
            terms,
            extents: &self.extents[first as usize..(first + count) as usize],
        }
    }

    /// All files, sorted by path.
    pub fn entries(&self) -> impl Iterator<Item = Entry<'_>> {
        (0..self.len()).map(|number| self.entry(number))
    }

    /// The file at `path`, if covered.
    #[must_use]
    pub fn file(&self, path: &str) -> Option<Entry<'_>> {
        let (mut low, mut high) = (0, self.len());
        while low < high {
            let middle = usize::midpoint(low, high);
            if self.entry(middle).path < path { low = middle + 1 } else { high = middle }
        }
        (low < self.len()).then(|| self.entry(low)).filter(|entry| entry.path == path)
    }

    /// A number that two different catalogues do not share.
    #[must_use]
    pub fn mark(&self) -> u64 {
        self.mark
    }

    /// The same, to be changed.
    #[must_use]
    pub fn to_manifest(&self) -> Manifest {
        let covered = |entry: Entry<'_>| Covered {
            version: entry.version.to_owned(),
            tier: entry.tier,
            terms: entry.terms,
            extents: entry.extents.to_vec(),
        };
        let files = self.entries().map(|entry| (entry.path.to_owned(), covered(entry))).collect();
        Manifest { next: self.next, segments: self.segments.clone(), files }
    }
}
