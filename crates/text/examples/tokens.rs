//! Prints count, speed and estimation error of the token counters on files.
//!
//! `cargo run --release -p quipu-text --example tokens -- FILE…`

use std::hint::black_box;
use std::time::Instant;

use quipu_text::{Counter, tokens};

/// Sections of memory files are about this long.
const CHUNK: usize = 2_000;

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let started = Instant::now();
    black_box(Counter::O200k.count(black_box("first")));
    println!(
        "first count after {:.2} ms",
        started.elapsed().as_secs_f64() * 1e3
    );
    println!(
        "{:>9} {:>9} {:>6} {:>8} {:>7} {:>7} {:>7}  file",
        "bytes", "o200k", "MB/s", "estimate", "whole", "mean", "worst"
    );
    for path in std::env::args().skip(1) {
        let text = String::from_utf8_lossy(&std::fs::read(&path)?).into_owned();
        let found = tokens::compare(&text, CHUNK);
        let whole = (found.estimate.0 as f64 / found.exact.0.max(1) as f64 - 1.0) * 100.0;
        println!(
            "{:>9} {:>9} {:>6.1} {:>8.0} {:>+6.1}% {:>6.1}% {:>6.1}%  {}",
            text.len(),
            found.exact,
            speed(Counter::O200k, &text),
            speed(Counter::Estimate, &text),
            whole,
            found.mean_error,
            found.worst_error,
            path.rsplit('/').next().unwrap_or(&path),
        );
    }
    Ok(())
}

/// The best of a few runs, in MB/s.
fn speed(counter: Counter, text: &str) -> f64 {
    let run = || {
        let started = Instant::now();
        black_box(counter.count(black_box(text)));
        started.elapsed().as_secs_f64()
    };
    let best = (0..7).map(|_| run()).fold(f64::INFINITY, f64::min);
    text.len() as f64 / 1e6 / best
}
