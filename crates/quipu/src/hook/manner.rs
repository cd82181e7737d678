//! How a host wants to be answered: the same verdict, in the manner that it reads.

use serde_json::{Value, json};

use super::DENIED;
use crate::answer::{Answer, Failure};

#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Manner {
    /// Text on stdout; exit 2 denies, with the reason on stderr. Whoever names no event.
    #[default]
    Plain,
    /// The same, but text comes as `{"hookSpecificOutput": …}`. Whoever names its events.
    Nested,
    /// Everything in fields of one object, denials too, as Cursor reads them. Only for whoever asks
    /// for it: every other host known reads a denial from the exit code.
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

    /// The host goes on.
    pub fn nothing(self) -> Answer {
        match self {
            Manner::Flat => spoken(json!({})),
            _ => Answer::new(json!({}), ""),
        }
    }

    /// A text for the conversation.
    pub fn told(self, event: Option<&str>, text: String) -> Answer {
        match self {
            Manner::Plain => Answer::new(json!({"text": text}), text),
            Manner::Nested => spoken(
                json!({"hookSpecificOutput": {"hookEventName": event, "additionalContext": text}}),
            ),
            Manner::Flat => spoken(json!({"additional_context": text})),
        }
    }

    /// An edit is not made, and the agent hears why.
    pub fn denied(self, refusal: &Failure) -> Answer {
        let reason = refusal.render();
        if self == Manner::Flat {
            return spoken(json!({"permission": "deny", "user_message": refusal.shown_what(), "agent_message": reason})).say(reason);
        }
        let mut answer = Answer::new(refusal.json(), "").say(reason);
        answer.json["exit"] = json!(DENIED);
        answer.exit = DENIED;
        answer
    }

    /// An agent does not stop yet.
    pub fn held(self, missing: Value, text: &str) -> Answer {
        if self == Manner::Flat {
            return spoken(json!({"followup_message": text})).say(text);
        }
        let mut answer = Answer::new(json!({"missing": missing}), "").say(text);
        answer.exit = DENIED;
        answer
    }
}

/// One object, the same with `--json` and without.
fn spoken(object: Value) -> Answer {
    let text = object.to_string();
    Answer::data(object, text)
}
