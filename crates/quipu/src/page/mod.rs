//! The server of the page: maps routes to operations and to queries of the protocol crate, as a
//! person.
//!
//! It contains no rules. Every write goes through a row of the table of operations: `calls.rs` calls
//! it, `running.rs` starts it as a program. The other routes only read, in windows that stay small
//! for any project size.

mod assets;
mod book;
mod calls;
mod causes;
mod changes;
mod colour;
mod concerns;
mod decisions;
mod editing;
mod effort;
mod entry;
mod events;
mod failure;
mod files;
mod flagged;
mod flow;
mod graph;
mod journal;
mod kept;
mod markdown;
mod now;
mod overview;
mod picture;
mod provenance;
mod reading;
mod reply;
mod rules;
mod running;
mod search;
mod standing;

use std::sync::{Arc, OnceLock};

use quipu_protocol::flow::FlowCache;
use quipu_web::axum::Router;
use quipu_web::axum::routing::{get, post};
use quipu_web::{Site, Token};

use crate::session::Session;
pub use entry::Entry;
use kept::Kept;
use running::Runs;

/// Recorded in the journal beside the person, to distinguish a decision in a browser from one on a
/// terminal.
const DOOR: &str = "page";

/// The state of one server.
pub struct Page {
    session: Session,
    /// The flow's cache of unchanged files.
    memory: FlowCache,
    kept: Kept,
    runs: Runs,
    /// The random folder of the book's address.
    book_key: Token,
}

/// The state argument of a handler.
type Shared = quipu_web::axum::extract::State<Arc<Page>>;

impl Page {
    /// Each request is a separate caller. Only the open project is kept, and checked again.
    fn session(&self) -> Session {
        Session {
            watched: OnceLock::new(),
            panel: OnceLock::new(),
            ..self.session.clone()
        }
    }
}

/// Builds the site: static files for everyone, the project for callers with the token. `entry`
/// gives the token for a one-time code.
pub fn site(session: Session, entry: &Arc<Entry>, book_key: Token) -> Site {
    let page = Arc::new(Page {
        session: Session {
            door: Some(DOOR),
            ..session
        },
        memory: FlowCache::default(),
        kept: Kept::default(),
        runs: Runs::default(),
        book_key,
    });
    let guarded = Router::new()
        .route("/api/project", get(overview::project))
        .route("/api/now", get(now::now))
        .route("/api/standing", get(standing::standing))
        .route("/api/concerns", get(concerns::concerns))
        .route("/api/names", get(concerns::names))
        .route("/api/flagged", get(flagged::flagged))
        .route("/api/decisions", get(decisions::of_file))
        .route("/api/search", get(search::text))
        .route("/api/flow", get(flow::board))
        .route("/api/job", get(flow::job))
        .route("/api/files", get(files::list))
        .route("/api/file", get(reading::file))
        .route("/api/text", get(editing::text))
        .route("/api/lines", get(reading::lines))
        .route("/api/changes", get(changes::changes))
        .route("/api/picture", get(picture::picture))
        .route("/api/links", get(graph::of_file))
        .route("/api/graph", get(graph::graph))
        .route("/api/journal", get(journal::search))
        .route("/api/provenance", get(provenance::provenance))
        .route("/api/effort", get(effort::effort))
        .route("/api/estimate", get(effort::estimate))
        .route("/api/contract", get(rules::contract))
        .route("/api/may", get(rules::may))
        .route("/api/run", get(running::show).post(running::start))
        .route("/api/run/stop", post(running::stop))
        .route("/api/call", post(calls::call))
        .route("/api/events", get(events::listen))
        .with_state(Arc::clone(&page));
    Site {
        open: assets::router()
            .merge(entry.router())
            .merge(book::router().with_state(page)),
        guarded,
    }
}
