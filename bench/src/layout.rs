//! The project layout used by the benchmarks: one file per session, one section per text.

use std::path::Path;

use quipu_protocol::Project;
use quipu_store::{Options, Store};

use crate::Outcome;

const CONTRACT: &str = "quipu = 1\n\n[[files]]\npath = \"sessions/**\"\nclass = \"append\"\n";

/// Creates an empty project in a folder, or opens the existing one.
pub fn open_project(root: &Path) -> Outcome<Project> {
    if !root.join("quipu.toml").exists() {
        std::fs::create_dir_all(root.join("sessions"))?;
        std::fs::write(root.join("quipu.toml"), CONTRACT)?;
        Store::init(root)?;
    }
    Ok(Project::open(root, Options::default())?)
}

/// Escapes a text for a Markdown file, so that no line of it starts a section or an unclosed block.
pub fn escaped(text: &str) -> String {
    let mut out = String::with_capacity(text.len() + 1);
    for line in text.lines() {
        let plain = line.trim_start();
        let underlines = !plain.is_empty() && plain.chars().all(|c| "=-*_ ".contains(c));
        if underlines || plain.starts_with(['#', '<', '`', '~', '$']) {
            out.push('\\');
            out.push_str(plain);
        } else {
            out.push_str(line);
        }
        out.push('\n');
    }
    out
}
