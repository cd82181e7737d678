//! Old segments, compressed.
//!
//! A compressed segment is a chain of small gzip members, which `zcat` reads as one text. A flipped
//! byte then costs one member and not the rest of the segment: the others are found again by their
//! headers, and every record keeps its offset.

use std::fs::File;
use std::io::{self, Read, Write};
use std::path::Path;

use crate::disk::{Disk, Step};
use crate::segment::Segment;

/// A member holds about this much text: small enough to lose, large enough to compress.
const MEMBER_BYTES: usize = 64 << 10;
/// A length beyond this is not believed.
const LONGEST: usize = 64 << 20;
const MAGIC: [u8; 3] = [0x1f, 0x8b, 0x08];

/// The text of a segment, and the places where it could not be read.
#[derive(Debug, Default)]
pub(crate) struct Text {
    pub bytes: Vec<u8>,
    /// Where in the text something is missing, and what.
    pub flaws: Vec<(u64, String)>,
}

pub(crate) fn compress(disk: &Disk, folder: &Path, number: u32) -> io::Result<()> {
    let bytes = std::fs::read(Segment::path(folder, number))?;
    replace(disk, folder, number, &bytes)
}

/// Stores these bytes, compressed, in place of a segment. A crash leaves the segment before or this one.
pub(crate) fn replace(disk: &Disk, folder: &Path, number: u32, bytes: &[u8]) -> io::Result<()> {
    disk.step(Step::SegmentCompress)?;
    // Two programs may be at this at once: each under a name of its own.
    let temp = folder.join(format!("{number:08}.{}.part", crate::ident::short_id()));
    let written = write(&temp, bytes).and_then(|()| {
        // The original goes only when the copy has been read back.
        let copy = read(&temp)?;
        if copy.bytes != bytes || !copy.flaws.is_empty() {
            return Err(io::Error::other("the compressed copy does not hold the same bytes"));
        }
        disk.step(Step::SegmentCompress)?;
        std::fs::rename(&temp, Segment::compressed_path(folder, number))
    });
    if let Err(error) = written {
        let _ = std::fs::remove_file(&temp);
        return Err(error);
    }
    File::open(folder)?.sync_all()?;
    disk.step(Step::SegmentCompress)?;
    // Readers prefer this file while it is there.
    match std::fs::remove_file(Segment::path(folder, number)) {
        Ok(()) => File::open(folder)?.sync_all(),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
        Err(error) => Err(error),
    }
}

fn write(path: &Path, bytes: &[u8]) -> io::Result<()> {
    let mut file = File::create_new(path)?;
    let mut rest = bytes;
    while !rest.is_empty() {
        let least = rest.len().min(MEMBER_BYTES);
        let length = memchr::memchr(b'\n', &rest[least - 1..]).map_or(rest.len(), |newline| least + newline);
        let mut encoder = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::default());
        encoder.write_all(&rest[..length])?;
        file.write_all(&encoder.finish()?)?;
        rest = &rest[length..];
    }
    file.sync_all()
}

/// Reads what can be read. What a damaged member would have held is empty lines, so that everything
/// behind it stays where it was.
pub(crate) fn read(path: &Path) -> io::Result<Text> {
    let coded = std::fs::read(path)?;
    let mut text = Text::default();
    let mut at = 0;
    while at < coded.len() {
        let start = text.bytes.len();
        let mut decoder = flate2::bufread::GzDecoder::new(&coded[at..]);
        match decoder.read_to_end(&mut text.bytes) {
            Ok(_) => at = coded.len() - decoder.into_inner().len(),
            Err(error) => {
                let next = next_member(&coded, at + 1);
                text.flaws.push((start as u64, format!("the compressed segment is damaged at byte {at}: {error}")));
                text.bytes.resize(start + length_of(&coded[at..next]), b'\n');
                at = next;
            }
        }
    }
    Ok(text)
}

/// How long the text of a damaged member was: as it says itself in its last four bytes, unless its
/// sum shows that it is only those that are damaged.
fn length_of(member: &[u8]) -> usize {
    const HEADER: usize = 10;
    let Some((body, trailer)) = member.get(HEADER..).and_then(<[u8]>::split_last_chunk::<8>) else { return 0 };
    let number = |at: usize| u32::from_le_bytes([trailer[at], trailer[at + 1], trailer[at + 2], trailer[at + 3]]);
    let mut text = Vec::new();
    let read = flate2::bufread::DeflateDecoder::new(body).read_to_end(&mut text);
    let mut sum = flate2::Crc::new();
    sum.update(&text);
    if read.is_ok() && sum.sum() == number(0) { text.len() } else { (number(4) as usize).min(LONGEST) }
}

/// Where the next member begins that can be read.
fn next_member(coded: &[u8], from: usize) -> usize {
    memchr::memmem::find_iter(&coded[from..], &MAGIC)
        .map(|found| from + found)
        .find(|at| io::copy(&mut flate2::bufread::GzDecoder::new(&coded[*at..]), &mut io::sink()).is_ok())
        .unwrap_or(coded.len())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_flipped_byte_costs_one_member() {
        let folder = std::env::temp_dir().join(format!("quipu-archive-{}", crate::ident::short_id()));
        let text: Vec<u8> = (0..20_000).flat_map(|n: u32| format!("line {n} {}\n", n.wrapping_mul(2_654_435_761)).into_bytes()).collect();
        write(&folder, &text).unwrap();
        let coded = std::fs::read(&folder).unwrap();
        assert_eq!(read(&folder).unwrap().bytes, text);
        for at in (0..coded.len()).step_by(coded.len() / 40) {
            let mut flipped = coded.clone();
            flipped[at] ^= 0x10;
            std::fs::write(&folder, &flipped).unwrap();
            let found = read(&folder).unwrap();
            let same = found.bytes.iter().zip(&text).filter(|(a, b)| a == b).count();
            assert!(same + 2 * MEMBER_BYTES > text.len(), "byte {at}: {same} of {}", text.len());
            assert!(!found.flaws.is_empty() || found.bytes == text, "byte {at} is not noticed");
        }
        std::fs::remove_file(&folder).unwrap();
    }
}
