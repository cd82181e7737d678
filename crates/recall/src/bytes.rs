//! Access to the bytes of index files, variable-length integers and checksums.
//!
//! Every block that recall reads has a checksum, so a changed or missing byte is detected on
//! reading. The checksums protect against accidents, not attacks: the index is derived.

use std::borrow::Cow;
use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt;
use std::path::Path;
use std::sync::{Arc, OnceLock};

use super::Damage;

const MULTIPLIER: u64 = 0x9e37_79b9_7f4a_7c15;

/// Computes a 64-bit hash, eight bytes at a time. It is the same on every machine.
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

/// Computes the checksum of a block. Four lanes hide the latency of the multiplication. Speed
/// matters because a fresh process checks large blocks before every answer.
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

/// The bytes of one index file: on disk, or in memory for text that is not indexed yet.
#[derive(Debug, Clone)]
pub enum Source {
    /// Read on demand. Stays readable after another process deletes the file.
    Disk(Arc<OnDisk>),
    Memory(Arc<[u8]>),
}

/// An open file, and its contents once a long-running process has cached them.
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

/// Returns a slice of bytes in memory.
fn some(bytes: &[u8], start: u64, len: usize) -> Result<&[u8], Damage> {
    let start = usize::try_from(start).map_err(|_| Damage::Short)?;
    let end = start.checked_add(len).ok_or(Damage::Short)?;
    bytes.get(start..end).ok_or(Damage::Short)
}

impl Source {
    /// Opens a file that is read on demand.
    pub fn open(path: &Path) -> io::Result<Self> {
        let file = File::open(path)?;
        let len = file.metadata()?.len();
        Ok(Self::Disk(Arc::new(OnDisk {
            file,
            len,
            kept: OnceLock::new(),
        })))
    }

    /// Reads the whole file into memory, for a process that answers many queries.
    pub fn keep(&self) -> Result<(), Damage> {
        if let Self::Disk(disk) = self
            && disk.kept.get().is_none()
        {
            let mut bytes = vec![0; usize::try_from(disk.len).map_err(|_| Damage::Short)?];
            disk.read_into(0, &mut bytes)?;
            // Another thread may have set it first. The bytes are the same.
            let _ = disk.kept.set(bytes.into());
        }
        Ok(())
    }

    /// Returns all bytes if they are in memory.
    fn in_memory(&self) -> Option<&[u8]> {
        match self {
            Self::Disk(disk) => disk.kept.get().map(|kept| &kept[..]),
            Self::Memory(bytes) => Some(bytes),
        }
    }

    #[must_use]
    pub fn len(&self) -> u64 {
        match self {
            Self::Disk(disk) => disk.len,
            Self::Memory(bytes) => bytes.len() as u64,
        }
    }

    /// Returns exactly `len` bytes from `start`.
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

    /// Returns the contents of a sealed block. If it must be read from disk, reuses `buffer`.
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

    /// Like `read`, for a block written with `seal`.
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

/// The number of bytes that `seal` adds.
pub const SEAL: usize = 4;

/// Appends the checksum of the block that starts at `from`.
pub fn seal(out: &mut Vec<u8>, from: usize) {
    let sum = checksum(&out[from..]);
    out.extend(sum.to_le_bytes());
}

/// Returns the contents of a sealed block if the checksum matches.
pub fn open_sealed(bytes: &[u8]) -> Result<&[u8], Damage> {
    let (inside, sum) = bytes.split_last_chunk::<SEAL>().ok_or(Damage::Short)?;
    if checksum(inside) == u32::from_le_bytes(*sum) {
        Ok(inside)
    } else {
        Err(Damage::Checksum)
    }
}

/// Writes a variable-length integer (LEB128).
pub fn put(out: &mut Vec<u8>, mut value: u64) {
    while value >= 0x80 {
        out.push(value as u8 | 0x80);
        value >>= 7;
    }
    out.push(value as u8);
}

/// Writes the length and then the bytes.
pub fn put_bytes(out: &mut Vec<u8>, bytes: &[u8]) {
    put(out, bytes.len() as u64);
    out.extend(bytes);
}

/// Reads values written by `put` and `put_bytes`.
#[derive(Debug, Clone)]
pub struct Cursor<'b>(pub &'b [u8]);

impl<'b> Cursor<'b> {
    /// Reads the next integer.
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

    /// Reads the next integer as an index.
    pub fn size(&mut self) -> Result<usize, Damage> {
        usize::try_from(self.number()?).map_err(|_| Damage::Short)
    }

    pub fn take(&mut self, len: usize) -> Result<&'b [u8], Damage> {
        let (taken, rest) = self.0.split_at_checked(len).ok_or(Damage::Short)?;
        self.0 = rest;
        Ok(taken)
    }

    /// Reads the next length-prefixed bytes.
    pub fn bytes(&mut self) -> Result<&'b [u8], Damage> {
        let len = self.size()?;
        self.take(len)
    }

    /// Reads the next length-prefixed bytes as text.
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
