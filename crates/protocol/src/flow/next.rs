//! The command that takes a flow on.

use super::state::{Flow, Standing, State};

/// What to run next; none where nothing can be done now.
pub fn next_command(flow: &Flow<'_>) -> Option<String> {
    let first = |state: State| flow.standings.iter().find(|s| s.state == state);
    if first(State::Ready).is_some() {
        return Some("quipu run --by NAME     (--dry-run: what it costs)".into());
    }
    if let Some(gate) = first(State::Waiting) {
        return gate.why.first().cloned();
    }
    if first(State::Stale).is_some() {
        return Some("quipu run --stale --by NAME".into());
    }
    if let Some(said) = first(State::Failed).map(render_failed) {
        return Some(said);
    }
    // Steps for each unit have nothing to be done for.
    let without = flow.turns.iter().any(|turn| !turn.without.is_empty());
    let gate = flow.turns.iter().find(|turn| turn.step.declare.is_some());
    without.then(|| match gate {
        Some(gate) => format!("quipu approve {}     (declares the units of the plan; or write [units.ID] into quipu.toml)", gate.turn.step),
        None => "write [units.ID] into quipu.toml, one for each unit".into(),
    })
}

fn render_failed(failed: &Standing) -> String {
    let unit = failed
        .turn
        .unit
        .as_ref()
        .map(|u| format!(" --unit {u}"))
        .unwrap_or_default();
    if failed.objects {
        return format!(
            "mend it and run it again, or overrule it: quipu approve {}{unit}",
            failed.turn.step
        );
    }
    format!(
        "quipu run --step {}{unit} --by NAME     (after looking into it)",
        failed.turn.step
    )
}
