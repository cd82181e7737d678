//! The short start for an agent that has already received a full one in the same session: only
//! news.

use quipu_contract::{Actor, Paragraph, Scene, Tokens};
use quipu_store::OpenSession;
use quipu_text::Counter;

use super::fit::render_blocks;
use super::others::others;
use super::worldlog::matches;
use super::{Awake, Block, Waking};
use crate::session::error::WorkError;

/// Renders the changes by others since then, or says that there are none.
pub(super) fn tell_news(
    waking: &Waking<'_>,
    scene: &Scene,
    session: &OpenSession,
    budget: Tokens,
) -> Result<Awake, WorkError> {
    let mut blocks: Vec<Block> = Vec::new();
    if scene.show.contains(&Paragraph::Others) {
        blocks.extend(others(waking)?);
    }
    // A stated task is new, even where the rest is known.
    if waking.task.is_some() {
        blocks.extend(matches(waking)?);
    }
    let since = session.since.get(..19).unwrap_or(&session.since);
    let goes_on = match waking.say("en", "zh") {
        "zh" => format!("你的会话 {}（始于 {since}）仍在继续。", session.id),
        _ => format!(
            "Your session {} (started at {since}) continues.",
            session.id
        ),
    };
    let news = match blocks.is_empty() {
        true => waking.say(
            " Nothing has changed since the last start text.",
            "自上次告知之后没有变化。",
        ),
        false => waking.say(" Changes since then:", "此后的变化："),
    };
    let next = waking
        .say(
            "To see the whole text again: quipu start --full",
            "再看全文：quipu start --full",
        )
        .to_owned();
    let told = render_blocks(&mut blocks, budget, Counter::O200k, waking.language);
    let separator = if told.is_empty() { "" } else { "\n" };
    let text = format!("{goes_on}{news}\n\n{told}{separator}{next}\n");
    let tokens = Counter::O200k.count(&text).0;
    Ok(Awake {
        scene: scene.name.clone(),
        session: Some(session.clone()),
        continues: true,
        begun: false,
        created: Vec::new(),
        blocks,
        next,
        tokens,
        least: None,
        text,
        actor: Actor::Person,
    })
}
