//! The o200k_base tables, read in place from `data/o200k.bin`.
//!
//! There are three tables: the rank of every single byte, the rank of every pair of ranks that
//! merges (a perfect hash), and a class for every character. `examples/build_o200k.rs` writes them
//! and shares this file's layout and hash. Nothing is built or allocated at run time. Ranks fit in
//! 18 bits.

/// The rank of a pair that does not merge.
pub(crate) const NO_MERGE: u32 = u32::MAX;

/// Characters per block of the class table.
pub const BLOCK: usize = 256;

/// The number of blocks that cover Unicode.
pub const BLOCKS: usize = 0x11_0000 / BLOCK;

/// Bytes per slot of the pair table: left, right and rank, 18 bits each.
pub const SLOT: usize = 7;

/// Marks a character that no token combines with only part of a neighbour. In a text of such
/// characters, each one may be merged separately first.
pub const SAFE: u8 = 0x80;

const BYTES_AT: usize = 16;
const CLASSES_AT: usize = BYTES_AT + 256 * 4;

static DATA: &[u8] = include_bytes!("../../data/o200k.bin");

/// Returns the rank of a single byte.
#[inline]
pub(crate) fn byte_rank(byte: u8) -> u32 {
    read_u32(BYTES_AT + usize::from(byte) * 4)
}

/// Returns the class byte of a character: `pieces::Class` and `SAFE`.
#[inline]
pub(crate) fn class_byte(c: char) -> u8 {
    let block = usize::from(DATA[CLASSES_AT + c as usize / BLOCK]);
    DATA[CLASSES_AT + BLOCKS + block * BLOCK + c as usize % BLOCK]
}

/// Returns the rank that two adjacent ranks merge to, or `NO_MERGE`.
#[inline]
pub(crate) fn pair_rank(left: u32, right: u32) -> u32 {
    let layout = layout();
    let hash = pair_hash(left, right);
    let bucket = scale(hash, layout.buckets);
    let at = layout.displacements_at + bucket * 2;
    let displacement = u16::from_le_bytes([DATA[at], DATA[at + 1]]);
    let slot = slot_of(hash, displacement, layout.slots);
    let at = layout.slots_at + slot * SLOT;
    let bytes: [u8; 8] = DATA[at..at + 8].try_into().expect("eight bytes were taken");
    let packed = u64::from_le_bytes(bytes);
    if packed & 0xF_FFFF_FFFF == (u64::from(left) << 18 | u64::from(right)) {
        (packed >> 36) as u32 & 0x3_FFFF
    } else {
        NO_MERGE
    }
}

/// Returns the hash of a pair. Its high bits select the bucket.
#[inline]
pub fn pair_hash(left: u32, right: u32) -> u64 {
    let key = u64::from(left) << 18 | u64::from(right);
    let mixed = key.wrapping_mul(0x9E37_79B9_7F4A_7C15);
    mixed ^ (mixed >> 29)
}

/// Returns the slot of a hash under a displacement.
#[inline]
pub fn slot_of(hash: u64, displacement: u16, slots: usize) -> usize {
    let turned = hash.wrapping_add(u64::from(displacement).wrapping_mul(0xD6E8_FEB8_6659_FD93));
    scale(
        (turned ^ (turned >> 32)).wrapping_mul(0xBF58_476D_1CE4_E5B9),
        slots,
    )
}

/// Maps a hash evenly to `0..size`.
#[inline]
pub fn scale(hash: u64, size: usize) -> usize {
    (((hash >> 32) * size as u64) >> 32) as usize
}

struct Layout {
    buckets: usize,
    slots: usize,
    displacements_at: usize,
    slots_at: usize,
}

/// The header: magic, class blocks, buckets and slots. It is constant, so the compiler folds the
/// reads.
#[inline]
fn layout() -> Layout {
    let buckets = read_u32(8) as usize;
    let slots = read_u32(12) as usize;
    let displacements_at = CLASSES_AT + BLOCKS + read_u32(4) as usize * BLOCK;
    Layout {
        buckets,
        slots,
        displacements_at,
        slots_at: displacements_at + buckets * 2,
    }
}

#[inline]
fn read_u32(at: usize) -> u32 {
    u32::from_le_bytes([DATA[at], DATA[at + 1], DATA[at + 2], DATA[at + 3]])
}
