//! The answer formats of hosts.
//!
//! Every format carries the same verdict; this file decides nothing.

use serde_json::{Value, json};

use super::DENIED;
use crate::answer::{Answer, Failure};

#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Manner {
    /// Text on stdout; exit code 2 denies, with the reason on stderr. For hosts that name no event.
    #[default]
    Plain,
    /// Like `Plain`, but text is sent as `{"hookSpecificOutput": …}`. For hosts that name their
    /// events.
    Nested,
    /// Everything in fields of one object, including denials, under the names that Cursor, Copilot
    /// and Cline use. Only on request: every other known host reads a denial from the exit code.
    Flat,
}

impl Manner {
    pub fn of(in_fields: bool, event: Option<&str>) -> Manner {
        match event {
            _ if in_fields => Manner::Flat,
            Some(_) => Manner::Nested,
            None => Manner::Plain,
        }
    }

    /// The host continues.
    pub fn nothing(self) -> Answer {
        match self {
            Manner::Flat => spoken(json!({})),
            _ => Answer::new(json!({}), ""),
        }
    }

    /// A text for the conversation.
    pub fn answer(self, event: Option<&str>, text: String) -> Answer {
        match self {
            Manner::Plain => Answer::new(json!({"text": text}), text),
            Manner::Nested => spoken(
                json!({"hookSpecificOutput": {"hookEventName": event, "additionalContext": text}}),
            ),
            Manner::Flat => {
                let mut fields = json!({"additional_context": text, "additionalContext": text, "contextModification": text});
                if event.is_some() {
                    fields["hookSpecificOutput"] =
                        json!({"hookEventName": event, "additionalContext": text});
                }
                spoken(fields)
            }
        }
    }

    /// Denies an edit and gives the agent the reason.
    pub fn denied(self, refusal: &Failure) -> Answer {
        let reason = refusal.render();
        if self == Manner::Flat {
            let fields = json!({
                "permission": "deny", "user_message": refusal.shown_what(), "agent_message": reason,
                "permissionDecision": "deny", "permissionDecisionReason": reason,
                "cancel": true, "errorMessage": reason,
            });
            return spoken(fields).say(reason);
        }
        let mut answer = Answer::new(refusal.json(), "").say(reason);
        answer.json["exit"] = json!(DENIED);
        answer.exit = DENIED;
        answer
    }

    /// Keeps an agent from stopping.
    pub fn held(self, missing: Value, text: &str) -> Answer {
        if self == Manner::Flat {
            return spoken(json!({"followup_message": text, "decision": "block", "reason": text}))
                .say(text);
        }
        let mut answer = Answer::new(json!({"missing": missing}), "").say(text);
        answer.exit = DENIED;
        answer
    }
}

/// One object, with or without `--json`.
fn spoken(object: Value) -> Answer {
    let text = object.to_string();
    Answer::data(object, text)
}
