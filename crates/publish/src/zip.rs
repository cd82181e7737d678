//! Writes a ZIP archive in memory, with only the features that EPUB needs.
//!
//! Every entry has the same date, the earliest that ZIP can represent, so the same files give the
//! same bytes.

use std::io::Write as _;

use flate2::{Compression, Crc, write::DeflateEncoder};

/// 1980-01-01 in the date format of ZIP.
const FIRST_DAY: u16 = (1 << 5) | 1;
const STORED: u16 = 0;
const DEFLATED: u16 = 8;
const VERSION: u16 = 20;

#[derive(Default)]
pub(crate) struct Zip {
    bytes: Vec<u8>,
    directory: Vec<u8>,
    count: u16,
}

impl Zip {
    /// Adds a file uncompressed. EPUB requires this for its first entry.
    pub fn store(&mut self, name: &str, bytes: &[u8]) {
        self.entry(name, STORED, bytes, bytes);
    }

    /// Adds a compressed file.
    pub fn deflate(&mut self, name: &str, bytes: &[u8]) {
        let mut encoder = DeflateEncoder::new(Vec::new(), Compression::default());
        // Writing into memory cannot fail. If it did, the file would be stored uncompressed.
        match encoder.write_all(bytes).and_then(|()| encoder.finish()) {
            Ok(packed) => self.entry(name, DEFLATED, bytes, &packed),
            Err(_) => self.store(name, bytes),
        }
    }

    fn entry(&mut self, name: &str, method: u16, bytes: &[u8], packed: &[u8]) {
        let mut sum = Crc::new();
        sum.update(bytes);
        let offset = self.bytes.len() as u32;
        let mut common = Vec::new();
        for half in [VERSION, 0, method, 0, FIRST_DAY] {
            common.extend(half.to_le_bytes());
        }
        for word in [sum.sum(), packed.len() as u32, bytes.len() as u32] {
            common.extend(word.to_le_bytes());
        }
        common.extend((name.len() as u16).to_le_bytes());
        common.extend(0u16.to_le_bytes());

        self.bytes.extend(b"PK\x03\x04");
        self.bytes.extend(&common);
        self.bytes.extend(name.as_bytes());
        self.bytes.extend(packed);

        self.directory.extend(b"PK\x01\x02");
        self.directory.extend(VERSION.to_le_bytes());
        self.directory.extend(&common);
        // No comment, first disk, no attributes.
        self.directory.extend([0; 10]);
        self.directory.extend(offset.to_le_bytes());
        self.directory.extend(name.as_bytes());
        self.count += 1;
    }

    pub fn finish(mut self) -> Vec<u8> {
        let start = self.bytes.len() as u32;
        self.bytes.extend(&self.directory);
        self.bytes.extend(b"PK\x05\x06");
        self.bytes.extend([0; 4]);
        self.bytes.extend(self.count.to_le_bytes());
        self.bytes.extend(self.count.to_le_bytes());
        self.bytes
            .extend((self.directory.len() as u32).to_le_bytes());
        self.bytes.extend(start.to_le_bytes());
        self.bytes.extend([0; 2]);
        self.bytes
    }
}
