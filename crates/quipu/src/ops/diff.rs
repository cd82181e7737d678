//! The `diff` command: shows the changes of a file between versions, or by an external edit.

use clap::Args;
use quipu_contract::ProjectPath;
use quipu_protocol::{Project, may_read_whole, not_found, read_pointer, render_difference};
use quipu_store::{At, PathEvent};
use serde_json::json;

use crate::answer::{Answer, Failure, in_language};
use crate::session::Session;
use crate::shell_word::shell_word;
use crate::table::Operate;

#[derive(Debug, Args)]
pub struct Diff {
    /// The file
    path: String,
    /// The old version: a1b2c3…, @12, ~1 or a time; by default the newest one, or the one before
    /// adopted external edits
    #[arg(long, value_name = "VERSION")]
    from: Option<String>,
    /// The new version; by default the file on disk
    #[arg(long, value_name = "VERSION")]
    to: Option<String>,
}

impl Operate for Diff {
    const NAME: &'static str = "diff";
    const ABOUT: &'static str =
        "Show what changed in a file: between versions, or by an external edit";

    fn operate(self, session: &Session) -> Result<Answer, Failure> {
        let path = Session::path(&self.path)?;
        let project = session.project()?;
        may_read_whole(&project, &session.actor, &path)?;
        let text = |bytes: Vec<u8>| String::from_utf8_lossy(&bytes).into_owned();
        let events = project.store.events(&path)?;
        let known = !events.is_empty();
        let (old_version, old) = match (&self.from, known) {
            (None, false) => (None, String::new()),
            (from, _) => {
                let from = match from {
                    Some(from) => from.clone(),
                    None => before_outside_edits(&project, &path, &events)?,
                };
                let reading = read_pointer(&project, &session.actor, &self.path, Some(&from))?;
                (Some(reading.version.to_string()), text(reading.bytes))
            }
        };
        let (new_version, new) = match &self.to {
            Some(to) => {
                let reading = read_pointer(&project, &session.actor, &self.path, Some(to))?;
                (Some(reading.version.to_string()), text(reading.bytes))
            }
            None => match project.store.on_disk(&path)? {
                Some(bytes) => (None, text(bytes)),
                None if known => (None, String::new()),
                None => return Err(not_found(&project, &session.actor, &path).into()),
            },
        };
        let old_name = format!(
            "{path} {}",
            old_version.as_deref().unwrap_or("(not journalled)")
        );
        let new_name = format!("{path} {}", new_version.as_deref().unwrap_or("(on disk)"));
        let diff = render_difference(&old_name, &old, &new_name, &new);
        let answer = Answer::data(
            json!({"path": path, "from": old_version, "to": new_version, "diff": diff}),
            diff,
        );
        if !answer.text.is_empty() {
            return Ok(answer);
        }
        let is_plain = self.from.is_none() && self.to.is_none();
        let language = project.contract.language;
        Ok(answer.say(if is_plain && events.len() > 1 {
            let command = format!("quipu diff {} --from '~1'", shell_word(&self.path));
            in_language(
                language,
                format!("no difference on disk; what the last version changed: {command}"),
                format!("磁盘上没有差别；最近一个版本改了什么：{command}"),
            )
        } else {
            in_language(language, "no difference", "没有差别").to_owned()
        }))
    }
}

/// Returns the version to compare with. An allowed external edit is adopted by the first command
/// that scans the file, and would never show. If the file does not differ from its newest version,
/// the version before the adopted edits is used.
fn before_outside_edits(
    project: &Project,
    path: &ProjectPath,
    events: &[PathEvent],
) -> Result<String, Failure> {
    let on_disk = project.store.on_disk(path)?;
    let (newest, _) = project.store.text_at(path, &At::Back(0))?;
    let back = match on_disk.unwrap_or_default() == newest {
        true => events
            .iter()
            .position(|e| e.kind.as_str() != "adopt")
            .unwrap_or(events.len() - 1),
        false => 0,
    };
    Ok(format!("~{back}"))
}
