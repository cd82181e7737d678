//! Fits paragraphs into a token budget.
//!
//! The scene defines the order of paragraphs; this module defines the order in which they are cut.

use quipu_contract::{Language, Tokens};
use quipu_text::Counter;

use super::Block;

/// Reserved for the lines that name omitted paragraphs.
const ROOM_FOR_NAMES: u64 = 40;
/// Further entries of a paragraph are not counted.
const MOST_ENTRIES: usize = 400;

/// How a paragraph is cut.
#[derive(Clone, Copy)]
enum Cut {
    /// Every entry uses its short form.
    Short,
    /// Entries are dropped from the end until this many are left.
    To(usize),
}

/// The order of cuts, first cut first. Unfinished work, the state and open todos are cut last. A
/// paragraph not listed here is the main content of its profile and is cut after all of these.
const GIVES_WAY: &[(&str, Cut)] = &[
    ("others", Cut::To(3)),
    ("sessions", Cut::To(2)),
    ("identity", Cut::To(3)),
    ("decisions", Cut::Short),
    ("others", Cut::To(0)),
    ("sessions", Cut::To(0)),
    ("knowledge", Cut::To(4)),
    ("delegations", Cut::To(4)),
    ("notes", Cut::To(6)),
    ("facts", Cut::To(8)),
    ("matches", Cut::To(2)),
    ("decisions", Cut::To(8)),
    ("unfinished", Cut::Short),
    ("todos", Cut::Short),
    ("identity", Cut::To(2)),
    ("state", Cut::To(6)),
    ("decisions", Cut::To(5)),
    ("notes", Cut::To(3)),
    ("facts", Cut::To(4)),
    ("world", Cut::To(2)),
    ("knowledge", Cut::To(0)),
    ("matches", Cut::To(0)),
    ("notes", Cut::To(0)),
    ("identity", Cut::To(0)),
    ("facts", Cut::To(0)),
    ("decisions", Cut::To(0)),
    ("delegations", Cut::To(0)),
    ("todos", Cut::To(6)),
    ("unfinished", Cut::To(3)),
    ("world", Cut::To(0)),
    ("task", Cut::To(2)),
    ("delegation", Cut::To(1)),
    ("state", Cut::To(4)),
    ("todos", Cut::To(2)),
    ("unfinished", Cut::To(1)),
    ("task", Cut::To(0)),
    ("delegation", Cut::To(0)),
    ("state", Cut::To(1)),
    ("todos", Cut::To(0)),
    ("unfinished", Cut::To(0)),
    ("state", Cut::To(0)),
];

/// The costs of one paragraph's entries while it is being cut.
struct Plan {
    title: u64,
    whole: Vec<u64>,
    short: Vec<u64>,
    is_short: bool,
    shown: usize,
}

impl Plan {
    fn cost(&self) -> u64 {
        let prices = if self.is_short {
            &self.short
        } else {
            &self.whole
        };
        if self.shown == 0 {
            0
        } else {
            self.title + prices[..self.shown].iter().sum::<u64>()
        }
    }
}

/// Renders as much of the blocks as fits, in their order, and records how much of each is shown. If
/// not even the names of omitted blocks fit, only their number is shown.
pub(super) fn render_blocks(
    blocks: &mut [Block],
    room: Tokens,
    counter: Counter,
    language: Language,
) -> String {
    let price = |text: &String| counter.count(&format!("{}\n", text.trim_end())).0;
    let plan = |block: &Block| {
        let entries = &block.entries[..block.entries.len().min(MOST_ENTRIES)];
        let whole: Vec<u64> = entries.iter().map(price).collect();
        let short = whole
            .iter()
            .enumerate()
            .map(|(at, whole)| block.short.get(at).map_or(*whole, price))
            .collect();
        let title = counter.count(&format!("## {}\n\n", block.title)).0
            + counter.count(&note(block, 0, language)).0;
        Plan {
            title,
            short,
            is_short: false,
            shown: whole.len(),
            whole,
        }
    };
    let mut plans: Vec<Plan> = blocks.iter().map(plan).collect();
    let total = |plans: &[Plan]| plans.iter().map(Plan::cost).sum::<u64>();
    let mut limit = room.0;
    loop {
        make_room(blocks, &mut plans, limit, &total);
        for (block, plan) in blocks.iter_mut().zip(&plans) {
            (block.shown, block.is_short) = (plan.shown, plan.is_short);
        }
        let text = render(blocks, room, counter, language);
        let tokens = counter.count(&text).0;
        // A joined text may cost slightly more than the sum of its parts.
        if tokens <= room.0 || plans.iter().all(|plan| plan.shown == 0) {
            return text;
        }
        limit = limit
            .min(total(&plans))
            .saturating_sub((tokens - room.0).max(1));
    }
}

/// Cuts until the cost is within the limit.
fn make_room(blocks: &[Block], plans: &mut [Plan], limit: u64, total: &dyn Fn(&[Plan]) -> u64) {
    let is_named = |name: &str| GIVES_WAY.iter().any(|(known, _)| *known == name);
    let others: Vec<(&str, Cut)> = blocks
        .iter()
        .map(|b| b.name)
        .filter(|name| !is_named(name))
        .map(|name| (name, Cut::To(0)))
        .collect();
    for (name, cut) in GIVES_WAY.iter().chain(&others) {
        let Some(at) = blocks.iter().position(|block| block.name == *name) else {
            continue;
        };
        while total(plans) + names_cost(plans) > limit {
            match cut {
                Cut::Short if !plans[at].is_short => plans[at].is_short = true,
                Cut::To(least) if plans[at].shown > *least => plans[at].shown -= 1,
                _ => break,
            }
        }
    }
}

/// The cost of naming the omitted paragraphs.
fn names_cost(plans: &[Plan]) -> u64 {
    if plans.iter().any(|plan| plan.shown == 0) {
        ROOM_FOR_NAMES
    } else {
        0
    }
}

fn render(blocks: &[Block], room: Tokens, counter: Counter, language: Language) -> String {
    let mut text = String::new();
    let mut unshown = Vec::new();
    for block in blocks {
        if block.shown == 0 {
            unshown.push(format!("{} ({})", block.title, block.more));
            continue;
        }
        text.push_str(&format!("## {}\n\n", block.title));
        for (at, entry) in block.entries[..block.shown].iter().enumerate() {
            let entry = block
                .short
                .get(at)
                .filter(|_| block.is_short)
                .unwrap_or(entry);
            text.push_str(&format!("{}\n", entry.trim_end()));
        }
        if block.shown < block.entries.len() {
            text.push_str(&note(block, block.shown, language));
        }
        text.push('\n');
    }
    if !unshown.is_empty() {
        let fits = |said: &String| counter.count(&format!("{text}{said}")) <= room;
        let said = (0..=unshown.len())
            .rev()
            .map(|named| render_unshown(&unshown, named, language))
            .find(fits);
        text.push_str(&said.unwrap_or_else(|| render_unshown(&unshown, 0, language)));
    }
    text
}

fn render_unshown(unshown: &[String], named: usize, language: Language) -> String {
    let (names, more) = (&unshown[..named], unshown.len() - named);
    match (language, names, more) {
        (Language::En, [], _) => {
            format!("[{more} more sections: increase --budget to see them]\n\n")
        }
        (Language::Zh, [], _) => format!("[另有 {more} 段未列出：加大 --budget 即可]\n\n"),
        (Language::En, _, 0) => format!("[left out for lack of space: {}]\n\n", names.join("; ")),
        (Language::Zh, _, 0) => format!("[篇幅所限，未列出：{}]\n\n", names.join("；")),
        (Language::En, _, _) => format!(
            "[left out for lack of space: {}; and {more} more]\n\n",
            names.join("; ")
        ),
        (Language::Zh, _, _) => format!(
            "[篇幅所限，未列出：{}；另有 {more} 段]\n\n",
            names.join("；")
        ),
    }
}

fn note(block: &Block, shown: usize, language: Language) -> String {
    let hidden = block.entries.len() - shown;
    match language {
        Language::En => format!("[… {hidden} more: {}]\n", block.more),
        Language::Zh => format!("[……另有 {hidden} 项：{}]\n", block.more),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use quipu_contract::Paragraph;

    fn block(paragraph: Paragraph, count: usize) -> Block {
        let mut block = Block::new(paragraph, paragraph.as_str(), "quipu x");
        block.entries = (0..count)
            .map(|n| format!("- entry number {n} with some words in it"))
            .collect();
        block
    }

    #[test]
    fn what_does_not_fit_is_named() {
        let mut blocks = [
            block(Paragraph::State, 3),
            block(Paragraph::Todos, 100),
            block(Paragraph::Decisions, 5),
        ];
        let text = render_blocks(&mut blocks, Tokens(300), Counter::O200k, Language::En);
        assert!(Counter::O200k.count(&text).0 <= 300, "{text}");
        assert_eq!(blocks[0].shown, 3);
        assert!(
            blocks[1].shown > 0 && blocks[1].shown < 100 && text.contains("more: quipu x]"),
            "{text}"
        );
        for room in 20..300 {
            let text = render_blocks(&mut blocks, Tokens(room), Counter::O200k, Language::En);
            assert!(Counter::O200k.count(&text).0 <= room, "{room}: {text}");
            assert!(
                text.contains("left out for lack of space")
                    || text.contains("more sections")
                    || blocks.iter().all(|b| b.shown > 0),
                "{text}"
            );
        }
        let text = render_blocks(&mut blocks, Tokens(0), Counter::O200k, Language::En);
        assert_eq!(text, "[3 more sections: increase --budget to see them]\n\n");
    }

    #[test]
    fn what_matters_most_goes_last() {
        let paragraphs = [
            Paragraph::Unfinished,
            Paragraph::State,
            Paragraph::Todos,
            Paragraph::Decisions,
            Paragraph::Facts,
            Paragraph::Others,
            Paragraph::Identity,
        ];
        let mut blocks = paragraphs.map(|paragraph| block(paragraph, 4));
        let mut shown_before: Vec<&str> = paragraphs.map(Paragraph::as_str).to_vec();
        for room in (1..700).rev() {
            render_blocks(&mut blocks, Tokens(room), Counter::O200k, Language::En);
            let shown: Vec<&str> = blocks
                .iter()
                .filter(|b| b.shown > 0)
                .map(|b| b.name)
                .collect();
            assert!(
                shown.iter().all(|name| shown_before.contains(name)),
                "{room}: {shown:?}"
            );
            if shown.len() == 3 {
                assert_eq!(shown, ["unfinished", "state", "todos"], "{room}");
            }
            shown_before = shown;
        }
    }
}
