//! Transcripts: commands with their output.
//!
//! ```text
//! // A note to the reader, above a command.
//! $ quipu append meta/glossary.md <<'END'
//! > a further line of the command
//! > END
//! data on stdout
//! ! talk on stderr
//! [exit 3]
//! ```
//!
//! All commands of a transcript run in one shell, so that variables persist. Trailing blank lines
//! of an output do not count; the recorder puts one between commands.

/// A command with its notes and its expected output.
#[derive(Debug, Default, PartialEq)]
pub struct Step {
    pub notes: Vec<String>,
    /// The lines of the command.
    pub command: Vec<String>,
    pub output: String,
}

pub fn parse(text: &str) -> Result<Vec<Step>, String> {
    let mut steps: Vec<Step> = Vec::new();
    let mut notes = Vec::new();
    let mut printed = false;
    for (index, line) in text.lines().enumerate() {
        if let Some(note) = line.strip_prefix("// ") {
            notes.push(note.to_owned());
        } else if let Some(command) = line.strip_prefix("$ ") {
            steps.push(Step {
                notes: std::mem::take(&mut notes),
                command: vec![command.to_owned()],
                output: String::new(),
            });
            printed = false;
        } else if let Some(step) = steps.last_mut() {
            match line.strip_prefix('>') {
                Some(more) if !printed => step
                    .command
                    .push(more.strip_prefix(' ').unwrap_or(more).to_owned()),
                _ => {
                    printed = true;
                    step.output.push_str(line);
                    step.output.push('\n');
                }
            }
        } else if !line.is_empty() {
            return Err(format!(
                "transcript, line {}: output before the first command",
                index + 1
            ));
        }
    }
    if steps.is_empty() {
        return Err("transcript: no line begins with `$ `".into());
    }
    for step in &mut steps {
        step.output
            .truncate(step.output.trim_end_matches('\n').len());
    }
    Ok(steps)
}

pub fn render(steps: &[Step]) -> Result<String, String> {
    let mut text = String::new();
    for step in steps {
        if !text.is_empty() {
            text.push('\n');
        }
        step.notes
            .iter()
            .for_each(|note| text.push_str(&format!("// {note}\n")));
        for (index, line) in step.command.iter().enumerate() {
            text.push_str(format!("{} {line}", if index == 0 { "$" } else { ">" }).trim_end());
            text.push('\n');
        }
        if !step.output.is_empty() {
            text.push_str(&format!("{}\n", step.output));
        }
    }
    // Output can look like a command. Such a scenario would be parsed differently from the one
    // recorded.
    match parse(&text)? == *steps {
        true => Ok(text),
        false => Err(
            "transcript: an output has a line that begins with `$ `, `// ` or, at first, with `>`"
                .into(),
        ),
    }
}
