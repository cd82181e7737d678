//! The paragraph about unfinished sessions: requests, changes, last message, work in progress.
//!
//! All of this text is untrusted. Multi-line texts are quoted, and names are put on one line.

use quipu_contract::{Paragraph, in_one_line};
use quipu_store::{Kind, LogEntry, OpenSession, Who};
use serde_json::json;

use super::git::uncommitted;
use super::others::line;
use super::{Block, Waking};
use crate::files::quote::{headline, quoted};
use crate::files::read_scope::ReadScope;
use crate::session::capture::{Captured, cut, load_captured_of};
use crate::session::error::WorkError;
use crate::session::todos::{Status, load_todos};

/// How many characters of the beginning and the end of the newest request and the last message are
/// shown. The end is longer, because a request with several parts ends with the one that was cut
/// off.
const SHOWN_BEGINNING: usize = 200;
const SHOWN_END: usize = 400;
/// A text with more lines is shown on one line.
const SHOWN_LINES: usize = 6;
/// The length and number of earlier requests shown.
const EARLIER_CHARS: usize = 100;
const EARLIER: usize = 3;
/// The numbers of file names, commits and todos shown.
const NAMES: usize = 12;
const COMMITS: usize = 3;
const COMMIT_CHARS: usize = 120;
const TODOS: usize = 3;
/// At most this many sessions without commits are named; `--json` lists all.
const SILENT_NAMED: usize = 3;

/// A session with everything known about it.
struct Left<'w> {
    session: &'w OpenSession,
    captured: Captured,
    /// Its newest commits as lines, newest first; `count` is the total.
    commits: Vec<String>,
    count: usize,
    /// Whether the caller may see the messages of this session.
    is_open: bool,
}

impl Left<'_> {
    fn has_done(&self) -> bool {
        self.captured.has_changed || self.count > 0
    }

    /// Whether it answered its requests and changed nothing, so that nothing is left to do.
    fn owes_nothing(&self) -> bool {
        self.captured.is_hosted
            && !self.has_done()
            && (self.captured.is_answered || !self.captured.was_asked)
    }
}

/// Lists sessions that were begun and never finished, with their work.
pub(super) fn unfinished(waking: &Waking<'_>) -> Result<Option<Block>, WorkError> {
    let title = waking.say("Unfinished sessions", "未收尾的会话");
    let mut block = Block::new(
        Paragraph::Unfinished,
        title,
        "quipu start --full --peek --budget 4000",
    );
    if let Some((session, captured)) = waking.forgotten {
        let own = gather(waking, session, captured.clone());
        let head = match waking.say("en", "zh") {
            "zh" => format!("- 你自己的会话（{}），目前为止：", session.id),
            _ => format!("- Your own session ({}) so far:", session.id),
        };
        block.entries.extend(tell(waking, &own, head));
    }
    let captured = load_captured_of(waking.project, waking.sessions)?;
    let all = waking
        .sessions
        .iter()
        .zip(captured)
        .map(|(session, captured)| gather(waking, session, captured));
    let (lost, at_work): (Vec<Left>, Vec<Left>) = all
        .filter(|left| !left.owes_nothing())
        .partition(|left| is_lost(waking, left));
    let (silent, telling): (Vec<&Left>, Vec<&Left>) = lost
        .iter()
        .partition(|left| !left.has_done() && left.captured.requests.is_empty());
    for left in &telling {
        let (who, id, since) = (
            &left.session.who,
            &left.session.id,
            second(&left.session.since),
        );
        let head = match waking.say("en", "zh") {
            "zh" => format!("- {who} 于 {since} 开始（{id}），没有收尾："),
            _ => format!("- {who} started at {since} ({id}) and never finished:"),
        };
        block.entries.extend(tell(waking, left, head));
    }
    block.entries.extend(tell_silent(
        waking,
        &silent.iter().map(|left| left.session).collect::<Vec<_>>(),
    ));
    let is_own = waking
        .forgotten
        .is_some_and(|(_, captured)| captured.has_changed);
    let tree = if is_own || lost.iter().any(Left::has_done) {
        uncommitted(waking.project.store.root())
    } else {
        None
    };
    if let Some(names) = tree.as_ref().filter(|names| !names.is_empty()) {
        block.entries.push(format!(
            "- {}{}",
            waking.say("Not committed to git: ", "git 中未提交："),
            listed(names)
        ));
    }
    if !lost.is_empty() {
        let advice = waking.say(
            "  Check the work itself before you rely on the state. Your finish also closes \
             unfinished sessions under your name; `--takes-over ID` closes others.",
            "  先查看实际成果，再相信状态。你的收尾会一并结束以你的名字开始的会话；其他会话用 \
             `--takes-over ID`。",
        );
        block.entries.push(advice.to_owned());
    }
    for left in &at_work {
        block.entries.push(tell_at_work(waking, left));
    }
    let data = |lefts: &[Left]| lefts.iter().map(|left| as_json(left)).collect::<Vec<_>>();
    block.data = json!({"lost": data(&lost), "at_work": data(&at_work), "uncommitted": tree});
    Ok((!block.entries.is_empty()).then_some(block))
}

/// Whether the agent of a session is dead. For a host's conversation, its process decides;
/// otherwise its name and age.
fn is_lost(waking: &Waking<'_>, left: &Left<'_>) -> bool {
    let by_name = left.session.over || left.session.who == Who::from(waking.actor);
    left.captured.is_alive().map_or(by_name, |alive| !alive)
}

fn gather<'w>(waking: &Waking<'w>, session: &'w OpenSession, captured: Captured) -> Left<'w> {
    // Commits after the next start under the same name belong to that session.
    let next = waking
        .sessions
        .iter()
        .filter(|s| s.who == session.who && s.seq > session.seq)
        .map(|s| s.seq)
        .min();
    let is_within = |e: &&LogEntry| e.seq > session.seq && next.is_none_or(|next| e.seq < next);
    let is_work =
        |e: &&LogEntry| e.who == session.who && !matches!(e.kind, Kind::Lease | Kind::Note);
    // A finish that closed this session's successor was not this session's work.
    let is_anothers = |e: &&LogEntry| ended_session(e).is_some_and(|id| id != session.id);
    let own: Vec<&LogEntry> = waking
        .recent
        .iter()
        .filter(is_work)
        .filter(is_within)
        .filter(|e| !is_anothers(e))
        .collect();
    // The existence of a commit is always shown; its content only to actors that may read it.
    let hidden = |e: &LogEntry| LogEntry {
        paths: Vec::new(),
        why: None,
        ..e.clone()
    };
    let scope = ReadScope::of(waking.project, waking.actor);
    let commits = own
        .iter()
        .take(COMMITS)
        .map(|e| {
            cut(
                &line(&scope.entry(e).unwrap_or_else(|| hidden(e))),
                COMMIT_CHARS,
            )
        })
        .collect();
    let is_open = scope.hears(session);
    Left {
        session,
        captured,
        commits,
        count: own.len(),
        is_open,
    }
}

/// The session that a commit ended.
fn ended_session(entry: &LogEntry) -> Option<&str> {
    let ended = |path: &'_ String| path.starts_with("session ") && path.ends_with(" ends");
    let path = entry.paths.iter().find(|path| ended(path))?;
    path.strip_prefix("session ")?.strip_suffix(" ends")
}

/// Renders one entry: the first line, and the details below it.
fn tell(waking: &Waking<'_>, left: &Left<'_>, head: String) -> Option<String> {
    let mut parts = Vec::new();
    if left.is_open {
        parts.extend(tell_requests(waking, &left.captured));
        if !left.captured.changed.is_empty() {
            parts.push(format!(
                "  {}{}",
                waking.say("Changed: ", "改动："),
                listed(&left.captured.changed)
            ));
        }
    }
    if left.count > 0 {
        let more = left.count - left.commits.len();
        let title = match (waking.say("en", "zh"), more) {
            ("zh", 0) => "  提交：".to_owned(),
            ("zh", _) => format!(
                "  提交（共 {} 次，列出最近 {} 次）：",
                left.count,
                left.commits.len()
            ),
            (_, 0) => "  It wrote:".to_owned(),
            _ => format!(
                "  It wrote {} commits; the newest {}:",
                left.count,
                left.commits.len()
            ),
        };
        parts.push(title);
        parts.extend(left.commits.iter().map(|commit| format!("  {commit}")));
    }
    parts.extend(tell_todos(waking, left));
    if let Some(said) = left.captured.last_message.as_ref().filter(|_| left.is_open) {
        parts.push(format!(
            "  {}\n{}",
            waking.say("Its last message:", "最后一条消息："),
            shown(said)
        ));
    }
    (!parts.is_empty()).then(|| format!("{head}\n{}", parts.join("\n")))
}

/// The newest request in full if it is short; earlier requests on one line each.
fn tell_requests(waking: &Waking<'_>, captured: &Captured) -> Vec<String> {
    let Some((newest, earlier)) = captured.requests.split_last() else {
        return Vec::new();
    };
    let mut parts = vec![format!(
        "  {}\n{}",
        waking.say("Last request:", "最近的要求："),
        shown(&newest.text)
    )];
    if !earlier.is_empty() {
        let told: Vec<String> = earlier
            .iter()
            .rev()
            .take(EARLIER)
            .map(|r| format!("“{}”", cut(&headline(&r.text), EARLIER_CHARS)))
            .collect();
        let more = earlier.len() - told.len();
        let and = match (more, waking.say("en", "zh")) {
            (0, _) => String::new(),
            (_, "zh") => format!("；另有 {more} 条更早的"),
            _ => format!("; and {more} earlier"),
        };
        parts.push(format!(
            "  {}{}{and}",
            waking.say("Before that: ", "此前："),
            told.join("; ")
        ));
    }
    parts
}

/// Todos in progress that belong to the session's agent.
fn tell_todos(waking: &Waking<'_>, left: &Left<'_>) -> Option<String> {
    let list = load_todos(waking.project, waking.actor).ok()?;
    let names = [&left.session.who.role, &left.session.who.agent];
    let is_its = |assignee: &Option<String>| assignee.is_none() || names.contains(&assignee);
    let doing = list
        .todos
        .iter()
        .filter(|todo| todo.status == Status::InProgress && is_its(&todo.assignee));
    let told: Vec<String> = doing
        .take(TODOS)
        .map(|todo| format!("{} {}", todo.id, in_one_line(&todo.title)))
        .collect();
    (!told.is_empty()).then(|| {
        format!(
            "  {}{}",
            waking.say("In progress: ", "进行中："),
            told.join("; ")
        )
    })
}

fn tell_at_work(waking: &Waking<'_>, left: &Left<'_>) -> String {
    let (who, id, since) = (
        &left.session.who,
        &left.session.id,
        second(&left.session.since),
    );
    // The last commit is the only sign of life of another agent's session.
    let last = left
        .commits
        .first()
        .map(|line| line.trim_start_matches("- ").to_owned());
    let head = match (last, waking.say("en", "zh")) {
        (Some(last), "zh") => format!("- {who} 可能仍在工作（{id}，自 {since}）；最后写入：{last}"),
        (None, "zh") => format!("- {who} 可能仍在工作（{id}，自 {since}）；尚未写入"),
        (Some(last), _) => {
            format!("- {who} may still be working ({id}, since {since}); last commit: {last}")
        }
        (None, _) => {
            format!("- {who} may still be working ({id}, since {since}); no commits yet")
        }
    };
    let asked = left.captured.requests.last().filter(|_| left.is_open);
    let asked = asked.map(|r| {
        format!(
            "\n  {}“{}”",
            waking.say("Asked: ", "要求："),
            cut(&headline(&r.text), EARLIER_CHARS)
        )
    });
    let changed = Some(&left.captured.changed).filter(|names| left.is_open && !names.is_empty());
    let changed =
        changed.map(|names| format!("\n  {}{}", waking.say("Changed: ", "改动："), listed(names)));
    head + &asked.unwrap_or_default() + &changed.unwrap_or_default()
}

/// Sessions without commits, oldest first, one line per agent. A host that restarts repeatedly must
/// not fill the text.
fn tell_silent(waking: &Waking<'_>, silent: &[&OpenSession]) -> Vec<String> {
    let mut agents: Vec<(&Who, Vec<&OpenSession>)> = Vec::new();
    for session in silent {
        match agents.iter_mut().find(|(who, _)| **who == session.who) {
            Some((_, of_one)) => of_one.push(session),
            None => agents.push((&session.who, vec![session])),
        }
    }
    let line = |(who, of_one): (&Who, Vec<&OpenSession>)| {
        let newest = of_one.last()?;
        let since = second(&newest.since);
        let ids = of_one
            .iter()
            .rev()
            .take(SILENT_NAMED)
            .map(|session| session.id.as_str())
            .collect::<Vec<_>>()
            .join(", ");
        let more = of_one.len().saturating_sub(SILENT_NAMED);
        let ids = if more > 0 {
            format!("{ids} +{more}")
        } else {
            ids
        };
        Some(match (of_one.len(), waking.say("en", "zh")) {
            (1, "zh") => format!("- {who} 于 {since} 开始（{ids}），没有收尾，也没有写入任何内容"),
            (1, _) => format!(
                "- {who} started at {since} ({ids}), never finished and wrote \
                nothing"
            ),
            (times, "zh") => format!(
                "- {who} 开始过 {times} 次，最近一次于 \
                 {since}（{ids}），均未收尾，也没有写入任何内容"
            ),
            (times, _) => format!(
                "- {who} started {times} times, last at {since} ({ids}), never finished and wrote \
                 nothing"
            ),
        })
    };
    agents.into_iter().filter_map(line).collect()
}

fn as_json(left: &Left<'_>) -> serde_json::Value {
    let mut value = json!(left.session);
    value["commits"] = json!(left.count);
    if left.is_open {
        value["captured"] = json!(left.captured);
    }
    value
}

/// Renders a shortened text as a quotation inside an entry.
fn shown(text: &str) -> String {
    let lines: Vec<&str> = text
        .lines()
        .map(str::trim_end)
        .filter(|line| !line.is_empty())
        .collect();
    let joined = lines.join(if lines.len() > SHOWN_LINES { " " } else { "\n" });
    quoted(&cut_middle(&joined))
        .lines()
        .map(|line| format!("  {line}"))
        .collect::<Vec<_>>()
        .join("\n")
}

/// Keeps the beginning and the end of a text and marks the omission.
fn cut_middle(text: &str) -> String {
    let count = text.chars().count();
    if count <= SHOWN_BEGINNING + SHOWN_END {
        return text.to_owned();
    }
    let beginning: String = text.chars().take(SHOWN_BEGINNING).collect();
    let end: String = text.chars().skip(count - SHOWN_END).collect();
    format!("{} […] {}", beginning.trim_end(), end.trim_start())
}

/// The first few names on one line.
fn listed(names: &[String]) -> String {
    let more = names.len().saturating_sub(NAMES);
    let told = names
        .iter()
        .take(NAMES)
        .map(|name| in_one_line(name).into_owned())
        .collect::<Vec<_>>()
        .join(", ");
    if more > 0 {
        format!("{told} +{more}")
    } else {
        told
    }
}

fn second(moment: &str) -> &str {
    moment.get(..19).unwrap_or(moment)
}
