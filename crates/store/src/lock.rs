//! A kernel lock (`flock`) between processes and threads.
//!
//! The kernel releases the lock when its holder dies for any reason. Waiting is bounded, and the
//! error after a timeout names the holder.

use std::fs::{File, TryLockError};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Condvar, Mutex, PoisonError};
use std::time::{Duration, Instant};

use crate::disk::is_deleted;
use crate::error::{Result, StoreError, Unwritable};

/// How often a lock is tried before blocking: first after yielding to other processes, then after
/// sleeping.
const YIELDS: u32 = 16;
const NAPS: u32 = 50;
const NAP: Duration = Duration::from_micros(100);
/// How often a waiter that blocks in the kernel checks whether it still needs the lock.
const LOOK: Duration = Duration::from_millis(1);

pub(crate) struct KernelLock {
    path: PathBuf,
    /// Threads of this process queue here: a kernel lock belongs to the open file that they share.
    queue: Mutex<Queue>,
    freed: Condvar,
    wait: Duration,
    yields: u32,
    /// The reason for refusing the lock, if nothing may be written.
    barred: Option<Unwritable>,
}

#[derive(Default)]
struct Queue {
    taken: bool,
    /// The number of waiting threads. If it is zero, a release needs no system call.
    waiting: usize,
    file: Option<Arc<File>>,
}

#[must_use = "the lock is held until this is dropped"]
pub(crate) struct Held<'l> {
    lock: &'l KernelLock,
    /// The separate file that holds the lock, if the lock had to be waited for. Closing it releases
    /// the lock.
    file: Option<Arc<File>>,
}

impl Drop for Held<'_> {
    fn drop(&mut self) {
        if let Some(file) = self.file.take() {
            let _ = file.unlock();
        }
        self.lock.leave();
    }
}

/// The state of a wait. It changes under a mutex, so that a lock that arrives late is released.
enum Wait {
    Waiting,
    GivenUp,
    Locked(std::io::Result<File>),
}

impl KernelLock {
    /// The file is opened when the lock is first acquired: reading needs no lock.
    pub fn new(path: PathBuf, wait: Duration) -> KernelLock {
        KernelLock {
            path,
            queue: Mutex::default(),
            freed: Condvar::new(),
            wait,
            yields: YIELDS,
            barred: None,
        }
    }

    /// For a lock that is held during a disk sync. A waiter that retried at once would take the
    /// lock before other writers could add records for the next sync.
    pub fn unhurried(self) -> KernelLock {
        KernelLock { yields: 0, ..self }
    }

    /// Makes every attempt to acquire the lock fail with this reason.
    pub fn barred(self, why: Option<Unwritable>) -> KernelLock {
        KernelLock {
            barred: why,
            ..self
        }
    }

    pub fn acquire(&self) -> Result<Held<'_>> {
        loop {
            if let Some(held) = self.acquire_unless(&|| false)? {
                return Ok(held);
            }
        }
    }

    /// Waits for the lock, or until it is no longer needed: another holder may do the work of all
    /// waiters.
    pub fn acquire_unless(&self, done: &dyn Fn() -> bool) -> Result<Option<Held<'_>>> {
        if let Some(why) = &self.barred {
            return Err(why.clone().into());
        }
        let mut queue = self.queue.lock().unwrap_or_else(PoisonError::into_inner);
        let alone = !queue.taken;
        queue.waiting += 1;
        let (mut queue, waited) = self
            .freed
            .wait_timeout_while(queue, self.wait, |q| q.taken)
            .unwrap_or_else(PoisonError::into_inner);
        queue.waiting -= 1;
        if waited.timed_out() && queue.taken {
            return Err(self.busy("this process itself".into()));
        }
        queue.taken = true;
        drop(queue);
        // From here on, dropping `held` releases the place in the queue.
        let mut held = Held {
            lock: self,
            file: None,
        };
        if !alone && done() {
            return Ok(None);
        }
        let file = self.file()?;
        held.file = match try_soon(&file, self.yields, done)? {
            Tried::Locked => Some(file),
            Tried::Done => None,
            Tried::Taken => self.wait_for_it(&file, done)?.map(Arc::new),
        };
        Ok(held.file.is_some().then_some(held))
    }

    /// The locked file. Only for the thread that has the place in the queue.
    fn file(&self) -> Result<Arc<File>> {
        let known = self
            .queue
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .file
            .clone();
        // A lock on a deleted file excludes nobody.
        if let Some(file) = known.filter(|file| !is_deleted(file)) {
            return Ok(file);
        }
        let opened = Arc::new(open(&self.path)?);
        self.queue
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .file = Some(Arc::clone(&opened));
        Ok(opened)
    }

    fn leave(&self) {
        let mut queue = self.queue.lock().unwrap_or_else(PoisonError::into_inner);
        queue.taken = false;
        if queue.waiting > 0 {
            self.freed.notify_one();
        }
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

    /// Blocks in the kernel, on a separate thread, so that the wait can be abandoned.
    fn wait_for_it(&self, known: &File, done: &dyn Fn() -> bool) -> Result<Option<File>> {
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
        let mut state = state.lock().unwrap_or_else(PoisonError::into_inner);
        let until = Instant::now() + self.wait;
        let mut needless = false;
        while matches!(*state, Wait::Waiting) && !needless && Instant::now() < until {
            (state, _) = changed
                .wait_timeout(state, LOOK)
                .unwrap_or_else(PoisonError::into_inner);
            needless = matches!(*state, Wait::Waiting) && done();
        }
        match std::mem::replace(&mut *state, Wait::GivenUp) {
            Wait::Locked(locked) => locked.map(Some).map_err(StoreError::io("cannot lock")),
            Wait::Waiting | Wait::GivenUp if needless => Ok(None),
            Wait::Waiting | Wait::GivenUp => {
                Err(self.busy(holder(known).unwrap_or_else(|| "another process".into())))
            }
        }
    }
}

/// The result of a first attempt.
enum Tried {
    Locked,
    /// It is no longer needed.
    Done,
    Taken,
}

/// Tries for a short time. The lock is held for microseconds, so most waits end here. A longer wait
/// needs a thread, because it must be possible to abandon it.
fn try_soon(file: &File, yields: u32, done: &dyn Fn() -> bool) -> Result<Tried> {
    for tried in 0..yields + NAPS {
        // The lock may no longer be needed after a wait.
        if tried > 0 && done() {
            return Ok(Tried::Done);
        }
        match file.try_lock() {
            Ok(()) => return Ok(Tried::Locked),
            Err(TryLockError::WouldBlock) if tried < yields => std::thread::yield_now(),
            Err(TryLockError::WouldBlock) => std::thread::sleep(NAP),
            Err(TryLockError::Error(error)) => return Err(StoreError::io("cannot lock")(error)),
        }
    }
    Ok(Tried::Taken)
}

fn open(path: &Path) -> Result<File> {
    let opened = File::options()
        .create(true)
        .truncate(false)
        .read(true)
        .write(true)
        .open(path);
    opened.map_err(StoreError::io(format!(
        "cannot open the lock `{}`",
        path.display()
    )))
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
        if place.rsplit(':').next() != Some(inode.as_str()) || pid == me {
            continue;
        }
        let command = std::fs::read(format!("/proc/{pid}/cmdline")).unwrap_or_default();
        let command = String::from_utf8_lossy(&command).replace('\0', " ");
        return Some(format!("process {pid} ({})", command.trim()));
    }
    None
}
