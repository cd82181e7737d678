//! A kernel lock between processes and threads.
//!
//! The kernel releases it when its holder dies, however it dies. Waiting is bounded and a wait that
//! ends in vain names the holder.

use std::fs::{File, TryLockError};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, OnceLock, PoisonError};
use std::time::Duration;

use crate::error::{Result, StoreError};

pub(crate) struct KernelLock {
    path: PathBuf,
    file: OnceLock<File>,
    /// Threads of this process queue here: a kernel lock belongs to the open file they share.
    queue: Mutex<()>,
    wait: Duration,
}

#[must_use = "the lock is held until this is dropped"]
pub(crate) struct Held<'l> {
    lock: &'l KernelLock,
    /// Held through a file of its own if it had to be waited for; closing that file releases it.
    waited: Option<File>,
    _queue: MutexGuard<'l, ()>,
}

impl Drop for Held<'_> {
    fn drop(&mut self) {
        if self.waited.is_none() {
            let _ = self.lock.file.get().map(File::unlock);
        }
    }
}

/// How a wait stands: agreed on under a mutex, so that a lock that arrives late is given back.
enum Wait {
    Waiting,
    GivenUp,
    Locked(std::io::Result<File>),
}

impl KernelLock {
    /// The file is opened when the lock is first wanted: reading needs none.
    pub fn new(path: PathBuf, wait: Duration) -> KernelLock {
        KernelLock { path, file: OnceLock::new(), queue: Mutex::new(()), wait }
    }

    pub fn acquire(&self) -> Result<Held<'_>> {
        let queue = self.queue.lock().unwrap_or_else(PoisonError::into_inner);
        let file = match self.file.get() {
            Some(file) => file,
            None => {
                let opened = open(&self.path)?;
                self.file.get_or_init(|| opened)
            }
        };
        let waited = match file.try_lock() {
            Ok(()) => None,
            Err(TryLockError::WouldBlock) => Some(self.wait_for_it()?),
            Err(TryLockError::Error(error)) => return Err(StoreError::io("cannot lock")(error)),
        };
        Ok(Held { lock: self, waited, _queue: queue })
    }

    /// Blocks in the kernel, on a thread of its own so that the wait can be given up.
    fn wait_for_it(&self) -> Result<File> {
        let file = open(&self.path)?;
        let shared = Arc::new((Mutex::new(Wait::Waiting), Condvar::new()));
        let theirs = Arc::clone(&shared);
        std::thread::spawn(move || {
            let locked = file.lock().map(|()| file);
            let (state, changed) = &*theirs;
            let mut state = state.lock().unwrap_or_else(PoisonError::into_inner);
            if let Wait::Waiting = *state {
                *state = Wait::Locked(locked);
                changed.notify_one();
            }
        });
        let (state, changed) = &*shared;
        let state = state.lock().unwrap_or_else(PoisonError::into_inner);
        let (mut state, _) =
            changed.wait_timeout_while(state, self.wait, |s| matches!(s, Wait::Waiting)).unwrap_or_else(PoisonError::into_inner);
        match std::mem::replace(&mut *state, Wait::GivenUp) {
            Wait::Locked(locked) => locked.map_err(StoreError::io("cannot lock")),
            Wait::Waiting | Wait::GivenUp => Err(StoreError::Busy {
                lock: self.path.file_name().map(|n| n.to_string_lossy().into_owned()).unwrap_or_default(),
                holder: self.file.get().and_then(holder).unwrap_or_else(|| "another process".into()),
                seconds: self.wait.as_secs(),
            }),
        }
    }
}

fn open(path: &Path) -> Result<File> {
    let opened = File::options().create(true).truncate(false).read(true).write(true).open(path);
    opened.map_err(StoreError::io(format!("cannot open the lock `{}`", path.display())))
}

/// The process that holds a lock, as the kernel knows it.
fn holder(file: &File) -> Option<String> {
    use std::os::unix::fs::MetadataExt;
    let inode = file.metadata().ok()?.ino().to_string();
    let locks = std::fs::read_to_string("/proc/locks").ok()?;
    let me = std::process::id().to_string();
    for line in locks.lines() {
        // 1: FLOCK  ADVISORY  WRITE 4242 fe:00:131342 0 EOF
        let fields: Vec<&str> = line.split_whitespace().collect();
        let &[_, "FLOCK", _, _, pid, place, ..] = fields.as_slice() else { continue };
        if place.rsplit(':').next() != Some(inode.as_str()) || pid == me {
            continue;
        }
        let command = std::fs::read(format!("/proc/{pid}/cmdline")).unwrap_or_default();
        let command = String::from_utf8_lossy(&command).replace('\0', " ");
        return Some(format!("process {pid} ({})", command.trim()));
    }
    None
}
