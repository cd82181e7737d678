//! A kernel lock between processes and threads.
//!
//! The kernel releases it when its holder dies, however it dies. Waiting is bounded and a wait that
//! ends in vain names the holder.

use std::fs::{File, TryLockError};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Condvar, Mutex, PoisonError};
use std::time::{Duration, Instant};

use crate::disk::is_deleted;
use crate::error::{Result, StoreError, Unwritable};

/// How a lock is tried for before it is waited for: so many times after letting others run, so many
/// times after a nap.
const YIELDS: u32 = 16;
const NAPS: u32 = 50;
const NAP: Duration = Duration::from_micros(100);
/// How often whoever waits in the kernel asks whether the lock is still needed.
const LOOK: Duration = Duration::from_millis(1);

pub(crate) struct KernelLock {
    path: PathBuf,
    /// Threads of this process queue here: a kernel lock belongs to the open file they share.
    queue: Mutex<Queue>,
    freed: Condvar,
    wait: Duration,
    yields: u32,
    /// Why it cannot be had, if nothing is to be written.
    barred: Option<Unwritable>,
}

#[derive(Default)]
struct Queue {
    taken: bool,
    /// Threads that wait: without any, giving the lock back costs no call of the kernel.
    waiting: usize,
    file: Option<Arc<File>>,
}

#[must_use = "the lock is held until this is dropped"]
pub(crate) struct Held<'l> {
    lock: &'l KernelLock,
    /// Held through a file of its own if it had to be waited for; closing that file releases it.
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

/// How a wait stands: agreed on under a mutex, so that a lock that arrives late is given back.
enum Wait {
    Waiting,
    GivenUp,
    Locked(std::io::Result<File>),
}

impl KernelLock {
    /// The file is opened when the lock is first wanted: reading needs none.
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

    /// For a lock whose holder waits for the disk: whoever tries again and again would take it
    /// before those who have just been served could add what the next sync might carry as well.
    pub fn unhurried(self) -> KernelLock {
        KernelLock { yields: 0, ..self }
    }

    /// Whoever wants it is told why it cannot be had.
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
    /// who wait.
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
        // From here on the place in the queue is given up again, however this ends.
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

    /// The file that is locked, for whoever has the place in the queue.
    fn file(&self) -> Result<Arc<File>> {
        let known = self
            .queue
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .file
            .clone();
        // A lock on a file that no one else can find any more excludes no one.
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

    /// Blocks in the kernel, on a thread of its own so that the wait can be given up.
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

/// How a first try ended.
enum Tried {
    Locked,
    /// It is no longer needed.
    Done,
    Taken,
}

/// Tries for a moment. The lock is held for microseconds, so that most waits end here; one that
/// does not must be able to end in vain, which costs a thread.
fn try_soon(file: &File, yields: u32, done: &dyn Fn() -> bool) -> Result<Tried> {
    for tried in 0..yields + NAPS {
        // Whoever has waited may have been served by now.
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

/// The process that holds a lock, as the kernel knows it.
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
