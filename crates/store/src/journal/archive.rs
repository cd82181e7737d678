//! Compresses old journal segments.
//!
//! A compressed segment is a chain of small gzip members, which `zcat` reads as one text. A flipped
//! byte therefore damages one member and not the rest of the segment: the other members are found
//! by their headers, and every record keeps its offset.

use std::fs::File;
use std::io::{self, Read, Write};
use std::path::Path;

use crate::files::disk::{Disk, Step};
use crate::journal::segment::Segment;

/// The text size of a member: small enough to lose, large enough to compress well.
const MEMBER_BYTES: usize = 64 << 10;
/// A segment with more text stays uncompressed. A compressed one that claims more is damaged: a few
/// bytes of gzip can claim any length, and reading must not allocate memory for it.
const MOST_BYTES: usize = if cfg!(test) { 4 << 20 } else { 256 << 20 };
const MAGIC: [u8; 3] = [0x1f, 0x8b, 0x08];

/// The text of a segment, and the positions that could not be read.
#[derive(Debug, Default)]
pub(crate) struct Text {
    pub bytes: Vec<u8>,
    /// The offset of each missing part, with a description.
    pub flaws: Vec<(u64, String)>,
}

pub(crate) fn compress(disk: &Disk, folder: &Path, number: u32) -> io::Result<()> {
    let bytes = std::fs::read(Segment::path(folder, number))?;
    if bytes.len() > MOST_BYTES {
        return Ok(());
    }
    replace(disk, folder, number, &bytes)
}

/// Replaces a segment by these bytes, compressed. A crash leaves either the old segment or the new
/// one.
pub(crate) fn replace(disk: &Disk, folder: &Path, number: u32, bytes: &[u8]) -> io::Result<()> {
    disk.step(Step::SegmentCompress)?;
    // Two processes may do this at the same time, so each uses its own temporary name.
    let temp = folder.join(format!("{number:08}.{}.part", crate::ident::short_id()));
    let written = write(&temp, bytes).and_then(|()| {
        // Delete the original only after the copy was read back.
        let copy = read(&temp)?;
        if copy.bytes != bytes || !copy.flaws.is_empty() {
            return Err(io::Error::other(
                "the compressed copy does not contain the same bytes",
            ));
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
    // Readers prefer the uncompressed file while it exists.
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
        let length =
            memchr::memchr(b'\n', &rest[least - 1..]).map_or(rest.len(), |newline| least + newline);
        let mut encoder = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::default());
        encoder.write_all(&rest[..length])?;
        file.write_all(&encoder.finish()?)?;
        rest = &rest[length..];
    }
    file.sync_all()
}

/// Reads as much as possible. The text of a damaged member is replaced by empty lines, so that
/// everything after it keeps its offset.
pub(crate) fn read(path: &Path) -> io::Result<Text> {
    let coded = crate::files::regular_file::read_regular(path)?;
    let mut text = Text::default();
    // The search for the next member decompresses data as well, so it is bounded.
    let mut search = 2 * MOST_BYTES;
    let mut at = 0;
    while at < coded.len() {
        let start = text.bytes.len();
        let left = MOST_BYTES - start.min(MOST_BYTES);
        match decode(&coded[at..], left, &mut text.bytes) {
            Ok(used) => at += used,
            Err(error) => {
                text.flaws.push((
                    start as u64,
                    format!("the compressed segment is damaged at byte {at}: {error}"),
                ));
                let next = next_member(&coded, at + 1, &mut search);
                text.bytes.truncate(start);
                text.bytes
                    .resize(start + length_of(&coded[at..next], left), b'\n');
                at = next;
            }
        }
    }
    Ok(text)
}

/// Appends the text of the first member to `text`, at most `most` bytes. Returns the number of
/// compressed bytes that it used.
fn decode(coded: &[u8], most: usize, text: &mut Vec<u8>) -> io::Result<usize> {
    let mut decoder = flate2::bufread::GzDecoder::new(coded);
    let read = (&mut decoder).take(most as u64 + 1).read_to_end(text)?;
    if read > most {
        return Err(io::Error::other(format!(
            "it declares more than {} MiB of text",
            MOST_BYTES >> 20
        )));
    }
    Ok(coded.len() - decoder.into_inner().len())
}

/// The text length of a damaged member. Its last four bytes give it, unless the checksum shows that
/// only these bytes are damaged. At most `most`.
fn length_of(member: &[u8], most: usize) -> usize {
    const HEADER: usize = 10;
    let Some((body, trailer)) = member.get(HEADER..).and_then(<[u8]>::split_last_chunk::<8>) else {
        return 0;
    };
    let number = |at: usize| {
        u32::from_le_bytes([
            trailer[at],
            trailer[at + 1],
            trailer[at + 2],
            trailer[at + 3],
        ])
    };
    let mut text = Vec::new();
    let read = flate2::bufread::DeflateDecoder::new(body)
        .take(most as u64)
        .read_to_end(&mut text);
    let mut checksum = flate2::Crc::new();
    checksum.update(&text);
    if read.is_ok() && checksum.sum() == number(0) {
        text.len()
    } else {
        (number(4) as usize).min(most)
    }
}

/// The offset of the next readable member. Decompresses at most `search` bytes and subtracts them
/// from it.
fn next_member(coded: &[u8], from: usize, search: &mut usize) -> usize {
    let mut is_readable = |at: &usize| {
        let mut decoder = flate2::bufread::GzDecoder::new(&coded[*at..]).take(*search as u64);
        let read = io::copy(&mut decoder, &mut io::sink());
        *search = usize::try_from(decoder.limit()).unwrap_or(0);
        read.is_ok() && *search > 0
    };
    let candidates = memchr::memmem::find_iter(&coded[from..], &MAGIC).map(|found| from + found);
    candidates
        .into_iter()
        .find(|at| is_readable(at))
        .unwrap_or(coded.len())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_flipped_byte_costs_one_member() {
        let folder =
            std::env::temp_dir().join(format!("quipu-archive-{}", crate::ident::short_id()));
        let text: Vec<u8> = (0..20_000)
            .flat_map(|n: u32| format!("line {n} {}\n", n.wrapping_mul(2_654_435_761)).into_bytes())
            .collect();
        write(&folder, &text).unwrap();
        let coded = std::fs::read(&folder).unwrap();
        assert_eq!(read(&folder).unwrap().bytes, text);
        for at in (0..coded.len()).step_by(coded.len() / 40) {
            let mut flipped = coded.clone();
            flipped[at] ^= 0x10;
            std::fs::write(&folder, &flipped).unwrap();
            let found = read(&folder).unwrap();
            let same = found
                .bytes
                .iter()
                .zip(&text)
                .filter(|(a, b)| a == b)
                .count();
            assert!(
                same + 2 * MEMBER_BYTES > text.len(),
                "byte {at}: {same} of {}",
                text.len()
            );
            assert!(
                !found.flaws.is_empty() || found.bytes == text,
                "byte {at} is not noticed"
            );
        }
        std::fs::remove_file(&folder).unwrap();
    }

    /// A few bytes of gzip can claim any length of text.
    #[test]
    fn a_compressed_segment_claims_no_more_text_than_a_segment_may_have() {
        let folder =
            std::env::temp_dir().join(format!("quipu-archive-{}", crate::ident::short_id()));
        let gzip = |bytes: &[u8]| {
            let mut encoder =
                flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::best());
            encoder.write_all(bytes).unwrap();
            encoder.finish().unwrap()
        };
        let damaged = [
            &MAGIC[..],
            &[0, 0, 0, 0, 0, 0, 3, 0xff, 0xff, 0xff, 0xff],
            &1u32.to_le_bytes(),
            &(64u32 << 20).to_le_bytes(),
        ]
        .concat();
        let claims = [damaged, gzip(b"")].concat().repeat(50);
        let long = gzip(&vec![b' '; 16 << 20]);
        let fakes = gzip(b"")
            .repeat(2)
            .iter()
            .copied()
            .chain(MAGIC.repeat(10_000))
            .collect::<Vec<u8>>();
        for coded in [claims, long, fakes] {
            std::fs::write(&folder, &coded).unwrap();
            let found = read(&folder).unwrap();
            assert!(
                found.bytes.len() <= MOST_BYTES && found.bytes.capacity() <= 4 * MOST_BYTES,
                "{}",
                found.bytes.len()
            );
            assert!(!found.flaws.is_empty());
        }
        std::fs::remove_file(&folder).unwrap();
    }
}
