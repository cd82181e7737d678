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
    /// Whether the outputs had to be in the answer: the agent named files there, or it answered and
    /// wrote nothing although several files were required.
    pub answered: bool,
    pub faults: Vec<String>,
    /// Warnings: suspicious, but accepted.
    pub warnings: Vec<String>,
    /// The marker that the agent's answer lacks at its end, if there is an answer and no file.
    pub unfinished: Option<String>,
}

/// Collects the declared outputs from a folder. Other files are listed in `dropped` and left there.
/// `given` holds the files that were in the folder before the agent began.
pub fn collect(
    job: &PlannedJob<'_>,
    out: &std::path::Path,
    message: Option<&str>,
    given: &[(String, Vec<u8>)],
) -> Collected {
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
    if let Some(message) = message.map(str::trim).filter(|message| !message.is_empty()) {
        let is_given =
            |path: &str, bytes: &[u8]| given.iter().any(|(name, old)| name == path && old == bytes);
        let (left, written): (Vec<_>, Vec<_>) = std::mem::take(&mut collected.files)
            .into_iter()
            .partition(|(output, bytes)| is_given(output.path.as_str(), bytes));
        collected.files = written;
        take_message(job, message, &mut collected);
        for (output, bytes) in left {
            if !collected.files.iter().any(|(o, _)| o.path == output.path) {
                collected.files.push((output, bytes));
            }
        }
    }
    collected
}

/// Takes the outputs from the answer, for agents that cannot write files: each between two lines
/// that name it, or the only one as the whole answer.
fn take_message(job: &PlannedJob<'_>, message: &str, collected: &mut Collected) {
    let is_written = |collected: &Collected, output: &Output| {
        collected.files.iter().any(|(o, _)| o.path == output.path)
    };
    let parts = parts_of(message);
    collected.answered = !parts.is_empty();
    for (path, text) in parts {
        match job
            .outputs
            .iter()
            .find(|output| output.path.as_str() == path)
        {
            Some(output) if is_written(collected, output) => {}
            Some(output) => {
                let bytes = format!("{}\n", unfenced(text.trim())).into_bytes();
                collected.files.push((output.clone(), bytes));
            }
            None => collected.dropped.push(path.to_owned()),
        }
    }
    let required: Vec<&Output> = job.required().collect();
    let [output] = required.as_slice() else {
        collected.answered |= collected.files.is_empty();
        return;
    };
    if collected.answered || is_written(collected, output) {
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

/// The parts of an answer between a line `<file path="PATH">` and the last line `</file>` before the
/// next such part.
fn parts_of(message: &str) -> Vec<(&str, String)> {
    let lines: Vec<&str> = message.lines().collect();
    let opened = lines
        .iter()
        .enumerate()
        .filter_map(|(at, line)| Some((at, opened(line)?)));
    let opened: Vec<(usize, (&str, &str))> = opened.collect();
    let mut parts = Vec::new();
    for (index, (start, (tag, path))) in opened.iter().enumerate() {
        let end = opened.get(index + 1).map_or(lines.len(), |(next, _)| *next);
        let closing = format!("</{tag}>");
        let close = (start + 1..end)
            .rev()
            .find(|at| lines[*at].trim() == closing);
        parts.extend(close.map(|close| (*path, lines[start + 1..close].join("\n"))));
    }
    parts
}

/// The tag and the path of a line that opens a part. The tag may have a number, as in the brief.
fn opened(line: &str) -> Option<(&str, &str)> {
    let inner = line.trim().strip_prefix('<')?.strip_suffix("\">")?;
    let (tag, path) = inner.split_once(" path=\"")?;
    let mut number = tag.strip_prefix("file")?.chars();
    number
        .all(|c| c == '-' || c.is_ascii_digit())
        .then_some((tag, path))
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_answer_is_taken_apart() {
        for (answer, parts) in [
            ("The whole text.", &[][..]),
            ("<file path=\"a.md\">\nnever closed", &[]),
            (
                "Here they are.\n\n<file path=\"a/b.md\">\n# A\n\ntext\n</file>\n\n<file-2 \
                 path=\"c.md\">\n<file>\n</file>\n</file-2>\nDone.",
                &[("a/b.md", "# A\n\ntext"), ("c.md", "<file>\n</file>")],
            ),
            (
                "<file path=\"a.md\">\none\n</file>\ntwo\n</file>",
                &[("a.md", "one\n</file>\ntwo")],
            ),
        ] {
            let found = parts_of(answer);
            let found: Vec<(&str, &str)> = found
                .iter()
                .map(|(path, text)| (*path, text.as_str()))
                .collect();
            assert_eq!(found, parts, "{answer}");
        }
    }
}
