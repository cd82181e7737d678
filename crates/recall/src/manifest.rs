//! The manifest of the index: the files it covers, their versions and the location of their
//! sections.
//!
//! ```text
//! header │ segments │ a row for each file │ a row for each extent │ paths and versions
//! ```
//!
//! The manifest is one file and is replaced atomically by a rename. A section is live if and only
//! if an extent of a file contains it. All other sections of a segment are garbage until the next
//! merge. Rows have a fixed size and are used without parsing, because a fresh process reads this
//! file before it can answer, and it may have many thousands of rows.

use std::io::Read;

use super::bytes::{SEAL, fingerprint, open_sealed, seal};
use super::{Damage, Tier};

const MAGIC: &[u8; 8] = b"QUIPUID2";
/// Magic, format, the numbers of segments, files and extents, the length of the texts, the next
/// segment ID, the seals of the two parts, and 64-bit hashes of them, which make the headers of
/// different manifests differ.
const HEADER: usize = 8 + 4 * 5 + 8 + SEAL * 2 + 8 * 2 + SEAL;
/// ID and stamp.
const SEGMENT: usize = 8 + 8;
/// The ends of path, version and extents, the number of terms, and the tier.
const FILE: usize = 4 + 4 + 4 + 8 + 1;
/// The index of the segment, the first section in it, and the number of sections.
const EXTENT: usize = 4 + 4 + 4;

/// Consecutive sections of one file inside one segment.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Extent {
    pub segment: u64,
    /// The first section in it.
    pub first: u32,
    /// The number of sections.
    pub count: u32,
}

/// One file that the index covers.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Covered {
    /// The indexed version of the file, as named by the caller.
    pub version: String,
    pub tier: Tier,
    /// The total number of terms in its sections.
    pub terms: u64,
    /// The location of its sections, in file order.
    pub extents: Vec<Extent>,
}

/// A segment file and the stamp that its contents must have.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Named {
    /// Its number, which is also its file name.
    pub id: u64,
    pub stamp: u64,
}

/// The index without its segments' contents.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Manifest {
    /// The number of the next segment.
    pub next: u64,
    pub segments: Vec<Named>,
    /// The covered files, sorted by path.
    pub files: Vec<(String, Covered)>,
}

impl Manifest {
    /// Returns the file at `path`, if covered.
    #[must_use]
    pub fn file(&self, path: &str) -> Option<&Covered> {
        self.place(path).ok().map(|place| &self.files[place].1)
    }

    fn place(&self, path: &str) -> Result<usize, usize> {
        self.files
            .binary_search_by(|(known, _)| known.as_str().cmp(path))
    }

    pub fn set(&mut self, path: &str, covered: Covered) {
        match self.place(path) {
            Ok(place) => self.files[place].1 = covered,
            Err(place) => self.files.insert(place, (path.to_owned(), covered)),
        }
    }

    /// Removes a file. Returns true if it was covered.
    pub fn remove(&mut self, path: &str) -> bool {
        let place = self.place(path);
        if let Ok(place) = place {
            self.files.remove(place);
        }
        place.is_ok()
    }

    /// Returns the bytes of the manifest file.
    #[must_use]
    pub fn render(&self) -> Vec<u8> {
        let (mut rows, mut extents, mut texts) = (Vec::new(), Vec::new(), Vec::new());
        for Named { id, stamp } in &self.segments {
            rows.extend(id.to_le_bytes());
            rows.extend(stamp.to_le_bytes());
        }
        for (path, file) in &self.files {
            for Extent {
                segment,
                first,
                count,
            } in &file.extents
            {
                let place = self.segments.iter().position(|named| named.id == *segment);
                // An unknown segment makes the manifest unreadable, so that the index is rebuilt.
                extents.extend(place.map_or(u32::MAX, |place| place as u32).to_le_bytes());
                extents.extend(first.to_le_bytes());
                extents.extend(count.to_le_bytes());
            }
            texts.extend(path.as_bytes());
            rows.extend((texts.len() as u32).to_le_bytes());
            texts.extend(file.version.as_bytes());
            rows.extend((texts.len() as u32).to_le_bytes());
            rows.extend(((extents.len() / EXTENT) as u32).to_le_bytes());
            rows.extend(file.terms.to_le_bytes());
            rows.push(file.tier.number());
        }
        let counts = [
            self.segments.len(),
            self.files.len(),
            extents.len() / EXTENT,
            texts.len(),
        ];
        rows.extend(extents);
        seal(&mut rows, 0);
        seal(&mut texts, 0);
        let mut out = MAGIC.to_vec();
        out.extend(super::segment::FORMAT.to_le_bytes());
        counts
            .iter()
            .for_each(|count| out.extend((*count as u32).to_le_bytes()));
        out.extend(self.next.to_le_bytes());
        [&rows, &texts]
            .iter()
            .for_each(|part| out.extend(&part[part.len() - SEAL..]));
        [&rows, &texts]
            .iter()
            .for_each(|part| out.extend(fingerprint(part).to_le_bytes()));
        seal(&mut out, 0);
        out.extend(rows);
        out.extend(texts);
        out
    }
}

/// A manifest as read from disk: rows and one string.
#[derive(Debug, Default)]
pub struct Catalogue {
    pub segments: Vec<Named>,
    next: u64,
    files: usize,
    /// The rows of segments, files and extents.
    rows: Vec<u8>,
    /// All paths and versions, concatenated.
    texts: String,
    mark: u64,
}

#[derive(Debug, Clone, Copy)]
pub struct Entry<'c> {
    pub path: &'c str,
    pub version: &'c str,
    pub tier: Tier,
    /// The total number of terms in its sections.
    pub terms: u64,
    extents: &'c [[u8; EXTENT]],
}

impl Entry<'_> {
    /// Returns the location of its sections, in file order: segment index, first section, count.
    pub fn extents(&self) -> impl Iterator<Item = (usize, u32, u32)> {
        self.extents
            .iter()
            .map(|row| (four(row, 0) as usize, four(row, 4), four(row, 8)))
    }
}

#[inline(always)]
fn four(bytes: &[u8], at: usize) -> u32 {
    u32::from_le_bytes([bytes[at], bytes[at + 1], bytes[at + 2], bytes[at + 3]])
}

#[inline(always)]
fn eight(bytes: &[u8], at: usize) -> u64 {
    u64::from(four(bytes, at)) | u64::from(four(bytes, at + 4)) << 32
}

fn read(from: &mut impl Read, len: usize) -> Result<Vec<u8>, Damage> {
    let mut bytes = vec![0; len];
    from.read_exact(&mut bytes).map_err(|_| Damage::Short)?;
    Ok(bytes)
}

impl Catalogue {
    /// Reads the output of `render`, which has `len` bytes.
    pub fn read(from: &mut impl Read, len: u64) -> Result<Self, Damage> {
        if len < HEADER as u64 {
            return Err(Damage::Short);
        }
        let header = read(from, HEADER)?;
        if &header[..8] != MAGIC {
            return Err(Damage::Format);
        }
        let fields = open_sealed(&header)?;
        if four(fields, 8) != super::segment::FORMAT {
            return Err(Damage::Format);
        }
        let counts = [12, 16, 20, 24].map(|at| four(fields, at));
        let [segments, files, extents, texts] = counts.map(u64::from);
        let rows = segments * SEGMENT as u64 + files * FILE as u64 + extents * EXTENT as u64;
        if HEADER as u64 + rows + texts + 2 * SEAL as u64 != len {
            return Err(Damage::Short);
        }
        let rows = usize::try_from(rows).map_err(|_| Damage::Short)?;
        let [segments, files, _, texts] = counts.map(|count| count as usize);
        // Each part must have the seal that the header names.
        let part = |from: &mut _, len: usize, at: usize| {
            let mut bytes = read(from, len + SEAL)?;
            let is_whole = open_sealed(&bytes).is_ok() && bytes[len..] == fields[at..at + SEAL];
            bytes.truncate(len);
            if is_whole {
                Ok(bytes)
            } else {
                Err(Damage::Checksum)
            }
        };
        let rows = part(from, rows, 36)?;
        let texts = String::from_utf8(part(from, texts, 36 + SEAL)?).map_err(|_| Damage::Short)?;
        let named = |row: &[u8; SEGMENT]| Named {
            id: eight(row, 0),
            stamp: eight(row, 8),
        };
        let segments: Vec<Named> = rows[..segments * SEGMENT]
            .as_chunks()
            .0
            .iter()
            .map(named)
            .collect();
        let catalogue = Self {
            segments,
            next: eight(fields, 28),
            files,
            rows,
            texts,
            mark: fingerprint(&header),
        };
        if catalogue.is_sound() {
            Ok(catalogue)
        } else {
            Err(Damage::Short)
        }
    }

    /// Returns true if all offsets in the rows are valid.
    fn is_sound(&self) -> bool {
        let mut ends = (0, 0);
        let files = self.rows().iter().all(|row| {
            let (path, version, extents) = (four(row, 0), four(row, 4), four(row, 8));
            let ascends = ends.0 <= path && path <= version && ends.1 <= extents;
            ends = (version, extents);
            ascends
                && self.texts.is_char_boundary(path as usize)
                && self.texts.is_char_boundary(version as usize)
                && tier(row).is_some()
        });
        let extents = self.extents();
        let places = extents
            .iter()
            .all(|row| (four(row, 0) as usize) < self.segments.len());
        files && places && ends.0 as usize == self.texts.len() && ends.1 as usize == extents.len()
    }

    fn rows(&self) -> &[[u8; FILE]] {
        &self.rows[self.segments.len() * SEGMENT..].as_chunks().0[..self.files]
    }

    fn extents(&self) -> &[[u8; EXTENT]] {
        self.rows[self.segments.len() * SEGMENT + self.files * FILE..]
            .as_chunks()
            .0
    }

    #[must_use]
    pub fn len(&self) -> usize {
        self.files
    }

    /// Returns a file by its number. Numbers follow the order of paths.
    #[must_use]
    pub fn entry(&self, number: usize) -> Entry<'_> {
        let rows = self.rows();
        let row = &rows[number];
        let (start, first) = number.checked_sub(1).map_or((0, 0), |before| {
            (four(&rows[before], 4), four(&rows[before], 8))
        });
        let (path, version) = (four(row, 0) as usize, four(row, 4) as usize);
        Entry {
            path: &self.texts[start as usize..path],
            version: &self.texts[path..version],
            tier: tier(row).unwrap_or(Tier::L0),
            terms: eight(row, 12),
            extents: &self.extents()[first as usize..four(row, 8) as usize],
        }
    }

    /// Returns all files, sorted by path.
    pub fn entries(&self) -> impl Iterator<Item = Entry<'_>> {
        (0..self.len()).map(|number| self.entry(number))
    }

    /// Returns the file at `path`, if covered.
    #[must_use]
    pub fn file(&self, path: &str) -> Option<Entry<'_>> {
        let (mut low, mut high) = (0, self.len());
        while low < high {
            let middle = usize::midpoint(low, high);
            if self.entry(middle).path < path {
                low = middle + 1
            } else {
                high = middle
            }
        }
        (low < self.len())
            .then(|| self.entry(low))
            .filter(|entry| entry.path == path)
    }

    /// Returns a fingerprint of the catalogue.
    #[must_use]
    pub fn mark(&self) -> u64 {
        self.mark
    }

    /// Converts to a form that can be changed.
    #[must_use]
    pub fn to_manifest(&self) -> Manifest {
        let extent = |(place, first, count): (usize, u32, u32)| Extent {
            segment: self.segments[place].id,
            first,
            count,
        };
        let covered = |entry: Entry<'_>| Covered {
            version: entry.version.to_owned(),
            tier: entry.tier,
            terms: entry.terms,
            extents: entry.extents().map(extent).collect(),
        };
        let files = self
            .entries()
            .map(|entry| (entry.path.to_owned(), covered(entry)))
            .collect();
        Manifest {
            next: self.next,
            segments: self.segments.clone(),
            files,
        }
    }
}

fn tier(row: &[u8; FILE]) -> Option<Tier> {
    Tier::of_number(row[FILE - 1])
}

#[cfg(test)]
mod tests {
    use super::*;

    fn manifest() -> Manifest {
        let file = |version: &str, terms, extents: &[(u64, u32, u32)]| Covered {
            version: version.into(),
            tier: Tier::L1,
            terms,
            extents: extents
                .iter()
                .map(|(segment, first, count)| Extent {
                    segment: *segment,
                    first: *first,
                    count: *count,
                })
                .collect(),
        };
        let mut manifest = Manifest {
            next: 9,
            segments: vec![
                Named { id: 3, stamp: 77 },
                Named {
                    id: 8,
                    stamp: u64::MAX,
                },
            ],
            files: Vec::new(),
        };
        manifest.set("notes/一.md", file("v1 2", 400, &[(8, 0, 7), (3, 2, 1)]));
        manifest.set("empty.md", file("", 0, &[]));
        manifest.set("last.md", file("v9", u64::from(u32::MAX) + 1, &[(3, 0, 2)]));
        manifest
    }

    fn read(bytes: &[u8]) -> Result<Catalogue, Damage> {
        Catalogue::read(&mut &bytes[..], bytes.len() as u64)
    }

    #[test]
    fn what_is_written_is_read() {
        let manifest = manifest();
        let catalogue = read(&manifest.render()).unwrap();
        assert_eq!(catalogue.to_manifest(), manifest);
        assert_eq!(catalogue.file("last.md").unwrap().version, "v9");
        assert!(catalogue.file("notes/二.md").is_none());
        let empty = Manifest::default();
        assert_eq!(read(&empty.render()).unwrap().to_manifest(), empty);
        assert_ne!(catalogue.mark(), read(&empty.render()).unwrap().mark());
    }

    #[test]
    fn damage_anywhere_is_noticed() {
        let whole = manifest().render();
        for at in 0..whole.len() {
            let mut bytes = whole.clone();
            bytes[at] ^= 4;
            assert!(read(&bytes).is_err(), "byte {at}");
            assert!(read(&whole[..at]).is_err(), "the first {at} bytes");
        }
        assert!(read(&[&whole[..], b"more"].concat()).is_err());
    }

    #[test]
    fn parts_of_two_manifests_are_none() {
        let (one, mut other) = (manifest(), manifest());
        other
            .files
            .iter_mut()
            .find(|(path, _)| path == "last.md")
            .unwrap()
            .1
            .version = "9v".into();
        let (one, other) = (one.render(), other.render());
        assert_eq!(one.len(), other.len());
        let texts =
            one.len() - SEAL - "empty.md".len() - "last.mdv9".len() - "notes/一.mdv1 2".len();
        assert!(read(&[&other[..texts], &other[texts..]].concat()).is_ok());
        assert!(read(&[&one[..texts], &other[texts..]].concat()).is_err());
        assert!(read(&[&one[..HEADER], &other[HEADER..]].concat()).is_err());
    }

    #[test]
    fn an_extent_of_a_segment_that_is_not_there_is_damage() {
        let mut manifest = manifest();
        manifest.segments.pop();
        assert!(read(&manifest.render()).is_err());
    }
}
