//! The command that takes a flow on.

use super::state::{Flow, State};

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
    first(State::Failed).map(|s| {
        let unit = s.turn.unit.as_ref().map(|u| format!(" --unit {u}")).unwrap_or_default();
        if s.objects {
            return format!("mend it and run it again, or overrule it: quipu approve {}{unit}", s.turn.step);
        }
        format!("quipu run --step {}{unit} --by NAME     (after looking into it)", s.turn.step)
    })
}
