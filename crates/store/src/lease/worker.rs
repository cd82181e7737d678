//! Worker registrations: which workers run on a project, on which host, and what each of them has
//! claimed.
//!
//! A registration describes the present, so it is stored beside the journal and never in it. On one
//! machine it consists of two files under `.quipu/workers/`: the worker's description of itself,
//! and a kernel lock that is released when its process ends for any reason. With a shared log there
//! is also a row, which a heartbeat renews every few seconds. A claim names its lease before the
//! lease is taken, so that exactly the leases of a dead worker can be released.

use std::fs::File;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, MutexGuard};

use quipu_contract::Actor;
use serde::{Deserialize, Serialize};

use crate::clock::render_second;
use crate::error::{Result, StoreError};
use crate::journal::lease::Lease;
use crate::lock::locked;
use crate::replica::commit_log::WorkerReport;
use crate::store::Store;

/// A worker on another machine that sends no heartbeat for this long is considered dead. The shared
/// log lets others release its leases after the same time.
const SILENCE_MS: u64 = 10_000;

/// A job that a worker has claimed.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Claim {
    /// The lease for the claim, taken or about to be taken.
    pub lease: String,
    pub step: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub unit: Option<String>,
    pub since: String,
}

/// A worker's description of itself.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Worker {
    pub id: String,
    pub host: String,
    pub process: u32,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub agent: Option<String>,
    /// How many jobs it runs at the same time.
    pub jobs: usize,
    pub since: String,
    #[serde(default)]
    pub claims: Vec<Claim>,
}

/// A registered worker as others see it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct RegisteredWorker {
    #[serde(flatten)]
    pub worker: Worker,
    /// When it was last known to be alive.
    pub seen: String,
    pub alive: bool,
}

/// The registration of a worker while it works. Dropping it unregisters the worker, unless a lease
/// that it claimed could not be released.
pub struct WorkerRegistration<'s> {
    store: &'s Store,
    worker: Mutex<Worker>,
    /// Leases in an unknown state: a call for them failed halfway.
    doubts: Mutex<Vec<String>>,
    /// Held, never read: the kernel releases it with the process.
    lock_file: Mutex<Option<File>>,
}

impl Store {
    /// Registers this process as a worker.
    pub fn register_worker(
        &self,
        agent: Option<&str>,
        jobs: usize,
    ) -> Result<WorkerRegistration<'_>> {
        let worker = Worker {
            id: crate::ident::short_id(),
            host: host_name(),
            process: std::process::id(),
            agent: agent.map(str::to_owned),
            jobs,
            since: render_second(self.settings.now().wall_us),
            claims: Vec::new(),
        };
        let registration = WorkerRegistration {
            store: self,
            worker: Mutex::new(worker),
            doubts: Mutex::default(),
            lock_file: Mutex::new(None),
        };
        registration.write()?;
        match registration.heartbeat() {
            // If the server does not answer, a later heartbeat registers it.
            Ok(()) | Err(StoreError::Unreachable { .. }) => Ok(registration),
            Err(error) => Err(error),
        }
    }

    /// All workers of this project, including dead ones that are not cleared yet, oldest first.
    pub fn registered(&self) -> Result<Vec<RegisteredWorker>> {
        let mut found = match self.commit_log() {
            Some(commit_log) => self.registered_elsewhere(&commit_log.workers()?),
            None => self.registered_here(),
        };
        found.sort_by(|a, b| (&a.worker.since, &a.worker.id).cmp(&(&b.worker.since, &b.worker.id)));
        Ok(found)
    }

    fn registered_here(&self) -> Vec<RegisteredWorker> {
        let mut found = Vec::new();
        for entry in std::fs::read_dir(self.registrations())
            .into_iter()
            .flatten()
            .flatten()
        {
            let path = entry.path();
            if path.extension().is_none_or(|e| e != "json") {
                continue;
            }
            // A worker may unregister at this moment.
            let Ok(text) = crate::files::regular_file::read_regular_text(&path) else {
                continue;
            };
            let Ok(worker) = serde_json::from_str::<Worker>(&text) else {
                continue;
            };
            let alive = is_held(&path.with_extension("lock"));
            let written = std::fs::metadata(&path)
                .and_then(|m| m.modified())
                .ok()
                .and_then(|at| jiff::Timestamp::try_from(at).ok());
            let written =
                written.map_or(self.settings.now().wall_us, jiff::Timestamp::as_microsecond);
            let seen = render_second(if alive {
                self.settings.now().wall_us
            } else {
                written
            });
            found.push(RegisteredWorker {
                worker,
                seen,
                alive,
            });
        }
        found
    }

    fn registered_elsewhere(&self, rows: &[WorkerReport]) -> Vec<RegisteredWorker> {
        let now = self.replica.lease_now().wall_us;
        let registered = |report: &WorkerReport| {
            let worker: Worker = serde_json::from_value(report.says.clone())
                .ok()
                .filter(|w: &Worker| w.id == report.name)?;
            // On this machine the kernel lock shows it at once.
            let lock_file = self.registrations().join(format!("{}.lock", worker.id));
            let died_here = lock_file.exists() && !is_held(&lock_file);
            let seen = render_second(now - i64::try_from(report.silent_ms * 1000).unwrap_or(0));
            Some(RegisteredWorker {
                worker,
                seen,
                alive: report.silent_ms < SILENCE_MS && !died_here,
            })
        };
        rows.iter().filter_map(registered).collect()
    }

    fn registrations(&self) -> PathBuf {
        self.quipu().join("workers")
    }

    fn clear_registration(&self, id: &str) {
        if let Some(commit_log) = self.commit_log() {
            // A row that remains only lists a dead worker.
            let _ = commit_log.leave(id);
        }
        for end in ["json", "lock"] {
            let _ = std::fs::remove_file(self.registrations().join(format!("{id}.{end}")));
        }
    }
}

impl WorkerRegistration<'_> {
    pub fn id(&self) -> String {
        self.now().id.clone()
    }

    /// Registers a claim with the id of its lease, before the lease is taken.
    pub fn claim(&self, step: &str, unit: Option<&str>) -> Result<String> {
        let lease = crate::ident::short_id();
        let since = render_second(self.store.settings.now().wall_us);
        let claim = Claim {
            lease: lease.clone(),
            step: step.to_owned(),
            unit: unit.map(str::to_owned),
            since,
        };
        self.now().claims.push(claim);
        if let Err(error) = self.write().and_then(|()| self.heartbeat()) {
            self.now().claims.retain(|c| c.lease != lease);
            return Err(error);
        }
        Ok(lease)
    }

    /// Ends a claim; its lease was released or never taken.
    pub fn unclaim(&self, lease: &str) -> Result<()> {
        self.now().claims.retain(|c| c.lease != lease);
        // A late update of the row does no harm: the lease has ended.
        let _ = self.heartbeat();
        self.write()
    }

    /// Sends a heartbeat to other machines. Does nothing without a shared log.
    pub fn heartbeat(&self) -> Result<()> {
        let Some(commit_log) = self.store.commit_log() else {
            return Ok(());
        };
        let worker = self.now().clone();
        commit_log.heartbeat(
            &worker.id,
            &serde_json::to_value(&worker).expect("a worker has only strings and numbers"),
        )
    }

    /// Marks the lease of a claim as uncertain: it could be neither taken nor released for sure.
    pub fn doubt(&self, lease: &str) {
        locked(&self.doubts).push(lease.to_owned());
    }

    /// Releases the leases of dead workers and clears their registrations, and releases this
    /// worker's uncertain leases. Returns the leases of the dead.
    pub fn hand_back(&self) -> Result<Vec<Lease>> {
        let store = self.store;
        let dead: Vec<Worker> = store
            .registered()?
            .into_iter()
            .filter(|s| !s.alive)
            .map(|s| s.worker)
            .collect();
        let doubts = locked(&self.doubts).clone();
        if dead.is_empty() && doubts.is_empty() {
            return Ok(Vec::new());
        }
        if let Some(commit_log) = store.commit_log() {
            // A request that a worker sent just before it died may still arrive. From here on the
            // log refuses it; what it accepted before is here after the sync.
            for worker in &dead {
                commit_log.leave(&worker.id)?;
            }
            store.sync()?;
        }
        let leases = store.leases()?;
        for id in doubts {
            self.release_claimed(&leases, &id)?;
            locked(&self.doubts).retain(|d| *d != id);
            self.unclaim(&id)?;
        }
        let mut given_back = Vec::new();
        for worker in &dead {
            for claim in &worker.claims {
                given_back.extend(self.release_claimed(&leases, &claim.lease)?);
            }
            store.clear_registration(&worker.id);
        }
        Ok(given_back)
    }

    /// Releases a lease, unless it was never taken or another process released it first.
    fn release_claimed(&self, leases: &[Lease], id: &str) -> Result<Option<Lease>> {
        let Some(lease) = leases.iter().find(|l| l.id == id) else {
            return Ok(None);
        };
        let fence = Some(lease.fence);
        match self.store.release_lease(&Actor::Runtime, &lease.id, fence) {
            Ok(_) => Ok(Some(lease.clone())),
            Err(StoreError::NotFound { .. } | StoreError::LeaseLost { .. }) => Ok(None),
            Err(error) => Err(error),
        }
    }

    fn now(&self) -> MutexGuard<'_, Worker> {
        locked(&self.worker)
    }

    /// Writes this worker's description. The lock is taken first, so that nobody considers a new
    /// worker dead.
    fn write(&self) -> Result<()> {
        let worker = self.now();
        let folder = self.store.registrations();
        let place = |end: &str| folder.join(format!("{}.{end}", worker.id));
        let fail = || StoreError::io("cannot register a worker in `.quipu/workers`");
        let mut lock_file = locked(&self.lock_file);
        if lock_file.is_none() || !place("lock").exists() {
            std::fs::create_dir_all(&folder).map_err(fail())?;
            let lock = File::create(place("new")).map_err(fail())?;
            lock.lock().map_err(fail())?;
            std::fs::rename(place("new"), place("lock")).map_err(fail())?;
            *lock_file = Some(lock);
        }
        let text = serde_json::to_string(&*worker).expect("a worker has only strings and numbers");
        std::fs::write(place("written"), text).map_err(fail())?;
        std::fs::rename(place("written"), place("json")).map_err(fail())
    }
}

impl Drop for WorkerRegistration<'_> {
    fn drop(&mut self) {
        // A claim that is left could not be released. The next worker finds it among the dead.
        if self.now().claims.is_empty() {
            let id = self.id();
            self.store.clear_registration(&id);
        }
    }
}

/// If the lock can be shared, nobody holds it.
fn is_held(path: &Path) -> bool {
    crate::files::regular_file::open_regular(path)
        .is_ok_and(|lock_file| lock_file.try_lock_shared().is_err())
}

fn host_name() -> String {
    let name = std::fs::read_to_string("/proc/sys/kernel/hostname").unwrap_or_default();
    let name = name.trim();
    if name.is_empty() {
        "this machine".into()
    } else {
        name.to_owned()
    }
}
