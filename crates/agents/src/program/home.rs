//! The private home of a run: `HOME` and `TMPDIR` of the agent's program, gone when the run is over.

use serde_json::Value;
use std::io;
use std::path::{Path, PathBuf};
use tempfile::TempDir;

/// A home that nobody else uses.
pub struct PrivateHome {
    // Held for its end: dropping it removes the folder.
    _root: TempDir,
    home: PathBuf,
    tmp: PathBuf,
}

impl PrivateHome {
    pub fn make() -> io::Result<Self> {
        let root = tempfile::Builder::new().prefix("quipu-run-").tempdir()?;
        // The kernel's rules and the program's own idea of its home must agree.
        let real = root.path().canonicalize()?;
        let (home, tmp) = (real.join("home"), real.join("tmp"));
        std::fs::create_dir(&home)?;
        std::fs::create_dir(&tmp)?;
        Ok(PrivateHome { _root: root, home, tmp })
    }

    pub fn home(&self) -> &Path {
        &self.home
    }

    pub fn tmp(&self) -> &Path {
        &self.tmp
    }

    /// Copies files and folders from the caller's home, those that exist.
    pub fn bring(&self, paths: &[String]) -> io::Result<()> {
        let Some(real) = std::env::home_dir() else { return Ok(()) };
        for path in paths {
            let from = real.join(path);
            if from.exists() {
                copy(&from, &self.home.join(path))?;
            }
        }
        Ok(())
    }

    /// Writes a file below the home. JSON is put over JSON that is there already: a host's settings and the user's.
    pub fn write(&self, path: &str, text: &str) -> io::Result<PathBuf> {
        let full = self.home.join(path);
        let joined = std::fs::read_to_string(&full).ok().and_then(|below| join_json(&below, text));
        let text = joined.as_deref().unwrap_or(text);
        if let Some(parent) = full.parent() {
            std::fs::create_dir_all(parent)?;
        }
        std::fs::write(&full, text)?;
        Ok(full)
    }
}

/// One JSON object over another; none if either is not JSON.
fn join_json(below: &str, above: &str) -> Option<String> {
    let mut whole: Value = serde_json::from_str(below).ok()?;
    overlay(&mut whole, serde_json::from_str(above).ok()?);
    Some(whole.to_string())
}

fn overlay(below: &mut Value, above: Value) {
    match (below, above) {
        (Value::Object(known), Value::Object(more)) => {
            for (key, value) in more {
                overlay(known.entry(key).or_insert(Value::Null), value);
            }
        }
        (below, above) => *below = above,
    }
}

fn copy(from: &Path, to: &Path) -> io::Result<()> {
    if let Some(parent) = to.parent() {
        std::fs::create_dir_all(parent)?;
    }
    if from.is_dir() {
        std::fs::create_dir_all(to)?;
        for entry in std::fs::read_dir(from)?.flatten() {
            copy(&entry.path(), &to.join(entry.file_name()))?;
        }
        return Ok(());
    }
    std::fs::copy(from, to).map(drop)
}
