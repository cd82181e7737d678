//! Fitting paragraphs into a budget: the first get room first, what is left out is named.

use quipu_contract::{Language, Tokens};
use quipu_text::Counter;

use super::Block;

/// Kept free for the lines that name what was left out.
const ROOM_FOR_NAMES: u64 = 60;

/// Renders as much of the blocks as fits, in their order, and says of each how much is shown. Where not even the names of
/// the others fit, it says how many there are.
pub(super) fn render_blocks(blocks: &mut [Block], room: Tokens, counter: Counter, language: Language) -> String {
    let mut left = room.0.saturating_sub(ROOM_FOR_NAMES);
    let mut text = String::new();
    let mut unshown = Vec::new();
    for block in blocks {
        block.shown = 0;
        let title = format!("## {}\n\n", block.title);
        let mut cost = counter.count(&title).0 + counter.count(&note(block, language)).0;
        let mut body = String::new();
        for entry in &block.entries {
            let entry = format!("{}\n", entry.trim_end());
            let price = counter.count(&entry).0;
            if cost + price > left {
                break;
            }
            cost += price;
            body.push_str(&entry);
            block.shown += 1;
        }
        if block.shown == 0 {
            unshown.push(format!("{} ({})", block.title, block.more));
            continue;
        }
        left = left.saturating_sub(cost);
        text.push_str(&title);
        text.push_str(&body);
        if block.shown < block.entries.len() {
            text.push_str(&note(block, language));
        }
        text.push('\n');
    }
    if !unshown.is_empty() {
        let fits = |said: &String| counter.count(&format!("{text}{said}")) <= room;
        let said = (0..=unshown.len()).rev().map(|named| render_unshown(&unshown, named, language)).find(fits);
        text.push_str(&said.unwrap_or_else(|| render_unshown(&unshown, 0, language)));
    }
    text
}

fn render_unshown(unshown: &[String], named: usize, language: Language) -> String {
    let (names, more) = (&unshown[..named], unshown.len() - named);
    match (language, names, more) {
        (Language::En, [], _) => format!("[no room for {more} paragraphs: a larger --budget shows them]\n\n"),
        (Language::Zh, [], _) => format!("[篇幅所限，{more} 段未列出：加大 --budget 即可]\n\n"),
        (Language::En, _, 0) => format!("[no room for: {}]\n\n", names.join("; ")),
        (Language::Zh, _, 0) => format!("[篇幅所限，未列出：{}]\n\n", names.join("；")),
        (Language::En, _, _) => format!("[no room for: {}; and {more} more]\n\n", names.join("; ")),
        (Language::Zh, _, _) => format!("[篇幅所限，未列出：{}；另有 {more} 段]\n\n", names.join("；")),
    }
}

fn note(block: &Block, language: Language) -> String {
    let hidden = block.entries.len() - block.shown.min(block.entries.len());
    match language {
        Language::En => format!("[… {hidden} more: {}]\n", block.more),
        Language::Zh => format!("[……另有 {hidden} 项：{}]\n", block.more),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use quipu_contract::Paragraph;

    #[test]
    fn what_does_not_fit_is_named() {
        let block = |paragraph, count: usize| {
            let mut block = Block::new(paragraph, "T", "quipu x");
            block.entries = (0..count).map(|n| format!("- entry number {n} with some words in it")).collect();
            block
        };
        let mut blocks = [block(Paragraph::State, 3), block(Paragraph::Todos, 100), block(Paragraph::Decisions, 5)];
        let text = render_blocks(&mut blocks, Tokens(300), Counter::O200k, Language::En);
        assert!(Counter::O200k.count(&text).0 <= 300, "{text}");
        assert_eq!(blocks[0].shown, 3);
        assert!(blocks[1].shown > 0 && blocks[1].shown < 100 && text.contains("more: quipu x]"), "{text}");
        for room in 20..300 {
            let text = render_blocks(&mut blocks, Tokens(room), Counter::O200k, Language::En);
            assert!(Counter::O200k.count(&text).0 <= room, "{room}: {text}");
            assert!(text.contains("no room for") || blocks.iter().all(|b| b.shown > 0), "{text}");
        }
        let text = render_blocks(&mut blocks, Tokens(0), Counter::O200k, Language::En);
        assert_eq!(text, "[no room for 3 paragraphs: a larger --budget shows them]\n\n");
        let text = render_blocks(&mut [block(Paragraph::State, 3)], Tokens(70), Counter::O200k, Language::Zh);
        assert!(text.contains("未列出：T (quipu x)"), "{text}");
    }
}
