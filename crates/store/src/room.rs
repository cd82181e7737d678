//! Room for the file that SQLite maps into memory (`heads.db-shm`).
//!
//! SQLite extends that file by writing one byte in every 4 KiB, so that the disk has room for it
//! before it is mapped. Where blocks are smaller, or where a block in use is written to another
//! place (btrfs), that does not suffice: on a full disk, touching the mapping ends the process with
//! SIGBUS. So on a disk with little room, the room is tried before anything is mapped, and a disk
//! without it is reported as full. Where blocks are smaller, the whole file is allocated after
//! that: the disk may become full later.

use std::fs::File;
use std::io;
use std::path::Path;

use rustix::fs::{FallocateFlags, StatVfs, fallocate, statvfs};

use crate::error::{Result, StoreError};

/// SQLite allocates once in so many bytes.
const STEP: u64 = 4 << 10;
/// What it maps at first, and what it writes before that when it makes a database.
const ROOM: u64 = 128 << 10;
/// With so much free, the room is not tried: more than the database writes before its mapping
/// grows.
const PLENTY: u64 = 32 << 20;

/// Reports a disk that has no room for the mapped file. Only under the lock of the index.
pub(crate) fn check_before_mapping(quipu: &Path) -> Result<()> {
    match disk_of(quipu) {
        Some(disk) if disk.f_bavail.saturating_mul(disk.f_frsize) < PLENTY => {
            try_room(&quipu.join("heads.db-room")).map_err(StoreError::io("cannot open the index"))
        }
        _ => Ok(()),
    }
}

/// Allocates all of the file that SQLite has mapped for a database, if it did not do so itself.
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

/// Allocates room and gives it back. What a file system keeps back for itself or for root is not
/// known otherwise.
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
        // A file system that allocates nothing ahead.
        Err(rustix::io::Errno::OPNOTSUPP | rustix::io::Errno::NOSYS) => Ok(()),
        other => Ok(other?),
    }
}
