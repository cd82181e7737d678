//! Collects the declared outputs of an attempt from its folder or from the agent's answer.
//!
//! Only declared outputs are read, and links are never followed. `check/mod.rs` checks their
//! content.

use quipu_contract::AgentKind;

use crate::flow::job::{Output, PlannedJob};
use crate::flow::snapshot::marker_of;

/// The result of collecting: the declared outputs with their bytes, and files that were not
/// requested.
#[derive(Debug, Default)]
pub struct Collected {
    pub files: Vec<(Output, Vec<u8>)>,
    pub dropped: Vec<String>,
    pub faults: Vec<String>,
    /// Warnings: suspicious, but accepted.
    pub warnings: Vec<String>,
    /// The marker that the agent's answer lacks at its end, if there is an answer and no file.
    pub unfinished: Option<String>,
}

/// Collects the declared outputs from a folder. Other files are listed in `dropped` and left there.
pub fn collect(job: &PlannedJob<'_>, out: &std::path::Path, message: Option<&str>) -> Collected {
    let mut collected = Collected::default();
    let mut folders = vec![out.to_owned()];
    let mut found = Vec::new();
    while let Some(folder) = folders.pop() {
        for entry in std::fs::read_dir(&folder).into_iter().flatten().flatten() {
            let (path, kind) = (entry.path(), entry.file_type());
            let name = path
                .strip_prefix(out)
                .unwrap_or(&path)
                .to_string_lossy()
                .into_owned();
            match kind {
                Ok(kind) if kind.is_dir() => folders.push(path),
                // Never follow a link: it could point anywhere on the machine.
                Ok(kind) if kind.is_file() => found.push(name),
                _ => collected.dropped.push(name),
            }
        }
    }
    found.sort();
    for name in found {
        match job.outputs.iter().find(|o| o.path.as_str() == name) {
            Some(output) => match std::fs::read(out.join(&name)) {
                Ok(bytes) => collected.files.push((output.clone(), bytes)),
                Err(error) => collected
                    .faults
                    .push(format!("`{name}` cannot be read: {error}")),
            },
            None => collected.dropped.push(name),
        }
    }
    collected.dropped.sort();
    take_message(job, message, &mut collected);
    collected
}

/// Stores the answer as the output file, for agents that cannot write files.
fn take_message(job: &PlannedJob<'_>, message: Option<&str>, collected: &mut Collected) {
    let required: Vec<&Output> = job.required().collect();
    let (Some(message), [output]) = (
        message.map(str::trim).filter(|m| !m.is_empty()),
        required.as_slice(),
    ) else {
        return;
    };
    if collected.files.iter().any(|(o, _)| o.path == output.path) {
        return;
    }
    let text = format!("{}\n", unfenced(message));
    let explores = job.role.is_some_and(|r| r.kind == AgentKind::Explore);
    if explores
        || marker_of(output.path.as_str(), &text).is_some_and(|m| output.markers.contains(&m))
    {
        collected.files.push(((*output).clone(), text.into_bytes()));
    } else if let Some(marker) = output.markers.first() {
        // Text after the marker, or none: the answer may have been cut off.
        collected.unfinished = Some(marker.clone());
    }
}

/// Unwraps a text that consists of a single fenced block.
fn unfenced(text: &str) -> &str {
    let inner = text
        .strip_prefix("```")
        .and_then(|t| t.split_once('\n'))
        .and_then(|(_, t)| t.strip_suffix("```"));
    inner
        .filter(|t| !t.contains("\n```"))
        .map_or(text, str::trim)
}
