//! A kernel lock (`flock`) between processes and threads.
//!
//! The kernel releases the lock when its holder dies for any reason. Waiting is bounded, and the
//! error after a timeout names the holder.

use std::fs::{File, TryLockError};
use std::path::PathBuf;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use crate::error::{Result, StoreError, Unwritable};
use crate::files::disk::is_deleted;

/// How often a lock is tried: first after yielding to other processes, then after short sleeps, and
/// then after longer ones. Locks are held for microseconds, so most waits end early.
const YIELDS: u32 = 16;
const NAPS: u32 = 50;
const NAP: Duration = Duration::from_micros(100);
const LONG_NAP: Duration = Duration::from_millis(1);

pub(crate) struct KernelLock {
    path: PathBuf,
    wait: Duration,
    /// The reason for refusing the lock, if nothing may be written.
    barred: Option<Unwritable>,
}

#[must_use = "the lock is held until this is dropped"]
pub(crate) struct Held(File);

impl Drop for Held {
    fn drop(&mut self) {
        // Closing the file is not enough: a program that another thread is starting has it, too.
        let _ = self.0.unlock();
    }
}

impl KernelLock {
    /// With a reason why nothing may be written, every attempt to acquire the lock fails with it.
    pub fn new(path: PathBuf, wait: Duration, barred: Option<Unwritable>) -> KernelLock {
        KernelLock { path, wait, barred }
    }

    pub fn acquire(&self) -> Result<Held> {
        loop {
            if let Some(held) = self.acquire_after(YIELDS, &|| false)? {
                return Ok(held);
            }
        }
    }

    /// Waits for a lock that is held during a disk sync, or until it is no longer needed: another
    /// holder may do the work of all waiters. A waiter that retried at once would take the lock
    /// before other writers could add records for the next sync.
    pub fn acquire_unless(&self, done: &dyn Fn() -> bool) -> Result<Option<Held>> {
        self.acquire_after(0, done)
    }

    fn acquire_after(&self, yields: u32, done: &dyn Fn() -> bool) -> Result<Option<Held>> {
        loop {
            let file = self.open()?;
            if !self.try_until_locked(&file, yields, done)? {
                return Ok(None);
            }
            // A file that was deleted during the wait excludes nobody.
            if !is_deleted(&file) {
                return Ok(Some(Held(file)));
            }
        }
    }

    /// A kernel lock belongs to the open file. Each attempt opens one of its own, so that threads
    /// of one process exclude each other as processes do.
    fn open(&self) -> Result<File> {
        if let Some(why) = &self.barred {
            return Err(why.clone().into());
        }
        let opened = File::options()
            .create(true)
            .truncate(false)
            .read(true)
            .write(true)
            .open(&self.path);
        opened.map_err(StoreError::io(format!(
            "cannot open the lock `{}`",
            self.path.display()
        )))
    }

    fn busy(&self, holder: String) -> StoreError {
        StoreError::Busy {
            lock: self
                .path
                .file_name()
                .map(|n| n.to_string_lossy().into_owned())
                .unwrap_or_default(),
            holder,
            seconds: self.wait.as_secs(),
        }
    }

    /// True once the lock is held, false if it is no longer needed.
    fn try_until_locked(&self, file: &File, yields: u32, done: &dyn Fn() -> bool) -> Result<bool> {
        let until = Instant::now() + self.wait;
        for tried in 0.. {
            // The lock may no longer be needed after a wait.
            if tried > 0 && done() {
                return Ok(false);
            }
            match file.try_lock() {
                Ok(()) => return Ok(true),
                Err(TryLockError::Error(error)) => {
                    return Err(StoreError::io("cannot lock")(error));
                }
                Err(TryLockError::WouldBlock) if Instant::now() >= until => break,
                Err(TryLockError::WouldBlock) if tried < yields => std::thread::yield_now(),
                Err(TryLockError::WouldBlock) if tried < yields + NAPS => {
                    std::thread::sleep(NAP);
                }
                Err(TryLockError::WouldBlock) => std::thread::sleep(LONG_NAP),
            }
        }
        Err(self.busy(holder(file).unwrap_or_else(|| "another process".into())))
    }
}

/// Locks a mutex. A thread that panicked leaves values that are replaced whole, so they stay valid.
pub(crate) fn locked<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// The process that holds a lock, according to the kernel.
fn holder(file: &File) -> Option<String> {
    use std::os::unix::fs::MetadataExt;
    let inode = file.metadata().ok()?.ino().to_string();
    let locks = std::fs::read_to_string("/proc/locks").ok()?;
    let me = std::process::id().to_string();
    for line in locks.lines() {
        // 1: FLOCK  ADVISORY  WRITE 4242 fe:00:131342 0 EOF
        let fields: Vec<&str> = line.split_whitespace().collect();
        let &[_, "FLOCK", _, _, pid, place, ..] = fields.as_slice() else {
            continue;
        };
        if place.rsplit(':').next() != Some(inode.as_str()) {
            continue;
        }
        if pid == me {
            return Some("this process itself".into());
        }
        let command = std::fs::read(format!("/proc/{pid}/cmdline")).unwrap_or_default();
        let command = String::from_utf8_lossy(&command).replace('\0', " ");
        return Some(format!("process {pid} ({})", command.trim()));
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_lock_deleted_while_one_waits_has_one_holder() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("lock");
        let lock = KernelLock::new(path.clone(), Duration::from_secs(60), None);
        let first = lock.acquire().unwrap();
        std::thread::scope(|scope| {
            let waiter = scope.spawn(|| lock.acquire().map(drop));
            // Long enough that the waiter has opened the file.
            std::thread::sleep(Duration::from_millis(100));
            std::fs::remove_file(&path).unwrap();
            let second = lock.acquire().unwrap();
            drop(first);
            std::thread::sleep(Duration::from_millis(100));
            assert!(!waiter.is_finished(), "two hold the lock");
            drop(second);
            waiter.join().unwrap().unwrap();
        });
    }
}
