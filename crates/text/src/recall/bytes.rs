//! Bytes on disk: where they come from, how whole numbers are written, and whether they are intact.
//!
//! Every block that recall reads carries a checksum, so a flipped or missing byte is noticed when
//! it is read. The sums guard against accidents, not against people: the index is derived.

use std::borrow::Cow;
use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt;
use std::path::Path;
use std::sync::{Arc, OnceLock};

use super::Damage;

const MULTIPLIER: u64 = 0x9e37_79b9_7f4a_7c15;

/// A 64-bit hash of some bytes, eight at a time. The same on every machine.
#[must_use]
pub fn fingerprint(bytes: &[u8]) -> u64 {
    let mut hash = MULTIPLIER ^ (bytes.len() as u64);
    let mut words = bytes.chunks_exact(8);
    for word in &mut words {
        let word = u64::from_le_bytes(word.try_into().expect("chunks of eight"));
        hash = (hash ^ word).wrapping_mul(MULTIPLIER).rotate_left(29);
    }
    let mut last = [0; 8];
    last[..words.remainder().len()].copy_from_slice(words.remainder());
    hash = (hash ^ u64::from_le_bytes(last)).wrapping_mul(MULTIPLIER);
    hash ^= hash >> 32;
    hash = hash.wrapping_mul(MULTIPLIER);
    hash ^ (hash >> 29)
}

/// The checksum of a block. Four lanes, since a processor multiplies four times while it waits for
/// one result, and large blocks are checked before every answer of a fresh process.
fn checksum(bytes: &[u8]) -> u32 {
    let (rows, rest) = bytes.as_chunks::<32>();
    let mut lanes = [1u64, 2, 3, 4].map(|lane| MULTIPLIER.wrapping_mul(lane) ^ bytes.len() as u64);
    for row in rows {
        for (lane, word) in lanes.iter_mut().zip(row.as_chunks::<8>().0) {
            *lane = (*lane ^ u64::from_le_bytes(*word))
                .wrapping_mul(MULTIPLIER)
                .rotate_left(29);
        }
    }
    let joined = lanes.into_iter().fold(0, |hash: u64, lane| {
        (hash ^ lane).wrapping_mul(MULTIPLIER).rotate_left(29)
    });
    (joined ^ fingerprint(rest)) as u32
}

/// The bytes of one file of the index: on disk, or in memory for text that is not indexed yet.
#[derive(Debug, Clone)]
pub enum Source {
    /// Read where needed; stays readable after another process removed the name.
    Disk(Arc<OnDisk>),
    /// Held whole.
    Memory(Arc<[u8]>),
}

/// An opened file, and all its bytes once a process that is asked again wants them.
#[derive(Debug)]
pub struct OnDisk {
    file: File,
    len: u64,
    kept: OnceLock<Box<[u8]>>,
}

impl OnDisk {
    fn read_into(&self, start: u64, bytes: &mut [u8]) -> Result<(), Damage> {
        if start
            .checked_add(bytes.len() as u64)
            .is_none_or(|end| end > self.len)
        {
            return Err(Damage::Short);
        }
        self.file
            .read_exact_at(bytes, start)
            .map_err(|_| Damage::Short)
    }
}

/// Some of the bytes that are in memory.
fn some(bytes: &[u8], start: u64, len: usize) -> Result<&[u8], Damage> {
    let start = usize::try_from(start).map_err(|_| Damage::Short)?;
    let end = start.checked_add(len).ok_or(Damage::Short)?;
    bytes.get(start..end).ok_or(Damage::Short)
}

impl Source {
    /// A file that is read where needed.
    pub fn open(path: &Path) -> io::Result<Self> {
        let file = File::open(path)?;
        let len = file.metadata()?.len();
        Ok(Self::Disk(Arc::new(OnDisk {
            file,
            len,
            kept: OnceLock::new(),
        })))
    }

    /// Reads everything and keeps it: for a process that is asked again and again.
    pub fn keep(&self) -> Result<(), Damage> {
        if let Self::Disk(disk) = self
            && disk.kept.get().is_none()
        {
            let mut bytes = vec![0; usize::try_from(disk.len).map_err(|_| Damage::Short)?];
            disk.read_into(0, &mut bytes)?;
            // Another thread may be first; its bytes are the same.
            let _ = disk.kept.set(bytes.into());
        }
        Ok(())
    }

    /// Everything, if it is in memory.
    fn in_memory(&self) -> Option<&[u8]> {
        match self {
            Self::Disk(disk) => disk.kept.get().map(|kept| &kept[..]),
            Self::Memory(bytes) => Some(bytes),
        }
    }

    /// How many bytes there are.
    #[must_use]
    pub fn len(&self) -> u64 {
        match self {
            Self::Disk(disk) => disk.len,
            Self::Memory(bytes) => bytes.len() as u64,
        }
    }

    /// The bytes from `start`, exactly `len` of them.
    pub fn read(&self, start: u64, len: usize) -> Result<Cow<'_, [u8]>, Damage> {
        match (self, self.in_memory()) {
            (Self::Disk(disk), None) => {
                if len as u64 > disk.len {
                    return Err(Damage::Short);
                }
                let mut bytes = vec![0; len];
                disk.read_into(start, &mut bytes)?;
                Ok(Cow::Owned(bytes))
            }
            (_, bytes) => some(bytes.unwrap_or_default(), start, len).map(Cow::Borrowed),
        }
    }

    /// The inside of a sealed block, in a buffer that is used again and again where it must be
    /// read.
    pub fn read_sealed_into<'b>(
        &'b self,
        start: u64,
        len: usize,
        buffer: &'b mut Vec<u8>,
    ) -> Result<&'b [u8], Damage> {
        match (self, self.in_memory()) {
            (Self::Disk(disk), None) => {
                if len as u64 > disk.len {
                    return Err(Damage::Short);
                }
                if buffer.len() < len {
                    *buffer = vec![0; len + len / 8];
                }
                disk.read_into(start, &mut buffer[..len])?;
                open_sealed(&buffer[..len])
            }
            (_, bytes) => open_sealed(some(bytes.unwrap_or_default(), start, len)?),
        }
    }

    /// Like `read`, of a block that `seal` closed.
    pub fn read_sealed(&self, start: u64, len: usize) -> Result<Cow<'_, [u8]>, Damage> {
        match self.read(start, len)? {
            Cow::Borrowed(bytes) => Ok(Cow::Borrowed(open_sealed(bytes)?)),
            Cow::Owned(mut bytes) => {
                let kept = open_sealed(&bytes)?.len();
                bytes.truncate(kept);
                Ok(Cow::Owned(bytes))
            }
        }
    }
}

/// Bytes that `seal` adds.
pub const SEAL: usize = 4;

/// Closes the block that starts at `from` with its checksum.
pub fn seal(out: &mut Vec<u8>, from: usize) {
    let sum = checksum(&out[from..]);
    out.extend(sum.to_le_bytes());
}

/// The bytes inside a sealed block, if they are intact.
pub fn open_sealed(bytes: &[u8]) -> Result<&[u8], Damage> {
    let (inside, sum) = bytes.split_last_chunk::<SEAL>().ok_or(Damage::Short)?;
    if checksum(inside) == u32::from_le_bytes(*sum) {
        Ok(inside)
    } else {
        Err(Damage::Checksum)
    }
}

/// Writes a whole number in as few bytes as it needs.
pub fn put(out: &mut Vec<u8>, mut value: u64) {
    while value >= 0x80 {
        out.push(value as u8 | 0x80);
        value >>= 7;
    }
    out.push(value as u8);
}

/// Writes bytes after their length.
pub fn put_bytes(out: &mut Vec<u8>, bytes: &[u8]) {
    put(out, bytes.len() as u64);
    out.extend(bytes);
}

/// Reads what `put` and `put_bytes` wrote.
#[derive(Debug, Clone)]
pub struct Cursor<'b>(pub &'b [u8]);

impl<'b> Cursor<'b> {
    /// The next whole number.
    #[inline]
    pub fn number(&mut self) -> Result<u64, Damage> {
        let mut value = 0;
        for shift in (0..64).step_by(7) {
            let (byte, rest) = self.0.split_first().ok_or(Damage::Short)?;
            self.0 = rest;
            value |= u64::from(byte & 0x7f) << shift;
            if byte & 0x80 == 0 {
                return Ok(value);
            }
        }
        Err(Damage::Short)
    }

    /// The next whole number, where it must fit an index.
    pub fn size(&mut self) -> Result<usize, Damage> {
        usize::try_from(self.number()?).map_err(|_| Damage::Short)
    }

    /// The next bytes, `len` of them.
    pub fn take(&mut self, len: usize) -> Result<&'b [u8], Damage> {
        let (taken, rest) = self.0.split_at_checked(len).ok_or(Damage::Short)?;
        self.0 = rest;
        Ok(taken)
    }

    /// The next counted bytes.
    pub fn bytes(&mut self) -> Result<&'b [u8], Damage> {
        let len = self.size()?;
        self.take(len)
    }

    /// The next counted bytes, as text.
    pub fn text(&mut self) -> Result<&'b str, Damage> {
        std::str::from_utf8(self.bytes()?).map_err(|_| Damage::Short)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_come_back() {
        for value in [0, 1, 127, 128, 16_384, u64::from(u32::MAX), u64::MAX] {
            let mut out = Vec::new();
            put(&mut out, value);
            assert_eq!(Cursor(&out).number().unwrap(), value);
        }
    }

    #[test]
    fn a_flipped_bit_breaks_the_seal() {
        for text in [
            "a section of a file",
            "",
            &"a longer section of a file, with more than four words of eight bytes. ".repeat(3),
        ] {
            let mut block = text.as_bytes().to_vec();
            seal(&mut block, 0);
            assert!(open_sealed(&block).is_ok());
            for at in 0..block.len() {
                block[at] ^= 4;
                assert!(open_sealed(&block).is_err(), "byte {at}");
                block[at] ^= 4;
            }
        }
    }
}
