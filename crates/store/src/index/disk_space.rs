//! Disk space for the file that SQLite maps into memory (`file_index.db-shm`).
//!
//! SQLite extends that file by writing one byte in every 4 KiB, so that the disk has room for it
//! before it is mapped. That does not suffice if blocks are smaller, or if the file system writes a
//! used block to a new location (btrfs): on a full disk, touching the mapping then ends the process
//! with SIGBUS. Therefore, if the disk has little space, an allocation is tried before anything is
//! mapped, and if it fails, the disk is reported as full. If blocks are smaller, the whole file is
//! allocated after that, because the disk may become full later.

use std::fs::File;
use std::io;
use std::path::Path;

use rustix::fs::{FallocateFlags, StatVfs, fallocate, statvfs};

use crate::error::{Result, StoreError};

/// SQLite allocates one byte per this many bytes.
const STEP: u64 = 4 << 10;
/// The size of the first mapping, plus what SQLite writes before it when it creates a database.
const ROOM: u64 = 128 << 10;
/// With this much free space, no allocation is tried: the database writes less before its mapping
/// grows.
const PLENTY: u64 = 32 << 20;

/// Reports a disk without room for the mapped file. Requires the lock of the index.
pub(crate) fn check_before_mapping(quipu: &Path) -> Result<()> {
    match disk_of(quipu) {
        Some(disk) if disk.f_bavail.saturating_mul(disk.f_frsize) < PLENTY => {
            try_room(&quipu.join("index.db-room")).map_err(StoreError::io("cannot open the index"))
        }
        _ => Ok(()),
    }
}

/// Allocates the whole file that SQLite has mapped for a database, if SQLite did not.
pub(crate) fn allocate_mapped(database: &Path) -> Result<()> {
    if disk_of(database).is_none_or(|disk| disk.f_frsize >= STEP) {
        return Ok(());
    }
    let mut mapped = database.as_os_str().to_owned();
    mapped.push("-shm");
    let allocated = File::options().write(true).open(&mapped).and_then(|file| {
        let length = file.metadata()?.len();
        allocate(&file, length)
    });
    match allocated {
        // SQLite maps nothing yet.
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
        other => other.map_err(StoreError::io("cannot open the index")),
    }
}

fn disk_of(path: &Path) -> Option<StatVfs> {
    statvfs(path).ok()
}

/// Allocates space and frees it again. Only an allocation shows how much the file system reserves
/// for itself or for root.
fn try_room(path: &Path) -> io::Result<()> {
    let tried = File::create(path).and_then(|file| allocate(&file, ROOM));
    let removed = match std::fs::remove_file(path) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => Err(error),
        _ => Ok(()),
    };
    tried.and(removed)
}

fn allocate(file: &File, length: u64) -> io::Result<()> {
    match fallocate(file, FallocateFlags::KEEP_SIZE, 0, length.max(1)) {
        // This file system does not support allocation.
        Err(rustix::io::Errno::OPNOTSUPP | rustix::io::Errno::NOSYS) => Ok(()),
        other => Ok(other?),
    }
}
