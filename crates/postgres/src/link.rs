//! A connection that opens on first use and reconnects when it breaks.
//!
//! Every call may run twice, because a retry sends a commit again with the same id. Retries are
//! bounded, and the user is notified once that a call is waiting.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};
use std::time::{Duration, Instant};

use quipu_store::{StoreError, WaitPolicy};
use tokio::runtime::Runtime;
use tokio::sync::Notify;
use tokio_postgres::error::SqlState;
use tokio_postgres::{AsyncMessage, Client, NoTls, Statement};

use crate::address::{Address, Tls};
use crate::tls::connector;

/// How long a writer waits for a server that does not answer. `wait=` in the address and
/// `QUIPU_STORE_WAIT` override it.
const WAIT_SECONDS: u64 = 30;
/// The timeout of one answer: a commit queues behind other commits of its project.
const ANSWER: Duration = Duration::from_secs(15);
/// The timeout for calls that only read.
const QUICK_ANSWER: Duration = Duration::from_secs(4);
/// The timeout for calls that nobody waits for.
const INSTANT_ANSWER: Duration = Duration::from_millis(300);
/// After a failure, readers do not retry for this long.
const REST: Duration = Duration::from_secs(3);
const FIRST_PAUSE: Duration = Duration::from_millis(50);
const LONGEST_PAUSE: Duration = Duration::from_secs(1);

static TELL: OnceLock<fn(&str)> = OnceLock::new();

/// Sets the function that reports waiting to the user.
pub(crate) fn tell_with(tell: fn(&str)) {
    let _ = TELL.set(tell);
}

/// Why a call failed.
pub(crate) enum Fault {
    /// The connection failed; a retry may succeed.
    Passing(String),
    /// The database refused the call.
    Final(StoreError),
}

pub(crate) struct Open {
    pub client: Arc<Client>,
    pub bell: Arc<Bell>,
    /// When this connection last asked for the newest revision; none if it does not listen yet.
    pub asked: Option<Instant>,
    pub commit: Prepared,
    /// Whether this connection holds the exclusive lock: a transaction is open.
    pub in_turn: bool,
    /// The schema version was checked and is supported.
    pub checked: bool,
}

/// Wakes waiters for every notification, and stores the newest revision that one of them reported.
#[derive(Default)]
pub(crate) struct Bell {
    rung: Notify,
    heard: AtomicU64,
}

impl Bell {
    /// The newest reported revision; zero for none.
    pub fn heard(&self) -> u64 {
        self.heard.load(Ordering::Relaxed)
    }
}

/// How often a statement ran on a connection. A statement that runs once is not worth preparing.
#[derive(Default)]
pub(crate) enum Prepared {
    #[default]
    Never,
    Once,
    ConflictCopy(Statement),
}

#[derive(Default)]
pub(crate) struct Inside {
    runtime: Option<Runtime>,
    pub open: Option<Open>,
    failed: Option<Instant>,
}

pub(crate) struct Link {
    pub address: Address,
    inside: Mutex<Inside>,
    /// The name under which its connection is kept after the link is dropped.
    kept_as: Option<String>,
}

impl Drop for Link {
    fn drop(&mut self) {
        let Some(name) = self
            .kept_as
            .take()
            .filter(|_| KEEPS.load(Ordering::Relaxed))
        else {
            return;
        };
        let inside = std::mem::take(&mut *self.inside());
        if inside
            .open
            .as_ref()
            .is_some_and(|open| open.checked && !open.in_turn && !open.client.is_closed())
        {
            let mut kept = kept();
            kept.truncate(KEPT_MOST - 1);
            kept.insert(
                0,
                ConflictCopy {
                    name,
                    since: Instant::now(),
                    inside,
                },
            );
        }
    }
}

/// A connection of a dropped link, for the next link to the same store.
struct ConflictCopy {
    name: String,
    since: Instant,
    inside: Inside,
}

static KEPT: Mutex<Vec<ConflictCopy>> = Mutex::new(Vec::new());
/// How many connections are kept, and for how long. A server has few connections, and an agent may
/// think for hours.
const KEPT_MOST: usize = 4;
const KEPT_FOR: Duration = Duration::from_secs(30);
static KEEPS: AtomicBool = AtomicBool::new(false);

fn kept() -> MutexGuard<'static, Vec<ConflictCopy>> {
    KEPT.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Keeps connections for a while, for the next link to the same project. For a long-running process
/// that opens its project for every call.
pub fn keep_connections() {
    if KEEPS.swap(true, Ordering::Relaxed) {
        return;
    }
    std::thread::spawn(|| {
        loop {
            std::thread::sleep(KEPT_FOR / 3);
            kept().retain(|kept| kept.since.elapsed() < KEPT_FOR);
        }
    });
}

impl Drop for Inside {
    fn drop(&mut self) {
        // Do not wait for the shutdown: a server that hangs must not keep a command from ending.
        self.open = None;
        if let Some(runtime) = self.runtime.take() {
            runtime.shutdown_background();
        }
    }
}

/// A request over a connection.
pub(crate) trait Ask<T>: AsyncFn(&mut Open) -> Result<T, tokio_postgres::Error> {}
impl<T, F: AsyncFn(&mut Open) -> Result<T, tokio_postgres::Error>> Ask<T> for F {}

impl Link {
    pub fn new(address: Address) -> Link {
        Link {
            address,
            inside: Mutex::default(),
            kept_as: None,
        }
    }

    /// A link that may leave its connection to a later link (see [`keep_connections`]). Its
    /// requests leave no state on the connection.
    pub fn lasting(address: Address) -> Link {
        let name = format!("{address} {:?} {:?}", address.config, address.roots);
        Link {
            address,
            inside: Mutex::default(),
            kept_as: Some(name),
        }
    }

    /// A connection that an earlier link has left.
    fn left_behind(&self) -> Option<Inside> {
        let name = self.kept_as.as_ref()?;
        let mut kept = kept();
        let place = kept.iter().position(|kept| kept.name == *name)?;
        Some(kept.remove(place).inside)
    }

    fn inside(&self) -> MutexGuard<'_, Inside> {
        self.inside.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Retries until an answer arrives or the timeout has passed.
    pub fn ask<T>(&self, wait_policy: WaitPolicy, ask: impl Ask<T>) -> Result<T, StoreError> {
        self.hand_in(wait_policy, ask).map_err(|error| match error {
            StoreError::Unreachable { what, remedy, .. } => StoreError::Unreachable {
                what,
                sent: false,
                remedy,
            },
            other => other,
        })
    }

    /// Like `ask`, for a request that may have taken effect although no answer arrived.
    pub fn hand_in<T>(&self, wait_policy: WaitPolicy, ask: impl Ask<T>) -> Result<T, StoreError> {
        let (answer, most) = match wait_policy {
            WaitPolicy::NoWait => (INSTANT_ANSWER, Duration::ZERO),
            WaitPolicy::OneTry => (QUICK_ANSWER, Duration::ZERO),
            WaitPolicy::Retry => (ANSWER, self.address.wait.unwrap_or_else(longest_wait)),
        };
        let mut inside = self.inside();
        if wait_policy != WaitPolicy::Retry
            && inside.failed.is_some_and(|failed| failed.elapsed() < REST)
        {
            return Err(self.unreachable("it did not respond a moment ago", false));
        }
        if inside.open.is_none()
            && let Some(left) = self.left_behind()
        {
            *inside = left;
        }
        let begun = Instant::now();
        let (mut pause, mut told, mut sent) = (FIRST_PAUSE, false, false);
        // If an idle connection has ended, that says nothing about the server.
        let mut used = inside.open.is_some();
        loop {
            let what = match self.try_once(&mut inside, answer, &ask, &mut sent) {
                Ok(value) => {
                    inside.failed = None;
                    return Ok(value);
                }
                Err(Fault::Final(error)) => {
                    // A failed transaction cannot be used any more.
                    if inside.open.as_ref().is_some_and(|open| open.in_turn) {
                        inside.open = None;
                    }
                    // The server may have accepted an earlier attempt.
                    return Err(if sent {
                        self.unreachable(&error.to_string(), true)
                    } else {
                        error
                    });
                }
                Err(Fault::Passing(what)) => what,
            };
            let ended = inside
                .open
                .take()
                .is_some_and(|open| open.client.is_closed());
            if std::mem::take(&mut used) && ended {
                continue;
            }
            if begun.elapsed() + pause >= most {
                inside.failed = Some(Instant::now());
                return Err(self.unreachable(&what, sent));
            }
            if !told && begun.elapsed() > Duration::from_secs(1) {
                told = true;
                if let Some(tell) = TELL.get() {
                    tell(&format!(
                        "waiting for {} ({what}); retrying for up to {} s",
                        self.address,
                        most.as_secs()
                    ));
                }
            }
            std::thread::sleep(pause);
            pause = (pause * 2).min(LONGEST_PAUSE);
        }
    }

    fn unreachable(&self, what: &str, sent: bool) -> StoreError {
        StoreError::Unreachable {
            what: format!(
                "the shared store {} cannot be reached: {what}",
                self.address
            ),
            sent,
            remedy: None,
        }
    }

    fn try_once<T>(
        &self,
        inside: &mut Inside,
        most: Duration,
        ask: &impl Ask<T>,
        sent: &mut bool,
    ) -> Result<T, Fault> {
        let Inside { runtime, open, .. } = inside;
        let runtime = match runtime {
            Some(runtime) => runtime,
            None => {
                let made = tokio::runtime::Builder::new_current_thread()
                    .enable_all()
                    .build();
                runtime.insert(made.map_err(|e| {
                    Fault::Final(StoreError::Io {
                        what: "cannot start".into(),
                        source: e,
                    })
                })?)
            }
        };
        if open.as_ref().is_none_or(|open| open.client.is_closed()) {
            *open = Some(runtime.block_on(async {
                tokio::time::timeout(most, self.connect())
                    .await
                    .unwrap_or_else(|_| Err(Fault::Passing("it does not respond".into())))
            })?);
        }
        let open = open.as_mut().expect("opened above");
        let answer = runtime.block_on(async { tokio::time::timeout(most, ask(open)).await });
        match answer {
            Ok(Ok(value)) => Ok(value),
            Ok(Err(error)) => {
                // If the database reports an error code, it has changed nothing.
                *sent |= error.code().is_none();
                Err(self.fault(&error))
            }
            Err(_) => {
                *sent = true;
                Err(Fault::Passing(format!(
                    "no answer within {} s",
                    most.as_secs()
                )))
            }
        }
    }

    async fn connect(&self) -> Result<Open, Fault> {
        let bell = Arc::new(Bell::default());
        let client = match self.address.tls {
            Tls::Off => {
                let (client, connection) = self
                    .address
                    .config
                    .connect(NoTls)
                    .await
                    .map_err(|e| self.fault(&e))?;
                tokio::spawn(drive(connection, Arc::clone(&bell)));
                client
            }
            Tls::Proven => {
                let tls = connector(self.address.roots.as_deref()).map_err(Fault::Final)?;
                let (client, connection) = self
                    .address
                    .config
                    .connect(tls)
                    .await
                    .map_err(|e| self.fault(&e))?;
                tokio::spawn(drive(connection, Arc::clone(&bell)));
                client
            }
        };
        Ok(Open {
            client: Arc::new(client),
            bell,
            asked: None,
            commit: Prepared::Never,
            in_turn: false,
            checked: false,
        })
    }

    /// Classifies an error: whether a retry can help.
    fn fault(&self, error: &tokio_postgres::Error) -> Fault {
        let Some(db) = error.as_db_error() else {
            let mut what = error.to_string();
            let mut source = std::error::Error::source(error);
            while let Some(inner) = source {
                what = format!("{what}: {inner}");
                source = inner.source();
            }
            // A retry does not change the certificate.
            return match what.contains("certificate") {
                true => Fault::Final(StoreError::refused(
                    format!("{} could not prove its identity: {what}", self.address),
                    "set sslrootcert=FILE.pem in the address, with the certificate authority that \
                     signed it",
                )),
                false => Fault::Passing(what),
            };
        };
        let code = db.code();
        let passing = [
            SqlState::T_R_SERIALIZATION_FAILURE,
            SqlState::T_R_DEADLOCK_DETECTED,
            SqlState::ADMIN_SHUTDOWN,
            SqlState::CRASH_SHUTDOWN,
            SqlState::CANNOT_CONNECT_NOW,
            SqlState::TOO_MANY_CONNECTIONS,
            // A standby that has not been promoted yet.
            SqlState::READ_ONLY_SQL_TRANSACTION,
            SqlState::IDLE_IN_TRANSACTION_SESSION_TIMEOUT,
            SqlState::QUERY_CANCELED,
            SqlState::LOCK_NOT_AVAILABLE,
        ];
        let what = db.message().to_owned();
        if passing.contains(code) || code.code().starts_with("08") || code.code().starts_with("53")
        {
            return Fault::Passing(what);
        }
        let (what, remedy) = match code.code() {
            "28P01" | "28000" => (
                format!("{} rejected the login: {what}", self.address),
                "set PGPASSWORD, or add a line to ~/.pgpass",
            ),
            "3D000" => (
                format!("{}: {what}", self.address),
                "createdb NAME     (or name another database in the address)",
            ),
            "3F000" | "42P01" | "42883" => (
                format!("{} contains no Quipu store: {what}", self.address),
                "quipu store migrate ADDRESS",
            ),
            "42501" => (
                format!("{}: {what}", self.address),
                "quipu store roles     (prints the rights)",
            ),
            _ => (
                format!("{} failed: {what} ({})", self.address, code.code()),
                "quipu doctor",
            ),
        };
        Fault::Final(StoreError::refused(what, remedy))
    }
}

impl Link {
    /// Waits until a notification arrives, or at most this long.
    pub fn rest(&self, most: Duration) {
        let mut inside = self.inside();
        let Inside { runtime, open, .. } = &mut *inside;
        match (runtime, open) {
            (Some(runtime), Some(open)) => {
                let bell = Arc::clone(&open.bell);
                let _ = runtime
                    .block_on(async { tokio::time::timeout(most, bell.rung.notified()).await });
            }
            _ => {
                drop(inside);
                std::thread::sleep(most);
            }
        }
    }

    /// Releases the exclusive lock, if it is held: closing the connection makes the server roll
    /// back.
    pub fn give_up_turn(&self) {
        let mut inside = self.inside();
        if inside.open.as_ref().is_some_and(|open| open.in_turn) {
            inside.open = None;
        }
    }
}

/// Drives the connection until it ends.
async fn drive<S, T>(mut connection: tokio_postgres::Connection<S, T>, bell: Arc<Bell>)
where
    S: tokio::io::AsyncRead + tokio::io::AsyncWrite + Unpin,
    T: tokio::io::AsyncRead + tokio::io::AsyncWrite + Unpin,
{
    while let Some(Ok(message)) = std::future::poll_fn(|cx| connection.poll_message(cx)).await {
        if let AsyncMessage::Notification(told) = message {
            bell.heard
                .fetch_max(told.payload().parse().unwrap_or(0), Ordering::Relaxed);
            bell.rung.notify_one();
        }
    }
}

fn longest_wait() -> Duration {
    let said = std::env::var("QUIPU_STORE_WAIT")
        .ok()
        .and_then(|text| text.parse().ok());
    Duration::from_secs(said.unwrap_or(WAIT_SECONDS))
}
