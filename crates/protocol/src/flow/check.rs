//! Whether what an agent wrote can be accepted: marker, length, form, schema. Each fault says what and where, so that it
//! can be sent back as it is.

use quipu_contract::{AgentKind, Builtin, Contract, Form, find_placeholder};
use quipu_text::{Document, count_words};

use super::snapshot::{items_with, marker_of, stray_sign, unmarked};
use super::turn::{Output, Planned};
use crate::panel::parse_report;

/// More than this is no text that anyone asked for.
const LARGEST_BYTES: usize = 4 << 20;

/// What came out of a run: the declared outputs with their bytes, and what was not asked for.
#[derive(Debug, Default)]
pub struct Collected {
    pub files: Vec<(Output, Vec<u8>)>,
    pub dropped: Vec<String>,
    pub faults: Vec<String>,
}

/// Takes the declared outputs out of a folder. Anything else is named and left there.
pub fn collect(turn: &Planned<'_>, out: &std::path::Path, message: Option<&str>) -> Collected {
    let mut collected = Collected::default();
    let mut folders = vec![out.to_owned()];
    let mut found = Vec::new();
    while let Some(folder) = folders.pop() {
        for entry in std::fs::read_dir(&folder).into_iter().flatten().flatten() {
            let (path, kind) = (entry.path(), entry.file_type());
            let name = path.strip_prefix(out).unwrap_or(&path).to_string_lossy().into_owned();
            match kind {
                Ok(kind) if kind.is_dir() => folders.push(path),
                // A link could point at anything of the machine: it is never followed.
                Ok(kind) if kind.is_file() => found.push(name),
                _ => collected.dropped.push(name),
            }
        }
    }
    found.sort();
    for name in found {
        match turn.outputs.iter().find(|o| o.path.as_str() == name) {
            Some(output) => match std::fs::read(out.join(&name)) {
                Ok(bytes) => collected.files.push((output.clone(), bytes)),
                Err(error) => collected.faults.push(format!("`{name}` cannot be read: {error}")),
            },
            None => collected.dropped.push(name),
        }
    }
    collected.dropped.sort();
    take_message(turn, message, &mut collected);
    collected
}

/// Agents that cannot write files answer with the text: it is stored as the file.
fn take_message(turn: &Planned<'_>, message: Option<&str>, collected: &mut Collected) {
    let required: Vec<&Output> = turn.required().collect();
    let (Some(message), [output]) = (message.map(str::trim).filter(|m| !m.is_empty()), required.as_slice()) else { return };
    if collected.files.iter().any(|(o, _)| o.path == output.path) {
        return;
    }
    let text = format!("{}\n", unfenced(message));
    let explores = turn.role.is_some_and(|r| r.kind == AgentKind::Explore);
    if explores || marker_of(output.path.as_str(), &text).is_some_and(|m| output.markers.contains(&m)) {
        collected.files.push(((*output).clone(), text.into_bytes()));
    }
}

/// A text that is one fenced block as a whole means what is inside.
fn unfenced(text: &str) -> &str {
    let inner = text.strip_prefix("```").and_then(|t| t.split_once('\n')).and_then(|(_, t)| t.strip_suffix("```"));
    inner.filter(|t| !t.contains("\n```")).map_or(text, str::trim)
}

/// Everything wrong with what was collected. `before` has the texts that were sent back, if any were.
pub fn find_faults(contract: &Contract, turn: &Planned<'_>, collected: &Collected, before: &[(String, Vec<u8>)]) -> Vec<String> {
    let mut faults = collected.faults.clone();
    for output in turn.required() {
        if !collected.files.iter().any(|(o, _)| o.path == output.path) {
            faults.push(format!("`{}` was not written", output.path));
        }
    }
    for (output, bytes) in &collected.files {
        let path = output.path.as_str();
        if bytes.len() > LARGEST_BYTES {
            faults.push(format!("`{path}` has {} bytes; at most {LARGEST_BYTES} are accepted", bytes.len()));
            continue;
        }
        let Ok(text) = std::str::from_utf8(bytes) else {
            faults.push(format!("`{path}` is not UTF-8 text"));
            continue;
        };
        if text.trim().is_empty() && !output.optional {
            faults.push(format!("`{path}` is empty"));
            continue;
        }
        let found = marker_of(path, text);
        if !output.markers.is_empty() && !found.as_ref().is_some_and(|m| output.markers.contains(m)) {
            let wanted = output.markers.iter().map(|m| format!("<!-- {m} -->")).collect::<Vec<_>>().join(" or ");
            let instead = found.as_ref().map(|m| format!(" but with <!-- {m} -->")).unwrap_or_default();
            faults.push(format!("`{path}` does not end with {wanted}{instead}: it must be the very last line"));
        }
        if let Some(finding) = find_placeholder(text) {
            faults.push(format!("`{path}` line {}: {}; the file must hold the whole text", finding.line, finding.what));
        }
        faults.extend(find_contradiction(turn, path, text, found.as_deref()));
        faults.extend(find_strays(contract, turn, output, text));
        faults.extend(find_shape_faults(contract, turn, output, text));
        if contract.rule(&output.path).and_then(|r| r.form) == Some(Form::Report) {
            let metrics: Vec<&str> = turn.role.iter().flat_map(|r| &r.metrics).map(|m| m.in_language(contract.language)).collect();
            if let Err(found) = parse_report(text, &metrics) {
                faults.extend(found.iter().map(|f| format!("`{path}` line {}: {}", f.line, f.what)));
            }
        }
        faults.extend(find_missing_items(contract, turn, path, text));
    }
    let body = |path: &str, bytes: &[u8]| unmarked(path, &String::from_utf8_lossy(bytes)).trim_end().to_owned();
    let is_same = |(path, old): &(String, Vec<u8>)| {
        collected.files.iter().any(|(o, bytes)| o.path.as_str() == path && body(path, bytes) == body(path, old))
    };
    if let Some((path, _)) = before.first().filter(|_| before.iter().all(is_same)) {
        faults.push(format!("`{path}` is as it was, although it was sent back"));
    }
    faults
}

/// A verdict that its own items contradict: passed, and yet someone objects.
fn find_contradiction(turn: &Planned<'_>, path: &str, text: &str, found: Option<&str>) -> Option<String> {
    let objection = turn.step.objection.as_ref()?;
    let (sign, marker) = (objection.sign.as_ref()?, objection.marker.as_ref()?);
    let items = items_with(text, sign);
    match found {
        Some(found) if found != marker && !items.is_empty() => {
            Some(format!("`{path}` ends with <!-- {found} --> and holds {} items with {sign}: the first is \"{}\"", items.len(), items[0]))
        }
        _ => None,
    }
}

/// A sign that sends work back, in a report that has nothing to send back with it. The reviewer says what is meant, not the writer.
fn find_strays(contract: &Contract, turn: &Planned<'_>, output: &Output, text: &str) -> Option<String> {
    let reads = |step: &quipu_contract::Step| {
        let mut read = step.reads.iter().filter_map(|read| super::turn::fill_path(read, &turn.binding));
        step.name == turn.turn.step || step.builtin == Some(Builtin::Merge) && read.any(|path| path == output.path)
    };
    let steps = contract.steps.iter().filter(|step| reads(step));
    // The gravest part of a merged report is what a revision must answer, whether or not it sends work back.
    let gravest = |step: &quipu_contract::Step| {
        let own = step.objection.as_ref().and_then(|o| o.sign.clone());
        own.or_else(|| step.merge.as_ref()?.parts.first()?.signs.first().cloned())
    };
    let (stray, sign) = steps.filter_map(gravest).find_map(|sign| Some((stray_sign(text, &sign)?, sign)))?;
    Some(format!(
        "`{}` has {sign} in \"{stray}\" and no item that says what is wrong: begin a list item with {sign} for each objection, or leave the sign out",
        output.path
    ))
}

fn find_shape_faults(contract: &Contract, turn: &Planned<'_>, output: &Output, text: &str) -> Vec<String> {
    let Some(shape) = contract.rule(&output.path).and_then(|r| r.shape.as_ref()) else { return Vec::new() };
    let (path, mut faults) = (&output.path, Vec::new());
    let document = Document::parse(text);
    for (level, (least, most)) in &shape.headings {
        let lines: Vec<usize> = document.sections().iter().filter(|s| s.level == *level).map(|s| s.line).collect();
        let count = u32::try_from(lines.len()).unwrap_or(u32::MAX);
        if !(*least..=*most).contains(&count) {
            let wanted = if least == most { least.to_string() } else { format!("{least} to {most}") };
            let at = lines.iter().map(ToString::to_string).collect::<Vec<_>>().join(", ");
            let at = if at.is_empty() { String::new() } else { format!(" (lines {at})") };
            faults.push(format!("`{path}` has {count} headings of level {level}{at}; {wanted} are asked"));
        }
    }
    let wanted = shape.words.as_ref().and_then(|w| w.parse().ok().or_else(|| turn.binding.get(w)?.trim().parse::<u32>().ok()));
    if let Some(wanted) = wanted {
        let (least, most) = (f64::from(wanted) * (1.0 - shape.tolerance), f64::from(wanted) * (1.0 + shape.tolerance));
        let (least, most) = (least.round() as usize, most.round() as usize);
        let count = count_words(text);
        if count < least {
            faults.push(format!(
                "`{path}` has {count} words; {least} to {most} are asked. Expand it by about {}: where it is thinnest, nowhere else",
                wanted as usize - count
            ));
        } else if count > most {
            faults.push(format!(
                "`{path}` has {count} words; {least} to {most} are asked. Trim it by about {}: where it repeats itself, nowhere else",
                count - wanted as usize
            ));
        }
    }
    faults
}

/// A report from which a later step will remember must have every part that it takes.
fn find_missing_items(contract: &Contract, turn: &Planned<'_>, path: &str, text: &str) -> Vec<String> {
    let steps = contract.steps.iter().filter_map(|s| s.remember.as_ref());
    let takes = steps.filter(|r| super::turn::fill_path(&r.from, &turn.binding).is_some_and(|p| p.as_str() == path));
    takes
        .flat_map(|remember| super::builtin::remember::find_missing(remember, text).into_iter().map(|what| format!("`{path}` {what}")))
        .collect()
}
