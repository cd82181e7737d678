//! Gathers the paragraphs of a start. An unreadable file costs one line, never the whole start.

use quipu_contract::{Paragraph, Scene, in_one_line};

use super::{Block, PROVIDERS, Waking};
use crate::session::error::WorkError;

/// Gathers all paragraphs of a scene that have content. Returns the first fault only if none can be
/// read.
pub(super) fn gather(waking: &Waking<'_>, scene: &Scene) -> Result<Vec<Block>, WorkError> {
    let mut blocks = Vec::new();
    let mut faults = Vec::new();
    for paragraph in &scene.show {
        let Some((_, tell)) = PROVIDERS.iter().find(|(name, _)| name == paragraph) else {
            continue;
        };
        match tell(waking) {
            Ok(block) => blocks.extend(block),
            // The project is not at fault: the caller must identify itself.
            Err(error @ WorkError::WhichAgent { .. }) => return Err(error),
            Err(error) => faults.push((*paragraph, error)),
        }
    }
    if blocks.is_empty() && !faults.is_empty() {
        return Err(faults.swap_remove(0).1);
    }
    let mut told: Vec<String> = Vec::new();
    for (paragraph, error) in faults {
        let line = repair(waking, &error);
        // Two paragraphs may use the same file.
        if !told.contains(&line) {
            let mut block = Block::new(paragraph, title(waking, paragraph), "quipu status");
            block.entries.push(line.clone());
            blocks.insert(0, block);
            told.push(line);
        }
    }
    Ok(blocks)
}

fn title(waking: &Waking<'_>, paragraph: Paragraph) -> String {
    format!(
        "{}{}",
        waking.say("Cannot be read: ", "无法读取："),
        paragraph.as_str()
    )
}

/// One line about an unreadable file, with the command that repairs it.
pub(super) fn repair(waking: &Waking<'_>, error: &WorkError) -> String {
    let (repair, allowed) = match error {
        WorkError::Malformed { path, allowed, .. } => {
            let allowed = if allowed.is_empty() {
                String::new()
            } else {
                format!(" ({} {allowed})", waking.say("allowed:", "允许："))
            };
            (
                format!(
                    "{}quipu restore {path} --at ~1",
                    waking.say("Repair: ", "修复：")
                ),
                allowed,
            )
        }
        _ => (
            waking
                .say("See: quipu status", "查看：quipu status")
                .to_owned(),
            String::new(),
        ),
    };
    format!("⚠ {}{allowed}. {repair}", in_one_line(&error.to_string()))
}
