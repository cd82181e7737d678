//! Signal handling: the first Ctrl-C requests a stop and leases are released; the second exits at
//! once.

use std::sync::Arc;

use quipu_protocol::flow::Stop;
use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM};
use signal_hook::flag;

use crate::answer::{Failure, exit};

/// Returns a stop flag that signals set.
pub fn stop_on_signals() -> Result<Stop, Failure> {
    let stop = Stop::default();
    for signal in [SIGINT, SIGTERM, SIGHUP] {
        // The order matters: the conditional shutdown must check the flag before this signal sets
        // it.
        flag::register_conditional_shutdown(signal, i32::from(exit::NO), Arc::clone(&stop.0))
            .and_then(|_| flag::register(signal, Arc::clone(&stop.0)))
            .map_err(|e| Failure::new(exit::IO, format!("cannot listen for signals: {e}"), ""))?;
    }
    Ok(stop)
}
