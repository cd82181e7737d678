//! The `trust` command: records a person's agreement that settings of a project run programs or
//! contact servers.

use std::io::IsTerminal;
use std::path::Path;

use clap::Args;
use quipu_contract::{Contract, Privilege};
use quipu_postgres::Attachment;
use quipu_protocol::{
    Power, Project, Setting, TrustError, is_trusted, revoke_trust, trust, trust_only,
};
use serde_json::json;

use crate::agents::describe_agents;
use crate::answer::{Answer, Failure, exit};
use crate::session::Session;
use crate::table::Operate;
use crate::terminal;

#[derive(Debug, Args)]
pub struct Trust {
    /// Agree without a question on the terminal
    #[arg(long, conflicts_with_all = ["show", "revoke"])]
    yes: bool,
    /// Only show the settings and whether they are trusted; exit 1 if one is not
    #[arg(long, conflicts_with = "revoke")]
    show: bool,
    /// Revoke the trust in this project's settings
    #[arg(long)]
    revoke: bool,
}

impl Operate for Trust {
    const NAME: &'static str = "trust";
    const ABOUT: &'static str =
        "Show what this project's settings run or contact, and agree to it; people only";

    fn operate(self, session: &Session) -> Result<Answer, Failure> {
        session.actor.may(Privilege::MakeRules)?;
        let root = Project::find_root(&session.folder)?;
        if self.revoke {
            let revoked = revoke_trust(&root)?;
            let text = if revoked {
                "revoked: no setting of this project is trusted\n"
            } else {
                "no setting of this project was trusted\n"
            };
            return Ok(Answer::new(json!({"revoked": revoked}), text));
        }
        let contract = Project::load_contract(&root)?;
        let settings = settings_of(&root, &contract)?;
        if settings.is_empty() {
            let text = "no setting of this project runs a program or contacts a server: there is nothing to trust\n";
            return Ok(Answer::new(json!({"trusted": true, "settings": []}), text));
        }
        let (shown, known) = render(&root, &contract, &settings)?;
        let report =
            |trusted: bool| json!({"trusted": trusted, "root": &root, "settings": &settings});
        if self.show || known {
            let mut answer = Answer::new(report(known), shown);
            answer.exit = if known { exit::FINE } else { exit::NO };
            return Ok(answer.say(if known {
                "trusted"
            } else {
                "not trusted; to agree: quipu trust"
            }));
        }
        if !self.yes && !ask(&shown) {
            let mut answer = Answer::new(
                report(false),
                if std::io::stdin().is_terminal() {
                    String::new()
                } else {
                    shown
                },
            );
            answer.exit = exit::NO;
            return Ok(answer.say(
                "not trusted: none of this is run or contacted; to agree without \
                a terminal: quipu trust --yes",
            ));
        }
        trust_only(&root, &settings)?;
        let shown = match self.yes {
            true => render(&root, &contract, &settings)?.0,
            false => String::new(),
        };
        Ok(Answer::new(report(true), shown).say("trusted, until one of these settings changes"))
    }
}

/// Records the agreement of the person who typed the address of a store. If that fails, the
/// preceding work stays done and the answer reports the failure.
pub fn agree_to_store(answer: Answer, root: &Path, address: &str) -> Answer {
    match trust(root, &[Setting::store(address)]) {
        Ok(()) => answer,
        Err(error) => {
            let remedy = Failure::from(error);
            let what = format!(
                "{}; until you agree, this copy does not contact the store: {}, then quipu trust",
                remedy.what,
                remedy.remedy.unwrap_or_default()
            );
            answer.say(what)
        }
    }
}

/// Returns every setting of a project that needs trust.
fn settings_of(root: &Path, contract: &Contract) -> Result<Vec<Setting>, Failure> {
    let attached = Attachment::load(root)?.map(|attached| attached.address);
    Ok(Setting::all(contract, attached.as_deref()))
}

/// Shows the settings in words and literally, and whether all of them are trusted.
fn render(
    root: &Path,
    contract: &Contract,
    settings: &[Setting],
) -> Result<(String, bool), Failure> {
    let mut text = format!("{}\n", plain(&root.display().to_string()));
    let mut known = true;
    for setting in settings {
        let trusted = is_trusted(root, setting);
        known &= trusted;
        let mut lines = match setting.power {
            Power::Agents => describe_agents(contract)?,
            Power::Store => vec![format!("commands of this project contact {}", setting.text)],
            Power::Git => vec!["`quipu finish` runs `git commit` here, with the hooks and filters of this git repository".to_owned()],
        };
        if setting.power == Power::Agents {
            lines.push("from quipu.toml, [agents]:".to_owned());
            lines.extend(setting.text.lines().map(|line| format!("  {line}")));
        }
        text.push_str(if trusted {
            "trusted\n"
        } else {
            "not trusted yet\n"
        });
        lines
            .iter()
            .for_each(|line| text.push_str(&format!("  {}\n", plain(line))));
    }
    Ok((text, known))
}

/// Asks on the terminal; false without one. Only a complete `yes` counts.
fn ask(shown: &str) -> bool {
    if !std::io::stdin().is_terminal() || !terminal::stderr_is_terminal() {
        return false;
    }
    terminal::write_stderr(&format!("{shown}Trust this? Type yes to agree: "));
    let mut answer = String::new();
    std::io::stdin().read_line(&mut answer).is_ok() && answer.trim().eq_ignore_ascii_case("yes")
}

/// Returns one line without hidden or control characters, including line breaks, so that the person
/// sees exactly what they agree to.
fn plain(text: &str) -> String {
    let shown = |c: char| match c {
        '"' | '\'' | '\\' => c.to_string(),
        c => c.escape_debug().to_string(),
    };
    text.chars().map(shown).collect()
}

impl From<TrustError> for Failure {
    fn from(error: TrustError) -> Failure {
        let what = error.to_string();
        match error {
            TrustError::Io(_) => Failure::new(
                exit::IO,
                what,
                "set XDG_STATE_HOME to a writable folder of yours",
            ),
            TrustError::Inside(_) => Failure::new(
                exit::REFUSED,
                what,
                "set XDG_STATE_HOME to a folder outside the project",
            ),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_is_hidden_from_whoever_agrees() {
        assert_eq!(
            plain("a\u{1b}[2K\u{202e}b\r\u{200b}"),
            "a\\u{1b}[2K\\u{202e}b\\r\\u{200b}"
        );
        assert_eq!(plain("写作 \"sh\" 'x'"), "写作 \"sh\" 'x'");
    }
}
