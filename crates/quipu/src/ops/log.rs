//! The `log` command: lists commits, newest first.

use clap::Args;
use quipu_contract::{Language, in_one_line};
use quipu_protocol::chinese::in_language as render_message;
use quipu_protocol::{Project, ReadScope, may_read_whole};
use quipu_store::{Kind, LogEntry, OpKind};
use serde_json::json;

use crate::answer::{Answer, Failure, exit, in_language};
use crate::flow_text::width as columns;
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
fn damaged(language: Language) -> &'static str {
    in_language(
        language,
        "a damaged record: its contents are lost (quipu verify)",
        "一条损坏的记录：内容已丢失（quipu verify）",
    )
}

impl Operate for Log {
    const NAME: &'static str = "log";
    const ABOUT: &'static str = "List commits, newest first";

    fn operate(self, session: &Session) -> Result<Answer, Failure> {
        let project = session.history()?;
        let language = project.contract.language;
        let Some(path) = &self.path else {
            let entries = visible(&project, session, self.most)?;
            let who: Vec<String> = entries.iter().map(|e| e.who.to_string()).collect();
            let width = width(&who);
            let text = entries
                .iter()
                .zip(&who)
                .map(|(e, who)| match e.damaged {
                    true => format!("@{:<6} {}\n", e.seq, damaged(language)),
                    false => line(
                        e.seq,
                        &e.at,
                        &kind(language, e.kind),
                        who,
                        width,
                        &e.paths.join(" "),
                        reason(language, e.why.as_deref()).as_deref(),
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
                    return format!("@{:<6} {}\n", e.seq, damaged(language));
                }
                let what = if e.op == OpKind::Remove {
                    in_language(language, "removed", "已删除").to_owned()
                } else {
                    let bytes = in_language(language, "bytes", "字节");
                    format!("{} {} {bytes}", e.version, e.len)
                };
                line(
                    e.seq,
                    &e.at,
                    &kind(language, e.kind),
                    who,
                    width,
                    &what,
                    reason(language, e.why.as_deref()).as_deref(),
                )
            })
            .collect::<String>();
        let answer = Answer::new(json!(events), text);
        let Some(gap) = events.iter().find(|e| e.after_gap) else {
            return Ok(answer);
        };
        let (en, zh) = if gap.damaged {
            ("the record", "这条记录")
        } else {
            ("a record before", "之前的一条记录")
        };
        let at = gap.seq;
        let mut answer = answer.say(in_language(
            language,
            format!("{en} @{at} about `{path}` is damaged: its contents are lost (quipu verify)"),
            format!("@{at} {zh}（关于 `{path}`）已损坏：内容已丢失（quipu verify）"),
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

/// The kind of a record, eight columns wide.
fn kind(language: Language, kind: Kind) -> String {
    let word = in_language(language, kind.as_str(), in_chinese(kind));
    format!("{word}{}", " ".repeat(8usize.saturating_sub(columns(word))))
}

fn in_chinese(kind: Kind) -> &'static str {
    match kind {
        Kind::Commit => "提交",
        Kind::Adopt => "收入",
        Kind::Amend => "修订",
        Kind::Restore => "恢复",
        Kind::ConflictCopy => "冲突副本",
        Kind::Lease => "租约",
        Kind::Note => "备注",
        Kind::Unknown => "不明",
    }
}

/// The reason that Quipu gave for a commit; that of a person or an agent stays as it is.
fn reason(language: Language, why: Option<&str>) -> Option<String> {
    why.map(|why| render_message(language, why.to_owned()))
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
    format!("@{seq:<6} {at}  {kind} {who:<width$}  {what}{why}\n")
}
