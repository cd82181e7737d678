//! The `log` command: lists commits, newest first.

use clap::Args;
use quipu_contract::in_one_line;
use quipu_protocol::{Project, ReadScope, may_read_whole};
use quipu_store::{LogEntry, OpKind};
use serde_json::json;

use crate::answer::{Answer, Failure, exit};
use crate::session::Session;
use crate::table::Operate;

#[derive(Debug, Args)]
pub struct Log {
    /// List only commits that changed this file
    path: Option<String>,
    /// The maximum number of commits
    #[arg(short = 'n', long, value_name = "N", default_value_t = 20)]
    most: usize,
}

/// Printed for a record that cannot be read.
const DAMAGED: &str = "a damaged record: its contents are lost (quipu verify)";

impl Operate for Log {
    const NAME: &'static str = "log";
    const ABOUT: &'static str = "List commits, newest first";

    fn operate(self, session: &Session) -> Result<Answer, Failure> {
        let project = session.history()?;
        let Some(path) = &self.path else {
            let entries = visible(&project, session, self.most)?;
            let who: Vec<String> = entries.iter().map(|e| e.who.to_string()).collect();
            let width = width(&who);
            let text = entries
                .iter()
                .zip(&who)
                .map(|(e, who)| match e.damaged {
                    true => format!("@{:<6} {DAMAGED}\n", e.seq),
                    false => line(
                        e.seq,
                        &e.at,
                        e.kind.as_str(),
                        who,
                        width,
                        &e.paths.join(" "),
                        e.why.as_deref(),
                    ),
                })
                .collect::<String>();
            return Ok(Answer::new(json!(entries), text));
        };
        let path = Session::path(path)?;
        may_read_whole(&project, &session.actor, &path)?;
        let events = project.store.newest_events(&path, self.most)?;
        if events.is_empty() {
            return Err(Failure::new(
                exit::NOT_FOUND,
                format!("`{path}` has no history"),
                "quipu log",
            ));
        }
        let who: Vec<String> = events.iter().map(|e| e.who.to_string()).collect();
        let width = width(&who);
        let text = events
            .iter()
            .zip(&who)
            .map(|(e, who)| {
                if e.damaged {
                    return format!("@{:<6} {DAMAGED}\n", e.seq);
                }
                let what = if e.op == OpKind::Remove {
                    "removed".into()
                } else {
                    format!("{} {} bytes", e.version, e.len)
                };
                line(
                    e.seq,
                    &e.at,
                    e.kind.as_str(),
                    who,
                    width,
                    &what,
                    e.why.as_deref(),
                )
            })
            .collect::<String>();
        let answer = Answer::new(json!(events), text);
        let Some(gap) = events.iter().find(|e| e.after_gap) else {
            return Ok(answer);
        };
        let which = if gap.damaged {
            format!("the record @{}", gap.seq)
        } else {
            format!("a record before @{}", gap.seq)
        };
        let mut answer = answer.say(format!(
            "{which} about `{path}` is damaged: its contents are lost (quipu verify)"
        ));
        answer.exit = exit::IO;
        Ok(answer)
    }
}

/// Returns the newest commits that the actor may see, newest first.
fn visible(project: &Project, session: &Session, most: usize) -> Result<Vec<LogEntry>, Failure> {
    let scope = ReadScope::of(project, &session.actor);
    if scope.is_everything() {
        return Ok(project.store.log(most)?);
    }
    let page = project
        .store
        .log_before(None, most, &|entry| scope.entry(entry).is_some())?;
    Ok(page
        .entries
        .iter()
        .filter_map(|entry| scope.entry(entry))
        .collect())
}

fn width(who: &[String]) -> usize {
    who.iter().map(|w| w.chars().count()).max().unwrap_or(0)
}

fn line(
    seq: u64,
    at: &str,
    kind: &str,
    who: &str,
    width: usize,
    what: &str,
    why: Option<&str>,
) -> String {
    let at = at.get(..19).unwrap_or(at);
    let why = why
        .map(|w| format!("  {}", in_one_line(w)))
        .unwrap_or_default();
    let what = in_one_line(what);
    format!("@{seq:<6} {at}  {kind:<8} {who:<width$}  {what}{why}\n")
}
