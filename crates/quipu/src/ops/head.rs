//! The commands `head` and `key`: record the head of the journal outside it, and sign it.

use clap::Args;
use quipu_contract::Privilege;
use serde_json::json;

use crate::answer::{Answer, Failure, exit};
use crate::session::Session;
use crate::table::Operate;
use crate::{head_key, heads};

const MAKE_KEY: &str = "quipu key new";

#[derive(Debug, Args)]
pub struct Head {
    /// Sign it with your key and store the signature in .quipu/signed-heads
    #[arg(long)]
    sign: bool,
}

impl Operate for Head {
    const NAME: &'static str = "head";
    const ABOUT: &'static str =
        "Print the number and the hash of the newest record, for `verify --expect`";

    fn operate(self, session: &Session) -> Result<Answer, Failure> {
        let project = session.project()?;
        let head = project.store.journal_head()?;
        let head = head.ok_or_else(|| {
            Failure::new(
                exit::NOT_FOUND,
                "the journal has no record yet",
                "quipu status",
            )
        })?;
        let mut answer = Answer::new(
            json!({"head": head.to_string(), "journal": head.journal}),
            head.to_string(),
        );
        if self.sign {
            let io = |e: std::io::Error| {
                Failure::new(
                    exit::IO,
                    format!("cannot write `.quipu/{}`: {e}", heads::SIGNED),
                    "",
                )
            };
            if !heads::note_signed(project.store.root(), &head).map_err(io)? {
                return Err(Failure::new(
                    exit::NOT_FOUND,
                    "you have no key to sign with",
                    MAKE_KEY,
                ));
            }
            answer = answer.say(format!("signed in .quipu/{}", heads::SIGNED));
        }
        Ok(answer)
    }
}

#[derive(Debug, Args)]
pub struct KeyNew {}

impl Operate for KeyNew {
    const NAME: &'static str = "key new";
    const ABOUT: &'static str = "Create your key for signing heads; `finish` signs from then on";

    fn operate(self, session: &Session) -> Result<Answer, Failure> {
        session.actor.may(Privilege::MakeRules)?;
        let failed = |e: std::io::Error| match e.kind() {
            std::io::ErrorKind::AlreadyExists => {
                Failure::new(exit::REFUSED, "you already have a key", "quipu key show")
            }
            _ => Failure::new(exit::IO, format!("cannot create the key: {e}"), ""),
        };
        let public = head_key::make().map_err(failed)?;
        Ok(shown(&public))
    }
}

#[derive(Debug, Args)]
pub struct KeyShow {}

impl Operate for KeyShow {
    const NAME: &'static str = "key show";
    const ABOUT: &'static str = "Show the public part of your key, and where the key is";

    fn operate(self, _: &Session) -> Result<Answer, Failure> {
        let public = head_key::public_key()
            .ok_or_else(|| Failure::new(exit::NOT_FOUND, "you have no key", MAKE_KEY))?;
        Ok(shown(&public))
    }
}

fn shown(public: &str) -> Answer {
    let path = head_key::path().unwrap_or_default();
    Answer::new(json!({"public": public, "file": path}), public)
        .say(format!("the key is in {}", path.display()))
}
