//! The `capture` command: shows recorded conversations, sets how much is recorded, and removes
//! records.

use clap::{Args, ValueEnum};
use quipu_contract::{Capture, MANIFEST, Privilege, ProjectPath, in_one_line};
use quipu_protocol::{Captured, Project, ReadScope, headline, load_captured};
use quipu_store::{Change, Expect, OpenSession};
use serde_json::json;

use super::receipt;
use crate::answer::{Answer, Failure, count, in_language};
use crate::session::Session;
use crate::table::Operate;

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Act {
    /// Show what is recorded, the open sessions, and how much is in the journal
    Show,
    /// Stop recording conversations
    Off,
    /// Record the user's requests
    Requests,
    /// Record the user's requests, the names of changed files and the agent's last message
    Full,
    /// Delete every recorded conversation from the journal; cannot be undone
    Purge,
}

#[derive(Debug, Args)]
pub struct CaptureCommand {
    /// The action
    #[arg(default_value = "show")]
    act: Act,
}

impl Operate for CaptureCommand {
    const NAME: &'static str = "capture";
    const ABOUT: &'static str =
        "Show, set or remove what the journal records of conversations with agent hosts";

    fn operate(self, session: &Session) -> Result<Answer, Failure> {
        let project = session.project()?;
        match self.act {
            Act::Show => show(&project, session),
            Act::Off => set(&project, session, Capture::Off),
            Act::Requests => set(&project, session, Capture::Requests),
            Act::Full => set(&project, session, Capture::Full),
            Act::Purge => purge(&project, session),
        }
    }
}

fn show(project: &Project, session: &Session) -> Result<Answer, Failure> {
    let scope = ReadScope::of(project, &session.actor);
    let capture = project.contract.capture;
    let kept = project.store.captured_size()?;
    let language = project.contract.language;
    let (en, zh) = match capture {
        Capture::Off => ("conversations are not recorded", "不记录对话"),
        Capture::Requests => ("the user's requests are recorded", "记录用户的要求"),
        Capture::Full => (
            "the user's requests, the names of changed files and the agent's last message are \
             recorded",
            "记录用户的要求、改动的文件名与 Agent 的最后一条消息",
        ),
    };
    let records = in_language(language, en, zh);
    let mut text = format!("capture = \"{}\": {records}\n", capture.as_str());
    let (texts, bytes) = (number(kept.texts, "text"), number(kept.bytes, "byte"));
    text.push_str(&in_language(
        language,
        format!("{texts}, {bytes} in the journal     (quipu capture purge deletes them)\n"),
        format!(
            "日志中有 {} 段文字，{} 字节     （quipu capture purge 会删除）\n",
            kept.texts, kept.bytes
        ),
    ));
    let mut sessions = Vec::new();
    for open in project
        .store
        .sessions()?
        .into_iter()
        .filter(|open| scope.hears(open))
    {
        let captured = load_captured(project, &open)?;
        text.push_str(&told(&open, &captured));
        sessions.push(json!({"session": open, "captured": captured}));
    }
    Ok(Answer::new(
        json!({"capture": capture, "texts": kept.texts, "bytes": kept.bytes, "sessions": sessions}),
        text,
    ))
}

/// Formats one open session; empty if nothing of it is recorded.
fn told(open: &OpenSession, captured: &Captured) -> String {
    let mut lines: Vec<String> = captured
        .requests
        .iter()
        .map(|r| format!("  asked    {}  {}", second(&r.at), headline(&r.text)))
        .collect();
    lines.extend(
        captured
            .changed
            .iter()
            .map(|name| format!("  changed  {}", in_one_line(name))),
    );
    lines.extend(
        captured
            .last_message
            .iter()
            .map(|said| format!("  said     {}", headline(said))),
    );
    if lines.is_empty() {
        return String::new();
    }
    format!(
        "\n{} of {}, since {}\n{}\n",
        open.id,
        open.who,
        second(&open.since),
        lines.join("\n")
    )
}

fn set(project: &Project, session: &Session, capture: Capture) -> Result<Answer, Failure> {
    session.actor.may(Privilege::MakeRules)?;
    let path = ProjectPath::parse(MANIFEST)?;
    let Some((bytes, version)) = project.store.read(&path)? else {
        return Err(Failure::usage(
            format!("`{MANIFEST}` does not exist"),
            "quipu restore quipu.toml",
        ));
    };
    let text = String::from_utf8(bytes).map_err(|_| {
        Failure::usage(
            format!("`{MANIFEST}` is not UTF-8"),
            "quipu restore quipu.toml",
        )
    })?;
    let said = format!("capture = \"{}\"", capture.as_str());
    let change = Change::by(&session.actor).why(format!("capture: {}", capture.as_str()));
    let receipt = project
        .validate(change.write(&path, with_setting(&text, &said), Expect::Version(version)))?
        .publish()?;
    let mut answer = receipt::with(
        project.contract.language,
        &receipt,
        json!({"capture": capture}),
        format!("{said}\n"),
    );
    if capture == Capture::Off && project.store.captured_size()?.texts > 0 {
        answer = answer.say(
            "earlier conversations are still in the journal; to delete them: quipu capture purge",
        );
    }
    Ok(answer)
}

/// Returns the manifest with the setting: replaces the old line, or inserts one above the first
/// table.
fn with_setting(text: &str, said: &str) -> String {
    let is_setting = |line: &str| {
        line.trim_start()
            .strip_prefix("capture")
            .is_some_and(|rest| rest.trim_start().starts_with('='))
    };
    let lines: Vec<&str> = text.lines().collect();
    let table = lines
        .iter()
        .position(|line| line.trim_start().starts_with('['))
        .unwrap_or(lines.len());
    let mut lines: Vec<String> = lines.into_iter().map(str::to_owned).collect();
    match lines.iter().take(table).position(|line| is_setting(line)) {
        Some(old) => lines[old] = said.to_owned(),
        // Inserts below the last setting before the tables.
        None => {
            let is_said =
                |line: &String| !line.trim().is_empty() && !line.trim_start().starts_with('#');
            let below = lines
                .iter()
                .take(table)
                .rposition(is_said)
                .map_or(0, |last| last + 1);
            lines.insert(below, said.to_owned());
        }
    }
    lines.join("\n") + "\n"
}

fn purge(project: &Project, session: &Session) -> Result<Answer, Failure> {
    session.actor.may(Privilege::DropHistory)?;
    let purged = project.store.purge_captured(&session.actor)?;
    let text = match purged.texts {
        0 => "no conversations are recorded\n".to_owned(),
        texts => format!(
            "deleted {} of conversations from the journal, {}\n",
            number(texts, "text"),
            number(purged.bytes, "byte")
        ),
    };
    let answer = Answer::new(json!({"texts": purged.texts, "bytes": purged.bytes}), text);
    Ok(answer.say("copies of `.quipu/journal`, such as backups, still contain them"))
}

fn number(n: u64, of: &str) -> String {
    count(usize::try_from(n).unwrap_or(usize::MAX), of)
}

fn second(moment: &str) -> &str {
    moment.get(..19).unwrap_or(moment)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_setting_stands_before_the_tables() {
        let said = "capture = \"off\"";
        for (before, after) in [
            ("quipu = 1\n", "quipu = 1\ncapture = \"off\"\n"),
            (
                "quipu = 1\nprofiles = [\"relay\"]\n\n# Files\n[[files]]\ncapture = 1\n",
                "quipu = 1\nprofiles = [\"relay\"]\ncapture = \"off\"\n\n# Files\n[[files]]\ncapture = 1\n",
            ),
            (
                "quipu = 1\ncapture=\"full\" # all\n[vars]\n",
                "quipu = 1\ncapture = \"off\"\n[vars]\n",
            ),
        ] {
            assert_eq!(with_setting(before, said), after);
        }
    }
}
