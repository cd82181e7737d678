//! An ordinary project to measure in: one file for each session, one section for each text.

use std::path::Path;

use quipu_protocol::Project;
use quipu_store::{Options, Store};

use crate::Outcome;

const CONTRACT: &str = "quipu = 1\n\n[[files]]\npath = \"sessions/**\"\nclass = \"append\"\n";

/// Makes an empty project in a folder, or opens the one that is there.
pub fn open_project(root: &Path) -> Outcome<Project> {
    if !root.join("quipu.toml").exists() {
        std::fs::create_dir_all(root.join("sessions"))?;
        std::fs::write(root.join("quipu.toml"), CONTRACT)?;
        Store::init(root)?;
    }
    Ok(Project::open(root, Options::default())?)
}

/// A text as it stands in a Markdown file, where no line of it may begin a section or a block that
/// swallows the next.
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
