//! Ctrl-C and its like: the first asks everyone to end and leases are given back, the second ends
//! at once.

use std::sync::Arc;

use quipu_protocol::flow::Stop;
use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM};
use signal_hook::flag;

use crate::answer::{Failure, exit};

/// A stop that signals ask for.
pub fn stop_on_signals() -> Result<Stop, Failure> {
    let stop = Stop::default();
    for signal in [SIGINT, SIGTERM, SIGHUP] {
        // In this order: the shutdown looks at the flag before this signal sets it.
        flag::register_conditional_shutdown(signal, i32::from(exit::NO), Arc::clone(&stop.0))
            .and_then(|_| flag::register(signal, Arc::clone(&stop.0)))
            .map_err(|e| Failure::new(exit::IO, format!("cannot listen for signals: {e}"), ""))?;
    }
    Ok(stop)
}
