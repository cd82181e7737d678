//! Measures the cost of a first build: CPU seconds of a clean release build, and the binary size.

use std::process::Command;

use crate::machine::{children_cpu, describe};

pub fn run() {
    println!("{}", describe());
    let target = tempfile::tempdir().unwrap();
    let before = children_cpu();
    let start = std::time::Instant::now();
    let status = Command::new(std::env::var("CARGO").unwrap_or_else(|_| "cargo".into()))
        .args([
            "build",
            "--release",
            "--quiet",
            "-p",
            "quipu",
            "--target-dir",
        ])
        .arg(target.path())
        .status()
        .unwrap();
    assert!(status.success());
    let binary = target
        .path()
        .join("release/quipu")
        .metadata()
        .unwrap()
        .len();
    println!("\n| clean release build | aim | measured |");
    println!("|---|---|---|");
    println!(
        "| CPU seconds | 400 | {:.0} |",
        (children_cpu() - before) / 1000.0
    );
    println!("| wall seconds | | {:.0} |", start.elapsed().as_secs_f64());
    println!("| binary, MB | 25 | {:.1} |", binary as f64 / 1e6);
}
