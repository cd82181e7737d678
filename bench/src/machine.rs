//! The machine that a table was measured on, and the clocks that measure it.

pub fn describe() -> String {
    let read = |path: &str| std::fs::read_to_string(path).unwrap_or_default();
    let cpu = read("/proc/cpuinfo");
    let model = cpu
        .lines()
        .find_map(|l| l.strip_prefix("model name"))
        .map(|l| l.trim_start_matches([':', '\t', ' ']))
        .unwrap_or("?");
    let cores = std::thread::available_parallelism().map_or(0, usize::from);
    let kernel = read("/proc/sys/kernel/osrelease");
    let load = read("/proc/loadavg");
    format!(
        "{cores} cores ({model}), Linux {}, load {}",
        kernel.trim(),
        load.split(' ').next().unwrap_or("?")
    )
}

pub fn median(mut values: Vec<f64>) -> f64 {
    values.sort_by(f64::total_cmp);
    values.get(values.len() / 2).copied().unwrap_or(f64::NAN)
}

/// The program itself, built beside this one.
pub fn program() -> std::path::PathBuf {
    let path = std::env::current_exe().unwrap().with_file_name("quipu");
    assert!(path.exists(), "build it first: cargo build --release");
    path
}

/// CPU time, user and system, of all children that have ended, in milliseconds.
pub fn children_cpu() -> f64 {
    let stat = std::fs::read_to_string("/proc/self/stat").unwrap_or_default();
    // Fields 16 and 17 of proc(5), counted from behind the command's closing bracket.
    let fields: Vec<f64> = stat
        .rsplit_once(')')
        .map_or("", |(_, rest)| rest)
        .split_whitespace()
        .map(|field| field.parse().unwrap_or(0.0))
        .collect();
    (fields[13] + fields[14]) * 10.0
}
