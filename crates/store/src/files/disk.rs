//! The write steps of the store, each of which a test can stop.
//!
//! Everything that the store makes durable or visible happens in one of these steps. A [`Watch`] is
//! called before each step. It can stop the step, or let only the first bytes through, as a crash
//! would. Without a watch, a step costs nothing.

use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt;
use std::sync::Arc;

/// A step that changes the disk.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Step {
    SegmentCreate,
    SegmentFill,
    JournalWrite,
    JournalErase,
    JournalSync,
    LiveWrite,
    TempWrite,
    Exchange,
    Place,
    Append,
    Reorder,
    Remove,
    /// A file was taken out of the tree and will be inspected.
    TakenOut,
    MakeFolder,
    HeadsCommit,
    SegmentCompress,
}

/// The decision of a watch about a step.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum StepVerdict {
    Go,
    /// The power fails: neither this step nor any later one happens.
    Stop,
    /// The power fails after this many bytes.
    Torn(usize),
    /// The step fails and the program continues: a full disk.
    Fail,
    /// The disk returns an I/O error, and the program continues.
    Refused,
}

pub trait Watch: Send + Sync {
    fn before(&self, step: Step, bytes: usize) -> StepVerdict;
}

/// The disk as the store sees it.
#[derive(Clone, Default)]
pub(crate) struct Disk {
    watch: Option<Arc<dyn Watch>>,
}

impl Disk {
    pub fn new(watch: Option<Arc<dyn Watch>>) -> Disk {
        Disk { watch }
    }

    /// Checks with the watch before a step that is all or nothing.
    pub fn step(&self, step: Step) -> io::Result<()> {
        self.allowed(step, 0).map(drop)
    }

    /// Writes at an offset, or as many bytes as the watch lets through.
    pub fn write_at(&self, step: Step, file: &File, bytes: &[u8], offset: u64) -> io::Result<()> {
        let let_through = self.allowed(step, bytes.len())?;
        file.write_all_at(&bytes[..let_through], offset)?;
        whole(let_through, bytes)
    }

    /// Writes at the end.
    pub fn write_end(&self, step: Step, mut file: &File, bytes: &[u8]) -> io::Result<()> {
        let let_through = self.allowed(step, bytes.len())?;
        io::Write::write_all(&mut file, &bytes[..let_through])?;
        whole(let_through, bytes)
    }

    /// How many bytes of a step the watch lets through.
    fn allowed(&self, step: Step, length: usize) -> io::Result<usize> {
        let Some(watch) = &self.watch else {
            return Ok(length);
        };
        match watch.before(step, length) {
            StepVerdict::Go => Ok(length),
            StepVerdict::Torn(some) if length > 0 => Ok(some.min(length - 1)),
            StepVerdict::Fail => Err(io::Error::from(io::ErrorKind::StorageFull)),
            StepVerdict::Refused => Err(rustix::io::Errno::IO.into()),
            StepVerdict::Stop | StepVerdict::Torn(_) => Err(stopped()),
        }
    }
}

fn whole(let_through: usize, bytes: &[u8]) -> io::Result<()> {
    if let_through < bytes.len() {
        Err(stopped())
    } else {
        Ok(())
    }
}

/// Whether a file has no name any more. Its times are not requested: a request makes the kernel
/// give the next write a time of its own, and then the sync has to write the inode as well.
pub(crate) fn is_deleted(file: &File) -> bool {
    use rustix::fs::{AtFlags, StatxFlags, statx};
    statx(file, "", AtFlags::EMPTY_PATH, StatxFlags::NLINK).map_or(true, |stat| stat.stx_nlink == 0)
}

fn stopped() -> io::Error {
    io::Error::other("stopped by a watch")
}
