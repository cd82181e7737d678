//! Fits the weights of the estimate to exact counts and writes `data/estimate.bin`.
//!
//! `cargo run --release -p quipu-text --example calibrate -- crates/text/data/estimate.bin FILE…`
//!
//! Every other chunk of the files is kept out of the fit and used to print its error. Least squares
//! on relative errors, weights never negative, by coordinate descent.

use quipu_text::Counter;
use quipu_text::tokens::{CLASSES, UNIT, chunks, pair_indices};

const CHUNK: usize = 1_000;
const SWEEPS: usize = 150;
/// Pulls weights that few chunks speak for towards zero.
const RIDGE: f32 = 2e-4;

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let mut arguments = std::env::args().skip(1);
    let output = arguments.next().ok_or("usage: calibrate OUTPUT FILE…")?;
    let (mut fitted, mut kept) = (Vec::new(), Vec::new());
    for path in arguments {
        let text = String::from_utf8_lossy(&std::fs::read(&path)?).into_owned();
        for (nth, chunk) in chunks(&text, CHUNK).enumerate() {
            let side = if nth % 2 == 0 { &mut fitted } else { &mut kept };
            side.push(Sample::new(chunk));
        }
    }
    let weights = fit(&fitted);
    println!(
        "{} chunks fitted: mean error {:.2} %",
        fitted.len(),
        mean_error(&fitted, &weights)
    );
    println!(
        "{} chunks kept out: mean error {:.2} %",
        kept.len(),
        mean_error(&kept, &weights)
    );
    let bytes: Vec<u8> = weights
        .iter()
        .map(|weight| {
            (weight * UNIT as f32)
                .round()
                .clamp(0.0, f32::from(u16::MAX)) as u16
        })
        .flat_map(u16::to_le_bytes)
        .collect();
    std::fs::write(output, bytes)?;
    Ok(())
}

/// The pairs of a chunk, each count divided by the chunk's tokens: the weighted sum should be 1.
struct Sample {
    pairs: Vec<(usize, f32)>,
}

impl Sample {
    fn new(chunk: &str) -> Self {
        let mut counts = vec![0u32; CLASSES * CLASSES];
        pair_indices(chunk).for_each(|pair| counts[pair] += 1);
        let tokens = Counter::O200k.count(chunk).0 as f32;
        let pairs = counts
            .iter()
            .enumerate()
            .filter(|(_, count)| **count > 0)
            .map(|(pair, count)| (pair, *count as f32 / tokens))
            .collect();
        Self { pairs }
    }

    fn sum(&self, weights: &[f32]) -> f32 {
        self.pairs
            .iter()
            .map(|(pair, count)| weights[*pair] * count)
            .sum()
    }
}

fn fit(samples: &[Sample]) -> Vec<f32> {
    let mut columns: Vec<Vec<(usize, f32)>> = vec![Vec::new(); CLASSES * CLASSES];
    for (nth, sample) in samples.iter().enumerate() {
        for &(pair, count) in &sample.pairs {
            columns[pair].push((nth, count));
        }
    }
    let mut weights = vec![0.0f32; CLASSES * CLASSES];
    let mut missing = vec![1.0f32; samples.len()];
    let ridge = RIDGE * samples.len() as f32;
    for _ in 0..SWEEPS {
        for (pair, column) in columns
            .iter()
            .enumerate()
            .filter(|(_, column)| !column.is_empty())
        {
            let square: f32 = column.iter().map(|(_, count)| count * count).sum();
            let pull: f32 = column
                .iter()
                .map(|&(nth, count)| count * missing[nth])
                .sum();
            let old = weights[pair];
            let new = ((pull + square * old) / (square + ridge * 1e-3)).clamp(0.0, 3.0);
            weights[pair] = new;
            for &(nth, count) in column {
                missing[nth] -= count * (new - old);
            }
        }
    }
    weights
}

fn mean_error(samples: &[Sample], weights: &[f32]) -> f32 {
    let sum: f32 = samples
        .iter()
        .map(|sample| (sample.sum(weights) - 1.0).abs())
        .sum();
    100.0 * sum / samples.len().max(1) as f32
}
