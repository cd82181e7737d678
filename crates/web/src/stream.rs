//! Server-sent events.
//!
//! Each listener has its own probe, which is polled only while the listener is connected. Probes
//! run as blocking work, off the network thread.

use std::convert::Infallible;
use std::pin::Pin;
use std::task::{Context, Poll};
use std::time::Duration;

use axum::body::{Body, Bytes};
use axum::http::header::CONTENT_TYPE;
use axum::response::{IntoResponse, Response};
use futures_core::Stream;
use tokio::sync::mpsc;

use crate::serve::blocking;

/// Send a comment after this many polls without an event. It detects a closed connection and keeps
/// an open one alive.
const QUIET_LOOKS: u32 = 30;

/// Polls `probe` at the interval `every` and streams each result as an event. The stream ends when
/// the listener disconnects.
pub fn watch(every: Duration, probe: impl FnMut() -> Option<String> + Send + 'static) -> Response {
    let (sender, receiver) = mpsc::channel(4);
    tokio::spawn(look(every, probe, sender));
    (
        [(CONTENT_TYPE, "text/event-stream")],
        Body::from_stream(Chunks(receiver)),
    )
        .into_response()
}

async fn look(
    every: Duration,
    mut probe: impl FnMut() -> Option<String> + Send + 'static,
    sender: mpsc::Sender<Bytes>,
) {
    let mut quiet = 0;
    loop {
        let looked = blocking(move || {
            let news = probe();
            (probe, news)
        });
        let Some((again, news)) = looked.await else {
            return;
        };
        probe = again;
        quiet = if news.is_some() { 0 } else { quiet + 1 };
        let chunk = match news {
            // A line break would end the event.
            Some(news) => Some(format!("data: {}\n\n", news.replace(['\n', '\r'], " "))),
            None => (quiet % QUIET_LOOKS == 0).then(|| ": still here\n\n".to_owned()),
        };
        if let Some(chunk) = chunk
            && sender.send(chunk.into()).await.is_err()
        {
            return;
        }
        tokio::select! { () = tokio::time::sleep(every) => {}, () = sender.closed() => return }
    }
}

struct Chunks(mpsc::Receiver<Bytes>);

impl Stream for Chunks {
    type Item = Result<Bytes, Infallible>;

    fn poll_next(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        self.0.poll_recv(context).map(|chunk| chunk.map(Ok))
    }
}
