//! The server loop: one thread does the network I/O, a pool runs blocking work, and a signal ends
//! both.
//!
//! Access control is in `guard`.

use std::future::Future;
use std::io;
use std::net::SocketAddr;
use std::time::Duration;

use axum::Router;
use hyper::server::conn::http1;
use hyper_util::rt::{TokioIo, TokioTimer};
use hyper_util::server::graceful::GracefulShutdown;
use hyper_util::service::TowerToHyperService;
use thiserror::Error;
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::Semaphore;

use crate::guard::{Site, guard};
use crate::policy::Policy;

/// The maximum time to receive request headers, so that an idle caller cannot hold a connection.
const HEADERS: Duration = Duration::from_secs(10);

/// The grace period for open responses after a signal. Streams that never end are cut off then.
const FAREWELL: Duration = Duration::from_millis(500);

/// More connections than the browsers and agents of one person open. Further connections wait.
const CONNECTIONS: usize = 256;

/// The maximum number of blocking tasks. Most of them wait for the disk or for the next poll.
const WORKERS: usize = 32;

/// The address to listen on, the routes and the policy.
#[derive(Debug)]
pub struct Plan {
    pub address: SocketAddr,
    pub site: Site,
    pub policy: Policy,
}

/// The reason why the server could not start.
#[derive(Debug, Error)]
pub enum ServeError {
    #[error("{0} is not a loopback address, and no host name is allowed")]
    Exposed(SocketAddr),
    #[error("cannot listen on {address}: {source}")]
    Taken {
        address: SocketAddr,
        source: io::Error,
    },
    #[error("cannot serve: {0}")]
    Io(#[from] io::Error),
}

/// Serves until SIGINT, SIGTERM or SIGHUP. Calls `ready` with the address once the server accepts
/// connections.
pub fn serve(plan: Plan, ready: impl FnOnce(SocketAddr)) -> Result<(), ServeError> {
    if !plan.address.ip().is_loopback() && plan.policy.hosts.is_empty() {
        return Err(ServeError::Exposed(plan.address));
    }
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .max_blocking_threads(WORKERS)
        .build()?;
    let router = guard(plan.site, &plan.policy);
    runtime.block_on(async {
        let listener =
            TcpListener::bind(plan.address)
                .await
                .map_err(|source| ServeError::Taken {
                    address: plan.address,
                    source,
                })?;
        let stop = signals()?;
        ready(listener.local_addr()?);
        answer(listener, router, stop).await;
        Ok::<(), ServeError>(())
    })?;
    // Do not wait for blocking tasks: an interrupted commit is either complete or absent.
    runtime.shutdown_background();
    Ok(())
}

/// Runs blocking work off the network thread. A panic fails only that request.
pub async fn blocking<T: Send + 'static>(work: impl FnOnce() -> T + Send + 'static) -> Option<T> {
    tokio::task::spawn_blocking(work).await.ok()
}

async fn answer(listener: TcpListener, router: Router, stop: impl Future<Output = ()>) {
    let graceful = GracefulShutdown::new();
    let room: &'static Semaphore = Box::leak(Box::new(Semaphore::new(CONNECTIONS)));
    let mut stop = std::pin::pin!(stop);
    loop {
        let accepted = async {
            let place = room.acquire().await;
            (listener.accept().await, place)
        };
        let ((stream, _), place) = tokio::select! {
            () = &mut stop => break,
            (accepted, place) = accepted => match accepted {
                Ok(accepted) => (accepted, place),
                // The process is out of descriptors or the caller disconnected. Neither is fatal.
                Err(_) => { tokio::time::sleep(Duration::from_millis(50)).await; continue }
            },
        };
        let connection = graceful.watch(connection(stream, router.clone()));
        tokio::spawn(async move {
            let _place = place;
            // Ignore errors of the connection: the caller disconnected or sent an invalid request.
            let _ = connection.await;
        });
    }
    drop(listener);
    let _ = tokio::time::timeout(FAREWELL, graceful.shutdown()).await;
}

fn connection(
    stream: TcpStream,
    router: Router,
) -> http1::Connection<TokioIo<TcpStream>, TowerToHyperService<Router>> {
    let _ = stream.set_nodelay(true);
    http1::Builder::new()
        .timer(TokioTimer::new())
        .header_read_timeout(HEADERS)
        .serve_connection(TokioIo::new(stream), TowerToHyperService::new(router))
}

/// Completes when the process receives a termination signal.
#[cfg(unix)]
fn signals() -> io::Result<impl Future<Output = ()>> {
    use tokio::signal::unix::{SignalKind, signal};
    let (mut interrupt, mut terminate, mut hangup) = (
        signal(SignalKind::interrupt())?,
        signal(SignalKind::terminate())?,
        signal(SignalKind::hangup())?,
    );
    Ok(async move {
        tokio::select! { _ = interrupt.recv() => {}, _ = terminate.recv() => {}, _ = hangup.recv() => {} }
    })
}

#[cfg(not(unix))]
fn signals() -> io::Result<impl Future<Output = ()>> {
    Ok(async {
        let _ = tokio::signal::ctrl_c().await;
    })
}
